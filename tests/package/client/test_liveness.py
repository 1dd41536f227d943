"""Listening to a server that is silent: liveness checks, and how long a lost stream is retried."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from kit.live import FakeServer, expect_refusal
from kit.scripted import connect_scripted
from kit.simulation import on_virtual_clock
from kit.wire import ALL, CANCELLED, LISTEN, PER_REQUEST, every, legacy, modern
from mcpgen_runtime import ConnectionClosedError, ListeningAgain, RequestTimeoutError, connect
from package.client.test_client_listen import AT_ONCE, CUT, NOBODY, Losing, listening

pytestmark = on_virtual_clock
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"


@pytest.fixture
def longest_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random pauses last as long as they can."""
    monkeypatch.setattr(random, "uniform", max)


def silent_server(revision: str) -> Any:
    """A server that waits for long; its streams can be lost, where the revision has streams."""
    server = Losing(revision) if revision in PER_REQUEST else FakeServer(revision)
    server.wait_seconds = 1000.0
    return server


def methods(server: FakeServer) -> list[str]:
    return [said["method"] for said in server.heard]


@legacy
@pytest.mark.parametrize(
    ("timeout", "pauses", "lasts"),
    [(None, AT_ONCE, 90), (100, AT_ONCE, 150), (100, (2.0, 4.0), 129), (None, (), 60)],
)
async def test_a_server_that_stays_silent_is_an_error_in_time(
    revision: str,
    timeout: float | None,
    pauses: tuple[float, ...],
    lasts: float,
    longest_pauses: None,
) -> None:
    """Two checks, the pauses, and one answer or as many checks as there are pauses."""
    server, start = silent_server(revision), anyio.current_time()
    how = {"timeout": timeout, "retry_seconds": pauses, "idle_seconds": 30.0}
    async with listening(server, **how) as (changes, _):
        with pytest.raises(RequestTimeoutError):
            await anext(changes)
        assert anyio.current_time() - start == pytest.approx(lasts)


@modern
async def test_a_silent_stream_is_asked_for_again_after_a_check(revision: str) -> None:
    server = silent_server(revision)

    async def agree_again() -> None:
        for _ in range(2):
            assert (await server.next())["method"] == CANCELLED  # of the check and the stream
        await server.agree()

    async with listening(server, retry_seconds=AT_ONCE, idle_seconds=30.0) as (changes, tasks):
        with anyio.move_on_after(100):
            await anext(changes)
        assert len(server.opening) == 1 + 3  # each was answered
        server.revision = None  # no check is answered any more
        start = anyio.current_time()
        tasks.start_soon(agree_again)
        assert await anext(changes) == ListeningAgain()
        assert anyio.current_time() - start == 60.0
    assert len(server.asked) == 2


@every
async def test_without_a_limit_silence_is_never_checked(revision: str) -> None:
    server = silent_server(revision)
    async with listening(server, idle_seconds=None) as (changes, _):
        opened = len(server.opening)
        with anyio.move_on_after(10_000) as scope:
            await anext(changes)
        assert scope.cancelled_caught
        assert len(server.opening) == opened
        assert "ping" not in methods(server)


@modern
async def test_closing_ends_an_iteration_that_waits_to_reopen(revision: str) -> None:
    server = silent_server(revision)
    async with listening(server, retry_seconds=(100.0, 100.0)) as (changes, tasks):
        await server.lose(CUT)

        async def close() -> None:
            await anyio.sleep(1.0)  # within the pause
            await changes.close()

        tasks.start_soon(close)
        start = anyio.current_time()
        assert [change async for change in changes] == []
        assert anyio.current_time() - start == 1.0
        assert methods(server) == [LISTEN]


@every
@pytest.mark.parametrize("reopening", [True, False])
async def test_no_stream_is_reopened_on_a_lost_connection(revision: str, reopening: bool) -> None:
    server = silent_server(revision)

    async def hang_up() -> None:
        for _ in range(1 if revision in PER_REQUEST else 3):
            await server.next()
        await server.hang_up()

    async with listening(server, retry_seconds=(1.0, 50.0)) as (changes, tasks):
        start = anyio.current_time()
        if reopening:
            tasks.start_soon(hang_up)
        else:
            await server.hang_up()
        if reopening and revision in PER_REQUEST:
            await server.lose(CUT)
        with pytest.raises(ConnectionClosedError):
            await anext(changes)
        assert anyio.current_time() - start < (50 if reopening else 1)


