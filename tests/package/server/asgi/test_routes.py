"""Paths beside the endpoint, that a server's author adds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from mcp_protocol import Limits, RouteRequest, RouteResponse, Server
from mcp_protocol.server.asgi.routes import RouteResult
from package.asgi_client import asgi
from package.server.auth.guarded import protected_settings


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
