"""MCP Apps of a server: documents by `server.ui`, and tools that name them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kit.wire import ALL, every
from mcpgen_runtime import UI_EXTENSION, Context, Csp, MiddlewareRequest, Next, Server, connect
from mcpgen_runtime.testing import connected

HAVING = tuple(name for name in ALL if name >= "2025-06-18")
"""The revisions whose tools have `_meta`."""
having = pytest.mark.parametrize("revision", HAVING)

UI, MIME_TYPE = "io.modelcontextprotocol/ui", "text/html;profile=mcp-app"
VIEW = "ui://weather/view.html"
HTML = "<!doctype html><title>Weather</title>"
SHOWS: dict[str, Any] = {"capabilities": {"extensions": UI_EXTENSION}}
OTHERS: tuple[dict[str, Any], ...] = (
    {},
    {"capabilities": {"extensions": {UI: {"mimeTypes": ["text/html"]}}}},
)
"""Capabilities of clients that do not show documents of MCP Apps."""


def weather(**settings: Any) -> Server:
    server = Server("weather", **settings)
    server.ui(VIEW, HTML, csp=Csp(connect_domains=["https://api.example.com"]))

    @server.tool(ui=VIEW, meta={"com.example/a": 1})
    def forecast(city: str) -> str:
        return f"{city}: sun"

    @server.tool(ui=VIEW, visibility=["app"])
    def refresh() -> str:
        return "fresh"

    @server.tool()
    def plain() -> str:
        return "plain"

    return server


async def metas(client: Any) -> dict[str, Any]:
    """`_meta` of the tools that a client is told of, by their names."""
    return {tool.name: getattr(tool, "meta", None) for tool in await client.list_tools()}


@every
async def test_a_client_that_shows_apps_gets_the_ui_of_each_tool(revision: str) -> None:
    async with connect(weather(), revision=revision, **SHOWS) as client:
        if revision in HAVING:
            assert client.server_capabilities["extensions"] == {UI: {}}
            assert await metas(client) == {
                "forecast": {"com.example/a": 1, "ui": {"resourceUri": VIEW}},
                "refresh": {"ui": {"resourceUri": VIEW, "visibility": ["app"]}},
                "plain": None,
            }
        else:  # where tools have no `_meta`, none is for apps alone
            assert [*await metas(client)] == ["forecast", "plain"]
        assert (await client.call_tool("refresh")).content[0].text == "fresh"
    async with connected(weather(), revision=revision) as pair:
        await pair.client.list_tools()
        result = next(m["result"] for m in pair.received if "tools" in m.get("result", {}))
        assert result.get("cacheScope", "private") == "private"  # it depends on the client


@having
@pytest.mark.parametrize("options", OTHERS, ids=["nothing", "other types"])
async def test_other_clients_get_plain_tools_and_their_texts(
    revision: str, options: dict[str, Any]
) -> None:
    async with connect(weather(), revision=revision, **options) as client:
        assert await metas(client) == {"forecast": {"com.example/a": 1}, "plain": None}
        result = await client.call_tool("forecast", {"city": "Oslo"})
        assert result.content[0].text == "Oslo: sun"


def text() -> str:
    return HTML


@having
@pytest.mark.parametrize("kind", ["text", "path", "function", "coroutine function"])
async def test_a_document_is_a_text_a_file_or_a_function(
    revision: str, kind: str, tmp_path: Path
) -> None:
    async def by_context(ctx: Context) -> bytes:
        return HTML.encode()

    path = tmp_path / "view.html"
    path.write_text(HTML)
    html: Any = {"text": HTML, "path": path, "function": text}.get(kind, by_context)
    server = Server("a")
    server.ui(
        VIEW,
        html=html,
        title="View",
        csp=Csp(("https://a.example",), ["https://*.b.example"], (), ("https://c.example:8443",)),
        permissions=["camera", "clipboard_write"],
        domain="view.example",
        prefers_border=False,
    )
    meta = {
        "ui": {
            "csp": {
                "connectDomains": ["https://a.example"],
                "resourceDomains": ["https://*.b.example"],
                "baseUriDomains": ["https://c.example:8443"],
            },
            "permissions": {"camera": {}, "clipboardWrite": {}},
            "domain": "view.example",
            "prefersBorder": False,
        }
    }
    async with connect(server, revision=revision) as client:
        [resource] = await client.list_resources()
        assert (resource.uri, resource.name, resource.title) == (VIEW, "view.html", "View")
        assert (resource.mime_type, resource.meta) == (MIME_TYPE, meta)
        [contents] = (await client.read_resource(VIEW)).contents
        assert (contents.mime_type, contents.meta) == (MIME_TYPE, meta)
        if kind == "path":
            path.write_text(HTML * 2)
            assert (await client.read_resource(VIEW)).contents[0].text == HTML * 2


@pytest.mark.parametrize("uri", ["https://a/view.html", "ui://a/{b}", 1])
def test_a_wrong_uri_is_refused_in_one_line(uri: Any) -> None:
    server = Server("a")
    expected = f"expected a URI such as ui://weather/view.html, got {uri!r}"
    for label, register in (
        ("uri", lambda: server.ui(uri, HTML)),
        ("ui", lambda: server.tool(ui=uri)(text)),
    ):
        with pytest.raises(ValueError, match="expected a URI") as caught:
            register()
        assert str(caught.value) == f"{label}: {expected}"


def test_options_that_can_not_be_are_refused() -> None:
    server: Any = Server("a")
    for expected, register in (
        ("view.html", lambda: server.ui(VIEW, "view.html")),
        ("got gone.html", lambda: server.ui(VIEW, Path("gone.html"))),
        ("expected camera, microphone", lambda: server.ui(VIEW, HTML, permissions=["midi"])),
        ("such as https://example.com, got 'https://a; b'", lambda: Csp(["https://a; b"])),
        ("connect_domains: expected a collection", lambda: Csp("https://a.example")),
        (
            "visibility: expected a collection of 'model' or 'app', got 'app'",
            lambda: server.tool(visibility="app"),
        ),
        (
            "visibility: expected a collection of 'model' or 'app', got ['user']",
            lambda: server.tool(visibility=["user"]),
        ),
        ("server.tool: unexpected keyword argument 'view'", lambda: server.tool(view=VIEW)),
    ):
        with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
            register()
        assert expected in str(caught.value)


async def test_a_tool_with_a_ui_that_is_not_registered_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("a")
    server.add_tool(text, ui=VIEW)
    with caplog.at_level(logging.WARNING):
        async with connect(server, revision=HAVING[-1]) as client:
            for _ in range(2):
                await client.list_tools()
            assert caplog.messages == [
                f"tool 'text': its ui '{VIEW}' is not registered by server.ui"
            ]


@having
@pytest.mark.parametrize("asked", [False, True], ids=["registered", "asked"])
async def test_a_mounted_server_keeps_its_uis_under_its_prefix(revision: str, asked: bool) -> None:
    inner, middle, outer = weather(), Server("middle"), Server("outer")
    if asked:  # a server with middleware is asked for its lists

        @inner.middleware
        async def unchanged(request: MiddlewareRequest, next: Next) -> Any:
            return await next(request)

    outer.mount(middle, prefix="b")
    middle.mount(inner, prefix="a")
    moved = "ui://b/a/weather/view.html"
    async with connect(outer, revision=revision, **SHOWS) as client:
        assert client.server_capabilities["extensions"] == {UI: {}}
        listed = await metas(client)
        assert listed["b_a_forecast"] == {"com.example/a": 1, "ui": {"resourceUri": moved}}
        contents = (await client.read_resource(moved)).contents[0]
        assert (contents.uri, contents.text) == (moved, HTML)
    async with connect(outer, revision=revision) as client:
        assert await metas(client) == {"b_a_forecast": {"com.example/a": 1}, "b_a_plain": None}
