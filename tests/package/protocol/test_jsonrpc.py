"""JSON-RPC messages: what is a request, a response or a notification, and what is none of them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from msgspec import Raw

from kit.ends import (
    ASKED,
    SENT,
    Pair,
    answer_request,
    answering_ends,
    ask,
    asking_ends,
    begin_request,
    both,
    end_of,
)
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    ClientEnd,
    ServerEnd,
    describe_as,
    every,
    initialize,
    request,
    sent_request,
)
from mcpgen_runtime import (
    REVISIONS,
    LocalProtocolError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    ResourceNotFoundError,
)
from mcpgen_runtime.errors import NO_DATA, InternalError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.batch_parsing import parse_array
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    Ignored,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
    SendError,
    SendLog,
    SendNotification,
    SendRequest,
    SendResponse,
)
from mcpgen_runtime.protocol.server_connection import ServerConnection
from requirements import EVERY_REVISION

BROKEN_METHODS: list[dict[str, Any]] = [{"method": method} for method in (..., 5, None, ["ping"])]
OTHER_VERSIONS: list[dict[str, Any]] = [
    {"jsonrpc": version} for version in (2, "1.0", "2", 2.0, None, ...)
]


@pytest.mark.requirement("jsonrpc.request-shape", "jsonrpc.code-invalid-request")
@pytest.mark.requirement("jsonrpc.version-member", "jsonrpc.error-id-required")
@pytest.mark.requirement("seed-compat.wrong-jsonrpc-version")
@pytest.mark.parametrize("broken", [*BROKEN_METHODS, *OTHER_VERSIONS], ids=str)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.request-shape"))
def test_a_malformed_request_is_refused_under_its_id(
    revision: str, role: Role, broken: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    message = {**request(revision, ASKED[role], id="seven"), **broken}
    message = {name: value for name, value in message.items() if value is not ...}
    (answer,) = end.say(message)
    assert (answer["id"], answer["error"]["code"]) == ("seven", -32600)
    if "jsonrpc" in broken:
        del message["id"]
        assert end.say(message) == []
    assert tuple(end.connection.state.inbound) == ()


DEPTH = 500_000  # Python 3.14 reads what its stack holds
NO_IDS: list[Any] = [1.5, True, {}, [], None]
NO_REQUESTS: list[Any] = [5, "x", None, True, {}, {"jsonrpc": "2.0"}]
UNREADABLE = [
    *(({"jsonrpc": "2.0", "id": id, "method": "ping"}, -32600) for id in NO_IDS),
    *((message, -32600) for message in NO_REQUESTS),
    *((text, -32700) for text in (b"{]", b"", b"[1,", b"nul", b'{"jsonrpc":"2.0"', b"\xff", b"\0")),
    pytest.param(b'{"params":' + b"[" * DEPTH + b"]" * DEPTH + b"}", -32700, id="nested"),
]


@pytest.mark.requirement("jsonrpc.request-id-type", "jsonrpc.request-id-not-null")
@pytest.mark.requirement("jsonrpc.code-invalid-request", "jsonrpc.code-parse-error")
@pytest.mark.requirement("jsonrpc.error-id-omitted-if-unreadable")
@pytest.mark.parametrize(("message", "code"), UNREADABLE)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-parse-error"))
def test_what_has_no_readable_id_is_answered_and_the_next_is_served(
    revision: str, message: Any, code: int
) -> None:
    server = ServerEnd(revision)
    (answer,) = server.say(message)
    assert answer["error"]["code"] == code
    omitted = revision in revisions_holding("jsonrpc.error-id-omitted-if-unreadable")
    assert ("id" in answer) == (not omitted)
    assert answer.get("id") is None
    assert server.ask("tools/list") == []
    assert [event.method.name for event in server.requests()] == ["tools/list"]


@pytest.mark.requirement("jsonrpc.request-id-type", "jsonrpc.response-same-id")
@pytest.mark.parametrize("id", ["abc", "", "7", 7, 0, -5, 4294967296, 2**64, "\U0001f511"])
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.request-id-type"))
def test_any_string_or_integer_is_an_id_and_comes_back_as_it_was(
    revision: str, role: Role, id: Any
) -> None:
    end = end_of(revision, role)
    answer = answer_request(end, id)
    assert answer["id"] == id
    assert type(answer["id"]) is type(id)


@pytest.mark.requirement("jsonrpc.request-id-unique-in-flight")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.request-id-unique-in-flight"))
def test_an_id_in_use_is_refused_and_may_come_again_after_its_answer(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=4)
    (answer,) = server.ask("prompts/list", id=4)
    assert (answer["id"], answer["error"]["code"]) == (4, -32600)
    assert [event.method.name for event in server.requests()] == ["tools/list"]
    (first,) = server.send(SendResponse(4, RESULTS["tools/list"]))
    assert answer_request(server, 4) == first


@pytest.mark.requirement("jsonrpc.request-id-not-null", "jsonrpc.request-id-type")
@pytest.mark.requirement("jsonrpc.request-id-unique-session", "progress.token-unique")
@pytest.mark.requirement("jsonrpc.request-id-unique-in-flight", "progress.tokens-tracked")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.request-id-not-null"))
def test_no_id_and_no_token_is_used_again_or_kept(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    ids = [begin_request(end, progress=True)["id"] for _ in range(100)]  # they stay open
    for number in range(2_000):
        message = begin_request(end, progress=True)
        assert message["params"]["_meta"]["progressToken"] == message["id"]
        ids.append(message["id"])
        if number % 2:
            end.send(CancelRequest(message["id"]))
        else:
            error = {"code": 1, "message": "no"}
            end.say({"jsonrpc": "2.0", "id": message["id"], "error": error})
    assert {type(id) for id in ids} == {int}
    assert len(set(ids)) == len(ids)
    assert len(end.connection.state.outbound) == 100


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


@pytest.mark.requirement("jsonrpc.request-shape", "jsonrpc.params-object")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.request-shape"))
def test_params_that_the_revision_does_not_have_are_never_sent(revision: str, role: Role) -> None:
    connection = end_of(revision, role).connection
    for params in ([], ["a"], "x", 5):
        with pytest.raises(LocalProtocolError, match="expected an object as params, got "):
            connection.send(SendRequest(SENT[role], params))
    for name in REVISIONS[revision].requests_from(role):
        for member in PARAMS.get(name, {}):
            with pytest.raises(LocalProtocolError, match=rf"^{name}: params: "):
                connection.send(SendRequest(name, {**PARAMS[name], member: 5.5}))
    method = "tools/call" if role == "client" else "sampling/createMessage"
    with pytest.raises(LocalProtocolError, match="missing required field"):
        connection.send(SendRequest(method))
    assert len(connection.state.outbound) == 0
    for unchecked in ({**PARAMS[method], "x": 5}, Raw(b'{"x":5}')):  # more members, raw JSON
        assert b'"x":5' in sent_request(connection.send(SendRequest(method, unchecked)))[1].data


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
                server.send(SendRequest(method, PARAMS[method], related_request_id=serving))


@pytest.mark.requirement("jsonrpc.client-no-responses")
@pytest.mark.parametrize(
    "message", [{"method": "ping"}, {"method": "no/such"}, {"method": 5}, {}], ids=str
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.client-no-responses"))
def test_a_client_answers_nothing(revision: str, message: dict[str, Any]) -> None:
    client = ClientEnd(revision)
    assert client.say({"jsonrpc": "2.0", "id": 9, **message}) == []
    assert [type(event) for event in client.events] == [Ignored]
    event = client.respond(client.ask("tools/list"), result=RESULTS["tools/list"])
    assert isinstance(event, ResponseReceived)


@pytest.mark.requirement("jsonrpc.response-same-id")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.response-same-id"))
def test_a_response_with_another_id_is_no_answer(revision: str) -> None:
    client = ClientEnd(revision)
    asked = client.ask("tools/list")
    id = asked["id"]
    for wrong in (f"{id}.0", f" {id}", f"0{id}x", float(id) + 0.5, None, [id], -id):
        client.respond({"id": wrong}, result=RESULTS["tools/list"])
        assert len(client.connection.state.outbound) == 1
    client.respond(asked, result=RESULTS["tools/list"])
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
    event = client.respond({"id": str(id)}, **{"result": 5, **answer})
    assert isinstance(event, RequestFailed)
    text = f"tools/list: expected {id} as id of the response, came '{id}'"
    assert (event.id, str(event.error)) == (id, text)
    assert len(client.connection.state.outbound) == 0


NO_OBJECTS: list[Any] = [None, 5, [], "x"]
ERRORS: list[Any] = [
    None,
    "x",
    {},
    {"message": "x"},
    *({"code": code, "message": "x"} for code in (1.5, "E", True, 2**63, -(2**63) - 1)),
    {"code": 1, "message": 5},
]


@pytest.mark.requirement("jsonrpc.response-exactly-one", "jsonrpc.result-object")
@pytest.mark.requirement("jsonrpc.error-code-integer")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"result": {}, "error": {"code": 1, "message": "x"}},
        *({"result": result} for result in NO_OBJECTS),
        *({"error": error} for error in ERRORS),
        {"jsonrpc": "1.0", "result": {}},
        {"result": {"tools": 5, "roots": 5}},
    ],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.response-exactly-one"))
def test_a_malformed_response_fails_its_call(
    revision: str, role: Role, body: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    asked = begin_request(end)
    end.events.clear()
    assert end.say({"jsonrpc": "2.0", "id": asked["id"], **body}) == []
    (failed,) = end.events
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteProtocolError)
    assert SENT[role] in str(failed.error)
    assert len(end.connection.state.outbound) == 0


@pytest.mark.requirement("jsonrpc.error-fields")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.error-fields"))
def test_an_error_without_message_still_fails_its_call(revision: str) -> None:
    client = ClientEnd(revision)
    failed = client.respond(client.ask("tools/list"), error={"code": -1})
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert (failed.error.code, failed.error.message) == (-1, "")


@pytest.mark.requirement("jsonrpc.result-object")
@pytest.mark.parametrize(
    "result", [5, "x", [], True, {"_meta": {"a": object()}}], ids=["5", "x", "[]", "True", "object"]
)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.result-object"))
def test_a_result_that_is_no_json_object_is_never_sent(
    revision: str, role: Role, result: Any
) -> None:
    end = end_of(revision, role)
    ask(end, ASKED[role], id=1)
    if isinstance(result, dict):
        result |= RESULTS[ASKED[role]] or {}
    with pytest.raises(InternalError, match=f"{ASKED[role]}: "):
        end.send(SendResponse(1, result))
    assert len(end.send(SendError(1, InternalError("internal error")))) == 1


@pytest.mark.requirement("jsonrpc.notification-no-response")
@pytest.mark.requirement("seed-compat.request-without-id", "seed-compat.placeholder-method-names")
@pytest.mark.requirement("seed-compat.dollar-cancel-request", "seed-compat.dollar-progress")
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notification", "params": {}},
        {"method": "$/cancelRequest", "params": {"requestId": 3}},
        {"method": "$/progress", "params": {"progressToken": 3, "progress": 1}},
        {"method": "method-name", "params": []},
        {"method": "tools/list"},
        {"method": "initialize", "params": {}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}},
        {"method": "notifications/roots/list_changed", "params": {"_meta": 5}},
        {"method": "notifications/initialized", "params": None},
        {"method": 5},
        {"method": None},
    ],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), both("jsonrpc.notification-no-response"))
def test_nothing_that_looks_like_a_notification_is_answered(
    revision: str, role: Role, message: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    if role == "server":
        ask(end, ASKED[role], id=3)
    assert end.say({"jsonrpc": "2.0", **message}) == []
    if role == "server":
        (answer,) = end.send(SendResponse(3, RESULTS[ASKED[role]]))
        assert answer["id"] == 3


@pytest.mark.requirement("jsonrpc.interaction-starts-at-client")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.interaction-starts-at-client"))
def test_a_server_says_nothing_that_no_client_asked_for(revision: str) -> None:
    server = ServerEnd(revision, speaks=revision)
    names = REVISIONS[revision].server_notifications.keys() & PARAMS.keys()
    assert names
    for _ in range(2):
        for name in names:
            assert server.send(SendNotification(name, PARAMS[name])) == []
        assert server.send(SendLog(None, "emergency", "fire")) == []
        server.ask("tools/list", id=1)


@pytest.mark.requirement("jsonrpc.reissue-with-new-id")
@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.reissue-with-new-id"))
def test_requests_end_with_their_connection_and_are_sent_as_new_ones(
    revision: str, role: Role
) -> None:
    end = end_of(revision, role)
    first = begin_request(end)["id"]
    assert end.connection.closed() == [first]
    assert end.connection.closed() == []
    assert begin_request(end)["id"] != first


BATCHED = revisions_holding("jsonrpc.batch-receive")
UNBATCHED = [revision for revision in REVISIONS if revision not in BATCHED]
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
batched = pytest.mark.parametrize("revision", BATCHED)
unbatched = pytest.mark.parametrize("revision", UNBATCHED)


@pytest.mark.requirement("jsonrpc.batch-receive", "jsonrpc.batch-response")
@pytest.mark.requirement("seed-compat.batch-in-2025-03-26")
@batched
def test_each_request_of_a_batch_is_served_without_notifications(revision: str) -> None:
    server = ServerEnd(revision)
    ping, listing = request(revision, "ping", id=1), request(revision, "tools/list", id="two")
    answers = server.say([ping, ROOTS_CHANGED, listing])
    assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert [event.id for event in server.requests()] == ["two"]
    assert len([event for event in server.events if isinstance(event, NotificationReceived)]) == 1
    (message,) = server.send(SendResponse("two", RESULTS["tools/list"]))
    assert message["result"]["tools"][0]["name"] == "echo"


@pytest.mark.requirement("jsonrpc.batch-response")
@pytest.mark.parametrize(
    ("batch", "codes"),
    [
        ([], [-32600]),
        ([1, [], {}], [-32600] * 3),
        ([ROOTS_CHANGED, INITIALIZED], []),
        ([{"jsonrpc": "2.0", "id": 5, "result": {}}], []),
    ],
    ids=repr,
)
@batched
def test_each_bad_part_of_a_batch_has_an_error_of_its_own(
    revision: str, batch: list[Any], codes: list[int]
) -> None:
    server = ServerEnd(revision)
    good = request(revision, "ping", id="good")
    assert [answer["error"]["code"] for answer in server.say(batch)] == codes
    if not batch:
        (answer,) = server.say(b"[{},")
        assert (answer["error"]["code"], answer.get("id")) == (-32700, None)
    else:
        *refused, last = server.say([*batch, good])
        assert [answer["error"]["code"] for answer in refused] == codes
        assert last == {"jsonrpc": "2.0", "id": "good", "result": {}}


@pytest.mark.requirement("jsonrpc.batch-receive")
@batched
def test_a_client_takes_a_batch_of_responses_and_of_requests(revision: str) -> None:
    client = ClientEnd(revision)
    ids = [client.ask("tools/list")["id"] for _ in range(2)]
    results = [{"jsonrpc": "2.0", "id": id, "result": RESULTS["tools/list"]} for id in ids]
    assert client.say(results) == []
    assert [event.id for event in client.events if isinstance(event, ResponseReceived)] == ids
    answers = client.say([request(revision, "ping", id=id) for id in (1, 2)])
    assert [answer["id"] for answer in answers] == [1, 2]


@pytest.mark.requirement("jsonrpc.batch-no-initialize")
@batched
def test_initialize_is_refused_inside_a_batch_and_served_outside(revision: str) -> None:
    for batch in ([initialize(revision)], [initialize(revision), INITIALIZED]):
        server = ServerEnd(None)
        (answer,) = server.say(batch)
        assert answer["error"]["code"] == -32600
        assert server.connection.session is None
        (answer,) = server.say(initialize(revision))
        assert answer["result"]["protocolVersion"] == revision
        refused, pong = server.say([initialize(revision, id=1), request(revision, "ping", id=2)])
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.requirement("jsonrpc.batch-removed", "jsonrpc.batch-undefined")
@pytest.mark.requirement("seed-compat.batch-outside-2025-03-26")
@unbatched
def test_other_revisions_refuse_an_array_whole_and_go_on(revision: str) -> None:
    server = ServerEnd(revision)
    batch = [request(revision, method, id=id) for id, method in ((1, "tools/list"), (2, "ping"))]
    (answer,) = server.say(batch)
    assert answer["error"]["code"] == -32600
    assert answer.get("id") is None
    assert list(server.requests()) == []
    server.ask("tools/list", id=3)
    assert [event.id for event in server.requests()] == [3]


@pytest.mark.requirement("jsonrpc.batch-removed")
@unbatched
def test_a_client_of_another_revision_takes_no_answer_in_a_batch(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    answer = {"jsonrpc": "2.0", "id": id, "result": RESULTS["tools/list"]}
    assert client.say([answer]) == []
    assert len(client.connection.state.outbound) == 1
    client.say(answer)
    assert len(client.connection.state.outbound) == 0


@every
def test_an_array_of_a_million_parts_takes_no_memory(revision: str) -> None:
    body = b"[" + b"1," * 1_000_000 + b"1]"
    server = ServerEnd(revision)
    tracemalloc.start()
    try:
        (refused,) = server.say(body)
        assert len(parse_array(body)) == 1
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()
    assert refused["error"]["code"] == -32600


LEGACY_RANGE = range(-32019, -31999)
RESERVED_RANGE = range(-32099, -32019)


def failed_with(revision: str, error: ProtocolError, method: str = "resources/read") -> Any:
    """The `error` that a server's answer has when its application raises this."""
    server = ServerEnd(revision)
    server.ask(method, PARAMS[method], id=1)
    (message,) = server.send(SendError(1, error))
    assert server.send(SendError(1, error)) == []
    return message["error"]


