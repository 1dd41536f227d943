"""Resources and prompts as a client reads them and hears of them."""

from __future__ import annotations

from typing import Any

import pytest

from kit.live import FakeServer
from kit.rules import revisions_holding
from kit.samples import RESULTS
from kit.scripted import connect_scripted
from kit.wire import ALL, HANDSHAKE, facts, speaking_to
from mcpgen_runtime import (
    InvalidParamsError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteError,
    Server,
    connect,
)

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)
READ = RESULTS["resources/read"] or {}


def notes() -> Server:
    """A server with one resource, which may be subscribed to."""
    server = Server("notes", subscribe=True)

    @server.resource("memo://one")
    async def one() -> str:
        return "the first"

    return server


@pytest.mark.requirement("resources.read-request-shape")
@every
@pytest.mark.parametrize("uri", ["memo://one", "file:///a%20b/\u00e9?q=1#f", "urn:isbn:0-395"])
async def test_a_resource_is_read_by_its_uri_as_it_is_written(revision: str, uri: str) -> None:
    async with connect_scripted(revision, READ) as (client, server):
        contents = (await client.read_resource(uri)).contents
    assert [content.text for content in contents] == ["one"]
    assert server.asked() == [{"uri": uri}]
    assert server.heard[0]["method"] == "resources/read"


@pytest.mark.requirement("resources.read-request-shape")
@every
async def test_reading_without_a_uri_is_refused_by_either_side(revision: str) -> None:
    async with connect_scripted(revision, READ) as (client, server):
        for bad in (None, 3, ["memo://one"]):
            with pytest.raises(InvalidParamsError, match=r"^resources/read: Expected `str`"):
                await client.read_resource(bad)
    assert server.heard == []
    malformed: list[Any] = [{}, {"uri": None}, {"uri": 3}, {"URI": "memo://one"}]
    async with speaking_to(notes(), revision) as end:
        for params in malformed:
            assert (await end.ask("resources/read", params))["error"]["code"] == -32602


NOT_FOUND = {facts(revision).errors.resource_not_found for revision in ALL}


@pytest.mark.requirement("resources.client-accepts-32002")
@every
@pytest.mark.parametrize("code", sorted(NOT_FOUND))
async def test_errors_for_missing_resources_of_any_revision_are_known(
    revision: str, code: int
) -> None:
    refusal = {"error": {"code": code, "message": "gone", "data": {"uri": "memo://x"}}}
    other = {"error": {"code": -32603, "message": "disk on fire"}}
    async with connect_scripted(revision, refusal, refusal, other) as (client, _):
        found = []
        for ask in (client.read_resource, client.get_prompt, client.read_resource):
            with pytest.raises(RemoteError) as info:
                await ask("memo://x")
            found.append(not info.value.resource_not_found)
    assert found == [False, True, True]


LISTENING = revisions_holding("resources.subscribe-via-listen")


@pytest.mark.requirement("resources.subscribe-via-listen")
@pytest.mark.parametrize("revision", LISTENING)
@pytest.mark.parametrize("name", ["resources/subscribe", "resources/unsubscribe"])
async def test_the_requests_to_subscribe_are_gone_where_one_listens(
    revision: str, name: str
) -> None:
    async with connect_scripted(revision) as (client, server):
        with pytest.raises(MethodNotFoundError, match=name):
            await client.request(name, {"uri": "memo://one"})
    assert server.heard == []
    async with speaking_to(notes(), revision) as end:
        assert (await end.ask(name, {"uri": "memo://one"}))["error"]["code"] == -32601


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_elsewhere_one_subscribes_by_request(revision: str) -> None:
    async with connect_scripted(revision, {}, {}) as (client, server):
        await client.subscribe("memo://one")
        await client.unsubscribe("memo://one")
        with pytest.raises(MethodNotFoundError, match="subscriptions/listen"):
            await client.request("subscriptions/listen", {"notifications": {}})
    methods = [request["method"] for request in server.heard]
    assert methods == ["resources/subscribe", "resources/unsubscribe"]
    assert server.asked() == [{"uri": "memo://one"}] * 2


GOT = RESULTS["prompts/get"] or {}


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
@pytest.mark.parametrize("value", [3, 1.5, True, ["x"], {}], ids=str)
async def test_an_argument_that_is_no_text_is_refused_by_either_side(
    revision: str, value: Any
) -> None:
    def greeting_server() -> Server:
        server = Server("greeting")

        @server.prompt()
        async def greet(who: str = "you") -> str:
            return f"Greet {who}."

        return server

    async with connect_scripted(revision, GOT) as (client, server):
        with pytest.raises(InvalidParamsError, match=r"^prompts/get: Expected `str`"):
            await client.get_prompt("greet", {"who": value})
        with pytest.raises(InvalidParamsError, match=r"^prompts/get: Expected"):
            await client.get_prompt(value)
    assert server.heard == []
    async with speaking_to(greeting_server(), revision) as end:
        for params in ({"name": "greet", "arguments": {"who": value}}, {"name": value}, {}):
            assert (await end.ask("prompts/get", params))["error"]["code"] == -32602


@pytest.mark.requirement("prompts.respect-capabilities")
@every
async def test_a_server_without_prompts_is_not_asked_for_them(revision: str) -> None:
    server = FakeServer(revision, {"tools": {}})
    async with connect(server, revision=revision) as client:
        for ask in (client.list_prompts(), client.get_prompt("greet")):
            with pytest.raises(MissingCapabilityError, match="prompts"):
                await ask
    assert server.heard == []
