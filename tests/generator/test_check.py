"""Checking a package: up to date or not, and which of four reasons it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from generator.conftest import REVISION
from kit.limits import SetLimit
from mcpgen import __version__
from mcpgen.package import check as checking
from mcpgen.package import commands, manifest

pytestmark = pytest.mark.costly

Change = Callable[[Path], object]


def change_record(directory: Path, change: Callable[[Any], object]) -> None:
    """Change the manifest, as if the package had been made from other things."""
    path = directory / manifest.NAME
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def replace_text(directory: Path, path: str, text: str) -> None:
    """Change a file together with its fingerprint, as another generator would have written it."""
    (directory / path).write_text(text)
    print_of_text = {path: manifest.fingerprint(text)}
    change_record(directory, lambda record: record["files"].update(print_of_text))
    change_record(directory, lambda record: record.update(generator="x", mcpgen="0.0.1"))


def edit(directory: Path, path: str = "errors.py") -> None:
    """Edit a file by hand."""
    (directory / path).write_bytes((directory / path).read_bytes() + b"mine = 1\n")


MADE_BY_ANOTHER = f"the generator changed: made by mcpgen 0.0.1, this is {__version__}"
EDITED = "edited by hand: errors.py"
CHANGES: dict[str, tuple[Change, dict[str, Any], list[str], str]] = {
    "a file that was edited": (
        edit,
        {"edited": ["errors.py"]},
        [EDITED, "--- a/errors.py", "+++ b/errors.py"],
        "-mine = 1",
    ),
    "a file of many bytes": (
        lambda directory: os.truncate(directory / "errors.py", manifest.MAX_FILE_BYTES + 1),
        {"edited": ["errors.py"]},
        [EDITED],
        f"-... {manifest.MAX_FILE_BYTES + 1} bytes",
    ),
    "a file that was deleted": (
        lambda directory: (directory / "errors.py").unlink(),
        {"missing": ["errors.py"]},
        ["missing: errors.py", "--- /dev/null", "+++ b/errors.py"],
        "",
    ),
    "a file that would not be written any more": (
        lambda directory: replace_text(directory, "old.py", "x = 1\n"),
        {"generator_changed": MADE_BY_ANOTHER.partition(": ")[2]},
        [MADE_BY_ANOTHER, "--- a/old.py", "+++ /dev/null", "@@ -1 +0,0 @@", "-x = 1"],
        "",
    ),
}


WHY = {
    "edited": "errors.py: edited by hand; keep the edit by mcpgen patch",
    "missing": "errors.py: missing; run mcpgen update",
    "generator_changed": "old.py: not what mcpgen would write; run mcpgen update",
}
"""How annotations say each reason."""


@pytest.mark.parametrize("case", CHANGES)
def test_a_check_prints_reasons_and_a_diff_and_exits_with_1(package: Path, case: str) -> None:
    change, reasons, first, line = CHANGES[case]
    change(package)
    done = run("check", package)
    lines = done.out.splitlines()
    assert (done.code, lines[: len(first)], lines[-1]) == (1, first, f"{package}: 1 file differs")
    assert not line or line in lines
    assert "\0" not in done.out
    done = run("check", package, "--json")
    report = json.loads(done.out)
    assert (done.code, report["up_to_date"], len(report["differing"])) == (1, False, 1)
    stated = [key for key in WHY if report[key]]
    assert {key: report[key] for key in stated} == reasons
    assert line in report["diff"]
    shown = run("check", package, "--format", "github").out
    assert WHY[stated[0]] in shown
    assert ("mcpgen 0.0.1, this is" in shown) is ("generator_changed" in stated)


def test_a_check_reads_no_link_in_the_place_of_a_new_file(package: Path) -> None:
    change_record(package, lambda record: record["files"].pop("errors.py"))
    change_record(package, lambda record: record.update(generator="x"))
    (package / "errors.py").rename(package.parent / "errors.py")
    (package / "errors.py").symlink_to(package.parent / "errors.py")
    assert "expected files and directories, got a link: errors.py;" in run("check", package).err


def test_a_file_of_more_bytes_has_no_fingerprint_and_is_not_shown(
    tmp_path: Path, set_limit: SetLimit
) -> None:
    set_limit("mcpgen.package.manifest.MAX_FILE_BYTES", 2)
    for text, shown in (("ab", "-ab\n\\ No newline at end of file\n"), ("abc", "-... 3 bytes\n")):
        (tmp_path / "a.py").write_text(text)
        diff = f"--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n{shown}"
        assert checking.differences(tmp_path, ["a.py"], {}) == {"a.py": diff}
        own = manifest.fingerprint(text) if len(text) == 2 else ""
        assert manifest.file_fingerprint(tmp_path / "a.py") == own


PROSE = f"the schema changed: {REVISION}: its prose, corrections or facts"
STRUCTURE = f"the schema changed: {REVISION}: the structure of its messages"
OTHER_GENERATOR, OTHER_INPUTS, OTHER_STRUCTURE = (
    partial(change_record, change=change)
    for change in (
        lambda record: record.update(generator="x"),
        lambda record: record["revisions"][REVISION].update(inputs="x"),
        lambda record: record["revisions"][REVISION].update(inputs="x", structure="x"),
    )
)
"""Changes of the manifest: another generator, other prose or facts, and other messages."""


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (lambda directory: (directory / "mine.py").write_text("x = 1\n"), []),
        (OTHER_GENERATOR, [f"the generator changed: another build of mcpgen {__version__}"]),
        (OTHER_INPUTS, [PROSE]),
        (OTHER_STRUCTURE, [STRUCTURE]),
    ],
    ids=["a file of the user", "another generator", "other prose", "another structure"],
)
def test_a_package_that_would_be_written_as_it_is_is_up_to_date(
    package: Path, change: Change, reasons: list[str]
) -> None:
    change(package)
    done = run("check", package)
    assert (done.code, done.out.splitlines()) == (0, [*reasons, f"{package}: up to date"])


OPTIONS = commands.PackageOptions((REVISION,), features=("all",))


@pytest.mark.parametrize(
    ("change", "options", "errata"),
    [
        (lambda path: (path / "errors.py").unlink(), OPTIONS, True),
        (OTHER_GENERATOR, OPTIONS, True),
        (OTHER_INPUTS, OPTIONS, True),
        (lambda path: (path / manifest.NAME).unlink(), OPTIONS, True),
        (lambda path: change_record(path, lambda _: None), OPTIONS, True),
        (lambda _: None, commands.PackageOptions((REVISION,), parts=("types",)), True),
        (lambda _: None, commands.PackageOptions((REVISION, "latest")), True),
        (lambda _: None, OPTIONS, False),
    ],
    ids=["a file", "generator", "inputs", "no manifest", "its form", "parts", "more", "errata"],
)
def test_unchanged_means_that_building_would_change_nothing(
    package: Path, change: Change, options: commands.PackageOptions, errata: bool
) -> None:
    same = commands.new_request(OPTIONS, package, errata=True)
    assert checking.unchanged_result(package, same) is not None
    other = commands.new_request(commands.PackageOptions(("latest",)), package, errata=True)
    assert (other.strict, other.old_revisions) == (False, {})
    change(package)
    request = commands.new_request(options, package, errata=errata)
    assert checking.unchanged_result(package, request) is None
