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
from ..facts import Method, Revision
from ..revision_facts import Facts
from .lifecycle import Session, declared

RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
FOLLOWING = frozenset({SUBSCRIBE, UNSUBSCRIBE})
"""Requests that change which resources a client follows."""

RESOURCES = 1000
"""Resources that one session, or all streams of a connection, may follow."""

URI_CHARACTERS = 256 * 1024
"""Characters of their URIs in all: a server keeps them for as long as it is asked to."""

STREAMS = 100
"""Subscription streams that one connection may hold open."""

_RESOURCES = "resourceSubscriptions"


def honoured(
    wanted: Mapping[str, Any], capabilities: Mapping[str, Any], revision: Revision
) -> dict[str, Any]:
    """The part of a filter that a server with these capabilities can serve."""
    agreed: dict[str, Any] = {}
    for name, method in revision.server_notifications.items():
        member = revision.facts.method(name).subscription
        if member is not None and wanted.get(member) and declared(capabilities, method.capability):
            agreed[member] = wanted[member]
    return agreed


def check_room(
    method: Method, params: Any, revision: Revision, session: Session | None, streams: Streams
) -> None:
    """See that what a request asks to follow is not more than a server will keep.

    Raises:
        InvalidParamsError: It is.
    """
    uris: list[str]
    if method.name == SUBSCRIBE and session is not None:
        uris = list(session.subscriptions | {params.uri})
    elif method.name == revision.facts.behaviour.listen:
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
        self._filters: dict[RequestId, tuple[Mapping[str, Any], Facts]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def uris(self) -> Iterator[str]:
        """The resources that they follow, one after another."""
        return (uri for agreed, _ in self._filters.values() for uri in agreed.get(_RESOURCES, ()))

    def open(self, identifier: RequestId, agreed: Mapping[str, Any], facts: Facts) -> None:
        """Begin a stream under the id of its request, in a revision of these facts."""
        self._filters[identifier] = agreed, facts

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
        for identifier, (agreed, facts) in self._filters.items():
            member = facts.method(method).subscription
            wanted = False if member is None else agreed.get(member, False)
            if wanted is True or (wanted and uri in wanted):
                yield identifier
