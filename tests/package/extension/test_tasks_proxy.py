"""Tools that become tasks, behind a proxy, whose clients see no tasks."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from package.extension.task_work import DECLARED, REVISIONS, TASKS, Work, person, text_of

every = pytest.mark.parametrize("near", REVISIONS)


@every
async def test_a_tool_that_needs_a_task_runs_as_a_plain_call(pkg: Any, near: str) -> None:
    work = Work(pkg)
    proxy = pkg.root.Server.proxy(work.server)
    work.go.set()
    async with pkg.root.connect(proxy, revision=near, capabilities=DECLARED) as client:
        assert TASKS not in client.server_capabilities.get("extensions", {})
        assert text_of(await client.call_tool("needs_a_task")) == "done"
        assert text_of(await client.call_tool("waits")) == "done"
        assert text_of(await client.call_tool("plain")) == "plain"
        with pytest.raises(pkg.root.RemoteError, match="can't be done") as failed:
            await client.call_tool("fails")
        assert (failed.value.code, failed.value.data) == (1234, {"why": 1})


@every
@pytest.mark.parametrize("tool", ["asks", "asks_two"])
async def test_input_requests_of_a_task_reach_the_client(pkg: Any, near: str, tool: str) -> None:
    handlers = person(pkg)
    proxy = pkg.root.Server.proxy(Work(pkg).server)
    async with pkg.root.connect(proxy, revision=near, handlers=handlers) as client:
        assert text_of(await client.call_tool(tool)) == "name 1 and name 2"
        assert handlers.asked == 2


@every
async def test_questions_before_the_task_begins_reach_the_client(pkg: Any, near: str) -> None:
    handlers = person(pkg)
    proxy = pkg.root.Server.proxy(Work(pkg).server)
    async with pkg.root.connect(proxy, revision=near, handlers=handlers) as client:
        assert text_of(await client.call_tool("asks_first")) == "Hello, name 1"


@every
async def test_a_client_that_gives_up_cancels_the_task(pkg: Any, near: str) -> None:
    work = Work(pkg)
    proxy = pkg.root.Server.proxy(work.server)
    async with pkg.root.connect(proxy, revision=near) as client:
        call = client.start_call(client.call_tool, "waits")
        await anyio.wait_all_tasks_blocked()
        call.cancel()
        with anyio.fail_after(10):
            await work.ended.wait()
