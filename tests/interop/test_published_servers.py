"""Published servers, ported as their users would: the official client can't tell them apart."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest

from conftest import ROOT
from interop.processes import HERE, run_mcpgen, table
from interop.stdio_programs import open_session, repository
from kit.pages import serve_pages
from mcpgen.model.choice import whole_features

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

PYTHON = os.environ.get("MCP_PUBLISHED_SERVERS", "")
"""The Python of an environment with the published servers."""

NAMES = ("time", "git", "fetch")
OPTIONS = {"time": ["--local-timezone", "Europe/Oslo"], "git": [], "fetch": ["--allow-private-ips"]}
VARIABLES: dict[str, dict[str, str]] = {"fetch": {"PATH": ""}}
"""Where readabilipy finds Node, it installs a package for it: `fetch` finds no program."""
PROSE = {"title", "description"}
LINE_LIMIT = {"time": 288, "git": 725, "fetch": 563}
"""Lines of the originals that `nox -s interop` installs."""

PAGE = "<html><body><article><h1>Tides</h1><p>High at noon.</p></article></body></html>"
PAGES = {
    "/tides": ("text/html", PAGE),
    "/plain": ("text/plain", "0123456789" * 10),
    "/private/a": ("text/plain", "hidden"),
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /private/\n"),
}


@pytest.fixture(scope="module")
def website() -> Iterator[str]:
    with serve_pages(lambda request: PAGES.get(request.path)) as origin:
        yield origin


def text_of(result: Any) -> str:
    """The text of a result, with `!` before that of a failure, to which the SDK adds a name."""
    text = re.sub(r"^Error executing tool \w+: ", "", result.content[0].text)
    return f"!{text}" if result.is_error else text


class Both:
    """A session with our port of a server, and one with the original."""

    def __init__(self, ours: mcp.ClientSession, theirs: mcp.ClientSession) -> None:
        self.ours, self.theirs = ours, theirs

    async def texts(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """The answers of both servers; a failure begins with `!`."""
        results = [await each.call_tool(tool, arguments) for each in (self.ours, self.theirs)]
        return text_of(results[0]), text_of(results[1])


@asynccontextmanager
async def both(name: str, *, modern: bool) -> AsyncIterator[Both]:
    assert PYTHON, "MCP_PUBLISHED_SERVERS names no Python: run nox -s interop"
    commands = (
        [sys.executable, str(HERE / "published" / f"{name}_server.py")],
        [PYTHON, "-m", f"mcp_server_{name}"],
    )
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(
                open_session([*each, *OPTIONS[name]], VARIABLES.get(name, {}), modern=modern)
            )
            for each in commands
        ]
        yield Both(*sessions)


def bare(schema: Any) -> Any:
    """A schema without prose, and with its references resolved."""
    definitions = schema.get("$defs", {})

    def part(value: Any) -> Any:
        if isinstance(value, list):
            return [part(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return part(definitions[value["$ref"].rsplit("/", 1)[-1]])
        return {
            key: (
                {name: part(each) for name, each in inner.items()}
                if key == "properties"
                else part(inner)
            )
            for key, inner in value.items()
            if key not in PROSE | {"$defs", "additionalProperties"}
        }

    return part(schema)


@pytest.mark.parametrize("name", NAMES)
async def test_the_port_lists_what_the_original_lists(name: str) -> None:
    async with both(name, modern=False) as pair:
        for each in (pair.ours, pair.theirs):
            assert each.server_info is not None
            assert each.server_info.name == f"mcp-{name}"
        lists = [await each.list_tools() for each in (pair.ours, pair.theirs)]
    ours, theirs = ({tool.name: tool for tool in each.tools} for each in lists)
    assert ours.keys() == theirs.keys()
    for key, tool in ours.items():
        assert bare(tool.input_schema) == bare(theirs[key].input_schema), key
        assert bare(tool.output_schema or {}) == bare(theirs[key].output_schema or {}), key
        assert tool.annotations == theirs[key].annotations, key
        assert tool.description


USED = {"time": set[str](), "git": set[str](), "fetch": {"prompts"}}
"""The features of their package that the ports use."""


@pytest.mark.parametrize("name", NAMES)
async def test_a_port_runs_with_the_features_that_it_uses(name: str, tmp_path: Path) -> None:
    port = HERE / "published" / f"{name}_server.py"
    words = ("-q", "-r", "all", "--features", "used", "--sources", f"{port}")
    package = tmp_path / "mcpgen_runtime"
    run_mcpgen(*words, "-o", f"{package}")
    record = json.loads((package / "mcpgen.json").read_text("utf-8"))
    assert whole_features(record["options"]["features"]) == USED[name]
    lists = []
    for root in (tmp_path, ROOT / "generated"):
        variables = {**VARIABLES.get(name, {}), "PYTHONPATH": f"{root}"}
        command = [sys.executable, f"{port}", *OPTIONS[name]]
        async with open_session(command, variables, modern=True) as session:
            lists.append((await session.list_tools()).tools)
    assert lists[0]
    assert lists[0] == lists[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_port_is_not_longer_than_the_original(name: str) -> None:
    lines = (HERE / "published" / f"{name}_server.py").read_text("utf-8").splitlines()
    assert len(lines) <= LINE_LIMIT[name]


@pytest.mark.parametrize("modern", [False, True])
async def test_times_are_converted_alike(modern: bool) -> None:
    arguments = {"time": "16:30", "target_timezone": "Asia/Kathmandu"}
    async with both("time", modern=modern) as pair:
        results = [
            await each.call_tool("convert_time", {"source_timezone": "Europe/Oslo", **arguments})
            for each in (pair.ours, pair.theirs)
        ]
        assert results[0].structured_content == results[1].structured_content
        assert results[0].structured_content["target"]["timezone"] == "Asia/Kathmandu"
        now = await pair.texts("get_current_time", timezone="UTC")
        assert all('"day_of_week"' in text for text in now)
        for wrong in ({"source_timezone": "Mars"}, {"source_timezone": "UTC", "time": "25:00"}):
            refused = await pair.texts("convert_time", **{**arguments, **wrong})
            assert all(text.startswith("!") for text in refused), refused


GIT_CALLS: list[tuple[str, dict[str, Any]]] = table("git_calls")
OWN_WORDS = {"!tool", "!Error", "!1 vali", "!No ch", "!Canno", "No cha"}
"""Beginnings of texts whose rest each server says in its own words."""


def mask_paths(text: str, folder: Path) -> str:
    text = re.sub(r"\b[0-9a-f]{7,40}\b", "<hash>", text.replace(f"{folder}", "<folder>"))
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ?\S+", "<date>", text)
    return text[:6] if text[:6] in OWN_WORDS else text


async def test_a_repository_is_read_and_changed_alike(tmp_path: Path) -> None:
    folders = repository(tmp_path / "ours"), repository(tmp_path / "theirs")
    async with both("git", modern=True) as pair:
        for tool, arguments in GIT_CALLS:
            texts = []
            for session, folder in zip((pair.ours, pair.theirs), folders, strict=True):
                result = await session.call_tool(tool, {"repo_path": str(folder), **arguments})
                texts.append(mask_paths(text_of(result), folder))
            if tool == "git_add" and arguments["files"] == []:
                assert all(text.startswith("!") for text in texts)
            else:
                assert texts[0] == texts[1], (tool, arguments)


async def test_pages_are_fetched_alike(website: str) -> None:
    async with both("fetch", modern=True) as pair:
        for arguments in (
            {"url": f"{website}/tides"},
            {"url": f"{website}/tides", "raw": True},
            {"url": f"{website}/plain", "max_length": 30, "start_index": 20},
            {"url": f"{website}/plain", "start_index": 200},
            {"url": f"{website}/nothing"},
        ):
            ours, theirs = await pair.texts("fetch", **arguments)
            assert ours == theirs
        for wrong in ({"url": f"{website}/private/a"}, {"url": "tides"}, {"max_length": 0}):
            refused = await pair.texts("fetch", **{"url": f"{website}/tides", **wrong})
            assert all(text.startswith("!") for text in refused), refused
        for path in ("/private/a", "/nothing"):
            prompts = [
                await each.get_prompt("fetch", {"url": f"{website}{path}"})
                for each in (pair.ours, pair.theirs)
            ]
            assert prompts[0].messages == prompts[1].messages
