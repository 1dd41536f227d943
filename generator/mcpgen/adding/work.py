"""The work that an added revision leaves to a person: pages to read, lines to write, minutes.

The counts are exact. The minutes are the counts times fixed rates, which nobody measured: they say
whether a revision takes an hour or a week.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcpgen.adding.revision import Addition
from mcpgen.console import count_of

_MINUTES_OF_PAGE = 10
"""To read a page for the facts that it states."""
_MINUTES_OF_GUESS = 2
_MINUTES_OF_CORRECTION = 5
_MINUTES_OF_DESCRIPTION = 1

_LINES_OF_TYPE = 3
"""Of a type in docs.toml: its table, its text and its page."""
_LINES_OF_CORRECTION = 6
"""Of an entry of errata.toml."""


@dataclass(frozen=True)
class Work:
    """The work that is left to a person.

    Attributes:
        pages: Pages of the specification to read.
        facts: Facts on them that carry over, to be checked.
        guesses: Facts that are guesses.
        corrections: Corrections that do not match any more.
        descriptions: Types and fields to describe.
        lines: Lines to write, if each guess and each correction changes and no other fact does.
        minutes: An estimate for all of it.
    """

    pages: int
    facts: int
    guesses: int
    corrections: int
    descriptions: int
    lines: int
    minutes: int

    def text(self) -> str:
        """One line of the report."""
        counts = (
            f"{count_of(self.facts, 'fact')} to check on {count_of(self.pages, 'page')}",
            f"{self.guesses} {'guess' if self.guesses == 1 else 'guesses'}",
            f"{count_of(self.corrections, 'correction')}",
            f"{count_of(self.descriptions, 'description')}",
        )
        sums = f"{count_of(self.lines, 'line')} or more, some {count_of(self.minutes, 'minute')}"
        return f"{', '.join(counts)}: {sums}"


def work_of(added: Addition) -> Work:
    """The work that an added revision leaves."""
    guesses = sum(1 for review in added.reviews if review.reason)
    pages = len({page for review in added.reviews for page in review.pages})
    types = sum(1 for name in added.undocumented if "." not in name)
    descriptions, corrections = len(added.undocumented), len(added.unmatched)
    return Work(
        pages=pages,
        facts=len(added.reviews) - guesses,
        guesses=guesses,
        corrections=corrections,
        descriptions=descriptions,
        lines=guesses
        + corrections * _LINES_OF_CORRECTION
        + types * _LINES_OF_TYPE
        + (descriptions - types),
        minutes=pages * _MINUTES_OF_PAGE
        + guesses * _MINUTES_OF_GUESS
        + corrections * _MINUTES_OF_CORRECTION
        + descriptions * _MINUTES_OF_DESCRIPTION,
    )
