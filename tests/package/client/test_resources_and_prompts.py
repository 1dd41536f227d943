"""Resources, prompts and completion, and lists in pages, as a client asks for them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest

from kit.live import FakeServer, live
from kit.rules import revisions_holding
from kit.samples import RESULTS
from kit.scripted import connect_scripted
from kit.wire import ALL, HANDSHAKE, every, facts, speaking_to
from mcpgen_runtime import (
    InvalidParamsError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteError,
    RemoteProtocolError,
    Server,
    connect,
)

pytestmark = pytest.mark.on_asyncio
READ = RESULTS["resources/read"] or {}


@pytest.mark.requirement("resources.read-request-shape")
@every
@pytest.mark.parametrize("uri", ["memo://one", "file:///a%20b/\u00e9?q=1#f", "urn:isbn:0-395"])
async def test_a_resource_is_read_by_its_uri_as_it_is_written(revision: str, uri: str) -> None:
    async with connect_scripted(revision, READ) as (client, server):
        contents = (await client.read_resource(uri)).contents
    assert [content.text for content in contents] == ["one"]
    assert server.asked() == [{"uri": uri}]
    assert server.heard[0]["method"] == "resources/read"


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
    async with speaking_to(completing_server(), revision) as end:
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


@pytest.mark.requirement("prompts.respect-capabilities")
@every
async def test_a_server_without_prompts_is_not_asked_for_them(revision: str) -> None:
    server = FakeServer(revision, {"tools": {}})
    async with connect(server, revision=revision) as client:
        for ask in (client.list_prompts(), client.get_prompt("greet")):
            with pytest.raises(MissingCapabilityError, match="prompts"):
                await ask
    assert server.heard == []


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


BAD_REFERENCES: list[tuple[Any, Any]] = [
    *(({"name": "name"}, PROMPT), ({"value": "o"}, PROMPT), ({**ARGUMENT, "value": 3}, PROMPT)),
    *((ARGUMENT, {"type": "ref/x", "name": "greet"}), (ARGUMENT, {"name": "greet"})),
    *((ARGUMENT, {"type": "ref/prompt"}), (ARGUMENT, {"type": "ref/resource"})),
    *((ARGUMENT, {**TEMPLATE, "uri": 3}), (ARGUMENT, "greet"), ([], PROMPT)),
]
NO_TEXTS: list[Any] = [3, 1.5, True, ["x"], {}]
MALFORMED: list[tuple[str, str, dict[str, Any]]] = [
    *(("resources/read", "read_resource", {"uri": bad}) for bad in (None, *NO_TEXTS)),
    *(("prompts/get", "get_prompt", {"name": bad}) for bad in NO_TEXTS),
    *(
        ("prompts/get", "get_prompt", {"name": "greet", "arguments": {"name": bad}})
        for bad in NO_TEXTS
    ),
    *(
        ("completion/complete", "complete", {"argument": argument, "ref": ref})
        for argument, ref in BAD_REFERENCES
    ),
]


@pytest.mark.requirement(
    "resources.read-request-shape",
    "prompts.get-request-shape",
    "completion.request-shape",
    "completion.ref-prompt",
    "completion.ref-resource",
)
@every
@pytest.mark.parametrize(("method", "name", "params"), MALFORMED, ids=str)
async def test_a_malformed_request_is_refused_by_either_side(
    revision: str, method: str, name: str, params: dict[str, Any]
) -> None:
    async with connect_scripted(revision) as (client, server):
        with pytest.raises(InvalidParamsError, match=rf"^{method}: "):
            await getattr(client, name)(*params.values())
    assert server.heard == []
    async with speaking_to(completing_server(), revision) as end:
        for sent in (params, {}):
            assert (await end.ask(method, sent))["error"]["code"] == -32602


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
    answers = (done(), done(values=[]), done(total=7, hasMore=True))
    async with connect_scripted(revision, *answers) as (client, _):
        first, empty, full = [
            (await client.complete(ARGUMENT, PROMPT)).completion for _ in range(3)
        ]
    assert (first.values, bool(first.total), bool(first.has_more)) == (["Oslo"], False, False)
    assert empty.values == []
    assert (full.total, full.has_more) == (7, True)


ITEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tools/list": ("tools", {"inputSchema": {"type": "object"}}),
    "prompts/list": ("prompts", {}),
    "resources/list": ("resources", {"uri": "x://a"}),
    "resources/templates/list": ("resourceTemplates", {"uriTemplate": "x://{a}"}),
}
"""The member that holds the items of a list, and what an item has beside its name."""
CALLS = {
    "tools/list": "list_tools",
    "prompts/list": "list_prompts",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
}
ODD = ["", " ", "0", "null", "\u00e9\u4e16\U0001f600", "a\nb\t\x00c", '{"page": 2}', "x" * 10_000]
"""Texts that a client could mistake for something else than a cursor."""


def page(method: str, names: str, **more: Any) -> dict[str, Any]:
    """A page with an item for each letter."""
    member, rest = ITEMS[method]
    return {member: [{"name": name, **rest} for name in names], **more}


def tools(names: str, **more: Any) -> dict[str, Any]:
    return page("tools/list", names, **more)


@pytest.mark.requirement(
    "pagination.continue-with-cursor", "pagination.operations", "pagination.missing-is-end"
)
@pytest.mark.requirement("pagination.both-flows", "prompts.client-pagination")
@pytest.mark.requirement("pagination.no-fixed-page-size")
@every
@pytest.mark.parametrize("method", ITEMS)
@pytest.mark.parametrize("cursors", [(), ("c1", "c2")], ids=["one page", "three pages"])
async def test_a_list_is_followed_to_the_page_without_a_cursor(
    revision: str, method: str, cursors: tuple[str, ...]
) -> None:
    pages = [page(method, "ab", nextCursor=cursor) for cursor in cursors] + [page(method, "ab")]
    async with connect_scripted(revision, *pages) as (client, server):
        items = await getattr(client, CALLS[method])()
    assert [item.name for item in items] == ["a", "b"] * len(pages)
    assert {request["method"] for request in server.heard} == {method}
    assert server.asked() == [{}, *({"cursor": cursor} for cursor in cursors)]


@pytest.mark.requirement("pagination.cursor-no-format", "pagination.cursor-no-parse")
@pytest.mark.requirement("pagination.empty-cursor-is-valid")
@every
async def test_a_cursor_is_sent_back_as_it_came(revision: str) -> None:
    pages = [tools(str(n), nextCursor=cursor) for n, cursor in enumerate(ODD)]
    async with connect_scripted(revision, *pages, tools("")) as (client, server):
        assert len(await client.list_tools()) == len(ODD)
    assert [params.get("cursor") for params in server.asked()] == [None, *ODD]


@pytest.mark.requirement("pagination.cursor-no-format", "pagination.cursor-no-parse")
@every
async def test_page_by_page_a_cursor_is_the_callers(revision: str) -> None:
    pages = (tools("a", nextCursor=""), tools("b"))
    async with connect_scripted(revision, *pages) as (client, server):
        first = await client.list_tools_page()
        second = await client.list_tools_page(first.next_cursor)
        with pytest.raises(InvalidParamsError, match="cursor"):
            await client.list_tools_page(7)
    assert [tool.name for tool in (*first.tools, *second.tools)] == ["a", "b"]
    assert not second.next_cursor
    assert server.asked() == [{}, {"cursor": ""}]


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


@every
@pytest.mark.parametrize("cursors", ["2", "23", "2343"], ids=len)
async def test_a_list_whose_cursor_comes_again_ends_with_a_warning(
    revision: str, cursors: str, caplog: pytest.LogCaptureFixture
) -> None:
    cycle = [tools(f"{at}", nextCursor=cursor) for at, cursor in enumerate(cursors)]
    async with connect_scripted(revision, rest=itertools.cycle(cycle)) as (client, server):
        names = [tool.name for tool in await client.list_tools()]
        first_again = len(set(cursors)) + 1
        assert names == [str(at % len(cursors)) for at in range(first_again)]
        assert len(server.asked()) == first_again
        assert len((await client.list_tools_page()).tools) == 1
    (warning,) = warned(caplog)
    assert warning.startswith("tools/list: the list ends at nextCursor '")


REFUSED = {"error": {"code": -32602, "message": "cursor: unknown"}}


@every
@pytest.mark.parametrize("method", ITEMS)
@pytest.mark.parametrize("count", [1, 2])
async def test_a_list_ends_at_an_empty_cursor_that_is_refused(
    revision: str, method: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    pages = [page(method, "ab", nextCursor="x"), page(method, "cd", nextCursor="")][-count:]
    async with connect_scripted(revision, *pages, REFUSED) as (client, _):
        names = [item.name for item in await getattr(client, CALLS[method])()]
    assert names == [*"abcd"][-2 * count :]
    (warning,) = warned(caplog)
    assert "ends at an empty nextCursor, refused" in warning
    assert "cursor: unknown" in warning


@every
@pytest.mark.parametrize("count", [1, 2])
async def test_a_list_ends_at_an_empty_cursor_for_its_first_page(
    revision: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    pages = [tools("ab", nextCursor="x"), tools("cd", nextCursor="")][-count:]
    async with connect_scripted(revision, rest=itertools.cycle(pages)) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == [*"abcd"][-2 * count :]
    (warning,) = warned(caplog)
    assert warning == "tools/list: the list ends at an empty nextCursor, for the first page"


NO_CURSORS: list[Any] = [7, False, {}, ["c"]]
NO_PAGES: list[Any] = [{"tools": None}, {"nextCursor": None}, {"tools": {}}]


@every
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        *(({"tools": [], "nextCursor": cursor}, "nextCursor") for cursor in NO_CURSORS),
        *((page, "") for page in NO_PAGES),
    ],
    ids=str,
)
async def test_a_malformed_page_fails_the_list_alone(revision: str, bad: Any, reason: str) -> None:
    async with connect_scripted(revision, bad, tools("b")) as (client, _):
        with pytest.raises(RemoteProtocolError, match=rf"tools/list: result: .*{reason}"):
            await client.list_tools()
        assert len(await client.list_tools()) == 1


@pytest.mark.requirement("pagination.cursor-no-persist")
@every
@pytest.mark.parametrize("method", ITEMS)
async def test_null_is_no_cursor_and_a_new_session_starts_its_lists_anew(
    revision: str, method: str
) -> None:
    for cursor in ("kept?", None):
        last = page(method, "a", nextCursor=None)
        pages = [page(method, "a", nextCursor=cursor), last] if cursor else [last]
        async with connect_scripted(revision, *pages) as (client, server):
            items = await getattr(client, CALLS[method])()
            assert [item.name for item in items] == ["a"] * len(pages)
        assert server.asked() == [{}, {"cursor": "kept?"}][: len(pages)]
