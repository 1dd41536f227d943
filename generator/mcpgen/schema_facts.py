"""The facts for the schema in a file: of the revision it starts from, fitted, with those stated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mcpgen import facts, facts_files, fitting, schema
from mcpgen.errors import FactsError, shown
from mcpgen.facts import Results
from mcpgen.fitting import FittedFacts


def facts_for(loaded: schema.Schema, base: str, stated: Path | None) -> FittedFacts:
    """The facts for a schema, and which of them are guesses or carried over.

    Args:
        loaded: The schema.
        base: The revision whose facts it starts from.
        stated: A file with the facts that differ.

    Raises:
        FactsError: The file is malformed.
        SchemaError: A constant of the schema is no error code.
    """
    carried = facts.load(base)
    if _is_known(loaded, base):
        found = FittedFacts(facts.with_constants(carried, loaded))
    else:
        fit = fitting.fit(carried, loaded, schema.load(base))
        known = facts.with_constants(fit.facts, loaded)
        codes = (f"/errors/{name}" for name in facts.conditions(loaded.constants))
        settled = {*fit.stated, *codes, *(guess.pointer for guess in fit.guesses)}
        left = facts_files.carried_over(known, carried, settled, fitting.methods_of(loaded))
        found = FittedFacts(known, fit.guesses, tuple(left))
    if stated is None:
        return found
    file = facts_files.read(stated)
    return FittedFacts(
        facts_files.laid_over(found.facts, file),
        tuple(guess for guess in found.guesses if not file.has(guess.pointer)),
        tuple(fact for fact in found.carried if not file.has(fact.pointer)),
    )


def _is_known(loaded: schema.Schema, base: str) -> bool:
    """Whether a schema has the structure of the revision, whose facts are then its own."""
    return loaded.digest == schema.entry(base).digest


def expect_methods(loaded: schema.Schema, base: str, stated: Path) -> None:
    """Refuse a facts file with methods that neither the schema nor an extension has.

    Raises:
        FactsError: The file is malformed, or names such a method.
    """
    extensions = {name for name, row in facts.load(base).methods.items() if row.extension}
    methods = fitting.methods_of(loaded) | extensions
    facts_files.check_methods(facts_files.read(stated), methods)


def text_of(
    found: FittedFacts, loaded: schema.Schema, base: str, stated: Path | None, by_rule: Results
) -> str:
    """The facts for a schema as a file that states all of them.

    Args:
        found: The facts, as `facts_for` gives them.
        loaded: The schema.
        base: The revision whose facts it starts from.
        stated: The file with the facts that differ.
        by_rule: Results that the facts leave to the rules.

    Raises:
        FactsError: The file is malformed.
    """
    file = facts_files.read(stated) if stated is not None else None
    own = _is_known(loaded, base)
    origins = facts_files.Origins(found, facts.load(base), file, own)
    return facts_files.text(found.facts, by_rule, origins, fitting.methods_of(loaded))


def expect_all_stated(found: FittedFacts, source: str) -> None:
    """Refuse facts that are guessed or carried over.

    Raises:
        FactsError: There is one; names the first.
    """
    left = [*found.guesses, *found.carried]
    if left:
        first, *others = left
        more = f" (and {len(others)} more, which mcpgen facts lists)" if others else ""
        if first.why:
            came = f"the guess {shown(first.value)}, {first.why}"
        else:
            came = f"{shown(first.value)}, carried over from {first.revision}"
        raise FactsError(source, first.pointer, "a fact that --facts states", f"{came}{more}")


def summary(found: FittedFacts) -> str:
    """How many facts are carried over, by table; empty for none."""
    tables = Counter(fact.pointer.split("/")[1] for fact in found.carried)
    if not tables:
        return ""
    listed = ", ".join(f"{name} {count}" for name, count in tables.items())
    revision = found.carried[0].revision
    return f"{tables.total()} facts that the schema does not state, from {revision}: {listed}"