@pytest.mark.requirement("jsonrpc.code-method-not-found", "jsonrpc.mandatory-parts-legacy")
@pytest.mark.requirement("jsonrpc.rpc-prefix", "seed-compat.dollar-cancel-request-with-id")
@pytest.mark.requirement("seed-compat.code-not-supported", "seed-compat.placeholder-method-names")
@pytest.mark.parametrize(
    "method",
    [
        *("no/such", "rpc.test", "", "tools", "tools/list/"),
        *("method-name", "notification", "$/cancelRequest"),
    ],
)
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.code-method-not-found"))
def test_an_unknown_method_is_not_found(revision: str, role: Role, method: str) -> None:
    end = end_of(revision, role)
    ask(end, ASKED[role], id=3)
    (answer,) = ask(end, method, params={"id": 3}, id="a")
    assert (answer["id"], answer["error"]["code"]) == ("a", -32601)
    assert tuple(end.connection.state.inbound) == (3,)


@pytest.mark.requirement("jsonrpc.code-method-not-found", "logging.set-level-removed")
@pytest.mark.requirement("lifecycle.removed-methods", "ping.removed")
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-method-not-found"))
def test_a_method_of_another_revision_or_side_is_not_found(revision: str) -> None:
    server = ServerEnd(revision)
    foreign = {
        name
        for known in REVISIONS.values()
        for name in (*known.client_requests, *known.server_requests)
    } - set(REVISIONS[revision].client_requests)
    assert foreign
    for method in foreign - {"server/discover"}:
        (answer,) = server.ask(method, PARAMS.get(method), id=method)
        assert (answer["id"], answer["error"]["code"]) == (method, -32601)


