"""Plain and styled output, without a process: what each form of output prints, to the character."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TypeAlias

import pytest

from mcpgen_runtime.runtime.terminal_output import PlainOutput, TableRow, output, printable

SGR = re.compile(r"\x1b\[[\d;]*m")


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


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
        (lambda o: o.text("[1e999]"), "[1e999]\n", "[1e999]\n"),
        (lambda o: o.text("{a"), "{a\n", "{a\n"),
        (lambda o: o.text("1"), "1\n", "1\n"),
        (lambda o: o.text("# a\nx = 1"), "# a\nx = 1\n", "# a\nx = 1\n"),
        (lambda o: o.text("# a\n", markdown=False), "# a\n\n", "# a\n\n"),
        (lambda o: o.text("####### a"), "####### a\n", "####### a\n"),
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
    ("name", "value", "kind"),
    [
        ("NO_COLOR", "1", "PlainOutput"),
        ("NO_COLOR", "", "_StyledOutput"),
        ("TERM", "dumb", "PlainOutput"),
        ("TERM", "xterm", "_StyledOutput"),
    ],
)
def test_the_environment_can_make_output_plain(
    name: str, value: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with redirect_stdout(Terminal()):
        assert type(output()).__name__ == kind


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
