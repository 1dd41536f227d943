"""The lock of a client: servers show what was accepted before, or the client refuses it.

The lists of a server are compared with a file when a page of a list arrives; what differs is left
out of the page. A call of a tool, a prompt or a listed resource needs an item that was listed in
this session since the last notification of a change, and that is admitted; the list is requested
before the call if it was not yet. Instructions are compared when the session opens.

       list page --> compare --> same: admitted
                        |------> new, changed, inconsistent --> `on_change` --> admitted or left out
       call --> admitted: sent | left out: LockMismatchError | not listed yet: list, then as before

`lock_file` has the form of the file.

Source: server/tools#security-considerations, basic/index (untrusted descriptions).
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeGuard
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio import to_thread
from msgspec import Raw

from .._wire import UNREADABLE, is_object, replace, to_builtins
from ..errors import (
    ConnectionClosedError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
)
from ..facts import Method
from ..foreign_text import safe_repr, safe_text
from ..protocol.lifecycle import Session, is_declared
from ..runtime.pages import pages_of
from ..runtime.peer import Peer
from ..runtime.request_context import RequestContext
from ..runtime.stubs import typed_params
from .application import ClientApplication, Handlers, in_thread
from .client_settings import ClientSettings, Identity
from .lock_file import (
    KINDS,
    Entry,
    LockError,
    Servers,
    Surface,
    Surfaces,
    canonical,
    changed_pointers,
    entry_of,
    read_lock,
    stable_text,
    surface_of,
    update_lock,
)
from .pipeline import RequestOptions, RequestPipeline
from .server_state import drop_oldest

MAX_DIFFERENCES = 1000
"""Most differences that a client keeps; the oldest are dropped."""

MAX_ITEM = 16 * 1024
"""Characters of an item as JSON up to which a difference that is kept has the item."""

_BY_ITEMS: Mapping[str | None, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resource_templates": "resourceTemplates",
}
"""The lists that are locked, by the Python name of the items in a result."""

_NOUNS: Mapping[str, ItemKind] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "resource template",
}
_LISTED_FIRST = ("tools", "prompts")
"""Lists that are requested before a call of an item that was not listed yet."""

_logger = logging.getLogger(__name__)

ItemKind: TypeAlias = Literal[
    "tool", "prompt", "resource", "resource template", "instructions", "server"
]
"""The kinds of items of a lock."""

ChangeKind: TypeAlias = Literal["new", "changed", "inconsistent", "removed", "unlisted"]
"""The ways in which a server differs from a lock; `inconsistent` is an item that one list has twice
with different content, `unlisted` a called item that no list has."""

_TEXTS: Mapping[ChangeKind, str] = {
    "new": "is not in the lock",
    "changed": "is not what the lock records",
    "inconsistent": "is listed twice with different content",
    "removed": "is in the lock, and no longer listed",
    "unlisted": "is not listed by the server, so that it can't be compared with the lock",
}


@dataclass(frozen=True)
class LockDifference:
    """A difference between a server and the lock, or between two lists of one session.

    Attributes:
        server: The name of the server in the lock.
        kind: The kind of the item; `server` for a server that the lock does not have.
        name: The name of the item, or its URI; empty for instructions and servers.
        change: The kind of the difference.
        pointers: JSON pointers of the places that differ; empty for an item as a whole.
        old: The item in the lock, as wire object; `None` if the lock lacks the item.
        new: The item of the server, as wire object; `None` if the server lacks the item, in errors
            of calls, and in reports of items with more than `MAX_ITEM` characters.
        since_list: Whether the item differs from an earlier list of the same session.
    """

    server: str
    kind: ItemKind
    name: str
    change: ChangeKind
    pointers: tuple[str, ...] = ()
    old: Entry | None = None
    new: Entry | None = None
    since_list: bool = False

    def __str__(self) -> str:
        item = f"{self.kind} {safe_repr(self.name)}" if self.name else self.kind
        members = dict.fromkeys(pointer.split("/")[1] for pointer in self.pointers)
        where = f" ({', '.join(map(safe_text, members))})" if members else ""
        since = "; it differs from an earlier list of this session" if self.since_list else ""
        server = "" if self.kind == "server" else f"server {safe_repr(self.server)}: "
        return f"{server}{item} {_TEXTS[self.change]}{where}{since}"


class LockMismatchError(LockError):
    """An item of a server is not what the lock records; nothing was sent.

    Models may read the text: it has no text of the server besides the name of the item. The command
    that accepts the difference is a note of the exception, which tracebacks show.

    Attributes:
        difference: The difference.
    """

    def __init__(self, difference: LockDifference, advice: str, more: str = "") -> None:
        super().__init__(f"{difference}{more}", difference.server)
        self.add_note(advice)
        self.difference = difference


OnChange: TypeAlias = Literal["refuse", "warn"] | Callable[[LockDifference], bool | Awaitable[bool]]
"""The treatment of a difference: `refuse`, `warn`, or a function that returns whether to admit the
item for this session. A plain function runs in a thread. It must not use the client."""


class LockOptions(TypedDict, total=False):
    """Options of `connect` for any target.

    Attributes:
        lock: The file with the accepted items of servers, as `mcpgen contract accept` writes it.
            Items that differ from it are left out of lists and can't be called.
        lock_name: The name in the file of a server that no configuration names; by default its URL
            without query, or its command without secrets.
        on_change: `refuse`, the default, leaves out items that differ; `warn` admits changed items
            with a warning in the log, and leaves out new ones; a function decides about both.
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
        from ..command_masking import masked_command  # its patterns take long to compile

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


