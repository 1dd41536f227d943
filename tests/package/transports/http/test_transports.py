"""One address, whichever transport and revision the server there speaks: how a client finds out."""

from __future__ import annotations

from typing import Any

import pytest

from kit.http_script import (
    Script,
    SseScript,
    answer_with,
    connect_scripted,
    error,
    fail_to_open,
    refuse_with,
    result,
    says,
    stay_silent,
    stream_events,
)
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.rules import revisions_holding
from kit.wire import ALL, PER_REQUEST, SESSIONS, SSE_ONLY, facts, modern, opening_result, sessions
from mcpgen_runtime import HttpStatusError, McpError, RemoteError, RevisionError, Timeouts
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes

MODERN = PER_REQUEST[-1]
NEWEST = SESSIONS[-1]


def older(refusal: Handler, revision: str = SSE_ONLY[-1], **planned: Any) -> SseScript:
    """A server of HTTP+SSE that refuses posts to its stream's address in its own way."""
    return SseScript(revision, refusal=refusal, **planned)


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
@sessions
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


NOT_MODERN = [
    pytest.param(says(b"", 400), id="empty"),
    pytest.param(says(b"Bad Request: no session", 400, "text/plain"), id="text"),
    pytest.param(says(b"<html>", 404, "text/html"), id="a page that is missing"),
    pytest.param(says(b"", 405), id="method"),
    pytest.param(says(b"", 406), id="not acceptable"),
    pytest.param(says(b"oops", 500, "text/html"), id="server error"),
    pytest.param(says(b'{"error": "bad"}', 400), id="JSON"),
    pytest.param(refuse_with(-32000), id="another error"),
    pytest.param(refuse_with(-32000, with_id=False), id="another error without id"),
    pytest.param(refuse_with(-32601, 200), id="unknown method"),
    pytest.param(says(b"<html>", 200, "text/html"), id="a page"),
    pytest.param(stay_silent, id="silence"),
]


@pytest.mark.requirement(
    "http-compat.unrecognized-400-fallback", "http-compat.era-cached", revisions=PER_REQUEST
)
@pytest.mark.parametrize("answer", NOT_MODERN)
async def test_answers_of_no_modern_server_lead_to_initialize(answer: Handler) -> None:
    script, timeouts = Script(NEWEST, on={"server/discover": answer}), Timeouts(probe=0.2)
    async with connect_scripted(script, revision=None, timeouts=timeouts) as (client, server):
        assert client.revision == NEWEST
        for _ in range(3):
            await client.list_tools()
    opening = ["server/discover", "initialize", "notifications/initialized"]
    posts = [asked.what for asked in server.asked if asked.verb == "POST"]
    assert posts == opening + ["tools/list"] * 3
    later = server.of("tools/list")
    assert {asked.fields["mcp-protocol-version"] for asked in later} == {NEWEST}
    assert all("mcp-method" not in asked.fields for asked in later)


CODES = sorted(facts(MODERN).errors.defined or ())
UNSUPPORTED = facts(MODERN).errors.unsupported_revision


@pytest.mark.requirement(
    "http-compat.inspect-400-body", "http-compat.modern-error-no-fallback", revisions=PER_REQUEST
)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("with_id", [True, False])
async def test_a_modern_error_is_no_reason_to_fall_back(code: int, with_id: bool) -> None:
    refusal = refuse_with(code, with_id=with_id)
    async with HttpServer(Script(MODERN, on={"server/discover": refusal})) as server:
        with pytest.raises(RemoteError) as caught:
            await fail_to_open(server.url)
    assert caught.value.code == code
    assert set(server.order()) == {"server/discover"}


@pytest.mark.requirement(
    "http-compat.modern-error-no-fallback", "http.version-retry", revisions=PER_REQUEST
)
async def test_a_server_that_names_its_revisions_gets_one_of_them() -> None:
    refusal = refuse_with(UNSUPPORTED, supported=[NEWEST], requested=MODERN)
    script = Script(NEWEST, on={"server/discover": refusal})
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == NEWEST
    assert server.order()[:2] == ["server/discover", "initialize"]
    offered = server.of("initialize")[0].message["params"]["protocolVersion"]
    assert offered == NEWEST


@pytest.mark.requirement("http.version-retry", revisions=(MODERN,))
async def test_a_server_that_refuses_what_it_names_is_asked_once_more() -> None:
    refusal = refuse_with(UNSUPPORTED, supported=[MODERN], requested=MODERN)
    script = Script(MODERN, once={"server/discover": [refusal]})
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == MODERN
        assert len(server.of("server/discover")) == 2
        assert server.asked[0].id != server.asked[1].id
    script.on["server/discover"] = refusal
    async with HttpServer(script) as server:
        with pytest.raises(RevisionError, match="no revision in common"):
            await fail_to_open(server.url)
        assert server.order() == ["server/discover"] * 2


