"""The changes of a server as text, Markdown, JSON, JUnit, SARIF and annotations of GitHub."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from mcpgen import __version__
from mcpgen.console import count_of
from mcpgen.contract.compare import Change
from mcpgen.contract.rules import RULES, SEVERITIES
from mcpgen.errors import safe_text

_LONGEST = 400
_SHOWN = 5
_LEVELS: Mapping[str, str] = {"breaking": "error", "warning": "warning", "compatible": "note"}
"""The levels of SARIF by severity."""
_COMMANDS: Mapping[str, str] = {"breaking": "error", "warning": "warning", "compatible": "notice"}
"""The commands of GitHub's workflows by severity."""


def _line(change: Change) -> str:
    """A change in one line, without its severity."""
    where = f" (in {', '.join(change.revisions)})" if change.revisions else ""
    return safe_text(f"{change.item}: {change.text}{where}", _LONGEST)


def _more(change: Change) -> list[str]:
    lines = [f"at {safe_text(change.pointer, _LONGEST)}"] if change.pointer else []
    if change.witness:
        lines.append(f"for example {safe_text(change.witness, _LONGEST)}")
    if change.allowed:
        lines.append(f"allowed: {safe_text(change.allowed, _LONGEST)}")
    return lines


def text(changes: Sequence[Change]) -> str:
    """The changes for a terminal; many items with the same change are one line."""
    alike: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in changes:
        key = (change.rule.id, change.text, change.witness, change.allowed)
        alike.setdefault(key, []).append(change)
    lines: list[str] = []
    for group in alike.values():
        shown = group if len(group) <= _SHOWN else group[:1]
        for change in shown:
            severity = (
                f"{change.rule.severity}, allowed" if change.allowed else change.rule.severity
            )
            lines.append(f"{severity}: {change.rule.id}: {_line(change)}")
            lines += [f"  {line}" for line in _more(change)]
        if len(shown) < len(group):
            items = ", ".join(safe_text(each.item) for each in group[1:_SHOWN])
            lines.append(f"  and {items} and {len(group) - _SHOWN} more: --json lists them")
    return "\n".join(lines)


def summary(changes: Sequence[Change]) -> str:
    """One line about the changes."""
    if not changes:
        return "nothing changed"
    counts = Counter(change.rule.severity for change in changes if not change.allowed)
    parts = [f"{counts[each]} {each}" for each in SEVERITIES if counts[each]]
    allowed = sum(bool(change.allowed) for change in changes)
    if allowed:
        parts.append(f"{allowed} allowed")
    return f"{count_of(len(changes), 'change')}: {', '.join(parts)}"


def markdown(changes: Sequence[Change]) -> str:
    """The changes as a table."""
    lines = [f"{summary(changes)[0].upper()}{summary(changes)[1:]}."]
    if changes:
        lines += ["", "| severity | rule | change | example |", "| --- | --- | --- | --- |"]
    for change in changes:
        severity = f"{change.rule.severity} (allowed)" if change.allowed else change.rule.severity
        cells = (severity, change.rule.id, _line(change), safe_text(change.witness, _LONGEST))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    for char in ("\\", "|", "<", "`", "*", "["):
        words = words.replace(char, f"\\{char}")
    return words


def records(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """The changes as JSON."""
    return [
        {
            "rule": change.rule.id,
            "severity": change.rule.severity,
            "category": change.rule.category,
            "item": change.item,
            "text": change.text,
            "pointer": change.pointer,
            "example": json.loads(change.witness) if _is_whole(change.witness) else None,
            "revisions": list(change.revisions),
            "allowed": change.allowed or None,
        }
        for change in changes
    ]


def _is_whole(witness: str) -> bool:
    return bool(witness) and not witness.endswith("...")


def junit(changes: Sequence[Change], file: str) -> str:
    """The changes as JUnit: a case for each; what breaks is a failure."""
    graver = [each for each in changes if each.rule.severity == "breaking" and not each.allowed]
    suite = ElementTree.Element(
        "testsuite", name=file, tests=str(max(len(changes), 1)), failures=str(len(graver))
    )
    for change in changes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(change.item), name=change.rule.id
        )
        body = _xml("\n".join((_line(change), *_more(change))))
        if change in graver:
            failure = ElementTree.SubElement(case, "failure", message=_xml(_line(change)))
            failure.text = body
        else:
            ElementTree.SubElement(case, "system-out").text = body
    if not changes:
        ElementTree.SubElement(suite, "testcase", classname="server", name="unchanged")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(words: str) -> str:
    """A text without characters that XML can't have."""
    return "".join(char for char in words if char in "\n\t" or char.isprintable())


def sarif(changes: Sequence[Change], file: str) -> str:
    """The changes as SARIF 2.1.0, at the lines of the contract's file where they are known."""
    used = sorted({change.rule.id for change in changes})
    results: list[dict[str, Any]] = [
        {
            "ruleId": change.rule.id,
            "level": "none" if change.allowed else _LEVELS[change.rule.severity],
            "message": {"text": "\n".join((_line(change), *_more(change)))},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": file}},
                    "logicalLocations": [{"fullyQualifiedName": change.pointer or "/"}],
                }
            ],
        }
        for change in changes
    ]
    driver = {
        "name": "mcpgen",
        "version": __version__,
        "rules": [
            {
                "id": each,
                "shortDescription": {"text": RULES[each].reason},
                "defaultConfiguration": {"level": _LEVELS[RULES[each].severity]},
            }
            for each in used
        ],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2) + "\n"


def github(changes: Sequence[Change], file: str) -> str:
    """The changes as commands of GitHub's workflows, which become annotations."""
    lines: list[str] = []
    for change in changes:
        command = "notice" if change.allowed else _COMMANDS[change.rule.severity]
        message = _command_text("; ".join((_line(change), *_more(change))))
        place = _command_text(file).replace(":", "%3A").replace(",", "%2C")
        lines.append(f"::{command} file={place},title={change.rule.id}::{message}")
    return "".join(f"{line}\n" for line in lines)


def _command_text(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


FORMS: Mapping[str, Callable[[Sequence[Change], str], str]] = {
    "markdown": lambda changes, _: markdown(changes),
    "junit": junit,
    "sarif": sarif,
    "github": github,
}
"""The forms of a report besides text and JSON, each with the name of the contract's file."""
