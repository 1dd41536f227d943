"""Facts of an added revision that a person has to check, each with its reason and page.

Facts that the schema states need no check. All others are guesses, or come from the prose of the
revision that the facts were carried over from.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from mcpgen.json_types import Json
from mcpgen.model.fitting import FittedFacts, Guess
from mcpgen.schema import Schema, docs
from mcpgen.schema.docs import Docs
from mcpgen.schema.facts import Facts
from mcpgen.schema.structure import unescape

CHANGES = "changelog"
"""The page for facts that belong to no other page."""

_SOURCE = re.compile(r"^Source: (.+)\.$", re.MULTILINE)
_PAGE = re.compile(r"[\w/-]+")
BY_METHOD = frozenset({"methods", "capabilities", "results"})
"""Tables whose keys are methods."""


@dataclass(frozen=True)
class Review:
    """A fact to check.

    Attributes:
        pointer: The place of the fact in facts.toml.
        value: The assumed value.
        reason: The basis of a guess; empty for a fact that is carried over.
        pages: Addresses of the pages that state the fact.
    """

    pointer: str
    value: Json
    reason: str
    pages: tuple[str, ...]

    @property
    def table(self) -> str:
        """The table of facts.toml that has the fact."""
        return self.pointer.split("/")[1]


def reviews(fitted: FittedFacts, loaded: Schema, texts: Docs) -> tuple[Review, ...]:
    """The facts to check: guesses first, then facts that are carried over.

    Args:
        fitted: The facts for a schema.
        loaded: The schema.
        texts: The documentation, which has the pages of types.
    """
    pages = _Pages(loaded, texts)
    return tuple(pages.review(fact) for fact in (*fitted.guesses, *fitted.carried))


class _Pages:
    """The pages of a revision that state its facts."""

    def __init__(self, loaded: Schema, texts: Docs) -> None:
        self._revision = loaded.revision
        self._texts = texts
        self._messages = dict(_messages(loaded))
        self._tables = {name: tuple(_sources(kind)) for name, kind in get_type_hints(Facts).items()}

    def review(self, fact: Guess) -> Review:
        """A fact with the pages that state it."""
        pages = tuple(docs.address(self._revision, page) for page in self._of(fact.pointer))
        return Review(fact.pointer, fact.value, fact.why, pages)

    def _of(self, pointer: str) -> tuple[str, ...]:
        table, *keys = map(unescape, pointer.split("/")[1:])
        if table in BY_METHOD:
            method = keys[1] if table == "results" else keys[0]
            return (self._of_method(method),)
        if table in ("defaults", "renamed"):
            return (self._texts.page(self._revision, keys[0]) or CHANGES,)
        return self._tables[table] or (CHANGES,)

    def _of_method(self, method: str) -> str:
        """The page of the method's type; else the one whose topic is a word of the method."""
        page = self._texts.page(self._revision, self._messages.get(method, ""))
        topics = (self._texts.page_of_topic(self._revision, word) for word in method.split("/"))
        return page or next(filter(None, topics), CHANGES)


def _messages(loaded: Schema) -> Iterator[tuple[str, str]]:
    """The methods of a schema, and the definitions of their messages."""
    for name, node in loaded.definitions.items():
        method: Json = node.get("properties", {}).get("method", {}).get("const")
        if isinstance(method, str):
            yield method, name


def _sources(kind: Any) -> Iterable[str]:
    """The pages that the docstring of a table of facts names."""
    match = _SOURCE.search(inspect.getdoc(kind) or "") if inspect.isclass(kind) else None
    for part in match[1].split(", ") if match else ():
        if page := _PAGE.match(part):
            yield page[0]


def by_pages(
    carried: Iterable[Review],
) -> list[tuple[Mapping[str, int], tuple[str, ...]]]:
    """The number of facts to be checked per table, with the pages.

    Facts about methods come last, with no page: each is on the page of its method.
    """
    counters: dict[tuple[str, ...], Counter[str]] = {}
    by_method = Counter[str]()
    for review in carried:
        if review.table in BY_METHOD:
            by_method[review.table] += 1
        else:
            counters.setdefault(review.pages, Counter())[review.table] += 1
    groups: list[tuple[Mapping[str, int], tuple[str, ...]]] = [
        (counts, pages) for pages, counts in counters.items()
    ]
    return [*groups, (by_method, ())] if by_method else groups
