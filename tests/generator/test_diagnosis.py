"""`mcpgen doctor`: what it finds in an installation, and in the packages below a folder."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from generator.command_line import Installation, run, run_python
from generator.draft_packages import definitions_of, save_schema
from mcpgen import __version__, cli, schema
from mcpgen.package import manifest, overrides
from mcpgen.project import advisories

pytestmark = pytest.mark.processes


def doctor(*words: object) -> Result:
    """Run `mcpgen doctor` in this process."""
    return CliRunner().invoke(cli.cli, ["doctor", *map(str, words)])


def findings(folder: Path) -> dict[str, dict[str, str]]:
    """Findings of `mcpgen doctor`, by subject."""
    rows = json.loads(doctor(folder, "--json").output)["findings"]
    return {finding["subject"]: finding for finding in rows}


def test_an_installation_that_works_is_ok_in_every_line(tmp_path: Path) -> None:
    result = doctor(tmp_path)
    assert result.exit_code == 0
    assert result.output.startswith(f"ok: mcpgen: {__version__} in ")
    lines = result.output.splitlines()
    assert {line.partition(":")[0] for line in lines} <= {"ok", "missing"}
    for row in schema.revisions():
        assert any(line.startswith(f"ok: revision {row.name}: ") for line in lines)


METADATA = f"""Metadata-Version: 2.1
Name: mcpgen
Version: {__version__}
Provides-Extra: web
Requires-Dist: click>=999
Requires-Dist: jinja2>=1
Requires-Dist: early>=0.5
Requires-Dist: no-such-distribution>=1
Requires-Dist: another-such>=2; extra == "web"
Requires-Dist: of-another-system; sys_platform == "no-such"
"""


def test_each_requirement_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / f"mcpgen-{__version__}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(METADATA)
    early = tmp_path / "early-1.0rc1.dist-info"
    early.mkdir()
    (early / "METADATA").write_text("Metadata-Version: 2.1\nName: early\nVersion: 1.0rc1\n")
    monkeypatch.syspath_prepend(tmp_path)
    by_subject = findings(tmp_path)
    states = {name: (each["state"], each["advice"]) for name, each in by_subject.items()}
    assert states["click"] == ("wrong", "pip install 'click>=999'")
    assert by_subject["click"]["text"] == f"{version('click')}, expected >=999"
    assert states["early"] == ("ok", "")
    assert (states["jinja2"], by_subject["jinja2"]["text"]) == (("ok", ""), version("jinja2"))
    advice = "pip install 'no-such-distribution>=1'"
    assert states["no-such-distribution"] == ("wrong", advice)
    assert by_subject["no-such-distribution"]["text"] == "not installed"
    assert states["another-such"] == ("missing", "pip install 'another-such>=2'")
    assert by_subject["another-such"]["text"] == "not installed, needed for web"
    assert "of-another-system" not in by_subject


def test_quiet_shows_only_what_is_not_ok(tmp_path: Path, package: Path) -> None:
    (package / "errors.py").write_text("mine = 1\n")
    lines = doctor(tmp_path, "-q").output.splitlines()
    assert not [line for line in lines if line.startswith("ok")]
    assert any("edited by hand: errors.py" in line for line in lines)
    assert "expected a directory, got a file" in run("doctor", package / "errors.py").err


def test_edits_are_named_with_the_command_that_keeps_them(tmp_path: Path, package: Path) -> None:
    path = package / "__init__.py"
    path.write_text(path.read_text() + "# mine\n")
    kept = f"mcpgen patch {package} keeps the edits"
    assert doctor(tmp_path).exit_code == 1
    assert findings(tmp_path)[f"package {package}"]["advice"].startswith(f"{kept}; ")
    record = json.loads((package / manifest.NAME).read_text())
    (package / manifest.NAME).write_text(json.dumps({**record, "generator": "0"}))
    (package / "errors.py").unlink()
    finding = findings(tmp_path)[f"package {package}"]
    build = f"another build of mcpgen {__version__}"
    assert finding["text"] == f"{build}; edited by hand: __init__.py; missing: errors.py"
    assert finding["advice"].startswith(f"{kept}, once all else is as it was")
    assert json.loads(doctor(tmp_path, "--json").output)["sound"] is False


def test_each_template_of_another_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("package/__init__.py.jinja", "package/revisions.py.jinja")
    for name in (*names, "package/testing.py.jinja"):
        overrides.copy(name, Path("mine"))
    words = ("-q", "-r", schema.latest().name, "--parts", "types", "--templates", "mine")
    assert run(*words, "-o", "pkg").code == 0
    for name in names:
        (Path("mine") / overrides.ORIGINALS / name).write_text("of an older mcpgen")
    by_subject = findings(Path())
    wrong = {
        subject: finding for subject, finding in by_subject.items() if finding["state"] == "wrong"
    }
    assert wrong.keys() == {f"template mine/{name}" for name in names}
    for name in names:
        assert wrong[f"template mine/{name}"]["advice"] == (
            f"mcpgen templates diff mine, then mcpgen templates accept {name} mine"
        )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('revisions = ["latest"]', "pkg is not generated; mcpgen generate"),
        ('hooks = [["no-such-program", "x"]]', "hook no-such-program: no such program; install"),
        ('hooks = [["tools/no-such"]]', "hook tools/no-such: no such program; install"),
        ('schemas_dir = "own"', "schemas_dir own is not there; name the folder"),
        ('templates = "mine"', "mine: expected a directory with templates, got none"),
        ('patch = "own.patch"', "own.patch: expected a patch, got no file"),
        (
            'extensions = ["x.json"]',
            "expected the file of an extension, or one of tasks, ui, skills, got x.json",
        ),
        ('revision = "latest"', "the nearest being revisions, got"),
    ],
)
def test_settings_that_name_what_is_not_there_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    revisions = "" if text.startswith("revision") else 'revisions = ["latest"]\n'
    settings = f'[tool.mcpgen]\noutput = "pkg"\n{revisions}{text}\n'
    Path("pyproject.toml").write_text(settings)
    if not text.startswith("revisions"):
        Path("pkg").mkdir()
        record = manifest.new("pkg", manifest.Options(errata=True), {}, {})
        Path("pkg", manifest.NAME).write_text(record.text())
    lines = [line for line in doctor(".", "-q").output.splitlines() if "settings" in line]
    assert [each for each in lines if line in each], lines


def test_a_package_of_revisions_of_the_projects_own_is_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = save_schema(tmp_path, definitions_of(schema.latest().name))
    run("schema", "add", str(file), "--revision", "2027-01-15", "--schemas", "own")
    settings = 'output = "pkg"\nrevisions = ["2027-01-15"]\nparts = ["types"]\n'
    Path("pyproject.toml").write_text(f'[tool.mcpgen]\n{settings}schemas_dir = "own"\n')
    assert run("generate", "-q").code == 0
    by_subject = findings(Path())
    assert by_subject["package pkg"]["text"] == "up to date"
    assert by_subject["settings pyproject.toml"]["state"] == "ok"
    Path("pyproject.toml").write_text(f"[tool.mcpgen]\n{settings}")
    assert "--schemas DIR names a folder" in findings(Path())["package pkg"]["text"]


def test_a_broken_manifest_is_one_finding_among_others(tmp_path: Path, package: Path) -> None:
    (package / manifest.NAME).write_text("[]")
    by_subject = findings(tmp_path)
    assert by_subject[f"package {package}"]["state"] == "wrong"
    assert by_subject["mcpgen"]["state"] == "ok"


@pytest.mark.parametrize(
    ("place", "is_found"),
    [
        ("a/b", True),
        (".a/b", False),
        ("node_modules/b", False),
        ("site-packages/b", False),
        ("a/__pycache__", False),
        ("project", True),
    ],
)
def test_packages_are_looked_for_in_folders_of_the_user(
    place: str, is_found: bool, tmp_path: Path
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / manifest.NAME).touch()
    (folder / "inner").mkdir()
    for name in ("__init__.py", manifest.NAME):
        (folder / "inner" / name).touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / manifest.NAME).touch()
    packages = [subject for subject in findings(tmp_path) if subject.startswith("package ")]
    assert packages == ([f"package {folder}"] if is_found else [])


def test_a_project_without_settings_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert not [each for each in findings(tmp_path) if each.startswith(("settings", "package"))]


def test_a_program_of_a_hook_is_a_path_or_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tools" / "own"
    tool.parent.mkdir()
    tool.touch()
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", str(tool.parent))
    settings = 'output = "pkg"\nrevisions = ["latest"]\nhooks = [["own"], ["tools/own"]]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.mcpgen]\n{settings}")
    texts = str(findings(tmp_path))
    assert "pkg is not generated" in texts
    assert "no such program" not in texts


def test_a_schema_that_is_damaged_is_found(installation: Installation) -> None:
    newest = schema.revisions()[-1].name
    (installation.data / "schema" / newest / "schema.json").write_text("{}")
    assert f"wrong: revision {newest}: " in installation.run("doctor", ".").out


ROW = """
[[advisory]]
id = "TEST-1"
versions = "{versions}"
fixed = "99.1"
summary = "a server reads files of others"
"""


def save_advisory(installation: Installation, versions: str) -> None:
    """Save a table with one vulnerability in the place of the installation's own."""
    (installation.package / "project" / "advisories.toml").write_text(ROW.format(versions=versions))


