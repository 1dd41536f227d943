"""Messages that a draft adds to a revision without sessions are on the wire, or are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.schemas import TEXT, const, obj
from generator.test_undecided_unions import (
    NAMES,
    check_program,
    published_definitions,
    write_package,
)

pytestmark = pytest.mark.lengthy

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
        return {"text": params.meta_}

server = Server("sums", handlers=[Handlers()])

async def main() -> None:
    async with connected(server) as pair:
        result = await pair.client.echo(meta__="hello")
        assert result.text == "hello", result

anyio.run(main)
"""


COUNTS = """
import anyio
from pkg import Server
from pkg.rdraft.server import ServerHandlers
from pkg.testing import connected

class Handlers(ServerHandlers):
    async def count(self, params, ctx):
        return {"text": "three"}

server = Server("sums", handlers=[Handlers()])

async def main() -> None:
    async with connected(server) as pair:
        result = await pair.client.count()
        assert result.text == "three", result

anyio.run(main)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package of a draft that adds messages."""
    definitions, key = published_definitions(NAMES[-1])
    text = obj("text", text=TEXT)
    echoed = obj("_meta meta", _meta={"$ref": f"#/{key}/RequestMetaObject"}, meta=TEXT)
    definitions |= {
        "BareNotification": obj("method", method=const("notifications/bare")),
        "FilledNotification": obj(
            "method params", method=const("notifications/filled"), params=text
        ),
        "EchoRequest": obj("method params", method=const("echo"), params=echoed),
        "EchoResult": obj("text resultType", text=TEXT, resultType=TEXT),
        "CountRequest": obj("method", method=const("count")),
        "CountResult": obj("text", text=TEXT),
    }
    for union, name in (
        ("ServerNotification", "BareNotification"),
        ("ServerNotification", "FilledNotification"),
        ("ClientRequest", "EchoRequest"),
        ("ClientRequest", "CountRequest"),
    ):
        definitions[union]["anyOf"].append({"$ref": f"#/{key}/{name}"})
    path = tmp_path_factory.mktemp("draft")
    write_package(path, key, definitions, ())
    return path


def test_new_notifications_without_sessions_go_with_a_request(folder: Path) -> None:
    check_program(folder, EXCHANGES)


def test_params_may_have_a_member_that_is_called_meta(folder: Path) -> None:
    check_program(folder, ECHOES)


def test_a_result_may_have_no_member_that_says_its_type(folder: Path) -> None:
    check_program(folder, COUNTS)
