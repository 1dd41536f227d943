"""Projects and packages of others: their settings, templates, rules and links, under mcpgen."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from documents import ROOT
from generator import command_line
from generator.command_line import Done
from mcpgen import schema
from mcpgen.package import manifest, settings

pytestmark = pytest.mark.attack

OLDEST = schema.revisions()[0].name
MODULE = f"r{OLDEST.replace('-', '_')}/methods.py"
TEMPLATE = "package/revision/methods.py.jinja"
SECRET = "secret of another file"
TABLE = f"[tool.mcpgen]\nrevisions = ['{OLDEST}']\nparts = ['types']\n"


def run(folder: Path, *words: str) -> Done:
    """Run mcpgen in a folder."""
    return command_line.run(*words, cwd=folder)


def expect_error(done: Done, *parts: str) -> None:
    """One line, which names the place and shows nothing of other files."""
    assert done.code in (1, 2)
    lines = done.err.splitlines()
    assert len([line for line in lines if "error" in line]) == 1, done.err
    assert "Traceback" not in done.err
    assert "unexpected" not in done.err
    assert SECRET not in done.err + done.out
    assert len(done.err) < 4000
    for part in parts:
        assert part in done.err


def project(tmp_path: Path, text: str) -> Path:
    """A project with settings, beside a folder that is not its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (folder / settings.FILE).write_text(TABLE + text)
    return folder


def link(place: str) -> Callable[[Path], None]:
    """Makes a link in a project that leads to the folder outside."""

    def make(folder: Path) -> None:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).symlink_to("../outside", target_is_directory=True)

    return make


