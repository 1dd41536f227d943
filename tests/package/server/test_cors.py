"""Pages of listed origins make requests and read the responses, and no others do."""

from __future__ import annotations

from typing import Any

import pytest

from kit.asgi_client import Http, asgi, fields_of
from kit.asgi_stream import Reply
from kit.guarded import protected_settings
from kit.web import Web
from kit.wire import SESSIONS, initialize, request, streamable
from mcpgen_runtime import RouteRequest, RouteResponse

pytestmark = pytest.mark.anyio

PAGE = "https://app.example"
OTHERS = ["https://app.example.evil.example", "http://app.example", "null", "http://127.0.0.1:8000"]
METADATA = "/.well-known/oauth-protected-resource/mcp"

FIELDS = frozenset(
    {
        *("access-control-allow-origin", "access-control-expose-headers"),
        *("access-control-allow-methods", "access-control-allow-headers"),
        "access-control-max-age",
    }
)


def served() -> Web:
    web = Web()

    @web.server.custom_route("/own", methods=["PUT"])
    async def own(_request: RouteRequest) -> str:
        return "own"

    @web.server.custom_route("/stated")
    async def stated(_request: RouteRequest) -> RouteResponse:
        return RouteResponse("own", headers={"Access-Control-Allow-Origin": "https://b.example"})

    return web


async def ask_first(http: Http, path: str, origin: str, method: str = "POST") -> Reply:
    """Send a preflight request."""
    names = "authorization,content-type,mcp-param-city,mcp-protocol-version,mcp-session-id"
    fields = {"access-control-request-method": method, "access-control-request-headers": names}
    return await http.request("OPTIONS", path=path, origin=origin, **fields)


def is_shared(reply: Reply, origin: str = PAGE) -> bool:
    """Whether a page may read a response; no response lets it send cookies."""
    assert "access-control-allow-credentials" not in reply.fields
    if not FIELDS & reply.fields.keys():
        return False
    assert reply.fields["vary"] == "origin"
    exposed = reply.fields["access-control-expose-headers"]
    assert {"Mcp-Session-Id", "WWW-Authenticate"} <= {*exposed.split(", ")}
    return reply.fields["access-control-allow-origin"] == origin


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages", METADATA, "/own", "/nowhere"])
async def test_a_preflight_of_a_listed_origin_needs_no_token(path: str) -> None:
    web = served()
    settings = protected_settings()
    async with asgi(web.server, origins=[PAGE], sse_path="/sse", auth=settings) as http:
        reply = await ask_first(http, path, PAGE)
        assert (reply.status, reply.body, is_shared(reply)) == (200, b"", True)
        assert reply.fields["access-control-allow-headers"] == "*, Authorization"
        assert {"GET", "POST", "DELETE"} <= {
            *reply.fields["access-control-allow-methods"].split(", ")
        }
        for origin in OTHERS:
            reply = await ask_first(http, path, origin)
            assert (reply.status, is_shared(reply)) == (403, False)


@pytest.mark.parametrize("answers", ["json", "sse"])
@streamable
async def test_a_listed_origin_reads_each_response(revision: str, answers: Any) -> None:
    async with asgi(Web().server, origins=["https://b.example", PAGE], answers=answers) as http:
        if revision in SESSIONS:
            reply = await http.post(initialize(revision), origin=PAGE)
            assert "mcp-session-id" in reply.fields
            assert is_shared(reply)
            await http.initialize(revision)
        call = request(revision, "tools/call", {"name": "echo", "arguments": {"text": "a"}})
        for message in (call, {**call, "method": "no/such"}, {**call, "jsonrpc": "1.0"}, b"{"):
            for _ in range(2):  # the second is served as the first one of its head
                reply = await http.post(message, origin=PAGE, **fields_of(revision, call))
                assert is_shared(reply)
        for method in ("DELETE", "PUT"):
            assert is_shared(await http.request(method, origin=PAGE))
        for origin in (None, *OTHERS):
            reply = await http.post(call, origin=origin, **fields_of(revision, call))
            assert not is_shared(reply)


async def test_a_page_reads_why_it_needs_a_token_and_where_to_get_one() -> None:
    async with asgi(Web().server, origins=[PAGE], auth=protected_settings()) as http:
        refused = await http.post(initialize(SESSIONS[-1]), origin=PAGE)
        assert (refused.status, is_shared(refused)) == (401, True)
        assert METADATA in refused.fields["www-authenticate"]
        document = await http.get(METADATA, origin=PAGE)
        assert (document.status, document.fields["access-control-allow-origin"]) == (200, "*")


async def test_a_route_that_states_who_may_read_it_is_left_alone() -> None:
    async with asgi(served().server, origins=[PAGE]) as http:
        assert is_shared(await http.request("PUT", path="/own", origin=PAGE))
        stated = await http.get("/stated", origin=PAGE)
        assert stated.fields["access-control-allow-origin"] == "https://b.example"
        assert is_shared(await http.get("/nowhere", origin=PAGE))


async def test_an_origin_that_is_served_by_default_reads_nothing() -> None:
    local = "http://localhost:3000"
    async with asgi(Web().server) as http:
        assert not is_shared(await ask_first(http, "/mcp", local))
        reply = await http.post(initialize(SESSIONS[-1]), origin=local)
        assert (reply.status, is_shared(reply)) == (200, False)


async def test_all_origins_can_be_listed() -> None:
    async with asgi(Web().server, origins=["*"]) as http:
        for origin in (PAGE, "null"):
            assert is_shared(await http.post(initialize(SESSIONS[-1]), origin=origin), origin)
