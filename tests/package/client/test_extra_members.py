"""Members that a revision does not know: a client that asks keeps them, and can send them on."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from kit.cached import cacheable_result
from kit.live import handlers_with, server_with
from kit.rules import module_of, revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL, every
from mcpgen_runtime import (
    REVISIONS,
    Caching,
    Context,
    EncodingError,
    RequestContext,
    Server,
    decoder,
    encode,
    models,
    replace,
    to_builtins,
)
from mcpgen_runtime._wire import StructType, fields
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.on_asyncio


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"command": {"type": "string", "description": "What to run"}},
    "required": ["command"],
    "additionalProperties": False,
}
SHELL: Mapping[str, Any] = {
    "name": "Bash",
    "description": "Runs a command",
    "inputSchema": SCHEMA,
    "_meta": {"anthropic/alwaysLoad": True},
    "searchHint": "run shell commands",
    "isMcp": False,
    "maxResultSizeChars": 30_000,
}
CLICK: Mapping[str, Any] = {
    "name": "click",
    "inputSchema": {"type": "object", "properties": {"uid": {"type": "string"}}},
    "annotations": {
        "title": "Click",
        "readOnlyHint": False,
        "category": "input",
        "conditions": ["computerVision", None, 1.0],
    },
    "category": {"name": "input", "rank": 1},
}
PLAIN: Mapping[str, Any] = {"name": "plain", "inputSchema": {"type": "object"}}
TOOLS = [SHELL, CLICK, PLAIN]
CALLED: Mapping[str, Any] = {
    "content": [{"type": "text", "text": "done", "style": "bold"}],
    "isError": False,
    "elapsedMs": 12,
}


def unknown_to(kind: StructType, wire: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a JSON object that a Struct does not have."""
    known = {field.encode_name for field in fields(kind)}
    return {name: value for name, value in wire.items() if name not in known}


@every
async def test_a_client_that_asks_reads_members_unknown_to_revisions(revision: str) -> None:
    kind = module_of(revision).Tool
    bad = {"name": "bad", "inputSchema": {"properties": {}}}
    page = {"tools": [bad, SHELL, bad, CLICK, PLAIN], "total": 3}
    async with connect_scripted(revision, page, page, CALLED, extra=True) as (client, _):
        shell, click, plain = tools = await client.list_tools()
        assert (await client.list_tools_page()).extra == {"total": 3}
        called = await client.call_tool("Bash", {"command": "ls"})
    assert shell.extra == unknown_to(kind, SHELL)
    assert click.extra["category"]["rank"] == 1
    assert click.extra == unknown_to(kind, CLICK)
    assert plain.extra == {}
    assert type(plain) is kind
    assert all(isinstance(tool, kind) and isinstance(tool, models.Tool) for tool in tools)
    assert not isinstance(plain, models.Prompt)
    assert called.extra == {"elapsedMs": 12}
    assert called.content[0].extra == {"style": "bold"}
    if hasattr(module_of(revision), "ToolAnnotations"):
        assert shell.annotations is None
        conditions = {"category": "input", "conditions": ["computerVision", None, 1.0]}
        assert click.annotations.extra == conditions
        assert click.annotations.title == "Click"


@every
async def test_without_the_option_extra_is_empty_and_objects_are_plain(revision: str) -> None:
    async with connect_scripted(revision, {"tools": TOOLS}, CALLED) as (client, _):
        tools = await client.list_tools()
        called = await client.call_tool("Bash", {})
    assert [tool.extra for tool in tools] == [{}, {}, {}]
    assert {type(tool) for tool in tools} == {module_of(revision).Tool}
    assert called.extra == called.content[0].extra == {}
    with pytest.raises(TypeError):
        tools[0].extra["new"] = 1


@pytest.mark.parametrize("revision", revisions_holding("caching.ttl-positive-fresh"))
@pytest.mark.parametrize("ttl", [60_000, -1])
async def test_a_result_from_the_cache_has_them_as_the_first_one_had(
    revision: str, ttl: int
) -> None:
    page = cacheable_result("tools/list", ttl, tools=TOOLS, total=3)
    how: dict[str, Any] = {"extra": True, "cache": Caching()}
    async with connect_scripted(revision, page, page, **how) as (client, server):
        pages = [await client.list_tools_page() for _ in range(2)]
    assert len(server.asked()) == (1 if ttl > 0 else 2)
    assert pages[0] == pages[1]
    assert pages[1].extra == {"total": 3}
    assert pages[1].tools[0].extra["searchHint"] == "run shell commands"


def proxy(upstream: Any, revision: str) -> Server:
    """A server that hands on what a client gets, in one revision."""

    class Handlers(module_of(revision, "server").ServerHandlers):  # type: ignore[misc]  # known at run time
        async def list_tools(self, params: Any, ctx: RequestContext) -> Any:
            return module_of(revision).ListToolsResult(tools=await upstream.list_tools())

        async def call_tool(self, params: Any, ctx: RequestContext) -> Any:
            return await upstream.call_tool(params.name, params.arguments)

    return Server("proxy", handlers=[Handlers()])


