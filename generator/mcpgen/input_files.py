"""Reading files of users within limits: text as it is, JSON as JSON values.

A byte order mark is no part of a text. JSON that only Python accepts, or that could exhaust memory
or the stack of a later step, is refused with its place in the file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from mcpgen import paths
from mcpgen.errors import InputError
from mcpgen.json_types import Json, Node, is_array, is_object

MAX_BYTES = 64 * 1024 * 1024
"""Size of the largest file that is read, in bytes. Official schemas have some 200 kB."""

MAX_SIGNS = 1_000_000
"""Limit of brackets, braces and commas in JSON text, each of which costs memory when it is parsed.
Official schemas have some 5,000."""

MAX_LEVELS = 64
"""Limit of the nesting of objects and arrays. Official schemas have 12 levels."""

MAX_ENTRIES = 5000
"""Limit of the members of an object or items of an array. Official schemas have up to 160."""

MAX_NAME = 1000
"""Limit of the characters of a member's name."""

_LONGEST_INTEGER = 20
"""Digits, and a sign, of the longest integer that fits 64 bits."""
_REPEATED = object()
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|[\[{{]\s*,|,(?=\s*[\]}}])", re.DOTALL)

_Path: TypeAlias = tuple[object, ...]
"""Member names and array indices from the root to a value."""

_TYPESCRIPT = frozenset({".ts", ".mts", ".cts"})


def is_typescript(path: Path) -> bool:
    """Whether a file is TypeScript by its suffix."""
    return path.suffix.lower() in _TYPESCRIPT


def read_text(path: Path, kind: type[InputError], form: str, limit: int = MAX_BYTES) -> str:
    """The text of a file in UTF-8.

    Args:
        path: The file.
        kind: The class of the error.
        form: The expected form, for the error about text that is not UTF-8.
        limit: Size of the largest file that is read, in bytes.

    Raises:
        InputError: The file cannot be read, is larger than the limit, or is not UTF-8; of the
            class `kind`.
    """
    source = paths.shown_path(path)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise kind(source, "", "a readable file", error.strerror or str(error)) from error
    if len(data) > limit:
        raise kind(source, "", f"a file of {limit} bytes at most", "a larger one")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind(source, "", f"{form} in UTF-8", str(error)) from error


def read_json(
    path: Path,
    kind: type[InputError],
    limit: int = MAX_BYTES,
    leave_out: Callable[[str], None] | None = None,
) -> Json:
    """The JSON value in a file.

    Args:
        path: The file.
        kind: The class of the error.
        limit: Size of the largest file that is read, in bytes.
        leave_out: As for `check_json`.

    Raises:
        InputError: As for `read_text`; or the text is no JSON, has more than `MAX_SIGNS` brackets,
            braces and commas, repeats a member of an object, is nested deeper than `MAX_LEVELS`,
            has an object or array with more than `MAX_ENTRIES` entries, a name with more than
            `MAX_NAME` characters, text with half a surrogate pair, or a number that does not fit
            64 bits.
    """
    text = read_text(path, kind, "JSON text", limit)
    return parse_json(text, paths.shown_path(path), kind, leave_out)


def read_jsonc(path: Path, kind: type[InputError]) -> Json:
    """The JSON value in a file with comments, and with commas after the last item.

    Raises:
        InputError: As for `read_json`.
    """
    text = read_text(path, kind, "JSON text")
    text = _COMMA.sub(_blank, _COMMENT.sub(_blank, text))
    return parse_json(text, paths.shown_path(path), kind)


def _blank(match: re.Match[str]) -> str:
    """A comment or a comma as blanks, so that places in the text stay; other text unchanged."""
    text = match[0]
    is_comment = text.startswith("//") or (text.startswith("/*") and text[2:].endswith("*/"))
    return re.sub(r"[^\r\n]", " ", text) if is_comment or text == "," else text


