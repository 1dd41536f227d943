"""Docstrings of types and calls, wrapped and escaped.

The prose of a schema is preferred; mcpgen's own schemas have none, but documentation.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mcpgen.literals import WIDTH, Code, escape_docstring
from mcpgen.model.normalized import Definition
from mcpgen.schema import Schema
from mcpgen.schema.docs import Docs
from mcpgen.schema.structure import escape

MAX_TEXT = 10_000
"""Limit of the characters of one description in a docstring; longer ones are cut.

The longest of an official schema has 1,271 characters.
"""
MAX_PROSE = 1_000_000
"""Limit of the characters of all descriptions of a schema; beyond it, all get the same limit.

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
        """Limit of the characters of one description."""
        lengths = [min(len(text), MAX_TEXT) for text in self.schema.prose.values()]
        return MAX_TEXT if sum(lengths) <= MAX_PROSE else MAX_PROSE // len(lengths)

    def _shorten(self, text: str) -> str:
        """Cut a text to the limit, with a note if it is longer."""
        if len(text) <= self.limit:
            return text
        return f"{text[: self.limit].rstrip()} ... (cut, of {len(text)} characters)"


def docstring(paragraphs: Iterable[str], indent: int, source: str = "") -> Code:
    """Write paragraphs as a docstring at an indentation, quotes included.

    A docstring that fits on a line stays on it; others have their closing quotes on a new line.

    Args:
        paragraphs: Texts; empty ones are left out.
        indent: Columns before the docstring.
        source: A sentence that names a page, or an empty text: the end of the only paragraph if
            that ends with a sentence, otherwise a new paragraph.
    """
    whole = [paragraph.strip("\n") for paragraph in paragraphs if paragraph]
    margin = " " * indent
    if source and len(whole) == 1 and "\n" not in whole[0] and whole[0].endswith((".", "!", "?")):
        whole = [f"{whole[0]} {source}"]
    elif source:
        whole.append(source)
    if len(whole) == 1:
        text = escape_docstring(whole[0])
        if "\n" not in text and len(text) + indent + 2 * len(_QUOTES) <= WIDTH:
            return _quote(text)
    lines: list[str] = []
    for paragraph in whole:
        if lines:
            lines.append("")
        lines += _wrap(paragraph, indent, first=not lines)
    if len(lines) == 1:  # no room is left for the closing quotes
        lines = [*_wrap(whole[0], indent + len(_QUOTES), first=True)]
    if source and len(lines) > 1 and lines[-2].endswith(" Source:"):
        lines[-2:] = [lines[-2].removesuffix(" Source:"), f"Source: {lines[-1]}"]
    head, *tail = lines
    return _quote("\n".join([head, *(margin + line if line else "" for line in tail), margin]))


def _quote(text: str) -> Code:
    return Code(f"{_QUOTES}{text}{_QUOTES}")


def arguments(pairs: Sequence[tuple[str, str]]) -> str:
    """The `Args:` section for names and their meanings; empty if there are no meanings.

    Only the first paragraph of a text is used.
    """
    rows = [f"    {name}: {_line(text)}" for name, text in pairs if text]
    return "\n".join(["Args:", *rows]) if rows else ""


def _line(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


@lru_cache(maxsize=4096)  # revisions share most paragraphs, and so do packages of a process
def _wrap(paragraph: str, indent: int, *, first: bool) -> tuple[str, ...]:
    """Wrap a paragraph; one with line breaks keeps them."""
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
    return tuple(lines)


def _as_words(name: str) -> str:
    words = _DEFINITION.sub(" ", name).split(" ")
    return " ".join([words[0], *(w if w.isupper() else w.lower() for w in words[1:])])
