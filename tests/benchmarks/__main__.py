"""Prints the benchmark table; exits with 1 if a target is missed.

python -m tests.benchmarks [--rounds N] [--only SECTION ...] [--lenient]
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version

from .processes import GENERATED

sys.path.insert(0, str(GENERATED))

from .calls import in_memory, over_pipes
from .codec import codec
from .http_calls import CALLS as HTTP_CALLS
from .http_calls import over_http
from .http_memory import SESSIONS, STREAMS, memory_held
from .many_tools import many_tools
from .measure import Line, table
from .processes import generation, imports
from .protected_calls import CALLS as PROTECTED_CALLS
from .protected_calls import protected_calls

SECTIONS: dict[str, tuple[Callable[[int], Iterable[Line]], int]] = {
    "imports": (imports, 9),
    "codec": (codec, 15),
    "memory": (in_memory, 9),
    "many-tools": (many_tools, 9),
    "stdio": (over_pipes, 9),
    "http": (over_http, 11),
    "http-memory": (memory_held, 1),
    "protected": (protected_calls, 9),
    "generation": (generation, 5),
}

PACKAGES = ("mcp", "fastmcp", "uvicorn", "orjson", "msgspec")

METHOD = """\
One run, {machine}, Python {python}, mcp {mcp}, fastmcp {fastmcp}, uvicorn {uvicorn}, orjson
{orjson}, msgspec {msgspec}. Contenders take turns in every round. Decoding: best of {codec} rounds
of 0.1 s. Calls: best of {calls} rounds of 320 calls, asyncio, every connection open at once; each
client calls the server of its own kind, a tool that adds two numbers and answers with text. Over
HTTP: median of {http} rounds of {http_calls} calls; every server runs on uvicorn with httptools and
uvloop, and answers with JSON; with a token: CPU time of the server, best of
{protected} rounds of {protected_calls} calls; "server alone" is bare sockets and requests made
before. Memory:
growth of the server's process by {sessions} sessions or {streams} streams. Processes:
median of {processes} starts, the tool's own of {generation}. Floors: `import anyio, msgspec`;
`orjson.loads` (and `dumps`) of the same bytes; a process that echoes a line of the same bytes on
bare asyncio streams; a bare ASGI application with the right answer as constant text, called by our
client."""


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="rounds of each measurement")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="sections to run")
    parser.add_argument("--lenient", action="store_true", help="a miss is said, and no failure")
    options = parser.parse_args()
    lines: list[Line] = []
    for name, (section, rounds) in SECTIONS.items():
        if options.only is None or name in options.only:
            for line in section(options.rounds or rounds):
                print("...", line.name, file=sys.stderr)
                lines.append(line)
    print(table(lines), end="\n\n")
    print(
        METHOD.format(
            machine=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            codec=SECTIONS["codec"][1],
            calls=SECTIONS["stdio"][1],
            http=SECTIONS["http"][1],
            http_calls=HTTP_CALLS,
            sessions=SESSIONS,
            streams=STREAMS,
            protected=SECTIONS["protected"][1],
            protected_calls=PROTECTED_CALLS,
            processes=SECTIONS["imports"][1],
            generation=SECTIONS["generation"][1],
        )
    )
    missed = [line.name for line in lines if not line.met]
    for name in missed:
        print(f"target missed: {name}", file=sys.stderr)
    return 1 if missed and not options.lenient else 0


if __name__ == "__main__":
    sys.exit(main())
