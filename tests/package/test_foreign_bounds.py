"""What a peer names and sends is shown within bounds, and not kept without bounds."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_protocol import Server
from mcp_protocol.client.handler_validation import ID_CHARACTERS, Elicitations
from mcp_protocol.client.output_schemas import KEPT_TOOLS, OutputSchemas
from mcp_protocol.client.tool_param_headers import ToolParamHeaders
from mcp_protocol.errors import RemoteProtocolError
from mcp_protocol.protocol import elicitation_schema
from mcp_protocol.protocol.sampling_messages import complaint as conversation_complaint
from package.live import TEXT
from package.wire import ALL, speaking_to

every = pytest.mark.parametrize("revision", ALL)

LONG = "\x1b[31m" + "x" * 1_000_000
DEEP: Any = 1
for _ in range(300):
    DEEP = [DEEP]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def is_shown_safely(text: str) -> bool:
    return len(text) < 3000 and text.isprintable()


server = Server("named")


@server.tool()
def forecast(city: str, days: int = 1, place: dict[str, int] | None = None) -> str:
    return city


@server.prompt()
def review(code: str) -> str:
    return code


@every
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": LONG}),
        ("tools/call", {"name": "forecast", "arguments": {LONG: 1}}),
        ("tools/call", {"name": "forecast", "arguments": {"city": [LONG] * 3}}),
        ("tools/call", {"name": "forecast", "arguments": {"city": DEEP}}),
        ("tools/call", {"name": "forecast", "arguments": {"city": "", "days": LONG}}),
        ("tools/call", {"name": "forecast", "arguments": {"city": "", "place": {LONG: ""}}}),
        ("tools/call", {"name": "forecast", "arguments": {"city": "", "days": [0] * 100_000}}),
        ("prompts/get", {"name": LONG}),
        ("prompts/get", {"name": "review", "arguments": {LONG: "x"}}),
        ("tools/list", {"cursor": LONG}),
    ],
    ids=[
        "tool",
        "argument",
        "list",
        "deep",
        "text",
        "name within",
        "numbers",
        "prompt",
        "argument of a prompt",
        "cursor",
    ],
)
async def test_an_error_shows_little_of_what_was_sent(
    revision: str, method: str, params: Any
) -> None:
    async with speaking_to(server, revision) as end:
        answer = await end.ask(method, params)
    said = answer["error"]["message"] if "error" in answer else answer["result"]["content"]
    assert is_shown_safely(said if isinstance(said, str) else said[0]["text"])


TEXT_FIELD = {"type": "string"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (TEXT_FIELD, [LONG]),
        (TEXT_FIELD, DEEP),
        ({"type": "string", "format": "email"}, LONG),
        ({"type": "string", "enum": [LONG] * 100_000}, "a"),
        ({"type": "array", "items": {"enum": ["a"]}}, [LONG]),
        ({"type": "array", "items": {"enum": ["a"]}}, LONG),
        ({"type": "number", "maximum": 1}, 10**4000),
        ({"type": "integer", "minimum": 10**4000}, 1),
        ({"type": "number"}, float("inf")),
        ({"type": "number"}, LONG),
        ({"type": "boolean"}, LONG),
    ],
    ids=str.split("list deep format enum choice text large small infinite number boolean"),
)
def test_what_is_wrong_with_a_form_is_said_in_short(field: Any, value: Any) -> None:
    wrong = elicitation_schema.complaint({"properties": {LONG: field}}, {LONG: value})
    assert wrong is not None
    assert is_shown_safely(wrong)
    missing = elicitation_schema.complaint({"required": [LONG]}, {})
    assert is_shown_safely(str(missing))


def test_a_number_of_a_form_may_be_large() -> None:
    assert elicitation_schema.field_complaint({"type": "number"}, 10**400) is None


def test_a_conversation_names_few_of_its_ids() -> None:
    results = [{"type": "tool_result", "toolUseId": f"{LONG}{n}", "content": []} for n in range(50)]
    wrong = conversation_complaint([{"role": "user", "content": results}])
    assert is_shown_safely(str(wrong))


def tool(name: str, **more: Any) -> Any:
    return SimpleNamespace(name=name, **more)


def test_what_is_kept_of_tools_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, marks = OutputSchemas(), ToolParamHeaders()
    marks.mirrored, marks.prefix = True, "x-"
    marked = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    for n in range(KEPT_TOOLS + 5):
        outputs.listed([tool(str(n), output_schema={})])
        marks.listed([tool(str(n), input_schema=marked)])
    assert not outputs.promised("4")
    assert outputs.promised("5")
    assert marks.headers_for("4", {"a": "1"}) == {}
    assert marks.headers_for("5", {"a": "1"}) == {"x-A": "1"}


def test_a_tool_that_is_left_out_is_named_in_short(caplog: pytest.LogCaptureFixture) -> None:
    marks = ToolParamHeaders()
    marks.mirrored, marks.prefix = True, "x-"
    wrong = {"properties": {LONG: {"type": LONG, "x-mcp-header": LONG}}}
    with caplog.at_level(logging.WARNING):
        assert marks.listed([tool(LONG, input_schema=wrong)]) == []
    (record,) = caplog.records
    assert is_shown_safely(record.getMessage())


async def test_a_result_that_breaks_a_promise_is_named_in_short() -> None:
    outputs = OutputSchemas()
    outputs.listed([tool(LONG, output_schema={"type": "object", "required": [LONG]})])
    result = SimpleNamespace(structured_content={}, is_error=None)
    with pytest.raises(RemoteProtocolError) as info:
        await outputs.check(LONG, result)
    assert is_shown_safely(str(info.value))
    assert TEXT["content"]


def test_an_elicitation_whose_id_is_very_long_is_not_kept() -> None:
    elicitations = Elicitations()
    for length in (ID_CHARACTERS, ID_CHARACTERS + 1):
        elicitations.begun("x" * length)
    assert elicitations.completed("x" * ID_CHARACTERS)
    assert not elicitations.completed("x" * (ID_CHARACTERS + 1))
