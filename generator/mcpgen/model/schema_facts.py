"""The facts for the schema in a file, and the facts files that users write for it.

The facts are those of the revision that the schema starts from, fitted to the schema, with the
facts of a file laid over them. A facts file states what differs: `based_on`, the revision that the
facts start from, and keys of any table. In tables by method or definition, `false` removes a row. A
facts file that states all facts is written as text for editing.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from mcpgen import schema
from mcpgen.errors import FactsError, format_value, safe_text
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model import fitting
from mcpgen.model.fitting import FittedFacts, Guess
from mcpgen.schema import facts
from mcpgen.schema.facts import Facts, Results
from mcpgen.schema.method_facts import UNSTATED, MethodFacts
from mcpgen.schema.structure import escape, unescape
from mcpgen.toml_records import Place, convert, nearest_name, read_toml, toml_key, toml_value

_BASED_ON = "based_on"
_OWN = ("revision", "source")
_MEANING = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_BY_METHOD = (("methods",), ("capabilities",), ("results", "client"), ("results", "server"))
"""Tables whose keys are methods."""
_BY_NAME = ("/methods", "/capabilities", "/results/client", "/results/server", "/renamed")
"""Tables from which a file can remove a row."""
_POSITIONAL = "/positional"
"""The end of the pointer of facts about packages, of which no revision states anything."""


def facts_for(loaded: schema.Schema, base: str, stated: Path | None) -> FittedFacts:
    """The facts for a schema, with those that are guesses or carried over.

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
        fitted = FittedFacts(facts.with_constants(carried, loaded))
    else:
        fit = fitting.fit(carried, loaded, schema.load(base))
        known = facts.with_constants(fit.facts, loaded)
        codes = (f"/errors/{name}" for name in facts.conditions(loaded.constants))
        settled = {*fit.stated, *codes, *(guess.pointer for guess in fit.guesses)}
        left = carried_facts(known, carried, settled, fitting.methods_of(loaded))
        fitted = FittedFacts(known, fit.guesses, tuple(left))
    if stated is None:
        return fitted
    file = read(stated)
    return FittedFacts(
        _overlay(fitted.facts, file),
        tuple(guess for guess in fitted.guesses if not file.has(guess.pointer)),
        tuple(fact for fact in fitted.carried if not file.has(fact.pointer)),
    )


def _is_known(loaded: schema.Schema, base: str) -> bool:
    """Whether a schema has the structure of the base revision, so that the facts are its own."""
    return loaded.digest == schema.entry(base).digest


def absent_methods(stated: Path) -> frozenset[str]:
    """The methods that a facts file declares absent.

    Raises:
        FactsError: The file is malformed.
    """
    rows: Json = read(stated).table.get("methods", {})
    by_name = rows.items() if is_object(rows) else ()
    return frozenset(name for name, row in by_name if row is False)


def expect_methods(loaded: schema.Schema, base: str, stated: Path) -> None:
    """Refuse a facts file with methods that neither the schema nor an extension has.

    Raises:
        FactsError: The file is malformed, or names such a method.
    """
    extensions = {name for name, row in facts.load(base).methods.items() if row.extension}
    gone = absent_methods(stated) & fitting.methods_of(schema.load(base))
    _check_methods(read(stated), fitting.methods_of(loaded) | extensions | gone)


def text_of(
    fitted: FittedFacts, loaded: schema.Schema, base: str, stated: Path | None, by_rule: Results
) -> str:
    """The text of a facts file that states all facts for a schema.

    Args:
        fitted: The facts, as `facts_for` gives them.
        loaded: The schema.
        base: The revision whose facts it starts from.
        stated: The file with the facts that differ.
        by_rule: Results that the facts leave to the rules.

    Raises:
        FactsError: The file is malformed.
    """
    file = read(stated) if stated is not None else None
    own = _is_known(loaded, base)
    origins = _Origins(fitted, facts.load(base), file, own)
    return _text(fitted.facts, by_rule, origins, fitting.methods_of(loaded))


def expect_all_stated(fitted: FittedFacts, source: str) -> None:
    """Refuse facts that are guessed or carried over.

    Raises:
        FactsError: There is such a fact; the error names the first.
    """
    left = [*fitted.guesses, *fitted.carried]
    if left:
        first, *others = left
        more = f" (and {len(others)} more, which mcpgen facts lists)" if others else ""
        if first.why:
            actual = f"the guess {format_value(first.value)}, {first.why}"
        else:
            actual = f"{format_value(first.value)}, carried over from {first.revision}"
        raise FactsError(source, first.pointer, "a fact that --facts states", f"{actual}{more}")


def summary(fitted: FittedFacts) -> str:
    """The number of facts that are carried over, by table; empty for none."""
    tables = Counter(fact.pointer.split("/")[1] for fact in fitted.carried)
    if not tables:
        return ""
    listed = ", ".join(f"{name} {count}" for name, count in tables.items())
    revision = fitted.carried[0].revision
    return f"{tables.total()} facts that the schema does not state, from {revision}: {listed}"