@pytest.mark.requirement("http.version-retry", revisions=(MODERN,))
async def test_no_revision_in_common_is_an_error_after_one_attempt() -> None:
    refusal = refuse_with(UNSUPPORTED, supported=["1999-01-01"])
    async with HttpServer(Script(MODERN, on={"server/discover": refusal})) as server:
        with pytest.raises(RevisionError) as caught:
            await fail_to_open(server.url)
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
    async with connect_scripted(older(says(b"", status), revision)) as (client, server):
        await client.list_tools()
    targets = [(asked.what, asked.target.partition("?")[0]) for asked in server.asked[:3]]
    assert targets == [("initialize", "/mcp"), ("GET", "/mcp"), ("initialize", "/messages")]
    assert server.asked[1].fields["accept"] == "text/event-stream"


@pytest.mark.requirement("http-compat.fallback-any-4xx", "http-compat.fallback-400-404-405")
@pytest.mark.parametrize(("revision", "status"), NOT_TRIED)
async def test_another_status_is_reported(revision: str, status: int) -> None:
    async with HttpServer(older(says(b"", status))) as server:
        with pytest.raises(HttpStatusError) as caught:
            await fail_to_open(server.url, revision=revision, timeouts=Timeouts(retries=()))
    assert caught.value.status == status
    assert server.order() == ["initialize"]


@pytest.mark.requirement("http-compat.fallback-400-404-405-body", revisions=(MODERN,))
@pytest.mark.parametrize(
    "refusal", [refuse_with(-32601, 404), *(refuse_with(code) for code in CODES)]
)
async def test_an_error_of_a_modern_server_does_not_suggest_http_sse(refusal: Handler) -> None:
    async def late(asked: Asked, reply: Reply) -> None:
        await (says(b"", 404) if asked.what == "server/discover" else refusal)(asked, reply)

    async with HttpServer(older(late)) as server:
        with pytest.raises(RemoteError):
            await fail_to_open(server.url)
    assert server.order() == ["server/discover", "initialize"]


MESSAGE_FIRST = stream_events(
    {"jsonrpc": "2.0", "method": "notifications/message"}, last=Reply.gone
)


@pytest.mark.requirement("http-compat.get-expects-endpoint", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("get", "reason"),
    [
        (says(b"<html>", kind="text/html"), "text/html"),
        (says(b"", 404), "HTTP 404"),
        (says(b"", 405), "HTTP 405"),
        (MESSAGE_FIRST, "expected an event 'endpoint' first"),
    ],
)
async def test_an_address_that_speaks_neither_has_both_reasons(get: Handler, reason: str) -> None:
    async with HttpServer(older(says(b"", 404), on={"GET": get})) as server:
        with pytest.raises(HttpStatusError, match=r"POST .* HTTP 404") as caught:
            await fail_to_open(server.url)
    _, both, why = str(caught.value).partition("; nor is it a server of HTTP+SSE: ")
    assert both
    assert reason in why


async def test_a_transport_that_was_asked_for_is_not_left() -> None:
    async with HttpServer(SseScript(SSE_ONLY[-1])) as server:
        with pytest.raises(HttpStatusError):
            await fail_to_open(server.url, transport="streamable-http")
    assert server.of("GET") == []


async def test_a_refusal_of_initialize_with_revisions_is_followed() -> None:
    older = SESSIONS[0]

    async def initialize(asked: Asked, reply: Reply) -> None:
        if asked.message["params"]["protocolVersion"] == older:
            await reply.json(result(asked, **opening_result(older)))
        else:
            await reply.json(error(asked, -32602, supported=[older]), status=400)

    script = Script(older, on={"initialize": initialize})
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == older
        assert len(server.of("initialize")) == 2


@pytest.mark.requirement("http-compat.era-cached", revisions=(MODERN,))
async def test_a_modern_answer_with_only_a_handshake_is_followed() -> None:
    discover = answer_with(**opening_result(NEWEST))
    script = Script(NEWEST, on={"server/discover": discover})
    async with connect_scripted(script, revision=None) as (client, server):
        assert client.revision == NEWEST
    assert server.order()[:2] == ["server/discover", "initialize"]


@modern
async def test_a_client_of_a_modern_revision_reports_an_older_server(revision: str) -> None:
    for script in (Script(NEWEST), SseScript(SSE_ONLY[-1])):
        with pytest.raises(McpError, match=r"HTTP 40\d"):
            await fail_to_open(script, revision=revision)
