"""The client for code without an event loop: a session in a thread of its own.

`Blocking` is the one portal: it has the members of any asynchronous object, whose coroutines run in
the session's thread while the calling thread waits. An exception in the waiting thread, such as
KeyboardInterrupt, cancels the call. Callbacks and handlers that are plain functions run in further
threads, so they may block, and call the client. Type checkers see the rendered classes, which have
a signature for each member.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
)
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from functools import wraps
from threading import Lock, get_ident
from time import monotonic
from types import GenericAlias, MappingProxyType, TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
)

import anyio
from anyio.from_thread import start_blocking_portal

from ..errors import ConnectionClosedError, RequestCancelledError
from ..facts import Method
from ..runtime.request_context import RequestContext
from .application import Handlers, in_thread
from .base import ClientBase

Backend: TypeAlias = Literal["asyncio", "trio"]

_TICK = 0.5  # seconds after which a waiting thread handles signals

_CALLBACK, _ON_PROGRESS = "function", "on_progress"  # parameters with functions to call
_END: Any = object()

Opened = TypeVar("Opened")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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


class Blocking:
    """An asynchronous object, for other threads than its own.

    A coroutine function is a function that waits for the result, `async with` is `with`, and
    `async for` is `for`. Asynchronous objects among results and attributes are wrapped likewise.

    Args:
        thread: The thread of the object.
        target: The object.
    """

    __slots__ = ("__weakref__", "_target", "_thread")

    def __init__(self, thread: SessionThread[Any], target: Any) -> None:
        self._thread = thread
        self._target = target

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self._target!r}>"

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(self._target)})

    if not TYPE_CHECKING:  # type checkers see the rendered members

        def __getattr__(self, name: str) -> Any:
            """The member of the object.

            Raises:
                AttributeError: The object has no such member; see there.
            """
            if name.startswith("_"):
                raise AttributeError(name)
            member = getattr(self._target, name)
            return self._function(member) if inspect.isroutine(member) else self._wrap(member)

    def _function(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls a method in the thread of the object, and waits."""

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            return self._wrap(self._thread.run(_bind(method, arguments, options)))

        return call

    def _wrap(self, value: Any) -> Any:
        """A value for this thread."""
        kind: Any = value.__class__
        if isinstance(value, ClientBase):
            return SyncClient(self._thread, value)
        if kind is MappingProxyType:  # of the clients of several servers
            return MappingProxyType({name: self._wrap(each) for name, each in value.items()})
        if hasattr(kind, "__aiter__") or hasattr(kind, "__aenter__"):
            return Blocking(self._thread, value)
        return value

    def __enter__(self) -> Self:
        self._thread.run(self._target.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ConnectionClosedError):  # the end of the session has ended the object
            self._thread.run(lambda: self._target.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[Any]:
        items: AsyncIterator[Any] = aiter(self._target)
        while (item := self._next(items)) is not _END:
            yield item

    def __next__(self) -> Any:
        if (item := self._next(self._target)) is _END:
            raise StopIteration
        return item

    def _next(self, items: AsyncIterator[Any]) -> Any:
        """The next item in the thread of the object; `_END` if there is none."""
        return self._thread.run(lambda: anext(items, _END))


def _bind(
    method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Callable[[], Awaitable[Any]]:
    """A coroutine function for a call; functions that the client calls will run in threads."""
    if arguments and callable(arguments[0]) and _CALLBACK in inspect.signature(method).parameters:
        arguments = (in_thread(arguments[0]), *arguments[1:])
    for name in (_CALLBACK, _ON_PROGRESS):
        if options.get(name) is not None:
            options[name] = in_thread(options[name])

    async def call() -> Any:
        result = method(*arguments, **options)
        return await result if inspect.iscoroutine(result) else result

    return call


class SyncSession(Blocking):
    """An open session, or several; a context manager that closes it.

    Several threads may call the methods at once. Coroutine functions among the handlers may not:
    they run in the session's own thread.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(error)

    def close(self) -> None:
        """Close the session and its thread. Open calls fail with ConnectionClosedError."""
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        if self._target is self._thread.opened:
            self._thread.close(error)
        else:  # one of several sessions in the thread
            self._function(self._target.close)()


class SyncClient(SyncSession):
    """A session with a server. It has the methods of the asynchronous client."""

    __slots__ = ()

    def start_call(
        self,
        method: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> SyncStartedCall[Result]:
        """Start a call without waiting for its result; any thread may cancel the call.

            call = client.start_call(client.call_tool, "forecast", {"city": "Oslo"})
            ...
            call.cancel()

        Args:
            method: A method of this client that sends a request.
            args: Its arguments, as in a direct call.
            kwargs: Its keyword arguments.

        Returns:
            The call: `call.result()` waits for the result.

        Raises:
            ConnectionClosedError: The connection has ended.
            TypeError: The function is not a method of this client that sends a request.
        """
        coroutine_function: Any = getattr(method, "__wrapped__", None)
        owner = getattr(coroutine_function, "__self__", None)
        if owner is not self._target or not inspect.iscoroutinefunction(coroutine_function):
            raise TypeError(
                "start_call: expected a method of this client that sends a request, such as "
                f"client.call_tool, got {method!r}"
            )
        return self._thread.start(_bind(coroutine_function, args, kwargs))

    def clear_cache(self) -> None:
        """Drop all cached results."""
        self._function(self._target.cache.clear)()


class SyncClientGroup(SyncSession):
    """Sessions with several servers; see `ClientGroup`."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers see a generic class
        __class_getitem__ = classmethod(GenericAlias)


class SyncExtension(SyncClient):
    """The base of blocking clients with the methods of an extension.

    Args:
        client: The blocking client, which closes the session.

    Raises:
        MissingCapabilityError: One of the sides does not declare the extension.
    """

    __slots__ = ()

    client_class: ClassVar[type[ClientBase]]

    def __init__(self, client: SyncClient) -> None:
        extended = client._function(client._target.seen_as)(self.client_class)
        super().__init__(client._thread, extended._target)


def open_blocking(opening: AbstractAsyncContextManager[Any], backend: Backend) -> Any:
    """Open a session in a thread of its own.

    Args:
        opening: The context manager of `connect`.
        backend: The event loop of the thread.
    """
    thread = SessionThread(opening, backend)
    kind = SyncClient if isinstance(thread.opened, ClientBase) else SyncClientGroup
    return kind(thread, thread.opened)


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
