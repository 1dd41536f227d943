"""Reduction of schemas to the subset of JSON Schema that the strict mode of a model's API supports.

A keyword that the subset lacks is stated in the description of its schema, for the model; the
server still validates it. A schema that the subset can't express, such as an object with arbitrary
member names, is refused: its tool is declared without strict mode.

OpenAI requires every member, so an optional member becomes nullable; `without_absent` removes these
nulls from the arguments of a call.

Sources: developers.openai.com/api/docs/guides/structured-outputs (supported schemas);
platform.claude.com/docs/en/build-with-claude/structured-outputs (JSON Schema limitations);
ai.google.dev/api/caching#Schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .._wire import is_many, is_object
from ..json_schema.inlining import definitions_of, inline_references

_PROSE = frozenset({"title", "description", "$schema", "$comment"})
_SILENT = frozenset({"$schema", "$comment", "$defs", "definitions", "discriminator"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_OF_TYPE: Mapping[str, frozenset[str]] = {
    "string": frozenset({"pattern", "format", "minLength", "maxLength"}),
    "integer": _BOUNDS | {"format"},
    "number": _BOUNDS | {"format"},
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "required", "minProperties", "maxProperties"})
    | {"additionalProperties", "patternProperties"},
    "boolean": frozenset(),
    "null": frozenset(),
}
"""By type: the keywords that apply to it."""
_UNSUPPORTED_PATTERN = re.compile(r"\(\?[=!<]|\\[bB1-9]")
"""Parts of patterns that the APIs do not support."""


class NotStrictError(Exception):
    """The subset cannot express a schema; the text states the place and the reason."""


@dataclass(frozen=True)
class Subset:
    """The subset that an API supports.

    Attributes:
        keywords: Keywords besides those of every API: `type`, `properties`, `items` and so on.
        formats: Formats of strings.
        requires_all: Whether every member has to be required.
        is_closed: Whether objects have `additionalProperties: false`.
        is_recursive: Whether definitions may refer to themselves.
        by_openapi: Whether null is a `nullable` type, and values of `enum` are strings.
        levels: Most levels of objects and arrays.
    """

    keywords: frozenset[str]
    formats: frozenset[str]
    requires_all: bool = False
    is_closed: bool = True
    is_recursive: bool = False
    by_openapi: bool = False
    levels: int = 100


_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
OPENAI = Subset(
    _BOUNDS | {"title", "const", "pattern", "minItems", "maxItems"},
    _FORMATS,
    requires_all=True,
    is_recursive=True,
    levels=10,
)
ANTHROPIC = Subset(frozenset({"title", "const", "pattern", "default"}), _FORMATS | {"uri"})
GEMINI = Subset(
    frozenset({"title", "default", "minimum", "maximum", "minItems", "maxItems", "pattern"})
    | {"minLength", "maxLength", "minProperties", "maxProperties"},
    frozenset({"date-time"}),
    is_closed=False,
    by_openapi=True,
)
SUBSETS: Mapping[str, Subset] = {
    "openai": OPENAI,
    "openai-chat": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
}
"""The subsets, by API."""


@dataclass
class Reduction:
    """Reduces a schema to a subset.

    Attributes:
        subset: The subset.
        notes: The changes that were made, each with its place.
    """

    subset: Subset
    notes: list[str] = field(default_factory=list[str])
    _references: set[str] = field(default_factory=lambda: {"#"})

    def reduce_arguments(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Reduce the schema of a function's arguments.

        Raises:
            NotStrictError: The subset cannot express a part of the schema.
        """
        if schema.get("type") != "object":
            raise NotStrictError("/: not an object")
        schema = inline_references(schema)
        self._references.update(definitions_of(schema))
        try:
            result = self._schema({"properties": {}, **schema}, "", 1)
            if "$ref" in result:  # the root may refer to itself
                raise NotStrictError("/: not an object")
            for place in ("$defs", "definitions"):
                definitions = schema.get(place)
                if is_object(definitions):
                    result[place] = {
                        name: self._schema(each, f"/{place}/{name}", 1)
                        for name, each in definitions.items()
                    }
        except RecursionError:
            raise NotStrictError("the schema is too deep") from None
        return result

    def _schema(self, node: Any, place: str, level: int) -> dict[str, Any]:
        if not is_object(node):
            raise NotStrictError(f"{place or '/'}: any value")
        if level > self.subset.levels:
            raise NotStrictError(f"{place or '/'}: more than {self.subset.levels} levels")
        node = _without_wrappers(node, place)
        if isinstance(node.get("$ref"), str):
            return self._reference(node, place)
        if "oneOf" in node:
            node = {"anyOf" if key == "oneOf" else key: each for key, each in node.items()}
            self.notes.append(f"{place}: oneOf is read as anyOf")
        branches = _branches(node, place)
        if branches is not None:
            prose = {key: each for key, each in node.items() if key in _PROSE or key == "default"}
            return self._choice(branches, prose, place, level)
        kind = _type_of(node, place)
        if kind == "object":
            return self._object(node, place, level)
        result = self._rules(node, kind, place)
        if kind == "array":
            if not is_object(node.get("items")) or "prefixItems" in node:
                raise NotStrictError(f"{place or '/'}: an array without one schema of its items")
            result["items"] = self._schema(node["items"], f"{place}/items", level + 1)
        return result

    def _reference(self, node: Mapping[str, Any], place: str) -> dict[str, Any]:
        if node["$ref"] not in self._references:
            raise NotStrictError(f"{place or '/'}: a reference out of the definitions")
        if not self.subset.is_recursive:
            raise NotStrictError(f"{place or '/'}: a schema that contains itself")
        if beside := sorted(node.keys() - {"$ref"}):
            self.notes.append(f"{place}: {', '.join(beside)} beside a reference is left out")
        return {"$ref": node["$ref"]}

    def _choice(
        self, branches: Sequence[Any], prose: Mapping[str, Any], place: str, level: int
    ) -> dict[str, Any]:
        some = [each for each in branches if not (is_object(each) and each.get("type") == "null")]
        has_null = len(some) < len(branches)
        if not some:
            raise NotStrictError(f"{place or '/'}: no alternatives")
        schemas = [
            self._schema(each, f"{place}/anyOf/{index}", level) for index, each in enumerate(some)
        ]
        if self.subset.by_openapi:
            for each in schemas:
                each.update({"nullable": True} if has_null else {})
                if "description" in prose:  # some versions read none beside anyOf
                    each.setdefault("description", prose["description"])
        elif has_null:
            schemas.append({"type": "null"})
        outer = self._rules(prose, "", place)
        return {**schemas[0], **outer} if len(schemas) == 1 else {"anyOf": schemas, **outer}

    def _object(self, node: Mapping[str, Any], place: str, level: int) -> dict[str, Any]:
        properties, extra = node.get("properties"), node.get("additionalProperties")
        if extra not in (None, False) or not is_object(properties) or "patternProperties" in node:
            raise NotStrictError(f"{place or '/'}: an object with members of any name")
        if not properties and place and (self.subset.by_openapi or extra is None):
            raise NotStrictError(f"{place or '/'}: an object without members")
        required = [name for name in properties if _requires(node, name)]
        members: dict[str, Any] = {}
        for name, each in properties.items():
            where = f"{place}/properties/{name}"
            members[name] = self._schema(each, where, level + 1)
            if self.subset.requires_all and name not in required:
                members[name] = _make_nullable(members[name])
                self.notes.append(f"{where}: optional: null stands for an absent member")
        rest = {key: each for key, each in node.items() if key != "additionalProperties"}
        result = {**self._rules(rest, "object", place), "properties": members}
        if self.subset.requires_all or required:
            result["required"] = list(members) if self.subset.requires_all else required
        return {**result, "additionalProperties": False} if self.subset.is_closed else result

    def _rules(self, node: Mapping[str, Any], kind: str, place: str) -> dict[str, Any]:
        """The keywords of a schema that the subset has, and a description of the others."""
        result: dict[str, Any] = {"type": kind} if kind else {}
        dropped: dict[str, Any] = {}
        for key, value in node.items():
            if key in ("type", "properties", "required", "items", "anyOf", "description"):
                continue
            if self._has_keyword(key, value, kind):
                result[key] = value
            elif key == "const" and self.subset.by_openapi and isinstance(value, str):
                result["enum"] = [value]
            elif key not in _SILENT and (key, value) != ("default", None):
                dropped[key] = value
        if dropped:
            self.notes.append(f"{place}: {', '.join(dropped)} is in the description alone")
        return {**result, **_describe_rules(node, dropped)}

    def _has_keyword(self, key: str, value: Any, kind: str) -> bool:
        """Whether the subset has a keyword with this value."""
        match key:
            case "enum":
                allowed = (str,) if self.subset.by_openapi else tuple(_JSON_TYPES)
                return is_many(value) and all(isinstance(each, allowed) for each in value)
            case "format":
                return kind == "string" and value in [*self.subset.formats]
            case "pattern" if self.subset.is_closed:
                return not _UNSUPPORTED_PATTERN.search(str(value))
            case "minItems" if key not in self.subset.keywords and self.subset.is_closed:
                return value in (0, 1)
            case _:
                return key in self.subset.keywords