@pytest.mark.parametrize(
    ("written_by", "versions", "advice"),
    [
        (__version__, f"=={__version__}", "install mcpgen 99.1 or newer, then mcpgen update {}"),
        ("0.0.3", "<0.0.9", "mcpgen update {}"),
    ],
)
def test_a_package_of_a_vulnerable_version_is_wrong(
    package: Path, installation: Installation, written_by: str, versions: str, advice: str
) -> None:
    save_advisory(installation, versions)
    record = json.loads((package / manifest.NAME).read_text())
    (package / manifest.NAME).write_text(json.dumps({**record, "mcpgen": written_by}))
    done = installation.run("doctor", package)
    text = f"written by mcpgen {written_by}, TEST-1: a server reads files of others"
    assert f"wrong: package {package}: {text}; {advice.format(package)}\n" in done.out
    assert done.code == 1


def test_a_package_of_another_version_is_ok(package: Path, installation: Installation) -> None:
    save_advisory(installation, f"!={__version__}")
    assert installation.run("doctor", package).code == 0


def test_packages_of_0_1_0_have_a_vulnerability() -> None:
    assert [each.id for each in advisories.advisories_for("0.1.0")] == ["MCPGEN-2026-1"]
    assert list(advisories.advisories_for(__version__)) == []


def test_a_manifest_whose_version_is_none_is_wrong(tmp_path: Path, package: Path) -> None:
    record = json.loads((package / manifest.NAME).read_text())
    (package / manifest.NAME).write_text(json.dumps({**record, "mcpgen": "newest"}))
    finding = findings(tmp_path)[f"package {package}"]
    assert (finding["state"], "expected a version" in finding["text"]) == ("wrong", True)


