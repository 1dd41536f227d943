"""A schema, facts and documentation with one foreign text in every place that takes one."""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from generator.selections import write_package
from generator.tiny_package import TINY
from mcpgen import schema
from mcpgen.render import tree
from mcpgen.schema import docs, facts
from mcpgen.schema.docs import Docs, Entry, Text
from mcpgen.schema.facts import Facts
from mcpgen.schema.method_facts import MethodFacts
from mcpgen.spec import stages

REVISION = "2030-01-01"
CANARY = "mcpgen_canary"
"""A list among the builtins: code that runs where none should puts something in."""

_CALL = f"__import__('builtins').{CANARY}.append(1)"
_PARTS = (
    *(_CALL, f"' + {_CALL} + '", f'" + {_CALL} + "', f'"""\n{_CALL}\n"""', f"'''\n{_CALL}\n'''"),
    *(f"{{{_CALL}}}", f"{{{{ {_CALL} }}}}", f"{{% set x = {_CALL} %}}", "{#", "#}", "{{ 7 * 7 }}"),
    *("{% raw %}", "{% endfilter %}", "\\", '\\"', "\\N{DIGIT ONE}", "\\x41"),
    *('"', "'", '"""', "'''", "\n", "\r\n", "\t", "\0", "\x07", "\x0b", "\x0c", "\x1b[31m"),
    *("\x7f", "\x85", "\ufeff", "\u202e", "\u2066", "\u2028", "\u2029", "\xe9", "e\u0301"),
    *("\U0001f600", " ", "  ", "#", "%s", "]", " | ", "[", ")", "(", ",", ":", ";", "$"),
    *("None", "Literal['x']", "models.Tool", "a b c"),
)
_NO_MEMBER = re.compile(r'[\x00-\x1f"\\]')
_METHOD = st.from_regex(r"[A-Za-z0-9_$][A-Za-z0-9_$./:-]{0,40}", fullmatch=True)

_texts = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=5).map("".join)


@dataclass(frozen=True)
class Texts:
    """The foreign texts of one package, each another one."""

    members: Sequence[str]
    values: Sequence[str]
    method: str


HARMLESS = Texts(
    [f"a harmless {at}" for at in range(12)], [f"harmless {at}" for at in range(40)], "a/b"
)


_TAGS = {12, 13}
"""Values that tell a type from others; what is not ASCII is told otherwise, by other code."""


def _members(texts: Sequence[str]) -> list[str]:
    allowed = (_NO_MEMBER.sub("", text) for text in texts)
    first, *others = (f"{text} m{at}" for at, text in enumerate(allowed))
    return [_ascii(first), *others]


def _values(texts: Sequence[str]) -> list[str]:
    distinct = [f"{text}'\"v{at}" for at, text in enumerate(texts)]
    return [_ascii(text) if at in _TAGS else text for at, text in enumerate(distinct)]


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


hostile: st.SearchStrategy[Texts] = st.builds(
    Texts,
    members=st.lists(_texts, min_size=12, max_size=12).map(_members),
    values=st.lists(_texts, min_size=40, max_size=40).map(_values),
    method=_METHOD.filter(lambda name: name != "notes/list"),
)


