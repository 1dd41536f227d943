"""Tools over the wire: what is listed, what reaches a function, and which errors a call has."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import pytest

from kit.live import server_with
from kit.wire import ALL, PER_REQUEST, every, facts, speaking_to
from mcpgen_runtime import Context, Icon, ProtocolError, Server, ToolAnnotations, ToolError
from mcpgen_runtime.testing import connected

ANY_JSON = [name for name in ALL if facts(name).behaviour.structured_content == "any"]
STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]


async def call(server: Server, revision: str, **params: Any) -> Any:
    async with speaking_to(server, revision) as end:
        return await end.ask("tools/call", params)


def error_text(answer: Any) -> str:
    """The text of an error that the model reads."""
    assert answer["result"]["isError"] is True
    (text,) = (block["text"] for block in answer["result"]["content"])
    return str(text)


@pytest.mark.requirement(
    "tools.list-result-shape",
    "tools.list-result-shape-2026",
    "tools.name-and-schema-required",
    "tools.input-schema-root-object",
    "tools.input-schema-property-objects",
    "tools.list-answered",
)
@every
async def test_tools_are_listed_in_order_with_what_the_revision_has(revision: str) -> None:
    server = Server("tools")

    @server.tool(
        title="Weather",
        annotations=ToolAnnotations(read_only_hint=True, title="W"),
        icons=[Icon(src="data:,x", sizes=["any"])],
        meta={"com.example/k": 1},
    )
    async def forecast(city: str, days: int = 3, *, ctx: Context) -> int:
        """Forecast for a city.

        Args:
            city: Where.
        """
        return days

    for name in ("b", "a"):
        server.add_tool(lambda: "x", name=name)
    async with speaking_to(server, revision) as end:
        result = (await end.ask("tools/list"))["result"]
        assert (await end.ask("tools/list"))["result"] == result
    tool, *others = result["tools"]
    assert [each["name"] for each in others] == ["b", "a"]
    assert (tool["name"], tool["description"]) == ("forecast", "Forecast for a city.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
    }
    for member in ("outputSchema", "title"):
        assert (member in tool) == (revision in STRUCTURED)
    hinted = {"title": "W", "readOnlyHint": True}
    assert tool.get("annotations", hinted) == hinted
    hints = {"resultType", "ttlMs", "cacheScope"}
    assert hints & result.keys() == (hints if revision in PER_REQUEST else set())


@pytest.mark.requirement("tools.unknown-tool-error", "tools.malformed-request-protocol-error")
@every
@pytest.mark.parametrize(
    "params", [{"name": "nope"}, {}, {"name": 3}, {"name": "text", "arguments": "value"}]
)
async def test_an_unknown_tool_or_a_malformed_call_is_a_protocol_error(
    revision: str, params: Any
) -> None:
    server = Server("tools")
    server.tool("text")(lambda value: value)
    error = (await call(server, revision, **params))["error"]
    assert error["code"] == -32602
    assert ("nope" in error["message"]) == (params == {"name": "nope"})


@pytest.mark.requirement(
    "tools.invalid-arguments-protocol-error",
    "tools.input-validation-is-execution-error",
    "tools.server-validates-inputs",
)
@every
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [({}, "required"), ({"count": "x"}, "expected int, got str"), ({"count": 1, "x": 2}, "'x'")],
)
async def test_bad_arguments_are_refused_in_the_way_of_the_revision(
    revision: str, arguments: Any, complaint: str
) -> None:
    server, reached = Server("tools"), list[int]()

    @server.tool()
    async def strict(count: int) -> None:
        reached.append(count)

    answer = await call(server, revision, name="strict", arguments=arguments)
    if facts(revision).behaviour.bad_tool_arguments == "error":
        assert answer["error"]["code"] == -32602
        assert complaint in answer["error"]["message"]
    else:
        assert complaint in error_text(answer)
    assert reached == []


@pytest.mark.requirement("tools.execution-error-is-error", "tools.server-error-protocol-error")
@every
@pytest.mark.parametrize("shown", [False, True])
async def test_errors_reach_the_model_the_client_or_the_log(
    revision: str, shown: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(kind: str) -> None:
        raise {
            "tool": ToolError("no such city; try Oslo"),
            "protocol": ProtocolError("not today", code=-31000, data={"retry": False}),
        }.get(kind, RuntimeError("password=hunter2"))

    server = server_with(fail, show_errors=shown)

    tool, protocol = [
        await call(server, revision, name="fail", arguments={"kind": kind})
        for kind in ("tool", "protocol")
    ]
    assert error_text(tool) == "no such city; try Oslo"
    data = {"retry": False}
    assert protocol["error"] == {"code": -31000, "message": "not today", "data": data}
    with caplog.at_level(logging.ERROR):
        other = await call(server, revision, name="fail", arguments={"kind": "other"})
    assert error_text(other) == ("password=hunter2" if shown else "tool 'fail' failed")
    assert "hunter2" in caplog.text


LIST = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.requirement(
    "tools.schema-default-dialect", "tools.output-schema-root-object", "content.structured-object"
)
@every
async def test_schemas_of_ones_own_are_listed_and_kept(revision: str) -> None:
    server = Server("schemas")

    @server.tool(
        input_schema={
            "type": "object",
            "properties": {"pair": {"type": "array", "prefixItems": [{"type": "string"}]}},
            "required": ["pair"],
        },
        output_schema=LIST,
    )
    async def listed(**arguments: Any) -> Any:
        return [len(arguments["pair"])] if arguments["pair"] != ["bad"] else ["bad"]

    @server.tool(
        input_schema={
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}},
        },
        output_schema=None,
    )
    async def older(n: int = 1) -> int:
        return n

    async with speaking_to(server, revision) as end:
        tools = (await end.ask("tools/list"))["result"]["tools"]
    good, refused, broken = [
        await call(server, revision, name="listed", arguments={"pair": pair})
        for pair in (["a", 1], [1], ["bad"])
    ]
    below = await call(server, revision, name="older", arguments={"n": 0})
    assert tools[0].get("outputSchema") == (LIST if revision in ANY_JSON else None)
    assert good["result"].get("structuredContent") == ([2] if revision in ANY_JSON else None)
    assert [block["text"] for block in good["result"]["content"]] == ["[2]"]
    for answer, complaint in ((refused, "1 is not of type 'string'"), (below, "minimum of 0")):
        text = answer["error"]["message"] if "error" in answer else error_text(answer)
        assert complaint in text
    assert broken["result"]["isError"] is True


async def test_a_plain_function_is_answered_in_time_as_its_thread_runs() -> None:
    server = Server("slow")
    release, ended = threading.Event(), threading.Event()

    @server.tool(timeout=0.05)
    def wait() -> str:
        release.wait(30)
        ended.set()
        return "late"

    async with connected(server, revision=ALL[-1]) as pair:
        result = await pair.client.call_tool("wait")
        assert result.is_error
        assert not ended.is_set()
        release.set()
        assert await anyio.to_thread.run_sync(ended.wait, 30)


async def test_a_timeout_error_of_the_function_is_no_tool_timeout() -> None:
    server = Server("own", show_errors=True)

    @server.tool(timeout=30)
    async def fetch() -> str:
        raise TimeoutError("the upstream was silent")

    async with connected(server, revision=ALL[-1]) as pair:
        failed = await pair.client.call_tool("fetch")
    assert failed.content[0].text == "the upstream was silent"


@pytest.mark.parametrize("seconds", [0, float("nan")])
def test_a_limit_that_is_not_positive_is_refused(seconds: float) -> None:
    server = Server("wrong")
    with pytest.raises(ValueError, match="tool 'wait': timeout: expected more than 0 seconds"):

        @server.tool(timeout=seconds)
        async def wait() -> None: ...
