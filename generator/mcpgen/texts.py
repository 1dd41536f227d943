"""Docstrings: what is said about a type or a call, wrapped and escaped, ready between quotes.

The prose of a schema comes first, if it has any; mcpgen's own schemas have none, but documentation.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcpgen.docs import Docs
from mcpgen.plain import Definition
from mcpgen.schema import Schema
from mcpgen.schema.structure import escape

WIDTH = 100
_QUOTES = 2 * 3
_DEFINITION = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Doc:
    """A type's docstrings, ready to be written between quotes.

    Attributes:
        text: The docstring of the type.
        fields: Those of its fields, by wire name; a field may have none.
    """

    text: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Texts:
    """What is said about the types of one revision."""

    schema: Schema
    docs: Docs

    def summary(self, definition: Definition) -> str:
        """What a type is, in one paragraph or more."""
        told = self.docs.type_doc(self.schema.revision, definition.name)
        said = self.schema.prose.get(definition.pointer, "")
        return said or told or f"{_spaced(definition.name)}."

    def member(self, definition: Definition, wire: str) -> str:
        """What a member of a type means, or an empty text."""
        told = self.docs.field_doc(self.schema.revision, definition.name, wire)
        pointer = f"{definition.pointer}/properties/{escape(wire)}"
        return self.schema.prose.get(pointer, "") or told

    def source(self, definition: Definition) -> str:
        """The line that names the page a type belongs to, or an empty text."""
        page = self.docs.page(self.schema.revision, definition.name)
        return f"Source: {page}." if page else ""


def docstring(paragraphs: Iterable[str], indent: int) -> str:
    """Paragraphs as the inside of a docstring at an indentation, closing line included.

    One that fits on a line with its quotes stays on it.
    """
    whole = [paragraph for paragraph in paragraphs if paragraph]
    margin = " " * indent
    if len(whole) == 1 and len(_safe(whole[0])) + indent + _QUOTES <= WIDTH:
        return _safe(whole[0])
    lines: list[str] = []
    for paragraph in whole:
        if lines:
            lines.append("")
        lines += _wrapped(paragraph, indent, first=not lines)
    head, *tail = lines
    return "\n".join([head, *(margin + line if line else "" for line in tail), margin])


def arguments(pairs: Sequence[tuple[str, str]]) -> str:
    """The `Args:` section for names and what they mean; empty if nothing is said of any.

    Of a text in paragraphs, the first counts.
    """
    told = [f"    {name}: {_line(text)}" for name, text in pairs if text]
    return "\n".join(["Args:", *told]) if told else ""


def _line(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _wrapped(paragraph: str, indent: int, *, first: bool) -> list[str]:
    """A paragraph in lines; one that has line breaks of its own keeps them."""
    found: list[str] = []
    for line in _safe(paragraph).split("\n"):
        lead = " " * (len(line) - len(line.lstrip()))
        room = WIDTH - indent - (3 if first and not found else 0)
        hanging = lead + "    " if lead else ""
        found += textwrap.wrap(
            line.strip(),
            room,
            initial_indent=lead,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return found


def _safe(text: str) -> str:
    """A text that cannot end the string it is put into, nor escape anything in it."""
    safe = text.replace("\\", "\\\\").replace('"""', "'''").strip("\n")
    return f"{safe[:-1]}'" if safe.endswith('"') else safe


def _spaced(name: str) -> str:
    words = _DEFINITION.sub(" ", name).split(" ")
    return " ".join([words[0], *(w if w.isupper() else w.lower() for w in words[1:])])
