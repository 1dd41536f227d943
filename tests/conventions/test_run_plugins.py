"""Plugins of our test runs: they report every failure, repeated tests, and leftovers of tests."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import outcomes
from conventions.sources import ROOT
from kit.pytest_process import run_pytest
from selection import NOT_QUICK, beyond_sample, older_cases, one_of

pytestmark = [pytest.mark.costly, pytest.mark.lengthy]

PLUGINS = ["leftovers", "outcomes"]
WORDS = ("-q", "--tb=short", "-prerunfailures", "-psyrupy", "--outcomes=counts.jsonl")
"""Those of each run; the counts are in `counts.jsonl`."""

FLAKY = """
import pytest
attempts = []
def test_passes(): pass
def test_skipped(): pytest.skip("no reason")
def test_repeated():
    attempts.append(1)
    assert len(attempts) > 1
"""
FAILING = """
import pytest
def test_fails(): assert False
@pytest.fixture
def broken():
    yield
    raise RuntimeError
def test_whose_fixture_fails(broken): pass
"""
MIXED = """
import pytest
from hypothesis import given, strategies
@pytest.mark.parametrize("number", range(3))
def test_cases(number): pass
@pytest.mark.slow
def test_slow(): pass
@given(strategies.none())
def test_property(none): pass
def test_golden(snapshot): pass
"""
CHILD = "[sys.executable, '-c', 'import time; time.sleep(99)']"
LEAVING = f"""
import contextvars, socket, subprocess, sys
kept = []
value = contextvars.ContextVar("value")
def test_child(): kept.append(subprocess.Popen({CHILD}))
def test_socket(): kept.append(socket.socket())
def test_file(): kept.append(open(__file__))
def test_value(): value.set(1)
def test_nothing(): subprocess.run([sys.executable, "-c", ""])
"""
ORPHAN = f"""
import subprocess, sys
def test_orphan():
    code = "import subprocess, sys; subprocess.Popen({CHILD}, start_new_session=True)"
    subprocess.run([sys.executable, "-c", code])
