"""The directory of a package: written as a whole or not at all; nothing of the user's is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from kit.limits import SetLimit
from mcpgen.errors import ManifestError, OutputError
from mcpgen.package import manifest, output
from mcpgen.package.check import check

pytestmark = pytest.mark.lengthy

FIRST = {"__init__.py": "one = 1\n", "r1/models.py": "class A: ...\n"}
SECOND = {"__init__.py": "one = 2\n", "r2/models.py": "class B: ...\n"}
MARK = "mcpgen-0123abcd"


def package(files: dict[str, str]) -> dict[str, str]:
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


def names(folder: Path) -> list[str]:
    """Names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A place with the first package, alone in its folder."""
    place = tmp_path / "folder" / "pkg"
    output.write(place, package(FIRST))
    return place


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the user's, outside of the package."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "models.py").write_text("mine\n")
    return folder


@pytest.fixture
def lock(target: Path) -> Path:
    """The lock file of the package, which is not there."""
    return target.with_name(".pkg.mcpgen-lock")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_package_is_written_where_nothing_was(tmp_path: Path, is_there: bool) -> None:
    place = tmp_path / "not" / "yet" / "pkg"
    if is_there:
        place.mkdir(parents=True)
    written = output.write(place, package(FIRST))
    assert tree(place) == FIRST
    assert written.created == ("__init__.py", "mcpgen.json", "r1/models.py")
    assert names(place.parent) == ["pkg"]


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
    [SECOND["__init__.py"].encode(), b"one = 1\r\n", None],
    ids=["what the new run writes", "line ends of another system", "no file"],
)
def test_a_change_that_loses_nothing_is_no_edit(target: Path, text: bytes | None) -> None:
    (target / "__init__.py").unlink()
    if text is not None:
        (target / "__init__.py").write_bytes(text)
    written = output.write(target, package(SECOND))
    assert ("__init__.py" in written.created) is (text is None)
    assert tree(target) == SECOND


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more")])
def test_many_edited_files_are_counted(tmp_path: Path, count: int, more: str) -> None:
    files = {f"m{number}.py": "\n" for number in range(count)}
    output.write(tmp_path / "pkg", package(files))
    for path in files:
        (tmp_path / "pkg" / path).write_text("mine\n")
    with pytest.raises(OutputError, match=rf"m0\.py, m1\.py, m2\.py, m3\.py, m4\.py{more};"):
        output.write(tmp_path / "pkg", package(SECOND))


@pytest.mark.parametrize(
    "files",
    [{"a": "", "a/b": ""}, {"x" * 300: ""}, {"a.py": "\ud800"}],
    ids=["file and folder", "name too long", "no text"],
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


@pytest.mark.parametrize("path", ["r2", "r1", "__init__.py", manifest.NAME])
@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_removed_or_read_through_a_link(
    target: Path, elsewhere: Path, path: str, dangling: bool, force: bool
) -> None:
    outside = elsewhere if path in ("r1", "r2") else elsewhere / path
    if dangling:
        outside = elsewhere / "none"
    elif outside != elsewhere:
        outside.write_bytes((target / path).read_bytes())
    kept = target.with_name("kept")
    if (target / path).exists():
        (target / path).rename(kept)
    (target / path).symlink_to(outside)
    before = names(elsewhere)
    with pytest.raises(OutputError, match=rf"expected files and directories, got a link: {path};"):
        output.write(target, package(SECOND), force=force)
    if kept.exists():
        with pytest.raises(OutputError, match=rf"got a link: {path};"):
            check(target)
    assert (target / path).is_symlink()
    assert names(elsewhere) == before
    assert (elsewhere / "models.py").read_text() == "mine\n"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_package_behind_a_link_is_written_where_it_lies(target: Path, is_there: bool) -> None:
    link, place = target.with_name("link"), target if is_there else target.with_name("later")
    link.symlink_to(place)
    output.write(link, package(SECOND))
    assert link.readlink() == place
    assert check(link).edited == ()
    assert names(target.parent) == sorted({"link", "pkg", place.name})


def test_a_user_file_in_place_of_a_new_directory_is_kept(target: Path) -> None:
    (target / "r2").write_text("mine\n")
    with pytest.raises(OutputError, match="nothing was written: File exists: r2"):
        output.write(target, package(SECOND), force=True)
    assert (target / "r2").read_text() == "mine\n"
    assert names(target.parent) == ["pkg"]


@pytest.mark.parametrize("path", ["../out.py", "/out.py", "r1/../../out.py", ""])
def test_a_file_outside_of_the_directory_is_not_written(target: Path, path: str) -> None:
    with pytest.raises(OutputError, match="expected a relative path"):
        output.write(target, {path: "x\n", manifest.NAME: "{}"})
    assert names(target.parent) == ["pkg"]


OF_RUNS = {part: f".pkg.{MARK}.{part}" for part in ("new", "old")}
OF_OTHERS = [f".pkg.{MARK}.tmp", f".pkg2.{MARK}.new", ".pkg.mcpgen-mine.new"]


@pytest.mark.parametrize(
    ("left", "stay"),
    [
        ([OF_RUNS["new"]], []),
        ([OF_RUNS["old"]], []),
        ([*OF_RUNS.values()], [*OF_RUNS.values()]),  # the user restored the lost package
        (OF_OTHERS, OF_OTHERS),
    ],
    ids=["new", "old", "both", "of others"],
)
@pytest.mark.parametrize("files", [FIRST, SECOND], ids=["unchanged", "changed"])
def test_what_runs_that_died_left_is_removed_by_the_next(
    target: Path, lock: Path, left: list[str], stay: list[str], files: dict[str, str]
) -> None:
    lock.write_text("")
    for name in left:
        (target.parent / name).mkdir()
    output.write(target, package(files))
    assert names(target.parent) == sorted([*stay, "pkg"])


@pytest.mark.parametrize("is_check", [True, False])
def test_a_run_that_died_between_the_renames_is_undone(target: Path, is_check: bool) -> None:
    (target / "mine.py").write_text("x\n")
    target.rename(target.with_name(f".pkg.{MARK}.old"))
    target.with_name(OF_RUNS["new"]).mkdir()
    if is_check:
        assert check(target).edited == ()
    else:
        output.write(target, package(SECOND))
    folder = "r1" if is_check else "r2"
    assert names(target) == ["__init__.py", "mcpgen.json", "mine.py", folder]
    assert names(target.parent) == ["pkg"]


def test_a_link_is_no_package_of_a_run_that_died(target: Path, elsewhere: Path) -> None:
    shutil.rmtree(target)
    for name in OF_RUNS.values():
        (target.parent / name).symlink_to(elsewhere)
    output.write(target, package(SECOND))
    assert names(target.parent) == sorted([*OF_RUNS.values(), "pkg"])
    assert names(elsewhere) == ["models.py"]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_interrupt_at_any_rename_leaves_a_usable_package(
    target: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    rename, calls = Path.rename, 0

    def interrupted(self: Path, place: Path) -> Path:
        nonlocal calls
        calls += 1
        if failing == 3 and calls == 2:
            raise OSError
        if calls == failing:
            raise KeyboardInterrupt
        return rename(self, place)

    (target / "mine.py").write_text("x\n")
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.write(target, package(SECOND))
    monkeypatch.undo()
    if failing < 3:
        assert names(target.parent) == ["pkg"]
    output.write(target, package(SECOND))
    assert names(target) == ["__init__.py", "mcpgen.json", "mine.py", "r2"]
    assert names(target.parent) == ["pkg"]


@pytest.mark.parametrize(
    "run",
    [
        lambda target: output.write(target, package(SECOND)),
        lambda target: ((target / "mcpgen.json").unlink(), check(target)),
    ],
    ids=["write", "check of what is not up to date"],
)
def test_a_run_that_waits_too_long_names_the_locked_file(
    target: Path, lock: Path, set_limit: SetLimit, run: Callable[[Path], object]
) -> None:
    set_limit("mcpgen.package.directory.LOCK_SECONDS", 0.01)
    expected = r"another run of mcpgen has held \S*\.pkg\.mcpgen-lock for more than 0\.01 s"
    with filelock.FileLock(lock), pytest.raises(OutputError, match=expected):
        run(target)
    assert (target / "__init__.py").read_text() == "one = 1\n"


def test_a_lock_that_cannot_be_had_lets_nothing_be_written(
    target: Path, lock: Path, elsewhere: Path
) -> None:
    target.with_name(OF_RUNS["new"]).mkdir()
    lock.symlink_to(elsewhere / "made.txt")
    with pytest.raises(OutputError, match="nothing was written: "):
        output.write(target, package(SECOND))
    lock.unlink()
    lock.mkdir()  # as on a disk that can only be read
    with pytest.raises(OutputError, match="nothing was written: Is a directory"):
        output.write(target, package(SECOND))
    assert (target / "__init__.py").read_text() == "one = 1\n"
    assert names(target.parent) == [".pkg.mcpgen-0123abcd.new", ".pkg.mcpgen-lock", "pkg"]
    assert names(elsewhere) == ["models.py"]
    assert not output.write(target, package(FIRST)).changed  # needs no lock
    assert check(target).edited == ()
