"""Random loss between a client and a server, which are processes of their own."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest

from kit.faults import ONE_OF_EACH, check_quiet, text_of
from kit.http_process import SECONDS, http_process
from kit.http_server import BROKEN, Asked, HttpServer, Reply
from mcpgen_runtime import (
    ConnectFailedError,
    HttpTimeouts,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
    connect,
)

pytestmark = [pytest.mark.processes, pytest.mark.slow]

LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)
QUICK = Timeouts(
    retries=(0.0, 0.01, 0.02, 0.04),
    http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01),
)


class LossyProxy:
    """Forwards each request over a connection of its own; while `lossy`, it loses a third."""

    def __init__(self, port: int, seed: int) -> None:
        self.lossy = False
        self._port = port
        self._random = Random(seed)

    async def forward(self, asked: Asked, reply: Reply) -> None:
        """Forward a request and its response, perhaps in part; then close the connection."""
        fields = [*asked.pairs, ("Connection", "close")]
        lines = [f"{asked.verb} {asked.target} HTTP/1.1", *(": ".join(pair) for pair in fields)]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + asked.body
        draw, place = self._random.random() if self.lossy else 1.0, self._random.randrange(800)
        async with (
            await anyio.connect_tcp("127.0.0.1", self._port) as server,
            anyio.create_task_group() as tasks,
        ):

            async def until_gone() -> None:
                await reply.gone()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_gone)
            await server.send(request[:place] if draw < 0.12 else request)
            left = 0 if draw < 0.12 else place if draw < 0.35 else 1 << 40
            try:
                while left > 0:
                    part = await server.receive()
                    await reply.raw(part[:left])
                    left -= len(part)
            except BROKEN:
                pass
            if 0.32 <= draw < 0.35 and asked.what == "tools/call":
                await anyio.sleep_forever()  # silence, until the client gives up
            tasks.cancel_scope.cancel()
        await reply.cut()


async def make_calls(client: Any, name: str, answered: list[str], lost: list[Exception]) -> None:
    """Call three tools in turn; store the marks that were answered, and the errors."""
    for number in range(7):
        key, text = f"{name}-{number}", str(number + 1)
        for tool, arguments, expected in (
            ("add", {"a": number, "b": 1}, text),
            ("count", {"to": number + 1, "width": 100}, text),
            ("mark", {"key": key}, key),
        ):
            heard = [0.0]

            def hear(value: float, *more: object, heard: list[float] = heard) -> None:
                heard.append(value)

            try:
                result = await client.call_tool(tool, arguments, timeout=0.2, on_progress=hear)
            except LOST as error:
                text_of(error)
                lost.append(error)
                continue
            assert result.content[0].text == expected
            # A retried call counts anew; within one response no report is missing or duplicate.
            assert all(after in (before + 1, 1) for before, after in pairwise(heard))
            assert tool != "count" or heard[-1] == number + 1
            answered += [key] if tool == "mark" else []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_under_random_loss_no_call_hangs_or_runs_twice(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    answered, lost = list[str](), list[Exception]()
    with http_process(retry=0.01) as process, anyio.fail_after(SECONDS):
        proxy = LossyProxy(process.port, seed)
        async with (
            HttpServer(proxy.forward) as server,
            connect(server.url, revision=revision, timeouts=QUICK) as client,
            client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
        ):
            await client.list_tools()  # which ones are safe to call again
            proxy.lossy = True
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    tasks.start_soon(make_calls, client, str(number), answered, lost)
            proxy.lossy = False
            await client.call_tool("grow", {"name": "grown"})
            while await anext(changes) != ToolsChanged():
                pass
            done = (await client.call_tool("marks", {})).content[0].text.split()
    assert answered
    assert lost
    assert set(answered) <= set(done)
    assert len(done) == len(set(done))
    check_quiet(caplog)
