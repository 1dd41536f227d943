"""TypeScript that is refused: one error with line and column, and no text of it that acts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.command_line import run
from generator.tables import table
from generator.typescript_text import DECLARED, SMALL, member, read
from mcpgen import schema
from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript import Fidelity, document
from mcpgen.schema.typescript import read as read_typescript
from mcpgen.schema.typescript.parse import MAX_BYTES, MAX_DEPTH, parse

REFUSED: dict[str, Any] = table("typescript_errors")


@pytest.mark.parametrize(("text", "expected"), REFUSED["texts"].values(), ids=REFUSED["texts"])
def test_unreadable_texts_are_refused_with_their_place(text: str, expected: str) -> None:
    with pytest.raises(TypeScriptError) as raised:
        read(text)
    error = raised.value
    assert str(error).startswith(f"s.ts:{expected}")
    assert str(error).startswith(f"s.ts:{error.line}:{error.column}: expected {error.expected}, ")
    assert "\n" not in str(error)


def test_many_types_with_arguments_are_refused() -> None:
    members = " ".join(f"m{at}: A<{at}>;" for at in range(500))
    assert len(read(f"type A<T> = {{ a: T }};\ninterface B {{ {members} }}")) == 501
    members += "m500: A<500>;"
    with pytest.raises(TypeScriptError, match="expected at most 500 types with arguments"):
        read(f"type A<T> = {{ a: T }};\ninterface B {{ {members} }}")
    link = "type I{0}<T> = {{ a: I{1}<T> }};"
    last = "type I{0}<T> = T; type B = I{0}<2>; type A = I0<1>;"
    assert len(read(chain(39, link, last))) == 44
    with pytest.raises(TypeScriptError, match="40 in a row"):
        read(chain(40, link, last))


TYPES: dict[str, str] = {
    **REFUSED["types"],
    "[" * 61 + "]" * 61: "types nested at most 60 deep",
    f"string{'[]' * 30}": "at most 30 levels of objects, arrays and unions",
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_without_a_schema_is_refused(type_: str) -> None:
    with pytest.raises(TypeScriptError, match=r"^s\.ts:\d+:\d+: expected ") as raised:
        member(type_)
    assert raised.value.expected.startswith(TYPES[type_])


def chain(count: int, link: str, last: str = "interface I{} {{}}") -> str:
    """Declarations that each depend on the next, behind one that does not."""
    links = "".join(link.format(at, at + 1) for at in range(count))
    return f"type First = string;\n{links}{last.format(count)}"


DEPENDENT = "types and declarations that depend on at most 100 in a row"
LEVELS = "at most 30 levels of objects, arrays and unions"
PARTS = "a schema of at most 50000 members and types, after inheritance"


def inherited(times: int, parent: str = "A") -> str:
    """An interface with 250 members, and some that have them too."""
    members = "".join(f"a{at}: string; " for at in range(250))
    heirs = "".join(f"interface B{at} extends {parent} {{}}\n" for at in range(times))
    return f"interface A {{ {members} }}{heirs}"


TAGGED = "".join(f"/** @type integer */ a{at}: 1; " for at in range(100))
USES = "".join(f"m{at}: T; " for at in range(500))
INHERITS, ALIAS = "interface I{} extends I{} {{}}\n", "type I{} = I{};\n"
LARGE = {
    "inheritance in a long row": (chain(50, INHERITS), DEPENDENT),
    "aliases in a long row": (chain(51, ALIAS), DEPENDENT),
    "arrays of arrays by alias": (chain(200, "type I{} = I{}[];\n"), LEVELS),
    "tuples that double": (chain(14, "type I{0} = [I{1}, I{1}];\n"), PARTS),
    "unions that double": (chain(16, "type I{0} = I{1} | I{1};\n"), PARTS),
    "members that many inherit": (f"{inherited(99)}type X = 1;", PARTS),
    "members that operators make": (f"{inherited(66, 'Partial<A>')}type X = 1;", PARTS),
    "members with tags": (f"type T = [{{ {TAGGED} }}]; interface B {{ {USES} }}", PARTS),
}


@pytest.mark.parametrize(("text", "expected"), LARGE.values(), ids=LARGE)
def test_small_text_cannot_become_a_large_schema(text: str, expected: str) -> None:
    with pytest.raises(TypeScriptError) as raised:
        read(text)
    assert raised.value.expected == expected


@pytest.mark.parametrize(
    "text",
    [inherited(99), inherited(66, "Partial<A>"), chain(49, INHERITS), chain(50, ALIAS)],
    ids=["inherited members", "members that operators make", "inheritance", "aliases"],
)
def test_what_is_within_the_limits_is_read(text: str) -> None:
    assert len(read(text)) == text.count("interface ") + text.count("type ")


NESTED: dict[str, str] = REFUSED["nested"]
"""By kind or place of a type: the limit, a text around it, and how another is nested in it."""


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_types_nest_to_the_limit_and_no_deeper(text: str) -> None:
    limit, around, level = text.split("|", 2)
    type_ = "string"
    for _ in range(int(limit)):
        type_ = level.format(type_)
    parse(around.format(type_).encode(), "s.ts")
    with pytest.raises(TypeScriptError) as raised:
        parse(around.format(level.format(type_)).encode(), "s.ts")
    assert raised.value.expected == f"types nested at most {MAX_DEPTH} deep"


@pytest.mark.parametrize(("size", "column"), [(2000, 1992), (2001, 1994)])
def test_columns_count_characters_and_in_long_lines_bytes(size: int, column: int) -> None:
    with pytest.raises(TypeScriptError, match=rf"^s\.ts:1:{column}: "):
        read(f"/* \u00e9{'x' * (size - 26)} */ type A = Missing;")


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "schema.ts"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    with pytest.raises(TypeScriptError) as raised:
        schema.load_file(path)
    assert str(raised.value) == (
        f"{path}:1:1: expected TypeScript text of at most 524288 bytes, got more"
    )
    path.write_text(f"type A = string;{' ' * (MAX_BYTES - 16)}")
    assert read_typescript(path).types.keys() == {"A"}


def test_text_that_is_not_utf_8_is_refused_with_its_place() -> None:
    with pytest.raises(TypeScriptError, match=r"^s\.ts:2:11: expected UTF-8 text, got invalid "):
        parse(b"type A = string;\ntype B = '\xff';", "s.ts")


NUL = "\0"
FOREIGN = "\"\"\"\\'); __import__('os').abort() #{{ x }} */ ${require('./x')} \x1b[2J\u202e\x00"


@pytest.mark.parametrize("length", [1, 5_000])
def test_an_error_shows_foreign_text_escaped_and_cut(length: int) -> None:
    texts = (
        f"type A = string; {FOREIGN * length}",
        f"/** @minimum {FOREIGN * length}",
        f"/** @minimum {(FOREIGN * length).replace('*/', '')} */ type A = string;",
        f"type {'A' * length} = {'B' * length};",
        f"type A = typeof {'B' * length};",
        f"type A = Pick<B, '{'C' * length}'>; interface B {{}}",
    )
    for text in texts:
        with pytest.raises(TypeScriptError) as raised:
            read(text[:MAX_BYTES])
        shown = str(raised.value)
        assert shown.isascii()
        assert shown.isprintable()
        assert len(shown) < 400


def test_foreign_text_stays_text() -> None:
    literal = FOREIGN.replace("\\", "\\\\").replace("'", "\\'").replace(NUL, "\\0")
    text = (
        f"/** {FOREIGN.replace('*/', '').rstrip(NUL)} */ interface A {{ '{literal}': '{literal}' }}"
        f"const B = '{literal}';"
    )
    module = parse(text.encode(), "s.ts")
    definition = document(module, "$defs", Fidelity.TYPESCRIPT)["$defs"]["A"]
    assert definition["properties"] == {FOREIGN: {"const": FOREIGN, "type": "string"}}
    assert "abort" in definition["description"]
    assert module.constants["B"].value == FOREIGN


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_string_comes_out_as_it_is_written(text: str) -> None:
    escaped = "".join(f"\\u{{{ord(character):x}}}" for character in text)
    assert member(f'"{escaped}"') == {"const": text, "type": "string"}


PIECES = [
    *("interface ", "A", " extends ", "{", "}", "[", "]", "(", ")", "<", ">", ": ", "; ", "| "),
    *("& ", "type ", "B = ", '"a"', "1", "?", "...", "typeof ", "keyof ", "enum ", "const ", "\n"),
    *("/** @minimum 1 */", "export ", "Omit<A, B>", "Record", "=>", "`", "'", "string", "\u00e9"),
]


@st.composite
def damaged_texts(draw: st.DrawFn) -> str:
    """A sound text followed by anything, or with a part replaced."""
    if draw(st.booleans()):
        return DECLARED + "".join(draw(st.lists(st.sampled_from(PIECES), max_size=25)))
    at, removed = draw(st.integers(0, len(SMALL))), draw(st.integers(0, 30))
    return SMALL[:at] + draw(st.sampled_from(PIECES)) + SMALL[at + removed :]


@settings(max_examples=200)
@given(damaged_texts())
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    try:
        read(text)
    except TypeScriptError as error:
        place = (error.line, error.column)
        assert (0, 0) < place <= (text.count("\n") + 1, len(text) + 1)


def test_only_typescript_needs_tree_sitter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    path = tmp_path / "own.ts"
    path.write_text("export interface A {}")
    done = run("-q", "--schema", path, "-o", tmp_path / "own")
    expected = "expected a schema in JSON, got TypeScript, which needs tree_sitter: the extra"
    assert (done.code, f"{expected} typescript of mcpgen brings it" in done.err) == (2, True)
    for name in ("tasks", "ui", "skills"):
        words = ("-q", "-r", "latest", "--parts", "types", "--extension", name)
        assert run(*words, "-o", tmp_path / name).code == 0
