"""Both ends of a session in one process, for tests: a client, its server, and what they sent."""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from types import ModuleType
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar

import anyio

from ..channel import Channel, OutgoingMessage, RequestId
from ..runtime.eager_tasks import on_asyncio
from ..runtime.request_context import PRINCIPAL, Principal
from .application import Handlers
from .base import ClientBase
from .connect import SessionOpening
from .opening import Servable

AnyClient = TypeVar("AnyClient", bound=ClientBase)


@dataclass(frozen=True)
class PairOf(Generic[AnyClient]):
    """A client of some class and the server that it talks to.

    Attributes:
        client: The open session.
        server: The server.
        sent: The messages that the client sent so far, as JSON objects.
        received: The messages that the server sent so far.
    """

    client: AnyClient
    server: Servable
    sent: list[Any]
    received: list[Any]


@dataclass(frozen=True)
class _Recorded:
    """A server that records the messages of its channel."""

    server: Servable
    principal: Principal | None
    incoming: list[Any] = field(default_factory=list[Any])
    outgoing: list[Any] = field(default_factory=list[Any])

    async def serve(self, channel: Channel) -> None:
        if self.principal is not None:
            PRINCIPAL.set(self.principal)
        await self.server.serve(_RecordingChannel(channel, self.incoming, self.outgoing))


@dataclass(frozen=True)
class _RecordingChannel(Channel):
    channel: Channel
    incoming: list[Any]
    outgoing: list[Any]

    async def receive(self) -> bytes:
        message = await self.channel.receive()
        self.incoming.append(json.loads(message))
        return message

    async def send(self, message: OutgoingMessage) -> None:
        self.outgoing.append(json.loads(message.data))
        await self.channel.send(message)

    async def close(self) -> None:
        await self.channel.close()

    def close_request_stream(self, identifier: RequestId) -> bool:
        return self.channel.close_request_stream(identifier)

    async def close_sse_stream(self, identifier: RequestId) -> bool:
        return await self.channel.close_sse_stream(identifier)


_Trace: TypeAlias = str | PathLike[str]


class PairOptions(TypedDict, total=False):
    """Options of `connected` and `pair_fixture`.

    Attributes:
        replay: Instead of a server: a trace, which `mcpgen replay` serves in a process of its own;
            or the trace and options of that command, such as `("trace.jsonl", "--strict")`.
        handlers: The client's handlers for requests of the server.
        capabilities: Further capabilities that the client declares, as wire object.
        extra: Whether the objects of results keep members that the revision does not define.
        principal: The principal of the client, as if it had a token.
    """

    replay: _Trace | Sequence[_Trace]
    handlers: Handlers | None
    capabilities: Mapping[str, Any] | None
    extra: bool
    principal: Principal | None


def open_pair(
    connect: Callable[..., Any],
    pair: Callable[..., Any],
    server: Servable | None,
    revision: str | None,
    options: Mapping[str, Any],
) -> AbstractAsyncContextManager[Any]:
    """The pair of a server and a client that `connect` makes; both end with the block.

    Raises:
        TypeError: There is neither a server nor a trace, or there are both.
    """
    own = dict(options)
    served = _served(server, own.pop("replay", None))

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Any]:
        recorded = _Recorded(served, own.pop("principal", None))
        async with connect(recorded, revision=revision, **own) as client:
            yield pair(client, served, recorded.incoming, recorded.outgoing)

    return SessionOpening("connected", connected())


def _served(server: Servable | None, replay: _Trace | Sequence[_Trace] | None) -> Servable:
    if server is not None and replay is None:
        return server
    if replay is None or server is not None:
        came = "neither" if server is None else "both"
        raise TypeError(f"connected: expected a server, or replay=TRACE, got {came}")
    try:
        from mcpgen.replay.testing import ServedTrace
    except ModuleNotFoundError as error:
        raise _without_mcpgen("connected(replay=...)") from error
    words = [replay] if isinstance(replay, str | PathLike) else replay
    package = __name__.rpartition(".client.")[0]
    served: Servable = ServedTrace(package, [fspath(word) for word in words])
    return served


def _without_mcpgen(name: str) -> ModuleNotFoundError:
    text = f"{name} needs mcpgen: install the one that wrote the package, for tests alone"
    return ModuleNotFoundError(text, name="mcpgen")


def fixture_of(
    open_one: Callable[[Servable | None], AbstractAsyncContextManager[Any]],
    server: Servable | Callable[[], Servable] | None,
    fixture: Callable[..., Any] | None,
) -> Any:
    """The fixture that opens a pair for each test; see `testing.pair_fixture`."""
    import pytest  # only tests have it

    async def pair() -> AsyncGenerator[Any]:
        one = server if server is None or isinstance(server, Servable) else server()
        async with _in_one_task(open_one(one)) as both:
            yield both

    return (fixture or pytest.fixture)(pair)


async def check_contract(
    package: ModuleType, server: Servable, file: str | PathLike[str], fail_on: str
) -> None:
    """Check a server by mcpgen, which asks it by the client of a package; see `testing.contract`.

    Raises:
        AssertionError: The server has changed, or there is no file.
        ModuleNotFoundError: mcpgen is not installed.
    """
    __tracebackhide__ = True
    try:
        from mcpgen.contract.testing import check_in_memory
    except ModuleNotFoundError as error:
        raise _without_mcpgen("testing.contract") from error
    await check_in_memory(package, server, file, fail_on)


@asynccontextmanager
async def _in_one_task(opening: AbstractAsyncContextManager[Any]) -> AsyncGenerator[Any]:
    """Enter and exit a context manager in one task, as its cancel scopes require.

    pytest-asyncio runs setup and teardown of a fixture in two tasks. The plugin of anyio, the only
    one for trio, runs both in one task.
    """
    if not on_asyncio():
        async with opening as pair:
            yield pair
        return
    import asyncio

    opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    over = anyio.Event()

    async def hold() -> None:
        try:
            async with opening as pair:
                opened.set_result(pair)
                await over.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    task = asyncio.create_task(hold())
    try:
        yield await opened
    finally:
        over.set()
        await task
