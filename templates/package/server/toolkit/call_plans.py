"""Plans of tool calls: the fast path for calls that need nothing but the function of the tool.

Arguments are decoded from their JSON into the types of the parameters, and a text that the function
returns is put into a response that was encoded once. A function that takes a `Context` gets one
whose request is read at its first use. A function whose code never suspends needs no task.

A plan sends no errors. Calls that it can't serve are left to the handlers of the server.
"""

from __future__ import annotations

import re
import secrets
import types
import typing
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..._wire import decoder, encode
from ...channel import RequestId
from ...facts import Revision
from ...protocol.lifecycle import Description
from ...protocol.request_meta import MetaCache
from ...protocol.requests import encode_response
from ...runtime.concurrency import never_suspends, outcome
from ..planned_calls import CallEnd, ServedCall
from ..serving import Service
from .content import UnfinishedResult
from .context import Context
from .dispatcher import Dispatcher
from .output_conversion import ToolResultBuilder, tool_result_builder
from .registry import Registry
from .signatures import Signature
from .tools import Tool

_decode_object = decoder(dict[str, Any])
_write = msgspec.json.Encoder().encode  # for texts and integers: no number is infinite or NaN

_MOST_PLANS = 10_000
_PLAIN = frozenset({str, int, float, bool, None, type(None), Any})
_CONTAINERS = frozenset({list, dict, Union, types.UnionType})


class CallPlans:
    """The plans of the tools of a server, each made at the first call in a revision.

    Args:
        tools: The tools.
        describe: The description of the server in a revision.
        dispatcher: Makes the context of a request.
    """

    def __init__(
        self,
        tools: Registry[Tool],
        describe: Callable[[Revision], Description],
        dispatcher: Dispatcher,
    ) -> None:
        self._tools = tools
        self._meta = MetaCache()
        self._describe = describe
        self._dispatcher = dispatcher
        self._plans: dict[tuple[str, str], tuple[Tool, ToolCallPlan | None]] = {}

    def add_to(self, service: Service) -> Service:
        """A copy of a service that serves tool calls by these plans."""
        return replace(service, call_plan=self.find)

    def find(self, revision: Revision, name: str) -> ToolCallPlan | None:
        """The plan of a tool in a revision; `None` if the handlers serve its calls."""
        tools = self._tools
        tool = tools.items.get(name)
        if tool is None or tools.rules is not None or tools.sources:
            return None
        key = revision.name, name
        entry = self._plans.get(key)
        if entry is None or entry[0] is not tool:
            if len(self._plans) >= _MOST_PLANS:  # of tools that are removed again
                self._plans.clear()
            entry = self._plans[key] = tool, self._new_plan(revision, tool)
        return entry[1]

    def _new_plan(self, revision: Revision, tool: Tool) -> ToolCallPlan | None:
        if not _has_plan(tool):
            return None
        method = revision.client_requests["tools/call"]
        allowed = revision.facts.behaviour.structured_content
        results = tool_result_builder(method.result, allowed)
        own_meta = self._meta.of_results(revision, self._describe)

        def encode_result(identifier: RequestId, result: Any) -> bytes:
            return encode_response(identifier, result, method, revision, {}, *own_meta)

        return ToolCallPlan(tool, results, encode_result, self._dispatcher)


