"""The context of a request, for the function that serves the request, and its session.

The coroutine functions of a context run in the event loop. A plain function runs in a worker
thread and gets a `ThreadContext`: there a coroutine function blocks the thread until it is done,
and returns its result. In the event loop it returns a coroutine as ever, so
`anyio.from_thread.run(ctx.progress, 1)` works.

Values that handlers keep in a session end with its connection. So do the rules of a session for
items that are enabled or disabled for it alone, each for some names and tags, of which the last
that fits an item decides. Without one the state for all clients holds, which `Server.enable` and
`disable` change.

Source: server/tools#list-changed-notification and its like.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, Unpack
from weakref import WeakKeyDictionary

import anyio
import msgspec
from msgspec import Raw

from ..._wire import UNSET
from ...channel import RequestId
from ...errors import LocalProtocolError, McpError
from ...facts import Lifecycle
from ...protocol.connection import Connection
from ...protocol.lifecycle import settings_of
from ...runtime.request_context import Principal, RequestContext
from .features import ClientQuestions, OpenURLElicitations, RequestStateSigner
from .registry import Registry, Rule, check_registered, checked_tags

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

    from ...other_sdks import NoOptions
    from ..serving import RequestHead
    from .features import ServerSession

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""Severity of a log message (RFC 5424), least first."""

if TYPE_CHECKING:
    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")

_T = TypeVar("_T")


