"""Documentation: one entry per type for all revisions, and what some say instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpgen import schema
from mcpgen.errors import DocsError
from mcpgen.schema import docs

TEXT = """
[pages]
tools = "server/tools"
messages = { default = "basic/index", "1" = "basic/messages" }

[types.Tool]
doc = "A tool."
page = "tools"
fields = { name = "Its name.", title = "Its title." }

[types.Tool.revisions."1"]
doc = "An old tool."
fields = { name = "Its only name." }

[types.Request]
doc = "A request."
page = "messages"

[types.Bare]
doc = "Nothing more."
"""


@pytest.mark.parametrize(
    ("revision", "name", "doc", "page", "fields"),
    [
        ("1", "Tool", "An old tool.", "server/tools", ("Its only name.", "Its title.", "")),
        ("2", "Tool", "A tool.", "server/tools", ("Its name.", "Its title.", "")),
        ("1", "Request", "A request.", "basic/messages", ("", "", "")),
        ("2", "Request", "A request.", "basic/index", ("", "", "")),
        ("1", "Bare", "Nothing more.", "", ("", "", "")),
        ("1", "Cat", "", "", ("", "", "")),
    ],
)
def test_a_revision_has_its_own_texts_or_the_common_ones(
    tmp_path: Path, revision: str, name: str, doc: str, page: str, fields: tuple[str, ...]
) -> None:
    (tmp_path / "docs.toml").write_text(TEXT)
    texts = docs.load_file(tmp_path / "docs.toml")
    assert (texts.type_doc(revision, name), texts.page(revision, name)) == (doc, page)
    wires = ("name", "title", "x")
    assert tuple(texts.field_doc(revision, name, wire) for wire in wires) == fields


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("types = 1", "#/types: expected a table, got 1"),
        ("[types.X]\ndoc = 1", "#/types/X/doc: expected a string, got 1"),
        (
            "[types.X]\ndocs = ''",
            "#/types/X/docs: expected one of the keys doc, page, fields, the near",
        ),
        ("[types.X.fields]\na = 1", "#/types/X/fields/a: expected a string, got 1"),
        ("[pages]\na = 1", "#/pages/a: expected a table, got 1"),
        ("[pages]\na = { default = 1 }", "#/pages/a/default: expected a path, got 1"),
        ("[other]", "#/other: expected one of the tables pages, types, got "),
        ("[types.X]\npage = 'cats'", "#/types/X/page: expected a topic of [pages], got "),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "docs.toml"
    path.write_text(text)
    with pytest.raises(DocsError) as raised:
        docs.load_file(path)
    assert str(raised.value).startswith(f"{path}{expected}")


@pytest.mark.parametrize("row", schema.revisions(), ids=lambda row: row.name)
def test_every_definition_of_every_revision_is_documented(row: schema.RevisionEntry) -> None:
    texts = docs.load()
    assert [
        name
        for name in schema.load(row.name).definitions
        if not (texts.type_doc(row.name, name) and texts.page(row.name, name))
    ] == []
