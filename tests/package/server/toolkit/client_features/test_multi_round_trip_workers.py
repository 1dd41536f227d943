"""Several processes serve one thing over HTTP, and each request comes to the next of them.

Source: basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.http_process import Process
from kit.processes import PACKAGE_ROOT
from kit.respondent import accept_result
from kit.wire import PER_REQUEST
from mcpgen_runtime import ClientHandlers, RequestContext, connect

pytestmark = pytest.mark.slow

MODULE = "package.server.toolkit.client_features.asking_worker"
WORKER = [sys.executable, "-m", "mcpgen_runtime", "serve", MODULE]
PATHS = f"{PACKAGE_ROOT}{os.pathsep}{Path(__file__).parents[4]}"
URL = re.compile(r"serving at (http://127\.0\.0\.1:\d+/mcp)")


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


@pytest.mark.requirement("mrtr.rounds-independent", "mrtr.repeatable")
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_each_round_may_come_to_another_worker(revision: str) -> None:
    class Traveller(ClientHandlers):
        """Names the next city each time that it is asked."""

        cities = iter(["Bergen", "Voss", "Oslo"])

        async def elicit(self, params: Any, ctx: RequestContext) -> Any:
            asked.append(params.message)
            return accept_result(value=next(self.cities))

    asked: list[str] = []
    urls: list[str] = []
    with ExitStack() as ending:
        for _ in range(2):
            worker = Process([*WORKER, "--http", "127.0.0.1:0"], {"PYTHONPATH": PATHS})
            ending.callback(worker.check_quiet)
            ending.callback(worker.kill)
            urls.append(worker.wait_for(URL.pattern)[0][1])
        balancer = RoundRobin(urls)
        async with (
            httpx2.AsyncClient(transport=balancer) as own,
            connect(urls[0], revision=revision, handlers=Traveller(), http_client=own) as client,
        ):
            result: Any = await client.call_tool("route", {"start": "Moss"})
    assert result.content[0].text == "Moss Bergen Voss Oslo"
    assert asked == [f"Where to from {city}?" for city in ("Moss", "Bergen", "Voss")]
    assert balancer.took in ([0, 1, 0, 1], [1, 0, 1, 0])
