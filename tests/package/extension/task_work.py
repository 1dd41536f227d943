"""A server with tools that become tasks, and what tests of tasks see of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit import requestor
from kit.requestor import Name
from mcpgen.model import schema_sources
from mcpgen.model.parts import Selection
from mcpgen.names import Library
from mcpgen.package import build_request, output, pipeline
from mcpgen.package.build_request import BuildRequest

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
CORE, SPOKEN = REVISIONS[1], REVISIONS[2:]  # the extension is of the newest revision
PACKAGE = "tasks_package"
TASKS = "io.modelcontextprotocol/tasks"
requirement = partial(pytest.mark.requirement, revisions=SPOKEN)
DECLARED: dict[str, Any] = {"extensions": {TASKS: {}}}


@contextmanager
def importable_package(
    root: Path, name: str, revisions: Sequence[str], extensions: Sequence[str], models: Library
) -> Iterator[None]:
    """A package with extensions, made in a folder and found there by its name."""
    named = build_request.named_extensions([*extensions])
    sources = schema_sources.by_name(revisions)
    request = BuildRequest(name, sources, selection=Selection(models=models), extensions=named)
    output.write(root / name, pipeline.build(request, form=dict))
    sys.path.insert(0, str(root))
    yield
    sys.path.remove(str(root))
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


class Work(requestor.Work):
    """The same server of a package with the extension, and more tools."""

    tasks: Any

    def __init__(self, pkg: Any, **options: Any) -> None:
        super().__init__(pkg.root, **{"poll_interval": 0.001, **options})
        tasks = self.tasks

        async def asks_two(ctx: Any) -> str:
            first, second = await ctx.ask_all(ctx.elicit("1", Name), ctx.elicit("2", Name))
            return f"{first.content.name} and {second.content.name}"

        async def repeats_a_key(ctx: Any) -> str:
            await ctx.elicit("1", Name, key="name")
            await ctx.elicit("2", Name, key="name")
            return "never"

        async def repeats_a_key_later(ctx: Any) -> str:
            first = await ctx.elicit("1", Name, key="name")
            await tasks.begin(ctx)
            second = await ctx.elicit("2", Name, key="name")
            return f"{first.content.name} and {second.content.name}"

        async def may_begin(begins: bool, ctx: Any) -> str:
            return f"a task: {begins and await tasks.begin(ctx)}"

        async def asks_first(ctx: Any) -> str:
            answer = await ctx.elicit("Who?", Name)
            await tasks.begin(ctx)
            await ctx.progress(1, message="half")
            await ctx.info("half")
            return f"Hello, {answer.content.name}"

        asking: tuple[Any, ...] = (asks_two, repeats_a_key)
        beginning: tuple[Any, ...] = (asks_first, repeats_a_key_later, may_begin)
        for tool in (*asking, *beginning):
            tool.__annotations__["ctx"] = pkg.root.Context
            self.server.tool(runner=tasks if tool in asking else tasks.on_begin)(tool)

    def client(self, pkg: Any, **options: Any) -> Any:
        """A client that declares the extension."""
        return pkg.root.connect(self.server, **{"capabilities": DECLARED, **options})


def person(pkg: Any) -> Any:
    """Handlers that answer each elicitation by another name, and count them."""

    class Person(pkg.root.ClientHandlers):  # type: ignore[misc]  # made while the test runs
        asked = 0

        async def elicit(self, params: Any, ctx: Any) -> Any:
            self.asked += 1
            return {"action": "accept", "content": {"name": f"name {self.asked}"}}

    return Person()


async def create_task(client: Any, tool: str) -> str:
    """The id of the task of a call."""
    result = await client.request("tools/call", {"name": tool, "arguments": {}})
    assert result.result_type == "task"
    task_id: str = result.task_id
    return task_id


async def got(client: Any, task_id: str, status: str) -> Any:
    """The task, once it has a status."""
    with anyio.fail_after(10):
        while True:
            task = await client.request("tasks/get", {"taskId": task_id})
            assert task.result_type == "complete"
            if task.status == status:
                return task
            assert task.status in ("working", "input_required")
            await anyio.lowlevel.checkpoint()


async def refusal(client: Any, method: str, params: dict[str, Any]) -> Any:
    """The error by which a request is refused."""
    with pytest.raises(importlib.import_module(PACKAGE).RemoteError) as refused:
        await client.request(method, params)
    return refused.value
