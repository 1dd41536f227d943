"""Requests taken back: what is said about it, and what is ignored or comes too late."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.ends import ASKED, End, answering_ends, ask, asking_ends, begin_request, both, end_of
from kit.live import live, server_with
from kit.rules import revision_fixture
from kit.samples import PARAMS, RESULTS
from kit.wire import (
    ALL,
    CANCELLED,
    HANDSHAKE,
    ClientEnd,
    cancelled_notification,
    legacy,
    modern,
    request,
    speaking_to,
    text_in,
)
from mcpgen_runtime import Context, RequestCancelledError, Server
from mcpgen_runtime.errors import InternalError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    CancelRequest,
    Ignored,
    RequestFailed,
    SendError,
    SendResponse,
)

revision = revision_fixture(ALL)

WRONG_IDS: list[Any] = [None, {}, 1.5, True, 999, "7"]
IN_PROGRESS = "cancellation.in-progress-only"  # holds in every revision


def open_request(revision: str, role: Role) -> tuple[End, int]:
    """An end and the id of a request that it has open."""
    end = end_of(revision, role)
    return end, begin_request(end)["id"]


@pytest.mark.requirement("cancellation.shape", "cancellation.shape-2025-11")
@pytest.mark.requirement("cancellation.either-side")
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
@pytest.mark.parametrize("reason", [None, "user went home"])
def test_a_cancellation_has_the_request_id_and_any_reason(
    revision: str, role: Role, reason: str | None
) -> None:
    end, id = open_request(revision, role)
    given = {} if reason is None else {"reason": reason}
    assert end.send(CancelRequest(id, reason)) == [cancelled_notification(id, **given)]


@pytest.mark.requirement("cancellation.in-progress-only", "cancellation.client-issued")
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
def test_only_an_open_request_of_ours_is_cancelled_and_only_once(revision: str, role: Role) -> None:
    end, id = open_request(revision, role)
    sent = [len(end.send(CancelRequest(each))) for each in (id + 1, str(id), id, id)]
    assert sent == [0, 0, 1, 0]
    end, id = open_request(revision, role)
    end.say({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})
    assert end.send(CancelRequest(id)) == []


@pytest.mark.requirement("cancellation.client-issued")
async def test_a_cancellation_can_not_be_sent_for_an_id_of_ones_choice(revision: str) -> None:
    async with live(Server("any"), revision) as (client, record):
        with pytest.raises(Exception, match="giving up the request itself"):
            await client.notify(CANCELLED, {"requestId": 1})
    assert record.sent_as(CANCELLED) == []


@pytest.mark.requirement("cancellation.same-direction")
@pytest.mark.parametrize(
    ("revision", "role"),
    [pair for pair in asking_ends(IN_PROGRESS) if pair[0] in HANDSHAKE],
)
def test_the_peer_can_not_cancel_a_request_that_we_sent(revision: str, role: Role) -> None:
    end, id = open_request(revision, role)
    assert end.say(cancelled_notification(id)) == []
    assert len(end.connection.state.outbound) == 1
    assert len(end.send(CancelRequest(id))) == 1


@pytest.mark.requirement("cancellation.no-response", "cancellation.stops-processing")
@pytest.mark.parametrize(("revision", "role"), answering_ends(IN_PROGRESS))
@pytest.mark.parametrize("id", [7, "7", ""])
def test_a_cancelled_request_is_forgotten_and_not_answered(
    revision: str, role: Role, id: int | str
) -> None:
    end = end_of(revision, role)
    for started in (id, "other"):
        ask(end, ASKED[role], id=started)
    end.events.clear()
    assert end.say(cancelled_notification(id, reason="late")) == []
    assert list(end.events) == [CancelReceived(id, "late")]
    assert tuple(end.connection.state.inbound) == ("other",)
    assert end.send(SendResponse(id, RESULTS[ASKED[role]])) == []
    assert end.send(SendError(id, InternalError("too late"))) == []
    assert len(end.send(SendResponse("other", RESULTS[ASKED[role]]))) == 1


@pytest.mark.requirement("cancellation.invalid-ignored", "cancellation.may-be-ignored")
@pytest.mark.parametrize(("revision", "role"), both("cancellation.invalid-ignored"))
@pytest.mark.parametrize(
    "params",
    [
        *(None, {}, [], {"requestId": 7, "reason": 5}),
        *({"requestId": id} for id in WRONG_IDS),
    ],
    ids=repr,
)
def test_a_cancellation_that_fits_nothing_is_ignored(
    revision: str, role: Role, params: Any
) -> None:
    end = end_of(revision, role)
    if (revision, role) in answering_ends(IN_PROGRESS):
        ask(end, ASKED[role], id=7)
    served = tuple(end.connection.state.inbound)
    end.events.clear()
    message = {"jsonrpc": "2.0", "method": CANCELLED}
    assert end.say(message if params is None else {**message, "params": params}) == []
    assert [type(event) for event in end.events] == [Ignored]
    assert tuple(end.connection.state.inbound) == served


@pytest.mark.requirement("cancellation.late-response-ignored", "seed-compat.code-32800")
@pytest.mark.requirement("seed-compat.cancel-unimplemented", "cancellation.races")
@pytest.mark.parametrize(("revision", "role"), asking_ends(IN_PROGRESS))
@pytest.mark.parametrize(
    "answer",
    [{"result": {}}, {"error": {"code": -32800, "message": "no"}}, {"result": 5}],
    ids=repr,
)
def test_an_answer_that_comes_after_the_cancellation_is_ignored(
    revision: str, role: Role, answer: dict[str, Any]
) -> None:
    end, id = open_request(revision, role)
    end.send(CancelRequest(id))
    end.events.clear()
    assert end.say({"jsonrpc": "2.0", "id": id, **answer}) == []
    assert [type(event) for event in end.events] == [Ignored]


@pytest.mark.requirement("cancellation.server-references-listen")
@modern
def test_a_server_can_end_a_subscription_and_no_other_request(revision: str) -> None:
    client = ClientEnd(revision)
    call = client.ask("tools/call", PARAMS["tools/call"])
    listen = client.ask("subscriptions/listen", PARAMS["subscriptions/listen"])
    client.say(cancelled_notification(call["id"]))
    assert [type(event) for event in client.events] == [Ignored]
    client.say(cancelled_notification(listen["id"]))
    (event,) = client.events
    assert isinstance(event, RequestFailed)
    assert event.id == listen["id"]
    assert isinstance(event.error, RequestCancelledError)
    assert len(client.connection.state.outbound) == 1


class Stubborn:
    """A server whose one tool shows when it is stopped, and does not let that be its end."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.stopped = anyio.Event()
        self.server = Server("stubborn", drain=0)

        @self.server.tool()
        async def work(ctx: Context, then: str) -> str:
            self.started.set()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await ctx.progress(1)
                    await ctx.error("stopped")
                self.stopped.set()
                if then == "go":
                    raise
                if then == "raise":
                    raise ValueError("anyway") from None
            return "anyway"


