"""Entries are written into the files of hosts, which keep their comments, order and backup.

A file in JSON is edited as text, since its comments and layout are the user's: the place of a
member is found by its tokens, and nothing else is written anew. Of the libraries for it, one starts
Node, and one keeps comments but can't insert members. TOML is edited by tomlkit, YAML by
ruamel.yaml, both of which are needed for such a host alone.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError
from .hosts import Host, Server

_TOKEN = re.compile(
    r'(?P<comment>//[^\r\n]*|/\*.*?(?:\*/|\Z))|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"/]+|\S',
    re.DOTALL,
)


def write_entry(host: Host, path: Path, name: str, server: Server) -> Path | None:
    """Write an entry into a file, which is made where there is none.

    An entry of this name is replaced. The file is replaced as a whole, or not at all.

    Args:
        host: The host.
        path: The file.
        name: Name of the server.
        server: Its entry.

    Returns:
        The backup of the file as it was; `None` if it was not there, or had the entry already.

    Raises:
        MissingExtraError: The library for the language of the file is not installed.
        OSError: The file can't be read or written.
        ValueError: The file is not in its language, or the servers in it are no object.
    """
    path = path.resolve()  # a link to a file elsewhere is kept
    raw = path.read_bytes() if path.exists() else None
    before = None if raw is None else raw.decode("utf-8-sig").replace("\r\n", "\n")
    edit: Mapping[str, Callable[..., str]] = {
        "json": _edit_json,
        "toml": _edit_toml,
        "yaml": _edit_yaml,
    }
    try:
        text = edit[host.form](before or "", [host.member, name], server)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if text == before:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if raw is None:
        _replace(path, text.encode(), path)
        return None
    backup = path.with_name(f"{path.name}.bak")
    _replace(backup, raw, path)
    newline = "\r\n" if b"\r\n" in raw else "\n"
    _replace(path, text.replace("\n", newline).encode(), path)
    return backup


def _replace(path: Path, content: bytes, original: Path) -> None:
    """Write a file at once, with the mode of another one, or for the user alone."""
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if original.exists():
            Path(written).chmod(original.stat().st_mode & 0o777)
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise


# JSON with comments


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


def _edit_json(text: str, path: Sequence[str], value: Any) -> str:
    """A document with a value at a path of members, all else as it is.

    Raises:
        ValueError: The text is not JSON, or a value on the path is no object.
    """
    if not text.strip():
        text = "{}\n"
    tokens = [
        _Token(match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if not match["comment"]
    ]
    _check_json(tokens)
    first = 0
    for depth, name in enumerate(path):
        if tokens[first].text != "{":
            place = ".".join(path[:depth]) or "its root"
            raise ValueError(f"{place}: expected an object, got {tokens[first].text[:20]}")
        members, last = _members(tokens, first)
        if name not in members:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert(text, tokens[first : last + 1], bool(members), name, value)
        first = members[name]
    end = tokens[_end(tokens, first)].end
    if json.loads(_strict(tokens[first : _end(tokens, first) + 1])) == value:
        return text
    return text[: tokens[first].start] + _indented(value, text, tokens[first].start) + text[end:]


def _check_json(tokens: Sequence[_Token]) -> None:
    try:
        json.loads(_strict(tokens))
    except (ValueError, RecursionError):
        raise ValueError("expected JSON, perhaps with comments, got something else") from None


def _strict(tokens: Sequence[_Token]) -> str:
    """JSON without comments and trailing commas."""
    following = [*(token.text for token in tokens[1:]), ""]
    pairs = zip(tokens, following, strict=True)
    return " ".join(token.text for token, after in pairs if token.text != "," or after not in "}]")


def _members(tokens: Sequence[_Token], first: int) -> tuple[dict[str, int], int]:
    """The first token of the value of each member of an object, and the object's last token."""
    members: dict[str, int] = {}
    index = first + 1
    while tokens[index].text != "}":
        if tokens[index].text == ",":
            index += 1
            continue
        members[json.loads(tokens[index].text)] = index + 2
        index = _end(tokens, index + 2) + 1
    return members, index


def _end(tokens: Sequence[_Token], first: int) -> int:
    """The last token of a value."""
    depth = 0
    for index in range(first, len(tokens)):
        depth += (tokens[index].text in "{[") - (tokens[index].text in "}]")
        if depth == 0:
            return index
    raise ValueError("expected an end of each object, got none")


def _insert(text: str, tokens: Sequence[_Token], has_members: bool, name: str, value: Any) -> str:
    """A document with one more member at the end of an object, whose tokens these are."""
    opening, before, closing = tokens[0], tokens[-2], tokens[-1]
    indent = _indent_of(text, tokens[1].start) if has_members else _step(text, opening.start)
    comma = "," if has_members and before.text != "," else ""
    trailing = "," if before.text == "," else ""
    lines = json.dumps({name: value}, indent=_unit(text), ensure_ascii=False).split("\n")[1:-1]
    unit = len(lines[0]) - len(lines[0].lstrip())
    member = "\n".join(indent + line[unit:] for line in lines)
    rest = text[before.end : closing.start]
    if "\n" not in rest:  # the object ends in the line of its last member
        rest += "\n" + indent[: max(0, len(indent) - len(_unit(text)))]
    body, newline, last_line = rest.rpartition("\n")
    return (
        f"{text[: before.end]}{comma}{body}{newline}{member}{trailing}\n{last_line}"
        f"{text[closing.start :]}"
    )


def _indent_of(text: str, position: int) -> str:
    """The space before the first character of a line."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())] or _unit(text)


def _step(text: str, position: int) -> str:
    """The space before a member of an object that begins at a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())] + _unit(text)


def _unit(text: str) -> str:
    """The space by which a document indents."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _indented(value: Any, text: str, position: int) -> str:
    """A value at a position, whose lines are indented like the one that it begins in."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    indent = line[: len(line) - len(line.lstrip())]
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"\n{indent}".join(lines)


# TOML and YAML


def _edit_toml(text: str, path: Sequence[str], value: Server) -> str:
    try:
        import tomlkit
    except ModuleNotFoundError:
        raise MissingExtraError("writing TOML", "tomlkit") from None
    library: Any = tomlkit
    document = library.parse(text)
    _set(document, path, value, partial(library.table, is_super_table=True))
    written: str = library.dumps(document)
    return written


def _edit_yaml(text: str, path: Sequence[str], value: Server) -> str:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ModuleNotFoundError:
        raise MissingExtraError("writing YAML", "ruamel.yaml") from None
    yaml: Any = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000  # no line is broken anew
    try:
        document: Any = yaml.load(text) or {}
    except YAMLError as error:
        reason = " ".join(f"{error}".split())
        raise ValueError(f"expected YAML: {reason}") from None
    if not _set(document, path, value, dict):
        return text
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _set(document: Any, path: Sequence[str], value: Server, make: Callable[[], Any]) -> bool:
    """Set a value in a mapping of mappings; whether it was another one.

    Raises:
        ValueError: A value on the path is no mapping.
    """
    *folders, name = path
    members = _object(document, "its root")
    for folder in folders:
        if members.get(folder) is None:
            members[folder] = make()
        members = _object(members[folder], folder)
    if members.get(name) == value:
        return False
    members[name] = {**value}
    return True


def _object(value: Any, place: str) -> dict[str, Any]:
    """A value that has to be a mapping.

    Raises:
        ValueError: It is none.
    """
    match value:
        case dict():
            return value
        case _:
            raise ValueError(f"{place}: expected an object, got another value")
