"""Sessions that workers share: each request at a random one of three, over one engine."""

from __future__ import annotations

import itertools
import json

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import SESSION
from kit.asgi_stream import Reply
from kit.engine import Engine, run_engine
from kit.limits import SetLimit
from kit.rules import revisions_holding
from kit.steps import LAST, call, leave
from kit.wire import (
    CHANGED,
    INITIALIZED,
    SESSIONS,
    UPDATED,
    cancelled_notification,
    initialize,
    newest_session,
    request,
    sessions,
)
from mcpgen_runtime import (
    Limits,
    MemoryBus,
    MemorySessionStore,
    SessionRecord,
    SharedState,
    SharedStateError,
    StaticTokens,
)
from package.server.shared.shared_servers import ABLE, Workers, eventually, run_session, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

URI = "note://today"
WAITS = {"name": "wait", "arguments": {}}
ELICITS = "elicitation.standalone-request"
TOKENS = StaticTokens({"alice-1": "alice", "bob-1": "bob"})


class Refusing(MemorySessionStore):
    """A store that takes no change while it refuses."""

    refuses = False

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        if self.refuses:
            raise SharedStateError("the store is full")
        return await super().change(identifier, record)


@newest_session
async def test_a_change_that_was_not_stored_is_with_the_next_call(revision: str) -> None:
    store = Refusing()
    async with run_session(SharedState(MemoryBus(), store), revision) as workers:
        first, other, _ = workers.each
        store.refuses = True
        level = request(revision, "logging/setLevel", {"level": "error"})
        assert (await first.post(level)).status == 200
        store.refuses = False
        await first.post(call(revision, "about"))
        assert b"quiet" not in (await other.post(call(revision, "logs"))).body


@pytest.mark.requirement("http.session-assign")
@sessions
async def test_any_worker_serves_the_requests_of_a_session(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url) as workers:
        identifier = await workers.open_session(revision, ABLE)
        assert len(identifier) < 64
        for http in workers.each:
            seen = json.loads((await http.post(call(revision, "about"))).text)
            assert seen["revision"] == revision
            assert seen["session"] == identifier
            assert seen["info"] == {"name": "tester", "version": "1"}
            assert seen["capabilities"] == ABLE


@newest_session
async def test_a_session_outlives_all_of_its_workers(revision: str, engine: Engine) -> None:
    async with run_session(engine.url, revision) as before:
        fields = before.any.fields
    async with run_workers(engine.url) as after:
        after.any.fields |= fields
        assert (await after.any.post(call(revision, "about"))).status == 200


@newest_session
async def test_a_session_that_nobody_uses_expires(revision: str, engine: Engine) -> None:
    async with run_session(engine.url, revision, limits=Limits(idle=0.3)) as workers:
        await eventually(lambda: ":session:" not in engine.ask("KEYS", "*"))
        assert (await workers.any.post(call(revision, "about"))).status == 404


@newest_session
async def test_a_session_with_an_open_stream_does_not_expire(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url, limits=Limits(idle=0.3)) as workers:
        identifier = await workers.open_session(revision, ABLE)
        left: list[int] = []

        def was_extended(times: int) -> bool:
            key = f"mcp:{{tester}}:session:{identifier}"
            left.append(int(engine.ask("PTTL", key).strip(":\r\n")))
            return sum(before < after for before, after in itertools.pairwise(left)) >= times

        async with workers.each[0].stream("GET"):
            await eventually(lambda: was_extended(5))
        assert (await workers.each[1].post(call(revision, "about"))).status == 200


@sessions
async def test_an_update_reaches_the_stream_at_another_worker(
    revision: str, workers: Workers
) -> None:
    async with workers.each[0].stream("GET") as stream:
        subscribe = request(revision, "resources/subscribe", {"uri": URI})
        assert (await workers.each[1].post(subscribe)).status == 200
        workers.servers[2].server.resource_updated(URI)
        assert (await stream.message())["method"] == UPDATED
        unsubscribe = request(revision, "resources/unsubscribe", {"uri": URI})
        assert (await workers.each[2].post(unsubscribe)).status == 200
        workers.servers[1].server.resource_updated(URI)
        workers.servers[1].server.tool("later")(lambda: "later")
        assert (await stream.message())["method"] == CHANGED["toolsListChanged"]


@newest_session
async def test_messages_about_no_request_wait_for_a_stream_and_follow_it(revision: str) -> None:
    async with run_session(SharedState(MemoryBus(), MemorySessionStore()), revision) as workers:
        one, two, three = workers.each
        for _ in range(2):
            assert (await two.post(call(revision, "ask_unrelated"))).text == "sent"
        level = request(revision, "logging/setLevel", {"level": "error"})
        assert (await one.post(level)).status == 200  # of which all workers hear
        await anyio.wait_all_tasks_blocked()
        async with one.stream("GET") as stream:
            assert (await stream.message())["method"] == CHANGED["toolsListChanged"]
            last = await leave(stream)
        async with three.stream("GET", fields={LAST: last}) as again:
            await two.post(call(revision, "ask_unrelated"))
            assert (await again.message())["method"] == CHANGED["toolsListChanged"]


class Late(MemoryBus):
    """A bus on which workers count as alive when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.may_beat = anyio.Event()
        self.may_beat.set()

    async def beat(self, worker: str) -> None:
        await self.may_beat.wait()
        await super().beat(worker)


@newest_session
async def test_a_worker_serves_sessions_once_others_can_reach_it(revision: str) -> None:
    bus = Late()
    state = SharedState(bus, MemorySessionStore())
    async with run_session(state, revision) as before:
        bus.may_beat = anyio.Event()
        async with run_workers(state) as after:
            http = after.each[0]
            http.fields |= before.any.fields
            async with http.stream("POST", call(revision, "about"), begun=False) as stream:
                await anyio.wait_all_tasks_blocked()
                assert stream.status == 0
                bus.may_beat.set()
                await stream.end()
                assert stream.status == 200


@newest_session
async def test_of_two_streams_at_two_workers_one_gets_a_change(
    revision: str, workers: Workers
) -> None:
    async with workers.each[0].stream("GET") as older:
        async with workers.each[1].stream("GET") as newer:
            workers.servers[2].server.tool("added")(lambda: "added")
            assert (await newer.message())["method"] == CHANGED["toolsListChanged"]
            assert (await workers.each[0].post(call(revision, "ask_unrelated"))).text == "sent"
            assert (await newer.message())["method"] == CHANGED["toolsListChanged"]
            assert b"list_changed" not in older.raw
        names = map(str, itertools.count())

        def announced() -> bool:
            workers.servers[2].server.tool(next(names))(lambda: "added")
            return b"list_changed" in older.raw

        await eventually(announced)


@newest_session
async def test_a_malformed_answer_fails_the_call_at_another_worker(
    revision: str, workers: Workers
) -> None:
    async with workers.each[0].stream("POST", call(revision, "greet")) as stream:
        question = await stream.message()
        while "id" not in question:
            question = await stream.message()
        message = {"jsonrpc": "2.0", "id": question["id"], "result": {}, "error": {"code": 1}}
        assert (await workers.each[1].post(message)).status == 400
        assert "elicitation/create" in (await stream.messages())[-1]["error"]["message"]


@pytest.mark.parametrize(
    "revision", [name for name in revisions_holding(ELICITS) if name in SESSIONS]
)
async def test_an_answer_reaches_the_call_at_another_worker(
    revision: str, workers: Workers
) -> None:
    for at, asked in enumerate(workers.each):
        async with asked.stream("POST", call(revision, "greet")) as stream:
            question = await stream.message()
            while "id" not in question:
                question = await stream.message()
            answer = {"action": "accept", "content": {"name": "Ada"}}
            message = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
            assert (await workers.each[at - 1].post(message)).status == 202
            reply = (await stream.messages())[-1]
            assert reply["result"]["content"][0]["text"] == "Hello, Ada"


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("how", ["cancelled", "deleted"])
@newest_session
async def test_a_call_that_waits_the_plain_way_is_reached(
    revision: str, how: str, at: int, engine: Engine
) -> None:
    async with run_workers(engine.url) as workers, anyio.create_task_group() as tasks:
        await workers.open_session(revision, ABLE)
        http, other = workers.each[0], workers.each[at]
        await http.post(call(revision, "about"))  # from now on the head is known
        tasks.start_soon(http.post, call(revision, "wait", 7))
        await eventually(workers.servers[0].began.is_set)
        reply = await (
            other.post(cancelled_notification(7)) if how == "cancelled" else other.delete()
        )
        assert reply.status == (202 if how == "cancelled" else 200)
        with anyio.fail_after(5):
            await workers.servers[0].cancelled.wait()


@newest_session
async def test_two_workers_that_change_a_session_lose_nothing(
    revision: str, workers: Workers
) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(30):
            params = {"uri": f"note://{number}"}
            subscribe = request(revision, "resources/subscribe", params, id=number + 10)
            tasks.start_soon(workers.each[number % 3].post, subscribe)
    async with workers.each[0].stream("GET") as stream:
        for number in range(30):
            workers.servers[1].server.resource_updated(f"note://{number}")
        uris = {(await stream.message())["params"]["uri"] for _ in range(30)}
        assert uris == {f"note://{number}" for number in range(30)}


@sessions
async def test_an_engine_that_is_gone_is_503_and_not_404(revision: str) -> None:
    with run_engine() as engine:
        async with run_session(engine.url, revision) as workers:
            engine.stop()
            for method in ("POST", "GET", "DELETE"):
                message = call(revision, "about") if method == "POST" else None
                reply = await workers.any.request(method, message)
                assert (reply.status, reply.fields["retry-after"]) == (503, "1")
            reply = await workers.any.post(initialize(revision), **{SESSION: None})
            assert (reply.status, reply.fields["retry-after"]) == (503, "1")
            reply = await workers.any.ask(
                "2026-07-28", "tools/call", {"name": "logs", "arguments": {}}
            )
            assert reply.status == 200


@newest_session
async def test_an_engine_that_lost_its_data_is_404_and_initialize(revision: str) -> None:
    with run_engine() as engine:
        async with run_session(engine.url, revision) as workers:
            engine.stop()
            engine.start()
            await eventually_serves(workers, revision, 404)
            await workers.open_session(revision, ABLE)
            assert (await workers.any.post(call(revision, "about"))).status == 200


async def eventually_serves(workers: Workers, revision: str, status: int) -> None:
    """Wait until no worker answers 503 any more."""
    with anyio.fail_after(10):
        for http in workers.each:
            while (reply := await http.post(call(revision, "about"))).status == 503:
                await anyio.lowlevel.checkpoint()
            assert reply.status == status


@newest_session
async def test_values_of_a_session_are_those_of_each_worker(
    revision: str, workers: Workers
) -> None:
    for http in workers.each:
        for count in ("1", "2"):
            assert (await http.post(call(revision, "count"))).text == count


class Stale(MemorySessionStore):
    """A store whose replies that there is no record are late; workers look before it has one."""

    def __init__(self, bus: MemoryBus) -> None:
        super().__init__()
        self.late = anyio.Event()
        self._bus = bus

    async def create(self, identifier: str, record: SessionRecord, seconds: float | None) -> None:
        for _ in range(3):
            await self._bus.publish(b"")
        await anyio.wait_all_tasks_blocked()
        await super().create(identifier, record, seconds)

    async def load(
        self, identifier: str, seconds: float | None, before: SessionRecord | None = None
    ) -> SessionRecord | None:
        record = await super().load(identifier, seconds)
        if record is None:
            await self.late.wait()
        return record


@newest_session
async def test_a_gap_ends_no_session_that_is_being_opened(
    revision: str, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.shared.bus.KEPT_CHANGES", 2)
    store = Stale(bus := MemoryBus())
    async with run_workers(SharedState(bus, store)) as workers:
        await workers.each[0].initialize(revision)
        async with workers.each[0].asking(revision, "tools/call", WAITS, begun=False) as stream:
            await workers.servers[0].began.wait()
            store.late.set()
            await anyio.wait_all_tasks_blocked()
            workers.servers[0].may_end.set()
            await stream.end()
            assert "waited" in str(Reply(stream).messages)


@newest_session
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_applications_share_a_state_in_memory_on_any_event_loop(revision: str) -> None:
    state = SharedState(MemoryBus(), MemorySessionStore())
    async with run_session(state, revision, limits=Limits(session_bytes=20_000)) as workers:
        one, two, three = workers.each
        async with one.stream("POST", call(revision, "greet")) as stream:
            question = await stream.message()
            answer = {"action": "accept", "content": {"name": "Ada"}}
            message = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
            assert (await two.post(message)).status == 202
            assert "Hello, Ada" in str(await stream.messages())
        async with three.stream("GET") as stream:
            workers.servers[0].server.tool("added")(lambda: "added")
            assert (await stream.message())["method"] == CHANGED["toolsListChanged"]
        uris = ["note://" + "x" * 5000 + str(number) for number in range(4)]
        statuses = [
            (await http.ask(revision, "resources/subscribe", {"uri": uri})).status
            for http, uri in zip([one, two, three, one], uris, strict=True)
        ]
        assert statuses == [200, 200, 200, 503]
        assert (await one.delete()).status == 200
        assert (await three.ask(revision, "ping")).status == 404


@newest_session
async def test_a_second_initialize_holds_at_each_worker(revision: str, engine: Engine) -> None:
    async with run_session(engine.url, revision) as workers:
        for http in workers.each:
            assert (await http.post(call(revision, "about"))).status == 200
        assert (await workers.each[0].post(initialize(revision, {"sampling": {}}))).status == 200
        assert (await workers.each[0].post(INITIALIZED)).status == 202
        for http in workers.each:
            seen = json.loads((await http.post(call(revision, "about"))).text)
            assert seen["capabilities"] == {"sampling": {}}
