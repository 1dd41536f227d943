"""The official conformance suite as a command line: what it lists, and what its runs write."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Side = Literal["server", "client"]

_PACKAGE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
_LISTED = re.compile(r"^  - (\S+) \[(\S+)\]$", re.MULTILINE)
_FOLDER = re.compile(r"^(?:server-)?(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$")
_AUTHORIZATION = "auth/"
_OFF_TIMELINE = "extension"
_TASKS = "tasks-"
_SKIPPED_BY_ITSELF = frozenset({"tasks-status-notifications"})
"""Scenarios whose only check is skipped, until the suite opens subscription streams for them."""


@dataclass(frozen=True)
class Check:
    """One check of a scenario."""

    name: str
    status: str
    text: str

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Check:
        """From an entry of `checks.json`."""
        details: Mapping[str, Any] = value.get("details") or {}
        text = value.get("errorMessage") or details.get("message") or ""
        return cls(f"{value['id']} ({value['name']})", value["status"], str(text))


@dataclass(frozen=True)
class Outcome:
    """Outcome of one scenario at one revision."""

    side: Side
    scenario: str
    revision: str
    checks: Sequence[Check]
    output: str = ""

    def having(self, *statuses: str) -> list[Check]:
        """The checks with one of these statuses."""
        return [check for check in self.checks if check.status in statuses]

    @property
    def passed(self) -> bool:
        """Whether something was checked and nothing found wanting, warnings included."""
        return bool(self.having("SUCCESS")) and not self.having("FAILURE", "WARNING")

    @property
    def score(self) -> str:
        """Such as `3/3`; what was skipped or only told counts on neither side."""
        good = len(self.having("SUCCESS"))
        return f"{good}/{good + len(self.having('FAILURE', 'WARNING'))}"


class Suite:
    """The suite, as installed by npm."""

    def __init__(self, node: Path, prefix: Path) -> None:
        self._command = (str(node), str(prefix / _PACKAGE))
        self._listed: dict[Side, list[tuple[str, str]]] = {
            "server": _LISTED.findall(self._run("list", "--server").stdout),
            "client": _LISTED.findall(self._run("list", "--client").stdout),
        }
        self._has_requirements: dict[str, bool] = {}

    @property
    def version(self) -> str:
        """Its own version."""
        return self._run("--version").stdout.strip()

    def scenarios(self, side: Side) -> dict[str, list[str]]:
        """The scenarios of a side by revision, of extensions those of authorization alone."""
        by_revision: dict[str, list[str]] = {}
        for name, revisions in self._listed[side]:
            if revisions != _OFF_TIMELINE:
                for revision in revisions.split(","):
                    by_revision.setdefault(revision, []).append(name)
        extensions = [name for name in self.extensions(side) if name.startswith(_AUTHORIZATION)]
        for revision in by_revision if extensions else ():
            if self.has_requirements(revision):
                by_revision[revision] += extensions
        return by_revision

    def extensions(self, side: Side) -> list[str]:
        """The scenarios of extensions, which belong to no revision."""
        return [name for name, revisions in self._listed[side] if revisions == _OFF_TIMELINE]

    def task_scenarios(self) -> list[str]:
        """The scenarios of the tasks extension that check something."""
        names = (name for name in self.extensions("server") if name.startswith(_TASKS))
        return [name for name in names if name not in _SKIPPED_BY_ITSELF]

    def has_requirements(self, revision: str) -> bool:
        """Whether it has a frozen set of scenarios for a revision."""
        if revision not in self._has_requirements:  # half a second each time
            done = self._run("list", "--requirements", revision, check=False)
            self._has_requirements[revision] = done.returncode == 0
        return self._has_requirements[revision]

    def against_server(self, url: str, revision: str, folder: Path) -> Iterator[Outcome]:
        """Run all that applies to a server at a revision, in one go."""
        chosen: tuple[str, ...] = ("--spec-version", revision, "--suite", "all")
        if self.has_requirements(revision):
            chosen = ("--requirements", revision)
        ran = self._run("server", "--url", url, *chosen, "-o", f"{folder}", check=False)
        results = dict(_results(folder))
        left_out = self.extensions("server")
        ran_too = [scenario for scenario in results if scenario not in left_out]
        for scenario in dict.fromkeys([*self.scenarios("server")[revision], *ran_too]):
            checks = results.get(scenario, ())
            yield Outcome("server", scenario, revision, checks, ran.stdout + ran.stderr)

    def extension_against_server(
        self, url: str, scenario: str, revision: str, folder: Path
    ) -> Outcome:
        """Run one scenario of an extension against a server."""
        chosen = ("--scenario", scenario, "--spec-version", revision, "--force")
        ran = self._run("server", "--url", url, *chosen, "-o", f"{folder}", check=False)
        checks = dict(_results(folder)).get(scenario, [])
        return Outcome("server", scenario, revision, checks, ran.stdout + ran.stderr)

    def against_client(self, command: str, scenario: str, revision: str, folder: Path) -> Outcome:
        """Run one scenario for a client, which the suite starts with a URL as last argument."""
        chosen = ["--scenario", scenario, "--spec-version", revision]
        if scenario in self.extensions("client"):
            chosen.append("--force")
        ran = self._run("client", "--command", command, *chosen, "-o", f"{folder}", check=False)
        checks = dict(_results(folder)).get(scenario, [])
        output = ran.stdout + ran.stderr
        outcome = Outcome("client", scenario, revision, checks, output)
        if ran.returncode and outcome.passed:
            failed = Check("exit code of the suite", "FAILURE", f"{ran.returncode}")
            return Outcome("client", scenario, revision, [*checks, failed], output)
        return outcome

    def _run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=check, timeout=300
        )


def _results(folder: Path) -> Iterator[tuple[str, list[Check]]]:
    for place in sorted(folder.rglob("checks.json")):
        if named := _FOLDER.match(place.parent.relative_to(folder).as_posix()):
            yield named[1], [Check.read(entry) for entry in json.loads(place.read_text())]
