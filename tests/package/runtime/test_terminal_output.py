"""Output of commands, in process to the character, and of whole commands on a terminal."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kit.processes import PACKAGE_ROOT
from kit.terminal import Terminal
from kit.wire import every
from mcpgen_runtime.runtime.terminal_output import PlainOutput, TableRow, output, printable

SGR = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a terminal with 24 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "24")
    for name in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


Show: TypeAlias = Callable[[PlainOutput], None]


def print_styled(show: Show) -> str:
    """Print on a terminal."""
    with redirect_stdout(Terminal()) as terminal:
        show(output())
    return terminal.getvalue()


def print_plain(show: Show) -> str:
    """Print plain text."""
    with redirect_stdout(io.StringIO()) as printed:
        show(output())
    return printed.getvalue()


def remove_styles(text: str) -> str:
    return SGR.sub("", text)


@pytest.mark.parametrize(
    ("show", "styled", "plain"),
    [
        (lambda o: o.text("\x1b[2J :smile: [bold]x[/] " + "long " * 9), None, None),
        (lambda o: o.text("# a\n", markdown=False), "# a\n\n", "# a\n\n"),
        (
            lambda o: o.text(' {"a\x7f": 1}'),
            '\x1b[1m{\x1b[0m\n  \x1b[1;34m"a\\x7f"\x1b[0m: \x1b[1;36m1\x1b[0m\n\x1b[1m}\x1b[0m\n',
            ' {"a\\x7f": 1}\n',
        ),
        (
            lambda o: o.value({"a": "\xe9"}),
            '\x1b[1m{\x1b[0m\n  \x1b[1;34m"a"\x1b[0m: \x1b[32m"\\u00e9"\x1b[0m\n\x1b[1m}\x1b[0m\n',
            '{\n  "a": "\\u00e9"\n}\n',
        ),
        (lambda o: o.heading("a\x1b" * 20), "\x1b[1m" + "a\\x1b" * 20 + "\x1b[0m\n", None),
        (
            lambda o: o.line([("a", "red"), ("b\tc", ""), ("\x1bd", "dim")]),
            "\x1b[31ma\x1b[0mb      c\x1b[2m\\x1bd\x1b[0m\n",
            "ab\tc\\x1bd\n",
        ),
    ],
)
def test_a_text_is_printed_as_a_whole_with_its_styles(
    show: Show, styled: str | None, plain: str | None
) -> None:
    if styled is not None:
        assert print_styled(show) == styled
    if plain is not None:
        assert print_plain(show) == plain
    else:
        assert remove_styles(print_styled(show)) == print_plain(show)


@pytest.mark.parametrize("text", ["[1e999]", "{a", "1", "# a\nx = 1", "####### a"])
def test_a_text_that_is_neither_json_nor_markdown_stays_as_it_is(text: str) -> None:
    assert (
        print_styled(lambda o: o.text(text)) == print_plain(lambda o: o.text(text)) == f"{text}\n"
    )


@pytest.mark.parametrize(
    ("text", "options", "shown"),
    [
        ("# Title\n\nSome *words* that wrap here", {}, "Title Some words that wrap here"),
        ("###### a", {}, "a"),
        ("b\n\n# a\n", {}, "b a"),
        ("```\na\n```", {}, "a"),
        ("Some *words*", {"markdown": True}, "Some words"),
        ("[a](http://b)\x1b", {"markdown": True}, r"a (http://b)\x1b"),
        ("Some *words*", {}, "Some *words*"),
    ],
)
def test_markdown_is_recognized_or_stated(text: str, options: Any, shown: str) -> None:
    styled = print_styled(lambda output: output.text(text, **options))
    lines = remove_styles(styled).splitlines()
    assert " ".join(" ".join(lines).split()) == shown
    assert "\x1b]" not in styled
    if len(text) > 24:
        assert max(map(len, lines)) == 24


ROWS = [TableRow(("a", "b " * 20), "line a\x1b", "note\x1b"), TableRow(("c\x1b", "d"), "line c")]


def test_a_plain_table_is_a_list_of_lines_and_notes() -> None:
    printed = print_plain(lambda output: output.table("Tools", ["name", "use"], ROWS))
    assert printed == "\nTools\n  line a\\x1b\n      note\\x1b\n  line c\n"


def test_a_styled_table_has_columns_whose_cells_wrap() -> None:
    styled = print_styled(lambda output: output.table("Tools", ["name", "use"], ROWS))
    title, *lines = remove_styles(styled).splitlines()
    assert title.rstrip() == "Tools"
    assert styled.startswith("\x1b[1mTools")
    cells = [line.split() for line in lines if line.strip(" \u2500")]
    assert cells[0] == ["name", "use"]
    assert cells[1][:2] == ["a", "b"]
    assert sum(row.count("b") for row in cells) == 20
    assert cells[-1] == ["c\\x1b", "d"]
    assert len(cells) > 4
    assert "\x1b[36ma" in styled
    assert "\x1b[36mb" not in styled
    assert max(map(len, lines)) == 24


@pytest.mark.parametrize(
    ("name", "value", "is_plain"),
    [("NO_COLOR", "1", True), ("NO_COLOR", "", False), ("TERM", "dumb", True)],
)
def test_the_environment_can_make_output_plain(
    name: str, value: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with redirect_stdout(Terminal()):
        assert (type(output()) is PlainOutput) is is_plain


def test_output_is_plain_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with redirect_stdout(Terminal()):
        assert type(output()) is PlainOutput


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a b", "a b"), ("a\n\tb\xe9", "a\n\tb\xe9"), ("\r\x1b\u202e'\x7f", r"\r\x1b\u202e'\x7f")],
)
def test_control_characters_but_newlines_and_tabs_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


POSIX = pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo terminals")

SERVER = """
    from mcpgen_runtime import Server

    server = Server("[bold]wild[/]", "1.0")

    @server.tool(description="[link=http://evil]Weather[/] :smile: \\x1b]0;title\\x07")
    def forecast(city: str, days: int = 3) -> list[int]:
        return [days]

    @server.resource("text://notes", name="[blink]notes[/]", mime_type="text/markdown")
    def read_notes() -> str:
        return "Some *text*"

    @server.prompt()
    def ask(city: str) -> str:
        return f"How is {city}? [bold]x[/]"
"""


def terminal_output(folder: Path, *words: str) -> str:
    """The words that a command prints on a terminal, beside a server of a module `wild`."""
    (folder / "wild.py").write_text(textwrap.dedent(SERVER))
    reading, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen_runtime", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT), "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.PIPE,
    )
    os.close(terminal)
    output = bytearray()
    try:
        while chunk := os.read(reading, 65536):
            output += chunk
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(reading)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    styled = output.decode().replace("\r\n", "\n")
    assert "\x1b[36m" in styled  # names of things, or of columns
    text = remove_styles(styled)
    assert all(char.isprintable() or char == "\n" for char in text), text
    return text


@POSIX
@pytest.mark.costly
@every
def test_lists_are_tables_without_markup_of_the_server(tmp_path: Path, revision: str) -> None:
    text = terminal_output(tmp_path, "list", "wild:server", "--revision", revision)
    assert f"[bold]wild[/] 1.0, {revision}\n" in text
    assert re.search(
        r"forecast +city: string, days: integer = 3 +\[link=http://evil\]Weather", text
    )
    assert r":smile: \x1b]0;title\x07" in re.sub(r"\s+", " ", text)
    assert re.search(r"text://notes +\[blink\]notes\[/\] +text/markdown", text)
    assert re.search(r"URI +name +type +description", text)
    assert re.search(r"ask +city ", text)
