"""Subscriptions to changes of a server's lists and resources.

Where a revision has subscription streams, a subscription is a request that stays open. If the
stream is lost while the connection is open, the client reopens the stream, after growing pauses. In
other revisions, changes are notifications of the session, and updates of a resource are sent after
a `resources/subscribe` request.

A server without changes and an unreachable server are both silent. So after some silence, the
client sends a liveness check, which any response passes.

Equal unread changes are stored once, since a change does not contain the new state.

Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
"""

from __future__ import annotations

import logging
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

import anyio

from .._wire import to_builtins
from ..channel import RequestId
from ..errors import (
    HttpStatusError,
    McpError,
    RequestCancelledError,
    RequestTimeoutError,
    TransportError,
)
from ..foreign_text import safe_repr
from ..protocol.events import NotificationReceived, ResponseReceived, SendRequest
from ..protocol.lifecycle import DISCOVER, PING, Session
from ..protocol.requests import ACKNOWLEDGED, SUBSCRIBE, UNSUBSCRIBE
from ..protocol.subscriptions import accepted_filter
from ..runtime.pending_requests import (
    NOTIFICATION_BYTES,
    NOTIFICATIONS,
    PARTING_SECONDS,
    PendingRequests,
)
from .pipeline import RequestPipeline
from .server_state import is_part

AnySubscription = TypeVar("AnySubscription")