def document(texts: Texts) -> dict[str, Any]:
    """The tiny schema with more definitions, full of these texts."""
    member, value = texts.members, texts.values
    prose = {
        "description": value[0],
        "title": value[1],
        "$comment": value[2],
        "examples": [value[3]],
        "default": value[4],
    }
    text = {"type": "string", **prose}
    fixed = {
        "type": "object",
        "properties": {"$schema": text, "type": {"type": "string", "const": value[5]}},
        "required": ["type"],
    }
    spoiled: dict[str, Any] = {
        "Spoiled": {
            **prose,
            "type": "object",
            "properties": {
                member[0]: text,
                member[1]: {"type": "number", "minimum": 0, "maximum": 1, **prose},
                member[2]: fixed,
                member[3]: {"const": value[6], **prose},
                member[4]: {"enum": [value[7], value[8], 3, None], **prose},
                member[5]: {"type": "string", "pattern": f"^{re.escape(value[9])}$", **prose},
                member[6]: {"type": "array", "items": text},
                member[7]: {"$ref": "#/$defs/Tags"},
                member[8]: {"$ref": "#/$defs/Shapes"},
                member[9]: text,
            },
            "required": [member[0], member[9]],
        },
        "Choice": {"enum": [value[10], value[11]], "type": "string", **prose},
        "OneTag": _object({member[0]: {"const": value[12]}, "x": text}, member[0]),
        "TwoTag": _object({member[0]: {"const": value[13]}, "y": text}, member[0]),
        "Tags": {"anyOf": [{"$ref": "#/$defs/OneTag"}, {"$ref": "#/$defs/TwoTag"}], **prose},
        "OneShape": _object({member[10]: text, "k": {"enum": [value[14]]}}, member[10]),
        "TwoShape": _object({member[11]: text}, member[11]),
        "Shapes": {"anyOf": [{"$ref": "#/$defs/OneShape"}, {"$ref": "#/$defs/TwoShape"}]},
        "SpoilRequest": {
            **prose,
            **_object(
                {
                    "method": {"type": "string", "const": texts.method, **prose},
                    "params": {**_object({member[0]: text, member[1]: {"enum": value[15:18]}})},
                },
                "method",
            ),
        },
        "SpoilResult": _object({member[0]: text}),
        "ClientRequest": {
            "anyOf": [{"$ref": "#/$defs/ListNotesRequest"}, {"$ref": "#/$defs/SpoilRequest"}]
        },
    }
    whole: dict[str, Any] = json.loads((TINY / "schema.json").read_text())
    return {**whole, "$defs": {**whole["$defs"], **spoiled}}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def spoiled_facts(texts: Texts) -> Facts:
    """The facts of the tiny revision with these texts in them."""
    value = texts.values
    plain = facts.load_file(TINY / "facts.toml", REVISION)
    return replace(
        plain,
        headers=replace(plain.headers, session=value[18], name=value[19], param_prefix=value[20]),
        http=replace(plain.http, fallback=(value[21], value[22])),
        behaviour=replace(plain.behaviour, listen=value[24]),
        methods={texts.method: MethodFacts(named_by=value[23], invalidates=(value[23],))},
        meta=replace(plain.meta, trace_keys=(value[25], value[26]), log_level=value[27]),
        capabilities={**plain.capabilities, texts.method: value[28].replace(".", "")},
        defaults={**plain.defaults, "Spoiled": {texts.members[9]: value[29]}},
    )


def spoiled_docs(texts: Texts) -> Docs:
    """The documentation of the tiny revision with these texts in it."""
    value = texts.values
    plain = docs.load_file(TINY / "docs.toml")
    entry = Entry(Text(value[30], "spoiled", {texts.members[1]: value[31]}), {})
    return Docs(
        pages={**plain.pages, "spoiled": {"default": value[32]}},
        types={**plain.types, "SpoilResult": entry, "OneShape": entry},
    )


def build_files(texts: Texts, folder: Path, package: str) -> dict[str, str]:
    """The files of a package with these texts."""
    path = folder / f"{package}.json"
    path.write_text(json.dumps(document(texts)), encoding="utf-8")
    source = schema.load_file(path, revision=REVISION)
    return tree.render_package(
        [stages.revision_spec(source, spoiled_facts(texts), spoiled_docs(texts), [])], package
    )


@cache
def shape(source: str) -> tuple[str, ...]:
    """The structure of a module: every node of its syntax tree by its kind, in order."""
    return tuple(type(node).__name__ for node in ast.walk(ast.parse(source)))


@contextmanager
def import_package(files: Mapping[str, str], folder: Path, package: str) -> Iterator[ModuleType]:
    """The package, written and imported as a whole, while the canary is there."""
    write_package(files, folder, package)
    setattr(builtins, CANARY, [])
    sys.path.insert(0, str(folder))
    try:
        for name in ("models", "methods", "client", "server"):
            importlib.import_module(f"{package}.r2030_01_01.{name}")
        for name in ("models", "client.async_client", "client.sync_client"):
            importlib.import_module(f"{package}.{name}")
        yield sys.modules[package]
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]
        delattr(builtins, CANARY)


def canary() -> list[int]:
    """The list of foreign code that ran and should not have."""
    runs: list[int] = getattr(builtins, CANARY)
    return runs
