"""A virtual clock, and an HTTP library that reaches servers in memory, in one process."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
import pytest
from trio.testing import MockClock

from kit.http_server import Asked, Handler, Reply
from mcpgen_runtime import ResponseLostError
from mcpgen_runtime.client.auth import flow_driver
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.transports.http import http_client
from mcpgen_runtime.transports.http.http_library import TakePart

Result = TypeVar("Result")

URL = "https://mcp.example/a"
"""The URL of the server that `reach` lets clients reach."""

FOREVER = 24 * 3600.0
"""Virtual seconds after which a run counts as a deadlock."""


class _SelectorThatSkips(selectors.DefaultSelector):
    """Selects without waiting; counts the seconds that it was to wait."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout == 0:  # callbacks are ready: descriptors are looked at once these have run
            return []
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.skipped += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop that skips the time for which it has nothing to do."""

    def __init__(self) -> None:
        self._skipping = _SelectorThatSkips()
        super().__init__(self._skipping)

    def time(self) -> float:
        """The seconds that were skipped."""
        return self._skipping.skipped


ASYNCIO = "asyncio", {"loop_factory": VirtualClockLoop}
"""The backend with this clock, for the fixture `anyio_backend`."""

on_virtual_clock = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(ASYNCIO, id="virtual clock")]
)
"""A mark of tests in which seconds pass at once, on asyncio."""

on_virtual_clocks = pytest.mark.parametrize(
    "anyio_backend",
    [
        pytest.param(ASYNCIO, id="asyncio"),
        pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio"),
    ],
)
"""The same on both event loops."""


def simulate(backend: str, seed: int, main: Callable[[], Awaitable[Result]]) -> Result:
    """Run a coroutine on a virtual clock."""
    options: dict[str, Any] = {"loop_factory": VirtualClockLoop}
    if backend == "trio":
        run: Any = import_module("trio._core._run")  # its order of tasks has no other seed
        run._r.seed(seed)
        options = {"clock": MockClock(autojump_threshold=0)}

    async def bounded() -> Result:
        with anyio.fail_after(FOREVER):
            return await main()

    return anyio.run(bounded, backend=backend, backend_options=options)


class Network:
    """Carries requests to servers in memory, with delays; records when nothing is under way."""

    codings = "identity"

    def __init__(
        self,
        random: Random,
        servers: Mapping[str, Handler],
        delay: Callable[[Asked], tuple[float, float]],
    ) -> None:
        self._random = random
        self._servers = servers
        self._delay = delay
        self._under_way = 0
        self._since = 0.0
        self.idle = 0.0
        self.watched = 0
        self.lost = 0.0

    async def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> SimulatedResponse:
        """See `Library.send`. A server handles what it has read, also if it is given up."""
        split = urlsplit(url)
        target = f"{split.path}?{split.query}" if split.query else split.path
        asked = Asked(method, target, list(fields.items()), body or b"", anyio.current_time())
        there, back = self._delay(asked)
        reply = MemoryReply(url)
        with self.working():
            await anyio.sleep(there)
            await self._servers[f"{split.scheme}://{split.netloc}"](asked, reply)
            await anyio.sleep(back)
            if self._random.random() < self.lost:
                raise ResponseLostError("the connection broke")
        return reply.response

    @contextmanager
    def working(self) -> Iterator[None]:
        """A context in which something is under way."""
        self.change(under_way=1)
        try:
            yield
        finally:
            self.change(under_way=-1)

    async def close(self) -> None:
        """See `Library.close`."""

    def change(self, under_way: int = 0, watched: int = 0) -> None:
        """Count something more or less."""
        now = anyio.current_time()
        if self.watched and not self._under_way:
            self.idle += now - self._since
        self._since = now
        self._under_way += under_way
        self.watched += watched


def use_network(monkeypatch: pytest.MonkeyPatch, network: Network) -> None:
    """Let clients make their requests by a simulated network, as by any HTTP library."""
    # A package chooses its library when it is generated.
    monkeypatch.setattr(ChosenApplication, "http_library", None)
    for module in (http_client, flow_driver):
        monkeypatch.setattr(module, "Httpx2Library", lambda *_, **__: network)


class SimulatedResponse:
    """A response whose body is there."""

    def __init__(self, url: str, status: int, fields: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.reason = ""
        self.url = url
        self._fields = {name.lower(): value for name, value in fields.items()}
        self._body = body

    def header(self, name: str) -> str | None:
        """See `Response.header`."""
        return self._fields.get(name.lower())

    async def read(self, limit: int, silence: float, seconds: float) -> bytes:
        """See `Response.read`."""
        return self._body

    async def each_part(self, take: TakePart) -> None:
        """See `Response.each_part`."""
        await take(self._body)

    async def close(self) -> None:
        """See `Response.close`."""


class MemoryReply(Reply):
    """A reply that is kept for the client."""

    def __init__(self, url: str) -> None:
        self.response = SimulatedResponse(url, 500, {}, b"")

    async def whole(self, status: int, body: bytes = b"", **fields: str) -> None:
        """A response at once."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.response = SimulatedResponse(self.response.url, status, named, body)


class StreamResponse(SimulatedResponse):
    """A response with a stream of events, which may break at its end."""

    def __init__(
        self, body: bytes = b"", failure: Exception | None = None, *, silent: bool = False
    ) -> None:
        super().__init__(URL, 200, {"Content-Type": "text/event-stream; charset=utf-8"}, body)
        self._failure = failure
        self._silent = silent

    async def each_part(self, take: TakePart) -> None:
        """See `Response.each_part`."""
        await super().each_part(take)
        if self._silent:
            await anyio.sleep_forever()
        if self._failure is not None:
            raise self._failure


def reach(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handler answer all requests to the origin of `URL`, at once."""
    network = Network(Random(0), {"https://mcp.example": handler}, lambda asked: (0.0, 0.0))
    use_network(monkeypatch, network)


class SharedStore:
    """A store of several clients in memory, whose locks wait without polling."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self._locks: dict[str, anyio.Lock] = {}

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        return self.records.get(key)

    async def save(self, key: str, record: bytes | None) -> None:
        """See `Store.save`."""
        if record is None:
            self.records.pop(key, None)
        else:
            self.records[key] = record

    def lock(self, key: str) -> anyio.Lock:
        """See `Store.lock`."""
        return self._locks.setdefault(key, anyio.Lock())
