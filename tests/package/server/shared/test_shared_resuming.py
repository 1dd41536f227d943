"""Streams that are resumed at another worker than the one that writes them."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from kit.asgi_client import SESSION, Http
from kit.engine import Engine
from kit.rules import revisions_holding
from kit.steps import LAST, Steps, call, leave, read_texts
from kit.wire import CHANGED, SESSIONS, cancelled_notification
from mcpgen_runtime import REVISIONS, MemoryEventStore
from mcpgen_runtime.server.shared.shared_streams import lost_message
from package.server.shared.shared_servers import Workers, eventually, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)
newest = pytest.mark.parametrize("revision", SESSIONS[-1:])
TOOLS = CHANGED["toolsListChanged"]


async def open_session(workers: Workers, revision: str) -> None:
    """Open a session, which all clients use."""
    await workers.any.initialize(revision)
    workers.use_session()


async def call_and_leave(http: Http, steps: Steps, revision: str) -> str:
    """Begin a call, and leave after its first message; gives the id of that."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(steps.say)
        async with http.stream("POST", call(revision)) as stream:
            return await leave(stream)
    raise AssertionError


def endpoint_of(http: Http) -> Any:
    """Serves sessions at a worker."""
    app: Any = http.app
    [state] = app._states.values()
    return state.endpoints[-1]


def session_at(workers: Workers, number: int) -> Any:
    """The session as a worker has it."""
    return endpoint_of(workers.each[number]).registry.get(workers.any.fields[SESSION])


def pause(workers: Workers, number: int) -> None:
    """Have a worker take part no more, as one that is stopped: it neither reads nor beats."""
    app: Any = workers.each[number].app
    [state] = app._states.values()
    worker = state.worker

    async def never(*_: object) -> None:
        await anyio.sleep_forever()

    worker._handle = never
    worker._read_inbox = never


