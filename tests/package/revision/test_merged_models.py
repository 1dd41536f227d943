"""The types of all revisions as one: what is read, told apart, made and passed in."""

from __future__ import annotations

from typing import Any

import pytest

from kit.live import server_with
from kit.rules import module_of, revision_fixture
from kit.wire import ALL
from mcpgen_runtime import (
    REVISIONS,
    UNSET,
    ClientHandlers,
    Context,
    RequestContext,
    Server,
    ServerSession,
    connect,
    models,
    to_builtins,
)
from mcpgen_runtime._wire import STRUCTS, fields
from mcpgen_runtime.merged_models import MergedType
from mcpgen_runtime.testing import connected

revision = revision_fixture(ALL)

ASKING = tuple(name for name in ALL if REVISIONS[name].server_requests)
FORMS = tuple(name for name in ASKING if "elicitation/create" in REVISIONS[name].server_requests)
CLASSES = [value for value in vars(models).values() if isinstance(value, MergedType)]


def test_each_struct_is_of_one_merged_class_and_has_its_members(revision: str) -> None:
    module = module_of(revision)
    members_of_module = [each for each in vars(module).values() if isinstance(each, type)]
    structs = [each for each in members_of_module if issubclass(each, STRUCTS)]
    for struct in [each for each in structs if each.__module__ == module.__name__]:
        homes = [each for each in CLASSES if issubclass(struct, each)]
        assert len(homes) == 1, struct
        assert struct in homes[0].structs()
        members = {name for name in homes[0].__annotations__ if not name.startswith("_")}
        lacking = members - {*(each.name for each in fields(struct)), *struct.__annotations__}
        assert {name: vars(struct)[name] for name in lacking} == dict.fromkeys(lacking)


def test_merged_classes_tell_objects_of_a_revision_apart(revision: str) -> None:
    own = module_of(revision)
    text = own.TextContent(text="a")
    kinds: list[Any] = [models.TextContent, models.ContentBlock, models.ImageContent]
    assert [isinstance(text, kind) for kind in kinds] == [True, True, False]
    match own.CallToolResult(content=[text]):
        case models.CallToolResult(content=[models.TextContent(text=said)]):
            assert said == "a"
        case _:
            pytest.fail("no match")


def test_an_object_that_became_a_union_has_a_class_by_its_shape() -> None:
    own = module_of("2025-06-18")
    schema = own.ElicitRequestParamsRequestedSchema(properties={})
    params = own.ElicitRequestParams(message="a", requested_schema=schema)
    kinds: list[Any] = [models.ElicitRequestFormParams, models.ElicitRequestURLParams]
    assert [isinstance(params, kind) for kind in kinds] == [True, False]


def test_a_merged_class_makes_objects_of_the_newest_fitting_kind() -> None:
    reference = models.PromptReference(name="greet")
    assert type(reference) is module_of(ALL[-1]).PromptReference
    assert isinstance(reference, models.PromptReference)
    execution = models.ToolExecution(task_support="optional")
    tool = models.Tool(name="a", input_schema={"type": "object"}, execution=execution, title=None)
    assert type(tool) is module_of("2025-11-25").Tool
    task = models.CancelTaskResult(
        created_at="", last_updated_at="", status="cancelled", task_id="1", ttl=None
    )
    assert type(task) is module_of("2025-11-25").CancelTaskResult
    assert task.ttl is None


def test_null_is_a_value_where_allowed_and_absent_elsewhere() -> None:
    result = models.CallToolResult(content=[], structured_content=None, is_error=None)
    assert to_builtins(result) == {
        "content": [],
        "structuredContent": None,
        "resultType": "complete",
    }
    result = models.CallToolResult(content=[], structured_content=UNSET)
    assert to_builtins(result) == {"content": [], "resultType": "complete"}


@pytest.mark.parametrize(
    ("members", "got"), [({}, "none"), ({"name": "a", "colour": "b"}, "colour, name")]
)
def test_members_that_no_revision_has_together_are_refused(members: Any, got: str) -> None:
    expected = "expected members that one revision has, with all that it requires, got "
    with pytest.raises(TypeError, match=f"^PromptReference: {expected}{got}$"):
        models.PromptReference(**members)


async def test_a_client_passes_merged_objects_and_wire_objects_in(revision: str) -> None:
    server = Server("greeter")

    @server.prompt()
    def greet(city: str) -> str:
        return city

    @server.completion(prompt="greet", argument="city")
    def cities(value: str) -> list[str]:
        return [value + "slo"]

    async with connect(server, revision=revision) as client:
        assert client.revision == revision
        argument = models.CompleteRequestParamsArgument(name="city", value="O")
        reference = models.PromptReference(name="greet")
        typed = await client.complete(argument=argument, ref=reference)
        wire = await client.complete(
            argument={"name": "city", "value": "O"}, ref={"type": "ref/prompt", "name": "greet"}
        )
    assert typed.completion.values == wire.completion.values == ["Oslo"]


def asker() -> Server:
    """A server that asks by merged objects and lists of them."""

    async def ask(ctx: Context) -> str:
        session = ServerSession(ctx.request_context)
        message = models.SamplingMessage(role="user", content=models.TextContent(text="Oslo"))
        said = await session.create_message(messages=[message], max_tokens=5)
        roots = await session.list_roots()
        assert isinstance(said.content, models.TextContent)
        return " ".join([said.content.text, *(root.uri for root in roots.roots)])

    async def form(ctx: Context) -> str:
        schema = models.ElicitRequestFormParamsRequestedSchema(
            properties={"city": models.StringSchema(title="City")}
        )
        params = models.ElicitRequestFormParams(message="Oslo", requested_schema=schema)
        result = await ServerSession(ctx.request_context).elicit(params)
        assert isinstance(result, models.ElicitResult)
        return str(result.content)

    def block() -> models.TextContent:
        return models.TextContent(text="block")

    return server_with(ask, form, block)


@pytest.mark.parametrize("revision", ASKING)
async def test_handlers_and_sessions_pass_merged_objects_in(revision: str) -> None:
    class Answering(ClientHandlers):
        """Answers with merged objects, some in a list, one of a revision without such requests."""

        async def create_message(
            self, params: models.CreateMessageRequestParams, ctx: RequestContext
        ) -> models.CreateMessageResult:
            first = params.messages[0].content
            assert isinstance(first, models.TextContent)
            assert params.tools is None or len(params.tools) == 1
            content = models.TextContent(text=first.text + "?")
            return models.CreateMessageResult(role="assistant", model="echo", content=content)

        async def list_roots(self, params: Any, ctx: RequestContext) -> models.ListRootsResult:
            return models.ListRootsResult(
                roots=[models.Root(uri="file:///a"), models.Root(uri="file:///b")]
            )

        async def elicit(
            self, params: models.ElicitRequestParams, ctx: RequestContext
        ) -> models.ElicitResult:
            assert isinstance(params, models.ElicitRequestFormParams)
            return models.ElicitResult(action="accept", content={"city": params.message})

    async with connect(asker(), revision=revision, handlers=Answering()) as client:
        result = await client.call_tool("ask")
        assert result.content[0].text == "Oslo? file:///a file:///b"
        if revision in FORMS:
            result = await client.call_tool("form")
            assert (result.content[0].text, bool(result.is_error)) == ("{'city': 'Oslo'}", False)


async def test_a_tool_may_return_merged_content(revision: str) -> None:
    async with connected(asker(), revision=revision) as pair:
        result = await pair.client.call_tool("block")
        tools = {tool.name: tool for tool in await pair.client.list_tools()}
    assert result.content[0].text == "block"
    assert tools["block"].output_schema is None
