"""Schemas that call core types, members and methods otherwise: recognized, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.draft_packages import definitions_of, save_schema
from generator.schemas import COUNT, TEXT
from mcpgen import schema
from mcpgen.errors import SchemaError
from mcpgen.model import schema_facts, schema_sources
from mcpgen.model.parts import Selection
from mcpgen.package import pipeline
from mcpgen.package.build_request import BuildRequest
from mcpgen.schema import docs
from mcpgen.spec import core_check, stages
from mcpgen.spec.packages import RevisionSpec

pytestmark = pytest.mark.costly

NAMES = [row.name for row in schema.revisions()]
HANDSHAKE, STATELESS = "2025-06-18", "2026-07-28"


def rename_in_schema(name: str, old: str, new: str) -> dict[str, Any]:
    """The definitions of a revision with a type, member, method or reference called otherwise."""
    text = json.dumps(definitions_of(name))
    for start in ("", "#/$defs/"):
        text = text.replace(f'"{start}{old}"', f'"{start}{new}"')
    changed: dict[str, Any] = json.loads(text)
    return changed


def spec_of(folder: Path, definitions: Any, stated: str = "") -> tuple[RevisionSpec, str]:
    """The revision of definitions with a facts file of this text, and the nearest one's name."""
    path, file = save_schema(folder, definitions), folder / "own.toml"
    file.write_text(stated)
    source = schema_sources.of_file(path, file if stated else None)
    loaded = schema_sources.load(source, errata=True)
    fit = schema_facts.facts_for(loaded, source.base, file if stated else None)
    return stages.revision_spec(loaded, fit.facts, docs.load()), source.base


def check_names(folder: Path, definitions: Any, stated: str = "") -> list[str]:
    """Look for core names; gives the notes on members that nothing sets."""
    built, base = spec_of(folder, definitions, stated)
    absent = schema_facts.absent_methods(folder / "own.toml") if stated else ()
    core_check.expect_core(built, base, absent)
    return [core_check.note(each) for each in core_check.unset_members(built, base)]


@pytest.mark.parametrize(
    ("role", "old"),
    [
        ("implementation", "Implementation"),
        ("client_capabilities", "ClientCapabilities"),
        ("server_capabilities", "ServerCapabilities"),
        ("meta", "RequestMetaObject"),
    ],
)
def test_a_renamed_role_is_found_by_its_place(role: str, old: str, tmp_path: Path) -> None:
    built, _ = spec_of(tmp_path, rename_in_schema(STATELESS, old, "Other"))
    assert built.roles[role] == "Other"


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [
        (HANDSHAKE, "tools/call", "CallToolRequest"),
        (STATELESS, "tools/call", "CallToolRequest"),
        (STATELESS, "tools/list", "ListToolsRequest"),
        (HANDSHAKE, "initialize", "InitializeRequest"),
        (STATELESS, "server/discover", "DiscoverRequest"),
    ],
)
def test_a_core_method_is_missed_unless_facts_deny_it(
    name: str, method: str, message: str, tmp_path: Path
) -> None:
    definitions = rename_in_schema(name, method, "other/name")
    with pytest.raises(SchemaError, match=f"{message}: expected {method}") as caught:
        check_names(tmp_path, definitions)
    assert (
        f'[methods] "{method}" = false in --facts, got {message} with the method "other/name"'
        in (str(caught.value))
    )
    check_names(tmp_path, definitions, f'methods."{method}" = false')


@pytest.mark.parametrize(
    ("name", "owner", "member"),
    [
        (HANDSHAKE, "Tool", "inputSchema"),
        (STATELESS, "Tool", "inputSchema"),
        (HANDSHAKE, "Implementation", "version"),
    ],
)
def test_a_renamed_member_is_missed_unless_facts_give_it(
    name: str, owner: str, member: str, tmp_path: Path
) -> None:
    definitions = rename_in_schema(name, member, "otherName")
    with pytest.raises(SchemaError, match=f"/{owner}/required: expected {member}") as caught:
        check_names(tmp_path, definitions)
    fact = f'[defaults.{owner}] "otherName" = ...'
    assert fact in str(caught.value)
    stated = '[defaults."*"]\notherName = "x"'
    assert not [text for text in check_names(tmp_path, definitions, stated) if "otherName:" in text]


NONE = "there is none; a server answers the request by handlers of its user"


