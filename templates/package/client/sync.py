"""A session for code without an event loop: it lives in a thread of its own.

Calls come from any other thread and wait there. Whoever stops waiting, by Ctrl-C for one, takes
the call back. Functions of the user's that are no coroutine functions run in further threads, so
they may wait, and call the client.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

import anyio
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from ..errors import ConnectionClosedError
from ..facts import Method
from ..runtime.request_context import RequestContext
from .base import Handlers
from .change_events import Change, NotificationFilter
from .listen import Subscription

Backend: TypeAlias = Literal["asyncio", "trio"]

_TICK = 0.5  # seconds after which one who waits looks whether it was interrupted

Opened = TypeVar("Opened")
Result = TypeVar("Result")


class SessionThread(Generic[Opened]):
    """A thread with an event loop, and something that is open in it.

    Args:
        opening: What is opened, and closed in the end.
        backend: The kind of event loop.

    Attributes:
        opened: What opening it gave.

    Raises:
        Exception: Whatever opening it raises.
        RuntimeError: This thread runs trio, and the other one would as well.
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
            ConnectionClosedError: It is closed, or was before there was a result.
            RuntimeError: A thread can't wait for itself, nor trio for trio.
        """
        self._check_may_wait()
        if self._closed:
            raise ConnectionClosedError("the connection is closed")
        waiting: Future[Result] | None = None
        work = _Work(call)
        try:
            waiting = self._portal.start_task_soon(work)
            return _result_of(waiting)
        except CancelledError:
            raise ConnectionClosedError("the connection is closed") from None
        except BaseException as error:
            if waiting is None and isinstance(error, RuntimeError):  # it ended just now
                raise ConnectionClosedError("the connection is closed") from None
            if waiting is None or not waiting.done():  # an interrupt may come at any point
                self._portal.start_task_soon(work.give_up)
            raise

    def close(self, failure: BaseException | None = None) -> None:
        """Close what is open and end the thread, from any other thread.

        Args:
            failure: Why, if it is for an error.

        Raises:
            Exception: What closing it raises.
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
        """Keep it open until it is to be closed. What the user's code raised passes through it."""
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
        """Refuse to wait where that would never end, before anything has begun."""
        trio = sys.modules.get("trio")
        here = ""
        if get_ident() == self._ident:
            here = "in the session's own thread"
        elif self._backend == "trio" and trio is not None and trio.lowlevel.in_trio_run():
            here = "for a session of trio in a thread that runs trio"
        if here:
            raise RuntimeError(f"can't wait {here}: use `connect` there, or another thread")

    def _end(self) -> None:
        """End the thread, whatever runs in it."""
        self._closed = True
        with suppress(RuntimeError):
            self._portal.call(self._portal.stop, True)
        self._stack.close()


def _result_of(future: Future[Result]) -> Result:
    """The result of a future, waited for in a way that Ctrl-C can interrupt.

    A signal just before a thread begins to wait, and on Windows at any time, does not wake it.
    """
    while True:
        try:
            return future.result(_TICK)
        except TimeoutError:
            if future.done():
                return future.result()


class _Work(Generic[Result]):
    """A call in the session's thread, which can be given up from its first moment on."""

    def __init__(self, call: Callable[[], Awaitable[Result]]) -> None:
        self._call = call
        self._given_up = False
        self._scope: anyio.CancelScope | None = None

    async def __call__(self) -> Result:
        with anyio.CancelScope() as self._scope:
            if self._given_up:
                self._scope.cancel()
            return await self._call()
        raise CancelledError  # which nobody waits for

    def give_up(self) -> None:
        """Cancel it, from its own thread."""
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()


class SyncSubscription:
    """Changes as they come: open inside `with`, iterated over by `for`.

    Args:
        thread: Where the session is open.
        subscription: The subscription.
    """

    def __init__(self, thread: SessionThread[Any], subscription: Subscription) -> None:
        self._thread = thread
        self._subscription = subscription

    @property
    def agreed(self) -> NotificationFilter:
        """What the server tells of: what is wanted and not in here will not come."""
        return self._subscription.agreed

    def __enter__(self) -> Self:
        self._thread.run(self._subscription.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ConnectionClosedError):
            self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        change = self._thread.run(lambda: anext(self._subscription, None))
        if change is None:
            raise StopIteration
        return change

    def close(self) -> None:
        """End the subscription, from any thread; whoever iterates over it comes to the end."""
        self._thread.run(self._subscription.close)


class ThreadedHandlers:
    """Handlers whose plain functions run in threads of their own; one that hangs is left behind.

    Args:
        handlers: The user's.
    """

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """A coroutine function for a method; `None` if the user has no handler for it."""
        found = self._handlers.mcp_handler(method)
        return None if found is None else in_thread(found)

    @property
    def url_schemes(self) -> Collection[str]:
        """Schemes of the addresses that a server may ask the user to open."""
        return self._handlers.url_schemes


def in_thread(function: Callable[..., Any] | None) -> Any:
    """A coroutine function that calls a plain one in a thread; any other as it is."""
    if function is None or inspect.iscoroutinefunction(function):
        return function

    async def called(*arguments: Any) -> Any:
        result = await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return called
