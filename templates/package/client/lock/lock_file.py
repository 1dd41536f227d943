"""The file of a client's lock: the tools, prompts, resources and instructions that were accepted.

    {
      "lock": 1,
      "servers": {
        "weather": {
          "revisions": ["<newest>", "<older>"],
          "instructions": "",
          "tools": {"forecast": {"digest": "sha256:...", "name": "forecast", ...}},
          "prompts": {}, "resources": {}, "resourceTemplates": {},
          "earlier": {"<older>": {"tools": {"forecast": {...}}}}
        }
      }
    }

A server has the form of `mcpgen contract`: the newest revision as a whole, of older ones the items
that differ, `null` for an item that they lack. A list that is absent is not locked. Items have the
members that the specification defines, by name; order, cursors and cache hints are not in the file.
Items are compared as a whole. A digest tells that an item was changed by hand.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..._wire import is_many, is_object
from ...errors import McpError, MissingExtraError
from ...foreign_text import safe_repr, safe_text

FORMAT = 1
"""Version of the file's form."""

MAX_BYTES = 64 * 1024 * 1024
"""Largest file that is read."""

WRITE_SECONDS = 10.0
"""Seconds to wait for another process that writes the file."""

SHOWN_POINTERS = 20
"""Most pointers of a difference."""

_COMPARED = 4 * 1024 * 1024  # characters up to which two items are compared place by place
_LONGEST_MEMBER = 1000  # characters of a member's name in a pointer; else its object is named

KINDS: Mapping[str, str] = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
}
"""The lists of a server, by the member of the result; the member that identifies an item."""

Entry: TypeAlias = Mapping[str, Any]
"""An item of a list, as wire object with the members of `_SHAPES`."""

_Shape: TypeAlias = "Mapping[str, _Shape | None]"
"""Members of an object; of one with a shape, or of the objects in an array, some members."""

_ICON: _Shape = dict.fromkeys(("mimeType", "sizes", "src", "theme"))
_COMMON: _Shape = {"title": None, "description": None, "icons": _ICON, "_meta": None}
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_OF_RESOURCES: _Shape = {
    **_COMMON,
    "name": None,
    "mimeType": None,
    "annotations": dict.fromkeys(("audience", "priority", "lastModified")),
}
_SHAPES: Mapping[str, _Shape] = {
    "tools": {
        **_COMMON,
        "name": None,
        "inputSchema": None,
        "outputSchema": None,
        "annotations": dict.fromkeys(("title", *_HINTS)),
        "execution": {"taskSupport": None},
    },
    "prompts": {
        **_COMMON,
        "name": None,
        "arguments": dict.fromkeys(("name", "title", "description", "required")),
    },
    "resources": {**_OF_RESOURCES, "uri": None, "size": None},
    "resourceTemplates": {**_OF_RESOURCES, "uriTemplate": None},
}
"""The members of items by list."""

_VARYING: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "resources": (("size",), ("annotations", "lastModified")),
    "resourceTemplates": (("annotations", "lastModified"),),
}
"""By list: the members that describe the contents of a resource, and change with these."""


class LockError(McpError):
    """A server differs from its lock, or the lock can't be used.

    Attributes:
        server: The name of the server in the lock; empty if the file as a whole can't be used.
    """

    def __init__(self, text: str, server: str = "") -> None:
        super().__init__(text)
        self.server = server


class LockFileError(LockError):
    """The file of a lock is absent, malformed, or was changed by hand.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


@dataclass(frozen=True)
class Surface:
    """The items of a server in one revision.

    Attributes:
        entries: By list: the items by name. A list that is absent is not locked.
        instructions: The server's instructions; empty if there are none.
    """

    entries: Mapping[str, Mapping[str, Entry]]
    instructions: str = ""


Surfaces: TypeAlias = Mapping[str, Surface]
"""The items of a server by revision, newest first."""

Servers: TypeAlias = Mapping[str, Surfaces]
"""The content of the file: servers by name."""


def entry_of(kind: str, item: Mapping[str, Any]) -> Entry:
    """An item of a list with the members that the specification defines."""
    return _kept_members(item, _SHAPES[kind])


def _kept_members(item: Mapping[str, Any], shape: _Shape) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in shape.items():
        value = item.get(name)
        if inner is not None and is_object(value):
            value = _kept_members(value, inner)
        elif inner is not None and is_many(value):
            value = [_kept_members(each, inner) for each in value if is_object(each)]
        if value is not None:
            kept[name] = value
    return kept


def canonical(value: object) -> str:
    """A JSON value as text: the same for equal values, whatever the order of members.

    Raises:
        RecursionError: The value is nested too deeply.
    """
    return json.dumps(_normalize(value), sort_keys=True, ensure_ascii=True)


def _normalize(value: object) -> object:
    """A JSON value with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_many(value):
        return [_normalize(each) for each in value]
    if is_object(value):
        return {key: _normalize(each) for key, each in value.items()}
    return value


