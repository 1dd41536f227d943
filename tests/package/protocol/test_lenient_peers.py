"""Deviations of peers in the wild from the specification: tolerated, and never sent by us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kit.asgi_client import SESSION, asgi, fields_of
from kit.ends import ASKED, SENT, Pair, answering_ends, asking_ends, begin_request, both, end_of
from kit.live import sample_server
from kit.rules import revisions_holding
from kit.samples import CALL, EVERY_CLIENT_CAPABILITY, PARAMS, RESULTS, URI
from kit.scripted import connect_scripted
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    ClientEnd,
    ServerEnd,
    describe_as,
    encode_message,
    facts,
    initialize,
    request,
    sent_messages,
    sent_request,
    speaking_to,
    streamable,
)
from mcpgen_runtime import REVISIONS, MissingCapabilityError, RemoteError
from mcpgen_runtime.facts import Role, other
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    Ignored,
    NotificationReceived,
    OpenSession,
    RequestFailed,
    ResponseReceived,
    SendNotification,
    SendRequest,
    UnmatchedResponse,
)
from mcpgen_runtime.transports.line_channel import LineReader


def still_works(end: ClientEnd | ServerEnd) -> bool:
    """Whether a request of the peer's, or one of ours, still gets through."""
    if isinstance(end, ClientEnd):
        event = end.respond(end.ask("tools/list"), result=RESULTS["tools/list"])
        return isinstance(event, ResponseReceived)
    end.events.clear()
    return end.ask("tools/list", id="works?") == [] and len(list(end.requests())) == 1


@pytest.mark.requirement("seed-compat.skipped-initialized")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.skipped-initialized"))
def test_the_first_request_replaces_a_missing_confirmation(revision: str) -> None:
    server = ServerEnd(None)
    server.say(initialize(revision, EVERY_CLIENT_CAPABILITY))
    changed = "notifications/tools/list_changed"
    assert server.send(SendNotification(changed)) == []
    assert server.say(request(revision, "tools/list", id=1)) == []
    assert [event.id for event in server.requests()] == [1]
    assert len(server.connection.send(SendNotification(changed))) == 1
    assert sent_request(server.connection.send(SendRequest("roots/list")))


@pytest.mark.requirement("seed-compat.initialized-after-requests")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.initialized-after-requests"))
def test_a_late_or_double_confirmation_is_one_event(revision: str) -> None:
    server = ServerEnd(None)
    server.say(initialize(revision))
    listing = [request(revision, "tools/list", id=id) for id in (1, 2)]
    for message in (listing[0], INITIALIZED, INITIALIZED, listing[1]):
        assert server.say(message) == []
    assert [event.id for event in server.requests()] == [1, 2]
    told = [event for event in server.events if isinstance(event, NotificationReceived)]
    assert [event.method.name for event in told] == ["notifications/initialized"]


@pytest.mark.requirement("seed-compat.initialized-with-id")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.initialized-with-id"))
def test_a_confirmation_with_an_id_is_refused_and_still_counts(revision: str) -> None:
    server = ServerEnd(None)
    server.say(initialize(revision, EVERY_CLIENT_CAPABILITY))
    (answer,) = server.say({**INITIALIZED, "id": 2})
    assert (answer["id"], answer["error"]["code"]) == (2, -32601)
    assert sent_request(server.connection.send(SendRequest("roots/list")))
    assert server.say(request(revision, "tools/list")) == []


@pytest.mark.requirement("seed-compat.pipelined-handshake", "seed-compat.blank-lines-and-crlf")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n \r\n"])
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.pipelined-handshake"))
def test_a_handshake_written_at_once_is_served_in_order(revision: str, end: bytes) -> None:
    messages = [initialize(revision), INITIALIZED, request(revision, "ping", id=1)]
    server = ServerEnd(None)
    answers = []
    for line in LineReader().feed(end.join(encode_message(message) for message in messages) + end):
        answers += server.say(line)
    assert [answer["id"] for answer in answers] == ["init", 1]
    assert all("result" in answer for answer in answers)


