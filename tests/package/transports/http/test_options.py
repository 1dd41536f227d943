"""Options of a client's HTTP requests, and errors raised before a request is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator
from typing import Any

import anyio
import httpx2
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import (
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    MissingExtraError,
    ResponseLostError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.http_script import Script, connect_scripted, discover_result, initialize_result
from package.http_server import Asked, HttpServer, Reply, unused_port
from package.wire import PER_REQUEST, SESSIONS, STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

NEWEST = STREAMABLE[-1]


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with unused_port() as port:
        yield port


@pytest.fixture(params=STREAMABLE)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def test_fields_of_the_user_are_on_every_request(revision: str) -> None:
    headers = {"Authorization": "Bearer x", "X-Own": "a"}
    async with connect_scripted(Script(revision, "s"), headers=headers) as (client, server):
        await client.list_tools()
    assert {asked.fields["authorization"] for asked in server.asked} == {"Bearer x"}
    assert {asked.fields["x-own"] for asked in server.asked} == {"a"}


@pytest.mark.parametrize("awaited", [False, True])
async def test_fields_may_be_made_for_each_request(revision: str, awaited: bool) -> None:
    made: list[str] = []

    def make() -> dict[str, str]:
        made.append(str(len(made)))
        return {"X-Number": made[-1]}

    async def make_slowly() -> dict[str, str]:
        await anyio.lowlevel.checkpoint()
        return make()

    headers = make_slowly if awaited else make
    async with connect_scripted(Script(revision), headers=headers) as (client, server):
        await client.list_tools()
        await client.list_tools()
    assert sorted(asked.fields["x-number"] for asked in server.asked) == sorted(made)


async def test_fields_of_the_protocol_go_first(revision: str) -> None:
    headers = {"accept": "text/plain", "MCP-PROTOCOL-VERSION": "x", "content-type": "text/plain"}
    async with connect_scripted(Script(revision), headers=headers) as (client, server):
        await client.list_tools()
    (asked,) = server.of("tools/list")
    assert "application/json" in asked.fields["accept"]
    assert asked.fields["content-type"] == "application/json"
    if revision in PER_REQUEST:
        assert asked.fields["mcp-protocol-version"] == revision
    names = [name.lower() for name, _ in asked.pairs]
    assert len(names) == len(set(names))


async def test_errors_of_the_headers_function_propagate_unchanged(revision: str) -> None:
    broken = False

    def make() -> dict[str, str]:
        if broken:
            raise KeyError("no token")
        return {}

    async with connect_scripted(Script(revision), headers=make) as (client, _):
        broken = True
        with pytest.raises(KeyError, match="no token"):
            await client.list_tools()
        broken = False
        await client.list_tools()
        broken = True
    with pytest.raises(KeyError, match="no token"):
        async with connect_scripted(Script(revision), headers=make):
            raise AssertionError("it was opened")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "\u4e16", "a\0"])
async def test_a_field_that_cannot_be_sent_is_refused(value: str) -> None:
    with pytest.raises(LocalProtocolError):
        async with connect_scripted(Script(NEWEST), headers={"X-Own": value}):
            raise AssertionError("it was opened")


async def test_an_authentication_of_httpx2_is_asked_each_time(revision: str) -> None:
    class Signing(httpx2.Auth):
        def auth_flow(
            self, request: httpx2.Request
        ) -> Generator[httpx2.Request, httpx2.Response, None]:
            request.headers["X-Signed"] = "yes"
            yield request

    async with connect_scripted(Script(revision, "s"), auth=Signing()) as (client, server):
        await client.list_tools()
    assert {asked.fields["x-signed"] for asked in server.asked} == {"yes"}


async def test_a_client_of_ones_own_makes_the_requests_and_stays_open(revision: str) -> None:
    async with httpx2.AsyncClient(headers={"X-Client": "mine"}, timeout=0.5) as own:
        async with connect_scripted(Script(revision), http_client=own) as (client, server):
            await client.list_tools()
        assert not own.is_closed
    assert {asked.fields["x-client"] for asked in server.asked} == {"mine"}


async def test_an_application_of_this_process_can_be_the_server(revision: str) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part["more_body"]
        message = json.loads(body) if body else {}
        members: dict[str, Any] = {"tools": []}
        if message.get("method") == "initialize":
            members = initialize_result(revision)
        elif message.get("method") == "server/discover":
            members = discover_result(revision)
        status = 200 if "id" in message else 202 if message else 405
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": members}
        out = json.dumps(answer).encode() if status == 200 else b""
        head = [(b"content-type", b"application/json")] if out else []
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": out})

    transport = httpx2.ASGITransport(application)
    async with (
        httpx2.AsyncClient(transport=transport) as own,
        connect("http://app/mcp", http_client=own, revision=revision) as client,
    ):
        assert await client.list_tools() == []


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed(revision: str, status: int) -> None:
    script = Script(revision, "s")

    async def moved(asked: Asked, reply: Reply) -> None:
        if asked.target == "/mcp":
            await reply.whole(status, b"", Location="/mcp/")
        else:
            await script(asked, reply)

    async with HttpServer(moved) as server, connect(server.url, revision=revision) as client:
        await client.list_tools()
        await client.list_tools()
    targets = [asked.target for asked in server.of("tools/list")]
    assert targets[-1] == "/mcp/"
    assert targets.count("/mcp") == (2 if status == 307 else 0)
    assert len({asked.body for asked in server.of("tools/list")}) == 2


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:1/mcp", "https://127.0.0.1/mcp", "//elsewhere.invalid/mcp", "", "http://["],
)
async def test_credentials_follow_no_redirect_to_another_origin(location: str) -> None:
    async def moved(asked: Asked, reply: Reply) -> None:
        await reply.whole(308, b"", Location=location)

    async with HttpServer(moved) as server:
        with pytest.raises(HttpStatusError) as caught:
            async with connect(server.url, headers={"Authorization": "Bearer x"}):
                raise AssertionError("it was opened")
    assert caught.value.status == 308
    assert location in str(caught.value)


async def test_redirects_in_a_circle_come_to_an_end() -> None:
    async def moved(asked: Asked, reply: Reply) -> None:
        number = int(asked.target.partition("?")[2] or 0)
        await reply.whole(307, b"", Location=f"/mcp?{number + 1}")

    async with HttpServer(moved) as server:
        with pytest.raises(ConnectFailedError, match="redirects"):
            async with connect(server.url, revision=NEWEST):
                raise AssertionError("it was opened")


@pytest.mark.parametrize("revision", [None, SESSIONS[-1], PER_REQUEST[-1]])
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/mcp",
        "http://user:pw@127.0.0.1:{port}/mcp?key=secret",
        "http://nowhere.invalid/mcp",
        "http://",
        "http://[broken",
        "http://127.0.0.1:99999/",
        "HTTP://127.0.0.1:{port}/",
    ],
)
async def test_no_connection_is_a_readable_error_at_once(
    url: str, revision: str | None, free_port: int
) -> None:
    url = url.replace("{port}", str(free_port))
    with pytest.raises(ConnectFailedError, match="no connection to") as caught:
        async with connect(url, revision=revision):
            raise AssertionError("it was opened")
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("text", ["server.py", "ftp://host/", "localhost:80", b"http://host/"])
async def test_a_text_that_is_no_url_is_a_mistake(text: Any) -> None:
    with pytest.raises(TypeError, match=r"a command as a list of words.*; a URL that begins"):
        async with connect(text):
            raise AssertionError("it was opened")


@pytest.mark.parametrize(
    "option",
    [{"transport": "sse"}, {"headers": {}}, {"http_client": object()}, {"auth": ("a", "b")}],
)
async def test_options_for_http_are_refused_for_other_targets(option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="only for a URL"):
        async with connect(["server"], **option):
            raise AssertionError("it was opened")


async def test_the_library_that_is_missing_is_named(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "aiohttp" if anyio_backend == "asyncio" else "httpx2"
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"pip install {library}"):
        async with connect("http://127.0.0.1/mcp"):
            raise AssertionError("it was opened")


@pytest.mark.requirement("http.session-id-sent")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_fields_of_the_user_do_not_replace_those_of_the_session(revision: str) -> None:
    headers = {"Mcp-Session-Id": "forged"}
    async with connect_scripted(Script(revision, "s"), headers=headers) as (client, server):
        await client.list_tools()
        await server.until("GET")
    later = [asked for asked in server.asked if asked.what != "initialize"]
    assert {asked.fields["mcp-session-id"] for asked in later} == {"s"}
    assert {"notifications/initialized", "tools/list", "GET", "DELETE"} <= {a.what for a in later}


async def test_an_unaccepted_ready_notification_fails_the_opening() -> None:
    async def silent(asked: Asked, reply: Reply) -> None:
        await reply.gone()

    script = Script(SESSIONS[-1])
    script.on["notifications/initialized"] = silent
    with pytest.raises(ResponseLostError, match=r"/initialized was not accepted within 0\.2 s"):
        async with connect_scripted(
            script, timeouts=Timeouts(opening=5, http=HttpTimeouts(accept=0.2))
        ):
            raise AssertionError("it was opened")


async def test_every_error_is_one_of_the_package(revision: str) -> None:
    async with (
        HttpServer(Script(revision)) as server,
        connect(server.url, revision=revision) as client,
    ):
        server.kill()
        with pytest.raises(McpError):
            await client.call_tool("echo", {})
        with pytest.raises(ConnectFailedError):
            await client.call_tool("echo", {})
