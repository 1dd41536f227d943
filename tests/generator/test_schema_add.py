"""`mcpgen schema add`: the folder that it writes, what it leaves to a person, what it refuses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partialmethod
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, Installation, run, run_python
from generator.draft_packages import definitions_of, save_schema, with_request
from generator.schemas import TEXT, obj
from generator.selections import NAMES, contents, rendered, spec_of
from mcpgen import paths, schema
from mcpgen.adding import facts_text
from mcpgen.adding import folder as folders
from mcpgen.errors import OutputError, RevisionsError, UsageError
from mcpgen.schema import docs, facts
from mcpgen.schema.revisions import RevisionEntry, read_revisions

pytestmark = pytest.mark.costly

NAME = "2027-01-15"
BASE = schema.latest().name
PAGES = f"https://modelcontextprotocol.io/specification/{NAME}"


def draft(folder: Path) -> Path:
    """The newest revision with a request, a type and a member more, and one defect less."""
    definitions = with_request(BASE, "Paint", "tools/paint")
    definitions["PaintResult"] = obj("colour", colour=TEXT)
    definitions["PaintResultResponse"] = obj("result", result={"$ref": "#/$defs/PaintResult"})
    definitions["Tool"]["properties"]["colour"] = {**TEXT, "pattern": "\u00e9"}
    definitions["JSONValue"]["anyOf"][2]["type"] = ["string", "number", "boolean", "null"]
    return save_schema(folder, definitions)


def add_draft(folder: Path, *words: str) -> Done:
    """The draft, added to a folder of revisions of its own."""
    return run(
        *("schema", "add", str(draft(folder)), "--revision", NAME),
        *("--schemas", str(folder / "own"), *words),
    )


@pytest.fixture(scope="session")
def with_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of revisions with the draft in it, not to be changed."""
    folder = tmp_path_factory.mktemp("with_draft")
    add_draft(folder)
    return folder / "own"


