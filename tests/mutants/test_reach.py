"""The map of tests to lines, and what runs by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reach
from mutants.__main__ import functions_for, unrecorded_functions_for
from mutants.mutations import Mutant

pytestmark = pytest.mark.lengthy

LINES = "generated/mcpgen_runtime/transports/line_channel.py"
TEMPLATE = "templates/package/transports/line_channel.py"
TESTED = """
from functools import cache
import pytest
from mcpgen_runtime.transports.line_channel import LineReader

@cache
def lines(): return LineReader(limit=9).feed(b"a\\n")

@pytest.fixture(scope="module")
def reader(): return LineReader(limit=9)

@pytest.mark.parametrize("text", [b"a\\n", b"b\\n"])
def test_feeds(text): LineReader(limit=9).feed(text)
def test_has_a_reader(reader): pass
def test_uses_the_cache(): lines()
def test_does_nothing(): pass
"""


def run_pytest(folder: Path, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with the plugin."""
    (folder / "conftest.py").write_text("pytest_plugins = ['reach']\n", "utf-8")
    sources = " ".join(f"{root / name}" for name in ("generator", "generated", "tests"))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {sources}\n", "utf-8")
    command = (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *words)
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "workers"])
def test_a_run_records_which_tests_reach_a_line(
    root: Path, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(TESTED, "utf-8")
    options = ("--record-reach=map", "--dist=loadfile", *workers)
    done = run_pytest(tmp_path, root, *options)
    assert done.returncode == 0, done.stdout
    recorded = reach.read(tmp_path / "map")
    reaching = {
        f"{file}::{name}"
        for file in ("test_one.py", "test_two.py")
        for name in ("test_feeds", "test_has_a_reader", "test_uses_the_cache")
    }
    assert set(recorded.reaching_file(LINES)) == reaching
    assert len(recorded.tests) == 8
    assert sum(recorded.seconds) > 0  # a test may take less than the millisecond that is counted


def test_listed_functions_run_file_by_file(root: Path, tmp_path: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(TESTED, "utf-8")
    listed = ["test_two.py::test_feeds", "test_one.py::test_uses_the_cache"]
    (tmp_path / "list").write_text("\n".join(listed), "utf-8")
    done = run_pytest(tmp_path, root, "--functions=list")
    ran = [line.partition(" ")[0] for line in done.stdout.splitlines() if " PASSED" in line]
    assert [name.partition("[")[0] for name in ran] == [listed[0], listed[0], listed[1]]


def map_of(*tests: str) -> reach.Reach:
    """A map in which tests of 20 seconds reach lines 1, 1 and 2, and so on, of the template."""
    numbers, header = range(len(tests)), reach.copy_of(TEMPLATE)[1].count("\n")
    bits = (sum(1 << each for each in numbers[n:]) for n in numbers)
    lines = {LINES: {n + header + 1: each for n, each in enumerate(bits)}}
    return reach.Reach(list(tests), [20.0] * len(tests), lines)


def test_a_copy_is_its_template_below_a_header(root: Path) -> None:
    path, header = reach.copy_of(TEMPLATE)
    template = (root / TEMPLATE).read_text("utf-8")
    assert (path, header + template) == (LINES, (root / LINES).read_text("utf-8"))
    assert header


@pytest.mark.parametrize(
    ("name", "more", "place"),
    [("mcpgen.json", "", LINES), ("mcpgen.json", "# changed", None), ("other.json", "", None)],
)
def test_a_module_of_a_built_package_stands_for_its_copy(
    root: Path, tmp_path: Path, name: str, more: str, place: str | None
) -> None:
    module = tmp_path / "pkg" / "transports" / "line_channel.py"
    module.parent.mkdir(parents=True)
    module.write_text((root / LINES).read_text("utf-8") + more, "utf-8")
    (tmp_path / "pkg" / name).write_text("{}", "utf-8")
    assert reach.place_of(f"{module}") == place


def mutant_at(*lines: int) -> Mutant:
    """A mutant of the template that is run by some lines; by the import if by none."""
    return Mutant(TEMPLATE, 1, "constant", 0, 0, "", frozenset(lines) or None)


@pytest.mark.parametrize(
    ("mutant", "functions"),
    [
        (mutant_at(3), ["b::z"]),
        (mutant_at(2), ["b::z", "a::y"]),  # the third would take too long
        (mutant_at(9), []),
        (mutant_at(), ["b::z", "a::x"]),
    ],
)
def test_a_mutant_meets_specific_tests_first(mutant: Mutant, functions: list[str]) -> None:
    breadth = {"a::x": 2, "a::y": 3, "b::z": 1}
    assert functions_for(mutant, map_of("a::x", "a::y", "b::z"), breadth) == functions


def test_a_mutant_also_meets_the_tests_that_its_place_names() -> None:
    limits, beside = "tests/conventions/test_limits.py::l", "tests/package/transports/test_a.py::b"
    own = "tests/package/test_line_channel.py::o"
    tests = map_of("tests/package/test_other.py::x", own, beside, limits)
    tests.seconds = [1.0] * 4
    assert unrecorded_functions_for(mutant_at(1), tests) == [limits, own, beside]
