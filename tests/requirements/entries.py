"""Reads the ledger, the ids that tests claim, and the exceptions."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent


UNTESTED_AREA = "architecture"
"""The area of rules for whole applications, which no test of a package can show."""

BINDING = frozenset({"MUST", "MUST NOT"})


class LedgerError(Exception):
    """A file of this folder, or a claim in a test, is not of the agreed form."""


@dataclass(frozen=True)
class Entry:
    """One requirement of the ledger, with the fields of its file."""

    id: str
    level: str
    role: str
    scope: str
    revisions: tuple[str, ...]
    rule: str
    check: str
    source: str

    @property
    def area(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def binding(self) -> bool:
        """Whether the package itself must keep this rule."""
        is_shown = self.scope == "runtime" and self.area != UNTESTED_AREA
        return is_shown and self.level in BINDING


@dataclass(frozen=True)
class Claim:
    """One id in one `requirement(...)` of one test file."""

    id: str
    file: str
    line: int
    test: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.id}"


@dataclass(frozen=True)
class Exemption:
    """Why a rule has no test: in some revisions, or in all that it holds in (`None`)."""

    reason: str
    revisions: tuple[str, ...] | None


@cache
def ledger() -> dict[str, Entry]:
    """Every entry by id, in the order of the files."""
    entries: dict[str, Entry] = {}
    for path in sorted((HERE / "ledger").glob("*.yaml")):
        for row in yaml.load(path.read_text("utf-8"), Loader=_LOADER):
            row["revisions"] = tuple(row["revisions"])
            entry = Entry(**row)
            if entry.id in entries:
                raise LedgerError(f"{path.name}: expected unique ids, got {entry.id} twice")
            entries[entry.id] = entry
    return entries


@cache
def exceptions() -> dict[str, Exemption]:
    """Exemptions by id, for binding entries that have no test."""
    exemptions: dict[str, Exemption] = {}
    with (HERE / "exceptions.toml").open("rb") as file:
        rows: list[Mapping[str, Any]] = tomllib.load(file).get("exception", [])
    for row in rows:
        if row["id"] in exemptions or not row["reason"].strip():
            raise LedgerError(f"exceptions.toml: expected one reason for {row['id']}")
        revisions = row.get("revisions")
        exemptions[row["id"]] = Exemption(row["reason"], revisions and tuple(revisions))
    return exemptions


@cache
def claims() -> dict[str, list[Claim]]:
    """Every claim of every test file by id."""
    by_id: defaultdict[str, list[Claim]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for claim in claims_of(path.read_text("utf-8"), path.relative_to(TESTS).as_posix()):
            by_id[claim.id].append(claim)
    return dict(by_id)


def claims_of(source: str, file: str) -> Iterator[Claim]:
    """The claims in the source of one test file."""
    yield from _claims_in(ast.parse(source), file, "")


def _claims_in(node: ast.AST, file: str, test: str) -> Iterator[Claim]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            test = name
        case ast.Call(func=ast.Name(id="requirement") | ast.Attribute(attr="requirement")):
            for argument in node.args:
                match argument:
                    case ast.Constant(value=str(id)):
                        yield Claim(id, file, argument.lineno, test)
                    case _:
                        got, place = ast.unparse(argument), f"{file}:{node.lineno}"
                        raise LedgerError(f"{place}: expected a string literal, got {got}")
    for child in ast.iter_child_nodes(node):
        yield from _claims_in(child, file, test)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