def digest(entry: Entry) -> str:
    """The digest of an item, as in a file of `mcpgen contract`."""
    return f"sha256:{hashlib.sha256(canonical(entry).encode()).hexdigest()[:24]}"


def stable_text(kind: str, entry: Entry) -> str:
    """The text by which items are compared: canonical, without `_VARYING` members.

    Raises:
        RecursionError: The item is nested too deeply.
    """
    return canonical(_stable_part(kind, entry))


def _stable_part(kind: str, entry: Entry) -> Entry:
    stable = dict(entry)
    for name, *inner in _VARYING.get(kind, ()):
        if not inner:
            stable.pop(name, None)
        elif is_object(stable.get(name)):
            stable[name] = {key: value for key, value in stable[name].items() if key not in inner}
            if not stable[name]:
                del stable[name]
    return stable


def changed_pointers(kind: str, old: Entry, new: Entry) -> tuple[str, ...]:
    """JSON pointers of the places where two items differ, `SHOWN_POINTERS` at most, sorted.

    Raises:
        RecursionError: A value is nested too deeply.
    """
    pointers: list[str] = []
    left = _COMPARED
    pairs: list[tuple[str, Any, Any]] = [("", _stable_part(kind, old), _stable_part(kind, new))]
    while pairs and len(pointers) < SHOWN_POINTERS:
        pointer, before, after = pairs.pop()
        texts = canonical(before), canonical(after)
        if texts[0] == texts[1]:
            continue
        left -= sum(map(len, texts))
        if left < 0:
            pointers.append(pointer)
        elif is_object(before) and is_object(after):
            names = sorted(before.keys() | after.keys(), reverse=True)
            for name in names:
                place = f"{pointer}/{_escape(name)}"
                if len(name) > _LONGEST_MEMBER:
                    if canonical(before.get(name)) != canonical(after.get(name)):
                        pointers.append(pointer)
                elif (name in before) != (name in after):
                    pointers.append(place)
                else:
                    pairs.append((place, before[name], after[name]))
        elif is_many(before) and is_many(after) and len(before) == len(after):
            pairs += [
                (f"{pointer}/{place}", one, other)
                for place, (one, other) in enumerate(zip(before, after, strict=True))
            ]
        else:
            pointers.append(pointer)
    return tuple(sorted({*pointers})[:SHOWN_POINTERS])


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def read_lock(path: Path) -> Servers:
    """The servers in a file.

    Raises:
        LockFileError: There is no such file, it is none of this form, or an item was changed by
            hand.
    """
    try:
        if not path.exists():
            raise LockFileError(
                path, "expected the file of a lock, got none: mcpgen contract accept writes it"
            )
        if not path.is_file():
            raise LockFileError(path, "expected a regular file, got another kind")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LockFileError(path, f"can't be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise LockFileError(path, f"expected at most {MAX_BYTES} bytes, got more")
    return _Reader(path).servers(data)


@dataclass(frozen=True)
class _Reader:
    """Reads the text of a lock.

    Attributes:
        path: The file, for errors.
    """

    path: Path

    def servers(self, data: bytes) -> Servers:
        try:
            document: object = json.loads(
                data.decode(), object_pairs_hook=self._members, parse_constant=self._refuse_constant
            )
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
            text = f"expected JSON, got a file that can't be read: {safe_text(str(error))}"
            raise LockFileError(self.path, text) from error
        if not is_object(document) or document.get("lock") != FORMAT:
            version = safe_repr(document.get("lock")) if is_object(document) else "no object"
            raise self._error("/lock", str(FORMAT), version)
        servers = self._object(document.get("servers"), "/servers")
        return {
            name: self._surfaces(self._object(server, f"/servers/{_escape(name)}"), name)
            for name, server in servers.items()
        }

    def _members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            raise ValueError("an object has a member twice")
        return members

    def _refuse_constant(self, name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    def _surfaces(self, server: Mapping[str, Any], name: str) -> Surfaces:
        place = f"/servers/{_escape(name)}"
        revisions = server.get("revisions")
        if not is_many(revisions) or not all(isinstance(each, str) for each in revisions):
            raise self._error(f"{place}/revisions", "an array of strings", safe_repr(revisions))
        earlier = self._object(server.get("earlier", {}), f"{place}/earlier")
        surfaces: dict[str, Surface] = {}
        for revision in revisions:
            own = f"{place}/earlier/{_escape(revision)}"
            changes = self._object(earlier.get(revision, {}), own)
            entries = {
                kind: self._entries(server[kind], f"{place}/{kind}")
                | self._entries(changes.get(kind, {}), f"{own}/{kind}")
                for kind in KINDS
                if kind in server
            }
            instructions = changes.get("instructions", server.get("instructions", ""))
            if not isinstance(instructions, str):
                raise self._error(f"{place}/instructions", "a string", safe_repr(instructions))
            surfaces[revision] = Surface(
                {
                    kind: {name: entry for name, entry in listed.items() if entry is not None}
                    for kind, listed in entries.items()
                },
                instructions,
            )
        return surfaces

    def _entries(self, listed: object, place: str) -> dict[str, Entry | None]:
        entries: dict[str, Entry | None] = {}
        for name, value in self._object(listed, place).items():
            pointer = f"{place}/{_escape(name)}"
            entry = None
            if value is not None:
                entry = dict(self._object(value, pointer))
                recorded = entry.pop("digest", None)
                try:
                    own = digest(entry)
                except RecursionError:
                    own = ""
                if recorded != own:
                    raise LockFileError(
                        self.path,
                        f"{safe_text(pointer)}: was changed by hand: expected the digest {own}, "
                        f"got {safe_repr(recorded)}; mcpgen contract accept records items",
                    )
            entries[name] = entry
        return entries

    def _object(self, value: object, pointer: str) -> Mapping[str, Any]:
        if not is_object(value):
            raise self._error(pointer, "an object", safe_repr(value))
        return value

    def _error(self, pointer: str, expected: str, actual: str) -> LockFileError:
        return LockFileError(self.path, f"{safe_text(pointer)}: expected {expected}, got {actual}")


def lock_text(servers: Servers) -> str:
    """The text of a file. Characters beyond ASCII are escaped, so that none is invisible.

    Raises:
        RecursionError: An item is nested too deeply.
    """
    document = {
        "lock": FORMAT,
        "servers": {name: _server_document(surfaces) for name, surfaces in servers.items()},
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _server_document(surfaces: Surfaces) -> dict[str, Any]:
    documents = {revision: _surface_document(each) for revision, each in surfaces.items()}
    newest, *older = documents
    whole = documents[newest]
    earlier: dict[str, Any] = {}
    for revision in older:
        differing = _difference(whole, documents[revision])
        if differing:
            earlier[revision] = differing
    return {
        "revisions": list(documents),
        **whole,
        **({"earlier": earlier} if earlier else {}),
    }


def _surface_document(surface: Surface) -> dict[str, Any]:
    lists = {
        kind: {name: {**entry, "digest": digest(entry)} for name, entry in entries.items()}
        for kind, entries in surface.entries.items()
    }
    return {**lists, "instructions": surface.instructions}


def _difference(whole: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an older revision that differ from the newest; `null` for absent items."""
    differing: dict[str, Any] = {}
    for kind in whole.keys() & KINDS.keys():
        changed = {
            name: other[kind].get(name)
            for name in whole[kind].keys() | other[kind].keys()
            if _digest_in(whole[kind], name) != _digest_in(other[kind], name)
        }
        if changed:
            differing[kind] = changed
    if whole["instructions"] != other["instructions"]:
        differing["instructions"] = other["instructions"]
    return differing


def _digest_in(entries: Mapping[str, Any], name: str) -> str | None:
    return entries[name]["digest"] if name in entries else None


def update_lock(path: Path, change: Callable[[Servers], Servers]) -> Servers:
    """Change a file, or write a new one: as a whole or not at all, one process at a time.

    A link is followed. Needs filelock.

    Args:
        path: The file.
        change: Returns the new content for the present one; there is none in a new file.

    Returns:
        The new content.

    Raises:
        LockFileError: The file can't be read or written, or another process holds it for too long.
        MissingExtraError: filelock is not installed.
    """
    try:
        import filelock
    except ImportError:
        raise MissingExtraError("writing a lock", "filelock") from None
    target = path.resolve()
    guard = target.with_name(f".{target.name}.guard")
    mutex = filelock.FileLock(guard, timeout=WRITE_SECONDS)
    try:
        with mutex:
            servers = change(read_lock(target) if target.exists() else {})
            _replace_file(target, lock_text(servers))
            with suppress(OSError):  # Windows removes it itself
                guard.unlink()
    except filelock.Timeout as error:
        text = f"another process writes it for more than {WRITE_SECONDS:g} s"
        raise LockFileError(path, text) from error
    except OSError as error:
        raise LockFileError(path, f"can't be written: {error.strerror}") from error
    except RecursionError as error:
        raise LockFileError(path, "an item is nested too deeply to be recorded") from error
    return servers


def _replace_file(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def surface_of(lists: Mapping[str, Iterable[Mapping[str, Any]]], instructions: str) -> Surface:
    """The surface of a server, of its lists as wire objects; of equal names the first counts."""
    entries: dict[str, dict[str, Entry]] = {}
    for kind, items in lists.items():
        own = entries[kind] = {}
        for item in items:
            own.setdefault(item[KINDS[kind]], entry_of(kind, item))
    return Surface(entries, instructions)
