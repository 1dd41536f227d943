"""One address, whichever transport and revision the server there speaks: how a client finds out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import HttpStatusError, McpError, RemoteError, RevisionError
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.http_script import (
    Script,
    SseScript,
    connect_scripted,
    discover_result,
    error,
    initialize_result,
    result,
    says,
)
from package.http_server import Asked, Handler, HttpServer, Reply
from package.rules import revisions_holding
from package.wire import ALL, PER_REQUEST, SESSIONS, SSE_ONLY, STREAMABLE, facts
from requirements import EVERY_REVISION

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

MODERN = PER_REQUEST[-1]
NEWEST = SESSIONS[-1]


def refusing_handler(status: int, body: bytes = b"", kind: str = "text/html") -> Handler:
    """A handler with always the same refusal."""
    return says(body, status, kind)


def failing_handler(code: int, status: int, *, with_id: bool = True, **data: Any) -> Handler:
    """A handler that refuses by a JSON-RPC error."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked if with_id else None, code, **data), status=status)

    return handler


class Older(SseScript):
    """A server of HTTP+SSE that refuses posts to its stream's address in its own way."""

    def __init__(self, refusal: Handler) -> None:
        super().__init__(SSE_ONLY[-1])
        self._refusal = refusal

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.verb == "POST" and asked.target == "/mcp":
            await self._refusal(asked, reply)
        else:
            await super().__call__(asked, reply)


@pytest.mark.requirement("http-compat.client-accepts-url", "http-compat.implement-old-revision")
@pytest.mark.parametrize("spoken", ALL)
async def test_one_address_is_enough_whatever_the_server_speaks(spoken: str) -> None:
    script = SseScript(spoken) if spoken in SSE_ONLY else Script(spoken)
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == spoken
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
    assert server.asked[0].target == "/mcp"


@pytest.mark.requirement(
    "http-compat.try-modern-post-first",
    "http-compat.modern-first",
    "http.version-header-every-post",
    "headers.metadata-on-each-post",
    revisions=(MODERN,),
)
async def test_a_modern_request_comes_first_and_suffices_if_answered() -> None:
    async with connect_scripted(Script(MODERN), revision=None) as (client, server):
        await client.list_tools()
    first = server.asked[0]
    assert server.order() == ["server/discover", "tools/list"]
    assert {"application/json", "text/event-stream"} <= set(first.fields["accept"].split(", "))
    assert first.fields["mcp-protocol-version"] == MODERN
    assert first.fields["mcp-method"] == "server/discover"
    key = facts(MODERN).meta.protocol_version
    assert first.message["params"]["_meta"][key] == MODERN


@pytest.mark.requirement("http-compat.try-post-first")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_client_of_a_handshake_revision_begins_with_initialize(revision: str) -> None:
    async with connect_scripted(Script(revision)) as (_, server):
        await server.until("notifications/initialized")
    assert server.order()[:2] == ["initialize", "notifications/initialized"]
    assert server.asked[0].verb == "POST"
    accepted = server.asked[0].fields["accept"]
    assert {kind.strip() for kind in accepted.split(",")} == {
        "application/json",
        "text/event-stream",
    }


NOT_MODERN: Mapping[str, Handler] = {
    "empty": refusing_handler(400),
    "text": refusing_handler(400, b"Bad Request: no session", "text/plain"),
    "HTML": refusing_handler(404, b"<html>"),
    "method": refusing_handler(405),
    "not acceptable": refusing_handler(406),
    "server error": refusing_handler(500, b"oops"),
    "JSON": refusing_handler(400, b'{"error": "bad"}', "application/json"),
    "other error": failing_handler(-32000, 400),
    "other error without id": failing_handler(-32000, 400, with_id=False),
    "unknown method": failing_handler(-32601, 200),
    "answer of a page": refusing_handler(200, b"<html>"),
}


