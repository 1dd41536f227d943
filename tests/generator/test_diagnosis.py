"""`mcpgen doctor`: what it finds in an installation, and in the packages below a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpgen import __version__, cli, manifest, schema


def doctor(*words: object) -> Result:
    """Run `mcpgen doctor` in this process."""
    return CliRunner().invoke(cli.cli, ["doctor", *map(str, words)])


def findings(folder: Path) -> dict[str, dict[str, str]]:
    """What it finds, by subject."""
    found = json.loads(doctor(folder, "--json").output)["findings"]
    return {finding["subject"]: finding for finding in found}


def test_an_installation_that_works_is_ok_in_every_line(tmp_path: Path) -> None:
    result = doctor(tmp_path)
    assert result.exit_code == 0
    assert result.output.startswith(f"ok: mcpgen: {__version__} in ")
    lines = result.output.splitlines()
    assert {line.partition(":")[0] for line in lines} <= {"ok", "missing"}
    for row in schema.revisions():
        assert any(line.startswith(f"ok: revision {row.name}: ") for line in lines)


def test_quiet_shows_only_what_is_not_ok(tmp_path: Path, package: Path) -> None:
    (package / "errors.py").write_text("mine = 1\n")
    lines = doctor(tmp_path, "-q").output.splitlines()
    assert not [line for line in lines if line.startswith("ok")]
    assert any("edited by hand: errors.py" in line for line in lines)


def test_a_package_that_is_current_is_ok(tmp_path: Path, package: Path) -> None:
    assert findings(tmp_path)[f"package {package}"]["text"] == "up to date"


def test_an_edited_package_is_wrong_and_the_command_that_mends_it_is_named(
    tmp_path: Path, package: Path
) -> None:
    (package / "errors.py").write_text("mine = 1\n")
    result = doctor(tmp_path)
    assert result.exit_code == 1
    assert f"edited by hand: errors.py; mcpgen update {package} --force" in result.output


def test_a_broken_manifest_is_one_finding_among_others(tmp_path: Path, package: Path) -> None:
    (package / manifest.NAME).write_text("[]")
    found = findings(tmp_path)
    assert found[f"package {package}"]["state"] == "wrong"
    assert found["mcpgen"]["state"] == "ok"


def test_folders_of_environments_are_not_searched(tmp_path: Path, package: Path) -> None:
    hidden = tmp_path / ".venv" / "pkg"
    hidden.parent.mkdir()
    package.rename(hidden)
    assert not [subject for subject in findings(tmp_path) if subject.startswith("package ")]


def test_a_schema_that_is_damaged_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgen import paths

    newest = schema.revisions()[-1]
    copy = tmp_path / "schema"
    copy.mkdir()
    for path in paths.schema_dir().rglob("*"):
        place = copy / path.relative_to(paths.schema_dir())
        place.mkdir() if path.is_dir() else place.write_bytes(path.read_bytes())
    (copy / newest.name / "schema.json").write_text("{}")
    monkeypatch.setattr(paths, "schema_dir", lambda: copy)
    found = findings(tmp_path / "none")
    assert found[f"revision {newest.name}"]["state"] == "wrong"
