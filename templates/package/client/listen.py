"""Changes that a server tells of, as something to iterate over.

Where a revision has streams of changes, a subscription is a request that stays open. If its stream
is lost while the connection lives, it is asked for again, after a pause that grows. In the other
revisions the changes come in the session, those of resources after a request for each of them.

Where nothing changes, nothing comes, and nothing comes either from a server that is gone. So a
server that was silent for some time is asked for a sign of life, to which any answer will do.

Changes that nobody took yet are kept once each: they say that something changed, not how.

Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

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
from ..protocol.events import NotificationReceived, ResponseReceived
from ..protocol.lifecycle import DISCOVER, PING, Session
from ..protocol.notifications import ACKNOWLEDGED, SUBSCRIBE, UNSUBSCRIBE, accepted_filter
from ..runtime.pending_requests import NOTIFICATIONS, PARTING_SECONDS, PendingRequests
from .change_events import Change, ListeningAgain, NotificationFilter, change_of
from .pipeline import RequestPipeline

RETRY_SECONDS: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses before a lost stream is asked for again, one after another."""

_LONGEST_FACTOR = 1.5  # a pause is up to half as long again, so that clients do not come at once

_logger = logging.getLogger(__name__)


class _Inbox:
    """What came for a subscription and was not taken yet; an `Awaited`.

    Args:
        only: Which changes it takes; `None` where the server sends no others.

    Attributes:
        agreed: What the server tells of, once that is known.
    """

    def __init__(self, only: NotificationFilter | None) -> None:
        self.agreed = self._only = only
        self.changes: dict[Change, None] = {}
        self.settled = False
        self.failure: Exception | None = None
        self._news = anyio.Event()

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """Take the end of it; a failure if it was no good one."""
        if not self.settled:
            self.settled = True
            self.failure = None if isinstance(failure, RequestCancelledError) else failure
            self._wake()

    def tell(self, *news: Any) -> None:
        """Take a notification."""
        event: NotificationReceived = news[0]
        name = event.method.name
        if name == ACKNOWLEDGED:
            if self.agreed is None:
                self.agreed = NotificationFilter.of(to_builtins(event.params.notifications))
                self._wake()
            return
        change = change_of(event.method.facts.subscription, event.params)
        if change is not None and (self._only is None or self._only.has(change)):
            self.put(change)

    def put(self, change: Change) -> None:
        """Keep a change; of too many, the oldest goes."""
        self.changes[change] = None
        if len(self.changes) > NOTIFICATIONS:
            oldest = next(iter(self.changes))
            del self.changes[oldest]
            lost = safe_repr(oldest)
            _logger.warning(
                "more than %d changes were not looked at; %s is lost", NOTIFICATIONS, lost
            )
        self._wake()

    def take(self) -> Change | None:
        """The oldest change, if there is one."""
        change = next(iter(self.changes), None)
        if change is not None:
            del self.changes[change]
        return change

    async def wait(self) -> None:
        """Wait for whatever comes next."""
        await self._news.wait()

    async def accepted(self) -> NotificationFilter:
        """Wait for what the server agrees to; nothing if it ends the stream instead.

        Raises:
            McpError: It refuses, or the stream is lost.
        """
        while self.agreed is None and not self.settled:
            await self.wait()
        if self.agreed is None and self.failure is not None:
            raise self.failure
        return self.agreed or NotificationFilter()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()


@dataclass(frozen=True)
class Listeners:
    """What the subscriptions of one client share.

    Attributes:
        callers: Who waits for the server.
        requests: The requests of the client.
        session: What was agreed.
        uris: How many subscriptions want the updates of a resource (in sessions).
    """

    callers: PendingRequests
    requests: RequestPipeline
    session: Session
    uris: Counter[str] = field(default_factory=Counter[str])


