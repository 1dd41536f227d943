"""Null for an optional member is absence: in envelopes, in `_meta`, and in params of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kit.asgi_client import asgi, fields_of
from kit.ends import SENT, asking_ends, begin_request, end_of
from kit.samples import CALL, PARAMS, RESULTS, URI
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    SESSIONS,
    STREAMABLE,
    facts,
    initialize,
    request,
    speaking_to,
)
from mcpgen_runtime import REVISIONS, RemoteError, Server
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import RequestFailed, ResponseReceived


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
    ("ping", {}, {}),
    ("prompts/get", {"name": "greeting", "arguments": {}}, {"arguments": {"how": None}}),
    ("resources/read", {"uri": URI}, {"inputResponses": None, "requestState": None}),
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
