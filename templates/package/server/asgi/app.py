"""The ASGI application: one endpoint for all revisions that are served.

    request -> host and origin -> limits -> body -> StatelessEndpoint   revisions without sessions
                                                 -> SessionEndpoint     revisions with sessions
                                                 -> SseEndpoints        the endpoints of HTTP+SSE
                                                 -> Routes              routes of the user

Source: basic/transports of all revisions.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio

from ...channel import TooLong
from ...errors import ConnectionClosedError
from ...facts import Revisions, has_streamable_http
from ...framing.sse import MEDIA_TYPE, EventDecoder
from ...protocol import jsonrpc
from ...runtime.eager_tasks import on_asyncio
from ...runtime.task_scope import TaskScope, running_loop
from ...runtime.tracing import Trace, trace_of
from ..request_head import HTTP_REQUEST
from ..serving import Service
from . import cors, http_response
from .body import SHORT_BODY, Disconnected, RequestBodies
from .endpoints import (
    authentication_of,
    check_sessions,
    check_sse_paths,
    session_endpoint,
    shared_worker,
    sse_endpoints,
    stateless_endpoint,
)
from .host_origin import HostOriginValidator
from .http_response import SHUTTING_DOWN, HttpResponse, Refused
from .quotas import Quotas, starts_work
from .request import (
    AcceptedHeads,
    HttpRequest,
    OtherPath,
    OtherPaths,
    Receive,
    Scope,
    Send,
    check_length,
    check_post,
)
from .settings import SSE_PATH, ServerHttpSettings
from .uvicorn_adapter import until_shutdown

logger = logging.getLogger(__name__)


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
        MissingExtraError: Sealed sessions are enabled, and `cryptography` is not installed; or
            shared state is enabled, and `valkey` is not installed.
        TransportError: MCP_TRACE names a file that can't be written.
    """

    def __init__(
        self, service: Service, settings: ServerHttpSettings, routes: OtherPaths | None = None
    ) -> None:
        self._service = service
        self._routes = routes
        self.settings = _with_sse_path(settings, service.revisions)
        status = service.revisions.newest().facts.http.forbidden_origin
        self._validator = HostOriginValidator(settings.hosts, settings.origins, status)
        streamable = has_streamable_http(service.revisions)
        self._paths: frozenset[str] = _spellings(settings.path) if streamable else frozenset()
        check_sse_paths(service, self.settings)
        check_sessions(service, self.settings)
        if routes is not None:
            sse_path, messages_path = self.settings.sse_path, self.settings.messages_path
            own: set[str] = set() if sse_path is None else {sse_path, messages_path}
            routes.check(own | self._paths, settings.auth is not None)
        if settings.protected is not None and settings.protected.resource:
            self._validator.allow([urlsplit(settings.protected.resource).hostname or ""])
        trace = trace_of("server", service.secret_names_of)
        if trace is not None:  # the file is writable; each event loop opens it again
            trace.close()
        self._states: dict[object, LifespanState] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._serve_other(scope["type"], receive, send)
            return
        request = HttpRequest(scope)
        state = self._states.get(running_loop())
        if state is None or state.over:
            state = self._state()
        send = partial(state.quotas.unread.send, request, send)
        if self.settings.origins is not None:
            origin = self._validator.listed_origin(request)
            send = send if origin is None else cors.share_responses(send, origin)
        try:
            route: OtherPath | None = None
            is_accepted = state.heads.accepts(request)  # a POST whose head is known
            if not is_accepted:
                route = self._check_head(request, state)
            if not state.background.running:
                await self._start_lifespan(state)  # opens the store of proofs
            if state.authenticator is not None and (route is None or route.auth):
                await state.authenticator.authenticate(request)
            if state.background.state:
                self._service.use_state(state.background.state)
            HTTP_REQUEST.set(request)
            if route is not None:
                await self._serve_route(route, request, state, scope, receive, send)
            elif is_accepted or (request.method == "POST" and not state.serves_sse(request)):
                await self._post(request, state, receive, send, is_accepted)
            else:
                await self._serve_other_method(request, state, receive, send)
        except Refused as refused:
            if state.trace is not None and refused.body == "read":
                send = _TracedSend(send, state.trace)
            await state.bodies.respond(refused, request, receive, send)
        except Disconnected:
            logger.debug("a client disconnected before its request was complete")
        except ConnectionClosedError as error:
            logger.debug("not answered: %s", error)

    @property
    def endpoint_path(self) -> str:
        """The path for clients to connect to."""
        return self.settings.path if self._paths else self.settings.sse_path or ""

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of open `requests`, `sessions` and `streams` over all event loops."""
        states = [state for state in list(self._states.values()) if not state.over]
        sessions = [len(each.sessions.registry) for each in states if each.sessions is not None]
        return {
            "requests": sum(each.quotas.in_flight for each in states),
            "sessions": sum(sessions),
            "streams": sum(len(each.quotas.streams) for each in states),
        }

    def allow_hosts(self, names: Collection[str]) -> None:
        """Accept the names that the server binds to as `Host`, unless the settings list hosts."""
        self._validator.allow(names)

    async def start(self) -> None:
        """Enter the lifespan, for a host that sends no lifespan events.

        Raises:
            Exception: Whatever the lifespan raised.
        """
        await self._state().background.start()

    async def close_streams(self) -> None:
        """Close open streams and idle sessions, which would keep a server from shutting down."""
        await self._state().close_streams()

    async def drain(self) -> None:
        """Close streams, let calls finish for `drain` seconds, then fail the remaining calls."""
        await self._state().drain()

    async def end(self) -> None:
        """Fail all calls, end the sessions and leave the lifespan on this event loop.

        Raises:
            Exception: Whatever the lifespan raised on leaving.
        """
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
                    await state.background.start()
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
            Refused: The request is refused because of its head.
        """
        route = None
        if self._routes is not None:
            route = self._routes.find(request.path, request.method)
        refused = self._validator.check(request, any_origin=route is not None and route.any_origin)
        if refused is None:
            check_length(request)
            if cors.is_preflight(request) and self._validator.listed_origin(request) is not None:
                refused = cors.PREFLIGHT
            elif route is None and not state.serves_sse(request):
                refused = self._check_path(request, state)
        limit = self.settings.limits.fields
        if refused is None and request.count > limit:
            text = f"expected at most {limit} header fields (Limits.fields)"
            refused = http_response.refusal(431, text)
        if refused is not None:
            raise Refused(refused, "unread")
        return route

    def _check_path(self, request: HttpRequest, state: LifespanState) -> HttpResponse | None:
        """The response to a request that is not for the endpoint; `None` for the others."""
        if request.path not in self._paths:
            document = None
            if state.authenticator is not None:
                document = state.authenticator.metadata(request)
            text = f"no such path; the endpoint is {self.endpoint_path}"
            return document or http_response.refusal(404, text)
        if request.method in ("POST", "GET", "DELETE"):
            return None
        return http_response.not_allowed(
            "POST, GET, DELETE" if self._has_sessions(state) else "POST"
        )

    async def _serve_route(
        self,
        route: OtherPath,
        request: HttpRequest,
        state: LifespanState,
        asgi_scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a route that the user added."""
        body = await state.bodies.read(receive)
        try:
            lifespan_state = self._service.use_state(state.background.state)
            await route.serve(request, asgi_scope, receive, send, body, lifespan_state)
        finally:
            state.bodies.release(body)

    def _has_sessions(self, state: LifespanState) -> bool:
        return state.sessions is not None and not self.settings.stateless

    async def _start_lifespan(self, state: LifespanState) -> None:
        """Enter the lifespan.

        Raises:
            Refused: The lifespan failed.
        """
        try:
            await state.background.start()
        except Exception:
            logger.exception("the lifespan failed")
            text = "the server could not be started; its log says why"
            raise Refused(http_response.unavailable(text), "unread") from None

    async def _serve_other_method(
        self, request: HttpRequest, state: LifespanState, receive: Receive, send: Send
    ) -> None:
        """Serve GET, DELETE, and the endpoints of HTTP+SSE, within the limit of streams."""
        if request.method != "GET":
            await self._dispatch(request, state, receive, send)
            return
        streams = state.quotas.streams
        if not streams.enter():  # each GET opens a stream
            raise Refused(http_response.over_limit("streams"))
        try:
            await self._dispatch(request, state, receive, send)
        finally:
            streams.leave()

    async def _dispatch(
        self, request: HttpRequest, state: LifespanState, receive: Receive, send: Send
    ) -> None:
        stateless, sessions = state.stateless, state.sessions
        if state.sse is not None and state.serves_sse(request):
            await state.sse.serve(request, receive, send)
        elif (
            sessions is None
            or not self._has_sessions(state)
            or (stateless is not None and stateless.headers.names_revision(request))
        ):
            raise Refused(http_response.not_allowed("POST"))
        elif request.method == "GET":
            out = send if state.trace is None else _TracedSend(send, state.trace)
            await sessions.get(request, receive, out)
        else:
            await sessions.delete(request, send)

    async def _post(
        self,
        request: HttpRequest,
        state: LifespanState,
        receive: Receive,
        send: Send,
        is_accepted: bool,
    ) -> None:
        """Read the body of a POST and serve its messages.

        Args:
            request: The request.
            state: The state of the event loop.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            is_accepted: Whether a head like this was accepted before.
        """
        if state.trace is not None:
            send = _TracedSend(send, state.trace)
        bodies, quotas = state.bodies, state.quotas
        if not is_accepted:
            check_post(request, self.settings.limits)
            state.heads.add(request)
        body, first = bodies.begin(receive) if state.on_asyncio else (None, None)
        if body is None:
            body = await bodies.read(receive, first)
        quotas.in_flight += 1
        try:
            waiting = self._serve(request, state, body, receive, send)
            if waiting is not None:
                await waiting
        finally:
            quotas.in_flight -= 1
            if len(body) > SHORT_BODY:
                bodies.release(body)

    def _serve(
        self,
        request: HttpRequest,
        state: LifespanState,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> Awaitable[object] | None:
        """Pass a message to the endpoint that serves its revision.

        Returns:
            Waits for the end of the response; `None` if it has ended.

        Raises:
            Refused: The message is not served.
        """
        if state.trace is not None:
            state.trace.record_received(body)
        message: jsonrpc.Message | None = None
        messages: Sequence[jsonrpc.Message]
        if body[:1] != b"{" and jsonrpc.is_batch(body):
            messages = jsonrpc.parse_batch(body)
        else:
            message = jsonrpc.parse(body)
            messages = (message,)
        if state.authenticator is not None:
            state.authenticator.authorize(request, messages)
        stateless, sessions, quotas = state.stateless, state.sessions, state.quotas
        is_busy = quotas.in_flight > quotas.half or quotas.unread.size
        if is_busy and (message is None or starts_work(message)):
            quotas.check_room(request, 0)  # this one is counted already
        if stateless is not None and (
            sessions is None or stateless.headers.applies(request, message)
        ):
            response: Awaitable[object] | None = stateless.post(request, message, receive, send)
        else:
            assert sessions is not None  # otherwise the path would not exist
            response = sessions.post(request, message, messages, body, receive, send)
        return response


class LifespanState:
    """The state of an application on one event loop.

    Several loops may run the same application, one after the other, as with test clients. Events
    and locks of one loop are of no use in the next, so each loop has a state of its own.

    Args:
        service: The service of the server.
        settings: The HTTP settings.

    Attributes:
        over: Whether the lifespan has ended.
        on_asyncio: Whether the event loop belongs to asyncio.
        quotas: The amounts that all clients use together.
        heads: The heads of POSTs that were accepted last.
        bodies: The request bodies being read.
        background: Runs tasks that no request owns.
        stateless: Serves the revisions without sessions, if there are any.
        shared: The worker of the shared state, if processes share state.
        sessions: Serves the revisions with sessions, if there are any.
        sse: Serves HTTP+SSE, if it is enabled.
        authenticator: Authenticates and authorizes requests, if the application is protected.
        trace: Records the messages, if tracing is enabled.
    """

    def __init__(self, service: Service, settings: ServerHttpSettings) -> None:
        self.over = False
        self.on_asyncio = on_asyncio()
        self.quotas = Quotas(settings.limits)
        self.heads = AcceptedHeads(settings.limits, settings.answers)
        self.bodies = RequestBodies(settings.limits)
        self.bodies.on_full = self.free_memory
        self.background = TaskScope(
            service.lifespan,
            self._on_end,
            self._watch_stateless,
            self._watch_sessions,
            self._drain_with_host,
            self._run_shared_worker,
        )
        self.shared = shared_worker(service, settings)
        self.stateless = stateless_endpoint(service, settings, self.background, self.quotas)
        self.sessions = session_endpoint(
            service, settings, self.background, self.quotas, self.shared
        )
        self.sse = sse_endpoints(service, settings, self.quotas, self.bodies)
        self.authenticator = authentication_of(
            service, settings.protected, settings.path, self.shared
        )
        self.trace = trace_of("server", service.secret_names_of)
        if self.authenticator is not None:
            self.quotas.streams.deadline = self.authenticator.deadline
            if self.sse is not None:
                self.sse.authenticator = self.authenticator
        self._service = service
        self._drain_seconds = service.drain
        self._draining = False

    def serves_sse(self, request: HttpRequest) -> bool:
        """Whether a request is for HTTP+SSE."""
        return self.sse is not None and self.sse.serves(request.path)

    def free_memory(self) -> None:
        """Free memory for request bodies: cancel an abandoned call, end the largest stream.

        Calls without a session are watched from now on, so that disconnects end them at once.
        """
        if self.stateless is not None:
            self.stateless.exchanges.watch_all()
        if self.sessions is not None:
            self.sessions.exchanges.cancel_first_abandoned("bodies")
        self.quotas.memory.end_largest(SHORT_BODY)

    async def close_streams(self) -> None:
        """Close open streams and idle sessions, which would keep a server from shutting down."""
        self.quotas.streams.close()
        if self.sessions is not None:
            await self.sessions.registry.close_idle()

    async def drain(self) -> None:
        """Let calls finish for `drain` seconds, then fail the remaining calls.

        Open streams and idle sessions are closed at once. Returns after these seconds, even if
        there are no calls. Idempotent.
        """
        if self._draining:
            return
        self._draining = True
        await self.close_streams()
        await anyio.sleep(self._drain_seconds)
        await self._fail_calls()

    async def end(self) -> None:
        """Fail all calls, end the sessions and leave the lifespan.

        Raises:
            Exception: Whatever the lifespan raised on leaving.
        """
        self.quotas.streams.close()
        await self._fail_calls()
        await self.background.stop()

    async def _fail_calls(self) -> None:
        """Respond to all calls with an error, cancel them, and end the sessions."""
        async with anyio.create_task_group() as tasks:
            if self.stateless is not None:
                tasks.start_soon(self.stateless.exchanges.fail_all, SHUTTING_DOWN)
            if self.sessions is not None:
                tasks.start_soon(self.sessions.exchanges.fail_all, SHUTTING_DOWN)
        if self.sessions is not None:
            await self.sessions.registry.close()

    def _on_end(self) -> None:
        self.over = True
        if self.trace is not None:
            self.trace.close()

    async def _watch_stateless(self) -> None:
        if self.stateless is not None:
            await self.stateless.watch()

    async def _watch_sessions(self) -> None:
        if self.sessions is not None:
            await self.sessions.watch()

    async def _run_shared_worker(self) -> None:
        if self.shared is not None:
            self._service.use_state(self.background.state)
            await self.shared.run()

    async def _drain_with_host(self) -> None:
        """Drain when the server that runs the application starts to shut down."""
        if await until_shutdown():
            await self.drain()


class _TracedSend:
    """An ASGI send callable that traces messages: whole documents, and each event of a stream.

    Args:
        send: The ASGI send callable.
        trace: The trace.
    """

    def __init__(self, send: Send, trace: Trace) -> None:
        self._send = send
        self._trace = trace
        self._events: EventDecoder | None = None

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Trace an ASGI message, and send it."""
        if message["type"] == "http.response.start":
            if (b"content-type", MEDIA_TYPE.encode()) in message["headers"]:
                self._events = EventDecoder()
        elif self._events is None:
            if message["body"]:
                self._trace.record_sent(message["body"])
        else:
            for event in self._events.feed(message["body"]):
                if not isinstance(event, TooLong) and event.data:
                    self._trace.record_sent(event.data)
        await self._send(message)


def _with_sse_path(settings: ServerHttpSettings, revisions: Revisions) -> ServerHttpSettings:
    """The settings; HTTP+SSE is enabled if no revision has Streamable HTTP."""
    if settings.sse_path is not None or has_streamable_http(revisions):
        return settings
    return replace(settings, sse_path=SSE_PATH)


def _spellings(path: str) -> frozenset[str]:
    """A path with and without a slash at its end."""
    bare = path.rstrip("/")
    return frozenset({bare or "/", f"{bare}/"})
