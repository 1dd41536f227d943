"""Null for an optional member is absence: in every message that an end receives, at any depth.

`tests/decoding/test_null_members.py` has the types by themselves.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi, fields_of
from kit.ends import End, end_of
from kit.samples import CALL, PARAMS, RESULTS, URI
from kit.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    SESSIONS,
    STREAMABLE,
    RawEnd,
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
from mcpgen_runtime.transports.memory import memory_pair

pytestmark = pytest.mark.anyio
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


def outcomes(end: End) -> list[Any]:
    """The events of an end, apart from null in `_meta`, which is data."""
    return [outcome(event) for event in end.events]


def outcome(event: Event) -> Any:
    kind = type(event).__name__
    match event:
        case RequestReceived() | NotificationReceived():
            params = copy.deepcopy(event.params)
            meta = {key: each for key, each in event.meta.items() if each is not None}
            return kind, event.method.name, as_json(params), meta
        case ProgressReceived():
            return kind, event.id, event.progress, event.total, event.message
        case ResponseReceived():
            return kind, event.id, as_json(event.result)
        case _:
            return kind, event


def as_json(value: Any) -> Any:
    """The JSON of a typed value, with null for absent members, and none in maps."""
    return without_null(with_null(value))


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def received_methods(revision: str, role: Role) -> list[Method]:
    """The requests and notifications that an end of a revision receives, with an example each."""
    sender, rows = other(role), REVISIONS[revision]
    every = {**rows.requests_from(sender), **rows.notifications_from(sender)}
    return [method for name, method in every.items() if name in PARAMS]


@pytest.mark.parametrize(("revision", "role"), ENDS)
def test_each_received_request_and_notification_may_have_null(revision: str, role: Role) -> None:
    methods = received_methods(revision, role)
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
            seen.append((end.say(message), outcomes(end)))
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
            seen.append((end.say(response), outcomes(end)))
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
    end = end_of(revision, "client")
    _, message = sent_request(
        end.connection.send(SendRequest("tools/call", PARAMS["tools/call"], progress=True))
    )
    token = json.loads(message.data)["params"]["_meta"]["progressToken"]
    nothing = {"total": None, "message": None, "_meta": None}
    params = {"progressToken": token, "progress": 1, **nothing}
    end.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    assert [type(event) for event in end.events[-1:]] == [ProgressReceived]


def null_opening(revision: str) -> dict[str, Any]:
    """The request that begins a handshake, with null for optional members."""
    opening = initialize(revision, {"roots": None, "sampling": None, "experimental": None})
    opening["params"]["_meta"] = None
    opening["params"]["clientInfo"]["title"] = None
    return opening


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_takes_null_in_the_handshake(revision: str) -> None:
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(every_feature().serve, far)
        end = RawEnd(near, revision)
        await end.send(null_opening(revision))
        assert "result" in await end.receive()
        await end.send({**INITIALIZED, "params": None})
        assert "result" in await end.ask("tools/list")
        await near.close()


@pytest.mark.parametrize("revision", ALL)
async def test_a_server_answers_each_request_with_null_as_without(revision: str) -> None:
    methods = REVISIONS[revision].client_requests
    async with speaking_to(every_feature(), revision) as end:
        for name in sorted(PARAMS.keys() & methods.keys() - {"subscriptions/listen"}):
            plain = request(revision, name, PARAMS[name], id="same")
            nulls = null_params(methods[name], revision, plain.get("params") or {})
            answers = []
            for params in (plain.get("params"), nulls):
                await end.send({**plain, "params": params})
                answers.append(await end.receive())
            assert answers[1] == answers[0], name


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_server_takes_null_in_the_handshake_over_http(revision: str) -> None:
    async with asgi(every_feature()) as http:
        plain = await http.post(initialize(revision))
        nulls = await http.post(null_opening(revision))
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
            assert await answer_over_http(http, revision, plain) == (200, [expected]), name
            with_nulls = {**plain.get("params", {}), **nulls}
            with_nulls["_meta"] = null_meta(revision, with_nulls.get("_meta"))
            message = {**plain, "params": with_nulls}
            assert await answer_over_http(http, revision, message) == (200, [expected]), name


async def answer_over_http(http: Http, revision: str, message: Any) -> tuple[int, list[Any]]:
    reply = await http.post(message, **fields_of(revision, message))
    return reply.status, reply.messages


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


@pytest.mark.parametrize("revision", ALL)
async def test_null_for_an_optional_argument_of_a_prompt_is_absence(revision: str) -> None:
    async with speaking_to(every_feature(), revision) as end:
        params = {"name": "greeting", "arguments": {"who": "Oslo", "how": None}}
        answer = await end.ask("prompts/get", params)
    assert answer["result"]["messages"][0]["content"]["text"] == "Oslo, well"
