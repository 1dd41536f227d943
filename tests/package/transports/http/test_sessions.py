"""Sessions over Streamable HTTP: their id, the version header, losing them, ending them."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx2
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    HttpStatusError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseLostError,
    RevisionError,
    SessionLostError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.http_script import Forgetful, Script, connect_scripted, initialize_result, result
from package.http_server import Asked, Reply
from package.rules import revisions_holding
from package.wire import SESSIONS, SSE_ONLY

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

SOON = Timeouts(http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01))

WITH_VERSION = revisions_holding("http.version-header-after-init")


@pytest.fixture(params=SESSIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.requirement("http.session-id-sent", "http.session-delete", "http.shutdown-by-close")
async def test_every_request_after_the_opening_names_the_session(revision: str) -> None:
    async with connect_scripted(Script(revision, "a!~9")) as (client, server):
        await client.list_tools()
        await server.until("GET")
    first, *later = server.asked
    assert first.what == "initialize"
    assert "mcp-session-id" not in first.fields
    assert [asked.fields.get("mcp-session-id") for asked in later] == ["a!~9"] * len(later)
    assert server.order()[-1] == "DELETE"
    assert {"notifications/initialized", "GET", "tools/list"} <= {asked.what for asked in later}
    assert later[-1].body == b""


@pytest.mark.requirement("http.session-delete")
async def test_a_session_is_ended_even_if_its_closing_is_cancelled(
    revision: str,
) -> None:
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


@pytest.mark.parametrize("status", [405, 404, 500])
async def test_a_server_that_ends_no_sessions_is_no_error(revision: str, status: int) -> None:
    async def delete(asked: Asked, reply: Reply) -> None:
        await reply.whole(status)

    script = Script(revision, "s")
    script.on["DELETE"] = delete
    async with connect_scripted(script) as (_, server):
        pass
    assert len(server.of("DELETE")) == 1


@pytest.mark.requirement("http.version-header-after-init", "versioning.http-header-after-init")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_the_version_header_is_sent_after_the_opening(
    revision: str,
) -> None:
    async with connect_scripted(Script(revision, "s")) as (client, server):
        await client.list_tools()
        await server.until("GET")
    expected = revision if revision in WITH_VERSION else None
    first, *later = server.asked
    assert "mcp-protocol-version" not in first.fields
    assert {"notifications/initialized", "tools/list", "GET", "DELETE"} <= {a.what for a in later}
    assert {asked.fields.get("mcp-protocol-version") for asked in later} == {expected}


@pytest.mark.requirement("http.version-header-negotiated")
@pytest.mark.parametrize("agreed", WITH_VERSION)
async def test_the_version_header_names_what_was_agreed(agreed: str) -> None:
    async with connect_scripted(Script(agreed, "s"), revision=None) as (client, server):
        assert client.revision == agreed
        await client.list_tools()
    assert server.of("tools/list")[0].fields["mcp-protocol-version"] == agreed


@pytest.mark.parametrize("agreed", SSE_ONLY)
async def test_a_server_may_agree_on_a_revision_before_streamable_http(agreed: str) -> None:
    async with connect_scripted(Script(agreed, "s"), revision=None) as (client, server):
        assert client.revision == agreed
        await client.list_tools()
    (asked,) = server.of("tools/list")
    assert asked.fields["mcp-session-id"] == "s"
    assert asked.fields["mcp-protocol-version"] == agreed
    assert len(server.of("DELETE")) == 1


@pytest.mark.parametrize("older", SSE_ONLY)
async def test_such_a_revision_cannot_be_pinned_over_streamable_http(older: str) -> None:
    with pytest.raises(RevisionError, match="later revisions"):
        async with connect_scripted(Script(older), transport="streamable-http"):
            raise AssertionError("it was opened")


@pytest.mark.parametrize("id", ["a b", "a\tb", "\x7f", "\xe4"])
async def test_an_id_that_is_no_visible_ascii_is_refused(revision: str, id: str) -> None:
    with pytest.raises(RemoteProtocolError, match="expected visible ASCII"):
        async with connect_scripted(Script(revision, id)):
            raise AssertionError("it was opened")


@pytest.mark.requirement("http.session-404-restart")
async def test_a_lost_session_is_reopened_once_and_the_message_resent(
    revision: str,
) -> None:
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


@pytest.mark.requirement("http.session-404-restart")
async def test_a_session_lost_before_its_confirmation_is_reopened(
    revision: str,
) -> None:
    script = Forgetful(revision)
    script.forgotten.add("s")
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
    confirmed = server.of("notifications/initialized")
    assert [asked.fields["mcp-session-id"] for asked in confirmed] == ["s", "s2"]


async def stay_silent(asked: Asked, reply: Reply) -> None:
    await reply.gone()


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


async def test_a_server_that_opens_no_further_session_fails_the_call(
    revision: str,
) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script, timeouts=Timeouts(http=HttpTimeouts(renewal=0.2))) as (
        client,
        _,
    ):
        script.forgotten.add("s")
        script.once["initialize"] = [stay_silent]
        with pytest.raises(SessionLostError, match=r"opened no other one within 0\.2 s"):
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_sessions_may_be_lost_one_after_another(revision: str) -> None:
    script = Forgetful(revision)
    async with connect_scripted(script) as (client, server):
        for lost in ("s", "s2", "s3"):
            script.forgotten.add(lost)
            await client.call_tool("echo", {})
    assert len(server.of("initialize")) == 4


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


async def test_a_server_that_opens_no_other_session_fails_the_call(revision: str) -> None:
    async def refuse(asked: Asked, reply: Reply) -> None:
        await reply.whole(503)

    script = Forgetful(revision)
    async with connect_scripted(script) as (client, _):
        script.forgotten.add("s")
        script.on["initialize"] = refuse
        with pytest.raises(HttpStatusError, match="HTTP 503"):
            await client.call_tool("echo", {})
        del script.on["initialize"]
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_another_session_opened_by_a_page_fails_the_call(revision: str) -> None:
    async def show(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b"<p>Log in</p>", Content_Type="text/html")

    script = Forgetful(revision)
    async with connect_scripted(script) as (client, _):
        script.forgotten.add("s")
        script.once["initialize"] = [show]
        expected = "expected application/json or text/event-stream, came HTTP 200, text/html"
        with pytest.raises(RemoteProtocolError, match=expected):
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_a_server_that_returns_with_another_revision_fails_it() -> None:
    older, newer = SESSIONS[0], SESSIONS[-1]

    async def other(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, **initialize_result(older)), Mcp_Session_Id="t")

    script = Forgetful(newer)
    async with connect_scripted(script) as (client, _):
        script.forgotten.add("s")
        script.on["initialize"] = other
        with pytest.raises(SessionLostError, match=f"no other one in {newer}"):
            await client.call_tool("echo", {})


async def test_safe_requests_are_repeated_when_stream_and_session_die(
    revision: str,
) -> None:
    script = Forgetful(revision)

    async def dying(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        script.forgotten.add("s")
        await reply.cut()

    script.once = {"tools/list": [dying], "tools/call": []}
    async with connect_scripted(script, timeouts=SOON) as (client, server):
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        first, second = server.of("tools/list")
        assert first.id != second.id
        assert second.fields["mcp-session-id"] == "s2"
        script.once["tools/call"] = [dying_in(script, "s2")]
        with pytest.raises(ResponseLostError):
            await client.call_tool("echo", {})
        assert len(server.of("tools/call")) == 1


def dying_in(script: Forgetful, session: str) -> Any:
    """A handler whose stream dies, and the session with it."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        script.forgotten.add(session)
        await reply.cut()

    return handler


async def test_a_lost_session_shows_when_its_open_stream_is_resumed(
    revision: str,
) -> None:
    script = Forgetful(revision)

    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="0-0")
        if asked.fields["mcp-session-id"] == "s":
            script.forgotten.add("s")
            await reply.cut()
        await reply.gone()

    script.on["GET"] = get
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
            async with connect_scripted(Script(revision, secret), http_client=http_client) as (
                client,
                _,
            ):
                await client.list_tools()
    assert any(record.name.startswith("httpcore2") for record in caplog.records)
    assert secret not in caplog.text
