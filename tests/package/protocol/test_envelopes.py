"""Parsed messages, member by member: limits at their values, and the errors of malformed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from kit.samples import PARAMS, RESULTS
from kit.wire import HANDSHAKE, PER_REQUEST, ClientEnd, ServerEnd, sent_request, sole
from mcpgen_runtime.errors import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ConnectionClosedError,
    LocalProtocolError,
    ProtocolError,
    RequestLost,
)
from mcpgen_runtime.protocol import jsonrpc
from mcpgen_runtime.protocol.batch_parsing import BATCH_MESSAGES, parse_array, parse_batch
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    Ignored,
    RequestFailed,
    SendError,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.jsonrpc import (
    ID_CHARACTERS,
    Failure,
    InvalidMessage,
    Notification,
    ParsedMessage,
    Result,
    is_batch,
    parse,
    read_id,
)
from mcpgen_runtime.protocol.lifecycle import missing_capability, without_malformed_extensions
from mcpgen_runtime.protocol.requests import OutboundRequests, custom_method
from mcpgen_runtime.revisions import REVISIONS

LONGEST, LARGEST = "x" * 1024, 2**128


def parse_members(**members: Any) -> Any:
    """The message with these members, parsed; without `jsonrpc` if that is `...`."""
    members = {"jsonrpc": "2.0", **members}
    return parse(json.dumps({n: each for n, each in members.items() if each is not ...}).encode())


@pytest.mark.parametrize("identifier", ["", LONGEST, 0, LARGEST, -LARGEST, 7.0], ids=repr)
def test_ids_up_to_their_limits_are_read(identifier: Any) -> None:
    assert read_id(identifier) == identifier
    assert parse_members(id=identifier, method="m") == jsonrpc.Request(identifier, "m", None)
    assert parse_members(id=identifier, result={}) == Result(identifier, Raw(b"{}"))


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        (LONGEST + "x", f"expected at most {ID_CHARACTERS} characters as id, got 'xxx"),
        (LARGEST + 1, "expected at most 128 bits as id, got 340282366920938463463374607431768211"),
        (-LARGEST - 1, "expected at most 128 bits as id, got -34028236692093846346337460743176821"),
        (1.5, "expected a string or an integer as id, got 1.5"),
        (True, "expected a string or an integer as id, got True"),
        (None, "expected a string or an integer as id, got None"),
    ],
    ids=["long", "large", "negative", "fraction", "flag", "null"],
)
def test_other_ids_are_refused_with_their_reason(identifier: Any, text: str) -> None:
    assert read_id(identifier) is None
    message = parse_members(id=identifier, method="m")
    assert isinstance(message, InvalidMessage)
    assert str(message.error.message).startswith(text)
    assert (message.id, message.answerable, message.response) == (None, True, False)


BOTH = "expected an id and exactly one of result and error"


@pytest.mark.parametrize(
    ("members", "text", "expected"),
    [
        ({}, "expected method, result or error", (None, True, False)),
        ({"id": 1}, "expected method, result or error", (1, True, True)),
        (
            {"jsonrpc": ..., "id": 1, "method": "m"},
            "expected jsonrpc '2.0', got nothing",
            (1, 1, 0),
        ),
        ({"jsonrpc": "1.0", "method": "m"}, "expected jsonrpc '2.0', got '1.0'", (None, 0, 0)),
        ({"jsonrpc": "1.0", "id": 1, "result": {}}, "expected jsonrpc '2.0', got '1.0'", (1, 0, 1)),
        ({"id": 1, "result": {}, "error": {"code": 1}}, BOTH, (1, False, True)),
        ({"result": {}}, BOTH, (None, False, True)),
        ({"id": 1, "method": 5}, "expected a string as method, got int", (1, True, False)),
        ({"method": 5}, "expected a string as method, got int", (None, False, False)),
        ({"id": 1, "result": []}, "expected an object as result", (1, False, True)),
        ({"id": 1, "error": "x"}, "error object: Expected `object`, got `str`", (1, False, True)),
        ({"error": "x"}, "error object: Expected `object`, got `str`", (None, False, True)),
    ],
    ids=str,
)
def test_a_malformed_message_says_what_was_expected(
    members: dict[str, Any], text: str, expected: tuple[Any, ...]
) -> None:
    message = parse_members(**members)
    assert isinstance(message, InvalidMessage)
    assert (message.error.code, message.error.message) == (INVALID_REQUEST, text)
    assert (message.id, message.answerable, message.response) == expected


@pytest.mark.parametrize("data", [b"[1]", b"5", b"{", b"[1", b"\xff"])
def test_a_message_that_is_no_object_is_answerable(data: bytes) -> None:
    message = parse(data)
    assert isinstance(message, InvalidMessage)
    assert (message.id, message.answerable, message.response) == (None, True, False)
    code = INVALID_REQUEST if data in (b"[1]", b"5") else PARSE_ERROR
    assert message.error.code == code


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[", True),
        (b" \t\r\n[1]", True),
        (b" " * 15 + b"[", True),
        (b" " * 16 + b"[", False),
        (b"{[", False),
        (b" {}", False),
        (b"", False),
    ],
)
def test_a_batch_begins_with_a_bracket(data: bytes, expected: bool) -> None:
    assert is_batch(data) is expected
    assert ParsedMessage.of(data, parse_batch).is_batch is expected
    assert ParsedMessage.of(data).is_batch is False


def test_a_batch_has_a_hundred_messages_at_most() -> None:
    part = Notification("m", None)
    text = b'{"jsonrpc":"2.0","method":"m"}'
    assert BATCH_MESSAGES == 100
    assert parse_array(b"[" + b",".join([text] * 100) + b"]") == [part] * 100
    (refused,) = parse_array(b"[" + b",".join([text] * 101) + b"]")
    assert isinstance(refused, InvalidMessage)
    assert refused.answerable


def test_a_parsed_batch_gives_the_results_by_request() -> None:
    messages: list[dict[str, Any]] = [
        {"id": 1, "result": {"a": 1}},
        {"id": "2", "error": {"code": 1, "message": "x"}},
        {"id": 3, "result": []},
        {"error": {"code": 1, "message": "of the connection"}},
        {"id": 5, "method": "m"},
        {"id": 6},
    ]
    data = json.dumps([{"jsonrpc": "2.0", **each} for each in messages]).encode()
    parsed = ParsedMessage.of(data, parse_batch)
    assert parsed.results() == {1: b'{"a": 1}', "2": None, 3: None, 6: None}
    assert parsed.error_response() is None
    alone = ParsedMessage.of(b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}', parse_batch)
    assert alone.error_response() == Failure(None, 1, "x", None)


@pytest.mark.parametrize("code", [2**63 - 1, -(2**63), 2**63, -(2**63) - 1])
def test_an_error_code_has_64_bits(code: int) -> None:
    message = parse_members(id=1, error={"code": code, "message": "x"})
    assert isinstance(message, Failure) is (-(2**63) <= code < 2**63)


@pytest.mark.parametrize("code", [-32100, -32099, -32020, -32019])
def test_codes_of_the_reserved_range_are_not_invented(code: int) -> None:
    for revision in PER_REQUEST:
        server = ServerEnd(revision)
        server.ask("tools/list", id=1)
        message = sole(server.connection.send(SendError(1, ProtocolError("x", code=code))))
        assert message is not None
        defined = REVISIONS[revision].facts.errors.defined or ()
        kept = code in defined or code in (-32100, -32019)
        assert message.error_code == (code if kept else -32603)


def test_ids_and_deadlines_of_requests_count_from_the_start() -> None:
    fresh = OutboundRequests()
    assert (fresh.strays, fresh.next_id) == (0, 1)
    for revision in REVISIONS:
        connection = ClientEnd(revision).connection
        assert connection.state.outbound.strays == 0
        upcoming = connection.state.outbound.next_id
        identifier, _ = sent_request(connection.send(SendRequest("tools/list", timeout=5.0)))
        assert identifier == upcoming
        assert connection.state.outbound.deadline(identifier) == 5.0
        second, _ = sent_request(
            connection.send(SendRequest("tools/list", timeout=7.0, limit=6.0), now=1.0)
        )
        assert isinstance(identifier, int)
        assert second == identifier + 1
        assert connection.state.outbound.deadline(second) == 7.0


def test_a_result_for_no_request_is_counted() -> None:
    client = ClientEnd(HANDSHAKE[-1])
    for count in (1, 2):
        client.say({"jsonrpc": "2.0", "id": 99, "result": {}})
        assert client.connection.state.outbound.strays == count


def test_a_lost_request_fails_once() -> None:
    client = ClientEnd(HANDSHAKE[-1])
    id = client.ask("tools/list")["id"]
    error = ConnectionClosedError("gone")
    assert client.connection.receive(RequestLost(id, error)) == [RequestFailed(id, error)]
    assert client.connection.receive(RequestLost(id, error)) == [
        Ignored(f"{id}, which is no open request: gone")
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_closed_connection_has_no_open_requests(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    assert tuple(server.connection.state.inbound) == (1,)
    server.connection.closed()
    assert tuple(server.connection.state.inbound) == ()
    assert sole(server.connection.send(SendResponse(1, RESULTS["tools/list"]))) is None


@pytest.mark.parametrize("revision", REVISIONS)
def test_closing_a_stream_cancels_once(revision: str) -> None:
    connection = ClientEnd(revision).connection
    id, _ = sent_request(connection.send(SendRequest("tools/list")))
    by_stream = REVISIONS[revision].facts.http.cancellation == "close"
    message = sole(connection.send(CancelRequest(id, stream_closed=True)))
    assert (message is None) is by_stream
    assert len(connection.state.outbound) == 0


@pytest.mark.parametrize("value", [5, "x", [1]], ids=repr)
def test_an_object_is_expected_as_params_and_as_result(value: Any) -> None:
    client, server = ClientEnd(HANDSHAKE[-1]), ServerEnd(HANDSHAKE[-1])
    with pytest.raises(
        LocalProtocolError, match=r"^tools/list: expected an object as params, got "
    ):
        client.connection.send(SendRequest("tools/list", value))
    server.ask("tools/list", id=1)
    with pytest.raises(ProtocolError, match=r"^tools/list: expected an object as result, got "):
        server.connection.send(SendResponse(1, value))


def test_a_custom_method_has_200_characters_at_most() -> None:
    assert custom_method("x" * 200) is not None
    for name in ("x" * 201, "", "rpc.x", "tools/list", 5):
        assert custom_method(name) is None


def test_extensions_with_malformed_settings_are_undeclared() -> None:
    declared = {"tools": {}, "extensions": {"a/b": {}, "a/c": 5}}
    assert without_malformed_extensions(declared) == {"tools": {}, "extensions": {"a/b": {}}}
    unchanged: list[dict[str, Any]] = [{}, {"extensions": 5}, {"extensions": {"a/b": {}}}]
    for kept in unchanged:
        assert without_malformed_extensions(kept) is kept


def test_params_in_any_form_need_their_capability() -> None:
    method = REVISIONS[HANDSHAKE[-1]].server_requests["elicitation/create"]
    url = {"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "e"}
    forms = (url, Raw(json.dumps(url).encode()), method.decode_params(json.dumps(url).encode()))
    for params in forms:
        assert missing_capability(method, params, {"elicitation": {}}) == ("elicitation", "url")
        assert missing_capability(method, params, {"elicitation": {"url": {}}}) is None
    assert missing_capability(method, PARAMS["elicitation/create"], {"elicitation": {}}) is None
    with pytest.raises(LocalProtocolError, match=r"^params: "):
        missing_capability(method, Raw(b"{"), {"elicitation": {}})
