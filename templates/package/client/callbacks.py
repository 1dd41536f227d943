"""Callbacks for log messages and progress of an open client, and calls in tasks of their own.

Callbacks complement the handlers of `connect`, and may be added and removed at any time. Each
function gets its messages in order: the next message is passed when the function has returned.

Plain functions of a blocking client, and plain handlers, are called by `in_thread`, in worker
threads, and so may block.

A started call runs in a task of the session. Cancelling the call cancels its open request, as the
transport and the revision define: by `notifications/cancelled`, or by closing the stream of the
request.

Source: server/utilities/logging, basic/utilities/progress, basic/utilities/cancellation
(2026-07-28: basic/patterns/progress, basic/patterns/cancellation).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar

import anyio
from anyio import to_thread

from ..channel import logger
from ..errors import ConnectionClosedError, RequestCancelledError

if TYPE_CHECKING:
    from ..protocol.connection import Connection
    from ..runtime.pending_requests import OnProgress


class LogMessage(Protocol):
    """A log message of a server: `LoggingMessageNotificationParams` of any revision."""

    @property
    def level(self) -> str:
        """One of debug, info, notice, warning, error, critical, alert, emergency."""
        ...

    @property
    def data(self) -> Any:
        """The logged JSON value."""
        ...

    @property
    def logger(self) -> str | None:
        """Name of the source; `None` if the server sent none."""
        ...


OnLog: TypeAlias = Callable[[LogMessage], Awaitable[object] | None]
"""Called with each log message."""


class Callback:
    """A function that a client calls, until `remove` or the end of a `with` block.

    Args:
        function: The function, plain or a coroutine function.
        on_remove: Called with the callback when it is removed, one for each session.
    """

    def __init__(
        self, function: Callable[..., Any], on_remove: Sequence[Callable[[Callback], None]]
    ) -> None:
        self._function = function
        self._on_remove = on_remove
        self._removed = False
        self._lock = anyio.Lock(fast_acquire=True)

    def remove(self) -> None:
        """Stop calling the function. Idempotent; callable from any thread."""
        if not self._removed:
            self._removed = True
            for remove in self._on_remove:
                remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    async def call(self, *arguments: Any) -> None:
        """Call the function when its earlier calls have ended. Exceptions are logged."""
        async with self._lock:
            if self._removed:
                return
            try:
                returned = self._function(*arguments)
                if inspect.isawaitable(returned):
                    await returned
            except Exception:
                logger.exception("%r failed", self._function)


class Callbacks:
    """The registered functions of a session.

    Args:
        connection: The connection, which asks the server for log messages.

    Attributes:
        progress: Callbacks for the progress of all requests.
    """

    def __init__(self, connection: Connection) -> None:
        self.progress: list[Callback] = []
        self._log: list[Callback] = []
        self._connection = connection
        self._level: str | None = None

    def add_log(self, callback: Callback, level: str) -> None:
        """Register a callback for log messages.

        Args:
            callback: The callback.
            level: The lowest level to ask for with each request, unless a level is set already.
        """
        self._log.append(callback)
        if self._connection.state.log_level is None:
            self._level = level
            self._connection.state.log_level = level

    def remove_log(self, callback: Callback) -> None:
        """Remove a callback for log messages."""
        self._log.remove(callback)
        if not self._log and self._level == self._connection.state.log_level:
            self._connection.state.log_level = None  # as before the first registration
            self._level = None

    async def pass_log_message(self, message: LogMessage) -> None:
        """Call the registered functions with a log message."""
        for callback in tuple(self._log):
            await callback.call(message)

    def with_progress(self, own: OnProgress | None) -> OnProgress | None:
        """The function to call with the progress of a request.

        Args:
            own: The function that the caller of the request passed.
        """
        if not self.progress:
            return own

        async def pass_progress(progress: float, total: float | None, message: str | None) -> None:
            for callback in tuple(self.progress):
                await callback.call(progress, total, message)
            if own is not None and (returned := own(progress, total, message)) is not None:
                await returned

        return pass_progress


def in_thread(function: Callable[..., Any] | None) -> Any:
    """Wrap a plain function to run in a thread; coroutine functions are returned unchanged."""
    if function is None or inspect.iscoroutinefunction(function):
        return function

    async def call_in_thread(*arguments: Any) -> Any:
        result = await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return call_in_thread


def log_callback(function: OnLog, level: str, sessions: Sequence[Callbacks]) -> Callback:
    """Register a function for the log messages of sessions; `level` as for `add_log`."""
    callback = Callback(function, [each.remove_log for each in sessions])
    for session in sessions:
        session.add_log(callback, level)
    return callback


def progress_callback(function: OnProgress, sessions: Sequence[Callbacks]) -> Callback:
    """Register a function for the progress of all requests of sessions."""
    callback = Callback(function, [each.progress.remove for each in sessions])
    for session in sessions:
        session.progress.append(callback)
    return callback


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
        """Run the call, and store its result or exception."""
        try:
            if self._scope.cancel_called:  # cancelled before the start: nothing was sent
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
