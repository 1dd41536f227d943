"""Writing a package: all or nothing, nothing of the user's lost."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpgen.errors import ManifestError, OutputError
from mcpgen.package import manifest, output

FIRST = {"__init__.py": "one = 1\n", "r1/models.py": "class A: ...\n"}
SECOND = {"__init__.py": "one = 2\n", "r2/models.py": "class B: ...\n"}


def package(files: Mapping[str, str]) -> dict[str, str]:
    """Files with the manifest that belongs to them."""
    record = manifest.new("pkg", manifest.Options(errata=True), {}, files)
    return {**files, manifest.NAME: record.text()}


def tree(folder: Path) -> dict[str, str]:
    """All files below a folder, the manifest aside."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*")
        if path.is_file() and path.name != manifest.NAME
    }


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A place with the first package."""
    place = tmp_path / "pkg"
    output.write(place, package(FIRST))
    return place


@pytest.mark.parametrize("is_there", [False, True])
def test_a_package_is_written_where_nothing_was(tmp_path: Path, is_there: bool) -> None:
    place = tmp_path / "not" / "yet" / "pkg"
    if is_there:
        place.mkdir(parents=True)
    written = output.write(place, package(FIRST))
    assert tree(place) == FIRST
    assert written.created == ("__init__.py", "mcpgen.json", "r1/models.py")
    assert [path.name for path in place.parent.iterdir()] == ["pkg"]


def test_a_second_run_replaces_changes_and_leaves_nothing_stale(target: Path) -> None:
    target.chmod(0o750)
    written = output.write(target, package(SECOND))
    assert tree(target) == SECOND
    assert target.stat().st_mode & 0o777 == 0o750
    assert not (target / "r1").exists()
    assert written.created == ("r2/models.py",)
    assert written.updated == ("__init__.py", "mcpgen.json")
    assert written.removed == ("r1/models.py",)


def test_the_same_package_again_touches_nothing(target: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    written = output.write(target, package(FIRST))
    assert not written.changed
    assert written.unchanged == 3
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before


def test_files_of_the_user_move_along(target: Path) -> None:
    own = {"mine.py": "x = 1\n", "r1/more.py": "y = 2\n", "own/deep/er.py": "z = 3\n"}
    (target / "own/deep").mkdir(parents=True)
    for path, text in own.items():
        (target / path).write_text(text)
    (target / "link").symlink_to("mine.py")
    (target / "folder").symlink_to("r1")
    (target / "__pycache__").mkdir()
    (target / "__pycache__" / "x.pyc").write_text("")
    output.write(target, package(SECOND))
    assert {path: text for path, text in tree(target).items() if path in own} == own
    assert (target / "link").readlink() == Path("mine.py")
    assert (target / "folder").readlink() == Path("r1")
    assert not (target / "__pycache__").exists()


def test_a_directory_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for force in (False, True):
        with pytest.raises(OutputError, match=r"got one without mcpgen\.json; it was not touched"):
            output.write(tmp_path, package(FIRST), force=force)
    assert tree(tmp_path) == {"thesis.txt": "years of work"}
    with pytest.raises(OutputError, match="expected a directory, got a file"):
        output.write(tmp_path / "thesis.txt", package(FIRST))
    with pytest.raises(OutputError, match="nothing was written: File exists"):
        output.write(tmp_path / "thesis.txt" / "pkg", package(FIRST))


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpgen": 1}'])
def test_a_broken_manifest_protects_the_directory(target: Path, text: str) -> None:
    (target / manifest.NAME).write_text(text)
    with pytest.raises(ManifestError, match=r"mcpgen\.json#"):
        output.write(target, package(SECOND), force=True)
    assert tree(target) == FIRST


@pytest.mark.parametrize("path", ["__init__.py", "r1/models.py", "r2/models.py"])
def test_a_file_of_the_user_is_named_and_kept_without_force(target: Path, path: str) -> None:
    (target / "r2").mkdir()
    (target / path).write_text("mine\n")
    with pytest.raises(OutputError, match=f"edited by hand: {path};.*--force"):
        output.write(target, package(SECOND))
    assert tree(target) == {**FIRST, path: "mine\n"}
    output.write(target, package(SECOND), force=True)
    assert tree(target) == SECOND


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SECOND["__init__.py"].encode(), id="what the new run writes"),
        pytest.param(b"one = 1\r\n", id="line ends of another system"),
        pytest.param(None, id="no file"),
    ],
)
def test_a_change_that_loses_nothing_is_no_edit(target: Path, text: bytes | None) -> None:
    (target / "__init__.py").unlink()
    if text is not None:
        (target / "__init__.py").write_bytes(text)
    written = output.write(target, package(SECOND))
    assert ("__init__.py" in written.created) is (text is None)
    assert tree(target) == SECOND


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more"), (8, " and 3 more")])
def test_many_edited_files_are_counted(tmp_path: Path, count: int, more: str) -> None:
    files = {f"m{number}.py": "\n" for number in range(count)}
    output.write(tmp_path / "pkg", package(files))
    for path in files:
        (tmp_path / "pkg" / path).write_text("mine\n")
    with pytest.raises(OutputError, match=rf"m0\.py, m1\.py, m2\.py, m3\.py, m4\.py{more};"):
        output.write(tmp_path / "pkg", package(SECOND))


@pytest.mark.parametrize(
    "files",
    [
        {"a": "", "a/b": ""},
        {"x" * 300: ""},
        {"nul\0": ""},
        {"a.py": "\ud800"},
    ],
    ids=["file and folder", "name too long", "no name", "no text"],
)
def test_a_failure_while_writing_leaves_everything_as_it_was(
    target: Path, files: dict[str, str]
) -> None:
    mine = target / "mine.py"
    mine.write_text("x\n")
    with pytest.raises((OutputError, ValueError)):
        output.write(target, {**files, manifest.NAME: "{}"})
    assert tree(target) == {**FIRST, "mine.py": "x\n"}
    assert [path.name for path in target.parent.iterdir()] == ["pkg"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_while_swapping_leaves_everything_as_it_was(
    target: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    rename, calls = Path.rename, 0

    def breaking(self: Path, place: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(self, place)

    monkeypatch.setattr(Path, "rename", breaking)
    with pytest.raises(OutputError, match="nothing was written: Device or resource busy"):
        output.write(target, package(SECOND))
    assert tree(target) == FIRST
    assert [path.name for path in target.parent.iterdir()] == ["pkg"]
