"""Checking a package: up to date or not, and which of four reasons it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgen import __version__, schema
from mcpgen.console import Console
from mcpgen.errors import OutputError, UsageError
from mcpgen.model import schema_sources
from mcpgen.package import build_request, commands, manifest, output, pipeline
from mcpgen.package import check as checking
from mcpgen.package.check import Report, check

pytestmark = pytest.mark.costly

REVISION = schema.revisions()[0].name


def record_changed(directory: Path, change: Callable[[Any], None]) -> None:
    """Change the manifest, as if the package had been made from other things."""
    path = directory / manifest.NAME
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def text_changed(directory: Path, path: str, text: str) -> None:
    """Change a file together with its fingerprint, as if it had been generated so."""
    (directory / path).write_text(text)
    record_changed(
        directory, lambda record: record["files"].update({path: manifest.fingerprint(text)})
    )


def reasons(report: Report) -> list[str]:
    """Names of the reasons, of four, that a report gives."""
    given = {
        "schema": report.schema_changed,
        "generator": report.generator_changed,
        "edited": report.edited,
        "missing": report.missing,
    }
    return [name for name, value in given.items() if value]


def test_a_package_just_written_is_up_to_date_without_rendering(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "build", None)
    report = check(package)
    assert report.current
    assert reasons(report) == []


def test_checking_an_unchanged_package_imports_nothing_slow(package: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from mcpgen.package import commands\n"
        "from mcpgen.console import Console\n"
        "assert commands.check(Console(), Path(sys.argv[1]), commands.PackageOptions())\n"
        "print(*sys.modules)"
    )
    # Without measuring its coverage, which imports some of them.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(package)],
        check=True,
        capture_output=True,
        text=True,
        env=env,
    )
    slow = {"pydantic", "jinja2", "filelock", "tomllib", "difflib", "rich", "jsonschema"}
    slow |= {
        "mcpgen.schema",
        "mcpgen.package.pipeline",
        "mcpgen.schema.facts",
        "datamodel_code_generator",
    }
    assert not slow & set(done.stdout.split())


def test_an_unchanged_package_is_not_built_again(
    package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "build", None)
    request = commands.new_request(
        commands.PackageOptions((REVISION,), features=("all",)), package, errata=True
    )
    commands.generate(Console(), request, package, force=False)
    count = len(json.loads((package / manifest.NAME).read_text())["files"]) + 1
    assert capsys.readouterr().out == f"{package}: unchanged, {count} files ({REVISION})\n"


def edit_manifest(directory: Path) -> None:
    """Write the manifest as no run does."""
    path = directory / manifest.NAME
    path.write_text(json.dumps(json.loads(path.read_text())))


@pytest.mark.parametrize(
    "change",
    [
        lambda directory: (directory / "errors.py").unlink(),
        lambda directory: record_changed(directory, lambda record: record.update(generator="x")),
        lambda directory: record_changed(
            directory, lambda record: record["revisions"][REVISION].update(inputs="x")
        ),
        lambda directory: (directory / manifest.NAME).unlink(),
        edit_manifest,
    ],
    ids=["missing", "generator", "inputs", "no manifest", "other text"],
)
def test_unchanged_means_that_building_would_change_nothing(
    package: Path, change: Callable[[Path], object]
) -> None:
    request = commands.new_request(
        commands.PackageOptions((REVISION,), features=("all",)), package, errata=True
    )
    assert checking.unchanged_result(package, request) is not None
    change(package)
    assert checking.unchanged_result(package, request) is None


@pytest.mark.parametrize(
    "wanted",
    [
        commands.PackageOptions((REVISION,), parts=("types",)),
        commands.PackageOptions((REVISION, "latest")),
        commands.PackageOptions(("latest",)),
    ],
)
def test_another_request_is_built(package: Path, wanted: commands.PackageOptions) -> None:
    request = commands.new_request(wanted, package, errata=True)
    assert checking.unchanged_result(package, request) is None
    same = commands.PackageOptions((REVISION,), features=("all",))
    assert (
        checking.unchanged_result(package, commands.new_request(same, package, errata=False))
        is None
    )


def test_files_of_the_user_do_not_count(package: Path) -> None:
    (package / "mine.py").write_text("x = 1\n")
    assert check(package).current


def test_an_edit_by_hand_is_named_and_shown(package: Path) -> None:
    with (package / "errors.py").open("a") as file:
        file.write("mine = 1\n")
    report = check(package)
    assert report.edited == report.differing == ("errors.py",)
    assert report.diff.startswith("--- a/errors.py\n+++ b/errors.py\n@@ ")
    assert report.diff.endswith("\n-mine = 1\n")
    assert reasons(report) == ["edited"]
    assert not report.current


def test_a_file_of_many_bytes_is_edited_and_not_shown(package: Path) -> None:
    with (package / "errors.py").open("ab") as file:
        file.truncate(manifest.MAX_FILE_BYTES + 1)  # a hole, which takes no place on the disk
    report = check(package)
    assert report.edited == report.differing == ("errors.py",)
    assert f"\n-... {manifest.MAX_FILE_BYTES + 1} bytes\n" in report.diff
    assert "\0" not in report.diff


def test_a_deleted_file_is_missing(package: Path) -> None:
    (package / "errors.py").unlink()
    report = check(package)
    assert report.missing == report.differing == ("errors.py",)
    assert reasons(report) == ["missing"]
    assert report.diff.startswith("--- /dev/null\n+++ b/errors.py\n@@ ")


def test_another_generator_is_told_from_an_edit(package: Path) -> None:
    text_changed(package, "errors.py", "as it was")
    record_changed(package, lambda record: record.update(generator="x", mcpgen="0.0.1"))
    report = check(package)
    assert report.generator_changed == f"made by mcpgen 0.0.1, this is {__version__}"
    assert report.differing == ("errors.py",)
    assert "-as it was\n\\ No newline at end of file\n" in report.diff
    assert reasons(report) == ["generator"]


def test_another_generator_that_writes_the_same_is_no_difference(package: Path) -> None:
    record_changed(package, lambda record: record.update(generator="x"))
    report = check(package)
    assert report.generator_changed == f"another build of mcpgen {__version__}"
    assert report.current


def test_a_file_that_would_not_be_written_any_more_differs(package: Path) -> None:
    text_changed(package, "old.py", "x = 1\n")
    record_changed(package, lambda record: record.update(generator="x"))
    assert check(package).diff == "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n"


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (["inputs"], "its prose, corrections or facts"),
        (["inputs", "structure"], "the structure of its messages"),
    ],
)
def test_another_schema_is_told_from_an_edit(package: Path, keys: list[str], what: str) -> None:
    record_changed(
        package, lambda record: record["revisions"][REVISION].update(dict.fromkeys(keys, "x"))
    )
    report = check(package)
    assert report.schema_changed == {REVISION: what}
    assert reasons(report) == ["schema"]


def test_options_are_those_of_the_manifest(tmp_path: Path) -> None:
    sources = schema_sources.by_name((REVISION,))
    request = build_request.BuildRequest("pkg", sources, errata=False)
    output.write(tmp_path / "pkg", pipeline.build(request))
    (tmp_path / "pkg" / "errors.py").write_text("mine")
    assert check(tmp_path / "pkg").differing == ("errors.py",)


def test_a_package_from_a_file_is_checked_against_that_file(tmp_path: Path) -> None:
    path = tmp_path / REVISION / "schema.json"
    path.parent.mkdir()
    path.write_bytes((schema.entry(REVISION).folder / "schema.json").read_bytes())
    source = schema_sources.of_file(path)
    output.write(tmp_path / "pkg", pipeline.build(build_request.BuildRequest("pkg", (source,))))
    assert check(tmp_path / "pkg", [source]).current
    with pytest.raises(UsageError, match=f"revision {REVISION} was made from a schema file"):
        check(tmp_path / "pkg")


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"expected a package of mcpgen's, got no mcpgen\.json"):
        check(tmp_path)


@pytest.mark.parametrize(
    ("reason", "others"),
    [
        ({}, False),
        ({"edited": ("a.py",)}, False),
        ({"missing": ("a.py",)}, False),
        ({"schema_changed": {"a": "b"}}, True),
        ({"generator_changed": "another build"}, True),
        ({"runtime_changed": "mcp-protocol"}, True),
        ({"templates_changed": ("a",)}, True),
        ({"patch_changed": True}, True),
    ],
)
def test_each_reason_makes_a_new_run_compare_the_files(reason: Any, others: bool) -> None:
    report = Report(
        **{
            "directory": Path(),
            "schema_changed": {},
            "generator_changed": "",
            **reason,
            "edited": reason.get("edited", ()),
        }
    )
    assert report.has_reasons is bool(reason)
    assert report.has_other_reasons is others
    assert report.current
    assert not Report(Path(), {}, "", (), differing=("a.py",)).current
