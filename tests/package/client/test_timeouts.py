"""How long is waited: by the clock of the caller, moved by progress, within a limit."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio.testing

from kit.ends import asking_ends, end_of
from kit.live import TEXT, FakeServer, expect_refusal, text_of
from kit.simulation import ASYNCIO
from kit.wire import HANDSHAKE, PER_REQUEST, encode_message, every, sent_request
from mcpgen_runtime import RequestTimeoutError, RevisionError, Timeouts, connect
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import CancelRequest, SendRequest

ASKING = asking_ends("progress.opt-in")  # holds in every revision
PROGRESS = "notifications/progress"
SOON = 0.05
WHILE = 0.3  # what reports come well within
LATER = 3600.0


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Time passes as soon as nothing else happens."""
    if request.param == "trio":
        return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
    return ASYNCIO


def begin_request(revision: str, role: Role, **how: Any) -> tuple[Any, RequestId]:
    """An end and the id of a request that it has open since 100."""
    end = end_of(revision, role)
    method = "tools/list" if role == "client" else "roots/list"
    id, _ = sent_request(end.connection.send(SendRequest(method, **how), 100.0))
    return end, id


def deadline_after(end: Any, id: RequestId, now: float) -> float | None:
    """The deadline after progress came at a moment."""
    params = {"progressToken": id, "progress": now}
    message = {"jsonrpc": "2.0", "method": PROGRESS, "params": params}
    end.connection.receive(encode_message(message), now)
    deadline: float | None = end.connection.state.outbound.deadline(id)
    return deadline


@pytest.mark.parametrize(("revision", "role"), ASKING)
@pytest.mark.parametrize(
    ("how", "deadline"),
    [
        ({}, None),
        ({"timeout": 10}, 110),
        ({"limit": 60}, 160),
        ({"timeout": 10, "limit": 60}, 110),
        ({"timeout": 60, "limit": 10}, 110),
    ],
)
def test_a_request_is_lost_after_its_timeout_and_at_its_limit(
    revision: str, role: Role, how: dict[str, float], deadline: float | None
) -> None:
    end, id = begin_request(revision, role, **how)
    assert end.connection.state.outbound.deadline(id) == deadline
    assert end.connection.send(CancelRequest(id))
    assert end.connection.state.outbound.deadline(id) is None


@pytest.mark.parametrize(("revision", "role"), ASKING)
def test_progress_starts_the_timeout_anew_but_not_the_limit(revision: str, role: Role) -> None:
    end, id = begin_request(revision, role, timeout=10, limit=25, progress=True)
    assert [deadline_after(end, id, now) for now in (105.0, 112.0, 118.0)] == [115.0, 122.0, 125.0]
    end, id = begin_request(revision, role, limit=25, progress=True)
    assert deadline_after(end, id, 120.0) == 125.0
    end, id = begin_request(revision, role, timeout=10, progress=True)
    assert deadline_after(end, id, 109.0) == 119.0


@pytest.mark.requirement("cancellation.client-signals", "cancellation.stdio-notification")
@every
async def test_a_call_without_an_answer_in_time_is_cancelled(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        with pytest.raises(
            RequestTimeoutError, match=r"tools/call: no answer within 0\.05 s"
        ) as late:
            await client.call_tool("slow", timeout=SOON)
        assert (late.value.method, late.value.seconds) == ("tools/call", SOON)
        call, cancelled = server.heard
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"] == {"requestId": call["id"]}
        await server.answer(call, TEXT)  # too late, and no harm


@every
async def test_a_call_that_reports_goes_on_past_its_timeout(revision: str) -> None:
    server = FakeServer(revision)
    heard: list[float] = []

    async def work() -> None:
        call = await server.next()
        token = call["params"]["_meta"]["progressToken"]
        for value in range(1, 5):
            await anyio.sleep(0.25 * WHILE)
            await server.notify(PROGRESS, {"progressToken": token, "progress": value})
        await anyio.sleep(0.25 * WHILE)
        await server.answer(call, TEXT)

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        result = await client.call_tool(
            "slow", timeout=WHILE, on_progress=lambda value, *_: heard.append(value)
        )
        assert text_of(result) == "done"
    assert heard == [1, 2, 3, 4]


@every
async def test_a_callback_that_takes_long_is_within_the_timeout_too(revision: str) -> None:
    server = FakeServer(revision)
    begun = anyio.Event()

    async def hang(*news: Any) -> None:
        begun.set()
        await anyio.sleep(LATER)

    async def report() -> None:
        call = await server.next()
        token = call["params"]["_meta"]["progressToken"]
        await server.notify(PROGRESS, {"progressToken": token, "progress": 1})

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(report)
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("slow", timeout=SOON, on_progress=hang)
    assert begun.is_set()


@every
async def test_an_answer_in_time_leaves_nothing_behind(revision: str) -> None:
    server = FakeServer(revision)

    async def answer() -> None:
        asked = await server.next()
        await anyio.sleep(LATER / 2)
        await server.answer(asked, TEXT)

    async with connect(server, revision=revision) as client:
        await anyio.sleep(2 * LATER)  # on a clock that begins at 0, no moment is as good as now
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            assert text_of(await client.call_tool("quick", timeout=LATER)) == "done"
    assert len(server.heard) == 1


@pytest.mark.requirement("cancellation.not-initialize")
@every
async def test_an_unanswered_opening_closes_the_transport_in_time(revision: str) -> None:
    silent = FakeServer(None)
    with anyio.fail_after(LATER), pytest.raises((RequestTimeoutError, RevisionError)):
        await expect_refusal(connect(silent, revision=revision, timeouts=Timeouts(SOON, SOON / 2)))
    assert silent.closed
    assert silent.heard == []


@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("before", ["the handshake", "its end"])
async def test_a_late_probe_answer_counts_until_the_handshake_is_over(
    revision: str, before: str
) -> None:
    """A server may be slow to start, and then answer both."""

    class Slow(FakeServer):
        async def agree_to_open(self, message: Any) -> None:
            if message["method"] != "initialize":
                return
            probed = (self.opening[0], {"supportedVersions": [revision], "capabilities": {}})
            if before == "the handshake":
                await self.answer(*probed)
            self.revision = HANDSHAKE[-1]
            await super().agree_to_open(message)
            if before == "its end":
                await self.answer(*probed)

    server = Slow(revision)
    with anyio.fail_after(LATER):
        async with connect(server, timeouts=Timeouts(probe=SOON)) as client:
            await anyio.wait_all_tasks_blocked()
            first = before == "the handshake"
            assert client.revision == (revision if first else HANDSHAKE[-1])
    confirmed = [said["method"] for said in server.opening].count("notifications/initialized")
    assert confirmed == (0 if first else 1)
