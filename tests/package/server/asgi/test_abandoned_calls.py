"""Calls of sessions whose clients left: they go on, for a while, and take no places of others."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from mcp_protocol import Context, Server
from mcp_protocol.server.asgi.settings import Limits
from package.asgi_client import Http, asgi
from package.asgi_stream import SECONDS, Reply, Stream
from package.wire import INITIALIZED, SESSIONS, facts, request

RESUMABLE = [revision for revision in SESSIONS if facts(revision).http.resumable]
WITH_BATCHES = "2025-03-26"
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
OFTEN = 0.01
JUMPING = [pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio")]
"""An event loop with a clock that jumps when everybody waits: minutes pass at once."""

sessions = pytest.mark.parametrize("revision", SESSIONS)


class Patient:
    """A server whose tools wait: for the test, or for the client.

    Attributes:
        server: It.
        go: Set to let the tools end.
        begun: How many calls have begun.
        done: How many came to their end.
        cancelled: The numbers of the calls that were cancelled.
    """

    def __init__(self) -> None:
        self.server = Server("tester")
        self.go = anyio.Event()
        self.begun = 0
        self.done = 0
        self.cancelled: list[int] = []
        self._changed = anyio.Event()
        self.server.tool()(self.wait)
        self.server.tool()(self.asks)

    async def wait(self, ctx: Context, number: int) -> str:
        await self._count(number, self.go.wait, ctx)
        return "done"

    async def asks(self, ctx: Context, number: int) -> str:
        await self._count(number, lambda: ctx.request("ping"), ctx)
        return "asked"

    async def until(self, *, begun: int = 0, cancelled: int = 0, done: int = 0) -> None:
        """Wait until so many calls have come so far."""
        with anyio.fail_after(SECONDS):
            while self.begun < begun or len(self.cancelled) < cancelled or self.done < done:
                self._changed = anyio.Event()
                await self._changed.wait()

    async def _count(self, number: int, work: Any, ctx: Context) -> None:
        await ctx.info("begun")
        self.begun += 1
        self._changed.set()
        try:
            await work()
            self.done += 1
        except BaseException:
            self.cancelled.append(number)
            raise
        finally:
            self._changed.set()


def call(revision: str, number: int, name: str = "wait") -> dict[str, Any]:
    params = {"name": name, "arguments": {"number": number}}
    return request(revision, "tools/call", params, id=number)


async def leave(http: Http, revision: str, *numbers: int, name: str = "wait") -> str:
    """Make calls and leave once they have begun; the id of the last event of the last one."""
    last = ""
    for number in numbers:
        async with http.stream("POST", call(revision, number, name)) as stream:
            await stream.message()
        last = stream.decoder.last_id or ""
    return last


async def note(http: Http) -> Stream:
    """Send a notification, and wait for the answer, not for what is done for it."""
    async with http.stream("POST", ROOTS_CHANGED) as stream:
        await stream.end()
    return stream


async def request_until_served(http: Http, revision: str, method: str = "tools/list") -> Reply:
    """Ask until the server has a place for it."""
    with anyio.fail_after(SECONDS):
        while (reply := await http.ask(revision, method, id="asked")).status == 503:
            assert "Limits.in_flight" in reply.error["message"]
            await anyio.sleep(OFTEN)
    return reply


@pytest.mark.requirement("http.disconnect-not-cancel")
@sessions
@pytest.mark.parametrize("name", ["wait", "asks"])
async def test_calls_of_clients_that_left_go_on_and_take_no_places(
    revision: str, name: str
) -> None:
    patient = Patient()
    async with asgi(patient.server, limits=Limits(in_flight=4)) as http:
        await http.initialize(revision)
        await leave(http, revision, 1, 2, 3, 4, name=name)
        assert (await request_until_served(http, revision)).status == 200
        other = http.another()
        await other.initialize(revision)
        assert patient.cancelled == []
        if name == "wait":
            patient.go.set()
            await patient.until(done=4)


@sessions
async def test_no_more_calls_than_so_many_go_on_for_clients_that_left(revision: str) -> None:
    patient = Patient()
    limits = Limits(abandoned=2)
    async with asgi(patient.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        for number in range(1, 5):
            await leave(http, revision, number)
            await patient.until(begun=number, cancelled=number - 2)
        assert len(patient.cancelled) == 2
        assert (await http.ask(revision, "ping", id=9)).status == 200


@pytest.mark.one_process
@sessions
async def test_a_body_without_room_ends_an_abandoned_call(revision: str) -> None:
    patient = Patient()
    limits = Limits(bodies=100_000)
    long = request(revision, "ping", meta={"example.com/padding": "x" * 100_000}, id=9)
    async with asgi(patient.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        await leave(http, revision, 1)
        with anyio.fail_after(SECONDS):
            while not patient.cancelled:
                reply = await http.post(long)
                assert (reply.status, "Limits.bodies" in reply.error["message"]) == (503, True)
        assert patient.cancelled == [1]


@pytest.mark.parametrize("name", ["wait", "asks"])
@sessions
async def test_a_call_whose_client_does_not_come_back_is_cancelled(
    revision: str, name: str
) -> None:
    patient = Patient()
    limits = Limits(abandoned_seconds=0.02)
    async with asgi(patient.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        await leave(http, revision, 1, name=name)
        await patient.until(cancelled=1)
        assert (await http.ask(revision, "ping", id=1)).result == {}


@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_client_that_comes_back_too_late_finds_the_reason(revision: str) -> None:
    patient = Patient()
    limits = Limits(abandoned_seconds=0.02)
    async with asgi(patient.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        last = await leave(http, revision, 1)
        await patient.until(cancelled=1)
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            answer = await stream.message()
        assert (answer["id"], answer["error"]["code"]) == (1, -32603)
        assert "Limits.abandoned_seconds" in answer["error"]["message"]


@pytest.mark.parametrize("anyio_backend", JUMPING)
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_call_whose_client_came_back_goes_on_however_long(revision: str) -> None:
    patient = Patient()
    seconds = Limits().abandoned_seconds
    async with asgi(patient.server) as http:
        await http.initialize(revision)
        last = await leave(http, revision, 1)
        await anyio.sleep(seconds / 2)
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            await anyio.sleep(3 * seconds)
            assert patient.cancelled == []
            patient.go.set()
            assert (await stream.message())["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("anyio_backend", JUMPING)
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_calls_expire_in_the_order_in_which_clients_left(revision: str) -> None:
    patient = Patient()
    seconds = Limits().abandoned_seconds
    async with asgi(patient.server) as http:
        await http.initialize(revision)
        last = await leave(http, revision, 1)
        await anyio.sleep(seconds / 3)
        await leave(http, revision, 2)
        await anyio.sleep(seconds / 3)
        await leave(http, revision, 3)
        async with http.stream("GET", fields={"last-event-id": last}):
            await anyio.sleep(seconds / 2)
            assert patient.cancelled == []
            await anyio.sleep(seconds / 3)
            assert patient.cancelled == [2]
            await anyio.sleep(seconds / 3)
            assert patient.cancelled == [2, 3]
        await anyio.sleep(seconds)
        assert patient.cancelled == [2, 3, 1]


async def test_each_request_of_a_batch_takes_a_place() -> None:
    patient = Patient()
    async with asgi(patient.server, limits=Limits(in_flight=4)) as http:
        await http.initialize(WITH_BATCHES)
        five = [call(WITH_BATCHES, number) for number in range(1, 6)]
        reply = await http.post(five)
        assert (reply.status, "Limits.in_flight" in reply.error["message"]) == (503, True)
        assert patient.begun == 0
        async with http.stream("POST", five[:4]) as stream:
            await patient.until(begun=4)
            assert (await http.ask(WITH_BATCHES, "ping", id=9)).status == 503
            patient.go.set()
            assert len([m for m in await stream.messages() if "result" in m]) == 4
            await stream.finished.wait()
        assert (await http.ask(WITH_BATCHES, "ping", id=9)).status == 200


async def test_an_abandoned_batch_gives_all_its_places_back() -> None:
    patient = Patient()
    limits = Limits(in_flight=3, abandoned=3)
    async with asgi(patient.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(WITH_BATCHES)
        batch = [*(call(WITH_BATCHES, number) for number in range(1, 4)), ROOTS_CHANGED]
        async with http.stream("POST", batch) as stream:
            await stream.message()
            await patient.until(begun=3)
        assert (await request_until_served(http, WITH_BATCHES)).status == 200
        await leave(http, WITH_BATCHES, 7)  # one more than may be abandoned
        await patient.until(cancelled=3)
        assert sorted(patient.cancelled) == [1, 2, 3]
        assert (await http.ask(WITH_BATCHES, "ping", id=1)).status == 200


class Notified:
    """A server that does long work for a notification.

    Attributes:
        server: It.
        begun: How often that began.
        ended: Set once one was cancelled.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.ended = anyio.Event()
        outer = self

        class Noting(Server):
            async def notified(self, ctx: Any) -> None:
                if ctx.method.name == ROOTS_CHANGED["method"]:
                    outer.begun += 1
                    try:
                        await ctx.peer.request("ping")
                    finally:
                        outer.ended.set()

        self.server = Noting("tester")


