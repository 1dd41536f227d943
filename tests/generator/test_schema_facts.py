"""Facts files of users: what they state and remove, what is refused, and their text."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from mcpgen import schema
from mcpgen.errors import FactsError
from mcpgen.model import schema_facts
from mcpgen.model.fitting import FittedFacts, Guess
from mcpgen.schema import facts
from mcpgen.schema.facts import Results
from mcpgen.schema.method_facts import MethodFacts

BASE = schema.latest().name
GUESS = Guess("/results/client/a", ["B"], BASE, "it is so")
CARRIED = Guess("/http/accepted", 202, BASE, "")


def write_facts(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text)
    return path


def overlay(folder: Path, text: str) -> facts.Facts:
    """The facts of the newest revision with those of a file."""
    path = write_facts(folder, text)
    return schema_facts.facts_for(schema.load(BASE), BASE, path).facts


@pytest.mark.parametrize(
    ("guesses", "carried", "pointer", "came"),
    [
        ((GUESS,), (), "/results/client/a", 'the guess ["B"], it is so'),
        ((), (CARRIED,), "/http/accepted", f"202, carried over from {BASE}"),
        (
            (GUESS,),
            (CARRIED, CARRIED),
            "/results/client/a",
            'the guess ["B"], it is so (and 2 more, which mcpgen facts lists)',
        ),
    ],
)
def test_the_first_fact_that_no_file_states_is_named(
    guesses: tuple[Guess, ...], carried: tuple[Guess, ...], pointer: str, came: str
) -> None:
    fitted = FittedFacts(facts.load(BASE), guesses, carried)
    with pytest.raises(FactsError) as caught:
        schema_facts.expect_all_stated(fitted, "a.json")
    error = caught.value
    assert (error.pointer, error.expected, error.came) == (
        pointer,
        "a fact that --facts states",
        came,
    )
    schema_facts.expect_all_stated(FittedFacts(facts.load(BASE)), "a.json")


def test_carried_facts_are_counted_by_table() -> None:
    known = facts.load(BASE)
    assert schema_facts.summary(FittedFacts(known, (GUESS,))) == ""
    assert schema_facts.summary(FittedFacts(known, (), (CARRIED,))) == (
        f"1 facts that the schema does not state, from {BASE}: http 1"
    )
    carried = (CARRIED, replace(CARRIED, pointer="/meta/a/b"), replace(CARRIED, pointer="/http/x"))
    assert schema_facts.summary(FittedFacts(known, (), carried)) == (
        f"3 facts that the schema does not state, from {BASE}: http 2, meta 1"
    )


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("based_on = '2001-01-01'", "/based_on"),
        ("based_on = false", "/based_on"),
        ("revision = '2001-01-01'", "/revision"),
        ("source = 'x'", "/source"),
    ],
)
def test_a_file_states_neither_its_revision_nor_its_source(
    tmp_path: Path, text: str, pointer: str
) -> None:
    with pytest.raises(FactsError) as caught:
        schema_facts.read(write_facts(tmp_path, text))
    assert caught.value.pointer == pointer


def test_a_file_has_the_facts_at_its_pointers(tmp_path: Path) -> None:
    text = f"based_on = '{BASE}'\n[http]\naccepted = 1\n[methods.'a/b']\nidempotent = false\n"
    stated = schema_facts.read(write_facts(tmp_path, text))
    assert stated.based_on == BASE
    for pointer in ("/http", "/http/accepted", "/methods/a~1b/idempotent", ""):
        assert stated.has(pointer)
    for pointer in ("/based_on", "/http/accepted/x", "/http/rejected", "/methods/a"):
        assert not stated.has(pointer)


def test_rows_that_are_false_or_empty_are_removed_by_name_alone(tmp_path: Path) -> None:
    known = facts.load(BASE)
    stated = overlay(
        tmp_path,
        """
        capabilities."tools/list" = false
        methods."tools/call" = false
        methods."tools/list" = { idempotent = false }
        results.client."tools/call" = false
        transports.streamable_http = false
        """,
    )
    assert known.capability("tools/list") == ("tools",)
    assert stated.capability("tools/list") == ()
    assert stated.capability("tools/call") == ("tools",)
    assert "tools/call" not in stated.methods
    assert stated.method("tools/list") == replace(known.method("tools/list"), idempotent=False)
    assert "tools/call" not in stated.results.client
    assert (known.transports.streamable_http, stated.transports.streamable_http) == (
        "stateless",
        None,
    )
    assert stated.source == str(tmp_path / "own.toml")
    assert stated.revision == known.revision


def test_facts_as_a_table_have_false_for_null() -> None:
    row = MethodFacts(idempotent=True, invalidates=("a", "b"))
    known = replace(facts.load(BASE), methods={"x": row, "y": MethodFacts()})
    table = schema_facts.as_table(known)
    assert table["methods"] == {"x": {"idempotent": True, "invalidates": ["a", "b"]}, "y": {}}
    assert not {"revision", "source"} & table.keys()
    assert table["meta"]["related_task"] is False


def test_methods_of_a_file_are_those_of_schema_and_extensions(tmp_path: Path) -> None:
    loaded = schema.load(BASE)
    extension = next(name for name, row in facts.load(BASE).methods.items() if row.extension)
    path = write_facts(tmp_path, f"methods.'{extension}'.idempotent = true\nmethods.ping2 = false")
    assert schema_facts.absent_methods(path) == {"ping2"}
    with pytest.raises(FactsError) as caught:
        schema_facts.expect_methods(loaded, BASE, path)
    assert caught.value.pointer == "/methods/ping2"
    schema_facts.expect_methods(
        loaded, BASE, write_facts(tmp_path, f"capabilities.'{extension}' = 'x'\nhttp.accepted = 1")
    )
    assert schema_facts.absent_methods(path) == frozenset()
    assert schema_facts.absent_methods(write_facts(tmp_path, "methods = false")) == frozenset()
    schema_facts.expect_methods(loaded, BASE, write_facts(tmp_path, "results = 1\nmethods = 1"))


def test_the_text_of_facts_explains_each_table_and_key(tmp_path: Path) -> None:
    known = facts.load(BASE)
    path = write_facts(tmp_path, "http.accepted = 204")
    fitted = schema_facts.facts_for(schema.load(BASE), BASE, path)
    guesses = (
        Guess("/methods/a~1b", {}, BASE, "so"),
        Guess("/http/rejected", known.http.rejected, BASE, "too"),
    )
    text = schema_facts.text_of(
        replace(fitted, guesses=guesses), schema.load(BASE), BASE, path, Results()
    )
    lines = text.splitlines()
    assert lines[3:5] == [f'based_on = "{BASE}"', ""]
    assert f"accepted = 204  # from {path}" in lines
    at = lines.index(f"rejected = {known.http.rejected}")
    assert lines[at - 1] == "# A guess: too."
    assert lines[at - 2].startswith("# ")
    at = lines.index("[methods]")
    about = [line.partition(": ")[0] for line in lines[:at][-len(fields(MethodFacts)) :]]
    assert about == [f"# {field.name}" for field in fields(MethodFacts)]
    at = lines.index('[methods."a/b"]')
    assert lines[at - 2 : at] == ["", "# A guess: so."]
    at = lines.index("[http]")
    assert lines[at - 2] == ""
    assert lines[at - 1].startswith("# ")
    assert "[results.client]" in lines
    assert not [line for line in lines if line.startswith("[pages")]
    assert lines[lines.index("[transports]") + 1].startswith("# ")