@pytest.mark.requirement("jsonrpc.code-method-ungated", "capabilities.tools-need-declaration")
@pytest.mark.parametrize(("revision", "role"), answering_ends("jsonrpc.code-method-ungated"))
def test_a_method_whose_capability_was_not_declared_is_not_found(revision: str, role: Role) -> None:
    end = ServerEnd(revision, {}) if role == "server" else ClientEnd(revision, {})
    rows = REVISIONS[revision].requests_from(other(role)).values()
    gated = [row.name for row in rows if row.capability]
    assert gated
    for method in gated:
        (answer,) = ask(end, method, params=PARAMS[method], id=method)
        assert (answer["id"], answer["error"]["code"]) == (method, -32601)


@pytest.mark.requirement("jsonrpc.code-invalid-params")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"name": "echo", "arguments": []}),
        ("prompts/get", {"name": "greeting", "arguments": {"who": 5}}),
        ("tools/list", {"cursor": 5}),
        ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}}),
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-invalid-params"))
def test_params_that_do_not_fit_are_refused_and_not_handled(
    revision: str, method: str, params: dict[str, Any]
) -> None:
    server = ServerEnd(revision)
    (answer,) = server.ask(method, params, id="a")
    assert (answer["id"], answer["error"]["code"]) == ("a", -32602)
    assert method in answer["error"]["message"]
    assert list(server.requests()) == []


