"""How names of the schema become names of Python.

The wire's names stay on the wire: `_meta` is `meta`, `mimeType` is `mime_type`, and a key with a
prefix, such as `io.modelcontextprotocol/logLevel`, loses it (`log_level`).
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, count
from typing import Literal, TypeAlias, get_args

from anyascii import anyascii

Library: TypeAlias = Literal["msgspec", "pydantic"]
"""The library that models are written for."""

LIBRARIES: tuple[Library, ...] = get_args(Library)
"""The libraries that models can be written for; the first is the default."""

Decoding: TypeAlias = Literal["lenient", "strict"]
"""Whether what decodes is more than what the schema allows."""

DECODINGS: tuple[Decoding, ...] = get_args(Decoding)
"""The kinds of decoding; the first is the default."""

Mutability: TypeAlias = Literal["frozen", "mutable"]
"""Whether members of models can be assigned."""

MUTABILITIES: tuple[Mutability, ...] = get_args(Mutability)
"""The kinds of models by that; the first is the default."""

ExtraPolicy: TypeAlias = Literal["ignore", "forbid", "keep"]
"""The treatment of members of an object that its type does not have."""

EXTRA_POLICIES: tuple[ExtraPolicy, ...] = get_args(ExtraPolicy)
"""The policies; the first is the default."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")
_LONGEST = 100
"""Characters of a Python name; longer ones are cut."""
_LONGEST_CLASS = 200
"""Characters of a definition's name that stays as it is."""
_MESSAGE_ENDS = ("Request", "Notification")

SHADOWING = frozenset({"bool", "dict", "field", "float", "int", "list", "str"})
"""Names that annotations and defaults of the same class need for themselves."""

BASE = frozenset({"extra"})
"""Names of members that the base class of all objects has."""

IMPORTED = frozenset(
    {
        "Any",
        "ClassVar",
        "Field",
        "Literal",
        "Meta",
        "Struct",
        "Tagged",
        "TypeAlias",
        "TypeAliasType",
        "UNSET",
        "Untagged",
        "UnsetType",
        "Variant",
    }
)
"""Names that a module of models imports, whatever the schema."""

_OF_BASE_MODEL = frozenset(
    {"always_sent", "construct", "copy", "dict", "from_orm", "json", "model_computed_fields", "mro"}
    | {"model_config", "model_construct", "model_copy", "model_dump", "model_dump_json"}
    | {"model_extra", "model_fields", "model_fields_set", "model_json_schema"}
    | {"model_parametrized_name", "model_post_init", "model_rebuild", "model_validate"}
    | {"model_validate_json", "model_validate_strings", "nullable", "optional", "parse_file"}
    | {"parse_obj", "parse_raw", "register", "schema", "schema_json", "update_forward_refs"}
    | {"validate"}
)
"""Names that a pydantic model has, or that its members are made with."""

STUB_BASES = frozenset(
    {"ask_for_logs", "cache", "call_from", "clear_cache", "close", "end", "extension", "failures"}
    | {
        "hold",
        "instructions",
        "listen",
        "lock_differences",
        "mcp_handler",
        "mcp_stubs",
        "middleware",
    }
    | {"get_skill", "list_skills", "read_directory", "read_skill"}
    | {"notify", "on_log", "on_progress", "read_ui", "request", "request_raw"}
    | {
        "revision",
        "seen_as",
        "server_capabilities",
        "server_info",
        "servers",
        "session",
        "start_call",
    }
    | {"supports", "task", "tools_for", "url_schemes", "wait_until_open"}
)
"""Public names in the bases of clients, sessions and handlers, which no message overrides."""

RESERVED: Mapping[Library, frozenset[str]] = {"msgspec": frozenset(), "pydantic": _OF_BASE_MODEL}
"""Names that no member of an object has, by the library that the models are written for."""


def words(name: str) -> list[str]:
    """The words of a name, lower case: `URLElicitationRequired` has three.

    Letters lose their accents, and those of other scripts are romanized. Other characters become
    their Unicode names: a star is `white medium star`.
    """
    parts = _SEPARATOR.split(_as_ascii(name.rpartition("/")[2]))
    return [word.lower() for part in parts if part for word in _HUMP.split(part)]


