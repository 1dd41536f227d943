"""Streams that outlive their connection: taken up again by the id of the last event seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import example, given
from hypothesis import strategies as st

from kit.asgi_client import SESSION, SSE, Http, asgi, speaking
from kit.asgi_stream import Stream, text_in
from kit.rules import revisions_holding
from kit.simulation import on_virtual_clock, simulate
from kit.steps import LAST, Steps, call, leave, read_texts
from kit.waiting import WaitingServer
from kit.wire import CHANGED, SESSIONS, cancelled_notification, facts, modern, request, sessions
from mcpgen_runtime import Limits, MemoryEventStore

pytestmark = [pytest.mark.processes, pytest.mark.workers]

polling = pytest.mark.parametrize("revision", revisions_holding("http.prime-event"))
NEWEST, WITH_BATCHES = "2025-11-25", "2025-03-26"


async def speak_once_and_leave(http: Http, steps: Steps, revision: str) -> str:
    """Call `steps`, and leave after its first message; gives the last id seen."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(steps.say)
        async with http.stream("POST", call(revision)) as stream:
            last = await leave(stream)
    return last


class Caller:
    """The client of a call whose stream it leaves and resumes, and that opens streams by GET."""

    def __init__(self, http: Http, steps: Steps, tasks: TaskGroup) -> None:
        self.texts: list[Any] = []
        self.others: list[Any] = []
        self._http = http
        self._steps = steps
        self._tasks = tasks
        self._last = ""
        self._call: Stream | None = None
        self._listening: Stream | None = None
        self._numbers = count()

    async def begin(self, revision: str) -> None:
        """Make the call, and receive its first message."""
        self._last = await speak_once_and_leave(self._http, self._steps, revision)
        self.texts.append(1)
        await self.resume()

    async def say(self) -> None:
        await self._steps.say()

    async def drop(self) -> None:
        """Leave the stream of the call."""
        if self._call is not None:
            self.texts += await self._leave(self._call)
            self._last = self._call.decoder.last_id or self._last
            self._call = None

    async def resume(self) -> None:
        """Resume the stream of the call, perhaps while an older connection is open."""
        before = self._call
        if before is not None:
            await anyio.wait_all_tasks_blocked()  # what it has received by now is not sent again
            self._last = before.decoder.last_id or self._last
        self._call = await self._connect(**{LAST: self._last})
        if before is not None:
            self.texts += await read_texts(before)

    async def listen(self) -> None:
        """Open a stream by GET, or leave it."""
        if self._listening is None:
            self._listening = await self._connect()
        else:
            self.others += await self._leave(self._listening)
            self._listening = None

    async def change(self) -> None:
        """Have the server announce a change."""
        self._steps.server.add_tool(lambda: "added", name=f"added{next(self._numbers)}")

    async def end(self) -> None:
        """Have the call end, and receive all that is left."""
        if self._listening is not None:
            await self.listen()
        await self.drop()
        self._steps.end()
        self.texts += await read_texts(await self._connect(**{LAST: self._last}))

    async def _connect(self, **fields: str) -> Stream:
        stream = Stream([b""], unfinished=False)
        scope = self._http.scope_of("GET", None, fields)
        self._tasks.start_soon(stream.run, self._http.app, scope)
        await stream.started()
        return stream

    async def _leave(self, stream: Stream) -> list[Any]:
        stream.disconnect()
        texts = await read_texts(stream)
        await stream.finished.wait()
        return texts


MOVES = ("say", "drop", "resume", "listen", "change")


