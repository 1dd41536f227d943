"""All errors of the arguments of a call, in one text without secrets. Loaded for errors and traces.

msgspec stops at the first error. So each argument is converted by itself, and an argument that does
not fit is taken apart by its type: items, members, choices of an optional value. The error belongs
to a part that does not fit although its own parts do. The work for each argument and the length of
the text are limited.

A schema marks secret members by `writeOnly` or the format `password`, as `SecretStr` and
`SecretBytes` of pydantic do.

Source: server/tools#error-handling; JSON Schema validation 9.4 (writeOnly); OpenAPI 3.1, format
registry (password).
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import islice
from typing import Annotated, Any, NotRequired, Required, Union

import msgspec
import msgspec.inspect

from ..._wire import error_text, is_many, is_object
from ...foreign_text import join_errors, safe_list, safe_repr, safe_text
from ...values import value_types
from ...values.type_schemas import TypeParts, has_fields

PARTS = 500
"""Most parts of one argument that are converted by themselves."""

LEVELS = 8
"""Most levels of parts within an argument; below, only the first error is reported."""

_NAME_CHARACTERS = 60

_LOCATED = r"(?s)(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`?)?"
_LACKING = r"Object missing required field `(.*)`"
"""Error texts of msgspec. `re` compiles patterns when they are used first, and caches them."""

_MANY = (list, set, frozenset, Sequence, AbstractSet)
_QUALIFIERS = (Required, NotRequired)


def argument_errors(
    parameters: Mapping[str, Any],
    arguments: Mapping[str, Any],
    *,
    allows_unknown: bool,
    strict: bool,
    first: str,
) -> str:
    """The errors of arguments that do not fit.

    Args:
        parameters: Each `Parameter` of the signature, by name.
        arguments: The arguments.
        allows_unknown: Whether there may be arguments of other names.
        strict: Whether JSON types have to match.
        first: The error of all arguments together, for the case that each fits by itself.
    """
    errors: list[str] = []
    for name, parameter in parameters.items():
        if name in arguments:
            search = _Search(strict)
            search.add(parameter.type.kind, arguments[name], name, 0)
            errors += search.errors
        elif parameter.required:
            errors.append(_missing_error(name))
    unknown = [] if allows_unknown else [name for name in arguments if name not in parameters]
    if unknown:
        names = safe_list([repr(name[:_NAME_CHARACTERS]) for name in unknown])
        errors.append(f"unknown argument {names}; expected: {', '.join(parameters) or 'none'}")
    return join_errors(errors) if errors else first


class _Search:
    """The errors of one argument and its parts; `strict`: JSON types have to match."""

    def __init__(self, strict: bool) -> None:
        self.errors: list[str] = []
        self._strict = strict
        self._left = PARTS

    def add(self, kind: Any, value: Any, path: str, level: int) -> None:
        """Add the errors of a value, which is a part at the path."""
        if self._left <= 0:
            return
        self._left -= 1
        try:
            value_types.convert(value, kind, strict=self._strict)
            return
        except (msgspec.ValidationError, RecursionError) as error:
            text = error_text(error)
        except TypeError:  # msgspec reads such a type only within its class
            return
        before = len(self.errors)
        if level < LEVELS:
            self._add_parts(kind, value, path, level + 1)
        if len(self.errors) == before:
            self.errors.append(_format_error(text, kind, value, path))

    def _add_parts(self, kind: Any, value: Any, path: str, level: int) -> None:
        kind = _without_wrappers(kind)
        if not (has_fields(kind) and is_object(value)):
            for name, part_kind, part in islice(_items(kind, value), self._left):
                self.add(part_kind, part, f"{path}{name}", level)
            return
        fields, is_closed = _fields_of(typing.get_origin(kind) or kind)
        for name, (member, is_required) in fields.items():
            if name in value:
                self.add(member, value[name], _member(path, name), level)
            elif is_required:
                self.errors.append(_missing_error(_member(path, name)))
        if is_closed:
            self.errors += [
                f"argument {_member(path, name)!r}: unknown"
                for name in islice(value, PARTS)
                if name not in fields
            ]


def _items(kind: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of a list or mapping: the end of the path, the type and the value of each."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if not arguments:
        return
    if isinstance(origin, type) and issubclass(origin, Mapping) and is_object(value):
        for name, part in value.items():
            yield _member("", name), arguments[1], part
    elif origin is tuple and is_many(value):
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        if repeated or len(arguments) == len(value):
            for index, part in enumerate(value):
                yield f"[{index}]", arguments[0 if repeated else index], part
    elif origin in _MANY and is_many(value):
        for index, part in enumerate(value):
            yield f"[{index}]", arguments[0], part


def _without_wrappers(kind: Any) -> Any:
    """A type without notes and qualifiers; that of an optional value without null."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated or origin in _QUALIFIERS:
        return _without_wrappers(arguments[0])
    if origin in (Union, types.UnionType):
        members = [each for each in arguments if each is not type(None)]
        if len(members) == 1:
            return _without_wrappers(members[0])
    return kind


