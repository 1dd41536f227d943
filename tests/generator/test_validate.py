"""`mcpgen validate`: recorded conversations against one revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from mcpgen_runtime import REVISIONS, Context, Server, ToolError
from mcpgen_runtime.testing import connected

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
EMPTY = {"jsonrpc": "2.0", "id": 1, "result": {}}


def rows(*messages: tuple[str, Any]) -> list[dict[str, Any]]:
    """Lines of a trace: what a client sent and received."""
    return [
        {"direction": way, "channel": "client", "pid": 1, "message": message}
        for way, message in messages
    ]


def save_lines(folder: Path, lines: list[dict[str, Any]]) -> str:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return str(path)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", REVISIONS)
async def test_messages_of_a_generated_package_are_valid_in_revisions(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace.jsonl"
    monkeypatch.setenv("MCP_TRACE", str(trace))
    server = Server("weather", version="1.0")

    @server.tool()
    async def forecast(city: str, ctx: Context) -> dict[str, int]:
        """Weather of a city."""
        await ctx.progress(1, total=2)
        if city == "Atlantis":
            raise ToolError("no such city")
        return {"degrees": 21}

    @server.resource("city://{name}")
    async def city(name: str) -> str:
        return f"{name} is a city"

    @server.prompt()
    async def plan(city: str) -> str:
        return f"What shall I wear in {city}?"

    async with connected(server, revision=revision) as pair:
        await pair.client.list_tools()
        await pair.client.call_tool("forecast", {"city": "Oslo"})
        await pair.client.call_tool("forecast", {"city": "Atlantis"})
        await pair.client.list_prompts()
        await pair.client.get_prompt("plan", {"city": "Oslo"})
        await pair.client.read_resource("city://Oslo")
    done = run("validate", str(trace))
    assert (done.code, done.err) == (0, "")
    assert f": {revision}: " in done.out
    assert done.out.rstrip().endswith("no problem")


def test_the_messages_of_a_batch_are_checked_one_by_one(tmp_path: Path) -> None:
    batch = [HELLO, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {}}]
    path = save_lines(tmp_path, rows(("sent", batch)))
    done = run("validate", "-r", "2025-03-26", path)
    assert done.code == 1
    assert done.out.startswith("1: request tools/call, client to server at /params/name: ")
    assert "a batch" not in done.out
    assert run("validate", "-r", "2025-06-18", path).out.startswith("1: batch of 2 messages")


def test_a_recording_that_names_no_revision_needs_one(tmp_path: Path) -> None:
    done = run("validate", save_lines(tmp_path, rows(("sent", HELLO))))
    assert done.code == 2
    assert "expected --revision R" in done.err


def named(params: Any = None, result: Any = None) -> dict[str, Any]:
    """A request or a response with the id 1."""
    if result is None:
        return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return {"jsonrpc": "2.0", "id": 1, "result": result}


META = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize(
    ("messages", "revision"),
    [
        ([named({"protocolVersion": "2025-06-18"})], "2025-06-18"),
        (
            [
                named({"protocolVersion": "2025-06-18"}),
                named(result={"protocolVersion": "2025-03-26"}),
            ],
            "2025-03-26",
        ),
        ([named({"_meta": {META: "2025-11-25", "x": "2024-11-05"}})], "2025-11-25"),
        (
            [
                named({"protocolVersion": "2025-06-18"}),
                5,
                named(result={"protocolVersion": "2099-01-01"}),
                named({"_meta": {META: 5}}),
                named([]),
            ],
            "2025-06-18",
        ),
    ],
)
def test_a_recording_has_the_last_revision_it_names(
    messages: list[Any], revision: str, tmp_path: Path
) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text("".join(f"{json.dumps(message)}\n" for message in messages))
    record = json.loads(run("validate", "--json", str(path)).out)
    assert (record["revision"], record["messages"]) == (revision, len(messages))


def test_a_validation_counts_and_names_each_message(tmp_path: Path) -> None:
    wrong = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {}}
    path = save_lines(tmp_path, rows(("sent", HELLO), ("received", EMPTY), ("sent", wrong)))
    done = run("validate", "-r", "2025-06-18", "--json", path)
    record = json.loads(done.out)
    (problem,) = record.pop("problems")
    assert record == {
        "revision": "2025-06-18",
        "messages": 3,
        "answered": 1,
        "unanswered": [3],
    }
    assert (done.code, problem["line"], problem["pointer"]) == (1, 3, "/params/name")
    shown = run("validate", "-r", "2025-06-18", path)
    assert shown.out.splitlines() == [
        "3: request tools/call, client to server at /params/name: expected string, got nothing",
        f"{path}: 2025-06-18: 3 messages, 1 answered request, 1 unanswered request, 1 problem",
    ]