@pytest.mark.one_process  # an engine takes real time
@sessions
@given(moves=st.lists(st.sampled_from(MOVES), max_size=15), waits=st.booleans())
@example(moves=["drop", "say", "say", "resume", "say"], waits=True)
@example(moves=["listen", "resume", "say", "change", "resume"], waits=True)
def test_each_message_comes_once_however_often_a_client_resumes(
    revision: str, moves: Sequence[str], waits: bool
) -> None:
    async def run() -> None:
        steps = Steps()
        async with speaking(steps.server, revision) as http, anyio.create_task_group() as tasks:
            caller = Caller(http, steps, tasks)
            await caller.begin(revision)
            for move in moves:
                await getattr(caller, move)()
                if waits:
                    await anyio.wait_all_tasks_blocked()
            await caller.end()
        assert caller.texts == [*range(1, steps.said + 1), "over"]
        assert set(caller.others) <= {CHANGED["toolsListChanged"]}

    simulate("asyncio", 0, run)


@pytest.mark.requirement(
    "http.replay", "http.resume-after-break", "http.loss-mitigation", "http.get-stream-no-response"
)
@sessions
async def test_events_sent_while_a_client_is_away_wait_for_it(revision: str) -> None:
    steps = Steps()
    async with speaking(steps.server, revision) as http:
        last = await speak_once_and_leave(http, steps, revision)
        await steps.say(3)
        async with http.stream("GET", fields={LAST: last}) as again:
            assert [(await again.message())["params"]["data"] for _ in range(3)] == [2, 3, 4]
            await steps.say(1)
            steps.end()
            assert await read_texts(again) == [5, "over"]


@pytest.mark.requirement("http.replay")
@sessions
async def test_replayed_events_keep_their_ids(revision: str) -> None:
    async with speaking(Steps().server, revision) as http:
        events = (await http.post(call(revision, "plain"))).events
        for _ in range(2):  # until the client has them
            again = (await http.get(**{LAST: events[0].id})).events
            assert [(each.id, each.data) for each in again] == [
                (each.id, each.data) for each in events[1:]
            ]


@pytest.mark.requirement("http.replay-no-other-stream", "http.event-id-per-stream-cursor")
@sessions
async def test_a_stream_brings_nothing_of_another(revision: str) -> None:
    steps = Steps()
    async with speaking(steps.server, revision) as http:
        last = await speak_once_and_leave(http, steps, revision)
        for id in (2, 3):
            await http.post(call(revision, "plain", id))
        steps.end()
        async with http.stream("GET", fields={LAST: last}) as again:
            assert await read_texts(again) == ["over"]


@pytest.mark.requirement("http.replay-no-other-stream")
@sessions
async def test_a_stream_is_not_there_for_another_session(revision: str) -> None:
    async with speaking(Steps().server, revision) as http:
        last = (await http.post(call(revision, "plain"))).events[0].id
        stranger = http.another()
        await stranger.initialize(revision)
        assert (await stranger.get(**{LAST: last})).status == 400
        assert (await http.get(**{LAST: last})).status == 200


@sessions
@pytest.mark.parametrize("last", ["", "1", "nobody-1", "x" * 5000, "-", "\u00e9", "9" * 400])
async def test_an_event_that_never_was_is_refused_and_opens_nothing(
    revision: str, last: str
) -> None:
    async with speaking(Steps().server, revision) as http:
        reply = await http.get(**{LAST: last})
        assert reply.status == 400
        assert "Last-Event-ID" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("revision", "methods"),
    [
        *((revision, ["tools/list"]) for revision in SESSIONS),
        (WITH_BATCHES, ["tools/list", "ping"]),
        (WITH_BATCHES, ["tools/list", "no/such"]),
    ],
)
async def test_after_the_last_event_of_an_ended_stream_none_is_awaited(
    revision: str, methods: Sequence[str]
) -> None:
    async with speaking(Steps().server, revision) as http:
        requests = [request(revision, method, id=id) for id, method in enumerate(methods)]
        reply = await http.post(requests if len(requests) > 1 else requests[0], accept=SSE)
        assert len(reply.messages) == len(methods)
        assert (await http.get(**{LAST: reply.events[-1].id})).status == 400


