"""Null for an optional member is absence: in every message that an end receives, at any depth.

`tests/decoding/test_null_members.py` has the types by themselves.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Server
from mcpgen_runtime._wire import STRUCTS, UNSET, decoder, fields, is_many, is_object, tag_of
from mcpgen_runtime.errors import RemoteError
from mcpgen_runtime.facts import Method, Role, other
from mcpgen_runtime.protocol.receiver import (
    Event,
    Ignored,
    NotificationReceived,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports.memory import memory_pair
from package.ends import End, end_of
from package.samples import PARAMS, RESULTS
from package.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    RawEnd,
    facts,
    initialize,
    request,
    speaking_to,
)

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
        keys = facts(revision).meta
        named = ["progressToken", keys.log_level, keys.client_info, *keys.trace_keys]
        wire["_meta"] = {**{key: None for key in named if key is not None}, **wire["_meta"]}
    return wire


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
            identifier, _ = end.connection.request(name, PARAMS[name])
            result = {**(RESULTS[name] or {})}
            typed = end.connection.decode_result(methods[name], json.dumps(result).encode())
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
        identifier, _ = end.connection.request(name, PARAMS[name])
        error = {"code": -32602, "message": "no", "data": None}
        end.say({"jsonrpc": "2.0", "id": identifier, "result": None, "error": error})
        (event,) = end.events[-1:]
        assert isinstance(event, RequestFailed)
        assert isinstance(event.error, RemoteError)
        assert (event.error.code, event.error.message) == (-32602, "no")


@pytest.mark.parametrize("revision", ALL)
def test_progress_with_null_arrives(revision: str) -> None:
    end = end_of(revision, "client")
    _, message = end.connection.request("tools/call", PARAMS["tools/call"], progress=True)
    token = json.loads(message.data)["params"]["_meta"]["progressToken"]
    nothing = {"total": None, "message": None, "_meta": None}
    params = {"progressToken": token, "progress": 1, **nothing}
    end.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    assert [type(event) for event in end.events[-1:]] == [ProgressReceived]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_takes_null_in_the_handshake(revision: str) -> None:
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(every_feature().serve, far)
        end = RawEnd(near, revision)
        opening = initialize(revision, {"roots": None, "sampling": None, "experimental": None})
        opening["params"]["_meta"] = None
        opening["params"]["clientInfo"]["title"] = None
        await end.send(opening)
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


def every_feature() -> Server:
    """A server with a tool, a resource and a prompt that the examples name."""
    server = Server("all", "1")

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.resource("memo://one")
    def memo() -> str:
        return "one"

    @server.prompt()
    def greeting(who: str = "you", how: str = "well") -> str:
        return f"{who}, {how}"

    return server


@pytest.mark.parametrize("revision", ALL)
async def test_null_for_an_optional_argument_of_a_prompt_is_absence(revision: str) -> None:
    async with speaking_to(every_feature(), revision) as end:
        params = {"name": "greeting", "arguments": {"who": "Oslo", "how": None}}
        answer = await end.ask("prompts/get", params)
    assert answer["result"]["messages"][0]["content"]["text"] == "Oslo, well"