@modern
@pytest.mark.parametrize(("extreme", "factor"), [(min, 0.5), (max, 1.5)])
async def test_attempts_to_reopen_have_growing_pauses(
    revision: str, extreme: Any, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", extreme)
    server, moments = silent_server(revision), list[float]()
    async with listening(server) as (changes, tasks):
        start = anyio.current_time()
        await server.lose(CUT)

        async def refuse() -> None:
            for _ in range(5):
                await server.take()
                moments.append(anyio.current_time() - start)
                await server.lose(NOBODY)

        tasks.start_soon(refuse)
        with pytest.raises(type(CUT)):
            await anext(changes)
    assert moments == pytest.approx([factor * seconds for seconds in (0.5, 1.5, 3.5, 7.5, 15.5)])


@modern
@pytest.mark.parametrize(("lived", "reopened"), [(4.0, False), (4.5, True)])
async def test_a_stream_that_lasted_gives_all_attempts_back(
    revision: str, lived: float, reopened: bool, longest_pauses: None
) -> None:
    server = silent_server(revision)
    async with listening(server, retry_seconds=(4.0,)) as (changes, tasks):
        await server.lose(CUT)
        tasks.start_soon(server.agree)
        assert await anext(changes) == ListeningAgain()
        await anyio.sleep(lived)
        await server.lose(CUT)
        if reopened:
            tasks.start_soon(server.agree)
            assert await anext(changes) == ListeningAgain()
        else:
            with pytest.raises(type(CUT)):
                await anext(changes)


@modern
@pytest.mark.parametrize(("timeout", "lasts"), [(5.0, 15.0), (None, 30.0)])
async def test_each_attempt_to_reopen_has_the_timeout(
    revision: str, timeout: float | None, lasts: float
) -> None:
    server = Losing(revision)
    how = {"timeout": timeout, "retry_seconds": AT_ONCE, "idle_seconds": 30.0}
    async with listening(server, **how) as (changes, _):
        start = anyio.current_time()
        await server.lose(CUT)
        with pytest.raises(type(CUT)):
            await anext(changes)
        assert anyio.current_time() - start == lasts


@legacy
async def test_one_unanswered_end_of_a_subscription_is_awaited(revision: str) -> None:
    async with connect_scripted(revision, {}, {}) as (client, server):
        async with client.listen(uris=["memo://a", "memo://b"]):
            start = anyio.current_time()
        assert anyio.current_time() - start == 1.0
        assert [said["method"] for said in server.heard][2:] == [UNSUBSCRIBE, CANCELLED]


@pytest.mark.parametrize(
    ("revision", "joined"),
    [*((each, False) for each in ALL), *((each, True) for each in PER_REQUEST)],
)
async def test_closing_ends_a_subscription_that_nobody_accepts_yet(
    revision: str, joined: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = silent_server(revision)
    target: Any = {"mcpServers": {"a": server}} if joined else server
    what: dict[str, Any] = {"tools": True} if joined else {"uris": ["memo://a"]}
    async with connect(target, revision=revision) as client, anyio.create_task_group() as tasks:
        changes = client.listen(**what, timeout=100.0)

        async def close() -> None:
            await server.next()
            await changes.close()

        tasks.start_soon(close)
        start = anyio.current_time()
        async with changes:
            assert [change async for change in changes] == []
        assert anyio.current_time() == start
    in_session = [SUBSCRIBE, UNSUBSCRIBE, CANCELLED, CANCELLED]
    assert methods(server) == ([LISTEN, CANCELLED] if revision in PER_REQUEST else in_session)
    assert caplog.text == ""


@every
async def test_a_subscription_that_nobody_accepts_is_given_up(revision: str) -> None:
    server = FakeServer(revision)
    name = LISTEN if revision in PER_REQUEST else SUBSCRIBE
    async with connect(server, revision=revision) as client:
        start = anyio.current_time()
        with pytest.raises(RequestTimeoutError, match=rf"{name}.* 5"):
            await expect_refusal(client.listen(uris=["memo://one"], timeout=5.0))
        taken = anyio.current_time() - start
    assert taken == (5.0 if revision in PER_REQUEST else 6.0)  # one second for the parting
    assert methods(server)[:2] == [name, CANCELLED]
