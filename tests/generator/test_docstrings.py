"""Docstrings: where their words come from, and how they are set."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from generator.schemas import COUNT, TEXT, normal_of, obj
from mcpgen.model.docstrings import Texts, arguments, docstring
from mcpgen.schema.docs import Docs, Entry, Text

LONG = "word " * 30


def evaluate_docstring(source: str, indent: int) -> str:
    """The text of a docstring as Python reads it, without its indentation."""
    value = ast.literal_eval(source)
    assert isinstance(value, str)
    return "\n".join(line.removeprefix(" " * indent) for line in value.split("\n"))


def test_a_short_text_stays_on_its_line() -> None:
    assert docstring(["Short.", ""], 4) == '"""Short."""'


@pytest.mark.parametrize("indent", [0, 8])
def test_a_text_has_one_line_if_it_fits_with_its_quotes(indent: int) -> None:
    text = "x" * (100 - indent - 6)
    assert docstring([text], indent) == f'"""{text}"""'
    assert docstring([f"{text}x"], indent) == f'"""{text}x\n{" " * indent}"""'


@pytest.mark.parametrize(
    ("length", "others", "limit"),
    [(20_000, 0, 10_000), (10_000, 198, 10_000), (10_000, 199, 5_000), (10_001, 198, 10_000)],
)
def test_descriptions_are_cut_to_what_a_schema_may_have(
    length: int, others: int, limit: int
) -> None:
    normal = normal_of(Tool=obj(x=TEXT))
    prose = {f"/$defs/{number}": "x" * 5_000 for number in range(others)}
    prose["/$defs/Tool"] = "x" * length
    texts = Texts(replace(normal.schema, prose=prose), Docs({}, {}))
    cut = f" ... (cut, of {length} characters)" if length > limit else ""
    assert texts.summary(normal.definitions["Tool"]) == "x" * limit + cut


def test_a_long_text_is_wrapped_and_closes_on_a_line_of_its_own() -> None:
    lines = docstring([LONG.strip()], 8).split("\n")
    assert len(lines[0]) <= 100 - 8
    assert all(line.startswith(" " * 8) and len(line) <= 100 for line in lines[1:])
    assert lines[-1] == " " * 8 + '"""'


def test_paragraphs_are_kept_apart_by_an_empty_line() -> None:
    assert docstring(["One.", "Two."], 4) == '"""One.\n\n    Two.\n    """'


def test_a_source_ends_the_only_paragraph_if_that_is_a_sentence() -> None:
    source = "Source: server/tools."
    assert docstring(["A tool."], 4, source) == '"""A tool. Source: server/tools."""'
    long = docstring([f"{'word ' * 17}end."], 4, source)
    assert long == f'"""{"word " * 17}end.\n    Source: server/tools.\n    """'
    below = '"""{}\n\n    Source: server/tools.\n    """'
    for text in ("No sentence", "Two\nlines."):
        shown = text.replace("\n", "\n    ")
        assert docstring([text], 4, source) == below.format(shown)


@pytest.mark.parametrize(
    "text", ['ends with a "quote"', 'holds """ quotes', "a \\n backslash \\", "'''", '"']
)
def test_no_text_ends_its_string_or_escapes_in_it(text: str) -> None:
    assert evaluate_docstring(docstring([text], 4), 4) == (
        text.replace('"""', "'''")[:-1] + text[-1].replace('"', "'")
    )


def test_arguments_are_listed_with_what_is_said_of_them() -> None:
    assert arguments([("name", "Its name."), ("age", ""), ("size", "How big.")]) == (
        "Args:\n    name: Its name.\n    size: How big."
    )
    assert arguments([("age", "")]) == ""


def test_of_an_argument_the_first_paragraph_is_told_on_one_line() -> None:
    assert arguments([("name", "Its\nname.\n\nMore.")]) == "Args:\n    name: Its name."


def test_long_lines_of_an_argument_are_indented_below_it() -> None:
    lines = docstring(["Do it.", arguments([("name", LONG.strip())])], 8).split("\n")
    assert lines[2] == " " * 8 + "Args:"
    assert lines[3].startswith(" " * 12 + "name: word")
    assert lines[4].startswith(" " * 16 + "word")


def test_the_prose_of_a_schema_comes_before_our_own_words() -> None:
    normal = normal_of(Tool=obj(name=TEXT, size=COUNT), ToolBox=obj(x=TEXT))
    prose = {
        "/$defs/Tool": "Theirs.",
        "/$defs/Tool/properties/size": "Their size.",
    }
    schema = replace(normal.schema, prose=prose)
    entry = Entry(Text("Ours.", "tools", {"name": "Our name."}), {})
    texts = Texts(schema, Docs({"tools": {"default": "server/tools"}}, {"Tool": entry}))
    tool, box = normal.definitions["Tool"], normal.definitions["ToolBox"]
    assert texts.summary(tool) == "Theirs."
    assert texts.member(tool, "name") == "Our name."
    assert texts.member(tool, "size") == "Their size."
    assert texts.source(tool) == "Source: server/tools."
    assert (texts.summary(box), texts.member(box, "x"), texts.source(box)) == ("Tool box.", "", "")
    assert Texts(normal.schema, texts.docs).summary(tool) == "Ours."
