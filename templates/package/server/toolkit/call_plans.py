"""Plans of tool calls: what serving a call takes as long as nobody observes it.

A function whose code has no place to suspend at runs to its end before any other task does. Its
call needs no context, no connection and no cancel scope: the arguments are decoded from their JSON,
and a text that the function returns is put into a response that was encoded once.

A plan refuses nothing. What it can't do is done by the handlers of the server.
"""

from __future__ import annotations

import re
import secrets
import types
import typing
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..._wire import UNREADABLE, encode
from ...channel import RequestId
from ...facts import Revision
from ...protocol.lifecycle import Description
from ...protocol.request_meta import MetaCache
from ...protocol.requests import encode_response
from ...runtime.concurrency import never_suspends, outcome
from ...runtime.request_context import RequestContext
from ..serving import Outcome, Service
from .context import Context
from .dispatcher import with_input
from .features import InputRequired
from .output_conversion import ToolResultBuilder, tool_result_builder
from .registry import Registry
from .signatures import Signature
from .tools import Tool

_asdict = msgspec.structs.asdict
_write = msgspec.json.Encoder().encode  # of texts and integers, of which each is finite

_MOST_PLANS = 10_000
_FIRST_NAME = re.compile(rb'"name":\s*"([^"\\]*)"')
_PLAIN = frozenset({str, int, float, bool, None, type(None), Any})
_CONTAINERS = frozenset({list, dict, Union, types.UnionType})


class CallPlans:
    """The plans of the tools of a server, each made at the first call in a revision.

    Args:
        tools: The tools.
        describe: The description of the server in a revision.
        context_of: Makes the context of a request.
    """

    def __init__(
        self,
        tools: Registry[Tool],
        describe: Callable[[Revision], Description],
        context_of: Callable[[RequestContext], Context],
    ) -> None:
        self._tools = tools
        self._meta = MetaCache()
        self._describe = describe
        self._context_of = context_of
        self._plans: dict[tuple[str, str], tuple[Tool, ToolCallPlan | None]] = {}
        self._unplanned: dict[bytes, Tool] = {}  # by the JSON of the name

    def added_to(self, service: Service) -> Service:
        """A service whose calls these plans serve."""
        return replace(service, call_plan=self.find, may_be_planned=self.may_be_planned)

    def may_be_planned(self, body: bytes) -> bool:
        """Whether a body may be a call that has a plan: its first name is not of a tool without."""
        named = _FIRST_NAME.search(body)
        if named is None:
            return False
        tool = self._unplanned.get(named[1])
        return tool is None or self._tools.items.get(tool.name) is not tool

    def find(self, revision: Revision, name: str) -> ToolCallPlan | None:
        """The plan of a tool in a revision; `None` if the handlers serve its calls."""
        tools = self._tools
        tool = tools.items.get(name)
        if tool is None or tools.rules is not None or tools.sources:
            return None
        key = revision.name, name
        kept = self._plans.get(key)
        if kept is None or kept[0] is not tool:
            if len(self._plans) >= _MOST_PLANS:  # of tools that are removed again
                self._plans.clear()
                self._unplanned.clear()
            kept = self._plans[key] = tool, self._new(revision, tool)
            if kept[1] is None:
                self._unplanned[name.encode()] = tool
        return kept[1]

    def _new(self, revision: Revision, tool: Tool) -> ToolCallPlan | None:
        function = _plannable_function(tool)
        if function is None:
            return None
        method = revision.client_requests["tools/call"]
        allowed = revision.facts.behaviour.structured_content
        results = tool_result_builder(method.result, allowed)
        own_meta = self._meta.of_results(revision, self._describe)

        def encode_result(identifier: RequestId, result: Any) -> bytes:
            return encode_response(identifier, result, method, revision, {}, *own_meta)

        def resume(request: RequestContext, end: Outcome) -> Coroutine[Any, Any, Any]:
            return with_input(self._context_of(request), tool.result_of(end, results))

        return ToolCallPlan(tool, function, results, encode_result, resume)


class ToolCallPlan:
    """The plan of a tool in one revision.

    Args:
        tool: The tool.
        function: Its function, which never suspends.
        results: Builds the results.
        encode_result: Encodes the response with a result.
        resume: Continues a call whose response takes more than the plan.

    Attributes:
        resume: As passed.
    """

    def __init__(
        self,
        tool: Tool,
        function: Callable[..., Coroutine[Any, Any, Any]],
        results: ToolResultBuilder,
        encode_result: Callable[[RequestId, Any], bytes],
        resume: Callable[[RequestContext, Outcome], Coroutine[Any, Any, Any]],
    ) -> None:
        self._tool = tool
        self._function = function
        self._results = results
        self._encode_result = encode_result
        self._decode = msgspec.json.Decoder(tool.signature.struct).decode
        self._text = self._text_response() if tool.returns_texts else None
        self.resume = resume

    def run(self, identifier: RequestId, arguments: Raw) -> bytes | Outcome | None:
        """The response to a call; or the outcome; or `None`, if the function was not called."""
        error: BaseException | None = None
        value: Any = None
        try:
            bound = _asdict(self._decode(arguments))
        except UNREADABLE:
            return None
        try:
            self._function(**bound).send(None)
        except StopIteration as stop:
            value = stop.value
            if type(value) is str and self._text is not None:
                try:
                    return self._text % {b"text": _write(value), b"id": _write(identifier)}
                except ValueError:  # half of a surrogate pair
                    pass
        except BaseException as failure:  # for the handler to tell failures from cancellation
            frames = failure.__traceback__
            error = failure.with_traceback(frames and frames.tb_next)  # not this one: no cycle
        end = partial(outcome, value, error)
        return end if isinstance(value, InputRequired) else self._respond(identifier, end) or end

    def _respond(self, identifier: RequestId, end: Outcome) -> bytes | None:
        """The response to a call; `None` if it takes more than the tool itself."""
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

    def _text_response(self) -> bytes | None:
        """The response around a text and an id, as a format of these two."""
        text, identifier = secrets.token_hex(), secrets.token_hex()
        data = self._respond(identifier, partial(outcome, text, None))
        if data is None:
            return None
        data = data.replace(b"%", b"%%").replace(encode(text), b"%(text)b")
        return data.replace(encode(identifier), b"%(id)b")


def _plannable_function(tool: Tool) -> Callable[..., Coroutine[Any, Any, Any]] | None:
    """The function of a tool; `None` if calls of the tool take more than that function."""
    function, signature = tool.function, tool.signature
    if (
        type(tool) is Tool
        and not tool.scopes
        and tool.runner is None
        and not tool.param_headers
        and not tool.has_own_schemas
        and signature.context is None
        and _is_decoded_alike(signature)
        and never_suspends(function)
    ):
        return function
    return None


def _is_decoded_alike(signature: Signature) -> bool:
    """Whether arguments are the same if they are decoded from JSON, and not converted from data."""
    return all(_is_plain(field.type) for field in msgspec.structs.fields(signature.struct))


def _is_plain(kind: Any) -> bool:
    """Whether a type is one of JSON itself, or consists of such types."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _is_plain(parts[0])
    if origin in _CONTAINERS:
        return all(map(_is_plain, parts)) and (origin is not dict or parts[0] is str)
    return origin is Literal or (origin is None and kind in (*_PLAIN, list, dict))
