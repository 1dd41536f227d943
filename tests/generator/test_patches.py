"""`mcpgen patch`: edits that last through later generations, and conflicts that lose nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run
from generator.selections import contents
from mcpgen import paths, schema
from mcpgen.errors import PatchError, UsageError
from mcpgen.package import manifest, patches, rendering
from mcpgen.package.patches import Patch

pytestmark = pytest.mark.costly

NEWEST, OLDEST = schema.latest().name, schema.revisions()[0].name
FOLDER = f"r{NEWEST.replace('-', '_')}"
MODELS = f"pkg/{FOLDER}/models.py"
PATCH = "pkg.patch"

DOCSTRING = ('"""Hints on how a client', '"""Our hints on how a client')
METHOD = (
    "class AudioContent(",
    (
        "    def is_for_users(self) -> bool:\n"
        '        """Whether the object is for users."""\n'
        '        return "user" in (self.audience or ())\n\n\nclass AudioContent('
    ),
)
BODY = ("if self.priority is not None and not 0", "if self.priority is not None and not 1")
EDITS = {
    "a docstring": (MODELS, DOCSTRING),
    "a method": (MODELS, METHOD),
    "a statement": (MODELS, BODY),
    "an import": (MODELS, ("from typing import ", "import os\nfrom typing import ")),
    "a copied module": ("pkg/_wire.py", ("def ", "def own() -> None: ...\n\n\ndef ")),
    "what is no module": ("pkg/py.typed", ("", "partial\n")),
    "the first line": (MODELS, ("#", "# ours\n#")),
}


@pytest.fixture(scope="module")
def types_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of types, generated once."""
    folder = tmp_path_factory.mktemp("written") / "pkg"
    assert run("-q", "-r", "latest", "--parts", "types", "-o", str(folder)).code == 0
    return folder


@pytest.fixture
def project(types_folder: Path, here: Path) -> Path:
    """A folder with that package, in which commands run."""
    shutil.copytree(types_folder, here / "pkg")
    return here


