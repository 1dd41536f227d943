"""Notifications in the shape of a revision, and the subscriptions that decide who gets them.

A subscription stream is a request that stays open. Its params filter the changes; each
notification on the stream carries the id of the request.

Source: basic/utilities or basic/patterns (progress, subscriptions), server/utilities/logging;
basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from .._wire import UNWRITABLE, Raw, ValidationError, convert, error_text, is_many
from ..channel import OutgoingMessage, RequestId
from ..errors import InvalidParamsError, LocalProtocolError, MissingCapabilityError
from ..facts import Method, Revision, Role
from . import jsonrpc
from .lifecycle import Session, declared

if TYPE_CHECKING:
    from ..revision_facts import Facts

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"

RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
FOLLOWING = frozenset({SUBSCRIBE, UNSUBSCRIBE})
"""Requests that change the resources to which a client is subscribed."""

RESOURCES = 1000
"""Most resources to which a session, or all streams of a connection together, may subscribe."""

URI_CHARACTERS = 256 * 1024
"""Most characters of their URIs in all: a server keeps them while the subscriptions last."""

STREAMS = 100
"""Most subscription streams that a connection may hold open."""

SUBSCRIBED_URIS = "resourceSubscriptions"
"""Member of a filter: the resources to whose updates a stream subscribes."""
_URI = "uri"

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424). Source: server/utilities/logging."""


def is_severe_enough(level: str, least: str | None) -> bool:
    """Whether a log message of `level` reaches the threshold `least`; `None` is no threshold.

    A level that only the schema of a draft has reaches each threshold, and each reaches it.
    """
    if least not in LOG_LEVELS or level not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


def is_log_level(level: str, revision: Revision) -> bool:
    """Whether log messages of a revision may have a level."""
    if level in LOG_LEVELS:
        return True
    method = revision.server_notifications.get(MESSAGE)
    try:
        convert({"level": level, "data": None}, None if method is None else method.params)
    except UNWRITABLE:
        return False
    return True


def notification(
    role: Role,
    revision: Revision,
    name: str,
    params: Mapping[str, Any],
    related_request_id: RequestId | None = None,
) -> OutgoingMessage:
    """A notification in the shape of a revision, whether or not it may be sent now.

    Raises:
        LocalProtocolError: The params do not fit.
    """
    method = revision.notifications_from(role).get(name)
    shaped: Any = params or UNSET
    if method is not None and method.params is not None and params:
        try:
            shaped = convert(params, method.params)
        except ValidationError as error:
            raise LocalProtocolError(f"{name}: params: {error_text(error)}") from None
    data = jsonrpc.encode_notification(name, shaped)
    return OutgoingMessage(data, "notification", None, name, revision, related_request_id, params)


def cancellation(
    revision: Revision, params: Mapping[str, Any], related_request_id: RequestId | None = None
) -> OutgoingMessage:
    """The notification that cancels a request, in a revision."""
    data = jsonrpc.encode_notification(CANCELLED, params)
    return OutgoingMessage(
        data, "notification", None, CANCELLED, revision, related_request_id, params
    )


def accepted_filter(
    requested: Mapping[str, Any], capabilities: Mapping[str, Any], revision: Revision
) -> dict[str, Any]:
    """The part of a requested filter that a server with these capabilities accepts."""
    accepted: dict[str, Any] = {}
    for method in revision.server_notifications.values():
        member = method.facts.subscription
        if (
            member is not None
            and requested.get(member)
            and declared(capabilities, method.capability)
        ):
            accepted[member] = requested[member]
    return accepted


def accepted_of_extensions(
    params: Raw | None, revision: Revision, own: Mapping[str, Any], peer: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[str]]]:
    """What a requested filter has for extensions: notification, member, and subjects.

    Args:
        params: The params of the request, as received.
        revision: Its revision.
        own: The capabilities of the server.
        peer: Those of the client.

    Raises:
        MissingCapabilityError: The client does not declare the extension.
        InvalidParamsError: The subjects are no texts.
    """
    for method in revision.server_notifications.values():
        member, path = method.facts.subscription, method.capability
        if member is None or not method.facts.extension or not declared(own, path):
            continue
        requested = msgspec.json.decode(params or b"{}").get("notifications", {}).get(member)
        if requested is None:
            continue
        if not declared(peer, path):
            raise MissingCapabilityError(path, f"{member} of a subscription")
        if not is_many(requested) or not all(isinstance(each, str) for each in requested):
            raise InvalidParamsError(f"notifications.{member}: expected a list of texts")
        yield method.name, member, list(dict.fromkeys(requested))


def check_subscription_limits(
    method: Method,
    params: Any,
    revision: Revision,
    session: Session | None,
    streams: SubscriptionStreams,
) -> None:
    """Check that a request for subscriptions stays within the limits.

    Raises:
        InvalidParamsError: The request exceeds a limit.
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


class SubscriptionStreams:
    """The open streams of a connection, each with the filter that the server accepted."""

    def __init__(self) -> None:
        self._filters: dict[RequestId, tuple[Mapping[str, Any], Facts]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def uris(self) -> Iterator[str]:
        """The resources of all streams."""
        return (
            uri
            for accepted, _ in self._filters.values()
            for uri in accepted.get(SUBSCRIBED_URIS, ())
        )

    def open(self, identifier: RequestId, accepted: Mapping[str, Any], facts: Facts) -> None:
        """Add a stream by the id of its request, with the facts of its revision."""
        self._filters[identifier] = accepted, facts

    def close(self, identifier: RequestId) -> None:
        """Remove a stream, if the id is that of one."""
        self._filters.pop(identifier, None)

    def clear(self) -> None:
        """Remove all streams."""
        self._filters.clear()

    def ids(self) -> list[RequestId]:
        """The ids of all streams."""
        return list(self._filters)

    def subscribed_to(self, method: str, params: Mapping[str, Any]) -> Iterator[RequestId]:
        """The streams whose filter admits a change.

        Args:
            method: The notification.
            params: Its params, which name the resource for updates of one.
        """
        for identifier, (accepted, facts) in self._filters.items():
            stated = facts.method(method)
            member = stated.subscription
            wanted = False if member is None else accepted.get(member, False)
            if wanted is True or (wanted and params.get(stated.named_by or _URI) in wanted):
                yield identifier
