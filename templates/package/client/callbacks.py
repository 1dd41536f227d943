"""Callbacks for log messages and progress of an open client, and calls in tasks of their own.

Callbacks complement the handlers of `connect`, and may be added and removed at any time. Each
function gets its messages in order: the next message is passed when the function has returned.

A started call runs in a task of the session. Cancelling the call cancels its open request, as the
transport and the revision define: by `notifications/cancelled`, or by closing the stream of the
request.

Source: server/utilities/logging, basic/utilities/progress, basic/utilities/cancellation
(2026-07-28: basic/patterns/progress, basic/patterns/cancellation).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar

import anyio

from ..channel import logger
from ..errors import ConnectionClosedError, RequestCancelledError
from ..protocol.connection import Connection
from ..protocol.requests import MESSAGE
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from .application import ClientApplication
from .pipeline import RequestPipeline

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CANCELLED = "the call was cancelled"


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


class CallbackApplication(ClientApplication):
    """Passes log messages to callbacks, before the handlers."""

    callbacks: Callbacks | None = None  # before the first registration

    async def notified(self, context: RequestContext) -> None:
        if self.callbacks is not None and context.method.name == MESSAGE:
            await self.callbacks.pass_log_message(context.params)
        await super().notified(context)


def _callbacks_of(requests: RequestPipeline) -> Callbacks:
    """The callbacks of a session."""
    application = requests.application
    assert isinstance(application, CallbackApplication)
    if application.callbacks is None:
        application.callbacks = Callbacks(requests.connection)
        application.with_progress = application.callbacks.with_progress
    return application.callbacks


class CallbackCalls:
    """The methods of clients that register callbacks."""

    def _pipelines(self) -> Iterable[RequestPipeline]:
        """The request pipeline of each session that is open."""
        raise NotImplementedError

    def on_log(self, function: OnLog, level: str = "info") -> Callback:
        """Register a function to call with each log message of the server, until removal.

        Each function gets its messages in order. Exceptions of the function are logged.

        Args:
            function: Gets a `LogMessage`. A coroutine function, or a plain function, which must
                not block the event loop; a blocking client runs plain functions in a thread.
            level: The lowest level to ask for in revisions where each request asks for log
                messages, unless `ask_for_logs` was called. In a session, `set_level` decides.

        Returns:
            The callback, which has `remove`, and is a context manager that removes it.

        Source: server/utilities/logging.
        """
        sessions = [*map(_callbacks_of, self._pipelines())]
        callback = Callback(function, [each.remove_log for each in sessions])
        for session in sessions:
            session.add_log(callback, level)
        return callback

    def on_progress(self, function: OnProgress) -> Callback:
        """Register a function to call with the progress of each request, until removal.

        Requests that are sent from now on ask for progress, except by `request_raw`. The
        `on_progress` of a request is called as well.

        Args:
            function: Gets progress, total and message. A coroutine function, or a plain function,
                as for `on_log`.

        Returns:
            The callback, as of `on_log`.

        Source: basic/utilities/progress (2026-07-28: basic/patterns/progress).
        """
        sessions = [*map(_callbacks_of, self._pipelines())]
        callback = Callback(function, [each.progress.remove for each in sessions])
        for session in sessions:
            session.progress.append(callback)
        return callback


class StartedCalls:
    """The method of clients of one server that starts a call in a task of its own."""

    _peer: Peer

    def start_call(
        self,
        method: Callable[Parameters, Coroutine[Any, Any, Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> StartedCall[Result]:
        """Start a call in a task of its own, which the caller may cancel.

            call = client.start_call(client.call_tool, "forecast", {"city": "Oslo"})
            ...
            call.cancel()

        Args:
            method: A method of this client.
            args: Its arguments, as in a direct call.
            kwargs: Its keyword arguments.

        Returns:
            The call: `await call` gives the result.

        Raises:
            ConnectionClosedError: The connection has ended.
        """
        return StartedCall(method(*args, **kwargs), self._peer.start_soon)


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
