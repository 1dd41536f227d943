"""Progress: asked for by a token, told in order, and over when the request is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kit.ends import ASKED, answering_ends, ask, asking_ends, begin_request, end_of
from kit.live import TEXT, FakeServer, live, server_with, text_of
from kit.rules import revision_fixture, revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import ALL, ClientEnd, ServerEnd, modern, sent_request
from mcpgen_runtime import (
    ClientHandlers,
    Context,
    LocalProtocolError,
    MethodNotFoundError,
    Server,
    connect,
)
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import (
    Ignored,
    ProgressReceived,
    ReportProgress,
    SendError,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.runtime.pending_requests import NOTIFICATION_BYTES, NOTIFICATIONS

revision = revision_fixture(ALL)

PROGRESS = "notifications/progress"
WRONG_TOKENS: list[Any] = [1.5, {}, None, True]
OPT_IN = "progress.opt-in"  # holds in every revision


def report(token: Any, progress: Any, **more: Any) -> dict[str, Any]:
    """A progress notification."""
    params = {"progressToken": token, "progress": progress, **more}
    return {"jsonrpc": "2.0", "method": PROGRESS, "params": params}


@pytest.mark.requirement("progress.opt-in")
@pytest.mark.parametrize(("revision", "role"), asking_ends(OPT_IN))
def test_a_request_carries_a_token_only_if_progress_is_wanted(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    assert "progressToken" not in begin_request(end).get("params", {}).get("_meta", {})
    wanting = begin_request(end, progress=True)
    id = wanting["id"]
    assert wanting["params"]["_meta"]["progressToken"] == id
    end.events.clear()
    assert end.say(report(id, 1, total=2)) == []
    assert list(end.events) == [ProgressReceived(id, 1, 2, None)]


@pytest.mark.requirement("progress.token-type", "progress.opt-in", "progress.floating")
@pytest.mark.parametrize(("revision", "role"), answering_ends(OPT_IN))
@pytest.mark.parametrize("token", ["", "a", "7", 7, 0, -1])
def test_a_token_is_given_back_as_it_came(revision: str, role: Role, token: int | str) -> None:
    end = end_of(revision, role)
    ask(end, ASKED[role], id="x", meta={"progressToken": token})
    (message,) = end.send(ReportProgress("x", 0.25, 1.0))
    params = message["params"]
    assert params == {"progressToken": token, "progress": 0.25, "total": 1.0}
    assert type(params["progressToken"]) is type(token)


@pytest.mark.requirement("progress.token-type", "progress.opt-in", "meta.progress-token-key")
@pytest.mark.parametrize(("revision", "role"), answering_ends(OPT_IN))
@pytest.mark.parametrize("meta", [None, {}, *({"progressToken": token} for token in WRONG_TOKENS)])
def test_without_a_token_of_the_right_type_no_progress_is_sent(
    revision: str, role: Role, meta: Any
) -> None:
    end = end_of(revision, role)
    told = ask(end, ASKED[role], id="x", meta=meta)
    refused = [answer["error"]["code"] for answer in told]
    assert refused in ([], [-32602])
    assert end.send(ReportProgress("x", 1)) == []


@pytest.mark.requirement("progress.increasing")
@pytest.mark.parametrize(("revision", "role"), answering_ends(OPT_IN))
def test_only_progress_is_reported(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    ask(end, ASKED[role], id="x", meta={"progressToken": "t"})
    values = (1, 2, 2, 1, 2.5, 3)
    assert [len(end.send(ReportProgress("x", value))) for value in values] == [1, 1, 0, 0, 1, 1]


@pytest.mark.requirement("progress.increasing")
@pytest.mark.parametrize(("revision", "role"), asking_ends(OPT_IN))
def test_progress_that_goes_back_is_taken_as_it_comes(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    id = begin_request(end, progress=True)["id"]
    for value in (5, 3):
        end.events.clear()
        assert end.say(report(id, value)) == []
        assert list(end.events) == [ProgressReceived(id, value, None, None)]


@pytest.mark.requirement("progress.notification-shape", "progress.notification-shape-2024")
def test_total_and_message_are_there_if_they_are_given_and_known(revision: str) -> None:
    known = revision in revisions_holding("progress.notification-shape")
    server = ServerEnd(revision)
    server.ask("tools/call", PARAMS["tools/call"], id="x", meta={"progressToken": "t"})
    commands = (
        ReportProgress("x", 1),
        ReportProgress("x", 2, 3),
        ReportProgress("x", 3, message="m"),
    )
    assert [server.send(command)[0]["params"] for command in commands] == [
        {"progressToken": "t", "progress": 1},
        {"progressToken": "t", "progress": 2, "total": 3},
        {"progressToken": "t", "progress": 3} | ({"message": "m"} if known else {}),
    ]
    client = ClientEnd(revision)
    id = client.ask("tools/list", progress=True)["id"]
    client.say(report(id, 1, message="m"))
    assert client.events == [ProgressReceived(id, 1, None, "m" if known else None)]


@pytest.mark.requirement("progress.active-token-only", "progress.stops-at-completion")
@pytest.mark.parametrize(("revision", "role"), answering_ends(OPT_IN))
def test_a_request_that_is_over_has_no_more_progress(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    for last in (SendResponse("x", RESULTS[ASKED[role]]), SendError("x", LocalProtocolError("no"))):
        ask(end, ASKED[role], id="x", meta={"progressToken": "t"})
        assert len(end.send(ReportProgress("x", 1))) == 1
        end.send(last)
        assert end.send(ReportProgress("x", 2)) == []
        assert end.send(SendNotification(PROGRESS, report("t", 2)["params"])) == []


@pytest.mark.requirement("progress.active-token-only")
@pytest.mark.parametrize(("revision", "role"), answering_ends(OPT_IN))
def test_progress_in_its_general_form_keeps_the_same_rules(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    ask(end, ASKED[role], id="x", meta={"progressToken": 1})
    values: list[tuple[Any, int]] = [(2, 1), (True, 1), ("1", 1), (1, 1), (1, 1), (1, 2)]
    reports = [report(*pair)["params"] for pair in values]
    sent = [end.send(SendNotification(PROGRESS, params)) for params in reports]
    assert [len(messages) for messages in sent] == [0, 0, 0, 1, 0, 1]
    assert [sent[at][0]["params"] for at in (3, 5)] == [reports[3], reports[5]]


@pytest.mark.requirement("progress.active-token-only")
@pytest.mark.parametrize(("revision", "role"), asking_ends(OPT_IN))
@pytest.mark.parametrize("token", ["plain", 99, "2", 2.5, True, None, {}])
def test_progress_for_nothing_we_asked_is_ignored(revision: str, role: Role, token: Any) -> None:
    end = end_of(revision, role)
    method = "tools/list" if role == "client" else "roots/list"
    plain, _ = sent_request(end.connection.send(SendRequest(method)))
    end.send(SendRequest(method, progress=True))
    end.events.clear()
    assert end.say(report(plain if token == "plain" else token, 1)) == []
    assert [type(event) for event in end.events] == [Ignored]


@pytest.mark.requirement("progress.server-only")
@modern
def test_a_client_reports_no_progress_where_servers_ask_nothing(revision: str) -> None:
    client = ClientEnd(revision)
    with pytest.raises(MethodNotFoundError):
        client.send(SendNotification(PROGRESS, {"progressToken": 1, "progress": 1}))


def counter() -> Server:
    """A server with a tool that counts, and one that is silent."""

    async def count(ctx: Context, to: int) -> str:
        for value in range(1, to + 1):
            await ctx.progress(value, total=to, message=f"at {value}")
        return "counted"

    async def silent() -> str:
        return "done"

    return server_with(count, silent)


@pytest.mark.requirement("progress.opt-in", "progress.sending-optional")
@pytest.mark.parametrize("waits", [False, True])
async def test_the_callback_gets_all_reports_in_order_before_results(
    revision: str, waits: bool
) -> None:
    heard: list[tuple[float, float | None]] = []

    async def later(value: float, total: float | None, message: str | None) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append((value, total))

    def at_once(value: float, total: float | None, message: str | None) -> None:
        heard.append((value, total))

    callback: Callable[..., Awaitable[None] | None] = later if waits else at_once
    async with live(counter(), revision) as (client, record):
        result = await client.call_tool("count", {"to": 5}, on_progress=callback)
        assert text_of(result) == "counted"
        assert heard == [(value, 5) for value in range(1, 6)]
        assert text_of(await client.call_tool("silent", on_progress=callback)) == "done"
        await client.call_tool("count", {"to": 5})
    assert len(heard) == len(record.received_as(PROGRESS)) == 5


async def test_the_callback_runs_in_the_waiting_task_and_may_call(revision: str) -> None:
    runs: list[Any] = []

    async def look(*news: Any) -> None:
        runs.append((anyio.get_current_task().id, text_of(await client.call_tool("silent"))))

    async with live(counter(), revision) as (client, _):
        await client.call_tool("count", {"to": 2}, on_progress=look)
    assert runs == [(anyio.get_current_task().id, "done")] * 2


async def test_an_error_in_the_callback_cancels_the_request(revision: str) -> None:
    def fail(*news: Any) -> None:
        raise LookupError("mine")

    async def report_once() -> None:
        asked = await server.next()
        await server.say(report(asked["params"]["_meta"]["progressToken"], 1))

    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(report_once)
            with pytest.raises(LookupError, match="mine"):
                await client.call_tool("slow", on_progress=fail)
        asked, taken_back = server.heard
        assert taken_back["params"] == {"requestId": asked["id"]}


@pytest.mark.requirement("progress.rate-limited")
@pytest.mark.parametrize(("size", "kept"), [(NOTIFICATION_BYTES // 2, 2), (NOTIFICATION_BYTES, 1)])
async def test_a_flood_of_reports_is_bounded_and_ends_with_the_last(
    revision: str, size: int, kept: int
) -> None:
    long, count = "x" * (size + 2 - kept), 10
    if revision not in revisions_holding("progress.notification-shape"):  # it has no messages
        count, kept = 3 * NOTIFICATIONS, NOTIFICATIONS
    heard: list[float] = []
    first, go_on = anyio.Event(), anyio.Event()

    async def slow(value: float, *rest: Any) -> None:
        heard.append(value)
        first.set()
        await go_on.wait()

    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.call_tool("flood", on_progress=slow))
        asked = await server.next()
        token = asked["params"]["_meta"]["progressToken"]
        for value in range(1, count):
            await server.say(report(token, value, **({"message": long} if count == 10 else {})))
            await first.wait()
        await server.answer(asked, TEXT)
        tasks.start_soon(server.answer_next, TEXT)
        await client.call_tool("other")  # goes on meanwhile
        go_on.set()
    assert heard == [1, *range(count - kept, count)]


@pytest.mark.requirement("progress.either-side")
@pytest.mark.parametrize("revision", revisions_holding("progress.either-side"))
async def test_a_client_reports_on_what_a_server_asked(revision: str) -> None:
    heard: list[tuple[Any, ...]] = []

    class Model(ClientHandlers):
        async def create_message(self, params: Any, ctx: Any) -> Any:
            await ctx.progress(1, 2, "thinking")
            return RESULTS["sampling/createMessage"]

    async def think(ctx: Context) -> str:
        asked = PARAMS["sampling/createMessage"]
        await ctx.request_context.request(
            "sampling/createMessage", asked, on_progress=lambda *news: heard.append(news)
        )
        return "thought"

    async with live(server_with(think), revision, handlers=Model()) as (client, _):
        assert text_of(await client.call_tool("think")) == "thought"
    assert [(value, total) for value, total, _ in heard] == [(1, 2)]