MIRROR = "output = 'pkg'\n[tool.mcpgen.mirror]\nfile = 'x.json'\noutput = 'mirror'\n"
OUTSIDE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a parent": ("output = '../outside'", Path.exists),
    "a parent by way of a folder": ("output = 'a/../../outside'", Path.exists),
    "a link": ("output = 'pkg'", link("pkg")),
    "below a link": ("output = 'lib/pkg'", link("lib")),
    "a mirror that is a link": (MIRROR, link("mirror")),
    "a patch": ("output = 'pkg'\npatch = '../outside/own.patch'", Path.exists),
}


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("command", [(), ("update",), ("check",)], ids=" ".join)
def test_settings_lead_nowhere_out_of_their_project(
    case: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    text, prepare = OUTSIDE[case]
    folder = project(tmp_path, text)
    prepare(folder)
    expect_error(run(folder, *command), f"expected a path within the folder of {settings.FILE}")
    assert [*(tmp_path / "outside").iterdir()] == []


def edit_manifest(package: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of a package, as a checkout of others may have it."""
    record = json.loads((package / manifest.NAME).read_text())
    change(record)
    (package / manifest.NAME).write_text(json.dumps(record))


@pytest.fixture(scope="module")
def package_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package, and with the template that it was made with; tests copy it."""
    folder = tmp_path_factory.mktemp("rendered")
    run(folder, "templates", "copy", TEMPLATE, "own")
    words = ("-q", "-r", OLDEST, "--parts", "types", "--templates", "own", "-o", "pkg")
    assert run(folder, *words).code == 0
    return folder


def publish(rendered: Path, folder: Path, line: str) -> None:
    """Copy a package whose record says that it was made with a template of this line."""
    shutil.copytree(rendered, folder, dirs_exist_ok=True)
    template = folder / "own" / TEMPLATE
    template.write_text(f"{line}\n{template.read_text()}")
    digest = hashlib.sha256(template.read_bytes()).hexdigest()
    edit_manifest(
        folder / "pkg", lambda record: record["templates"]["files"].update({TEMPLATE: digest})
    )
    with (folder / "pkg" / MODULE).open("a") as module:
        module.write("\n# edited, so that it is rendered for comparison\n")


@pytest.mark.parametrize("command", ["check", "patch", "update"])
def test_a_template_of_others_runs_no_code(
    command: str, tmp_path: Path, package_folder: Path
) -> None:
    code = "cycler.__init__.__globals__.os.mkdir('ran')"
    publish(package_folder, tmp_path, "{% set _ = " + code + " %}")
    words = ("--force",) if command == "update" else ()
    expect_error(run(tmp_path, command, "pkg", *words), f"own/{TEMPLATE}:1: ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "line", ["{% include '../../outside' %}", "{% include 'package/../../outside' %}"]
)
def test_a_template_includes_no_file_outside(
    line: str, tmp_path: Path, package_folder: Path
) -> None:
    (tmp_path / "outside").write_text(SECRET)
    publish(package_folder, tmp_path, line)
    expect_error(run(tmp_path, "check", "pkg"), "there is no template")


@pytest.fixture(scope="module")
def types_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of types; tests change copies of it."""
    folder = tmp_path_factory.mktemp("written")
    words = ("-q", "-r", OLDEST, "--parts", "types", "-o", "pkg")
    assert run(folder, *words).code == 0
    return folder / "pkg"


def copy_package(package: Path, folder: Path) -> Path:
    """The copy of a package in a folder."""
    return Path(shutil.copytree(package, folder / "pkg"))


EDITS = {
    "statements": "x\n" * 50_000,
    "functions": "\n".join(f"def f{at}(): pass" for at in range(20_000)),
    "a long docstring": 'def f():\n    """' + "x" * 2_000_000 + '"""',
    "a form feed": "\x0cdef f(): pass",
    "a deep expression": f"x = {'-' * 100_000}1",
}


@pytest.mark.parametrize("case", EDITS)
def test_hostile_edits_are_kept_as_they_are_or_refused(
    case: str, tmp_path: Path, types_folder: Path
) -> None:
    folder = copy_package(types_folder, tmp_path)
    with (folder / MODULE).open("a") as module:
        module.write(f"\n\n{EDITS[case]}\n")
    edited = (folder / MODULE).read_bytes()
    words = ("-m", "mcpgen", "patch", "pkg")
    done = command_line.run_python(*words, cwd=tmp_path, paths=(ROOT / "generator",))
    assert done.code in (0, 1, 2)
    assert "Traceback" not in done.err
    assert "unexpected" not in done.err
    assert len(done.out + done.err) < 4000
    assert (folder / MODULE).read_bytes() == edited
    assert (tmp_path / "pkg.patch").exists() == (done.code == 0)


def hunk(path: str, removed: str, added: str = "import os") -> str:
    """The patch of a line of a file."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{removed}\n+{added}\n"


PATCHES = {
    "a file that is not there": "--- /dev/null\n+++ b/../outside.py\n@@ -0,0 +1 @@\n+import os\n",
    "lines that are not there": hunk(MODULE, SECRET),
    "terminal commands": hunk(MODULE, "\x1b[2J"),
    "a long hunk": hunk(MODULE, "x" * 100_000),
    "many hunks": hunk(MODULE, "x") + "@@ -1 +1 @@\n-x\n+y\n" * 20_000,
    "another file": "# no patch",
}


@pytest.mark.parametrize("case", PATCHES)
def test_hostile_patches_are_refused(case: str, tmp_path: Path, types_folder: Path) -> None:
    folder = copy_package(types_folder, tmp_path)
    before = (folder / MODULE).read_bytes()
    (tmp_path / "own.patch").write_text(PATCHES[case])
    words = ("update", "pkg", "--force", "--patch", "own.patch")
    done = run(tmp_path, *words)
    assert done.code == 2
    error = done.err.splitlines()[1]
    assert error.startswith("mcpgen: error: own.patch: expected ")
    assert len(error) < 400
    assert "\x1b" not in done.err
    assert len(done.err) < 4000
    assert (folder / MODULE).read_bytes() == before
    assert not (tmp_path / "outside.py").exists()


@pytest.mark.parametrize("path", ["../outside.py", "/tmp/outside.py", "mcpgen.json"])
def test_a_patch_reaches_modules_of_the_package_alone(
    path: str, tmp_path: Path, types_folder: Path
) -> None:
    copy_package(types_folder, tmp_path)
    outside = tmp_path / "outside.py"
    outside.write_text("a = 1\n")
    (tmp_path / "own.patch").write_text(hunk(path, "a = 1"))
    done = run(tmp_path, "update", "pkg", "--patch", "own.patch")
    assert done.code == 0
    assert "is not in the package: its edits have no effect" in done.out
    assert outside.read_text() == "a = 1\n"


FOREIGN: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "patch": lambda path, record: record.update(patch={"file": path, "digest": "0" * 64}),
    "extension": lambda path, record: record.update(
        extensions={"com.example/x": {"schema": path, "inputs": "0" * 64}}
    ),
    "schema": lambda path, record: record["revisions"][OLDEST].update(origin="file", schema=path),
    "facts": lambda path, record: record["revisions"][OLDEST].update(
        origin="file", schema="../schema.json", facts=path
    ),
    "templates": lambda path, record: record.update(
        templates={"directory": path.rpartition("/")[0], "files": {}}
    ),
}
"""Changes of a manifest that name a file, by what the file is taken for."""


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        *(("patch", ".patch"), ("extension", ".ts"), ("schema", ".json"), ("facts", ".toml")),
        ("templates", ""),
    ],
)
def test_files_that_only_a_manifest_names_show_nothing(
    kind: str, suffix: str, marked: bool, tmp_path: Path, types_folder: Path
) -> None:
    text = f"@@ -1 +1 @@ {SECRET}\n-{SECRET}\n+++ {SECRET}\n"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / f"own{suffix}").write_text(text)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    if marked:
        (checkout / "pyproject.toml").write_text("")
    package = copy_package(types_folder, checkout)
    shutil.copy(schema.revisions()[0].folder / "schema.json", checkout)
    paths = [f"../../outside/own{suffix}"]
    if marked:  # within the project by name, outside by its link
        (checkout / f"own{suffix}").symlink_to(f"../outside/own{suffix}")
        paths.append(f"../own{suffix}")
    commands = ["check", "update", "patch"]
    if kind in ("schema", "facts", "extension"):
        commands.append("export")
    for path in paths if kind != "templates" else paths[:1]:
        edit_manifest(package, partial(FOREIGN[kind], path))
        for command in commands:
            done = run(checkout, command, "pkg")
            expect_error(done, "which only its mcpgen.json names")
        shutil.rmtree(package)
        package = copy_package(types_folder, checkout)


