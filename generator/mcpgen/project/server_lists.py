"""The lists of a server: tools, resources, resource templates and prompts, read from JSON.

Only members that the specification defines are kept, if they have the specified type. Notes list
the members that are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from mcpgen.errors import MirrorError, safe_text
from mcpgen.input_files import check_json, read_json
from mcpgen.json_types import is_array, is_object

Entry: TypeAlias = dict[str, Any]

MAX_TEXT = 10_000
"""Limit of the characters of a description or of instructions."""

MAX_NAME = 200
"""Limit of the characters of a name of a tool, prompt or argument; ten times as many for a URI."""

KINDS: Mapping[str, str] = {
    "tools": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "prompts": "name",
}
"""The lists of a server, by the member of the result; the member that identifies an entry."""

_INSTRUCTIONS = "instructions"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME


def _is_texts(value: object) -> bool:
    return is_array(value) and all(isinstance(text, str) for text in value)


def _is_hint(value: object) -> bool:
    return isinstance(value, bool)


def _is_size(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_priority(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_audience(value: object) -> bool:
    return is_array(value) and all(role in ("user", "assistant") for role in value)


def _is_theme(value: object) -> bool:
    return value in ("light", "dark")


_Check: TypeAlias = Callable[[object], bool]


@dataclass(frozen=True)
class _Object:
    """The checks of the members of an object."""

    members: Mapping[str, _Check | _Object | _Array]


@dataclass(frozen=True)
class _Array:
    """The checks of the objects of an array."""

    item: _Object


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_ICON = _Object({"src": _is_text, "mimeType": _is_text, "sizes": _is_texts, "theme": _is_theme})
_COMMON: Mapping[str, _Check | _Object | _Array] = {
    "title": _is_text,
    "description": _is_text,
    "icons": _Array(_ICON),
    "_meta": is_object,
}
_OF_RESOURCES: Mapping[str, _Check | _Object | _Array] = {
    **_COMMON,
    "name": _is_text,
    "mimeType": _is_text,
    "annotations": _Object(
        {"audience": _is_audience, "priority": _is_priority, "lastModified": _is_text}
    ),
}
_ARGUMENT = _Object(
    {"name": _is_name, "title": _is_text, "description": _is_text, "required": _is_hint}
)
_SHAPES: Mapping[str, _Object] = {
    "tools": _Object(
        {
            **_COMMON,
            "inputSchema": is_object,
            "outputSchema": is_object,
            "annotations": _Object({"title": _is_text, **dict.fromkeys(_HINTS, _is_hint)}),
            "execution": _Object({"taskSupport": _is_text}),
        }
    ),
    "resources": _Object({**_OF_RESOURCES, "size": _is_size}),
    "resourceTemplates": _Object(_OF_RESOURCES),
    "prompts": _Object({**_COMMON, "arguments": _Array(_ARGUMENT)}),
}
"""The checks of the entries by list, besides the identifying member."""

_GENERAL = _Object({_INSTRUCTIONS: _is_text})
"""The checks of the members besides the lists."""

_ESSENTIAL = frozenset({"name", "src"})
"""Members without which an object in an array is left out."""


@dataclass(frozen=True)
class ServerLists:
    """The lists of a server, each in its own order.

    Attributes:
        entries: The entries by the name of their list; see `KINDS`.
        notes: The left out members, one line each.
        instructions: The server's instructions for a model; empty if there are none.
    """

    entries: Mapping[str, tuple[Entry, ...]]
    notes: tuple[str, ...] = ()
    instructions: str = ""

    def document(self) -> dict[str, Any]:
        """The lists as JSON."""
        lists: dict[str, Any] = {kind: list(self.entries[kind]) for kind in KINDS}
        return lists | ({_INSTRUCTIONS: self.instructions} if self.instructions else {})


def read_file(path: Path) -> ServerLists:
    """The lists in a file.

    Raises:
        MirrorError: The file contains no JSON, or no lists.
    """
    unfit: list[str] = []
    return parse(read_json(path, MirrorError, leave_out=unfit.append), str(path), unfit)


def parse(document: object, source: str, unfit: Sequence[str] = ()) -> ServerLists:
    """Parse the lists in a JSON value: results of list requests, a contract, or an array of tools.

    Args:
        document: The value; several results may be merged into one object. Members with a number
            that does not fit 64 bits are removed from it, with a note.
        source: The origin of the value, for errors.
        unfit: Pointers of such members that were removed before.

    Raises:
        MirrorError: There are no lists, or an entry has no name.
    """
    left_out = [*unfit]
    check_json(document, source, MirrorError, left_out.append)
    if is_object(document) and is_object(document.get("result")):
        document = document["result"]
    if is_array(document):
        document, left_out = {"tools": document}, [f"/tools{each}" for each in left_out]
    elif is_object(document) and "contract" in document:
        document = _lists_of_contract(document)
    if not is_object(document) or not any(kind in document for kind in KINDS):
        expected = f"an object with {', '.join(KINDS)}, or an array of tools"
        raise MirrorError(source, "", expected, _kind(document))
    why = "left out: a number that does not fit 64 bits"
    notes = [f"{safe_text(each)}: {why}" for each in left_out]
    entries = {kind: _entries(document.get(kind, []), kind, source, notes) for kind in KINDS}
    instructions: dict[str, Any] = _members(document, _GENERAL, "", notes, KINDS)
    return ServerLists(entries, tuple(notes), instructions.get(_INSTRUCTIONS, ""))


def _lists_of_contract(document: Entry) -> Entry:
    """The lists of the newest revision in a file of `mcpgen contract write`."""
    lists: Entry = {_INSTRUCTIONS: document.get(_INSTRUCTIONS, "")}
    for kind in KINDS:
        entries = document.get(kind)
        lists[kind] = [
            {key: value for key, value in entry.items() if key != "digest"}
            for entry in (entries.values() if is_object(entries) else ())
            if is_object(entry)
        ]
    return lists


def _entries(listed: object, kind: str, source: str, notes: list[str]) -> tuple[Entry, ...]:
    if not is_array(listed):
        raise MirrorError(source, f"/{kind}", "an array", _kind(listed))
    key = KINDS[kind]
    limit = MAX_NAME if key == "name" else 10 * MAX_NAME
    entries: dict[str, Entry] = {}
    for number, item in enumerate(listed):
        pointer = f"/{kind}/{number}"
        if not is_object(item):
            raise MirrorError(source, pointer, "an object", _kind(item))
        name = item.get(key)
        if not isinstance(name, str) or not 0 < len(name) <= limit:
            expected = f"a {key} of 1 to {limit} characters"
            raise MirrorError(source, f"{pointer}/{key}", expected, _kind(name))
        if name in entries:
            notes.append(f"{pointer}: {safe_text(name)!r} comes twice: the first counts")
            continue
        entries[name] = {key: name} | _members(item, _SHAPES[kind], pointer, notes, {key})
    return tuple(entries.values())


def _members(
    item: Entry, shape: _Object, pointer: str, notes: list[str], known: Collection[str] = ()
) -> Entry:
    """The members of an object that pass their checks; notes list the others.

    Args:
        item: The object.
        shape: The checks of the members.
        pointer: The place of the object.
        notes: Receives the notes.
        known: Members that are read elsewhere.
    """
    kept: Entry = {}
    for member, value in item.items():
        place = f"{pointer}/{member}"
        wanted = shape.members.get(member)
        if member in known:
            continue
        if isinstance(wanted, _Array) and is_array(value):
            kept[member] = _objects(value, wanted.item, place, notes)
        elif isinstance(wanted, _Object) and is_object(value):
            kept[member] = _members(value, wanted, place, notes)
        elif wanted is None:
            notes.append(f"{safe_text(place)}: left out: the specification has no such member")
        elif isinstance(wanted, _Array | _Object) or not wanted(value):
            notes.append(f"{safe_text(place)}: left out: not as specified")
        elif isinstance(value, str) and len(value) > MAX_TEXT:
            notes.append(f"{safe_text(place)}: cut after {MAX_TEXT} characters")
            kept[member] = f"{value[:MAX_TEXT]}..."
        else:
            kept[member] = value
    return kept


def _objects(
    listed: Sequence[object], shape: _Object, pointer: str, notes: list[str]
) -> list[Entry]:
    """The objects of an array that have an essential member, without repeated names."""
    kept: list[Entry] = []
    for number, item in enumerate(listed):
        place = f"{pointer}/{number}"
        members = _members(item, shape, place, notes) if is_object(item) else {}
        names = [each.get("name") for each in kept if "name" in each]
        if not members.keys() & _ESSENTIAL or members.get("name") in names:
            notes.append(f"{safe_text(place)}: left out: no name, or one that comes twice")
        else:
            kept.append(members)
    return kept


def _kind(value: object) -> str:
    """The kind of a JSON value, for errors."""
    match value:
        case None:
            return "null or nothing"
        case bool() | int() | float():
            return "a number or boolean"
        case str():
            return f"a string of {len(value)} characters"
        case _:
            return "an array" if is_array(value) else "an object"


WORDS: Mapping[str, str] = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "resource template",
    "prompts": "prompt",
}
"""The noun for an entry of each list."""

_MEMBERS: Mapping[str, str] = {"inputSchema": "arguments", "outputSchema": "result"}


def changes(old: ServerLists, new: ServerLists) -> list[str]:
    """The differences between two states of a server, one line each: new, gone or changed."""
    lines: list[str] = []
    for kind, key in KINDS.items():
        before = {entry[key]: entry for entry in old.entries[kind]}
        after = {entry[key]: entry for entry in new.entries[kind]}
        for name in sorted(before.keys() | after.keys()):
            label = f"{WORDS[kind]} {safe_text(name)}"
            if name not in before:
                lines.append(f"new: {label}")
            elif name not in after:
                lines.append(f"gone: {label}")
            elif before[name] != after[name]:
                members = before[name].keys() | after[name].keys()
                other = [m for m in members if before[name].get(m) != after[name].get(m)]
                what = ", ".join(sorted(_MEMBERS.get(member, member) for member in other))
                lines.append(f"changed: {label}: {what}")
        if [name for name in before if name in after] != [name for name in after if name in before]:
            lines.append(f"changed: order of {kind}")
    if old.instructions != new.instructions:
        lines.append("changed: instructions")
    return lines
