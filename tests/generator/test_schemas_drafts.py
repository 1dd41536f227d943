"""Drafts that add messages, members and odd names: a package has them, or names what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.draft_packages import SERVER, check_program, definitions_of, write_package
from generator.schemas import TEXT, const, obj, ref

pytestmark = pytest.mark.lengthy

REVISIONS = ["2025-06-18", "2026-07-28"]
each_revision = pytest.mark.parametrize("name", REVISIONS)

EXCHANGES = """
import anyio
import pytest
from pkg.errors import LocalProtocolError
from pkg import ClientHandlers, Context, Server
from pkg.testing import connected
from pkg.rdraft.server import ServerSession

server = Server("sums")
events = []

@server.tool()
async def add(a: int, ctx: Context) -> str:
    await ServerSession(ctx.request_context).bare()
    await ServerSession(ctx.request_context).filled(text="hello")
    with pytest.raises(LocalProtocolError, match="has no sessions: send it while"):
        await ctx.request_context.peer.notify("notifications/bare")
    return str(a + 1)

class Handlers(ClientHandlers):
    async def bare(self, params, ctx):
        events.append("bare")

    async def filled(self, params, ctx):
        events.append(params.text)

async def main() -> None:
    async with connected(server, handlers=Handlers()) as pair:
        result = await pair.client.call_tool("add", {"a": 1})
        assert result.content[0].text == "2", result
        assert events == ["bare", "hello"], events

anyio.run(main)
"""


ECHOES = """
import anyio
from pkg import Server
from pkg.rdraft.server import ServerHandlers
from pkg.testing import connected

class Handlers(ServerHandlers):
    async def echo(self, params, ctx):
        return {"text": f"{params.meta_} {params.class_} {params.x_note}"}

    async def count(self, params, ctx):
        return {"text": "three"}

async def main() -> None:
    async with connected(Server("sums", handlers=[Handlers()])) as pair:
        echoed = await pair.client.echo(meta__="hello", class_="a", x_note="b")
        assert echoed.text == "hello a b", echoed
        assert (await pair.client.count()).text == "three"

anyio.run(main)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package of a draft that adds messages."""
    definitions = definitions_of(REVISIONS[-1])
    text = obj("text", text=TEXT)
    members = {"meta": TEXT, "class": TEXT, "x-note": TEXT}
    echoed = obj("_meta meta", _meta=ref("RequestMetaObject"), **members)
    filled = obj("method params", method=const("notifications/filled"), params=text)
    definitions |= {
        "BareNotification": obj("method", method=const("notifications/bare")),
        "FilledNotification": filled,
        "EchoRequest": obj("method params", method=const("echo"), params=echoed),
        "EchoResult": obj("text resultType", text=TEXT, resultType=TEXT),
        "CountRequest": obj("method", method=const("count")),
        "CountResult": obj("text", text=TEXT),
    }
    notifications = [ref("BareNotification"), ref("FilledNotification")]
    definitions["ServerNotification"]["anyOf"] += notifications
    definitions["ClientRequest"]["anyOf"] += [ref("EchoRequest"), ref("CountRequest")]
    path = tmp_path_factory.mktemp("draft")
    write_package(path, definitions)
    return path


def test_new_notifications_without_sessions_go_with_a_request(folder: Path) -> None:
    check_program(folder, EXCHANGES)


def test_params_may_have_members_of_any_name_and_results_no_type(folder: Path) -> None:
    check_program(folder, ECHOES)


PICKS = f"""{SERVER}
import anyio
from pkg import ClientHandlers, Context
from pkg.rdraft.server import ServerSession
from pkg.testing import connected

@server.tool()
async def choose(ctx: Context) -> str:
    return (await ServerSession(ctx.request_context).pick(class_="a", x_note="b")).text

class Handlers(ClientHandlers):
    async def pick(self, params, ctx):
        return {{"text": f"{{params.class_}} {{params.x_note}}"}}

