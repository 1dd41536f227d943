"""Streams that outlive their connection: taken up again by the id of the last event seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.server.asgi import resumable_stream
from mcpgen_runtime.server.asgi.event_store import MemoryEventStore
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import SESSION, asgi
from package.asgi_stream import Stream
from package.live import live, text_of
from package.rules import revisions_holding
from package.wire import ALL, PER_REQUEST, SESSIONS, cancelled_notification, facts, request

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)
polling = pytest.mark.parametrize("revision", revisions_holding("http.prime-event"))
LAST = "last-event-id"


class Steps:
    """A server whose tool says a number whenever it is let, and ends when there are no more."""

    def __init__(self) -> None:
        self.server = Server("tester")
        self.said = 0
        self._may = anyio.Event()
        self._over = False
        self.news = anyio.Event()

        @self.server.tool()
        async def steps(ctx: Context) -> str:
            while True:
                await self._may.wait()
                self._may = anyio.Event()
                if self._over:
                    return "over"
                self.said += 1
                await ctx.info(self.said)
                self.news.set()

        @self.server.tool()
        async def polled(ctx: Context) -> str:
            await ctx.close_stream()
            self.news.set()
            await self._may.wait()
            return "polled"

        @self.server.tool()
        async def plain(ctx: Context) -> str:
            await ctx.info("plain")
            return "plain"

    async def say(self, count: int = 1) -> None:
        """Have it say more."""
        for _ in range(count):
            self.news = anyio.Event()
            self._may.set()
            with anyio.fail_after(5):
                await self.news.wait()

    def end(self) -> None:
        """Have it end."""
        self._over = True
        self._may.set()


def call(revision: str, name: str = "steps", id: int = 1) -> dict[str, Any]:
    return request(revision, "tools/call", {"name": name, "arguments": {}}, id=id)


async def read_texts(stream: Stream) -> list[Any]:
    """The numbers said on a stream until it ends, and `over`."""
    texts: list[Any] = []
    for message in await stream.messages():
        if "result" in message:
            texts.append(message["result"]["content"][0]["text"])
        else:
            texts.append(message["params"]["data"])
    return texts


async def leave(stream: Stream) -> str:
    """Leave after the next message; gives the last id seen."""
    await stream.message()
    assert stream.decoder.last_id is not None
    stream.disconnect()
    return stream.decoder.last_id


@pytest.mark.requirement(
    "http.replay", "http.resume-after-break", "http.loss-mitigation", "http.get-stream-no-response"
)
@sessions
async def test_events_sent_while_a_client_is_away_wait_for_it(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with http.stream("POST", call(revision)) as stream:
                last = await leave(stream)
        await steps.say(3)
        async with http.stream("GET", fields={LAST: last}) as again:
            assert [(await again.message())["params"]["data"] for _ in range(3)] == [2, 3, 4]
            await steps.say(1)
            steps.end()
            assert await read_texts(again) == [5, "over"]


@pytest.mark.requirement("http.replay")
@sessions
async def test_replayed_events_keep_their_ids(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "plain"))
        ids = [event.id for event in reply.events]
        again = await http.get(**{LAST: ids[0]})
        assert [event.id for event in again.events] == list(ids[1:])
        assert [event.data for event in again.events] == [event.data for event in reply.events[1:]]


@sessions
async def test_the_result_of_a_stream_that_has_ended_can_still_be_had(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with http.stream("POST", call(revision)) as stream:
                last = await leave(stream)
                steps.end()
                with anyio.fail_after(5):
                    await stream.finished.wait()
        for _ in range(2):  # until the client has it
            async with http.stream("GET", fields={LAST: last}) as again:
                assert await read_texts(again) == ["over"]


@pytest.mark.requirement("http.replay-no-other-stream", "http.event-id-per-stream-cursor")
@sessions
async def test_a_stream_brings_nothing_of_another(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with http.stream("POST", call(revision)) as stream:
                last = await leave(stream)
        for id in (2, 3):
            await http.post(call(revision, "plain", id))
        steps.end()
        async with http.stream("GET", fields={LAST: last}) as again:
            assert await read_texts(again) == ["over"]


@pytest.mark.requirement("http.replay-no-other-stream")
@sessions
async def test_a_stream_is_not_there_for_another_session(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
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
    async with asgi(Steps().server) as http:
        await http.initialize(revision)
        reply = await http.get(**{LAST: last})
        assert reply.status == 400
        assert "Last-Event-ID" in reply.json["error"]["message"]


@sessions
async def test_after_the_last_event_of_an_ended_stream_none_is_awaited(
    revision: str,
) -> None:
    async with asgi(Steps().server) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "plain"))
        assert (await http.get(**{LAST: reply.events[-1].id})).status == 400


@sessions
async def test_a_cancelled_call_can_not_be_waited_for(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with http.stream("POST", call(revision)) as stream:
                last = await leave(stream)
        async with http.stream("GET", fields={LAST: last}) as again:
            await http.post(cancelled_notification(1))
            assert await read_texts(again) == []
        assert (await http.get(**{LAST: last})).status == 400


@sessions
async def test_a_resumed_stream_is_taken_from_its_old_connection(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with http.stream("POST", call(revision)) as first:
                await first.message()
                last = first.decoder.last_id
                async with http.stream("GET", fields={LAST: last}) as second:
                    await first.end()
                    await steps.say()
                    await second.message()
                    last = second.decoder.last_id
                    async with http.stream("GET", fields={LAST: last}) as third:
                        assert await second.messages() == []
                        steps.end()
                        assert await read_texts(third) == ["over"]
                assert await first.messages() == []


@sessions
async def test_a_connection_that_nobody_reads_delays_no_resumption(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable_stream, "_WRITE_SECONDS", 0.02)
    steps = Steps()
    async with (
        asgi(steps.server, limits=Limits(send_seconds=600)) as http,
        anyio.create_task_group() as tasks,
    ):
        await http.initialize(revision)
        tasks.start_soon(steps.say)
        async with http.stream("POST", call(revision)) as first:
            await first.message()
            first.stop_reading()
            tasks.start_soon(steps.say)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(5):
                last = {LAST: first.decoder.last_id}
                async with http.stream("GET", fields=last) as second:
                    steps.end()
                    assert await read_texts(second) == [2, "over"]


@pytest.mark.requirement("http.loss-mitigation")
@sessions
async def test_the_stream_of_a_get_can_be_taken_up_again(revision: str) -> None:
    steps = Steps()
    async with asgi(steps.server) as http:
        await http.initialize(revision)
        async with http.stream("GET") as stream:
            steps.server.remove_tool("plain")
            last = await leave(stream)
            await stream.finished.wait()
        steps.server.remove_tool("polled")
        async with http.stream("GET", fields={LAST: last}) as again:
            assert (await again.message())["method"] == "notifications/tools/list_changed"
            steps.server.remove_tool("steps")
            assert (await again.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("http.prime-event", "http.retry-before-close", "http.get-polling")
@pytest.mark.requirement("http.event-id-names-stream")
@polling
async def test_a_stream_opens_with_an_id_and_a_retry_time(revision: str) -> None:
    async with asgi(Steps().server, retry=2.5) as http:
        await http.initialize(revision)
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
    async with asgi(Steps().server) as http:
        await http.initialize(revision)
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
    async with asgi(steps.server, answers=answers, retry=0.2) as http:
        await http.initialize(revision)
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
            assert (await again.message())["result"]["content"][0]["text"] == "polled"
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
    async with asgi(steps.server, **how) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_later, steps)
            reply = await http.post(call(revision, "polled"))
        assert reply.result["content"][0]["text"] == "polled"


@pytest.mark.parametrize("revision", ALL)
async def test_over_other_transports_it_means_nothing(revision: str) -> None:
    steps = Steps()
    steps.end()
    async with live(steps.server, revision) as (client, _):
        assert text_of(await client.call_tool("polled")) == "polled"


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_without_sessions_it_means_nothing(revision: str) -> None:
    steps = Steps()
    steps.end()
    async with asgi(steps.server) as http:
        reply = await http.ask(revision, "tools/call", {"name": "polled", "arguments": {}})
        assert reply.result["content"][0]["text"] == "polled"


async def end_later(steps: Steps) -> None:
    with anyio.fail_after(5):
        await steps.news.wait()
    steps.end()


async def test_a_store_shared_by_processes_serves_resumed_streams() -> None:
    store = MemoryEventStore()
    async with asgi(Steps().server, events=store) as http:
        await http.initialize("2025-11-25")
        last = (await http.post(call("2025-11-25", "plain"))).events[0].id
        replay = await store.after(str(http.fields[SESSION]), last)
        assert replay is not None
        assert len(replay.events) == 2


async def test_events_of_finished_calls_and_lost_streams_are_dropped() -> None:
    store = MemoryEventStore()
    async with asgi(Steps().server, events=store) as http:
        await http.initialize("2025-11-25")
        for id in range(150):
            await http.post(call("2025-11-25", "plain", id))
            async with http.stream("GET") as stream:
                pass
            await stream.finished.wait()
        assert len(store) < 120
        await http.delete()
        assert len(store) == 0


@pytest.mark.one_process
async def test_the_last_calls_and_streams_of_a_session_can_be_resumed() -> None:
    """As many calls as `Limits.per_session`, and four streams that the client opened by GET."""
    revision, limits = "2025-11-25", Limits(per_session=3)
    async with asgi(Steps().server, limits=limits) as http:
        await http.initialize(revision)

        async def is_resumable(event: str) -> bool:
            async with http.stream("GET", fields={LAST: event}) as stream:
                return stream.status == 200

        calls = list[str]()
        for id in range(6):
            reply = await http.post(call(revision, "plain", id))
            calls.append(str(reply.events[0].id))
        assert [await is_resumable(each) for each in calls] == [False] * 3 + [True] * 3
        streams = list[str]()
        for _ in range(6):
            async with http.stream("GET") as stream:
                streams.append(str((await stream.event()).id))
            await stream.finished.wait()
        assert [await is_resumable(each) for each in streams[:3]] == [False, False, True]
        assert [await is_resumable(each) for each in calls] == [False] * 3 + [True] * 3


class Broken:
    """A store of events that fails."""

    async def add(
        self, session: str, stream: str, message: bytes, requests: Sequence[RequestId] = ()
    ) -> str:
        raise OSError("no space left")

    async def finish(self, session: str, stream: str, message: bytes = b"") -> str:
        raise OSError("no space left")

    async def after(self, session: str, event: str) -> None:
        raise OSError("gone")

    async def wait(self, session: str, cursor: str) -> None:
        raise OSError("gone")

    async def discard(self, session: str, stream: str | None = None) -> None:
        raise OSError("gone")


@polling
async def test_a_store_that_fails_costs_no_more_than_the_way_back(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with asgi(Steps().server, events=Broken()) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "plain"))
        assert reply.result["content"][0]["text"] == "plain"
        assert b"id: " not in reply.body
        assert (await http.get(**{LAST: "a-1"})).status == 503
        assert (await http.delete()).status == 200
    assert list(dict.fromkeys(caplog.messages)) == [
        "the event store failed, so an event can't be had again: OSError('no space left')",
        "the event store failed: OSError('gone')",
        "the event store failed, so a stream is not forgotten: OSError('gone')",
    ]
