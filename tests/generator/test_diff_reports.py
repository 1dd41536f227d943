"""The reports of `mcpgen diff`, its options and its exit codes."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from conventions.sources import ROOT
from generator.command_line import run, run_python
from generator.diff_schemas import definitions, facts_with, protocol
from generator.schemas import TEXT, any_of, const, obj, ref
from kit.terminal import Terminal
from mcpgen import cli, diff, schema
from mcpgen.diff import page, report

EVIL = "\x1b[31m<b>|`*\u202e</script>"
FORMS = {
    "text": report.text,
    "markdown": report.markdown,
    "json": report.json_text,
    "html": page.html,
}
NEW = {
    "PaintRequestParams": obj("color size", color={"enum": ["red", "blue"]}, size=ref("Size")),
    "Size": obj("", width={"type": "integer", "minimum": 1}),
    "PaintResult": obj("", area={"type": "number"}),
    "DryNotification": None,
    "ClientNotification": None,
    "ServerRequest": any_of("AskRequest"),
    "AskRequest": obj("method", method=const("user/ask")),
    "AskResult": obj("", text=TEXT),
}


@pytest.fixture(scope="module")
def small() -> diff.Diff:
    """A comparison with changes of every severity, both directions and a fact."""
    return diff.compare(protocol("A"), protocol("B", facts_with("http", resumable=True), **NEW))


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Schema files of a tiny protocol and of a changed one."""
    paths = tmp_path / "a.json", tmp_path / "b.json"
    for path, changed in zip(paths, ({}, NEW), strict=True):
        base = {**definitions(**changed), "ServerResult": any_of("PaintResult")}
        path.write_text(json.dumps({"$defs": base}), "utf-8")
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize("form", FORMS)
def test_a_report_shows_every_change(
    form: str, small: diff.Diff, snapshot: SnapshotAssertion
) -> None:
    text = FORMS[form](small)
    without_style = text.partition("<body>")[2].partition("<script>")[0] or text
    assert without_style == snapshot


@pytest.mark.parametrize("form", FORMS)
def test_a_comparison_without_changes_has_a_report_too(form: str) -> None:
    assert "breaking" in FORMS[form](diff.compare(protocol("A"), protocol("B")))


@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_of_a_schema_stays_text(form: str) -> None:
    changed = obj("", color=TEXT, kind={"enum": [EVIL, "b"]})
    other = obj("", color=TEXT, kind={"enum": ["a", "b"]})
    one = protocol(f"A{EVIL}", PaintRequestParams=changed)
    comparison = diff.compare(one, protocol(f"B{EVIL}", PaintRequestParams=other))
    assert [change for change in comparison.changes if "<b>" in change.old]
    text = FORMS[form](comparison)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    if form in ("html", "markdown"):
        assert "<b>" not in text.replace('<b class="', "")
    if form == "html":
        assert text.count("</script>") == 1


def test_the_page_shows_every_change_and_needs_no_other_file(small: diff.Diff) -> None:
    text = page.html(small)
    assert text.count('class="change"') == len(small.changes)
    assert not re.search(r"\s(src|href)=|url\(|@import", text)


@pytest.mark.parametrize(
    "words",
    [
        "--fail-on never --affects client",
        "--fail-on warning --affects server-receives --affects client-sends --format markdown",
        "--fail-on breaking --affects server --format html",
        "--fail-on any --severity ALL=compatible --severity VALUE=ignore --format github",
        "--fail-on breaking --severity ALL=warning --affects client-sends",
        "--fail-on warning --severity ALL=warning --affects client-sends",
        "--fail-on warning --severity ALL=compatible --severity field=Breaking --json",
        "--fail-on breaking --severity METHOD_ADDED=breaking --severity FIELD=ignore",
    ],
)
@pytest.mark.usefixtures("files", "here")
def test_what_is_shown_and_the_exit_code_are_as_asked_for(
    words: str, snapshot: SnapshotAssertion
) -> None:
    done = run("diff", "a.json", "b.json", *words.split())
    without_style = done.out.partition("<main>")[2].partition("<script>")[0] or done.out
    assert (done.code, without_style, done.err) == snapshot
    assert run("diff", "a.json", "a.json", *words.split()).code == 0


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_report_is_written_to_a_file(form: str, files: tuple[str, str], tmp_path: Path) -> None:
    target, words = tmp_path / "report", ("diff", *files, "--format", form)
    shown = run(*words).out
    assert run(*words, "-o", target).out.startswith(f"{target}: ")
    assert shown == target.read_text("utf-8")
    assert run(*words, "-o", tmp_path / "no" / "file").code == 2


