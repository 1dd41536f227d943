"""Asking the client's model: messages in, a message out.

Source: client/sampling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from ...._wire import convert, error_text, is_many, is_object, to_builtins
from ....errors import (
    INVALID_PARAMS,
    LocalProtocolError,
    MissingCapabilityError,
    RemoteProtocolError,
)
from ....facts import Method, Revision
from ....protocol import sampling_messages
from ....runtime.request_context import RequestContext
from .. import revision_types
from ..content import Audio, Content, Image, Message, Text, Wire
from .multi_round_trip import Question, askable, check_possible

METHOD = "sampling/createMessage"
_WORD = "sampling"

IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"]


class ModelPreferences(Wire, frozen=True):
    """Which model would suit. Advice: the client chooses.

    Attributes:
        hints: Parts of names of models, most wanted first.
        cost_priority: From 0 to 1, how much low cost matters.
        speed_priority: How much speed does.
        intelligence_priority: How much ability does.
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
    """What a model wants a tool to do.

    Attributes:
        id: Tells it from other uses; its result names it.
        name: The tool.
        input: The arguments.
    """

    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)


class ToolUseResult(Wire, frozen=True, tag_field="type", tag="tool_result"):
    """What a tool gave the model that wanted it.

    Attributes:
        tool_use_id: Id of the `ToolUse`.
        content: Blocks; a string is text.
        structured_content: The same as a value, if there is one.
        is_error: Whether the tool failed.
    """

    tool_use_id: str
    content: Sequence[Content | str]
    structured_content: Any = msgspec.UNSET
    is_error: bool = False
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)


Block: TypeAlias = Text | Image | Audio | ToolUse | ToolUseResult
"""What a message to or from a model is made of."""


class SamplingMessage(msgspec.Struct, frozen=True):
    """A message to or from a model.

    Attributes:
        role: Who speaks.
        content: One block or several; a string is text.
    """

    role: Literal["user", "assistant"]
    content: Block | str | Sequence[Block | str]


class Sampled(msgspec.Struct, frozen=True):
    """What a model said. As a message in a later request it is the model's own.

    Attributes:
        role: Who speaks.
        content: Its blocks, one or several.
        model: Name of the model.
        stop_reason: Why it stopped, such as `endTurn` or `toolUse`, if that is known.
    """

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The blocks of text, one after the other."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """What the model wants tools to do."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))


Said: TypeAlias = str | Block | Message | SamplingMessage | Sampled | Mapping[str, Any]
"""A message: text and blocks are the user's; results of tools in a row are one message."""


def sampling_question(
    messages: str | Sequence[Said], exchange: RequestContext, options: Mapping[str, Any]
) -> Question:
    """The question to a model.

    Args:
        messages: The conversation, oldest first; a string is all of it.
        exchange: The request.
        options: Other params as values by wire name; `None` for what is not said.

    Raises:
        MissingCapabilityError: The client did not declare that it can be asked this.
        LocalProtocolError: The revision can't carry it, or the messages do not follow each other
            by the rules.
    """
    told = [messages] if isinstance(messages, str) else messages
    params: dict[str, Any] = {"messages": _messages(told)}
    params |= {name: to_builtins(value) for name, value in options.items() if value is not None}
    if "modelPreferences" in params:
        params["modelPreferences"] = _preferences(params["modelPreferences"])
    if "toolChoice" in params:
        params["toolChoice"] = {"mode": params["toolChoice"]}
    row = askable(exchange, METHOD, _WORD, params)
    check_possible(row, params, exchange.revision)
    _check_context(params, row, exchange)
    wrong = sampling_messages.complaint(params["messages"])
    if wrong:
        raise LocalProtocolError(f"{METHOD}: {wrong}")
    return Question(METHOD, params, _WORD)


def sampled_of(wire: Any) -> Sampled:
    """What a model said, as a value.

    Raises:
        RemoteProtocolError: It is no message of a model.
    """
    try:
        content = sampling_messages.blocks_of(wire)
        return Sampled(
            role=wire["role"],
            content=tuple(convert(block, Block) for block in content),
            model=wire["model"],
            stop_reason=wire.get("stopReason"),
        )
    except (KeyError, msgspec.ValidationError) as error:
        text = f"{METHOD}: result: {error_text(error)}"
        raise RemoteProtocolError(text, code=INVALID_PARAMS) from error


def _messages(told: Iterable[Said]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    open_results: list[dict[str, Any]] = []
    for said in told:
        if isinstance(said, ToolUseResult):
            if not open_results:
                made.append({"role": "user", "content": open_results})
            open_results.append(_block(said))
            continue
        open_results = []
        made.append(_message(said))
    return [_slim(each) for each in made]


def _message(said: Said) -> dict[str, Any]:
    if isinstance(said, Message | SamplingMessage | Sampled):
        content: Any = said.content
        blocks: Sequence[Any] = content if is_many(content) else [content]
        return {"role": said.role, "content": [_block(block) for block in blocks]}
    if is_object(said) or hasattr(said, "role"):
        return dict(to_builtins(said))
    return {"role": "user", "content": [_block(said)]}


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, ToolUseResult):
        made: dict[str, Any] = to_builtins(block)
        return {**made, "content": [revision_types.wire_block(each) for each in block.content]}
    return dict(block) if is_object(block) else revision_types.wire_block(block)


def _slim(message: dict[str, Any]) -> dict[str, Any]:
    """A message with one block by itself, as all revisions have it; several are a list."""
    content: Any = message.get("content")
    return {**message, "content": content[0]} if is_many(content) and len(content) == 1 else message


def _preferences(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    hints: Any = wire.get("hints", ())
    named = [{"name": hint} if isinstance(hint, str) else hint for hint in hints]
    return {**wire, "hints": named} if named else wire


def _check_context(params: Mapping[str, Any], row: Method, exchange: RequestContext) -> None:
    """Refuse to ask for context that a client would have to declare."""
    wanted = params.get("includeContext", "none")
    if wanted == "none" or not _has_context(exchange.revision):
        return
    declared: Any = exchange.peer_capabilities.get(_WORD)
    if not is_object(declared) or "context" not in declared:
        raise MissingCapabilityError((_WORD, "context"), f"{row.name} with context")


@cache
def _context_types(capabilities: Any) -> bool:
    sampling = revision_types.field_type(capabilities, _WORD)
    return any(
        revision_types.field_type(each, "context") for each in revision_types.structs_in(sampling)
    )


def _has_context(revision: Revision) -> bool:
    return _context_types(revision.client_capabilities)
