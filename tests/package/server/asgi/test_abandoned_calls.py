"""Calls of sessions whose clients left: they go on, for a while, and take no places of others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from trio.testing import MockClock

from mcpgen_runtime import Context, Server
from mcpgen_runtime.runtime.task_scope import TaskScope
from mcpgen_runtime.server.asgi.event_store import MemoryEventStore
from mcpgen_runtime.server.asgi.http_session import SessionExchanges
from mcpgen_runtime.server.asgi.quotas import Quotas
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import BOTH, JSON, SESSION, SSE, Http, asgi
from package.asgi_stream import SECONDS, Reply, Stream
from package.client.simulation import ASYNCIO
from package.wire import INITIALIZED, SESSIONS, cancelled_notification, facts, request

pytestmark = pytest.mark.processes

RESUMABLE = [revision for revision in SESSIONS if facts(revision).http.resumable]
WITH_BATCHES = "2025-03-26"
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
OFTEN = 0.01
JUMPING = [
    pytest.param(ASYNCIO, id="asyncio"),
    pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio"),
]
"""Event loops with a clock that jumps when everybody waits: minutes pass at once."""

sessions = pytest.mark.parametrize("revision", SESSIONS)


class Patient:
    """A server whose tools wait: for the test, or for the client.

    Attributes:
        server: It.
        go: Set to let the tools end.
        begun: How many calls have begun.
        done: How many came to their end.
        cancelled: The numbers of the calls that were cancelled.
        moments: When they were cancelled.
    """

    def __init__(self) -> None:
        self.server = Server("tester")
        self.go = anyio.Event()
        self.begun = 0
        self.done = 0
        self.cancelled: list[int] = []
        self.moments: list[float] = []
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
            self.moments.append(anyio.current_time())
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
        await patient.until(cancelled=1)
        patient.go.set()
        await patient.until(done=3)
        assert len(patient.cancelled) == 1  # of the first POST
        assert 7 not in patient.cancelled
        pings = [request(WITH_BATCHES, "ping", id=number) for number in range(10, 13)]
        with anyio.fail_after(SECONDS):
            while (await http.post(pings)).status == 503:
                await anyio.sleep(OFTEN)


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


async def test_work_for_notifications_ends_with_an_abandoned_batch() -> None:
    notified = Notified()
    notified.server.tool()(anyio.sleep_forever)
    limits = Limits(abandoned_seconds=0.02)
    async with asgi(notified.server, limits=limits, keep_alive=OFTEN) as http:
        await http.initialize(WITH_BATCHES)
        forever = request(WITH_BATCHES, "tools/call", {"name": "sleep_forever"})
        async with http.stream("POST", [forever, ROOTS_CHANGED]) as stream:
            await stream.until(b":")  # a comment, or the question to the client
        with anyio.fail_after(SECONDS):
            await notified.ended.wait()


async def test_work_for_notifications_outlives_the_answers_of_a_batch() -> None:
    notified = Notified()
    limits = Limits(abandoned_seconds=0.02, in_flight=2)
    async with asgi(notified.server, limits=limits) as http:
        await http.initialize(WITH_BATCHES)
        tools = request(WITH_BATCHES, "tools/list", id="a")
        for done in range(1, 4):  # more than have a place at a time
            async with http.stream("POST", [ROOTS_CHANGED, tools]) as stream:
                await stream.end()
            await anyio.wait_all_tasks_blocked()
            assert notified.begun == done
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


on_virtual_clock = pytest.mark.parametrize("anyio_backend", JUMPING[:1])
NEWEST = SESSIONS[-1]


@on_virtual_clock
@pytest.mark.parametrize(
    ("keep_alive", "left", "cancelled"),
    [(None, (0.0, 21.0), [20.0, 35.0]), (10.0, (0.0, 11.0), [10.0, 20.0])],
)
async def test_clients_that_left_are_looked_for_at_intervals(
    keep_alive: float | None, left: Sequence[float], cancelled: Sequence[float]
) -> None:
    patient = Patient()
    limits = Limits(abandoned_seconds=5)
    async with asgi(patient.server, keep_alive=keep_alive, limits=limits) as http:
        await http.initialize(NEWEST)
        for number, moment in enumerate(left):
            await anyio.sleep_until(moment)
            await leave(http, NEWEST, number)
        await anyio.sleep_until(cancelled[-1] + 1)
    assert patient.moments == cancelled


class Work:
    """Work for a client."""

    def __init__(self, attended: bool = False) -> None:
        self.attended = attended
        self.watched = False

    async def watch(self) -> None:
        await anyio.sleep_forever()

    async def fail(self, text: str) -> None:
        pass


def no_exchanges(**limits: int) -> SessionExchanges:
    """No exchanges yet."""
    background = TaskScope(nullcontext, lambda: None)
    return SessionExchanges(background, Quotas(Limits(**limits)), 15.0, Limits(**limits))


@on_virtual_clock
async def test_new_posts_are_looked_at_four_times_a_second() -> None:
    exchanges: Any = no_exchanges(in_flight=1)
    seen: list[list[bool]] = []
    works: list[Work] = []
    for moment in (0.0, 0.0, 0.249, 0.25, 0.499, 0.5):
        await anyio.sleep_until(moment)
        works.append(Work())
        exchanges.open[works[-1]] = None
        assert exchanges.quotas.has_room()
        seen.append([work.watched for work in works])
    assert [sum(each) for each in seen] == [1, 1, 1, 4, 4, 6]


@on_virtual_clock
async def test_a_call_may_end_as_it_is_abandoned() -> None:
    exchanges = no_exchanges(abandoned_seconds=5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(exchanges.expire_abandoned)
        await anyio.wait_all_tasks_blocked()
        ended, late = Work(), Work()
        exchanges.abandon(ended)
        exchanges.end(ended)  # in the same turn
        await anyio.wait_all_tasks_blocked()
        exchanges.abandon(late)
        assert exchanges.cancel_first_abandoned("abandoned")  # not cancelled yet
        exchanges.end(late)
        tasks.cancel_scope.cancel()


@on_virtual_clock
@pytest.mark.parametrize(
    ("count", "ended", "attended", "kept"),
    [
        (2, (), (), 2),
        (3, (), (), 2),
        (3, (0,), (), 2),  # the cancelled one ends
        (3, (1,), (), 1),
        (3, (), (0,), 1),
        (3, (), (0, 1, 2), 0),
    ],
)
async def test_the_first_of_too_many_abandoned_calls_are_cancelled(
    count: int, ended: Sequence[int], attended: Sequence[int], kept: int
) -> None:
    exchanges = no_exchanges(abandoned=2)
    works = [Work(number in attended) for number in range(count)]
    for work in works:
        exchanges.abandon(work)
    for number in ended:
        exchanges.end(works[number])
    cancelled = [exchanges.cancel_first_abandoned("bodies") for _ in works]
    assert cancelled == [True] * kept + [False] * (count - kept)


@on_virtual_clock
@pytest.mark.parametrize(("before", "kept"), [(1, 2), (2, 2), (3, 2)])
async def test_places_of_abandoned_posts_are_free_once(before: int, kept: int) -> None:
    exchanges = no_exchanges(abandoned=2)
    exchanges.quotas.in_flight = before + 1
    first, *others = [Work() for _ in range(before + 1)]
    for work in (first, *others[: before - 1]):
        exchanges.abandon(work)
    for _ in range(2):
        exchanges.end(first)
    exchanges.abandon(others[-1])
    assert exchanges.quotas.in_flight == 1  # that of the first, until its HTTP request ends
    cancelled = [exchanges.cancel_first_abandoned("bodies") for _ in range(3)]
    assert cancelled == [True] * min(before, kept) + [False] * (3 - min(before, kept))


@on_virtual_clock
async def test_a_client_that_reads_its_answer_slowly_keeps_its_place() -> None:
    patient = Patient()
    limits = Limits(in_flight=1)
    async with asgi(patient.server, keep_alive=10.0, limits=limits) as http:
        await http.initialize(NEWEST)
        message, fields = call(NEWEST, 1), {"accept": JSON}
        async with http.stream("POST", message, fields=fields, begun=False) as stream:
            await patient.until(begun=1)
            stream.stop_reading()
            patient.go.set()
            await anyio.sleep_until(6.0)
            assert (await http.ask(NEWEST, "ping", id=2)).status == 503
            stream.read_on()
            await stream.end()
            await stream.finished.wait()
        assert (await http.ask(NEWEST, "ping", id=2)).status == 200


class Slow(MemoryEventStore):
    """A store that other tasks may use meanwhile."""

    async def discard(self, session: str, stream: str | None = None) -> None:
        """See `EventStore.discard`."""
        await anyio.lowlevel.checkpoint()
        await super().discard(session, stream)


async def test_a_cancelled_call_still_makes_room_for_events() -> None:
    patient, store = Patient(), Slow()
    async with asgi(patient.server, events=store, limits=Limits(per_session=1)) as http:
        await http.initialize(NEWEST)
        for number in (1, 2):
            async with http.stream("POST", call(NEWEST, number)) as stream:
                await stream.message()
                assert (await http.post(cancelled_notification(number))).status == 202
                await stream.end()
                await stream.finished.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(store) == 1


@pytest.mark.parametrize("accept", [SSE, BOTH])
@pytest.mark.parametrize("messages", [["tools/list"], ["ping"], ["tools/list", "no/such"]])
async def test_the_last_response_is_the_last_event(accept: str, messages: list[str]) -> None:
    store = MemoryEventStore()
    async with asgi(Patient().server, events=store, keep_alive=None) as http:
        await http.initialize(WITH_BATCHES)
        requests = [request(WITH_BATCHES, method, id=n) for n, method in enumerate(messages)]
        reply = await http.post(requests if len(requests) > 1 else requests[0], accept=accept)
        assert (reply.status, len(store)) == (200, int(accept == SSE))
        if accept == SSE:
            assert len(reply.events) == len(messages)
            stored = await store.after(f"{http.fields[SESSION]}", reply.events[-1].id)
            assert stored is not None
            assert (stored.events, stored.over) == ([], True)


class Noting(Server):
    """A server whose work for a notification waits.

    Attributes:
        go: Set to let it end.
        ended: How often it ended.
    """

    def __init__(self) -> None:
        super().__init__("tester")
        self.go = anyio.Event()
        self.ended = 0
        self.tool()(self.plain)

    async def plain(self) -> str:
        return "plain"

    async def notified(self, ctx: Any) -> None:
        if ctx.method.name == ROOTS_CHANGED["method"]:
            await self.go.wait()
            self.ended += 1


@sessions
async def test_a_session_may_do_so_much_for_notifications_again(revision: str) -> None:
    noting = Noting()
    async with asgi(noting, limits=Limits(per_session=2)) as http:
        await http.initialize(revision)
        assert (await http.ask(revision, "tools/list", {}, id=1)).status == 200
        for turn in (1, 2, 3):
            assert (await note(http)).status == 202
            assert (await http.ask(revision, "tools/list", {}, id=1)).status == 200
            assert [(await note(http)).status for _ in range(2)] == [202, 503]
            reply = await http.ask(revision, "tools/list", {}, id=1)
            assert (reply.status, "Limits.per_session" in reply.error["message"]) == (503, True)
            noting.go.set()
            while noting.ended < 2 * turn:
                await anyio.lowlevel.checkpoint()
            noting.go = anyio.Event()


@sessions
@pytest.mark.parametrize(("per_session", "status"), [(1, 503), (2, 200)])
async def test_requests_of_a_session_are_refused_at_its_limit(
    revision: str, per_session: int, status: int
) -> None:
    patient = Patient()
    async with asgi(patient.server, limits=Limits(per_session=per_session)) as http:
        await http.initialize(revision)
        assert (await http.ask(revision, "tools/list", {}, id=1)).status == 200
        async with http.stream("POST", call(revision, 2)) as stream:
            await stream.message()
            assert (await http.ask(revision, "tools/list", {}, id=1)).status == status


async def test_each_end_of_a_post_gives_its_places_back() -> None:
    patient, limits = Patient(), Limits(in_flight=3)
    batch = [request(WITH_BATCHES, "ping", id=number) for number in range(4)]
    async with asgi(patient.server, keep_alive=OFTEN, limits=limits) as http:
        await http.initialize(WITH_BATCHES)
        for turn in range(4):
            assert (await http.ask(WITH_BATCHES, "no/such")).status == 200
            assert (await http.ask(WITH_BATCHES, "tools/list")).status == 200
            assert (await note(http)).status == 202
            async with http.stream("POST", call(WITH_BATCHES, 9)) as stream:
                await stream.message()
                await http.post(cancelled_notification(9))
                await stream.end()
                await stream.finished.wait()
            two = [call(WITH_BATCHES, 7), call(WITH_BATCHES, 8)]
            async with http.stream("POST", two) as left:
                await patient.until(begun=3 * turn + 3)
            assert (await request_until_served(http, WITH_BATCHES)).status == 200
            patient.go.set()
            await left.finished.wait()
            patient.go = anyio.Event()
            assert (await http.post(batch[:3])).status == 200
            assert (await http.post(batch)).status == 503


@sessions
async def test_notifications_leave_nothing_in_the_memory_of_sessions(revision: str) -> None:
    padded = {**ROOTS_CHANGED, "params": {"_meta": {"padding": "x" * 1000}}}
    async with asgi(Patient().server, limits=Limits(session_bytes=4000)) as http:
        await http.initialize(revision)
        assert [(await http.post(padded)).status for _ in range(5)] == [202] * 5