@pytest.mark.one_process  # an engine takes real time
@on_virtual_clock
@sessions
@pytest.mark.parametrize(("reads_at", "old"), [(0.4, [2]), (0.6, [])], ids=["reads", "never"])
async def test_a_connection_that_nobody_reads_delays_a_resumption_for_half_a_second(
    revision: str, reads_at: float, old: list[int]
) -> None:
    steps = Steps()
    async with speaking(steps.server, revision) as http, anyio.create_task_group() as tasks:
        tasks.start_soon(steps.say)
        async with http.stream("POST", call(revision)) as first:
            await first.message()
            first.stop_reading()
            tasks.start_soon(steps.say)
            await anyio.wait_all_tasks_blocked()
            asyncio.get_running_loop().call_later(reads_at, first.read_on)
            began = anyio.current_time()
            async with http.stream("GET", fields={LAST: first.decoder.last_id}) as second:
                assert anyio.current_time() - began == pytest.approx(min(reads_at, 0.5))
                steps.end()
                assert await read_texts(second) == [2, "over"]
            await anyio.sleep(1)
            first.disconnect()
            assert await read_texts(first) == old


@pytest.mark.requirement("http.loss-mitigation")
@sessions
async def test_the_stream_of_a_get_can_be_taken_up_again(revision: str) -> None:
    server, changed = Steps().server, CHANGED["toolsListChanged"]
    async with speaking(server, revision) as http:
        async with http.stream("GET") as stream:
            server.remove_tool("plain")
            last = await leave(stream)
            await stream.finished.wait()
        server.remove_tool("polled")
        async with http.stream("GET", fields={LAST: last}) as again:
            assert (await again.message())["method"] == changed
            server.remove_tool("steps")
            assert (await again.message())["method"] == changed


@pytest.mark.requirement("http.prime-event", "http.retry-before-close", "http.get-polling")
@pytest.mark.requirement("http.event-id-names-stream")
@polling
async def test_a_stream_opens_with_an_id_and_a_retry_time(revision: str) -> None:
    async with speaking(Steps().server, revision, retry=2.5) as http:
        reply = await http.post(call(revision, "plain"))
        first = reply.events[0]
        assert (first.data, bool(first.id)) == (b"", True)
        assert b"retry: 2500\n" in reply.body.partition(b"\n\n")[0] + b"\n"
        assert first.id.rpartition("-")[0] == reply.events[-1].id.rpartition("-")[0]
        async with http.stream("GET") as opened:
            await opened.until(b"retry: 2500\n")
            assert (await opened.event()).data == b""


@pytest.mark.parametrize(
    "revision", sorted(set(SESSIONS) - set(revisions_holding("http.prime-event")))
)
async def test_other_revisions_know_no_such_event(revision: str) -> None:
    async with speaking(Steps().server, revision) as http:
        reply = await http.post(call(revision, "plain"))
        assert [bool(event.data) for event in reply.events] == [True, True]
        assert b"retry:" not in reply.body


@pytest.mark.requirement("http.server-may-close-connection", "http.retry-before-close")
@pytest.mark.requirement("http.client-polls", "http.resume-after-any-disconnect")
@polling
@pytest.mark.parametrize("answers", ["auto", "sse"])
async def test_a_tool_may_have_its_client_come_back_for_the_result(
    revision: str, answers: Any
) -> None:
    steps = Steps()
    async with speaking(steps.server, revision, answers=answers, retry=0.2) as http:
        async with http.stream("POST", call(revision, "polled")) as stream:
            await stream.end()
            assert stream.decoder.retry == 200
            assert await stream.messages() == []
            last = stream.decoder.last_id
        for _ in range(2):
            async with http.stream("GET", fields={LAST: last}) as again:
                assert again.status == 200  # and leave, to come back
        async with http.stream("GET", fields={LAST: last}) as again:
            steps.end()
            assert text_in(await again.message()) == "polled"
            await again.end()