def _without_wrappers(node: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Merge an `allOf` of one schema into the schema around it.

    Raises:
        NotStrictError: `allOf` combines rules.
    """
    several = node.get("allOf")
    if several is None:
        return node
    rest = {key: each for key, each in node.items() if key != "allOf"}
    if not is_many(several) or len(several) != 1 or not is_object(several[0]):
        raise NotStrictError(f"{place or '/'}: schemas combined by allOf")
    if several[0].keys() & rest.keys() - _PROSE or ("$ref" in several[0] and rest.keys() - _PROSE):
        raise NotStrictError(f"{place or '/'}: schemas combined by allOf")
    return _without_wrappers({**several[0], **rest}, place)


def _branches(node: Mapping[str, Any], place: str) -> list[Any] | None:
    """The alternatives of a schema by `anyOf`, several types or null in `enum`, if any.

    Raises:
        NotStrictError: The schema has keywords besides `anyOf`.
    """
    kind, values = node.get("type"), node.get("enum")
    rest = {key: each for key, each in node.items() if key not in _PROSE | {"default"}}
    if is_many(node.get("anyOf")):
        if rest.keys() - {"anyOf"} - _SILENT:
            raise NotStrictError(f"{place or '/'}: rules beside anyOf")
        return list(node["anyOf"])
    if is_many(values) and None in values and len(values) > 1:
        others = [each for each in values if each is not None]
        kinds = [each for each in kind if each != "null"] if is_many(kind) else kind
        only = kinds[0] if is_many(kinds) and len(kinds) == 1 else kinds
        typed = {} if only is None else {"type": only}
        return [{**rest, **typed, "enum": others}, {"type": "null"}]
    if not is_many(kind):
        return None
    if values is not None or not all(isinstance(each, str) for each in kind):
        raise NotStrictError(f"{place or '/'}: values of several types")
    return [
        {"type": each, **{key: rest[key] for key in rest if key in _OF_TYPE.get(each, ())}}
        for each in kind
    ]


def _type_of(node: Mapping[str, Any], place: str) -> str:
    """The type of a schema, inferred from its values if not stated.

    Raises:
        NotStrictError: The schema has no single type.
    """
    kind = node.get("type")
    if isinstance(kind, str) and kind in _OF_TYPE:
        return kind
    values: Any = [node["const"]] if "const" in node else node.get("enum")
    if is_many(values):
        kinds = {_json_type(each) for each in values}
        if len(kinds) == 1:
            return kinds.pop()
    if "properties" in node:
        return "object"
    raise NotStrictError(f"{place or '/'}: any value")


_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "object")


def _describe_rules(node: Mapping[str, Any], dropped: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a schema, with the keywords that were dropped."""
    rules = ", ".join(
        f"{key}: {msgspec.json.encode(each).decode()}"
        for key, each in dropped.items()
        if not key.startswith("x-")
    )
    texts = [node.get("description"), f"({rules})" if rules else None]
    text = " ".join(each for each in texts if isinstance(each, str))
    return {"description": text} if text else {}


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Extend a schema to accept null."""
    branches: list[Any] = schema.get("anyOf", [schema])
    if {"type": "null"} in branches:
        return schema
    return {**(schema if "anyOf" in schema else {}), "anyOf": [*branches, {"type": "null"}]}


def without_absent(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Remove each null that stands for an absent member.

    Args:
        arguments: The arguments of a call, by a schema in which every member is required.
        schema: The schema of the tool, in which optional members are not required.
    """
    removed: dict[str, Any] = _without_absent(arguments, [schema], schema)
    return removed


def _without_absent(value: Any, nodes: Sequence[Any], root: Mapping[str, Any]) -> Any:
    schemas = [each for node in nodes for each in alternatives(node, root, 0)]
    if is_many(value):
        items = [each["items"] for each in schemas if "items" in each]
        return [_without_absent(each, items, root) for each in value]
    if not is_object(value):
        return value
    result: dict[str, Any] = {}
    for name, member in value.items():
        having = [each for each in schemas if is_object(each.get("properties"))]
        having = [each for each in having if name in each["properties"]]
        own = [each["properties"][name] for each in having]
        is_optional = having and not any(_requires(each, name) for each in having)
        if member is None and is_optional and not any(_accepts_null(each, root) for each in own):
            continue
        result[name] = _without_absent(member, own, root)
    return result


def _requires(node: Mapping[str, Any], name: str) -> bool:
    required = node.get("required")
    return is_many(required) and name in required


_MOST_STEPS = 20


def alternatives(node: Any, root: Mapping[str, Any], steps: int) -> Iterator[Mapping[str, Any]]:
    """A schema, the schemas that it refers to, and its alternatives."""
    if not is_object(node) or steps > _MOST_STEPS:
        return
    yield node
    reference = node.get("$ref")
    if isinstance(reference, str):
        referred: Any = root
        for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
            part = part.replace("~1", "/").replace("~0", "~")
            referred = referred.get(part) if is_object(referred) else None
        yield from alternatives(referred, root, steps + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for each in node[key] if is_many(node.get(key)) else ():
            yield from alternatives(each, root, steps + 1)


def _accepts_null(node: Any, root: Mapping[str, Any]) -> bool:
    for each in alternatives(node, root, 0):
        kind, values = each.get("type"), each.get("enum")
        if kind == "null" or (is_many(kind) and "null" in kind):
            return True
        if (is_many(values) and None in values) or ("const" in each and each["const"] is None):
            return True
    return node in ({}, True)
