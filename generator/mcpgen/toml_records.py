"""TOML files as data classes: members without a default are required, unknown keys refused.

TOML has no null, so `false` stands for "there is none" wherever a type allows `None`.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mcpgen import paths
from mcpgen.errors import InputError, format_value
from mcpgen.input_files import check_json, read_text
from mcpgen.json_types import Json, is_array, is_object

T = TypeVar("T")

MAX_BYTES = 1024 * 1024
"""Size of the largest TOML file that is read, in bytes. mcpgen's own have up to 90 kB."""

MAX_PARTS = 64
"""Parts of the longest key, with dots between them: reading one takes their square in time."""

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}\.[ \t]*+){{{MAX_PARTS}}}")


@dataclass(frozen=True)
class Place:
    """The place of a value in a file, and the error for a wrong value.

    Attributes:
        source: The file, for messages.
        kind: Class of the error.
        pointer: JSON pointer of the value in the file.
    """

    source: str
    kind: type[InputError]
    pointer: str = ""

    def at(self, key: object) -> Place:
        """The place of a member of this value."""
        token = str(key).replace("~", "~0").replace("/", "~1")
        return Place(self.source, self.kind, f"{self.pointer}/{token}")

    def error(self, expected: str, came: object) -> InputError:
        """The error for a wrong value here."""
        return self.kind(self.source, self.pointer, expected, format_value(came))

    def table(self, value: Any) -> dict[str, Any]:
        """The value here, which must be a table."""
        if not is_object(value):
            raise self.error("a table", value)
        return value


def read_toml(path: Path, kind: type[InputError]) -> tuple[dict[str, Any], Place]:
    """The table in a TOML file, and its place.

    Raises:
        InputError: The file cannot be read or is not TOML; of the class `kind`.
    """
    source = paths.shown_path(path)
    table = parse_toml(read_text(path, kind, "TOML text", MAX_BYTES), source, kind)
    check_json(table, source, kind)
    return table, Place(source, kind)


def parse_toml(text: str, source: str, kind: type[InputError]) -> dict[str, Any]:
    """Parse a TOML text; TOML has values that are not JSON, such as dates.

    Raises:
        InputError: The text is not TOML; of the class `kind`.
    """
    import tomllib  # a manifest, which is JSON, is converted without it

    if _LONG_KEY.search(text) is not None:
        raise kind(source, "", f"keys of at most {MAX_PARTS} parts", "a longer one")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise kind(source, "", "values that are not nested as deep", "deeper ones") from None
    except ValueError as error:
        raise kind(source, "", "TOML text", str(error)) from error


def toml_value(value: Json) -> str:
    """A JSON value without null as TOML."""
    if is_object(value):
        members = (f"{toml_key(name)} = {toml_value(child)}" for name, child in value.items())
        return f"{{ {', '.join(members)} }}" if value else "{}"
    if is_array(value):
        return f"[{', '.join(map(toml_value, value))}]"
    return _toml_string(value) if isinstance(value, str) else json.dumps(value)


def toml_key(name: str) -> str:
    """A key of a TOML table, bare if possible."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else _toml_string(name)


def _toml_string(text: str) -> str:
    return f'"{"".join(map(_toml_character, text))}"'


def _toml_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    return f"\\U{ord(character):08X}"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to a misspelt name; `None` if none is close."""
    from difflib import get_close_matches  # for errors alone

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.7)), None)


def convert(value: Any, kind: type[T], place: Place) -> T:
    """A value as an instance of a data class, every field checked.

    Fields may be `bool`, `int`, `str`, `Any`, a `Literal`, a data class, `tuple[X, ...]`,
    `Mapping[str, X]`, or one of these `| None`.

    Raises:
        InputError: A key is unknown, or missing without a default, or a value has another type.
    """
    result: T = _convert(value, kind, place)
    return result


def _convert(value: Any, kind: Any, place: Place) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        inner = next(arg for arg in args if arg is not types.NoneType)
        return None if value is False else _convert(value, inner, place)
    if origin is Literal:
        if value not in args or type(value) is not type(args[0]):
            raise place.error(f"one of {format_value(list(args))}", value)
        return value
    if origin is tuple:
        if not is_array(value):
            raise place.error("an array", value)
        return tuple(_convert(item, args[0], place.at(i)) for i, item in enumerate(value))
    if origin is Mapping:
        table = place.table(value)
        return {key: _convert(item, args[1], place.at(key)) for key, item in table.items()}
    if is_dataclass(kind):
        return _record(place.table(value), kind, place)
    if type(value) is not kind:
        raise place.error(_NAMES[kind], value)
    return value


_NAMES: dict[Any, str] = {bool: "true or false", int: "an integer", str: "a string"}


def _record(table: dict[str, Any], kind: Any, place: Place) -> Any:
    hints = _hints(kind)
    members = {member.name: member for member in fields(kind)}
    for name in table:
        if name not in members:
            near = nearest_name(name, list(members))
            nearest = f", the nearest being {near}" if near else ""
            raise place.at(name).error(f"one of the keys {', '.join(members)}{nearest}", name)
    for name, member in members.items():
        if name not in table and not _has_default(member):
            raise place.kind(
                place.source,
                place.pointer,
                f"the key {name}",
                format_value(sorted(table)) + " without it",
            )
    return kind(
        **{name: _convert(value, hints[name], place.at(name)) for name, value in table.items()}
    )


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """The types of the fields of a data class; cached, for they take longer than a conversion."""
    return get_type_hints(kind)


def _has_default(member: Field[Any]) -> bool:
    return member.default is not MISSING or member.default_factory is not MISSING
