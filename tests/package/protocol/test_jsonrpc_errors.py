"""Error codes: which one says what, and what a receiver may read from it."""

from __future__ import annotations

from typing import Any

import pytest

from kit.ends import ASKED, Pair, answering_ends, ask, end_of
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.wire import HANDSHAKE, ClientEnd, ServerEnd, describe_as, every, initialize, request
from mcpgen_runtime import (
    REVISIONS,
    ProtocolError,
    RemoteError,
    ResourceNotFoundError,
)
from mcpgen_runtime.errors import NO_DATA
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.events import RequestFailed, ResponseReceived, SendError
from mcpgen_runtime.protocol.server_connection import ServerConnection
from requirements import EVERY_REVISION

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
