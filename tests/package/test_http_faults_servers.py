"""Servers that are killed, started again or told to end, while clients of ours are connected."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import anyio
import pytest

from mcp_protocol.client_side.changes import ListeningAgain, ResourceUpdated, ToolsChanged
from mcp_protocol.errors import (
    AnswerLostError,
    ConnectFailedError,
    HttpStatusError,
)
from mcp_protocol.transports.http import streams
from package.faults import EACH, ONE_OF_EACH, Outcome, called, check_quiet, client_of, text_of
from package.http_process import HttpProcess, http_process
from package.http_script import SESSION, STATELESS

pytestmark = pytest.mark.anyio

MEMO = "memo://one"


@pytest.fixture
def server() -> Iterator[HttpProcess]:
    with http_process(retry=0.02) as process:
        yield process


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses that no server asked for are short."""
    monkeypatch.setattr(streams, "FIRST_PAUSE", 0.02)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


@pytest.mark.parametrize("revision", EACH)
async def test_a_call_dies_with_the_server_and_the_next_one_finds_the_one_started_after_it(
    revision: str, server: HttpProcess
) -> None:
    outcome = Outcome()
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:
        reports: list[float] = []
        call = partial(client.call_tool, "work", {"key": "a"})
        tasks.start_soon(outcome.run, partial(call, on_progress=lambda *a: reports.append(a[0])))
        await server.until("working a")
        server.kill()
        text = await outcome.failed(AnswerLostError)
        assert server.url in text
        with pytest.raises(ConnectFailedError) as refused:
            await called(client, "mark", key="b")
        assert server.url in text_of(refused.value)
        await server.restarted()
        assert await called(client, "mark", key="c") == "c"
        assert await called(client, "marks") == "c"
        assert client.revision == revision
    assert server.said("working a") == 1


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_call_that_is_safe_is_asked_again_of_the_server_started_after_it(
    revision: str, server: HttpProcess
) -> None:
    outcome = Outcome()
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": "a"}))
        await server.until("working a")
        server.kill()
        await server.restarted()
        await server.until("working a", times=2)
        await called(client, "release", key="a")
        assert await outcome.text() == "a"


@pytest.mark.parametrize("revision", STATELESS)
async def test_a_subscription_comes_back_with_the_server_and_says_so(
    revision: str, server: HttpProcess
) -> None:
    async with client_of(server, revision) as client:
        async with client.listen(tools=True, uris=[MEMO], retry_seconds=[0.05] * 100) as changes:
            server.kill()
            await server.restarted()
            assert await anext(changes) == ListeningAgain()
            await called(client, "touch", uri=MEMO)
            assert await anext(changes) == ResourceUpdated(MEMO)
            await called(client, "grow", name="more")
            assert await anext(changes) == ToolsChanged()


@pytest.mark.parametrize("revision", SESSION)
async def test_what_is_listened_to_in_a_session_comes_back_with_the_next_one(
    revision: str, server: HttpProcess
) -> None:
    async with client_of(server, revision) as client:
        async with client.listen(tools=True, uris=[MEMO]) as changes:
            server.kill()
            await server.restarted()
            assert await anext(changes) == ListeningAgain()
            await called(client, "touch", uri=MEMO)
            assert await anext(changes) == ResourceUpdated(MEMO)
            await called(client, "grow", name="more")
            assert await anext(changes) == ToolsChanged()


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_calls_that_outlast_the_end_of_their_server_fail_readably(
    revision: str, server: HttpProcess
) -> None:
    streaming, plain = Outcome(), Outcome()
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:
        report = list[float]().append
        call = partial(client.call_tool, "work", {"key": "a"}, on_progress=lambda *a: report(a[0]))
        tasks.start_soon(streaming.run, call)
        tasks.start_soon(plain.run, partial(client.call_tool, "work", {"key": "b"}))
        await server.until("working a")
        await server.until("working b")
        server.send(signal.SIGTERM)
        await streaming.failed(AnswerLostError)
        await plain.failed(AnswerLostError, HttpStatusError)
        assert await server.ended() == 0
        with pytest.raises(ConnectFailedError) as refused:
            await called(client, "add", a=1, b=2)
        text_of(refused.value)
    assert server.said("cancelled a") == server.said("cancelled b") == 1
    assert server.said("working a") == server.said("working b") == 1


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_calls_that_are_done_soon_are_answered_by_a_server_that_ends(revision: str) -> None:
    outcome = Outcome()
    with http_process(drain=30) as server:
        async with client_of(server, revision) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(outcome.run, partial(client.call_tool, "signalled", {"key": "a"}))
            await server.until("working a")
            server.send(signal.SIGTERM)
            await server.refusing()
            server.send(signal.SIGUSR1)
            assert await outcome.text() == "a"
            assert await server.ended() == 0


@pytest.mark.parametrize("revision", STATELESS)
async def test_a_subscription_is_over_when_its_server_ends(
    revision: str, server: HttpProcess
) -> None:
    async with client_of(server, revision) as client:
        async with client.listen(tools=True) as changes:
            server.send(signal.SIGTERM)
            with anyio.fail_after(20):
                assert [change async for change in changes] == []
    assert await server.ended() == 0
