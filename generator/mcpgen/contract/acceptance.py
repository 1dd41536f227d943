"""Records what a server shows in the lock of clients, after showing the difference.

The lock is read and written by the generated package that asks the server, so that its form is in
one place: `client/lock/lock_file.py` of packages with the feature `lock`.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from mcpgen import __version__
from mcpgen.contract import command
from mcpgen.contract.compare import Change, compare
from mcpgen.contract.document import Contract
from mcpgen.errors import MirrorError, UsageError, safe_text
from mcpgen.json_types import Json
from mcpgen.project import live_server
from mcpgen.project.live_server import Surface, Target
from mcpgen.project.server_lists import KINDS, WORDS, parse
from mcpgen.schema.structure import resolve

INSTRUCTIONS = "instructions"
_REVISIONS = "revisions"
_WORDS: Mapping[str, str] = {**WORDS, INSTRUCTIONS: INSTRUCTIONS, _REVISIONS: "revision"}

_SHORTEST_SECRET = 8
_LONGEST = 2000
"""Most characters of a value that is shown."""

Surfaces: TypeAlias = Mapping[str, Any]
"""The surfaces of a server by revision, newest first, as `lock_file` of the package has them."""


@dataclass(frozen=True)
class Item:
    """An item of a server that differs from the lock.

    Attributes:
        kind: Its list; `instructions` for the instructions, `revisions` for a revision.
        name: Its name, or its URI; empty for the instructions.
        places: Pointer, old and new value of each place that differs, in the newest revision with
            a difference; `None` for a value that is not there.
    """

    kind: str
    name: str
    places: tuple[tuple[str, Json, Json], ...]

    @property
    def words(self) -> str:
        """The item as it is named on a command line, such as `tool add`."""
        return f"{_WORDS[self.kind]} {self.name}".rstrip()

    def lines(self) -> Iterator[str]:
        """The item and its places for a terminal: values as JSON in ASCII."""
        yield f"{safe_text(self.words, _LONGEST)}:"
        for pointer, old, new in self.places:
            if pointer:
                yield f"  {safe_text(pointer, _LONGEST)}"
            for sign, value in (("-", old), ("+", new)):
                if value is not None:
                    yield f"  {sign} {_short_json(value)}"


def _short_json(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Review:
    """A server and its lock.

    Attributes:
        server: The name of the server in the lock.
        items: The items that differ.
        changes: The same as changes of a contract, gravest first.
    """

    server: str
    items: tuple[Item, ...]
    changes: tuple[Change, ...]

    def select(self, names: Sequence[str]) -> tuple[Item, ...]:
        """The items of some names, each with or without the kind before it.

        Raises:
            UsageError: No item has the name, or several have it.
        """
        return tuple(self._item(name) for name in names)

    def _item(self, name: str) -> Item:
        exact = [item for item in self.items if item.words == name]
        alike = exact or [item for item in self.items if item.name and item.name == name]
        if len(alike) == 1:
            return alike[0]
        among = alike or self.items
        differing = (
            ", ".join(safe_text(repr(item.words)) for item in among) or "none: all are alike"
        )
        raise UsageError(f"expected an item that differs ({differing}), got {safe_text(name)!r}")


def accept(
    words: str,
    directory: Path,
    lock: Path,
    server: str,
    names: Sequence[str] | None,
    revisions: Sequence[str] = (),
) -> tuple[Review, tuple[Item, ...]]:
    """Record items of a running server in a lock.

    Args:
        words: The server, as a user names it.
        directory: The working directory of a command.
        lock: The file.
        server: The name of the server in the file; if it is empty, the name in its configuration,
            its URL or its command.
        names: The items to record, as `Review.select` takes them; `None` for all.
        revisions: The revisions to ask for; all if there are none.

    Returns:
        The server and its lock before, and the items that were recorded.

    Raises:
        UsageError: The words name no server, a revision is unknown, an item does not differ, or the
            server repeats a secret.
        MirrorError: The server does not answer as it should, or the lock can't be read or written.
    """
    target = live_server.target(words, directory)
    with live_server.import_package(command.peer_files("lock")) as package:
        file: Any = importlib.import_module(f"{package.__name__}.client.lock.lock_file")
        naming: Any = importlib.import_module(f"{package.__name__}.client.lock.locked_requests")
        name = server or target.name or naming.server_name(target.address)
        try:
            before: Surfaces = file.read_lock(lock).get(name, {}) if lock.exists() else {}
            shown = _surfaces(package, file, target, command.known_revisions(package, revisions))
            _check_secrets(file.lock_text({name: shown}), target)
            review = _review(file, name, before, shown)
            chosen = review.items if names is None else review.select(names)
            if chosen or names is None:
                is_whole = names is None

                def change(servers: Mapping[str, Surfaces]) -> Mapping[str, Surfaces]:
                    now = servers.get(name, {})  # another process may have changed it
                    own = shown if is_whole else _merge(file, now, shown, chosen)
                    return {**servers, name: own}

                file.update_lock(lock, change)
        except file.LockError as error:
            raise MirrorError(
                str(lock), "", "a lock that can be used", safe_text(str(error))
            ) from error
        return review, chosen


def _surfaces(package: Any, file: Any, server: Target, revisions: Sequence[str]) -> Surfaces:
    """The surfaces of a running server, newest first, recorded as a client does."""
    import anyio  # only to talk to servers

    shown: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="mcpgen-") as folder:
        for revision in reversed(revisions):
            path = Path(folder, f"{revision}.json")
            try:
                anyio.run(_record, package, server, revision, path)
            except package.RevisionError:
                continue
            except (package.McpError, OSError) as error:
                text = safe_text(" ".join(str(error).split()), 500)
                raise MirrorError(server.shown, "", "a server that answers", text) from error
            shown |= file.read_lock(path)["server"]
    if not shown:
        expected = f"a server of {', '.join(revisions)}"
        raise MirrorError(server.shown, "", expected, "one of other revisions")
    return shown


async def _record(package: Any, server: Target, revision: str, path: Path) -> None:
    opening = package.connect(
        server.address,
        revision=revision,
        name="mcpgen",
        version=__version__,
        timeouts=package.Timeouts(opening=live_server.SECONDS),
        lock=path,
        lock_name="server",
        on_new_server="record",
        **server.options,
    )
    async with opening:
        pass


def _check_secrets(text: str, server: Target) -> None:
    """Refuse to record the value of an environment variable or a header field."""
    for option in ("env", "headers"):
        for name, value in server.options.get(option, {}).items():
            if len(value) >= _SHORTEST_SECRET and json.dumps(value)[1:-1] in text:
                raise UsageError(
                    f"{server.shown}: expected lists without secrets, got the value of "
                    f"{safe_text(name)} of {option} in an item, which the lock would show"
                )


def _base(file: Any, before: Surfaces, revision: str) -> Any:
    """The surface to compare with: that of the revision, else of the newest one in the lock."""
    if revision in before:
        return before[revision]
    return next(iter(before.values()), file.Surface({kind: {} for kind in KINDS}))


def _review(file: Any, server: str, before: Surfaces, shown: Surfaces) -> Review:
    items: dict[tuple[str, str], Item] = {}
    for revision, surface in shown.items():
        old = _base(file, before, revision)
        if before and revision not in before:
            items[_REVISIONS, revision] = Item(_REVISIONS, revision, ())
        for kind in old.entries:
            for name in sorted(old.entries[kind].keys() | surface.entries[kind].keys()):
                one, other = old.entries[kind].get(name), surface.entries[kind].get(name)
                places = tuple(_places(file, kind, one, other))
                if places:
                    items.setdefault((kind, name), Item(kind, name, places))
        if old.instructions != surface.instructions:
            places = (("", old.instructions or None, surface.instructions or None),)
            items.setdefault((INSTRUCTIONS, ""), Item(INSTRUCTIONS, "", places))
    olds = {revision: _base(file, before, revision) for revision in shown}
    changes = compare(_contract(server, olds), _contract(server, shown))
    return Review(server, tuple(items.values()), tuple(changes))


def _places(file: Any, kind: str, old: Any, new: Any) -> Iterator[tuple[str, Json, Json]]:
    if old is None or new is None:
        yield "", old, new
    else:
        for pointer in file.changed_pointers(kind, old, new):
            yield pointer, _at(old, pointer), _at(new, pointer)


def _at(entry: Any, pointer: str) -> Json:
    try:
        return resolve(entry, pointer)
    except LookupError:
        return None


def _contract(server: str, surfaces: Surfaces) -> Contract:
    """The surfaces as a contract, without lists that are not locked."""
    return Contract(
        server,
        tuple(
            Surface(
                revision,
                server,
                {},
                parse(
                    {
                        "tools": [],
                        INSTRUCTIONS: each.instructions,
                        **{kind: [*each.entries[kind].values()] for kind in each.entries},
                    },
                    server,
                ),
            )
            for revision, each in surfaces.items()
        ),
    )


def _merge(file: Any, before: Surfaces, shown: Surfaces, chosen: Iterable[Item]) -> Surfaces:
    """The surfaces of a lock with some items as the server shows them now."""
    merged: dict[str, Any] = {}
    items = {(item.kind, item.name) for item in chosen}
    for revision, surface in shown.items():
        if before and revision not in before and (_REVISIONS, revision) not in items:
            continue
        base = _base(file, before, revision)
        entries: dict[str, dict[str, Any]] = {kind: {**base.entries[kind]} for kind in base.entries}
        for kind, name in items:
            if kind not in entries:
                continue
            if name in surface.entries[kind]:
                entries[kind][name] = surface.entries[kind][name]
            else:
                entries[kind].pop(name, None)
        is_accepted = (INSTRUCTIONS, "") in items
        instructions = surface.instructions if is_accepted else base.instructions
        merged[revision] = file.Surface(entries, instructions)
    return {**merged, **{each: before[each] for each in before if each not in merged}}


def record(review: Review, chosen: Iterable[Item]) -> dict[str, Any]:
    """A review as JSON."""
    return {
        "server": review.server,
        "accepted": [item.words for item in chosen],
        "items": [
            {
                "item": item.words,
                "places": [
                    {"pointer": pointer, "old": old, "new": new}
                    for pointer, old, new in item.places
                ],
            }
            for item in review.items
        ],
    }
