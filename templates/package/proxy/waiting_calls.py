"""Calls that wait for input that the client sends in a retry.

The server behind the proxy sends a request, and waits. The client gets a result with this request
for input and a key of the call; the call continues when the client's retry has the answer. A call
belongs to this process and to the principal that started it.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.abc
import msgspec

from .._wire import Raw, encode
from ..errors import InternalError, InvalidParamsError, LocalProtocolError, MissingCapabilityError
from ..protocol.lifecycle import missing_capability
from ..runtime.request_context import PRINCIPAL, RequestContext

MOST_CALLS = 100
"""Most calls that wait at a time; beyond this limit, the oldest is cancelled."""

WAITING_SECONDS = 1800.0
"""Time limit for a call, including its waits."""

_RESPONSES = "inputResponses"
_NOT_REPEATED = ("_meta", _RESPONSES, "requestState")


class PassedCall:
    """A request of a client that is being forwarded.

    Args:
        context: The request.

    Attributes:
        context: The request, or its latest retry.
        logging: Held while a log message is sent, since log messages must precede the response.
    """

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self.logging = anyio.Lock(fast_acquire=True)

    async def progress(self, value: float, total: float | None, message: str | None) -> None:
        """Report progress to the client."""
        await self.context.progress(value, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Raw:
        """Ask the client, and return its answer as raw JSON.

        Args:
            method: The method of the server's request.
            params: Its params in the client's revision, which are sent unchecked.

        Raises:
            LocalProtocolError: The client's revision has no requests of servers.
            MissingCapabilityError: The client did not declare a required capability.
            RemoteError: The client refused.
        """
        context = self.context
        if not context.revision.server_requests:
            raise LocalProtocolError(
                f"{context.method.name} can't ask for {method} in {context.revision.name}"
            )
        identifier = context.request_id
        raw_params = Raw(encode(params))
        return await context.peer.request_raw(method, raw_params, related_request_id=identifier)


class _Question(msgspec.Struct, eq=False):
    wire: dict[str, Any]
    answered: anyio.Event
    answer: Raw = Raw(b"{}")


class _WaitingCall(PassedCall):
    """A call that asks its client by a result with input requests."""

    def __init__(self, context: RequestContext) -> None:
        super().__init__(context)
        self.binding = _binding(context)
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()
        self.is_over = False
        self.result: Any = None
        self.error: Exception | None = InternalError("the call was cancelled or took too long")
        self._questions: dict[str, _Question] = {}
        self._count = 0

    async def ask(self, method: str, params: Mapping[str, Any]) -> Raw:
        context = self.context
        row = context.revision.input_requests.get(method)
        capabilities = context.peer_capabilities
        wire = Raw(encode(params))
        path = (method,) if row is None else missing_capability(row, wire, capabilities)
        if path is not None:
            raise MissingCapabilityError(path, f"{method} in {context.revision.name}")
        self._count += 1
        question = _Question({"method": method, "params": dict(params)}, anyio.Event())
        self._questions[f"question-{self._count}"] = question
        self.changed.set()
        await question.answered.wait()
        return question.answer

    def resume(self, context: RequestContext) -> None:
        """Continue with the answers of a retry."""
        self.context = context
        self.changed = anyio.Event()
        for key, answer in _answers(context).items():
            question = self._questions.pop(key, None)
            if question is not None:
                question.answer = answer
                question.answered.set()
        if self._questions or self.is_over:
            self.changed.set()  # questions are left, or the result is there already

    async def run(self, respond: Callable[[PassedCall], Awaitable[Any]]) -> None:
        """Run the call within the time limit, and store its result or error."""
        with self.scope:
            self.scope.deadline = anyio.current_time() + WAITING_SECONDS
            try:
                self.result = await respond(self)
                self.error = None
            except Exception as error:
                self.error = error
        self.is_over = True
        self.changed.set()

    def questions(self, key: str) -> Raw:
        """The result with the input requests for the client."""
        requests = {name: question.wire for name, question in self._questions.items()}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": key}
        return Raw(encode(result))


class WaitingCalls:
    """The waiting calls, by the request state that clients send back."""

    def __init__(self) -> None:
        self._calls: dict[str, _WaitingCall] = {}

    async def response(
        self,
        request: RequestContext,
        respond: Callable[[PassedCall], Awaitable[Any]],
        tasks: anyio.abc.TaskGroup,
        *,
        passes_states: bool,
    ) -> Any:
        """The response to a request or to its retry: the final result, or input requests.

        Args:
            request: The request.
            respond: Returns the final response to a call.
            tasks: Runs the calls.
            passes_states: Whether a request state may also be the server's own.

        Raises:
            InvalidParamsError: The request state does not belong to a waiting call of this request.
        """
        state = getattr(request.params, "request_state", None)
        if state is None or (passes_states and state not in self._calls):
            call = _WaitingCall(request)
            tasks.start_soon(call.run, respond)
        else:
            call = self._take_call(state, request)
            call.resume(request)
        try:
            await call.changed.wait()
        except BaseException:
            call.scope.cancel()
            raise
        if not call.is_over:
            key = secrets.token_urlsafe(24)
            self._calls[key] = call
            if len(self._calls) > MOST_CALLS:
                self._calls.pop(next(iter(self._calls))).scope.cancel()
            return call.questions(key)
        if call.error is not None:
            raise call.error
        return call.result

    def _take_call(self, key: str, request: RequestContext) -> _WaitingCall:
        call = self._calls.get(key)
        if call is None or call.binding != _binding(request):
            raise InvalidParamsError(
                "requestState: expected that of a call of this request, which waits here"
            )
        del self._calls[key]
        return call


def _answers(retry: RequestContext) -> Mapping[str, Raw]:
    """The answers of a retry as raw JSON, by the keys of the input requests."""
    if getattr(retry.params, "input_responses", None) is None or retry.raw_params is None:
        return {}
    members: dict[str, Raw] = msgspec.json.decode(retry.raw_params, type=dict[str, Raw])
    answers: dict[str, Raw] = msgspec.json.decode(members[_RESPONSES], type=dict[str, Raw])
    return answers


def _binding(request: RequestContext) -> Any:
    """A value that identifies a request, its retries and its principal."""
    raw = Raw(b"{}") if request.raw_params is None else request.raw_params
    params: dict[str, Any] = msgspec.json.decode(raw)
    repeated = {name: value for name, value in params.items() if name not in _NOT_REPEATED}
    return request.method.name, repeated, PRINCIPAL.get().identity