def test_a_patch_is_written_nowhere_that_only_a_record_names(
    tmp_path: Path, types_folder: Path
) -> None:
    inner = tmp_path / "checkout"
    inner.mkdir()
    (tmp_path / "far.patch").write_text("")
    folder = copy_package(types_folder, inner)
    run(inner, "update", "pkg", "--patch", "../far.patch")
    with (folder / MODULE).open("a") as module:
        module.write("\n\ndef added() -> None:\n    pass\n")
    expect_error(run(inner, "patch", "pkg"), "--patch")
    assert (tmp_path / "far.patch").read_text() == ""
    assert run(inner, "patch", "pkg", "--patch", "../far.patch").code == 0
    assert "added" in (tmp_path / "far.patch").read_text()


def test_a_folder_of_revisions_names_no_folder_outside(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    row = '[[revision]]\nname = "../../outside"\nstatus = "final"\nofficial = ""\ndigest = ""\n'
    (tmp_path / "own" / "revisions.toml").write_text(row)
    for words in (("list",), ("-r", "../../outside", "-o", "pkg")):
        expect_error(run(tmp_path, *words, "--schemas", "own"), "/revision/0/name: ")
    assert not (tmp_path / "pkg").exists()


@pytest.mark.parametrize("name", ["2030-01-01", "revisions.toml"])
def test_a_revision_is_added_through_no_link(name: str, tmp_path: Path) -> None:
    folder = schema.revisions()[0].folder
    (tmp_path / "own").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "list").write_text(SECRET)
    target = tmp_path / ("list" if name == "revisions.toml" else "outside")
    (tmp_path / "own" / name).symlink_to(target)
    words = ("schema", "add", str(folder / "schema.json"), "-r", "2030-01-01", "--force")
    done = run(tmp_path, *words, "--schemas", "own")
    assert SECRET not in done.out + done.err
    assert (tmp_path / "list").read_text() == SECRET
    assert [*(tmp_path / "outside").iterdir()] == []
