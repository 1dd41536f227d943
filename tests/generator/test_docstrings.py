"""Docstrings: where their words come from, and how they are set."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.schemas import COUNT, TEXT, normal_of, obj
from mcpgen.model.docstrings import Texts, docstring
from mcpgen.schema.docs import Docs, Entry, Text


@pytest.mark.parametrize(("width", "end"), [(90, '"""'), (91, '\n    """')])
def test_the_closing_quotes_have_room_within_100_characters(width: int, end: str) -> None:
    assert docstring(["x" * width], 4) == f'"""{"x" * width}{end}'


@given(st.text(st.sampled_from("a \"'\\n\n{"), min_size=1))
@example('ends with a "quote"')
@example("a \\n backslash \\")
def test_no_text_ends_its_string_or_escapes_in_it(text: str) -> None:
    value = ast.literal_eval(docstring([text], 4))
    assert value.replace('"', "'").split() == text.replace('"', "'").split()


def test_long_descriptions_are_cut() -> None:
    normal = normal_of(Tool=obj(x=TEXT))
    texts = Texts(replace(normal.schema, prose={"/$defs/Tool": "x" * 20_000}), Docs({}, {}))
    summary = texts.summary(normal.definitions["Tool"])
    assert summary == "x" * 10_000 + " ... (cut, of 20000 characters)"


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
