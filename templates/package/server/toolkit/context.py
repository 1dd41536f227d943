"""The context of a request, for the function that serves the request, and its session.

The coroutine functions of a context run in the event loop. A plain function runs in a worker
thread and gets a `ThreadContext`: in the thread, a coroutine function blocks until it is done,
and returns its result. In the event loop it returns a coroutine as usual, so
`anyio.from_thread.run(ctx.progress, 1)` works.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import cache, partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
)
from weakref import WeakKeyDictionary

import anyio
from msgspec import Raw

from ...channel import RequestId
from ...protocol.connection import Connection
from ...protocol.lifecycle import settings_of
from ...runtime.request_context import Principal, RequestContext
from .registry import ItemRegistries

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

Parameters = ParamSpec("Parameters")

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""Severity of a log message (RFC 5424), least first."""

if TYPE_CHECKING:
    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")


class Sending(Coroutine[Any, Any, None]):
    """A coroutine to type checkers, with an optional `await`: a plain function blocks."""


def _needs_no_await(
    function: Callable[Parameters, Coroutine[Any, Any, None]],
) -> Callable[Parameters, Sending]:
    """The function itself, as one that plain functions call without `await`."""
    return cast("Callable[Parameters, Sending]", function)  # `Sending` is for type checkers alone


class Context(Generic[StateT]):
    """The request being served.

    A parameter annotated with this class receives it, whatever its name. `Context[AppState]` names
    the type of the value that the lifespan yields, which is `state`. A plain function, which runs
    in a worker thread, calls the coroutine functions without `await`.

    Attributes:
        request_context: The request.
        state: The value that the server's `lifespan` yielded, or `None`.
        questions: What the request has asked the client, for the feature that asks; else `None`.
    """

    __slots__ = ("_registries", "_round_trips", "questions", "request_context", "state")

    _absent: ClassVar[Mapping[str, str]] = {}
    """Members of absent features, each with its feature."""

    def __init__(
        self,
        request_context: RequestContext,
        state: StateT,
        registries: ItemRegistries,
        round_trips: Any,
    ) -> None:
        self.request_context = request_context
        self.state: StateT = state
        self._registries = registries
        self._round_trips = round_trips
        self.questions: Any = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ...absence import attribute_error  # for the error only

            raise attribute_error(self, name, self._absent)

    @property
    def is_retry(self) -> bool:
        """Whether the client sent the request again, with answers or a state."""
        params = self.request_context.params
        values = getattr(params, "input_responses", None), getattr(params, "request_state", None)
        return values != (None, None)

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request, chosen by the client."""
        return self.request_context.request_id

    @property
    def session_id(self) -> str | None:
        """Id of the client's session; `None` in revisions whose requests belong to no session.

        Over HTTP the `Mcp-Session-Id`. A session over another transport gets a random id.
        """
        return session_id(self.request_context)

    @property
    def principal(self) -> Principal:
        """The principal of the request; `Principal.is_anonymous` without authentication.

        Source: basic/authorization.
        """
        return self.request_context.principal

    @property
    def revision(self) -> str:
        """Name of the revision of the request, such as `2025-06-18`."""
        return self.request_context.revision.name

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """Name and version of the client as wire object, if it sent them."""
        return self.request_context.peer_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """Capabilities that the client declared, as wire object."""
        return self.request_context.peer_capabilities

    def client_extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The client's settings of an extension; `None` if it does not declare the extension.

        Without the extension, use the core protocol, or raise
        `MissingCapabilityError(("extensions", identifier), ...)`.

        Source: basic/versioning#extension-negotiation (2026-07-28).
        """
        return settings_of(self.request_context.peer_capabilities, identifier)

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request, empty if absent."""
        return self.request_context.meta

    @property
    def raw_params(self) -> Raw | None:
        """The params as received, with members that the types lack."""
        return self.request_context.raw_params

    @_needs_no_await
    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the client asked for it.

        Args:
            value: The progress so far; greater in each report.
            total: The final value, if known.
            message: A description of the current step.

        Source: basic/utilities/progress.
        """
        await self.request_context.progress(value, total, message)

    @_needs_no_await
    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, by the name that other SDKs have."""
        await self.request_context.progress(progress, total, message)

    @_needs_no_await
    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client wants messages of this level.

        Args:
            level: Severity.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        await self.request_context.log(level, data, logger)

    @_needs_no_await
    async def debug(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of level `debug`."""
        await self.request_context.log("debug", data, logger)

    @_needs_no_await
    async def info(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of level `info`."""
        await self.request_context.log("info", data, logger)

    @_needs_no_await
    async def warning(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of level `warning`."""
        await self.request_context.log("warning", data, logger)

    @_needs_no_await
    async def error(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of level `error`."""
        await self.request_context.log("error", data, logger)

    @_needs_no_await
    async def close_stream(self) -> None:
        """Close the SSE stream of the request, so that a long call holds no connection open.

        The client resumes the stream later and receives the messages sent since, the result
        included. Does nothing where a client can't resume: over other transports than Streamable
        HTTP, in revisions without polling, and without an event store.

        Source: basic/transports#sending-messages-to-the-server (2025-11-25).
        """
        await self.request_context.close_stream()

    async def request(
        self, method: str, params: Any = None, *, timeout: float | None = None
    ) -> Any:
        """Send the client a request on behalf of this one.

        Args:
            method: The method, such as `elicitation/create`.
            params: Typed params or a wire object.
            timeout: Seconds to wait; `None` for no limit.

        Returns:
            The typed result.

        Raises:
            MissingCapabilityError: The client did not declare a required capability.
            LocalProtocolError: The revision has no requests to clients (see `InputRequired`), or
                other params.
            RemoteError: The client refused.
            RequestTimeoutError: No response in time.
        """
        return await self.request_context.request(method, params, timeout=timeout)


class ThreadContext:
    """A base of contexts for worker threads, before the class of the context."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not inspect.iscoroutinefunction(value):
            return value
        return partial(_ask_all if name == "ask_all" else _call, value)


def use_in_thread(context: Context[Any]) -> None:
    """Change the class of a context to that for a worker thread."""
    kind: Any = type(context)  # mypy does not know that it is hashable
    if not issubclass(kind, ThreadContext):
        context.__class__ = _for_threads(kind)


@cache
def _for_threads(kind: Any) -> type[Context[Any]]:
    """The class of contexts for worker threads, for a class of contexts."""
    thread_context: Any = type(kind.__name__, (ThreadContext, kind), {"__slots__": ()})
    return cast("type[Context[Any]]", thread_context)  # derives from both


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a coroutine function of a context, from a worker thread or from the event loop."""
    try:
        anyio.get_current_task()
    except RuntimeError:  # no event loop in this thread
        from anyio import from_thread  # a thread of the server has loaded it

        return from_thread.run(partial(function, *arguments, **options))
    return function(*arguments, **options)


def _ask_all(function: Callable[..., Any], *questions: Any) -> Any:
    """Await coroutines; return answers unchanged, which a worker thread has already awaited."""
    if any(map(inspect.isawaitable, questions)):
        return _call(function, *questions)
    return questions


_ID_BYTES = 16
_ids: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()


def session_id(context: RequestContext) -> str | None:
    """The id of the session; random over a transport without ids, `None` without a session."""
    peer = context.peer
    identifier = peer.channel.session_id
    session = peer.connection.session
    if identifier is not None or session is None or session.lacks:
        return identifier
    import secrets  # loads slowly, and few tools need it

    return _ids.setdefault(peer.connection, secrets.token_urlsafe(_ID_BYTES))
