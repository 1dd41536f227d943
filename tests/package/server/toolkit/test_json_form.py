"""Values that JSON can't express: an error at registration, or one request that fails."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

import pydantic
import pytest

from kit.live import server_with
from kit.requestor import requestor
from kit.wire import ALL, every
from mcpgen_runtime import (
    Icon,
    InvalidParamsError,
    RemoteError,
    Server,
    Tasks,
    ToolError,
    ToolResult,
)
from mcpgen_runtime.testing import connected

HALF = "cut \ud83d"
INF = math.inf


def plain() -> str:
    return ""


def of_variable(x: str) -> str:
    return ""


def described(x: Annotated[str, HALF]) -> str:
    return ""


class Crate(pydantic.BaseModel):
    width: float = INF


async def test_a_tool_with_a_value_that_json_lacks_is_refused() -> None:
    class Halves(enum.Enum):
        LOW = "\ude00"

    def default(x: float = INF) -> None: ...

    def nested(x: list[float] = [1.0, math.nan]) -> None: ...  # noqa: B006 - what users write

    def of_pydantic(x: Crate) -> None: ...

    def members(x: Halves) -> None: ...

    def keys(x: Any = {(1, 2): 3}) -> None: ...  # noqa: B006 - what users write

    def documented() -> None: ...

    documented.__doc__ = HALF

    def returns_halves() -> Literal["\ud83d"]:
        return "\ud83d"

    wide = "properties.x.properties.width.default: .* got inf"
    infinite = {"type": "object", "properties": {"x": {"default": INF}}, "required": ["x"]}
    server = Server("s")
    server.tool("good")(plain)
    tools: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
        (default, {}, "tool 'default': inputSchema.properties.x.default: .* got inf"),
        (nested, {}, r"inputSchema.properties.x.default\[1\]: .* got nan"),
        (of_pydantic, {}, f"inputSchema.{wide}"),
        (described, {}, "inputSchema.properties.x.description: .* got 'cut"),
        (keys, {}, "inputSchema.properties.x.default: .* got {"),
        (members, {}, "tool 'members': .* surrogates not allowed"),
        (returns_halves, {}, "tool 'returns_halves': .* surrogates not allowed"),
        (documented, {}, "tool 'documented': description: .* got 'cut"),
        (plain, {"title": HALF}, "tool 'plain': title: expected a value that JSON can express"),
        (plain, {"meta": {"a": [object()]}}, r"_meta.a\[0\]: .* got <object"),
        (plain, {"annotations": {"title": HALF}}, "annotations.title: .* got 'cut"),
        (of_variable, {"input_schema": infinite}, "inputSchema.properties.x.default: .* inf"),
    ]
    for function, options, error in tools:
        with pytest.raises((ValueError, TypeError), match=error):
            server.tool(**options)(function)
    assert [tool.name for tool in await server.list_tools()] == ["good"]


@pytest.mark.parametrize(
    ("register", "error"),
    [
        (lambda s: s.add_prompt(plain, "p", title=HALF), "prompt 'p': title: .* got 'cut"),
        (lambda s: s.add_prompt(described, "p"), r"'p': arguments\[0\].description: .* got 'cut"),
        (lambda s: s.add_resource(plain, "x://\ud83d"), "uri: .* got 'x://"),
        (lambda s: s.add_resource(of_variable, "x://{x}", meta={"a": INF}), "template .*_meta.a: "),
        (lambda s: s.ui("ui://a", "<html></html>", title=HALF), "resource 'ui://a': title: .* got"),
        (lambda s: s.add_tool_variant("good", "v", title=HALF), "tool 'v': title: .* got 'cut"),
        (lambda _: Server(HALF), "Server: name: .* got 'cut"),
        (lambda _: Server("s", website_url=HALF), "Server: websiteUrl"),
        (lambda _: Server("s", icons=[Icon(src=HALF)]), r"Server: icons\[0\].src"),
        (lambda _: Server("s", capabilities={"experimental": {"x": INF}}), "experimental.x"),
    ],
)
async def test_another_item_or_a_server_with_such_a_value_is_refused(
    register: Callable[[Server], Any], error: str
) -> None:
    server = Server("s")
    server.tool("good")(plain)
    with pytest.raises(ValueError, match=error):
        register(server)
    assert [tool.name for tool in await server.list_tools()] == ["good"]


async def test_a_default_that_is_no_json_data_is_not_listed() -> None:
    plain_object = object()
    endless: list[Any] = []
    endless.append(endless)

    def works(x: Any = plain_object, y: Any = endless) -> str:
        return "fine"

    async with connected(server_with(works), revision=ALL[-1]) as pair:
        (tool,) = await pair.client.list_tools()
        assert tool.input_schema["properties"] == {"x": {}, "y": {}}
        assert (await pair.client.call_tool("works")).content[0].text == "fine"


def late_functions() -> dict[str, Callable[[], Any]]:
    """Tools whose results or errors JSON can't express."""

    async def returns_half() -> str:
        return HALF

    async def raises_half() -> str:
        raise ToolError(HALF)

    async def refuses_with_half() -> str:
        raise InvalidParamsError(HALF, data={"limit": INF})

    async def returns_infinity() -> float:
        return INF

    async def returns_meta() -> ToolResult:
        return ToolResult(content="x", meta={"a": INF})

    functions = [returns_half, raises_half, refuses_with_half, returns_infinity, returns_meta]
    return {function.__name__: function for function in functions}


late = pytest.mark.parametrize("late", late_functions())


@every
@late
async def test_a_call_with_such_a_value_fails_alone(late: str, revision: str) -> None:
    server = Server("s")
    server.tool("late")(late_functions()[late])
    server.tool("good")(plain)
    async with connected(server, revision=revision) as pair:
        with suppress(RemoteError):
            assert (await pair.client.call_tool("late")).is_error
        assert not (await pair.client.call_tool("good")).is_error


@every
async def test_other_requests_with_such_texts_fail_alone(revision: str) -> None:
    server = Server("s")
    server.prompt("p")(lambda: HALF)
    server.resource("x://r")(lambda: HALF)
    server.resource("x://{x}")(of_variable)
    server.completion(template="x://{x}", argument="x")(lambda text: [HALF])
    ref = {"type": "ref/resource", "uri": "x://{x}"}
    async with connected(server, revision=revision) as pair:
        for request in (
            pair.client.get_prompt("p"),
            pair.client.read_resource("x://r"),
            pair.client.complete(ref=ref, argument={"name": "x", "value": ""}),
        ):
            # models of pydantic refuse the text without its place
            with pytest.raises(RemoteError, match=r"surrogates not allowed|internal error"):
                await request
        assert [prompt.name for prompt in await pair.client.list_prompts()] == ["p"]


@late
async def test_a_task_whose_end_has_such_a_value_fails(late: str) -> None:
    server = Server("s")
    server.tool("late", runner=Tasks(server, poll_interval=0.2))(late_functions()[late])
    async with requestor("memory", server, "ada") as client:
        task = await client.start("late")
        await client.reaches(task["taskId"], "failed")
        (listed,) = (await client.result("tasks/list", {}))["tasks"]
        assert listed["status"] == "failed"
        assert listed["statusMessage"]
