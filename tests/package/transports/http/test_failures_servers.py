"""Servers that are killed, started again or told to end, while clients of ours are connected."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import anyio
import pytest

from kit import faults
from kit.faults import EACH, ONE_OF_EACH, Outcome, call_text, check_quiet, ignore, text_of
from kit.http_process import HttpProcess, http_process
from kit.wire import PER_REQUEST, SSE_ONLY
from mcpgen_runtime import (
    ConnectFailedError,
    ConnectionClosedError,
    ListeningAgain,
    RemoteError,
    ResourceUpdated,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts

pytestmark = [pytest.mark.slow, pytest.mark.processes]

MEMO = "memo://one"
KEY = "k"
"""The argument of a tool that works until it is released."""

PAUSES = HttpTimeouts(first_pause=0.02, shortest_pause=0.02, longest_poll=0.02, longest_pause=0.05)
client_of = partial(faults.client_of, timeouts=Timeouts(http=PAUSES))
reconnecting = partial(client_of, timeouts=Timeouts(retries=(0.05,) * 1000, http=PAUSES))
"""A client whose retries last for as long as a server takes to start again."""


@pytest.fixture
def server() -> Iterator[HttpProcess]:
    """A server that its test may end and start again."""
    with http_process(retry=0.02, drain=0.2, sse_path="/sse") as started:
        yield started


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


@pytest.mark.parametrize("revision", EACH)
async def test_a_call_dies_with_the_server_and_the_next_one_succeeds(
    revision: str, server: HttpProcess
) -> None:
    outcome = Outcome()
    async with (
        reconnecting(server, revision) as client,
        anyio.create_task_group() as tasks,
    ):
        call = partial(client.call_tool, "work", {"key": KEY}, on_progress=ignore)
        tasks.start_soon(outcome.run, call)
        await server.until(f"working {KEY}")
        server.kill()
        text = await outcome.failed(ResponseLostError)
        assert server.url in text
        with pytest.raises(ConnectFailedError) as refused:
            await call_text(client, "mark", key="b")
        assert server.url in text_of(refused.value)
        await server.restarted()
        assert await call_text(client, "mark", key="c") == "c"
        assert await call_text(client, "marks") == "c"
        assert client.revision == revision
    assert server.said(f"working {KEY}") == 1


@pytest.mark.parametrize("revision", SSE_ONLY)
async def test_the_only_stream_of_a_client_dies_with_the_server(
    revision: str, server: HttpProcess
) -> None:
    outcome = Outcome()
    how = {"revision": revision, "url": server.sse_url}
    async with (
        reconnecting(server, **how) as client,
        anyio.create_task_group() as tasks,
    ):
        call = partial(client.call_tool, "work", {"key": KEY}, on_progress=ignore)
        tasks.start_soon(outcome.run, call)
        await server.until(f"working {KEY}")
        server.kill()
        await outcome.failed(ConnectionClosedError)
        await server.restarted()
        with pytest.raises(ConnectionClosedError) as closed:
            await call_text(client, "mark", key=KEY)
        text_of(closed.value)
    async with reconnecting(server, **how) as client:
        assert await call_text(client, "marks") == ""
    assert server.said(f"working {KEY}") == 1


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_safe_call_is_repeated_at_the_restarted_server(
    revision: str, server: HttpProcess
) -> None:
    outcome = Outcome()
    async with (
        reconnecting(server, revision) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": KEY}))
        await server.until(f"working {KEY}")
        server.kill()
        await server.restarted()
        await server.until(f"working {KEY}", times=2)
        await call_text(client, "release", key=KEY)
        assert await outcome.text() == KEY


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_subscription_comes_back_with_the_server_and_says_so(
    revision: str, server: HttpProcess
) -> None:
    often = [0.05] * 1000
    async with (
        reconnecting(server, revision) as client,
        client.listen(tools=True, uris=[MEMO], retry_seconds=often) as changes,
    ):
        server.kill()
        await server.restarted()
        assert await anext(changes) == ListeningAgain()
        await call_text(client, "touch", uri=MEMO)
        assert await anext(changes) == ResourceUpdated(MEMO)
        await call_text(client, "grow", name="more")
        assert await anext(changes) == ToolsChanged()


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_calls_that_outlast_their_server_fail_readably(
    revision: str, server: HttpProcess
) -> None:
    streaming, plain = Outcome(), Outcome()
    async with (
        reconnecting(server, revision) as client,
        anyio.create_task_group() as tasks,
    ):
        call = partial(client.call_tool, "work", {"key": KEY}, on_progress=ignore)
        tasks.start_soon(streaming.run, call)
        tasks.start_soon(plain.run, partial(client.call_tool, "work", {"key": f"{KEY}+"}))
        await server.until(f"working {KEY}")
        await server.until(rf"working {KEY}\+")
        server.send(signal.SIGTERM)
        for outcome in (streaming, plain):
            text = await outcome.failed(RemoteError)
            assert "the server is ending; the request may have been acted on" in text
        assert await server.ended() == 0
        with pytest.raises(ConnectFailedError) as refused:
            await call_text(client, "add", a=1, b=2)
        text_of(refused.value)
    for name in (KEY, f"{KEY}+"):
        assert server.said(f"working {name}") == server.said(f"cancelled {name}") == 1


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_calls_that_end_soon_are_answered_by_a_stopping_server(revision: str) -> None:
    outcome = Outcome()
    with http_process(drain=30) as server:
        async with (
            reconnecting(server, revision) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(outcome.run, partial(client.call_tool, "signalled", {"key": "a"}))
            await server.until("working a")
            server.send(signal.SIGTERM)
            await server.refusing()
            server.send(signal.SIGUSR1)
            assert await outcome.text() == "a"
            assert await server.ended() == 0


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_a_subscription_is_over_when_its_server_ends(
    revision: str, server: HttpProcess
) -> None:
    async with (
        reconnecting(server, revision) as client,
        client.listen(tools=True) as changes,
    ):
        server.send(signal.SIGTERM)
        with anyio.fail_after(20):
            assert [change async for change in changes] == []
    assert await server.ended() == 0