@pytest.mark.parametrize(
    ("method", "owner", "member"),
    [
        ("prompts/list", "ListPromptsResult", "prompts"),
        ("prompts/get", "GetPromptResult", "messages"),
        ("resources/list", "ListResourcesResult", "resources"),
        ("resources/read", "ReadResourceResult", "contents"),
    ],
)
def test_a_result_has_the_items_of_a_server_unless_facts_deny_it(
    method: str, owner: str, member: str, tmp_path: Path
) -> None:
    definitions = definitions_of(STATELESS)
    del definitions[owner]["properties"][member]
    definitions[owner]["required"].remove(member)
    with pytest.raises(SchemaError, match=f"expected {member}, which packages read") as caught:
        check_names(tmp_path, definitions)
    assert f'[methods] "{method}" = false there leaves the request to handlers' in str(caught.value)
    notes = check_names(tmp_path, definitions, f'methods."{method}" = false')
    assert notes == [f"{member}: {NONE}"]


@pytest.mark.parametrize(
    ("member", "place", "way"),
    [
        ("clientInfo", "properties/params", "(--parts types needs none)"),
        ("serverInfo", "InitializeResult", '[results.client] "initialize" = [...]'),
    ],
)
def test_a_renamed_member_of_the_handshake_is_refused(
    member: str, place: str, way: str, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match=f"{place}: expected {member}") as caught:
        check_names(tmp_path, rename_in_schema(HANDSHAKE, member, "otherName"))
    assert way in str(caught.value)


def with_methods(name: str, less: int) -> Any:
    """The definitions of a revision with half of its methods or less, without a tool's call."""
    definitions = definitions_of(name)
    messages = {
        each: node["properties"]["method"]["const"]
        for each, node in definitions.items()
        if "const" in node.get("properties", {}).get("method", {})
    }
    methods = sorted({*messages.values()} - {"tools/call"})
    methods.sort(key=lambda method: method not in ("initialize", "server/discover"))
    kept = methods[: len(methods) // 2 + 1 - less]
    dropped = {f"#/$defs/{each}" for each, method in messages.items() if method not in kept}
    for node in definitions.values():
        if "anyOf" in node:
            node["anyOf"] = [each for each in node["anyOf"] if each.get("$ref") not in dropped]
    return {
        each: node
        for each, node in definitions.items()
        if f"#/$defs/{each}" not in dropped and node.get("anyOf", True)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_with_most_of_the_methods_needs_the_core(name: str, tmp_path: Path) -> None:
    built, _ = spec_of(tmp_path, with_methods(name, 0))
    with pytest.raises(SchemaError, match=r"expected tools/(call|list), by which packages know"):
        core_check.expect_core(built, name, ())
    few, _ = spec_of(tmp_path, with_methods(name, 1))
    core_check.expect_core(few, name, ())


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("content", [None, TEXT], ids=["none", "no array"])
def test_a_tool_result_has_a_place_for_its_value(name: str, content: Any, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    result = definitions["CallToolResult"]
    del result["properties"]["content"]
    result["required"].remove("content")
    if content is not None:
        result["properties"]["content"] = content
    with pytest.raises(SchemaError, match=r"/CallToolResult: expected content, an array") as caught:
        check_names(tmp_path, definitions)
    assert '[methods."tools/call"] runs_tool = false in --facts' in str(caught.value)
    notes = check_names(tmp_path, definitions, 'methods."tools/call".runs_tool = false')
    assert notes == [f"content: {NONE}"]
    result["properties"]["toolResult"] = result["properties"].pop("content", {})
    result["required"].append("toolResult")
    assert check_names(tmp_path, definitions) == []


@pytest.mark.parametrize(
    ("parts", "old"),
    [("types", "inputSchema"), ("types", "initialize"), ("protocol", "tools/call"), ("server", "")],
)
def test_only_parts_that_need_a_name_are_refused_without(
    parts: str, old: str, tmp_path: Path
) -> None:
    definitions = rename_in_schema(HANDSHAKE, old or "tools/call", "other")
    source = schema_sources.of_file(save_schema(tmp_path, definitions))
    request = BuildRequest("pkg", (source,), selection=Selection((parts,)))
    if old:
        assert "rdraft/models.py" in pipeline.build(request, form=dict)
    else:
        with pytest.raises(SchemaError, match="expected tools/call"):
            pipeline.build(request, form=dict)


@pytest.mark.parametrize("name", NAMES)
def test_members_that_a_package_does_not_set_are_noted(name: str, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    definitions["Tool"]["properties"]["owner"] = TEXT
    definitions["Prompt"]["properties"]["description"] = COUNT
    for owner, wire in (("Tool", "owner"), ("Tool", "description"), ("Implementation", "seal")):
        definitions[owner]["required"].append(wire)
    not_set = "{}: a client or server of the package does not set it; [defaults.{}] {} = ... in"
    start = [
        not_set.format("seal", "Implementation", '"seal"'),
        "description: a server sets it only where it is given",
        "owner: a server of the package does not set it; [defaults.Tool]",
        "description: has another type; a server sets what fits in the known revisions",
    ]
    notes = check_names(tmp_path, definitions)
    assert [note[: len(text)] for note, text in zip(notes, start, strict=True)] == start