def save_distribution(site: Path) -> None:
    """Save a distribution with a module in `mcpgen/`, and what an installer records of it."""
    (site / "mcpgen").mkdir(parents=True, exist_ok=True)
    (site / "mcpgen" / "seam.py").touch()
    info = site / "mcp_client_kit-0.10.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp-client-kit\nVersion: 0.10.0\n")
    (info / "RECORD").write_text("mcpgen/__init__.py,,\nmcpgen/seam.py,,\n")


COLLISION = "mcp-client-kit 0.10.0 has an import package mcpgen too, and replaces files"


def test_another_distribution_named_mcpgen_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_distribution(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    done = run("doctor", tmp_path / "empty")
    [line] = [line for line in done.out.splitlines() if line.startswith("wrong: mcpgen: ")]
    assert (done.code, line.partition("; ")[0]) == (1, f"wrong: mcpgen: {COLLISION}")
    assert "pip uninstall mcp-client-kit, then install mcpgen again" in line


@pytest.mark.parametrize("others", [True, False])
def test_a_root_module_of_others_is_an_error_of_one_line(
    tmp_path: Path, root: Path, others: bool
) -> None:
    shutil.copytree(root / "generator", tmp_path / "site")
    (tmp_path / "site" / "mcpgen" / "__init__.py").write_text('"""Of others, or gone."""\n')
    if others:
        save_distribution(tmp_path / "site")
    done = run_python("-m", "mcpgen", "--version", cwd=tmp_path / "site")
    began = "mcpgen: error: mcp-client-kit 0.10.0 has an import package mcpgen too, and replaced"
    expected = began if others else "mcpgen: error: the installation is not complete: cannot import"
    [line] = done.err.splitlines()
    assert (done.code, done.out, line.startswith(expected)) == (2, "", True)
