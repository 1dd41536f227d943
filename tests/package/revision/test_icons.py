"""Icons: their shape on the wire, what has them, and which of them may be shown."""

from __future__ import annotations

import pytest

from kit.live import live
from kit.rules import module_of, revisions_holding
from kit.scripted import connect_scripted
from mcpgen_runtime import Icon, Server, safe_icons, to_builtins

pytestmark = pytest.mark.on_asyncio

HAVING = revisions_holding("icons.shape")
having = pytest.mark.parametrize("revision", HAVING)

PNG = Icon(src="https://a.example/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")
SVG = Icon(src="data:image/svg+xml;base64,PHN2Zy8+", sizes=["any"])
ON_THE_WIRE = [
    {
        "src": "https://a.example/i.png",
        "mimeType": "image/png",
        "sizes": ["48x48"],
        "theme": "dark",
    },
    {"src": "data:image/svg+xml;base64,PHN2Zy8+", "sizes": ["any"]},
]
BARE = Icon(src="https://a.example/i.png")


@pytest.mark.requirement("icons.shape", "icons.attach-points")
@having
async def test_icons_pass_unchanged_on_everything_that_has_them(revision: str) -> None:
    def text() -> str:
        return "text"

    icons = [PNG, SVG]
    server = Server("iconic", icons=icons)
    server.tool(icons=icons)(text)
    server.prompt("text", icons=icons)(text)
    server.resource("memo://one", name="one", icons=icons)(text)
    server.resource("memo://{name}", name="any", icons=icons)(lambda name: name)
    server.tool("bare", icons=[BARE])(text)
    async with live(server, revision) as (client, _):
        assert client.server_info["icons"] == ON_THE_WIRE
        for listed in (
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
        ):
            assert to_builtins(listed[0].icons) == ON_THE_WIRE
            assert all(type(icon) is module_of(revision).Icon for icon in listed[0].icons)
        (bare,) = (await client.list_tools())[1].icons
        assert (bare.mime_type, bare.sizes, bare.theme) == (None, None, None)


SAFE = [
    *("https://a.example/i.png", "HTTPS://A.EXAMPLE/i.png", "data:image/png;base64,AA=="),
    "DATA:image/png;base64,AA==",
]
UNSAFE = [
    *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)"),
    *("java\nscript:alert(1)", "file:///etc/passwd", "FTP://a.example/i.png", "ws://a.example"),
    *("vscode://open", "http://a.example/i.png", "data:text/html,<script>", "data:,image/png"),
    *("//a.example/i.png", "https:", "https://", "https://[broken", "https://a.example:port/"),
    *(" https://a.example/i.png", "https://a.example/\ni.png", "https://\u0430.example/i.png"),
    *("i.png", ""),
]


@pytest.mark.requirement("icons.unsafe-schemes")
@having
async def test_icons_with_unsafe_addresses_are_dropped_and_others_stay(revision: str) -> None:
    icons = [{"src": src} for src in (*SAFE, *UNSAFE)]
    tool = {"name": "t", "inputSchema": {"type": "object"}, "icons": icons}
    async with connect_scripted(revision, {"tools": [tool]}) as (client, _):
        (listed,) = await client.list_tools()
    assert [icon.src for icon in safe_icons(listed.icons)] == SAFE
    assert len(listed.icons) == len(icons)


def test_icons_can_be_kept_to_those_of_the_servers_own_origin() -> None:
    icons = [Icon(src=src) for src in ("https://a.example/1", "https://b.example/1", SAFE[2])]
    icons += [Icon(src="https://a.example:8443/1"), Icon(src="https://A.example:443/2")]
    kept = [icon.src for icon in safe_icons(icons, "https://a.example/mcp")]
    assert kept == ["https://a.example/1", SAFE[2], "https://A.example:443/2"]
    assert [icon.src for icon in safe_icons(icons, "http://a.example/mcp")] == [SAFE[2]]


def test_absent_icons_are_an_empty_list() -> None:
    assert safe_icons(None) == safe_icons([]) == []
