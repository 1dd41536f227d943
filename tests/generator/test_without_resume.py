"""A package without the feature `resume`: streams by GET have no ids of events."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.command_line import output_of
from generator.selections import LAST_WITH_SESSIONS, MIDDLE, rendered, write_package

LISTENS = """
import json, sys
import anyio
import pkg

def first() -> str:
    return "text"

server = pkg.Server("streams", "1")
server.add_tool(first)
app = server.asgi()
HEADERS = {"host": "localhost", "content-type": "application/json", "accept": "*/*"}

async def ask(method, message=None, until=None, **fields):
    sent, bodies = [], iter([{"type": "http.request", "body": json.dumps(message).encode()}])
    async def receive():
        for body in bodies:
            return body
        await until.wait()
        return {"type": "http.disconnect"}
    async def send(part):
        sent.append(part)
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    pairs = [(name.encode(), value.encode()) for name, value in {**HEADERS, **fields}.items()]
    scope = {"type": "http", "method": method, "path": "/mcp", "headers": pairs}
    await app(scope, receive, send)
    return sent

async def main():
    params = {"protocolVersion": sys.argv[1], "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    opened = await ask("POST", first)
    session = {"mcp_session_id": dict(opened[0]["headers"])[b"mcp-session-id"].decode()}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await ask("POST", note, **session)
    over, streams = anyio.Event(), []
    async def listen():
        streams.append(await ask("GET", None, over, last_event_id="unknown-1", **session))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        server.add_tool(main)
        await anyio.wait_all_tasks_blocked()
        over.set()
    print(streams[0][0]["status"], b"".join(part.get("body", b"") for part in streams[0]))
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
    assert output_of(LISTENS, revision, backend, cwd=tmp_path) == f"200 {event!r}\n"
