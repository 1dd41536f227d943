"""`mcpgen.spec`: the public values, their JSON form, and what must not change by itself."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

import documents
import mcpgen.spec
from documents import ROOT
from generator.command_line import run
from generator.schemas import REVISION, schema_of
from generator.tables import table
from generator.tiny_package import TINY, tiny_spec
from mcpgen import schema
from mcpgen.errors import InputError, SchemaError, UsageError
from mcpgen.package import manifest
from mcpgen.schema import docs, facts
from mcpgen.schema.structure import resolve, structure
from mcpgen.spec import SPEC_VERSION, Specification, loading, stages

pytestmark = pytest.mark.lengthy

REVISIONS = [row.name for row in schema.revisions()]
CLASSES = [each for each in map(vars(mcpgen.spec).get, mcpgen.spec.__all__) if is_dataclass(each)]
PAINT = Path(__file__).parent / "extensions" / "paint.json"
GOLDEN = Path(__file__).parents[2] / "generated" / "mcpgen_runtime"


@pytest.fixture(scope="module")
def whole() -> Specification:
    """Every revision that mcpgen has."""
    return mcpgen.spec.load("all")


def expected(name: str, actual: Any) -> Any:
    """The golden of a name and version; written if it is not there."""
    path = TINY / "spec" / SPEC_VERSION / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(actual, indent=2) + "\n", encoding="utf-8")
        pytest.fail(f"{path} was not there; it is written")
    return json.loads(path.read_text(encoding="utf-8"))


def test_values_of_the_tiny_schema_mean_what_they_meant() -> None:
    actual = mcpgen.spec.as_json(loading.specification([tiny_spec()]))
    assert actual == expected("values.json", actual), "raise SPEC_VERSION, unless this is a fix"


def test_the_classes_are_those_of_their_version() -> None:
    actual = mcpgen.spec.json_schema()
    assert actual == expected("schema.json", actual), "raise SPEC_VERSION"


def test_every_revision_has_the_published_form(whole: Specification) -> None:
    document = json.loads(json.dumps(mcpgen.spec.as_json(whole)))
    form = mcpgen.spec.json_schema()
    jsonschema.Draft202012Validator.check_schema(form)
    jsonschema.validate(document, form)
    assert mcpgen.spec.from_json(document) == whole


def test_every_definition_of_a_schema_is_a_type(whole: Specification) -> None:
    for revision in whole.revisions:
        assert whole.revision(revision.name) is revision
        kinds = {"object": revision.objects, "union": revision.unions, "alias": revision.aliases}
        for kind, each_of in kinds.items():
            assert [*each_of] == [each for each in revision.types if each.kind == kind]
        definitions = schema.load(revision.name).definitions
        own = [each.name for each in revision.types if not each.is_inline]
        assert {*definitions} <= {*own}
        for name, node in definitions.items():
            each = revision.types_by_name[name]
            if each.type is not None and each.type.name is not None:
                each = revision.types_by_name[each.type.name]  # it is equal to another one
            if "properties" in node:
                assert each.kind == "object"
                assert {*node["properties"]} == {member.name for member in each.members}
                required = {member.name for member in each.required}
                assert {*node.get("required", ())} == required, f"{revision.name} {name}"
                optional = {member.name for member in each.optional}
                assert optional == {*node["properties"]} - required
    with pytest.raises(LookupError, match=r"2024-11-05, .*: 2001-01-01"):
        whole.revision("2001-01-01")


TYPES: dict[str, Any] = table("types")


def test_types_have_these_values(snapshot: SnapshotAssertion) -> None:
    document = json.loads((TINY / "schema.json").read_text("utf-8"))["$defs"]
    loaded = schema_of(**document, **TYPES)
    built = stages.revision_spec(
        loaded, facts.load_file(TINY / "facts.toml", REVISION), docs.Docs()
    )
    [revision] = loading.specification([built]).revisions
    types = [each for each in revision.types if each.name not in document]
    assert mcpgen.spec.as_json(types) == snapshot


def test_a_change_names_the_attribute_that_differs(whole: Specification) -> None:
    changes = {(each.kind, each.of, each.name): each for each in whole.differences[-1].changes}
    assert ("removed", "method", "client initialize") in changes
    assert ("added", "method", "client server/discover") in changes
    sse = changes["changed", "fact", "transports.streamable_http"]
    assert (sse.attribute, sse.before, sse.after) == ("value", "session", "stateless")
    pairs = [(each.older, each.newer) for each in whole.differences]
    assert pairs == [*pairwise(REVISIONS)]


def test_differences_read_as_expected(whole: Specification, snapshot: SnapshotAssertion) -> None:
    assert [[*vars(each).values()] for each in whole.differences[1].changes] == snapshot


def test_an_extension_has_types_and_methods_of_its_own() -> None:
    (revision,) = mcpgen.spec.load("2025-11-25", extensions=[PAINT]).revisions
    (extension,) = revision.extensions
    assert extension.identifier == "com.example/paint"
    draw = extension.methods.client_requests[0]
    assert draw.params in {each.name for each in extension.types}
    assert draw.params in revision.types_by_name


def test_an_extension_has_to_fit_one_revision() -> None:
    rounds = PAINT.with_name("rounds.json")
    with pytest.raises(SchemaError, match="InputRequiredResult"):
        mcpgen.spec.load("2025-11-25", extensions=[rounds])
    old, new = mcpgen.spec.load("2025-11-25", "2026-07-28", extensions=[rounds]).revisions
    assert (len(old.extensions), len(new.extensions)) == (0, 1)


def test_sorted_types_come_after_those_that_they_name(whole: Specification) -> None:
    for revision in whole.revisions:
        seen: set[str] = set()
        names = [each.name for each in revision.sorted_types]
        assert sorted(names) == sorted(each.name for each in revision.types)
        for each in revision.sorted_types:
            assert each.name in each.references or seen >= {*each.references}, each.name
            seen.add(each.name)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_attribute_has_a_meaning_in_the_reference(kind: type[Any]) -> None:
    page = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    section = page.partition(f"### {kind.__name__}\n")[2].partition("\n### ")[0]
    assert (inspect.getdoc(kind) or "").partition("\n")[0] in section
    for item in fields(kind):
        assert f"| `{item.name}` |" in section, item.name


def test_a_document_of_another_version_is_refused() -> None:
    with pytest.raises(InputError, match=r"spec_version: expected version 1\.x, got \"2\.0\""):
        mcpgen.spec.from_json({"spec_version": "2.0", "revisions": []}, "a.json")
    with pytest.raises(InputError, match=r"a\.json#: expected the JSON form of mcpgen\.spec, got"):
        mcpgen.spec.from_json({"spec_version": "1.0"}, "a.json")


def test_no_revision_is_an_error() -> None:
    with pytest.raises(UsageError, match="expected a revision"):
        mcpgen.spec.load()


def test_the_program_of_the_page_prints_what_it_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exec(documents.examples()["list_methods.py"], {})
    assert capsys.readouterr().out == documents.outputs()["list_methods.py"]


def export(*words: str) -> Any:
    """The document that the command prints."""
    done = run("export", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_export_prints_the_values_of_what_it_is_given(whole: Specification) -> None:
    assert export("--spec", "all") == mcpgen.spec.as_json(whole)
    assert run("export", "--spec", "all").out.startswith('{\n  "spec_version"')
    one = export("--spec", REVISIONS[1])
    assert one["revisions"] == [mcpgen.spec.as_json(whole.revisions[1])]
    assert "differences" not in one
    assert (
        run("export", "--spec-schema").out == f"{json.dumps(mcpgen.spec.json_schema(), indent=2)}\n"
    )
    names = [each["name"] for each in export("--spec", str(GOLDEN))["revisions"]]
    assert names == REVISIONS
    names = [each["name"] for each in export("--spec", str(GOLDEN), "-r", names[0])["revisions"]]
    assert names == REVISIONS[:1]
    assert export("--spec", str(TINY / "schema.json"))["revisions"][0]["types"]


def test_export_names_what_is_missing_or_too_much() -> None:
    assert run("export").err.endswith(
        "expected SOURCE: a revision, a schema file or the folder of a package\n"
    )
    assert "got several" in run("export", "--spec", "--openrpc", "latest").err


def without_comments(definitions: dict[str, Any]) -> dict[str, Any]:
    """Definitions without what says how a package reads them."""
    own = {"$comment"}
    return {n: {key: node[key] for key in node.keys() - own} for n, node in definitions.items()}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_is_exported_with_its_errata_corrected(revision: str) -> None:
    document = export(revision)
    jsonschema.Draft202012Validator.check_schema(document)
    loaded = schema.load(revision)
    assert without_comments(document["$defs"]) == loaded.definitions
    assert all(erratum.pointer in document["$comment"] for erratum in loaded.errata)
    published = export(revision, "--no-errata")
    assert (published["$defs"] == document["$defs"]) is not bool(loaded.errata)


@pytest.mark.parametrize("revision", REVISIONS)
def test_openrpc_has_each_method_once_and_leads_nowhere_else(revision: str) -> None:
    document = export(revision, "--openrpc")
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
    methods = {each["name"]: each for each in export("2025-06-18", "--openrpc")["methods"]}
    called = methods["tools/call"]
    assert {each["name"]: each["required"] for each in called["params"]} == {
        "arguments": False,
        "name": True,
    }
    name = "CallToolResult"
    assert called["result"] == {"name": name, "schema": {"$ref": f"#/components/schemas/{name}"}}
    assert called["x-mcp-senders"] == ["client"]
    assert called["x-mcp-capability"] == ["tools"]
    assert methods["ping"]["x-mcp-senders"] == ["client", "server"]
    assert "result" not in methods["notifications/progress"]
    methods = {each["name"]: each for each in export("2025-11-25", "--openrpc")["methods"]}
    references = [each["$ref"] for each in methods["tools/call"]["result"]["schema"]["anyOf"]]
    assert [each.rpartition("/")[2] for each in references] == [
        "CallToolResult",
        "CreateTaskResult",
    ]


def test_a_package_is_exported_by_its_own_schemas(tmp_path: Path) -> None:
    assert export(str(GOLDEN), "-r", REVISIONS[1]) == export(REVISIONS[1])
    refused = f"{GOLDEN}: expected --revision with one of {', '.join(REVISIONS)}\n"
    assert run("export", GOLDEN).err.endswith(refused)
    assert run("export", GOLDEN, "--revision", "2001-01-01").code == 2
    origins = dict.fromkeys(REVISIONS[:2], manifest.Origin("mcpgen", "", ""))
    record = manifest.Manifest("1.0", "", "pkg", manifest.Options(errata=True), origins, {}, {})
    expected = "expected a revision, a schema file or the folder of a package\n"
    assert run("export", tmp_path).err.endswith(expected)
    (tmp_path / manifest.NAME).write_text(record.text())
    assert "expected --revision with one of" in run("export", tmp_path).err
    assert run("export", tmp_path, "--revision", REVISIONS[2]).code == 2
    assert run("export", "2001-01-01").code == 2


@pytest.mark.parametrize("revision", REVISIONS[::2])
def test_a_package_with_extensions_is_exported_with_them(revision: str, tmp_path: Path) -> None:
    file = tmp_path / PAINT.name  # beside the package, as a file of its project
    file.write_bytes(PAINT.read_bytes())
    words = ("-q", "-r", revision, "--parts", "types", "--extension", f"{file}")
    package = tmp_path / "painting"
    assert run(*words, "-o", f"{package}").code == 0
    definitions = export(f"{package}")["$defs"]
    core, own = export(revision)["$defs"], json.loads(PAINT.read_text())["$defs"]
    assert (
        without_comments(definitions) == without_comments(core) | structure({"$defs": own})["$defs"]
    )
    methods = {each["name"] for each in export(f"{package}", "--openrpc")["methods"]}
    assert {"com.example/draw", "com.example/clear", "tools/call"} <= methods


def test_keywords_that_are_not_checked_are_named_in_a_comment(tmp_path: Path) -> None:
    document = json.loads(json.dumps(export("2025-06-18")))
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
