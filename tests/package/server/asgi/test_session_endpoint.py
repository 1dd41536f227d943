"""Sessions over HTTP: how they begin, whom they serve, and how they end."""

from __future__ import annotations

import base64
import logging
import random
import re
from collections import Counter
from typing import Any

import anyio
import pytest

from kit.asgi_client import JSON, SESSION, SSE, asgi, speaking
from kit.live import server_with
from kit.rules import revisions_holding
from kit.simulation import on_virtual_clock
from kit.waiting import WaitingServer
from kit.wire import (
    INITIALIZED,
    SESSIONS,
    cancelled_notification,
    facts,
    initialize,
    legacy,
    request,
    sessions,
)
from mcpgen_runtime import Context, Limits, MemoryEventStore, Server
from requirements import EVERY_REVISION

pytestmark = [pytest.mark.processes, pytest.mark.workers]

TEXT = "bl\u00e5b\u00e6r"
CALL = {"name": "echo", "arguments": {"text": TEXT}}

OLDER = "2025-06-18"


def echo(text: str) -> str:
    return text


@pytest.mark.requirement("http.session-assign", "http.session-id-charset", "http.endpoint-post-get")
@pytest.mark.requirement("http.utf8")
@legacy
@pytest.mark.parametrize("accept", [JSON, SSE])
async def test_initialize_opens_a_session_that_later_requests_name(
    revision: str, accept: str
) -> None:
    async with asgi(server_with(echo)) as http:
        # An empty id counts as absent, and the case of names means nothing.
        reply = await http.post(initialize(revision), **{"Accept": accept, "MCP-SESSION-ID": ""})
        assert (reply.status, reply.fields["content-type"]) == (200, accept)
        assert reply.result["protocolVersion"] == revision
        assert re.fullmatch("[!-~]+", reply.fields[SESSION])
        http.fields[SESSION] = reply.fields[SESSION]
        assert (await http.post(INITIALIZED)).status == 202
        http.fields["mcp-protocol-version"] = revision
        assert (await http.ask(revision, "tools/call", CALL)).text == TEXT


@pytest.mark.requirement(
    "http.session-id-secure",
    "auth-security.session-id-secure",
    "transport-security.session-id-nondeterministic",
    "transport-security.session-id-rng",
)
@sessions
async def test_ids_are_long_distinct_and_not_from_a_seedable_source(revision: str) -> None:
    async with asgi(server_with(echo)) as http:
        ids: list[str] = []
        for _ in range(300):
            random.seed(7)
            ids.append((await http.post(initialize(revision))).fields[SESSION])
    assert len(set(ids)) == 300
    assert {len(base64.urlsafe_b64decode(f"{each}=")) for each in ids} == {32}
    for place in range(8):  # no part of them counts or stays
        assert max(Counter(each[place] for each in ids).values()) < 60


@pytest.mark.parametrize(
    "params", [{}, {"protocolVersion": 5}, {"protocolVersion": "2025-06-18"}, None, []]
)
async def test_an_initialize_that_is_not_valid_leaves_nothing_behind(params: Any) -> None:
    async with asgi(server_with(echo), limits=Limits(sessions=1)) as http:
        kept = (await http.post(initialize("2025-06-18"))).fields[SESSION]
        message = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}
        if params is None:
            del message["params"]
        reply = await http.post(message)
        assert reply.status == 400
        assert SESSION not in reply.fields
        assert reply.json["id"] == 7
        http.fields[SESSION] = kept  # it would have had to make room
        assert (await http.ask("2025-06-18", "ping")).result == {}


