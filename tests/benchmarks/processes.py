"""Work that starts a process: imports, the first answer of a server, runs of the generator."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .measure import FLOOR, OURS, SDK, AtMost, Line, Within, medians

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVERS = HERE / "servers.py"
GENERATED = ROOT / "generated"
REVISION = "2025-06-18"
MEBIBYTE = 1 << 20

MODULES = "what is left are some 55 modules of a third of a millisecond each"
"""Why an import may take longer than a multiple of the floor."""

START = "most of it is the start of Python and the import of the tool, on a slower host"
"""Why a check may take longer, by the time of `mcpgen --version`."""

TIMED_IMPORT = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)


def environment() -> dict[str, str]:
    """The environment of this process, with the generated package and the tool on its path."""
    places = (GENERATED, ROOT / "generator")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(place) for place in places)}


def timed_import(statement: str) -> float:
    """Seconds that a statement takes in a new interpreter, without the start of that."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED_IMPORT.format(statement=statement)],
        check=True,
        capture_output=True,
        env=environment(),
    )
    return float(done.stdout)


def first_answer(contender: str) -> float:
    """Seconds from starting a stdio server to its answer to `initialize`."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(SERVERS), contender],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        answer = process.stdout.readline()
        taken = time.perf_counter() - start
        process.stdin.close()
        process.wait(30)
    assert b'"result"' in answer, answer
    return taken


def imports(rounds: int) -> Iterable[Line]:
    """Rows on the time before a server can respond."""
    ours = "from mcpgen_runtime import Context, Server, ToolError"
    yield Line(
        "import of what a server needs",
        medians(
            {
                OURS: lambda: timed_import(ours),
                SDK: lambda: timed_import("import mcp"),
                FLOOR: lambda: timed_import("import anyio, msgspec"),
            },
            rounds,
        ),
        (AtMost(FLOOR, 1.8, MODULES), AtMost(SDK, 1 / 7)),
    )
    yield Line(
        "start of a stdio server to its first answer",
        medians(
            {
                OURS: lambda: first_answer("ours"),
                SDK: lambda: first_answer("official"),
            },
            rounds,
        ),
    )


MEASURED_RUN = """
import re, resource, sys
from pathlib import Path
from mcpgen import cli
try:
    cli.main(sys.argv[1:])
finally:
    own = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
    print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""
"""Runs the tool and prints the peak memory of its largest process in KiB.

The `ru_maxrss` of the process itself would count the memory of the one that forked it.
"""


def run_mcpgen(arguments: Sequence[str]) -> tuple[float, int]:
    """Seconds and peak memory in bytes of one run of the tool."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED_RUN, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    taken = time.perf_counter() - start
    return taken, int(done.stdout.splitlines()[-1]) * 1024


GENERATED_PARTS: Sequence[tuple[str, str, str, Sequence[Within]]] = (
    (REVISION, "types", "the types of one revision", (Within(1.2),)),
    (REVISION, "all", "one revision", (Within(2),)),
    ("all", "all", "all revisions", (Within(4),)),
)
"""Revisions and parts, their name in the table, and the targets of generating them."""


def generation(rounds: int) -> Iterable[Line]:
    """Rows on the tool itself: into new folders, into an unchanged one, and a check of that."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number, (revisions, parts, name, targets) in enumerate(GENERATED_PARTS):
            choice = ["--revision", revisions, "--parts", parts, "--quiet", "-o"]
            fresh = ([*choice, str(folder / f"pkg_{number}_{turn}")] for turn in itertools.count())
            yield tool_line(f"{name} generated into a new folder", fresh, targets, rounds)
            kept = str(folder / f"pkg_{number}_0")
            again = itertools.repeat([*choice, kept])
            yield tool_line(f"{name} regenerated, unchanged", again, (), rounds)
            check = itertools.repeat(["check", kept])
            yield tool_line(
                f"check of {name}, unchanged", check, (Within(0.15, reason=START),), rounds
            )


def tool_line(
    name: str, arguments: Iterator[Sequence[str]], targets: Sequence[Within], rounds: int
) -> Line:
    """The row of one command of the tool, with its peak memory."""
    peaks: list[int] = []

    def timed() -> float:
        taken, peak = run_mcpgen(next(arguments))
        peaks.append(peak)
        return taken

    times = medians({OURS: timed}, rounds)
    return Line(name, times, targets, f"peak {max(peaks) // MEBIBYTE} MiB")
