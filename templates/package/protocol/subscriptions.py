"""Subscription streams: requests that stay open, whose params filter the changes to report.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from .._wire import is_many
from ..channel import RequestId
from ..errors import InvalidParamsError, MissingCapabilityError
from ..facts import Revision
from .lifecycle import is_declared

if TYPE_CHECKING:
    from ..revision_facts import Facts

SUBSCRIBED_URIS = "resourceSubscriptions"
"""Member of a filter: the resources to whose updates a stream subscribes."""

_URI = "uri"


def accepted_filter(
    requested: Mapping[str, Any], capabilities: Mapping[str, Any], revision: Revision
) -> dict[str, Any]:
    """The part of a requested filter that the capabilities of a server allow."""
    accepted: dict[str, Any] = {}
    for method in revision.server_notifications.values():
        member = method.facts.subscription
        if (
            member is not None
            and requested.get(member)
            and is_declared(capabilities, method.capability)
        ):
            accepted[member] = requested[member]
    return accepted


def accepted_of_extensions(
    params: Raw | None, revision: Revision, own: Mapping[str, Any], peer: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[str]]]:
    """The parts of a requested filter for extensions: notification, member, and subjects.

    Args:
        params: The params of the request, as received.
        revision: Its revision.
        own: The capabilities of the server.
        peer: The capabilities of the client.

    Raises:
        MissingCapabilityError: The client does not declare the extension.
        InvalidParamsError: The subjects are not a list of texts.
    """
    for method in revision.server_notifications.values():
        member, path = method.facts.subscription, method.capability
        if member is None or not method.facts.extension or not is_declared(own, path):
            continue
        requested = msgspec.json.decode(params or b"{}").get("notifications", {}).get(member)
        if requested is None:
            continue
        if not is_declared(peer, path):
            raise MissingCapabilityError(path, f"{member} of a subscription")
        if not is_many(requested) or not all(isinstance(each, str) for each in requested):
            raise InvalidParamsError(f"notifications.{member}: expected a list of texts")
        yield method.name, member, list(dict.fromkeys(requested))


class SubscriptionStreams:
    """The open subscription streams of a connection, each with its accepted filter."""

    def __init__(self) -> None:
        self._filters: dict[RequestId, tuple[Mapping[str, Any], Facts]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def uris(self) -> Iterator[str]:
        """The URIs of the resources that all streams subscribe to."""
        return (
            uri
            for accepted, _ in self._filters.values()
            for uri in accepted.get(SUBSCRIBED_URIS, ())
        )

    def open(self, identifier: RequestId, accepted: Mapping[str, Any], facts: Facts) -> None:
        """Add a stream by the id of its request, with the facts of its revision."""
        self._filters[identifier] = accepted, facts

    def close(self, identifier: RequestId) -> None:
        """Remove the stream with this id, if there is one."""
        self._filters.pop(identifier, None)

    def clear(self) -> None:
        """Remove all streams."""
        self._filters.clear()

    def ids(self) -> list[RequestId]:
        """The ids of all streams."""
        return list(self._filters)

    def subscribed_to(self, method: str, params: Mapping[str, Any]) -> Iterator[RequestId]:
        """The ids of the streams whose filter admits a notification.

        Args:
            method: The notification.
            params: Its params; for an update of a resource, they name the resource.
        """
        for identifier, (accepted, facts) in self._filters.items():
            stated = facts.method(method)
            member = stated.subscription
            subjects = False if member is None else accepted.get(member, False)
            if subjects is True or (subjects and params.get(stated.named_by or _URI) in subjects):
                yield identifier