class ServerLock:
    """The lock of one server, and its comparison with the server's lists.

    Args:
        path: The file.
        server: The name of the server in the file.
        on_change: The treatment of differences.
        records: Whether a server that the file does not have is recorded.
        limit: Most items by list of which the comparison is stored; the oldest are dropped.

    Attributes:
        differences: The differences so far, in the order of their detection.
    """

    def __init__(
        self, path: Path, server: str, on_change: OnChange, records: bool, limit: int
    ) -> None:
        self.differences: deque[LockDifference] = deque(maxlen=MAX_DIFFERENCES)
        self._path = path
        self._server = server
        self._on_change = on_change
        self._records = records
        self._limit = limit
        self._revision = ""
        self._surface = Surface({})
        self._stamp: tuple[int, ...] | None = None
        self._refusals: dict[str, dict[str, LockDifference | None]] = {kind: {} for kind in KINDS}
        self._listed: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        self._reported: dict[str, None] = {}
        self._answers: dict[str, bool] = {}
        self._asking = anyio.Lock()

    async def open(self, revision: str, read_surface: Callable[[], Awaitable[Surface]]) -> None:
        """Read the file for a session, or record the server in it.

        Args:
            revision: The negotiated revision.
            read_surface: Requests the lists of the server.

        Raises:
            LockFileError: The file can't be used.
            LockMismatchError: The file does not have the server, or not in this revision.
            McpError: The server does not answer a list request.
        """
        self._revision = revision
        if self._records and not self._is_recorded():
            surface = await read_surface()

            def add_server(servers: Servers) -> Servers:
                own = {self._server: {revision: surface}}
                return {**own, **servers}  # another process may have been faster

            await to_thread.run_sync(update_lock, self._path, add_server)
        await self._select_revision(read_lock(self._path).get(self._server, {}))
        self.refresh()

    def _is_recorded(self) -> bool:
        return self._path.exists() and self._server in read_lock(self._path)

    async def _select_revision(self, surfaces: Surfaces) -> None:
        """Compare with the newest revision in the file, if another revision is admitted.

        Raises:
            LockMismatchError: The file has the server in other revisions alone, and `on_change`
                does not admit that.
        """
        if surfaces and self._revision not in surfaces:
            more = f": the session has {self._revision}, the lock has {', '.join(surfaces)}"
            difference = LockDifference(self._server, "server", self._server, "changed")
            if not await self._is_admitted(difference, self._revision):
                raise LockMismatchError(difference, self._advice, safe_text(more))
            self._revision = next(iter(surfaces))

    def refresh(self) -> None:
        """Read the file again if it has changed; items are then compared anew.

        Raises:
            LockFileError: The file can't be used.
            LockMismatchError: The file does not have the server in the revision of the session.
        """
        stamp = _stamp(self._path)
        if stamp is not None and stamp == self._stamp:
            return
        surface = read_lock(self._path).get(self._server, {}).get(self._revision)
        if surface is None:
            difference = LockDifference(self._server, "server", self._server, "new")
            self._report(difference, "")
            raise LockMismatchError(difference, self._advice)
        self._surface, self._stamp = surface, stamp
        self.forget(KINDS)

    def forget(self, kinds: Iterable[str]) -> None:
        """Compare the items of some lists anew before they are called."""
        for kind in kinds:
            self._refusals[kind].clear()

    def is_locked(self, kind: str) -> bool:
        """Whether the file has a list."""
        return kind in self._surface.entries

    def is_compared(self, kind: str, name: str) -> bool:
        """Whether an item was listed since the last notification of a change."""
        return name in self._refusals[kind]

    def has_listed(self, kind: str) -> bool:
        """Whether the server has listed any item of a list in this session."""
        return bool(self._listed[kind])

    def refusal(self, kind: str, name: str) -> LockMismatchError | None:
        """The error for an item that was listed and is not admitted; `None` for others."""
        difference = self._refusals[kind].get(name)
        return None if difference is None else LockMismatchError(difference, self._advice)

    def unlisted(self, kind: str, name: str) -> LockMismatchError:
        """The error for an item that the server does not list."""
        difference = LockDifference(
            self._server,
            _NOUNS[kind],
            name,
            "unlisted",
            old=self._surface.entries[kind].get(name),
        )
        self._report(difference, "")
        return LockMismatchError(difference, self._advice)

    async def admit(
        self, kind: str, items: Sequence[Mapping[str, Any]], listing: dict[str, str]
    ) -> list[bool]:
        """Compare a page of a list with the lock.

        Args:
            kind: The list.
            items: The items, as wire objects.
            listing: Fingerprints of items by name, of earlier pages of the same list; is extended.

        Returns:
            For each item, whether it is admitted.

        Raises:
            LockError: The file was changed, and can't be used.
        """
        self.refresh()
        key = KINDS[kind]
        names: list[str] = [item[key] for item in items]
        prints = [_fingerprint(kind, item) for item in items]
        ambiguous: set[str] = set()
        for name, text in zip(names, prints, strict=True):
            if listing.setdefault(name, text) != text:
                ambiguous.add(name)
        admitted: list[bool] = []
        for item, name, text in zip(items, names, prints, strict=True):
            difference = self._difference(kind, item, name, text, name in ambiguous)
            is_admitted = difference is None or await self._is_admitted(difference, text)
            refusals = self._refusals[kind]
            refusals[name] = None if difference is None or is_admitted else _without_new(difference)
            drop_oldest(refusals, self._limit)
            admitted.append(is_admitted)
        return admitted

    def _difference(
        self, kind: str, item: Mapping[str, Any], name: str, text: str, is_ambiguous: bool
    ) -> LockDifference | None:
        """The difference of an item from the lock; one from an earlier list is reported only."""
        before = self._listed[kind].get(name)
        self._listed[kind][name] = text
        drop_oldest(self._listed[kind], self._limit)
        since_list = before is not None and before != text
        entries = self._surface.entries.get(kind)
        old, new = None if entries is None else entries.get(name), entry_of(kind, item)
        change: ChangeKind | None = None
        if is_ambiguous:
            change = "inconsistent"
        elif entries is not None and old is None:
            change = "new"
        elif old is not None and (not text or _fingerprint(kind, old) != text):
            change = "changed"
        pointers = () if old is None else _pointers(kind, old, new)
        difference = LockDifference(
            self._server, _NOUNS[kind], name, change or "changed", pointers, old, new, since_list
        )
        if change is None and since_list:
            self._report(difference, text)
        return None if change is None else difference

    async def _is_admitted(self, difference: LockDifference, text: str) -> bool:
        """Whether an item that differs is admitted; the difference is reported once."""
        self._report(difference, text)
        if not callable(self._on_change):
            return self._on_change == "warn" and difference.change != "new"
        key = canonical([difference.kind, difference.name, difference.change, text])
        async with self._asking:
            if key not in self._answers:
                answer = in_thread(self._on_change)
                self._answers[key] = await answer(difference) is True
                drop_oldest(self._answers, self._limit)
            return self._answers[key]

    async def admit_instructions(self, instructions: str | None) -> str | None:
        """The instructions of a server, if they are those in the lock or are admitted."""
        old, new = self._surface.instructions, instructions or ""
        if old == new:
            return instructions
        difference = LockDifference(
            self._server,
            "instructions",
            "",
            "changed" if old else "new",
            old={"instructions": old} if old else None,
            new={"instructions": new},
        )
        return instructions if await self._is_admitted(difference, _hash(new)) else None

    def report_removed(self, kind: str, listing: Collection[str]) -> None:
        """Report the items of the lock that a whole list does not have."""
        for name, old in self._surface.entries.get(kind, {}).items():
            if name not in listing:
                noun = _NOUNS[kind]
                self._report(LockDifference(self._server, noun, name, "removed", old=old), "")

    def _report(self, difference: LockDifference, text: str) -> None:
        """Log a difference and keep it, unless that was done for the same content."""
        item = [difference.kind, difference.name]
        key = canonical([*item, difference.change, difference.since_list, text])
        if key in self._reported:
            return
        self._reported[key] = None
        drop_oldest(self._reported, self._limit)
        is_small = difference.new is None or _size(difference.new) <= MAX_ITEM
        self.differences.append(difference if is_small else _without_new(difference))
        _logger.warning("%s; %s", difference, self._advice)

    @property
    def _advice(self) -> str:
        """The command that accepts a difference."""
        words = ("--lock", str(self._path), "--server", safe_text(self._server))
        command = " ".join(("mcpgen contract accept TARGET", *map(shlex.quote, words)))
        return f"to review and accept it: {command}"


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Values that differ when a file was written again; `None` if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _fingerprint(kind: str, item: Mapping[str, Any]) -> str:
    """The hash by which items are compared; empty if an item is nested too deeply for that."""
    try:
        return _hash(stable_text(kind, entry_of(kind, item)))
    except RecursionError:
        return ""


