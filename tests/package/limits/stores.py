"""Limits of what a process stores for several clients: tasks, changes, messages, used ids."""

from __future__ import annotations

import anyio

from kit.requestor import requestor
from mcpgen_runtime import MemoryBus, Server, Tasks
from package.limits.table import limit


@limit("pkg.server.shared.bus.KEPT_CHANGES", 10)
async def changes(amount: int) -> bool:
    bus = MemoryBus()
    first = (await bus.changes(None)).cursor
    for number in range(amount):
        await bus.publish(b"%d" % number)
    return not (await bus.changes(first)).gap


@limit("pkg.server.shared.bus.LETTERS", 10)
async def letters(amount: int) -> bool:
    bus = MemoryBus()
    await bus.beat("worker")
    for number in range(amount):
        assert await bus.send("worker", b"%d" % number)
    return b"0" in await bus.receive("worker")


@limit("pkg.server.shared.bus.ALIVE_SECONDS", 2)
async def seconds_of_a_worker(amount: int) -> bool:
    bus = MemoryBus()
    await bus.beat("worker")
    await anyio.sleep(amount - 0.5)
    return await bus.send("worker", b"letter")


async def pages_of_tasks(server: Server, count: int) -> bool:
    """Whether the first page of a list of tasks has so many."""
    async with requestor("memory", server, "ada") as client:
        for _ in range(count):
            await client.start("quick")
        page = await client.result("tasks/list", {})
    return len(page["tasks"]) == count


@limit("pkg.server.toolkit.tasks.PAGE_SIZE", 3)
async def page_of_tasks(amount: int) -> bool:
    server = Server("tasks")
    server.tool("quick", runner=Tasks(server))(lambda: "")
    return await pages_of_tasks(server, amount)
