"""Prints the benchmark table; exits with 1 if a target is missed.

python -m tests.benchmarks [--only SECTION ...] [--rounds N] [--lenient]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

from .processes import GENERATED

sys.path.insert(0, str(GENERATED))

from .application import application
from .calls import CALLS, in_memory, over_pipes
from .codec import codec
from .http_calls import CALLS as HTTP_CALLS
from .http_calls import over_http
from .http_cpu import CALLS as CPU_CALLS
from .http_cpu import cpu_over_http
from .http_memory import SESSIONS, STREAMS, memory_held
from .many_tools import many_tools
from .measure import Line, table
from .processes import generation, imports
from .protected_calls import CALLS as PROTECTED_CALLS
from .protected_calls import protected_calls
from .pydantic_calls import pydantic_calls
from .serving import NPM_VARIABLE
from .shared_state import shared_state

SECTIONS: dict[str, tuple[Callable[[int], Iterable[Line]], int]] = {
    "http-cpu": (cpu_over_http, 9),
    "http": (over_http, 11),
    "stdio": (over_pipes, 9),
    "memory": (in_memory, 9),
    "application": (application, 9),
    "imports": (imports, 9),
    "codec": (codec, 9),
    "many-tools": (many_tools, 9),
    "pydantic-models": (pydantic_calls, 9),
    "http-memory": (memory_held, 1),
    "protected": (protected_calls, 9),
    "shared": (shared_state, 9),
    "generation": (generation, 5),
}
"""Each section of the table, with its rounds."""

PACKAGES = ("mcp", "fastmcp", "uvicorn", "orjson", "msgspec")

METHOD = """\
One run, {machine}, Python {python}, mcp {mcp}, fastmcp {fastmcp}, uvicorn {uvicorn}, orjson
{orjson}, msgspec {msgspec}{typescript}. Contenders take turns in every round; each figure is the
median of its rounds: {imports} for imports and starts, {codec} of 0.1 s for decoding, {memory} of
{calls} calls in memory and over stdio, {http} of {http_calls} calls over HTTP, {generation} for the
tool, {protected} of {protected_calls} calls for the CPU time with a token, {cpu} of {cpu_calls} for
other CPU time. Calls run on asyncio; each client calls the server of its own kind. A real call has
a progress token, another one each time; its tool has a `Context`, awaits once and returns an
object. The tool of a trivial call adds two numbers and returns text; others take and return models
of pydantic. Over HTTP, servers in Python run on uvicorn with httptools and uvloop, servers in Node
on its own HTTP server; all answer with JSON, but for the calls that report progress.
"Server alone": raw requests that were encoded before, on uvloop. Memory: growth of the server's
process by {sessions} sessions or {streams} streams, measured once. Floors: `import anyio, msgspec`;
`orjson.loads` (and `dumps`) of the same bytes; a client and a server of one tool by msgspec on bare
asyncio streams; a bare ASGI application that reads the JSON of a message and answers with
constant text, called by our client."""


def typescript_version() -> str:
    """The version of the SDK for TypeScript as a part of a list; empty if it was left out."""
    folder = os.environ.get(NPM_VARIABLE)
    if not folder:
        return ""
    package = Path(folder) / "node_modules/@modelcontextprotocol/server/package.json"
    return f", @modelcontextprotocol/server {json.loads(package.read_text('utf-8'))['version']}"


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="rounds of each measurement")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="sections to run")
    parser.add_argument(
        "--lenient", action="store_true", help="report a missed target, but exit with 0"
    )
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
            typescript=typescript_version(),
            **{
                name: options.rounds or rounds
                for name, (_, rounds) in SECTIONS.items()
                if "-" not in name
            },
            calls=CALLS,
            http_calls=HTTP_CALLS,
            sessions=SESSIONS,
            streams=STREAMS,
            protected_calls=PROTECTED_CALLS,
            cpu=options.rounds or SECTIONS["http-cpu"][1],
            cpu_calls=CPU_CALLS,
        )
    )
    missed = [line.name for line in lines if not line.met]
    for name in missed:
        print(f"target missed: {name}", file=sys.stderr)
    return 1 if missed and not options.lenient else 0


if __name__ == "__main__":
    sys.exit(main())
