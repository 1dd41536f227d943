"""The comparison of a server with its lock: differences, what becomes of them, and reports."""

from __future__ import annotations

import hashlib
import logging
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from anyio import to_thread

from ...foreign_text import safe_repr, safe_text
from ..application import in_thread
from ..server_state import drop_oldest
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
    update_lock,
)

MAX_DIFFERENCES = 1000
"""Most differences that a client keeps; the oldest are dropped."""

MAX_ITEM = 16 * 1024
"""Characters of an item as JSON up to which a difference that is kept has the item."""

_NOUNS: Mapping[str, ItemKind] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "resource template",
}

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
    """An item of a server differs from the lock; nothing was sent.

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
        prints = [fingerprint(kind, item) for item in items]
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
        elif old is not None and (not text or fingerprint(kind, old) != text):
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


def fingerprint(kind: str, item: Mapping[str, Any]) -> str:
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
    return replace(difference, new=None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _pointers(kind: str, old: Entry, new: Entry) -> tuple[str, ...]:
    try:
        return changed_pointers(kind, old, new)
    except RecursionError:
        return ()