def edit(*edits: tuple[str, str], path: str = MODELS) -> None:
    """Edit a file by hand: old and new text each."""
    text = Path(path).read_text("utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    Path(path).write_text(text, "utf-8")


def keep(*edits: tuple[str, str]) -> None:
    """Edit a file by hand, and have the edits kept."""
    edit(*edits)
    assert run("-q", "patch", "pkg").code == 0


@pytest.mark.usefixtures("project")
def test_any_edit_lasts_through_another_generation() -> None:
    def texts() -> dict[str, str]:
        return {path: Path(path).read_text("utf-8") for path, _ in EDITS.values()}

    for path, change in EDITS.values():
        edit(change, path=path)
    edited = texts()
    assert run("-q", "patch", "pkg").code == 0
    assert texts() == edited
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")
    words = ("-q", "-r", "latest", "-r", OLDEST, "--parts", "types", "-o", "pkg")
    assert run(*words).code == 0
    for path, change in EDITS.values():
        assert change[1] in Path(path).read_text("utf-8")
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")
    assert run("-q", "update", "pkg", "--revision", "latest").code == 0
    assert texts() == edited


@pytest.mark.usefixtures("project")
def test_the_patch_is_a_unified_diff_that_the_manifest_names(snapshot: SnapshotAssertion) -> None:
    edit(DOCSTRING, METHOD)
    done = run("patch", "pkg")
    assert done.code == 0
    assert done.out == snapshot(name="summary")
    assert Path(PATCH).read_text("utf-8") == snapshot(name="file")
    report = json.loads(run("patch", "pkg", "--json").out)
    assert report == {"directory": "pkg", "file": PATCH, "hunks": {f"{FOLDER}/models.py": 2}}
    record = json.loads(Path("pkg", manifest.NAME).read_text("utf-8"))
    digest = manifest.file_fingerprint(Path(PATCH))
    assert record["patch"] == {"file": f"../{PATCH}", "digest": digest}


@pytest.mark.usefixtures("project")
def test_edits_that_are_undone_take_the_patch_away() -> None:
    before = contents(Path())
    assert run("patch", "pkg") == Done(0, "pkg: no edits\n", "")
    report = json.loads(run("patch", "pkg", "--json").out)
    assert report == {"directory": "pkg", "file": None, "hunks": {}}
    keep(DOCSTRING)
    edit((DOCSTRING[1], DOCSTRING[0]))
    assert run("patch", "pkg") == Done(0, "pkg: no edits\n", "")
    assert not Path(PATCH).exists()
    assert contents(Path()) == before
    keep(DOCSTRING)
    Path(PATCH).write_text("", "utf-8")  # an empty patch is as good as none
    assert run("-q", "update", "pkg").code == 0
    assert contents(Path())[MODELS] == before[MODELS]


@pytest.mark.usefixtures("project")
def test_edits_follow_a_module_to_the_revision_in_its_place() -> None:
    assert run("-q", "-r", OLDEST, "--parts", "types", "-o", "old").code == 0
    old = f"old/r{OLDEST.replace('-', '_')}/models.py"
    edit(("class Implementation(", "class Own:\n    pass\n\n\nclass Implementation("), path=old)
    run("-q", "patch", "old")
    done = run("update", "old", "--revision", NEWEST)
    assert f"old.patch: the edits of {old[4:]} go to {FOLDER}/models.py" in done.out
    assert f"{FOLDER}/models.py; mcpgen patch writes that down" in done.out
    assert "class Own:" in Path(f"old/{FOLDER}/models.py").read_text("utf-8")
    before = contents(Path("old"))
    assert run("patch", "old").out.startswith(f"{FOLDER}/models.py: 1 hunk\n")
    patch = Path("old.patch").read_text("utf-8")
    assert (f"+++ b/{FOLDER}/models.py" in patch, old[4:] in patch) == (True, False)
    after = contents(Path("old"))
    assert {path for path in after if after[path] != before[path]} == {"mcpgen.json"}
    assert run("check", "old").code == 0
    edit(("class Own:", "class Own2:"), path=f"old/{FOLDER}/models.py")
    run("-q", "patch", "old")
    assert f"+++ b/{FOLDER}/models.py" in Path("old.patch").read_text("utf-8")


@pytest.mark.usefixtures("project")
def test_a_conflict_shows_both_sides_and_writes_nothing(snapshot: SnapshotAssertion) -> None:
    keep(DOCSTRING, METHOD)
    edit(('-    """Hints', '-    """Earlier hints'), path=PATCH)  # as mcpgen wrote it then
    before = contents(Path())
    done = run("update", "pkg")
    assert done.code == 2
    assert done.err == snapshot
    assert contents(Path()) == before


@pytest.mark.usefixtures("project")
def test_check_sees_a_patch_that_changed_and_update_applies_it() -> None:
    keep(DOCSTRING)
    edit(("Our hints", "Their hints"), path=PATCH)
    done = run("check", "pkg")
    assert (done.code, done.out.splitlines()[0]) == (1, "the patch changed")
    assert json.loads(run("check", "pkg", "--json").out)["patch_changed"] is True
    assert "the patch changed: it is another one" in run("check", "pkg", "--format", "github").out
    assert run("-q", "update", "pkg").code == 0
    assert "Their hints" in Path(MODELS).read_text("utf-8")
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")


@pytest.mark.usefixtures("project")
def test_edits_of_a_file_that_is_left_out_stay_in_the_patch() -> None:
    keep(DOCSTRING)
    text = Path(PATCH).read_text("utf-8").replace(f"{FOLDER}/models.py", "rdraft/models.py")
    text += "--- a/gone.py\n+++ b/gone.py\n@@ -1 +1 @@\n-x\n+y\n"
    Path(PATCH).write_text(text, "utf-8")
    assert run("-q", "update", "pkg").code == 0
    assert run("-q", "patch", "pkg").code == 0
    assert Path(PATCH).read_text("utf-8") == text


@pytest.mark.usefixtures("project")
def test_a_patch_that_is_gone_is_asked_for() -> None:
    keep(DOCSTRING)
    Path(PATCH).rename("moved.patch")
    done = run("check", "pkg")
    assert (done.code, "is not there: name it with --patch FILE" in done.err) == (2, True)
    assert run("-q", "update", "pkg", "--patch", "moved.patch").code == 0
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")


@pytest.mark.usefixtures("project")
def test_the_settings_of_a_project_name_the_patch() -> None:
    keep(DOCSTRING)
    shutil.rmtree("pkg")
    settings = '[tool.mcpgen]\nrevisions = ["latest"]\nparts = ["types"]\noutput = "pkg"\n'
    Path("pyproject.toml").write_text(settings, "utf-8")
    assert run("-q").code == 0
    assert DOCSTRING[1] not in Path(MODELS).read_text("utf-8")
    Path("pyproject.toml").write_text(f'{settings}patch = "{PATCH}"\n', "utf-8")
    done = run("check")
    assert (done.code, done.out.splitlines()[-1]) == (1, "the settings changed: patch; run mcpgen")
    assert run("-q").code == 0
    assert DOCSTRING[1] in Path(MODELS).read_text("utf-8")
    assert run("check", "-q").code == 0


def change_record(**changes: Any) -> None:
    """Change the manifest, as an earlier mcpgen would have written it."""
    path = Path("pkg", manifest.NAME)
    record = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(record | changes | {"files": record["files"] | changes["files"]}))


