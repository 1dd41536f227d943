"""Packages made from schema files of the user's: edits of the file lead to the same package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from generator.command_line import run
from mcpgen import schema
from mcpgen.package import manifest

pytestmark = pytest.mark.costly

REVISIONS = tuple(row.name for row in schema.revisions())
SMALLEST, NEWEST = REVISIONS[0], REVISIONS[-1]
COMMANDS = {
    "check": ("update pkg", "check pkg"),
    "update": ("update pkg", "update pkg"),
    "check --schema": ("update pkg --schema my.json", "check pkg --schema my.json"),
    "generate": ("--schema my.json --parts types -o pkg",) * 2,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy(revision: str, name: str = "my.json") -> None:
    """A copy of the schema of a revision, under a name that does not say so."""
    shutil.copy(schema.entry(revision).folder / "schema.json", name)


def generate(*names: str) -> None:
    words = [word for name in names or ("my.json",) for word in ("--schema", name)]
    assert run("-q", *words, "--parts", "types", "-o", "pkg").code == 0


def edit(name: str = "my.json") -> None:
    """Give tools a member that no revision has."""
    document = json.loads(Path(name).read_text("utf-8"))
    tool = (document.get("$defs") or document["definitions"])["Tool"]
    tool["properties"]["shade"] = {"type": "string"}
    Path(name).write_text(json.dumps(document), "utf-8")


def models(revision: str) -> Path:
    return Path("pkg", f"r{revision.replace('-', '_')}", "models.py")


def revisions() -> list[str]:
    """The revisions of the package by its manifest, which are also its folders."""
    names = list(json.loads(Path("pkg", manifest.NAME).read_text("utf-8"))["revisions"])
    folders = {path.parent.name for path in Path("pkg").glob("*/models.py")}
    assert folders == {models(name).parent.name for name in names}
    return names


@pytest.mark.parametrize(
    ("revision", "commands"),
    [
        *((SMALLEST, commands) for commands in COMMANDS.values()),
        (NEWEST, COMMANDS["update"]),
    ],
    ids=[*COMMANDS, "newest"],
)
def test_an_edited_copy_keeps_the_revision_it_was_recorded_as(
    revision: str, commands: tuple[str, ...]
) -> None:
    copy(revision)
    generate()
    edit()
    check = run("check", "pkg")
    assert (check.code, "the schema changed" in check.out) == (1, True)
    for command in commands:
        assert run("-q", *command.split()).code == 0
    assert revisions() == [revision]
    assert "shade: " in models(revision).read_text("utf-8")
    assert run("-q", "check", "pkg").code == 0


def test_a_file_that_was_moved_takes_the_place_of_the_only_one() -> None:
    copy(SMALLEST)
    generate()
    edit()
    Path("my.json").rename("other.json")
    assert run("-q", "update", "pkg").code == 2
    assert run("-q", "update", "pkg", "--schema", "other.json").code == 0
    assert revisions() == [SMALLEST]


def test_each_of_several_edited_files_keeps_its_revision() -> None:
    for number, revision in enumerate(REVISIONS[:2]):
        copy(revision, f"{number}.json")
    generate("0.json", "1.json")
    for number in range(2):
        edit(f"{number}.json")
    words = ("--schema", "1.json", "--schema", "0.json")
    assert run("-q", "update", "pkg", *words).code == 0
    assert revisions() == list(REVISIONS[:2])


def test_a_draft_that_becomes_a_revision_stays_in_its_folder() -> None:
    copy(SMALLEST)
    edit()
    generate()
    copy(SMALLEST)
    assert run("-q", "update", "pkg").code == 0
    assert revisions() == ["draft"]


def test_a_file_that_became_another_revision_is_refused() -> None:
    copy(REVISIONS[1])
    generate()
    copy(SMALLEST)
    done = run("update", "pkg")
    expected = f"expected the schema of revision {REVISIONS[1]}, got {SMALLEST}"
    assert (done.code, expected in done.err) == (2, True)