@pytest.mark.parametrize("upstream", ALL)
@every
async def test_a_proxy_passes_them_on_into_any_other_revision(upstream: str, revision: str) -> None:
    async with (
        connect_scripted(upstream, {"tools": TOOLS}, extra=True) as (client, _),
        connected(proxy(client, revision), revision=revision, extra=True) as pair,
    ):
        tools = await pair.client.list_tools()
        listed = pair.received[-1]["result"]["tools"]
    assert [tool.extra.get("searchHint") for tool in tools] == ["run shell commands", None, None]
    kind = module_of(revision).Tool
    for wire, original in zip(listed, TOOLS, strict=True):
        lost = original.keys() - wire.keys()  # what the upstream revision knows and this one not
        assert not lost & unknown_to(module_of(upstream).Tool, original).keys()
        assert lost.isdisjoint(field.encode_name for field in fields(kind))
        assert {name: original[name] for name in wire if name != "annotations"} == {
            name: value for name, value in wire.items() if name != "annotations"
        }


@every
def test_members_that_the_schema_has_win(revision: str) -> None:
    wire = {**PLAIN, "category": "old", "rank": 1}
    click = decoder(module_of(revision).Tool, extra=True)(json.dumps(wire).encode())
    again = replace(click, extra={"name": "other", "category": "new"})
    assert again.extra == {"category": "new"}
    assert json.loads(encode(again)) == {**PLAIN, "category": "new"}
    none = replace(click, extra={})
    assert to_builtins(none) == PLAIN
    assert none.extra == {}


@every
def test_an_object_with_another_member_changed_keeps_them(revision: str) -> None:
    shell = decoder(module_of(revision).Tool, extra=True)(json.dumps(SHELL).encode())
    renamed = replace(shell, name="one.Bash")
    assert json.loads(encode(renamed)) == {**SHELL, "name": "one.Bash"}
    for made in (copy.copy(shell), copy.deepcopy(shell), pickle.loads(pickle.dumps(shell))):
        assert made == shell
        assert made.extra == shell.extra
        assert type(made) is type(shell)
    assert "searchHint" in repr(shell)
    assert "extra" not in repr(replace(shell, extra={}))


@pytest.mark.parametrize(
    "revision", [name for name in ALL if hasattr(module_of(name), "Annotations")]
)
def test_rules_of_a_type_hold_for_an_object_with_extra_members(revision: str) -> None:
    made = decoder(module_of(revision).Annotations, extra=True)(
        b'{"priority": 0.5, "colour": "red"}'
    )
    with pytest.raises(ValueError, match="expected 0 to 1"):
        replace(made, priority=2)


def test_a_member_that_json_cannot_express_is_refused() -> None:
    tool = decoder(module_of(ALL[-1]).Tool, extra=True)(json.dumps(CLICK).encode())
    for wrong in (float("nan"), object()):
        with pytest.raises(EncodingError):
            encode(replace(tool, extra={"category": wrong}))
    deep = replace(tool, meta={"a": float("inf")})
    with pytest.raises(EncodingError, match="inf"):
        encode(deep)
    with pytest.raises(TypeError, match="object is unsupported"):
        to_builtins([tool, object()])


@pytest.mark.parametrize("revision", [name for name in ALL if REVISIONS[name].server_requests])
async def test_the_answer_of_a_client_s_handler_is_sent_with_them(revision: str) -> None:
    content = {"type": "text", "text": "hi", "style": "bold"}
    given = {"role": "assistant", "model": "m", "content": content, "usage": {"tokens": 3}}
    decode = decoder(module_of(revision).CreateMessageResult, extra=True)
    model = handlers_with(create_message=decode(json.dumps(given).encode()))

    async def ask(ctx: Context) -> str:
        return (await ctx.sample("?", max_tokens=9)).text

    async with connected(server_with(ask), revision=revision, handlers=model) as pair:
        await pair.client.call_tool("ask")
        assert given in [message.get("result") for message in pair.sent]


@pytest.mark.parametrize(
    "revision", [name for name in ALL if hasattr(module_of(name), "PromptReference")]
)
async def test_params_that_a_client_passes_on_are_sent_with_them(revision: str) -> None:
    decode = decoder(module_of(revision).PromptReference, extra=True)
    reference = decode(b'{"type": "ref/prompt", "name": "a", "origin": "b"}')
    completed: dict[str, Any] = {"completion": {"values": []}}
    async with connect_scripted(revision, completed) as (client, server):
        await client.complete(ref=reference, argument={"name": "c", "value": "d"})
    assert server.asked()[-1]["ref"] == {"type": "ref/prompt", "name": "a", "origin": "b"}