def another_version() -> None:
    """Edit a file of a package, another of which an earlier mcpgen wrote."""
    edit(DOCSTRING)
    change_record(files={f"{FOLDER}/methods.py": "0" * 64})


def one_is_gone() -> None:
    """Edit a file where another one was removed."""
    edit(DOCSTRING)
    Path("pkg/_wire.py").unlink()


def another_patch() -> None:
    """Edit a file where another patch lies already."""
    edit(DOCSTRING)
    Path(PATCH).touch()


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a file that was removed": (
        lambda: Path(MODELS).unlink(),
        "models.py, which is not there: mcpgen update pkg",
    ),
    "a file that was removed beside an edit": (
        one_is_gone,
        "_wire.py, which is not there: mcpgen update pkg",
    ),
    "bytes that are no text": (
        lambda: Path(MODELS).write_bytes(b"\xff\xfe"),
        "models.py: expected text in UTF-8, got other bytes",
    ),
    "many bytes": (
        lambda: edit(("#", f"# {'x' * patches.MAX_BYTES}\n#")),
        f"expected edits of {patches.MAX_BYTES} bytes at most, got more",
    ),
    "another version": (
        another_version,
        f"edits alone, but {FOLDER}/methods.py would be written",
    ),
    "rules of before": (
        lambda: change_record(adopted={"file": "../pkg.adopted.toml", "digest": ""}, files={}),
        "mcpgen.json#/adopted: expected a patch in its place: ",
    ),
    "another patch": (
        another_patch,
        "pkg.patch: expected no patch that the package is made",
    ),
    "no package": (lambda: shutil.rmtree("pkg"), "pkg: expected a package of mcpgen's, got no "),
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("case", REFUSED)
def test_edits_that_no_patch_can_describe_are_refused(case: str) -> None:
    prepare, text = REFUSED[case]
    prepare()
    before = contents(Path())
    done = run("patch", "pkg")
    assert (done.code in (1, 2), text in done.err) == (True, True), done.err
    assert contents(Path()) == before


@pytest.mark.usefixtures("project")
def test_a_patch_can_lie_elsewhere_but_in_one_file_only() -> None:
    edit(DOCSTRING)
    assert "outside of the package" in run("patch", "pkg", "--patch", "pkg/own.patch").err
    assert "nothing was written" in run("patch", "pkg", "--patch", "none/own.patch").err
    assert run("-q", "patch", "pkg", "--patch", "own.patch").code == 0
    assert not Path(PATCH).exists()
    edit(BODY)
    done = run("patch", "pkg", "--patch", "others.patch")
    assert (done.code, "no other patch than own.patch" in done.err) == (2, True)
    assert run("-q", "patch", "pkg").code == 0
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")


