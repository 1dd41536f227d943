"""Running a server whose channel is standard input and output.

Any code of the process may print, and so may its children. Therefore both streams are redirected
before the first message: the channel has private duplicates, which no child inherits; descriptor 0
becomes the null device and descriptor 1 becomes standard error.
"""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import TextIOWrapper
from typing import Any, Literal, TypeAlias

import anyio

from ..channel import MESSAGE_LIMIT, Channel
from ..errors import ConnectionClosedError
from ..runtime.request_context import PRINCIPAL, Principal
from ..transports.line_channel import LineChannel, Sink, ThreadedSink, open_sink, open_source
from .serving import leave_stuck_threads

Backend: TypeAlias = Literal["asyncio", "trio"]

_logger = logging.getLogger(__name__)


async def serve_stdio(
    serve_channel: Callable[[Channel], Any], principal: Principal | None = None
) -> None:
    """Serve the client at the other end of standard input and output, in the running event loop.

    Returns at the end of standard input or when cancelled. The caller handles signals.
    """
    channel = open_stdio()
    token = PRINCIPAL.set(principal) if principal is not None else None
    try:
        await serve_channel(channel)
    finally:
        if token is not None:
            PRINCIPAL.reset(token)
        with anyio.CancelScope(shield=True):
            await channel.close()


def run_stdio(
    serve_channel: Callable[[Channel], Any], backend: Backend, principal: Principal | None = None
) -> None:
    """Serve the client at the other end of standard input and output, then return.

    Returns at the end of standard input, at SIGINT and at SIGTERM. A plain function that still runs
    in its thread can't be stopped; the process then exits without waiting for it.
    """

    async def main() -> None:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_at_signal, tasks.cancel_scope)
            try:
                await serve_stdio(serve_channel, principal)
            except Exception as error:
                failure = error  # unwrapped, so that the last line on standard error is its text
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    try:
        anyio.run(main, backend=backend)
    except KeyboardInterrupt:
        _logger.info("interrupted")
    leave_stuck_threads()


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                _logger.info("ended by %s", signal.Signals(number).name)
                scope.cancel()
    except NotImplementedError:
        return  # Windows: Ctrl-C arrives as KeyboardInterrupt, and there is no SIGTERM.


STDIN, STDOUT, STDERR = 0, 1, 2

# Does not wait for a reader of a named pipe, and makes no terminal the controlling one.
_REOPEN = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def open_stdio(limit: int = MESSAGE_LIMIT) -> LineChannel:
    """Redirect standard input and output, and return a channel over them.

    Call it within an event loop, and before any code prints to standard output. Messages are UTF-8
    in any locale. From then on, also after the channel is closed, prints go to standard error,
    since a late print must not reach the client, and standard input is at its end.

    Args:
        limit: Longest message accepted, in bytes.

    Raises:
        ConnectionClosedError: The process was started without one of the two streams.
        OSError: There are too many open files; nothing was redirected.

    Source: basic/transports (stdio).
    """
    # Streams from the start of the interpreter: other files may have these numbers by now.
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise ConnectionClosedError("expected an open standard input and output, came none")
    with ExitStack() as undo:
        private = os.dup(STDIN)
        undo.callback(os.close, private)
        null = os.open(os.devnull, os.O_RDWR)
        undo.callback(os.close, null)
        sink = _private_sink(STDOUT)
        undo.pop_all()
    channel = LineChannel(open_source(private), sink, limit)
    channel.transport = "stdio"
    os.dup2(null, STDIN)
    os.dup2(null if sys.__stderr__ is None else STDERR, STDOUT)
    os.close(null)
    _redirect_prints()
    return channel


def _private_sink(fd: int) -> Sink:
    """A sink for the file of `fd`, whose non-blocking flag affects no other process."""
    kind = os.fstat(fd)
    if stat.S_ISFIFO(kind.st_mode) or stat.S_ISCHR(kind.st_mode):
        # With /proc, this is a new open file with flags of its own.
        with suppress(OSError):
            return open_sink(os.open(f"/proc/self/fd/{fd}", _REOPEN))
    if sys.__stderr__ is not None and os.path.samestat(kind, os.fstat(STDERR)):
        return ThreadedSink(os.dup(fd))
    return open_sink(os.dup(fd))


def _redirect_prints() -> None:
    """Have text streams on standard output behave like standard error.

    They flush each line, and escape characters that their encoding lacks. Earlier prints are
    flushed, since they must not reach the client.
    """
    for stream in (sys.stdout, sys.__stdout__):
        if isinstance(stream, TextIOWrapper):
            with suppress(OSError, ValueError):
                if stream.fileno() == STDOUT:
                    stream.reconfigure(errors="backslashreplace", line_buffering=True)
