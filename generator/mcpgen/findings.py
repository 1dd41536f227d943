"""Findings of checks in the forms that other programs read: JUnit, SARIF, annotations of GitHub.

Each product that compares something makes its own text, Markdown and JSON, in its own words; these
forms have one shape for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree

from mcpgen import __version__

Level: TypeAlias = Literal["error", "warning", "note"]

_COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
"""The commands of GitHub's workflows by level."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        rule: The id of its rule.
        level: How grave it is.
        item: The thing that it is about, in words.
        text: The finding in one line, with the item.
        details: Further lines.
        pointer: Its place within the thing, as a JSON pointer; empty for the whole.
        line: Its line in the file, from 1; `None` if unknown.
        allowed: Whether a user allows it.
    """

    rule: str
    level: Level
    item: str
    text: str
    details: tuple[str, ...] = ()
    pointer: str = ""
    line: int | None = None
    allowed: bool = False

    @property
    def fails(self) -> bool:
        """Whether it is an error that nobody allows."""
        return self.level == "error" and not self.allowed


def junit(findings: Sequence[Finding], file: str, passed: str) -> str:
    """Findings as JUnit: a case for each; an error is a failure.

    Args:
        findings: The findings.
        file: The file that they are about, as name of the suite.
        passed: The name of the only case if there are none, as `class.name`.
    """
    failures = sum(each.fails for each in findings)
    suite = ElementTree.Element(
        "testsuite", name=file, tests=str(max(len(findings), 1)), failures=str(failures)
    )
    for each in findings:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(each.item), name=each.rule)
        body = _xml("\n".join((each.text, *each.details)))
        if each.fails:
            failure = ElementTree.SubElement(case, "failure", message=_xml(each.text))
            failure.text = body
        else:
            ElementTree.SubElement(case, "system-out").text = body
    if not findings:
        group, _, name = passed.partition(".")
        ElementTree.SubElement(suite, "testcase", classname=group, name=name)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(words: str) -> str:
    """A text without characters that XML can't have."""
    return "".join(char for char in words if char in "\n\t" or char.isprintable())


def sarif(findings: Iterable[Finding], file: str, rules: Mapping[str, tuple[str, Level]]) -> str:
    """Findings as SARIF 2.1.0.

    Args:
        findings: The findings.
        file: The file that they are about.
        rules: The reason and the level of each rule, by its id.
    """
    listed = list(findings)
    results = [
        {
            "ruleId": each.rule,
            "level": "none" if each.allowed else each.level,
            "message": {"text": "\n".join((each.text, *each.details))},
            "locations": [_location(each, file)],
        }
        for each in listed
    ]
    driver = {
        "name": "mcpgen",
        "version": __version__,
        "rules": [
            {
                "id": each,
                "shortDescription": {"text": rules[each][0]},
                "defaultConfiguration": {"level": rules[each][1]},
            }
            for each in sorted({finding.rule for finding in listed})
        ],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2) + "\n"


def _location(each: Finding, file: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": file}}
    if each.line is not None:
        physical["region"] = {"startLine": each.line}
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": each.pointer or "/"}],
    }


def github(findings: Iterable[Finding], file: str) -> str:
    """Findings as commands of GitHub's workflows, which become annotations."""
    place = _command_text(file).replace(":", "%3A").replace(",", "%2C")
    lines: list[str] = []
    for each in findings:
        command = "notice" if each.allowed else _COMMANDS[each.level]
        at = f"file={place}" if each.line is None else f"file={place},line={each.line}"
        message = _command_text("; ".join((each.text, *each.details)))
        lines.append(f"::{command} {at},title={each.rule}::{message}")
    return "".join(f"{line}\n" for line in lines)


def _command_text(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown_cell(words: str) -> str:
    """A text within a table of Markdown."""
    for char in ("\\", "|", "<", "`", "*", "["):
        words = words.replace(char, f"\\{char}")
    return words
