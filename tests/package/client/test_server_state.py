"""Names and values of a peer are shown within bounds and stored within bounds."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from kit.live import TEXT
from kit.wire import ALL, speaking_to
from mcpgen_runtime import REVISIONS, ClientLimits, RemoteProtocolError, Server
from mcpgen_runtime.client.client_settings import ClientSettings
from mcpgen_runtime.client.server_state import ServerState
from mcpgen_runtime.client.task_requests import store_task_support
from mcpgen_runtime.client.tool_param_headers import ToolParamHeaders
from mcpgen_runtime.protocol import client_features
from mcpgen_runtime.protocol.client_features import messages_complaint

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)

LONG = "\x1b[31m" + "x" * 1_000_000
DEEP: Any = 1
for _ in range(300):
    DEEP = [DEEP]


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
def test_errors_in_a_form_are_described_in_short(field: Any, value: Any) -> None:
    wrong = client_features.content_complaint({"properties": {LONG: field}}, {LONG: value})
    assert wrong is not None
    assert is_shown_safely(wrong)
    missing = client_features.content_complaint({"required": [LONG]}, {})
    assert is_shown_safely(str(missing))


def test_a_number_of_a_form_may_be_large() -> None:
    assert client_features.field_complaint({"type": "number"}, 10**400) is None


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


def deep_schema() -> dict[str, Any]:
    """A new schema that is too deep to be compared."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(100_000):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize("same", [True, False])
async def test_a_validator_is_kept_while_its_schema_is_listed(same: bool) -> None:
    outputs = state().output_schemas
    outputs.store([tool("a", output_schema={"type": "object"} if same else deep_schema())])
    stored = outputs._tools["a"]
    stored.complaint = lambda value: None
    outputs.store([tool("a", output_schema={"type": "object"} if same else deep_schema())])
    assert (outputs._tools["a"] is stored) is same


READS = REVISIONS[ALL[-1]].client_requests["tools/call"].facts


def test_only_tools_that_say_so_are_called_again() -> None:
    kept = state()
    for read_only, idempotent, safe in (
        (True, None, True),
        (None, True, True),
        (None, None, False),
    ):
        hints = SimpleNamespace(read_only_hint=read_only, idempotent_hint=idempotent)
        kept.store_tools([tool("a", input_schema={}, annotations=hints)])
        assert kept.retry_is_safe(READS, {"name": "a"}) is safe
        assert kept.retry_is_safe(READS, SimpleNamespace(name="a")) is safe
    kept.store_tools([tool("a", input_schema={}, annotations=READ_ONLY)])
    assert not kept.retry_is_safe(READS, {"name": "b"})
    assert not kept.retry_is_safe(READS, {"name": ["a"]})
    assert not kept.retry_is_safe(READS, {})
    listing = REVISIONS[ALL[-1]].client_requests["tools/list"].facts
    assert kept.retry_is_safe(listing, {})
    other: Any = SimpleNamespace(idempotent=False, listed_by="prompts/list")
    assert not kept.retry_is_safe(other, {"name": "a"})


def test_a_tool_states_anew_whether_it_requires_a_task() -> None:
    kept: dict[str, str] = {}
    supports = {"a": "required", "b": "optional", "c": "forbidden", "d": "required"}
    for name, support in supports.items():
        execution = SimpleNamespace(task_support=support)
        store_task_support(kept, [tool(name, execution=execution)], 2)
    assert kept == {"b": "optional", "d": "required"}
    store_task_support(kept, [tool("d")], 2)
    assert kept == {"b": "optional"}


async def test_requests_that_last_for_a_session_are_repeated_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session, sent = state().session, list[Any]()

    async def request(name: str, params: Any) -> None:
        sent.append((name, params))
        if params.get("uri") == "b":
            raise RemoteProtocolError("no b")

    session.record_request("logging/setLevel", Raw(b'{"level":"info"}'))
    session.record_request("logging/setLevel", {"level": "error"})
    for uri in "abc":
        session.record_request("resources/subscribe", {"uri": uri})
    session.record_request("resources/unsubscribe", {"uri": "a"})
    await session.restore(request)
    assert sent == []
    session.lose()
    for _ in range(2):
        await session.restore(request)
    lasting = [("resources/subscribe", {"uri": uri}) for uri in "bc"]
    assert sent == [("logging/setLevel", {"level": "error"}), *lasting]
    assert caplog.messages == ["resources/subscribe b: not restored in the new session: no b"]


