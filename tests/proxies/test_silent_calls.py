"""Silent calls through nginx and HAProxy, made side by side: each test looks at how one ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, fields_of
from kit.faults import Outcome
from kit.http_process import HttpProcess, http_process
from kit.raw_http import Raw, message_bytes, raw
from kit.wire import PER_REQUEST, STREAMABLE, request
from mcpgen_runtime import connect
from mcpgen_runtime.framing.sse import encode_comment
from proxies.programs import Proxy, Route, haproxy, nginx

pytestmark = [pytest.mark.proxies, pytest.mark.timeout(240)]

SERVERS = {"auto": {"h11": True}, "sse": {}}
"""How the servers answer, and what uvicorn has to speak HTTP with: h11, or httptools."""

SHORT = 20
"""Seconds for which proxies wait on routes with short limits."""

SILENCE = {SHORT: 35, None: 70}
"""Seconds for which calls are silent, by the limit of their route."""

KEEP_ALIVE = 15
"""Seconds of silence before a comment, which is the default."""

ROUTES = [
    (proxy, Route(f"{answers}-{version}-{limit}", answers, version, limit))
    for proxy, version in (("nginx", "1.0"), ("nginx", "1.1"), ("haproxy", "1.1"))
    for answers in SERVERS
    for limit in SILENCE
]

Ending: TypeAlias = Literal["answered", "cancelled", "streamed", "refused"]

PAUSE = 0.2


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
                await anyio.sleep(PAUSE)
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
    fields = fields_of(scenario.revision, message) | {"Accept": accept}
    async with raw(place.port) as connection:
        await connection.send(message_bytes(place.port, message, fields, path=place.path))
        yield connection


SCENARIOS = [
    Scenario(proxy, route, revision, "answered", SILENCE[route.seconds])
    for proxy, route in ROUTES
    for revision in STREAMABLE
]
SCENARIOS += [
    # What reaches the proxy is a closed connection, which HAProxy sees once it has to write to it.
    Scenario(proxy, route, revision, "cancelled", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    for revision in STREAMABLE
    if route.seconds is None
]
SCENARIOS += [
    Scenario(proxy, route, PER_REQUEST[-1], "streamed", 3 * KEEP_ALIVE)
    for proxy, route in ROUTES
    if route.seconds is None
]
SCENARIOS += [
    Scenario(proxy, Route("refused", "auto", seconds=SHORT), PER_REQUEST[-1], "refused", SHORT)
    for proxy in ("nginx", "haproxy")
]


MAKE: dict[Ending, Callable[..., Awaitable[str]]] = {
    "answered": _answer_call,
    "cancelled": _cancel_call,
    "streamed": _stream_call,
    "refused": _refuse_call,
}


class Run:
    """All scenarios, run."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.servers: dict[str, HttpProcess] = {
            answers: stack.enter_context(http_process(answers=answers, **how))
            for answers, how in SERVERS.items()
        }
        ports = {answers: server.port for answers, server in self.servers.items()}
        self.proxies: dict[str, Proxy] = {}
        for name, run in (("nginx", nginx), ("haproxy", haproxy)):
            routes = {each.route.name: each.route for each in SCENARIOS if each.proxy == name}
            self.proxies[name] = stack.enter_context(run(folder, [*routes.values()], ports))
        self.outcomes = {each.key: Outcome() for each in SCENARIOS}
        anyio.run(self._make_all)

    async def _make_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            for each in SCENARIOS:
                url = self.proxies[each.proxy].url(each.route)
                call = partial(MAKE[each.ending], each, url, self.servers[each.route.server])
                tasks.start_soon(self.outcomes[each.key].run, call)

    def value(self, scenario: Scenario) -> str:
        """How a scenario ended."""
        outcome = self.outcomes[scenario.key]
        if outcome.failure is not None:
            raise outcome.failure
        return str(outcome.value)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with ExitStack() as stack:
        yield Run(stack, tmp_path_factory.mktemp("proxies"))


IN_VAIN = ("timed out", " sH", " sD", " cD")
"""Marks of timeouts in the logs of nginx and HAProxy."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
def test_a_call_silent_for_longer_than_the_proxy_waits_ends_as_it_should(
    scenario: Scenario, run: Run
) -> None:
    expected = {"answered": scenario.key, "refused": "504"}.get(scenario.ending, scenario.ending)
    assert run.value(scenario) == expected
    if scenario.ending == "answered":  # nobody had to ask again
        assert run.servers[scenario.route.server].said(f"working {scenario.key}") == 1
    lines = run.proxies[scenario.proxy].lines(scenario.route)
    waited = [line for line in lines if any(mark in line for mark in IN_VAIN)]
    assert bool(waited) is (scenario.ending == "refused"), waited
