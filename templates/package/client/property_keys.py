"""Names of properties that a model's API refuses, and names in their place.

One such name in one tool makes an API refuse the whole request. The schema of a tool is declared
with other names, in nested objects too, and the arguments of a call get the original names back.
Names are a function of the schema alone, so calls of an earlier conversation find their way back.

Sources: platform.claude.com (tool use: the error `Property keys should match pattern`);
cloud.google.com/vertex-ai (FunctionDeclaration: parameters). OpenAI documents no pattern.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .._wire import is_many, is_object
from ..json_schema.inlining import DATA, SCHEMA_MAPS
from .strict_schemas import alternatives

_NAMED = frozenset({"properties", "dependentSchemas", "dependentRequired", "dependencies"})
"""Keywords whose members have names of properties."""
_LENGTH = 64
_DIGEST_LENGTH = 8


def safe_name(text: str, pattern: re.Pattern[str], taken: Collection[str]) -> str:
    """A name that a pattern of at most 64 characters accepts; it is not taken.

    Args:
        text: The name to replace; characters that are never accepted become `_`.
        pattern: Accepts `_` and letters of ASCII everywhere.
        taken: Names that others have.
    """
    name = "".join(each if pattern.fullmatch(f"_{each}") else "_" for each in text)
    name = name if name and pattern.match(name) else f"_{name}"
    if len(name) <= _LENGTH and name not in taken:
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    length = _DIGEST_LENGTH
    while (cut := f"{name[: _LENGTH - length - 1]}_{digest[:length]}") in taken:
        length += 1
    return cut


class PropertyKeys:
    """The names of the properties in the schema of a tool, as an API accepts them.

    Args:
        schema: The schema.
        pattern: The names that the API accepts; `None` for any name.

    Attributes:
        schema: The schema with accepted names.
        notes: The names that were replaced, each with its place.
    """

    def __init__(self, schema: Mapping[str, Any], pattern: re.Pattern[str] | None) -> None:
        self.schema = schema
        self.notes: list[str] = []
        self._names: dict[str, str] = {}  # accepted names by refused ones
        self._originals: dict[str, str] = {}
        if pattern is None:
            return
        try:
            places = dict(_property_names(schema, ""))
            taken = {name for name in places if pattern.fullmatch(name)}
            for name, place in places.items():
                if name not in taken:
                    self._names[name] = safe_name(name, pattern, taken)
                    taken.add(self._names[name])
                    self.notes.append(f"{place}: declared as {self._names[name]}")
            if self._names:
                self.schema = self._declared(schema)
        except RecursionError:
            self._names, self.notes = {}, ["/: the schema is too deep to check its names"]
        self._originals = {accepted: name for name, accepted in self._names.items()}

    def restore(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call with the original names."""
        if not self._originals:
            return arguments
        restored: Mapping[str, Any] = self._restored(arguments, [self.schema])
        return restored

    def _declared(self, node: Any) -> Any:
        if is_many(node):
            return [self._declared(each) for each in node]
        if not is_object(node):
            return node
        return {key: self._value(key, value) for key, value in node.items()}

    def _value(self, key: str, value: Any) -> Any:
        if key == "$ref" and isinstance(value, str):
            parts = value.split("/")
            return "/".join(map(self._pointer_part, parts, ["", *parts]))
        if key in _NAMED and is_object(value):
            return {
                self._names.get(name, name): self._member(key, name, value[name]) for name in value
            }
        if key == "required" and is_many(value):
            return self._listed(value)
        if key in ("default", "examples"):
            return self._data(value)
        if key in DATA:
            return value
        if key in SCHEMA_MAPS and is_object(value):
            return {name: self._declared(each) for name, each in value.items()}
        return self._declared(value)

    def _member(self, key: str, name: str, value: Any) -> Any:
        """The value of a property; one with another name has the original as title."""
        if is_many(value):
            return self._listed(value)
        value = self._declared(value)
        if key == "properties" and name in self._names and is_object(value):
            return {"title": name, **value}
        return value

    def _listed(self, names: Sequence[Any]) -> list[Any]:
        return [self._names.get(each, each) if isinstance(each, str) else each for each in names]

    def _pointer_part(self, part: str, before: str) -> str:
        name = part.replace("~1", "/").replace("~0", "~")
        return self._names.get(name, part) if before == "properties" else part

    def _data(self, value: Any) -> Any:
        if is_object(value):
            return {self._names.get(name, name): self._data(each) for name, each in value.items()}
        return [self._data(each) for each in value] if is_many(value) else value

    def _restored(self, value: Any, nodes: Sequence[Any]) -> Any:
        schemas = [each for node in nodes for each in _applicable(node, self.schema)]
        if is_many(value):
            items = [each.get(key) for each in schemas for key in ("items", "prefixItems")]
            inner = [node for each in items for node in (each if is_many(each) else [each])]
            return [self._restored(each, inner) for each in value]
        if not is_object(value):
            return value
        result: dict[str, Any] = {}
        rest = [each for schema in schemas for each in _schemas_of_others(schema)]
        for name, member in value.items():
            own = [each["properties"][name] for each in schemas if _has_property(each, name)]
            original = self._originals.get(name, name) if own else name
            result[original] = self._restored(member, own or rest)
        return result


def _property_names(node: Any, place: str) -> Iterator[tuple[str, str]]:
    """The names of all properties in a schema, each with its place."""
    if is_many(node):
        for index, each in enumerate(node):
            yield from _property_names(each, f"{place}/{index}")
    if not is_object(node):
        return
    for key, value in node.items():
        if key in SCHEMA_MAPS and is_object(value):
            for name, each in value.items():
                inner = f"{place}/{key}/{name}"
                if key == "properties":
                    yield name, inner
                yield from _property_names(each, inner)
        elif key not in DATA:
            yield from _property_names(value, f"{place}/{key}")


def _applicable(node: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas that may apply to a value."""
    for each in alternatives(node, root, 0):
        yield each
        dependent = each.get("dependentSchemas")
        inner = [each.get(key) for key in ("if", "then", "else")]
        for branch in [*inner, *(dependent.values() if is_object(dependent) else ())]:
            yield from alternatives(branch, root, 1)


def _has_property(schema: Mapping[str, Any], name: str) -> bool:
    properties = schema.get("properties")
    return is_object(properties) and name in properties


def _schemas_of_others(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas of members that `properties` lacks."""
    yield schema.get("additionalProperties")
    patterns = schema.get("patternProperties")
    yield from patterns.values() if is_object(patterns) else ()
