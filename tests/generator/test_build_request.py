"""Requests for a package: its sources, and what a manifest on disk gives to an update."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generator.draft_packages import definitions_of, save_schema
from generator.schemas import TEXT
from mcpgen import schema
from mcpgen.errors import OutputError, UsageError
from mcpgen.model import exports, extension_files, schema_sources
from mcpgen.model.choice import selection
from mcpgen.model.schema_sources import Source
from mcpgen.package import build_request, commands, manifest

NAMES = [row.name for row in schema.revisions()]
PAINT = Path(__file__).parent / "extensions" / "paint.json"
RECORD = manifest.Manifest("1.0", "", "pkg", manifest.Options(errata=True), {}, {}, {})
OF_MCPGEN = manifest.Origin("mcpgen", "", "")


def of_file(schema_path: str, facts_path: str = "") -> manifest.Origin:
    return manifest.Origin("file", "", "", schema_path, facts_path)


def sources(*names: str) -> tuple[Source, ...]:
    """Sources of any schema, by the names of their revisions."""
    any_one = schema_sources.of_folder(NAMES[0])
    return tuple(replace(any_one, revision=name) for name in names)


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
    assert build_request.gone_revisions(record, sources(*now.split())) == gone


def test_old_modules_are_those_of_the_last_removal() -> None:
    record = replace(
        RECORD,
        revisions={"c": OF_MCPGEN, "d": OF_MCPGEN},
        old_revisions={"a": "c", "b": "d"},
    )
    assert build_request.old_revisions(record, sources("c", "d")) == {"a": "c", "b": "d"}
    assert build_request.old_revisions(record, sources("b", "c", "d")) == {"a": "c"}
    assert build_request.old_revisions(record, sources("d")) == {"c": "d"}
    assert build_request.old_revisions(None, sources("d")) == {}


def test_names_of_the_manifest_are_those_that_mcpgen_renamed() -> None:
    renamed, another, *_ = sorted(exports.RENAMED)
    record = replace(RECORD, names=("Server", another), old_names=(renamed, "Gone"))
    assert build_request.old_names(record) == (renamed, another)
    assert build_request.old_names(None) == ()


def test_a_changed_copy_of_a_revision_is_known_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    source = replace(
        *sources(schema_sources.UNNAMED), origin="file", schema=tmp_path / "schema.json"
    )
    record = replace(
        RECORD,
        revisions={"a": OF_MCPGEN, "b": of_file("../other.json"), "c": of_file("../schema.json")},
    )
    directory = tmp_path / "pkg"
    assert build_request.named_by_manifest(source, directory, record).revision == "c"
    assert build_request.named_by_manifest(source, directory, None) is source
    assert build_request.named_by_manifest(source, directory, RECORD) is source
    named = replace(source, revision="b")
    assert build_request.named_by_manifest(named, directory, record) is named


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
    missing = replace(RECORD, revisions={"2001-01-01": OF_MCPGEN})
    with pytest.raises(UsageError, match="revision 2001-01-01 is not one that mcpgen has;"):
        build_request.recorded_sources(directory, missing)
    (tmp_path / "schema.json").rename(tmp_path / "2030-01-01.json")
    other = replace(RECORD, revisions={NAMES[0]: of_file("../2030-01-01.json")})
    with pytest.raises(UsageError, match=f"of revision {NAMES[0]}, got 2030-01-01; generate"):
        build_request.recorded_sources(directory, other)


def test_a_file_of_no_revision_replaces_the_only_other_file(tmp_path: Path) -> None:
    unnamed = schema_sources.UNNAMED
    origins = {NAMES[0]: OF_MCPGEN, "b": of_file("../b"), "c": of_file("../c")}
    record = replace(RECORD, revisions=origins)
    named = sources(unnamed, "c")
    read = build_request.recorded_sources(tmp_path, record, named)
    assert [source.revision for source in read] == [NAMES[0], "b", "c"]
    with pytest.raises(UsageError, match=f"of {NAMES[0]}, b, c, got one of {unnamed}"):
        build_request.recorded_sources(tmp_path, record, sources(unnamed))
    one = replace(RECORD, revisions={"b": of_file("../b")})
    with pytest.raises(UsageError, match="expected a schema file of b, got one of x"):
        build_request.recorded_sources(tmp_path, one, sources("x"))
    drafts = replace(RECORD, revisions={unnamed: of_file("../b"), "c": of_file("../c")})
    read = build_request.recorded_sources(tmp_path, drafts, sources(unnamed, "c"))
    assert [source.revision for source in read] == [unnamed, "c"]


def test_a_manifest_without_templates_or_patch_has_none(tmp_path: Path) -> None:
    assert build_request.templates_directory(tmp_path, RECORD) is None
    assert build_request.recorded_overrides(tmp_path, RECORD) is None
    assert build_request.changed_overrides(tmp_path, RECORD) == ()
    assert build_request.patch(tmp_path, RECORD) is None
    assert build_request.patch(tmp_path, None) is None
    assert not build_request.changed_patch(tmp_path, RECORD)
    assert build_request.recorded_extensions(tmp_path, RECORD) == ()


def test_files_that_a_manifest_names_have_to_be_there(tmp_path: Path) -> None:
    record = replace(
        RECORD,
        templates=manifest.Templates("../own", {"a": "0", "b": "0"}),
        patch=manifest.PatchOrigin("../pkg.patch", "0"),
    )
    directory = tmp_path / "pkg"
    directory.mkdir()
    with pytest.raises(UsageError, match="which are not there: name them with --templates DIR"):
        build_request.changed_overrides(directory, record)
    with pytest.raises(UsageError, match="which is not there: name it with --patch FILE"):
        build_request.changed_patch(directory, record)
    with pytest.raises(UsageError, match="which is not there: name it with --patch FILE"):
        build_request.patch(directory, record)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "b").write_text("x")
    (tmp_path / "own" / "c").write_text("x")
    assert build_request.changed_overrides(directory, record) == ("a", "b", "c")
    (tmp_path / "pkg.patch").write_text("")
    assert build_request.changed_patch(directory, record)
    digest = manifest.file_fingerprint(tmp_path / "pkg.patch")
    same = replace(record, patch=manifest.PatchOrigin("../pkg.patch", digest))
    assert not build_request.changed_patch(directory, same)
    read = build_request.patch(directory, record)
    assert read is not None
    assert (read.recorded, read.digest, read.text) == ("../pkg.patch", digest, "")


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


def extension_with_equals(folder: Path) -> Path:
    """The folder, with an extension whose file name has an equals sign."""
    (folder / "x=paint.json").write_bytes(PAINT.read_bytes())
    return folder


def test_extensions_are_found_by_name_by_path_and_by_identifier(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "paint.json").write_bytes(PAINT.read_bytes())
    words = ("tasks", "com.example/drawn=paint.json")
    shipped, drawn = build_request.named_extensions(words, tmp_path)
    assert shipped.identifier == "io.modelcontextprotocol/tasks"
    assert (drawn.identifier, drawn.path) == ("com.example/drawn", tmp_path / "paint.json")
    origins = build_request.extension_origins((shipped, drawn), tmp_path / "pkg")
    assert [origin.schema for origin in origins.values()] == ["", "../paint.json"]
    place = build_request.recorded_extension(tmp_path, *next(iter(origins.items())))
    assert place == shipped.path
    record = replace(RECORD, extensions=origins)
    read = build_request.recorded_extensions(tmp_path / "pkg", record)
    assert [each.identifier for each in read] == [*origins]
    [equals] = build_request.named_extensions(("x=paint.json",), extension_with_equals(tmp_path))
    assert equals.identifier == "com.example/paint"
    twice = {"com.example/paint": origins["com.example/drawn"]}
    twice["org.example/paint"] = origins["com.example/drawn"]
    with pytest.raises(UsageError, match="expected a name of its own for each extension"):
        build_request.recorded_extensions(tmp_path / "pkg", replace(RECORD, extensions=twice))
    (tmp_path / "paint.json").unlink()
    with pytest.raises(UsageError, match="is not there: name it with --extension FILE"):
        build_request.recorded_extensions(tmp_path / "pkg", record)


def test_sources_with_the_same_paths_are_one_and_show_no_content(tmp_path: Path) -> None:
    source = schema_sources.of_file(save_schema(tmp_path, definitions_of(NAMES[-1])))
    assert source.file is not None
    assert replace(source, file=None) == source
    assert "file=" not in repr(source)
    extension = extension_files.read(PAINT, "")
    assert replace(extension, content=None) == extension
    assert "content=" not in repr(extension)


def test_the_inputs_of_a_revision_count_corrections_and_facts(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("")
    path = save_schema(tmp_path, definitions_of(NAMES[-1]))
    source, stated = schema_sources.of_file(path), schema_sources.of_file(path, own)
    prints = {
        build_request.inputs(source, True),
        build_request.inputs(source, False),
        build_request.inputs(stated, True),
        build_request.inputs(replace(stated, base=NAMES[0]), True),
    }
    assert len(prints) == 4
    assert build_request.inputs(replace(source, base=NAMES[0]), True) in prints


def save_manifest(folder: Path, record: manifest.Manifest) -> Path:
    """A folder with a manifest alone."""
    (folder / "pkg").mkdir()
    (folder / "pkg" / manifest.NAME).write_text(record.text())
    return folder / "pkg"


@pytest.mark.parametrize(
    ("revisions", "files", "facts", "text"),
    [
        ((), (), False, "expected --revision R (a date, latest or all) or --schema FILE, got none"),
        ((), ("a/2030-01-01.json",) * 2, False, "2030-01-01 comes twice: by --schema twice"),
        (
            (NAMES[0],),
            (f"a/{NAMES[0]}.json",),
            False,
            f"{NAMES[0]} comes twice: by --revision and --schema",
        ),
        ((NAMES[0],), (), True, "expected one --schema FILE with --facts, got --facts alone"),
        (
            (),
            ("a/2030-01-01.json", "a/2030-01-02.json"),
            True,
            "expected one --schema FILE with --facts, got 2 of them",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, revisions: tuple[str, ...], files: tuple[str, ...], facts: bool, text: str
) -> None:
    (tmp_path / "a").mkdir()
    paths = [tmp_path / file for file in files]
    for path in paths:
        save_schema(tmp_path, definitions_of(NAMES[0])).rename(path)
    own = tmp_path / "own.toml"
    own.write_text("")
    options = commands.PackageOptions(
        revisions=revisions, schemas=tuple(paths), facts=own if facts else None
    )
    with pytest.raises(UsageError) as caught:
        commands.new_request(options, tmp_path / "pkg", errata=True)
    assert str(caught.value).endswith(text)


def test_a_request_has_the_options_and_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = commands.PackageOptions(revisions=(NAMES[1], NAMES[0], NAMES[0]))
    request = commands.new_request(options, tmp_path / "pkg", errata=True)
    assert request == build_request.BuildRequest(
        "pkg", schema_sources.by_name(NAMES[:2]), selection=selection()
    )
    assert (request.errata, request.strict, request.gitattributes) == (True, False, True)
    assert request.templates == manifest.Templates()
    assert request.patch_origin == manifest.PatchOrigin()
    chosen = replace(options, gitattributes=False, parts=("client",))
    request = commands.new_request(chosen, tmp_path / "pkg", errata=False, strict=True)
    assert (request.errata, request.strict, request.gitattributes) == (False, True, False)
    assert request.selection == selection(("client",))
    (tmp_path / "pkg" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "pkg" / "inner")
    with pytest.raises(UsageError, match="pkg holds the current directory: run mcpgen from out"):
        commands.new_request(options, tmp_path / "pkg", errata=True)


def test_an_update_keeps_what_no_option_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = manifest.Options(
        False, ("client",), ("stdio",), "pydantic", ("none", "trace"), gitattributes=False
    )
    record = replace(
        RECORD,
        package="outer.pkg",
        options=options,
        revisions=dict.fromkeys(NAMES[:2], OF_MCPGEN),
        extensions={"io.modelcontextprotocol/tasks": manifest.ExtensionOrigin("", "")},
        renamed_types={"Old": "New"},
        old_revisions={"2001-01-01": NAMES[0]},
    )
    directory = save_manifest(tmp_path, record)
    same = commands.update_request(commands.PackageOptions(), directory)
    assert (same.package, same.options) == ("outer.pkg", options)
    assert [source.revision for source in same.sources] == NAMES[:2]
    assert [each.identifier for each in same.extensions] == ["io.modelcontextprotocol/tasks"]
    assert (same.renamed_types, same.old_revisions) == ({"Old": "New"}, {})
    assert (same.overrides, same.patch, same.old_names) == (None, None, ())
    keeps = commands.update_request(commands.PackageOptions(keeps_old_modules=True), directory)
    assert keeps.old_revisions == {"2001-01-01": NAMES[0]}
    other = commands.update_request(
        commands.PackageOptions(
            revisions=(NAMES[1], NAMES[-1]),
            parts=("server",),
            transports=("http",),
            models="msgspec",
            features=("+auth,-trace",),
            runtime="installed",
            extensions=(str(PAINT),),
            keeps_old_modules=True,
        ),
        directory,
    )
    features = ("none", "prompts", "resources", "serve", "auth")
    assert other.options == manifest.Options(
        False, ("server",), ("http",), "msgspec", features, False, "installed"
    )
    assert [source.revision for source in other.sources] == [NAMES[1], NAMES[-1]]
    assert [each.identifier for each in other.extensions] == ["com.example/paint"]
    assert other.old_revisions == {NAMES[0]: NAMES[1]}
    (tmp_path / "own").mkdir()
    named = commands.PackageOptions(templates=tmp_path / "own")
    own = commands.update_request(named, directory)
    assert own.templates == manifest.Templates("../own")
    monkeypatch.chdir(directory)
    with pytest.raises(UsageError, match="holds the current directory"):
        commands.update_request(commands.PackageOptions(), directory)
    with pytest.raises(OutputError, match=r"expected a package of mcpgen's, got no mcpgen\.json"):
        commands.update_request(commands.PackageOptions(), tmp_path)
