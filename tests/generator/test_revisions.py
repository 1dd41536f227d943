"""The list of revisions, their files, and a checkout of the specification to compare with."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mcpgen import paths, schema
from mcpgen.errors import RevisionsError, SchemaError, UsageError
from mcpgen.schema.revisions import read_revisions

ROW = '[[revision]]\nname = "{}"\nstatus = "{}"\nofficial = "a"\ndigest = "b"\n'


def test_revisions_are_listed_oldest_first_and_the_latest_is_final() -> None:
    names = [row.name for row in schema.revisions()]
    assert names == sorted(names)
    assert len(names) == 5
    assert schema.latest() == schema.revisions()[-1]
    assert schema.latest().status == "final"


@pytest.mark.parametrize("row", schema.revisions(), ids=lambda row: row.name)
def test_the_files_of_a_revision_are_there_and_have_the_digest(row: schema.RevisionEntry) -> None:
    names = {path.name for path in row.folder.iterdir()}
    assert names == {"schema.json", "errata.toml", "facts.toml"}
    assert schema.read_file(row.folder / "schema.json").digest == row.digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "#: expected the key revision, got [] without it"),
        ("[[revision]]\n", "#/revision/0: expected the key name, got [] without it"),
        (ROW.format("a", "old"), '#/revision/0/status: expected one of ["final", "draft"], got "'),
        (
            ROW.format("b", "final") + ROW.format("b", "draft"),
            '#/revision/1/name: expected a revision after b, got "b"',
        ),
        ("x", "#: expected TOML text, got "),
        (
            ROW.format("../../x", "final"),
            "#/revision/0/name: expected the name of a folder beside the list, got",
        ),
    ],
)
def test_a_malformed_list_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "revisions.toml"
    path.write_text(text)
    with pytest.raises(RevisionsError) as raised:
        read_revisions(path)
    assert str(raised.value).startswith(f"{path}{expected}")


def test_a_relative_folder_is_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.SCHEMAS_VARIABLE, "own")
    for project, name in (("one", "2030-01-01"), ("two", "2031-01-01")):
        (tmp_path / project / "own").mkdir(parents=True)
        path = tmp_path / project / "own/revisions.toml"
        path.write_text(ROW.format(name, "draft"))
        monkeypatch.chdir(tmp_path / project)
        assert schema.revisions()[-1].name == name


def test_a_checkout_without_the_file_or_a_schema_in_it_is_refused(tmp_path: Path) -> None:
    latest = schema.latest()
    with pytest.raises(UsageError, match=f"expected the official schema of {latest.name}, got no"):
        schema.verify(latest, tmp_path)
    path = tmp_path / "schema" / latest.name / "schema.json"
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    with pytest.raises(SchemaError, match=f"^{path}#: expected a schema that is an object"):
        schema.verify(latest, tmp_path)


@pytest.mark.parametrize("row", schema.revisions(), ids=lambda row: row.name)
def test_our_schemas_are_the_official_ones(spec: Path, row: schema.RevisionEntry) -> None:
    verdict = schema.verify(row, spec)
    assert (verdict.differences, verdict.same_file) == ((), True)
    official = (spec / "schema" / row.name / "schema.json").read_bytes()
    assert hashlib.sha256(official).hexdigest() == row.official