"""


def counts(folder: Path) -> outcomes.Outcomes:
    """The outcomes that the runs of a folder wrote."""
    return outcomes.read_outcomes(folder, "counts")


@pytest.mark.parametrize("workers", [(), ("--numprocesses=2",)], ids=["one process", "workers"])
def test_failures_of_tests_and_fixtures_are_counted(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY + FAILING, "utf-8")
    done = run_pytest(tmp_path, *WORDS, "--reruns=1", "-rR", *workers, plugins=PLUGINS)
    assert done.returncode == 1
    assert "RERUN test_it.py::test_repeated" in done.stdout
    failures = ["test_it.py::test_fails: assert False", "test_it.py::test_whose_fixture_fails: "]
    total = counts(tmp_path)
    assert (total.passed, total.failed, total.skipped) == (2, 2, 1)
    assert total.repeated == ["test_it.py::test_repeated"]
    assert sorted(total.failures) == [failures[0], failures[1] + "RuntimeError"]


@pytest.mark.parametrize("failing", ["raise ValueError", "import absent_module"])
def test_an_error_in_collection_is_never_repeated_away(tmp_path: Path, failing: str) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY, "utf-8")
    (tmp_path / "test_broken.py").write_text(failing, "utf-8")
    done = run_pytest(tmp_path, *WORDS, "--reruns=1", plugins=PLUGINS)
    assert done.returncode != 0
    assert counts(tmp_path).failed == len(counts(tmp_path).failures) == 1


def test_an_unused_snapshot_is_never_repeated_away(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(snapshot): assert snapshot == 1\n", "utf-8")
    assert run_pytest(tmp_path, *WORDS, "--snapshot-update", plugins=PLUGINS).returncode == 0
    (tmp_path / "test_it.py").write_text(FLAKY, "utf-8")
    done = run_pytest(tmp_path, *WORDS, "--reruns=1", plugins=PLUGINS)
    assert done.returncode == 1, done.stdout


def test_a_test_that_leaves_resources_open_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(LEAVING, "utf-8")
    done = run_pytest(tmp_path, *WORDS, plugins=PLUGINS)
    assert done.returncode == 1
    assert (counts(tmp_path).passed, counts(tmp_path).failed) == (1, 4)
    for name in ("child", "socket", "file", "value"):
        assert f"ERROR at teardown of test_{name} " in done.stdout


def test_a_process_without_parent_ends_and_its_test_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ORPHAN, "utf-8")
    done = run_pytest(tmp_path, *WORDS, plugins=PLUGINS)
    assert done.returncode == 1
    assert "test_it.py::test_orphan (call)" in done.stderr


def write_run(folder: Path, passed: int = 7, **results: str) -> None:
    """Write the report of nox of some sessions, and two runs of the session `tests`."""
    rows = [{"name": key, "result": value, "duration": 2.0} for key, value in results.items()]
    (folder / "first.json").write_text(json.dumps({"sessions": rows}), "utf-8")
    runs = (
        {"passed": passed, "cpu": 7.4},
        {"repeated": ["a"] * bool(passed), "failures": ["b: assert 1"]},
    )
    (folder / "tests.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in runs), "utf-8")


def test_the_closing_lines_sum_all_sessions(tmp_path: Path) -> None:
    write_run(tmp_path, tests="success", lint="success")
    text, succeeded = outcomes.summarize(tmp_path, ["first"])
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["session", "seconds", "CPU", "passed", "failed", "skipped"]
    assert ["tests", "2", "7", "7", "0", "0"] in rows
    assert rows[3] == ["together", "4", "7"]
    assert text.endswith(
        "\nfailed: b: assert 1\nrepeated, then passed: a\n7 passed, 0 failed, 0 skipped"
    )
    assert succeeded


@pytest.mark.parametrize(
    ("result", "reports", "passed", "end"),
    [
        *((each, ["first"], 7, "7 passed, 1 failed") for each in ("failed", "aborted", "skipped")),
        ("success", ["first", "second"], 7, "7 passed, 1 failed"),
        ("success", ["first"], 0, "0 passed, 0 failed"),
    ],
)
def test_a_session_without_success_or_a_sum_of_no_tests_fails(
    tmp_path: Path, result: str, reports: list[str], passed: int, end: str
) -> None:
    write_run(tmp_path, passed, tests="success", lint=result)
    text, succeeded = outcomes.summarize(tmp_path, reports)
    assert (text.splitlines()[-1], succeeded) == (f"{end}, 0 skipped", False)


def test_of_cases_that_differ_in_revision_the_newest_is_kept() -> None:
    names = ("a[2024-11-05-x]", "a[2025-06-18-x]", "a[2024-11-05-y]", "b", "c[2024-11-05-x]")
    items: list[Any] = [SimpleNamespace(name=name, nodeid=f"test_it.py::{name}") for name in names]
    for order in (items, items[::-1]):
        assert older_cases(order) == {"test_it.py::a[2024-11-05-x]"}
    for item in items:
        item.fixturenames = ["snapshot"]
    assert older_cases(items) == set()


def case(name: str, *marks: str, rule: str = "a.b") -> Any:
    """A test, as far as its name, marks and claim decide whether it is chosen."""
    return SimpleNamespace(
        name=name,
        nodeid=f"test_it.py::{name}",
        get_closest_marker={mark: mark for mark in marks}.get,
        iter_markers=lambda kind: [SimpleNamespace(args=(rule,))],
    )


def test_of_a_function_the_same_case_is_chosen() -> None:
    cases = [case(f"a[{number}]") for number in range(9)]
    chosen = one_of(cases, is_quick=True)
    assert len(chosen) == 1
    assert one_of(cases, is_quick=False) == chosen
    mixed = [case("b[x]", "slow"), case("b[y]"), case("b[trio]")]
    slow = [case("c", "slow")]
    for is_quick, of_slow in ((True, []), (False, slow)):
        assert one_of(mixed, is_quick=is_quick) == mixed[1:2]
        assert one_of(slow, is_quick=is_quick) == of_slow


def test_the_others_are_the_cases_that_quick_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MIXED, "utf-8")
    for cases, passed in (("quick", 3), ("others", 5)):
        words = (f"--cases={cases}", "-m", "not slow" if cases == "quick" else "")
        run_pytest(tmp_path, *WORDS, *words, plugins=[*PLUGINS, "selection"])
        assert counts(tmp_path).passed == passed
        (tmp_path / "counts.jsonl").unlink()


def test_marks_that_quick_leaves_out_are_those_of_its_session() -> None:
    module = ast.parse((ROOT / "tests/sessions/environments.py").read_text("utf-8"))
    values = " ".join(ast.unparse(each) for each in module.body if isinstance(each, ast.Assign))
    assert {*re.findall(r"\bnot (\w+)", values)} == NOT_QUICK | {"older", "trio"}


def test_a_sample_has_cases_of_each_loop_revision_and_claim() -> None:
    ours = [case(f"a[{number}]") for number in range(18)]
    alike = [
        [case(f"a[trio-{number}]") for number in range(18)],
        [case(f"a[2024-11-05-{number}]", "older") for number in range(18)],
        [case(f"a[2025-03-26-{number}]", "older") for number in range(14)],
        [case(f"a[2025-03-26-{number}]", "older", rule="c.d") for number in range(14, 18)],
    ]
    beyond = beyond_sample([*ours, *(each for cases in alike for each in cases)])
    kept = [sum(each.nodeid not in beyond for each in cases) for cases in (ours, *alike)]
    assert kept[:3] == [18, 3, 3]
    assert kept[3] in (2, 3)
    assert kept[4] == 1
