"""A session in a thread of its own, for code without an event loop.

Any other thread may make a call, and blocks until the result is available. An exception in the
waiting thread, such as KeyboardInterrupt, cancels the call. Callbacks and handlers that are plain
functions run in further threads, so they may block, and call the client.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from threading import Lock, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from ..errors import ConnectionClosedError, RequestCancelledError
from ..facts import Method
from ..runtime.request_context import RequestContext
from .base import Handlers
from .callbacks import in_thread

if TYPE_CHECKING:
    from .base import ClientBase

Backend: TypeAlias = Literal["asyncio", "trio"]

_TICK = 0.5  # seconds after which a waiting thread handles signals

Opened = TypeVar("Opened")
Result = TypeVar("Result")


class ClientThread(Protocol):
    """The thread of an asynchronous client."""

    @property
    def opened(self) -> Any:
        """The asynchronous client."""
        ...

    def run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Make a call in the thread, and wait for its result."""
        ...

    def start(self, call: Callable[[], Awaitable[Result]]) -> SyncStartedCall[Result]:
        """Start a call in the thread, and return at once."""
        ...

    def close(self, failure: BaseException | None = None) -> None:
        """Close the client."""
        ...


class SessionThread(Generic[Opened]):
    """A thread with an event loop, in which an asynchronous context manager is entered.

    Args:
        opening: The context manager; `close` exits it.
        backend: The event loop.

    Attributes:
        opened: The value of the context manager.

    Raises:
        Exception: Any exception of entering the context manager.
        RuntimeError: The calling thread runs trio, and the backend is trio.
    """

    def __init__(self, opening: AbstractAsyncContextManager[Opened], backend: Backend) -> None:
        self._backend = backend
        self._ident: int | None = None
        self._check_may_wait()
        self._closing = Lock()
        self._closed = False
        self._failure: Exception | None = None
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal(backend, name="MCP session"))
        ready: Future[Opened] = Future()
        self._over = self._portal.call(anyio.Event)
        self._held = self._portal.start_task_soon(self._hold, opening, ready)
        try:
            self.opened = _result_of(ready)
        except BaseException:
            self._held.cancel()
            self._end()
            raise

    def run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Make a call in the thread, and wait for its result.

        Raises:
            ConnectionClosedError: The session was closed before there was a result.
            RuntimeError: A thread can't wait for itself, nor trio for trio.
        """
        self._check_may_wait()
        if self._closed:
            raise ConnectionClosedError("the connection is closed")
        future: Future[Result] | None = None
        work = _CancellableCall(call)
        try:
            future = self._portal.start_task_soon(work)
            return _result_of(future)
        except CancelledError:
            raise ConnectionClosedError("the connection is closed") from None
        except BaseException as error:
            if future is None and isinstance(error, RuntimeError):  # closed by another thread
                raise ConnectionClosedError("the connection is closed") from None
            if future is None or not future.done():  # an interrupt may occur at any point
                self._portal.start_task_soon(work.cancel)
            raise

    def start(self, call: Callable[[], Awaitable[Result]]) -> SyncStartedCall[Result]:
        """Start a call in the thread, and return at once.

        Raises:
            ConnectionClosedError: The session was closed.
        """
        work = _CancellableCall(call)
        try:
            if self._closed:
                raise RuntimeError
            future = self._portal.start_task_soon(work)
        except RuntimeError:
            raise ConnectionClosedError("the connection is closed") from None
        return SyncStartedCall(self, work, future)

    def cancel(self, work: _CancellableCall[Any]) -> None:
        """Cancel a call, from any thread."""
        with suppress(RuntimeError):  # the thread has ended, and the call with it
            self._portal.start_task_soon(work.cancel)

    def wait(self, future: Future[Result], seconds: float | None) -> Result:
        """Wait for the result of a call that was started.

        Raises:
            TimeoutError: No result in time.
            RuntimeError: A thread can't wait for itself, nor trio for trio.
        """
        self._check_may_wait()
        return _result_of(future, seconds)

    def close(self, failure: BaseException | None = None) -> None:
        """Exit the context manager and end the thread, from any other thread.

        Args:
            failure: The exception that ends the session, if any.

        Raises:
            Exception: Any exception of exiting the context manager.
            RuntimeError: A thread can't wait for itself, nor trio for trio.
        """
        self._check_may_wait()
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._failure = failure if isinstance(failure, Exception) else None
        try:
            self._portal.call(self._over.set)
            _result_of(self._held)
        finally:
            self._end()

    async def _hold(
        self, opening: AbstractAsyncContextManager[Opened], ready: Future[Opened]
    ) -> None:
        """Keep the context manager open until `close`, and raise the failure of `close` inside."""
        self._ident = get_ident()
        try:
            async with opening as opened:
                ready.set_result(opened)
                await self._over.wait()
                if self._failure is not None:
                    raise self._failure
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            elif error is not self._failure:
                raise

    def _check_may_wait(self) -> None:
        """Raise if waiting in this thread would be a deadlock."""
        trio = sys.modules.get("trio")
        here = ""
        if get_ident() == self._ident:
            here = "in the session's own thread"
        elif self._backend == "trio" and trio is not None and trio.lowlevel.in_trio_run():
            here = "for a session of trio in a thread that runs trio"
        if here:
            raise RuntimeError(f"can't wait {here}: use `connect` there, or another thread")

    def _end(self) -> None:
        """End the thread, and cancel its tasks."""
        self._closed = True
        with suppress(RuntimeError):
            self._portal.call(self._portal.stop, True)
        self._stack.close()


class SharedThread:
    """The thread of several clients, for one of them, which can be closed separately.

    Args:
        thread: The thread.
        opened: The client.
    """

    def __init__(self, thread: ClientThread, opened: ClientBase) -> None:
        self.opened = opened
        self._thread = thread

    def run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Make a call in the thread, and wait for its result."""
        return self._thread.run(call)

    def start(self, call: Callable[[], Awaitable[Result]]) -> SyncStartedCall[Result]:
        """Start a call in the thread, and return at once."""
        return self._thread.start(call)

    def close(self, failure: BaseException | None = None) -> None:
        """Close the client; the thread continues."""
        self._thread.run(self.opened.close)


