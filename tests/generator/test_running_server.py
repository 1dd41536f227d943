"""How much of its package a server needs that has one tool and serves over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from generator.selections import MIDDLE, render_selection, write_package

pytestmark = pytest.mark.lengthy

MOST = 0.035
"""The part of the package that such a server may leave unused, in lines."""

UNUSED: Mapping[str, str] = {
    "__main__.py": "the command line",
    "json_schema/inlining.py": "schemas of nested types",
    "models.py": "names of types, for annotations",
    "runtime/command_table.py": "the command line",
    "server/toolkit/argument_errors.py": "arguments that are wrong",
}
"""Modules of the package that it does not import, each with what does."""

SERVES = """
import json, sys, urllib.request
from functools import partial
from pathlib import Path
import anyio
from anyio.to_thread import run_sync
from pkg import Server

server = Server("sums")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

def post(url, session, message):
    fields = {"Content-Type": "application/json"}
    fields["Accept"] = "application/json, text/event-stream"
    if session:
        fields |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": REVISION}
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, fields)) as response:
        return response.headers.get("mcp-session-id"), response.read()

async def main():
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(partial(server.run_async, http="127.0.0.1:0"))
        about = {"name": "test", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": about}
        first = {"id": 1, "method": "initialize", "params": params}
        session, _ = await run_sync(post, url, None, first)
        await run_sync(post, url, session, {"method": "notifications/initialized"})
        await run_sync(post, url, session, {"id": 2, "method": "tools/list"})
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        called = {"id": 3, "method": "tools/call", "params": call}
        _, body = await run_sync(post, url, session, called)
        assert json.loads(body)["result"]["structuredContent"] == {"result": 3}
        tasks.cancel_scope.cancel()

anyio.run(main)
modules = [sys.modules[name] for name in sys.modules if name.partition(".")[0] == "pkg"]
print(json.dumps([Path(module.__file__).relative_to(FOLDER).as_posix() for module in modules]))
"""


def test_a_running_server_imports_nearly_all_of_its_package(tmp_path: Path) -> None:
    files = render_selection("server", "http", (MIDDLE,), features=("none",))
    folder = write_package(files, tmp_path).resolve()
    program = f"FOLDER, REVISION = {str(folder / 'pkg')!r}, {MIDDLE!r}\n{SERVES}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = {path: text.count("\n") for path, text in files.items() if path.endswith(".py")}
    unused = lines.keys() - set(json.loads(done.stdout.splitlines()[-1]))
    assert unused == {*UNUSED}
    assert sum(lines[path] for path in unused) <= MOST * sum(lines.values())
