"""Streams that are resumed at another worker than the one that writes them."""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http
from kit.engine import Engine
from kit.steps import LAST, Steps, call, leave, read_texts
from kit.wire import CHANGED, cancelled_notification, newest_session, sessions
from mcpgen_runtime import MemoryBus, MemoryEventStore, MemorySessionStore, SharedState
from mcpgen_runtime.server.shared.shared_streams import FollowedStream
from package.server.shared.shared_servers import Workers, eventually, run_session

pytestmark = [pytest.mark.processes, pytest.mark.workers]

MAKE = Steps
TOOLS = CHANGED["toolsListChanged"]
LOST = "may have been acted on"


async def call_and_leave(http: Http, steps: Steps, revision: str) -> str:
    """Begin a call, and leave after its first message; gives the id of that."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(steps.say)
        async with http.stream("POST", call(revision)) as stream:
            return await leave(stream)
    raise AssertionError


@pytest.mark.requirement("http.replay", "http.resume-after-break", "http.loss-mitigation")
@sessions
async def test_a_call_s_stream_is_resumed_at_another_worker(
    revision: str, workers: Workers
) -> None:
    steps = workers.servers[0]
    last = await call_and_leave(workers.each[0], steps, revision)
    await steps.say(3)
    async with workers.each[1].stream("GET", fields={LAST: last}) as again:
        assert [(await again.message())["params"]["data"] for _ in range(3)] == [2, 3, 4]
        await steps.say(1)
        steps.end()
        assert await read_texts(again) == [5, "over"]
    await eventually(lambda: not any(isinstance(each, FollowedStream) for each in gc.get_objects()))
    for http in workers.each:  # until the client has it
        async with http.stream("GET", fields={LAST: last}) as again:
            assert await read_texts(again) == [2, 3, 4, 5, "over"]


@newest_session
async def test_a_stream_whose_writer_is_gone_ends_with_an_error(revision: str) -> None:
    class Deaf(MemoryBus):
        async def send(self, worker: str, letter: bytes, client: str = "") -> bool:
            return False

    async with run_session(SharedState(Deaf(), MemorySessionStore()), revision, Steps) as workers:
        last = await call_and_leave(workers.each[0], workers.servers[0], revision)
        async with workers.each[1].stream("GET", fields={LAST: last}) as again:
            assert LOST in (await again.messages())[-1]["error"]["message"]


@pytest.mark.requirement("http.no-broadcast")
@newest_session
async def test_the_last_connection_of_a_stream_has_it(revision: str, workers: Workers) -> None:
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


@sessions
async def test_cancelling_a_call_ends_its_stream_elsewhere(revision: str, workers: Workers) -> None:
    last = await call_and_leave(workers.each[0], workers.servers[0], revision)
    async with workers.each[1].stream("GET", fields={LAST: last}) as again:
        assert (await workers.each[2].post(cancelled_notification(1))).status == 202
        assert await read_texts(again) == []
    assert (await workers.each[1].get(**{LAST: last})).status == 400


@newest_session
async def test_a_session_that_ends_leaves_no_events(
    revision: str, engine: Engine, workers: Workers
) -> None:
    last = await call_and_leave(workers.each[0], workers.servers[0], revision)
    async with workers.each[1].stream("GET", fields={LAST: last}) as again:
        assert (await workers.each[2].delete()).status == 200
        await again.end()
    await eventually(lambda: engine.ask("KEYS", "*events*").startswith("*0"))
    await eventually(lambda: engine.ask("KEYS", "*streams*").startswith("*0"))


class OwnEvents:
    """A store of the user's own, which is not one that each process has for itself."""

    def __init__(self) -> None:
        self.kept = MemoryEventStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)


@newest_session
async def test_events_in_an_own_store_are_discarded(revision: str, engine: Engine) -> None:
    own = OwnEvents()
    async with run_session(engine.url, revision, Steps, events=own) as workers:
        await workers.each[0].post(call(revision, "plain"))
        assert len(own.kept) == 1
        assert (await workers.each[2].delete()).status == 200
        assert len(own.kept) == 0