@pytest.mark.requirement("http.stream-not-closed-early")
@pytest.mark.parametrize(
    ("revision", "how"),
    [
        *((revision, {}) for revision in SESSIONS if not facts(revision).http.polling),
        *((revision, {"events": None}) for revision in SESSIONS),
        *((revision, {"answers": "json"}) for revision in SESSIONS),
    ],
)
async def test_a_connection_stays_open_where_clients_cannot_resume(
    revision: str, how: dict[str, Any]
) -> None:
    steps = Steps()

    async def end_later() -> None:
        with anyio.fail_after(5):
            await steps.news.wait()
        steps.end()

    async with asgi(steps.server, **how) as http, anyio.create_task_group() as tasks:
        await http.initialize(revision)
        tasks.start_soon(end_later)
        assert (await http.post(call(revision, "polled"))).text == "polled"


@modern
async def test_without_sessions_closing_a_stream_means_nothing(revision: str) -> None:
    steps = Steps()
    steps.end()
    async with asgi(steps.server) as http:
        reply = await http.ask(revision, "tools/call", {"name": "polled", "arguments": {}})
        assert reply.text == "polled"


class Slow(MemoryEventStore):
    """A store that other tasks may use meanwhile."""

    async def discard(self, session: str, stream: str | None = None) -> None:
        """See `EventStore.discard`."""
        await anyio.lowlevel.checkpoint()
        await super().discard(session, stream)


async def test_a_cancelled_call_still_makes_room_for_events() -> None:
    waiting, store = WaitingServer(), Slow()
    async with speaking(waiting.server, NEWEST, events=store, limits=Limits(per_session=1)) as http:
        for number in (1, 2):
            async with waiting.calling(http, NEWEST, number) as stream:
                await stream.message()
                assert (await http.post(cancelled_notification(number))).status == 202
                await stream.end()
                await stream.finished.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(store) == 1


@pytest.mark.one_process
async def test_the_last_calls_and_streams_of_a_session_can_be_resumed() -> None:
    store = MemoryEventStore()
    async with speaking(Steps().server, NEWEST, limits=Limits(per_session=3), events=store) as http:

        async def is_resumable(event: str) -> bool:
            async with http.stream("GET", fields={LAST: event}) as stream:
                return stream.status == 200

        calls, streams = list[str](), list[str]()
        for id in range(6):  # `Limits.per_session` are kept
            calls.append((await http.post(call(NEWEST, "plain", id))).events[0].id)
        assert [await is_resumable(each) for each in calls] == [False] * 3 + [True] * 3
        for _ in range(6):  # four are kept
            async with http.stream("GET") as stream:
                streams.append((await stream.event()).id)
            await stream.finished.wait()
        assert [await is_resumable(each) for each in streams[:3]] == [False, False, True]
        assert [await is_resumable(each) for each in calls] == [False] * 3 + [True] * 3
        assert len(store) <= 8
        assert (await http.delete()).status == 200
        assert len(store) == 0


async def fail(*_: Any) -> Any:
    raise OSError("no space left")


@polling
async def test_a_store_that_fails_costs_no_more_than_the_way_back(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = SimpleNamespace(add=fail, finish=fail, after=fail, wait=fail, discard=fail)
    async with speaking(Steps().server, revision, events=broken) as http:
        reply = await http.post(call(revision, "plain"))
        assert reply.text == "plain"
        assert b"id: " not in reply.body
        assert (await http.get(**{LAST: "a-1"})).status == 503
        assert (await http.delete()).status == 200
    assert len({*caplog.messages}) == 3
    assert all("the event store failed" in each for each in caplog.messages)


async def test_a_stream_that_another_process_ended_takes_nothing_more() -> None:
    steps, store = Steps(), MemoryEventStore()
    async with speaking(steps.server, NEWEST, events=store, answers="sse") as http:
        async with http.stream("POST", call(NEWEST)) as stream:
            name = (await stream.event()).id.rpartition("-")[0]
            session = str(http.fields[SESSION])
            last = await store.finish(session, name, b"{}")
            await steps.say()
            assert await stream.messages() == []
            steps.end()
        assert last is not None
        replay = await store.after(session, last)
        assert replay is not None
        assert (replay.events, replay.over) == ([], True)
