"""Our client and our server with a proxy between them that cuts, holds back, repeats, or all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count, pairwise
from random import Random
from typing import Any

import anyio
import pytest

from kit import faults
from kit.faults import EACH, ONE_OF_EACH, call_text, check_quiet, ignore, text_of
from kit.http_process import SECONDS, HttpProcess, http_process
from kit.http_server import Asked
from mcpgen_runtime import (
    ConnectFailedError,
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.transports.http.faulty_proxy import FAULTLESS, Fault, FaultyProxy, Plan, faultless

pytestmark = pytest.mark.processes

KEYS = count()


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    limits = {"body_seconds": 0.3, "head_seconds": 5.0}
    with http_process(limits=limits, retry=0.02) as process:
        yield process


@pytest.fixture
def key() -> str:
    """An argument for the tool; no other test of this server uses it."""
    return f"k{next(KEYS)}"


PAUSES = HttpTimeouts(first_pause=0.02, shortest_pause=0.02, longest_poll=0.02)
client_of = partial(faults.client_of, timeouts=Timeouts(http=PAUSES))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


@asynccontextmanager
async def connect_through_proxy(
    server: HttpProcess, revision: str, **how: Any
) -> AsyncIterator[tuple[Any, FaultyProxy]]:
    """A client that reaches the server by a proxy."""
    async with (
        FaultyProxy(server.port) as proxy,
        client_of(server, revision, url=proxy.url, **how) as client,
    ):
        yield client, proxy


def once(fault: Fault, what: str = "tools/call") -> Plan:
    """The plan by which the next request of a kind meets a fault, and no other."""
    left = [fault]

    def plan(asked: Asked) -> Fault:
        return left.pop() if left and asked.what == what else FAULTLESS

    return plan


@pytest.mark.parametrize("revision", EACH)
async def test_a_held_back_call_times_out_and_the_next_gets_its_own(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        proxy.plan = once(Fault(held=True))
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("work", {"key": key}, timeout=0.2, on_progress=ignore)
        await server.until(f"cancelled {key}")
        proxy.release()
        assert await call_text(client, "add", a=1, b=2) == "3"


@pytest.mark.parametrize("passed", [0, 1, 60, 150])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_cut_answer_is_requested_again_only_where_that_is_safe(
    revision: str, passed: int, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        cut = Fault(down=passed)
        proxy.plan = once(cut)
        assert await call_text(client, "add", a=1, b=2) == "3"
        proxy.plan = once(cut)
        with pytest.raises(ResponseLostError) as lost:
            await call_text(client, "mark", key=key)
        assert proxy.url in text_of(lost.value)
        await proxy.struck(2)
        assert (await call_text(client, "marks")).split().count(key) == 1


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_request_that_was_cut_is_not_acted_on(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        for passed in (0, 10, 150, -10):
            proxy.plan = once(Fault(up=passed))
            with pytest.raises(ResponseLostError) as lost:
                await call_text(client, "mark", key=key)
            assert proxy.url in text_of(lost.value)
        assert key not in (await call_text(client, "marks")).split()
        assert await call_text(client, "mark", key=key) == key


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_half_a_request_and_then_silence_is_refused_in_time(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        proxy.plan = once(Fault(up=-10, then="silence"))
        with pytest.raises(RemoteError, match="did not come in time"):
            await call_text(client, "mark", key=key)
        assert await call_text(client, "mark", key=key) == key
        assert (await call_text(client, "marks")).split().count(key) == 1


@pytest.mark.parametrize("which", ["first counts", "second counts"])
@pytest.mark.parametrize("revision", EACH)
async def test_doubled_requests_each_get_their_own_answer(
    revision: str, which: Any, server: HttpProcess, key: str
) -> None:
    async with FaultyProxy(server.port) as proxy:
        proxy.plan = lambda asked: Fault(replayed=which if asked.verb == "POST" else None)
        async with client_of(server, revision, url=proxy.url) as client:
            for number in range(5):
                assert await call_text(client, "add", a=number, b=1) == str(number + 1)
                own = f"{key}-{number}"
                assert await marked_or_refused(client, own) in (own, None)
            proxy.plan = faultless
            done = (await call_text(client, "marks")).split()
            assert {done.count(f"{key}-{number}") for number in range(5)} <= {1, 2}
            assert await call_text(client, "add", a=1, b=2) == "3"


async def marked_or_refused(client: Any, key: str) -> str | None:
    """The text of a call's answer; `None` if it was refused for an id that was used before."""
    try:
        marked = await client.call_tool("mark", {"key": key}, on_progress=ignore)
    except RemoteError as error:
        if "id" not in str(error):
            raise
        return None
    text: str = marked.content[0].text
    return text


CALL_SECONDS = 0.2
LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)
QUICK = Timeouts(
    retries=(0.0, 0.01, 0.02, 0.04),
    http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01),
)


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
        for number in range(7):
            for step in (self._add, self._count, self._mark):
                try:
                    await step(number)
                except LOST as error:
                    text_of(error)
                    self.lost += 1

    async def _add(self, number: int) -> None:
        result = await self._client.call_tool("add", {"a": number, "b": 1}, timeout=CALL_SECONDS)
        assert result.content[0].text == str(number + 1)

    async def _count(self, number: int) -> None:
        heard: list[float] = []
        how = {"to": number + 1, "width": 100}
        result = await self._client.call_tool(
            "count", how, timeout=CALL_SECONDS, on_progress=lambda value, *more: heard.append(value)
        )
        assert result.content[0].text == str(number + 1)
        # What is asked again counts anew; within one answer nothing is missing or comes twice.
        assert all(after in (before + 1, 1) for before, after in pairwise([0.0, *heard]))
        assert heard[-1] == number + 1

    async def _mark(self, number: int) -> None:
        key = f"{self._name}-{number}"
        result = await self._client.call_tool(
            "mark", {"key": key}, timeout=CALL_SECONDS, on_progress=lambda *report: None
        )
        assert result.content[0].text == key
        self.answered.append(key)


@pytest.fixture(scope="module")
def patient_server() -> Iterator[HttpProcess]:
    """A server that waits for what a proxy cuts, and that no other test uses."""
    with http_process(retry=0.01) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_whatever_is_dropped_no_call_hangs_or_runs_twice(
    revision: str, seed: int, patient_server: HttpProcess, anyio_backend: str
) -> None:
    name = f"{revision}-{anyio_backend}-{seed}"
    async with (
        FaultyProxy(patient_server.port) as proxy,
        client_of(patient_server, revision, url=proxy.url, timeouts=QUICK) as client,
        client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
    ):
        callers = [Caller(client, f"{name}-{number}") for number in range(4)]
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
