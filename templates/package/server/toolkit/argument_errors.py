"""The errors of the arguments of a call, in one text without secrets. Loaded for errors and traces.

msgspec stops at the first error. So each argument is converted by itself, and the first error
within an argument is reported with its path.

A schema marks secret members by `writeOnly` or the format `password`, as `SecretStr` and
`SecretBytes` of pydantic do.

Source: server/tools#error-handling; JSON Schema validation 9.4 (writeOnly); OpenAPI 3.1, format
registry (password).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ..._wire import error_text, is_many, is_object
from ...foreign_text import join_errors, safe_list, safe_repr
from ...values import value_types

_NAME_CHARACTERS = 60

_LOCATED = r"(?s)(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`?)?"
_LACKING = r"Object missing required field `(.*)`"
"""Error texts of msgspec. `re` compiles patterns when they are used first, and caches them."""


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
            kind = parameter.type.kind
            try:
                value_types.convert(arguments[name], kind, strict=strict)
            except (msgspec.ValidationError, RecursionError) as error:
                errors.append(_format_error(error_text(error), kind, arguments[name], name))
        elif parameter.required:
            errors.append(_missing_error(name))
    unknown = [] if allows_unknown else [name for name in arguments if name not in parameters]
    if unknown:
        names = safe_list([repr(name[:_NAME_CHARACTERS]) for name in unknown])
        errors.append(f"unknown argument {names}; expected: {', '.join(parameters) or 'none'}")
    return join_errors(errors) if errors else first


def _missing_error(path: str) -> str:
    return f"argument {path!r}: required, but missing"


def _format_error(text: str, kind: Any, value: Any, name: str) -> str:
    """An error of msgspec about an argument or a part of one."""
    match = re.fullmatch(_LOCATED, text)
    what, inner = (match["what"], match["path"] or "") if match else (text, "")
    if lacking := re.fullmatch(_LACKING, what):
        return _missing_error(f"{name}{inner}.{lacking[1]}")
    text = what[:1].lower() + what[1:].replace("`", "")
    if match and match["key"]:
        text = f"a key: {text}"
    if what.startswith("Invalid enum value") and not inner:
        schema = value_types.schema_of(kind)
        choices = [each for part in schema.get("anyOf", [schema]) for each in part.get("enum", ())]
        text += f"; expected one of {', '.join(map(repr, choices))}" if choices else ""
    if not inner and ", got" not in text and "value" not in text:
        text += f", got {safe_repr(value)}"
    return f"argument {name + inner!r}: {text}"


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
