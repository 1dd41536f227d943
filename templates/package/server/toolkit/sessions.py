"""The session that a request belongs to: its id, values that handlers keep in it, what it shows.

Values are kept with the connection of the session, and end with it. So are the rules of a session
for items that are enabled or disabled for it alone, each for some names and tags, of which the last
that fits an item decides. Without one the state for all clients holds, which `Server.enable` and
`disable` change.

Source: server/tools#list-changed-notification and its like.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from ...errors import LocalProtocolError, McpError
from ...facts import Lifecycle
from ...protocol.connection import Connection
from ...runtime.request_context import RequestContext
from .registry import Registry, Rule, SessionRules, check_registered, checked_tags

_ID_BYTES = 16
_MOST_VALUES = 100  # of one session
_ALTERNATIVE = "return a handle to the client, and take it as an argument of later calls"

_MOST_RULES = 100  # of one session
_VISIBILITY = "visibility in a session"
_SCOPES_INSTEAD = 'give the items scopes, and the server forbidden_items="hidden"'

_T = TypeVar("_T")
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
    if identifier is not None or session is None or session.stateless:
        return identifier
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
    elif session.stateless:
        text = f"this server keeps no sessions for {name} (stateless=True)"
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
    rules = _rules_of(lists)
    rule = Rule(frozenset(names), tags, enabled)
    others = [each for each in rules.get(connection, ()) if each[:2] != rule[:2]]
    if len(others) >= _MOST_RULES:
        raise LocalProtocolError(
            f"{_VISIBILITY}: expected at most {_MOST_RULES} rules; reset_visibility removes them"
        )
    await _set_rules(lists, rules, request, connection, (*others, rule))


async def reset_in_session(lists: Lists, request: RequestContext) -> None:
    """Show in the session of a request what the server shows to all, and notify its client.

    Raises:
        LocalProtocolError: The request belongs to no session.
    """
    connection = connection_of_session(request, _VISIBILITY, _SCOPES_INSTEAD)
    await _set_rules(lists, _rules_of(lists), request, connection, ())


async def _set_rules(
    lists: Lists,
    rules: SessionRules,
    request: RequestContext,
    connection: Connection,
    new: tuple[Rule, ...],
) -> None:
    before = [_shown(listed, request) for listed in lists.values()]
    if new:
        rules[connection] = new
    else:
        rules.pop(connection, None)
    for (changed, listed), shown in zip(lists.items(), before, strict=True):
        if _shown(listed, request) != shown:
            try:
                await request.peer.notify(changed)
            except McpError as error:
                _logger.debug("%s was not sent: %s", changed, error)


def _shown(listed: Sequence[Registry[Any]], request: RequestContext) -> list[list[str]]:
    """The keys that a session shows of some registries."""
    return [list(registry.items_for(request)) for registry in listed]


def _rules_of(lists: Lists) -> SessionRules:
    """The rules of all sessions, which the registries of a server share."""
    registries = [each for listed in lists.values() for each in listed]
    rules = registries[0].rules
    if rules is None:
        rules = WeakKeyDictionary[Connection, tuple[Rule, ...]]()
        for registry in registries:
            registry.rules = rules
    return rules