@pytest.mark.requirement("http.session-id-missing-400")
@sessions
@pytest.mark.parametrize("id", [{}, {SESSION: ""}], ids=["absent", "empty"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_request_without_a_session_id_is_refused(
    revision: str, method: str, id: dict[str, str]
) -> None:
    async with asgi(server_with(echo)) as http:
        named = facts(revision).headers.protocol_version
        fields = id if named is None else {**id, named: revision}
        message = request(revision, "tools/list") if method == "POST" else None
        reply = await http.request(method, message, **fields)
        assert reply.status == 400
        assert "Mcp-Session-Id".lower() in reply.json["error"]["message"].lower()
        assert "id" not in reply.json


@pytest.mark.requirement("http.session-gone-404", "http.post-unacceptable-status")
@sessions
@pytest.mark.parametrize(
    "message",
    [
        request("2025-06-18", "tools/list"),
        INITIALIZED,
        {"jsonrpc": "2.0", "id": 4, "result": {}},
        initialize("2025-06-18"),
    ],
)
async def test_a_session_that_was_ended_is_gone_for_every_request(
    revision: str, message: Any
) -> None:
    async with speaking(server_with(echo), revision) as http:
        assert (await http.delete()).status == 200
        assert (await http.post(message)).status == 404
        assert (await http.get()).status == 404
        assert (await http.delete()).status == 404


@pytest.mark.requirement("transport-security.session-id-untrusted-input", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    "identifier",
    ["x", "../../etc/passwd", "\u00e9", "a" * 10_000, "y" * 43, "a, b", "a b\tc", "*"],
)
async def test_ids_that_were_never_given_open_nothing(identifier: str) -> None:
    async with asgi(server_with(echo)) as http:
        for method in ("POST", "GET", "DELETE"):
            message = request("2025-06-18", "tools/list") if method == "POST" else None
            reply = await http.request(method, message, **{SESSION: identifier})
            assert reply.status == 404
            assert identifier not in reply.json["error"]["message"] or identifier == "x"


# Gateways exist that open a session by themselves and then forward the initialize of their client.
@sessions
@pytest.mark.parametrize("second", SESSIONS)
async def test_a_second_initialize_within_a_session_is_answered_there(
    revision: str, second: str
) -> None:
    async with speaking(server_with(echo), revision) as http:
        reply = await http.post(initialize(second, id=9))
        assert (reply.status, reply.result["protocolVersion"]) == (200, second)
        assert SESSION not in reply.fields
        assert (await http.post(INITIALIZED)).status == 202
        assert (await http.ask(second, "ping")).result == {}
        assert (await http.ask(second, "tools/call", CALL)).text == TEXT


@pytest.mark.requirement("http.post-unacceptable-status", "http.post-unacceptable-body")
@sessions
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "params": {}},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "1.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": 5},
        b"{",
        b"\xff",
        b"",
        b'"hello"',
    ],
)
async def test_invalid_messages_get_an_error_and_no_effect(revision: str, message: Any) -> None:
    async with speaking(server_with(echo), revision) as http:
        reply = await http.post(message)
        assert reply.status == 400
        assert reply.code in (-32700, -32600)
        assert reply.json.get("id") in (None, 1)
        assert (await http.ask(revision, "ping")).result == {}


@pytest.mark.requirement("http.version-header-invalid-400")
@pytest.mark.parametrize("revision", revisions_holding("http.version-header-invalid-400"))
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("named", ["1900-01-01", "abc", ""])
async def test_a_revision_that_is_not_spoken_is_refused(
    revision: str, method: str, named: str
) -> None:
    async with speaking(server_with(echo), revision) as http:
        http.fields["mcp-protocol-version"] = named
        message = request(revision, "tools/list") if method == "POST" else None
        assert (await http.request(method, message)).status == 400
        http.fields["mcp-protocol-version"] = revision
        assert (await http.ask(revision, "ping")).result == {}


@pytest.mark.requirement("http.version-header-missing-default")
@sessions
async def test_without_the_version_header_the_agreed_revision_holds(revision: str) -> None:
    async with speaking(server_with(echo), revision) as http:
        http.fields["mcp-protocol-version"] = None
        reply = await http.ask(revision, "tools/call", {"name": "echo", "arguments": {"text": 5}})
        if facts(revision).behaviour.bad_tool_arguments == "error":
            assert reply.code == -32602
        else:
            assert reply.result["isError"]