def test_the_loss_of_a_session_or_of_its_stream_is_passed_on() -> None:
    kept, calls = state(), list[Any]()
    kept.output_schemas.store([tool("a", output_schema={})])
    kept.session.on_loss.add(lambda: calls.append("lost"))
    kept.session.on_stream_failure.add(calls.append)
    kept.session.stream_changed(None)
    assert calls == []
    failure = RemoteProtocolError("gone")
    kept.session.stream_changed(failure)
    assert kept.session.stream_failure is failure
    kept.session_lost()
    assert calls == [failure, "lost"]
    assert kept.session.lost
    assert not kept.output_schemas.has_schema("a")
    kept.session.stream_changed(None)
    assert kept.session.stream_failure is None


@pytest.mark.parametrize(
    ("data", "pending"),
    [
        ({"elicitations": [{"elicitationId": "a"}, {"elicitationId": "b"}]}, ["a", "b"]),
        ({"elicitations": [5, {}, {"elicitationId": 1}, {"elicitationId": "b"}]}, ["b"]),
        ({"elicitations": {"a": 1}}, []),
        ({}, []),
        ([], []),
        (None, []),
    ],
)
def test_elicitations_of_an_error_are_pending(data: Any, pending: list[str]) -> None:
    elicitations = state().elicitations
    elicitations.add_from_error(data)
    assert [each for each in "ab" if elicitations.complete(each)] == pending
    assert not any(map(elicitations.complete, "ab"))


def test_the_completion_of_an_elicitation_is_passed_on_once() -> None:
    kept, params = state(), SimpleNamespace(elicitation_id="a")
    complete: Any = SimpleNamespace(name="notifications/elicitation/complete")
    assert not kept.invalidate(complete, params)
    kept.elicitations.add("a")
    assert [kept.invalidate(complete, params) for _ in range(2)] == [True, False]


def test_headers_are_of_tools_over_a_transport_with_headers() -> None:
    unused = ToolParamHeaders(1)
    unused.prefix = "x-"
    assert not unused.in_use
    marked = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    wrong = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    headers = mirrored_headers(7)
    assert headers.store([tool("a", input_schema=marked)]) != []
    assert headers.headers_for("a", {"a": "1"}) == {"x-A": "1"}
    assert headers.headers_for("a", {"b": "1"}) == headers.headers_for("b", {"a": "1"}) == {}
    assert headers.store([tool("a", input_schema=wrong), tool("b", input_schema={})])[0].name == "b"
    assert headers.headers_for("a", {"a": "1"}) == {}
    for mirrored, prefix in ((False, "x-"), (True, None)):
        headers.store([tool("a", input_schema=marked)])
        headers.mirrored, headers.prefix = mirrored, prefix
        assert headers.headers_for("a", {"a": "1"}) == {}
        assert len(headers.store([tool("a", input_schema=wrong)])) == 1
        headers.mirrored, headers.prefix = True, "x-"


def test_a_tool_with_wrong_headers_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    headers = mirrored_headers(1)
    one, other = (
        {"properties": {"a": {"type": "object", "x-mcp-header": h}}} for h in ("A", "x y")
    )
    for schema in (one, one, other, other):
        assert headers.store([tool("a", input_schema=schema)]) == []
    assert len(caplog.records) == 2
    headers.store([tool("b", input_schema=one), tool("a", input_schema=other)])
    assert len(caplog.records) == 4  # texts of so many tools are compared


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
    assert TEXT["content"]


def test_an_elicitation_whose_id_is_very_long_is_not_kept() -> None:
    elicitations = state().elicitations
    for length in (1000, 1001):
        elicitations.add("x" * length)
    assert elicitations.complete("x" * 1000)
    assert not elicitations.complete("x" * 1001)


def test_so_many_elicitations_may_be_pending() -> None:
    elicitations = state(elicitations=2).elicitations
    for identifier in "abc":
        elicitations.add(identifier)
    assert [elicitations.complete(identifier) for identifier in "abc"] == [False, True, True]
