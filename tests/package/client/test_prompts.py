"""Prompts as a client gets them.

Source: server/prompts.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.client.async_client import connect
from mcp_protocol.errors import InvalidParamsError, MissingCapabilityError
from mcp_protocol.server.toolkit.server import Server
from package.live import FakeServer, live
from package.samples import RESULTS
from package.scripted import connect_scripted
from package.wire import ALL, speaking_to

every = pytest.mark.parametrize("revision", ALL)
GOT = RESULTS["prompts/get"] or {}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def greeting_server() -> Server:
    """A server with one prompt."""
    server = Server("greeting")

    @server.prompt()
    async def greet(who: str = "you") -> str:
        return f"Greet {who}."

    return server


@pytest.mark.requirement("prompts.get-request-shape")
@every
@pytest.mark.parametrize(
    ("given", "params"),
    [
        (("greet",), {"name": "greet"}),
        (("greet", {}), {"name": "greet", "arguments": {}}),
        (("greet", {"who": "\u00e9"}), {"name": "greet", "arguments": {"who": "\u00e9"}}),
    ],
)
async def test_a_prompt_is_got_by_name_with_its_arguments_as_texts(
    revision: str, given: Any, params: Any
) -> None:
    async with connect_scripted(revision, GOT) as (client, server):
        result = await client.get_prompt(*given)
    assert result.messages[0].content.text == "hello"
    assert server.asked() == [params]
    assert server.heard[0]["method"] == "prompts/get"


@pytest.mark.requirement("prompts.get-request-shape")
@every
@pytest.mark.parametrize("value", [3, 1.5, True, None, ["x"], {}], ids=str)
async def test_an_argument_that_is_no_text_is_refused_by_either_side(
    revision: str, value: Any
) -> None:
    async with connect_scripted(revision, GOT) as (client, server):
        with pytest.raises(InvalidParamsError, match=r"^prompts/get: Expected `str`"):
            await client.get_prompt("greet", {"who": value})
        with pytest.raises(InvalidParamsError, match=r"^prompts/get: Expected"):
            await client.get_prompt(value)
    assert server.heard == []
    async with speaking_to(greeting_server(), revision) as end:
        for params in ({"name": "greet", "arguments": {"who": value}}, {"name": value}, {}):
            assert (await end.ask("prompts/get", params))["error"]["code"] == -32602


@pytest.mark.requirement("prompts.get-request-shape")
@every
async def test_arguments_of_a_prompt_reach_its_function(revision: str) -> None:
    async with live(greeting_server(), revision) as (client, _):
        for arguments, text in (({"who": "Oslo"}, "Greet Oslo."), ({}, "Greet you.")):
            (message,) = (await client.get_prompt("greet", arguments)).messages
            assert (message.role, message.content.text) == ("user", text)


@pytest.mark.requirement("prompts.respect-capabilities")
@every
async def test_a_server_without_prompts_is_not_asked_for_them(revision: str) -> None:
    server = FakeServer(revision, {"tools": {}})
    async with connect(server, revision=revision) as client:
        for ask in (client.list_prompts(), client.get_prompt("greet")):
            with pytest.raises(MissingCapabilityError, match="prompts"):
                await ask
    assert server.heard == []
