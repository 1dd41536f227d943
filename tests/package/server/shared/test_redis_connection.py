"""One connection to the engine for commands of many tasks: what these share, and what not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from kit.engine import Engine, run_engine
from mcpgen_runtime import SharedStateError
from mcpgen_runtime.server.shared.redis_engine import RedisEngine

pytestmark = [pytest.mark.processes, pytest.mark.workers]


@asynccontextmanager
async def connect_engine(url: str) -> AsyncIterator[RedisEngine]:
    """A connection that was used already."""
    redis = RedisEngine(url, "tester")
    async with redis.opened():
        await redis.call("PING")
        yield redis


def reads(engine: Engine) -> int:
    """How often the engine has read from a connection."""
    match = re.search(r"total_reads_processed:(\d+)", engine.ask("INFO", "stats"))
    assert match is not None
    return int(match[1])


async def test_commands_of_one_turn_are_read_at_once(engine: Engine) -> None:
    async with connect_engine(engine.url) as redis:
        before = reads(engine)
        replies = await asyncio.gather(*(redis.call("ECHO", number) for number in range(100)))
        assert replies == [b"%d" % number for number in range(100)]
        assert reads(engine) - before < 10  # some of them are for the number itself


async def test_commands_before_a_connection_wait_for_it(engine: Engine) -> None:
    redis = RedisEngine(engine.url, "tester")
    async with redis.opened():
        replies = await redis.call_all(("ECHO", "a"), ("ECHO", "b"))
        assert replies == [b"a", b"b"]


async def test_a_cancelled_caller_leaves_replies_in_order(engine: Engine) -> None:
    async with connect_engine(engine.url) as redis:
        given_up = asyncio.ensure_future(redis.call("ECHO", "a"))
        kept = asyncio.ensure_future(redis.call("ECHO", "b"))
        await anyio.lowlevel.checkpoint()
        given_up.cancel()
        assert await kept == b"b"
        assert given_up.cancelled()


async def test_a_refused_command_fails_its_caller_alone(engine: Engine) -> None:
    async with connect_engine(engine.url) as redis:
        commands = (("ECHO", "a"), ("LPUSH", "list"), ("ECHO", "b"))
        first, refused, last = await asyncio.gather(
            *(redis.call(*words) for words in commands), return_exceptions=True
        )
        assert (first, last) == (b"a", b"b")
        assert isinstance(refused, SharedStateError)


async def test_long_and_nested_replies_come_whole(engine: Engine) -> None:
    value = b"\r\n$5" * 500_000
    async with connect_engine(engine.url) as redis:
        await redis.call("SET", "value", value)
        await redis.call("XADD", "stream", "0-1", "d", "e")
        read, none, entries = await redis.call_all(
            ("GET", "value"), ("GET", "none"), ("XRANGE", "stream", "-", "+")
        )
        assert read == value
        assert none is None
        assert entries == [[b"0-1", [b"d", b"e"]]]


async def test_a_connection_that_was_closed_is_made_anew(engine: Engine) -> None:
    async with connect_engine(engine.url) as redis:
        engine.ask("CLIENT", "KILL", "TYPE", "normal")
        assert await redis.call("ECHO", "a") == b"a"


async def test_a_closed_connection_leaves_no_caller_waiting(engine: Engine) -> None:
    redis = RedisEngine(engine.url, "tester")
    async with redis.opened():
        await redis.call("PING")
        engine.ask("CLIENT", "PAUSE", "300")
        waiting = asyncio.ensure_future(redis.call("ECHO", "a"))
        await anyio.lowlevel.checkpoint()
    with pytest.raises(SharedStateError):
        await waiting
    with pytest.raises(SharedStateError, match="closed"):
        await redis.call("PING")


async def test_password_and_database_of_the_url_are_used() -> None:
    with run_engine("--requirepass", "secret") as engine:
        url = engine.url.replace("unix://", "unix://:secret@")
        async with connect_engine(f"{url}?db=3") as redis:
            clients = await redis.call("CLIENT", "LIST")
            assert b"db=3" in clients