@sessions
async def test_notifications_take_places_only_until_they_are_accepted(
    revision: str,
) -> None:
    notified = Notified()
    limits = Limits(in_flight=2, per_session=3)
    async with asgi(notified.server, limits=limits) as http:
        await http.initialize(revision)
        for _ in range(3):
            assert (await note(http)).status == 202
        reply = await http.post(ROOTS_CHANGED)
        assert (reply.status, "Limits.per_session" in reply.error["message"]) == (503, True)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        assert (await http.post({**cancel, "params": {"requestId": 5}})).status == 202
        other = http.another()
        await other.initialize(revision)
        assert (await other.post(INITIALIZED)).status == 202
        assert notified.begun == 3


@sessions
async def test_work_for_a_notification_ends_if_the_client_is_silent(revision: str) -> None:
    notified = Notified()
    limits = Limits(abandoned_seconds=0.02)
    async with asgi(notified.server, limits=limits) as http:
        await http.initialize(revision)
        assert (await note(http)).status == 202
        with anyio.fail_after(SECONDS):
            await notified.ended.wait()


@sessions
async def test_answers_and_cancellations_are_accepted_at_the_limit(
    revision: str,
) -> None:
    patient = Patient()
    async with asgi(patient.server, limits=Limits(in_flight=2)) as http:
        await http.initialize(revision)
        async with (
            http.stream("POST", call(revision, 1, "asks")) as asking,
            http.stream("POST", call(revision, 2)) as waiting,
        ):
            question = (await asking.message(), await asking.message())[1]
            await waiting.message()
            assert (await http.ask(revision, "ping", id=3)).status == 503
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {}}
            assert (await http.post(answer)).status == 202
            assert "result" in await asking.message()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            assert (await http.post({**cancel, "params": {"requestId": 2}})).status == 202
            await patient.until(cancelled=1)
