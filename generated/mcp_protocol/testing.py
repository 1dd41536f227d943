"""Testing what is built on this package: both ends in one process, over the real encoding.

As a context manager:

    async with connected(server) as pair:
        result = await pair.client.call_tool("forecast", {"city": "Oslo"})
        assert pair.sent[-1]["method"] == "tools/call"

As a pytest fixture, for tests that anyio's plugin runs (`@pytest.mark.anyio`):

    weather = pair_fixture(make_server)

    @pytest.mark.anyio
    async def test_forecast(weather: Pair) -> None: ...
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from .channel import Channel, RequestId
from .client import Client, ClientHandlers, connect
from .client_side.base import ClientBase, Handlers
from .client_side.connecting import Servable

if TYPE_CHECKING:
    from .r2024_11_05 import client as r2024_11_05
    from .r2025_03_26 import client as r2025_03_26
    from .r2025_06_18 import client as r2025_06_18
    from .r2025_11_25 import client as r2025_11_25
    from .r2026_07_28 import client as r2026_07_28

AnyClient = TypeVar("AnyClient", bound=ClientBase)


@dataclass(frozen=True)
class PairOf(Generic[AnyClient]):
    """A client of some class and the server that it talks to.

    Attributes:
        client: The open session.
        server: The server.
        sent: What the client sent so far, as JSON objects.
        received: What the server sent so far.
    """

    client: AnyClient
    server: Servable
    sent: list[Any]
    received: list[Any]


@dataclass(frozen=True)
class Pair(PairOf[Client]):
    """A client of whichever revision was agreed, and the server that it talks to."""


@dataclass(frozen=True)
class _Recorded:
    """A server that keeps what passes on its channel."""

    server: Servable
    incoming: list[Any] = field(default_factory=list[Any])
    outgoing: list[Any] = field(default_factory=list[Any])

    async def serve(self, channel: Channel) -> None:
        await self.server.serve(_RecordingChannel(channel, self.incoming, self.outgoing))


@dataclass(frozen=True)
class _RecordingChannel:
    """A channel that keeps what passes."""

    channel: Channel
    incoming: list[Any]
    outgoing: list[Any]

    async def receive(self) -> bytes:
        message = await self.channel.receive()
        self.incoming.append(json.loads(message))
        return message

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        self.outgoing.append(json.loads(message))
        await self.channel.send(message, about)

    async def close(self) -> None:
        await self.channel.close()


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["2024-11-05"],
    handlers: r2024_11_05.ClientHandlers | ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[PairOf[r2024_11_05.Client]]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["2025-03-26"],
    handlers: r2025_03_26.ClientHandlers | ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[PairOf[r2025_03_26.Client]]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["2025-06-18"],
    handlers: r2025_06_18.ClientHandlers | ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[PairOf[r2025_06_18.Client]]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["2025-11-25"],
    handlers: r2025_11_25.ClientHandlers | ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[PairOf[r2025_11_25.Client]]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["2026-07-28"],
    handlers: r2026_07_28.ClientHandlers | ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[PairOf[r2026_07_28.Client]]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: Literal["handshake"] | None = None,
    handlers: ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[Pair]: ...


@overload
def connected(
    server: Servable,
    *,
    revision: str | None,
    handlers: Handlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[Any]: ...


def connected(
    server: Servable,
    *,
    revision: str | None = None,
    handlers: Handlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[Any]:
    """Connect a client to a server in memory; both end with the block.

    Args:
        server: A `Server`, or whatever serves a channel.
        revision: The revision to speak, with the types of that revision; by default the newest
            that both know.
        handlers: What the client can do for the server.
        capabilities: What the client declares beyond that, as wire object.

    Raises:
        RevisionError: The server does not speak the revision.
    """
    return _connected(server, revision, handlers, capabilities)


@asynccontextmanager
async def _connected(
    server: Servable,
    revision: str | None,
    handlers: Handlers | None,
    capabilities: Mapping[str, Any] | None,
) -> AsyncGenerator[Pair, None]:
    recorded = _Recorded(server)
    opening = connect(recorded, revision=revision, handlers=handlers, capabilities=capabilities)
    async with opening as client:
        yield Pair(client, server, recorded.incoming, recorded.outgoing)


def pair_fixture(
    server: Servable | Callable[[], Servable],
    *,
    revision: str | None = None,
    handlers: Handlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> Any:
    """A pytest fixture that gives a `Pair`, fresh for each test.

    Args:
        server: The server, or a function that makes one for each test.
        revision: As for `connected`, like all that follows.
        handlers: What the client can do for the server.
        capabilities: What the client declares beyond that.

    Returns:
        The fixture; its name is that of the variable it is kept in.

    Raises:
        ModuleNotFoundError: pytest is not installed.
    """
    import pytest  # only tests have it

    @pytest.fixture
    async def pair(anyio_backend: Any) -> AsyncGenerator[Pair, None]:
        made = server if isinstance(server, Servable) else server()
        async with connected(
            made, revision=revision, handlers=handlers, capabilities=capabilities
        ) as both:
            yield both

    return pair
