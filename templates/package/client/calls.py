"""Calls that run beside their caller, which may cancel them.

A call runs in a task of the session. Cancelling it cancels its open request as the transport and
the revision have it: by `notifications/cancelled`, or by closing the stream of the request.

Source: basic/utilities/cancellation; 2026-07-28: basic/patterns/cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import anyio

from ..errors import ConnectionClosedError, RequestCancelledError

Result = TypeVar("Result")

CANCELLED = "the call was cancelled"


class StartedCall(Generic[Result]):
    """A call that runs in a task of the session; `await call` gives its result.

    The result may be awaited by several tasks, also after the end. Cancelling a task that waits
    leaves the call running; the end of the session ends it.

    Args:
        work: The coroutine of the call.
        start_soon: Starts a task that ends with the session.

    Raises:
        ConnectionClosedError: The connection has ended.
    """

    def __init__(
        self,
        work: Coroutine[Any, Any, Result],
        start_soon: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
    ) -> None:
        self._work = work
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._results: list[Result] = []
        self._failure: Exception | None = None
        try:
            start_soon(self._run)
        except BaseException:
            work.close()
            raise

    def __await__(self) -> Generator[Any, Any, Result]:
        """Wait for the result.

        Raises:
            RequestCancelledError: The call was cancelled.
            ConnectionClosedError: The session was closed before there was a result.
            Exception: The exceptions of the method that was called.
        """
        return self._wait().__await__()

    @property
    def done(self) -> bool:
        """Whether the call has ended: there is a result or an error, or it was cancelled."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Cancel the call, from the session's event loop. No effect on a call that has ended."""
        self._scope.cancel()

    async def _wait(self) -> Result:
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    async def _run(self) -> None:
        """Run the call, and store how it ends."""
        try:
            if self._scope.cancel_called:  # before it began: nothing was sent
                self._work.close()
                self._failure = RequestCancelledError(CANCELLED)
                return
            with self._scope:
                self._results.append(await self._work)
            if not self._results:
                self._failure = RequestCancelledError(CANCELLED)
        except Exception as error:
            self._failure = error
        except BaseException:
            self._failure = ConnectionClosedError("the connection is closed")
            raise
        finally:
            self._ended.set()
