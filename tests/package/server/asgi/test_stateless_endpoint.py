"""POSTs that stand for themselves: what is answered, by which status, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.asgi_client import SESSION, asgi, fields_of
from kit.asgi_stream import SECONDS
from kit.rules import revisions_holding
from kit.waiting import WaitingServer
from kit.web import Web
from kit.wire import (
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    cancelled_notification,
    facts,
    initialize,
    meta_of,
    modern,
    request,
)

pytestmark = [modern, pytest.mark.processes]

VERSION = "mcp-protocol-version"
WITHOUT_SESSIONS = (*revisions_holding("sse.two-endpoints"), *PER_REQUEST)
REMOVED = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")


@pytest.mark.requirement("http.request-reply-type", "http.no-sessions", "http.utf8")
@pytest.mark.parametrize("type", ["application/json", "Application/JSON; charset=utf-8"])
async def test_a_request_is_answered_by_one_json_object(revision: str, type: str) -> None:
    text = "\u00fcn\u00ef \u4e16\u754c"
    message = request(revision, "tools/call", {"name": "echo", "arguments": {"text": text}})
    body = json.dumps(message, ensure_ascii=False).encode()
    async with asgi(Web().server) as http:
        reply = await http.post(body, **{**fields_of(revision, message), "content-type": type})
    assert reply.status == 200
    assert reply.json["id"] == 1
    assert text in reply.body.decode()
    assert reply.fields.keys() == {"content-type", "content-length"}
    assert b"\n" not in reply.body
    assert reply.result["resultType"] == "complete"
    key = facts(revision).meta.server_info
    assert reply.result["_meta"][key] == {"name": "web", "version": "1"}


@pytest.mark.requirement(
    "http.missing-meta-400", "meta.missing-required-rejected", "discover.meta-required"
)
@pytest.mark.requirement("meta.client-info-optional-for-server")
@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
@pytest.mark.parametrize(
    "wrong",
    [
        *("protocol_version", "client_capabilities", "client_info", "params", "version 5"),
        *(None, 1, "text", []),
    ],
)
async def test_a_request_without_what_its_meta_must_have_gets_400(
    revision: str, wrong: Any, method: str
) -> None:
    message, names = request(revision, method), facts(revision).meta
    fields = fields_of(revision, message)
    match wrong:
        case "params":
            del message["params"]
        case "version 5":
            message["params"]["_meta"][names.protocol_version] = 5
        case "protocol_version" | "client_capabilities" | "client_info":
            del message["params"]["_meta"][getattr(names, wrong)]
        case _:
            message["params"]["_meta"] = wrong
    async with asgi(Web().server) as http:
        reply = await http.post(message, **fields)
    if wrong == "client_info":  # it need not say who it is
        assert reply.status == 200
    else:
        assert (reply.status, reply.error["code"], reply.json["id"]) == (400, -32602, 1)


@pytest.mark.requirement("http.version-unsupported", "versioning.unsupported-error")
@pytest.mark.parametrize("named", ["1900-01-01", "v999.0.0", *HANDSHAKE])
async def test_an_unsupported_revision_is_refused_with_those_supported(
    revision: str, named: str
) -> None:
    message = request(revision, "tools/list", id="one")
    fields = fields_of(revision, message) | {VERSION: named}
    message["params"]["_meta"][facts(revision).meta.protocol_version] = named
    async with asgi(Web().server) as http:
        reply = await http.post(message, **fields)
        discovered = (await http.ask(revision, "server/discover")).result["supportedVersions"]
    assert (reply.status, reply.error["code"], reply.json["id"]) == (400, -32022, "one")
    assert reply.error["data"] == {"supported": discovered, "requested": named}
    assert revision in discovered


@pytest.mark.requirement("http.unknown-method-404", "jsonrpc.code-method-not-found")
@pytest.mark.requirement("lifecycle.removed-methods", "ping.removed")
@pytest.mark.requirement("subscriptions.replaces-subscribe")
@pytest.mark.parametrize("method", ["no/such", "unknown/method", *REMOVED])
async def test_a_method_that_does_not_exist_gets_404_and_an_error(
    revision: str, method: str
) -> None:
    async with asgi(Web(subscribe=True).server) as http:
        reply = await http.ask(revision, method, {"uri": "memo://one"}, id=7)
    assert (reply.status, reply.error["code"], reply.json["id"]) == (404, -32601, 7)
    assert SESSION not in reply.fields


@pytest.mark.requirement("http.missing-capability-400", "capabilities.missing-error")
@pytest.mark.requirement("jsonrpc.code-legacy-range-unused", "jsonrpc.code-legacy-range-closed")
@pytest.mark.parametrize(
    ("method", "params", "status", "code", "data"),
    [
        pytest.param("completion/complete", {}, 404, -32601, None, id="no such capability"),
        pytest.param(
            "tools/call",
            {"name": "needs"},
            400,
            -32021,
            {"requiredCapabilities": {"sampling": {}}},
            id="a capability that the client lacks, though the handler ran",
        ),
        pytest.param(
            "resources/read",
            {"uri": "memo://none"},
            200,
            -32602,
            {"uri": "memo://none"},
            id="an error of a handler",
        ),
        pytest.param("tools/call", {"name": "none"}, 200, -32602, None, id="no such tool"),
        pytest.param("tools/list", {"cursor": "x"}, 200, -32602, None, id="no such cursor"),
        pytest.param("prompts/get", {"name": "greeting"}, 200, -32602, None, id="no argument"),
    ],
)
async def test_an_error_has_the_status_of_its_kind(
    revision: str, method: str, params: Any, status: int, code: int, data: Any
) -> None:
    async with asgi(Web().server) as http:
        reply = await http.ask(revision, method, params)
    assert (reply.status, reply.error["code"], reply.error.get("data")) == (status, code, data)


@pytest.mark.requirement("http.post-202-notification")
@pytest.mark.parametrize("named", [True, False])
async def test_a_notification_gets_202_and_no_body(revision: str, named: bool) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/acme", "params": {"a": 1}}
    fields: dict[str, str | None] = {VERSION: revision} if named else {}
    async with asgi(Web().only(revision)) as http:
        reply = await http.post(message, **fields)
        unknown = await http.post(message, **{VERSION: "1900-01-01"})
    assert (reply.status, reply.body, reply.fields) == (202, b"", {"content-length": "0"})
    assert (unknown.status, unknown.error["code"], "id" in unknown.json) == (400, -32022, False)


@pytest.mark.requirement("jsonrpc.code-legacy-range-unused", "jsonrpc.code-legacy-range-closed")
@pytest.mark.requirement("http.post-unacceptable-status")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"2.0","method":7}', -32600),
        (b'{"method":"notifications/acme"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}', -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"[1,2]", -32600),
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
    ],
)
async def test_other_bodies_than_requests_and_notifications_get_400(
    revision: str, body: bytes, code: int
) -> None:
    for app in (Web().only(revision), Web().server):
        async with asgi(app) as http:
            reply = await http.post(body, **{VERSION: revision, "mcp-method": "tools/list"})
        assert (reply.status, reply.error["code"]) == (400, code)
        assert "id" not in reply.json or reply.json["id"] == 1


@pytest.mark.requirement("http.endpoint-post-only", "http-compat.get-delete-405")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
async def test_only_post_is_served(revision: str, method: str) -> None:
    async with asgi(Web().only(revision)) as http:
        reply = await http.request(method, None, **{SESSION: "x"})
        assert (reply.status, reply.fields["allow"]) == (405, "POST")
        assert (await http.ask(revision, "tools/list")).status == 200
    async with asgi(Web().server) as http:  # which serves revisions with streams, too
        reply = await http.get(**{VERSION: revision})
        assert (reply.status, reply.fields["allow"]) == (405, "POST")
        reply = await http.request("PUT")
        assert (reply.status, reply.fields["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.requirement("http-compat.session-header-ignored", "http-compat.last-event-id-ignored")
async def test_header_fields_of_sessions_are_ignored(revision: str) -> None:
    message = request(revision, "tools/list")
    fields = fields_of(revision, message)
    async with asgi(Web().server) as http:
        without = await http.post(message, **fields)
        reply = await http.post(message, **fields, **{SESSION: "x", "last-event-id": "5"})
    assert (reply.status, reply.body, reply.fields) == (200, without.body, without.fields)


@pytest.mark.requirement(
    "http-compat.legacy-client-on-modern-server",
    "http-compat.modern-server-names-versions",
    "versioning.modern-only-rejects-initialize",
)
@pytest.mark.parametrize("older", HANDSHAKE)
@pytest.mark.parametrize("named", [True, False])
async def test_a_refused_handshake_names_the_revisions(
    revision: str, older: str, named: bool
) -> None:
    message = initialize(older, id=0)
    for app in (Web().only(revision), Web().only(*WITHOUT_SESSIONS)):
        async with asgi(app) as http:
            reply = await http.post(message, **({VERSION: older} if named else {}))
        assert (reply.status, reply.json["id"]) == (400, 0)
        assert revision in reply.body.decode()


@pytest.mark.requirement(
    "versioning.dual-era-server-dispatch",
    "http-compat.dual-server-modern-request",
    "http-compat.dual-server-initialize",
    "http-compat.dual-server-optional",
    "http-compat.implement-old-revision",
)
@pytest.mark.parametrize("older", revisions_holding("http.endpoint-post-get"))
async def test_one_endpoint_serves_both_kinds_of_revisions_at_once(
    revision: str, older: str
) -> None:
    async with asgi(Web().server) as http:
        session = http.another()
        first = await session.initialize(older)
        assert first["protocolVersion"] == older
        fresh = await http.ask(revision, "tools/list")
        assert "resultType" in fresh.result
        assert SESSION not in fresh.fields
        within = await session.ask(older, "tools/list")
        assert "resultType" not in within.result


@pytest.mark.requirement(
    "http.close-is-cancel", "http.cancelled-work-stops", "cancellation.http-close-is-signal"
)
@pytest.mark.requirement("http.cancelled-silence", "cancellation.nothing-further")
@pytest.mark.parametrize("tool", ["wait", "speak_and_wait"])
async def test_leaving_cancels_the_handler_and_no_other(revision: str, tool: str) -> None:
    waiting = WaitingServer()
    changes = {"notifications": {"toolsListChanged": True}}
    async with (
        asgi(waiting.server) as http,
        http.asking(revision, LISTEN, changes, id=8) as listening,
        waiting.calling(http, revision, 7) as other,
    ):
        await listening.message()
        await other.message()
        posted = cancelled_notification(7, _meta=meta_of(revision))  # means nothing over HTTP
        assert (await http.post(posted, **{VERSION: revision})).status == 202
        async with waiting.calling(http, revision, 1, tool) as gone:
            await waiting.until(begun=2)
            gone.disconnect()
            with anyio.fail_after(SECONDS):
                await gone.finished.wait()
        await waiting.until(cancelled=1)
        waiting.go.set()
        assert "result" in await other.message()
        waiting.server.remove_tool("plain")
        assert (await listening.message())["method"] == "notifications/tools/list_changed"
    assert (waiting.cancelled, waiting.returned) == ([1], [7])
    assert gone.raw == b"" if tool == "wait" else b'"result"' not in gone.raw


@pytest.mark.parametrize("older", revisions_holding("http.endpoint-post-get"))
async def test_a_server_without_such_revisions_tells_so_in_its_own_way(
    revision: str, older: str
) -> None:
    async with asgi(Web().only(older)) as http:
        reply = await http.ask(revision, "server/discover")
        # One that knows the header refuses the revision in it; to the other it is a method.
        assert reply.status == (400 if facts(older).headers.protocol_version else 200)
        assert reply.error["code"] not in (-32020, -32021, -32022)
        assert (await http.get(**{VERSION: revision})).status == 400
        await http.initialize(older)
        assert (await http.ask(older, "tools/list")).status == 200
