"""A package without the feature `resume`: streams by GET have no ids of events."""

from __future__ import annotations

from pathlib import Path

import pytest

from conventions.sources import PACKAGE, TESTS
from generator.command_line import output_of
from generator.selections import LAST_WITH_SESSIONS, MIDDLE, rendered, write_package

LISTENS = """
import sys
import anyio, pkg
from kit.asgi_client import Http

def first() -> str:
    return "text"

async def main():
    server = pkg.Server("streams", "1")
    server.add_tool(first)
    app = server.asgi()
    async with anyio.create_task_group() as tasks:
        http = Http(app, tasks, "/mcp")
        await http.initialize(sys.argv[1])
        async with http.stream("GET", fields={"last-event-id": "unknown-1"}) as stream:
            server.add_tool(main)
            await stream.message()
            print(stream.status, stream.raw)
    await app.end()

anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("revision", [MIDDLE, LAST_WITH_SESSIONS])
def test_a_stream_by_get_has_no_ids_and_resumes_nothing(
    tmp_path: Path, revision: str, backend: str
) -> None:
    files = rendered("server", "http", (revision,), features=())
    assert "server/asgi/event_store.py" not in files
    write_package(files, tmp_path)
    event = b'data: {"method":"notifications/tools/list_changed","jsonrpc":"2.0"}\n\n'
    shown = output_of(LISTENS, revision, backend, cwd=tmp_path, paths=(TESTS, PACKAGE.parent))
    assert shown == f"200 {event!r}\n"
