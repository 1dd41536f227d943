"""Null for an optional member is absence: in every message that an end receives, at any depth.

`tests/decoding/test_null_members.py` has the types by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kit.asgi_client import asgi, fields_of
from kit.ends import end_of
from kit.samples import CALL, PARAMS, RESULTS, URI
from kit.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    SESSIONS,
    STREAMABLE,
    ClientEnd,
    facts,
    initialize,
    request,
    sent_request,
    speaking_to,
)
from mcpgen_runtime import Server
from mcpgen_runtime._wire import STRUCTS, UNSET, decoder, fields, is_many, is_object, tag_of
from mcpgen_runtime.errors import RemoteError
from mcpgen_runtime.facts import Method, Role, other
from mcpgen_runtime.protocol.events import (
    Event,
    Ignored,
    NotificationReceived,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendRequest,
)
from mcpgen_runtime.revisions import REVISIONS

ENDS: list[tuple[str, Role]] = [(each, role) for each in ALL for role in ("server", "client")]


def with_null(value: Any) -> Any:
    """The JSON of a typed value, with null for each optional member that it does not have."""
    if isinstance(value, STRUCTS):
        tag = tag_of(type(value))
        members = {} if tag is None else dict([tag])
        for field in fields(type(value)):
            member = getattr(value, field.name)
            if member is not UNSET:
                members[field.encode_name] = with_null(member)
        return members
    if is_object(value):
        return {name: with_null(member) for name, member in value.items()}
    return [with_null(each) for each in value] if is_many(value) else value


def null_params(method: Method, revision: str, params: Any) -> Any:
    """Params with null for each optional member that they do not have, `_meta` among them."""
    if method.params is None:
        return {"_meta": None}
    wire = with_null(decoder(method.params)(json.dumps(params).encode()))
    if wire.get("_meta"):
        wire["_meta"] = null_meta(revision, wire["_meta"])
    return wire


def null_meta(revision: str, meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The `_meta` of a request with null for each optional member that it does not have."""
    if not meta:
        return None
    keys = facts(revision).meta
    named = ["progressToken", keys.log_level, keys.client_info, *keys.trace_keys]
    return {**{key: None for key in named if key is not None}, **meta}


def outcome(event: Event) -> Any:
    """What an event says, apart from null in `_meta`, which is data."""
    kind = type(event).__name__
    match event:
        case RequestReceived() | NotificationReceived():
            meta = {key: each for key, each in event.meta.items() if each is not None}
            return kind, event.method.name, without_null(with_null(event.params)), meta
        case ProgressReceived():
            return kind, event.id, event.progress, event.total, event.message
        case ResponseReceived():
            return kind, event.id, without_null(with_null(event.result))
        case _:
            return kind, event


def without_null(value: Any) -> Any:
    """JSON without members that are null."""
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("revision", "role"), ENDS)
def test_each_received_request_and_notification_may_have_null(revision: str, role: Role) -> None:
    rows = REVISIONS[revision]
    every = {**rows.requests_from(other(role)), **rows.notifications_from(other(role))}
    methods = [method for name, method in every.items() if name in PARAMS]
    assert methods
    for method in methods:
        seen = []
        for is_null in (False, True):
            end = end_of(revision, role)
            end.events.clear()
            message = request(revision, method.name, PARAMS[method.name], id=1)
            if is_null:
                wire = message.get("params") or {}
                message["params"] = null_params(method, revision, wire)
            if method.kind == "notification":
                del message["id"]
            seen.append((end.say(message), [outcome(event) for event in end.events]))
        assert seen[1] == seen[0], method.name
        assert not any(isinstance(each, Ignored) for each in end.events), method.name


