"""The types of a revision: official examples, absent members, copies, deprecated features."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, assert_type

import msgspec
import pytest

from kit.live import text_of
from kit.rules import module_of, revisions_holding
from kit.samples import PARAMS
from kit.scripted import connect_scripted
from kit.wire import ALL, PER_REQUEST
from mcpgen_runtime import (
    REVISIONS,
    UNSET,
    ClientHandlers,
    ClientNext,
    ClientRequest,
    Context,
    InputRequired,
    InvalidParamsError,
    MiddlewareRequest,
    Next,
    RequestContext,
    Server,
    _wire,
    connect,
    connect_sync,
    decoder,
    encode,
    models,
    replace,
    to_builtins,
)
from mcpgen_runtime._wire import STRUCTS, fields

every = pytest.mark.parametrize("revision", ALL)

TOOL: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}


@every
def test_only_members_of_any_json_value_tell_absence_from_null(revision: str) -> None:
    module = module_of(revision)
    kinds: dict[str, Any] = dict(inspect.getmembers(module, inspect.isclass))
    defaults = {
        f"{kind.__name__}.{field.name}": field.default
        for kind in kinds.values()
        if kind.__module__ == module.__name__ and issubclass(kind, STRUCTS)
        for field in fields(kind)
        if field.default is not msgspec.NODEFAULT
    }
    others = {name for name, default in defaults.items() if default is not None}
    assert {defaults[name] for name in others} == {UNSET}
    assert {name.partition(".")[2] for name in others} <= {"data", "structured_content"}


@every
async def test_null_for_an_optional_result_member_counts_as_absent(revision: str) -> None:
    tool = {**TOOL, "description": None, "annotations": None, "_meta": None}
    page = {"tools": [tool], "nextCursor": None, "_meta": None}
    async with connect_scripted(revision, page, page) as (client, _):
        [listed] = await client.list_tools()
        assert listed.description is None
        assert listed == type(listed)(name="a", input_schema={"type": "object"})
        assert to_builtins(await client.list_tools_page())["tools"] == [TOOL]


@every
async def test_none_for_an_optional_argument_sends_nothing(revision: str) -> None:
    async with connect_scripted(revision, {"tools": []}, {"content": []}) as (client, server):
        await client.list_tools_page(None)
        await client.call_tool("a", None)
        assert server.asked()[-2:] == [{}, {"name": "a"}]


async def test_none_for_a_required_argument_is_refused() -> None:
    async with connect_scripted("2025-06-18") as (client, _):
        with pytest.raises(InvalidParamsError, match="Expected `str`, got `null`"):
            await client.call_tool(None)


@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"_meta":{},"requestState":"","resultType":"input_required"}', "InputRequiredResult"),
        ('{"resultType":"complete"}', "Result"),
        ('{"content":[],"resultType":"complete"}', "CallToolResult"),
    ],
)
def test_a_result_of_any_request_keeps_its_members(revision: str, text: str, kind: str) -> None:
    models = module_of(revision)
    result = decoder(models.ServerResult)(text.encode())
    assert type(result).__name__ == kind
    assert json.loads(encode(result)) == json.loads(text)


Change = Callable[[dict[str, Any]], object]

DEFECTS: dict[str, Change] = {
    # A request inside a result has no id: the schema does not know one.
    "list-roots-request.json": lambda message: message.pop("id"),
    # The schema requires both; a peer that leaves them out means these values.
    "read-resource-result-response.json": lambda message: message["result"].update(
        {"ttlMs": 0, "cacheScope": "private"}
    ),
}
"""Examples that are not what their schema says, and what would make them so."""


def examples(spec: Path, revision: str) -> Iterator[tuple[str, Path]]:
    """Every official example of a revision, each with the type it is one of."""
    for path in sorted((spec / "schema" / revision / "examples").glob("*/*.json")):
        yield path.parent.name, path


def exact(value: Any) -> Any:
    """A JSON value in a form in which 1, 1.0 and true differ, and the order of members does not."""
    if isinstance(value, dict):
        return {key: exact(child) for key, child in value.items()}
    if isinstance(value, list):
        return [exact(child) for child in value]
    return (type(value), value)


@pytest.mark.parametrize("revision", REVISIONS)
def test_official_examples_stay_the_same_json(spec: Path, revision: str) -> None:
    models = module_of(revision)
    for name, path in examples(spec, revision):
        text = path.read_bytes()
        decoded = _wire.decoder(getattr(models, name))(text)
        expected = json.loads(text)
        DEFECTS.get(path.name, id)(expected)
        assert exact(json.loads(_wire.encode(decoded))) == exact(expected), path.name


def test_there_are_official_examples(spec: Path) -> None:
    assert any(True for revision in REVISIONS for _ in examples(spec, revision))


@every
def test_a_copy_has_the_changed_members_and_the_others(revision: str) -> None:
    tool_class: Any = module_of(revision).Tool
    tool = tool_class(name="a", input_schema={"type": "object"}, description="d")
    copied = replace(tool, name="b", description=None)
    assert type(copied) is type(tool)
    assert (copied.name, copied.description, copied.input_schema) == ("b", None, tool.input_schema)
    assert (tool.name, tool.description) == ("a", "d")


def test_type_checkers_know_the_type_of_the_copy() -> None:
    text = models.TextContent(text="one")
    assert_type(replace(text, text="two"), models.TextContent)
    assert replace(text, text="two").text == "two"


@pytest.mark.parametrize("name", ["structuredContent", "contents", "extra"])
def test_a_name_that_is_no_member_is_refused_with_those_that_are(name: str) -> None:
    result = models.CallToolResult(content=[])
    with pytest.raises(TypeError, match=f"^replace: CallToolResult has no member {name}; its mem"):
        replace(result, **{name: 1})
    with pytest.raises(TypeError, match=r"content.*is_error"):
        replace(result, **{"is_error": True, name: 1})


def test_objects_that_are_no_messages_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^replace: expected an object of a message, got a dict$"):
        replace({"name": "a"}, name="b")


@every
def test_a_middleware_of_either_side_changes_params_and_results(revision: str) -> None:
    server = Server("shop")

    @server.tool()
    def order(item: str) -> str:
        return f"ordered {item}"

    @server.middleware
    async def reverse(request: MiddlewareRequest, next: Next) -> Any:
        if request.method != "tools/call":
            return await next(request)
        params = replace(request.params, arguments={"item": request.params.arguments["item"][::-1]})
        result = await next(request.with_params(params))
        return replace(result, content=[*result.content, *result.content])

    with connect_sync(server, revision=revision) as client:

        async def loud(request: ClientRequest, next: ClientNext) -> Any:
            result = await next(request)
            return replace(result, content=result.content[:1], is_error=True)

        assert len(client.call_tool("order", {"item": "raep"}).content) == 2
        client.middleware(loud)
        result = client.call_tool("order", {"item": "raep"})
    assert (text_of(result), result.is_error) == ("ordered pear", True)


@pytest.mark.requirement("versioning.deprecated-still-works")
@pytest.mark.parametrize("revision", revisions_holding("versioning.deprecated-still-works"))
async def test_sampling_roots_and_log_messages_still_work(revision: str) -> None:
    models: Any = module_of(revision)
    logged: list[Any] = []

    class Host(ClientHandlers):
        async def create_message(self, params: Any, ctx: RequestContext) -> Any:
            text = models.TextContent(text="sampled")
            return models.CreateMessageResult(role="assistant", content=text, model="m")

        async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
            return models.ListRootsResult(roots=[models.Root(uri="file:///home")])

        async def logging_message(self, params: Any, ctx: RequestContext) -> None:
            logged.append(params.data)

    server = Server("s")

    @server.tool()
    async def ask(ctx: Context) -> Any:
        if not ctx.input_responses:
            await ctx.info("asking")
            sampling = "sampling/createMessage"
            return InputRequired(
                {
                    "model": {"method": sampling, "params": PARAMS[sampling]},
                    "roots": {"method": "roots/list"},
                }
            )
        answers = ctx.input_responses
        return f"{answers['model']['content']['text']} in {answers['roots']['roots'][0]['uri']}"

    async with connect(server, revision=revision, handlers=Host()) as client:
        client.ask_for_logs("info")
        result = await client.call_tool("ask")
    assert result.content[0].text == "sampled in file:///home"
    assert logged == ["asking"]
