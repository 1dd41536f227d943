"""Checks of members that a draft requires and that nothing sets, or that a decorator sets.

Only packages of such a draft have this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from ..._wire import ValidationError, convert, error_text
from ...facts import Method, Revision
from ...foreign_text import safe_repr
from ...protocol.lifecycle import DISCOVER, INITIALIZE, Description
from ...revisions import REVISIONS
from .dispatcher import Dispatcher
from .registry import ITEM_LISTS, STALE, ItemList, Registry
from .server import ServerKernel


def expect_described(describe: Callable[[Revision], Description]) -> None:
    """Check that a server can describe itself in each revision.

    Raises:
        TypeError: A revision requires a member that nothing sets.
    """
    for revision in REVISIONS.values():
        try:
            own = describe(revision)
        except ValidationError as error:
            raise _unset_error("Server", revision, error_text(error)) from None
        result = {
            "protocolVersion": revision.name,
            "supportedVersions": [revision.name],
            "capabilities": own.capabilities,
            "serverInfo": own.info,
            **STALE,
        }
        for name in (INITIALIZE, DISCOVER):
            _expect_fit(result, revision, revision.client_requests.get(name), "Server")


def expect_listed(
    registry: Registry[Any], unset: Collection[str] = (), absent: Collection[str] = ()
) -> None:
    """Check that the item that was registered last can be listed in each revision.

    Args:
        registry: The items.
        unset: Members of the items, and of results about the items, that nothing sets.
        absent: Members of results that a server needs, and that the newest revision lacks.

    Raises:
        TypeError: A revision requires a member that nothing sets, or lacks one.
    """
    for key, item in list(registry.items.items())[-1:]:
        what = f"{registry.row.kind} {safe_repr(key)}"
        if absent:
            name, members = safe_repr(REVISIONS.newest().name), ", ".join(absent)
            raise TypeError(f"{what}: revision {name} has no {members}: answer by handlers instead")
        given = item.wire("any")
        if missing := [each for each in unset if _lacks(given, registry.row, each)]:
            raise _unset_error(what, REVISIONS.newest(), f"nothing sets {', '.join(missing)}")
        for revision in REVISIONS.values():
            wire = item.wire(revision.facts.behaviour.structured_content)
            page = {registry.row.member: [wire], **STALE}
            _expect_fit(page, revision, revision.client_requests.get(registry.row.request), what)


_KINDS = {"".join(map(str.capitalize, row.kind.split())): row.kind for row in ITEM_LISTS}
"""The kind of the items of a definition, such as `resource template` of `ResourceTemplate`."""


def _lacks(item: Mapping[str, Any], row: ItemList, member: str) -> bool:
    """Whether an item lacks a member such as `Tool.owner`, or nothing can set the member."""
    definition, _, wire = member.partition(".")
    kind = _KINDS.get(definition, row.kind)
    return kind == row.kind and (definition not in _KINDS or wire not in item)


class CheckedDispatcher(Dispatcher):
    """A dispatcher that checks what is registered.

    Attributes:
        unset: Members that nothing sets, by the first part of a method's name.
        absent: Members of results that the newest revision lacks, likewise.

    Raises:
        TypeError: (from registration) A revision requires a member that nothing sets.
    """

    unset: Mapping[str, Collection[str]] = {}
    absent: Mapping[str, Collection[str]] = {}

    def _list_changed(self, row: ItemList) -> None:
        name = row.request.partition("/")[0]
        registry = self.registries[ITEM_LISTS.index(row)]
        try:
            expect_listed(registry, self.unset.get(name, ()), self.absent.get(name, ()))
        except TypeError:  # the list of all items would fail
            registry.remove(next(reversed(registry.items)))
            raise
        super()._list_changed(row)


class CheckingServer(ServerKernel):
    """A server that checks itself and what is registered.

    Raises:
        TypeError: A revision requires a member of the server's description that nothing sets.
    """

    # As of `CheckedDispatcher`.
    _item_options: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    _unset: ClassVar[Mapping[str, Collection[str]]] = {}
    _unlisted: ClassVar[Mapping[str, Collection[str]]] = {}

    def _use_options(self, options: dict[str, Any]) -> None:
        dispatcher = self._dispatcher
        dispatcher.item_options = self._item_options
        if isinstance(dispatcher, CheckedDispatcher):
            dispatcher.unset, dispatcher.absent = self._unset, self._unlisted
        super()._use_options(options)
        expect_described(self.describe)


def _expect_fit(result: Any, revision: Revision, method: Method | None, what: str) -> None:
    if method is None:
        return
    try:
        convert(result, method.result)
    except ValidationError as error:
        raise _unset_error(what, revision, f"{method.name}: {error_text(error)}") from None


def _unset_error(what: str, revision: Revision, why: str) -> TypeError:
    fact = "a keyword of the decorator or a default in --facts gives a member its value"
    return TypeError(f"{what}: revision {safe_repr(revision.name)}: {why}; {fact}")
