"""Plans of tool calls: what serving a call takes as long as nobody observes it.

A function whose code has no place to suspend at runs to its end before any other task does. Its
call needs no context, no connection and no cancel scope: the arguments are decoded from their JSON,
and a text that the function returns is put into a response that was encoded once.

A plan refuses nothing. What it can't do is done by the handlers of the server.
"""

from __future__ import annotations

import secrets
import types
import typing
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Annotated, Any, Literal, Union

import msgspec

from ..._wire import encode
from ...channel import RequestId
from ...facts import Method, Revision
from ...protocol.requests import encode_response
from ...runtime.concurrency import never_suspends, outcome
from ...runtime.request_context import RequestContext
from ..serving import Outcome
from .features import InputRequired
from .output_conversion import ToolResultBuilder
from .signatures import Signature
from .tools import Tool

_asdict = msgspec.structs.asdict
_write = msgspec.json.Encoder().encode  # of texts and integers, of which each is finite

_PLAIN = frozenset({str, int, float, bool, None, type(None), Any})
_CONTAINERS = frozenset({list, dict, Union, types.UnionType})


class ToolCallPlan:
    """The plan of a tool in one revision; see `serving.CallPlan`.

    Args:
        tool: The tool.
        function: Its function, which never suspends.
        method: The row of its method.
        revision: The revision.
        results: Builds the results.
        own_meta: `_meta` of every result, and the same as JSON.
        resume: Continues a call in its context, if the response takes more than the plan.

    Attributes:
        decode: Decodes arguments.
        resume: As passed.
    """

    def __init__(
        self,
        tool: Tool,
        function: Callable[..., Coroutine[Any, Any, Any]],
        method: Method,
        revision: Revision,
        results: ToolResultBuilder,
        own_meta: tuple[Mapping[str, Any], Any],
        resume: Callable[[RequestContext, Outcome], Coroutine[Any, Any, Any]],
    ) -> None:
        self._tool = tool
        self._method = method
        self._revision = revision
        self._results = results
        self._own_meta = own_meta
        self._call = function
        self.decode = msgspec.json.Decoder(tool.signature.struct).decode
        self._text = self._text_response() if tool.returns_texts else None
        self.resume = resume

    def run(self, identifier: RequestId, arguments: msgspec.Struct) -> bytes | Outcome:
        """Call the function.

        Args:
            identifier: Id of the request.
            arguments: What `decode` returned.

        Returns:
            The response; or the outcome, if the response takes more than the plan.
        """
        error: BaseException | None = None
        value: Any = None
        try:
            self._call(**_asdict(arguments)).send(None)
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
            return encode_response(
                identifier, result, self._method, self._revision, {}, *self._own_meta
            )
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


def plannable_function(tool: Tool) -> Callable[..., Coroutine[Any, Any, Any]] | None:
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
