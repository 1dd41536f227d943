"""Reports of checks in the forms that other programs read: JUnit, SARIF, annotations of GitHub.

Each product that compares something makes its own text and JSON, in its own words; these forms have
one shape for all. `FORMS` has them by the words of `--format`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
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
        file: The file that it is about, as `shown_path` writes it; empty if it is about none.
        line: Its line in the file, from 1; `None` if unknown.
        reason: The rule in words.
        page: The address of a page that states the rule; empty if there is none.
        allowed: Whether a user allows it.
    """

    rule: str
    level: Level
    item: str
    text: str
    details: tuple[str, ...] = ()
    pointer: str = ""
    file: str = ""
    line: int | None = None
    reason: str = ""
    page: str = ""
    allowed: bool = False

    @property
    def fails(self) -> bool:
        """Whether it is an error that nobody allows."""
        return self.level == "error" and not self.allowed

    @property
    def lines(self) -> str:
        """Its text and its details."""
        return "\n".join((self.text, *self.details))


@dataclass(frozen=True)
class KeptRule:
    """A check without a finding, which JUnit counts.

    Attributes:
        item: The thing that was checked, in words.
        rule: The id of the rule.
        skipped: The reason why it was not checked; empty if it was.
    """

    item: str
    rule: str
    skipped: str = ""


@dataclass(frozen=True)
class Report:
    """The findings of one or several checks.

    Attributes:
        name: What was checked: a file, a server.
        findings: The findings.
        kept_rules: The checks without a finding, as far as the product counts them.
    """

    name: str
    findings: Sequence[Finding] = ()
    kept_rules: Sequence[KeptRule] = ()

    @property
    def fails(self) -> bool:
        """Whether one of the findings is an error that nobody allows."""
        return any(each.fails for each in self.findings)


def join_reports(reports: Sequence[Report], name: str) -> Report:
    """Several reports as one.

    Args:
        reports: The reports.
        name: The name of the whole, if they are not one.
    """
    if len(reports) == 1:
        return reports[0]
    findings = [finding for each in reports for finding in each.findings]
    return Report(name, findings, [kept for each in reports for kept in each.kept_rules])


def shown_path(path: Path) -> str:
    """A file for a finding: from the current directory if it lies there, with slashes."""
    here = Path.cwd()
    whole = here / path
    return (whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix()


def junit(report: Report) -> str:
    """A report as JUnit: a case for each finding and each check; an error is a failure."""
    kept = report.kept_rules or ([] if report.findings else [KeptRule(report.name, "unchanged")])
    counts = {
        "tests": len(report.findings) + len(kept),
        "failures": sum(each.fails for each in report.findings),
        "errors": 0,
        "skipped": sum(bool(each.skipped) for each in kept),
    }
    words = {name: str(number) for name, number in counts.items()}
    suite = ElementTree.Element("testsuite", {"name": _xml(report.name), **words})
    for finding in report.findings:
        name = " ".join(filter(None, (finding.rule, finding.pointer)))
        case = _case(suite, finding.item, name, finding.file)
        if finding.fails:
            failure = ElementTree.SubElement(case, "failure", message=_xml(finding.text))
            failure.text = _xml(finding.lines)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(finding.lines)
    for each in kept:
        case = _case(suite, each.item, each.rule)
        if each.skipped:
            ElementTree.SubElement(case, "skipped", message=_xml(each.skipped))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, item: str, name: str, file: str = "") -> ElementTree.Element:
    words = {"classname": _xml(item), "name": _xml(name), **({"file": file} if file else {})}
    return ElementTree.SubElement(suite, "testcase", words)


def _xml(words: str) -> str:
    """A text without characters that XML can't have."""
    return "".join(char for char in words if char in "\n\t" or char.isprintable())


def sarif(report: Report) -> str:
    """A report as SARIF 2.1.0."""
    rules = {each.rule: each for each in reversed(report.findings)}
    driver = {
        "name": "mcpgen",
        "version": __version__,
        "rules": [_rule(rules[name]) for name in sorted(rules)],
    }
    results = [
        {
            "ruleId": each.rule,
            "level": "none" if each.allowed else each.level,
            "message": {"text": each.lines},
            "locations": [_location(each)],
            "partialFingerprints": {"primaryLocationLineHash": _fingerprint(each)},
        }
        for each in report.findings
    ]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2) + "\n"


def _rule(each: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": each.rule, "defaultConfiguration": {"level": each.level}}
    if each.reason:
        rule["shortDescription"] = {"text": each.reason}
    if each.page:
        rule["helpUri"] = each.page
    return rule


def _location(each: Finding) -> dict[str, Any]:
    name = f"{each.item}{each.pointer}"
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name}]}
    if each.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(each.file)},
            "region": {"startLine": each.line or 1},  # code scanning needs one
        }
    return location


def _uri(file: str) -> str:
    """A path as a reference, relative to the repository if the path is."""
    return Path(file).as_uri() if Path(file).is_absolute() else quote(file)


def _fingerprint(each: Finding) -> str:
    """A value by which code scanning knows a finding again, wherever its line is."""
    parts = json.dumps([each.rule, each.file, each.item, each.pointer])
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def github(report: Report) -> str:
    """A report as commands of GitHub's workflows, which become annotations."""
    return "".join(f"{_command(each)}\n" for each in report.findings)


def _command(each: Finding) -> str:
    command = "notice" if each.allowed else _COMMANDS[each.level]
    line = "" if each.line is None else str(each.line)
    properties = {"file": each.file, "line": each.file and line, "title": each.rule}
    words = ",".join(f"{name}={_property(text)}" for name, text in properties.items() if text)
    return f"::{command} {words}::{_command_text('; '.join((each.text, *each.details)))}"


def _property(words: str) -> str:
    return _command_text(words).replace(":", "%3A").replace(",", "%2C")


def _command_text(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown(report: Report) -> str:
    """A report as a table of Markdown."""
    lines = [f"{markdown_cell(report.name)}: {len(report.findings) or 'no'} findings."]
    if report.findings:
        lines += ["", "| level | rule | finding |", "| --- | --- | --- |"]
    for each in report.findings:
        cells = (each.level, each.rule, each.text)
        lines.append(f"| {' | '.join(map(markdown_cell, cells))} |")
    return "\n".join(lines) + "\n"


def markdown_cell(words: str) -> str:
    """A text within a table of Markdown, in one line."""
    words = " ".join(words.splitlines())
    for char in ("\\", "|", "<", "`", "*", "["):
        words = words.replace(char, f"\\{char}")
    return words


FORMS: Mapping[str, Callable[[Report], str]] = {
    "markdown": markdown,
    "junit": junit,
    "sarif": sarif,
    "github": github,
}
"""The forms by the words of `--format`; each function gives a text that ends its last line."""
