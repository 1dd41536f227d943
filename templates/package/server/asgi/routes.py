"""Routes of an application beside the endpoint of the protocol, such as `/health`.

A route has one exact path. Its handler is an async function of the request that returns a body, a
`RouteResponse`, or an ASGI application that responds, such as a response of Starlette.

Source: ASGI specification 3.0 (HTTP connection scope).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from ..._wire import encode
from ...framing.http_headers import JSON
from ...runtime.request_context import PRINCIPAL, Principal
from ..request_head import RequestHead
from .http_response import Receive, Scope, Send
from .request import HttpRequest

_TEXT, _BINARY = "text/plain; charset=utf-8", "application/octet-stream"
_HEAD, _GET = "HEAD", "GET"
_NO_HEADERS: Mapping[str, str] = {}

_logger = logging.getLogger(__name__)


class RouteResponse(msgspec.Struct, frozen=True):
    """One complete HTTP response. It is an ASGI application.

    Attributes:
        body: Text, which is sent as UTF-8, or bytes.
        status: The status code.
        headers: Header fields beyond type and length.
        content_type: Value of `Content-Type`; by default that of plain text or of bytes.
    """

    body: str | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = _NO_HEADERS
    content_type: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. Errors of a disconnected client are ignored."""
        text = isinstance(self.body, str)
        body = self.body.encode() if isinstance(self.body, str) else self.body
        kind = self.content_type or (_TEXT if text else _BINARY)
        fields = dict(self.headers)
        if self.status not in (204, 304):  # these have no length
            fields = {"content-length": str(len(body)), **fields}
        if body:
            fields = {"content-type": kind, **fields}
        headers = [
            (name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()
        ]
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        except OSError:
            return


AsgiResponse: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
RouteResult: TypeAlias = (
    str | bytes | Mapping[str, Any] | list[Any] | RouteResponse | AsgiResponse | None
)
"""The result of a handler: text, bytes, JSON, a response, or nothing (status 204)."""


class RouteRequest(RequestHead):
    """An HTTP request to a route, with its body.

    Args:
        received: The head of the request.
        scope: The ASGI connection scope.
        receive: The ASGI receive callable, after the body.
        body: The whole body.
        state: The value that the lifespan of the server yielded.

    Attributes:
        scope: The ASGI connection scope.
        body: The whole body, within `Limits.body`.
        state: The value that the lifespan of the server yielded.
    """

    def __init__(
        self, received: HttpRequest, scope: Scope, receive: Receive, body: bytes, state: Any
    ) -> None:
        super().__init__(received)
        self.scope = scope
        self.body = body
        self.state = state
        self._receive = receive
        self._is_body_received = False

    @property
    def principal(self) -> Principal:
        """The principal of the request, if the route has `auth=True`."""
        return PRINCIPAL.get()

    def json(self) -> Any:
        """Decode the body as JSON.

        Raises:
            msgspec.DecodeError: The body is not JSON.
        """
        return msgspec.json.decode(self.body)

    async def receive(self) -> MutableMapping[str, Any]:
        """ASGI receive callable that repeats the body first, for other ASGI libraries."""
        if self._is_body_received:
            return await self._receive()
        self._is_body_received = True
        return {"type": "http.request", "body": self.body, "more_body": False}


RouteHandler: TypeAlias = Callable[[RouteRequest], Awaitable[RouteResult]]
_FAILED = RouteResponse("internal error", 500)
_NOTHING = RouteResponse(status=204)


class Route(msgspec.Struct, frozen=True):
    """A handler of the requests to a path.

    Attributes:
        handler: Handles the requests.
        auth: Whether requests need an access token.
        any_origin: Whether pages of all origins may make requests.
    """

    handler: RouteHandler
    auth: bool
    any_origin: bool = False

    async def serve(
        self,
        head: HttpRequest,
        scope: Scope,
        receive: Receive,
        send: Send,
        body: bytes,
        state: Any,
    ) -> None:
        """Send the response of the handler; an exception is logged, and gets status 500."""
        request = RouteRequest(head, scope, receive, body, state)
        response: AsgiResponse
        try:
            response = _response_of(await self.handler(request))
        except Exception:
            _logger.exception("the route %s failed", request.path)
            response = _FAILED
        await response(request.scope, request.receive, send)


class Routes:
    """The routes of one server, by path and HTTP method."""

    def __init__(self) -> None:
        self._routes: dict[str, dict[str, Route]] = {}

    def check(self, own: Collection[str], has_auth: bool) -> None:
        """See `OtherPaths`."""
        if taken := self._routes.keys() & set(own):
            raise ValueError(f"custom_route: {', '.join(sorted(taken))} belongs to the protocol")
        routes = (route for methods in self._routes.values() for route in methods.values())
        if not has_auth and any(route.auth for route in routes):
            raise ValueError("custom_route: auth=True needs an application with auth=")

    def find(self, path: str, method: str) -> Route | None:
        """The route of a request; `HEAD` is served as `GET`. `None` for other paths.

        For a method that the path does not have, the route responds with status 405.
        """
        methods = self._routes.get(path)
        if methods is None:
            return None
        route = methods.get(method) or (methods.get(_GET) if method == _HEAD else None)
        return route or Route(_refuse_method(methods), auth=False)

    def add(self, path: str, methods: Collection[str], route: Route) -> None:
        """Add a route.

        Raises:
            TypeError: `methods` is a string instead of a collection, or is empty.
            ValueError: `path` is not a path or has variables, or the path has a route for one of
                the methods already.
        """
        if not path.startswith("/") or "{" in path:
            expected = "a path that begins with '/' and has no variables"
            raise ValueError(f"custom_route: expected {expected}, got {path!r}")
        if isinstance(methods, str) or not methods:
            raise TypeError(f"custom_route: methods: expected a list of texts, got {methods!r}")
        added = {method.upper() for method in methods}
        if taken := added & self._routes.get(path, {}).keys():
            raise ValueError(f"custom_route: {path} has {', '.join(sorted(taken))} already")
        self._routes.setdefault(path, {}).update(dict.fromkeys(sorted(added), route))


def _refuse_method(methods: Collection[str]) -> RouteHandler:
    """A handler that responds with status 405 and the allowed methods."""

    async def refuse(request: RouteRequest) -> RouteResponse:
        added = (_HEAD,) if _GET in methods and _HEAD not in methods else ()
        allowed = ", ".join((*methods, *added))
        return RouteResponse(f"expected {allowed}", 405, {"Allow": allowed})

    return refuse


def _response_of(result: RouteResult) -> AsgiResponse:
    """The response for the result of a handler."""
    if result is None:
        return _NOTHING
    if isinstance(result, str | bytes):
        return RouteResponse(result)
    if callable(result):
        return result
    return RouteResponse(encode(result), content_type=JSON)
