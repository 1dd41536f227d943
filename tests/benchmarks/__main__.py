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
from .calls import in_memory, over_pipes
from .codec import codec
from .http_calls import over_http
from .http_cpu import cpu_over_http
from .http_memory import memory_held
from .many_tools import many_tools
from .measure import Line, table
from .processes import generation, imports
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
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"One run, {machine}, {versions}{typescript_version()}")
    missed = [line.name for line in lines if not line.met]
    for name in missed:
        print(f"target missed: {name}", file=sys.stderr)
    return 1 if missed and not options.lenient else 0


if __name__ == "__main__":
    sys.exit(main())
