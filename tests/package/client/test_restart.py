"""Server processes that end during a session, and are started again; messages sent meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import open_and_close
from kit.stdio_process import PATHS
from kit.wire import HANDSHAKE, PER_REQUEST, both_lifecycles
from mcpgen_runtime import (
    ClientHandlers,
    ListeningAgain,
    ResourceUpdated,
    ResponseLostError,
    Restart,
    Server,
    Timeouts,
    connect,
)

pytestmark = pytest.mark.processes

SCRIPT = str(Path(__file__).parents[1] / "crashing_server.py")
AT_ONCE = Restart(limit=2, pauses=())


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Processes take long, so that most tests run on one event loop."""
    name: str = getattr(request, "param", "asyncio")
    return name


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """The file in which the server notes its starts."""
    path = tmp_path / "starts"
    path.touch()
    return path


def connect_restarting(
    starts: Path, revision: str, restart: Restart | bool = AT_ONCE, **how: Any
) -> Any:
    command = [sys.executable, SCRIPT, str(starts)]
    return connect(command, env=PATHS, revision=revision, restart=restart, **how)


async def number(client: Any) -> int:
    """The number of the server's start."""
    result: int = await client.call_tool("number", returns=int)
    return result


@both_lifecycles
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_a_process_that_ends_is_restarted_and_the_session_lasts(
    starts: Path, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect_restarting(starts, revision) as client:
        with pytest.raises(ResponseLostError, match=r"exit code 3.* started again"):
            await client.call_tool("crash")
        first, second = (client.start_call(number, client) for _ in range(2))
        assert (await first, await second) == (2, 2)
        assert len(await client.list_tools()) == 6
    assert "exit code 3" in caplog.text
    assert starts.read_text().split() == ["start"] * 2


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_a_call_to_a_process_that_ended_unseen_goes_to_the_next(starts: Path) -> None:
    async with connect_restarting(starts, PER_REQUEST[-1]) as client:
        pid = await client.call_tool("pid", returns=int)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its end of the pipe is closed
        assert await number(client) == 2


@both_lifecycles
async def test_subscriptions_and_the_log_level_are_restored(starts: Path, revision: str) -> None:
    logged = list[str]()
    timeouts = Timeouts(restore=10)
    async with connect_restarting(starts, revision, timeouts=timeouts) as client:
        client.on_log(lambda message: logged.append(message.level), level="error")
        if revision in HANDSHAKE:
            await client.set_level("error")
        subscription = client.listen(uris=["memo://one"], retry_seconds=[0.0] * 5)
        async with subscription as changes:
            with pytest.raises(ResponseLostError):
                await client.call_tool("crash")
            with anyio.fail_after(20):
                assert await anext(changes) == ListeningAgain()
                await client.call_tool("touch")
                assert await anext(changes) == ResourceUpdated("memo://one")
    assert logged == ["error"]


async def test_a_handler_is_cancelled_when_the_asking_process_ends(starts: Path) -> None:
    asked, cancelled = anyio.Event(), anyio.Event()

    class User(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

    async with connect_restarting(starts, HANDSHAKE[-1], handlers=User()) as client:
        for _ in range(2):  # the next process asks by the same id
            call = client.start_call(client.call_tool, "ask")
            await asked.wait()
            with pytest.raises(ResponseLostError):
                await client.call_tool("crash")
            with pytest.raises(ResponseLostError):
                await call
            await cancelled.wait()
            asked, cancelled = anyio.Event(), anyio.Event()


async def test_only_processes_are_restarted() -> None:
    with pytest.raises(TypeError, match="for a command"):
        await open_and_close(connect(Server("here"), restart=True))
    with pytest.raises(TypeError, match="for a command"):
        await open_and_close(connect("http://127.0.0.1:1/mcp", restart=True))
    for make in (lambda: Restart(limit=0), lambda: Restart(seconds=0)):
        with pytest.raises(ValueError, match="positive limit"):
            make()
