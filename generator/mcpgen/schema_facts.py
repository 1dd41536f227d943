"""The facts for the schema in a file: of the revision it starts from, fitted, with those stated."""

from __future__ import annotations

from pathlib import Path

from mcpgen import facts, facts_files, fitting, schema
from mcpgen.errors import FactsError, shown
from mcpgen.fitting import FittedFacts


def facts_for(loaded: schema.Schema, base: str, stated: Path | None) -> FittedFacts:
    """The facts for a schema, and which of them are guesses.

    Args:
        loaded: The schema.
        base: The revision whose facts it starts from.
        stated: A file with the facts that differ.

    Raises:
        FactsError: The file is malformed.
        SchemaError: A constant of the schema is no error code.
    """
    carried = facts.load(base)
    if loaded.digest == schema.entry(base).digest:
        fitted = FittedFacts(carried, ())
    else:
        fitted = fitting.fit(carried, loaded, schema.load(base))
    known = facts.with_constants(fitted.facts, loaded)
    if stated is None:
        return FittedFacts(known, fitted.guesses)
    file = facts_files.read(stated)
    guesses = tuple(guess for guess in fitted.guesses if not file.has(guess.pointer))
    return FittedFacts(facts_files.laid_over(known, file), guesses)


def expect_methods(loaded: schema.Schema, base: str, stated: Path) -> None:
    """Refuse a facts file with methods that neither the schema nor an extension has.

    Raises:
        FactsError: The file is malformed, or names such a method.
    """
    extensions = {name for name, row in facts.load(base).methods.items() if row.extension}
    methods = fitting.methods_of(loaded) | extensions
    facts_files.check_methods(facts_files.read(stated), methods)


def text_for(loaded: schema.Schema, base: str, stated: Path | None) -> str:
    """The facts for a schema as a file that states all of them.

    Raises:
        FactsError: As for `facts_for`.
        SchemaError: As for `facts_for`.
    """
    found = facts_for(loaded, base, stated)
    if stated is not None:
        expect_methods(loaded, base, stated)
    methods = fitting.methods_of(loaded)
    return facts_files.text(found.facts, facts.load(base), found.guesses, methods)


def expect_no_guess(found: FittedFacts, source: str) -> None:
    """Refuse facts that are guessed.

    Raises:
        FactsError: There is a guess; names the first.
    """
    if found.guesses:
        first, *others = found.guesses
        more = f" (and {len(others)} more)" if others else ""
        came = f"the guess {shown(first.value)}, {first.why}{more}"
        raise FactsError(source, first.pointer, "a fact that --facts states", came)