@pytest.mark.parametrize(("form", "most"), [("text", 200), ("markdown", 200), ("html", 300)])
def test_long_texts_of_a_schema_are_cut(form: str, most: int) -> None:
    long: dict[str, Any] = {"PaintRequestParams": obj("", **{"x" * 1000: TEXT})}
    comparison = diff.compare(protocol("x" * 1000), protocol("B", **long))
    text = FORMS[form](comparison)
    assert "x..." in text
    assert "x" * (most + 1) not in text
    (added,) = [each for each in report.report_of(comparison, "").findings if "x" in each.text]
    assert len(added.text) == 403


def test_a_terminal_shows_the_head_bold_and_rules_in_colours(files: tuple[str, str]) -> None:
    old, new = files
    with redirect_stdout(Terminal()) as shown, pytest.raises(SystemExit):
        cli.main(["diff", old, new])
    text = shown.getvalue()
    assert text.startswith(f"\x1b[1m{old} -> {new}: ")
    heads = dict(
        re.findall("^\x1b\\[([0-9]+)m\x1b\\[1m([a-z]+)\x1b\\[0m [A-Z]", text, re.MULTILINE)
    )
    assert heads == {"31": "breaking", "32": "compatible"}
    assert text.count("\x1b[1m") == 1 + len(re.findall("^\x1b\\[3", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "expected two revisions or schema files"),
        (("2025-06-18",), "expected two revisions or schema files"),
        (("2020-01-01", "2025-06-18"), "2020-01-01"),
        (("none.json", "2025-06-18"), "expected a readable file"),
        (("2024-11-05", "2025-06-18", "--severity", "X=y"), "expected --severity RULE=SEVERITY"),
    ],
)
def test_revisions_that_cannot_be_compared_are_one_error(
    words: tuple[str, ...], reason: str
) -> None:
    done = run("diff", *words)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.costly
@pytest.mark.parametrize("row", schema.revisions(), ids=lambda row: row.name)
def test_a_revision_in_a_file_does_not_differ_from_itself(row: schema.RevisionEntry) -> None:
    path = str(row.folder / "schema.json")
    assert json.loads(run("diff", row.name, path, "--json").out)["changes"] == []


def test_the_rules_are_listed_with_their_reasons(snapshot: SnapshotAssertion) -> None:
    assert run("diff", "--rules") == snapshot


@pytest.mark.costly
def test_a_report_is_the_same_in_every_process() -> None:
    command = ("-m", "mcpgen", "diff", "2025-11-25", "2026-07-28", "--json")
    seeds = [{"PYTHONHASHSEED": seed} for seed in ("1", "2", "3")]
    done = {run_python(*command, cwd=ROOT / "generator", environment=seed) for seed in seeds}
    assert [each.code for each in done] == [0]


@pytest.mark.costly
@pytest.mark.parametrize("words", [["--version"], ["list"], ["diff", "--help"]])
def test_other_commands_import_nothing_of_these(words: list[str]) -> None:
    code = (
        "import sys\nfrom mcpgen import cli\n"
        "try:\n    cli.main(sys.argv[1:])\n"
        "finally:\n"
        "    held = [n for n in sys.modules if n.startswith(('mcpgen.diff', 'mcpgen.explain'))]\n"
        "    print(held, 'jsonschema' in sys.modules, file=sys.stderr)\n"
    )
    assert run_python("-c", code, *words, cwd=ROOT / "generator").err == "[] False\n"


@pytest.mark.costly
@pytest.mark.parametrize(
    "mark",
    [{"deprecated": True}, {"description": "A tool.\n\n@deprecated Use nothing."}],
    ids=["keyword", "tag"],
)
def test_a_deprecation_in_a_schema_is_shown_with_its_place(mark: Any, tmp_path: Path) -> None:
    newest = schema.latest()
    document = json.loads((newest.folder / "schema.json").read_text("utf-8"))
    document["$defs"]["Tool"]["properties"]["title"] |= mark
    document["$defs"]["CallToolRequestParams"] |= mark
    file = tmp_path / "my.json"
    file.write_text(json.dumps(document), "utf-8")
    changes = json.loads(run("diff", newest.name, file, "--json").out)["changes"]
    assert [(each["rule"], each["place"], each["affected"]) for each in changes] == [
        (
            *("DEPRECATION_ADDED", "CallToolRequestParams"),
            ["client that sends", "server that receives"],
        ),
        (*("DEPRECATION_ADDED", "Tool.title"), ["server that sends", "client that receives"]),
    ]
    assert schema.read_file(file).digest == newest.digest
