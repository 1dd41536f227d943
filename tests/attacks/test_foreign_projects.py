"""Projects and packages of others: their settings, templates, rules and links, under mcpgen."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgen import manifest, schema, settings

pytestmark = pytest.mark.attack

OLDEST = schema.revisions()[0].name
MODULE = f"r{OLDEST.replace('-', '_')}/methods.py"
TEMPLATE = "package/revision/methods.py.jinja"
SECRET = "secret of another file"
SECONDS = 60.0
"""Time that a command may take; the limits make it a fraction of that."""

TABLE = f"[tool.mcpgen]\nrevisions = ['{OLDEST}']\nparts = ['types']\n"


def run(root: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run mcpgen in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "mcpgen", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root / "generator")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def expect_refusal(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """One line, which names the place and shows nothing of other files."""
    assert done.returncode in (1, 2)
    lines = done.stderr.splitlines()
    assert len([line for line in lines if "error" in line]) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert SECRET not in done.stderr + done.stdout
    assert len(done.stderr) < 4000
    for part in parts:
        assert part in done.stderr


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
OUTSIDE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a parent": ("output = '../outside'", Path.exists),
    "a parent by way of a folder": ("output = 'a/../../outside'", Path.exists),
    "a link": ("output = 'pkg'", link("pkg")),
    "below a link": ("output = 'lib/pkg'", link("lib")),
    "a mirror that is a link": (MIRROR, link("mirror")),
    "rules": ("output = 'pkg'\nadopted = '../outside/rules.toml'", Path.exists),
}


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("command", [(), ("update",), ("check",)], ids=" ".join)
def test_settings_lead_nowhere_out_of_their_project(
    case: str, command: tuple[str, ...], root: Path, tmp_path: Path
) -> None:
    text, prepare = OUTSIDE[case]
    folder = project(tmp_path, text)
    prepare(folder)
    expect_refusal(
        run(root, folder, *command), f"expected a path within the folder of {settings.FILE}"
    )
    assert [*(tmp_path / "outside").iterdir()] == []


def test_an_output_on_the_command_line_may_lie_anywhere(root: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, "output = 'pkg'")
    words = ("-q", "-r", OLDEST, "--parts", "types", "-o", "../outside/pkg")
    assert run(root, folder, *words).returncode == 0
    assert (tmp_path / "outside" / "pkg" / manifest.NAME).is_file()


def edit_manifest(package: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of a package, as a checkout of others may have it."""
    record = json.loads((package / manifest.NAME).read_text())
    change(record)
    (package / manifest.NAME).write_text(json.dumps(record))


def published(root: Path, folder: Path, line: str) -> Path:
    """A package whose record says that it was made with a template of this line."""
    run(root, folder, "templates", "copy", TEMPLATE, "own")
    words = ("-q", "-r", OLDEST, "--parts", "types", "--templates", "own", "-o", "pkg")
    assert run(root, folder, *words).returncode == 0
    template = folder / "own" / TEMPLATE
    template.write_text(f"{line}\n{template.read_text()}")
    digest = hashlib.sha256(template.read_bytes()).hexdigest()
    edit_manifest(
        folder / "pkg", lambda record: record["templates"]["files"].update({TEMPLATE: digest})
    )
    with (folder / "pkg" / MODULE).open("a") as module:
        module.write("\n# edited, so that it is rendered for comparison\n")
    return folder / "pkg"


@pytest.mark.parametrize("command", ["check", "adopt", "update"])
def test_a_template_of_others_runs_no_code(command: str, root: Path, tmp_path: Path) -> None:
    code = "cycler.__init__.__globals__.os.mkdir('ran')"
    published(root, tmp_path, "{% set _ = " + code + " %}")
    words = ("--force",) if command == "update" else ()
    expect_refusal(run(root, tmp_path, command, "pkg", *words), f"own/{TEMPLATE}:1: ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "line", ["{% include '../../outside' %}", "{% include 'package/../../outside' %}"]
)
def test_a_template_includes_no_file_outside(line: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text(SECRET)
    published(root, tmp_path, line)
    expect_refusal(run(root, tmp_path, "check", "pkg"), "there is no template")