def _size(entry: Entry) -> int:
    try:
        return len(canonical(entry))
    except RecursionError:
        return MAX_ITEM + 1


def _without_new(difference: LockDifference) -> LockDifference:
    return replace_fields(difference, new=None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _pointers(kind: str, old: Entry, new: Entry) -> tuple[str, ...]:
    try:
        return changed_pointers(kind, old, new)
    except RecursionError:
        return ()


class LockedRequests(RequestPipeline):
    """Compares lists with the lock, and sends calls of admitted items only."""

    def __init__(self, peer: Peer, session: Session, application: LockedApplication) -> None:
        super().__init__(peer, session, application)
        self._lock = application.lock
        self._listings: dict[int, dict[str, str]] = {}  # by identity of the options of a list
        self._stale: set[str] = set()  # lists to request, since the server says that they changed
        self._is_comparing = False
        self._lists: dict[str, str] = {}  # kinds by method
        if self._lock is not None:
            application.requests = self
            rows = session.revision.client_requests.values()
            self._lists = {row.name: _BY_ITEMS[row.items] for row in rows if row.items in _BY_ITEMS}

    async def send_with(
        self, options: RequestOptions, params: Any, request: partial[Any] | None = None
    ) -> Any:
        lock = self._lock
        if lock is None:
            return await super().send_with(options, params, request)
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
            texts = {_fingerprint(kind, each) for each, is_kept in pairs if is_kept}
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
        if lock is None or kind is None:
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
        if lock is None:
            return
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
    kept = [each for each in items if is_object(each) and _fingerprint(kind, each) in texts]
    if len(kept) == len(items):
        return raw
    return Raw(msgspec.json.encode({**page, kind: kept}))


class LockedApplication(ClientApplication):
    """The application of a client that may have a lock.

    Attributes:
        lock: The lock; `None` for a client without one.
        requests: The request pipeline of the session; `None` before the session is open.
    """

    def __init__(
        self, handlers: Handlers | None, identity: Identity, settings: ClientSettings | None = None
    ) -> None:
        super().__init__(handlers, identity, settings)
        self.lock = _lock_of(self.settings)
        self.requests: LockedRequests | None = None
        if self.lock is not None:
            self.server_state.on_stale.append(self._forget)

    async def session_opened(self, peer: Peer) -> None:
        """Compare the server with the lock, or record it.

        Raises:
            LockError: The lock does not have the server, or can't be used.
        """
        await super().session_opened(peer)
        session = peer.session
        if self.lock is None or session is None:
            return
        requests: LockedRequests = self.requests_class(peer, session, self)
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
