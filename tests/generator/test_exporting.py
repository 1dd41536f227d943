"""`mcpgen export`: revisions, schema files and packages as JSON Schema 2020-12 and as OpenRPC."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from generator.accounting import Walk, atoms
from generator.command_line import run
from mcpgen import names, schema
from mcpgen.schema.structure import resolve, structure

REVISIONS = [row.name for row in schema.revisions()]
each_revision = pytest.mark.parametrize("revision", REVISIONS)
GOLDEN = Path(__file__).parents[2] / "generated" / "mcp_protocol"
PAINT = Path(__file__).parent / "extensions" / "paint.json"
TINY = Path(__file__).parent / "tiny" / "schema.json"


def export_document(*words: str) -> dict[str, Any]:
    """The document that the command prints."""
    done = run("export", *words)
    assert done.code == 0, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def references(node: Any) -> Iterator[str]:
    """All references in a document."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list):
        for part in node:
            yield from references(part)


def without_comments(definitions: dict[str, Any]) -> dict[str, Any]:
    """Definitions without what says how a package reads them."""
    return {
        name: {key: part for key, part in node.items() if key != "$comment"}
        for name, node in definitions.items()
    }


@each_revision
def test_a_revision_is_exported_with_its_errata_corrected(revision: str) -> None:
    document = export_document(revision)
    jsonschema.Draft202012Validator.check_schema(document)
    loaded = schema.load(revision)
    assert without_comments(document["$defs"]) == loaded.definitions
    assert all(erratum.pointer in document["$comment"] for erratum in loaded.errata)
    published = export_document(revision, "--no-errata")
    assert (published["$defs"] == document["$defs"]) is not bool(loaded.errata)


@each_revision
def test_openrpc_has_each_method_once_and_leads_nowhere_else(revision: str) -> None:
    document = export_document(revision, "--openrpc")
    assert document["openrpc"] == "1.3.2"
    names = [method["name"] for method in document["methods"]]
    assert sorted({*names}) == sorted(names)
    messages = (node.get("properties", {}) for node in schema.load(revision).definitions.values())
    constants = {node["method"]["const"] for node in messages if "const" in node.get("method", {})}
    assert {*names} <= constants
    assert {"tools/call", "notifications/cancelled"} <= {*names}
    for reference in references(document):
        assert resolve(document, reference.removeprefix("#")), reference


def test_a_method_has_its_params_its_result_and_its_senders() -> None:
    methods = {each["name"]: each for each in export_document("2025-06-18", "--openrpc")["methods"]}
    called = methods["tools/call"]
    assert {each["name"]: each["required"] for each in called["params"]} == {
        "arguments": False,
        "name": True,
    }
    assert called["result"]["schema"] == {"$ref": "#/components/schemas/CallToolResult"}
    assert called["x-mcp-senders"] == ["client"]
    assert called["x-mcp-capability"] == ["tools"]
    assert methods["ping"]["x-mcp-senders"] == ["client", "server"]
    assert "result" not in methods["notifications/progress"]


def test_a_package_is_exported_by_its_own_schemas(tmp_path: Path) -> None:
    assert export_document(str(GOLDEN), "-r", "2025-03-26") == export_document("2025-03-26")
    several = run("export", str(GOLDEN))
    assert several.code == 2
    assert "expected --revision with one of 2024-11-05" in several.err
    other = run("export", str(tmp_path))
    assert other.code == 2
    assert "the folder of a package" in other.err


@each_revision
def test_types_of_a_package_are_its_export_but_for_comments(revision: str) -> None:
    document = export_document(str(GOLDEN), "-r", revision)
    models: Any = importlib.import_module(f"mcp_protocol.{names.folder(revision)}.models")
    models.DOCUMENT = {f"#/$defs/{name}": node for name, node in document["$defs"].items()}
    commented = {
        f"/$defs/{name}{text.partition(':')[0]}"
        for name, node in document["$defs"].items()
        for text in node.pop("$comment", "").split("; ")
    }
    references = {f"#/$defs/{name}": name for name in document["$defs"]}
    walk = Walk(models, references, frozenset(commented))
    for name, node in document["$defs"].items():
        walk.walk(node, f"/$defs/{name}", [*atoms(getattr(models, name))])
    assert not walk.lost, walk.lost
    assert walk.count > 600


@each_revision
def test_a_package_with_extensions_is_exported_with_them(revision: str, tmp_path: Path) -> None:
    words = ("-q", "-r", revision, "--parts", "types", "--extension", f"{PAINT}")
    package = tmp_path / "painting"
    assert run(*words, "-o", f"{package}").code == 0
    definitions = export_document(f"{package}")["$defs"]
    core, own = export_document(revision)["$defs"], json.loads(PAINT.read_text())["$defs"]
    assert (
        without_comments(definitions) == without_comments(core) | structure({"$defs": own})["$defs"]
    )
    methods = {each["name"] for each in export_document(f"{package}", "--openrpc")["methods"]}
    assert {"com.example/draw", "com.example/clear", "tools/call"} <= methods


def test_keywords_that_are_not_checked_are_named_in_a_comment(tmp_path: Path) -> None:
    document = json.loads(json.dumps(export_document("2025-06-18")))
    document["$defs"]["Cursor"] = {"type": "string", "not": {"const": "a"}}
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert export_document(str(path))["$defs"]["Cursor"] == {
        "type": "string",
        "not": {"const": "a"},
        "$comment": "/not: not checked",
    }
