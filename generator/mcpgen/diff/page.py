"""A comparison as one HTML page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcpgen import paths
from mcpgen.diff import report
from mcpgen.diff.changes import PARTIES, Change
from mcpgen.diff.compare import Diff
from mcpgen.diff.rules import SEVERITIES
from mcpgen.errors import safe_text

_KINDS = (
    ("Messages", ("method", "notification", "params", "capability")),
    ("Types", ("field", "value", "type")),
    ("Facts", ("fact", "error code")),
)


@dataclass(frozen=True)
class Owner:
    """The changes in one method, type or table.

    Attributes:
        name: What they are in.
        section: `Messages`, `Types` or `Facts`.
        changes: The changes, gravest first.
    """

    name: str
    section: str
    changes: tuple[Change, ...]


def html(diff: Diff) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(paths.PACKAGE / "diff"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({"safe_text": lambda text: safe_text(text, 300)})
    return environment.get_template("page.html.jinja").render(
        diff=diff,
        owners=list(_owners(diff)),
        sections=[section for section, _ in _KINDS],
        parties=PARTIES,
        by_party=report.by_party(diff),
        severities=SEVERITIES[:-1],
    )


def _owners(diff: Diff) -> Iterator[Owner]:
    for section, elements in _KINDS:
        held: dict[str, list[Change]] = {}
        for change in diff.changes:
            if change.rule.element in elements:
                held.setdefault(change.owner, []).append(change)
        for name in sorted(held, key=str.casefold):
            yield Owner(name, section, tuple(held[name]))