@pytest.mark.usefixtures("project")
def test_a_patch_is_put_back_if_the_package_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edit(DOCSTRING)
    Path("pages").mkdir()
    Path("pages/a.txt").write_text("x\n")
    assert run("-q", "render", "pages", "-r", "latest", "-o", "out").code == 0
    Path("out/a.txt").write_text("mine\n")
    before = contents(Path())

    def refuse(path: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.rename", refuse)
    for name in ("pkg", "out"):
        done = run("patch", name)
        assert (done.code, "nothing was written" in done.err) == (2, True)
        assert not Path(f"{name}.patch").exists()
    assert {path: contents(Path()).get(path) for path in before} == before


def test_other_changes_of_a_rendered_directory_are_no_edits(here: Path) -> None:
    template, written = here / "pages" / "b.txt.jinja", here / "out" / "b.txt"
    template.parent.mkdir()
    for path in (template, template.with_name("a.txt")):
        path.write_text("x\n")
    assert run("-q", "render", "pages", "-r", "latest", "-o", "out").code == 0
    assert run("patch", "out").out == "out: no edits\n"
    (here / "out" / "a.txt").write_text("mine\n")
    expected = "expected a directory that differs by edits alone, but b.txt would be written"
    for path in (written, template):
        path.unlink()
        assert expected in run("patch", "out").err
        path.write_text("x\n")
    template.write_text("y\n")
    assert expected in run("patch", "out").err


@pytest.mark.usefixtures("project")
def test_a_distant_patch_is_written_only_if_it_is_named(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    far = tmp_path_factory.mktemp("far") / "own.patch"
    edit(DOCSTRING)
    assert run("-q", "patch", "pkg", "--patch", str(far)).code == 0
    edit(BODY)
    before = far.read_text("utf-8")
    done = run("patch", "pkg")
    assert (done.code, "which only its mcpgen.json names: name it with " in done.err) == (2, True)
    assert far.read_text("utf-8") == before
    done = run("patch", "pkg", "--patch", str(far))
    assert done.out == f"{FOLDER}/models.py: 2 hunks\n{far}: 1 file; commit it with the package\n"
    assert far.read_text("utf-8") != before
    assert [path.name for path in far.parent.iterdir()] == ["own.patch"]


LINES = st.lists(st.sampled_from(("a", "b", "c", "- d", "+ e", "--- f", "@@ g", "", "\xe9\x0c")))
TEXTS = st.tuples(LINES, st.booleans()).map(lambda each: "\n".join(each[0]) + "\n" * each[1])


def apply(patch: str, now: str, report: Callable[[str], None] = pytest.fail) -> str:
    """A module after the hunks of a patch."""
    return patches.apply_patch(
        Patch.of(Path("pkg.patch"), Path("pkg"), patch), {"m.py": now}, report
    )["m.py"]


def difference(before: str, after: str) -> str:
    """A patch of one module."""
    return patches.difference({"m.py": before}, {"m.py": after})


@given(TEXTS.filter(bool), TEXTS)
def test_a_patch_gives_the_edited_text_again(before: str, after: str) -> None:
    assert apply(difference(before, after), before) == after


@pytest.mark.parametrize(
    ("patched", "now", "goes_there"),
    [
        ("r2025_06_18/models.py", "r2025_11_25/models.py", True),
        ("rdraft/models.py", "r2026_07_28/models.py", True),
        ("r2025_06_18/models.py", "r2025_11_25/client.py", False),
        ("r2025_06_18/tasks.py", "runtime/tasks.py", False),
        ("old.py", "revisions.py", False),
    ],
)
def test_edits_go_to_the_same_module_of_another_revision(
    patched: str, now: str, goes_there: bool
) -> None:
    change = patches.difference({patched: "old\n"}, {patched: "new\n"})
    patch = Patch.of(Path("pkg.patch"), Path("pkg"), change)
    notes: list[str] = []
    files = patches.apply_patch(patch, {now: "old\n"}, notes.append)
    assert files == {now: "new\n" if goes_there else "old\n"}
    assert ("no effect" in notes[0]) is not goes_there


NUMBERED = "".join(f"line {number}\n" for number in range(200))


@pytest.mark.parametrize(
    ("now", "conflict"),
    [
        (NUMBERED.replace("line 50\n", "other\n"), "fits nowhere"),
        (NUMBERED.replace("line 49\n", ""), "fits nowhere"),
        (NUMBERED + NUMBERED, "fits several places"),
        (NUMBERED.replace("line 48\nline 49\n", "line 4.8\nline 49\n"), ""),
        (NUMBERED + "same\n" * 100, ""),
    ],
    ids=["itself", "a neighbour is gone", "twice", "context changed", "more below"],
)
def test_a_hunk_goes_where_its_own_lines_stand_once(now: str, conflict: str) -> None:
    mine = NUMBERED.replace("line 50\n", "mine\n").replace("line 150\n", "line 150\nmore\n")
    patch = difference(NUMBERED, mine)
    if not conflict:
        expected = now.replace("line 50\n", "mine\n").replace("line 150\n", "line 150\nmore\n")
        assert apply(patch, now) == expected
        return
    with pytest.raises(PatchError) as caught:
        apply(patch, now)
    assert f"m.py: the hunk for line 48 {conflict}\n<<<<<<< " in caught.value.details


@pytest.mark.parametrize(
    ("edited", "changed", "fits"),
    [
        *((0, 2, True), (0, 3, True), (0, 1, False), (1, 0, False), (1, 3, True), (1, 2, False)),
        *((9, 7, True), (9, 6, True), (9, 8, False), (8, 9, False), (8, 6, True), (8, 7, False)),
    ],
)
def test_a_hunk_at_either_end_needs_its_neighbours(edited: int, changed: int, fits: bool) -> None:
    before = "".join(f"{number}\n" for number in range(10))
    now = before.replace(f"{changed}\n", "theirs\n")
    patch = difference(before, before.replace(f"{edited}\n", "mine\n"))
    if fits:
        assert apply(patch, now) == now.replace(f"{edited}\n", "mine\n")
    else:
        with pytest.raises(PatchError, match="fit one place"):
            apply(patch, now)


@pytest.mark.parametrize(("lines", "middle"), [("bcxdef", "cxd"), ("fedxcb", "dxc")])
def test_no_more_context_is_left_out_than_has_to_be(lines: str, middle: str) -> None:
    before, more = ("".join(f"{line}\n" for line in each) for each in (lines, f"q{middle}q"))
    now = before.replace("b", "other") + more
    patch = difference(before, before.replace("x", "mine"))
    assert apply(patch, now) == now.replace("x", "mine", 1)


@pytest.mark.parametrize(
    ("distance", "context"),
    [(3, 3), (4, 6), (6, 6), (7, 12), (12, 12), (13, 25), (25, 25), (26, 50), (50, 50), (51, 251)],
)
def test_a_hunk_among_equal_lines_has_the_context_that_makes_it_unique(
    distance: int, context: int
) -> None:
    before = "x\n" * 200 + "mark\n" + "x\n" * 200
    after = before.splitlines(keepends=True)
    after[200 + distance] = "y\n"
    patch = difference(before, "".join(after))
    assert sum(line.startswith(" ") for line in patch.splitlines()) == context
    assert apply(patch, before) == "".join(after)


def test_a_conflict_shows_some_lines_of_each_side_and_counts_all() -> None:
    lines = NUMBERED.splitlines(keepends=True)[:60]
    with pytest.raises(PatchError) as caught:
        apply(difference("".join(lines), "".join(lines[-3:])), "other\n")
    details = caught.value.details
    assert "\n... 20 more lines\n" in details
    assert details.endswith("\n======= as mcpgen writes it now\nother\n>>>>>>>")
    hunks = "".join(f"@@ -1 +1 @@\n-{number}\n+y\n" for number in range(patches.MAX_HUNKS))
    with pytest.raises(PatchError, match=f", got {patches.MAX_HUNKS} in conflict") as caught:
        apply(f"--- a/m.py\n+++ b/m.py\n{hunks}", "x\n")
    with pytest.raises(PatchError, match="fit one place"):
        apply(difference("\n\n", "\n\n!\n"), "\n\n\n")
    assert caught.value.details.count("<<<<<<<") == 10
    assert caught.value.details.endswith(f"\n... {patches.MAX_HUNKS - 10} more conflicts")


HEAD = "--- a/m.py\n+++ b/m.py\n"
LONG = f"{HEAD}@@ -1,99999 +1,99999 @@\n%s-x\n+y\n"
HOSTILE = {
    LONG.replace("99999", "100000") % (" x\n" * 99_999): "hunks of 100000 lines at most",
    "hello\n": "a unified diff, got another text",
    "--- /dev/null\n+++ b/m.py\n@@ -0,0 +1 @@\n+x\n": "changes of files alone, got another one",
    "--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n": "changes of files alone, got another one",
    f"{HEAD}@@ -1,9 +1,9 @@\n-x\n+y\n": "a unified diff, got Hunk is ",
    HEAD + "@@ -1 +1 @@\n-x\n+y\n" * (patches.MAX_HUNKS + 1): "at most 2000 hunks, got more",
}


@pytest.mark.parametrize(("text", "expected"), HOSTILE.items(), ids=HOSTILE.values())
def test_a_hostile_patch_is_refused_in_one_short_line(text: str, expected: str) -> None:
    with pytest.raises(PatchError, match=f"^[^\n]*: expected {expected}[^\n]*$") as caught:
        apply(text, "x\n")
    assert len(str(caught.value)) < 400


def test_a_patch_of_100000_lines_is_applied() -> None:
    assert apply(LONG % (" x\n" * 99_998), "x\n" * 99_999) == "x\n" * 99_998 + "y\n"


def test_a_patch_of_many_bytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.patch"
    path.write_bytes(b"x" * 1_048_576)
    assert len(patches.read(path, tmp_path).text) == 1_048_576
    path.write_bytes(b"x" * 1_048_577)
    with pytest.raises(PatchError, match="bytes at most, got a larger one"):
        patches.read(path, tmp_path)
    with pytest.raises(UsageError, match="expected a patch, got no file"):
        patches.read(tmp_path, tmp_path)


def test_a_patch_and_a_check_find_the_revisions_of_the_project(here: Path) -> None:
    (here / "draft.json").write_text(run("export", OLDEST).out)
    added = ("schema", "add", "draft.json", "--revision", "2030-01-01", "--schemas", "own")
    assert run(*added).code == 0
    (here / "pages").mkdir()
    (here / "pages" / "a.txt.jinja").write_text("{{ revision.name }}\n")
    (here / "pyproject.toml").write_text(
        '[tool.mcpgen]\nschemas_dir = "own"\n'
        '[[tool.mcpgen.packages]]\nrevisions = ["2030-01-01"]\nparts = ["types"]\noutput = "pkg"\n'
        '[[tool.mcpgen.render]]\ntemplates = "pages"\noutput = "out"\nrevisions = ["2030-01-01"]\n'
    )
    assert run("-q").code == 0
    for place, file in (("pkg", "r2030_01_01/methods.py"), ("out", "a.txt")):
        path = here / place / file
        path.write_text(f"{path.read_text()}# mine\n")
        done = run("patch", place)
        assert (done.code, done.out.splitlines()[0]) == (0, f"{file}: 1 hunk"), done.err
        assert run("check", place) == (0, f"{place}: up to date\n", "")
        assert run("update", "-q", place).code == 0
    with paths.own_schemas(here / "own"):
        assert rendering.inputs(Path("out"))[-1] == here / "out.patch"
    (here / "pyproject.toml").unlink()
    assert "--schemas DIR names a folder" in run("patch", "pkg").err
