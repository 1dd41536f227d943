"""Computes the figures of `docs/generated-sdk.md`, and compares them with those on the page.

    PYTHONPATH=tests:generated python -m tests.findings CACHE [--write]

CACHE is the folder in which sessions of `nox` leave what they measured: the runs of the conformance
suite and of the official SDK's tests. Without a run the figures of these blocks are not compared,
which is an error in CI. Lines of code may differ from the page by a tenth, since
each change moves them. `--write` renews the page; a block that nothing was measured for stays.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.__main__ import FIGURES
from findings import layers, quickstarts
from mcpgen import schema
from requirements.entries import ledger
from website import markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "generated-sdk.md"
CONTRADICTIONS = Path(__file__).with_name("contradictions.toml")
BLOCK = re.compile(r"(<!-- findings: (\w+) -->\n)(.*?)(<!-- /findings -->)", re.DOTALL)


class NothingMeasuredError(Exception):
    """A session did not leave its figures."""


def table(header: Iterable[str], rows: Iterable[tuple[str, int]]) -> str:
    """A table in Markdown, of names and numbers."""
    return markdown.table(header, ((name, f"{number:,}") for name, number in rows))


def package(_: Path) -> str:
    """The layers of the committed package."""
    lines, sources = layers.package(), layers.sources()
    rows = [
        ("rendered from the schema: models, methods, calls and handlers", lines["schema"]),
        ("rendered from facts that only the prose states", lines["facts"]),
        ("rendered from what was chosen: names, classes with their features", lines["choice"]),
        ("written by hand, the same in every package", lines["by hand"]),
        ("all", sum(lines.values())),
    ]
    made = [
        ("facts of the prose (`facts.toml`)", sources["facts"]),
        ("corrections of published schemas (`errata.toml`)", sources["errata"]),
        ("descriptions in our own words (`docs.toml`)", sources["descriptions"]),
        ("templates that are rendered", sources["templates"]),
        ("the generator", sources["generator"]),
    ]
    return table(("Layer of the package", "Lines"), rows) + table(("Source", "Lines"), made)


def sdk(_: Path) -> str:
    """The layers of the official SDK."""
    lines = layers.official_sdk()
    rows = [
        ("rendered by the example: types on the wire, methods, versions", lines["rendered"]),
        ("its other types, by hand: `mcp_types`", lines["types by hand"]),
        ("sessions, transports, authorization, servers and clients, by hand", lines["by hand"]),
        ("all", sum(lines.values())),
    ]
    return table(("Layer of the SDK", "Lines"), rows)


def rules(_: Path) -> str:
    """The rules of the ledger by what decides them."""
    counts = layers.rules()
    rows = [
        ("whose source is a schema", counts["schema"]),
        (
            "of pages, in some revisions: decided by facts or schema, kept by code",
            counts["some revisions"],
        ),
        ("of pages, in every revision: code alone", counts["every revision"]),
        ("all", counts["all"]),
    ]
    return table(("Rules that a package keeps or enforces", "Count"), rows)


def suite(cache: Path) -> str:
    """The official conformance suite by revision."""
    figures = _read(cache / "outcomes" / FIGURES)
    rows = (
        (
            row["side"],
            row["revision"],
            f"{row['passed']} of {row['scenarios']}",
            f"{row['good']} of {row['checks']}",
        )
        for row in figures["rows"]
    )
    header = ("Side", "Revision", "Scenarios", "Checks")
    return f"Version {figures['suite']} of the suite.\n\n" + markdown.table(header, rows)


def proof(cache: Path) -> str:
    """The official SDK's own tests."""
    figures = _read(cache / "official-sdk" / "figures.json")
    rows = [
        ("tests that pass on the rendered modules", figures["passing"]),
        ("tests that pass on its own modules alone", figures["lost"]),
        ("lines that a person maintains: its own", figures["lines_own"]),
        ("lines that a person maintains: the example's", figures["lines_example"]),
    ]
    return table(("The official SDK", "Count"), rows)


def programs(_: Path) -> str:
    """The quickstarts, run with a package of each revision."""
    lines = quickstarts.lines()
    revisions = [row.name for row in schema.revisions()]
    rows = [(name, "works" if quickstarts.works(name) else "fails") for name in revisions]
    counted = " and ".join(f"{count} lines ({name})" for name, count in lines.items())
    return f"{counted}, the same for every revision.\n\n" + markdown.table(
        ("Revision", "Run"), rows
    )


def defects(_: Path) -> str:
    """The corrections of published schemas, and what documents contradict each other about."""
    return "\n".join([*_errata(), *_contradictions()])


def _errata() -> Iterator[str]:
    for revision in (row.name for row in schema.revisions()):
        for erratum in schema.read_errata(schema.entry(revision).folder / "errata.toml"):
            old, new = (json.dumps(value) for value in (erratum.old, erratum.new))
            yield f"- `schema/{revision}/schema.json`, `{erratum.pointer}`: {old} should be {new}."
            yield f"  {erratum.reason[:1].upper()}{erratum.reason[1:]}. Shown by {erratum.source}."


def _contradictions() -> Iterator[str]:
    known = ledger()
    for row in tomllib.loads(CONTRADICTIONS.read_text("utf-8"))["contradiction"]:
        unknown = [id for id in row["rules"] if id not in known]
        if unknown:
            raise SystemExit(f"{CONTRADICTIONS.name}: expected rules of the ledger, got {unknown}")
        yield f"- {row['title']} ({row['place']})."
        yield f"  {row['says'][:1].upper()}{row['says'][1:]}. Proposal: {row['proposal']}."


BLOCKS: Mapping[str, Callable[[Path], str]] = {
    "package": package,
    "sdk": sdk,
    "rules": rules,
    "suite": suite,
    "proof": proof,
    "programs": programs,
    "defects": defects,
}
"""By name, what computes a block of the page."""


ROUGH = frozenset({"package", "sdk"})
"""The blocks that count lines."""
_NUMBER = re.compile(r"\d[\d,]*")


def agrees(name: str, old: str, new: str) -> bool:
    """Whether a block says what was computed."""
    if name not in ROUGH:
        return old == new
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=False)
    counts = [[int(each.replace(",", "")) for each in pair] for pair in pairs]
    near = all(abs(was - now) <= max(10, was / 10) for was, now in counts)
    return near and _NUMBER.sub("0", old) == _NUMBER.sub("0", new)


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise NothingMeasuredError(path.name)
    figures: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return figures


def main() -> int:
    """Compute, and compare or write."""
    parser = argparse.ArgumentParser(description="figures of docs/generated-sdk.md")
    parser.add_argument("cache", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    differing: list[str] = []
    missing: list[str] = []

    def computed(match: re.Match[str]) -> str:
        try:
            text = BLOCKS[match[2]](options.cache)
        except NothingMeasuredError as error:
            missing.append(f"{match[2]} ({error})")
            return match[0]
        block = f"{match[1]}{text.rstrip()}\n{match[4]}"
        if not agrees(match[2], match[0], block):
            differing.append(match[2])
        return block

    text = BLOCK.sub(computed, PAGE.read_text("utf-8"))
    if missing:
        print(f"nothing was measured for {', '.join(missing)}")
    if options.write:
        PAGE.write_text(text, "utf-8")
        return 0
    if differing:
        names = ", ".join(differing)
        print(f"docs/{PAGE.name}: expected other figures in {names}: -- --write renews them")
    return 1 if differing or (missing and os.environ.get("CI")) else 0


if __name__ == "__main__":
    sys.exit(main())
