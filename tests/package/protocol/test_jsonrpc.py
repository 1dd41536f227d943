"""Envelopes: what is a request, a response or a notification, and what is none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from kit.ends import answer_request, answering_ends, ask, asking_ends, end_of
from kit.pair import Pair
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import ClientEnd, ServerEnd, request, sent_request, sole
from mcpgen_runtime.errors import (
    InternalError,
    LocalProtocolError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
)
from mcpgen_runtime.facts import Method, Role, other
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendError,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.revisions import REVISIONS
from requirements import EVERY_REVISION


def tools_list(revision: str, **changed: Any) -> dict[str, Any]:
    """A good request with members changed, or taken out by `...`."""
    message = {**request(revision, "tools/list", id=1), **changed}
    return {name: value for name, value in message.items() if value is not ...}


@pytest.mark.requirement("jsonrpc.version-member")
@pytest.mark.parametrize("version", ["1.0", "2", 2.0, None, ...])
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.version-member"))
def test_a_request_of_another_jsonrpc_version_is_not_run(revision: str, version: Any) -> None:
    end = ServerEnd(revision)
    (answer,) = end.say(tools_list(revision, jsonrpc=version))
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    assert list(end.requests()) == []


@pytest.mark.requirement("jsonrpc.version-member", "jsonrpc.notification-no-id")
@pytest.mark.requirement("jsonrpc.request-shape", "jsonrpc.response-exactly-one")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.version-member"))
def test_all_messages_are_requests_notifications_or_responses(revision: str) -> None:
    shapes = {
        frozenset({"jsonrpc", "id", "method"}),
        frozenset({"jsonrpc", "method"}),
        frozenset({"jsonrpc", "id", "result"}),
        frozenset({"jsonrpc", "id", "error"}),
    }
    pair = Pair(revision)
    for method in ("tools/call", "tools/list", "resources/read", "prompts/list"):
        pair.ask("client", method, PARAMS[method])
        pair.answer("server", RESULTS[method])
    pair.ask("client", "prompts/get", PARAMS["prompts/get"])
    pair.answer("server", ProtocolError("no", data=None))
    pair.notify("server", "notifications/tools/list_changed")
    pair.deliver("client", sole(pair.client.send(CancelRequest(pair.ask("client", "tools/list")))))
    members = {frozenset(message) - {"params"} for _, message in pair.wire}
    assert members <= shapes
    assert len(members) >= 3
    assert {message["jsonrpc"] for _, message in pair.wire} == {"2.0"}


@pytest.mark.requirement("jsonrpc.request-shape", "jsonrpc.code-invalid-request")
@pytest.mark.requirement("jsonrpc.error-id-required", "jsonrpc.error-id-omitted-if-unreadable")
@pytest.mark.parametrize(
    "broken",
    [{"method": ...}, {"method": 5}, {"method": None}, {"method": ["tools/list"]}, {"jsonrpc": 2}],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.request-shape"))
def test_a_malformed_request_is_refused_under_its_id(
    revision: str, role: Role, broken: dict[str, Any]
) -> None:
    (answer,) = end_of(revision, role).say(tools_list(revision, id="seven", **broken))
    assert (answer["id"], answer["error"]["code"]) == ("seven", -32600)


@pytest.mark.requirement("jsonrpc.request-id-type", "jsonrpc.response-same-id")
@pytest.mark.parametrize("id", ["abc", "", "7", 7, 0, -5, 4294967296, 2**64, "\U0001f511"])
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.request-id-type"))
def test_any_string_or_integer_is_an_id_and_comes_back_as_it_was(
    revision: str, role: Role, id: Any
) -> None:
    answer = answer_request(end_of(revision, role), id)
    assert answer["id"] == id
    assert type(answer["id"]) is type(id)


@pytest.mark.requirement("jsonrpc.request-id-type", "jsonrpc.request-id-not-null")
@pytest.mark.requirement("jsonrpc.error-id-omitted-if-unreadable")
@pytest.mark.parametrize("id", [1.5, True, {}, [], None], ids=repr)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-type"))
def test_anything_else_is_no_id_and_no_notification_either(revision: str, id: Any) -> None:
    end = ServerEnd(revision)
    (answer,) = end.say(tools_list(revision, id=id))
    assert answer["error"]["code"] == -32600
    assert answer.get("id") is None
    omitted = revision in revisions_holding("jsonrpc.error-id-omitted-if-unreadable")
    assert ("id" in answer) == (not omitted)
    assert list(end.requests()) == []


@pytest.mark.requirement("jsonrpc.request-id-not-null", "jsonrpc.request-id-type")
@pytest.mark.requirement("jsonrpc.request-id-unique-session")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.request-id-not-null"))
def test_an_end_never_uses_an_id_again(revision: str, role: Role) -> None:
    pair = Pair(revision)
    method = "ping" if role == "server" else "tools/list"
    for _ in range(10_000):
        identifier, _message = sent_request(pair.ends[role].send(SendRequest(method)))
        assert type(identifier) is int
        pair.ends[role].send(CancelRequest(identifier))
    last, message = sent_request(pair.ends[role].send(SendRequest(method)))
    assert json.loads(message.data)["id"] == last
    assert isinstance(last, int)
    assert last > 10_000


@pytest.mark.requirement("jsonrpc.request-id-unique-in-flight")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-unique-in-flight"))
def test_open_requests_have_different_ids(revision: str) -> None:
    client = ClientEnd(revision)
    assert len({client.ask("tools/list")["id"] for _ in range(100)}) == 100


@pytest.mark.requirement("jsonrpc.request-id-unique-in-flight")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-unique-in-flight"))
def test_an_id_may_come_again_once_its_request_was_answered(revision: str) -> None:
    server = ServerEnd(revision)
    assert answer_request(server, 4) == answer_request(server, 4)


@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-type"))
def test_an_id_still_in_use_is_refused_and_its_first_use_goes_on(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=4)
    (answer,) = server.ask("prompts/list", id=4)
    assert (answer["id"], answer["error"]["code"]) == (4, -32600)
    assert [event.method.name for event in server.requests()] == ["tools/list"]
    assert sole(server.connection.send(SendResponse(4, RESULTS["tools/list"]))) is not None


@pytest.mark.requirement("jsonrpc.request-id-per-requestor")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-per-requestor"))
def test_the_same_id_may_be_open_in_both_directions(revision: str) -> None:
    pair = Pair(revision)
    there = pair.ask("client", "tools/call", PARAMS["tools/call"])
    method = "sampling/createMessage"
    assert there in [pair.ask("server", method, PARAMS[method]) for _ in range(3)]
    pair.answer("client", RESULTS[method], id=there)
    assert pair.told("server", ResponseReceived)[-1].result.model == "m"
    assert pair.told("client", ResponseReceived) == []
    pair.answer("server", RESULTS["tools/call"], id=there)
    assert pair.told("client", ResponseReceived)[-1].result.is_error is False


@pytest.mark.requirement("jsonrpc.params-object")
@pytest.mark.parametrize("params", [[], ["a"], "x", 5, True], ids=repr)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.params-object"))
def test_params_that_are_no_object_are_refused(revision: str, role: Role, params: Any) -> None:
    end = end_of(revision, role)
    for method in REVISIONS[revision].requests_from(other(role)).keys() - {"initialize"}:
        (answer,) = end.say({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        assert (answer["id"], answer["error"]["code"]) == (method, -32602)


@pytest.mark.requirement("jsonrpc.params-object")
@pytest.mark.parametrize("params", [[], ["a"], "x", 5], ids=repr)
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.params-object"))
def test_params_that_are_no_object_are_never_sent(revision: str, role: Role, params: Any) -> None:
    connection = end_of(revision, role).connection
    method = "ping" if role == "server" else "tools/list"
    with pytest.raises(LocalProtocolError):
        connection.send(SendRequest(method, params))


@pytest.mark.requirement("jsonrpc.request-shape")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.request-shape"))
def test_params_that_the_revision_does_not_have_are_never_sent(revision: str, role: Role) -> None:
    connection = end_of(revision, role).connection
    for name in REVISIONS[revision].requests_from(role):
        for member in PARAMS.get(name, {}):
            with pytest.raises(LocalProtocolError, match=rf"^{name}: params: "):
                connection.send(SendRequest(name, {**PARAMS[name], member: 5.5}))
    before = len(connection.state.outbound)
    method = "tools/call" if role == "client" else "sampling/createMessage"
    with pytest.raises(LocalProtocolError, match="missing required field"):
        connection.send(SendRequest(method))
    assert len(connection.state.outbound) == before
    for unchecked in ({**PARAMS[method], "x": 5}, Raw(b'{"x":5}')):  # more members, raw JSON
        assert b'"x":5' in sent_request(connection.send(SendRequest(method, unchecked)))[1].data


@pytest.mark.requirement("jsonrpc.params-required-modern")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.params-required-modern"))
def test_every_request_has_params_with_what_must_be_in_its_meta(revision: str) -> None:
    client = ClientEnd(revision)
    required = {
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    }
    for method in REVISIONS[revision].client_requests:
        params = PARAMS[method] or None
        assert client.ask(method, params)["params"]["_meta"].keys() >= required


@pytest.mark.requirement("jsonrpc.server-no-requests")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.server-no-requests"))
def test_a_server_sends_no_requests(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/call", PARAMS["tools/call"], id=1)
    every = {name for known in REVISIONS.values() for name in known.server_requests}
    assert len(every) >= 4
    for method in every:
        for serving in (1, None):
            with pytest.raises(LocalProtocolError):
                server.connection.send(
                    SendRequest(method, PARAMS[method], related_request_id=serving)
                )


@pytest.mark.requirement("jsonrpc.client-no-responses")
@pytest.mark.parametrize(
    "message",
    [
        {"id": 9, "method": "ping"},
        {"id": 9, "method": "roots/list"},
        {"id": 9, "method": "no/such"},
        {"id": 9, "method": 5},
        {"id": 9},
        {"id": 9, "method": "ping", "params": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.client-no-responses"))
def test_a_client_answers_nothing(revision: str, message: dict[str, Any]) -> None:
    client = ClientEnd(revision)
    assert client.say({"jsonrpc": "2.0", **message}) == []
    assert not any(isinstance(event, RequestReceived) for event in client.events)
    asked = client.ask("tools/list")
    client.say({"jsonrpc": "2.0", "id": asked["id"], "result": RESULTS["tools/list"]})
    assert isinstance(client.events[0], ResponseReceived)


@pytest.mark.requirement("jsonrpc.response-same-id")
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.response-same-id"))
def test_ids_that_differ_in_type_alone_get_their_own_answers(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    method = "tools/list" if role == "server" else "roots/list"
    ask(end, method, id=7)
    ask(end, method, id="7")
    for id in ("7", 7):
        message = sole(end.connection.send(SendResponse(id, RESULTS[method])))
        assert message is not None
        assert json.loads(message.data)["id"] == id
    assert tuple(end.connection.state.inbound) == ()


@pytest.mark.requirement("jsonrpc.response-same-id")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.response-same-id"))
def test_a_response_with_another_id_is_no_answer(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    for wrong in (f"{id}.0", f" {id}", f"0{id}x", float(id) + 0.5, None, [id], -id):
        client.say({"jsonrpc": "2.0", "id": wrong, "result": RESULTS["tools/list"]})
        assert len(client.connection.state.outbound) == 1
    client.say({"jsonrpc": "2.0", "id": id, "result": RESULTS["tools/list"]})
    assert len(client.connection.state.outbound) == 0


@pytest.mark.requirement("jsonrpc.response-same-id")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.response-same-id"))
@pytest.mark.parametrize(
    "answer", [{"result": RESULTS["tools/list"]}, {"error": {"code": 1, "message": "x"}}, {}]
)
def test_a_request_fails_whose_id_comes_back_as_a_text(
    revision: str, answer: dict[str, Any]
) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    client.say({"jsonrpc": "2.0", "id": str(id), "result": 5, **answer})
    (event,) = client.events
    assert isinstance(event, RequestFailed)
    text = f"tools/list: expected {id} as id of the response, came '{id}'"
    assert (event.id, str(event.error)) == (id, text)
    assert len(client.connection.state.outbound) == 0


@pytest.mark.requirement("jsonrpc.response-exactly-one", "jsonrpc.result-object")
@pytest.mark.requirement("jsonrpc.error-code-integer")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"result": {}, "error": {"code": 1, "message": "x"}},
        {"result": None},
        {"result": 5},
        {"result": []},
        {"result": "x"},
        {"error": None},
        {"error": "x"},
        {"error": {}},
        {"error": {"message": "x"}},
        {"error": {"code": 1.5, "message": "x"}},
        {"error": {"code": "E", "message": "x"}},
        {"error": {"code": True, "message": "x"}},
        {"error": {"code": 1, "message": 5}},
        {"jsonrpc": "1.0", "result": {}},
    ],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.response-exactly-one"))
def test_a_malformed_response_fails_its_call(
    revision: str, role: Role, body: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    id, _ = sent_request(
        end.connection.send(SendRequest("ping" if role == "server" else "tools/list"))
    )
    end.events.clear()
    assert end.say({"jsonrpc": "2.0", "id": id, **body}) == []
    (failed,) = end.events
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteProtocolError)
    assert len(end.connection.state.outbound) == 0


@pytest.mark.requirement("jsonrpc.result-object", revisions=EVERY_REVISION)
@pytest.mark.parametrize("result", [5, None, [], "x"], ids=repr)
def test_even_a_method_of_any_result_needs_an_object(result: Any) -> None:
    row = Method(
        name="x/y",
        kind="request",
        sender="client",
        params=None,
        params_required=False,
        result=Any,
        python_name="x_y",
    )
    for revision in REVISIONS:
        client = ClientEnd(revision, extensions={"x/y": row})
        client.say({"jsonrpc": "2.0", "id": client.ask("x/y")["id"], "result": result})
        (failed,) = client.events
        assert isinstance(failed, RequestFailed)


@pytest.mark.parametrize("kind", ["task", "", "Complete"])
@pytest.mark.parametrize("revision", [r for r in REVISIONS if REVISIONS[r].result_types])
def test_a_result_of_an_unknown_kind_fails_its_call(revision: str, kind: str) -> None:
    client = ClientEnd(revision)
    result = {**(RESULTS["tools/list"] or {}), "resultType": kind}
    client.say({"jsonrpc": "2.0", "id": client.ask("tools/list")["id"], "result": result})
    (failed,) = client.events
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteProtocolError)


@pytest.mark.requirement("jsonrpc.error-fields")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.error-fields"))
def test_an_error_without_message_still_fails_its_call(revision: str) -> None:
    client = ClientEnd(revision)
    client.say({"jsonrpc": "2.0", "id": client.ask("tools/list")["id"], "error": {"code": -1}})
    (failed,) = client.events
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert (failed.error.code, failed.error.message) == (-1, "")


@pytest.mark.requirement("jsonrpc.result-object")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.result-object"))
def test_a_handler_that_returns_nothing_answers_an_object(revision: str) -> None:
    server = ServerEnd(revision)
    known = REVISIONS[revision].client_requests
    empty = [name for name in known if name in RESULTS and RESULTS[name] is None]
    for method in empty or ["prompts/list"]:
        server.ask(method, PARAMS[method], id=method)
        message = sole(
            server.connection.send(SendResponse(method, None if empty else RESULTS[method]))
        )
        assert message is not None
        assert isinstance(json.loads(message.data)["result"], dict)


@pytest.mark.requirement("jsonrpc.result-object")
@pytest.mark.parametrize("result", [5, "x", [], True], ids=repr)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.result-object"))
def test_a_result_that_is_no_object_is_never_sent(revision: str, role: Role, result: Any) -> None:
    end = end_of(revision, role)
    ask(end, "tools/list" if role == "server" else "roots/list", id=1)
    with pytest.raises(InternalError):
        end.connection.send(SendResponse(1, result))
    assert sole(end.connection.send(SendError(1, InternalError("internal error")))) is not None
