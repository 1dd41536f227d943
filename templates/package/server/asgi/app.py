"""The ASGI application: one endpoint for all revisions that are served.

    request -> host and origin -> limits -> body -> StatelessEndpoint   revisions without sessions
                                                 -> SessionEndpoint     revisions with sessions
                                -> SseEndpoints                         the endpoints of HTTP+SSE
                                -> Routes                               routes of the user

Source: basic/transports of all revisions.
"""

from __future__ import annotations

import logging
import traceback
from asyncio import CancelledError, get_running_loop
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from ...errors import INTERNAL_ERROR, INTERRUPTED, ConnectionClosedError
from ...facts import has_streamable_http
from ...protocol import jsonrpc
from ...runtime.eager_tasks import on_asyncio
from ...runtime.task_scope import TaskScope, keep_running, running_loop
from ...runtime.tracing import Trace, trace_of
from ..request_head import HTTP_REQUEST
from ..serving import Service
from . import http_response
from .chosen_http import ENDPOINTS
from .exchange import HttpEndpoint
from .host_origin import PREFLIGHT, HostOriginValidator, is_preflight, share_responses
from .http_response import CLOSE, SHUTTING_DOWN, Receive, Refused, Scope, Send
from .quotas import Quotas, starts_work
from .request import (
    SHORT_BODY,
    AcceptedHeads,
    Authentication,
    Disconnected,
    HttpRequest,
    OtherPath,
    OtherPaths,
    PathEndpoint,
    RequestBodies,
    check_length,
)
from .settings import HttpSettings

logger = logging.getLogger(__name__)

_DATA = b"data: "  # before each line of the data of an event

_INTERRUPTED = http_response.refusal(
    503, SHUTTING_DOWN, code=INTERNAL_ERROR, headers=CLOSE, data=INTERRUPTED
)


