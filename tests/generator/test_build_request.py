"""Requests for a package, what a manifest on disk gives to an update, and what is built."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mcpgen.spec
from generator.draft_packages import definitions_of, save_schema
from generator.schemas import TEXT
from mcpgen import paths, schema
from mcpgen.errors import UsageError
from mcpgen.model import schema_sources
from mcpgen.names import Mutability
from mcpgen.package import build_request, commands, manifest, pipeline

pytestmark = pytest.mark.lengthy

NAMES = [row.name for row in schema.revisions()]
PAINT = Path(__file__).parent / "extensions" / "paint.json"
RECORD = manifest.Manifest("1.0", "", "pkg", manifest.Options(errata=True), {}, {}, {})
OF_MCPGEN = manifest.Origin("mcpgen", "", "")


def of_file(schema_path: str, facts_path: str = "") -> manifest.Origin:
    return manifest.Origin("file", "", "", schema_path, facts_path)


@pytest.mark.parametrize(
    ("before", "now", "gone"),
    [
        ("b d", "b d", {}),
        ("b d", "d", {"b": "d"}),
        ("b d", "b", {"d": "b"}),
        ("a b d", "c e", {"a": "c", "b": "c", "d": "e"}),
        ("e", "a c", {"e": "c"}),
    ],
)
def test_a_removed_revision_leads_to_the_next_or_the_newest(
    before: str, now: str, gone: dict[str, str]
) -> None:
    record = replace(RECORD, revisions=dict.fromkeys(before.split(), OF_MCPGEN))
    any_one = schema_sources.of_folder(NAMES[0])
    sources = tuple(replace(any_one, revision=name) for name in now.split())
    assert build_request.gone_revisions(record, sources) == gone


def test_a_schema_file_is_read_where_the_manifest_says(tmp_path: Path) -> None:
    definitions = definitions_of(NAMES[-1])
    definitions["Tool"]["properties"]["colour"] = TEXT
    (tmp_path / "pkg").mkdir()
    save_schema(tmp_path, definitions)
    directory = tmp_path / "pkg"
    record = replace(RECORD, revisions={"b": of_file("../schema.json")})
    [source] = build_request.recorded_sources(directory, record)
    assert (source.revision, source.schema_path, source.facts_path) == ("b", "../schema.json", "")
    for origin, shown in (
        (of_file("../gone.json"), f"{directory}/../gone.json"),
        (of_file("../schema.json", "../gone.toml"), f"{directory}/../gone.toml"),
        (of_file(""), "a schema file"),
    ):
        gone = replace(RECORD, revisions={"b": origin})
        with pytest.raises(UsageError) as caught:
            build_request.recorded_sources(directory, gone)
        text = f"b was made from {shown}, which is not there: name it with --schema FILE"
        assert str(caught.value) == f"revision {text}"
    far = replace(RECORD, revisions={"b": of_file("../../far.json")})
    with pytest.raises(UsageError, match=r"far\.json, which only its mcpgen\.json names"):
        build_request.recorded_sources(directory, far)
    extension = manifest.ExtensionOrigin("../../far.json", "")
    with pytest.raises(UsageError, match=r"far\.json, which only its mcpgen\.json names"):
        build_request.recorded_extension(directory, "com.example/x", extension)
    missing = replace(RECORD, revisions={"2001-01-01": OF_MCPGEN})
    with pytest.raises(UsageError, match="revision 2001-01-01 is not one that mcpgen has;"):
        build_request.recorded_sources(directory, missing)
    (tmp_path / "schema.json").rename(tmp_path / "2030-01-01.json")
    other = replace(RECORD, revisions={NAMES[0]: of_file("../2030-01-01.json")})
    with pytest.raises(UsageError, match=f"of revision {NAMES[0]}, got 2030-01-01; generate"):
        build_request.recorded_sources(directory, other)


@pytest.mark.parametrize(
    ("files", "named", "result"),
    [
        ("b", "draft", "b"),
        ("b", "b", "b"),
        ("b c", "draft b", "c b"),
        ("b", "x", f"expected a schema file of {NAMES[0]}, b, got one of x"),
        ("b c", "draft", f"expected a schema file of {NAMES[0]}, b, c, got one of draft"),
    ],
)
def test_a_named_file_takes_the_place_of_a_recorded_one(
    files: str, named: str, result: str
) -> None:
    revisions = {NAMES[0]: OF_MCPGEN} | dict.fromkeys(files.split(), of_file("../gone.json"))
    record = replace(RECORD, revisions=revisions)
    one = schema_sources.of_folder(NAMES[0])
    sources = [replace(one, revision=name, base=name) for name in named.split()]
    if result.startswith("expected"):
        with pytest.raises(UsageError, match=result):
            build_request.recorded_sources(Path("pkg"), record, sources)
        return
    read = build_request.recorded_sources(Path("pkg"), record, sources)
    places = {NAMES[0]: NAMES[0]} | dict(zip(named.split(), result.split(), strict=True))
    assert {each.base: each.revision for each in read} == places


STRICT = manifest.Options(
    errata=True, parts=("types",), models="pydantic", decoding="strict", extra=("forbid",)
)


@pytest.mark.parametrize(
    ("mutability", "named", "expected"),
    [
        ("mutable", {}, ("pydantic", "strict", ("forbid",), "mutable")),
        ("frozen", {"mutability": "mutable"}, ("pydantic", "strict", ("forbid",), "mutable")),
        ("frozen", {"models": "msgspec"}, ("msgspec", "strict", ("forbid",), "frozen")),
        ("frozen", {"decoding": "lenient"}, ("pydantic", "lenient", ("forbid",), "frozen")),
        ("frozen", {"extra": ("keep",)}, ("pydantic", "strict", ("keep",), "frozen")),
    ],
)
def test_an_update_has_the_recorded_choices_unless_others_are_named(
    tmp_path: Path, mutability: Mutability, named: dict[str, Any], expected: tuple[object, ...]
) -> None:
    options = replace(STRICT, mutability=mutability)
    record = replace(RECORD, options=options, revisions={NAMES[0]: OF_MCPGEN})
    (tmp_path / manifest.NAME).write_text(record.text())
    chosen = commands.update_request(commands.PackageOptions(**named), tmp_path).selection
    assert (chosen.models, chosen.decoding, chosen.extra, chosen.mutability) == expected


def test_each_file_of_a_revision_changes_its_fingerprint(tmp_path: Path) -> None:
    own, mine = tmp_path / "2030-01-01", tmp_path / "mine.toml"
    own.mkdir()
    for path in (mine, *(own / name for name in ("schema.json", "facts.toml", "errata.toml"))):
        path.touch()
    with paths.own_schemas(tmp_path):
        known = schema_sources.of_folder(own.name)
        named = replace(known, origin="file", facts=mine, facts_of=None)
        rows = ((known, True), (known, False), (named, True))
        prints = [build_request.inputs(*row) for row in rows]
        for path, changed in (
            (own / "schema.json", [True, True, True]),
            (own / "facts.toml", [True, True, True]),
            (own / "errata.toml", [True, False, True]),
            (tmp_path / "docs.toml", [True, True, False]),
            (mine, [False, False, True]),
        ):
            path.write_text("changed")
            before, prints = prints, [build_request.inputs(*row) for row in rows]
            assert [one != other for one, other in zip(before, prints, strict=True)] == changed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("oauth-client-credentials",), "has no schema: write --features auth"),
        (("io.modelcontextprotocol/enterprise-managed-authorization",), "write --features auth"),
        (("com.example/none",), "expected the file of an extension, or one of "),
        (("com.example/none=none.json",), "got com.example/none=none.json"),
        ((str(PAINT), str(PAINT)), "com.example/paint"),
    ],
)
def test_a_word_that_names_no_extension_is_refused(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        build_request.named_extensions(words)
    assert text in str(caught.value)


def test_extensions_are_found_by_name_by_path_and_by_identifier(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "x=paint.json").write_bytes(PAINT.read_bytes())
    words = ("tasks", f"com.example/drawn={PAINT}", "x=paint.json")
    extensions = build_request.named_extensions(words, tmp_path)
    identifiers = ["io.modelcontextprotocol/tasks", "com.example/drawn", "com.example/paint"]
    assert [each.identifier for each in extensions] == identifiers
    origins = build_request.extension_origins(extensions, tmp_path / "pkg")
    assert [origins[name].schema for name in identifiers[::2]] == ["", "../x=paint.json"]
    record = replace(RECORD, extensions={name: origins[name] for name in identifiers[::2]})
    read = build_request.recorded_extensions(tmp_path / "pkg", record)
    assert [each.identifier for each in read] == identifiers[::2]
    twice = dict.fromkeys(("com.example/paint", "org.example/paint"), origins[identifiers[2]])
    with pytest.raises(UsageError, match="expected a name of its own for each extension"):
        build_request.recorded_extensions(tmp_path / "pkg", replace(RECORD, extensions=twice))
    (tmp_path / "x=paint.json").unlink()
    with pytest.raises(UsageError, match="is not there: name it with --extension FILE"):
        build_request.recorded_extensions(tmp_path / "pkg", record)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["latest"], [NAMES[-1]]),
        (["all"], NAMES),
        ([NAMES[2], NAMES[0]], [NAMES[0], NAMES[2]]),
        ([NAMES[0], "all", "latest", NAMES[0]], NAMES),
    ],
)
def test_revisions_are_chosen_by_name_once_and_in_order(
    words: list[str], chosen: list[str]
) -> None:
    assert [source.revision for source in schema_sources.by_name(tuple(words))] == chosen
    with pytest.raises(UsageError, match="unknown revision"):
        schema_sources.by_name((*words, "2025"))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        *((name, name) for name in ("my_protocol", "_x")),
        ("src/acme/protocol", "acme.protocol"),
        ("app/acme/json", "acme.json"),
        ("app/acme/inner/mcp", "acme.inner.mcp"),
        ("src/no-name/protocol", "protocol"),
        ("other/mine", "mine"),
    ],
)
def test_the_import_name_begins_with_the_packages_around_it(
    tmp_path: Path, place: str, name: str
) -> None:
    for folder in ("app/acme", "app/acme/inner"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
    assert build_request.package_name(tmp_path / place) == name


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        *(("my-pkg", "my_pkg"), ("class", "class_"), ("3d", "mcp_3d"), ("a.b c", "a_b_c")),
        *((name, f"{name}_protocol") for name in ("json", *sorted(build_request.RUNTIME))),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_with_another(name: str, proposal: str) -> None:
    kind = "no other module has" if proposal == f"{name}_protocol" else "Python can import"
    with pytest.raises(UsageError, match=f"that {kind}, got '{name}'; try -o out/{proposal}$"):
        build_request.package_name(Path("out") / name)


def test_a_package_is_python_with_a_manifest_of_every_file(
    built_package: Mapping[str, str],
) -> None:
    record = json.loads(built_package[manifest.NAME])
    assert record["files"].keys() == built_package.keys() - {manifest.NAME}
    assert record["revisions"][NAMES[0]]["structure"] == schema.entry(NAMES[0]).digest
    for path, text in built_package.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    request = build_request.BuildRequest("pkg", schema_sources.by_name((NAMES[0],)))
    assert pipeline.build(request) == built_package


@pytest.mark.parametrize("name", NAMES)
def test_every_member_has_a_docstring_unless_its_name_says_all(name: str) -> None:
    members = [each for type in mcpgen.spec.load(name).latest.types for each in type.members]
    bare = {each.name for each in members if not each.doc and each.type.kind != "literal"}
    assert bare <= {"id", "method"}
    assert len(members) > 200
