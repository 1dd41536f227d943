"""Data is found in a checkout and in an installed wheel."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from mcpgen import paths
from mcpgen.errors import UsageError


def test_a_wheel_has_its_data_inside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "mcpgen"
    (package / "_data").mkdir(parents=True)
    assert paths.data_root(package) == package / "_data"


def test_paths_of_data_are_shown_from_the_top(root: Path, tmp_path: Path) -> None:
    assert paths.shown_path(root / "schema" / "docs.toml") == "schema/docs.toml"
    assert paths.shown_path(tmp_path / "x") == str(tmp_path / "x")


def test_a_recorded_place_below_here_is_shown_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert paths.recorded_place(Path("pkg"), "../a.json") == Path("a.json")
    assert paths.recorded_place(Path("pkg"), "../../a.json") == tmp_path / "a.json"
    assert paths.relative_path(tmp_path / "a.json", tmp_path / "here") == "../a.json"


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git", ".hg", ""])
@pytest.mark.parametrize(
    ("place", "in_project", "alone"),
    [
        ("own/src/pkg/x.json", True, True),
        ("own/src/templates", True, True),
        ("own/src/.env", True, False),
        ("own/src/.ssh", True, False),
        ("own/schemas/draft.json", True, False),
        ("own/src/linked.json", False, False),
        ("other/draft.json", False, False),
    ],
)
def test_recorded_files_belong_to_the_project(
    tmp_path: Path, mark: str, place: str, in_project: bool, alone: bool
) -> None:
    package = tmp_path / "own" / "src" / "pkg"
    for folder in (package, package.parent / "templates", package.parent / ".ssh"):
        folder.mkdir(parents=True)
    (package.parent / "linked.json").symlink_to("../../other/draft.json")
    if mark:
        (tmp_path / "own" / mark).touch()
    expected = in_project if mark else alone
    assert paths.is_of_project(tmp_path / place, package) is expected
    recorded = os.path.relpath(tmp_path / place, package)
    refused = pytest.raises(UsageError, match=r"which only its mcpgen\.json names")
    with nullcontext() if expected else refused:
        paths.expect_of_project(package / recorded, package)


def test_revisions_of_the_user_take_precedence_inside_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    (own / "mine").mkdir(parents=True)
    monkeypatch.setenv(paths.SCHEMAS_VARIABLE, os.fspath(other))
    with paths.own_schemas(own):
        assert paths.revision_dir("mine") == own / "mine"
        assert paths.revision_dir("theirs") == paths.schema_dir() / "theirs"
        assert [paths.is_own_revision(name) for name in ("mine", "theirs")] == [True, False]
        with paths.own_schemas(None):
            assert paths.own_schema_dir() is None
            assert not paths.is_own_revision("mine")
        assert paths.own_schema_dir() == own
    assert paths.own_schema_dir() == other
