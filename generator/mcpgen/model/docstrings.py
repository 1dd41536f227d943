"""Docstrings: what is said about a type or a call, wrapped and escaped.

The prose of a schema comes first, if it has any; mcpgen's own schemas have none, but documentation.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mcpgen.literals import WIDTH, Code, escape_docstring
from mcpgen.model.normalized import Definition
from mcpgen.schema import Schema
from mcpgen.schema.docs import Docs
from mcpgen.schema.structure import escape

MAX_TEXT = 10_000
"""Characters of one description that a docstring holds; what is longer is cut.

The longest of an official schema has 1,271 characters.
"""
MAX_PROSE = 1_000_000
"""Characters of all descriptions of a schema together; beyond, each is cut to the same length.

Official schemas have up to 63,000.
"""
_QUOTES = '"""'
_DEFINITION = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Doc:
    """A type's docstrings, quotes included.

    Attributes:
        text: The docstring of the type.
        fields: Those of its fields, by wire name; a field may have none.
    """

    text: Code
    fields: Mapping[str, Code]


@dataclass(frozen=True)
class Texts:
    """The documentation of the types of one revision."""

    schema: Schema
    docs: Docs

    def summary(self, definition: Definition) -> str:
        """The description of a type, in one paragraph or more."""
        own_text = self.docs.type_doc(self.schema.revision, definition.name)
        prose = self.schema.prose.get(definition.pointer, "")
        return self._shorten(prose or own_text) or f"{_as_words(definition.name)}."

    def member(self, definition: Definition, wire: str) -> str:
        """The description of a member of a type, or an empty text."""
        own_text = self.docs.field_doc(self.schema.revision, definition.name, wire)
        pointer = f"{definition.pointer}/properties/{escape(wire)}"
        return self._shorten(self.schema.prose.get(pointer, "") or own_text)

    def source(self, definition: Definition) -> str:
        """The sentence that names the page a type belongs to, or an empty text."""
        page = self.docs.page(self.schema.revision, definition.name)
        return f"Source: {page}." if page else ""

    @cached_property
    def limit(self) -> int:
        """Characters of one description that are kept."""
        lengths = [min(len(text), MAX_TEXT) for text in self.schema.prose.values()]
        return MAX_TEXT if sum(lengths) <= MAX_PROSE else MAX_PROSE // len(lengths)

    def _shorten(self, text: str) -> str:
        """A text within the limit, with a note where more is left out."""
        if len(text) <= self.limit:
            return text
        return f"{text[: self.limit].rstrip()} ... (cut, of {len(text)} characters)"


def docstring(paragraphs: Iterable[str], indent: int, source: str = "") -> Code:
    """Paragraphs as a docstring at an indentation, quotes included.

    One that fits on a line stays on it; the quotes of others close on a line of their own.

    Args:
        paragraphs: Texts; empty ones are left out.
        indent: Columns before the docstring.
        source: A sentence that names a page, or an empty text: behind a paragraph that leaves
            space for it, otherwise a paragraph of its own.
    """
    whole = [paragraph for paragraph in paragraphs if paragraph]
    margin = " " * indent
    if len(whole) == 1:
        text = escape_docstring(_one_paragraph(whole[0].strip("\n"), source))
        if "\n" not in text and len(text) + indent + 2 * len(_QUOTES) <= WIDTH:
            return _quote(text)
    if source:
        whole.append(source)
    lines: list[str] = []
    for paragraph in whole:
        if lines:
            lines.append("")
        lines += _wrap(paragraph, indent, first=not lines)
    head, *tail = lines
    return _quote("\n".join([head, *(margin + line if line else "" for line in tail), margin]))


def _one_paragraph(text: str, source: str) -> str:
    """A text with its source in the same line, if sentences can follow; otherwise below."""
    if not source:
        return text
    return f"{text} {source}" if text.endswith((".", "!", "?")) else f"{text}\n{source}"


def _quote(text: str) -> Code:
    return Code(f"{_QUOTES}{text}{_QUOTES}")


def arguments(pairs: Sequence[tuple[str, str]]) -> str:
    """The `Args:` section for names and what they mean; empty if nothing is said of any.

    Of a text in paragraphs, the first counts.
    """
    rows = [f"    {name}: {_line(text)}" for name, text in pairs if text]
    return "\n".join(["Args:", *rows]) if rows else ""


def _line(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _wrap(paragraph: str, indent: int, *, first: bool) -> list[str]:
    """A paragraph in lines; one that has line breaks of its own keeps them."""
    lines: list[str] = []
    for line in escape_docstring(paragraph.strip("\n")).split("\n"):
        lead = " " * (len(line) - len(line.lstrip()))
        room = WIDTH - indent - (len(_QUOTES) if first and not lines else 0)
        hanging = lead + "    " if lead else ""
        lines += textwrap.wrap(
            line.strip(),
            room,
            initial_indent=lead,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return lines


def _as_words(name: str) -> str:
    words = _DEFINITION.sub(" ", name).split(" ")
    return " ".join([words[0], *(w if w.isupper() else w.lower() for w in words[1:])])
