"""Clients in processes that are killed in the middle of things: the places they held are free."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest

from kit.faults import call_text
from kit.http_process import SECONDS, Process, http_process
from kit.wire import PER_REQUEST, SESSIONS
from mcpgen_runtime import HttpStatusError, RemoteError, Timeouts, ToolsChanged, connect

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
AT_ONCE = Timeouts(retries=())
"""A client that gives up at the first refusal."""


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
            with pytest.raises(HttpStatusError, match="503"):
                async with connect(server.url, revision=revision, timeouts=AT_ONCE):
                    raise AssertionError("it was opened")
        finally:
            killed.kill()
        async with AsyncExitStack() as stack:

            async def let_in(opening: Any) -> Any:
                deadline = anyio.current_time() + SECONDS
                while True:
                    try:
                        return await stack.enter_async_context(opening())
                    except (HttpStatusError, RemoteError) as error:
                        if "too " not in str(error) or anyio.current_time() > deadline:
                            raise

            connecting = partial(connect, server.url, revision=revision, timeouts=AT_ONCE)
            another = await let_in(connecting)
            changes = await let_in(partial(another.listen, tools=True))
            await server.until("cancelled a")
            await call_text(another, "grow", name="more")
            with anyio.fail_after(SECONDS):
                assert await anext(changes) == ToolsChanged()
