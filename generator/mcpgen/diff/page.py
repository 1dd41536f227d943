"""A comparison as one HTML page without other files or network access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined

from mcpgen import paths
from mcpgen.diff import report
from mcpgen.diff.changes import Change
from mcpgen.diff.compare import Diff
from mcpgen.diff.rules import SEVERITIES
from mcpgen.errors import safe_text
from mcpgen.render.templates import SandboxedEnvironment

_LONGEST = 300
_SECTIONS: Mapping[str, str] = {
    **dict.fromkeys(("method", "notification", "params", "capability"), "Messages"),
    **dict.fromkeys(("field", "value", "type", "type name"), "Types"),
}
"""The section of a changed element; all others are facts."""
_FACTS = "Facts"


@dataclass(frozen=True)
class Owner:
    """The changes in one method, type or table.

    Attributes:
        name: The method, type or table.
        section: `Messages`, `Types` or `Facts`.
        changes: The changes, gravest first.
    """

    name: str
    section: str
    changes: tuple[Change, ...]


def html(diff: Diff) -> str:
    """The comparison as an HTML page."""
    environment = SandboxedEnvironment(
        loader=FileSystemLoader(paths.PACKAGE / "diff"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {"safe_text": _one_line, "within": _relative_place, "side": _side}
    environment.filters.update(filters)
    return environment.get_template("page.html.jinja").render(
        diff=diff,
        owners=list(_owners(diff)),
        sections=[*dict.fromkeys(_SECTIONS.values()), _FACTS],
        parties=diff.parties,
        by_party=report.by_party(diff),
        severities=SEVERITIES[:-1],
    )


def _one_line(text: str) -> str:
    """A foreign text in one line, cut if it is very long."""
    return safe_text(text, _LONGEST)


def _relative_place(place: str, owner: str) -> str:
    """A place relative to its owner."""
    return place.removeprefix(f"{owner}.")


def _side(change: Change, which: str) -> str:
    """The value in one revision, with its place if the places differ."""
    place, text = (
        (change.old_place, change.old) if which == "old" else (change.new_place, change.new)
    )
    if not text or text == place:
        return place
    return text if change.old_place == change.new_place else f"{place}: {text}"


def _owners(diff: Diff) -> Iterator[Owner]:
    changes: dict[tuple[str, str], list[Change]] = {}
    for change in diff.changes:
        section = _SECTIONS.get(change.rule.element, _FACTS)
        changes.setdefault((section, change.owner), []).append(change)
    for section, name in sorted(changes, key=lambda key: key[1].casefold()):
        yield Owner(name, section, tuple(changes[section, name]))