@pytest.mark.requirement(
    "http-compat.unrecognized-400-fallback", "http-compat.era-cached", revisions=PER_REQUEST
)
@pytest.mark.parametrize("refusal", NOT_MODERN)
async def test_answers_of_no_modern_server_lead_to_initialize(
    refusal: str,
) -> None:
    script = Script(NEWEST)
    script.on["server/discover"] = NOT_MODERN[refusal]
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == NEWEST
        for _ in range(3):
            await client.list_tools()
    posts = [what for what in server.order() if what not in ("GET", "DELETE")]
    assert (
        posts == ["server/discover", "initialize", "notifications/initialized"] + ["tools/list"] * 3
    )
    later = server.of("tools/list")
    assert {asked.fields["mcp-protocol-version"] for asked in later} == {NEWEST}
    assert all("mcp-method" not in asked.fields for asked in later)


async def test_silence_leads_to_initialize_too() -> None:
    async def silent(asked: Asked, reply: Reply) -> None:
        await reply.gone()

    script = Script(NEWEST)
    script.on["server/discover"] = silent
    timeouts = Timeouts(probe=0.2)
    async with connect_scripted(script, revision=None, timeouts=timeouts) as (client, server):
        assert client.revision == NEWEST
        await server.until_left()


CODES = sorted(facts(MODERN).errors.defined or ())


@pytest.mark.requirement(
    "http-compat.inspect-400-body", "http-compat.modern-error-no-fallback", revisions=PER_REQUEST
)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("with_id", [True, False])
async def test_a_modern_error_is_no_reason_to_fall_back(code: int, with_id: bool) -> None:
    script = Script(MODERN)
    script.on["server/discover"] = failing_handler(code, 400, with_id=with_id)
    async with HttpServer(script) as server:
        with pytest.raises(RemoteError) as caught:
            async with connect(server.url):
                raise AssertionError("it was opened")
    assert caught.value.code == code
    assert set(server.order()) == {"server/discover"}


@pytest.mark.requirement(
    "http-compat.modern-error-no-fallback", "http.version-retry", revisions=PER_REQUEST
)
async def test_a_server_that_names_its_revisions_gets_one_of_them() -> None:
    script = Script(NEWEST)
    code = facts(MODERN).errors.unsupported_revision
    script.on["server/discover"] = failing_handler(code, 400, supported=[NEWEST], requested=MODERN)
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == NEWEST
    assert server.order()[:2] == ["server/discover", "initialize"]
    offered = server.of("initialize")[0].message["params"]["protocolVersion"]
    assert offered == NEWEST


@pytest.mark.requirement("http.version-retry", revisions=(MODERN,))
async def test_a_server_that_refuses_what_it_names_is_asked_once_more() -> None:
    code = facts(MODERN).errors.unsupported_revision
    refusal = failing_handler(code, 400, supported=[MODERN], requested=MODERN)
    script = Script(MODERN)
    script.once["server/discover"] = [refusal]
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == MODERN
        assert len(server.of("server/discover")) == 2
        assert server.asked[0].id != server.asked[1].id
    script.on["server/discover"] = refusal
    async with HttpServer(script) as server:
        with pytest.raises(RevisionError, match="no revision in common"):
            async with connect(server.url):
                raise AssertionError("it was opened")
        assert server.order() == ["server/discover"] * 2


@pytest.mark.requirement("http.version-retry", revisions=(MODERN,))
async def test_no_revision_in_common_is_an_error_after_one_attempt() -> None:
    code = facts(MODERN).errors.unsupported_revision
    script = Script(MODERN)
    script.on["server/discover"] = failing_handler(code, 400, supported=["1999-01-01"])
    async with HttpServer(script) as server:
        with pytest.raises(RevisionError) as caught:
            async with connect(server.url):
                raise AssertionError("it was opened")
    assert caught.value.offered == ("1999-01-01",)
    assert server.order() == ["server/discover"]


