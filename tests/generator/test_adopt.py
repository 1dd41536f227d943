"""`mcpgen adopt`: rules that last through later generations, and packages that stay as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run
from mcpgen import schema
from mcpgen.package import manifest

NEWEST = schema.latest().name
FOLDER = f"r{NEWEST.replace('-', '_')}"
MODELS = f"pkg/{FOLDER}/models.py"
RULES = "pkg.adopted.toml"

DOCSTRING = ('"""Hints on how a client', '"""Our hints on how a client')
DEFAULT = ("    audience: list[Role] | None = None", "    audience: list[Role] | None = UNSET")
METHOD = (
    "class AudioContent(",
    (
        "    def is_for_users(self) -> bool:\n"
        '        """Whether the object is for users."""\n'
        '        return "user" in (self.audience or ())\n\n\nclass AudioContent('
    ),
)
RENAMED = ("    last_modified: str | None = field(name", "    modified: str | None = field(name")
BODY = ("if self.priority is not None and not 0", "if self.priority is not None and not 1")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of types, generated once."""
    folder = tmp_path_factory.mktemp("written") / "pkg"
    assert run("-q", "-r", "latest", "--parts", "types", "-o", str(folder)).code == 0
    return folder


@pytest.fixture(autouse=True)
def project(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with that package, in which commands run."""
    shutil.copytree(written, tmp_path / "pkg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(*edits: tuple[str, str], path: str = MODELS) -> None:
    """Edit a file by hand: old and new text each."""
    text = Path(path).read_text("utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    Path(path).write_text(text, "utf-8")


def texts(folder: str = "pkg") -> dict[str, str]:
    """The text of every file."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path): path.read_text("utf-8") for path in files}


def expect_current() -> None:
    """The package is what mcpgen writes."""
    assert run("check", "pkg") == Done(0, "pkg: up to date\n", "")


@pytest.mark.parametrize(
    "change", [DOCSTRING, DEFAULT, METHOD], ids=["docstring", "default", "method"]
)
def test_an_adopted_edit_lasts_through_another_generation(change: tuple[str, str]) -> None:
    edit(change)
    before = Path(MODELS).read_text("utf-8")
    assert run("adopt", "pkg").code == 0
    assert Path(MODELS).read_text("utf-8").split() == before.split()
    expect_current()
    oldest = schema.revisions()[0].name
    words = ("-q", "-r", "latest", "-r", oldest, "--parts", "types", "-o", "pkg")
    assert run(*words).code == 0
    for line in change[1].splitlines()[:-1] or [change[1]]:
        assert line in Path(MODELS).read_text("utf-8")
    expect_current()
    assert run("-q", "update", "pkg", "--revision", "latest").code == 0
    assert Path(MODELS).read_text("utf-8").split() == before.split()


def test_the_adopted_rules_are_told_and_kept_in_a_file(snapshot: SnapshotAssertion) -> None:
    edit(DOCSTRING, DEFAULT, METHOD)
    done = run("adopt", "pkg")
    assert done.code == 0
    assert done.out == snapshot(name="told")
    assert Path(RULES).read_text("utf-8") == snapshot(name="file")
    record = json.loads(Path("pkg", manifest.NAME).read_text("utf-8"))
    digest = manifest.file_fingerprint(Path(RULES))
    assert record["adopted"] == {"file": f"../{RULES}", "digest": digest}


def test_adopting_again_adds_rules_and_keeps_what_a_person_wrote() -> None:
    edit(DOCSTRING, METHOD)
    run("-q", "adopt", "pkg")
    edit(("[rules.Annotations-docstring]", "# a remark\n[rules.ours]"), path=RULES)
    assert run("-q", "update", "pkg").code == 0
    edit(("Our hints", "Your hints"), DEFAULT)
    assert run("-q", "adopt", "pkg").code == 0
    text = Path(RULES).read_text("utf-8")
    assert "# a remark\n[rules.ours]\n" in text
    assert text.count("[rules.") == 4
    assert "Your hints" in Path(MODELS).read_text("utf-8")
    expect_current()


def test_a_rename_is_adopted_where_nothing_uses_the_name() -> None:
    edit(RENAMED)
    done = run("adopt", "pkg")
    assert done.code == 0
    assert "adopted: Annotations-last_modified-rename: renaming of" in done.out
    assert RENAMED[1] in Path(MODELS).read_text("utf-8")
    expect_current()


def test_nothing_is_written_if_an_edit_becomes_no_rule(snapshot: SnapshotAssertion) -> None:
    edit(DOCSTRING, BODY)
    edit(("def ", "def  "), path="pkg/_wire.py")
    Path("pkg/py.typed").write_text("partial\n", "utf-8")
    before = texts()
    done = run("adopt", "pkg")
    assert done.code == 1
    assert done.out == snapshot
    assert texts() == before
    assert not Path(RULES).exists()


def test_partial_adopts_the_rest_and_leaves_refused_edits(
    snapshot: SnapshotAssertion,
) -> None:
    edit(DOCSTRING, METHOD, BODY)
    edit(("The methods and facts", "All methods and facts"), path=f"pkg/{FOLDER}/methods.py")
    before = Path(MODELS).read_text("utf-8")
    done = run("adopt", "pkg", "--partial")
    assert done.code == 1
    assert done.out == snapshot
    assert Path(MODELS).read_text("utf-8") == before
    check = run("check", "pkg")
    assert check.out.startswith(f"edited by hand: {FOLDER}/models.py\n")
    changed = [line for line in check.out.splitlines() if line.startswith(("+ ", "- "))]
    assert len(changed) == 2
    assert "def is_for_users" not in "\n".join(changed)
    edit((BODY[1], BODY[0]))
    assert run("adopt", "pkg").code == 0
    expect_current()


def test_partial_writes_nothing_if_no_edit_becomes_a_rule() -> None:
    edit(BODY)
    before = texts()
    assert run("adopt", "pkg", "--partial").code == 1
    assert texts() == before


def test_a_file_that_was_removed_is_refused() -> None:
    Path(MODELS).unlink()
    done = run("adopt", "pkg")
    assert done.code == 1
    assert f"refused: {FOLDER}/models.py: the file: was removed;" in done.out


def test_a_package_without_edits_has_nothing_to_adopt() -> None:
    before = texts()
    assert run("adopt", "pkg") == Done(0, "pkg: no edits to adopt\n", "")
    assert texts() == before
    assert "adopted" not in json.loads(Path("pkg", manifest.NAME).read_text("utf-8"))


def test_an_edited_layout_is_undone() -> None:
    before = texts()
    edit(("    audience: list[Role] | None = None", "    audience: (list[Role] | None) = None"))
    done = run("adopt", "pkg")
    assert done == Done(0, "pkg: only its layout was edited; it was written as before\n", "")
    assert texts() == before
    assert not Path(RULES).exists()


def test_a_docstring_that_cannot_be_written_as_it_is_is_refused() -> None:
    edit(
        ('"""Hints on how', "'''Hints \"\"\" on how"),
        ('mere claims.\n\n    Source: server/resources.\n    """', "mere claims.'''"),
    )
    done = run("adopt", "pkg")
    assert done.code == 1
    assert "docstring of Annotations: the rule would not give the same text;" in done.out


def test_a_package_with_other_changes_than_edits_is_refused() -> None:
    edit(DOCSTRING)
    path = Path("pkg", manifest.NAME)
    record = json.loads(path.read_text("utf-8"))
    record["files"][f"{FOLDER}/methods.py"] = "0" * 64  # as an earlier mcpgen would have written it
    path.write_text(json.dumps(record), "utf-8")
    done = run("adopt", "pkg")
    assert done.code == 2
    assert f"that differs by edits alone, but {FOLDER}/methods.py would be" in done.err


def test_a_directory_without_a_package_is_refused() -> None:
    Path("other").mkdir()
    done = run("adopt", "other")
    assert (done.code, done.err) == (
        1,
        "mcpgen: error: other: expected a package of mcpgen's, got no mcpgen.json\n",
    )


def test_bytes_that_are_no_text_are_refused() -> None:
    Path(MODELS).write_bytes(b"\xff\xfe")
    done = run("adopt", "pkg")
    assert done.code == 1
    assert f"{FOLDER}/models.py: expected text in UTF-8, got other bytes" in done.err


def test_the_rules_can_lie_elsewhere_but_in_one_file_only() -> None:
    edit(DOCSTRING)
    assert "outside of the package" in run("adopt", "pkg", "--adopted", "pkg/rules.toml").err
    assert run("-q", "adopt", "pkg", "--adopted", "rules.toml").code == 0
    assert not Path(RULES).exists()
    edit(DEFAULT)
    done = run("adopt", "pkg", "--adopted", "others.toml")
    assert (done.code, "no other file of rules than rules.toml" in done.err) == (2, True)
    assert run("-q", "adopt", "pkg").code == 0
    assert Path("rules.toml").read_text("utf-8").count("[rules.") == 2


def test_rules_the_package_was_made_without_are_not_mixed_in() -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    shutil.rmtree("pkg")
    run("-q", "-r", "latest", "--parts", "types", "-o", "pkg")
    edit(DEFAULT)
    done = run("adopt", "pkg")
    assert (done.code, "expected no rules that the package is made without" in done.err) == (
        2,
        True,
    )
    assert run("-q", "update", "pkg", "--force", "--adopted", RULES).code == 0
    assert DOCSTRING[1] in Path(MODELS).read_text("utf-8")
    assert DEFAULT[1] not in Path(MODELS).read_text("utf-8")


def test_check_sees_rules_edited_by_hand_and_update_applies_them() -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    edit(("Our hints", "Their hints"), path=RULES)
    done = run("check", "pkg")
    assert (done.code, done.out.splitlines()[0]) == (1, "the adopted rules changed")
    assert json.loads(run("check", "pkg", "--json").out)["adopted_changed"] is True
    assert run("-q", "update", "pkg").code == 0
    assert "Their hints" in Path(MODELS).read_text("utf-8")
    expect_current()


def test_an_outdated_rule_stops_a_generation_and_changes_nothing(
    snapshot: SnapshotAssertion,
) -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    edit(("\nHints", "\nOther hints"), path=RULES)
    before = texts()
    done = run("update", "pkg")
    assert done.code == 1
    assert done.err.splitlines()[-1] == snapshot
    assert texts() == before


def test_a_rule_for_a_module_that_is_left_out_is_told() -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    oldest = schema.revisions()[0].name
    done = run("update", "pkg", "--revision", oldest)
    line = f"adopted: {RULES}: Annotations-docstring has no effect: the package has no {FOLDER}/"
    assert line in done.out
    expect_current()


def test_rules_that_are_gone_are_asked_for() -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    Path(RULES).rename("moved.toml")
    done = run("check", "pkg")
    assert (done.code, "which are not there: name them with --adopted FILE" in done.err) == (
        2,
        True,
    )
    assert run("-q", "update", "pkg", "--adopted", "moved.toml").code == 0
    expect_current()


def test_an_empty_file_of_rules_is_as_good_as_none() -> None:
    before = texts()
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    Path(RULES).write_text("", "utf-8")
    assert run("-q", "update", "pkg").code == 0
    assert texts()[MODELS] == before[MODELS]


def test_the_settings_of_a_project_name_the_rules() -> None:
    edit(DOCSTRING)
    run("-q", "adopt", "pkg")
    shutil.rmtree("pkg")
    settings = '[tool.mcpgen]\nrevisions = ["latest"]\nparts = ["types"]\noutput = "pkg"\n'
    Path("pyproject.toml").write_text(settings, "utf-8")
    assert run("-q").code == 0
    assert DOCSTRING[1] not in Path(MODELS).read_text("utf-8")
    Path("pyproject.toml").write_text(f'{settings}adopted = "{RULES}"\n', "utf-8")
    done = run("check")
    assert (done.code, done.out.splitlines()[-1]) == (
        1,
        "the settings changed: adopted; run mcpgen",
    )
    assert run("-q").code == 0
    assert DOCSTRING[1] in Path(MODELS).read_text("utf-8")
    assert run("check", "-q").code == 0


def test_the_result_is_read_by_programs_too() -> None:
    edit(DOCSTRING, BODY)
    result = json.loads(run("adopt", "pkg", "--json").out)
    assert (result["adopted"], result["file"]) == ([], None)
    assert [each["what"] for each in result["refused"]] == ["Annotations.__post_init__"]
    result = json.loads(run("adopt", "pkg", "--partial", "--json").out)
    assert [each["name"] for each in result["adopted"]] == ["Annotations-docstring"]


def test_rules_are_put_back_if_the_package_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edit(DOCSTRING)
    before = texts()
    monkeypatch.setattr("pathlib.Path.rename", _refused)
    done = run("adopt", "pkg")
    assert (done.code, "nothing was written" in done.err) == (1, True)
    assert {path: texts().get(path) for path in before} == before
    assert not Path(RULES).exists()


def _refused(path: Path, target: Path) -> Path:
    raise PermissionError(13, "Permission denied")


def test_a_client_method_is_adopted_among_similar_neighbours() -> None:
    words = ("-q", "-r", "latest", "--parts", "client", "--transport", "stdio", "-o", "peer")
    assert run(*words).code == 0
    client = f"peer/{FOLDER}/client.py"
    method = "    @property\n    def is_ours(self) -> bool: ...\n\n    async def list_tools("
    edit(("    async def list_tools(", method), path=client)
    edit(("timeout: float | None = None", "timeout: float | None = 30.0"), path=client)
    assert run("-q", "adopt", "peer").code == 0
    assert run("-q", "check", "peer").code == 0
    edit(("def is_ours(self) -> bool: ...", "def is_ours(self) -> bool: return True"), path=client)
    done = run("adopt", "peer")
    assert "Client.is_ours: an edit within its body; change its rule instead" in done.out
    edit(("def is_ours(self) -> bool: return True", "def is_ours(self) -> bool: ..."), path=client)
    edit(("async def list_tools(", "async def tools("), path=client)
    done = run("adopt", "peer")
    assert done.code == 1
    assert "Client.list_tools, renamed to tools: " in done.out
