"""`replace`: a copy of a message with some members changed, for either kind of models."""

from __future__ import annotations

import importlib
from typing import Any, assert_type

import pytest

from kit.live import text_of
from kit.wire import ALL
from mcpgen_runtime import (
    ClientNext,
    ClientRequest,
    MiddlewareRequest,
    Next,
    Server,
    connect_sync,
    models,
    replace,
)
from mcpgen_runtime.revisions import FOLDERS

every = pytest.mark.parametrize("revision", ALL)


@every
def test_a_copy_has_the_changed_members_and_the_others(revision: str) -> None:
    tool_class: Any = importlib.import_module(f"mcpgen_runtime.{FOLDERS[revision]}.models").Tool
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
