"""The plain way of a request: what nobody observes costs only itself.

Until a handler suspends, no other task runs. So nothing can cancel its request, ask how many are
open, or send a message before the response, unless the handler itself asks for its peer. A request
whose handler returns without any of that needs no connection, no peer and no response writer: it
is decoded, handled, encoded and sent.

The handler is begun at once, in the task of the request. If it suspends, fails, or asks for its
peer, the objects of the whole way are made at that moment, and the same coroutine goes on there; it
is never begun twice. The plain way refuses nothing and has no errors of its own: a request that is
not certainly plain is left to the whole way, before anything was done for it.

A tool call that has a plan (see `CallPlan`) takes less still: nobody can observe it while its
function runs, so it has no context and no cancel scope either.

Checks of the head, limits, authentication, tracing and middleware are those of the whole way: they
come before and around this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Literal, Protocol, TypeAlias

import anyio

from ...protocol import jsonrpc
from ...protocol.plain_requests import PlainCall, PlainRequest, PlainRequests
from ...runtime.concurrency import never_suspends, outcome, resumed
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import RequestContext
from ..serving import CallPlan
from .http_response import send_json
from .quotas import Quotas
from .request import HttpRequest, Receive, Send

logger = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
"""A message of ASGI."""

Begun: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Any]]
"""Gives the result of a request: `Application.handle`, or what continues a call that was run."""

Planned: TypeAlias = Coroutine[Any, Any, Begun | Literal[True] | None]
"""What `serve_planned` returns."""

ENABLED = True
"""Whether requests may go the plain way. Tests set it to `False`: all then go the whole way."""


Opened: TypeAlias = tuple[PendingRequests, Callable[[Awaitable[Any]], Awaitable[None]] | None]
"""Sends to the client of an open request; and awaits a handler that was begun, and responds."""


class ObservedCall:
    """The whole way of one request. It costs little before `observe`.

    Args:
        open: Makes the request an open one, unless its response was sent already.

    Attributes:
        observed: Whether the request is an open one.
        done: Whether the response was sent the plain way.
    """

    __slots__ = ("_open", "_opened", "done", "observed")

    def __init__(self, open: Callable[[bool], Opened]) -> None:
        self._open = open
        self._opened: Opened | None = None
        self.observed = self.done = False

    def observe(self) -> PendingRequests:
        """Sends to the client of the request, which is an open request from now on. Idempotent."""
        return self._whole_way()[0]

    def finish(self, handler: Awaitable[Any]) -> Awaitable[None]:
        """Await a handler that was begun, and respond."""
        finish = self._whole_way()[1]
        assert finish is not None  # the response was not sent
        return finish(handler)

    def _whole_way(self) -> Opened:
        if self._opened is None:
            self.observed = not self.done
            self._opened = self._open(self.done)
        return self._opened


class PlainEndpoint(Protocol):
    """Serves requests the plain way, and the whole way."""

    def serve_planned(self, request: HttpRequest, call: PlainCall, send: Send) -> Planned | None:
        """Serves a call by its plan, as `serve_planned` does; `None` if it has none."""
        ...

    def post_plainly(
        self,
        request: HttpRequest,
        message: jsonrpc.Request,
        receive: Receive,
        send: Send,
        scope: anyio.CancelScope,
        begun: Begun | None = None,
    ) -> Awaitable[None] | None:
        """Responds to a POST; `None`, and nothing was done, if it has to go the whole way.

        Args:
            request: The POST.
            message: The request in its body.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller.
            begun: Continues the call, if it was run already.
        """
        ...


_BEGIN_AT_ONCE = frozenset(
    {"uvicorn.protocols.http.httptools_impl", "uvicorn.protocols.http.h11_impl", "asyncio.queues"}
)
"""Modules with coroutine functions `receive` that enter no cancel scope before they suspend."""


def begin_receiving(receive: Receive) -> tuple[Message | None, Awaitable[Message] | None]:
    """The first message, if it is there at once; and what gives it, if `receive` was called.

    A cancel scope that is entered later has to be left later too. So only a `receive` that enters
    none is called before the scope of the request is entered.
    """
    if getattr(receive, "__module__", "") not in _BEGIN_AT_ONCE and not never_suspends(receive):
        return None, None
    coroutine: Any = receive()
    try:
        awaited = coroutine.send(None)
    except StopIteration as end:
        return end.value, None
    return None, resumed(coroutine, awaited)


async def serve_planned(
    plan: CallPlan,
    call: PlainCall,
    quotas: Quotas,
    send: Send,
    on_end: Callable[[], object] | None = None,
) -> Begun | Literal[True] | None:
    """Serve a call by its plan.

    Returns:
        `True` if the response was sent, `None` if nothing was done; else what continues the call.
    """
    quotas.in_flight += 1
    try:
        data = plan.run(call.id, call.params.arguments)
        if data is None:
            return None
        if not isinstance(data, bytes):
            outcome = data
            return lambda context: plan.resume(context, outcome)
        await _respond(data, send)
        return True
    finally:
        quotas.in_flight -= 1
        if on_end is not None:
            on_end()


async def _respond(data: bytes, send: Send) -> None:
    try:
        await send_json(data, send)
    except Exception as error:
        logger.debug("not sent: %s", error)


async def serve_plainly(
    handle: Begun,
    requests: PlainRequests,
    request: PlainRequest,
    open: Callable[[bool], Opened],
    send: Send,
    on_end: Callable[[], object] | None = None,
) -> None:
    """Handle a request and respond, the plain way as far as that goes.

    Args:
        handle: Handles the request, or continues what was begun.
        requests: Encodes the response.
        request: The request.
        open: Makes it an open request; see `ObservedCall`.
        send: The ASGI send callable.
        on_end: Called at the end, unless the request was opened.
    """
    stated, call = request.stated, ObservedCall(open)
    context = RequestContext(
        call.observe,
        request.method,
        request.params,
        request.raw_params,
        request.meta,
        stated.revision,
        request.id,
        stated.peer_info,
        stated.peer_capabilities,
    )
    handler: Awaitable[Any]
    try:
        try:
            coroutine = handle(context)
            awaited = coroutine.send(None)
        except StopIteration as end:
            data = None if call.observed else requests.encode(request, end.value)
            if data is not None:
                call.done = True
                await _respond(data, send)
                return
            handler = outcome(end.value, None)
        except BaseException as error:  # for the whole way to tell failures from cancellation
            handler = outcome(None, error)
        else:
            handler = resumed(coroutine, awaited)
        await call.finish(handler)
    finally:
        if on_end is not None and not call.observed:
            on_end()