class Context(ClientQuestions, Generic[StateT]):
    """The request being served.

    A parameter annotated with this class receives it, whatever its name; `Context[AppState]` says
    what the lifespan yields, so that `state` has this type. A plain function, which runs in a
    worker thread, calls the coroutine functions without `await`.

    Args:
        request_context: The request.
        signer: Signs and verifies request states.
        url_elicitations: The open URL elicitations of the server.
        state: The value that the server's `lifespan` yielded, or `None`.
        lists: The registries of the server, by the notification that their list has changed.
        session_of: Makes the `ServerSession` of a request.

    Attributes:
        request_context: The request.
        state: The value that the server's `lifespan` yielded, or `None`.
        questions: Questions and answers of the request; `None` before the first question.
    """

    __slots__ = ("_lists", "_session_of", "state")

    def __init__(
        self,
        request_context: RequestContext,
        signer: RequestStateSigner,
        url_elicitations: OpenURLElicitations,
        state: StateT,
        lists: Mapping[str, Sequence[Registry[Any]]],
        session_of: Callable[[RequestContext], Any],
    ) -> None:
        self.request_context = request_context
        self.state: StateT = state
        self._lists = lists
        self._session_of = session_of
        self._signer = signer
        self._url_elicitations = url_elicitations
        self.questions = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ...other_sdks import attribute_error  # for the error only

            raise attribute_error(self, "Context", name)

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

    def session_state(self, kind: Callable[[], _T], *, expires: float | None = None) -> _T:
        """The value of a type that belongs to the client's session, made when it is first used.

            cart = ctx.session_state(Cart)

        It lasts as long as the session: over HTTP until the client ends it, or does nothing for
        `Limits.idle` seconds; over other transports until the client disconnects.

        Args:
            kind: The type, or another function that makes the value; one value per function.
            expires: Seconds without use after which the value is made anew; `None` for never.

        Raises:
            LocalProtocolError: The request belongs to no session, as in 2026-07-28 and with
                `stateless=True`; or the session has too many values.
        """

        return session_value(self.request_context, kind, expires)

    async def enable_components(self, *names: str, tags: Collection[str] = ()) -> None:
        """Show items that are hidden, in the client's session alone; its client is notified.

        What a session shows takes precedence over `Server.enable` and `disable`.

        Args:
            names: Names of tools and prompts, URIs of resources and resource templates.
            tags: Items with one of these tags.

        Raises:
            LookupError: A name or tag fits nothing; nothing was changed.
            LocalProtocolError: The request belongs to no session, as in 2026-07-28 and with
                `stateless=True`.
        """

        await switch_in_session(self._lists, self.request_context, names, tags, enabled=True)

    async def disable_components(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide items in the client's session alone; see `enable_components`."""

        await switch_in_session(self._lists, self.request_context, names, tags, enabled=False)

    async def reset_visibility(self) -> None:
        """Undo `enable_components` and `disable_components` in the client's session."""

        await reset_in_session(self._lists, self.request_context)

    @property
    def http_request(self) -> RequestHead | None:
        """The HTTP request: headers, query, cookies and client; `None` over other transports."""
        from ..serving import HTTP_REQUEST, RequestHead  # used by few tools

        received = HTTP_REQUEST.get()
        return None if received is None else RequestHead(received)

    @property
    def principal(self) -> Principal:
        """On whose behalf the request is served; `Principal.is_anonymous` if nobody authenticated.

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

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress: `progress`, by the name and arguments that other SDKs have."""
        await self.request_context.progress(progress, total, message)

    async def log(
        self, level: LogLevel, data: Any, logger: str | None = None, **others: Unpack[NoOptions]
    ) -> None:
        """Send a log message, if the client wants messages of this level.

        Args:
            level: Severity.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        if others or data is UNSET:
            raise _keyword_error("ctx.log", others)
        await self.request_context.log(level, data, logger)

    async def debug(
        self, data: Any, logger: str | None = None, **others: Unpack[NoOptions]
    ) -> None:
        """Send a log message of level `debug`."""
        if others or data is UNSET:
            raise _keyword_error("ctx.debug", others)
        await self.request_context.log("debug", data, logger)

    async def info(self, data: Any, logger: str | None = None, **others: Unpack[NoOptions]) -> None:
        """Send a log message of level `info`."""
        if others or data is UNSET:
            raise _keyword_error("ctx.info", others)
        await self.request_context.log("info", data, logger)

    async def warning(
        self, data: Any, logger: str | None = None, **others: Unpack[NoOptions]
    ) -> None:
        """Send a log message of level `warning`."""
        if others or data is UNSET:
            raise _keyword_error("ctx.warning", others)
        await self.request_context.log("warning", data, logger)

    async def error(
        self, data: Any, logger: str | None = None, **others: Unpack[NoOptions]
    ) -> None:
        """Send a log message of level `error`."""
        if others or data is UNSET:
            raise _keyword_error("ctx.error", others)
        await self.request_context.log("error", data, logger)

    async def close_stream(self) -> None:
        """Close the SSE stream of the request, so that a long call holds no connection open.

        The client resumes the stream later and receives the messages sent since, the result
        included. Does nothing where a client can't resume: over other transports than Streamable
        HTTP, in revisions without polling, and without an event store.

        Source: basic/transports#sending-messages-to-the-server (2025-11-25).
        """
        await self.request_context.close_stream()

    @property
    def client(self) -> ServerSession:
        """The requests and notifications of a server, typed: `create_message`, `elicit`, ...

        Each coroutine raises the errors of `request`.
        """
        session: ServerSession = self._session_of(self.request_context)
        return session

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


def _keyword_error(call: str, names: Collection[str]) -> TypeError:
    from ...other_sdks import call_error, keyword_error  # for the error only

    return keyword_error(call, names) if names else call_error(call, "expected data")


# At run time `data` may be missing, so that the error can name it in place of another keyword.
for _method in (Context.log, Context.debug, Context.info, Context.warning, Context.error):
    _method.__defaults__ = (UNSET, None)


class ThreadContext(Context[Any]):
    """A `Context` for a worker thread."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not inspect.iscoroutinefunction(value):
            return value
        return partial(_ask_all if name == "ask_all" else _call, value)


def use_in_thread(context: Context[Any]) -> None:
    """Make a context one for a worker thread."""
    context.__class__ = ThreadContext


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a coroutine function of a context, from a worker thread or from the event loop.

    Raises:
        RuntimeError: The thread was started by neither the server nor anyio.
    """
    try:
        anyio.get_current_task()
    except RuntimeError:  # no event loop in this thread
        from anyio import from_thread  # a thread of the server has loaded it

        return from_thread.run(partial(function, *arguments, **options))
    return function(*arguments, **options)


def _ask_all(function: Callable[..., Any], *questions: Any) -> Any:
    """Answers are what they are: a worker thread has asked for them one after another."""
    if any(map(inspect.isawaitable, questions)):
        return _call(function, *questions)
    return questions


_ID_BYTES = 16
_MOST_VALUES = 100  # of one session
_ALTERNATIVE = "return a handle to the client, and take it as an argument of later calls"

_MOST_RULES = 100  # of one session
_VISIBILITY = "visibility in a session"
_SCOPES_INSTEAD = 'give the items scopes, and the server forbidden_items="hidden"'

_logger = logging.getLogger(__name__)


class _Kept(msgspec.Struct):
    value: Any
    last_used: float


_lock = threading.RLock()  # plain functions run in worker threads
_values: WeakKeyDictionary[Connection, dict[Any, _Kept]] = WeakKeyDictionary()
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


def connection_of_session(context: RequestContext, feature: str, alternative: str) -> Connection:
    """The connection of the session that a request belongs to.

    Args:
        context: The request.
        feature: What needs the session, for the error.
        alternative: What works without a session, for the error.

    Raises:
        LocalProtocolError: It belongs to none.
    """
    connection = context.peer.connection
    session = connection.session
    name = context.revision.name
    if session is None or context.revision.lifecycle is Lifecycle.PER_REQUEST:
        text = f"a request of {name} belongs to no session"
    elif session.lacks:
        text = f"in {name} it needs {session.lacks}"
    else:
        return connection
    raise LocalProtocolError(f"{feature}: {text}; instead, {alternative}")


def session_value(
    context: RequestContext, make: Callable[[], _T], seconds: float | None = None
) -> _T:
    """The value that a function made for the session of a request.

    Args:
        context: The request.
        make: Makes the value; identifies it within the session.
        seconds: Seconds without use after which it is made anew; `None` for never.

    Raises:
        LocalProtocolError: The request belongs to no session, or that has too many values.
        ValueError: The seconds are not positive.
    """
    if seconds is not None and seconds <= 0:
        raise ValueError(f"session_state: expires: expected more than 0 seconds, got {seconds}")
    connection = connection_of_session(context, "session_state", _ALTERNATIVE)
    now = time.monotonic()
    with _lock:
        values = _values.setdefault(connection, {})
        kept = values.get(make)
        if kept is not None and seconds is not None and now - kept.last_used >= seconds:
            kept = None
        if kept is None:
            if make not in values and len(values) >= _MOST_VALUES:
                raise LocalProtocolError(
                    f"session_state: expected at most {_MOST_VALUES} types or functions in a "
                    "session; pass the same one in each call"
                )
            kept = values[make] = _Kept(make(), now)
        kept.last_used = now
    value: _T = kept.value
    return value


Lists: TypeAlias = Mapping[str, Sequence[Registry[Any]]]
"""The registries of a server, by the notification that their list has changed."""


class VisibilityRules(NamedTuple):
    """The rules of all sessions for the lists of a server."""

    lists: Lists

    def of(self, connection: Connection) -> tuple[Rule, ...]:
        """The rules of the session of a connection."""
        return (next(iter(self.lists.values()))[0].rules or {}).get(connection, ())

    def replace(self, connection: Connection, new: Iterable[tuple[Any, ...]]) -> None:
        """Replace them by others, whose members are those of `Rule`."""
        registries = [each for listed in self.lists.values() for each in listed]
        rules = registries[0].rules
        if rules is None:
            rules = WeakKeyDictionary[Connection, tuple[Rule, ...]]()
            for registry in registries:
                registry.rules = rules
        rules[connection] = tuple(Rule(*each) for each in new)


async def switch_in_session(
    lists: Lists,
    request: RequestContext,
    names: Collection[str],
    tags: Collection[str],
    *,
    enabled: bool,
) -> None:
    """Show or hide items in the session of a request, and notify its client if lists change.

    Raises:
        LookupError: A name or tag fits nothing; nothing was changed.
        TypeError: One string instead of a collection of tags.
        LocalProtocolError: The request belongs to no session, or the session has too many rules.
    """
    tags = checked_tags(tags)
    connection = connection_of_session(request, _VISIBILITY, _SCOPES_INSTEAD)
    check_registered([each for listed in lists.values() for each in listed], names, tags)
    rule = Rule(frozenset(names), tags, enabled)
    others = [each for each in VisibilityRules(lists).of(connection) if each[:2] != rule[:2]]
    if len(others) >= _MOST_RULES:
        raise LocalProtocolError(
            f"{_VISIBILITY}: expected at most {_MOST_RULES} rules; reset_visibility removes them"
        )
    await _set_rules(lists, request, connection, (*others, rule))


async def reset_in_session(lists: Lists, request: RequestContext) -> None:
    """Show in the session of a request what the server shows to all, and notify its client.

    Raises:
        LocalProtocolError: The request belongs to no session.
    """
    connection = connection_of_session(request, _VISIBILITY, _SCOPES_INSTEAD)
    await _set_rules(lists, request, connection, ())


async def _set_rules(
    lists: Lists, request: RequestContext, connection: Connection, new: tuple[Rule, ...]
) -> None:
    before = [_shown(listed, request) for listed in lists.values()]
    VisibilityRules(lists).replace(connection, new)
    for (changed, listed), shown in zip(lists.items(), before, strict=True):
        if _shown(listed, request) != shown:
            try:
                await request.peer.notify(changed)
            except McpError as error:
                _logger.debug("%s was not sent: %s", changed, error)


def _shown(listed: Sequence[Registry[Any]], request: RequestContext) -> list[list[str]]:
    """The keys that a session shows of some registries."""
    return [list(registry.items_for(request)) for registry in listed]
