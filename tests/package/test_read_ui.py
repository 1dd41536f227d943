"""MCP Apps of a client: the user interface of a tool, and tools that are not for models."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from kit.scripted import connect_scripted
from mcpgen_runtime import (
    Csp,
    RemoteError,
    RemoteProtocolError,
    Server,
    Tool,
    ToolUi,
    UiResource,
    connect,
    connect_sync,
    ui_of,
)
from package.server.toolkit.test_app_decorators import HAVING, HTML, MIME_TYPE, SHOWS, VIEW, having

META: Mapping[str, Any] = {
    "ui": {
        "csp": {"connectDomains": ["https://a.example", "https://b; script-src *", 1]},
        "permissions": {"camera": {}, "usb": {}},
        "domain": "view.example",
        "prefersBorder": True,
    }
}
READ = UiResource(
    VIEW, HTML, Csp(["https://a.example"]), frozenset({"camera"}), "view.example", True
)


def weather() -> Server:
    server = Server("weather")
    server.ui(VIEW, HTML, csp=Csp(["https://a.example"]), permissions=["geolocation"])

    @server.tool(ui=VIEW)
    def forecast(city: str) -> str:
        return f"{city}: sun"

    @server.tool(ui=VIEW, visibility=["app"])
    def refresh() -> str:
        return "fresh"

    @server.tool(visibility=["model"])
    def plain() -> str:
        return "plain"

    return server


@having
async def test_the_ui_of_a_tool_is_read_with_what_it_may_use(revision: str) -> None:
    async with connect(weather(), revision=revision, **SHOWS) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {name: ui_of(tool) for name, tool in tools.items()} == {
            "forecast": ToolUi(VIEW),
            "refresh": ToolUi(VIEW, frozenset({"app"})),
            "plain": ToolUi(None, frozenset({"model"})),
        }
        expected = UiResource(VIEW, HTML, Csp(["https://a.example"]), frozenset({"geolocation"}))
        assert await client.read_ui(tools["forecast"]) == expected
        with pytest.raises(ValueError, match="tool 'plain': expected one with a URI ui://"):
            await client.read_ui(tools["plain"])


def test_a_blocking_client_reads_it_too() -> None:
    with connect_sync(weather(), **SHOWS) as client:
        [tool, *_] = client.list_tools()
        assert client.read_ui(tool).html == HTML


def contents(**members: Any) -> dict[str, Any]:
    """The result of reading the document."""
    return {"contents": [{"uri": VIEW, "mimeType": MIME_TYPE, **members}]}


TOOL = {"name": "forecast", "inputSchema": {"type": "object"}}
TOOLS = {"tools": [{**TOOL, "_meta": {"ui": {"resourceUri": VIEW}}}]}
RESOURCES = {"resources": [{"uri": VIEW, "name": "view", "_meta": META}]}
ENCODED = base64.b64encode(HTML.encode()).decode()
GIVEN: dict[str, tuple[tuple[dict[str, Any], ...], UiResource]] = {
    "text": ((contents(text=HTML, _meta=META),), READ),
    "base64": ((contents(blob=ENCODED, _meta=META),), READ),
    "metadata of the list": ((contents(text=HTML), RESOURCES), READ),
    "no list": (
        (contents(text=HTML), {"error": {"code": -1, "message": ""}}),
        UiResource(VIEW, HTML),
    ),
    "spaces": ((contents(text=HTML, mimeType="text/html; profile=mcp-app", _meta=META),), READ),
}


@having
@pytest.mark.parametrize("answers", GIVEN)
async def test_known_members_of_a_ui_resource_are_read(revision: str, answers: str) -> None:
    given, expected = GIVEN[answers]
    async with connect_scripted(revision, TOOLS, *given) as (client, _):
        [tool] = await client.list_tools()
        assert await client.read_ui(tool) == expected


REFUSED: dict[str, dict[str, Any]] = {
    "expected text/html;profile=mcp-app, got 'text/html'": contents(
        text=HTML, mimeType="text/html"
    ),
    "expected text/html;profile=mcp-app, got None": {"contents": []},
    "expected UTF-8": contents(blob=base64.b64encode(b"\xff").decode()),
}


@having
@pytest.mark.parametrize("expected", REFUSED)
async def test_resources_that_are_no_documents_are_refused(revision: str, expected: str) -> None:
    async with connect_scripted(revision, TOOLS, REFUSED[expected]) as (client, _):
        [tool] = await client.list_tools()
        with pytest.raises(RemoteProtocolError, match="ui://weather/view") as caught:
            await client.read_ui(tool)
        assert expected in str(caught.value)


@having
@pytest.mark.parametrize("api", ["openai", "openai-chat", "anthropic", "gemini"])
async def test_models_get_no_tool_that_is_for_apps_alone(revision: str, api: Any) -> None:
    async with connect(weather(), revision=revision, **SHOWS) as client:
        text = str(await client.tools_for(api))
        assert "forecast" in text
        assert "plain" in text
        assert "refresh" not in text
        assert (await client.call_tool("refresh")).content[0].text == "fresh"


async def test_other_errors_of_a_read_are_those_of_the_server() -> None:
    answer = {"error": {"code": -32602, "message": "no such resource"}}
    async with connect_scripted(HAVING[-1], TOOLS, answer) as (client, _):
        [tool] = await client.list_tools()
        with pytest.raises(RemoteError, match="no such resource"):
            await client.read_ui(tool)


@pytest.mark.parametrize(
    ("csp", "directives"),
    [
        (Csp(), ["connect-src 'none'", "script-src 'self' 'unsafe-inline'", "frame-src 'none'"]),
        (
            Csp(["wss://a.example"], ["https://*.b.example"], ["https://c.example"]),
            [
                "connect-src wss://a.example",
                "script-src 'self' 'unsafe-inline' https://*.b.example",
                "img-src 'self' data: https://*.b.example",
                "frame-src https://c.example",
            ],
        ),
    ],
    ids=["nothing", "some"],
)
def test_a_policy_allows_the_declared_origins_alone(csp: Csp, directives: list[str]) -> None:
    parts = csp.policy.split("; ")
    assert {"default-src 'none'", "object-src 'none'", "form-action 'none'"} <= {*parts}
    assert {*directives} <= {*parts}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, ToolUi(None, frozenset({"model", "app"}))),
        ({"ui": {"resourceUri": 1}, "ui/resourceUri": VIEW}, ToolUi()),
        ({"ui/resourceUri": VIEW}, ToolUi(VIEW)),
        ({"ui": {"resourceUri": "https://b"}}, ToolUi()),
        ({"ui": {"visibility": "app"}}, ToolUi()),
        ({"ui": {"visibility": ["app", "all"]}}, ToolUi(None, frozenset({"app"}))),
    ],
)
def test_members_of_another_form_count_as_absent(meta: Any, expected: ToolUi) -> None:
    assert ui_of(Tool(name="a", input_schema={"type": "object"}, meta=meta)) == expected
