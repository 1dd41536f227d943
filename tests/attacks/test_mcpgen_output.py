"""mcpgen is killed at any moment, and runs several times at once: the package stays whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from documents import ROOT
from mcpgen import schema

pytestmark = pytest.mark.attack

OLDEST = schema.revisions()[0].name

KILLED = 12
"""Runs that are killed, each a little later than the one before."""

WRITER = """
import sys
from pathlib import Path
from mcpgen.package import manifest, output

target = Path(sys.argv[1])
names = [f"m{number}.py" for number in range(200)]
for number in range(int(sys.argv[3])):
    files = {name: f"{sys.argv[2]} {number}\\n" * 50 for name in names}
    record = manifest.new("pkg", manifest.Options(errata=True), {}, files)
    if number == 0:
        print("ready", flush=True)
    output.expect_own(target)
    output.write(target, {**files, manifest.NAME: record.text()})
"""


def start(*words: object) -> subprocess.Popen[bytes]:
    """Start Python with some words, its output in pipes."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_package_survives_killed_runs_which_leave_nothing(tmp_path: Path) -> None:
    target = tmp_path / "pkg"
    for number in range(KILLED):
        writer = start("-c", WRITER, target, number, 10_000)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        until = time.monotonic() + 0.05 + 0.017 * number
        while time.monotonic() < until:
            os.sched_yield()
        writer.kill()
        writer.communicate()
    last = start("-c", WRITER, target, "last", 1)
    assert last.communicate() == (b"ready\n", b"")
    assert names(tmp_path) == ["pkg"]
    assert len(names(target)) == 201
    assert {path.read_text() for path in target.glob("*.py")} == {"last 0\n" * 50}


def test_four_runs_at_once_write_one_after_another(tmp_path: Path) -> None:
    target = tmp_path / "pkg"
    writers = [start("-c", WRITER, target, number, 6) for number in range(4)]
    assert [writer.communicate() for writer in writers] == [(b"ready\n", b"")] * 4
    assert names(tmp_path) == ["pkg"]
    assert len({path.read_text() for path in target.glob("*.py")}) == 1


def test_two_commands_at_once_leave_the_package_of_one_of_them(tmp_path: Path) -> None:
    target = tmp_path / "pkg"
    runs = [
        start("-m", "mcpgen", "-q", "-r", OLDEST, "--parts", "types", "-o", target, *words)
        for words in ((), ("--no-errata",))
    ]
    assert [run.communicate() for run in runs] == [(b"", b"")] * 2
    assert [run.returncode for run in runs] == [0] * 2
    assert names(tmp_path) == ["pkg"]
    check = start("-m", "mcpgen", "check", target)
    assert check.communicate() == (f"{target}: up to date\n".encode(), b"")
