"""Time limits of tools."""

from __future__ import annotations

import threading

import anyio
import pytest

from kit.wire import ALL
from mcpgen_runtime import Server
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.anyio


async def test_a_tool_that_takes_too_long_is_cancelled_with_an_error() -> None:
    server = Server("slow")
    ends: list[str] = []

    @server.tool(timeout=0.05)
    async def wait() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")
        return "never"

    async with connected(server, revision=ALL[-1]) as pair:
        result = await pair.client.call_tool("wait")
    assert result.is_error
    assert result.content[0].text == "tool 'wait' timed out after 0.05 seconds"
    assert ends == ["cancelled"]


async def test_a_plain_function_is_answered_in_time_as_its_thread_runs() -> None:
    server = Server("slow")
    release, ended = threading.Event(), threading.Event()

    @server.tool(timeout=0.05)
    def wait() -> str:
        release.wait(30)
        ended.set()
        return "late"

    async with connected(server, revision=ALL[-1]) as pair:
        result = await pair.client.call_tool("wait")
        assert result.is_error
        assert not ended.is_set()
        release.set()
        assert await anyio.to_thread.run_sync(ended.wait, 30)


async def test_a_timeout_error_of_the_function_is_no_tool_timeout() -> None:
    server = Server("own", show_errors=True)

    @server.tool(timeout=30)
    async def fetch() -> str:
        raise TimeoutError("the upstream was silent")

    @server.tool(timeout=30)
    async def quick() -> str:
        return "in time"

    async with connected(server, revision=ALL[-1]) as pair:
        failed = await pair.client.call_tool("fetch")
        answered = await pair.client.call_tool("quick")
    assert failed.content[0].text == "the upstream was silent"
    assert answered.content[0].text == "in time"


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_that_is_not_positive_is_refused(seconds: float) -> None:
    server = Server("wrong")
    with pytest.raises(ValueError, match="tool 'wait': timeout: expected more than 0 seconds"):

        @server.tool(timeout=seconds)
        async def wait() -> None: ...
