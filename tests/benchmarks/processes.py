"""What starts a process: imports, the first answer of a server, a run of the generator."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .measure import FLOOR, OURS, SDK, AtMost, Line, Within, typical

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GENERATED = ROOT / "generated"
REVISION = "2025-06-18"
MEBIBYTE = 1 << 20

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
    """This process's environment, with the generated package and the tool in reach."""
    places = (GENERATED, ROOT / "generator")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(place) for place in places)}


def timed_import(statement: str) -> float:
    """Seconds that a statement takes in a fresh interpreter, its own start not counted."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED_IMPORT.format(statement=statement)],
        check=True,
        capture_output=True,
        env=environment(),
    )
    return float(done.stdout)


def first_answer(script: Path) -> float:
    """Seconds from starting a stdio server to its answer to `initialize`."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(script)],
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
    """Lines on the time before a server can do anything."""
    ours = "from mcp_protocol import Context, Server, ToolError"
    yield Line(
        "import of what a server needs",
        typical(
            {
                OURS: lambda: timed_import(ours),
                SDK: lambda: timed_import("import mcp"),
                FLOOR: lambda: timed_import("import anyio, msgspec"),
            },
            rounds,
        ),
        (AtMost(SDK, 1 / 4), Within(0.1)),
    )
    yield Line(
        "start of a stdio server to its first answer",
        typical(
            {
                OURS: lambda: first_answer(HERE / "our_server.py"),
                SDK: lambda: first_answer(HERE / "official_server.py"),
            },
            rounds,
        ),
    )


def run_mcpgen(arguments: Sequence[str]) -> tuple[float, int]:
    """Seconds and peak memory in bytes of one run of the tool."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", *arguments],
        stdout=subprocess.DEVNULL,
        env=environment(),
    )
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return taken, usage.ru_maxrss * 1024


def generation(rounds: int) -> Iterable[Line]:
    """Lines on the tool itself."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (chosen, parts, what, targets) in enumerate(
            (
                (REVISION, "types", "the types of one revision", (Within(1.2),)),
                (REVISION, "all", "one revision", (Within(2),)),
                ("all", "all", "all revisions", ()),
            )
        ):
            target = str(Path(folder) / f"pkg_{number}")
            generate = ["--revision", chosen, "--parts", parts, "-o", target, "--quiet"]
            yield tool_line(f"{what} generated, cold start", generate, targets, rounds)
            check = ["check", target]
            yield tool_line(f"check of {what}, unchanged", check, (Within(0.15),), rounds)


def tool_line(name: str, arguments: list[str], targets: Sequence[Within], rounds: int) -> Line:
    """The line of one command of the tool, with its peak memory."""
    peaks: list[int] = []

    def timed() -> float:
        taken, peak = run_mcpgen(arguments)
        peaks.append(peak)
        return taken

    times = typical({OURS: timed}, rounds)
    return Line(name, times, targets, f"peak {max(peaks) // MEBIBYTE} MiB")
