"""Clients in processes that are killed in the middle of things: the places they held are free."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

import anyio
import pytest

from kit.asgi_client import fields_of
from kit.faults import call_text
from kit.http_process import SECONDS, Process, http_process
from kit.raw_http import message_bytes, raw
from kit.wire import PER_REQUEST, SESSIONS, initialize, request
from mcpgen_runtime import RemoteError, ToolsChanged, connect

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.usefixtures("quiet")]

CLIENT = """
import anyio, sys
from mcpgen_runtime import connect

async def main(url, revision):
    async with connect(url, revision=revision) as client, client.listen(tools=True):
        print("listening", file=sys.stderr, flush=True)
        await client.call_tool("work", {"key": "a"}, on_progress=lambda *report: None)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("revision", "limits"),
    [
        *((revision, {"streams": 1, "in_flight": 1}) for revision in PER_REQUEST),
        (SESSIONS[-1], {"streams": 1, "sessions": 1}),
    ],
)
async def test_places_of_killed_clients_are_free_again(
    revision: str, limits: Mapping[str, int]
) -> None:
    with http_process(limits=limits, keep_alive=0.1) as server:
        killed = Process([sys.executable, "-c", CLIENT, server.url, revision])
        try:
            await killed.until("listening")
            await server.until("working a")
            opening = (
                initialize(revision)
                if revision in SESSIONS
                else request(revision, "server/discover")
            )
            async with raw(server.port) as connection:
                fields = fields_of(revision, opening)
                await connection.send(message_bytes(server.port, opening, fields))
                assert await connection.status() == 503
        finally:
            killed.kill()
        async with connect(server.url, revision=revision) as another, AsyncExitStack() as stack:
            deadline, changes = anyio.current_time() + SECONDS, None
            while changes is None:
                try:
                    changes = await stack.enter_async_context(another.listen(tools=True))
                except RemoteError as error:
                    if "too " not in str(error) or anyio.current_time() > deadline:
                        raise
            await server.until("cancelled a")
            await call_text(another, "grow", name="more")
            with anyio.fail_after(SECONDS):
                assert await anext(changes) == ToolsChanged()
