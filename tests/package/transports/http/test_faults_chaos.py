"""Our client and our server with a proxy between them that drops what it likes, by a seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.listen import ToolsChanged
from mcpgen_runtime.errors import ConnectFailedError, RequestTimeoutError, ResponseLostError
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.faults import ONE_OF_EACH, call_text, check_quiet, client_of, text_of
from package.http_process import SECONDS, HttpProcess, http_process
from package.http_server import Asked
from package.transports.http.faulty_proxy import FAULTLESS, Fault, FaultyProxy, faultless

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.processes]

CALLERS, CALLS = 4, 7
TIMEOUT = 0.2
LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)

PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01)
QUICK = Timeouts(retries=(0.0, 0.01, 0.02, 0.04), http=PAUSES)


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(retry=0.01) as process:
        yield process


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


class Chaos:
    """A plan: of three requests one is lost, or its answer, somewhere."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def __call__(self, asked: Asked) -> Fault:
        draw, place = self._random.random(), self._random.randrange(800)
        if draw < 0.12:
            return Fault(up=place)
        if draw < 0.32:
            return Fault(down=place)
        if draw < 0.35 and asked.what == "tools/call":
            return Fault(down=place, then="silence")
        return FAULTLESS


class Caller:
    """Makes calls, and knows what came of them.

    Attributes:
        answered: The marks that were answered.
        lost: How many calls failed.
    """

    def __init__(self, client: Any, name: str) -> None:
        self.answered: list[str] = []
        self.lost = 0
        self._client = client
        self._name = name

    async def run(self) -> None:
        """Make them all."""
        for number in range(CALLS):
            for step in (self._add, self._count, self._mark):
                try:
                    await step(number)
                except LOST as error:
                    text_of(error)
                    self.lost += 1

    async def _add(self, number: int) -> None:
        result = await self._client.call_tool("add", {"a": number, "b": 1}, timeout=TIMEOUT)
        assert result.content[0].text == str(number + 1)

    async def _count(self, number: int) -> None:
        heard: list[float] = []
        how = {"to": number + 1, "width": 100}
        result = await self._client.call_tool(
            "count", how, timeout=TIMEOUT, on_progress=lambda value, *more: heard.append(value)
        )
        assert result.content[0].text == str(number + 1)
        # What is asked again counts anew; within one answer nothing is missing or comes twice.
        assert all(after in (before + 1, 1) for before, after in pairwise([0.0, *heard]))
        assert heard[-1] == number + 1

    async def _mark(self, number: int) -> None:
        key = f"{self._name}-{number}"
        result = await self._client.call_tool(
            "mark", {"key": key}, timeout=TIMEOUT, on_progress=lambda *report: None
        )
        assert result.content[0].text == key
        self.answered.append(key)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_whatever_is_dropped_no_call_hangs_or_runs_twice(
    revision: str, seed: int, server: HttpProcess, anyio_backend: str
) -> None:
    name = f"{revision}-{anyio_backend}-{seed}"
    async with (
        FaultyProxy(server.port) as proxy,
        client_of(server, revision, url=proxy.url, timeouts=QUICK) as client,
        client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
    ):
        callers = [Caller(client, f"{name}-{number}") for number in range(CALLERS)]
        proxy.plan = Chaos(seed)
        async with anyio.create_task_group() as tasks:
            for caller in callers:
                tasks.start_soon(caller.run)
        proxy.plan = faultless
        await call_text(client, "grow", name=name)
        with anyio.fail_after(SECONDS):
            while await anext(changes) != ToolsChanged():
                pass
        done = (await call_text(client, "marks")).split()
    answered = [key for caller in callers for key in caller.answered]
    assert len(done) == len(set(done))
    assert set(answered) <= set(done)
    assert answered
    assert sum(caller.lost for caller in callers)