@pytest.mark.requirement("jsonrpc.error-fields", "jsonrpc.error-data")
@pytest.mark.parametrize(
    "data",
    [[1, None, {"a": 2}], {}, 5, "x", False, pytest.param(NO_DATA, id="no data")],
)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.error-data"))
def test_error_data_arrives_as_it_was_or_not_at_all(revision: str, data: Any) -> None:
    pair = Pair(revision)
    pair.ask("client", "tools/list")
    pair.answer("server", ProtocolError("no luck", code=17, data=data))
    (failed,) = pair.told("client", RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert (failed.error.code, failed.error.message) == (17, "no luck")
    assert failed.error.data == (None if data is NO_DATA else data)
    assert ("data" in pair.sent("server")[-1]["error"]) == (data is not NO_DATA)


@pytest.mark.requirement("jsonrpc.error-code-integer")
@pytest.mark.parametrize("code", [1.5, "E", True, None, [1]], ids=repr)
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.error-code-integer"))
def test_a_code_that_is_no_integer_is_never_sent(revision: str, code: Any) -> None:
    error = ProtocolError("no luck")
    error.code = code
    shown = failed_with(revision, error)
    assert (type(shown["code"]), shown["code"]) == (int, -32603)


@pytest.mark.requirement("jsonrpc.code-legacy-range-no-meaning", "seed-compat.code-32800")
@pytest.mark.requirement("seed-compat.code-32000", "seed-compat.code-32001")
@pytest.mark.requirement("seed-compat.code-32002", "seed-compat.code-32003")
@pytest.mark.requirement("seed-compat.code-unknown-tool")
@pytest.mark.requirement("seed-compat.tool-failure-as-protocol-error")
@pytest.mark.parametrize("code", [*LEGACY_RANGE, -32042, -32601, -32603, -32800, 0, 17])
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.code-32000"))
def test_an_error_code_of_no_meaning_fails_one_call_only(revision: str, code: int) -> None:
    for method in ("tools/call", "prompts/get", "resources/read", "tools/list"):
        client = ClientEnd(revision)
        first, odd, last = (client.ask(method, PARAMS[method]) for _ in range(3))
        failed = client.respond(odd, error={"code": code, "message": "odd", "data": [1]})
        assert isinstance(failed, RequestFailed)
        error = failed.error
        assert type(error) is RemoteError
        assert (error.code, error.message, error.data, error.method) == (code, "odd", [1], method)
        assert error.resource_not_found is ((method, code) == ("resources/read", -32002))
        for asked in (first, last):
            event = client.respond(asked, result=RESULTS[method])
            assert isinstance(event, ResponseReceived)


@pytest.mark.requirement("jsonrpc.code-reserved-range", "jsonrpc.code-32042-not-emitted")
@pytest.mark.requirement("jsonrpc.code-32002-not-emitted", "jsonrpc.code-defined-meanings")
@pytest.mark.parametrize("code", [*RESERVED_RANGE, -32002, -32100, -32019])
@pytest.mark.parametrize("revision", revisions_holding("jsonrpc.code-reserved-range"))
def test_a_reserved_code_is_sent_only_if_it_is_defined(
    revision: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    shown = failed_with(revision, ProtocolError("mine", code=code))
    is_sent = code in {-32020, -32021, -32022, -32100, -32019}
    assert shown["code"] == (code if is_sent else -32603)
    text = f"the error code {code} is none of {revision}, so -32603 is sent in its place: mine"
    assert caplog.messages == ([] if is_sent else [text])


@pytest.mark.requirement("jsonrpc.code-32002-not-emitted", revisions=EVERY_REVISION)
def test_a_missing_resource_has_the_code_of_the_revision() -> None:
    later = revisions_holding("jsonrpc.code-32002-not-emitted")
    for revision in REVISIONS:
        shown = failed_with(revision, ResourceNotFoundError("memo://none"))
        assert shown["code"] == (-32602 if revision in later else -32002)
        assert shown["data"] == {"uri": "memo://none"}


@every
def test_a_server_that_cannot_describe_itself_is_internal_error(revision: str) -> None:
    server = ServerEnd(None)
    server.connection = ServerConnection(REVISIONS, describe_as({"tools": 5}, "server"))
    shakes_hands = revision in HANDSHAKE
    opening = initialize(revision) if shakes_hands else request(revision, "server/discover")
    (answer,) = server.say(opening)
    assert (answer["id"], answer["error"]["code"]) == (opening["id"], -32603)
