"""Calls of sessions whose clients left: they go on, for a while, and take no places of others."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import JSON, Http, fields_of, speaking
from kit.asgi_stream import SECONDS, Reply, text_in
from kit.simulation import on_virtual_clocks
from kit.waiting import WaitingServer
from kit.wire import (
    INITIALIZED,
    SESSIONS,
    cancelled_notification,
    facts,
    request,
    sessions,
    streamable,
)
from mcpgen_runtime import Limits, Server

pytestmark = [pytest.mark.processes, on_virtual_clocks]

RESUMABLE = [revision for revision in SESSIONS if facts(revision).http.resumable]
NEWEST = SESSIONS[-1]
WITH_BATCHES = "2025-03-26"
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
OFTEN = 0.01

resumable = pytest.mark.parametrize("revision", RESUMABLE)


def call(number: int) -> dict[str, Any]:
    """A call for a batch."""
    params = {"name": "speak_and_wait", "arguments": {"number": number}}
    return request(WITH_BATCHES, "tools/call", params, id=number, meta={"progressToken": number})


def is_over(reply: Reply, limit: str) -> bool:
    """Whether a request was refused because of a limit."""
    return reply.status == 503 and f"Limits.{limit}" in reply.error["message"]


async def request_until_served(http: Http, revision: str, messages: Any = None) -> Reply:
    """Ask until the server has a place for it."""
    message = messages or request(revision, "tools/list", id="asked")
    with anyio.fail_after(SECONDS):
        while (reply := await http.post(message)).status == 503:
            assert is_over(reply, "in_flight")
            await anyio.sleep(OFTEN)
    return reply


@pytest.mark.requirement("http.disconnect-not-cancel")
@sessions
@pytest.mark.parametrize("tool", ["wait", "speak_and_wait", "ask"])
async def test_calls_of_clients_that_left_go_on_and_take_no_places(
    revision: str, tool: str
) -> None:
    waiting = WaitingServer()
    async with speaking(
        waiting.server, revision, limits=Limits(in_flight=4), keep_alive=OFTEN
    ) as http:
        await waiting.leave(http, revision, 1, 2, 3, 4, tool=tool)
        assert (await request_until_served(http, revision)).status == 200
        await http.another().initialize(revision)
        assert waiting.cancelled == []
        if tool != "ask":
            waiting.go.set()
            await waiting.until(returned=4)


@resumable
async def test_a_call_whose_client_came_back_is_not_ended_for_others(revision: str) -> None:
    waiting = WaitingServer()
    async with speaking(
        waiting.server, revision, limits=Limits(abandoned=1), keep_alive=OFTEN
    ) as http:
        last = await waiting.leave(http, revision, 1)
        async with http.stream("GET", fields={"last-event-id": last}):
            for number in (2, 3):
                await waiting.leave(http, revision, number)
                await waiting.until(cancelled=number - 1)
        assert waiting.cancelled == [2, 3]


@pytest.mark.one_process
@streamable
async def test_a_body_without_room_ends_a_call_whose_client_left(revision: str) -> None:
    waiting = WaitingServer()
    long = request(revision, "tools/list", meta={"example.com/padding": "x" * 100_000}, id=9)
    async with speaking(
        waiting.server, revision, limits=Limits(bodies=100_000), keep_alive=OFTEN
    ) as http:
        await waiting.leave(http, revision, 1)
        with anyio.fail_after(SECONDS):
            while not waiting.cancelled:
                assert is_over(await http.post(long, **fields_of(revision, long)), "bodies")
                await anyio.sleep(OFTEN)
        assert waiting.cancelled == [1]


@resumable
@pytest.mark.parametrize("keep_alive", [None, 10.0])
@pytest.mark.parametrize("tool", ["speak_and_wait", "ask"])
async def test_a_client_that_comes_back_too_late_finds_the_reason(
    revision: str, keep_alive: float | None, tool: str
) -> None:
    waiting, limits = WaitingServer(), Limits(abandoned_seconds=5)
    async with speaking(waiting.server, revision, limits=limits, keep_alive=keep_alive) as http:
        last = await waiting.leave(http, revision, 1, tool=tool)
        await anyio.sleep(25)
        assert waiting.cancelled == [1]
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            answer = (await stream.messages())[-1]
        assert (answer["id"], answer["error"]["code"]) == (1, -32603)
        assert "Limits.abandoned_seconds" in answer["error"]["message"]


@resumable
async def test_a_call_whose_client_came_back_goes_on_however_long(revision: str) -> None:
    waiting, seconds = WaitingServer(), Limits().abandoned_seconds
    async with speaking(waiting.server, revision) as http:
        last = await waiting.leave(http, revision, 1)
        await anyio.sleep(seconds / 2)
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            await waiting.leave(http, revision, 2)
            await anyio.sleep(3 * seconds)
            assert waiting.cancelled == [2]
            waiting.go.set()
            assert text_in(await stream.message()) == "done"


async def notify(http: Http) -> Reply:
    """Send a notification, and wait for the answer, not for what is done for it."""
    async with http.stream("POST", ROOTS_CHANGED) as stream:
        await stream.end()
    return Reply(stream)


class Noting(Server):
    """A server whose work for a notification waits."""

    def __init__(self) -> None:
        super().__init__("noting")
        self.go = anyio.Event()
        self.begun = self.ended = 0
        self.tool()(anyio.sleep_forever)

    async def notified(self, ctx: Any) -> None:
        if ctx.method.name == ROOTS_CHANGED["method"]:
            self.begun += 1
            try:
                await self.go.wait()
            finally:
                self.ended += 1

    async def until(self, ended: int) -> None:
        with anyio.fail_after(SECONDS):
            while self.ended < ended:
                await anyio.sleep(OFTEN)


@sessions
async def test_a_session_may_do_so_much_for_notifications_at_a_time(revision: str) -> None:
    noting = Noting()
    async with speaking(noting, revision, limits=Limits(in_flight=2, per_session=3)) as http:
        for turn in (1, 2):
            for _ in range(3):  # more than are in flight at a time
                assert (await notify(http)).status == 202
            assert is_over(await notify(http), "per_session")
            assert is_over(await http.ask(revision, "tools/list"), "per_session")
            assert (await http.post(cancelled_notification(5))).status == 202
            other = http.another()
            await other.initialize(revision)
            assert (await other.post(INITIALIZED)).status == 202
            noting.go.set()
            await noting.until(ended=3 * turn)
            assert (await http.ask(revision, "tools/list")).status == 200
            noting.go = anyio.Event()


@sessions
async def test_work_for_a_notification_ends_if_the_client_is_silent(revision: str) -> None:
    noting = Noting()
    async with speaking(noting, revision, limits=Limits(abandoned_seconds=0.02)) as http:
        assert (await notify(http)).status == 202
        await noting.until(ended=1)


async def test_a_client_that_reads_its_answer_slowly_keeps_its_place() -> None:
    waiting = WaitingServer()
    async with speaking(
        waiting.server, NEWEST, keep_alive=10.0, limits=Limits(in_flight=1)
    ) as http:
        http.fields["accept"] = JSON
        async with waiting.calling(http, NEWEST, 1, "wait") as stream:
            await waiting.until(begun=1)
            stream.stop_reading()
            waiting.go.set()
            await anyio.sleep_until(6.0)
            assert (await http.ask(NEWEST, "ping", id=2)).status == 503
            stream.read_on()
            await stream.end()
            await stream.finished.wait()
        assert (await http.ask(NEWEST, "ping", id=2)).status == 200


async def test_each_end_of_a_post_gives_its_places_back() -> None:
    waiting, limits = WaitingServer(), Limits(in_flight=3)
    batch = [request(WITH_BATCHES, "ping", id=number) for number in range(4)]
    async with speaking(waiting.server, WITH_BATCHES, keep_alive=OFTEN, limits=limits) as http:
        for turn in range(4):
            assert (await http.ask(WITH_BATCHES, "no/such")).status == 200
            assert (await http.ask(WITH_BATCHES, "tools/list")).status == 200
            assert (await http.post(ROOTS_CHANGED)).status == 202
            async with waiting.calling(http, WITH_BATCHES, 9) as stream:
                await stream.message()
                await http.post(cancelled_notification(9))
                await stream.end()
                await stream.finished.wait()
            async with http.stream("POST", [call(7), call(8)]) as left:
                await waiting.until(begun=3 * turn + 3)
            assert (await request_until_served(http, WITH_BATCHES)).status == 200
            waiting.go.set()
            await left.finished.wait()
            waiting.go = anyio.Event()
            assert (await http.post(batch[:3])).status == 200
            assert (await http.post(batch)).status == 503


async def test_work_for_notifications_ends_with_an_abandoned_batch() -> None:
    noting = Noting()
    limits = Limits(abandoned_seconds=0.02, per_session=1)
    async with speaking(noting, WITH_BATCHES, limits=limits, keep_alive=OFTEN) as http:
        assert (await notify(http)).status == 202
        assert is_over(await http.post([ROOTS_CHANGED] * 2), "per_session")
        await noting.until(ended=1)
        forever = request(WITH_BATCHES, "tools/call", {"name": "sleep_forever"})
        async with http.stream("POST", [forever, ROOTS_CHANGED]) as stream:
            await stream.until(b":")  # a comment
        await noting.until(ended=2)
