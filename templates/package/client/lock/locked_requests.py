"""The lock of a client: servers show what was accepted before, or the client refuses it.

The lists of a server are compared with a file when a page of a list arrives; what differs is left
out of the page. A call of a tool, a prompt or a listed resource needs an item that was listed in
this session since the last notification of a change, and that is admitted; the list is requested
before the call if it was not yet. Instructions are compared when the session opens.

       list page --> compare --> same: admitted
                        |------> new, changed, inconsistent --> `on_change` --> admitted or left out
       call --> admitted: sent | left out: LockMismatchError | not listed yet: list, then as before

`lock_file` has the form of the file, `server_lock` compares.

Source: server/tools#security-considerations, basic/index (untrusted descriptions).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, TypeGuard
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Raw

from ..._wire import UNREADABLE, is_object, replace, to_builtins
from ...errors import (
    ConnectionClosedError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
)
from ...facts import Method
from ...foreign_text import safe_text
from ...protocol.lifecycle import Session, is_declared
from ...runtime.pages import pages_of
from ...runtime.peer import Peer
from ...runtime.request_context import RequestContext
from ...runtime.stubs import typed_params
from ..application import ClientApplication, Handlers
from ..client_settings import ClientSettings, Identity
from ..pipeline import RequestOptions, RequestPipeline
from .lock_file import KINDS, Surface, surface_of
from .server_lock import LockDifference, OnChange, ServerLock, fingerprint

_BY_ITEMS: Mapping[str | None, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resource_templates": "resourceTemplates",
}
"""The lists that are locked, by the Python name of the items in a result."""

_LISTED_FIRST = ("tools", "prompts")
"""Lists that are requested before a call of an item that was not listed yet."""


_logger = logging.getLogger(__name__)


class LockOptions(TypedDict, total=False):
    """Options of `connect` for any target.

    Attributes:
        lock: The file with the accepted items of servers, as `mcpgen contract accept` writes it.
            Items that differ from it are omitted from lists and can't be called.
        lock_name: The name in the file of a server that no configuration names; by default its URL
            without query, or its command without secrets.
        on_change: `refuse`, the default, omits items that differ; `warn` admits changed items
            with a warning in the log, and omits new ones; a function decides about both.
        on_new_server: `refuse`, the default, raises if the file does not have the server; `record`
            writes its items to the file then (trust on first use).
    """

    lock: str | PathLike[str] | None
    lock_name: str
    on_change: OnChange
    on_new_server: Literal["refuse", "record"]


def server_name(target: object) -> str:
    """The name in a lock of a server that has none: its URL or its command, without secrets.

    Returns:
        The name; empty for servers in this process and for channels.
    """
    if _is_path(target):
        return os.fspath(target)
    if isinstance(target, str):
        url = urlsplit(target)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    if _is_command(target):
        from ...command_masking import masked_command  # its patterns take long to compile

        return masked_command(target)
    return ""


def _is_path(target: object) -> TypeGuard[PathLike[str]]:
    return isinstance(target, PathLike)


def _is_command(target: object) -> TypeGuard[Sequence[str]]:
    return isinstance(target, Sequence)


def _lock_of(settings: ClientSettings) -> ServerLock | None:
    """The lock of a client; `None` without the option.

    Raises:
        TypeError: An option without `lock`, or the server has no name.
        ValueError: An option has another value.
    """
    options = settings.options
    path: str | PathLike[str] | None = options.get("lock")
    if path is None:
        for name in ("lock_name", "on_change", "on_new_server"):
            if options.get(name) is not None:
                raise TypeError(f"{name}: only with lock=, the file of the lock")
        return None
    on_change: OnChange = options.get("on_change", "refuse")
    if not callable(on_change) and on_change not in ("refuse", "warn"):
        raise ValueError(f"on_change: expected refuse, warn or a function, got {on_change!r}")
    on_new_server = options.get("on_new_server", "refuse")
    if on_new_server not in ("refuse", "record"):
        raise ValueError(f"on_new_server: expected refuse or record, got {on_new_server!r}")
    name = settings.server or options.get("lock_name") or server_name(settings.target)
    if not name:
        raise TypeError(
            "lock: expected lock_name= as well, since a server in this process has no name"
        )
    limit = settings.limits.list_items
    return ServerLock(Path(path), name, on_change, on_new_server == "record", limit)


class LockedRequests(RequestPipeline):
    """Compares lists with the lock, and sends calls of admitted items only."""

    def __init__(self, peer: Peer, session: Session, application: LockedApplication) -> None:
        super().__init__(peer, session, application)
        assert application.lock is not None  # or `requests_class` is used
        self._lock = application.lock
        self._listings: dict[int, dict[str, str]] = {}  # by identity of the options of a list
        self._stale: set[str] = set()  # lists to request, since the server says that they changed
        self._is_comparing = False
        application.requests = self
        rows = session.revision.client_requests.values()
        # Kinds by method.
        self._lists = {row.name: _BY_ITEMS[row.items] for row in rows if row.items in _BY_ITEMS}

    async def send_with(
        self, options: RequestOptions, params: Any, request: partial[Any] | None = None
    ) -> Any:
        lock = self._lock
        if options.facts.listed_by in self._lists:
            await self._check(lock, options, params)
        result = await super().send_with(options, params, request)
        kind = self._lists.get(options.method)
        return result if kind is None else await self._admit(lock, kind, options, result)

    async def _check(self, lock: ServerLock, options: RequestOptions, params: Any) -> None:
        """Refuse a request that names an item which is not admitted.

        Raises:
            LockMismatchError: The item is not admitted.
        """
        lock.refresh()
        kind = self._lists[options.facts.listed_by or ""]
        name = _member(params, KINDS[kind])
        if not lock.is_locked(kind) or not isinstance(name, str):
            return
        if kind in _LISTED_FIRST and not lock.is_compared(kind, name):
            await self._compare(lock, kind, options.timeout)
            if not lock.is_compared(kind, name):
                raise lock.unlisted(kind, name)
        error = lock.refusal(kind, name)
        if error is not None:
            raise error

    async def _admit(
        self, lock: ServerLock, kind: str, options: RequestOptions, result: Any
    ) -> Any:
        """A page of a list without the items that are not admitted."""
        row, is_raw = self.row(options.method), isinstance(result, Raw)
        typed = self._decode_page(row, result) if is_raw else result
        items = _items_of(row, typed)
        wires = [to_builtins(item) for item in items]
        admitted = await lock.admit(kind, wires, self._listings.get(id(options), {}))
        if is_raw:
            pairs = zip(wires, admitted, strict=True)
            texts = {fingerprint(kind, each) for each, is_kept in pairs if is_kept}
            return _filter_page(kind, result, texts) if lock.is_locked(kind) else result
        if all(admitted):
            return result
        kept = [item for item, is_kept in zip(items, admitted, strict=True) if is_kept]
        return replace(result, **{str(row.items): kept})

    def _decode_page(self, row: Method, raw: Raw) -> Any:
        try:
            return self.connection.state.result_decoder(row)(raw)
        except UNREADABLE as error:
            text = f"{row.name}: can't be compared with the lock: {safe_text(str(error))}"
            raise RemoteProtocolError(text) from None

    async def _all_pages(
        self, row: Method, options: RequestOptions, fields: Mapping[str, Any]
    ) -> list[Any]:
        lock, kind = self._lock, self._lists.get(row.name)
        if kind is None:
            return await super()._all_pages(row, options, fields)
        listing = self._listings[id(options)] = {}
        try:
            items = await super()._all_pages(row, options, fields)
        finally:
            del self._listings[id(options)]
        if not options.from_cache:
            lock.report_removed(kind, listing)
        key = {"uri": "uri", "uriTemplate": "uri_template"}.get(KINDS[kind], "name")
        return [item for item in items if lock.refusal(kind, getattr(item, key)) is None]

    async def _compare(self, lock: ServerLock, kind: str, timeout: float | None) -> None:
        """Request a whole list, without the cache, and compare it with the lock."""
        listing: dict[str, str] = {}
        items = await self._whole_list(kind, timeout)
        await lock.admit(kind, [to_builtins(item) for item in items], listing)
        lock.report_removed(kind, listing)

    async def _whole_list(self, kind: str, timeout: float | None) -> list[Any]:
        """The items of all pages as the server sends them, within limits and one deadline."""
        row = self.row(next(method for method, each in self._lists.items() if each == kind))
        options = self._options(row.name, None, timeout)
        send, revision = super().send_with, self.session.revision.name

        async def request(cursor: str | None) -> tuple[Sequence[Any], str | None]:
            result = await send(options, typed_params(row, {"cursor": cursor}, revision))
            return _items_of(row, result), getattr(result, "next_cursor", None)

        items: list[Any] = []
        bounds = {"pages": self._limits.list_pages, "items": self._limits.list_items}
        with anyio.move_on_after(self.timeouts.listing):
            async for page in pages_of(request, row.name, **bounds):
                items += page
            return items
        raise RequestTimeoutError(f"{row.name}, all pages", self.timeouts.listing)

    async def surface(self) -> Surface:
        """The items of the server as it lists them now; a list that the server lacks is empty.

        Raises:
            McpError: The server does not answer a list request.
        """
        lists: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in KINDS}
        for method, kind in self._lists.items():
            if not is_declared(self.session.peer_capabilities, self.row(method).capability):
                continue
            try:
                items = await self._whole_list(kind, None)
            except RemoteError:
                if kind != "resourceTemplates":  # many servers with resources lack these
                    raise
                items = []
            lists[kind] = [to_builtins(item) for item in items]
        return surface_of(lists, self.session.instructions or "")

    def compare_soon(self, methods: Collection[str]) -> None:
        """Request lists that have changed, in a task of the session, if they were in use."""
        lock = self._lock
        self._stale |= {kind for kind in self.kinds_of(methods) if lock.has_listed(kind)}
        if self._stale and not self._is_comparing:
            self._is_comparing = True
            with suppress(ConnectionClosedError):
                self.peer.start_soon(partial(self._compare_stale, lock))

    async def _compare_stale(self, lock: ServerLock) -> None:
        try:
            while self._stale:
                kind = self._stale.pop()
                try:
                    await self._compare(lock, kind, None)
                except McpError as error:  # the next list or call raises it
                    _logger.warning("%s: not compared with the lock: %s", kind, error)
                except Exception:
                    _logger.exception("%s: not compared with the lock: on_change failed", kind)
        finally:
            self._is_comparing = False

    def kinds_of(self, methods: Collection[str] | None) -> Collection[str]:
        """The lists that some methods request; all for `None`."""
        if methods is None:
            return KINDS
        return {self._lists[each] for each in methods if each in self._lists}


def _items_of(row: Method, result: Any) -> Sequence[Any]:
    """The items of a page.

    Raises:
        RemoteProtocolError: The result is no page.
    """
    items: Sequence[Any] | None = getattr(result, str(row.items), None)
    if items is None:
        expected = f"{row.name}: expected a page with {row.items}"
        raise RemoteProtocolError(f"{expected}, got {type(result).__name__}")
    return items


def _member(params: Any, name: str) -> object:
    """A member of params: of a Struct, a wire object or raw JSON."""
    if isinstance(params, Raw):
        params = msgspec.json.decode(params)
    return params.get(name) if is_object(params) else getattr(params, name, None)


def _filter_page(kind: str, raw: Raw, texts: Collection[str]) -> Raw:
    """A page as raw JSON with the items that have one of some fingerprints."""
    page: Any = msgspec.json.decode(raw)
    items: Sequence[Any] = page[kind]
    kept = [each for each in items if is_object(each) and fingerprint(kind, each) in texts]
    if len(kept) == len(items):
        return raw
    return Raw(msgspec.json.encode({**page, kind: kept}))


class LockedApplication(ClientApplication):
    """The application of a client that may have a lock.

    Attributes:
        lock: The lock; `None` for a client without one.
        requests: The request pipeline of the session; `None` before the session is open.
        locked_requests_class: The class of the pipeline with a lock; `chosen` sets it.
    """

    locked_requests_class: ClassVar[Any]

    def __init__(
        self, handlers: Handlers | None, identity: Identity, settings: ClientSettings | None = None
    ) -> None:
        super().__init__(handlers, identity, settings)
        self.lock = _lock_of(self.settings)
        self.requests: LockedRequests | None = None
        if self.lock is not None:
            self.server_state.on_stale.append(self._forget)

    def new_requests(self, peer: Peer, session: Session) -> Any:
        kind = self.requests_class if self.lock is None else self.locked_requests_class
        return kind(peer, session, self)

    async def session_opened(self, peer: Peer) -> None:
        """Compare the server with the lock, or record it.

        Raises:
            LockError: The lock does not have the server, or can't be used.
        """
        await super().session_opened(peer)
        session = peer.session
        if self.lock is None or session is None:
            return
        requests = self.new_requests(peer, session)
        await self.lock.open(session.revision.name, requests.surface)
        session.instructions = await self.lock.admit_instructions(session.instructions)

    async def notified(self, context: RequestContext) -> None:
        await super().notified(context)
        if self.requests is not None:
            self.requests.compare_soon(context.method.facts.invalidates)

    def _forget(self, methods: Collection[str] | None, uri: str | None) -> None:
        if self.lock is not None and self.requests is not None:
            self.lock.forget(self.requests.kinds_of(methods))


class LockedCalls:
    """The member of clients for the differences between servers and their lock."""

    def _pipelines(self) -> Iterable[RequestPipeline]:
        """The request pipeline of each session that is open."""
        raise NotImplementedError

    @property
    def lock_differences(self) -> tuple[LockDifference, ...]:
        """The latest differences between the server and the lock, 1,000 at most.

        Items that were removed are among them, and items that differ from an earlier list of the
        session, even if they were admitted.
        """
        applications = [each.application for each in self._pipelines()]
        locks = [each.lock for each in applications if isinstance(each, LockedApplication)]
        return tuple(each for lock in locks if lock is not None for each in lock.differences)
