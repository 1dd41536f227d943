"""Subscription streams of a server: who listens to what.

A stream is a request that stays open. It says which changes it wants; each notification on it
carries the id of that request.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..channel import RequestId
from ..errors import InvalidParamsError
from ..facts import Method
from .lifecycle import Session, declared

LIST_CHANGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("toolsListChanged", ("tools", "listChanged")),
    "notifications/prompts/list_changed": ("promptsListChanged", ("prompts", "listChanged")),
    "notifications/resources/list_changed": ("resourcesListChanged", ("resources", "listChanged")),
}
"""Notification to the member of the filter that asks for it, and the capability behind it."""

RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
RESOURCES = 1000
"""Resources that one session, or all streams of a connection, may follow."""

URI_CHARACTERS = 256 * 1024
"""Characters of their URIs in all: a server keeps them for as long as it is asked to."""

STREAMS = 100
"""Subscription streams that one connection may hold open."""

_RESOURCES = "resourceSubscriptions"


def honoured(wanted: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a filter that a server with these capabilities can serve."""
    agreed: dict[str, Any] = {
        member: True
        for member, path in LIST_CHANGES.values()
        if wanted.get(member) and declared(capabilities, path)
    }
    if wanted.get(_RESOURCES) and declared(capabilities, ("resources", "subscribe")):
        agreed[_RESOURCES] = wanted[_RESOURCES]
    return agreed


def check_room(method: Method, params: Any, session: Session | None, streams: Streams) -> None:
    """See that what a request asks to follow is not more than a server will keep.

    Raises:
        InvalidParamsError: It is.
    """
    uris: list[str]
    if method.name == "resources/subscribe" and session is not None:
        uris = list(session.subscriptions | {params.uri})
    elif method.name == "subscriptions/listen":
        if len(streams) >= STREAMS:
            raise InvalidParamsError(f"expected at most {STREAMS} subscription streams at once")
        uris = [*streams.uris(), *set(params.notifications.resource_subscriptions or ())]
    else:
        return
    if len(uris) > RESOURCES or sum(map(len, uris)) > URI_CHARACTERS:
        raise InvalidParamsError(
            f"expected at most {RESOURCES} resources to follow, "
            f"with {URI_CHARACTERS} characters in all"
        )


class Streams:
    """The open streams of a connection, each with the filter that was agreed."""

    def __init__(self) -> None:
        self._filters: dict[RequestId, Mapping[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def uris(self) -> Iterator[str]:
        """The resources that they follow, one after another."""
        return (uri for agreed in self._filters.values() for uri in agreed.get(_RESOURCES, ()))

    def open(self, identifier: RequestId, agreed: Mapping[str, Any]) -> None:
        """Begin a stream under the id of its request."""
        self._filters[identifier] = agreed

    def close(self, identifier: RequestId) -> None:
        """End a stream, if it is one."""
        self._filters.pop(identifier, None)

    def clear(self) -> None:
        """End all streams."""
        self._filters.clear()

    def ids(self) -> list[RequestId]:
        """The open streams."""
        return list(self._filters)

    def wanting(self, method: str, uri: str | None) -> Iterator[RequestId]:
        """The streams that asked for a change.

        Args:
            method: The notification.
            uri: The resource, for updates of one.
        """
        for identifier, agreed in self._filters.items():
            if method == RESOURCE_UPDATED:
                if uri in agreed.get(_RESOURCES, ()):
                    yield identifier
            elif method in LIST_CHANGES and agreed.get(LIST_CHANGES[method][0]):
                yield identifier
