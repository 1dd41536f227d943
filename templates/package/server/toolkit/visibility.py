"""Items that are hidden and shown again: for all clients, or in the session of one client.

The rules of one session end with its connection. A rule has names and tags of items. The last rule
that matches an item decides; without a rule, the state for all clients applies.

Source: server/tools#list-changed-notification and its like.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ...errors import LocalProtocolError, McpError
from ...protocol.connection import Connection
from ...runtime.request_context import RequestContext
from .registry import Item, ItemRegistries, Registered, checked_tags
from .server import ServerKernel
from .session_values import connection_of_session
from .varying_registry import varying

_MOST_RULES = 100  # of one session
_VISIBILITY = "visibility in a session"
_SCOPES_INSTEAD = 'give the items scopes, and the server forbidden_items="hidden"'

_logger = logging.getLogger(__name__)


class ServerVisibility(ServerKernel):
    """A server that hides items and shows them again."""

    def _use_options(self, options: dict[str, Any]) -> None:
        self._dispatcher.shares.append(VisibilityRules(self._dispatcher.registries).share)
        super()._use_options(options)

    def disable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide items that are registered: they are not listed, and unknown to requests.

        Clients that are connected are notified. Items that are registered later are enabled.

        Args:
            names: Names of tools and prompts, URIs of resources and resource templates.
            tags: Items with one of these tags.

        Raises:
            LookupError: A name or tag fits nothing; nothing was changed.
        """
        switch_items(self._dispatcher.registries, names, tags, enabled=False)

    def enable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Show items again that were hidden by `disable`; arguments and errors are the same."""
        switch_items(self._dispatcher.registries, names, tags, enabled=True)


class SessionVisibility:
    """The methods that hide and show items in one session; a base of `Context`."""

    __slots__ = ()

    request_context: RequestContext
    _registries: ItemRegistries

    async def enable_components(self, *names: str, tags: Collection[str] = ()) -> None:
        """Show hidden items in the client's session only; its client is notified.

        These settings take precedence over `Server.enable` and `disable`.

        Args:
            names: Names of tools and prompts, URIs of resources and resource templates.
            tags: Items with one of these tags.

        Raises:
            LookupError: A name or tag fits nothing; nothing was changed.
            LocalProtocolError: The request belongs to no session, as in 2026-07-28 and with
                `stateless=True`.
        """
        await _switch_in_session(self._registries, self.request_context, names, tags, enabled=True)

    async def disable_components(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide items in the client's session only; see `enable_components`."""
        await _switch_in_session(self._registries, self.request_context, names, tags, enabled=False)

    async def reset_visibility(self) -> None:
        """Undo `enable_components` and `disable_components` in the client's session.

        Raises:
            LocalProtocolError: The request belongs to no session.
        """
        connection = _connection_of(self.request_context)
        await _set_rules(self._registries, self.request_context, connection, ())


class Rule(NamedTuple):
    """Shows or hides items in one session.

    Attributes:
        names: Keys of items.
        tags: Tags of items; one of these is enough.
        enabled: Whether the items are shown.
    """

    names: frozenset[str]
    tags: frozenset[str]
    enabled: bool


class RuleTable:
    """The rules of each session that has some, by its connection, for all items of a server."""

    def __init__(self) -> None:
        self.by_connection: WeakKeyDictionary[Connection, tuple[Rule, ...]] = WeakKeyDictionary()

    def shown_items(
        self, items: Mapping[str, Item], every: Mapping[str, Item], request: RequestContext
    ) -> Mapping[str, Item]:
        """See `SessionRules` of the registry."""
        rules = self.by_connection.get(request.peer.connection)
        if rules is None:
            return items
        both = {**every, **items}.items()
        return {key: item for key, item in both if _is_shown(key, item, rules, items)}


def _is_shown(
    key: str, item: Registered, rules: Sequence[Rule], items: Mapping[str, Registered]
) -> bool:
    for rule in reversed(rules):
        if key in rule.names or item.tags & rule.tags:
            return rule.enabled
    return key in items


def switch_items(
    registries: ItemRegistries, names: Collection[str], tags: Collection[str], *, enabled: bool
) -> None:
    """Enable or disable the items with one of these names or tags; see `ServerVisibility`."""
    tags = checked_tags(tags)
    _check_registered(registries, names, tags)
    for registry in varying(registries):
        registry.switch(registry.keys(names, tags), enabled=enabled)


def _check_registered(
    registries: ItemRegistries, names: Collection[str], tags: Collection[str]
) -> None:
    """Check that each name and each tag fits a registered item."""
    for name in names:
        if not any(registry.keys((name,), ()) for registry in varying(registries)):
            raise LookupError(f"nothing is registered with the name {name!r}")
    for tag in tags:
        if not any(registry.keys((), (tag,)) for registry in varying(registries)):
            raise LookupError(f"nothing is registered with the tag {tag!r}")


async def _switch_in_session(
    registries: ItemRegistries,
    request: RequestContext,
    names: Collection[str],
    tags: Collection[str],
    *,
    enabled: bool,
) -> None:
    """Show or hide items in the session of a request, and notify its client if lists change."""
    tags = checked_tags(tags)
    connection = _connection_of(request)
    _check_registered(registries, names, tags)
    rule = Rule(frozenset(names), tags, enabled)
    before = VisibilityRules(registries).of(connection)
    others = [each for each in before if each[:2] != rule[:2]]
    if len(others) >= _MOST_RULES:
        raise LocalProtocolError(
            f"{_VISIBILITY}: expected at most {_MOST_RULES} rules; reset_visibility removes them"
        )
    await _set_rules(registries, request, connection, (*others, rule))


def _connection_of(request: RequestContext) -> Connection:
    """The connection of the session that a request belongs to."""
    return connection_of_session(request, _VISIBILITY, _SCOPES_INSTEAD)


async def _set_rules(
    registries: ItemRegistries,
    request: RequestContext,
    connection: Connection,
    new: tuple[Rule, ...],
) -> None:
    before = _shown_keys(registries, request)
    VisibilityRules(registries).replace(connection, new)
    after = _shown_keys(registries, request)
    for changed in [name for name, keys in after.items() if keys != before[name]]:
        try:
            await request.peer.notify(changed)
        except McpError as error:
            _logger.debug("%s was not sent: %s", changed, error)


def _shown_keys(
    registries: ItemRegistries, request: RequestContext
) -> Mapping[str, list[list[str]]]:
    """The keys that a session shows, by the notification that their lists have changed."""
    shown: dict[str, list[list[str]]] = {}
    for registry in registries:
        shown.setdefault(registry.row.changed, []).append(list(registry.items_for(request)))
    return shown


class VisibilityRules(NamedTuple):
    """The rules of all sessions for the items of a server.

    Attributes:
        registries: The registries of the server.
    """

    registries: ItemRegistries

    def of(self, connection: Connection) -> tuple[Rule, ...]:
        """The rules of the session of a connection."""
        table = varying(self.registries)[0].rules
        return table.by_connection.get(connection, ()) if isinstance(table, RuleTable) else ()

    def replace(self, connection: Connection, new: Iterable[tuple[Any, ...]]) -> None:
        """Replace the rules of a session; each new one has the members of `Rule` as a tuple."""
        registries = varying(self.registries)
        table = registries[0].rules
        if not isinstance(table, RuleTable):
            table = RuleTable()
            for registry in registries:
                registry.use_rules(table)
        table.by_connection[connection] = tuple(Rule(*each) for each in new)

    def share(self, worker: Any) -> None:
        """Have a `SharedWorker` store the rules with the other shared data of a session."""
        worker.rules.append(self)
