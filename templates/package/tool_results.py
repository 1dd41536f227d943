"""Tools from a client's view: the value of a result, and the hints at the behaviour.

The value of a result is the value that the tool's function returned.

The structured value, if there is one, is the value. Servers wrap a value that is not an object as
`{"result": value}`, since some revisions require an object. A wrapped value is unwrapped if the
content repeats the inner value (as one text, or as one text for each item of a list), or if `_meta`
marks it as wrapped, as FastMCP does. Without a structured value, the only text is the value.

The annotations of a tool are as trustworthy as its server. For a tool without annotations, the
defaults of the specification apply.

Source: server/tools#structured-content, server/tools (annotations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from ._wire import UNREADABLE, UNSET, fields, is_many, is_object
from .json_schema import WRAPPER


def plain_value(result: Any) -> Any:
    """The value of a typed result.

    Returns:
        Decoded JSON: the structured value, unwrapped; else the text, if the content is one text;
        `None` for any other content, and if the tool reported an error.
    """
    if getattr(result, "is_error", None):
        return None
    value = structured_value(result)
    if value is UNSET:
        return only_text(result)
    return value[WRAPPER] if may_be_wrapped(value) and _is_wrapped(result, value) else value


def structured_value(result: Any) -> Any:
    """The structured value of a typed result; UNSET if there is none.

    Null is a value in some revisions, and counts as absent in the others.
    """
    value = getattr(result, "structured_content", UNSET)
    if value is None and not _may_be_null(result.__class__):
        value = UNSET
    return getattr(result, "tool_result", UNSET) if value is UNSET else value


def may_be_wrapped(value: Any) -> bool:
    """Whether a structured value has the form of a wrapped value."""
    return is_object(value) and len(value) == 1 and WRAPPER in value


def only_text(result: Any) -> str | None:
    """The text of a result whose content is one text; `None` for other content."""
    content_texts = texts(result)
    return content_texts[0] if len(content_texts) == 1 and len(result.content) == 1 else None


def texts(result: Any) -> list[str]:
    """The texts in the content of a result."""
    content = getattr(result, "content", None)
    candidates = [getattr(block, "text", None) for block in content] if is_many(content) else []
    return [text for text in candidates if isinstance(text, str)]


@cache
def _may_be_null(kind: Any) -> bool:
    return any(f.name == "structured_content" and f.default is not None for f in fields(kind))


def _is_wrapped(result: Any, value: Mapping[str, Any]) -> bool:
    """Whether the content or `_meta` shows that an object wraps another value."""
    meta: Any = getattr(result, "meta", None)
    fastmcp: Any = meta.get("fastmcp") if is_object(meta) else None
    if is_object(fastmcp) and fastmcp.get("wrap_result") is True:
        return True
    inner, content_texts = value[WRAPPER], texts(result)
    if len(content_texts) == 1 and states_value(content_texts[0], inner):
        return True
    items = inner if is_many(inner) else [] if inner is None else [inner]
    if not len(result.content) == len(content_texts) == len(items):
        return False
    return all(map(states_value, content_texts, items))


def states_value(text: str, value: Any) -> bool:
    """Whether a text represents a value: the text is the value, or the value's JSON."""
    if isinstance(value, str):
        return text in (value, msgspec.json.encode(value).decode())
    try:
        decoded: Any = msgspec.json.decode(text)
        return bool(decoded == value)
    except UNREADABLE:
        return False


@dataclass(frozen=True)
class Hints:
    """A tool's behaviour; the defaults apply to a tool without annotations.

    Attributes:
        read_only: The tool changes nothing.
        destructive: The tool may delete or overwrite. Ignored for a read-only tool.
        idempotent: A repeated call with the same arguments has no further effect. Ignored for a
            read-only tool.
        open_world: The tool interacts with external entities, as a web search does.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


def hints_of(tool: Any) -> Hints:
    """The hints of a listed tool, of any revision."""
    annotations = getattr(tool, "annotations", None)
    hints = {
        name: getattr(annotations, f"{name}_hint", None) for name in Hints.__dataclass_fields__
    }
    return Hints(**{name: value for name, value in hints.items() if isinstance(value, bool)})
