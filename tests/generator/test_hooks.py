"""Hooks: commands that run after each generation, what they may do, and how they fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from generator.command_line import run
from mcpgen import schema

SETTINGS = f"""
[tool.mcpgen]
revisions = ["{schema.latest().name}"]
parts = ["types"]
output = "src/pkg"
hooks = {{hooks}}
"""


def with_hooks(here: Path, *hooks: list[str]) -> None:
    """Write the settings of a project."""
    (here / "pyproject.toml").write_text(SETTINGS.format(hooks=repr([*hooks])))


def python(code: str, *words: str) -> list[str]:
    """A hook that runs some Python."""
    return [sys.executable, "-c", code, *words]


def test_hooks_run_in_order_in_the_project_with_the_package(here: Path) -> None:
    write = "import os, sys; print(os.getcwd(), *sys.argv[1:], file=open('log', 'a'))"
    with_hooks(here, python(write, "{output}"), python(write, "$HOME; {output}/x"))
    done = run()
    assert done.code == 0
    package = here / "src" / "pkg"
    assert (here / "log").read_text().splitlines() == [
        f"{here} {package}",
        f"{here} $HOME; {package}/x",
    ]
    assert [line.endswith(": ok") for line in done.out.splitlines()[-2:]] == [True, True]


def test_a_check_runs_no_hook_and_an_update_does(here: Path) -> None:
    with_hooks(here, python("open('log', 'a').write('x')"))
    assert run().code == 0
    assert run("check").code == 0
    assert (here / "log").read_text() == "x"
    assert run("update").code == 0
    assert (here / "log").read_text() == "xx"


def test_a_failing_hook_is_shown_with_its_last_lines_and_stops_the_rest(here: Path) -> None:
    code = "import sys; print(*range(50), 'it is \\x1b[31mred', sep='\\n'); sys.exit(7)"
    with_hooks(here, python(code), python("open('log', 'a')"))
    done = run()
    assert done.code == 2
    *lines, last, error = done.err.splitlines()
    assert last == "  it is \\x1b[31mred"
    assert error.endswith(": expected exit code 0, got 7")
    assert next(line for line in lines if line.startswith("  ")) == "  11"
    assert not (here / "log").exists()
    assert run("check", "-q").code == 0
    assert run().code == 2  # it runs again, though nothing else is to do


def test_a_program_that_is_not_there_is_named(here: Path) -> None:
    with_hooks(here, ["no-such-program", "{output}"])
    assert run().err.splitlines()[-1] == (
        "mcpgen: error: hook no-such-program src/pkg: cannot be started: No such file or directory"
    )


EDITS = "(p / '_wire.py').write_text('x'); (p / '__init__.py').unlink(); (p / 'own.py').touch()"


@pytest.mark.parametrize(
    ("edit", "came"),
    [
        (EDITS, "got another __init__.py, _wire.py; what"),
        (f"{EDITS}; sys.exit(1)", "expected exit code 0, got 1"),
        ("r.write_text('{}')", "got another mcpgen.json; what"),
        ("r.unlink()", "got another mcpgen.json; what"),
        ("r.unlink(); r.symlink_to('no')", "got another mcpgen.json; what"),
    ],
)
def test_a_hook_that_changes_the_package_fails_and_is_undone(
    edit: str, came: str, here: Path
) -> None:
    code = f"import pathlib, sys; p = pathlib.Path(sys.argv[1]); r = p / 'mcpgen.json'; {edit}"
    with_hooks(here, python(code, "{output}"))
    done = run()
    assert done.code == 2
    assert came in done.err
    assert run("check", "-q").code == 0
    assert (here / "src" / "pkg" / "own.py").exists() == (EDITS in edit)
    assert not (here / "src" / "pkg" / "mcpgen.json").is_symlink()
