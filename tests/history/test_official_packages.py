"""Official packages of npm: MCP Apps generates, exports are valid OpenRPC, reports SARIF."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from conventions.sources import ROOT
from generator.command_line import run
from generator.schemas import fields_of
from generator.test_findings import REPORT
from mcpgen import schema
from mcpgen.findings import Report, sarif
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline
from mcpgen.schema import shipped_extensions
from mcpgen.schema.structure import structure

pytestmark = [pytest.mark.history, pytest.mark.timeout(600)]

APPS = "@modelcontextprotocol/ext-apps/dist/src"
JSON_SCHEMA_OF_OPENRPC = "https://meta.json-schema.tools"


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of the packages; the test is skipped where there is none."""
    folder = os.environ.get("MCP_NPM_SCHEMAS")
    if folder is None:
        pytest.skip("MCP_NPM_SCHEMAS names no folder with packages of npm")
    return Path(folder, "node_modules")


@pytest.mark.parametrize("file", ["generated/schema.json", "spec.types.d.ts"])
def test_the_schema_of_apps_becomes_typed_messages(packages: Path, file: str) -> None:
    files = package_with(f"io.modelcontextprotocol/ui={packages / APPS / file}")
    models = files["r2026_07_28/ui/models.py"]
    for name in ("McpUiInitializeRequest", "McpUiToolInputNotification", "McpUiHostContext"):
        assert f"class {name}(" in models
    assert '"ui/open-link"' in files["r2026_07_28/ui/methods.py"]


def test_the_shipped_ui_has_the_official_types_of_its_metadata(packages: Path) -> None:
    official = packages / APPS / "spec.types.d.ts"
    [row] = [row for row in shipped_extensions.entries() if row.name == "ui"]
    assert hashlib.sha256(official.read_bytes()).hexdigest() == row.official
    ours, theirs = (
        fields_of(package_with(word, form=dict)["r2026_07_28/ui/models.py"])
        for word in ("ui", f"io.modelcontextprotocol/ui={official}")
    )
    assert ours.keys() >= {"McpUiToolMeta", "McpUiResourceMeta", "McpUiClientCapabilities"}
    assert {name: theirs.get(name) for name in ours} == ours


def package_with(word: str, **how: Any) -> Mapping[str, str]:
    """The files of a package of the newest revision with an extension."""
    request = build_request.BuildRequest(
        "pkg",
        schema_sources.by_name(("2026-07-28",)),
        extensions=build_request.named_extensions([word]),
    )
    return pipeline.build(request, **how)


def test_the_schema_of_bundles_is_the_official_one_without_prose(packages: Path) -> None:
    official = packages / "@anthropic-ai/mcpb/dist/mcpb-manifest-v0.4.schema.json"
    ours = ROOT / "schema/publishing/bundle.json"
    assert json.loads(ours.read_text("utf-8")) == structure(json.loads(official.read_text("utf-8")))


@pytest.mark.parametrize("revision", [row.name for row in schema.revisions()])
def test_an_exported_revision_is_valid_by_the_schema_of_openrpc(
    packages: Path, revision: str
) -> None:
    text = (packages / "@open-rpc/meta-schema/index.js").read_text("utf-8")
    begin = text.index("{", text.index("exports.openrpcDocument = {"))
    whole, _ = json.JSONDecoder().raw_decode(text, begin)
    rules = {key: part for key, part in whole.items() if key not in ("$schema", "$id")}
    of_references = {"JSONSchemaObject": {"properties": {"$ref": {"type": "string"}}}}
    json_schemas: dict[str, Any] = {
        "$id": JSON_SCHEMA_OF_OPENRPC,
        "$ref": "http://json-schema.org/draft-07/schema",
    }
    registry: Any = Registry().with_resources(
        [
            (
                JSON_SCHEMA_OF_OPENRPC,
                Resource.from_contents(
                    {**json_schemas, "definitions": of_references}, default_specification=DRAFT7
                ),
            ),
            (
                f"{JSON_SCHEMA_OF_OPENRPC}/",
                Resource.from_contents(
                    {"definitions": of_references}, default_specification=DRAFT7
                ),
            ),
            (
                "http://json-schema.org/draft-07/schema",
                Resource.from_contents(jsonschema.Draft7Validator.META_SCHEMA),
            ),
        ]
    )
    done = run("export", revision, "--openrpc")
    errors = jsonschema.Draft7Validator(rules, registry=registry).iter_errors(json.loads(done.out))
    assert [error.message for error in errors] == []


def test_reports_in_sarif_are_valid_by_its_schema(packages: Path) -> None:
    place = packages / "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
    check = jsonschema.Draft4Validator(json.loads(place.read_text("utf-8")))
    reports = (
        run("diff", "2024-11-05", "latest", "--format", "sarif").out,
        sarif(REPORT),
        sarif(Report("nothing")),
    )
    for text in reports:
        assert [*check.iter_errors(json.loads(text))] == []
