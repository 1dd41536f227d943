"""Human-readable texts of list items, argument types and contents.

Servers may send anything: members of an unexpected type are omitted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .._wire import is_many, is_object
from ..foreign_text import safe_repr, safe_text
from ..runtime.terminal_output import PlainOutput, TableRow, json_text

_LINE = 100  # characters of a description that a list shows
_VALUES = 8  # values of an enum that a list shows
_LEVELS = 4  # of references and alternatives in the schema of a parameter

_NONE: Mapping[str, Any] = {}


def item_row(item: Mapping[str, Any]) -> TableRow:
    """The table row of a tool, a resource, a resource template or a prompt."""
    name, text = text_member(item, "name"), first_line(text_member(item, "description"))
    address = text_member(item, "uri") or text_member(item, "uriTemplate")
    if "inputSchema" in item:
        arguments = ", ".join(_parameters(item["inputSchema"]))
    elif address:
        cells = (address, name, text_member(item, "mimeType"))
        return TableRow((*cells, text), "  ".join(filter(None, cells)), text)
    else:
        members = [members_of(each) for each in item.get("arguments") or ()]
        arguments = ", ".join(
            f"{text_member(each, 'name')}{'' if each.get('required') else '?'}" for each in members
        )
    return TableRow((name, arguments, text), f"{name}({arguments})", text)


def _parameters(schema: Any) -> Iterator[str]:
    """The parameters of a tool, from its input schema, which may be malformed."""
    fields = members_of(schema)
    required = fields.get("required")
    for name, kind in members_of(fields.get("properties")).items():
        rules = members_of(kind)
        is_required = isinstance(required, list) and name in required
        default = rules.get("default")
        optional = "" if is_required or default is not None else "?"
        types = " | ".join(argument_types(rules, fields))
        text = f"{name}{optional}: {types}" if types else f"{name}{optional}"
        yield text if default is None else f"{text} = {_value_text(default)}"


def argument_types(
    rules: Mapping[str, Any], schema: Mapping[str, Any], levels: int = _LEVELS
) -> list[str]:
    """The JSON types or the values that a schema and its alternatives allow, except null.

    Args:
        rules: The schema of a parameter, or an alternative in it.
        schema: The input schema, which has the definitions.
        levels: Most levels of references and alternatives that are followed.
    """
    if "const" in rules:
        return [_value_text(rules["const"])]
    values = rules.get("enum")
    if is_many(values):
        texts = [_value_text(value) for value in values[:_VALUES] if value is not None]
        return [*texts, "..."] if len(values) > _VALUES else texts
    kind = rules.get("type")
    if isinstance(kind, str) or is_many(kind):
        kinds = [kind] if isinstance(kind, str) else kind
        return [safe_text(each) for each in kinds if isinstance(each, str) and each != "null"]
    if not levels:
        return []
    reference = rules.get("$ref")
    if isinstance(reference, str):
        group, _, name = reference.removeprefix("#/").partition("/")
        return argument_types(
            members_of(members_of(schema.get(group)).get(name)), schema, levels - 1
        )
    several = rules.get("anyOf", rules.get("oneOf"))
    if not is_many(several):
        return []
    inner = [argument_types(members_of(each), schema, levels - 1) for each in several[:_VALUES]]
    return [*dict.fromkeys(text for texts in inner for text in texts)]


def _value_text(value: Any) -> str:
    """A value of a schema as JSON."""
    is_constant = value is None or isinstance(value, bool)
    return json.dumps(value) if is_constant else safe_repr(value, 40)


def members_of(value: Any) -> Mapping[str, Any]:
    """The members of a JSON object; empty for another value."""
    return value if is_object(value) else _NONE


def text_member(item: Mapping[str, Any], member: str) -> str:
    """The value of a string member; empty if the member is absent or not a string."""
    value = item.get(member)
    return value if isinstance(value, str) else ""


def first_line(text: str) -> str:
    """The first line of a text, cut to `_LINE` characters."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."


def print_block(out: PlainOutput, block: Mapping[str, Any]) -> None:
    """Print a content block."""
    if text_member(block, "type") == "resource":
        print_contents(out, members_of(block.get("resource")))
    else:
        out.text(
            block_text(block), markdown=None if text_member(block, "type") == "text" else False
        )


def print_contents(out: PlainOutput, contents: Mapping[str, Any]) -> None:
    """Print contents of a resource."""
    kind = text_member(contents, "mimeType").partition(";")[0].strip().lower()
    out.text(_contents(contents), markdown=kind == "text/markdown" if kind else None)


def block_text(block: Mapping[str, Any]) -> str:
    """The text of a content block; of other content, a description."""
    kind = text_member(block, "type")
    if kind == "text":
        return text_member(block, "text")
    if kind == "resource":
        return _contents(members_of(block.get("resource")))
    if kind == "resource_link":
        return f"[{text_member(block, 'name')}: {text_member(block, 'uri')}]"
    if "data" in block:
        size = _bytes_of(text_member(block, "data"))
        return f"[{kind}, {text_member(block, 'mimeType')}, {size} bytes]"
    return json_text(block)


def _contents(contents: Mapping[str, Any]) -> str:
    if "text" in contents:
        return text_member(contents, "text")
    kind = text_member(contents, "mimeType") or "application/octet-stream"
    size = _bytes_of(text_member(contents, "blob"))
    return f"[{text_member(contents, 'uri')}, {kind}, {size} bytes]"


def _bytes_of(base64: str) -> int:
    """The number of bytes that a base64 text encodes."""
    return len(base64.rstrip("=")) * 3 // 4
