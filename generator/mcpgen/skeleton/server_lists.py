"""What a server lists: tools, resources, resource templates and prompts, read from JSON.

Only the members that a mirror uses are kept, each with the type that it must have; an optional
member of another type is treated as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from mcpgen.errors import MirrorError, safe_text
from mcpgen.input_files import check_json, read_json
from mcpgen.json_types import is_array, is_object

Entry: TypeAlias = dict[str, Any]

MAX_TEXT = 2000
"""Characters of a description that are kept."""

MAX_NAME = 200
"""Characters of the name of a tool, prompt or argument, and ten times that of a URI."""

KINDS: Mapping[str, str] = {
    "tools": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "prompts": "name",
}
"""The lists of a server by the member of their results; what tells their entries apart."""

_OPTIONAL_TEXTS = ("name", "title", "description", "mimeType")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True)
class ServerLists:
    """The lists of a server, each sorted by what tells its entries apart.

    Attributes:
        entries: The entries by the name of their list; see `KINDS`.
        notes: What was left out, one line each.
    """

    entries: Mapping[str, tuple[Entry, ...]]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, list[Entry]]:
        """The lists as JSON."""
        return {kind: list(self.entries[kind]) for kind in KINDS}


def read_file(path: Path) -> ServerLists:
    """The lists in a file.

    Raises:
        MirrorError: The file has no JSON, or no lists.
    """
    return parse(read_json(path, MirrorError), str(path))


def parse(document: object, source: str) -> ServerLists:
    """The lists in a JSON value: results of list requests, or an array of tools.

    Args:
        document: The value; several results may be merged into one object.
        source: Where it is from, for errors.

    Raises:
        MirrorError: There are no lists, or an entry has no name.
    """
    check_json(document, source, MirrorError)
    if is_object(document) and is_object(document.get("result")):
        document = document["result"]
    if is_array(document):
        document = {"tools": document}
    if not is_object(document) or not any(kind in document for kind in KINDS):
        expected = f"an object with {', '.join(KINDS)}, or an array of tools"
        raise MirrorError(source, "", expected, _kind(document))
    notes: list[str] = []
    entries = {kind: _entries(document.get(kind, []), kind, source, notes) for kind in KINDS}
    return ServerLists(entries, tuple(notes))


def _entries(listed: object, kind: str, source: str, notes: list[str]) -> tuple[Entry, ...]:
    if not is_array(listed):
        raise MirrorError(source, f"/{kind}", "an array", _kind(listed))
    key = KINDS[kind]
    limit = MAX_NAME if key == "name" else 10 * MAX_NAME
    found: dict[str, Entry] = {}
    for number, item in enumerate(listed):
        pointer = f"/{kind}/{number}"
        if not is_object(item):
            raise MirrorError(source, pointer, "an object", _kind(item))
        name = item.get(key)
        if not isinstance(name, str) or not 0 < len(name) <= limit:
            expected = f"a {key} of 1 to {limit} characters"
            raise MirrorError(source, f"{pointer}/{key}", expected, _kind(name))
        if name in found:
            notes.append(f"{pointer}: {safe_text(name)!r} comes twice: the first counts")
            continue
        found[name] = _entry(item, kind, key, name)
    return tuple(found[name] for name in sorted(found))


def _entry(item: Entry, kind: str, key: str, name: str) -> Entry:
    entry: Entry = {key: name}
    for member in _OPTIONAL_TEXTS:
        text = item.get(member)
        if member != key and isinstance(text, str):
            entry[member] = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
    if kind == "tools":
        for member in ("inputSchema", "outputSchema"):
            if is_object(item.get(member)):
                entry[member] = item[member]
        hints = item.get("annotations")
        if is_object(hints):
            entry["annotations"] = {
                hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)
            }
    if kind == "prompts":
        entry["arguments"] = _arguments(item.get("arguments"))
    return entry


def _arguments(listed: object) -> list[Entry]:
    """The arguments of a prompt; those without a name are left out."""
    found: dict[str, Entry] = {}
    for item in listed if is_array(listed) else ():
        name = item.get("name") if is_object(item) else None
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or name in found:
            continue
        found[name] = {"name": name, "required": item.get("required") is True}
        if isinstance(item.get("description"), str):
            found[name]["description"] = item["description"][:MAX_TEXT]
    return list(found.values())


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


_WORDS: Mapping[str, str] = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "resource template",
    "prompts": "prompt",
}
_MEMBERS: Mapping[str, str] = {"inputSchema": "arguments", "outputSchema": "result"}


def changes(old: ServerLists, new: ServerLists) -> list[str]:
    """What is new, gone or changed from one state of a server to another, one line each."""
    lines: list[str] = []
    for kind, key in KINDS.items():
        before = {entry[key]: entry for entry in old.entries[kind]}
        after = {entry[key]: entry for entry in new.entries[kind]}
        for name in sorted(before.keys() | after.keys()):
            label = f"{_WORDS[kind]} {safe_text(name)}"
            if name not in before:
                lines.append(f"new: {label}")
            elif name not in after:
                lines.append(f"gone: {label}")
            elif before[name] != after[name]:
                members = before[name].keys() | after[name].keys()
                other = [m for m in members if before[name].get(m) != after[name].get(m)]
                what = ", ".join(sorted(_MEMBERS.get(member, member) for member in other))
                lines.append(f"changed: {label}: {what}")
    return lines
