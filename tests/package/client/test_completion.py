"""Completion as a client asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from kit.live import live
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL, speaking_to
from mcpgen_runtime import InvalidParamsError, Server

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)

PROMPT = {"type": "ref/prompt", "name": "greet"}
TEMPLATE = {"type": "ref/resource", "uri": "memo://{name}"}
ARGUMENT = {"name": "name", "value": "o"}
NEWEST: Any = import_module(f"mcpgen_runtime.r{ALL[-1].replace('-', '_')}.models")
WITH_CONTEXT = revisions_holding("completion.context-arguments")


def completing_server() -> Server:
    """A server that completes an argument of a prompt and a variable of a template."""
    server = Server("completing")

    @server.prompt()
    async def greet(name: str) -> str:
        return name

    @server.resource("memo://{name}")
    async def memo(name: str) -> str:
        return name

    @server.completion(prompt="greet", argument="name")
    async def people(value: str) -> list[str]:
        return [f"person {value}"]

    @server.completion(template="memo://{name}", argument="name")
    async def memos(value: str) -> list[str]:
        return [f"memo {value}"]

    return server


def done(**more: Any) -> dict[str, Any]:
    return {"completion": {"values": ["Oslo"], **more}}


@pytest.mark.requirement(
    "completion.request-shape", "completion.ref-prompt", "completion.ref-resource"
)
@every
@pytest.mark.parametrize("ref", [PROMPT, TEMPLATE, {**TEMPLATE, "uri": "memo://one"}], ids=str)
async def test_a_request_names_what_it_is_about_and_what_was_typed(
    revision: str, ref: dict[str, str]
) -> None:
    async with connect_scripted(revision, done(), done()) as (client, server):
        await client.complete(ARGUMENT, ref)
        typed = NEWEST.PromptReference if ref is PROMPT else NEWEST.ResourceTemplateReference
        rest = {name: value for name, value in ref.items() if name != "type"}
        await client.complete(NEWEST.CompleteRequestParamsArgument(**ARGUMENT), typed(**rest))
    assert server.asked() == [{"argument": ARGUMENT, "ref": ref}] * 2
    assert {request["method"] for request in server.heard} == {"completion/complete"}


@pytest.mark.requirement("completion.ref-prompt", "completion.ref-resource")
@every
async def test_the_reference_decides_who_completes(revision: str) -> None:
    async with live(completing_server(), revision) as (client, _):
        for ref, value in ((PROMPT, "person o"), (TEMPLATE, "memo o")):
            assert (await client.complete(ARGUMENT, ref)).completion.values == [value]


MALFORMED: list[tuple[Any, Any]] = [
    *(({"name": "name"}, PROMPT), ({"value": "o"}, PROMPT), ({**ARGUMENT, "value": 3}, PROMPT)),
    *((ARGUMENT, {"type": "ref/x", "name": "greet"}), (ARGUMENT, {"name": "greet"})),
    *((ARGUMENT, {"type": "ref/prompt"}), (ARGUMENT, {"type": "ref/resource"})),
    *((ARGUMENT, {**TEMPLATE, "uri": 3}), (ARGUMENT, "greet"), ([], PROMPT)),
]


@pytest.mark.requirement(
    "completion.request-shape", "completion.ref-prompt", "completion.ref-resource"
)
@every
@pytest.mark.parametrize(("argument", "ref"), MALFORMED, ids=str)
async def test_a_malformed_request_is_refused_by_either_side(
    revision: str, argument: Any, ref: Any
) -> None:
    async with connect_scripted(revision) as (client, server):
        with pytest.raises(InvalidParamsError, match=r"^completion/complete: "):
            await client.complete(argument, ref)
    assert server.heard == []
    async with speaking_to(completing_server(), revision) as end:
        answer = await end.ask("completion/complete", {"argument": argument, "ref": ref})
        assert answer["error"]["code"] == -32602


@pytest.mark.requirement("completion.context-arguments")
@every
async def test_settled_arguments_are_sent_where_the_revision_has_them(revision: str) -> None:
    settled = {"arguments": {"country": "Norway"}}
    async with connect_scripted(revision, done(), revision=None) as (client, server):
        if revision in WITH_CONTEXT:
            await client.complete(ARGUMENT, PROMPT, context=settled)
            assert server.asked() == [{"argument": ARGUMENT, "ref": PROMPT, "context": settled}]
        else:
            with pytest.raises(InvalidParamsError, match="has no 'context'"):
                await client.complete(ARGUMENT, PROMPT, context=settled)
            assert server.heard == []


@pytest.mark.requirement("completion.client-partial-results")
@every
async def test_a_result_may_say_less_than_it_could(revision: str) -> None:
    async with connect_scripted(revision, done(), done(values=[]), done(total=7, hasMore=True)) as (
        client,
        _,
    ):
        first, empty, full = [
            (await client.complete(ARGUMENT, PROMPT)).completion for _ in range(3)
        ]
    assert (first.values, bool(first.total), bool(first.has_more)) == (["Oslo"], False, False)
    assert empty.values == []
    assert (full.total, full.has_more) == (7, True)
