"""The ASGI application: one endpoint for every revision that is served.

    request -> guard -> limits -> rules -> Stateless     revisions without sessions
                                        -> Handshake     revisions with sessions
                                        -> HttpSse       the two endpoints of HTTP+SSE

Source: basic/transports of all revisions.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Collection
from dataclasses import replace

import anyio

from ...errors import ConnectionClosedError
from ...facts import Revisions, has_streamable_http
from ...protocol import jsonrpc
from ...runtime.trace import trace_of
from ..serving import Service
from . import request as http
from . import responses
from .endpoints import check_sse_paths
from .host_origin import Guard
from .http_trace import TracedSend
from .lifespan import running_loop
from .lifespan_state import LifespanState
from .load import starts_work
from .request_body import Disconnected, Refused
from .settings import SSE_PATH, HttpSettings

logger = logging.getLogger(__name__)


class Application:
    """An MCP server as an ASGI application. Made by `Server.asgi`.

    It runs alone or mounted in another. Whoever runs it may run its lifespan; if nobody does, all
    begins with the first request, and ends with the event loop. A lifespan that fails then is
    tried again with the next request.

    Who asks is for ASGI middleware around it to check: that sees each request before it is routed,
    and handlers see the context variables that it sets. Over HTTP+SSE these are those of the
    request that opened the stream.

    Args:
        service: What is served.
        settings: How.

    Raises:
        ValueError: The settings ask for what no revision has.
        TransportError: MCP_TRACE names a file that can't be written.
    """

    def __init__(self, service: Service, settings: HttpSettings) -> None:
        self._service = service
        self.settings = _usable(settings, service.revisions)
        forbidden = service.revisions.newest().facts.http.forbidden_origin
        self._guard = Guard(settings.hosts, settings.origins, forbidden)
        streamable = has_streamable_http(service.revisions)
        self._paths: frozenset[str] = _both(settings.path) if streamable else frozenset()
        check_sse_paths(service, self.settings)
        self._trace = trace_of("server")
        self._lives: dict[object, LifespanState] = {}
        self._last: tuple[object, LifespanState] | None = None

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one connection of ASGI."""
        kind = scope["type"]
        if kind == "http":
            await self._http(http.Incoming(scope), receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    @property
    def place(self) -> str:
        """The path that clients are to be given."""
        return self.settings.path if self._paths else self.settings.sse_path or ""

    def know_hosts(self, names: Collection[str]) -> None:
        """Serve more values of `Host` where none are set: names that the server listens at."""
        self._guard.know(names)

    async def start(self) -> None:
        """Begin now, for who runs no lifespan and will not wait for the first request.

        Raises:
            Exception: Whatever the lifespan raised.
        """
        await self._life().background.start()

    async def close_streams(self) -> None:
        """Close what would keep a server from ending: streams that stay open, idle sessions."""
        await self._life().close_streams()

    async def drain(self) -> None:
        """Close streams, let calls finish for `drain` seconds, then end the others."""
        await self._life().drain()

    async def end(self) -> None:
        """End all that was begun on this event loop.

        Raises:
            Exception: Whatever the lifespan raised in the end.
        """
        await self._life().end()

    def _life(self) -> LifespanState:
        """What belongs to the event loop that runs."""
        loop = running_loop()
        if self._last is not None and self._last[0] is loop and not self._last[1].over:
            return self._last[1]
        life = self._lives.get(loop)
        if life is None or life.over:
            for known in [known for known, old in self._lives.items() if old.over]:
                del self._lives[known]
            life = self._lives[loop] = LifespanState(self._service, self.settings)
        self._last = (loop, life)
        return life

    async def _lifespan(self, receive: http.Receive, send: http.Send) -> None:
        life = self._life()
        while True:
            step = (await receive())["type"]
            try:
                if step == "lifespan.startup":
                    await life.background.start()
                else:
                    await life.end()
            except Exception:
                await send({"type": f"{step}.failed", "message": traceback.format_exc()})
                return
            await send({"type": f"{step}.complete"})
            if step == "lifespan.shutdown":
                return

    async def _http(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        life = self._life()
        refused = self._refuse(request, life) or await self._started(life)
        if refused is not None:
            await life.bodies.refuse(refused, request, receive, send)
            return
        try:
            if request.method == "GET":
                await self._get(request, life, receive, send)
            else:
                await self._route(request, life, receive, send)
        except Disconnected:
            logger.debug("a client left before its request was whole")
        except ConnectionClosedError as error:
            logger.debug("not answered: %s", error)

    async def _get(
        self, request: http.Incoming, life: LifespanState, receive: http.Receive, send: http.Send
    ) -> None:
        """Have a stream opened: that is what a GET is for, wherever it is served."""
        with life.streams.place() as granted:
            if granted:
                await self._route(request, life, receive, send)
            else:
                await responses.too_much("streams").send(send)

    async def _route(
        self, request: http.Incoming, life: LifespanState, receive: http.Receive, send: http.Send
    ) -> None:
        if life.http_sse is not None and life.http_sse.serves(request.path):
            await life.http_sse.serve(request, receive, send)
        elif request.method == "POST":
            await self._post(request, life, receive, send)
        elif life.handshake is None or (
            life.stateless is not None and life.stateless.rules.named_by(request)
        ):
            await responses.not_allowed("POST").send(send)
        elif request.method == "GET":
            out = send if self._trace is None else TracedSend(send, self._trace)
            await life.handshake.get(request, receive, out)
        else:
            await life.handshake.delete(request, send)

    def _refuse(self, request: http.Incoming, life: LifespanState) -> responses.Reply | None:
        """What refuses a request before it is routed. Checks of who asks belong here too."""
        limits = self.settings.limits
        refused = self._guard.check(request)
        if refused is not None:
            return refused
        also = life.http_sse is not None and life.http_sse.serves(request.path)
        if request.path not in self._paths and not also:
            return responses.refusal(404, f"no such path; the endpoint is {self.place}")
        if request.method not in ("POST", "GET", "DELETE") and not also:
            return responses.not_allowed("POST" if life.handshake is None else "POST, GET, DELETE")
        if request.count > limits.fields:
            return responses.refusal(
                431, f"expected at most {limits.fields} header fields (Limits.fields)"
            )
        return None

    async def _started(self, life: LifespanState) -> responses.Reply | None:
        """Have the lifespan entered; what refuses a request if that fails."""
        if not life.background.running:
            try:
                await life.background.start()
            except Exception:
                logger.exception("the lifespan failed")
                text = "the server could not be started; its log says why"
                return responses.unavailable(text)
        self._service.use_state(life.background.state)
        return None

    async def _post(
        self, request: http.Incoming, life: LifespanState, receive: http.Receive, send: http.Send
    ) -> None:
        limits = self.settings.limits
        if self._trace is not None:
            send = TracedSend(send, self._trace)
        bodies = life.bodies
        refused = http.check_post(request, limits)
        if refused is not None:
            await bodies.refuse(refused, request, receive, send)
            return
        body: bytes | Refused | None = None
        with anyio.CancelScope() as scope:
            body = await bodies.read_in(scope, receive)
            if isinstance(body, bytes):
                try:
                    await self._message(request, body, life, receive, send, scope)
                finally:
                    bodies.release(body)
        if isinstance(body, bytes):
            return
        refusal = body if isinstance(body, Refused) else bodies.late(scope)
        if refusal.full:
            life.make_room()
        if refusal.unread:
            await bodies.refuse(refusal.reply, request, receive, send, begun=True)
        else:
            await refusal.reply.send(send)

    async def _message(
        self,
        request: http.Incoming,
        body: bytes,
        life: LifespanState,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
    ) -> None:
        """Have a message answered by the revisions that it belongs to, if there is room for it."""
        if self._trace is not None:
            self._trace.received(body)
        message = None if jsonrpc.is_batch(body) else jsonrpc.parse(body)
        load = life.load
        if not load.has_room() and (message is None or starts_work(message)):
            await responses.too_much("in_flight").send(send)
            return
        stateless, handshake = life.stateless, life.handshake
        claim = None if stateless is None else stateless.rules.claim_of(message)
        load.in_flight += 1
        try:
            if stateless is not None and (
                handshake is None or stateless.rules.apply(request, message, claim)
            ):
                await stateless.post(request, message, claim, receive, send, scope)
            elif handshake is not None:
                await handshake.post(request, message, body, receive, send)
        finally:
            load.in_flight -= 1


def _usable(settings: HttpSettings, revisions: Revisions) -> HttpSettings:
    """The settings, with the endpoints of HTTP+SSE where there is nothing else to serve."""
    if settings.sse_path is not None or has_streamable_http(revisions):
        return settings
    return replace(settings, sse_path=SSE_PATH)


def _both(path: str) -> frozenset[str]:
    """A path with and without a slash at its end."""
    bare = path.rstrip("/")
    return frozenset({bare or "/", f"{bare}/"})