@pytest.mark.requirement("seed-compat.empty-params-everywhere", "jsonrpc.params-optional-legacy")
@pytest.mark.parametrize(("revision", "role"), both("seed-compat.empty-params-everywhere"))
def test_empty_params_are_the_same_as_none(revision: str, role: Role) -> None:
    known, peer = REVISIONS[revision], other(role)
    outcomes: list[tuple[str, Any]] = []
    ways: tuple[dict[str, Any], ...] = ({"params": {}}, {})
    for more in ways:
        end = end_of(revision, role)
        for method, row in known.requests_from(peer).items():
            if not row.params_required:
                outcomes.append((method, end.say({**request(revision, method, id=method), **more})))
        for name, row in known.notifications_from(peer).items():
            if not row.params_required:
                end.say({"jsonrpc": "2.0", "method": name, **more})
        outcomes.append(("served", tuple(end.connection.state.inbound)))
        outcomes.append(("told", [type(event).__name__ for event in end.events]))
    half = len(outcomes) // 2
    assert outcomes[:half] == outcomes[half:]
    assert half > 3
    assert not any("error" in str(outcome) for outcome in outcomes)


@pytest.mark.requirement("seed-compat.params-null", "seed-compat.empty-params-modern")
@pytest.mark.parametrize(("revision", "role"), answering_ends("seed-compat.params-null"))
def test_null_as_params_is_answered_and_breaks_nothing(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    message = {"jsonrpc": "2.0", "id": 1, "method": ASKED[role], "params": None}
    stands_alone = revision in revisions_holding("seed-compat.empty-params-modern")
    codes = [answer["error"]["code"] for answer in end.say(message)]
    assert codes == ([-32602] if stands_alone else [])
    assert still_works(end)


@pytest.mark.requirement("seed-compat.error-id-null", "seed-compat.response-to-notification")
@pytest.mark.requirement("seed-compat.unsolicited-response")
@pytest.mark.parametrize(
    "message",
    [
        {"id": None, "error": {"code": -32700, "message": "x"}},
        {"error": {"code": -32700, "message": "x"}},
        {"result": {}},
        {"id": 999, "error": {"code": -1, "message": "x"}},
        {"id": "1", "result": {}},
    ],
    ids=str,
)
@pytest.mark.parametrize(("revision", "role"), both("seed-compat.error-id-null"))
def test_an_answer_to_no_request_settles_nothing(
    revision: str, role: Role, message: dict[str, Any]
) -> None:
    end = end_of(revision, role)
    if isinstance(end, ClientEnd):
        end.ask("tools/call", PARAMS["tools/call"])
    before = len(end.connection.state.outbound)
    end.events.clear()
    assert end.say({"jsonrpc": "2.0", **message}) == []
    (event,) = end.events
    if before:
        assert isinstance(event, UnmatchedResponse)
        assert event.ids == end.connection.state.outbound.ids()
    else:
        assert isinstance(event, Ignored)
    if "error" in message:
        assert str(message["error"]["code"]) in event.reason
    assert len(end.connection.state.outbound) == before
    assert still_works(end)


@pytest.mark.requirement("seed-compat.extra-result-members", "jsonrpc.open-objects")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.extra-result-members"))
def test_unknown_result_members_are_kept_in_the_raw_result(revision: str) -> None:
    client = ClientEnd(revision)
    result = {**(RESULTS["tools/list"] or {}), "data": [1], "foo": None}
    event = client.respond(client.ask("tools/list"), result=result)
    assert isinstance(event, ResponseReceived)
    assert [tool.name for tool in event.result.tools] == ["echo"]
    assert b'"data": [1]' in bytes(event.raw)


@pytest.mark.requirement("seed-compat.noise-on-stdout")
@pytest.mark.parametrize(
    "noise", [b"Server starting...", b"\x1b[32mINFO\x1b[0m ready", b"5", b"[]"]
)
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.noise-on-stdout"))
def test_a_client_skips_noise_without_a_word(revision: str, noise: bytes) -> None:
    fresh = ClientConnection(REVISIONS.only(revision), describe_as({}, "client"))
    fresh.send(OpenSession())
    client = ClientEnd(revision)
    for connection in (fresh, client.connection):
        events = connection.receive(noise)
        assert sent_messages(events) == []
        assert all(isinstance(event, Ignored) for event in events)
    assert still_works(client)


@pytest.mark.requirement("seed-compat.stop-reason-spelling")
@pytest.mark.parametrize("reason", ["end_turn", "endTurn", "something else"])
@pytest.mark.parametrize(
    "revision",
    [r for r, role in asking_ends("seed-compat.stop-reason-spelling") if role == "server"],
)
def test_any_stop_reason_is_passed_on(revision: str, reason: str) -> None:
    pair = Pair(revision)
    pair.ask("server", "sampling/createMessage", PARAMS["sampling/createMessage"])
    answer = RESULTS["sampling/createMessage"] or {}
    pair.answer("client", {**answer, "stopReason": reason})
    assert pair.told("server", ResponseReceived)[-1].result.stop_reason == reason


@pytest.mark.requirement("seed-compat.undeclared-capability-calls")
@pytest.mark.requirement("seed-compat.tools-not-mandatory")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.tools-not-mandatory"))
def test_a_client_refuses_what_it_did_not_declare(revision: str) -> None:
    pair = Pair(revision, server={"resources": {}})
    methods = [message.get("method") for message in pair.sent("client")]
    assert set(methods) <= {"server/discover", "initialize", "notifications/initialized"}
    with pytest.raises(MissingCapabilityError) as refused:
        pair.ask("client", "tools/list")
    assert refused.value.path == ("tools",)
    pair.ask("client", "resources/list")
    assert pair.sent("client")[-1]["method"] == "resources/list"


@pytest.mark.requirement("seed-compat.stateless-cursor-error")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.stateless-cursor-error"))
async def test_a_cursor_forgotten_by_the_server_ends_the_list_in_error(revision: str) -> None:
    page = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "2"}
    unknown = {"error": {"code": -32602, "message": "unknown cursor"}}
    async with connect_scripted(revision, page, unknown) as (client, server):
        with pytest.raises(RemoteError, match="unknown cursor") as refused:
            await client.list_tools()
    assert refused.value.code == -32602
    assert [params.get("cursor") for params in server.asked()] == [None, "2"]


