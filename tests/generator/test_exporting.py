"""`mcpgen export`: revisions, schema files and packages as JSON Schema 2020-12 and as OpenRPC."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from generator.command_line import run
from mcpgen import schema
from mcpgen.package import manifest
from mcpgen.schema.structure import resolve, structure

pytestmark = pytest.mark.lengthy

REVISIONS = [row.name for row in schema.revisions()]
each_revision = pytest.mark.parametrize("revision", REVISIONS)
GOLDEN = Path(__file__).parents[2] / "generated" / "mcpgen_runtime"
PAINT = Path(__file__).parent / "extensions" / "paint.json"


def export_document(*words: str) -> dict[str, Any]:
    """The document that the command prints."""
    done = run("export", *words)
    assert done.code == 0, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def without_comments(definitions: dict[str, Any]) -> dict[str, Any]:
    """Definitions without what says how a package reads them."""
    own = {"$comment"}
    return {n: {key: node[key] for key in node.keys() - own} for n, node in definitions.items()}


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
    references = {*re.findall(r'"\$ref": "#([^"]+)"', json.dumps(document))}
    assert references
    for reference in references:
        assert resolve(document, reference), reference


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
    assert export_document(str(GOLDEN), "-r", REVISIONS[1]) == export_document(REVISIONS[1])
    refused = f"{GOLDEN}: expected --revision with one of {', '.join(REVISIONS)}\n"
    assert run("export", GOLDEN).err.endswith(refused)
    assert run("export", GOLDEN, "--revision", "2001-01-01").code == 2
    origins = {REVISIONS[1]: manifest.Origin("mcpgen", "", "")}
    record = manifest.Manifest("1.0", "", "pkg", manifest.Options(errata=True), origins, {}, {})
    expected = "expected a revision, a schema file or the folder of a package\n"
    assert run("export", tmp_path).err.endswith(expected)
    (tmp_path / manifest.NAME).write_text(record.text())
    assert export_document(str(tmp_path)) == export_document(REVISIONS[1])
    assert run("export", tmp_path, "--revision", REVISIONS[0]).code == 2
    assert run("export", "2001-01-01").code == 2


@each_revision
def test_a_package_with_extensions_is_exported_with_them(revision: str, tmp_path: Path) -> None:
    file = tmp_path / PAINT.name  # beside the package, as a file of its project
    file.write_bytes(PAINT.read_bytes())
    words = ("-q", "-r", revision, "--parts", "types", "--extension", f"{file}")
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
    document["$defs"]["Cursor"] = {"type": "string", "not": {"const": "\u00e9"}}
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    text = run("export", path).out
    assert json.loads(text)["$defs"]["Cursor"] == {
        "type": "string",
        "not": {"const": "\u00e9"},
        "$comment": "/not: not checked",
    }
    assert text.startswith('{\n  "$schema"')
    assert '"\u00e9"' in text
