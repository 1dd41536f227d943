"""Results of one revision in the types of another, with a list of the lost members.

A member that the other revision does not have is left out, and a content block of an unknown kind
becomes a line of text. Both are losses. Members that only frame a result don't count: type, cache
hints, and reserved keys of `_meta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._wire import UNSET, convert, is_many, is_object, structs_in, to_builtins
from ...facts import Method, Revision
from ...protocol.request_meta import is_reserved_key
from .content import content_types, field_type, struct_with
from .output_conversion import known_blocks, tool_result_builder
from .registry import STALE

_FRAMING = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})


def convert_result(
    wire: Mapping[str, Any], method: Method, origin: Revision, revision: Revision
) -> tuple[Any, list[str]]:
    """A result in the type of a revision, and the paths of lost members, each once.

    Args:
        wire: The result as wire object.
        method: The row of its request in the revision.
        origin: The revision that the result has now.
        revision: The revision to convert it to.

    Raises:
        ValidationError: The result lacks a member that the revision requires.
    """
    shaped = {**STALE, **_without_reserved_keys(wire, origin)}
    kinds = structs_in(method.result)
    if "content" in wire and not any(field_type(kind, "content") for kind in kinds):
        return _one_value(shaped, method, revision), ["content"]
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
        allowed = revision.facts.behaviour.structured_content
        shaped["tools"] = [_usable_tool(tool, allowed) for tool in wire["tools"]]
    typed = convert(shaped, method.result)
    return typed, lost_members(wire, to_builtins(typed))


def lost_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Paths of the members of a wire object that another form of it lacks, each once."""
    return [place for place in dict.fromkeys(_lost_paths(old, new, "")) if place not in _FRAMING]


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


def _lost_paths(old: Any, new: Any, place: str) -> Iterator[str]:
    """Paths of the members of `old` that `new` does not have."""
    if is_object(old) and is_object(new):
        for name, value in old.items():
            inner = f"{place}.{name}" if place else name
            if name in new:
                yield from _lost_paths(value, new[name], inner)
            elif value is not None:
                yield inner
        if old.get("type") != new.get("type"):
            yield f"{place} of type {old.get('type')!r}"
    elif is_many(old) and is_many(new):
        for before, after in zip(old, new, strict=False):
            yield from _lost_paths(before, after, f"{place}[]")
