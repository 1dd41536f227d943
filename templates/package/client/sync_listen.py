"""Subscriptions to changes of a server, for blocking clients."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from ..errors import ConnectionClosedError
from .listen import Change, ChangeIterator, NotificationFilter
from .sync import ClientThread


class SyncSubscription:
    """An iterator of changes, and the context manager that opens and closes it.

        with client.listen(tools=True, uris=["memo://one"]) as changes:
            for change in changes:
                match change:
                    case ToolsChanged(): ...
                    case ResourceUpdated(uri=uri): ...

    Args:
        thread: The thread of the session.
        subscription: The asynchronous subscription.
    """

    def __init__(self, thread: ClientThread, subscription: ChangeIterator) -> None:
        self._thread = thread
        self._subscription = subscription

    @property
    def agreed(self) -> NotificationFilter:
        """The filter that the server accepted; no other changes will come."""
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
        """End the subscription and its iteration, from any thread."""
        self._thread.run(self._subscription.close)
