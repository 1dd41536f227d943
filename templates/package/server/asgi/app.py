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
from collections.abc import Awaitable, Collection, Mapping, MutableMapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import anyio

from ...channel import TooLong
from ...errors import ConnectionClosedError
from ...facts import Revisions, has_streamable_http
from ...framing.sse import MEDIA_TYPE, EventDecoder
from ...protocol import jsonrpc
from ...runtime.concurrency import outcome
from ...runtime.request_context import NETWORK
from ...runtime.task_scope import TaskScope, running_loop, scope_type
from ...runtime.tracing import Trace, trace_of
from .. import planned_calls
from ..request_head import HTTP_REQUEST
from ..serving import Service
from . import cors, http_response, plain_calls
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
from .http_response import SHUTTING_DOWN, HttpResponse
from .plain_calls import Message, PlainEndpoint, PlainService, Post
from .quotas import Quotas, starts_work
from .request import (
    SHORT_BODY,
    AcceptedHeads,
    Disconnected,
    HttpRequest,
    OtherPath,
    OtherPaths,
    Receive,
    RejectedBody,
    RequestBodies,
    Scope,
    Send,
    check_length,
    check_post,
    network_of,
    whole_body,
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
        state = self._state()
        send = state.quotas.unread.count(request, send)
        if self.settings.origins is not None:
            origin = self._validator.listed_origin(request)
            send = send if origin is None else cors.share_responses(send, origin)
        may_be_json = state.heads.find(request)
        first: Awaitable[Message] | None = None
        if may_be_json and state.may_plan_unread and state.background.running:
            message, first = plain_calls.begin_receiving(receive)
            if message is not None:
                state.quotas.in_flight += 1
                try:
                    served = state.serve_planned((request, receive, send), whole_body(message))
                    if served is not None and await served:
                        return
                finally:
                    state.quotas.in_flight -= 1
                first = outcome(message, None)
                may_be_json = False  # the call has no plan
        route: OtherPath | None = None
        is_sse, refused = False, None
        if may_be_json is None:
            is_sse, route = self._find_route(request, state)
            refused = self._refuse(request, state, route, is_sse)
        if refused is None and not state.background.running:
            refused = await self._start_lifespan(state)  # opens the store of proofs
        if refused is None and state.authenticator is not None and (route is None or route.auth):
            refused = await state.authenticator.authenticate(request)
        if refused is not None:
            await state.bodies.refuse(refused, request, receive, send)
            return
        self._service.use_state(state.background.state)
        HTTP_REQUEST.set(request)
        try:
            if route is not None:
                await self._serve_route(route, request, state, scope, receive, send)
            elif request.method == "POST" and not is_sse:
                await self._post(request, state, receive, send, may_be_json, first)
            else:
                await self._serve_other_method(request, state, receive, send)
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
        if loop in self._states and not self._states[loop].over:
            return self._states[loop]
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

    def _find_route(
        self, request: HttpRequest, state: LifespanState
    ) -> tuple[bool, OtherPath | None]:
        """Whether a request is for HTTP+SSE, and the route that matches the request, if any."""
        route: OtherPath | None = None
        if self._routes is not None:
            route = self._routes.find(request.path, request.method)
        return state.sse is not None and state.sse.serves(request.path), route

    def _refuse(
        self, request: HttpRequest, state: LifespanState, route: OtherPath | None, is_sse: bool
    ) -> HttpResponse | None:
        """The refusal of a request because of its head; `None` to accept the request.

        Args:
            request: The request.
            state: The state of the event loop.
            route: The route that matches the request, if any.
            is_sse: Whether the request is for HTTP+SSE.
        """
        refused = self._validator.check(request, any_origin=route is not None and route.any_origin)
        refused = refused or check_length(request)
        if refused is not None:
            return refused
        if cors.is_preflight(request) and self._validator.listed_origin(request) is not None:
            return cors.PREFLIGHT
        if route is None and not is_sse:
            if request.path not in self._paths:
                if state.authenticator is not None:
                    document = state.authenticator.metadata(request)
                    if document is not None:
                        return document
                text = f"no such path; the endpoint is {self.endpoint_path}"
                return http_response.refusal(404, text)
            if request.method not in ("POST", "GET", "DELETE"):
                return http_response.not_allowed(
                    "POST, GET, DELETE" if self._has_sessions(state) else "POST"
                )
        limit = self.settings.limits.fields
        if request.count > limit:
            return http_response.refusal(
                431, f"expected at most {limit} header fields (Limits.fields)"
            )
        return None

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
        rejected: bytes | RejectedBody | None = None
        with state.new_scope() as scope:
            rejected = body = await state.bodies.read(scope, receive)
            if isinstance(body, bytes):
                try:
                    lifespan_state = self._service.use_state(state.background.state)
                    await route.serve(request, asgi_scope, receive, send, body, lifespan_state)
                finally:
                    state.bodies.release(body)
        if not isinstance(rejected, bytes):
            rejected = rejected or state.bodies.rejection(scope)
            await self._reject(rejected, request, state, receive, send)

    def _has_sessions(self, state: LifespanState) -> bool:
        return state.sessions is not None and not self.settings.stateless

    async def _start_lifespan(self, state: LifespanState) -> HttpResponse | None:
        """Enter the lifespan; returns the refusal of the request if the lifespan fails."""
        try:
            await state.background.start()
        except Exception:
            logger.exception("the lifespan failed")
            return http_response.unavailable("the server could not be started; its log says why")
        return None

    async def _serve_other_method(
        self, request: HttpRequest, state: LifespanState, receive: Receive, send: Send
    ) -> None:
        """Serve GET, DELETE, and the endpoints of HTTP+SSE, within the limit of streams."""
        if request.method != "GET":
            await self._dispatch(request, state, receive, send)
            return
        streams = state.quotas.streams
        if not streams.enter():  # each GET opens a stream
            await http_response.over_limit("streams").send(send)
            return
        try:
            await self._dispatch(request, state, receive, send)
        finally:
            streams.leave()

    async def _dispatch(
        self, request: HttpRequest, state: LifespanState, receive: Receive, send: Send
    ) -> None:
        stateless, sessions = state.stateless, state.sessions
        if state.sse is not None and state.sse.serves(request.path):
            await state.sse.serve(request, receive, send)
        elif (
            sessions is None
            or not self._has_sessions(state)
            or (stateless is not None and stateless.headers.names_revision(request))
        ):
            await http_response.not_allowed("POST").send(send)
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
        may_be_json: bool | None,
        first: Awaitable[Message] | None,
    ) -> None:
        """Read the body of a POST and serve its messages.

        Args:
            request: The request.
            state: The state of the event loop.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            may_be_json: Whether a plan may serve the call; `None` if the head was not checked yet.
            first: Returns the first part of the body, if `receive` was called already.
        """
        if state.trace is not None:
            send = _TracedSend(send, state.trace)
        bodies, quotas = state.bodies, state.quotas
        if may_be_json is None:
            refused = check_post(request, self.settings.limits)
            if refused is not None:
                await bodies.refuse(refused, request, receive, send)
                return
            state.heads.add(request)
        rejected: bytes | RejectedBody | None = None
        with state.new_scope() as scope:
            rejected = body = await bodies.read(scope, receive, first)
            if isinstance(body, bytes):
                quotas.in_flight += 1
                try:
                    served: Awaitable[bool] | None = None
                    if may_be_json:
                        served = state.serve_planned((request, receive, send), body, scope)
                    if served is None or not await served:
                        await self._serve(request, state, body, receive, send, scope)
                finally:
                    quotas.in_flight -= 1
                    bodies.release(body)
        if not isinstance(rejected, bytes):
            await self._reject(rejected or bodies.rejection(scope), request, state, receive, send)

    def _serve(
        self,
        request: HttpRequest,
        state: LifespanState,
        body: bytes,
        receive: Receive,
        send: Send,
        scope: anyio.CancelScope,
    ) -> Awaitable[object]:
        """Pass a message to the endpoint that serves its revision."""
        if state.trace is not None:
            state.trace.record_received(body)
        is_batch = jsonrpc.is_batch(body)
        messages = jsonrpc.parse_batch(body) if is_batch else (jsonrpc.parse(body),)
        message = None if is_batch else messages[0]
        if state.authenticator is not None:
            refused = state.authenticator.authorize(request, messages)
            if refused is not None:
                return refused.send(send)
        stateless, sessions = state.stateless, state.sessions
        if message is None or starts_work(message):
            quotas = state.quotas
            if not quotas.has_room(0):
                return http_response.over_limit("in_flight").send(send)
            if not quotas.unread.has_room(request):
                return http_response.over_limit("unread").send(send)
        served: Awaitable[None]
        if isinstance(message, jsonrpc.Request) and planned_calls.ENABLED:
            response = state.serve_plainly((request, receive, send), message, scope)
            if response is not None:
                return response
        values = None if stateless is None else stateless.headers.values_of(message)
        if stateless is not None and (
            sessions is None or stateless.headers.applies(request, message, values)
        ):
            served = stateless.post(request, message, values, receive, send, scope)
        else:
            assert sessions is not None  # otherwise the path would not exist
            served = sessions.post(request, message, messages, body, receive, send, scope)
        return served

    async def _reject(
        self,
        rejected: RejectedBody,
        request: HttpRequest,
        state: LifespanState,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the refusal of a body that was not accepted."""
        if rejected.full:
            state.free_memory()
        if rejected.unread:
            await state.bodies.refuse(rejected.response, request, receive, send, partly_read=True)
        else:
            await rejected.response.send(send)


class LifespanState:
    """The state of an application on one event loop.

    Several loops may run the same application, one after the other, as with test clients. Events
    and locks of one loop are of no use in the next, so each loop has a state of its own.

    Args:
        service: The service of the server.
        settings: The HTTP settings.

    Attributes:
        over: Whether the lifespan has ended.
        new_scope: Makes the cancel scope of a request.
        quotas: The amounts that all clients use together.
        heads: The heads of POSTs that were accepted last.
        bodies: The request bodies being read.
        background: Runs tasks that no request owns.
        stateless: Serves the revisions without sessions, if there are any.
        shared: The worker of the shared state, if processes share state.
        sessions: Serves the revisions with sessions, if there are any.
        plain_endpoints: `sessions` and `stateless`, unless they are `None`.
        sse: Serves HTTP+SSE, if it is enabled.
        authenticator: Authenticates and authorizes requests, if the application is protected.
        trace: Records the messages, if tracing is enabled.
        may_plan_unread: Whether calls may be served by their plans before the request is checked.
    """

    def __init__(self, service: Service, settings: ServerHttpSettings) -> None:
        self.over = False
        self.new_scope = scope_type()
        self.quotas = Quotas(settings.limits)
        self.heads = AcceptedHeads(settings.limits, settings.answers)
        self.bodies = RequestBodies(settings.limits)
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
        shared = None if self.shared is None else self.sessions
        self._load = None if shared is None else shared.load
        endpoints: tuple[PlainEndpoint | None, ...] = (self.sessions, self.stateless)
        self.plain_endpoints = [each for each in endpoints if each is not None]
        self.sse = sse_endpoints(service, settings, self.quotas, self.bodies)
        self.authenticator = authentication_of(
            service, settings.protected, settings.path, self.shared
        )
        self.trace = trace_of("server", service.secret_names_of)
        if self.authenticator is not None:
            self.quotas.streams.deadline = self.authenticator.deadline
            if self.sse is not None:
                self.sse.authenticator = self.authenticator
        self.may_plan_unread = self.authenticator is None and self.trace is None
        self._service = service
        self._longest = min(SHORT_BODY, settings.limits.body)
        self._drain_seconds = service.drain
        self._draining = False

    def serve_planned(
        self, post: Post, body: bytes | None, scope: anyio.CancelScope | None = None
    ) -> Awaitable[bool] | None:
        """Serve a call by its plan; `None` for a request without a plan.

        Args:
            post: The POST.
            body: The body, if it has arrived.
            scope: The scope of the caller, if there is one.
        """
        if (
            body is None
            or self.trace is not None
            or not planned_calls.ENABLED
            or len(body) > self._longest
            or not self.quotas.has_room(0)
            or not self.quotas.unread.has_room(post[0])
        ):
            return None
        call = planned_calls.read_call(body)
        if call is None:
            return None
        if self.authenticator is not None and self.authenticator.authorize(post[0], ()) is not None:
            return None  # a tool with a plan needs only the scopes of every request
        if self._load is not None and (loading := self._load(post[0])) is not None:
            return self._serve_loaded(loading, post, body, scope)
        for endpoint in self.plain_endpoints:
            admitted = endpoint.admit(post[0], call)
            if admitted is not None:
                break
        else:
            return None
        stated, session = admitted
        plan = self._service.call_plan(stated.revision, call.params.name)
        if plan is None:
            return None
        if plan.looks:
            self._service.use_state(self.background.state)
            HTTP_REQUEST.set(post[0])
            NETWORK.set(network_of(post[0].client) if session is None else session.network)
        served = PlainService(endpoint, post, stated, session, scope, call, body)
        running = plan.run(call.id, call.params.arguments, served)
        if plan.suspends and scope is None:
            return served.serve_in(self.new_scope, running)
        return served.serve(running)

    async def _serve_loaded(
        self, loading: Awaitable[Any], post: Post, body: bytes, scope: anyio.CancelScope | None
    ) -> bool:
        """Load the session of a call and serve the call by its plan; whether it was served."""
        post[0].session = await loading
        served = self.serve_planned(post, body, scope)
        return served is not None and await served

    def serve_plainly(
        self, post: Post, message: jsonrpc.Request, scope: anyio.CancelScope
    ) -> Awaitable[object] | None:
        """Respond to a POST the plain way; `None` if an endpoint has to serve it."""
        handle = self._service.application.handle
        for endpoint in self.plain_endpoints:
            response = plain_calls.serve_plainly(endpoint, handle, post, message, scope)
            if response is not None:
                return response
        return None

    def free_memory(self) -> None:
        """Free memory for request bodies: cancel an abandoned call, end the largest stream.

        Calls without a session are watched from now on, so that disconnects end them at once.
        """
        if self.stateless is not None:
            self.stateless.watch_all()
        if self.sessions is not None:
            self.sessions.posts.cancel_first_abandoned("bodies")
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
                tasks.start_soon(self.stateless.fail_all, SHUTTING_DOWN)
            if self.sessions is not None:
                tasks.start_soon(self.sessions.posts.fail_all, SHUTTING_DOWN)
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
