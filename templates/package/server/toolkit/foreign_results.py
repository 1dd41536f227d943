"""Results of one revision in the types of another, with the places of all losses.

A member that the other revision does not have is left out: it is lost. A content block of an
unknown kind becomes a line of text: it is degraded. Members that only frame a result don't count:
type, cache hints, and reserved keys of `_meta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from ..._wire import UNSET, convert, is_many, is_object, structs_in, to_builtins
from ...facts import Method, Revision
from ...protocol.request_meta import is_reserved_key
from .content import content_types, field_type, struct_with
from .output_conversion import known_blocks, tool_result_builder
from .registry import STALE

Loss: TypeAlias = Literal["lost", "degraded"]

Losses: TypeAlias = Mapping[str, Loss]
"""By place: `tools[].icons` for a member, `content[].type=audio` for a kind of block."""

_STRUCTURED = "structuredContent"
_FRAMING = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})


def convert_result(
    wire: Mapping[str, Any], method: Method, origin: Revision, revision: Revision
) -> tuple[Any, Losses]:
    """A result in the type of a revision, and its losses.

    Args:
        wire: The result as wire object.
        method: The row of its request in the revision.
        origin: The revision that the result has now.
        revision: The revision to convert it to.

    Raises:
        ValidationError: The result lacks a member that the revision requires.
    """
    allowed = revision.facts.behaviour.structured_content
    shaped = {**STALE, **_without_reserved_keys(wire, origin)}
    if allowed != "any" and not is_object(shaped.get(_STRUCTURED)):
        shaped.pop(_STRUCTURED, None)
    kinds = structs_in(method.result)
    if "content" in wire and not any(field_type(kind, "content") for kind in kinds):
        return _one_value(shaped, method, revision), {"content": "lost"}
    if "content" in wire:
        block_types = content_types(field_type(struct_with(method.result, "content"), "content"))
        shaped["content"] = known_blocks(wire["content"], block_types)
    elif "messages" in wire:
        (message,) = structs_in(field_type(struct_with(method.result, "messages"), "messages"))
        block_types = content_types(field_type(message, "content"))
        shaped["messages"] = [
            {**each, "content": known_blocks([each["content"]], block_types)[0]}
            for each in wire["messages"]
        ]
    elif "tools" in wire:
        shaped["tools"] = [_usable_tool(tool, allowed) for tool in wire["tools"]]
    typed = convert(shaped, method.result)
    return typed, lost_members(wire, to_builtins(typed))


def lost_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> Losses:
    """The members of a wire object that another form of it lacks."""
    losses = dict(_losses(old, new, ""))
    return {place: loss for place, loss in losses.items() if place not in _FRAMING}


def _one_value(wire: Mapping[str, Any], method: Method, revision: Revision) -> Any:
    """The result of a tool in a revision whose results are one value."""
    builder = tool_result_builder(method.result, revision.facts.behaviour.structured_content)
    return builder.full(wire["content"], wire.get("structuredContent", UNSET), None)


def _usable_tool(tool: Mapping[str, Any], allowed: str) -> Mapping[str, Any]:
    schema = tool.get("outputSchema")
    if schema is None or allowed == "any" or schema.get("type") == "object":
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}


def _without_reserved_keys(wire: Mapping[str, Any], origin: Revision) -> Mapping[str, Any]:
    """A result without the keys of its `_meta` that belong to the protocol."""
    meta = wire.get("_meta")
    if not is_object(meta):
        return wire
    kept = {key: value for key, value in meta.items() if not is_reserved_key(key, origin.facts)}
    if len(kept) == len(meta):
        return wire
    if kept:
        return {**wire, "_meta": kept}
    return {name: value for name, value in wire.items() if name != "_meta"}


def _losses(old: Any, new: Any, place: str) -> Iterator[tuple[str, Loss]]:
    """The places of the members of `old` that `new` does not have."""
    if is_object(old) and is_object(new):
        if old.get("type") != new.get("type"):
            yield f"{place}.type={old.get('type')}", "degraded"
            return
        for name, value in old.items():
            inner = f"{place}.{name}" if place else name
            if name in new:
                yield from _losses(value, new[name], inner)
            elif value is not None:
                yield inner, "lost"
    elif is_many(old) and is_many(new):
        for before, after in zip(old, new, strict=False):
            yield from _losses(before, after, f"{place}[]")
