"""The command line in this process, and programs that use what it wrote in others."""

from __future__ import annotations

import io
import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from conventions.sources import ROOT
from mcpgen import cli


class Done(NamedTuple):
    """The exit code and the output of a command."""

    code: object
    out: str
    err: str


def run(*words: object, cwd: Path | None = None) -> Done:
    """Run a command to its end, in another directory if one is given."""
    out, err = io.StringIO(), io.StringIO()
    place = nullcontext() if cwd is None else chdir(cwd)
    with place, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in words])
    return Done(ended.value.code or 0, out.getvalue(), err.getvalue())


def run_on_terminal(root: Path, *words: object) -> str:
    """Run mcpgen on a terminal; everything it shows there."""
    ours, theirs = pty.openpty()
    variables = {"PYTHONPATH": str(root / "generator"), "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", *map(str, words)],
        env={**os.environ, **variables},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # once the other end is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    process.wait()
    return shown.decode()


def run_python(
    *words: object,
    cwd: Path,
    paths: tuple[Path, ...] = (),
    environment: Mapping[str, str] | None = None,
    text: str = "",
) -> Done:
    """Run Python, mostly by `-c` and code, in a folder whose modules and packages it finds."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (cwd, *paths)))}
    variables |= environment or {}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={name: value for name, value in variables.items() if value},
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_with_plugin(folder: Path, plugin: str, *words: str) -> Done:
    """Run the tests of a folder with one plugin alone, as an installed mcpgen brings it."""
    options = ("-c", "/dev/null", "--rootdir", folder, "-p", "no:cacheprovider", "-p", plugin)
    environment = {name: "" for name in os.environ if name.startswith("PYTEST")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    paths = (ROOT / "generator", ROOT / "generated", ROOT / "tests")
    command = ("-m", "pytest", *options, *words)
    return run_python(*command, cwd=folder, paths=paths, environment=environment)


def script_command(script: Path | str) -> str:
    """The command that starts a script, as one text."""
    return shlex.join([sys.executable, str(script)])


class Installation:
    """mcpgen as a wheel installs it into a folder, whose files a test may change."""

    def __init__(self, site: Path, root: Path) -> None:
        self.site, self.package = site, site / "mcpgen"
        self.data = self.package / "_data"
        shutil.copytree(root / "generator" / "mcpgen", self.package)
        for name in ("schema", "templates"):
            shutil.copytree(root / name, self.data / name)
        (self.data / "generated").mkdir()
        shutil.copy(root / "generated" / "interface.txt", self.data / "generated")

    def run(self, *words: object) -> Done:
        """Run a command of it to its end, beside its folder."""
        return run_python("-m", "mcpgen", *words, cwd=self.site.parent, paths=(self.site,))


def output_of(code: str, *words: object, cwd: Path, paths: tuple[Path, ...] = ()) -> str:
    """The output of code that succeeds."""
    done = run_python("-c", code, *words, cwd=cwd, paths=paths)
    assert done.code == 0, done.err
    return done.out
