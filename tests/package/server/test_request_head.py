"""Attributes of a context: the HTTP request and the session that a call belongs to."""

from __future__ import annotations

import json

import pytest

from kit.asgi_client import asgi
from kit.live import server_with
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, SESSIONS, every
from mcpgen_runtime import Context, Server
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.anyio


def telling_server() -> Server:
    async def request(ctx: Context) -> list[str]:
        http = ctx.http_request
        if http is None:
            return []
        return [
            http.method,
            http.path,
            http.headers["X-Tenant"],
            http.headers.get("x-none", "none"),
            repr(http.query["none"]),
            http.query["debug"],
            http.query_string,
            *(f"{name}={value}" for name, value in http.cookies.items()),
            str(http.client),
            repr(http) + repr(http.headers)[:9],
        ]

    async def session(ctx: Context) -> str:
        return ctx.session_id or "none"

    return server_with(request, session)


@pytest.mark.parametrize("revision", [SESSIONS[0], PER_REQUEST[-1]])
async def test_a_tool_reads_headers_query_cookies_and_client_address(revision: str) -> None:
    async with asgi(telling_server()) as http:
        http.fields["x-tenant"] = "acme"
        http.fields["cookie"] = 'theme="dark"; id=a=b; theme=light'
        http.scope["query_string"] = b"debug=0&none=&debug=1%20%2B"
        http.scope["client"] = ("192.0.2.7", 4711)
        if revision in SESSIONS:
            await http.initialize(revision)
        reply = await http.ask(revision, "tools/call", {"name": "request"})
    assert json.loads(reply.result["content"][0]["text"]) == [
        "POST",
        "/mcp",
        "acme",
        "none",
        "''",
        "1 +",
        "debug=0&none=&debug=1%20%2B",
        "theme=dark",
        "id=a=b",
        "('192.0.2.7', 4711)",
        "<RequestHead POST /mcp><HeaderFi",
    ]


async def test_without_http_there_is_no_http_request() -> None:
    async with connected(telling_server(), revision=ALL[-1]) as pair:
        result = await pair.client.call_tool("request")
    assert result.structured_content in ([], {"result": []})


@every
async def test_a_session_over_another_transport_has_an_id_of_its_own(revision: str) -> None:
    server = telling_server()
    ids: list[list[str]] = []
    for _ in range(2):
        async with connected(server, revision=revision) as pair:
            results = [await pair.client.call_tool("session") for _ in range(2)]
            ids.append([result.content[0].text for result in results])
    first, second = ids
    assert first[0] == first[1]
    assert (first[0] != second[0]) is (revision in HANDSHAKE)
    assert (first[0] == "none") is (revision not in HANDSHAKE)