@pytest.fixture
def own(with_draft: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder of revisions with the draft in it, which the environment names."""
    shutil.copytree(with_draft, tmp_path / "own")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(paths.SCHEMAS_VARIABLE, str(tmp_path / "own"))
        patched.chdir(tmp_path)
        yield tmp_path / "own"


@pytest.mark.parametrize("folder", ["own", "my own/folder"])
def test_the_next_command_of_the_report_runs_as_printed(folder: str, tmp_path: Path) -> None:
    words = ("schema", "add", str(draft(tmp_path)), "--revision", NAME)
    done = run(*words, "--schemas", str(tmp_path / folder))
    line = done.out.splitlines()[-1]
    assert line.startswith("next: mcpgen diff ")
    _, _, *command = shlex.split(line)
    assert run(*command).code == 0


def test_the_report_names_what_a_person_has_to_check(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    done = add_draft(tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.replace(f"{tmp_path}{os.sep}", "") == snapshot


@pytest.mark.parametrize("name", ["facts.toml", "errata.toml"])
def test_the_files_of_a_revision_read_as_expected(
    with_draft: Path, name: str, snapshot: SnapshotAssertion
) -> None:
    assert (with_draft / NAME / name).read_text() == snapshot


def test_the_list_pins_the_file_and_its_structure(tmp_path: Path) -> None:
    add_draft(tmp_path, "--draft")
    [row] = read_revisions(tmp_path / "own" / "revisions.toml")
    assert row.status == "draft"
    written = tmp_path / "own" / NAME / "schema.json"
    document = json.loads(written.read_text("utf-8"))
    assert written.read_text("utf-8") == json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    assert row.digest == schema.digest(document)
    assert row.official != row.digest
    with paths.own_schemas(tmp_path / "own"):
        assert schema.latest().name == BASE


def test_a_program_gets_every_fact_to_check(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    record = json.loads(add_draft(tmp_path, "--json").out)
    guess = record["review"][0]
    assert guess == {
        "pointer": "/capabilities/tools~1paint",
        "value": "tools",
        "reason": "named like the method",
        "pages": [f"{PAGES}/server/tools"],
    }
    of_files = ("folder", "official", "digest")
    assert {key: record[key] for key in record if key not in (*of_files, "review")} == snapshot
    first = json.loads(add_draft(tmp_path, "--json", "-r", "2020-01-01").out)
    assert (first["revision"], first["changes"]) == ("2020-01-01", None)


def test_a_written_revision_has_the_facts_of_the_nearest_one(with_draft: Path) -> None:
    base = facts.load(BASE)
    with paths.own_schemas(with_draft):
        loaded = facts.load(NAME)
    assert loaded.capabilities == {**base.capabilities, "tools/paint": "tools"}
    for table in ("transports", "headers", "http", "authorization", "errors", "behaviour", "meta"):
        assert getattr(loaded, table) == getattr(base, table)
    assert {name: loaded.method(name) for name in base.methods} == base.methods


@pytest.mark.parametrize("name", [row.name for row in schema.revisions()])
def test_facts_are_written_as_they_are_stated(name: str) -> None:
    base = facts.load(name)
    stated = tomllib.loads((schema.entry(name).folder / "facts.toml").read_text("utf-8"))
    assert tomllib.loads(facts_text.text(base, name, ())) == stated
    call = {"tools/call": replace(base.method("tools/call"), named_by=None)}
    changed = replace(base, methods={**base.methods, **call})
    written = tomllib.loads(facts_text.text(changed, name, ()))
    assert written["methods"]["tools/call"]["named_by"] is False


def test_a_revision_of_the_user_is_listed_and_comparable(own: Path) -> None:
    rows = run("list").out.splitlines()
    assert [row for row in rows if row.startswith(f"{NAME}  final   per request")]
    compared = run("diff", BASE, NAME).out
    assert f"{BASE} -> {NAME}: 0 breaking" in compared
    assert "tools/paint" in compared


def test_a_package_of_a_user_revision_is_written_and_checked(own: Path) -> None:
    assert run("-q", "-r", NAME, "--parts", "types", "-o", "pkg").code == 0
    assert "PaintResult" in (own.parent / "pkg/r2027_01_15/models.py").read_text()
    assert run("check", "pkg").out == "pkg: up to date\n"
    (own / "docs.toml").write_text('[types.PaintResult]\ndoc = "A colour."\npage = "tools"\n')
    checked = run("check", "pkg")
    assert checked.code == 1
    assert '+    """A colour. Source: server/tools."""' in checked.out
    assert run("-q", "update", "pkg").code == 0
    assert run("check", "pkg").out == "pkg: up to date\n"


def test_a_package_names_its_missing_folder_of_revisions(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("-q", "-r", NAME, "--parts", "types", "-o", "pkg")
    monkeypatch.delenv(paths.SCHEMAS_VARIABLE)
    assert run("check", "pkg") == Done(
        2,
        "",
        f"mcpgen: error: pkg: revision {NAME} is not one that mcpgen has; --schemas DIR names a"
        " folder of revisions of your own\n",
    )
    assert run("check", "pkg", "--schemas", str(own)).out == "pkg: up to date\n"
    assert run("--schemas", str(own), "check", "pkg").out == "pkg: up to date\n"


def test_a_project_with_a_revision_of_the_user_names_the_folder(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("-q", "new", "server", "weather", "-r", NAME).code == 0
    assert run("-q", "new", "client", "plain", "-r", BASE).code == 0
    assert "schemas_dir" not in (own.parent / "plain/pyproject.toml").read_text()
    monkeypatch.delenv(paths.SCHEMAS_VARIABLE)
    text = (own.parent / "weather/pyproject.toml").read_text()
    assert tomllib.loads(text)["tool"]["mcpgen"]["schemas_dir"] == "../own"
    assert run("check", "weather").out == "weather/src/weather/protocol: up to date\n"
    assert run("update", "weather").code == 0


def test_documentation_of_the_user_covers_user_revisions_alone(own: Path) -> None:
    (own / "docs.toml").write_text(
        '[pages]\npaint = "server/paint"\n'
        '[types.Tool]\npage = "paint"\nfields = { colour = "Its colour." }\n'
    )
    texts = docs.load()
    assert texts.field_doc(NAME, "Tool", "colour") == "Its colour."
    assert texts.type_doc(NAME, "Tool") == texts.type_doc(BASE, "Tool") != ""
    assert texts.page(NAME, "Tool") == "server/paint"
    assert texts.field_doc(BASE, "Tool", "colour") == ""
    assert texts.page(BASE, "Tool") == "server/tools"


def test_a_revision_that_is_added_anew_keeps_its_facts(own: Path) -> None:
    path = own / NAME / "facts.toml"
    edited = path.read_text().replace("# accepted = 202", "accepted = 204")
    assert edited != path.read_text()
    edited = f'{edited}\n[draft]\nmethod = "Own-Method"\n'
    path.write_text(edited)
    refused = run("schema", "add", __file__, "--revision", NAME)
    assert (refused.code, refused.err) == (
        2,
        f"mcpgen: error: {own} has revision {NAME}; --force writes it anew\n",
    )
    assert path.read_text() == edited
    forced = add_draft(own.parent, "--force")
    assert forced.code == 0
    assert forced.out.endswith(f"\nnext: mcpgen diff {BASE} {NAME}\n")
    assert (facts.load(NAME).http.accepted, facts.load(NAME).draft.method) == (204, "Own-Method")
    assert facts.load(NAME).capabilities["tools/paint"] == "tools"


def test_a_schema_that_is_there_already_has_all_its_facts_and_corrections(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    words = ("schema", "add", save_schema(tmp_path, definitions_of(BASE)), "--revision", NAME)
    done = run(*words, "--schemas", tmp_path)
    errata = (tmp_path / NAME / "errata.toml").read_text()
    assert (done.out.replace(f"{tmp_path}", "own").splitlines(), errata) == snapshot


def test_an_installed_mcpgen_needs_a_folder_for_revisions(installation: Installation) -> None:
    words = ("schema", "add", __file__, "--revision", NAME)
    assert "expected --schemas DIR or the variable" in installation.run(*words).err
    assert "#: expected JSON text" in run(*words).err  # in the checkout


WRONG: Mapping[str, tuple[str, list[str], str]] = {
    "no JSON": ("{", [], "{file}#: expected JSON text, got Expecting property name"),
    "no date": ("{}", ["-r", "2027-02-30"], "--revision: expected a date as YYYY-MM-DD, got"),
    "a date in another form": ("{}", ["-r", "20270115"], "--revision: expected a date as YYYY-MM"),
    "a word": ("{}", ["-r", "draft"], '--revision: expected a date as YYYY-MM-DD, got "draf'),
    "a revision of mcpgen": ("{}", ["-r", BASE], f"mcpgen has revision {BASE}; --force goes"),
    "a folder that cannot be": ("", ["--schemas", "/proc/own"], "/proc/own: nothing was written: "),
}


@pytest.mark.parametrize(("text", "words", "error"), WRONG.values(), ids=WRONG)
def test_bad_input_is_refused_and_nothing_is_written(
    tmp_path: Path, text: str, words: list[str], error: str
) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text or draft(tmp_path).read_text())
    before = contents(tmp_path)
    standard = ["-r", NAME, "--schemas", str(tmp_path / "own")]
    done = run("schema", "add", str(path), *standard, *words)
    assert done.code
    assert done.err.startswith(f"mcpgen: error: {error.format(file=path)}"), done.err
    assert contents(tmp_path) == before


ROW = RevisionEntry(NAME, "final", "0" * 64, "1" * 64)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize(
    ("present", "failing"), [(False, 1), (False, 2), (True, 1), (True, 2), (True, 3)]
)
def test_an_interrupt_at_any_rename_leaves_the_folder_as_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    present: bool,
    failing: int,
    stop: type[BaseException],
) -> None:
    folders.write(tmp_path, replace(ROW, name="2026-12-01"), {"schema.json": "{}"})
    if present:
        folders.write(tmp_path, ROW, {"schema.json": "{}", "facts.toml": "mine"})
    before, calls = contents(tmp_path), 0

    def stopped(self: Path, place: Path, original: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise stop
        return original(self, place)

    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, partialmethod(stopped, original=getattr(Path, name)))
    with pytest.raises((KeyboardInterrupt, OutputError)) as raised:
        folders.write(tmp_path, ROW, {"schema.json": "[]"}, force=present)
    monkeypatch.undo()
    fault = f"{tmp_path}: nothing was written: Input/output error"
    assert f"{raised.value}" == (fault if stop is OSError else "")
    assert contents(tmp_path) == before
    folders.write(tmp_path, ROW, {"schema.json": "[]"}, force=present)
    assert (tmp_path / NAME / "schema.json").read_text() == "[]"
    names = [row.name for row in read_revisions(tmp_path / "revisions.toml")]
    assert names == ["2026-12-01", NAME]


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        folders.write(tmp_path / "own", ROW, {"schema.json": "\ud800"})
    assert contents(tmp_path) == {}


def test_rows_are_added_in_order_and_leave_the_others(tmp_path: Path) -> None:
    path = tmp_path / "revisions.toml"
    for name in ("2027-03-01", "2027-01-15", "2027-02-01"):
        folders.write(tmp_path, replace(ROW, name=name), {})
        path.write_text(path.read_text().replace('"final"', '"draft"  # mine', 1))
    rows = read_revisions(path)
    assert [row.name[:7] for row in rows] == ["2027-01", "2027-02", "2027-03"]
    assert path.read_text().count("# mine") == sum(row.status == "draft" for row in rows) > 1
    (tmp_path / "2027-02-01").rmdir()
    with pytest.raises(UsageError, match="has revision 2027-02-01; --force writes it anew"):
        folders.write(tmp_path, replace(ROW, name="2027-02-01"), {})
    path.write_text(path.read_text().replace('"draft"', '"old"'))
    with pytest.raises(RevisionsError):
        folders.write(tmp_path, ROW, {}, force=True)


def test_a_folder_without_a_list_is_named(tmp_path: Path) -> None:
    assert run("list", "--schemas", str(tmp_path)).err == (
        f"mcpgen: error: {tmp_path}: expected a folder with revisions.toml, as mcpgen schema add"
        " writes it, got none\n"
    )


MOST = 20
"""Files that another revision changes, the manifest among them."""


def leaves(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every value of a table that is no table, by the keys that lead to it."""
    values: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        values |= leaves(value, (*path, key)) if isinstance(value, dict) else {(*path, key): value}
    return values


@pytest.mark.slow
def test_a_published_revision_that_was_deleted_is_added_again(
    spec: Path, root: Path, tmp_path: Path
) -> None:
    for name in ("generator", "templates", "schema"):
        shutil.copytree(root / name, tmp_path / name)
    (tmp_path / "generated").mkdir()
    shutil.copy(root / "generated/interface.txt", tmp_path / "generated")
    official, added = root / "schema", tmp_path / "schema"
    shutil.rmtree(added / BASE)
    rows, _, _ = (official / "revisions.toml").read_text().partition(f'"{BASE}"')
    (added / "revisions.toml").write_text(f"{rows.rpartition('[[')[0].rstrip()}\n")

    def run_copy(*words: object) -> str:
        done = run_python("-m", "mcpgen", "-q", *words, cwd=tmp_path / "generator")
        assert done.code == 0, done.err
        return done.out

    package = tmp_path / "generated/mcpgen_runtime"
    run_copy("--revision", "all", "--features", "all", "-o", package)
    without = contents(package)
    source = spec / "schema" / BASE / "schema.json"
    work = json.loads(run_copy("schema", "add", source, "--revision", BASE, "--json"))["work"]
    for name in ("revisions.toml", f"{BASE}/schema.json"):
        assert (added / name).read_bytes() == (official / name).read_bytes()
    before, after = (
        leaves(tomllib.loads((place / BASE / "facts.toml").read_text()))
        for place in (added, official)
    )
    edits = {key for key in before.keys() | after if before.get(key) != after.get(key)}
    page = (root / "docs/adding-a-revision.md").read_text()
    assert f"{len(edits)} edits of `facts.toml`" in page
    assert f"{work['facts']} facts to check on " in page
    assert f"{work['guesses']} guesses, {work['corrections']} corrections" in page
    carried, corrections = (
        schema.read_errata(place / BASE / "errata.toml") for place in (added, official)
    )
    assert f"{len(corrections) - len(carried)} more erratum" in page
    for name in ("facts.toml", "errata.toml"):
        shutil.copy(official / BASE / name, added / BASE / name)
    assert contents(added) == contents(official)
    run_copy("--revision", "all", "--features", "all", "-o", package)
    again = contents(package)
    committed = contents(root / "generated/mcpgen_runtime").items()
    assert again == {path: text for path, text in committed if "__pycache__" not in path}
    differing = {path for path in without.keys() & again if without[path] != again[path]}
    assert without.keys() < again.keys()
    assert len(differing) <= MOST, sorted(differing)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), list(pairwise(NAMES[-3:])))
def test_an_update_changes_few_files(before: str, after: str) -> None:
    old, new = (
        {
            path.replace(spec_of(name).folder, "revision"): text
            for path, text in rendered("all", "all", (name,)).items()
        }
        for name in (before, after)
    )
    differing = {path for path in old.keys() & new if old[path] != new[path]}
    assert 1 < len(differing | {"mcpgen.json"}) <= MOST, sorted(differing)
