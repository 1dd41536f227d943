"""Traces of real peers, replayed: the official SDK's client, and releases of server-everything."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest

from interop.hearing import Person
from interop.processes import ENVIRONMENT, NPM, OURS, run_mcpgen
from mcpgen_runtime import RequestContext, connect

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PATHS = {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}
REVISION = "2025-11-25"
RELEASES = {
    "2026.1.26": NPM / "node_modules/server-everything-2026.1",
    "2026.8.31": NPM / "node_modules/@modelcontextprotocol/server-everything",
}
CALLS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-sum": {"a": 2, "b": 3},
    "get-annotated-message": {"messageType": "error", "includeImage": True},
    "get-structured-content": {"location": "Chicago"},
    "trigger-long-running-operation": {"duration": 0.3, "steps": 3},
    "trigger-sampling-request": {"prompt": "sun", "maxTokens": 10},
    "get-roots-list": {},
}


class Owner(Person):
    """A person, and whether the server, which asks at a time of its own, asked for roots."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for_roots = anyio.Event()

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        self.asked_for_roots.set()
        return await super().list_roots(params, ctx)


def everything(release: str) -> list[str]:
    """The command of a release of server-everything."""
    return ["node", str(RELEASES[release] / "dist/index.js"), "stdio"]


def replay(trace: Path, command: list[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of a replay, and its outcomes."""
    target = trace.with_suffix(".server.json")
    program, *arguments = command
    entry = {"command": program, "args": arguments, "env": PATHS}
    target.write_text(json.dumps({"mcpServers": {"server": entry}}))
    command = ["replay", str(trace), "--against", str(target), "--json", *words]
    done = run_mcpgen(*command, codes=(0, 1), env=ENVIRONMENT)
    return done.returncode, [one for each in json.loads(done.stdout) for one in each["outcomes"]]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trace of each release, recorded by our client."""
    folder = tmp_path_factory.mktemp("releases")

    async def session(release: str) -> None:
        person = Owner()
        async with connect(everything(release), revision=REVISION, handlers=person) as client:
            await client.list_tools()
            await client.list_prompts()
            with anyio.fail_after(10):
                await person.asked_for_roots.wait()
            for name, arguments in CALLS.items():
                await client.call_tool(name, arguments, on_progress=lambda *_: None)

    with pytest.MonkeyPatch.context() as patched:
        for release in RELEASES:
            patched.setenv("MCP_TRACE", str(folder / f"{release}.jsonl"))
            anyio.run(session, release)
    return {release: folder / f"{release}.jsonl" for release in RELEASES}


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_answers_as_it_was_recorded(traces: dict[str, Path], release: str) -> None:
    assert replay(traces[release], everything(release)) == (0, [])


@pytest.mark.parametrize(
    ("recorded", "played"), [("2026.1.26", "2026.8.31"), ("2026.8.31", "2026.1.26")]
)
def test_an_older_and_a_newer_release_differ_in_their_lists(
    traces: dict[str, Path], recorded: str, played: str
) -> None:
    code, outcomes = replay(traces[recorded], everything(played))
    assert code == 1
    assert {each["item"] for each in outcomes} == {"tools/list", "prompts/list"}


@pytest.mark.parametrize("way", ["handshake", "modern"])
def test_a_trace_of_the_official_client_is_replayed(tmp_path: Path, way: str) -> None:
    """The official SDK's client starts the tap in place of the server."""
    trace = tmp_path / "official.jsonl"
    words = ["-m", "mcpgen", "record", shlex.join(OURS), "-o", str(trace)]
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=PATHS)

    async def session() -> None:
        async with (
            mcp.stdio_client(server) as (read, write),
            mcp.ClientSession(read, write) as client,
        ):
            await (client.discover() if way == "modern" else client.initialize())
            await client.list_tools()
            result = await client.call_tool("add", {"a": 2, "b": 3})
            assert not result.is_error
            await client.call_tool("fail")

    anyio.run(session)
    assert replay(trace, list(OURS)) == (0, [])
