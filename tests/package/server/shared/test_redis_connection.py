"""The connection to the engine without an engine: bytes, repeated commands and deadlines."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.limits import SetLimit
from kit.simulation import on_virtual_clock
from mcpgen_runtime.server.shared.redis_connection import RedisConnection
from package.tables import table

pytestmark = [pytest.mark.processes, pytest.mark.workers, on_virtual_clock]

SECONDS = 5.0
REPLIES = table("redis_replies")


class Link:
    """A connection of the library, and its transport."""

    def __init__(self, connect: Callable[[], Any] | None) -> None:
        self._connect = connect
        self.written: list[bytes] = []
        self.closed = False
        self._writer = self
        self.transport = self
        self.protocol: Any = None

    async def connect(self) -> None:
        if self._connect is not None:
            await self._connect()

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def _close(self) -> None:
        self.closed = True


class Links:
    """The connections that are made, the newest last; `connect` of each is in the list, if any."""

    def __init__(self, *connects: Callable[[], Any]) -> None:
        self.made: list[Link] = []
        self._connects = [*connects]
        failures = (OSError, TimeoutError)
        self.connection = RedisConnection(self._make, failures, ValueError, SECONDS)

    def _make(self) -> Link:
        self.made.append(Link(self._connects.pop(0) if self._connects else None))
        return self.made[-1]

    async def connected(self) -> Link:
        """The newest connection, with a first command that has its reply."""
        first = self.connection.call(("PING",))
        await settle()
        self.connection.data_received(b"+PONG\r\n")
        assert await first == b"PONG"
        return self.made[-1]


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


PING = b"*1\r\n$4\r\nPING\r\n"


async def test_commands_before_a_connection_are_one_write() -> None:
    links = Links()
    for words in (("PING",), ("SET", b"\r\n", 17), ("ECHO", "\xe9")):
        links.connection.call(words)
    await settle()
    [link] = links.made
    assert link.protocol is links.connection
    assert link.written == [
        PING
        + b"*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$2\r\n17\r\n"
        + b"*2\r\n$4\r\nECHO\r\n$2\r\n\xc3\xa9\r\n"
    ]
    links.connection.call(("PING",))
    links.connection.call(("PING",))
    assert len(link.written) == 1
    await settle()
    assert link.written[1:] == [PING + PING]
    assert len(links.made) == 1


@pytest.mark.parametrize("text", REPLIES["whole"])
async def test_a_reply_may_come_in_any_pieces(text: str, snapshot: SnapshotAssertion) -> None:
    links, data, values = Links(), text.encode(), set[str]()
    await links.connected()
    for cut, more in itertools.product(range(len(data) + 1), (b"", b":1")):
        one, two = links.connection.call(("GET", "a")), links.connection.call(("GET", "b"))
        links.connection.data_received(data[:cut])
        assert one.done() is (cut == len(data))
        links.connection.data_received(data[cut:] + more)
        values.add(repr(await one))
        assert not two.done()
        links.connection.data_received(b":1\r\n".removeprefix(more))
        assert await two == 1
    assert [*values] == snapshot


@pytest.mark.parametrize("text", REPLIES["wrong"])
async def test_a_wrong_or_long_reply_fails_its_command_alone(
    text: str, set_limit: SetLimit, snapshot: SnapshotAssertion
) -> None:
    set_limit("pkg.server.shared.redis_connection.REPLY_BYTES", 1000)
    links = Links()
    first = await links.connected()
    links.connection.call(("C",)).cancel()
    links.connection.data_received(b"+c\r\n")
    wrong, later = links.connection.call(("A",)), links.connection.call(("B",))
    links.connection.data_received(text.replace("100x", "x" * 100).encode())
    with pytest.raises(ConnectionError) as error:
        await wrong
    assert str(error.value) == snapshot
    await settle()
    links.connection.data_received(b"+b\r\n")
    assert await later == b"b"
    assert (first.closed, len(links.made)) == (True, 2)


async def test_replies_of_the_longest_size_are_read(set_limit: SetLimit) -> None:
    set_limit("pkg.server.shared.redis_connection.REPLY_BYTES", 1000)
    links = Links()
    for _ in range(2):
        text, items = links.connection.call(("A",)), links.connection.call(("B",))
        await settle()
        links.connection.data_received(b"$1000\r\n" + bytes(1000) + b"\r\n")
        links.connection.data_received(b"*125\r\n" + b"+\r\n" * 125)
        assert (await text, await items) == (bytes(1000), [b""] * 125)
    refused, later = links.connection.call(("C",)), links.connection.call(("D",))
    links.connection.data_received(b"-ERR no \xff\r\n+d\r\n")
    with pytest.raises(ValueError, match=r"^ERR no \ufffd$"):
        await refused
    assert await later == b"d"


async def test_a_reply_to_no_command_closes_the_connection() -> None:
    links = Links()
    first = await links.connected()
    links.connection.data_received(b"+OK\r\n")
    assert first.closed


async def test_a_long_reply_in_many_pieces_is_parsed_in_linear_time() -> None:
    links = Links()
    await links.connected()
    command = links.connection.call(("MGET", *range(16)))
    data = b"*16\r\n" + (b"$%d\r\n%b\r\n" % (2**20, bytes(2**20))) * 16
    begun = time.process_time()
    for begin in range(0, len(data), 2**14):
        links.connection.data_received(data[begin : begin + 2**14])
    assert await command == [bytes(2**20)] * 16
    assert time.process_time() - begun < 2  # each piece anew would take 20 s


async def test_commands_without_replies_are_sent_once_more() -> None:
    links = Links()
    first = await links.connected()
    given_up, kept = links.connection.call(("A",)), links.connection.call(("PING",))
    await settle()
    given_up.cancel()
    links.connection.data_received(b"+half of a re")
    links.connection.connection_lost(None)
    links.connection.connection_lost(None)  # of a connection that is not in use any more
    await settle()
    assert first.closed
    assert [link.written for link in links.made[1:]] == [[PING]]
    late = links.connection.call(("PING",))
    await settle()
    links.connection.connection_lost(OSError("reset"))
    with pytest.raises(OSError, match="reset"):
        await kept
    await settle()
    assert [link.written for link in links.made[2:]] == [[PING]]
    links.connection.connection_lost(None)
    with pytest.raises(ConnectionError, match="closed by the engine"):
        await late
    await settle()
    assert len(links.made) == 3


async def test_unsent_commands_are_sent_by_the_next_connection() -> None:
    links = Links()
    first = await links.connected()
    links.connection.call(("PING",))
    links.connection.connection_lost(None)
    await settle()
    assert first.written == [PING]
    assert links.made[1].written == [PING]


async def test_the_oldest_command_has_a_deadline() -> None:
    links, loop = Links(), asyncio.get_running_loop()
    link = await links.connected()
    begun = loop.time()
    one, later = links.connection.call(("A",)), list[asyncio.Future[Any]]()

    def go_on() -> None:
        later.append(links.connection.call(("B",)))
        links.connection.data_received(b"+a\r\n")

    loop.call_later(3, go_on)
    assert await one == b"a"
    assert loop.time() - begun == 3
    with pytest.raises(TimeoutError, match="no reply in time"):
        await later[0]
    assert loop.time() - begun == 3 + SECONDS
    assert link.closed
    again = links.connection.call(("C",))
    with pytest.raises(TimeoutError):
        await again
    assert loop.time() - begun == 3 + 2 * SECONDS
    assert len(links.made) == 2


async def test_a_late_reply_fails_later_commands_too() -> None:
    links, loop = Links(), asyncio.get_running_loop()
    await links.connected()
    links.connection.call(("A",)).cancel()
    two = links.connection.call(("B",))
    begun = loop.time()
    with pytest.raises(TimeoutError):
        await two
    assert loop.time() - begun <= SECONDS


async def test_a_failed_connection_fails_its_commands_alone() -> None:
    async def fail() -> None:
        raise OSError("refused")

    async def hang() -> None:
        await asyncio.Event().wait()

    links, loop = Links(fail, hang), asyncio.get_running_loop()
    with pytest.raises(OSError, match="refused"):
        await links.connection.call(("A",))
    begun = loop.time()
    with pytest.raises(TimeoutError):
        await links.connection.call(("B",))
    assert loop.time() - begun == SECONDS
    await settle()
    await links.connected()
    assert len(links.made) == 3


@pytest.mark.parametrize("connecting", [False, True])
async def test_a_closed_connection_leaves_no_command(connecting: bool) -> None:
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    ended = list[bool]()
    links, loop = Links(*([hang] if connecting else [])), asyncio.get_running_loop()
    if not connecting:
        await links.connected()
    command = links.connection.call(("A",))
    await settle()
    begun = loop.time()
    await links.connection.close()
    assert ended == [True] * connecting
    with pytest.raises(ConnectionError, match="closed"):
        await command
    assert (loop.time(), links.made[-1].closed) == (begun, not connecting)
    assert len(links.made) == 1
    await Links().connection.close()  # which nobody has used
