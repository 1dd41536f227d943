"""The rules that are checked, with their level, revisions and pages.

`rules.toml` has the entries of the requirements ledger that a check names. The ledger is the
source: a test compares the file with it, and can rewrite the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mcpgen.schema.docs import SITE

Severity = Literal["error", "warning"]

FILE = Path(__file__).with_name("rules.toml")

_BINDING = ("MUST", "MUST NOT")

STATED = frozenset(
    {
        "capabilities.server-features-advertised",
        "http.independent-process",
        "http.no-resumability",
        "http.no-sessions",
        "jsonrpc.batch-removed",
        "jsonrpc.code-method-ungated",
        "lifecycle.shutdown-by-transport",
        "logging.levels",
        "logging.set-level-removed",
        "ping.removed",
        "resources.subscribe-flag-legacy",
        "resources.subscribe-method-removed",
        "tools.input-validation-is-execution-error",
        "tools.invalid-arguments-protocol-error",
        "tools.unknown-tool-error",
        "versioning.no-modern-in-initialize",
    }
)
"""Rules of the ledger that their pages state as facts, or that follow from several pages.

The ledger requires them of our own server. No page says MUST about them, so breaking them is a
warning.
"""
_REVISION = r"\d{4}-\d\d-\d\d"
_OTHER_PAGE = re.compile(rf"\(({_REVISION}): ([^)]*)\)")
_OWN_PAGE = re.compile(rf"({_REVISION}):? (.*)")
_SCHEMA = re.compile(r"schema(?:\.(?:ts|json)#| )")
_SCHEMAS = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema"


@dataclass(frozen=True)
class Rule:
    """One rule of the specification.

    Attributes:
        id: Its id in the ledger, `<area>.<slug>`.
        level: MUST, MUST NOT, SHOULD or SHOULD NOT.
        revisions: The revisions that have the rule.
        sentence: The requirement.
        source: The pages of the specification, in the notation of the ledger.
    """

    id: str
    level: str
    revisions: tuple[str, ...]
    sentence: str
    source: str

    @property
    def area(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def keyword(self) -> str:
        """The level of the rule: MUST, MUST NOT, SHOULD or SHOULD NOT, or stated as a fact."""
        return "stated" if self.id in STATED else self.level

    @property
    def severity(self) -> Severity:
        """The severity of breaking the rule: a broken MUST is an error."""
        return "error" if self.keyword in _BINDING else "warning"

    def page(self, revision: str) -> str:
        """Address of the page that states the rule in a revision."""
        named = list(_pages(self.source))
        own = [row for row in named if row[0] == revision]
        shared = [row for row in named if not row[0]]
        at, path = (own or shared or named)[0]
        return _address(at or revision, path)


def _pages(source: str) -> Iterator[tuple[str, str]]:
    """The pages that a source names, each with its revision; empty for all other revisions."""
    yield from ((revision, path) for revision, path in _OTHER_PAGE.findall(source))
    for part in re.sub(r" ?\([^()]*\)", "", source).split(";"):
        own = _OWN_PAGE.fullmatch(part.strip())
        yield (own[1], own[2]) if own else ("", part.strip())


def _address(revision: str, path: str) -> str:
    if _SCHEMA.match(path):
        return f"{_SCHEMAS}/{revision}/schema.ts"
    page, _, anchor = path.split(" ")[0].partition("#")
    page = page.rstrip(",").removesuffix("/index")
    site = SITE.rpartition("/")[0] if page.startswith("docs/") else f"{SITE}/{revision}"
    return f"{site}/{page}" + (f"#{anchor}" if anchor else "")


@cache
def rules() -> Mapping[str, Rule]:
    """All rules that are checked, by id, in the order of the ledger."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["rule"]
    return {
        row["id"]: Rule(
            row["id"], row["level"], tuple(row["revisions"]), row["rule"], row["source"]
        )
        for row in rows
    }
