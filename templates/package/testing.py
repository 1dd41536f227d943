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
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from .channel import Channel, RequestId, transport_of
from .client import Client, ClientHandlers, connect
from .client_side.connecting import Servable


@dataclass(frozen=True)
class Pair:
    """A client and the server that it talks to.

    Attributes:
        client: The open session.
        server: The server.
        sent: What the client sent so far, as JSON objects.
        received: What the server sent so far.
    """

    client: Client
    server: Servable
    sent: list[Any]
    received: list[Any]


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

    @property
    def transport(self) -> str:
        return transport_of(self.channel)

    async def receive(self) -> bytes:
        message = await self.channel.receive()
        self.incoming.append(json.loads(message))
        return message

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        self.outgoing.append(json.loads(message))
        await self.channel.send(message, about)

    async def close(self) -> None:
        await self.channel.close()


@asynccontextmanager
async def connected(
    server: Servable,
    *,
    revision: str | None = None,
    handlers: ClientHandlers | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Pair, None]:
    """Connect a client to a server in memory; both end with the block.

    Args:
        server: A `Server`, or whatever serves a channel.
        revision: The revision to speak; by default the newest that both know.
        handlers: What the client can do for the server.
        capabilities: What the client declares beyond that, as wire object.

    Raises:
        RevisionError: The server does not speak the revision.
    """
    recorded = _Recorded(server)
    opening = connect(recorded, revision=revision, handlers=handlers, capabilities=capabilities)
    async with opening as client:
        yield Pair(client, server, recorded.incoming, recorded.outgoing)


def pair_fixture(
    server: Servable | Callable[[], Servable],
    *,
    revision: str | None = None,
    handlers: ClientHandlers | None = None,
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