@dataclass(frozen=True)
class StatedFacts:
    """The content of a facts file.

    Attributes:
        table: The keys of the file, without `based_on`.
        based_on: The revision that the facts start from; `None` for the nearest.
        place: The file.
    """

    table: Node
    based_on: str | None
    place: Place

    def has(self, pointer: str) -> bool:
        """Whether the file states the fact at a pointer."""
        value: Json = self.table
        for token in pointer.split("/")[1:]:
            key = unescape(token)
            if not is_object(value) or key not in value:
                return False
            value = value[key]
        return True


def read(path: Path) -> StatedFacts:
    """The content of a facts file.

    Raises:
        FactsError: The file cannot be read, is not TOML, or starts from an unknown revision.
    """
    table, place = read_toml(path, FactsError)
    based_on: Json = table.pop(_BASED_ON, None)
    known = [row.name for row in schema.revisions()]
    if based_on is not None and based_on not in known:
        raise place.at(_BASED_ON).error(f"one of the revisions {', '.join(known)}", based_on)
    for name in _OWN:
        if name in table:
            raise place.at(name).error("a table of facts", table[name])
    return StatedFacts(table, based_on, place)


def _overlay(facts: Facts, stated: StatedFacts) -> Facts:
    """Overlay facts with the statements of a file.

    Args:
        facts: The facts without the file.
        stated: The file.

    Raises:
        FactsError: A key is unknown, or a value has another type.
    """
    table = _without_rows(_merge_tables(as_table(facts), stated.table), "")
    own = {"revision": facts.revision, "source": stated.place.source}
    return convert({**table, **own}, Facts, stated.place)


def _without_rows(table: Node, pointer: str) -> Node:
    """A table without rows that are `false`, if its rows are by method or definition."""
    by_name = pointer in _BY_NAME
    return {
        key: _without_rows(value, f"{pointer}/{key}") if is_object(value) else value
        for key, value in table.items()
        if not (by_name and (value is False or value == {}))
    }


def _check_methods(stated: StatedFacts, methods: Collection[str]) -> None:
    """Refuse facts about a method that a schema does not have.

    Raises:
        FactsError: There is such a fact; the error names the first, and the nearest method.
    """
    for path in _BY_METHOD:
        value: Json = stated.table
        place = stated.place
        for name in path:
            value = value.get(name, {}) if is_object(value) else {}
            place = place.at(name)
        for method in value if is_object(value) else ():
            if method not in methods:
                near = nearest_name(method, methods)
                nearest = f", the nearest being {near}" if near else ""
                raise place.at(method).error(f"a method of the schema{nearest}", method)


def _merge_tables(table: Node, stated: Node) -> Node:
    """Overlay a table with another one, nested tables likewise."""
    merged = dict(table)
    for key, value in stated.items():
        own: Json = merged.get(key)
        if is_object(own) and is_object(value):
            merged[key] = _merge_tables(own, value)
        else:
            merged[key] = value
    return merged


def as_table(facts: Facts) -> Node:
    """Facts in the form of a facts file: `false` for null; only changed facts of methods."""
    table: Node = _without_null(asdict(facts))
    unstated: Node = _without_null(asdict(UNSTATED))
    table["methods"] = {
        method: {key: value for key, value in row.items() if value != unstated[key]}
        for method, row in table["methods"].items()
    }
    return {key: value for key, value in table.items() if key not in _OWN}


def _without_null(value: Mapping[str, Any]) -> Json:
    """Convert a table for TOML: arrays for tuples, `false` for `None`."""
    return _plain(json.loads(json.dumps(value)))


def _plain(value: Json) -> Json:
    if is_object(value):
        return {key: _plain(child) for key, child in value.items()}
    if is_array(value):
        return [_plain(child) for child in value]
    return False if value is None else value


def carried_facts(
    facts: Facts, base: Facts, settled: Collection[str], methods: Collection[str]
) -> Iterator[Guess]:
    """The facts that are taken from the prose of a revision unchanged.

    Args:
        facts: The facts for a schema.
        base: Those of the revision that they started from.
        settled: The places in a facts file of facts that the schema states, and of guesses.
        methods: The methods of the schema.
    """
    before = dict(_leaves(as_table(base)))
    for pointer, value in _leaves(_whole(facts, Results(), methods)):
        if pointer.endswith(_POSITIONAL):
            continue
        if pointer not in settled and before.get(pointer, False) == value:
            yield Guess(pointer, value, base.revision, "")


