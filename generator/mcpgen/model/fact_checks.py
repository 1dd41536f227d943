"""Checks of facts against the members of a schema: defaults, and params that are positional."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mcpgen.errors import FactsError, InputError, format_value, safe_text
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model import schema_facts
from mcpgen.model.normalized import Definition, NormalizedSchema, Range
from mcpgen.schema.facts import Facts
from mcpgen.toml_records import Place, nearest_name

_EVERY = "*"
"""The name in `[defaults]` that stands for all definitions without a default of their own."""


def expect_fitting(normal: NormalizedSchema, facts: Facts, stated: Path | None) -> None:
    """Refuse facts about members that a schema lacks, and defaults that its types do not allow.

    Args:
        normal: The schema, with the defaults of the facts.
        facts: The facts.
        stated: A file with the facts that differ from those of a known revision.

    Raises:
        FactsError: A fact does not fit; the error names the first.
    """
    if stated is not None:
        file = schema_facts.read(stated)
        _check_names(normal, file.table.get("defaults", {}), file.place.at("defaults"))
        _check_positional(normal, file.table.get("methods", {}), file.place.at("methods"))
    for definition in normal.definitions.values():
        for wire, node in definition.properties.items():
            if "default" in node and not _allows(normal, definition, wire, node):
                own = wire in facts.defaults.get(definition.name, {})
                table = definition.name if own else _EVERY
                path = f"[defaults.{definition.name}] {format_value(wire)} = ..."
                place = Place(facts.source, FactsError).at("defaults").at(table).at(wire)
                raise place.error(
                    f"a value of {definition.name}.{safe_text(wire)} in the schema,"
                    f" which {path} in --facts gives",
                    node["default"],
                )


def _check_names(normal: NormalizedSchema, defaults: Json, place: Place) -> None:
    """Refuse stated defaults of definitions or members that a schema lacks."""
    for name, values in defaults.items() if is_object(defaults) else ():
        if name != _EVERY and name not in normal.definitions:
            raise _unknown(place.at(name), "a definition of the schema", name, normal.definitions)
        owners = [*normal.definitions.values()]
        if name != _EVERY:
            owners = [normal.definitions[name]]
        members = {wire for owner in owners for wire in owner.properties}
        for wire in values if is_object(values) else ():
            if wire not in members:
                what = "a member" if name == _EVERY else f"a member of {name}"
                raise _unknown(place.at(name).at(wire), what, wire, members)


def _check_positional(normal: NormalizedSchema, methods: Json, place: Place) -> None:
    """Refuse stated positions of params that a method lacks."""
    for method, row in methods.items() if is_object(methods) else ():
        positional: Json = row.get("positional") if is_object(row) else None
        params = {wire for each in _params(normal, method) for wire in each.properties}
        for wire in positional if params and is_array(positional) else ():
            if wire not in params:
                at = place.at(method).at("positional")
                raise _unknown(at, f"a member of the params of {method}", f"{wire}", params)


def _params(normal: NormalizedSchema, method: str) -> Iterator[Definition]:
    for message in normal.definitions.values():
        node = message.properties.get("params", {})
        params = normal.resolve(node)
        if params is not None and message.properties.get("method", {}).get("const") == method:
            yield params


def _unknown(place: Place, what: str, name: str, known: Iterable[str]) -> InputError:
    near = nearest_name(name, known)
    nearest = f", the nearest being {safe_text(near)}" if near else ""
    return place.error(f"{what}{nearest}", name)


def _allows(normal: NormalizedSchema, owner: Definition, wire: str, node: Node) -> bool:
    """Whether the default of a member is a value of its type, and within its bounds."""
    from jsonschema import Draft202012Validator  # few schemas have defaults

    value = node["default"]
    spans = (check for check in owner.checks if isinstance(check, Range) and check.wire == wire)
    bounds: Node = {key: limit for span in spans for key, limit in _bounds(span)}
    definitions = {each.name: each.node for each in normal.definitions.values()}
    validator: Any = Draft202012Validator({**node, **bounds, "$defs": definitions})
    return bool(validator.is_valid(value))


def _bounds(span: Range) -> Iterator[tuple[str, float]]:
    if span.least is not None:
        yield "exclusiveMinimum" if span.before == "<" else "minimum", span.least
    if span.most is not None:
        yield "exclusiveMaximum" if span.after == "<" else "maximum", span.most
