"""Prints how much of the ledger has tests, per area and revision.

    python -m tests.requirements.coverage

Counts runtime entries: those with a test or an exception, of all that hold in the revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .entries import FINISHED_AREAS, Entry, claims, exceptions, ledger


@dataclass(frozen=True)
class Row:
    """One area in one revision."""

    area: str
    revision: str
    binding: bool
    tested: int
    excepted: int
    total: int


def rows(
    entries: Mapping[str, Entry], claimed: Collection[str], excepted: Collection[str]
) -> list[Row]:
    """The count for each area, revision and bindingness, in the order of the ledger."""
    total: Counter[tuple[str, str, bool]] = Counter()
    tested: Counter[tuple[str, str, bool]] = Counter()
    waived: Counter[tuple[str, str, bool]] = Counter()
    for entry in entries.values():
        if entry.scope != "runtime":
            continue
        for revision in entry.revisions:
            key = (entry.area, revision, entry.binding)
            total[key] += 1
            tested[key] += entry.id in claimed
            waived[key] += entry.id in excepted
    return [Row(*key, tested[key], waived[key], count) for key, count in total.items()]


def table(found: Iterable[Row]) -> str:
    """A text table: one line per area, one column per revision, `MUST tested/total (rest)`."""
    cells: dict[tuple[str, str], list[str]] = {}
    for row in sorted(found, key=lambda row: not row.binding):
        waived = f"-{row.excepted}" if row.excepted else ""
        text = f"{row.tested}/{row.total}{waived}"
        cells.setdefault((row.area, row.revision), []).append(text if row.binding else f"({text})")
    revisions = sorted({revision for _, revision in cells})
    areas = list(dict.fromkeys(area for area, _ in cells))
    lines = ["area".ljust(22) + "".join(revision.rjust(18) for revision in revisions)]
    lines += [
        ("* " if area in FINISHED_AREAS else "  ")
        + area.ljust(20)
        + "".join(" ".join(cells.get((area, revision), [])).rjust(18) for revision in revisions)
        for area in areas
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table, then what it counts."""
    print(table(rows(ledger(), claims(), exceptions())))
    print(
        "\nruntime entries with a test / all; first MUST and MUST NOT, then (SHOULD and MAY)"
        "\n-n: excepted in exceptions.toml; *: the area is finished"
    )


if __name__ == "__main__":
    main()