@pytest.mark.parametrize(("revision", "role"), ENDS)
def test_each_received_result_may_have_null(revision: str, role: Role) -> None:
    methods = REVISIONS[revision].requests_from(role)
    names = [name for name in methods if name in PARAMS and RESULTS.get(name) is not None]
    names = [name for name in names if name != "tasks/result"]  # of any request's type
    assert names or not methods
    for name in names:
        seen = []
        for is_null in (False, True):
            end = end_of(revision, role)
            identifier, _ = sent_request(end.connection.send(SendRequest(name, PARAMS[name])))
            result = {**(RESULTS[name] or {})}
            typed = end.connection.state.result_decoder(methods[name])(json.dumps(result).encode())
            response: dict[str, Any] = {"jsonrpc": "2.0", "id": identifier, "result": result}
            if is_null:
                response |= {"result": with_null(typed), "error": None, "method": None}
            end.events.clear()
            seen.append((end.say(response), [outcome(event) for event in end.events]))
        assert seen[1] == seen[0], name
        assert [kind for kind, *_ in seen[0][1]] == ["ResponseReceived"], name


@pytest.mark.parametrize(("revision", "role"), ENDS)
def test_an_error_response_may_have_null(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    methods = [name for name in REVISIONS[revision].requests_from(role) if name in PARAMS]
    for name in methods:
        identifier, _ = sent_request(end.connection.send(SendRequest(name, PARAMS[name])))
        error = {"code": -32602, "message": "no", "data": None}
        end.say({"jsonrpc": "2.0", "id": identifier, "result": None, "error": error})
        (event,) = end.events[-1:]
        assert isinstance(event, RequestFailed)
        assert isinstance(event.error, RemoteError)
        assert (event.error.code, event.error.message) == (-32602, "no")


@pytest.mark.parametrize("revision", ALL)
def test_progress_with_null_arrives(revision: str) -> None:
    client = ClientEnd(revision)
    token = client.ask("tools/list", progress=True)["id"]
    params = {"progressToken": token, "progress": 1, "total": None, "message": None, "_meta": None}
    client.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    assert [type(event) for event in client.events] == [ProgressReceived]


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_server_takes_null_in_the_handshake(revision: str) -> None:
    opening = initialize(revision, {"roots": None, "sampling": None, "experimental": None})
    opening["params"]["_meta"] = None
    opening["params"]["clientInfo"]["title"] = None
    async with asgi(every_feature()) as http:
        plain = await http.post(initialize(revision))
        nulls = await http.post(opening)
        assert (nulls.status, nulls.messages) == (200, plain.messages)
        session = {"mcp-session-id": nulls.fields["mcp-session-id"]}
        initialized = await http.post({**INITIALIZED, "params": None}, **session)
        assert (initialized.status, initialized.body) == (202, b"")
        listed = await http.post(request(revision, "tools/list"), **session)
        assert listed.status == 200


NULLS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("completion/complete", {**PARAMS["completion/complete"]}, {"context": None}),
    ("logging/setLevel", {"level": "info"}, {}),
    ("ping", {}, {}),
    ("prompts/get", {"name": "greeting"}, {"arguments": None}),
    ("prompts/get", {"name": "greeting", "arguments": {}}, {"arguments": {"how": None}}),
    ("prompts/list", {}, {"cursor": None}),
    ("resources/list", {}, {"cursor": None}),
    ("resources/read", {"uri": URI}, {"inputResponses": None, "requestState": None}),
    ("resources/templates/list", {}, {"cursor": None}),
    ("server/discover", {}, {}),
    ("tools/call", {**CALL}, {"inputResponses": None, "requestState": None, "task": None}),
    ("tools/call", {"name": "now"}, {"arguments": None}),
    ("tools/list", {}, {"cursor": None}),
)
"""A client's requests: method, params, and what a client with null adds; `_meta` comes with all."""


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_server_answers_null_over_http_as_absence_in_memory(revision: str) -> None:
    methods = REVISIONS[revision].client_requests
    assert methods.keys() & {name for name, *_ in NULLS}
    server = every_feature()
    async with asgi(server) as http, speaking_to(server, revision) as end:
        if revision in HANDSHAKE:
            await http.initialize(revision)
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


def every_feature() -> Server:
    """A server with tools, a resource, a prompt and completions that the examples name."""
    server = Server("all", "1")

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    def now() -> str:
        return "noon"

    @server.resource("memo://one")
    def memo() -> str:
        return "one"

    @server.prompt()
    def greeting(who: str = "you", how: str = "well") -> str:
        return f"{who}, {how}"

    @server.completion(prompt="greeting", argument="who")
    def names(text: str) -> list[str]:
        return ["Oslo"]

    return server