def null_meta(revision: str, meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The `_meta` of a request with null for each optional member that it does not have."""
    if not meta:
        return None
    keys = facts(revision).meta
    named = ["progressToken", keys.log_level, keys.client_info, *keys.trace_keys]
    return {**{key: None for key in named if key is not None}, **meta}


@pytest.mark.parametrize(("revision", "role"), asking_ends("jsonrpc.response-exactly-one"))
def test_a_response_may_have_null_for_what_it_lacks(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": begin_request(end)["id"], "method": None}
    assert end.say({**response, "result": RESULTS[SENT[role]], "error": None}) == []
    assert isinstance(end.events[-1], ResponseReceived)
    error = {"code": -32602, "message": "no", "data": None}
    response["id"] = begin_request(end)["id"]
    assert end.say({**response, "result": None, "error": error}) == []
    failed = end.events[-1]
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, RemoteError)
    assert (failed.error.code, failed.error.message) == (-32602, "no")


NULLS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("completion/complete", {**PARAMS["completion/complete"]}, {"context": None}),
    ("ping", {}, {}),
    ("prompts/get", {"name": "greeting", "arguments": {}}, {"arguments": {"how": None}}),
    ("resources/read", {"uri": URI}, {"inputResponses": None, "requestState": None}),
    ("tools/call", {**CALL}, {"inputResponses": None, "requestState": None, "task": None}),
    ("tools/list", {}, {"cursor": None}),
)
"""A client's requests: method, params, and what a client with null adds; `_meta` comes with all."""


@streamable
async def test_a_server_answers_null_over_http_as_absence_in_memory(revision: str) -> None:
    methods = REVISIONS[revision].client_requests
    assert methods.keys() & {name for name, *_ in NULLS}
    server = sample_server()
    async with asgi(server) as http, speaking_to(server, revision) as end:
        if revision in HANDSHAKE:
            opening = initialize(revision, {"roots": None, "sampling": None, "experimental": None})
            opening["params"]["_meta"] = opening["params"]["clientInfo"]["title"] = None
            opened = await http.post(opening)
            assert opened.messages == (await http.post(initialize(revision))).messages
            http.fields[SESSION] = opened.fields[SESSION]
            confirmed = await http.post({**INITIALIZED, "params": None})
            assert (confirmed.status, confirmed.body) == (202, b"")
        for name, params, nulls in NULLS:
            if name not in methods:
                continue
            plain = request(revision, name, params, id="same")
            expected = await end.ask(name, params, id="same")
            assert "result" in expected, name
            with_nulls = {**plain.get("params", {}), **nulls}
            with_nulls["_meta"] = null_meta(revision, with_nulls.get("_meta"))
            message = {**plain, "params": with_nulls}
            for sent in (plain, message):
                reply = await http.post(sent, **fields_of(revision, sent))
                assert (reply.status, reply.messages) == (200, [expected]), name
