"""The programs of examples/: their packages, their own tests, and calls of real clients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from example_programs import build, run, run_tests
from kit.http_process import Process
from mcpgen_runtime import RemoteError, connect
from proxies.programs import free_port, wait_for

REVISIONS = ("2025-11-25", "2026-07-28")

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_gateway_lets_allowed_tools_of_a_database_through(tmp_path: Path) -> None:
    for name in ("database-server", "gateway"):
        run_tests(build(name, tmp_path))
    run(tmp_path / "database-server", "library.py", "library.db")
    database = [f"{tmp_path}/database-server/{name}" for name in ("database.py", "library.db")]
    server = [sys.executable, *database]
    gateway = [sys.executable, f"{tmp_path}/gateway/gateway.py", "--allow"]
    query = {"sql": "SELECT count(*) FROM books"}
    async with connect([*gateway, "que*", "--", *server], revision=REVISIONS[0]) as client:
        assert [tool.name for tool in await client.list_tools()] == ["query"]
        result: Any = await client.call_tool("query", query)
        assert result.structured_content["rows"] == [[5]]
    async with connect([*gateway, "none", "--", *server], revision=REVISIONS[1]) as client:
        assert await client.list_tools() == []
        with pytest.raises(RemoteError, match="unknown tool 'query'"):
            await client.call_tool("query", query)


def test_an_agent_uses_three_servers_and_asks_before_it_writes(tmp_path: Path) -> None:
    folder = build("agent", tmp_path)
    words = ("agent.py", "What shall I pack?")
    assert "I noted what to pack" in run(folder, *words, lines="y\n")
    printed = run(folder, *words, lines="n\n")
    assert "notes_save {'text': 'Pack for rain in Oslo'}" in printed
    assert "I noted nothing" in printed


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_application_of_fastapi_serves_its_operations(tmp_path: Path) -> None:
    folder = build("fastapi-app", tmp_path)
    run_tests(folder)
    port = free_port()
    uvicorn = (sys.executable, "-m", "uvicorn", "app:app", "--port", f"{port}")
    process = Process(uvicorn, {"PYTHONSAFEPATH": ""}, folder)
    try:
        wait_for(process, port)
        for revision in REVISIONS:
            async with connect(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
                ordered: Any = await client.call_tool("place_order", {"item": "cup"})
                assert ordered.structured_content == {"item": "cup", "count": 1}
                refused = await client.call_tool("place_order", {"item": "cup", "count": 9})
                assert refused.is_error
    finally:
        process.kill()
