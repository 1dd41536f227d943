"""Judging mutants: in a copy of a small repository, with tests, type checker and clock."""

from __future__ import annotations

import subprocess
from multiprocessing import forkserver
from pathlib import Path

import pytest

from mutants.copies import KILLED, MISTYPED, SHARED, SURVIVED, UNDECIDED, Copy, preload_libraries
from mutants.mutations import Mutant, mutants_of

pytestmark = pytest.mark.lengthy

MODULE = """\
def first(numbers: list[int]) -> int:
    if numbers:
        return numbers[0]
    raise ValueError


def wait(seconds: int) -> None:
    while seconds:
        seconds -= 1


def log(lines: list[str], text: str) -> None:
    lines.append(text)


def width() -> int:
    return len("ab")


LINES = 40
"""
TESTS = """\
import pytest
import a

def test_first():
    assert a.first([3]) == 3
    with pytest.raises(ValueError):
        a.first([])

def test_wait():
    a.wait(1)

def test_log():
    a.log([], "")

def test_failing():
    assert a.LINES == 50

@pytest.mark.slow
def test_slow():
    lines = []
    a.log(lines, "b")
    assert lines
"""
ON_WORKERS = """\
import os
import pytest
import a

@pytest.mark.workers
def test_on_workers():
    lines = []
    a.log(lines, "b")
    assert len(lines) * 3 == int(os.environ["MCP_WORKERS"])
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one module and its tests; the process that runs them is kept."""
    preload_libraries()
    forkserver.ensure_running()
    folder = tmp_path_factory.mktemp("repository")
    (folder / "a.py").write_text(MODULE)
    (folder / "test_a.py").write_text(TESTS)
    (folder / "test_quick.py").write_text("def test_nothing():\n    pass\n")
    (folder / "conftest.py").write_text("pytest_plugins = ['reach']")
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    slow\n    trio\n    workers\n    one_process"
    )
    (folder / SHARED).mkdir(parents=True)
    (folder / SHARED / "test_workers.py").write_text(ON_WORKERS)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def mutant(line: int, kind: str) -> Mutant:
    """The mutant of a kind in a line of the module."""
    (candidate,) = (
        each for each in mutants_of("a.py", MODULE) if (each.line, each.kind) == (line, kind)
    )
    return candidate


@pytest.mark.parametrize(
    ("line", "kind", "tests", "slow", "result", "detail"),
    [
        (2, "negated condition", ["test_first"], None, KILLED, "test_a.py::test_first"),
        pytest.param(
            *(4, "dropped statement", ["test_wait"], None, MISTYPED, "Missing return"),
            marks=pytest.mark.typing,  # mypy is in the environment of `lint` alone
        ),
        (9, "dropped statement", ["test_wait"], None, KILLED, "no end after 4 s"),
        pytest.param(
            *(13, "dropped statement", ["test_log"], "test_quick.py", SURVIVED, "1 test functions"),
            marks=pytest.mark.typing,
        ),
        (13, "dropped statement", ["test_log"], "test_a.py", KILLED, "test_a.py::test_slow"),
        (13, "dropped statement", ["test_log"], SHARED, KILLED, "test_workers.py::test_on_workers"),
        (20, "constant", ["test_failing"], None, UNDECIDED, "fails without the mutant too"),
    ],
)
def test_tests_judge_first_then_slow_ones_then_types(
    repository: Path,
    tmp_path: Path,
    line: int,
    kind: str,
    tests: list[str],
    slow: str | None,
    result: str,
    detail: str,
) -> None:
    functions = [f"test_a.py::{name}" for name in tests]
    copy = Copy(tmp_path, repository, longest=4 if "end" in detail else 60)
    judged, why = copy.judge(mutant(line, kind), functions, slow)
    assert (judged, detail in why) == (result, True), why
    assert (tmp_path / "a.py").read_text() == MODULE