@cache
def _fields_of(kind: Any) -> tuple[Mapping[str, tuple[Any, bool]], bool]:
    """The type of each member of a class by wire name, and whether it is required.

    The second value says whether the class refuses other members.
    """
    parts = TypeParts()
    parts.add(kind)
    info: Any = msgspec.inspect.type_info(kind)
    required = {field.encode_name: field.required for field in info.fields}
    hints = {name: hint for name, hint in parts.classes.get(kind, {}).items() if name in required}
    types_by_name = {**hints, **{name: Any for name in required if name not in hints}}
    return (
        {name: (_without_qualifiers(hint), required[name]) for name, hint in types_by_name.items()},
        getattr(info, "forbid_unknown_fields", False),
    )


def _without_qualifiers(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in _QUALIFIERS else hint


def _member(path: str, name: object) -> str:
    return f"{path}.{safe_text(str(name), _NAME_CHARACTERS)}"


def _missing_error(path: str) -> str:
    return f"argument {path!r}: required, but missing"


def _format_error(text: str, kind: Any, value: Any, path: str) -> str:
    """An error of msgspec about a part of an argument."""
    match = re.fullmatch(_LOCATED, text)
    what, inner = (match["what"], match["path"] or "") if match else (text, "")
    where = f"{path}{inner}"
    if lacking := re.fullmatch(_LACKING, what):
        return _missing_error(f"{where}.{lacking[1]}")
    text = what[:1].lower() + what[1:].replace("`", "")
    if match and match["key"]:
        text = f"a key: {text}"
    if what.startswith("Invalid enum value") and not inner:
        choices: list[Any] = value_types.schema_of(_without_wrappers(kind)).get("enum", [])
        text += f"; expected one of {', '.join(map(repr, choices))}" if choices else ""
    if not inner and ", got" not in text and "value" not in text:
        text += f", got {safe_repr(value)}"
    return f"argument {where!r}: {text}"


MASK = "***"

_BRANCHES = ("anyOf", "allOf", "oneOf", "items", "prefixItems", "additionalProperties")


def secret_members(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names of the members, at any depth, whose values are secret.

    Args:
        schema: A schema whose references point into its own `$defs`.
    """
    definitions: Any = schema.get("$defs", {})
    return frozenset(
        name for name, node in _properties(schema) if _is_secret(node, definitions, frozenset())
    )


def without_values(text: str, arguments: Any, names: Collection[str]) -> str:
    """An error text with the values of members with these names masked."""
    values = map(safe_repr, _values(arguments, names, is_secret=False))
    for value in sorted(values, key=len, reverse=True):
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


def _values(value: Any, names: Collection[str], *, is_secret: bool) -> Iterator[Any]:
    """The strings and numbers in members with these names."""
    if is_object(value):
        for name, member in value.items():
            yield from _values(member, names, is_secret=is_secret or name in names)
    elif is_many(value):
        for each in value:
            yield from _values(each, names, is_secret=is_secret)
    elif is_secret and value is not None and not isinstance(value, bool):
        yield value