class ToolCallPlan:
    """The plan of a tool in one revision.

    Args:
        tool: The tool.
        results: Builds the results.
        encode_result: Encodes the response with a result.
        dispatcher: Makes the context of a request.

    Attributes:
        suspends: Whether the function may suspend.
        looks: Whether user code may access the request, by a context or by context variables.
    """

    def __init__(
        self,
        tool: Tool,
        results: ToolResultBuilder,
        encode_result: Callable[[RequestId, Any], bytes],
        dispatcher: Dispatcher,
    ) -> None:
        self._tool = tool
        self._function: Callable[..., Awaitable[Any]] = tool.function
        self._results = results
        self._encode_result = encode_result
        self._dispatcher = dispatcher
        self._context = tool.signature.context
        self._decode: Callable[[Raw], Any] = _decode_object
        self._bind: Callable[[Any], dict[str, Any]] = partial(
            tool.signature.bind, coerce=tool.coerce
        )
        is_plain = _has_plain_parameters(tool.signature)
        if is_plain:
            self._decode = msgspec.json.Decoder(tool.signature.struct).decode
            self._bind = msgspec.structs.asdict
        self._text = self._text_response() if tool.returns_texts else None
        self.suspends = not never_suspends(tool.function)
        self.looks = self.suspends or self._context is not None or not is_plain

    async def run(self, identifier: RequestId, arguments: Raw, served: ServedCall) -> CallEnd:
        """Call the function; see `CallPlan`."""
        context: Context | None = None
        error: BaseException | None = None
        value: Any = None
        try:
            bound = self._bind(self._decode(arguments))
        except Exception:  # the handler fails in the same way, and reports the error
            return None
        if self._context is not None:
            context = bound[self._context] = self._dispatcher.new_context(served.context())
        try:
            value = await self._function(**bound)
        except GeneratorExit:
            raise
        except BaseException as failure:  # for the handler to tell failures from cancellation
            frames = failure.__traceback__
            error = failure.with_traceback(frames and frames.tb_next)  # not this one: no cycle
        asks = context is not None and vars(context).get("questions") is not None
        if type(value) is str and self._text is not None and not (asks or served.observed):
            try:
                return self._text(_write(value), _write(identifier))
            except ValueError:  # half of a surrogate pair
                pass
        end = partial(outcome, value, error)
        if not (asks or served.observed or isinstance(value, UnfinishedResult)):
            response = self._respond(identifier, end)
            if response is not None:
                return response
        context = context or self._dispatcher.new_context(served.context())
        return self._dispatcher.result_of(context, self._tool.result_of(end, self._results))

    def _respond(self, identifier: RequestId, end: Callable[[], Awaitable[Any]]) -> bytes | None:
        """The encoded response to a call; `None` if building the result suspends or raises."""
        result: Any = None
        try:
            self._tool.result_of(end, self._results).send(None)
        except StopIteration as stop:
            result = stop.value
        except BaseException:
            return None
        try:
            return self._encode_result(identifier, result)
        except Exception:
            return None

    def _text_response(self) -> Callable[[bytes, bytes], bytes] | None:
        """A function that puts a text and an id, both as JSON, into a prepared response."""
        text, identifier = secrets.token_hex(), secrets.token_hex()
        data = self._respond(identifier, partial(outcome, text, None))
        if data is None:
            return None
        own_text, own_id = encode(text), encode(identifier)
        parts = re.split(b"(%b|%b)" % (own_text, own_id), data)
        texts = [at for at, part in enumerate(parts) if part == own_text]
        id_at = parts.index(own_id)

        def respond(text: bytes, identifier: bytes) -> bytes:
            response = parts.copy()
            for at in texts:
                response[at] = text
            response[id_at] = identifier
            return b"".join(response)

        return respond


def _has_plan(tool: Tool) -> bool:
    """Whether a tool has no scopes, runner, parameter headers and schemas of its own."""
    return (
        type(tool) is Tool
        and not tool.scopes
        and tool.runner is None
        and not tool.param_headers
        and not tool.has_own_schemas
    )


def _has_plain_parameters(signature: Signature) -> bool:
    """Whether decoding arguments from JSON and converting decoded data give the same values."""
    return all(_is_plain(field.type) for field in msgspec.structs.fields(signature.struct))


def _is_plain(kind: Any) -> bool:
    """Whether a type is one of JSON itself, or consists of such types."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _is_plain(parts[0])
    if origin in _CONTAINERS:
        return all(map(_is_plain, parts)) and (origin is not dict or parts[0] is str)
    return origin is Literal or (origin is None and kind in (*_PLAIN, list, dict))
