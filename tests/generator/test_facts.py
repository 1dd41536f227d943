"""Facts: the same keys for every revision, and none that the schema contradicts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcpgen import facts, schema
from mcpgen.errors import FactsError, UsageError

NAMES = [row.name for row in schema.revisions()]
OLDEST, NEWEST = NAMES[0], NAMES[-1]


def methods(revision: str) -> set[str]:
    """Every method that the schema of a revision names."""
    definitions = schema.load(revision).definitions.values()
    found = (node.get("properties", {}).get("method", {}) for node in definitions)
    return {method["const"] for method in found if "const" in method}


def capability_paths(revision: str) -> set[tuple[str, ...]]:
    """Every path into the capabilities that the schema of a revision describes."""
    definitions = schema.load(revision).definitions

    def below(node: dict[str, Any], path: tuple[str, ...]) -> set[tuple[str, ...]]:
        inner = node.get("properties", {}).items()
        return {path}.union(*(below(child, (*path, name)) for name, child in inner))

    both = (definitions["ClientCapabilities"], definitions["ServerCapabilities"])
    return set().union(*(below(node, ()) for node in both))


@pytest.mark.parametrize("name", NAMES)
def test_facts_name_only_methods_that_the_schema_has(name: str) -> None:
    found = facts.load(name)
    named = {
        *found.capabilities,
        *found.results.client,
        *found.results.server,
        *found.behaviour.not_cancellable,
        *found.behaviour.input_required,
        *([found.behaviour.listen] if found.behaviour.listen else []),
    }
    assert named <= methods(name)


@pytest.mark.parametrize("name", NAMES)
def test_facts_name_only_capabilities_that_the_schema_has(name: str) -> None:
    found = facts.load(name)
    paths = {found.capability(method) for method in found.capabilities}
    assert paths <= capability_paths(name)


@pytest.mark.parametrize("name", NAMES)
def test_facts_name_only_definitions_and_fields_that_the_schema_has(name: str) -> None:
    found, definitions = facts.load(name), schema.load(name).definitions
    results = {*found.results.client.values(), *found.results.server.values()}
    named = {*found.renamed, *found.defaults, *(one for types in results for one in types)}
    assert named - {"*"} <= definitions.keys()
    for field in (field for fields in found.defaults.values() for field in fields):
        assert any(field in node.get("required", []) for node in definitions.values())


@pytest.mark.parametrize("name", NAMES)
def test_later_names_are_names_of_a_later_revision(name: str) -> None:
    later = [schema.load(other).definitions.keys() for other in NAMES if other > name]
    for new in facts.load(name).renamed.values():
        assert any(new in definitions for definitions in later)


@pytest.mark.parametrize("name", NAMES)
def test_requests_that_may_ask_for_input_are_those_whose_response_says_so(name: str) -> None:
    definitions = schema.load(name).definitions
    said = {
        definition.removesuffix("ResultResponse")
        for definition, node in definitions.items()
        if definition.endswith("ResultResponse") and "InputRequiredResult" in str(node)
    }
    requests = {definitions[f"{one}Request"]["properties"]["method"]["const"] for one in said}
    assert set(facts.load(name).behaviour.input_required) == requests


@pytest.mark.parametrize("name", NAMES)
def test_keys_of_meta_are_those_of_the_schema(name: str) -> None:
    meta, definitions = facts.load(name).meta, schema.load(name).definitions
    known = {
        key: value
        for key, value in vars(meta).items()
        if isinstance(value, str) and key not in {"reserved_prefix", "related_task"}
    }
    in_schema = {
        key
        for node in definitions.values()
        for key in node.get("properties", {})
        if key.startswith("io.modelcontextprotocol/")
    }
    assert set(known.values()) == in_schema


@pytest.mark.parametrize(
    ("method", "revision", "path"),
    [
        ("tools/call", OLDEST, ("tools",)),
        ("resources/subscribe", OLDEST, ("resources", "subscribe")),
        ("completion/complete", OLDEST, ()),
        ("completion/complete", NEWEST, ("completions",)),
        ("ping", OLDEST, ()),
    ],
)
def test_a_capability_is_a_path(method: str, revision: str, path: tuple[str, ...]) -> None:
    assert facts.load(revision).capability(method) == path


def test_a_definitions_own_default_comes_before_that_for_all() -> None:
    found = facts.load(NEWEST)
    assert found.default("ListToolsResult", "resultType") == "complete"
    assert found.default("InputRequiredResult", "resultType") == "input_required"
    assert found.default("ListToolsResult", "ttlMs") == 0
    assert found.default("ListToolsResult", "tools") is None
    assert facts.load(OLDEST).default("ListToolsResult", "resultType") is None


def changed(folder: Path, pattern: str, replacement: str) -> Path:
    """The newest facts with one change, in a file of their own."""
    text = (schema.entry(NEWEST).folder / "facts.toml").read_text()
    path = folder / "facts.toml"
    path.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE))
    return path


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        (r"^stdio = true\n", "", "#/transports: expected the key stdio, got "),
        (r"^stdio = true$", "stdio = true\ncarrier_pigeon = true", "#/transports/carrier_pigeon: "),
        (r'^log_level = "request"$', 'log_level = "never"', "#/behaviour/log_level: expected one"),
        (r"^accepted = 202$", 'accepted = "202"', "#/http/accepted: expected an integer, got "),
        (r"^\[renamed\]$", "[names]", "#/names: expected one of the keys transports, headers, "),
        (r"^\[transports\]$", 'revision = "x"\n[transports]', "#/revision: expected a table of "),
    ],
)
def test_unknown_missing_and_mistyped_keys_are_refused(
    tmp_path: Path, pattern: str, replacement: str, expected: str
) -> None:
    path = changed(tmp_path, pattern, replacement)
    with pytest.raises(FactsError) as raised:
        facts.load_file(path)
    assert str(raised.value).startswith(f"{path}{expected}")


def test_a_facts_file_belongs_to_the_revision_it_is_loaded_for(tmp_path: Path) -> None:
    path = changed(tmp_path, "^never$", "")
    assert facts.load_file(path).revision == tmp_path.name
    assert facts.load_file(path, "draft").revision == "draft"


def test_there_are_no_facts_of_an_unknown_revision() -> None:
    with pytest.raises(UsageError, match="unknown revision 'draft'"):
        facts.load("draft")