class Subscription:
    """Changes as they come: open inside `async with`, iterated over by `async for`.

    Args:
        shared: The client's.
        wanted: Which changes.
        meta: What to add to `_meta`.
        timeout: Seconds for the server to agree; `None` for no limit.
        retry_seconds: Pauses before a lost stream is asked for again; after the last one it is an
            error. They begin anew for a stream that lived for longer than any of them.
        idle_seconds: Seconds of silence after which the server is asked for a sign of life, and
            which it has to give one; `None` for never.

    Attributes:
        agreed: What the server tells of: what is wanted and not in here will not come.
    """

    def __init__(
        self,
        shared: Listeners,
        wanted: NotificationFilter,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        retry_seconds: Sequence[float],
        idle_seconds: float | None,
    ) -> None:
        self.agreed = NotificationFilter()
        self._shared = shared
        self._wanted = wanted
        self._meta = meta
        self._timeout = timeout
        self._retry_seconds = tuple(retry_seconds)
        self._idle_seconds = idle_seconds
        self._left = list(self._retry_seconds)
        self._since: float | None = None
        self._inbox = _Inbox(None)
        self._id: RequestId | None = None
        self._subscribed: list[str] = []
        self._over = False

    async def __aenter__(self) -> Self:
        await self._open(self._timeout)
        lacking = self.agreed.lacking(self._wanted)
        if lacking:
            _logger.warning("the server does not tell of %s", ", ".join(lacking))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._over:
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
                await self._open_again(self._inbox.failure)
        raise StopAsyncIteration

    async def close(self) -> None:
        """End the subscription, from any task; whoever iterates over it comes to the end."""
        self._over = True
        with anyio.CancelScope(shield=True):
            await self._let_go()
        self._inbox.settle()

    async def _wait(self) -> None:
        """Wait for whatever comes next; open it again if the server is gone meanwhile."""
        with anyio.move_on_after(self._idle_seconds):
            await self._inbox.wait()
            return
        failure = await self._failed_sign_of_life()
        if failure is not None and not self._inbox.settled and not self._over:
            await self._open_again(failure)

    async def _failed_sign_of_life(self) -> McpError | None:
        """Ask the server for an answer; why there is none, if so. A refusal is an answer."""
        shared = self._shared
        name = PING if PING in shared.session.revision.client_requests else DISCOVER
        waiter = shared.callers.waiter()
        try:
            await shared.callers.ask(waiter, name, None, timeout=self._idle_seconds)
        except McpError as error:
            return error if _is_passing(error) else None
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
                await self._let_go()
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(listen or SUBSCRIBE, timeout or 0.0) from None
            raise
        self._since = anyio.current_time()
        if self._over:  # somebody closed it meanwhile
            await self.close()

    async def _open_stream(self, listen: str) -> None:
        inbox = _Inbox(None)
        params = {"notifications": self._wanted.wire()}
        self._id = await self._shared.callers.start(inbox, listen, params, meta=self._meta)
        self.agreed = await inbox.accepted()
        self._inbox = inbox

    async def _open_in_session(self) -> None:
        shared = self._shared
        shared.callers.check_open()
        session = shared.requests.state.session
        if session.stream_failure is not None:
            raise session.stream_failure
        wire = accepted_filter(
            self._wanted.wire(), shared.session.peer_capabilities, shared.session.revision
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

    async def _let_go(self) -> None:
        """Tell the server that its changes are not wanted any more."""
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
                if scope.cancelled_caught:  # nor would it hear of the others in time
                    shared.uris.subtract(self._subscribed)
                    self._subscribed.clear()

    def _session_lost(self) -> None:
        """Wake whoever iterates, to subscribe in the new session and look at everything anew."""
        self._inbox.put(ListeningAgain())

    def _stream_lost(self, failure: McpError) -> None:
        """Wake whoever iterates, to wait for the stream of the session to be there again."""
        self._inbox.settle(failure=failure)

    async def _open_again(self, failure: Exception) -> None:
        """Ask for a lost stream again.

        Raises:
            Exception: It is not the stream that was lost, but more; or it can't be had again.
        """
        shared = self._shared
        if not _is_passing(failure) or shared.callers.gone is not None:
            raise failure
        await self._let_go()
        self._inbox.settle(failure=failure)
        shared.requests.state.notifications_missed()
        lived = 0.0 if self._since is None else anyio.current_time() - self._since
        if lived > max(self._retry_seconds, default=0.0):
            self._left = list(self._retry_seconds)
        self._since = None
        with anyio.move_on_after(self._longest_reopening()):
            while self._left and not self._over:
                await anyio.sleep(self._left.pop(0) * random.uniform(0.5, _LONGEST_FACTOR))
                if await self._opened_again():
                    self._inbox.changes = {ListeningAgain(): None, **self._inbox.changes}
                    return
        if not self._over:
            raise failure

    def _longest_reopening(self) -> float | None:
        """Seconds that all attempts may take: the pauses, and one answer of the server."""
        if self._idle_seconds is None:
            return None
        answer = max(self._idle_seconds, self._timeout or 0.0)
        return _LONGEST_FACTOR * sum(self._left) + answer

    async def _opened_again(self) -> bool:
        """Ask for a lost stream once more; whether it was there.

        Raises:
            McpError: There will be none.
        """
        shared = self._shared
        listen = shared.session.revision.facts.behaviour.listen
        if listen is None and await self._failed_sign_of_life():
            shared.callers.check_open()
            return False
        try:
            await self._open(self._idle_seconds if self._timeout is None else self._timeout)
        except (TransportError, RequestTimeoutError) as error:
            if not _is_passing(error) or shared.callers.gone is not None:
                raise
            return False
        return True


def _is_passing(failure: Exception) -> bool:
    """Whether a stream that failed so may be had a little later."""
    if isinstance(failure, HttpStatusError):
        return failure.may_pass
    return isinstance(failure, TransportError | RequestTimeoutError)
