"""Paths beside the endpoint, that a server's author adds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from mcpgen_runtime import Limits, RouteRequest, RouteResponse, Server
from mcpgen_runtime.server.asgi.request import HttpRequest
from mcpgen_runtime.server.asgi.routes import Route, RouteHandler, RouteResult, Routes
from package.asgi_client import asgi
from package.server.auth.guarded import protected_settings

pytestmark = pytest.mark.processes


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[str]:
    yield "from the lifespan"


def server_of() -> Server:
    server = Server("tester", lifespan=lifespan)

    @server.tool()
    def double(number: int) -> int:
        return 2 * number

    @server.custom_route("/health")
    async def health(request: RouteRequest) -> str:
        return "well"

    @server.custom_route("/double", methods=["POST", "PUT"])
    async def post(request: RouteRequest) -> dict[str, Any]:
        result = await server.call_tool("double", {"number": request.json()})
        structured = result.structured_content
        return {"called": structured, "state": request.state, "q": request.query["q"]}

    @server.custom_route("/starlette", methods=["GET", "POST"])
    async def starlette(request: RouteRequest) -> JSONResponse:
        body = await Request(request.scope, request.receive).body()
        return JSONResponse({"body": body.decode()}, status_code=201)

    @server.custom_route("/gone")
    async def gone(request: RouteRequest) -> RouteResponse:
        return RouteResponse(b"", 410, {"Retry-After": "7"})

    @server.custom_route("/nothing")
    async def nothing(request: RouteRequest) -> None:
        return None

    @server.custom_route("/broken")
    async def broken(request: RouteRequest) -> str:
        raise LookupError("a secret")

    return server


async def test_a_text_is_plain_text_and_head_is_get() -> None:
    async with asgi(server_of()) as http:
        reply = await http.get("/health")
        assert (reply.status, reply.body) == (200, b"well")
        assert reply.fields["content-type"] == "text/plain; charset=utf-8"
        assert (await http.request("HEAD", path="/health")).status == 200


@pytest.mark.parametrize("has_mounts", [False, True])
async def test_a_handler_has_body_query_and_state_and_may_call_tools(has_mounts: bool) -> None:
    server = server_of()
    if has_mounts:
        server.mount(Server("other", lifespan=lifespan))
    async with asgi(server) as http:
        reply = await http.request("POST", b"21", "/double?q=a%20b")
        assert reply.json == {"called": {"result": 42}, "state": "from the lifespan", "q": "a b"}


async def test_a_route_may_return_a_response_of_starlette() -> None:
    async with asgi(server_of()) as http:
        reply = await http.request("POST", b"hei", "/starlette")
        assert (reply.status, reply.json) == (201, {"body": "hei"})


async def test_status_and_header_fields_are_the_handlers_own() -> None:
    async with asgi(server_of()) as http:
        reply = await http.get("/gone")
        assert (reply.status, reply.fields["retry-after"]) == (410, "7")
        assert (await http.get("/nothing")).status == 204


async def test_an_exception_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async with asgi(server_of()) as http:
        reply = await http.get("/broken")
        assert (reply.status, reply.body) == (500, b"internal error")
    assert "the route /broken failed" in caplog.text


async def test_another_method_is_refused_with_those_that_there_are() -> None:
    async with asgi(server_of()) as http:
        reply = await http.request("DELETE", path="/health")
        assert (reply.status, reply.fields["allow"]) == (405, "GET, HEAD")
        assert (await http.get("/elsewhere")).status == 404


@pytest.mark.parametrize(
    ("methods", "allowed"), [(["POST"], "POST"), (["GET", "HEAD"], "GET, HEAD")]
)
async def test_head_is_named_once_and_only_beside_get(methods: list[str], allowed: str) -> None:
    server = Server("routes")

    @server.custom_route("/own", methods)
    async def own(_request: RouteRequest) -> None:
        return None

    async with asgi(server) as http:
        reply = await http.request("DELETE", path="/own")
        assert (reply.status, reply.fields["allow"]) == (405, allowed)


async def test_hosts_and_bodies_are_checked_as_at_the_endpoint() -> None:
    async with asgi(server_of(), limits=Limits(body=10)) as http:
        assert (await http.get("/health", host="evil.example")).status == 403
        assert (await http.request("POST", b"1" * 11, "/double")).status == 413


async def test_a_route_needs_a_token_only_if_it_says_so() -> None:
    server = server_of()

    @server.custom_route("/metrics", auth=True)
    async def metrics(request: RouteRequest) -> str:
        return str(request.principal.subject)

    async with asgi(server, auth=protected_settings()) as http:
        assert (await http.get("/health")).status == 200
        assert (await http.get("/metrics")).status == 401
    with pytest.raises(ValueError, match="auth=True needs an application with auth="):
        server.asgi()


async def ok(request: RouteRequest) -> RouteResult:
    return "ok"


def test_invalid_routes_are_refused() -> None:
    server = server_of()
    plain: Any = len
    with pytest.raises(ValueError, match="has no variables"):
        server.custom_route("/users/{name}")(ok)
    with pytest.raises(ValueError, match="/health has GET already"):
        server.custom_route("/health")(ok)
    with pytest.raises(TypeError, match="expected a list of texts"):
        server.custom_route("/text", methods="GET")(ok)
    with pytest.raises(TypeError, match="expected a coroutine function"):
        server.custom_route("/plain")(plain)
    server.custom_route("/mcp")(ok)
    with pytest.raises(ValueError, match="/mcp belongs to the protocol"):
        server.asgi()
    with pytest.raises(RuntimeError, match="before run"):  # an application is checked once
        server.custom_route("/late", auth=True)


@pytest.mark.parametrize(("status", "has_length"), [(200, True), (204, False), (304, False)])
async def test_a_status_without_body_has_no_length(status: int, has_length: bool) -> None:
    server = server_of()

    @server.custom_route("/empty")
    async def empty(request: RouteRequest) -> RouteResponse:
        return RouteResponse(status=status)

    async with asgi(server) as http:
        reply = await http.get("/empty")
    assert (reply.status, "content-length" in reply.fields) == (status, has_length)


async def test_bodies_of_routes_have_the_limits_of_all_bodies() -> None:
    limits = Limits(body=90_000, bodies=100_000, body_seconds=0.02)
    async with asgi(server_of(), limits=limits) as http:
        for _ in range(3):  # the bytes of a body are returned after its response
            reply = await http.request("POST", b"x" * 60_000, "/starlette")
            assert (reply.status, len(reply.json["body"])) == (201, 60_000)
        for _ in range(3):
            reply = await http.request("POST", b"x" * 90_000, "/starlette")
            assert (reply.status, len(reply.json["body"])) == (201, 90_000)
        async with http.stream("POST", b"x", "/starlette", unfinished=True) as stream:
            await stream.end()
            assert (stream.status, stream.fields["connection"]) == (408, "close")


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("GET", "/health", {}, 200),
        ("GET", "/health", {"origin": "http://evil.example"}, 403),
        ("DELETE", "/health", {}, 405),
        ("GET", "/health", {f"x-{number}": "y" for number in range(20)}, 431),
        ("GET", "/metrics", {}, 401),
        ("DELETE", "/metrics", {}, 405),
        ("POST", "/mcp", {}, 401),
    ],
)
async def test_routes_of_a_protected_server_are_open_unless_they_say(
    method: str, path: str, fields: dict[str, str], status: int
) -> None:
    server = server_of()
    server.custom_route("/metrics", auth=True)(ok)
    async with asgi(server, auth=protected_settings(), limits=Limits(fields=10)) as http:
        assert (await http.request(method, None, path, **fields)).status == status


@pytest.mark.parametrize(
    ("response", "headers", "body"),
    [
        (
            RouteResponse("\xe4"),
            {"content-type": "text/plain; charset=utf-8", "content-length": "2"},
            b"\xc3\xa4",
        ),
        (
            RouteResponse(b"\x00"),
            {"content-type": "application/octet-stream", "content-length": "1"},
            b"\x00",
        ),
        (
            RouteResponse("<p>", content_type="text/html"),
            {"content-type": "text/html", "content-length": "3"},
            b"<p>",
        ),
        (RouteResponse(), {"content-length": "0"}, b""),
        (
            RouteResponse("a", headers={"X-Name": "\xfc"}),
            {"content-type": "text/plain; charset=utf-8", "content-length": "1", "x-name": "\xfc"},
            b"a",
        ),
        (
            RouteResponse("", headers={"content-length": "9", "content-type": "a/b"}),
            {"content-length": "9", "content-type": "a/b"},  # as for a response to `HEAD`
            b"",
        ),
    ],
)
async def test_a_response_says_its_type_and_length(
    response: RouteResponse, headers: dict[str, str], body: bytes
) -> None:
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is to be received")

    await response({}, receive, send)
    given = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    assert (sent[0]["status"], given) == (200, headers)
    assert sent[1:] == [{"type": "http.response.body", "body": body}]


async def test_the_response_to_a_client_that_left_fails_quietly() -> None:
    async def left(message: Any) -> None:
        raise OSError("the client left")

    async def receive() -> Any:
        raise AssertionError("nothing is to be received")

    await RouteResponse("a")({}, receive, left)


async def test_the_body_is_received_once_and_then_what_follows() -> None:
    async def receive() -> Any:
        return {"type": "http.disconnect"}

    head = HttpRequest({"method": "POST", "path": "/", "headers": []})
    request = RouteRequest(head, {}, receive, b"{}", None)
    assert [await request.receive() for _ in range(3)] == [
        {"type": "http.request", "body": b"{}", "more_body": False},
        {"type": "http.disconnect"},
        {"type": "http.disconnect"},
    ]


async def text_of(routes: Routes, path: str, method: str) -> str | None:
    """The text, or the allowed methods, with which a route responds."""
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is to be received")

    route = routes.find(path, method)
    if route is None:
        return None
    head = HttpRequest({"method": method, "path": path, "headers": []})
    await route.serve(head, {}, receive, send, b"", None)
    return str(sent[1]["body"].decode())


@pytest.mark.parametrize(
    ("methods", "texts"),
    [
        (["get"], ["GET", "GET", "expected GET, HEAD"]),
        (["GET", "HEAD"], ["GET", "HEAD", "expected GET, HEAD"]),
        (["HEAD"], ["expected HEAD", "HEAD", "expected HEAD"]),
        (["DELETE", "PUT"], ["expected DELETE, PUT", "expected DELETE, PUT", "DELETE"]),
    ],
)
async def test_each_method_of_a_path_has_its_route(methods: list[str], texts: list[str]) -> None:
    routes = Routes()
    for each in methods:

        def handler_of(name: str) -> RouteHandler:
            async def handle(request: RouteRequest) -> str:
                return name

            return handle

        routes.add("/path", [each], Route(handler_of(each.upper()), auth=True))
    assert [await text_of(routes, "/path", each) for each in ("GET", "HEAD", "DELETE")] == texts
    assert await text_of(routes, "/other", "GET") is None
    route = routes.find("/path", "PATCH")
    assert route is not None
    assert (route.auth, route.any_origin) == (False, False)


def test_routes_are_checked_with_the_paths_of_the_protocol() -> None:
    routes = Routes()
    for path in ("/b", "/a", "/c"):
        routes.add(path, ["GET"], Route(ok, auth=path == "/c"))
    with pytest.raises(ValueError, match=r"custom_route: /a, /b belongs to the protocol"):
        routes.check({"/a", "/b", "/d"}, has_auth=True)
    with pytest.raises(ValueError, match=r"auth=True needs an application with auth="):
        routes.check({"/d"}, has_auth=False)
    routes.check({"/d"}, has_auth=True)
    for path in ("health", "/{id}"):
        with pytest.raises(ValueError, match="begins with '/' and has no variables"):
            routes.add(path, ["GET"], Route(ok, auth=False))
    no_lists: list[Any] = ["GET", []]
    for methods in no_lists:
        with pytest.raises(TypeError, match="methods: expected a list of texts"):
            routes.add("/e", methods, Route(ok, auth=False))
    with pytest.raises(ValueError, match="/a has GET already"):
        routes.add("/a", ["PUT", "get"], Route(ok, auth=False))
    assert routes.find("/e", "GET") is None
