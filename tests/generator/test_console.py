"""The output for users: in a pipe, on a terminal, as JSON, and quiet."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from os import terminal_size

import pytest

from kit.terminal import Terminal
from mcpgen.console import Console


@pytest.fixture(autouse=True)
def twenty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 20 columns with colours."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: terminal_size((20, 5)))
    for name, value in {"TERM": "xterm", "COLUMNS": "20", "LINES": "5"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def terminal() -> Generator[tuple[Terminal, Terminal]]:
    """Terminals as standard output and standard error."""
    out, err = Terminal(), Terminal()
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


TEXT = "a [b]text[/b]\n"
TABLE = "One   Two\na     b\nlong\n"
DIFF = "+a\n-b\n"


@pytest.mark.parametrize(
    ("console", "out", "err"),
    [
        (Console(), f"a summary\n{TEXT}{TABLE}{DIFF}", "working ...\n"),
        (Console(quiet=True), f"{TEXT}{TABLE}{DIFF}", ""),
        (Console(form="json"), '{\n  "a": [\n    1\n  ]\n}\n', ""),
    ],
)
def test_a_pipe_gets_plain_lines(
    console: Console, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console.record({"a": [1]})
    with console.progress("working"):
        console.summary("a summary")
    console.text("a [b]text[/b]")
    console.table(("One", "Two"), [("a", "b"), ("long", "")])
    console.diff("+a\n-b\n")
    assert tuple(capsys.readouterr()) == (out, err)


def test_a_terminal_gets_styles_but_no_markup_of_others() -> None:
    with terminal() as (shown, _):
        Console().text("ok: a [b]text[/b] of more than 20 columns 12")
    assert shown.getvalue() == "\x1b[1mok:\x1b[0m a [b]text[/b] of more than 20 columns 12\n"


def test_a_terminal_gets_a_table_without_a_frame_and_a_coloured_diff() -> None:
    with terminal() as (shown, _):
        Console().table(("One", "Two"), [("a", "b"), ("long", "")])
        Console().diff("+a\n-b\n")
    heads, *rows = shown.getvalue().splitlines()
    assert "\x1b[1mTwo\x1b[0m" in heads
    assert [row.rstrip() for row in rows[:2]] == ["a     b", "long"]
    assert "\x1b[92;49m+a" in rows[2]
    assert "\x1b[91;49m-b" in rows[3]


def test_a_terminal_shows_progress_that_goes() -> None:
    with terminal() as (_, shown):
        with Console().progress("working"):
            assert shown.getvalue() == "\x1b[?25l"  # without a cursor
        assert " working ..." in shown.getvalue()
        assert shown.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize("console", [Console(quiet=True), Console(form="json")])
def test_a_terminal_without_progress_stays_empty(console: Console) -> None:
    with terminal() as shown, console.progress("working"), console.steps(verbose=True) as steps:
        steps.begin("first")
        steps.step("second")
    assert [stream.getvalue() for stream in shown] == ["", ""]


def test_a_step_overwrites_the_last_one_within_a_line() -> None:
    with terminal() as (_, shown), Console().steps(verbose=False) as steps:
        steps.begin("first")
        steps.step("x" * 30)
    clear = "\r\x1b[K"
    assert shown.getvalue() == f"{clear}first ...\n{clear}{'x' * 19}{clear}"


@pytest.mark.parametrize(("verbose", "err"), [(False, "first ...\n"), (True, "first ...\nstep\n")])
def test_a_pipe_gets_steps_if_they_are_asked_for(
    verbose: bool, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Console().steps(verbose=verbose) as steps:
        steps.begin("first")
        steps.step("step")
    assert tuple(capsys.readouterr()) == ("", err)