class AsgiApplication:
    """An MCP server as an ASGI application. Made by `Server.asgi`.

    The application runs alone or mounted in another application. Hosts that send no lifespan events
    are supported too: the first request then enters the lifespan, and the end of the event loop
    leaves it. If the lifespan fails at that point, the next request enters it again.

    With `auth`, every request is authenticated before its body is read. Middleware may authenticate
    instead: middleware sees each request before the application, and handlers see the context
    variables that the middleware sets (over HTTP+SSE, those of the request that opened the stream).

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        routes: Further paths.

    Raises:
        ValueError: The settings ask for a transport that no revision has, or a route has the path
            of the endpoint, or requires access tokens although the settings have no `auth`.
        MissingExtraError: An option needs a library that is not installed.
        TransportError: MCP_TRACE names a file that can't be written.
    """

    def __init__(
        self, service: Service, settings: HttpSettings, routes: OtherPaths | None = None
    ) -> None:
        self._service = service
        self._routes = routes
        self.settings = settings.checked_for(service)
        status = service.revisions.newest().facts.http.forbidden_origin
        self._validator = HostOriginValidator(settings.hosts, settings.origins, status)
        self._validator.allow(settings.public_hosts)
        self._paths = frozenset[str]()
        if has_streamable_http(service.revisions):  # with and without a slash at the end
            bare = settings.path.rstrip("/")
            self._paths = frozenset({bare or "/", f"{bare}/"})
        if routes is not None:
            routes.check(self._paths | self.settings.other_paths, settings.is_protected)
        trace = trace_of("server", service.secret_names_of)
        if trace is not None:  # the file is writable; each event loop opens it again
            trace.close()
        self._states: dict[object, LifespanState] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: here a POST to the endpoint, from top to bottom."""
        if scope["type"] != "http":
            await self._serve_other(scope["type"], receive, send)
            return
        request = HttpRequest(scope, send)
        try:
            state = self._states.get(get_running_loop())
        except RuntimeError:  # on trio
            state = None
        if state is None or state.over:
            state = self._state()
        if self.settings.origins is not None:
            origin = self._validator.listed_origin(request)
            request.send = send = send if origin is None else share_responses(send, origin)
        send = partial(state.quotas.unread.send, request, send)
        try:
            is_accepted = state.heads.accepts(request)  # a POST whose head is known
            route = None if is_accepted else self._check_head(request, state)
            if not state.background.running:
                await state.start_for_request()
            if state.authenticator is not None and (route is None or route.auth):
                await state.authenticator.authenticate(request)
            if state.background.state:
                self._service.use_state(state.background.state)
            HTTP_REQUEST.set(request)
            if not is_accepted:
                if route is not None or request.method != "POST" or state.serves_path(request):
                    await self._serve_beside(route, request, state, scope, receive, send)
                    return
                state.heads.check(request)
            body, first = state.bodies.begin(receive) if state.on_asyncio else (None, None)
            if body is None:
                body = await state.bodies.read(receive, first)
            state.quotas.in_flight += 1
            try:
                reply: Send = send
                if state.trace is not None:
                    request.send = reply = _traced(send, state.trace)
                    state.trace.record_received(body)
                is_batch = body[:1] != b"{" and jsonrpc.is_batch(body)
                message = None if is_batch else jsonrpc.parse(body)
                messages = self._batch(body) if message is None else (message,)
                if state.authenticator is not None:
                    state.authenticator.authorize(request, messages)
                is_busy = state.quotas.in_flight > state.quotas.half or state.quotas.unread.size
                if is_busy and (message is None or starts_work(message)):
                    state.quotas.check_room(request, 0)  # this one is counted already
                endpoint = state.last_endpoint
                for each in state.first_endpoints:
                    if each.applies(request, message):
                        endpoint = each
                waiting = endpoint.post(request, message, messages, body, receive, reply)
                if waiting is not None:
                    await waiting
            finally:
                state.quotas.in_flight -= 1
                if len(body) > SHORT_BODY:
                    state.bodies.release(body)
        except (Refused, Disconnected, ConnectionClosedError, CancelledError) as error:
            await self._end(error, request, state, receive, send)

    def _batch(self, body: bytes) -> Sequence[jsonrpc.Message]:
        """The messages of an array; one that is refused in packages without batches."""
        parse_batch = self.settings.parse_batch
        return (jsonrpc.parse(body),) if parse_batch is None else parse_batch(body)

    async def _end(
        self,
        error: BaseException,
        request: HttpRequest,
        state: LifespanState,
        receive: Receive,
        send: Send,
    ) -> None:
        """Respond to a request that is not served, if its client is there."""
        if isinstance(error, Refused):
            if state.trace is not None and error.body == "read":
                send = _traced(send, state.trace)
            await state.bodies.respond(error, request, receive, send)
        elif isinstance(error, CancelledError):  # by an asyncio host that shuts down
            if not request.responded:
                with suppress(CancelledError):
                    await _INTERRUPTED.send(send)
            raise error
        else:
            logger.debug("not answered: %r", error)

    @property
    def endpoint_path(self) -> str:
        """The path for clients to connect to."""
        return self.settings.path if self._paths else self.settings.stream_path

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of open `requests`, `sessions` and `streams` over all event loops."""
        states = [state for state in list(self._states.values()) if not state.over]
        return {
            "requests": sum(each.quotas.in_flight for each in states),
            "sessions": sum(one.session_count for each in states for one in each.endpoints),
            "streams": sum(len(each.quotas.streams) for each in states),
        }

    def allow_hosts(self, names: Collection[str]) -> None:
        """Accept the names that the server binds to as `Host`, unless the settings list hosts."""
        self._validator.allow(names)

    async def start(self) -> None:
        """Enter the lifespan, for a host that sends no lifespan events; raises what that raises."""
        await self._state().start()

    async def close_streams(self) -> None:
        """Close open streams and idle sessions, which would keep a server from shutting down."""
        await self._state().close_streams()

    def start_drain(self) -> None:
        """Begin to close streams, and to fail the calls that `drain` seconds later remain.

        For a host that waits for responses before it ends the lifespan. Idempotent.
        """
        self._state().start_drain()

    async def end(self) -> None:
        """Fail all calls, end the sessions and leave the lifespan on this event loop."""
        await self._state().end()

    def _state(self) -> LifespanState:
        """The state of the running event loop."""
        loop = running_loop()
        state = self._states.get(loop)
        if state is not None and not state.over:
            return state
        for key in [key for key, old in self._states.items() if old.over]:
            del self._states[key]
        state = self._states[loop] = LifespanState(self._service, self.settings)
        return state

    async def _serve_other(self, kind: str, receive: Receive, send: Send) -> None:
        """Serve an ASGI connection that is not an HTTP request."""
        if kind == "websocket":
            await send({"type": "websocket.close", "code": 1003})
        if kind != "lifespan":
            return
        state = self._state()
        while True:
            event = (await receive())["type"]
            try:
                if event == "lifespan.startup":
                    await state.start()
                else:
                    await state.end()
            except Exception:
                await send({"type": f"{event}.failed", "message": traceback.format_exc()})
                return
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    def _check_head(self, request: HttpRequest, state: LifespanState) -> OtherPath | None:
        """Check the head of a request; returns the route that matches the request, if any.

        Raises:
            Refused: The request is refused because of its head, or is for a document.
        """
        route = None
        if self._routes is not None:
            route = self._routes.find(request.path, request.method)
        self._validator.check(request, any_origin=route is not None and route.any_origin)
        check_length(request)
        if is_preflight(request) and self._validator.listed_origin(request) is not None:
            raise Refused(PREFLIGHT, "unread")
        if route is None and not state.serves_path(request):
            if request.path not in self._paths:
                document = None
                if state.authenticator is not None:
                    document = state.authenticator.metadata(request)
                text = f"no such path; the endpoint is {self.endpoint_path}"
                raise Refused(document or http_response.refusal(404, text), "unread")
            if request.method not in ("POST", "GET", "DELETE"):
                allowed = max((each.methods for each in state.endpoints), key=len)
                raise Refused(http_response.not_allowed(allowed), "unread")
        limit = self.settings.limits.fields
        if request.count > limit:
            text = f"expected at most {limit} header fields (Limits.fields)"
            raise Refused(http_response.refusal(431, text), "unread")
        return route

    async def _serve_beside(
        self,
        route: OtherPath | None,
        request: HttpRequest,
        state: LifespanState,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a route of the user, GET, DELETE, and the endpoints of HTTP+SSE."""
        if route is not None:
            body = await state.bodies.read(receive)
            try:
                value = self._service.use_state(state.background.state)
                await route.serve(request, scope, receive, send, body, value)
            finally:
                state.bodies.release(body)
            return
        streams = state.quotas.streams
        opens_stream = request.method == "GET"
        if opens_stream and not streams.enter():
            raise Refused(http_response.over_limit("streams"))
        try:
            if state.beside is not None and state.beside.serves(request.path):
                await state.beside.serve(request, receive, send)
                return
            if state.trace is not None:
                send = _traced(send, state.trace)
            named = [each for each in state.first_endpoints if each.names_revision(request)]
            endpoint = (*named, state.last_endpoint)[0]
            if not await endpoint.serve_other(request, receive, send):
                raise Refused(http_response.not_allowed("POST"))
        finally:
            if opens_stream:
                streams.leave()


class LifespanState:
    """The state of an application on one event loop.

    Several loops may run the same application, one after the other, as with test clients. Events
    and locks of one loop are of no use in the next, so each loop has a state of its own.

    Attributes:
        over: Whether the lifespan has ended.
        on_asyncio: Whether the event loop belongs to asyncio.
        heads: The heads of POSTs that were accepted last.
        bodies: The request bodies being read.
        background: Runs tasks that no request owns.
        endpoints: The endpoints of the revisions that are served.
        first_endpoints: All but the last one.
        last_endpoint: Serves the requests that none of the others applies to.
        beside: Serves paths beside the endpoint, such as those of HTTP+SSE.
        authenticator: Authenticates and authorizes requests, if the application is protected.
        trace: Records the messages, if tracing is enabled.
        worker: The worker of the state that processes share, if they do.
    """

    def __init__(self, service: Service, settings: HttpSettings) -> None:
        self.over = False
        self.on_asyncio = on_asyncio()
        self.quotas = quotas = Quotas(settings.limits)
        self.heads = AcceptedHeads(settings.limits, settings.answers)
        self.bodies = RequestBodies(settings.limits)
        self.bodies.on_full = self.free_memory
        self.worker = settings.worker(service)
        initial = () if self.worker is None else (self._work,)
        self.background = TaskScope(service.lifespan, self._on_end, *initial)
        self.authenticator: Authentication | None = settings.authenticator(service, self.worker)
        if self.authenticator is not None:
            quotas.streams.deadline = self.authenticator.deadline
        self.endpoints: list[HttpEndpoint] = []
        for kind in ENDPOINTS:
            if revisions := kind.revisions_of(service.revisions):
                make = settings.endpoint_type(kind)
                self.endpoints.append(
                    make(service, settings, revisions, self.background, quotas, self.worker)
                )
        self.first_endpoints = self.endpoints[:-1]
        if self.endpoints:  # HTTP+SSE alone has none
            self.last_endpoint = self.endpoints[-1]
        self.beside: PathEndpoint | None = settings.path_endpoint(
            service, quotas, self.bodies, self.authenticator
        )
        self.trace = trace_of("server", service.secret_names_of)
        self._service = service
        self._drain_seconds = service.drain
        self._draining = self._watching = False

    async def start(self) -> None:
        """Enter the lifespan, and watch the connections. Idempotent."""
        await self.background.start()
        if not self._watching:
            self._watching = True
            for endpoint in self.endpoints:
                for work in endpoint.background_work():
                    self.background.start_soon(keep_running, work)

    async def start_for_request(self) -> None:
        """Enter the lifespan, which opens the store of proofs, for the first request.

        Raises:
            Refused: The lifespan failed.
        """
        try:
            await self.start()
        except Exception:
            logger.exception("the lifespan failed")
            text = "the server could not be started; its log says why"
            raise Refused(http_response.unavailable(text), "unread") from None

    def serves_path(self, request: HttpRequest) -> bool:
        """Whether a request is for a path beside the endpoint."""
        return self.beside is not None and self.beside.serves(request.path)

    def free_memory(self) -> None:
        """Free memory for request bodies: end abandoned calls, and the largest stream."""
        for endpoint in self.endpoints:
            endpoint.free_memory()
        self.quotas.memory.end_largest(SHORT_BODY)

    async def close_streams(self) -> None:
        """Close open streams and idle sessions, which would keep a server from shutting down."""
        self.quotas.streams.close()
        for endpoint in self.endpoints:
            await endpoint.close_idle()

    def start_drain(self) -> None:
        """See `AsgiApplication.start_drain`."""
        if not self._draining:
            self._draining = True
            self.background.start_soon(self._drain)

    async def end(self) -> None:
        """See `AsgiApplication.end`."""
        self.quotas.streams.close()
        await self._fail_calls()
        await self.background.stop()

    async def _drain(self) -> None:
        await self.close_streams()
        await anyio.sleep(self._drain_seconds)
        await self._fail_calls()

    async def _fail_calls(self) -> None:
        """Respond to all calls with an error, cancel them, and end the sessions."""
        async with anyio.create_task_group() as tasks:
            for endpoint in self.endpoints:
                tasks.start_soon(endpoint.close)

    def _on_end(self) -> None:
        self.over = True
        if self.trace is not None:
            self.trace.close()

    async def _work(self) -> None:
        self._service.use_state(self.background.state)
        await self.worker.run()


def _traced(send: Send, trace: Trace) -> Send:
    """An ASGI send callable that traces messages: whole documents, and the data of each event."""

    async def send_traced(message: MutableMapping[str, Any]) -> None:
        body: bytes = message.get("body", b"")
        if body[:1] not in (b"{", b"["):
            lines = (line for line in body.split(b"\n") if line.startswith(_DATA))
            body = b"\n".join(line.removeprefix(_DATA) for line in lines)
        if body:
            trace.record_sent(body)
        await send(message)

    return send_traced
