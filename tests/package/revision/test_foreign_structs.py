"""Objects of another revision inside what a server's handler gives: sent right, or refused."""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest

from kit.rules import module_of, revision_fixture
from kit.wire import ALL
from mcpgen_runtime import RemoteError, RequestContext, Server, Text, models
from mcpgen_runtime.facts import python_names
from mcpgen_runtime.testing import connected

revision = revision_fixture(ALL)

pytestmark = pytest.mark.on_asyncio

mixed = pytest.mark.parametrize(("revision", "other"), [*permutations(ALL, 2)])


async def answer(revision: str, result: Any, method: str = "tools/call") -> dict[str, Any]:
    """The message by which a server answers with this."""

    class Handlers(module_of(revision, "server").ServerHandlers):  # type: ignore[misc]  # known at run time
        async def call_tool(self, params: Any, ctx: RequestContext) -> Any:
            return result

        async def list_tools(self, params: Any, ctx: RequestContext) -> Any:
            return result

    params = {"name": "any"} if method == "tools/call" else None
    async with connected(Server("gives", handlers=[Handlers()]), revision=revision) as pair:
        with suppress(RemoteError):
            await pair.client.request(method, params)
        message: dict[str, Any] = pair.received[-1]
    return message


NOTE = {"text": "a", "uri": "x://a"}


@mixed
@pytest.mark.parametrize("as_type", [True, False])
async def test_content_of_another_revision_is_converted_to_the_session(
    revision: str, other: str, as_type: bool
) -> None:
    theirs = module_of(other)
    embedded = theirs.EmbeddedResource(resource=theirs.TextResourceContents(**NOTE))
    content = [theirs.TextContent(text="a"), embedded]
    made = module_of(revision).CallToolResult(content=content) if as_type else {"content": content}
    sent = [{"type": "text", "text": "a"}, {"type": "resource", "resource": NOTE}]
    assert (await answer(revision, made))["result"]["content"] == sent
    result = (await answer(revision, theirs.CallToolResult(content=content)))["result"]
    assert result["content"] == sent
    has_kind = "result_type" in python_names(module_of(revision).CallToolResult).values()
    assert ("resultType" in result) == has_kind


@pytest.mark.parametrize("member", ["icons", "execution", "output_schema", "title", "meta"])
async def test_a_member_that_the_revision_lacks_is_not_sent(revision: str, member: str) -> None:
    values: dict[str, Any] = {
        "icons": [models.Icon(src="https://a.example/i.png")],
        "execution": {"taskSupport": "optional"},
        "output_schema": {"type": "object"},
        "title": "A tool",
        "meta": {"a": 1},
    }
    tool = models.Tool(name="a", input_schema={"type": "object"}, **{member: values[member]})
    result = module_of(revision).ListToolsResult(tools=[tool])
    (sent,) = (await answer(revision, result, "tools/list"))["result"]["tools"]
    has = member in python_names(module_of(revision).Tool).values()
    assert len(sent) == (3 if has else 2)


LATER = [name for name in ALL if hasattr(module_of(name), "ResourceLink")]


@pytest.mark.structs("classes of pydantic refuse such values when they are called")
@pytest.mark.parametrize("revision", [name for name in ALL if name not in LATER])
async def test_content_that_the_revision_does_not_have_is_refused(
    revision: str, caplog: Any
) -> None:
    link = module_of(LATER[0]).ResourceLink(name="a", uri="x://a")
    for made in (module_of(revision).CallToolResult(content=[link]), {"content": [link]}):
        error = (await answer(revision, made))["error"]
        assert error["code"] == -32603
        assert error["message"].startswith("tools/call: result: ")
        assert "content[0]" in error["message"]


@pytest.mark.structs("classes of pydantic refuse such values when they are called")
async def test_an_object_of_a_wrong_kind_or_value_is_refused(revision: str) -> None:
    for content in ([{"type": "text"}], [object()], [Text], "text"):
        made = module_of(revision).CallToolResult(content=content)
        error = (await answer(revision, made))["error"]
        assert error["code"] == -32603
        assert error["message"].startswith("tools/call: result: ")
