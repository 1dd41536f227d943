"""A disk that is full under the trace: servers of real processes go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import REVISIONS

pytestmark = pytest.mark.attack

FULL = Path("/dev/full")

SERVER = """
import sys
from mcpgen_runtime import Server

server = Server("traced")

@server.tool("echo")
def echo(text: str) -> str:
    return text

server.run(backend=sys.argv[1])
"""


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_server_answers_though_its_trace_cannot_be_written(backend: str) -> None:
    revision = next(iter(REVISIONS))
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    done = subprocess.run(
        [sys.executable, "-c", SERVER, backend],
        input=json.dumps(initialize) + "\n",
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT), "MCP_TRACE": str(FULL)},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == revision
    assert done.stderr.count("MCP_TRACE: nothing more is recorded in '/dev/full'") == 1