def _result_of(future: Future[Result], seconds: float | None = None) -> Result:
    """Wait for the result of a future; KeyboardInterrupt is raised within `_TICK` seconds.

    On Windows, no signal wakes a waiting thread; elsewhere, a signal just before does not.
    """
    deadline = None if seconds is None else monotonic() + seconds
    while True:
        left = _TICK if deadline is None else max(0.0, deadline - monotonic())
        try:
            return future.result(min(left, _TICK))
        except TimeoutError:
            if future.done():
                return future.result()
            if left < _TICK:
                raise TimeoutError(f"the call has not ended within {seconds:g} s") from None


class _CancellableCall(Generic[Result]):
    """A call in the session's thread, which can be cancelled even before it starts.

    Attributes:
        cancelled: Whether the call was cancelled.
    """

    def __init__(self, call: Callable[[], Awaitable[Result]]) -> None:
        self._call = call
        self.cancelled = False
        self._scope: anyio.CancelScope | None = None

    async def __call__(self) -> Result:
        with anyio.CancelScope() as self._scope:
            if self.cancelled:
                self._scope.cancel()
            return await self._call()
        raise CancelledError  # no thread waits any longer

    def cancel(self) -> None:
        """Cancel the call, from the session's thread."""
        self.cancelled = True
        if self._scope is not None:
            self._scope.cancel()


class SyncStartedCall(Generic[Result]):
    """A call that runs in the session's thread; `result` waits for it.

    Args:
        thread: The thread of the session.
        work: The call.
        future: Its result.
    """

    def __init__(
        self, thread: SessionThread[Any], work: _CancellableCall[Result], future: Future[Result]
    ) -> None:
        self._thread = thread
        self._work = work
        self._future = future

    @property
    def done(self) -> bool:
        """Whether the call has ended: there is a result or an error, or it was cancelled."""
        return self._future.done()

    def cancel(self) -> None:
        """Cancel the call, from any thread. No effect on a call that has ended."""
        self._thread.cancel(self._work)

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, from any thread but the session's own.

        Args:
            timeout: Seconds to wait, after which the call continues; `None` for no limit.

        Raises:
            TimeoutError: The call has not ended in time.
            RequestCancelledError: The call was cancelled.
            ConnectionClosedError: The session was closed before there was a result.
            Exception: The exceptions of the method that was called.
        """
        try:
            return self._thread.wait(self._future, timeout)
        except CancelledError:
            if self._work.cancelled:
                raise RequestCancelledError("the call was cancelled") from None
            raise ConnectionClosedError("the connection is closed") from None


class ThreadedHandlers:
    """Handlers whose plain functions run in threads; a cancelled call does not wait for its thread.

    Args:
        handlers: The user's handlers, or their class.

    Raises:
        TypeError: A handler has a wrong name or other parameters.
    """

    def __init__(self, handlers: Handlers | type[Handlers]) -> None:
        from .handler_checks import check_handlers  # many clients have no handlers

        self._handlers = handlers() if isinstance(handlers, type) else handlers
        check_handlers(self._handlers)

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """A coroutine function for a method; `None` if the user has no handler for it."""
        handler = self._handlers.mcp_handler(method)
        return None if handler is None else in_thread(handler)

    @property
    def url_schemes(self) -> Collection[str]:
        """URL schemes that a server may ask the user to open."""
        return self._handlers.url_schemes