def _as_ascii(text: str) -> str:
    if text.isascii():
        return text
    spelled = "".join(map(_spell_character, text))
    return spelled if any(map(str.isalnum, spelled)) else "".join(map(_name_character, text))


def _spell_character(char: str) -> str:
    if plain := _strip_accents(char):
        return plain
    return _romanize(char) if unicodedata.category(char)[0] in "LMN" else _name_character(char)


def _strip_accents(char: str) -> str:
    return "".join(filter(str.isascii, unicodedata.normalize("NFKD", char)))


def _romanize(char: str) -> str:
    """A letter or digit of another script in ASCII; empty for a character without a sound."""
    return "".join(filter(str.isalnum, anyascii(char)))


def _name_character(char: str) -> str:
    """The Unicode name of a character between spaces; empty for combining and format characters."""
    if unicodedata.category(char) in ("Mn", "Cf"):
        return ""
    return f" {unicodedata.name(char, f'u{ord(char):x}').lower()} "


def snake(wire: str) -> str:
    """The Python name for a member: snake_case, no keyword, and no name that classes need."""
    name = "_".join(words(wire))[:_LONGEST].rstrip("_") or "empty"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in SHADOWING | BASE else name


def pascal(wire: str) -> str:
    """A member's name as a part of a type's name: `requestedSchema` gives `RequestedSchema`."""
    parts = [part for part in _SEPARATOR.split(_as_ascii(wire.rpartition("/")[2])) if part]
    return "".join(part[:1].upper() + part[1:] for part in parts)[:_LONGEST]


def message_name(type_name: str) -> str:
    """The Python name of a request or notification: `CallToolRequest` gives `call_tool`."""
    name = snake(type_name)
    for end in _MESSAGE_ENDS:
        if type_name.endswith(end) and type_name != end:
            name = snake(type_name.removesuffix(end))
    return f"{name}_" if name in STUB_BASES else name


def constant(name: str) -> str:
    """A Python name as a constant: `call_tool` gives `CALL_TOOL`."""
    return name.upper()


def folder(revision: str) -> str:
    """The name of a revision's subpackage: `2025-06-18` gives `r2025_06_18`."""
    return "r" + _SEPARATOR.sub("_", revision)


def is_class_name(name: str) -> bool:
    """Whether a definition's name can be the name of a Python class as it stands."""
    free = not (keyword.iskeyword(name) or hasattr(builtins, name) or name in IMPORTED)
    return free and len(name) <= _LONGEST_CLASS and _CLASS.fullmatch(name) is not None


def class_names(published: Collection[str], taken: Collection[str] = ()) -> Mapping[str, str]:
    """Unique names of Python classes for definitions, by the name in the schema.

    A valid class name stays. Any other name keeps its letters and digits, each part capitalized:
    `Record<string,string>` is `RecordStringString`. A name that is taken gets a number, in the
    order of the schema.
    """
    names = {name: name for name in published if is_class_name(name) and name not in taken}
    for name in published:
        if name not in names:
            names[name] = free_name(_class_name(name), {*names.values(), *taken})
    return names


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that is not taken: the name itself, or with the first free number from 2 on."""
    numbered = (f"{name}{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def _class_name(published: str) -> str:
    parts = [part for part in _SEPARATOR.split(_as_ascii(published)) if part]
    name = "".join(part[:1].upper() + part[1:] for part in parts)[:_LONGEST] or "Unnamed"
    name = f"N{name}" if name[0].isdigit() else name
    return name if is_class_name(name) else f"{name}Model"


def members(wires: Iterable[str], reserved: Collection[str] = ()) -> Mapping[str, str]:
    """Unique Python names for the members of one object, by wire name, without reserved names.

    The first member keeps its plain name. Later members with the same name get one underscore at
    the end, then two, then a number.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    counts: Counter[str] = Counter()
    for wire in wires:
        plain = snake(wire)
        plain = name = f"{plain}_" if plain in reserved else plain
        while name in taken:
            counts[plain] += 1
            number = counts[plain]
            name = plain + "_" * number if number < 3 else f"{plain}_{number}"
        taken.add(name)
        names[wire] = name
    return names
