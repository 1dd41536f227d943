"""Names and values of a peer are shown within bounds and stored within bounds."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kit.limits import SetLimit
from kit.wire import ALL
from mcpgen_runtime import REVISIONS, ClientLimits, RemoteProtocolError
from mcpgen_runtime.client.client_settings import ClientSettings
from mcpgen_runtime.client.server_state import ServerState
from mcpgen_runtime.client.task_requests import store_task_support
from mcpgen_runtime.client.tool_param_headers import ToolParamHeaders
from mcpgen_runtime.protocol import client_features
from mcpgen_runtime.protocol.client_features import messages_complaint

pytestmark = pytest.mark.on_asyncio


LONG = "\x1b[31m" + "x" * 1_000_000
DEEP: Any = 1
for _ in range(300):
    DEEP = [DEEP]


def is_shown_safely(text: str) -> bool:
    return len(text) < 3000 and text.isprintable()


TEXT_FIELD = {"type": "string"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (TEXT_FIELD, [LONG]),
        (TEXT_FIELD, DEEP),
        ({"type": "string", "format": "email"}, LONG),
        ({"type": "string", "enum": [LONG] * 100_000}, "a"),
        ({"type": "array", "items": {"enum": ["a"]}}, [LONG]),
        ({"type": "number", "maximum": 1}, 10**4000),
        ({"type": "integer", "minimum": 10**4000}, 1),
        ({"type": "number"}, LONG),
        ({"type": "boolean"}, LONG),
    ],
    ids=str.split("list deep format enum choice large small number boolean"),
)
def test_errors_in_a_form_are_described_in_short(field: Any, value: Any) -> None:
    wrong = client_features.content_complaint({"properties": {LONG: field}}, {LONG: value})
    assert wrong is not None
    assert is_shown_safely(wrong)
    missing = client_features.content_complaint({"required": [LONG]}, {})
    assert is_shown_safely(str(missing))
    assert client_features.field_complaint({"type": "number"}, 10**400) is None


def test_a_lost_session_takes_the_schemas_of_its_tools_along() -> None:
    kept = state()
    kept.output_schemas.store([tool("a", output_schema={})])
    kept.session_lost()
    assert kept.session.lost
    assert not kept.output_schemas.has_schema("a")


def test_a_conversation_names_few_of_its_ids() -> None:
    results = [{"type": "tool_result", "toolUseId": f"{LONG}{n}", "content": []} for n in range(50)]
    wrong = messages_complaint([{"role": "user", "content": results}])
    assert is_shown_safely(str(wrong))


READ_ONLY = SimpleNamespace(read_only_hint=True)


def tool(name: str, **more: Any) -> Any:
    return SimpleNamespace(name=name, **more)


def state(**limits: int) -> ServerState:
    """The state of a server."""
    return ServerState(ClientSettings(limits=ClientLimits(**limits)))


def mirrored_headers(limit: int) -> ToolParamHeaders:
    """Parameter headers over a transport with headers."""
    headers = ToolParamHeaders(limit)
    headers.mirrored, headers.prefix = True, "x-"
    return headers


def test_state_kept_of_tools_is_bounded() -> None:
    kept = state(tools=7)
    outputs, headers = kept.output_schemas, mirrored_headers(7)
    call = REVISIONS[ALL[-1]].client_requests["tools/call"].facts
    marked = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    for n in range(12):
        outputs.store([tool(str(n), output_schema={})])
        listed = tool(str(n), input_schema=marked, annotations=READ_ONLY)
        kept.store_tools([listed])
        headers.store([listed])
    assert not outputs.has_schema("4")
    assert outputs.has_schema("5")
    assert headers.headers_for("4", {"a": "1"}) == {}
    assert headers.headers_for("5", {"a": "1"}) == {"x-A": "1"}
    assert not kept.retry_is_safe(call, {"name": "4"})
    assert kept.retry_is_safe(call, {"name": "5"})


def test_a_tool_states_anew_whether_it_requires_a_task() -> None:
    kept: dict[str, str] = {}
    supports = {"a": "required", "b": "optional", "c": "forbidden", "d": "required"}
    for name, support in supports.items():
        execution = SimpleNamespace(task_support=support)
        store_task_support(kept, [tool(name, execution=execution)], 2)
    assert kept == {"b": "optional", "d": "required"}
    store_task_support(kept, [tool("d")], 2)
    assert kept == {"b": "optional"}


@pytest.mark.parametrize(
    ("data", "pending"),
    [
        ({"elicitations": [5, {}, {"elicitationId": 1}, {"elicitationId": "b"}]}, ["b"]),
        ({"elicitations": {"a": 1}}, []),
        ([], []),
        (None, []),
    ],
)
def test_elicitations_of_an_error_are_pending(data: Any, pending: list[str]) -> None:
    elicitations = state().elicitations
    elicitations.add_from_error(data)
    assert [each for each in "ab" if elicitations.complete(each)] == pending


def test_a_tool_that_is_left_out_is_named_in_short(caplog: pytest.LogCaptureFixture) -> None:
    headers = mirrored_headers(7)
    wrong = {"properties": {LONG: {"type": LONG, "x-mcp-header": LONG}}}
    with caplog.at_level(logging.WARNING):
        assert headers.store([tool(LONG, input_schema=wrong)]) == []
    (record,) = caplog.records
    assert is_shown_safely(record.getMessage())


async def test_a_result_that_breaks_a_promise_is_named_in_short() -> None:
    outputs = state().output_schemas
    outputs.store([tool(LONG, output_schema={"type": "object", "required": [LONG]})])
    result = SimpleNamespace(structured_content={}, is_error=None)
    with pytest.raises(RemoteProtocolError) as info:
        await outputs.check(LONG, result)
    assert is_shown_safely(str(info.value))


async def test_a_validator_is_kept_while_its_schema_is_listed(set_limit: SetLimit) -> None:
    outputs = state().output_schemas
    result = SimpleNamespace(structured_content={}, is_error=None)
    outputs.store([tool("a", output_schema={"anyOf": [{}]})])
    await outputs.check("a", result)
    set_limit("pkg.json_schema.validation.SCHEMA_PARTS", 1)  # no other schema can be read now
    outputs.store([tool("a", output_schema={"anyOf": [{}]})])
    await outputs.check("a", result)
    outputs.store([tool("a", output_schema={"anyOf": [{}, {}]})])
    with pytest.raises(RemoteProtocolError, match="more than 1 parts"):
        await outputs.check("a", result)


def test_so_many_elicitations_may_be_pending() -> None:
    elicitations = state(elicitations=2).elicitations
    for identifier in "abc":
        elicitations.add(identifier)
    assert [elicitations.complete(identifier) for identifier in "abc"] == [False, True, True]
    for length in (1000, 1001):
        elicitations.add("x" * length)
    assert elicitations.complete("x" * 1000)
    assert not elicitations.complete("x" * 1001)
