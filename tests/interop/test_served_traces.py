"""Traces that `mcpgen replay --serve` answers from, used by the clients of others."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp
import mcp.types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport

import mcpgen
from interop.processes import ENVIRONMENT, OURS, results, run_server
from interop.revisions import HANDSHAKE, STATELESS, is_modern, offer_revision
from mcpgen.replay import serve_command

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]

GENERATOR = str(Path(mcpgen.__file__).parent.parent)
PATHS = {"PYTHONPATH": os.pathsep.join((GENERATOR, ENVIRONMENT["PYTHONPATH"]))}
V1, V2 = "client_v1.mjs", "client_v2.mjs"
LAST = HANDSHAKE[-1]
SESSION = "2025-06-18"
RULES = """
[[match]]
method = "tools/call"
name = "[ew]*"
pointer = "/params/arguments/name"
by = "shape"
reason = "the script names itself by the id of its process"
"""
OF_THE_VISIT = ("requests", "after the end", "agreed", "pages")
"""Steps of a script about the connection, which is another one."""


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    """The package that serves traces, in the cache: a busy machine takes a minute to make it."""
    assert serve_command.package_files()


@contextmanager
def recording(trace: Path) -> Iterator[str]:
    """Our server over HTTP, which writes a trace; yields its URL."""
    with run_server(*OURS, "127.0.0.1:0", environment={"MCP_TRACE": str(trace)}) as url:
        yield url


def command_of(trace: Path, *words: str) -> tuple[str, ...]:
    """The command that serves a trace."""
    rules = trace.with_suffix(".toml")
    rules.write_text(RULES, "utf-8")
    replay = ("-m", "mcpgen", "replay", str(trace), "--serve", "--rules", str(rules))
    return (sys.executable, *replay, *words)


@contextmanager
def replaying(trace: Path) -> Iterator[str]:
    """The trace as a server over HTTP; yields its URL."""
    command = command_of(trace, "--http", "127.0.0.1:0")
    with run_server(*command, environment=PATHS) as url:
        yield url


def steps(seen: Mapping[str, Any], names: Collection[str], is_same: bool) -> dict[str, Any]:
    """Steps of a script; without texts and codes of errors, if SDK or revision is another one."""
    return {
        name: "an error" if not is_same and "error" in str(seen[name])[:10] else seen[name]
        for name in names
    }


SCRIPTS = [
    ((V1, LAST), (V1, LAST)),
    ((V2, SESSION), (V2, SESSION)),
    ((V2, STATELESS), (V2, STATELESS)),
    ((V2, LAST), (V2, STATELESS)),
    ((V2, STATELESS), (V1, LAST)),
]
"""Script and revision that are recorded, and those that the trace is served to."""


@pytest.mark.parametrize(("recorded", "served"), SCRIPTS, ids=lambda each: " ".join(each))
def test_the_sdks_for_typescript_see_what_was_recorded(
    recorded: tuple[str, str], served: tuple[str, str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    with recording(trace) as url:
        before = results(recorded[0], [url, recorded[1], "http"])
    with replaying(trace) as url:
        after = results(served[0], [url, served[1], "http"])
    both = before.keys() & after.keys() - {*OF_THE_VISIT}
    is_same = recorded == served
    assert steps(after, both, is_same) == steps(before, both, is_same)
    assert len(both) > 20
    assert after["agreed"] == served[1]


@dataclass
class Guest:
    """Answers what a server asks, and keeps its log messages."""

    logs: list[Any] = field(default_factory=list[Any])

    async def log(self, params: Any) -> None:
        self.logs.append((params.level, params.logger, params.data))

    async def elicit(self, context: Any, params: Any) -> Any:
        return mcp.types.ElicitResult(action="accept", content={"name": "Ada", "nights": 3})

    async def sample(self, context: Any, params: Any) -> Any:
        block = mcp.types.TextContent(type="text", text="<sun>")
        return mcp.types.CreateMessageResult(role="assistant", content=block, model="parrot")


def official(command: tuple[str, ...], environment: Mapping[str, str]) -> Any:
    """The parameters by which the official SDK starts a server."""
    return mcp.StdioServerParameters(
        command=command[0], args=[*command[1:]], env={**ENVIRONMENT, **environment}
    )


async def visit_by_the_official_sdk(server: Any, mode: str) -> dict[str, Any]:
    """The results that the client of the official SDK gets."""
    guest = Guest()
    callbacks: dict[str, Any] = {
        "logging_callback": guest.log,
        "elicitation_callback": guest.elicit,
        "sampling_callback": guest.sample,
        "log_level": "info",
    }
    reported: list[Any] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async with mcp.Client(server, mode=mode, **callbacks) as client:
        seen: dict[str, Any] = {"tools": [each.name for each in (await client.list_tools()).tools]}
        if mode == "legacy":
            await client.set_logging_level("info")
        for name, arguments in CALLS:
            result = await client.call_tool(name, arguments, progress_callback=keep)
            seen[name] = result.content[0].text
        try:
            await client.call_tool("refuse", {})
        except mcp.MCPError as error:
            seen["refuse"] = (error.error.code, error.error.data)
        seen["read"] = (await client.read_resource("city://Oslo/weather")).contents[0].text
        greeting = await client.get_prompt("greet", {"city": "Oslo"})
        seen["prompt"] = greeting.messages[0].content.text
        seen["info"] = (client.server_info.name, client.instructions)
    return {**seen, "progress": reported, "logs": guest.logs}


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add", {"a": 1, "b": 2}),
    ("count", {"to": 3}),
    ("note", {"text": "rain"}),
    ("fail", {}),
    ("book", {}),
    ("book_twice", {}),
    ("translate", {"text": "sun"}),
)


@pytest.mark.parametrize(
    ("recorded", "served"), [("legacy", "legacy"), ("auto", "auto"), ("legacy", "auto")]
)
async def test_the_official_client_sees_what_was_recorded(
    recorded: str, served: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    before = await visit_by_the_official_sdk(official(OURS, {"MCP_TRACE": str(trace)}), recorded)
    after = await visit_by_the_official_sdk(official(command_of(trace), PATHS), served)
    assert after == before
    assert after["book"] == "booked for Ada (3)"


async def visit_by_fastmcp(url: str, revision: str) -> dict[str, Any]:
    """The results that FastMCP's client gets over HTTP."""
    logs: list[Any] = []
    progress: list[Any] = []

    async def keep_log(params: Any) -> None:
        logs.append((params.level, params.logger, params.data))

    async def keep(value: float, total: float | None, message: str | None) -> None:
        progress.append((value, total))

    async def fill_in(message: str, kind: Any, params: Any, context: Any) -> Any:
        return ElicitResult(action="accept") if kind is None else kind(name="Ada", nights=3)

    client = FastClient(
        StreamableHttpTransport(url),
        mode="auto" if is_modern(revision) else "legacy",
        log_handler=keep_log,
        progress_handler=keep,
        elicitation_handler=fill_in,
        sampling_handler=lambda messages, params, context: f"<{messages[-1].content.text}>",
        roots=["file:///maps"],
    )
    with offer_revision(revision):
        await client.__aenter__()
    try:
        seen: dict[str, Any] = {"tools": [each.name for each in await client.list_tools()]}
        if not is_modern(revision):
            await client.set_logging_level("info")
        for name, arguments in (*CALLS, ("folders", {}), ("plan", {})):
            result = await client.call_tool(name, arguments, raise_on_error=False)
            seen[name] = result.content[0].text
        seen["resources"] = [str(each.uri) for each in await client.list_resources()]
    finally:
        await client.__aexit__(None, None, None)
    return {**seen, "progress": progress, "logs": logs}


@pytest.mark.parametrize(
    ("recorded", "served"),
    [(SESSION, SESSION), (STATELESS, STATELESS), (SESSION, STATELESS), (STATELESS, LAST)],
)
async def test_the_client_of_fastmcp_sees_what_was_recorded(
    recorded: str, served: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    with recording(trace) as url:
        before = await visit_by_fastmcp(url, recorded)
    with replaying(trace) as url:
        after = await visit_by_fastmcp(url, served)
    assert after == before
    assert after["plan"] == "Ada (3), <sun>, file:///maps"