RETRY_SECONDS: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses before each attempt to reopen a lost stream."""

_LONGEST_FACTOR = 1.5  # pauses are random, so that clients do not reconnect at the same time

_URIS = "resourceSubscriptions"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolsChanged:
    """The list of tools has changed."""


@dataclass(frozen=True)
class PromptsChanged:
    """The list of prompts has changed."""


@dataclass(frozen=True)
class ResourcesChanged:
    """The list of resources has changed."""


@dataclass(frozen=True)
class ResourceUpdated:
    """The contents of a subscribed resource, or of a part of one, have changed."""

    uri: str


@dataclass(frozen=True)
class ListeningAgain:
    """The stream was lost and is open again; changes in the meantime were not received."""


Change: TypeAlias = (
    ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated | ListeningAgain
)
"""A change that a server reports by a notification."""

_LISTS: Mapping[str, Change] = {
    "toolsListChanged": ToolsChanged(),
    "promptsListChanged": PromptsChanged(),
    "resourcesListChanged": ResourcesChanged(),
}


def change_of(member: str | None, params: Any) -> Change | None:
    """The change that a notification reports; `None` for other notifications.

    Args:
        member: The member of a filter that selects the notification.
        params: Its typed params.
    """
    return ResourceUpdated(params.uri) if member == _URIS else _LISTS.get(member or "")


@dataclass(frozen=True)
class NotificationFilter:
    """The changes that a subscription selects.

    Attributes:
        tools: Whether changes of the list of tools are selected.
        prompts: Whether changes of the list of prompts are selected.
        resources: Whether changes of the list of resources are selected.
        uris: The resources whose updates are selected.
    """

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """The filter as wire object."""
        flags = {
            "toolsListChanged": self.tools,
            "promptsListChanged": self.prompts,
            "resourcesListChanged": self.resources,
        }
        wire: dict[str, Any] = {name: True for name, selected in flags.items() if selected}
        if self.uris:
            wire[_URIS] = list(self.uris)
        return wire

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Self:
        """Read a filter from a wire object."""
        tools, prompts, resources = (wire.get(name) is True for name in _LISTS)
        return cls(tools, prompts, resources, tuple(wire.get(_URIS) or ()))

    def missing(self, requested: NotificationFilter) -> list[str]:
        """The parts of a requested filter that this filter lacks, by name or URI."""
        flags = [name for name in requested.wire() if name != _URIS and name not in self.wire()]
        return [*flags, *(uri for uri in requested.uris if uri not in self.uris)]

    def has(self, change: Change) -> bool:
        """Whether a change is selected; a resource includes its parts."""
        match change:
            case ToolsChanged():
                return self.tools
            case PromptsChanged():
                return self.prompts
            case ResourcesChanged():
                return self.resources
            case ResourceUpdated(uri=uri):
                return any(is_part(uri, whole) for whole in self.uris)
            case ListeningAgain():
                return True


def _length_of(change: Change) -> int:
    return len(change.uri) if isinstance(change, ResourceUpdated) else 0


class _Inbox:
    """The unread changes of a subscription; an `Awaited`.

    Args:
        only: The changes to store; `None` to store all changes that the server sends.

    Attributes:
        agreed: The filter that the server accepted; `None` before the acknowledgement.
        changes: The unread changes, oldest first.
        settled: Whether the subscription has ended.
        failure: The error that ended the subscription; `None` after a regular end.
    """

    def __init__(self, only: NotificationFilter | None) -> None:
        self.agreed = self._only = only
        self.changes: dict[Change, None] = {}
        self._size = 0  # characters of their URIs
        self.settled = False
        self.failure: Exception | None = None
        self._change_event = anyio.Event()

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """Store the end of the subscription."""
        if not self.settled:
            self.settled = True
            self.failure = None if isinstance(failure, RequestCancelledError) else failure
            self._wake()

    def deliver(self, *news: Any) -> None:
        """Store the change of a notification."""
        event: NotificationReceived = news[0]
        if event.method.name == ACKNOWLEDGED and self.agreed is None:
            self.agreed = NotificationFilter.of(to_builtins(event.params.notifications))
            self._wake()
        change = change_of(event.method.facts.subscription, event.params)
        if change is not None and (self._only is None or self._only.has(change)):
            self.put(change)

    def put(self, change: Change) -> None:
        """Store a change; the oldest changes are dropped if there are too many."""
        if change not in self.changes:
            self.changes[change] = None
            self._size += _length_of(change)
        while len(self.changes) > 1 and (
            len(self.changes) > NOTIFICATIONS or self._size > NOTIFICATION_BYTES
        ):
            _logger.warning(
                "more than %d unread changes, or %d characters of URIs; %s is dropped",
                NOTIFICATIONS,
                NOTIFICATION_BYTES,
                safe_repr(self.take()),
            )
        self._wake()

    def take(self) -> Change | None:
        """Remove and return the oldest change; `None` if there are no changes."""
        change = next(iter(self.changes), None)
        if change is not None:
            del self.changes[change]
            self._size -= _length_of(change)
        return change

    async def wait(self) -> None:
        """Wait for the next change, or for the end of the subscription."""
        await self._change_event.wait()

    async def wait_for_filter(self) -> NotificationFilter:
        """Wait for the filter that the server accepts; empty if the server ends the stream.

        Raises:
            McpError: The server refused, or the stream was lost.
        """
        while self.agreed is None and not self.settled:
            await self.wait()
        if self.agreed is None and self.failure is not None:
            raise self.failure
        return self.agreed or NotificationFilter()

    def _wake(self) -> None:
        self._change_event.set()
        self._change_event = anyio.Event()


@dataclass(frozen=True)
class Listeners:
    """The objects that all subscriptions of a client share.

    Attributes:
        callers: The pending requests.
        requests: The request pipeline.
        session: The negotiated session.
        uris: Number of subscriptions by resource, in revisions without subscription streams.
    """

    callers: PendingRequests
    requests: RequestPipeline
    session: Session
    uris: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True)
class ListenOptions:
    """The timeouts and the retries of a subscription.

    Attributes:
        meta: Members to add to `_meta`.
        timeout: Seconds for the server to accept; `None` for no limit.
        retry_seconds: Pauses before each attempt to reopen a lost stream. The first pause is used
            again after a stream that was open for longer than the longest pause.
        idle_seconds: Seconds of silence before a liveness check, and the timeout of that check;
            `None` for no checks.
    """

    meta: Mapping[str, Any] | None
    timeout: float | None
    retry_seconds: tuple[float, ...]
    idle_seconds: float | None


class ChangeIterator(ABC):
    """The base of subscriptions: an asynchronous iterator, and a context manager that closes it.

    Attributes:
        agreed: The filter that the server accepted; no other changes will come.
    """

    def __init__(self) -> None:
        self.agreed = NotificationFilter()

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> Change: ...

    @abstractmethod
    async def close(self) -> None:
        """End the subscription and its iteration, from any task."""


class Subscription(ChangeIterator):
    """An asynchronous iterator of changes, and the context manager that opens and closes it.

        async with client.listen(tools=True, uris=["memo://one"]) as changes:
            async for change in changes:
                match change:
                    case ToolsChanged(): ...
                    case ResourceUpdated(uri=uri): ...

    Args:
        shared: The shared objects of the client.
        requested: The requested filter.
        options: The timeouts and the retries.
    """

    def __init__(
        self, shared: Listeners, requested: NotificationFilter, options: ListenOptions
    ) -> None:
        super().__init__()
        self._shared = shared
        self._requested = requested
        self._meta = options.meta
        self._timeout = options.timeout
        self._retry_seconds = options.retry_seconds
        self._idle_seconds = options.idle_seconds
        self._left = list(self._retry_seconds)
        self._since: float | None = None
        self._inbox = _Inbox(None)
        self._id: RequestId | None = None
        self._subscribed: list[str] = []
        self._is_closed = False
        self._until_closed = anyio.CancelScope()

    async def __aenter__(self) -> Self:
        with anyio.CancelScope() as self._until_closed:
            try:
                await self._open(self._timeout)
            except HttpStatusError as error:
                if not error.is_outage:
                    raise
                await self._reopen(error)
        missing = self.agreed.missing(self._requested)
        if missing and not self._is_closed:
            _logger.warning("the server does not tell of %s", ", ".join(missing))
        return self

    async def __anext__(self) -> Change:
        with anyio.CancelScope() as self._until_closed:
            return await self._next_change()
        raise StopAsyncIteration

    async def _next_change(self) -> Change:
        """Wait for the next change.

        Raises:
            StopAsyncIteration: The subscription has ended.
        """
        while not self._is_closed:
            change = self._inbox.take()
            if isinstance(change, ListeningAgain):
                await self._shared.requests.restore_session()
            if change is not None:
                return change
            if not self._inbox.settled:
                await self._wait()
            elif self._inbox.failure is None:
                break
            else:
                await self._reopen_lost(self._inbox.failure)
        raise StopAsyncIteration

    async def close(self) -> None:
        """End the subscription and its iteration, from any task."""
        self._is_closed = True
        self._until_closed.cancel()
        with anyio.CancelScope(shield=True):
            await self._unsubscribe()
        self._inbox.settle()

    async def _wait(self) -> None:
        """Wait for the next change; reopen the stream if the server fails a liveness check."""
        with anyio.move_on_after(self._idle_seconds):
            await self._inbox.wait()
            return
        failure = await self._check_liveness()
        if failure is not None and not self._inbox.settled:
            await self._reopen_lost(failure)

    async def _check_liveness(self) -> McpError | None:
        """Send a liveness check; returns its failure, if any. An error response passes it."""
        shared = self._shared
        name = PING if PING in shared.session.revision.client_requests else DISCOVER
        waiter = shared.callers.waiter()
        try:
            await shared.callers.ask(waiter, SendRequest(name, timeout=self._idle_seconds))
        except McpError as error:
            return error if _is_transient(error) else None
        return None

    async def _open(self, timeout: float | None) -> None:
        listen = self._shared.session.revision.facts.behaviour.listen
        try:
            with anyio.fail_after(timeout):
                if listen is None:
                    await self._open_in_session()
                else:
                    await self._open_stream(listen)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._unsubscribe()
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(listen or SUBSCRIBE, timeout or 0.0) from None
            raise
        self._since = anyio.current_time()
        if self._is_closed:  # closed by another task meanwhile
            await self.close()

    async def _open_stream(self, listen: str) -> None:
        inbox = _Inbox(None)
        params = {"notifications": self._requested.wire()}
        self._id = await self._shared.callers.start(inbox, listen, params, meta=self._meta)
        self.agreed = await inbox.wait_for_filter()
        self._inbox = inbox

    async def _open_in_session(self) -> None:
        shared = self._shared
        shared.callers.check_open()
        session = shared.requests.state.session
        if session.stream_failure is not None:
            raise session.stream_failure
        wire = accepted_filter(
            self._requested.wire(), shared.session.peer_capabilities, shared.session.revision
        )
        self.agreed = NotificationFilter.of(wire)
        self._inbox = _Inbox(self.agreed)
        shared.callers.listeners.add(self._inbox)
        session.on_loss.add(self._session_lost)
        session.on_stream_failure.add(self._stream_lost)
        for uri in self.agreed.uris:
            self._subscribed.append(uri)
            shared.uris[uri] += 1
            await shared.requests.send(SUBSCRIBE, {"uri": uri}, self._meta)

    async def _unsubscribe(self) -> None:
        """End the subscription at the server."""
        shared = self._shared
        shared.callers.listeners.discard(self._inbox)
        shared.requests.state.session.on_loss.discard(self._session_lost)
        shared.requests.state.session.on_stream_failure.discard(self._stream_lost)
        identifier, self._id = self._id, None
        if identifier is not None:
            await shared.callers.stop(identifier)
        while self._subscribed:
            uri = self._subscribed.pop()
            shared.uris[uri] -= 1
            if not shared.uris[uri]:
                with suppress(McpError), anyio.move_on_after(PARTING_SECONDS) as scope:
                    await shared.requests.send(UNSUBSCRIBE, {"uri": uri}, self._meta)
                if scope.cancelled_caught:  # the remaining requests would time out too
                    shared.uris.subtract(self._subscribed)
                    self._subscribed.clear()

    def _session_lost(self) -> None:
        """Wake the iteration, which subscribes in the new session and reports `ListeningAgain`."""
        self._inbox.put(ListeningAgain())

    def _stream_lost(self, failure: McpError) -> None:
        """Wake the iteration, which waits until the stream of the session is open again."""
        self._inbox.settle(failure=failure)

    async def _reopen_lost(self, failure: Exception) -> None:
        """Reopen a lost stream, and yield that it was lost.

        Raises:
            Exception: The connection was lost, or the stream could not be reopened.
        """
        if not _is_transient(failure) or self._shared.callers.gone is not None:
            raise failure
        await self._unsubscribe()
        self._inbox.settle(failure=failure)
        self._shared.requests.state.notifications_missed()
        if await self._reopen(failure):
            self._inbox.changes = {ListeningAgain(): None, **self._inbox.changes}

    async def _reopen(self, failure: Exception) -> bool:
        """Open the stream after a failure; `False` if the subscription was closed meanwhile.

        Raises:
            Exception: The connection was lost, or the stream could not be opened.
        """
        lived = 0.0 if self._since is None else anyio.current_time() - self._since
        if lived > max(self._retry_seconds, default=0.0):
            self._left = list(self._retry_seconds)
        self._since = None
        latest: Exception | None = failure
        with anyio.move_on_after(self._reopening_seconds()) as scope:
            while self._left and not self._is_closed:
                pause = self._left.pop(0) * random.uniform(0.5, _LONGEST_FACTOR)
                refusal = latest if isinstance(latest, HttpStatusError) else None
                seconds = self._shared.requests.timeouts.pause_after(refusal, pause)
                if seconds is None:  # the server asks for too long a pause
                    break
                scope.deadline += seconds - pause
                await anyio.sleep(seconds)
                latest = await self._try_reopening()
                if latest is None:
                    return True
        if not self._is_closed:
            raise failure
        return False

    def _reopening_seconds(self) -> float | None:
        """Seconds for all attempts to reopen: the pauses, and one response of the server."""
        if self._idle_seconds is None:
            return None
        answer = max(self._idle_seconds, self._timeout or 0.0)
        return _LONGEST_FACTOR * sum(self._left) + answer

    async def _try_reopening(self) -> McpError | None:
        """Try to reopen a lost stream; returns why the attempt failed, `None` if it succeeded.

        Raises:
            McpError: Further attempts are useless.
        """
        shared = self._shared
        listen = shared.session.revision.facts.behaviour.listen
        if listen is None and (silence := await self._check_liveness()):
            shared.callers.check_open()
            return silence
        try:
            await self._open(self._idle_seconds if self._timeout is None else self._timeout)
        except (TransportError, RequestTimeoutError) as error:
            if not _is_transient(error) or shared.callers.gone is not None:
                raise
            return error
        return None


class ListenCalls(Generic[AnySubscription]):
    """Adds `listen` to a client."""

    def _subscription(
        self, requested: NotificationFilter, options: ListenOptions
    ) -> AnySubscription:
        """A subscription to changes."""
        raise NotImplementedError

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retry_seconds: Sequence[float] | None = None,
        idle_seconds: float | None = 20.0,
    ) -> AnySubscription:
        """Subscribe to changes, by a stream or in the session, depending on the revision.

        The subscription begins when its context is entered: the server has then accepted a filter,
        the attribute `agreed`. The iteration yields changes as `ToolsChanged`, `ResourceUpdated`
        and so on, and ends with the subscription. A change that occurs again before it is read is
        yielded once.

        A client of several servers subscribes to all servers that support the filter, and yields
        the changes of all. If a server fails, its subscription ends with a warning; if the last
        server fails, with an error.

        Args:
            tools: Whether to subscribe to changes of the list of tools.
            prompts: Whether to subscribe to changes of the list of prompts.
            resources: Whether to subscribe to changes of the list of resources.
            uris: The resources to subscribe to.
            meta: Members to add to `_meta`.
            timeout: Seconds for the server to accept; `None` for no limit.
            retry_seconds: Pauses before each attempt to reopen a lost stream; empty for no
                attempts. A reopened stream yields a `ListeningAgain`.
            idle_seconds: Seconds without a change after which the iteration sends a liveness check
                (`ping` or `server/discover`), and the timeout of that check; `None` for no checks.
                Without a response, the stream is treated as lost. An unreachable server is an error
                after at most three times these seconds plus 1.5 times the sum of the pauses.

        Raises:
            InvalidParamsError: (on entry) Not exactly one of several servers has a resource.
            RemoteError: (on entry) The server refused the subscription.
            RequestTimeoutError: (on entry, or in the iteration) The server did not accept, or did
                not answer a liveness check, in time.
            TransportError: (on entry, or in the iteration) The stream was lost and could not be
                reopened.
            ConnectionClosedError: (on entry, or in the iteration) The connection has ended, and the
                subscription with it. Subscribe again in the next session.

        Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
        """
        if isinstance(uris, str):
            raise TypeError(f"uris: expected several URIs, got the text {uris!r}")
        requested = NotificationFilter(tools, prompts, resources, tuple(dict.fromkeys(uris)))
        pauses = tuple(RETRY_SECONDS if retry_seconds is None else retry_seconds)
        return self._subscription(requested, ListenOptions(meta, timeout, pauses, idle_seconds))


class ClientListenCalls(ListenCalls[Subscription]):
    """Adds `listen` to a client of one server."""

    _requests: Any  # sends the requests of the client
    _listeners: Listeners | None = None

    def _subscription(self, requested: NotificationFilter, options: ListenOptions) -> Subscription:
        requests = self._requests
        if self._listeners is None:
            self._listeners = Listeners(requests.peer.callers, requests, requests.session)
        return Subscription(self._listeners, requested, options)


def _is_transient(failure: Exception) -> bool:
    """Whether an error of a stream is temporary; the stream can be reopened later."""
    if isinstance(failure, HttpStatusError):
        return failure.may_pass
    return isinstance(failure, TransportError | RequestTimeoutError)
