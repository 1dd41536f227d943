"""Calls through proxies, each silent for as long as its scenario says; all made side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from kit.asgi_client import BOTH, JSON, SSE, fields_of
from kit.faults import Outcome
from kit.http_process import HttpProcess
from kit.raw_http import Raw, head, raw
from kit.wire import encode_message, request
from mcpgen_runtime import connect
from mcpgen_runtime.framing.sse import encode_comment
from proxies.programs import Proxy, Route

Ending: TypeAlias = Literal["answered", "cancelled", "streamed", "refused"]

_PAUSE = 0.2


@dataclass(frozen=True)
class Scenario:
    """One call."""

    proxy: str
    route: Route
    revision: str
    ending: Ending
    seconds: int

    @property
    def key(self) -> str:
        """Names the scenario."""
        return f"{self.proxy}-{self.route.name}-{self.revision}-{self.ending}"


async def run_all(
    scenarios: Sequence[Scenario],
    proxies: dict[str, Proxy],
    servers: dict[str, HttpProcess],
) -> dict[str, Outcome]:
    """Make all calls; how each ended, by key."""
    make: dict[Ending, Callable[..., Awaitable[str]]] = {
        "answered": _answer_call,
        "cancelled": _cancel_call,
        "streamed": _stream_call,
        "refused": _refuse_call,
    }
    outcomes: dict[str, Outcome] = {}
    async with anyio.create_task_group() as tasks:
        for each in scenarios:
            outcome = outcomes[each.key] = Outcome()
            url = proxies[each.proxy].url(each.route)
            tasks.start_soon(
                outcome.run, partial(make[each.ending], each, url, servers[each.route.server])
            )
    return outcomes


async def _answer_call(scenario: Scenario, url: str, server: HttpProcess) -> str:
    """Make a call, and let it end after its silence."""
    outcome = Outcome()
    async with (
        connect(url, revision=scenario.revision) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": scenario.key}))
        await server.until(f"working {scenario.key}")
        await anyio.sleep(scenario.seconds)
        await client.call_tool("release", {"key": scenario.key})
    return await outcome.text()


async def _cancel_call(scenario: Scenario, url: str, server: HttpProcess) -> str:
    """Cancel a call, and wait until the server has heard of it; the session goes on meanwhile."""
    cancelled = f"cancelled {scenario.key}"
    async with connect(url, revision=scenario.revision) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "look", {"key": scenario.key})
            await server.until(f"working {scenario.key}")
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(scenario.seconds):
            while not server.said(cancelled):  # which is another process
                await anyio.sleep(_PAUSE)
    return "cancelled" if server.said(cancelled) else "not cancelled"


async def _stream_call(scenario: Scenario, url: str, server: HttpProcess) -> str:
    """Make a call, and read until the client has the head of a stream and a comment."""
    async with _post_call(scenario, url, BOTH) as connection:
        with anyio.fail_after(scenario.seconds):
            response = await connection.until(b"\r\n\r\n")
            await connection.until(encode_comment())
    assert not server.said(f"done {scenario.key}")
    return "streamed" if f"content-type: {SSE}".encode() in response.lower() else f"{response!r}"


async def _refuse_call(scenario: Scenario, url: str, server: HttpProcess) -> str:
    """Make a call whose answer has to be JSON; the status that the proxy answers with."""
    async with _post_call(scenario, url, JSON) as connection:
        await server.until(f"working {scenario.key}")
        await anyio.sleep(scenario.seconds)
        return str(await connection.status())


@asynccontextmanager
async def _post_call(scenario: Scenario, url: str, accept: str) -> AsyncIterator[Raw]:
    """Make a call over a socket, in a revision without sessions."""
    place = urlsplit(url)
    assert place.port is not None
    params = {"name": "look", "arguments": {"key": scenario.key}}
    message = request(scenario.revision, "tools/call", params)
    body = encode_message(message)
    fields = {"Accept": accept, "Content-Length": str(len(body))}
    first = head(place.port, fields_of(scenario.revision, message) | fields)
    async with raw(place.port) as connection:
        await connection.send(first.replace(b"/mcp", place.path.encode(), 1) + body)
        yield connection