@pytest.mark.requirement("http.replay", "http.resume-after-break", "http.loss-mitigation")
@sessions
async def test_a_call_s_stream_is_resumed_at_another_worker(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        steps = workers.servers[0]
        last = await call_and_leave(workers.each[0], steps, revision)
        await steps.say(3)
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert [(await again.message())["params"]["data"] for _ in range(3)] == [2, 3, 4]
            await steps.say(1)
            steps.end()
            assert await read_texts(again) == [5, "over"]
        for http in workers.each:  # until the client has it
            async with http.stream("GET", fields={LAST: last}) as again:
                assert await read_texts(again) == [2, 3, 4, 5, "over"]


@pytest.mark.requirement("http.no-broadcast")
@newest
async def test_the_last_connection_of_a_stream_has_it(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        steps = workers.servers[0]
        async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
            tasks.start_soon(steps.say)
            before = await stack.enter_async_context(workers.each[0].stream("POST", call(revision)))
            await before.message()
            for number in (1, 2, 0, 1):
                last = {LAST: before.decoder.last_id}
                stream = await stack.enter_async_context(
                    workers.each[number].stream("GET", fields=last)
                )
                await before.end()
                await steps.say()
                await stream.message()
                before = stream
            steps.end()
            assert await read_texts(before) == ["over"]


@pytest.mark.requirement("http.replay-no-other-stream")
@newest
async def test_no_worker_gives_a_stream_to_another_session(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = (await workers.each[0].post(call(revision, "plain"))).events[0].id
        strangers = [http.another() for http in workers.each]
        await strangers[0].initialize(revision)
        for http in strangers:
            http.fields |= strangers[0].fields
            assert (await http.get(**{LAST: last})).status == 400
        for http in workers.each:
            assert (await http.get(**{LAST: last})).status == 200


@sessions
async def test_a_stream_of_a_get_moves_to_another_worker(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        async with workers.each[0].stream("GET") as stream:
            workers.servers[2].server.remove_tool("plain")
            last = await leave(stream)
            await stream.finished.wait()
        workers.servers[2].server.remove_tool("polled")
        for number in (1, 2, 0):
            async with workers.each[number].stream("GET", fields={LAST: last}) as again:
                workers.servers[number].server.tool(f"new{number}")(lambda: "new")
                assert (await again.message())["method"] == TOOLS


@newest
async def test_a_resumed_call_leaves_announcements_alone(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        async with (
            workers.each[1].stream("GET") as listening,
            workers.each[2].stream("GET", fields={LAST: last}) as again,
        ):
            workers.servers[0].server.remove_tool("plain")
            assert (await listening.message())["method"] == TOOLS
            workers.servers[0].end()
            assert await read_texts(again) == ["over"]


@newest
async def test_a_stream_of_a_lost_worker_ends_with_an_error(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        steps = workers.servers[0]
        last = await call_and_leave(workers.each[0], steps, revision)
        await steps.say()
        pause(workers, 0)
        begun = anyio.current_time()
        async with (
            workers.each[1].stream("GET", fields={LAST: last}) as one,
            workers.each[2].stream("GET", fields={LAST: last}) as other,
        ):
            await one.end()
            got = await other.messages()
            assert anyio.current_time() - begun < 5
            assert [each.get("id") for each in got] == [None, 1]
            assert "it may have been acted on" in got[1]["error"]["message"]
        steps.end()  # it wakes, and has its stream no more
        await eventually(lambda: not session_at(workers, 0).exchanges)
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert await again.messages() == got
        assert (await workers.any.post(call(revision, "plain", 2))).status == 200


@newest
async def test_a_stream_that_another_worker_ended_is_over(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        steps = workers.servers[0]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.say)
            async with workers.each[0].stream("POST", call(revision)) as stream:
                await stream.message()
                session = session_at(workers, 0)
                [name] = session.named
                await endpoint_of(workers.each[1])._events.finish(session.id, name)
                await steps.say()
                assert await read_texts(stream) == []
        steps.end()
        await eventually(lambda: not session.exchanges)
        assert not session.named


@newest
async def test_a_worker_ends_streams_that_it_does_not_write(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        lost = session_at(workers, 0)
        lost.named.clear()
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert "error" in (await again.messages())[-1]


@newest
async def test_a_released_session_s_calls_end_with_an_error(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        await endpoint_of(workers.each[0]).registry.end(session_at(workers, 0))
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert "error" in (await again.messages())[-1]
        assert (await workers.each[0].post(call(revision, "plain", 2))).status == 200


@newest
async def test_a_followed_call_counts_as_attended(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        [stream] = session_at(workers, 0).named.values()
        await workers.servers[0].say()  # nobody is there to read it
        assert not stream.attended
        async with workers.each[1].stream("GET", fields={LAST: last}):
            await eventually(lambda: stream.attended)


@sessions
async def test_cancelling_a_call_ends_its_stream_elsewhere(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert (await workers.each[2].post(cancelled_notification(1))).status == 202
            assert await read_texts(again) == []
        assert (await workers.each[1].get(**{LAST: last})).status == 400


@pytest.mark.parametrize("revision", revisions_holding("http.prime-event"))
async def test_polling_clients_come_back_to_any_worker(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps, retry=0.2) as workers:
        await open_session(workers, revision)
        async with workers.each[0].stream("POST", call(revision, "polled")) as stream:
            await stream.end()
            last = stream.decoder.last_id
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            workers.servers[0].end()
            assert (await again.message())["result"]["content"][0]["text"] == "polled"
            await again.end()


@newest
async def test_a_session_that_ends_leaves_no_events(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, Steps) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert (await workers.each[2].delete()).status == 200
            await again.end()
        await eventually(lambda: session_at(workers, 0) is None)
        for pattern in ("*events*", "*streams*"):
            assert engine.ask("KEYS", pattern).startswith("*0")


class OwnEvents:
    """A store of the user's own, which is not one that each process has for itself."""

    def __init__(self) -> None:
        self.kept = MemoryEventStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)


@newest
async def test_events_in_an_own_store_end_there(revision: str, engine: Engine) -> None:
    own = OwnEvents()
    async with run_workers(engine.url, Steps, events=own) as workers:
        await open_session(workers, revision)
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        session_at(workers, 0).named.clear()
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert "error" in (await again.messages())[-1]


@newest
async def test_events_in_an_own_store_are_discarded(revision: str, engine: Engine) -> None:
    own = OwnEvents()
    async with run_workers(engine.url, Steps, events=own) as workers:
        await open_session(workers, revision)
        await workers.each[0].post(call(revision, "plain"))
        assert len(own.kept) == 1
        assert (await workers.each[2].delete()).status == 200
        assert len(own.kept) == 0


def test_a_batch_of_a_lost_worker_gets_an_error_for_each_request() -> None:
    revision = REVISIONS[SESSIONS[0]]
    errors = json.loads(lost_message([1, "x"], revision))
    assert [each["id"] for each in errors] == [1, "x"]
    assert json.loads(lost_message([1], revision))["id"] == 1
    assert lost_message([], revision) == b""
