"""What one session shows of a server: items that are enabled or disabled for this session alone.

A session has rules, each for some names and tags, of which the last that fits an item decides.
Without one the state for all clients holds, which `Server.enable` and `disable` change. Rules are
kept with the connection of the session, and end with it.

Source: server/tools#list-changed-notification and its like.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ...errors import LocalProtocolError, McpError
from ...protocol.connection import Connection
from ...runtime.request_context import RequestContext
from .registry import Registry, Rule, SessionRules, check_registered, checked_tags
from .sessions import connection_of_session

_MOST_RULES = 100  # of one session
_FEATURE = "visibility in a session"
_ALTERNATIVE = 'give the items scopes, and the server forbidden_items="hidden"'

_logger = logging.getLogger(__name__)

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
    connection = connection_of_session(request, _FEATURE, _ALTERNATIVE)
    check_registered([each for listed in lists.values() for each in listed], names, tags)
    rules = _rules_of(lists)
    rule = Rule(frozenset(names), tags, enabled)
    others = [each for each in rules.get(connection, ()) if each[:2] != rule[:2]]
    if len(others) >= _MOST_RULES:
        raise LocalProtocolError(
            f"{_FEATURE}: expected at most {_MOST_RULES} rules; reset_visibility removes them"
        )
    await _set_rules(lists, rules, request, connection, (*others, rule))


async def reset_in_session(lists: Lists, request: RequestContext) -> None:
    """Show in the session of a request what the server shows to all, and notify its client.

    Raises:
        LocalProtocolError: The request belongs to no session.
    """
    connection = connection_of_session(request, _FEATURE, _ALTERNATIVE)
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
