"""The server under test with the tasks extension: its package is generated for the run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import anyio
from tasks_package import (  # type: ignore[import-not-found]  # generated for a run
    Context,
    InvalidParamsError,
    Server,
    Tasks,
    ToolError,
)

server = Server("conformance", version="1.0")
tasks = Tasks(server, poll_interval=0.1)


@dataclass
class Confirmation:
    confirm: bool


@dataclass
class Name:
    name: str


@server.tool()
async def greet(name: str) -> str:
    """Answers at once."""
    return f"Hello, {name}!"


@server.tool(runner=tasks)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Sleeps."""
    await anyio.sleep(seconds)
    return f"{label} took {seconds} seconds"


@server.tool(runner=tasks.required)
async def failing_job() -> str:
    """Fails."""
    await anyio.sleep(0.1)
    raise ToolError("out of order")


@server.tool(runner=tasks)
async def protocol_error_job() -> str:
    """Fails with a JSON-RPC error."""
    raise InvalidParamsError("this job can't be done")


@server.tool(runner=tasks)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Asks for consent while it runs."""
    answer = await ctx.elicit(f"Delete {filename}?", Confirmation)
    return f"{answer.action}: {filename}"


@server.tool(runner=tasks)
async def multi_input(ctx: Context) -> str:
    """Asks for two things at once while it runs."""
    name, confirmation = await ctx.ask_all(
        ctx.elicit("Who are you?", Name), ctx.elicit("May I?", Confirmation)
    )
    return f"{name.content} {confirmation.content}"


@server.tool(runner=tasks.on_begin)
async def test_tool_with_task(ctx: Context) -> str:
    """Asks for a name, and then goes on as a task."""
    answer = await ctx.elicit("Who are you?", Name)
    await tasks.begin(ctx)
    return f"Hello, {answer.content}!"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", choices=("auto", "json", "sse"), default="auto")
    server.run(http="127.0.0.1:0", answers=parser.parse_args().answers)
