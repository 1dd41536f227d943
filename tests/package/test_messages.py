"""`read_message` of each revision: a line of unknown kind, with typed params and results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.rules import module_of
from kit.wire import every
from mcpgen_runtime import DecodeError, ErrorResponse, MessageError, Notification, Request, Response

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def read(revision: str, message: Any, *answered: Any) -> Any:
    return module_of(revision, "methods").read_message(json.dumps(message).encode(), *answered)


def line(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **members}


@every
def test_a_request_has_params_of_the_type_of_its_method(revision: str) -> None:
    methods = module_of(revision, "methods")
    params = {"name": "forecast", "_meta": META}
    message = read(revision, line(id=1, method="tools/call", params=params))
    assert isinstance(message, Request)
    assert (message.id, message.method) == (1, "tools/call")
    assert isinstance(message.params, methods.models.CallToolRequestParams)


@every
def test_a_notification_has_no_id(revision: str) -> None:
    methods = module_of(revision, "methods")
    params = {"progressToken": 1, "progress": 0.5}
    message = read(revision, line(method="notifications/progress", params=params))
    assert isinstance(message, Notification)
    assert isinstance(message.params, methods.models.ProgressNotificationParams)


@every
def test_a_result_has_the_type_of_the_method_that_was_called(revision: str) -> None:
    methods = module_of(revision, "methods")
    response = line(id="a", result={"content": [], "resultType": "complete"})
    for answered in (methods.CALL_TOOL, {"a": methods.CALL_TOOL}):
        message = read(revision, response, answered)
        assert isinstance(message, Response)
        assert isinstance(message.result, methods.models.CallToolResult)
    assert read(revision, response) == Response("a", response["result"])
    assert read(revision, response, {"b": methods.CALL_TOOL}).result == response["result"]


@every
@pytest.mark.parametrize("identifier", [7, None])
def test_an_error_response_has_code_message_and_data(revision: str, identifier: int | None) -> None:
    error = {"code": -32601, "message": "no such method", "data": [1]}
    message = read(revision, line(id=identifier, error=error))
    assert message == ErrorResponse(identifier, -32601, "no such method", [1])


@every
def test_params_of_a_method_that_the_revision_lacks_stay_json(revision: str) -> None:
    message = read(revision, line(id=1, method="acme/paint", params={"colour": "red"}))
    assert message == Request(1, "acme/paint", {"colour": "red"})


@every
def test_null_for_what_is_absent_does_not_change_the_kind(revision: str) -> None:
    assert read(revision, line(id=1, result={}, error=None)) == Response(1, {})
    assert read(revision, line(method="acme/paint", params=None)) == Notification("acme/paint")


PING = line(id=1, method="ping")
CALL = line(id=1, method="tools/call")
WRONG: list[tuple[Any, int, str]] = [
    (1, -32600, "expected an object, got a number"),
    ({"id": 1, "method": "ping"}, -32600, 'expected "jsonrpc": "2.0", got none'),
    (line(id=1), -32600, "with `result` or `error`, got none of them"),
    ({**PING, "result": {}}, -32600, "or `error`, got `method` and `result`"),
    (line(method=1), -32600, "expected a text as `method`, got a number"),
    ({**PING, "id": None}, -32600, "of at most 1024 characters as `id`, got null"),
    (line(id=1.5, result={}), -32600, "as `id`, got a number"),
    (line(id="a" * (1025), result={}), -32600, "characters as `id`, got"),
    (line(id=2**200, result={}), -32600, "as `id`, got"),
    (line(id=1, result=[]), -32600, "as `result`, got an array"),
    ({**PING, "params": []}, -32600, "ping: expected an object as `params`, got an array"),
    (CALL, -32602, "tools/call: expected `params`, got none"),
    ({**CALL, "params": {"name": 1}}, -32602, "params: Expected `str`, got `int` - at `$.name`"),
    (line(id=1, error={"code": "a", "message": "b"}), -32600, 'a text `message`, got "a" and "b"'),
]
"""Lines that are no message, with the code and a part of the text."""


@every
@pytest.mark.parametrize(("message", "code", "text"), WRONG)
def test_an_error_says_what_was_expected_and_what_came(
    revision: str, message: Any, code: int, text: str
) -> None:
    with pytest.raises(MessageError) as caught:
        read(revision, message)
    assert text in str(caught.value)
    assert caught.value.code == code
    assert isinstance(caught.value, DecodeError)
    with pytest.raises(MessageError, match="expected JSON: "):
        module_of(revision, "methods").read_message(b'{"jsonrpc": "2.0"')


@every
def test_an_error_has_the_id_to_answer_with(revision: str) -> None:
    with pytest.raises(MessageError) as caught:
        read(revision, line(id="a", method="tools/call", params={"name": 1}))
    assert (caught.value.id, caught.value.method) == ("a", "tools/call")


@every
def test_a_batch_is_read_where_the_revision_has_batches(revision: str) -> None:
    methods = module_of(revision, "methods")
    batch = [line(id=1, result={}), line(method="notifications/initialized")]
    data = json.dumps(batch).encode()
    with pytest.raises(MessageError, match="expected one message, got an array"):
        methods.read_message(data)
    if not methods.REVISION.batching:
        with pytest.raises(MessageError, match="expected one message, got an array"):
            methods.read_messages(data)
        return
    one = json.dumps(batch[0]).encode()
    assert methods.read_messages(one) == [Response(1, {})]
    assert methods.read_messages(data)[1:] == [Notification("notifications/initialized")]
    for count in (0, 101):
        with pytest.raises(MessageError, match=f"expected 1 to 100 .* got {count}"):
            methods.read_messages(json.dumps(batch[:1] * count).encode())
