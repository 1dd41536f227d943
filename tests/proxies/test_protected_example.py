"""The protected server of examples/ behind nginx: its services without containers, its client."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
import yaml

from example_programs import EXAMPLES, build, run
from kit.http_process import Process
from proxies.programs import free_port, wait_for

pytestmark = [pytest.mark.proxies, pytest.mark.timeout(120)]

TOKENS = {"READER_TOKEN": "token-of-rita", "WRITER_TOKEN": "token-of-walt"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_processes_behind_nginx_serve_the_example(tmp_path: Path) -> None:
    folder = build("protected-server", tmp_path)
    nginx = Path(os.environ["MCP_NGINX"]).parent
    environment = {**TOKENS, "PYTHONSAFEPATH": "", "PATH": f"{nginx}:{os.environ['PATH']}"}
    if libraries := os.environ.get("MCP_PROXY_LIBRARIES"):
        environment["LD_LIBRARY_PATH"] = libraries
    port = free_port()
    process = Process((sys.executable, "local.py", f"{port}"), environment, folder)
    try:
        wait_for(process, port)
        printed = run(folder, "two_users.py", f"http://127.0.0.1:{port}/mcp", **TOKENS)
        assert len({*re.findall(r"walt wrote today in process (\d+)", printed)}) == 2
        assert "read: Bring tea too." in printed
        assert "refused: " in printed
        process.send(signal.SIGTERM)
        assert await process.ended() == 0
    finally:
        process.kill()


def test_the_compose_file_sets_what_the_server_reads() -> None:
    folder = EXAMPLES / "protected-server"
    worker = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["one"]
    code = (folder / "shared_notes.py").read_text()
    assert {*worker["environment"]} == {*re.findall(r'os\.environ\["(\w+)"\]', code)}
