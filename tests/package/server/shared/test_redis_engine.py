"""Keys of a server in an engine: how much they hold, and for how long."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from kit.certificates import write_certificate
from kit.engine import Engine, run_engine
from kit.wire import SESSIONS
from mcpgen_runtime import SessionRecord, SharedState, SharedStateError, TaskRecord
from mcpgen_runtime.server.shared.redis_engine import RedisEngine
from mcpgen_runtime.server.shared.state import state_of
from package.server.shared.shared_servers import run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

DAY = 86_400_000


@pytest.fixture
def kind() -> str:
    """States are in an engine."""
    return "redis"


def milliseconds_left(engine: Engine, key: str) -> int:
    """Milliseconds until a key expires; -1 for never, -2 if there is none."""
    return int(engine.ask("PTTL", f"mcp:{{tester}}:{key}").strip(":\r\n"))


def is_about(left: int, whole: int) -> bool:
    """Whether a time began to run within the last seconds."""
    return whole - 10_000 < left <= whole


def task_record(task_id: str = "t", **members: Any) -> TaskRecord:
    """A new record, of an owner unless `members` name none."""
    members = {"owner": "ada", "ttl_ms": None, "created": 1000.0, "worker": "one", **members}
    return TaskRecord(task_id=task_id, updated=1000.0, poll_interval_ms=1, **members)


async def test_one_connection_gives_each_command_its_own_reply(engine: Engine) -> None:
    value = b"\r\n$5" * 500_000
    redis = RedisEngine(engine.url, "tester")
    async with redis.opened():
        assert await redis.call_all(("ECHO", "a"), ("SET", "value", value)) == [b"a", b"OK"]
        refused = asyncio.ensure_future(redis.call("LPUSH", "value"))
        given_up = asyncio.ensure_future(redis.call("ECHO", "b"))
        kept = asyncio.ensure_future(redis.call("GET", "value"))
        await anyio.lowlevel.checkpoint()
        given_up.cancel()
        assert await kept == value
        with pytest.raises(SharedStateError):
            await refused
        engine.ask("CLIENT", "KILL", "TYPE", "normal")
        assert await redis.call("ECHO", "a") == b"a"  # by another connection


async def test_password_and_database_of_the_url_are_used_and_in_no_error() -> None:
    with run_engine("--requirepass", "hunter2") as engine:
        for password in ("hunter2", "wrong-hunter2", ""):
            url = engine.url.replace("unix://", f"unix://:{password}@")
            redis = RedisEngine(f"{url}?db=3", "tester")
            async with redis.opened():
                if password == "hunter2":
                    assert b"db=3" in await redis.call("CLIENT", "LIST")
                    continue
                for asking in (redis.call("PING"), redis.call_all(("A",)), redis.wait(("A",))):
                    with pytest.raises(SharedStateError) as raised:
                        await asking
                    assert "hunter2" not in f"{raised.value!r} {raised.value.__cause__!r}"


@pytest.mark.parametrize(
    ("ttl_ms", "lasts"),
    [(1000, 30 * DAY), (30 * DAY, 30 * DAY), (30 * DAY + 1, -1), (None, -1)],
)
async def test_the_tasks_of_an_owner_are_listed_for_30_days_or_more(
    state: SharedState, engine: Engine, ttl_ms: int | None, lasts: int
) -> None:
    await state.tasks.create(task_record("first"))
    await state.tasks.create(task_record(ttl_ms=ttl_ms))
    [key] = [each for each in engine.ask("KEYS", "*tasks:*").split() if "tasks:" in each]
    left = milliseconds_left(engine, key.removeprefix("mcp:{tester}:"))
    assert left == -1 if lasts == -1 else is_about(left, lasts)
    assert is_about(milliseconds_left(engine, "leases"), 30 * DAY)
    left = milliseconds_left(engine, "task:t")
    assert left == -1 if ttl_ms is None else is_about(left, ttl_ms)


async def test_a_task_without_an_owner_is_in_no_list(state: SharedState, engine: Engine) -> None:
    await state.tasks.create(task_record(owner=""))
    assert "tasks:" not in engine.ask("KEYS", "*")
    assert await state.tasks.load("t") is not None


async def test_a_lease_lasts_three_seconds_from_its_last_renewal_however_late(
    state: SharedState, engine: Engine
) -> None:
    record = task_record()
    await state.tasks.create(record)
    whole = milliseconds_left(engine, "lease:t")
    assert 1000 < whole <= 3000
    assert engine.ask("GET", "mcp:{tester}:lease:t").endswith("one 1\r\n")
    engine.ask("PEXPIRE", "mcp:{tester}:lease:t", "1000000")
    assert await state.tasks.renew(record) == 1
    assert whole - 1000 < milliseconds_left(engine, "lease:t") <= whole + 1000
    for _ in range(2):
        engine.ask("DEL", "mcp:{tester}:lease:t")
        assert await state.tasks.renew(record) == 1
        assert await state.tasks.claim("t", "two") is None
    engine.ask("DEL", "mcp:{tester}:lease:t")
    claimed = await state.tasks.claim("t", "two")
    assert claimed is not None
    assert engine.ask("GET", "mcp:{tester}:lease:t").endswith("two 2\r\n")
    assert whole - 1000 < milliseconds_left(engine, "lease:t") <= whole + 1000


async def test_events_and_messages_among_workers_are_kept_for_a_while(
    state: SharedState, engine: Engine
) -> None:
    await state.events.add("s", "a", b"one")
    await state.bus.publish(b"change")
    await state.bus.beat("one")
    await state.bus.send("one", b"letter")
    kept = {"events:s": 3_600_000, "streams:s": 3_600_000, "changes": DAY, "inbox:one": DAY}
    assert [key for key in kept if not is_about(milliseconds_left(engine, key), kept[key])] == []
    assert 0 < milliseconds_left(engine, "alive:one") <= 3000


async def test_an_empty_change_is_not_for_readers(state: SharedState) -> None:
    cursor = (await state.bus.changes(None)).cursor
    await state.bus.changes(None)
    await state.bus.publish(b"a")
    news = await state.bus.changes(cursor)
    assert news.changes == [b"a"]


SESSION = SessionRecord("2025-06-18", {}, {"name": "c"}, ("a", "b", None))


@pytest.mark.parametrize(("seconds", "whole"), [(None, -1), (60.0, 60_000)])
async def test_a_session_in_the_engine_expires_after_its_last_use(
    state: SharedState, engine: Engine, seconds: float | None, whole: int
) -> None:
    def assert_expiry(expected: int) -> None:
        left = milliseconds_left(engine, "session:a")
        assert left == -1 if expected == -1 else is_about(left, expected)

    await state.sessions.create("a", SESSION, seconds)
    assert_expiry(whole)
    assert await state.sessions.load("a", 1000.0) == SESSION
    assert_expiry(1_000_000)
    changed = msgspec.structs.replace(SESSION, version=2)
    assert await state.sessions.change("a", changed)
    assert not await state.sessions.change("a", changed)
    assert_expiry(1_000_000)
    assert await state.sessions.load("a", seconds) == changed
    assert_expiry(whole)
    assert await state.sessions.load("a", 2000.0, changed) is changed
    assert_expiry(2_000_000)
    assert await state.sessions.load("a", 2000.0, SESSION) == changed
    await state.sessions.touch("a", 1000.0)
    await state.sessions.touch("a", None)
    assert_expiry(1_000_000)
    await state.sessions.end("a")
    assert await state.sessions.load("a", seconds) is None


async def test_a_state_is_of_use_while_it_is_open(engine: Engine) -> None:
    state = state_of("tester", engine.url)
    for _ in range(2):
        with pytest.raises(SharedStateError) as caught:
            await state.bus.publish(b"change")
        assert str(caught.value) == "the engine of the shared state is not opened yet, or closed"
        with pytest.raises(SharedStateError, match="not opened yet"):
            await state.bus.changes("0-1 00")
        with pytest.raises(SharedStateError, match="not opened yet"):
            await state.sessions.load("a", None)
        for use in (state.events.after, state.events.wait):
            with pytest.raises(SharedStateError, match="not opened yet"):
                await use("a", "b-1")
        async with state.opened():
            assert await state.sessions.load("a", None) is None


def test_an_engine_needs_the_loop_of_its_library() -> None:
    entering = RedisEngine("redis://127.0.0.1", "tester").opened().__aenter__()
    with pytest.raises(RuntimeError, match="needs asyncio"):
        entering.send(None)


@asynccontextmanager
async def behind_tls(engine: Engine, certificate: Path) -> AsyncIterator[int]:
    """The port at which the engine is reached by TLS."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = engine.url.removeprefix("unix://")
        from_engine, to_engine = await asyncio.open_unix_connection(path)
        await asyncio.gather(copy(reader, to_engine), copy(from_engine, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_the_certificate_of_another_host_is_refused(engine: Engine, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path, "127.0.0.2")
    async with behind_tls(engine, certificate) as port:
        redis = RedisEngine(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}", "tester")
        async with redis.opened():
            with pytest.raises(SharedStateError):
                await redis.call("PING")


async def test_workers_share_an_engine_behind_tls(engine: Engine, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path, "127.0.0.1")
    async with behind_tls(engine, certificate) as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        async with run_workers(url) as workers:
            await workers.any.initialize(SESSIONS[-1])
            workers.use_session()
            for http in workers.each:
                assert (await http.ask(SESSIONS[-1], "ping")).status == 200
