"""The programs of examples/, each with the package that the first command of its README writes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from documents import ROOT, blocks_of
from generator import command_line
from mcpgen.package.used_features import uses_in

PROGRAMS = ("agent", "database-server", "fastapi-app", "gateway", "protected-server")
EXAMPLES = ROOT / "examples"
SECONDS = 60
"""A command of a program may take so long."""


def program_files() -> dict[str, str]:
    """The Python of all programs by the name of the file, which differs in each of them."""
    paths = [path for name in PROGRAMS for path in (EXAMPLES / name).glob("*.py")]
    files = {path.name: path.read_text("utf-8") for path in paths}
    assert len(files) == len(paths)
    return files


def build(name: str, folder: Path) -> Path:
    """Copy a program, and write its package; returns its folder."""
    target = folder / name
    shutil.copytree(EXAMPLES / name, target, ignore=shutil.ignore_patterns("pkg", "__pycache__"))
    block = next(blocks_of(EXAMPLES / name / "README.md"))
    program, *words = shlex.split(block.text.splitlines()[0].removeprefix("$ "))
    assert program == "mcpgen"
    assert words[-2:] == ["-o", "pkg"]
    done = command_line.run("-q", *words, cwd=target)
    assert done.code == 0, done.err
    if "--features" in words:
        uses = uses_in({path.name: path.read_text("utf-8") for path in target.glob("*.py")}, "pkg")
        features = words[words.index("--features") + 1].split(",")
        assert {*features} == {"none", *(use.feature for use in uses)}
    return target


def run(folder: Path, *words: str, lines: str = "", **environment: str) -> str:
    """Run Python in the folder of a program to its end; returns what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        input=lines,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tests(folder: Path) -> None:
    """Run the tests of a program, as its README does."""
    (tests,) = folder.glob("test_*.py")
    plugins = ("-p", "anyio", "-p", "no:cacheprovider")
    run(folder, "-m", "pytest", "-q", *plugins, tests.name, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
