"""Errors of tools: bad arguments, failing functions, and schemas of the user's own."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kit.wire import ALL, facts, speaking_to
from mcpgen_runtime.errors import ProtocolError, ToolError
from mcpgen_runtime.server.chosen import Server

AS_ERROR = [name for name in ALL if facts(name).behaviour.bad_tool_arguments == "error"]
AS_RESULT = [name for name in ALL if facts(name).behaviour.bad_tool_arguments == "result"]
ANY_JSON = [name for name in ALL if facts(name).behaviour.structured_content == "any"]

every = pytest.mark.parametrize("revision", ALL)

server = Server("tools", "1")


@server.tool()
async def text(value: str) -> str:
    return value


@server.tool()
async def refused() -> str:
    raise ToolError("no such city; try Oslo")


@server.tool()
async def broken() -> str:
    raise RuntimeError("password=hunter2")


@server.tool()
async def protocol() -> str:
    raise ProtocolError("not today", code=-31000, data={"retry": False})


@server.tool()
async def strict(count: int) -> str:
    raise AssertionError("reached the function")


async def call(revision: str, name: str, arguments: Any = None) -> Any:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    async with speaking_to(server, revision) as end:
        return await end.ask("tools/call", params)


def texts(answer: Any) -> list[str]:
    return [block["text"] for block in answer["result"]["content"]]


@pytest.mark.requirement("tools.unknown-tool-error")
@every
async def test_an_unknown_tool_is_a_protocol_error(revision: str) -> None:
    error = (await call(revision, "nope"))["error"]
    assert error["code"] == -32602
    assert "nope" in error["message"]


BAD = [({}, "required"), ({"count": "x"}, "expected int, got str"), ({"count": 1, "x": 2}, "'x'")]


@pytest.mark.requirement("tools.invalid-arguments-protocol-error", "tools.server-validates-inputs")
@pytest.mark.parametrize("revision", AS_ERROR)
@pytest.mark.parametrize(("arguments", "said"), BAD)
async def test_bad_arguments_are_a_protocol_error_in_some_revisions(
    revision: str, arguments: Any, said: str
) -> None:
    error = (await call(revision, "strict", arguments))["error"]
    assert error["code"] == -32602
    assert said in error["message"]


@pytest.mark.requirement(
    "tools.input-validation-is-execution-error", "tools.server-validates-inputs"
)
@pytest.mark.parametrize("revision", AS_RESULT)
@pytest.mark.parametrize(("arguments", "said"), BAD)
async def test_bad_arguments_are_shown_to_the_model_in_other_revisions(
    revision: str, arguments: Any, said: str
) -> None:
    answer = await call(revision, "strict", arguments)
    assert answer["result"]["isError"] is True
    assert said in texts(answer)[0]


@pytest.mark.requirement("tools.malformed-request-protocol-error")
@every
@pytest.mark.parametrize("params", [{}, {"name": 3}, {"name": "text", "arguments": "value"}])
async def test_a_malformed_call_is_a_protocol_error(revision: str, params: Any) -> None:
    async with speaking_to(server, revision) as end:
        assert (await end.ask("tools/call", params))["error"]["code"] == -32602


@pytest.mark.requirement("tools.execution-error-is-error")
@every
async def test_a_tool_error_reaches_the_model_and_others_only_the_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await call(revision, "refused")
    assert answer["result"]["isError"] is True
    assert texts(answer) == ["no such city; try Oslo"]
    with caplog.at_level(logging.ERROR):
        answer = await call(revision, "broken")
    assert answer["result"]["isError"] is True
    assert texts(answer) == ["tool 'broken' failed"]
    assert "hunter2" in caplog.text


@pytest.mark.requirement("tools.server-error-protocol-error")
@every
async def test_a_protocol_error_of_a_tool_is_the_answer(revision: str) -> None:
    error = (await call(revision, "protocol"))["error"]
    assert error == {"code": -31000, "message": "not today", "data": {"retry": False}}


async def test_error_texts_are_shown_where_the_server_allows_it() -> None:
    open_server = Server("open", show_errors=True)

    @open_server.tool()
    async def failing() -> None:
        raise RuntimeError("the reason")

    async with speaking_to(open_server, ALL[-1]) as end:
        answer = await end.ask("tools/call", {"name": "failing"})
    assert texts(answer) == ["the reason"]


LIST = {"type": "array", "items": {"type": "integer"}}


def with_schemas() -> Server:
    made = Server("schemas")

    @made.tool(
        input_schema={
            "type": "object",
            "properties": {"pair": {"type": "array", "prefixItems": [{"type": "string"}]}},
            "required": ["pair"],
        },
        output_schema=LIST,
    )
    async def listed(**arguments: Any) -> Any:
        return [len(arguments["pair"])] if arguments["pair"] != ["bad"] else ["bad"]

    @made.tool(
        input_schema={
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}},
        },
        output_schema=None,
    )
    async def older(n: int = 1) -> int:
        return n

    return made


@pytest.mark.requirement(
    "tools.schema-default-dialect", "tools.output-schema-root-object", "content.structured-object"
)
@every
async def test_schemas_of_ones_own_are_listed_and_kept(revision: str) -> None:
    async with speaking_to(with_schemas(), revision) as end:
        listed = (await end.ask("tools/list"))["result"]["tools"]
        good = await end.ask("tools/call", {"name": "listed", "arguments": {"pair": ["a", 1]}})
        refused = await end.ask("tools/call", {"name": "listed", "arguments": {"pair": [1]}})
        broken = await end.ask("tools/call", {"name": "listed", "arguments": {"pair": ["bad"]}})
        older = await end.ask("tools/call", {"name": "older", "arguments": {"n": 0}})
    assert listed[0].get("outputSchema") == (LIST if revision in ANY_JSON else None)
    assert good["result"].get("structuredContent") == ([2] if revision in ANY_JSON else None)
    assert texts(good) == ["[2]"]
    for answer, said in ((refused, "1 is not of type 'string'"), (older, "minimum of 0")):
        told = answer["error"]["message"] if "error" in answer else texts(answer)[0]
        assert said in told
    assert broken["result"]["isError"] is True
