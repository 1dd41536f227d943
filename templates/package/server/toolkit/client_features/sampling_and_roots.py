"""Requests that a client answers without its user: sampling by the client's model, and roots.

Sampling sends messages to the model, which returns one. Roots are the directories and files that
the client wants the server to work on. They are not enforced: a server that has to stay within them
checks paths with `Root.contains`.

Source: client/sampling, client/roots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from ...._wire import convert, error_text, is_many, is_object, structs_in, to_builtins
from ....errors import (
    INVALID_PARAMS,
    LocalProtocolError,
    MissingCapabilityError,
    RemoteProtocolError,
)
from ....facts import Method
from ....foreign_text import safe_repr
from ....protocol.client_features import blocks_of, messages_complaint
from ....runtime.request_context import RequestContext
from ..content import Audio, Content, Image, Message, Text, Wire, field_type, wire_block
from .multi_round_trip import Question, askable_method, check_params

METHOD = "sampling/createMessage"
ROOTS_QUESTION = Question("roots/list", None, "roots", repeats=False)

_CAPABILITY = "sampling"

IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"]


class ModelPreferences(Wire, frozen=True):
    """Advice for the choice of a model by the client.

    Attributes:
        hints: Parts of model names, in order of preference.
        cost_priority: Importance of low cost, from 0 to 1.
        speed_priority: Importance of speed, from 0 to 1.
        intelligence_priority: Importance of ability, from 0 to 1.
    """

    hints: Sequence[str] = ()
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None

    def __post_init__(self) -> None:
        for name in ("cost_priority", "speed_priority", "intelligence_priority"):
            value: float | None = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}: expected a number from 0 to 1, got {value!r}")


class ToolUse(Wire, frozen=True, tag_field="type", tag="tool_use"):
    """A tool call that a model requests.

    Attributes:
        id: Identifies the call; its result refers to it.
        name: Name of the tool.
        input: The arguments.
    """

    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)


class ToolUseResult(Wire, frozen=True, tag_field="type", tag="tool_result"):
    """The result of a tool call that a model requested.

    Attributes:
        tool_use_id: Id of the `ToolUse`.
        content: Content blocks; a string is text.
        structured_content: The structured result, if there is one.
        is_error: Whether the tool failed.
    """

    tool_use_id: str
    content: Sequence[Content | str]
    structured_content: Any = msgspec.UNSET
    is_error: bool = False
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)


Block: TypeAlias = Text | Image | Audio | ToolUse | ToolUseResult
"""A content block of a message to or from a model."""


class SamplingMessage(msgspec.Struct, frozen=True):
    """A message to or from a model.

    Attributes:
        role: Author of the message.
        content: One content block or several; a string is text.
    """

    role: Literal["user", "assistant"]
    content: Block | str | Sequence[Block | str]


class Sampled(msgspec.Struct, frozen=True):
    """A message of a model; in the messages of a later request it has the role `assistant`.

    Attributes:
        role: Author of the message.
        content: Its content blocks, one or several.
        model: Name of the model.
        stop_reason: Why the generation ended, such as `endTurn` or `toolUse`, if known.
    """

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls that the model requests."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))


MessageLike: TypeAlias = str | Block | Message | SamplingMessage | Sampled | Mapping[str, Any]
"""A message: text and blocks are user messages; consecutive tool results form one message."""


def sampling_question(
    messages: str | Sequence[MessageLike], request: RequestContext, options: Mapping[str, Any]
) -> Question:
    """The question for a model, for the revision of a request.

    Args:
        messages: The conversation, oldest first; a string is one user message.
        request: The request.
        options: Other params by wire name; `None` for absent ones.

    Raises:
        MissingCapabilityError: The client did not declare a required capability.
        LocalProtocolError: The revision lacks a param, or the sequence of messages is invalid.
    """
    conversation = [messages] if isinstance(messages, str) else messages
    params: dict[str, Any] = {"messages": _messages(conversation)}
    params |= {name: to_builtins(value) for name, value in options.items() if value is not None}
    if "modelPreferences" in params:
        params["modelPreferences"] = _preferences(params["modelPreferences"])
    if "toolChoice" in params:
        params["toolChoice"] = {"mode": params["toolChoice"]}
    row = askable_method(request, METHOD, _CAPABILITY, params)
    check_params(row, params, request.revision)
    _check_context(params, row, request)
    error = messages_complaint(params["messages"])
    if error:
        raise LocalProtocolError(f"{METHOD}: {error}")
    return Question(METHOD, params, _CAPABILITY)


def sampled_of(wire: Any) -> Sampled:
    """The message in the result of a sampling request.

    Raises:
        RemoteProtocolError: The result is not a message of a model.
    """
    try:
        content = blocks_of(wire)
        return Sampled(
            role=wire["role"],
            content=tuple(convert(block, Block) for block in content),
            model=wire["model"],
            stop_reason=wire.get("stopReason"),
        )
    except (KeyError, msgspec.ValidationError) as error:
        text = f"{METHOD}: result: {error_text(error)}"
        raise RemoteProtocolError(text, code=INVALID_PARAMS) from error


def _messages(messages: Iterable[MessageLike]) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    tool_results: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ToolUseResult):
            if not tool_results:
                wire.append({"role": "user", "content": tool_results})
            tool_results.append(_block(message))
            continue
        tool_results = []
        wire.append(_message(message))
    return [_unwrap_content(each) for each in wire]


def _message(message: MessageLike) -> dict[str, Any]:
    if isinstance(message, Message | SamplingMessage | Sampled):
        content: Any = message.content
        blocks: Sequence[Any] = content if is_many(content) else [content]
        return {"role": message.role, "content": [_block(block) for block in blocks]}
    if is_object(message) or hasattr(message, "role"):
        return dict(to_builtins(message))
    return {"role": "user", "content": [_block(message)]}


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, ToolUseResult):
        wire: dict[str, Any] = to_builtins(block)
        return {**wire, "content": [wire_block(each) for each in block.content]}
    return dict(block) if is_object(block) else wire_block(block)


def _unwrap_content(message: dict[str, Any]) -> dict[str, Any]:
    """A message in which a list of one block is replaced by the block, as all revisions allow."""
    content: Any = message.get("content")
    return {**message, "content": content[0]} if is_many(content) and len(content) == 1 else message


def _preferences(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    hints: Any = wire.get("hints", ())
    model_hints = [{"name": hint} if isinstance(hint, str) else hint for hint in hints]
    return {**wire, "hints": model_hints} if model_hints else wire


def _check_context(params: Mapping[str, Any], row: Method, request: RequestContext) -> None:
    """Check the client's `context` capability if the revision has it and the params need it."""
    include_context = params.get("includeContext", "none")
    if include_context == "none" or not _has_context(request.revision.client_capabilities):
        return
    declared: Any = request.peer_capabilities.get(_CAPABILITY)
    if not is_object(declared) or "context" not in declared:
        raise MissingCapabilityError((_CAPABILITY, "context"), f"{row.name} with context")


@cache
def _has_context(capabilities: Any) -> bool:
    """Whether the type of client capabilities has `sampling.context`."""
    sampling = field_type(capabilities, _CAPABILITY)
    return any(field_type(each, "context") for each in structs_in(sampling))


class Root(msgspec.Struct, frozen=True):
    """A directory or file that a client names.

    Attributes:
        uri: URI; a `file://` URI in all revisions so far.
        name: Name for display, if there is one.
        meta: `_meta`, if present.
    """

    uri: str
    name: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)

    @property
    def path(self) -> Path:
        """The path on this machine, if client and server share a file system.

        Raises:
            ValueError: Not a `file://` URI.
        """
        parts = urlsplit(self.uri)
        if parts.scheme != "file":
            raise ValueError(f"expected a file:// URI, got {safe_repr(self.uri)}")
        return Path(url2pathname(parts.path))

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is the root or below it; links are not resolved."""
        inner = Path(os.path.normpath(path))
        return inner.is_relative_to(os.path.normpath(self.path))


def roots_of(wire: Any) -> list[Root]:
    """The roots in a `ListRootsResult`."""
    return [convert(root, Root) for root in wire["roots"]]
