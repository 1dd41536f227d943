"""The disagreements of a schema in TypeScript and the JSON that was published for it.

The TypeScript is the source of truth, so every disagreement is an erratum of the JSON. `integer` in
JSON for `number` in TypeScript does not count: TypeScript has no integers, and the specification
uses integers for numbers. It counts only where strings, numbers and booleans are all allowed, since
numbers need not be whole there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mcpgen import paths
from mcpgen.errors import SchemaError, format_value, safe_text
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.schema.errata import Erratum
from mcpgen.schema.load import read_document
from mcpgen.schema.structure import canonical, difference, resolve, structure, unescape
from mcpgen.toml_records import toml_value

if TYPE_CHECKING:
    from mcpgen.schema.typescript.syntax import Module

_TYPE_NAMES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


@dataclass(frozen=True)
class Disagreements:
    """The disagreements of two files.

    Attributes:
        errata: Corrections that make the JSON equal to the TypeScript.
        others: Differences that an erratum cannot express, one sentence each: definitions that
            only one file has, and values that TOML cannot represent.
    """

    errata: tuple[Erratum, ...]
    others: tuple[str, ...]


def disagreements(typescript_file: Path, json_file: Path) -> Disagreements:
    """The disagreements of a TypeScript and a JSON file, except prose and order of members.

    Raises:
        TypeScriptError: The TypeScript cannot be read.
        SchemaError: The JSON file is no JSON object with definitions.
    """
    from mcpgen.schema import typescript  # few commands read TypeScript
    from mcpgen.schema.typescript import Fidelity

    published: Node = structure(read_document(json_file))
    module = typescript.read(typescript_file)
    container = next((name for name in ("$defs", "definitions") if name in published), None)
    if container is None or not is_object(published[container]):
        source = paths.shown_path(json_file)
        raise SchemaError(
            source, "", "definitions under $defs or definitions", format_value([*published])
        )
    right: Node = structure(typescript.document(module, container, Fidelity.TYPESCRIPT))
    only_here, only_there = (
        sorted(one.keys() - other.keys())
        for one, other in (
            (right[container], published[container]),
            (published[container], right[container]),
        )
    )
    others = [f"{safe_text(name)} is a definition of the TypeScript only" for name in only_here]
    others += [f"{safe_text(name)} is a definition of the JSON only" for name in only_there]
    shared = {name: right[container][name] for name in right[container] if name not in only_here}
    theirs = {name: published[container][name] for name in shared}
    documents: tuple[Node, Node] = ({container: theirs}, {container: shared})
    errata: list[Erratum] = []
    for pointer in _pointers(*documents):
        old, new = (resolve(document, pointer) for document in documents)
        if _is_writable(old) and _is_writable(new):
            errata.append(_erratum(module, pointer, old, new))
        else:
            others.append(f"{safe_text(pointer)} differs by a null, which TOML has no form for")
    return Disagreements(tuple(errata), tuple(others))


def _pointers(published: Node, right: Node) -> Iterator[str]:
    """The smallest places in both documents that together contain every difference, not nested."""
    places = dict.fromkeys(_differing_pointers(published, right))
    return (
        place
        for place in places
        if not any(place.startswith(f"{other}/") for other in places if other != place)
    )


def _differing_pointers(published: Node, right: Node) -> Iterator[str]:
    for pointer, _ in difference(published, right):
        parent, _, token = pointer.rpartition("/")
        try:
            values = resolve(published, pointer), resolve(right, pointer)
        except LookupError:
            yield parent
            continue
        if token == "type" and values == ("number", "integer"):
            continue
        above: Json = resolve(published, parent)
        if is_array(above):
            if _says_number(above, resolve(right, parent)):
                continue
            yield parent
        else:
            yield pointer


def _says_number(published: list[Json], right: Json) -> bool:
    """Whether two lists of types differ only by `number`, which JSON took from TypeScript."""
    whole: list[Json] = ["integer" if name == "number" else name for name in published]
    return bool(right == whole)


def _erratum(module: Module, pointer: str, old: Json, new: Json) -> Erratum:
    name = unescape(pointer.split("/")[2])
    declaration = module.types[name]
    return Erratum(
        pointer=pointer,
        old=old,
        new=new,
        reason=_reason(old, new),
        source=f"{Path(module.source).name}, line {declaration.at.line}: {name}",
    )


_GAINED = {"null": "null", "number": "numbers that are not whole"}


def _reason(old: Json, new: Json) -> str:
    types, right_types = _types(old), _types(new)
    gained = [phrase for name, phrase in _GAINED.items() if name in {*right_types} - {*types}]
    if types and gained:
        return f"the TypeScript allows {' and '.join(gained)}"
    if (
        is_array(old)
        and is_array(new)
        and sorted(map(canonical, old)) == sorted(map(canonical, new))
    ):
        return "the TypeScript names the same in another order"
    if is_object(old) and "$ref" in old and is_object(new) and "additionalProperties" in new:
        return "the TypeScript says what the values of the map are"
    if isinstance(old, str) and isinstance(new, str) and old.startswith("#/"):
        if old.rpartition("/")[2] == new.rpartition("/")[2]:
            return "the file has its definitions under another key"
        return "the TypeScript names another definition"
    return "the TypeScript declares it otherwise"


def _types(value: Json) -> list[str]:
    """The names in the value of `type`; none for other values."""
    names = value if is_array(value) else [value]
    return [name for name in names if isinstance(name, str) and name in _TYPE_NAMES]


def _is_writable(value: Json) -> bool:
    if is_object(value):
        return all(map(_is_writable, value.values()))
    if is_array(value):
        return all(map(_is_writable, value))
    return value is not None


def errata_text(comparison: Disagreements) -> str:
    """Disagreements as the text of an `errata.toml`, with comments for other differences."""
    lines = [f"# {sentence}" for sentence in comparison.others]
    for erratum in comparison.errata:
        values: Mapping[str, Json] = vars(erratum)
        entry = (f"{key} = {toml_value(value)}" for key, value in values.items())
        lines += ["", "[[erratum]]", *entry] if lines else ["[[erratum]]", *entry]
    return "\n".join(lines)
