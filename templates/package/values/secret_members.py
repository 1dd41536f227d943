"""Members that a JSON Schema declares secret: `writeOnly`, or with the format `password`.

pydantic's `SecretStr` and `SecretBytes` have such schemas.

Source: JSON Schema validation 9.4 (writeOnly); OpenAPI 3.1, format registry (password).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .._wire import is_many, is_object
from ..foreign_text import safe_repr

MASK = "***"

_BRANCHES = ("anyOf", "allOf", "oneOf", "items", "prefixItems", "additionalProperties")


def secret_members(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names of the members, at any depth, whose values are secret.

    Args:
        schema: A schema; its references are into its own `$defs`.
    """
    definitions: Any = schema.get("$defs", {})
    return frozenset(
        name for name, node in _properties(schema) if _is_secret(node, definitions, frozenset())
    )


def masked_members(value: Any, names: Collection[str]) -> Any:
    """A copy of decoded JSON in which members with these names have no readable value."""
    if is_object(value):
        return {
            name: MASK if name in names else masked_members(member, names)
            for name, member in value.items()
        }
    return [masked_members(each, names) for each in value] if is_many(value) else value


def without_values(text: str, arguments: Any, names: Collection[str]) -> str:
    """An error text that shows no values of members with these names."""
    for value in sorted(map(safe_repr, _values(arguments, names)), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def _properties(node: Any) -> Iterator[tuple[str, Any]]:
    if is_object(node):
        properties: Any = node.get("properties")
        if is_object(properties):
            yield from properties.items()
        for each in node.values():
            yield from _properties(each)
    elif is_many(node):
        for each in node:
            yield from _properties(each)


def _is_secret(node: Any, definitions: Any, seen: frozenset[str]) -> bool:
    if is_many(node):
        return any(_is_secret(each, definitions, seen) for each in node)
    if not is_object(node):
        return False
    if node.get("writeOnly") is True or node.get("format") == "password":
        return True
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen and _is_secret(definitions.get(name), definitions, seen | {name}):
        return True
    return any(_is_secret(node.get(branch), definitions, seen) for branch in _BRANCHES)


def _values(value: Any, names: Collection[str]) -> Iterator[Any]:
    """The texts and numbers in members with these names."""
    if is_object(value):
        for name, member in value.items():
            yield from _leaves(member) if name in names else _values(member, names)
    elif is_many(value):
        for each in value:
            yield from _values(each, names)


def _leaves(value: Any) -> Iterator[Any]:
    if is_object(value):
        for each in value.values():
            yield from _leaves(each)
    elif is_many(value):
        for each in value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield value
