"""The directory of a package: one run at a time, no links inside, no folders of dead runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from kit.limits import SetLimit
from mcpgen.errors import OutputError
from mcpgen.package import directory, manifest, output
from mcpgen.package.check import check

pytestmark = pytest.mark.lengthy

FIRST = {"__init__.py": "one = 1\n", "r1/models.py": "class A: ...\n"}
SECOND = {"__init__.py": "one = 2\n", "r2/models.py": "class B: ...\n"}
MARK = "mcpgen-0123abcd"


def package(files: dict[str, str]) -> dict[str, str]:
    """Files with the manifest that belongs to them."""
    record = manifest.new("pkg", manifest.Options(errata=True), {}, files)
    return {**files, manifest.NAME: record.text()}


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


def left_over(target: Path, part: str) -> Path:
    """A folder beside the target as a run leaves it that is killed."""
    folder = target.with_name(f".{target.name}.{MARK}.{part}")
    folder.mkdir()
    (folder / "part.py").write_text(f"{part}\n")
    return folder


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


def test_the_texts_of_a_package_are_those_of_its_manifest(target: Path, elsewhere: Path) -> None:
    (target / "mine.py").write_text("x\n")
    assert directory.texts(target) == FIRST
    assert directory.texts(elsewhere) == {}


def test_a_user_file_in_place_of_a_new_directory_is_kept(target: Path) -> None:
    (target / "r2").write_text("mine\n")
    with pytest.raises(OutputError, match="nothing was written: File exists: r2"):
        output.write(target, package(SECOND), force=True)
    assert (target / "r2").read_text() == "mine\n"
    assert names(target.parent) == ["pkg"]


def test_links_of_the_user_stay_where_mcpgen_has_no_file(target: Path, elsewhere: Path) -> None:
    (target / "own").symlink_to(elsewhere)
    (target / "r1" / "own.py").symlink_to("nowhere")
    output.write(target, package(SECOND))
    assert (target / "own").readlink() == elsewhere
    assert (target / "r1" / "own.py").readlink() == Path("nowhere")
    assert check(target).edited == ()


@pytest.mark.parametrize("path", ["../out.py", "/out.py", "r1/../../out.py", "", "a\\b.py"])
def test_a_file_outside_of_the_directory_is_not_written(target: Path, path: str) -> None:
    with pytest.raises(OutputError, match="expected a relative path"):
        output.write(target, {path: "x\n", manifest.NAME: "{}"})
    assert names(target.parent) == ["pkg"]


@pytest.mark.parametrize("parts", [["new"], ["old"]])
@pytest.mark.parametrize("files", [FIRST, SECOND], ids=["unchanged", "changed"])
def test_what_runs_that_died_left_is_removed_by_the_next(
    target: Path, lock: Path, parts: list[str], files: dict[str, str]
) -> None:
    lock.write_text("")
    for part in parts:
        left_over(target, part)
    output.write(target, package(files))
    assert names(target.parent) == ["pkg"]


@pytest.mark.parametrize("is_check", [True, False])
def test_a_run_that_died_between_the_renames_is_undone(target: Path, is_check: bool) -> None:
    (target / "mine.py").write_text("x\n")
    target.rename(target.with_name(f".pkg.{MARK}.old"))
    left_over(target, "new")
    if is_check:
        assert check(target).edited == ()
    else:
        output.write(target, package(SECOND))
    folder = "r1" if is_check else "r2"
    assert names(target) == ["__init__.py", "mcpgen.json", "mine.py", folder]
    assert names(target.parent) == ["pkg"]


def test_folders_of_other_packages_and_of_the_user_stay(target: Path, elsewhere: Path) -> None:
    others = [".pkg.mcpgen-0123abcd.tmp", ".pkg2.mcpgen-0123abcd.new", ".pkg.mcpgen-mine.new"]
    for name in others:
        (target.parent / name).mkdir()
    (target.parent / f".pkg.{MARK}.new").symlink_to(elsewhere)
    output.write(target, package(SECOND))
    assert names(target.parent) == sorted([*others, f".pkg.{MARK}.new", "pkg"])
    assert names(elsewhere) == ["models.py"]


def test_a_link_is_no_package_of_a_run_that_died(target: Path, elsewhere: Path) -> None:
    shutil.rmtree(target)
    left_over(target, "new")
    target.with_name(f".pkg.{MARK}.old").symlink_to(elsewhere)
    output.write(target, package(SECOND))
    assert names(target.parent) == [f".pkg.{MARK}.old", "pkg"]
    assert names(elsewhere) == ["models.py"]


def test_both_packages_stay_if_the_user_restored_the_lost_one(target: Path) -> None:
    left_over(target, "old")
    left_over(target, "new")
    output.write(target, package(SECOND))
    assert names(target.parent) == [f".pkg.{MARK}.new", f".pkg.{MARK}.old", "pkg"]


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
    left_over(target, "new")
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


WRITER = """
import sys
from pathlib import Path
from mcpgen.package import manifest, output

for number in range(8):
    files = {f"m{name}.py": f"{sys.argv[2]} {number}\\n" for name in range(8)}
    record = manifest.new("pkg", manifest.Options(errata=True), {}, files)
    output.expect_own(Path(sys.argv[1]))
    output.write(Path(sys.argv[1]), {**files, manifest.NAME: record.text()})
"""


def test_several_runs_at_once_write_one_after_another(target: Path, root: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target), str(number)],
            env={**os.environ, "PYTHONPATH": str(root / "generator")},
            stderr=subprocess.PIPE,
        )
        for number in range(4)
    ]
    assert [writer.communicate()[1] for writer in writers] == [b""] * 4
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len({path.read_text() for path in target.glob("*.py")}) == 1
    assert check(target).edited == ()
    assert names(target.parent) == ["pkg"]