def _leaves(table: Node, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """Every value of a table that is not a table, by pointer."""
    for key, value in table.items():
        at = f"{pointer}/{escape(key)}"
        if is_object(value):
            yield from _leaves(value, at)
        else:
            yield at, value


def _whole(facts: Facts, by_rule: Results, methods: Collection[str]) -> Node:
    """Facts in the form of a facts file that states all facts about some methods."""
    table = as_table(facts)
    del table["pages"]  # for readers
    without = {method: False for method in sorted(methods) if method not in facts.capabilities}
    table["capabilities"] = {**table["capabilities"], **without}
    table["methods"] = {
        method: row
        for method, row in table["methods"].items()
        if method in methods or row.get("extension")
    }
    ruled: Node = _without_null(asdict(by_rule))
    table["results"] = {side: {**ruled[side], **rows} for side, rows in table["results"].items()}
    return table


@dataclass(frozen=True)
class _Origins:
    """The origin of each fact for a schema.

    Attributes:
        fitted: The facts.
        base: Those of the revision that they started from.
        file: The facts file with changes, if any.
        own: Whether the schema is that of the base revision, so that the facts are its own.
    """

    fitted: FittedFacts
    base: Facts
    file: StatedFacts | None
    own: bool

    @cached_property
    def guesses(self) -> Mapping[str, Guess]:
        """The guesses by pointer."""
        return {guess.pointer: guess for guess in self.fitted.guesses}

    @cached_property
    def _carried_pointers(self) -> frozenset[str]:
        return frozenset(fact.pointer for fact in self.fitted.carried)

    @cached_property
    def _before(self) -> Mapping[str, Json]:
        return dict(_leaves(as_table(self.base)))

    def of(self, pointer: str, value: Json) -> str:
        """The origin of a fact, in words; empty for a guess."""
        if pointer in self.guesses:
            return ""
        if self.file is not None and self.file.has(pointer):
            return f"from {safe_text(self.file.place.source)}"
        if pointer in self._carried_pointers:
            return f"carried over from {self.base.revision}"
        before = self._before.get(pointer, False)
        if before == value and (self.own or pointer.endswith(_POSITIONAL)):
            return f"from {self.base.revision}"
        if before == value or pointer.startswith("/results/"):
            return "from the schema"
        return f"from the schema; {toml_value(before)} in {self.base.revision}"


def _text(facts: Facts, by_rule: Results, origins: _Origins, methods: Collection[str]) -> str:
    """The text of a facts file that states all facts.

    Args:
        facts: The facts.
        by_rule: Results that the facts leave to the rules.
        origins: The origins of the facts.
        methods: The methods of the schema.
    """
    base = origins.base.revision
    lines = [
        "# All facts that are used for the schema, as a file for --facts. A key that is left out",
        "# keeps its value. `false` says that there is no such thing. What is carried over from",
        f"# {base} stands only in the prose of that revision: the schema does not state it.",
        f"{_BASED_ON} = {toml_value(base)}",
    ]
    guessed: Node = {
        guess.pointer.removeprefix("/methods/"): {}
        for guess in origins.fitted.guesses
        if guess.pointer.startswith("/methods/")
    }
    table = _whole(facts, by_rule, methods)
    table["methods"] |= {unescape(method): row for method, row in guessed.items()}
    lines += _section(table, Facts, "", origins)
    return "\n".join(lines)


def _section(table: Node, kind: Any, pointer: str, origins: _Origins) -> Iterator[str]:
    """The tables of a table, each with its keys, and what each key means."""
    hints, meanings = get_type_hints(kind), _meanings(kind)
    for one in fields(kind):
        if one.name not in table:
            continue
        at, inner = f"{pointer}/{one.name}", hints[one.name]
        yield ""
        yield from _comment(meanings.get(one.name) or _first_line(inner))
        if one.name == "methods":
            for name, meaning in _meanings(MethodFacts).items():
                yield from _comment(f"{name}: {meaning}")
        yield f"[{_header(at)}]"
        yield from _rows(table[one.name], inner, at, origins)


def _rows(table: Node, kind: Any, pointer: str, origins: _Origins) -> Iterator[str]:
    meanings = _meanings(kind) if is_dataclass(kind) else {}
    tables: Node = {key: value for key, value in table.items() if is_object(value)}
    for key, value in table.items():
        if key in tables:
            continue
        at = f"{pointer}/{escape(key)}"
        yield from _comment(meanings.get(key, ""))
        yield from _guess(origins, at)
        origin = origins.of(at, value)
        yield f"{toml_key(key)} = {toml_value(value)}{f'  # {origin}' if origin else ''}"
    for key, value in tables.items():
        at = f"{pointer}/{escape(key)}"
        yield ""
        yield from _guess(origins, at)
        yield f"[{_header(at)}]"
        yield from _rows(value, None, at, origins)


def _header(pointer: str) -> str:
    return ".".join(toml_key(unescape(token)) for token in pointer.split("/")[1:])


def _guess(origins: _Origins, pointer: str) -> Iterator[str]:
    if pointer in origins.guesses:
        yield from _comment(f"A guess: {safe_text(origins.guesses[pointer].why)}.")


def _comment(sentence: str) -> Iterator[str]:
    if sentence:
        yield f"# {sentence}"


def _first_line(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0] if is_dataclass(kind) else ""


def _meanings(kind: Any) -> dict[str, str]:
    """The meanings of the fields of a data class, from the attributes in its docstring."""
    pairs = _MEANING.findall(inspect.getdoc(kind) or "")
    return {name: " ".join(meaning.split()) for name, meaning in pairs}
