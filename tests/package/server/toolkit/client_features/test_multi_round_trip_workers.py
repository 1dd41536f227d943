"""Several processes serve one thing over HTTP, and each request comes to the next of them.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.asgi_client import BOTH, fields_of
from kit.http_process import Process
from kit.processes import PACKAGE_ROOT
from kit.respondent import EVERYTHING, accept_result, text_in
from kit.rules import revisions_holding
from kit.wire import PER_REQUEST, request
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.errors import RemoteError
from mcpgen_runtime.runtime.request_context import RequestContext

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEY = "one key for all of them"
MODULE = "package.server.toolkit.client_features.asking_worker"
WORKER = [sys.executable, "-m", "mcpgen_runtime", "serve", MODULE]
PATHS = f"{PACKAGE_ROOT}{os.pathsep}{Path(__file__).parents[4]}"
URL = re.compile(r"serving at (http://127\.0\.0\.1:\d+/mcp)")
CALL: dict[str, Any] = {"name": "route", "arguments": {"start": "Moss"}}

modern = pytest.mark.parametrize("revision", PER_REQUEST)


class RoundRobin(httpx2.AsyncBaseTransport):
    """Sends each request to the next of several servers.

    Args:
        urls: Where they are.

    Attributes:
        took: Which of them got each call of a tool, by its number.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._turns = itertools.cycle(range(len(urls)))
        self._inner = httpx2.AsyncHTTPTransport()
        self.took: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        turn = next(self._turns)
        if b'"tools/call"' in await request.aread():
            self.took.append(turn)
        request.url = httpx2.URL(self._urls[turn])
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Traveller(ClientHandlers):
    """Names the next city each time that it is asked."""

    def __init__(self) -> None:
        self.cities = iter(["Bergen", "Voss", "Oslo"])
        self.asked: list[str] = []

    async def elicit(self, params: Any, ctx: RequestContext) -> Any:
        self.asked.append(params.message)
        return accept_result(name=next(self.cities))


@contextmanager
def workers(*keys: str, seconds: float = 60) -> Iterator[list[str]]:
    """The URLs of processes that serve the same, each with its key; killed in the end."""
    with ExitStack() as ending:
        urls: list[str] = []
        for key in keys:
            environment = {"PYTHONPATH": PATHS, "KEY": key, "SECONDS": str(seconds)}
            worker = Process([*WORKER, "--http", "127.0.0.1:0"], environment)
            ending.callback(worker.check_quiet)
            ending.callback(worker.kill)
            urls.append(worker.wait_for(URL.pattern)[0][1])
        yield urls


def ask(url: str, revision: str, params: Any, method: str = "tools/call") -> Any:
    """The response to a request of a client that supports every request of a server."""
    message = request(revision, method, params, capabilities=EVERYTHING)
    fields = {name: value for name, value in fields_of(revision, message).items() if value}
    return httpx2.post(url, json=message, headers={"Accept": BOTH, **fields}).json()


def is_refused(answer: Any) -> bool:
    """Whether a request was refused for its state."""
    error = answer.get("error", {"code": None})
    return error["code"] == -32602 and "requestState" in error["message"]


@pytest.mark.requirement("mrtr.rounds-independent", "mrtr.repeatable")
@modern
async def test_each_round_may_come_to_another_worker(revision: str) -> None:
    traveller = Traveller()
    with workers(KEY, KEY) as urls:
        balancer = RoundRobin(urls)
        async with (
            httpx2.AsyncClient(transport=balancer) as own,
            connect(urls[0], revision=revision, handlers=traveller, http_client=own) as client,
        ):
            result: Any = await client.call_tool("route", CALL["arguments"])
    assert result.content[0].text == "Moss Bergen Voss Oslo"
    assert traveller.asked == [f"Where to from {city}?" for city in ("Moss", "Bergen", "Voss")]
    assert balancer.took in ([0, 1, 0, 1], [1, 0, 1, 0])


@pytest.mark.parametrize("revision", revisions_holding("elicitation.standalone-request"))
async def test_in_a_session_the_same_tool_asks_by_requests(revision: str) -> None:
    traveller = Traveller()
    with workers("") as (url,):
        async with connect(url, revision=revision, handlers=traveller) as client:
            result: Any = await client.call_tool("route", CALL["arguments"])
    assert result.content[0].text == "Moss Bergen Voss Oslo"
    assert len(traveller.asked) == 3


@modern
async def test_workers_without_a_common_key_say_what_they_lack(revision: str) -> None:
    with workers("", "") as urls:
        async with (
            httpx2.AsyncClient(transport=RoundRobin(urls)) as own,
            connect(urls[0], revision=revision, handlers=Traveller(), http_client=own) as client,
        ):
            with pytest.raises(RemoteError, match="state_key") as refused:
                await client.call_tool("route", CALL["arguments"])
    assert refused.value.code == -32602


@pytest.mark.requirement(
    "mrtr.state-reject-invalid", "mrtr.state-bound-to-request", "mrtr.state-integrity"
)
@modern
def test_every_worker_refuses_an_altered_or_foreign_state(
    revision: str,
) -> None:
    with workers(KEY, KEY) as (one, two):
        first = ask(one, revision, CALL)["result"]
        ((key, _),) = first["inputRequests"].items()
        state: str = first["requestState"]
        given = {"inputResponses": {key: accept_result(name="Oslo")}, "requestState": state}
        cut = state.index(".")
        for at in (0, 12, cut - 1, cut, cut + 1, len(state) - 1):
            flipped = state[:at] + chr(ord(state[at]) ^ 1) + state[at + 1 :]
            for url in (one, two):
                assert is_refused(ask(url, revision, {**CALL, **given, "requestState": flipped}))
        other = {**CALL, "arguments": {"start": "Voss"}, **given}
        assert is_refused(ask(two, revision, other))
        assert is_refused(ask(two, revision, {"name": "travel", **given}, "prompts/get"))
        (asked,) = ask(two, revision, {**CALL, **given})["result"]["inputRequests"].values()
        assert asked["params"]["message"] == "Where to from Oslo?"
        declined = {"inputResponses": {key: {"action": "decline"}}, "requestState": state}
        assert text_in(ask(two, revision, {**CALL, **declined})) == "Moss"


@pytest.mark.requirement("mrtr.state-expiry")
@modern
def test_every_worker_refuses_a_state_whose_time_is_over(revision: str) -> None:
    with workers(KEY, KEY, seconds=1e-6) as (one, two):
        state = ask(one, revision, CALL)["result"]["requestState"]
        for url in (one, two):
            assert is_refused(ask(url, revision, {**CALL, "requestState": state}))
