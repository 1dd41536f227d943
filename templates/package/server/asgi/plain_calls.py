"""The plain way of a request: what nobody observes costs only itself.

Until a handler suspends, no other task runs. So nothing can cancel its request, ask how many are
open, or send a message before the response, unless the handler itself asks for its peer. A request
whose handler returns without any of that needs no connection, no peer and no response writer: it
is decoded, handled, encoded and sent.

The handler is begun at once, in the task of the request. If it suspends, fails, or asks for its
peer, the objects of the whole way are made at that moment, and the same coroutine goes on there; it
is never begun twice. The plain way refuses nothing and has no errors of its own: a request that is
not certainly plain is left to the whole way, before anything was done for it.

Checks of the head, limits, authentication, tracing and middleware are those of the whole way: they
come before and around this.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable
from typing import Any, Protocol

import anyio

from ...protocol import jsonrpc
from ...protocol.plain_requests import PlainRequest, PlainRequests
from ...runtime.concurrency import resumed
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import Application, RequestContext
from .http_response import HttpResponse
from .request import HttpRequest, Receive, Send

logger = logging.getLogger(__name__)

ENABLED = True
"""Whether requests may go the plain way. Tests set it to `False`: all then go the whole way."""


class ObservedCall(Protocol):
    """The whole way of one request. It costs little before `observe`.

    Attributes:
        observed: Whether the request is an open one.
        done: Whether the response was sent the plain way.
    """

    __slots__ = ("done", "observed")

    observed: bool
    done: bool

    @abstractmethod
    def observe(self) -> PendingRequests:
        """Sends to the client of the request, which is an open request from now on. Idempotent."""
        ...

    @abstractmethod
    async def finish(self, handler: Awaitable[Any]) -> None:
        """Await a handler that was begun, and respond."""
        ...


class PlainEndpoint(Protocol):
    """Serves requests the plain way, and the whole way."""

    def post_plainly(
        self,
        request: HttpRequest,
        message: jsonrpc.Request,
        receive: Receive,
        send: Send,
        scope: anyio.CancelScope,
    ) -> Awaitable[None] | None:
        """Responds to a POST; `None`, and nothing was done, if it has to go the whole way.

        Args:
            request: The POST.
            message: The request in its body.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller.
        """
        ...


async def serve_plainly(
    application: Application,
    requests: PlainRequests,
    request: PlainRequest,
    call: ObservedCall,
    send: Send,
) -> None:
    """Handle a request and respond, the plain way as far as that goes.

    Args:
        application: Handles the request.
        requests: Encodes the response.
        request: The request.
        call: The whole way of the request.
        send: The ASGI send callable.
    """
    stated = request.stated
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
        coroutine = application.handle(context)
        awaited = coroutine.send(None)
    except StopIteration as end:
        data = None if call.observed else requests.encode(request, end.value)
        if data is not None:
            call.done = True
            try:
                await HttpResponse(200, data).send(send)
            except Exception as error:
                logger.debug("not sent: %s", error)
            return
        handler = _finished(end.value)
    except BaseException as error:  # for the whole way to tell failures from cancellation
        handler = _failed(error)
    else:
        handler = resumed(coroutine, awaited)
    call.observe()
    await call.finish(handler)


async def _finished(result: Any) -> Any:
    """The result of a handler that has returned."""
    return result


async def _failed(error: BaseException) -> Any:
    """Raise what a handler has raised."""
    raise error
