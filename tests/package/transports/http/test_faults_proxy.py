"""Our client and our server with a proxy between them that cuts, holds back and repeats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.listen import ToolsChanged
from mcpgen_runtime.errors import (
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package import faults
from package.faults import EACH, ONE_OF_EACH, Outcome, call_text, check_quiet, text_of
from package.http_process import SECONDS, HttpProcess, http_process
from package.http_server import Asked
from package.transports.http.faulty_proxy import FAULTLESS, Fault, FaultyProxy, Plan, faultless
from package.wire import PER_REQUEST, SESSIONS

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

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


def ignore(*report: object) -> None:
    """Ask for progress, so that the answer is a stream."""


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_delayed_events_arrive_complete_and_in_order(
    revision: str, server: HttpProcess, key: str
) -> None:
    outcome, heard = Outcome(), list[float]()

    def report(value: float, *more: object) -> None:
        heard.append(value)

    async with (
        connect_through_proxy(server, revision) as (client, proxy),
        anyio.create_task_group() as tasks,
    ):
        proxy.plan = once(Fault(held=True))
        call = partial(client.call_tool, "work", {"key": key}, on_progress=report)
        tasks.start_soon(outcome.run, call)
        await proxy.struck()
        await call_text(client, "release", key=key)
        await server.until(f"done {key}")
        proxy.release()
        assert await outcome.text() == key
        assert heard == [1, 2]


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


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_a_held_back_subscription_is_agreed_to_once_let_go(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        proxy.plan = lambda asked: Fault(held=asked.what == "subscriptions/listen")
        with pytest.raises(RequestTimeoutError):
            async with client.listen(tools=True, timeout=0.3):
                raise AssertionError("nobody agreed")
        async with anyio.create_task_group() as tasks:

            async def let_go() -> None:
                await proxy.struck(2)
                proxy.release()

            tasks.start_soon(let_go)
            async with client.listen(tools=True) as changes:
                await call_text(client, "grow", name=key)
                assert await anext(changes) == ToolsChanged()


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


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_cut_stream_is_resumed_where_sessions_exist(
    revision: str, server: HttpProcess, key: str
) -> None:
    heard: list[float] = []

    def report(value: float, *more: object) -> None:
        heard.append(value)

    async with connect_through_proxy(server, revision) as (client, proxy):
        for passed in (400, 500, 700):
            proxy.plan = once(Fault(down=passed))
            own = f"{key}-{passed}"
            marked = await client.call_tool("mark", {"key": own}, on_progress=report)
            await proxy.struck()
            assert marked.content[0].text == own
            assert (await call_text(client, "marks")).split().count(own) == 1
        proxy.plan = once(Fault(down=5000))
        heard.clear()
        counting = {"to": 200, "width": 100}
        counted = await client.call_tool("count", counting, on_progress=report)
        assert counted.content[0].text == "200"
        assert heard == list(range(1, 201))


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


@pytest.mark.parametrize("passed", [0, 150])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_half_an_answer_then_silence_ends_at_the_call_timeout(
    revision: str, passed: int, server: HttpProcess, key: str
) -> None:
    async with connect_through_proxy(server, revision) as (client, proxy):
        for report in (None, ignore):
            proxy.plan = once(Fault(down=passed, then="silence"))
            with pytest.raises(RequestTimeoutError):
                await client.call_tool("mark", {"key": key}, timeout=0.1, on_progress=report)
            assert await call_text(client, "add", a=1, b=2) == "3"


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_stalled_document_is_given_up_without_a_call_timeout(
    revision: str, server: HttpProcess, key: str
) -> None:
    timeouts = Timeouts(silence=0.3, http=PAUSES)
    async with connect_through_proxy(server, revision, timeouts=timeouts) as (client, proxy):
        proxy.plan = once(Fault(down=150, then="silence"))
        with pytest.raises(ResponseLostError, match="made no progress"):
            await call_text(client, "mark", key=key)
        assert await call_text(client, "mark", key=key) == key


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


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_client_repeats_that_it_is_ready_if_that_was_lost(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with FaultyProxy(server.port) as proxy:
        readiness = "notifications/initialized"
        proxy.plan = once(Fault(up=10), readiness)
        async with (
            client_of(server, revision, url=proxy.url) as client,
            client.listen(tools=True) as changes,
        ):
            await call_text(client, "grow", name=key)
            with anyio.fail_after(SECONDS):
                assert await anext(changes) == ToolsChanged()
        proxy.plan = lambda asked: Fault(up=10 if asked.what == readiness else None)
        with pytest.raises(ResponseLostError) as lost:
            async with client_of(server, revision, url=proxy.url):
                raise AssertionError("it was opened")
        text_of(lost.value)


@pytest.mark.parametrize("revision", EACH)
async def test_an_opening_that_is_lost_is_repeated_or_fails_readably(
    revision: str, server: HttpProcess
) -> None:
    opening = "initialize" if revision in SESSIONS else "server/discover"
    async with FaultyProxy(server.port) as proxy:
        for fault in (Fault(up=0), Fault(up=-10), Fault(down=0), Fault(down=60), Fault(down=150)):
            proxy.plan = once(fault, opening)
            async with client_of(server, revision, url=proxy.url) as client:
                assert client.revision == revision
            proxy.plan = once(fault, opening)
            with pytest.raises(ResponseLostError) as lost:
                timeouts = Timeouts(retries=())
                async with client_of(server, revision, url=proxy.url, timeouts=timeouts):
                    raise AssertionError("it was opened")
            text_of(lost.value)