@pytest.mark.requirement("http-compat.dual-fallback-chain", revisions=PER_REQUEST)
@pytest.mark.requirement("http-compat.use-sse-afterwards")
@pytest.mark.parametrize("revision", revisions_holding("http-compat.use-sse-afterwards"))
async def test_the_last_resort_is_a_get_for_the_older_transport(revision: str) -> None:
    modern = revision in PER_REQUEST
    spoken = SSE_ONLY[-1] if modern else revision
    pinned = None if modern else revision
    async with connect_scripted(SseScript(spoken), revision=pinned) as (client, server):
        assert client.revision == spoken
        await client.list_tools()
        await client.call_tool("echo", {})
    targets = [(asked.what, asked.target.partition("?")[0]) for asked in server.asked]
    assert targets == [
        *([("server/discover", "/mcp")] if modern else []),
        ("initialize", "/mcp"),
        ("GET", "/mcp"),
        ("initialize", "/messages"),
        ("notifications/initialized", "/messages"),
        ("tools/list", "/messages"),
        ("tools/call", "/messages"),
    ]
    first, second = server.of("initialize")
    assert first.body == second.body


NARROW = revisions_holding("http-compat.fallback-400-404-405")
WIDE = revisions_holding("http-compat.fallback-any-4xx")
TRIED = [
    *((name, status) for name in WIDE for status in (400, 403, 404, 405, 406, 410, 415, 422, 499)),
    *((name, status) for name in NARROW for status in (400, 404, 405)),
]
NOT_TRIED = [
    *((name, status) for name in WIDE for status in (401, 500, 503)),
    *((name, status) for name in NARROW for status in (401, 403, 406, 415, 500)),
]


@pytest.mark.requirement(
    "http-compat.fallback-any-4xx",
    "http-compat.fallback-400-404-405",
    "http-compat.get-expects-endpoint",
)
@pytest.mark.parametrize(("revision", "status"), TRIED)
async def test_a_status_of_older_servers_leads_to_the_get(revision: str, status: int) -> None:
    older = Older(refusing_handler(status))
    older.revision = revision
    async with connect_scripted(older) as (client, server):
        await client.list_tools()
    targets = [(asked.what, asked.target.partition("?")[0]) for asked in server.asked[:3]]
    assert targets == [("initialize", "/mcp"), ("GET", "/mcp"), ("initialize", "/messages")]
    assert server.asked[1].fields["accept"] == "text/event-stream"


@pytest.mark.requirement("http-compat.fallback-any-4xx", "http-compat.fallback-400-404-405")
@pytest.mark.parametrize(("revision", "status"), NOT_TRIED)
async def test_another_status_is_reported(revision: str, status: int) -> None:
    async with HttpServer(Older(refusing_handler(status))) as server:
        with pytest.raises(HttpStatusError) as caught:
            async with connect(server.url, revision=revision, timeouts=Timeouts(retries=())):
                raise AssertionError("it was opened")
    assert caught.value.status == status
    assert server.order() == ["initialize"]


@pytest.mark.requirement("http-compat.fallback-400-404-405-body", revisions=(MODERN,))
@pytest.mark.parametrize(
    "refusal", [failing_handler(-32601, 404), *(failing_handler(code, 400) for code in CODES)]
)
async def test_an_error_of_a_modern_server_does_not_suggest_http_sse(
    refusal: Handler,
) -> None:
    async def late(asked: Asked, reply: Reply) -> None:
        await (refusing_handler(404) if asked.what == "server/discover" else refusal)(asked, reply)

    async with HttpServer(Older(late)) as server:
        with pytest.raises(RemoteError):
            async with connect(server.url):
                raise AssertionError("it was opened")
    assert server.order() == ["server/discover", "initialize"]


@pytest.mark.requirement("http-compat.fallback-400-404-405-body", revisions=(MODERN,))
@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"detail": "Not Found"}'])
async def test_a_refusal_without_such_an_error_is_a_hint(status: int, body: bytes) -> None:
    async with connect_scripted(Older(refusing_handler(status, body)), revision=None) as (
        client,
        server,
    ):
        assert client.revision == SSE_ONLY[-1]
    assert server.order()[:4] == ["server/discover", "initialize", "GET", "initialize"]


