"""Traces that `mcpgen replay --serve` answers from, used by the clients of others."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import mcp
import pytest
from fastmcp.exceptions import ToolError

from interop.processes import ENVIRONMENT, OURS, results, run_server
from interop.python_clients import visit
from interop.revisions import HANDSHAKE, STATELESS
from mcpgen.replay import serve_command

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]

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


def recording(trace: Path) -> AbstractContextManager[str]:
    """Our server over HTTP, which writes a trace; yields its URL."""
    return run_server(*OURS, "127.0.0.1:0", environment={"MCP_TRACE": str(trace)})


def command_of(trace: Path, *words: str) -> tuple[str, ...]:
    """The command that serves a trace."""
    rules = trace.with_suffix(".toml")
    rules.write_text(RULES, "utf-8")
    replay = ("-m", "mcpgen", "replay", str(trace), "--serve", "--rules", str(rules))
    return (sys.executable, *replay, *words)


def replaying(trace: Path) -> AbstractContextManager[str]:
    """The trace as a server over HTTP; yields its URL."""
    return run_server(*command_of(trace, "--http", "127.0.0.1:0"))


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


SEEN: dict[tuple[str, ...], tuple[Path, dict[str, Any]]] = {}
"""The trace of a script or peer, by what it was recorded with, and what that saw."""


@pytest.mark.parametrize(("recorded", "served"), SCRIPTS, ids=lambda each: " ".join(each))
def test_the_sdks_for_typescript_see_what_was_recorded(
    recorded: tuple[str, str], served: tuple[str, str], tmp_path: Path
) -> None:
    if recorded not in SEEN:
        with recording(tmp_path / "trace.jsonl") as url:
            saw = results(recorded[0], [url, recorded[1], "http"])
        SEEN[recorded] = tmp_path / "trace.jsonl", saw
    trace, before = SEEN[recorded]
    with replaying(trace) as url:
        after = results(served[0], [url, served[1], "http"])
    both = before.keys() & after.keys() - {*OF_THE_VISIT}
    is_same = recorded == served
    assert steps(after, both, is_same) == steps(before, both, is_same)
    assert len(both) > 20
    assert after["agreed"] == served[1]


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add", {"a": 1, "b": 2}),
    ("count", {"to": 3}),
    ("note", {"text": "rain"}),
    ("fail", {}),
    ("refuse", {}),
    ("book", {}),
    ("book_twice", {}),
    ("translate", {"text": "sun"}),
    ("folders", {}),
    ("plan", {}),
)


async def results_of_visit(target: Any, peer: str, transport: str, revision: str) -> dict[str, Any]:
    """The results that the client of a peer gets."""
    progress: list[Any] = []

    async def keep(value: float, total: float | None, message: str | None) -> None:
        progress.append((value, total))

    async with visit(target, peer, transport, revision) as visiting:
        client = visiting.client
        seen: dict[str, Any] = {"tools": [each.name for each in await visiting.items("tools")]}
        if not visiting.modern:
            await client.set_logging_level("info")
        for name, arguments in CALLS:
            try:
                result = await client.call_tool(name, arguments, **{visiting.progress: keep})
                seen[name] = result.content[0].text
            except (mcp.MCPError, ToolError) as error:
                seen[name] = str(error)
        seen["read"] = (await visiting.read("city://Oslo/weather")).text
        greeting = await client.get_prompt("greet", {"city": "Oslo"})
        seen["prompt"] = greeting.messages[0].content.text
        seen["resources"] = [str(each.uri) for each in await visiting.items("resources")]
        seen["info"] = (client.server_info.name, client.instructions)
    return {**seen, "progress": progress, "logs": [*visiting.logs]}


def started(command: tuple[str, ...], **environment: str) -> AbstractContextManager[Any]:
    """The parameters by which the official SDK starts a server."""
    variables = {**ENVIRONMENT, **environment}
    return nullcontext(
        mcp.StdioServerParameters(command=command[0], args=[*command[1:]], env=variables)
    )


@pytest.mark.parametrize(
    ("peer", "transport", "recorded", "served"),
    [
        ("official", "pipes", LAST, LAST),
        ("official", "pipes", STATELESS, STATELESS),
        ("official", "pipes", LAST, STATELESS),
        ("fastmcp", "http", SESSION, SESSION),
        ("fastmcp", "http", STATELESS, STATELESS),
        ("fastmcp", "http", SESSION, STATELESS),
        ("fastmcp", "http", STATELESS, LAST),
    ],
)
async def test_clients_in_python_see_what_was_recorded(
    peer: str, transport: str, recorded: str, served: str, tmp_path: Path
) -> None:
    is_piped = transport == "pipes"
    if (peer, transport, recorded) not in SEEN:
        trace = tmp_path / "trace.jsonl"
        own = started(OURS, MCP_TRACE=str(trace)) if is_piped else recording(trace)
        with own as target:
            saw = await results_of_visit(target, peer, transport, recorded)
        SEEN[peer, transport, recorded] = trace, saw
    trace, before = SEEN[peer, transport, recorded]
    mock = started(command_of(trace)) if is_piped else replaying(trace)
    with mock as target:
        after = await results_of_visit(target, peer, transport, served)
    assert after == before
    assert after["plan"] == "Ada (3), <sun>, file:///maps"
