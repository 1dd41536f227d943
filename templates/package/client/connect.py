"""Opening a session over a channel, and closing both.

For every kind of target, the session is open when the body of the context manager begins, and all
tasks have ended when the context manager exits. Exceptions of the body are raised unchanged, never
in an exception group. Processes and URLs as targets have modules of their own.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable
from urllib.parse import urlsplit

import anyio

from ..channel import Channel
from ..errors import ConnectionClosedError, McpError, RequestTimeoutError, ServerStartError
from ..facts import Revisions
from ..protocol.client_connection import ClientConnection
from ..runtime.tracing import trace_channel
from ..transports.memory import memory_pair
from .base import AnyClient, ClientApplication
from .client_peer import ClientPeer

Session = TypeVar("Session")


@runtime_checkable
class Servable(Protocol):
    """A server that can serve over a channel."""

    async def serve(self, channel: Channel) -> None:
        """Serve until the channel is closed."""
        ...


Target: TypeAlias = str | Sequence[str] | PathLike[str] | Servable | Channel
"""The target of a client: the URL of a server over HTTP, a command line, the path of a script, a
server in this process, or a custom channel."""

_SCRIPTS: Mapping[str, str] = {".js": "node", ".mjs": "node", ".py": sys.executable}
"""The programs that run scripts, by file name suffix."""


def is_config_path(target: Target | Mapping[str, Any]) -> TypeGuard[PathLike[str]]:
    """Whether a target is the path of a configuration: any path without the suffix of a script."""
    return isinstance(target, PathLike) and Path(target).suffix not in _SCRIPTS


def script_command(path: PathLike[str]) -> list[str]:
    """The command that runs a script.

    Raises:
        OSError: The script can't be read.
        ValueError: The path has another suffix.
    """
    script = Path(path).absolute()
    program = _SCRIPTS.get(script.suffix)
    if program is None:
        raise ValueError(f"expected the path of a script ({', '.join(_SCRIPTS)}), got {path}")
    with script.open("rb"):
        return [program, str(script)]


class SessionOpening(AbstractAsyncContextManager[Session]):
    """The context manager that `connect` returns: opens on entry, closes on exit.

    Args:
        call: The function that returned it, for the error of an `await`.
        manager: Opens and closes.
    """

    def __init__(self, call: str, manager: AbstractAsyncContextManager[Session]) -> None:
        self._call = call
        self._manager = manager

    async def __aenter__(self) -> Session:
        return await self._manager.__aenter__()

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self._manager.__aexit__(*details)

    if not TYPE_CHECKING:  # type checkers refuse an `await` themselves

        def __await__(self):
            call = self._call
            raise TypeError(
                f"{call}: expected `async with {call}(...) as ...:`, which closes the session at "
                f"its end, got `await {call}(...)`"
            )


@asynccontextmanager
async def open_session(
    client_class: type[AnyClient],
    target: Target,
    opening: AbstractAsyncContextManager[Channel],
    revisions: Revisions,
    application: ClientApplication,
) -> AsyncGenerator[AnyClient, None]:
    """Open a session over a channel; close both on exit.

    Raises:
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: The session was not open in time.
        McpError: The channel ended.
    """
    timeouts = application.settings.timeouts
    async with opening as channel:
        peer = new_peer(channel, revisions, application)
        async with run_concurrently(peer.run, peer.close):
            try:
                await peer.open(timeouts.opening)
            except (ConnectionClosedError, RequestTimeoutError) as error:
                more = "" if isinstance(target, str) else peer.advice
                raise explain_error(error, target, timeouts.opening, more) from None
            yield client_class(peer, application)


def new_peer(channel: Channel, revisions: Revisions, application: ClientApplication) -> ClientPeer:
    """The client's end of a channel."""
    settings = application.settings
    connection = ClientConnection(
        revisions, application.describe, application.custom_methods, extra=settings.extra
    )
    return application.peer_class(
        connection, trace_channel(channel, "client"), application, settings
    )


def explain_error(
    error: ConnectionClosedError | RequestTimeoutError | ServerStartError,
    target: Target,
    seconds: float,
    more: str,
) -> McpError:
    """An error of opening a session, with the target, the time limit and further text."""
    match error:
        case RequestTimeoutError():
            return RequestTimeoutError(f"{error.method}{_target_text(target)}", seconds, more)
        case ServerStartError():
            return error.with_more(more)
        case ConnectionClosedError():
            return ConnectionClosedError(f"{error}; {more}") if more else error


@asynccontextmanager
async def run_concurrently(
    work: Callable[[], Coroutine[Any, Any, None]], end: Callable[[], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    """Run `work` concurrently with the body; then call `end`, and wait until `work` has ended."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            yield
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except BaseException as error:
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await end()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # breaks the reference cycle of exception and frame


def _target_text(target: Target) -> str:
    """The target for error texts, without the secrets of a URL or a command line."""
    if isinstance(target, str):
        url = urlsplit(target)
        return f" with {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    if not isinstance(target, Sequence):
        return ""
    from ..command_masking import masked_command

    return f" with {masked_command(target)!r}"


@asynccontextmanager
async def in_memory(server: Servable) -> AsyncGenerator[Channel, None]:
    """Serve a server of this process over a channel. An exception of the server is raised."""
    near, far = memory_pair()
    crash: Exception | None = None

    async def serve() -> None:
        nonlocal crash
        try:
            await server.serve(far)
        except Exception as error:
            crash = error
        finally:
            await far.close()

    try:
        async with run_concurrently(serve, near.close):
            yield near
    except ConnectionClosedError:
        if crash is None:
            raise
    if crash is not None:
        raise crash
