"""Facts of revisions and of users: what files state, and nothing that the schema contradicts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.schemas import facts_of, normal_of, obj
from mcpgen import schema
from mcpgen.errors import FactsError
from mcpgen.model import fact_checks, schema_facts
from mcpgen.schema import facts

NAMES = [row.name for row in schema.revisions()]
OLDEST, NEWEST = NAMES[0], NAMES[-1]


def methods(revision: str) -> set[str]:
    """Every method that the schema of a revision names."""
    definitions = schema.load(revision).definitions.values()
    schemas = (node.get("properties", {}).get("method", {}) for node in definitions)
    return {method["const"] for method in schemas if "const" in method}


@pytest.mark.parametrize("name", NAMES)
def test_facts_name_only_what_the_schema_has(name: str) -> None:
    def below(node: dict[str, Any], path: tuple[str, ...]) -> set[tuple[str, ...]]:
        inner = node.get("properties", {}).items()
        return {path}.union(*(below(child, (*path, name)) for name, child in inner))

    loaded, definitions = facts.load(name), schema.load(name).definitions
    assert facts.load_file(schema.entry(name).folder / "facts.toml") == loaded
    results = {**loaded.results.client, **loaded.results.server}
    listen = {loaded.behaviour.listen} - {None}
    assert {*loaded.capabilities, *results, *listen} <= methods(name)
    paths = {loaded.capability(method) for method in loaded.capabilities}
    both = (definitions["ClientCapabilities"], definitions["ServerCapabilities"])
    assert paths <= set().union(*(below(node, ()) for node in both))
    types = {one for each in results.values() for one in each}
    assert {*loaded.renamed, *loaded.defaults, *types} - {"*"} <= definitions.keys()
    for field in (field for fields in loaded.defaults.values() for field in fields):
        assert any(field in node.get("required", []) for node in definitions.values())
    later = [schema.load(other).definitions.keys() for other in NAMES if other > name]
    for new in loaded.renamed.values():
        assert any(new in definitions for definitions in later)


def test_facts_of_methods_are_about_methods_that_exist() -> None:
    in_schemas = set().union(*(methods(name) for name in NAMES))
    for name in NAMES:
        for method, stated in facts.load(name).methods.items():
            assert method in in_schemas or facts.load(NEWEST).method(method).extension
            named = {*stated.invalidates, *([stated.listed_by] if stated.listed_by else [])}
            assert named <= in_schemas


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        (
            r"^\[transports\]$",
            "[transports]\ncarrier_pigeon = true",
            "#/transports/carrier_pigeon: ",
        ),
        (r'^log_level = "request"$', 'log_level = "never"', "#/behaviour/log_level: expected one"),
        (r"^\[methods\]$", "[methods]\nx = { y = 1 }", "#/methods/x/y: expected one of the keys"),
        (
            r"^\[methods\]$",
            "[methods]\nping = false",
            "#/methods/ping: expected a table, got false",
        ),
        (r"^\[transports\]$", 'revision = "x"\n[transports]', "#/revision: expected a table of "),
    ],
)
def test_unknown_and_mistyped_keys_are_refused(
    tmp_path: Path, pattern: str, replacement: str, expected: str
) -> None:
    text, path = (schema.entry(NEWEST).folder / "facts.toml").read_text(), tmp_path / "facts.toml"
    path.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE))
    with pytest.raises(FactsError) as raised:
        facts.load_file(path)
    assert str(raised.value).startswith(f"{path}{expected}")


@pytest.mark.parametrize(
    ("code", "is_defined"), [(-32100, False), (-32099, True), (-32020, True), (-32019, False)]
)
def test_a_code_of_the_reserved_range_is_defined(code: int, is_defined: bool) -> None:
    before = facts.load(NEWEST)
    before = replace(before, errors=replace(before.errors, retired=(code, 1)))
    after = facts.with_codes(before, {"HEADER_MISMATCH": code, "OTHER": -32098}).errors
    assert after.header_mismatch == code
    assert (code in (after.defined or ())) is is_defined
    others = {*(before.errors.defined or ())} - {before.errors.header_mismatch}
    assert {*(after.defined or ())} - {code} == others - {code}
    assert after.retired == (1,)
    assert facts.with_codes(before, {"HEADER_MISMATCH": 0, "OTHER": -32098}) == before


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
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(FactsError) as caught:
        schema_facts.read(path)
    assert caught.value.pointer == pointer


def test_rows_that_are_false_or_empty_are_removed_by_name_alone(tmp_path: Path) -> None:
    known, path = facts.load(NEWEST), tmp_path / "own.toml"
    path.write_text(
        """
        capabilities."tools/list" = false
        methods."tools/call" = false
        methods."tools/list" = { idempotent = false }
        results.client."tools/call" = false
        transports.streamable_http = false
        """
    )
    stated = schema_facts.facts_for(schema.load(NEWEST), NEWEST, path).facts
    assert known.capability("tools/list") == ("tools",)
    assert stated.capability("tools/list") == ()
    assert stated.capability("tools/call") == ("tools",)
    assert "tools/call" not in stated.methods
    assert stated.method("tools/list") == replace(known.method("tools/list"), idempotent=False)
    assert "tools/call" not in stated.results.client
    assert known.transports.streamable_http == "stateless"
    assert stated.transports.streamable_http is None
    assert stated.source == str(tmp_path / "own.toml")
    assert stated.revision == known.revision


@pytest.mark.parametrize("text", ["methods.ping2 = false", "methods.ping2.idempotent = true"])
def test_methods_of_a_file_are_those_of_schema_and_extensions(tmp_path: Path, text: str) -> None:
    loaded, path = schema.load(NEWEST), tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(FactsError) as caught:
        schema_facts.expect_methods(loaded, NEWEST, path)
    assert caught.value.pointer == "/methods/ping2"
    path.write_text("methods.'tasks/get'.idempotent = true\ncapabilities.'tasks/get' = 'x'")
    schema_facts.expect_methods(loaded, NEWEST, path)


CLOSED = {"type": "number", "minimum": 0, "maximum": 1}
OPEN = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


@pytest.mark.parametrize(
    ("node", "value", "fits"),
    [
        *((CLOSED, value, fits) for value, fits in ((0, True), (1, True), (-1, False), (2, False))),
        *((OPEN, value, fits) for value, fits in ((0, False), (1, False), (0.5, True))),
    ],
)
@pytest.mark.parametrize("owner", ["Bag", "*"])
def test_a_default_lies_within_the_bounds_of_its_member(
    owner: str, node: Any, value: float, fits: bool
) -> None:
    stated = facts_of(defaults={owner: {"size": value}})
    normal = normal_of(facts=stated, Bag=obj("size", size=node, other=CLOSED))
    if fits:
        fact_checks.expect_fitting(normal, stated, None)
        return
    with pytest.raises(FactsError) as caught:
        fact_checks.expect_fitting(normal, stated, None)
    assert str(caught.value) == (
        f"{stated.source}#/defaults/{owner}/size: expected a value of Bag.size in the schema,"
        f' which [defaults.Bag] "size" = ... in --facts gives, got {value}'
    )