@pytest.mark.requirement("cancellation.client-signals", "cancellation.stdio-notification")
@pytest.mark.requirement("cancellation.stops-processing", "cancellation.nothing-further")
@pytest.mark.requirement("custom-transport.cancellation-defined", "stdio.cancel-by-notification")
@pytest.mark.requirement("stdio.cancel-server-stops", "stdio.cancel-server-silent")
@pytest.mark.parametrize("then", ["go", "return", "raise"])
async def test_a_cancelled_caller_stops_the_tool_and_gets_no_more(revision: str, then: str) -> None:
    stubborn = Stubborn()
    async with live(stubborn.server, revision) as (client, record):
        client.ask_for_logs("debug")
        heard: list[float] = []
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await client.call_tool(
                    "work", {"then": then}, on_progress=lambda value, *_: heard.append(value)
                )

            tasks.start_soon(call)
            with anyio.fail_after(10):
                await stubborn.started.wait()
                tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await stubborn.stopped.wait()
        before = len(record.received)
        await client.list_tools()
    (call_id,) = [m["id"] for m in record.sent if m.get("method") == "tools/call"]
    assert record.sent_as(CANCELLED) == [{"requestId": call_id}]
    assert len(record.received) == before + 1
    assert heard == []


@pytest.mark.requirement("cancellation.reason-logged")
async def test_the_reason_is_logged_and_the_id_may_be_used_again(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcpgen_runtime")
    stubborn = Stubborn()

    @stubborn.server.tool()
    async def fresh() -> str:
        await stubborn.stopped.wait()
        await anyio.lowlevel.checkpoint()
        return "fresh"

    async with speaking_to(stubborn.server, revision) as end:
        params = {"name": "work", "arguments": {"then": "return"}}
        await end.send(request(revision, "tools/call", params, id="x"))
        with anyio.fail_after(10):
            await stubborn.started.wait()
        await end.send(cancelled_notification("x", reason="coffee is ready"))
        assert text_in(await end.ask("tools/call", {"name": "fresh"}, id="x")) == "fresh"
    assert "coffee is ready" in caplog.text


@pytest.mark.requirement("cancellation.either-side")
@legacy
async def test_a_server_that_is_cancelled_cancels_its_own_request(revision: str) -> None:
    async def ask_back(ctx: Context) -> str:
        await ctx.request("roots/list")
        return "answered"

    async with speaking_to(server_with(ask_back), revision, {"roots": {}}) as end:
        await end.send(request(revision, "tools/call", {"name": "ask_back"}, id="x"))
        asked = await end.receive()
        assert asked["method"] == "roots/list"
        await end.send(cancelled_notification("x"))
        assert await end.receive() == cancelled_notification(asked["id"])
        await end.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        assert (await end.ask("ping"))["result"] == {}
