"""Bounds of tasks: no client leaves nothing to others, whatever it starts and never collects."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.asgi_client import asgi
from package.extension.task_work import DECLARED, SPOKEN, Work, create_task, got

pytestmark = pytest.mark.anyio
MIB = 2**20


class Echo:
    """A server whose tasks end at once, with results of any size."""

    def __init__(self, pkg: Any, **store: Any) -> None:
        self.server = pkg.root.Server("echo")
        self.store = pkg.root.MemoryTaskStore(**store)
        self.tasks = pkg.root.Tasks(self.server, store=self.store)

        @self.server.tool(runner=self.tasks, structured=False)
        async def echo(size: int) -> str:
            return "x" * size

    def client(self, pkg: Any) -> Any:
        return pkg.root.connect(self.server, capabilities=DECLARED)


async def create_echo_task(client: Any, size: int) -> str:
    """The id of the task of a call."""
    params = {"name": "echo", "arguments": {"size": size}}
    task_id: str = (await client.request("tools/call", params)).task_id
    return task_id


async def test_one_client_takes_half_of_what_is_free(pkg: Any) -> None:
    work = Work(pkg, limit=8)
    clients = [work.client(pkg) for _ in range(3)]
    async with clients[0] as one, clients[1] as two, clients[2] as three:
        for client, slots in ((one, 4), (two, 2), (three, 1)):
            for _ in range(slots):
                await create_task(client, "waits")
            with pytest.raises(pkg.root.RemoteError, match="no more of one client than are free"):
                await create_task(client, "waits")
        work.go.set()
        await work.ended.wait()
        async with work.client(pkg) as fourth:
            await got(fourth, await create_task(fourth, "waits"), "completed")


async def test_records_of_one_client_leave_room_for_those_of_others(pkg: Any) -> None:
    echo = Echo(pkg, limit=8)
    async with echo.client(pkg) as greedy, echo.client(pkg) as other:
        for _ in range(4):
            await create_echo_task(greedy, 1)
        with pytest.raises(pkg.root.RemoteError, match="expected at most 8 tasks"):
            await create_echo_task(greedy, 1)
        await got(other, await create_echo_task(other, 1), "completed")
    assert len(echo.store) == 5


async def test_a_result_beyond_the_bytes_of_a_store_fails_its_task(pkg: Any) -> None:
    echo = Echo(pkg, size=4 * MIB)
    async with echo.client(pkg) as greedy, echo.client(pkg) as other:
        kept = [await create_echo_task(greedy, MIB - 2000) for _ in range(2)]
        for task_id in kept:
            await got(greedy, task_id, "completed")
        failed = await got(greedy, await create_echo_task(greedy, MIB), "failed")
        assert "4194304 bytes" in failed.error.message
        await got(greedy, await create_echo_task(greedy, 10), "completed")
        await got(other, await create_echo_task(other, MIB - 2000), "completed")
        await got(greedy, kept[0], "completed")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_over_http_are_known_by_network_or_principal(pkg: Any) -> None:
    work = Work(pkg, limit=4)
    params = {"name": "waits", "arguments": {}}
    async with asgi(work.server) as http:

        async def call(address: str) -> Any:
            http.scope["client"] = (address, 5)
            reply = await http.ask(SPOKEN[0], "tools/call", params, capabilities=DECLARED)
            return reply.messages[-1]

        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            assert (await call(address))["result"]["resultType"] == "task"
        assert "no more of one client" in (await call("192.0.2.1"))["error"]["message"]
        assert (await call("192.0.2.3"))["result"]["resultType"] == "task"
        work.go.set()
        with anyio.fail_after(10):
            await work.ended.wait()
