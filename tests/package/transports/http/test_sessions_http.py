"""Sessions over Streamable HTTP: their id, the version header, losing, restoring, ending them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
import pytest
from msgspec import Raw

from kit.http_script import (
    Forgetful,
    Script,
    connect_scripted,
    fail_to_open,
    result,
    says,
    stay_silent,
)
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.rules import revision_fixture, revisions_holding
from kit.simulation import URL, reach, simulate
from kit.wire import SESSIONS, SSE_ONLY, opening_result
from mcpgen_runtime import (
    ConnectionClosedError,
    HttpStatusError,
    HttpTimeouts,
    ListeningAgain,
    McpError,
    RemoteProtocolError,
    RequestTimeoutError,
    RevisionError,
    SessionLostError,
    Timeouts,
    ToolsChanged,
    connect,
)

pytestmark = pytest.mark.processes

SOON = Timeouts(http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01))

WITH_VERSION = revisions_holding("http.version-header-after-init")

revision = revision_fixture(SESSIONS)


@pytest.mark.requirement("http.session-id-sent", "http.session-delete", "http.shutdown-by-close")
@pytest.mark.requirement("http.version-header-after-init", "versioning.http-header-after-init")
@pytest.mark.parametrize("headers", [{}, {"Mcp-Session-Id": "forged"}], ids=["own", "forged"])
async def test_every_request_after_the_opening_names_session_and_revision(
    revision: str, headers: Mapping[str, str]
) -> None:
    async with connect_scripted(Script(revision, "a!~9"), headers=headers) as (client, server):
        await client.list_tools()
        await server.until("GET")
    first, *later = server.asked
    assert first.what == "initialize"
    assert first.fields.get("mcp-session-id") == headers.get("Mcp-Session-Id")
    assert "mcp-protocol-version" not in first.fields
    assert {"notifications/initialized", "tools/list", "GET", "DELETE"} <= {a.what for a in later}
    assert {asked.fields["mcp-session-id"] for asked in later} == {"a!~9"}
    version = revision if revision in WITH_VERSION else None
    assert {asked.fields.get("mcp-protocol-version") for asked in later} == {version}
    assert (later[-1].what, later[-1].body) == ("DELETE", b"")


@pytest.mark.requirement("http.session-delete")
async def test_a_session_is_ended_even_if_its_closing_is_cancelled(revision: str) -> None:
    async with connect_scripted(Script(revision, "s")) as (client, server):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await client.close()
        with pytest.raises(ConnectionClosedError, match=r"closed(: this side closed it)?$"):
            await client.list_tools()
    assert [asked.fields["mcp-session-id"] for asked in server.of("DELETE")] == ["s"]


@pytest.mark.requirement("http.session-delete")
@pytest.mark.parametrize("id", [None, ""])
async def test_a_server_without_sessions_gets_no_session_header(
    revision: str, id: str | None
) -> None:
    async with connect_scripted(Script(revision, id)) as (client, server):
        await client.list_tools()
    assert server.of("DELETE") == []
    assert all("mcp-session-id" not in asked.fields for asked in server.asked)


async def sleep_forever(asked: Asked, reply: Reply) -> None:
    """Answer nothing, on a virtual clock."""
    await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("delete", "seconds"), [*((says(b"", s), 0) for s in (405, 404, 500)), (sleep_forever, 2)]
)
def test_a_server_that_ends_no_sessions_is_no_error(
    revision: str, delete: Handler, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> float:
        async with connect(URL, revision=revision):
            before = anyio.current_time()
        return anyio.current_time() - before

    reach(Script(revision, "s", on={"DELETE": delete}), monkeypatch)
    assert simulate("asyncio", 0, main) == pytest.approx(seconds)


@pytest.mark.requirement("http.version-header-negotiated")
@pytest.mark.parametrize("agreed", [*SSE_ONLY, *WITH_VERSION])
async def test_the_version_header_names_what_was_agreed(agreed: str) -> None:
    async with connect_scripted(Script(agreed, "s"), revision=None) as (client, server):
        assert client.revision == agreed
        await client.list_tools()
    (asked,) = server.of("tools/list")
    assert asked.fields["mcp-protocol-version"] == agreed
    assert asked.fields["mcp-session-id"] == "s"
    assert len(server.of("DELETE")) == 1


@pytest.mark.parametrize("older", SSE_ONLY)
async def test_a_revision_before_sessions_cannot_be_pinned(older: str) -> None:
    with pytest.raises(RevisionError, match="later revisions"):
        await fail_to_open(Script(older), transport="streamable-http")


@pytest.mark.parametrize("id", ["a b", "a\tb", "\x7f", "\xe4"])
async def test_an_id_that_is_no_visible_ascii_is_refused(revision: str, id: str) -> None:
    with pytest.raises(RemoteProtocolError, match="expected visible ASCII"):
        await fail_to_open(Script(revision, id))


@pytest.mark.requirement("http.session-404-restart")
async def test_a_lost_session_is_reopened_once_and_the_message_resent(revision: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        script.forgotten.add("s")
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await client.list_tools()
    calls = server.of("tools/call")
    assert [asked.fields["mcp-session-id"] for asked in calls] == ["s", "s2"]
    assert calls[0].body == calls[1].body
    first, second = server.of("initialize")
    assert first.body == second.body
    assert "mcp-session-id" not in second.fields
    assert "mcp-protocol-version" not in second.fields
    confirmed = server.of("notifications/initialized")
    assert [asked.fields["mcp-session-id"] for asked in confirmed] == ["s", "s2"]
    order = server.order()
    again = order.index("initialize", 1)
    assert order[again : again + 2] == ["initialize", "notifications/initialized"]
    assert server.of("tools/list")[-1].fields["mcp-session-id"] == "s2"
    assert server.of("DELETE")[0].fields["mcp-session-id"] == "s2"


@pytest.mark.parametrize("step", ["initialize", "notifications/initialized"])
async def test_a_session_whose_opening_timed_out_is_opened_anew(revision: str, step: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        script.forgotten.add("s")
        script.once[step] = [stay_silent]
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.2)
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    last = server.of("tools/call")[-1].fields["mcp-session-id"]
    assert server.of("notifications/initialized")[-1].fields["mcp-session-id"] == last
    assert len(server.of("initialize")) == 3


async def agree_on_another(asked: Asked, reply: Reply) -> None:
    """Open a session in another revision."""
    asked_for = asked.message["params"]["protocolVersion"]
    other = next(name for name in SESSIONS if name != asked_for)
    await reply.json(result(asked, **opening_result(other)), Mcp_Session_Id="t")


PAGE = "expected application/json or text/event-stream, came HTTP 200, text/html"
LATE = "opened no other one within 30 s"
NO_OTHER: dict[str, tuple[str, Handler, type[McpError], str]] = {
    "it is silent": ("initialize", sleep_forever, SessionLostError, LATE),
    "no confirmation": ("notifications/initialized", sleep_forever, SessionLostError, LATE),
    "it refuses": ("initialize", says(b"", 500), HttpStatusError, "HTTP 500"),
    "a page": ("initialize", says(b"<p>Hi</p>", kind="text/html"), RemoteProtocolError, PAGE),
    "it returns with another revision": (
        "initialize",
        agree_on_another,
        SessionLostError,
        "no other one in {revision}",
    ),
}


@pytest.mark.parametrize(
    ("method", "handler", "kind", "text"), NO_OTHER.values(), ids=NO_OTHER.keys()
)
def test_a_server_that_opens_no_other_session_fails_the_call(
    revision: str,
    method: str,
    handler: Handler,
    kind: type[McpError],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with connect(URL, revision=revision) as client:
            script.forgotten.add("s")
            script.once[method] = [handler]
            with pytest.raises(kind, match=text.format(revision=revision)):
                await client.call_tool("echo", timeout=None)
            assert (await client.call_tool("echo")).content[0].text == "done"

    script = Forgetful(revision)
    reach(script, monkeypatch)
    simulate("asyncio", 0, main)


async def test_two_lost_in_a_row_fail_the_call(revision: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        script.forgotten |= {"s", "s2"}
        with pytest.raises(SessionLostError, match="the new one as well"):
            await client.call_tool("echo", {})
        assert len(server.of("initialize")) == 2
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_calls_that_lose_a_session_together_open_one_again(revision: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        script.forgotten.add("s")
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(client.call_tool, "echo", {})
    assert len(server.of("initialize")) == 2


async def test_a_lost_session_shows_when_its_open_stream_is_resumed(revision: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="0-0")
        if asked.fields["mcp-session-id"] == "s":
            script.forgotten.add("s")
            await reply.cut()
        await reply.gone()

    script = Forgetful(revision, on={"GET": get})
    async with connect_scripted(script, timeouts=SOON) as (_, server):
        await server.until("initialize", times=2)
        gets = await server.until("GET", times=3)
    assert [asked.fields["mcp-session-id"] for asked in gets] == ["s", "s", "s2"]


@pytest.mark.requirement("http.session-id-client-secure")
async def test_the_id_of_a_session_is_in_no_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "d5a1c0ffee"
    caplog.set_level(logging.DEBUG)
    async with httpx2.AsyncClient() as own:
        for http_client in (None, own):
            how = {"http_client": http_client}
            async with connect_scripted(Script(revision, secret), **how) as (client, _):
                await client.list_tools()
    assert any(record.name.startswith("httpcore2") for record in caplog.records)
    assert secret not in caplog.text


KEPT = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")


def restored(server: HttpServer) -> list[tuple[str, Any]]:
    """Kind and params of the requests in the second session that restore state."""
    return [
        (asked.what, asked.message["params"])
        for asked in server.of(*KEPT)
        if asked.fields["mcp-session-id"] == "s2"
    ]


@pytest.mark.parametrize("how", ["methods", "request", "request_raw"])
async def test_state_of_a_lost_session_is_restored_in_the_new_one(revision: str, how: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        if how == "methods":
            for level in ("error", "info"):
                await client.set_level(level)
            for uri in ("memo://a", "memo://b"):
                await client.subscribe(uri)
            await client.unsubscribe("memo://a")
        else:
            ask = getattr(client, how)
            await ask("logging/setLevel", Raw(b'{"level": "info"}'))
            for uri in ("a", "b"):
                await ask("resources/subscribe", Raw(b'{"uri": "memo://%b"}' % uri.encode()))
            await ask("resources/unsubscribe", Raw(b'{"uri": "memo://a"}'))
        script.forgotten.add("s")
        script.once["logging/setLevel"] = [says(b"", 500)]
        await client.list_tools()
        await client.list_tools()
    assert restored(server) == [
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "memo://b"}),
    ]


async def test_silence_about_what_was_kept_does_not_hold_up_a_call(revision: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script, timeouts=Timeouts(restore=0.1)) as (client, _):
        await client.set_level("info")
        script.forgotten.add("s")
        script.on["logging/setLevel"] = stay_silent
        with anyio.fail_after(5):
            assert await client.list_tools()


async def test_a_listener_is_subscribed_anew_and_reads_again(revision: str) -> None:
    streams: list[Reply] = []

    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        streams.append(reply)
        await reply.gone()

    script = Forgetful(revision, on={"GET": get})
    async with connect_scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, uris=["memo://a"]) as changes:
            script.forgotten.add("s")
            await client.list_tools()
            assert await anext(changes) == ListeningAgain()
            await server.until("GET", times=2)
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            while len(streams) < 2:
                await anyio.lowlevel.checkpoint()
            await streams[-1].event(changed)
            assert await anext(changes) == ToolsChanged()
        subscription = {"uri": "memo://a"}
        assert restored(server) == [
            ("resources/subscribe", subscription),
            ("resources/unsubscribe", subscription),
        ]
