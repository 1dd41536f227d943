"""Paths beside the endpoint, that a server's author adds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from kit.asgi_client import asgi
from kit.guarded import protected_settings
from mcpgen_runtime import Limits, RouteRequest, RouteResponse, Server

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
        assert (await http.get("/nothing")).status == 204
        assert (await http.get("/elsewhere")).status == 404


@pytest.mark.parametrize("has_mounts", [False, True])
async def test_a_handler_has_body_query_and_state_and_may_call_tools(has_mounts: bool) -> None:
    server = server_of()
    if has_mounts:
        server.mount(Server("other", lifespan=lifespan))
    async with asgi(server) as http:
        reply = await http.request("POST", b"21", "/double?q=a%20b")
        assert reply.json == {"called": {"result": 42}, "state": "from the lifespan", "q": "a b"}


async def test_an_exception_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async with asgi(server_of()) as http:
        reply = await http.get("/broken")
        assert (reply.status, reply.body) == (500, b"internal error")
    assert "the route /broken failed" in caplog.text


async def ok(request: RouteRequest) -> str:
    return "ok"


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("GET", "/health", {}, 200),
        ("GET", "/health", {"host": "evil.example"}, 403),
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

    @server.custom_route("/metrics", auth=True)
    async def metrics(request: RouteRequest) -> str:
        return str(request.principal.subject)

    async with asgi(server, auth=protected_settings(), limits=Limits(fields=10)) as http:
        assert (await http.request(method, None, path, **fields)).status == status


async def test_bodies_of_routes_have_the_limits_of_all_bodies() -> None:
    limits = Limits(body=90_000, bodies=100_000, body_seconds=0.02)
    async with asgi(server_of(), limits=limits) as http:
        for size in (60_000, 90_000) * 3:  # the bytes of a body are returned after its response
            reply = await http.request("POST", b"x" * size, "/starlette")
            assert (reply.status, len(reply.json["body"])) == (201, size)
        assert (await http.request("POST", b"x" * 90_001, "/starlette")).status == 413
        async with http.stream("POST", b"x", "/starlette", unfinished=True) as stream:
            await stream.end()
            assert (stream.status, stream.fields["connection"]) == (408, "close")


TEXT, BYTES = "text/plain; charset=utf-8", "application/octet-stream"


@pytest.mark.parametrize(
    ("response", "status", "fields", "body"),
    [
        (RouteResponse("\xe4"), 200, {"content-type": TEXT, "content-length": "2"}, b"\xc3\xa4"),
        (RouteResponse(b"\0"), 200, {"content-type": BYTES, "content-length": "1"}, b"\0"),
        (RouteResponse(), 200, {"content-length": "0"}, b""),
        (RouteResponse(status=204), 204, {}, b""),
        (RouteResponse(status=304), 304, {}, b""),
        (
            RouteResponse("a", 410, content_type="text/html", headers={"X-Name": "\xfc"}),
            410,
            {"content-type": "text/html", "content-length": "1", "x-name": "\xfc"},
            b"a",
        ),
        (
            RouteResponse("", headers={"content-length": "9", "content-type": "a/b"}),
            200,
            {"content-length": "9", "content-type": "a/b"},  # as for a response to `HEAD`
            b"",
        ),
    ],
)
async def test_a_response_says_its_type_and_length(
    response: RouteResponse, status: int, fields: dict[str, str], body: bytes
) -> None:
    server = Server("routes")

    @server.custom_route("/own")
    async def own(request: RouteRequest) -> RouteResponse:
        return response

    async with asgi(server) as http:
        reply = await http.get("/own")
        assert (reply.status, reply.fields, reply.body) == (status, fields, body)
        async with http.stream("GET", None, "/own", begun=False) as stream:
            stream.disconnect()  # which fails quietly
            await stream.finished.wait()


@pytest.mark.parametrize(
    ("methods", "bodies", "allow"),
    [
        (["get"], ["GET", "GET", None], "GET, HEAD"),
        (["GET", "HEAD"], ["GET", "HEAD", None], "GET, HEAD"),
        (["HEAD"], [None, "HEAD", None], "HEAD"),
        (["DELETE", "PUT"], [None, None, "DELETE"], "DELETE, PUT"),
    ],
)
async def test_each_method_of_a_path_has_its_route(
    methods: list[str], bodies: list[str | None], allow: str
) -> None:
    server = Server("routes")
    for each in methods:

        async def handle(request: RouteRequest, name: str = each.upper()) -> str:
            return name

        server.custom_route("/path", [each])(handle)
    async with asgi(server) as http:
        for method, body in zip(("GET", "HEAD", "DELETE"), bodies, strict=True):
            reply = await http.request(method, path="/path")
            if body is None:
                assert (reply.status, reply.fields["allow"]) == (405, allow)
            else:
                assert (reply.status, reply.body.decode()) == (200, body)


@pytest.mark.parametrize(
    ("path", "methods", "handler", "error"),
    [
        ("/users/{name}", ["GET"], ok, "begins with '/' and has no variables"),
        ("health", ["GET"], ok, "begins with '/' and has no variables"),
        ("/health", ["PUT", "get"], ok, "/health has GET already"),
        ("/text", "GET", ok, "expected a list of texts"),
        ("/text", [], ok, "expected a list of texts"),
        ("/plain", ["GET"], len, "expected a coroutine function"),
    ],
)
def test_invalid_routes_are_refused(path: str, methods: Any, handler: Any, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        server_of().custom_route(path, methods)(handler)


def test_routes_are_checked_with_the_paths_of_the_protocol() -> None:
    server = server_of()
    for path in ("/mcp", "/sse"):
        server.custom_route(path)(ok)
    with pytest.raises(ValueError, match="/mcp belongs to the protocol"):
        server.asgi("/mcp")
    with pytest.raises(ValueError, match="/mcp, /sse belongs to the protocol"):
        server.asgi(sse_path="/sse")
    protected = server_of()
    protected.custom_route("/metrics", auth=True)(ok)
    with pytest.raises(ValueError, match="auth=True needs an application with auth="):
        protected.asgi()
    with pytest.raises(RuntimeError, match="before run"):  # an application is checked once
        protected.custom_route("/late", auth=True)


async def test_a_handler_may_receive_what_follows_the_body() -> None:
    server, received = Server("routes"), list[Any]()

    @server.custom_route("/own", ["POST"])
    async def own(request: RouteRequest) -> None:
        received.extend([await request.receive(), await request.receive()])

    async with asgi(server) as http, http.stream("POST", b"{}", "/own", begun=False) as stream:
        stream.disconnect()
        await stream.finished.wait()
    assert received == [
        {"type": "http.request", "body": b"{}", "more_body": False},
        {"type": "http.disconnect"},
    ]