@pytest.mark.requirement("http.session-terminate", "transport-security.session-id-rotate")
@pytest.mark.one_process  # an engine takes real time
@on_virtual_clock
@sessions
async def test_a_session_that_nobody_uses_ends(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryEventStore()
    async with speaking(server_with(echo), revision, limits=Limits(idle=60), events=store) as http:
        async with http.stream("GET"):
            await anyio.sleep(100)
        other = http.another()
        await other.initialize(revision)
        for _ in range(2):
            await anyio.sleep(59)
            assert (await http.ask(revision, "ping")).status == 200
        assert (await other.ask(revision, "ping")).status == 404
        await anyio.sleep(61)
        assert (await http.ask(revision, "ping")).status == 404
        assert len(store) == 0
        assert str(http.fields[SESSION]) not in caplog.text


@pytest.mark.one_process
@pytest.mark.parametrize("limits", [Limits(per_session=2), Limits(in_flight=2)], ids=str)
async def test_requests_over_the_session_limit_wait_but_answers_do_not(limits: Limits) -> None:
    waiting = WaitingServer()
    async with speaking(waiting.server, OLDER, limits=limits) as http:
        async with (
            waiting.calling(http, OLDER, 1, "ask") as asking,
            waiting.calling(http, OLDER, 2) as other,
        ):
            question = (await asking.message(), await asking.message())[1]
            await other.message()
            assert (await http.ask(OLDER, "ping", id=3)).status == 503
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {}}
            assert (await http.post(answer)).status == 202
            assert "result" in await asking.message()
            assert (await http.post(cancelled_notification(2))).status == 202
            await waiting.until(cancelled=1)
            await asking.finished.wait()
            await other.finished.wait()
        assert (await http.ask(OLDER, "ping", id=3)).status == 200


async def test_invalid_json_is_reported_before_a_missing_session() -> None:
    async with asgi(server_with(echo)) as http:
        reply = await http.post(b"{")
        assert (reply.status, reply.code, "id" in reply.json) == (400, -32700, False)


# `stateless=True`: revisions with sessions, served without them, by any process.
VERSION = "mcp-protocol-version"
ECHO = {"name": "echo", "arguments": {"text": "hei"}}
ASKING: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
outer = pytest.mark.parametrize("revision", [SESSIONS[0], SESSIONS[-1]])


def asking_server() -> Server:
    server = Server("tester", subscribe=True)

    @server.tool()
    async def echo(text: str, ctx: Context) -> str:
        await ctx.progress(1)
        return text

    @server.tool()
    def about(ctx: Context) -> str:
        return f"{ctx.revision} {ctx.session_id}"

    @server.tool()
    async def roots(ctx: Context) -> str:
        return str(await ctx.list_roots())

    @server.tool()
    async def ping(ctx: Context) -> str:
        return str(await ctx.request("ping"))

    @server.resource("note://today")
    def note() -> str:
        return "sun"

    return server


@sessions
async def test_each_request_may_reach_another_process(revision: str) -> None:
    async with (
        asgi(asking_server(), stateless=True) as one,
        asgi(asking_server(), stateless=True) as two,
    ):
        answer = await one.post(initialize(revision, ASKING))
        assert answer.result["protocolVersion"] == revision
        assert answer.result["capabilities"] == {"tools": {}, "resources": {}}
        assert SESSION not in answer.fields
        assert (await two.post(INITIALIZED, **{VERSION: revision})).status == 202
        for http in (one, two):
            call = request(revision, "tools/call", ECHO, meta={"progressToken": "t"})
            reply = await http.post(call, **{VERSION: revision})
            assert reply.text == "hei"
            told = [each.get("method") for each in reply.messages]
            assert told == ["notifications/progress", None]


@pytest.mark.requirement("http.version-header-missing-default", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("named", "used"), [(None, "2025-03-26"), *((revision, revision) for revision in SESSIONS)]
)
async def test_the_revision_is_in_the_header_and_a_session_id_of_before_ignored(
    named: str | None, used: str
) -> None:
    async with asgi(asking_server(), stateless=True) as http:
        call = request(used, "tools/call", {"name": "about", "arguments": {}})
        reply = await http.post(call, **{VERSION: named, SESSION: "gone"})
        assert reply.text == f"{used} None"


@outer
@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("resources/subscribe", {"uri": "note://today"}, "a session, and this server keeps none"),
        ("logging/setLevel", {"level": "info"}, "a session, and this server keeps none"),
        ("tools/call", {"name": "roots", "arguments": {}}, "keeps none (stateless=True)"),
        ("tools/call", {"name": "ping", "arguments": {}}, "keeps none (stateless=True)"),
    ],
)
async def test_what_needs_a_session_is_refused_with_that_reason(
    revision: str, method: str, params: Any, error: str
) -> None:
    async with asgi(asking_server(), stateless=True) as http:
        reply = await http.post(request(revision, method, params), **{VERSION: revision})
        assert (reply.status, error in reply.error["message"]) == (200, True)