async def main() -> None:
    async with connected(server, handlers=Handlers()) as pair:
        result = await pair.client.call_tool("choose")
        assert result.content[0].text == "a b", result

anyio.run(main)
"""


def test_a_server_of_a_draft_sends_its_new_requests(tmp_path: Path) -> None:
    definitions = definitions_of(REVISIONS[0])
    params = obj("class", **{"class": TEXT, "x-note": TEXT})
    definitions |= {
        "PickRequest": obj("method params", method=const("roots/pick"), params=params),
        "PickResult": obj("text", text=TEXT),
    }
    definitions["ServerRequest"]["anyOf"].append(ref("PickRequest"))
    write_package(tmp_path, definitions)
    check_program(tmp_path, PICKS)


LIST = f"""{SERVER}
import anyio
from pkg.testing import connected

@server.tool()
def double(a: int) -> str:
    return str(2 * a)

async def main() -> None:
    async with connected(server) as pair:
        names = [tool.name for tool in await pair.client.list_tools()]
        assert names == ["add", "double"], names

anyio.run(main)
"""


def test_a_client_lists_the_tools_of_a_draft_without_pages(tmp_path: Path) -> None:
    definitions = definitions_of("2024-11-05")
    for definition in definitions.values():
        definition.get("properties", {}).pop("nextCursor", None)
        params = definition.get("properties", {}).get("params", {})
        params.get("properties", {}).pop("cursor", None)
    write_package(tmp_path, definitions)
    check_program(tmp_path, LIST)


REFUSES = """
import pytest
from pkg import Server

with pytest.raises(TypeError, match="Server: revision 'draft': .*`seal`"):
    Server("notes")
"""

CHECKS = """
import pytest
from pkg import Server

server = Server("notes")

with pytest.raises(TypeError, match="tool 'add': revision 'draft': nothing sets Tool.owner"):
    @server.tool()
    def add(a: int) -> int:
        return a

with pytest.raises(TypeError, match="prompt 'ask': revision 'draft': nothing sets GetPrompt"):
    @server.prompt()
    def ask() -> str:
        return "?"

server = Server("notes")

with pytest.raises(TypeError, match="resource 'a://b': revision 'draft': .*`mimeType`"):
    @server.resource("a://b")
    def read() -> str:
        return "c"

server = Server("notes")

@server.resource("a://b", mime_type="text/plain")
def other() -> str:
    return "c"
"""

GIVES = """
import anyio
from pkg import Server
from pkg.testing import connected

server = Server("notes")

@server.tool()
def add(a: int) -> int:
    return a

async def main() -> None:
    async with connected(server) as pair:
        (tool,) = await pair.client.list_tools()
        assert tool.owner == "us", tool
        assert pair.client.server_info["seal"] == "s1", pair.client.server_info

anyio.run(main)
"""


OWNER, SEAL = ("Tool", "owner"), ("Implementation", "seal")


@each_revision
@pytest.mark.parametrize(
    ("required", "stated", "program"),
    [
        pytest.param([SEAL], "", REFUSES, id="a server is not made"),
        pytest.param(
            [OWNER, ("Resource", "mimeType"), ("GetPromptResult", "seal")],
            *("", CHECKS),
            id="items are not registered",
        ),
        pytest.param(
            [OWNER, SEAL],
            '[defaults.Tool]\nowner = "us"\n[defaults.Implementation]\nseal = "s1"',
            GIVES,
            id="facts give the value",
        ),
    ],
)
def test_without_a_required_member(
    required: list[tuple[str, str]], stated: str, program: str, name: str, tmp_path: Path
) -> None:
    definitions = definitions_of(name)
    for owner, wire in required:
        definitions[owner]["properties"].setdefault(wire, TEXT)
        definitions[owner]["required"] = [*definitions[owner].get("required", ()), wire]
    write_package(tmp_path, definitions, stated=stated)
    check_program(tmp_path, program)