@pytest.mark.requirement("http-compat.get-expects-endpoint", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("get", "reason"),
    [
        (refusing_handler(200, b"<html>"), "text/html"),
        (refusing_handler(404), "HTTP 404"),
        (refusing_handler(405), "HTTP 405"),
    ],
)
async def test_an_address_that_speaks_neither_has_both_reasons(get: Handler, reason: str) -> None:
    script = Older(refusing_handler(404))
    script.on["GET"] = get
    async with HttpServer(script) as server:
        with pytest.raises(HttpStatusError, match=r"POST .* HTTP 404") as caught:
            async with connect(server.url):
                raise AssertionError("it was opened")
    _, both, why = str(caught.value).partition("; nor is it a server of HTTP+SSE: ")
    assert both
    assert reason in why


@pytest.mark.requirement("http-compat.get-expects-endpoint", revisions=EVERY_REVISION)
async def test_a_stream_with_another_first_event_is_not_http_sse() -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "method": "notifications/message"})
        await reply.gone()

    script = Older(refusing_handler(404))
    script.on["GET"] = get
    async with HttpServer(script) as server:
        with pytest.raises(HttpStatusError):
            async with connect(server.url, timeouts=Timeouts(http=HttpTimeouts(endpoint=0.2))):
                raise AssertionError("it was opened")
        await server.until_left()


async def test_a_transport_that_was_asked_for_is_not_left() -> None:
    async with HttpServer(SseScript(SSE_ONLY[-1])) as server:
        with pytest.raises(HttpStatusError):
            async with connect(server.url, transport="streamable-http"):
                raise AssertionError("it was opened")
    assert server.of("GET") == []


async def test_a_refusal_of_initialize_with_revisions_is_followed() -> None:
    older = SESSIONS[0]

    async def initialize(asked: Asked, reply: Reply) -> None:
        if asked.message["params"]["protocolVersion"] == older:
            await reply.json(result(asked, **initialize_result(older)))
        else:
            await reply.json(error(asked, -32602, supported=[older]), status=400)

    script = Script(older)
    script.on["initialize"] = initialize
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == older
        assert len(server.of("initialize")) == 2


@pytest.mark.requirement("http-compat.era-cached", revisions=(MODERN,))
async def test_a_modern_answer_with_only_a_handshake_is_followed() -> None:
    async def discover(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, **discover_result(NEWEST)))

    script = Script(NEWEST)
    script.on["server/discover"] = discover
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == NEWEST
    assert server.order()[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_a_client_of_a_modern_revision_reports_an_older_server(revision: str) -> None:
    for script in (Script(NEWEST), SseScript(SSE_ONLY[-1])):
        with pytest.raises(McpError, match=r"HTTP 40\d"):
            async with connect_scripted(script, revision=revision):
                raise AssertionError("it was opened")


@pytest.mark.parametrize("revision", [None, *STREAMABLE])
async def test_nobody_gets_further_without_credentials(revision: str | None) -> None:
    async with HttpServer(refusing_handler(401, b"who are you")) as server:
        with pytest.raises(HttpStatusError, match="HTTP 401 Test: who are you"):
            async with connect(server.url, revision=revision):
                raise AssertionError("it was opened")
    assert len(server.asked) == 1


async def test_a_server_that_says_nothing_at_all_is_given_up_in_time() -> None:
    with anyio.fail_after(10):
        async with HttpServer(lambda _, reply: reply.gone()) as server:
            with pytest.raises(McpError, match="no answer within"):
                async with connect(server.url, timeouts=Timeouts(probe=0.1, opening=0.3)):
                    raise AssertionError("it was opened")


@pytest.mark.requirement("http-compat.handle-removals")
@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("named", [True, False], ids=["revision named", "revision found out"])
async def test_a_server_without_sessions_and_get_streams_is_no_error(
    revision: str, named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(revision)
    script.on["GET"] = script.on["DELETE"] = refusing_handler(405)
    async with connect_scripted(script, revision=revision if named else None) as (client, server):
        assert client.revision == revision
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        await client.call_tool("echo", {})
    assert {asked.verb for asked in server.asked} == {"POST"}
    assert all("mcp-session-id" not in asked.fields for asked in server.asked)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []
