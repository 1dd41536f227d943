"""Clients and entries of an engine that mean harm: little is stored, and sharing goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kit.asgi_client import asgi
from kit.engine import Engine
from kit.guarded import Guarded, protected_settings
from kit.issuer import proof_of
from kit.wire import SESSIONS, cancelled_notification, newest_session
from mcpgen_runtime import (
    DpopValidation,
    MemoryBus,
    MemorySessionStore,
    SharedState,
    SharedStateFullError,
    Tasks,
)
from package.server.shared.shared_servers import (
    Waiting,
    eventually,
    in_engine,
    run_session,
    run_workers,
)
from package.server.shared.test_redis_ledger import task_of
from package.server.shared.test_used_ids import HELLO, KEY, bound_token
from package.server.shared.test_worker_announcements import TOOLS, listen_stream, next_method

pytestmark = [pytest.mark.processes, pytest.mark.workers]

LONG = "x" * 100_000
BATCHES = "2025-03-26"


class WithTasks(Waiting):
    """A server that looks for lost tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks = Tasks(self.server)


class Recorded(MemoryBus):
    """A bus that records what goes over it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_full = False

    async def publish(self, change: bytes) -> None:
        await super().publish(change)
        self.sent.append(change)

    async def send(self, worker: str, letter: bytes, client: str = "") -> bool:
        if self.is_full:
            raise SharedStateFullError("too many letters")
        self.sent.append(letter)
        return await super().send(worker, letter, client)


@pytest.fixture
def bus() -> Recorded:
    """A bus that records what goes over it."""
    return Recorded()


@newest_session
@pytest.mark.parametrize(
    ("identifier", "is_forwarded"),
    [
        *((each, True) for each in ("unknown", "x" * 1024, 7)),
        *((each, False) for each in (None, "x" * 1025, [LONG], {"a": LONG})),
    ],
)
async def test_of_a_cancellation_the_id_is_forwarded_alone(
    revision: str, identifier: Any, is_forwarded: bool, bus: Recorded
) -> None:
    async with run_session(SharedState(bus, MemorySessionStore()), revision) as workers:
        bus.sent.clear()
        message = cancelled_notification(identifier, reason=LONG)
        assert (await workers.any.post(message)).status == 202
        assert len(bus.sent) == is_forwarded
        assert sum(map(len, bus.sent)) < 1500


async def test_a_batch_of_responses_goes_to_each_worker_in_parts(bus: Recorded) -> None:
    async with run_session(SharedState(bus, MemorySessionStore()), BATCHES) as workers:
        bus.sent.clear()
        batch: list[Any] = [
            {"jsonrpc": "2.0", "id": f"worker{at}.1.1", "result": {}} for at in range(97)
        ]
        batch.append({"jsonrpc": "2.0", "id": "worker0.1.2", "result": {"p": LONG}})
        batch.append({"jsonrpc": "2.0", "id": "worker1.1.2", "error": "none"})
        params = {"progressToken": "worker1.1.3", "progress": 1}
        batch.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        assert (await workers.any.post(batch)).status in (202, 400)
        assert len(bus.sent) == 100
        assert b"progressToken" in bus.sent[-1]
        assert sum(map(len, bus.sent)) < len(LONG) + 20_000
        bus.is_full = True
        reply = await workers.any.post(batch[:1])
        assert (reply.status, b"too many letters" in reply.body) == (503, True)


async def test_responses_to_unknown_workers_leave_nothing(engine: Engine) -> None:
    async with run_session(engine.url, BATCHES) as workers:
        before = engine.ask("DBSIZE")
        batch = [{"jsonrpc": "2.0", "id": f"w{at}.1.1", "result": {"p": LONG}} for at in range(30)]
        assert (await workers.any.post(batch)).status == 202
        assert engine.ask("DBSIZE") == before


@in_engine
async def test_a_list_of_tasks_reads_little_of_each(state: SharedState, engine: Engine) -> None:
    result = {
        "isError": True,
        "content": [{"type": "text", "text": "why"}],
        "structuredContent": {},
    }
    for at in range(20):
        long = {**result, "structuredContent": {"x": LONG}}
        message = "m" * (10_000 if at else 100_000)
        task = task_of(f"t{at}", result=long, message=message, status="completed")
        await state.tasks.create(task)
    before = sent_bytes(engine)
    page = await state.tasks.page("eve", None, 50)
    assert sent_bytes(engine) - before < 100_000
    assert [each.task_id for each in page.records] == [f"t{at}" for at in range(20)]
    [wire] = {str(each.core_wire()["statusMessage"]) for each in page.records}
    assert (wire, page.records[0].core_wire()["status"]) == ("why", "failed")


@newest_session
async def test_a_long_record_of_a_session_is_read_once(revision: str, engine: Engine) -> None:
    async with run_workers(engine.url) as workers:
        one, two, _ = workers.each
        await one.initialize(revision, {"experimental": {"x": {"y": "z" * 50_000}}})
        two.fields |= one.fields
        for http in (one, two):
            assert (await http.ask(revision, "ping")).status == 200
        before = sent_bytes(engine)
        for _ in range(20):
            for http in (one, two):
                assert (await http.ask(revision, "ping")).status == 200
        assert sent_bytes(engine) - before < 50_000
        assert (await one.ask(revision, "logging/setLevel", {"level": "error"})).status == 200
        events = (await two.ask(revision, "tools/call", {"name": "logs", "arguments": {}})).events
        assert "loud" in str(events)
        assert "quiet" not in str(events)
        assert (await one.delete()).status == 200
        assert (await two.ask(revision, "ping")).status == 404


def sent_bytes(engine: Engine) -> int:
    """Bytes that the engine has sent."""
    lines = engine.ask("INFO", "stats").splitlines()
    return int(next(each for each in lines if "net_output_bytes:" in each).split(":")[1])


PREFIX = "mcp:{tester}:"


def publish(*fields: str) -> Callable[[Engine], object]:
    """Publishes an entry to all workers."""
    return lambda engine: engine.ask("XADD", f"{PREFIX}changes", "*", *fields)


def send(*fields: str) -> Callable[[Engine], None]:
    """Adds an entry to the inbox of each worker."""

    def add(engine: Engine) -> None:
        names = [each for each in engine.ask("KEYS", "*").split() if ":alive:" in each]
        for name in names:
            engine.ask("XADD", name.replace(":alive:", ":inbox:"), "*", *fields)

    return add


def lose_task(value: str) -> Callable[[Engine], None]:
    """Stores a task that nobody runs, whose record has another form."""

    def lose(engine: Engine) -> None:
        engine.ask("ZADD", f"{PREFIX}leases", "0", "nope")
        engine.ask("SET", f"{PREFIX}task:nope", value)

    return lose


FOREIGN: dict[str, Callable[[Engine], object]] = {
    "change of two fields": publish("a", "1", "b", "2"),
    "change of another field": publish("a", "12345678x"),
    "short change": publish("d", "1"),
    "change of a newer form": publish("d", "12345678\x02new"),
    "change that is no message": publish("d", "12345678\x01junk"),
    "letter of two fields": send("a", "1", "b", "2"),
    "letter of another field": send("a", "1"),
    "letter that is no message": send("d", "\x01junk"),
    "task that is short": lose_task("x"),
    "task that is no record": lose_task("{" * 100),
}


@pytest.mark.parametrize("kind", FOREIGN)
async def test_an_entry_of_another_form_is_skipped(
    kind: str, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    revision = SESSIONS[-1]
    async with run_workers(engine.url, WithTasks) as workers:
        FOREIGN[kind](engine)
        async with listen_stream(workers, revision, 0) as stream:
            workers.servers[1].server.tool("added")(lambda: "added")
            assert await next_method(stream) == TOOLS
            await eventually(lambda: "skipped" in caplog.text)
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("member", ["entry", "state"])
@in_engine
async def test_events_of_another_form_are_unknown(
    state: SharedState, member: str, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    event = await state.events.add("s", "a", b"one")
    if member == "entry":
        engine.ask("XADD", f"{PREFIX}events:s", "0-2", "a", "1")
    else:
        engine.ask("HSET", f"{PREFIX}streams:s", "sa", "0junk")
    assert await state.events.after("s", str(event)) is None
    assert "another form" in caplog.text


@in_engine
async def test_a_key_that_is_no_stream_ends_the_wait_for_it_alone(
    state: SharedState, engine: Engine
) -> None:
    honest = str(await state.events.add("s", "a", b"one"))
    await state.events.add("t", "a", b"one")
    engine.ask("DEL", f"{PREFIX}events:t")
    engine.ask("SET", f"{PREFIX}events:t", "x")
    foreign = asyncio.ensure_future(state.events.wait("t", "a-1"))
    waiting = asyncio.ensure_future(state.events.wait("s", honest))
    await asyncio.wait([foreign], timeout=5)
    assert foreign.exception() is not None
    await state.events.add("s", "a", b"two")
    stored = await waiting
    assert stored is not None
    assert [each.message for each in stored.events] == [b"two"]


async def test_a_proof_is_judged_where_the_host_sends_no_lifespan(engine: Engine) -> None:
    auth, token = protected_settings(dpop=DpopValidation()), bound_token()
    app = Guarded().server.asgi(shared=engine.url, auth=auth)
    async with asgi(app, lifespan=False) as http:
        proof = proof_of(KEY, token)
        for status in (200, 401):
            reply = await http.post(HELLO, Authorization=f"DPoP {token}", DPoP=proof)
            assert reply.status == status
        await app.end()
