"""Checks that what the specification binds us to was tested in each revision that has it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from . import EVERY_REVISION
from .entries import TESTS, Claim, Entry, LedgerError, claims, exceptions, ledger

Pair = tuple[str, str]
"""The id of a rule, and a revision."""


class Proof(NamedTuple):
    """A rule in a revision, by a test that ran and passed."""

    pair: Pair
    file: str
    test: str


def proofs(records: Iterable[str], entries: Mapping[str, Entry]) -> set[Proof]:
    """The proofs in lines of records; only for revisions that the rule holds in."""
    known: set[Proof] = set()
    for line in records:
        id, _, rest = line.partition("\t")
        revision, tab, test = rest.partition("\t")
        if not tab or id not in entries:
            raise LedgerError(f"expected id, revision and test, got {line!r}")
        path, *_, name = test.partition("[")[0].split("::")
        file = path.removeprefix(f"{TESTS.name}/")
        for each in entries[id].revisions:
            if revision in (each, EVERY_REVISION):
                known.add(Proof((id, each), file, name))
    return known


def idle_claims(made: Iterable[Claim], known: AbstractSet[Proof]) -> list[Claim]:
    """The claims that count in no revision: their test did not pass, or not where the rule is."""
    by_test = {(proof.pair[0], proof.file, proof.test) for proof in known}
    by_file = {(id, file, "") for id, file, _ in by_test}
    return [claim for claim in made if (claim.id, claim.file, claim.test) not in by_test | by_file]


def gaps(entries: Mapping[str, Entry], settled: AbstractSet[Pair]) -> Iterator[Pair]:
    """Binding entries, and the revisions in which they are not settled."""
    for entry in entries.values():
        if entry.binding:
            for revision in entry.revisions:
                if (entry.id, revision) not in settled:
                    yield entry.id, revision


def table(
    entries: Mapping[str, Entry], tested: AbstractSet[Pair], waived: AbstractSet[Pair]
) -> str:
    """One line per area, one column per revision: `MUST tested/total (rest)`."""
    runtime = [entry for entry in entries.values() if entry.scope == "runtime"]
    revisions = sorted({revision for entry in runtime for revision in entry.revisions})
    lines = ["area".ljust(22) + "".join(revision.rjust(18) for revision in revisions)]
    for area in dict.fromkeys(entry.area for entry in runtime):
        line = area.ljust(22)
        for revision in revisions:
            cell: list[str] = []
            for binding in (True, False):
                of_both = [each for each in runtime if (each.area, each.binding) == (area, binding)]
                pairs = {(each.id, revision) for each in of_both if revision in each.revisions}
                excepted = f"-{len(pairs & waived)}" if pairs & waived else ""
                text = f"{len(pairs & tested)}/{len(pairs)}{excepted}"
                cell += [text if binding else f"({text})"] if pairs else []
            line += " ".join(cell).rjust(18)
        lines.append(line)
    return "\n".join(lines)


def lines_of(files: Iterable[Path]) -> Iterator[str]:
    """The lines of records."""
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
        known = proofs(lines_of(parser.parse_args().records), entries)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    tested = {proof.pair for proof in known}
    waived = {
        (id, revision)
        for id, exception in exceptions().items()
        if id in entries
        for revision in exception.revisions or entries[id].revisions
    }
    print(table(entries, tested, waived))
    print(
        "\nruntime entries with a test that passed / all; first MUST and MUST NOT, then (SHOULD "
        "and MAY)\n-n: excepted in exceptions.toml"
    )
    faults = [
        f"{id}: expected a test that passes in {revision}, or an exception"
        for id, revision in sorted(gaps(entries, tested | waived))
    ]
    faults += [
        f"{id}: excepted in {revision}, and tested there"
        for id, revision in sorted(tested & waived)
    ]
    made = (claim for by_id in claims().values() for claim in by_id)
    faults += [
        f"{claim}: counts nowhere: its test did not pass in a recorded run"
        for claim in idle_claims(made, known)
    ]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
