"""Running a server at standard input and output."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import anyio

from ..channel import Channel
from ..runtime.request_context import PRINCIPAL, Principal
from .serving import leave_stuck_threads

Backend: TypeAlias = Literal["asyncio", "trio"]

_logger = logging.getLogger(__name__)


async def serve_stdio(
    serve_channel: Callable[[Channel], Any], principal: Principal | None = None
) -> None:
    """Serve the client at the other end of standard input and output, in the running event loop.

    Returns at the end of standard input; a cancellation ends it. Signals are the caller's.

    Args:
        serve_channel: Serves the client.
        principal: On whose behalf requests are served.
    """
    from ..transports.stdio import open_stdio  # other channels do not need it

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

    Args:
        serve_channel: Serves the client.
        backend: The event loop.
        principal: On whose behalf requests are served.
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
