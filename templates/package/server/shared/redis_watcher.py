"""Waiting for entries of any number of streams of an engine, over one connection.

    tasks that wait for entries of a stream -> one XREAD with all of these streams -> the engine

A command that blocks has a connection to itself. So one command waits for all streams; an entry in
a stream of this reader ends it when further streams have to be waited for.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from .bus import WAIT_SECONDS, SharedStateError

_WAKE_MS = 60_000  # lifetime of the stream that wakes
_GATHER_SECONDS = 0.01  # for further streams, before the engine is asked anew
_KINDS = (b"stream", b"none")


class StreamWatcher:
    """Waits for entries with ids `0-N`.

    Args:
        wait: Sends commands that may block; see `RedisEngine.wait`.
        call_all: Sends other commands; see `RedisEngine.call_all`.
        wake: Key of a stream that no other reader has.
    """

    def __init__(
        self,
        wait: Callable[..., Awaitable[list[Any]]],
        call_all: Callable[..., Awaitable[list[Any]]],
        wake: str,
    ) -> None:
        self._wait = wait
        self._call_all = call_all
        self._wake = wake
        self._wake_cursor = "0"
        self._waiting: dict[str, dict[asyncio.Future[None], int]] = {}
        self._reading: dict[str, int] = {}  # what the engine waits for now
        self._task: asyncio.Task[None] | None = None

    async def wait(self, key: str, number: int, seconds: float) -> None:
        """Wait for an entry after `0-NUMBER`, for some seconds at most.

        Raises:
            SharedStateError: The engine can't be reached, or the key is no stream.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, {})[future] = number
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run())
            elif self._reading and self._reading.get(key, math.inf) > number:
                self._reading = {}
                await self._call_all(
                    ("XADD", self._wake, "MAXLEN", 1, "*", "d", ""),
                    ("PEXPIRE", self._wake, _WAKE_MS),
                )
            await asyncio.wait([future], timeout=seconds)
            if future.done():
                future.result()
        finally:
            self._forget(key, future)

    async def close(self) -> None:
        """Stop waiting; tasks that wait go on after their time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        """Read while there are tasks that wait."""
        try:
            while self._waiting:
                await self._read()
        except SharedStateError as error:
            for key in [*self._waiting]:
                self._settle(key, error)

    async def _read(self) -> None:
        """Wait until one of the streams has entries, or others have to be waited for."""
        numbers = {key: min(each.values()) for key, each in self._waiting.items()}
        self._reading = numbers
        block = ("BLOCK", round(WAIT_SECONDS * 1000))
        cursors = (self._wake_cursor, *(f"0-{number}" for number in numbers.values()))
        try:
            words = ("XREAD", "COUNT", 1, *block, "STREAMS", self._wake, *numbers, *cursors)
            [read] = await self._wait(words)
        except SharedStateError as error:
            kinds = await self._call_all(*(("TYPE", key) for key in numbers))
            foreign = [key for key, kind in zip(numbers, kinds, strict=True) if kind not in _KINDS]
            if not foreign:
                raise
            for key in foreign:
                self._settle(key, error)
            return
        finally:
            self._reading = {}
        for name, entries in read or ():
            if name.decode() == self._wake:
                self._wake_cursor = entries[-1][0].decode()
                await asyncio.sleep(_GATHER_SECONDS)
            else:
                self._settle(name.decode())

    def _settle(self, key: str, error: SharedStateError | None = None) -> None:
        """Let the tasks go on that wait for a stream."""
        for future in self._waiting.pop(key, {}):
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _forget(self, key: str, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(future, None)
            if not waiting:
                del self._waiting[key]
