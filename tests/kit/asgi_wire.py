"""The server's side of ASGI for one request, in memory: records what is sent, and when."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import anyio

START: dict[str, Any] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    ],
}
LAST = {"type": "http.response.body", "body": b""}


def part(body: bytes) -> dict[str, Any]:
    """A part of a body that others follow."""
    return {"type": "http.response.body", "body": body, "more_body": True}


class Wire:
    """The server's side of ASGI; it receives these types at these moments, `""` is an error."""

    def __init__(self, *events: tuple[float, str]) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.moments: list[float] = []
        self.is_gone = False
        self.waiting = anyio.Event()
        self._events = [*events]
        self._reads: anyio.Event | None = None

    def stop_reading(self) -> None:
        """Have the application wait."""
        self._reads = anyio.Event()

    async def read_at(self, moment: float) -> None:
        """Read again from a moment on."""
        await anyio.sleep_until(moment)
        assert self._reads is not None
        self._reads.set()

    async def send(self, message: Mapping[str, Any]) -> None:
        """See ASGI."""
        if self._reads is not None:
            self.waiting.set()
            await self._reads.wait()
        if self.is_gone:
            raise BrokenPipeError("broken pipe")
        self.sent.append(message)
        self.moments.append(anyio.current_time())

    async def receive(self) -> dict[str, Any]:
        """See ASGI."""
        moment, kind = self._events[0]
        await anyio.sleep_until(moment)
        del self._events[0]
        if not kind:
            raise ConnectionResetError("reset")
        return {"type": kind}

    def bodies(self) -> list[tuple[float, bytes]]:
        """The parts of the body that are not empty, with their moments."""
        return [
            (moment, message["body"])
            for moment, message in zip(self.moments, self.sent, strict=True)
            if message.get("body")
        ]


class Line:
    """The receiving side of a client that leaves when `leave` is called."""

    def __init__(self) -> None:
        self._left = anyio.Event()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> MutableMapping[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}


async def drop(message: MutableMapping[str, Any]) -> None:
    """Send nothing."""