def parse_json(
    text: str,
    source: str,
    kind: type[InputError],
    leave_out: Callable[[str], None] | None = None,
) -> Json:
    """The value of JSON text.

    Args:
        text: The text.
        source: Its origin, for errors.
        kind: The class of the error.
        leave_out: As for `check_json`.

    Raises:
        InputError: As for `read_json`.
    """
    signs = sum(text.count(sign) for sign in "[{,")
    if signs > MAX_SIGNS:
        expected = f"at most {MAX_SIGNS} brackets, braces and commas"
        raise kind(source, "", expected, str(signs))
    try:
        document: Json = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except RecursionError:
        raise _too_deep(source, kind, _first_too_deep(text)) from None
    except ValueError as error:
        raise kind(source, "", "JSON text", str(error)) from error
    check_json(document, source, kind, leave_out)
    return document


def json_pointer(path: Iterable[object]) -> str:
    """The JSON pointer for member names and array indices."""
    tokens = (str(token).replace("~", "~0").replace("/", "~1") for token in path)
    return "".join(f"/{token}" for token in tokens)


def _object(pairs: Sequence[tuple[str, Json]]) -> Node:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                members[name] = _REPEATED
            seen.add(name)
    return members


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


def check_json(
    document: object,
    source: str,
    kind: type[InputError],
    leave_out: Callable[[str], None] | None = None,
) -> None:
    """Check a value that was read from a file: JSON, within the bounds of this module.

    Args:
        document: The value.
        source: Its origin, for errors.
        kind: The class of the error.
        leave_out: Called with the pointer of each member with a number, or with an array of such,
            that does not fit 64 bits: the member is removed. If `None`, it is an error.

    Raises:
        InputError: As for `read_json`.
    """
    left: list[tuple[Json, _Path]] = [(document, ())]
    while left:
        value, path = left.pop()
        if not (is_object(value) or is_array(value)):
            _check_scalar(value, path, source, kind)
            continue
        if len(path) >= MAX_LEVELS:
            raise _too_deep(source, kind, path)
        if len(value) > MAX_ENTRIES:
            expected = f"at most {MAX_ENTRIES} entries in an object or array"
            raise kind(source, json_pointer(path), expected, str(len(value)))
        if is_object(value):
            for name in [*value]:
                _check_name(name, path, source, kind)
                if leave_out is not None and _is_unfit(value[name]):
                    del value[name]
                    leave_out(json_pointer((*path, name)))
        entries = list(value.items() if is_object(value) else enumerate(value))
        left.extend((item, (*path, token)) for token, item in reversed(entries))


def _check_scalar(value: Json, path: _Path, source: str, kind: type[InputError]) -> None:
    if value is _REPEATED:
        raise kind(source, json_pointer(path), "one member of this name", "several")
    if isinstance(value, str):
        if not _is_unicode(value):
            raise kind(source, json_pointer(path), "text in Unicode", "half a surrogate pair")
    elif not (value is None or isinstance(value, int | float)):
        raise kind(source, json_pointer(path), "a value that JSON has", type(value).__name__)
    elif value is not None and not _fits(value):
        raise kind(source, json_pointer(path), "a number that fits 64 bits", "one that does not")


def _check_name(name: str, path: _Path, source: str, kind: type[InputError]) -> None:
    if len(name) > MAX_NAME:
        expected = f"names of {MAX_NAME} characters at most"
        raise kind(source, json_pointer(path), expected, f"one of {len(name)}")
    if not _is_unicode(name):
        raise kind(
            source, json_pointer((*path, name)), "a name in Unicode", "half a surrogate pair"
        )


def _fits(number: float) -> bool:
    return math.isfinite(number) if isinstance(number, float) else -(2**63) <= number < 2**63


def _is_unfit(value: Json) -> bool:
    """Whether a value is a number that does not fit, or an array with one."""
    items = value if is_array(value) else [value]
    return any(isinstance(item, int | float) and not _fits(item) for item in items)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep(source: str, kind: type[InputError], path: _Path) -> InputError:
    return kind(source, json_pointer(path), f"at most {MAX_LEVELS} levels of nesting", "more")


def _first_too_deep(text: str) -> _Path:
    """The first place in JSON text that is nested too deep; empty if there is none."""
    path: list[object] = []
    name = '""'
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                if len(path) >= MAX_LEVELS:
                    break
                path.append("" if token[0] == "{" else 0)
            case "}" | "]":
                path[-1:] = []
            case ",":
                path[-1:] = [at + 1 if isinstance(at, int) else at for at in path[-1:]]
            case ":":
                path[-1:] = [json.loads(name)]
            case string:
                name = string
    return tuple(path)
