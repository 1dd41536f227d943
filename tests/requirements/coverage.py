"""Checks that what the specification binds us to was tested in each revision that has it.

    python -m tests.requirements.coverage FILE [FILE ...]

Each file is a record of a test run (`pytest --record FILE`). Prints how many runtime entries of
each area and revision have a test that ran and passed. Fails if a binding entry of a finished area
has neither that nor an exception in one of its revisions.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from . import EVERY_REVISION
from .entries import FINISHED_AREAS, Entry, LedgerError, exceptions, ledger

Pair = tuple[str, str]
"""The id of a rule, and a revision."""


@dataclass(frozen=True)
class Row:
    """One area in one revision."""

    area: str
    revision: str
    binding: bool
    tested: int
    excepted: int
    total: int


def proven(records: Iterable[str], entries: Mapping[str, Entry]) -> set[Pair]:
    """The rules and revisions in lines of records; only revisions that the rule holds in.

    Raises:
        LedgerError: a line is not of the agreed form.
    """
    pairs: set[Pair] = set()
    for line in records:
        id, _, rest = line.partition("\t")
        revision, tab, _ = rest.partition("\t")
        if not tab or id not in entries:
            raise LedgerError(f"expected id, revision and test, got {line!r}")
        held = entries[id].revisions
        pairs |= {(id, each) for each in held if revision in (each, EVERY_REVISION)}
    return pairs


def excepted(entries: Mapping[str, Entry]) -> set[Pair]:
    """The rules and revisions that `exceptions.toml` excepts."""
    return {
        (id, revision)
        for id, exception in exceptions().items()
        if id in entries
        for revision in exception.revisions or entries[id].revisions
    }


def gaps(entries: Mapping[str, Entry], settled: AbstractSet[Pair]) -> Iterator[Pair]:
    """Binding entries of finished areas, and the revisions in which they are not settled."""
    for entry in entries.values():
        if entry.binding and entry.area in FINISHED_AREAS:
            for revision in entry.revisions:
                if (entry.id, revision) not in settled:
                    yield entry.id, revision


def rows(
    entries: Mapping[str, Entry], tested: AbstractSet[Pair], waived: AbstractSet[Pair]
) -> list[Row]:
    """The count for each area, revision and bindingness, in the order of the ledger."""
    counts: defaultdict[tuple[str, str, bool], Counter[str]] = defaultdict(Counter)
    for entry in entries.values():
        if entry.scope != "runtime":
            continue
        for revision in entry.revisions:
            count = counts[entry.area, revision, entry.binding]
            count["total"] += 1
            count["tested"] += (entry.id, revision) in tested
            count["waived"] += (entry.id, revision) in waived
    return [
        Row(*key, count["tested"], count["waived"], count["total"]) for key, count in counts.items()
    ]


def table(lines: Iterable[Row]) -> str:
    """A text table: one line per area, one column per revision, `MUST tested/total (rest)`."""
    cells: dict[tuple[str, str], list[str]] = {}
    for row in sorted(lines, key=lambda row: not row.binding):
        waived = f"-{row.excepted}" if row.excepted else ""
        text = f"{row.tested}/{row.total}{waived}"
        cells.setdefault((row.area, row.revision), []).append(text if row.binding else f"({text})")
    revisions = sorted({revision for _, revision in cells})
    areas = list(dict.fromkeys(area for area, _ in cells))
    text_lines = ["area".ljust(22) + "".join(revision.rjust(18) for revision in revisions)]
    text_lines += [
        ("* " if area in FINISHED_AREAS else "  ")
        + area.ljust(20)
        + "".join(" ".join(cells.get((area, revision), [])).rjust(18) for revision in revisions)
        for area in areas
    ]
    return "\n".join(text_lines)


def lines_of(files: Iterable[Path]) -> Iterator[str]:
    """The lines of records.

    Raises:
        LedgerError: a record is missing.
    """
    for file in files:
        if not file.is_file():
            raise LedgerError(f"expected the record of a test run, found no file {file}")
        yield from file.read_text("utf-8").splitlines()


def main() -> int:
    """Print the table and what is missing."""
    parser = argparse.ArgumentParser(description="test coverage of the ledger")
    parser.add_argument("records", nargs="+", type=Path)
    entries = ledger()
    try:
        tested = proven(lines_of(parser.parse_args().records), entries)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    waived = excepted(entries)
    print(table(rows(entries, tested, waived)))
    print(
        "\nruntime entries with a test that passed / all; first MUST and MUST NOT, then (SHOULD "
        "and MAY)\n-n: excepted in exceptions.toml; *: the area is finished"
    )
    missing = sorted(gaps(entries, tested | waived))
    for id, revision in missing:
        print(f"{id}: expected a test that passes in {revision}, or an exception", file=sys.stderr)
    needless = sorted(tested & waived)
    for id, revision in needless:
        print(f"{id}: excepted in {revision}, and tested there", file=sys.stderr)
    return 1 if missing or needless else 0


if __name__ == "__main__":
    sys.exit(main())
