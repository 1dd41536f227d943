"""The one place that breaks a schema, from the reasons that the `jsonschema` library gives.

An invalid value of a union fails every alternative. The useful reason is that of the intended
alternative: the one whose fixed members the value has, then the one with the fewest reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jsonschema.exceptions import ValidationError

from mcpgen.errors import format_value, safe_text
from mcpgen.input_files import json_pointer
from mcpgen.json_types import Json, Node, is_object

_UNIONS = ("anyOf", "oneOf")
_TAGS = ("const", "enum")


@dataclass(frozen=True)
class Violation:
    """A broken rule, with its place in the message.

    Attributes:
        path: Member names and array indices that lead to the place.
        expected: The expected value.
        actual: The actual value.
        keyword: The keyword of JSON Schema that is broken; empty for a rule of the protocol.
        schema: The schema that holds the keyword.
    """

    path: tuple[object, ...]
    expected: str
    actual: str
    keyword: str = ""
    schema: Json = None

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer; empty for the whole message."""
        return json_pointer(self.path)

    def below(self, *path: object) -> Violation:
        """The violation in an enclosing message that has the value at a path."""
        return replace(self, path=(*path, *self.path))


def first(errors: Iterable[ValidationError]) -> Violation | None:
    """The most useful violation in the errors of a value; `None` for no error."""
    every = list(errors)
    return _violation(_best(every)) if every else None


def _best(errors: Sequence[ValidationError]) -> ValidationError:
    """The error that is nearest to the root, where errors of tags come last."""
    return _descend(min(errors, key=lambda error: (_is_tag(error), len(error.absolute_path))))


def _descend(error: ValidationError) -> ValidationError:
    if error.validator not in _UNIONS or not error.context:
        return error
    branches: dict[object, list[ValidationError]] = {}
    for reason in error.context:
        branches.setdefault(reason.schema_path[0], []).append(reason)
    meant = min(branches.values(), key=_distance)
    if all(reason.validator == "type" and not reason.path for reason in meant):
        return error  # no alternative is even of the type
    return _best(meant)


def _distance(reasons: Sequence[ValidationError]) -> tuple[int, int, int]:
    wrong_type = any(reason.validator == "type" and not reason.path for reason in reasons)
    return wrong_type, sum(_is_tag(reason) for reason in reasons), len(reasons)


def _is_tag(error: ValidationError) -> bool:
    return error.validator in _TAGS and len(error.path) == 1


def _violation(error: ValidationError) -> Violation:
    path = tuple(error.absolute_path)
    value: Json = error.instance
    limit: Any = error.validator_value
    keyword = str(error.validator)
    schema: Json = error.schema
    match keyword:
        case "required":
            missing = next(name for name in limit if name not in value)
            node: Json = schema.get("properties", {}).get(missing) if is_object(schema) else None
            return Violation((*path, missing), _requirement(node), "nothing", keyword, schema)
        case "type":
            kinds = [limit] if isinstance(limit, str) else limit
            return Violation(path, " or ".join(kinds), format_value(value), keyword, schema)
        case "const":
            return Violation(path, format_value(limit), format_value(value), keyword, schema)
        case "enum":
            expected = f"one of {format_value(limit, 200)}"
            return Violation(path, expected, format_value(value), keyword, schema)
        case "anyOf" | "oneOf":
            return Violation(path, _requirement(schema), format_value(value), keyword, schema)
        case "additionalProperties":
            known: Node = schema.get("properties", {}) if is_object(schema) else {}
            extra = next((name for name in value if name not in known), "")
            return Violation(
                (*path, extra), "nothing", format_value(value.get(extra)), keyword, schema
            )
        case _:
            expected = f"a value with {safe_text(keyword)} {format_value(limit)}"
            return Violation(path, expected, format_value(value), keyword, schema)


def _requirement(node: Json) -> str:
    """The values that a schema requires, in a few words."""
    if not is_object(node):
        return "a value"
    if "$ref" in node:
        return safe_text(str(node["$ref"]).rpartition("/")[2])
    if "const" in node:
        return format_value(node["const"])
    for keyword in _UNIONS:
        if keyword in node:
            return " or ".join(dict.fromkeys(_requirement(each) for each in node[keyword]))
    if "enum" in node:
        return f"one of {format_value(node['enum'], 200)}"
    kinds: Json = node.get("type", "a value")
    return kinds if isinstance(kinds, str) else " or ".join(map(str, kinds))


def resolve(node: Json, definitions: Node) -> Json:
    """Follow the references of a schema."""
    for _ in range(len(definitions)):
        if not is_object(node) or "$ref" not in node:
            return node
        node = definitions.get(str(node["$ref"]).rpartition("/")[2])
    return node
