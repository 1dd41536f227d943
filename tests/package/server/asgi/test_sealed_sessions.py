"""Sessions that any process serves: three servers with one key, and each request at one of them."""

from __future__ import annotations

import base64
import json
import logging
import random
import re
import string
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.asgi_client import SESSION, Http, asgi
from kit.limits import SetLimit
from kit.requestor import Name
from kit.wire import INITIALIZED, SESSIONS, initialize, newest_session, request, sessions
from mcpgen_runtime import (
    REVISIONS,
    Context,
    KeyRing,
    Limits,
    MemoryKeyRing,
    MissingExtraError,
    Server,
    StaticTokens,
)
from mcpgen_runtime.protocol.lifecycle import Session
from mcpgen_runtime.server.asgi.sealed_sessions import ID_CHARACTERS, SealedSession, SessionCipher
from mcpgen_runtime.server.toolkit.key_ring import KEY_BYTES

pytestmark = pytest.mark.processes

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ABLE: dict[str, Any] = {
    "elicitation": {"form": {}},
    "sampling": {},
    "roots": {},
    "experimental": {"lamp": {"lit": True}},
}
PING = request(SESSIONS[-1], "ping")
NEED = "a store that the processes of this server share"
TOKENS = StaticTokens({"alice-1": "alice", "alice-2": "alice", "bob-1": "bob"})


def server_of(key: Any = KEY, name: str = "tester") -> Server:
    server = Server(name, state_key=key, subscribe=True)

    @server.tool()
    async def about(ctx: Context) -> dict[str, Any]:
        return {
            "revision": ctx.revision,
            "session": ctx.session_id,
            "info": ctx.client_info,
            "capabilities": ctx.client_capabilities,
        }

    @server.tool()
    async def ask(what: str, ctx: Context) -> str:
        needs: dict[str, Callable[[], Any]] = {
            "elicit": lambda: ctx.elicit("Who?", Name),
            "sample": lambda: ctx.sample("Write a poem"),
            "roots": ctx.list_roots,
            "ping": lambda: ctx.request("ping"),
            "state": lambda: ctx.session_state(list),
        }
        return str(await needs[what]())

    @server.tool()
    async def steps(ctx: Context) -> str:
        await ctx.info("a log message")
        await ctx.progress(1)
        return "done"

    @server.resource("note://today")
    def note() -> str:
        return "sun"

    return server


@asynccontextmanager
async def serve_sealed(*servers: Server, **options: Any) -> AsyncIterator[tuple[Http, list[Http]]]:
    """A client each of whose requests reaches any of these servers; and a client of each."""
    choose = random.Random(7).choice
    async with AsyncExitStack() as stack:
        each = [
            await stack.enter_async_context(asgi(server, sessions="sealed", **options))
            for server in servers or (server_of(), server_of(), server_of())
        ]

        async def any_of_them(scope: Any, receive: Any, send: Any) -> None:
            await choose(each).app(scope, receive, send)

        yield await stack.enter_async_context(asgi(any_of_them, lifespan=False)), each


async def call(http: Http, revision: str, tool: str, **more: Any) -> Any:
    return await http.ask(revision, "tools/call", {"name": tool, "arguments": {}}, **more)


async def about(http: Http, revision: str) -> dict[str, Any]:
    """The tool's view of the session, which has to be there."""
    reply = await call(http, revision, "about")
    assert reply.status == 200, reply.body
    seen: dict[str, Any] = json.loads(reply.text)
    return seen


async def open_session(http: Http, revision: str, info: Any = None) -> str:
    """The id of a new session, whose requests need not reach one process."""
    message = initialize(revision, ABLE)
    if info is not None:
        message["params"]["clientInfo"] = info
    reply = await http.post(message, **{SESSION: None})
    assert reply.status == 200, reply.body
    identifier: str = reply.fields[SESSION]
    http.fields |= {SESSION: identifier, "mcp-protocol-version": revision}
    assert (await http.post(INITIALIZED)).status == 202
    return identifier


def cipher_of(*keys: bytes, name: str = "tester", now: float = 1000.0) -> SessionCipher:
    return SessionCipher(name, lambda: keys or (KEY,), 60.0, lambda: now)


def session_of(revision: str, info: Any = None) -> Session:
    return Session(REVISIONS[revision], {}, ABLE, info or {"name": "tester", "version": "1"})


@pytest.mark.requirement("http.session-assign", "http.session-id-charset")
@sessions
async def test_any_process_serves_the_requests_of_a_session(revision: str) -> None:
    async with serve_sealed() as (http, each):
        identifier = await open_session(http, revision)
        assert re.fullmatch("[!-~]+", identifier)
        sealed = base64.urlsafe_b64decode(identifier + "=" * (-len(identifier) % 4))
        assert not any(text in sealed for text in (revision.encode(), b"tester", b"elicitation"))
        assert (await http.post(initialize(revision, ABLE))).fields[SESSION] != identifier
        for process in each:
            process.fields = http.fields
            seen = await about(process, revision)
            assert seen["revision"] == revision
            assert seen["session"] == identifier
            assert seen["info"] == {"name": "tester", "version": "1"}
            assert seen["capabilities"] == ABLE
        for _ in range(10):
            assert (await http.ask(revision, "tools/list")).status == 200


@pytest.mark.requirement("http.session-gone-404")
@newest_session
async def test_no_other_text_than_the_id_opens_a_session_nor_the_id_once_expired(
    revision: str, set_limit: SetLimit
) -> None:
    async with serve_sealed(server_of()) as (http, _):
        own = await open_session(http, revision)
        last = string.ascii_letters + string.digits + "-_"
        others = [own[:-1] + char for char in last if char != own[-1]]  # also unused bits
        others += [
            f"{own[:place]}{'B' if own[place] == 'A' else 'A'}{own[place + 1 :]}"
            for place in range(0, len(own) - 1, 7)
        ]
        past = cipher_of(now=time.time() - 61).seal(session_of(revision), None)
        unserved = cipher_of(now=time.time()).seal(session_of("2026-07-28"), None)
        for text in (*others, past, unserved, "A", own[:-1], f"{own}=", f"{own}A"):
            reply = await http.post(request(revision, "tools/list"), **{SESSION: text})
            assert reply.status == 404, text
        for less, status in ((0, 200), (1, 404)):
            set_limit("pkg.server.asgi.sealed_sessions.ID_CHARACTERS", len(own) - less)
            assert (await http.post(request(revision, "tools/list"))).status == status


@newest_session
@pytest.mark.parametrize(("seconds", "kept"), [(0.1, 1), (1.4, 1), (1.6, 2), (60.0, 60)])
def test_an_id_expires_after_whole_seconds_of_the_clock(
    revision: str, seconds: float, kept: int
) -> None:
    now = 1000.9
    cipher = SessionCipher("tester", lambda: (KEY,), seconds, lambda: now)
    identifier = cipher.seal(Session(REVISIONS[revision], {}, {}), None)
    assert identifier is not None
    opened = SealedSession(revision, {}, None, 1000, 1000 + kept)
    assert cipher.open(identifier, None) == opened
    now = 1000 + kept - 0.1
    assert cipher.open(identifier, None) == opened
    now = 1000 + kept
    assert cipher.open(identifier, None) is None


@newest_session
async def test_how_long_a_session_lasts_is_a_limit(revision: str) -> None:
    async with serve_sealed(limits=Limits(sealed_seconds=5)) as (http, _):
        identifier = await open_session(http, revision)
    session = SessionCipher("tester", lambda: (KEY,), 60.0).open(identifier, None)
    assert session is not None
    assert session.expires - session.start == 5


@newest_session
async def test_a_key_ring_rotates_while_the_server_runs(revision: str) -> None:
    ring: KeyRing = MemoryKeyRing(OTHER_KEY)
    async with serve_sealed(server_of(ring)) as (http, _):
        await open_session(http, revision)
        for is_known in (True, False):
            await ring.rotate()
            status = (await call(http, revision, "about")).status
            assert status == (200 if is_known else 404)
        await ring.rotate(KEY)
        await open_session(http, revision)
    for keys in (KEY, [OTHER_KEY, KEY]):
        async with serve_sealed(server_of(keys)) as (other, _):
            other.fields |= http.fields
            assert (await call(other, revision, "about")).status == 200


def test_a_key_ring_keeps_its_newest_keys() -> None:
    ring = MemoryKeyRing(KEY, kept=2)
    for number in range(5):
        anyio.run(ring.rotate, b"%d" % number * KEY_BYTES)
    assert [*ring.keys()] == [b"%d" % number * KEY_BYTES for number in (4, 3)]
    with pytest.raises(ValueError, match="kept: expected at least 1"):
        MemoryKeyRing(KEY, kept=0)
    with pytest.raises(ValueError, match="expected at least 16 bytes, got 15"):
        anyio.run(ring.rotate, b"n" * (KEY_BYTES - 1))


@newest_session
@pytest.mark.parametrize(
    ("server", "options"),
    [
        pytest.param(lambda: server_of(name="another"), {}, id="another name"),
        pytest.param(lambda: server_of(OTHER_KEY), {}, id="another key"),
        pytest.param(server_of, {"auth": TOKENS}, id="sessions with owners"),
    ],
)
async def test_another_server_refuses_the_id(revision: str, server: Any, options: Any) -> None:
    async with serve_sealed() as (http, _):
        await open_session(http, revision)
    async with serve_sealed(server(), **options) as (stranger, _):
        stranger.fields |= {**http.fields, "authorization": "Bearer alice-1"}
        assert (await call(stranger, revision, "about")).status == 404


@pytest.mark.requirement(
    "transport-security.session-bound-to-user", "transport-security.session-not-authentication"
)
@sessions
async def test_an_owner_s_id_is_refused_with_the_token_of_another(revision: str) -> None:
    async with serve_sealed(auth=TOKENS) as (http, _):
        http.fields["authorization"] = "Bearer alice-1"
        await open_session(http, revision)
        http.fields["authorization"] = "Bearer alice-2"  # another token of the same owner
        assert (await call(http, revision, "about")).status == 200
        http.fields["authorization"] = "Bearer bob-1"
        for method in ("POST", "GET", "DELETE"):
            message = request(revision, "tools/list") if method == "POST" else None
            assert (await http.request(method, message)).status == 404
        http.fields["authorization"] = None
        assert (await call(http, revision, "about")).status == 401


@sessions
async def test_a_client_with_too_much_info_has_one_process(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    info = {"name": "tester", "version": "1" * ID_CHARACTERS}
    with caplog.at_level(logging.WARNING):
        async with serve_sealed(server_of()) as (http, _):
            for _ in range(2):
                identifier = await open_session(http, revision, info)
                assert len(identifier) < 100
                assert (await about(http, revision))["session"] == identifier
                async with http.stream("GET") as stream:  # all that sessions have is there
                    assert stream.status == 200
    [record] = caplog.records
    assert "fit into a session id of 4096 characters" in record.message


@newest_session
async def test_capabilities_of_any_shape_open_a_session(revision: str) -> None:
    async with serve_sealed(server_of()) as (http, _):
        for value in (2**70, 1e300, "\ud83d\ude00", json.loads("[" * 900 + "]" * 900)):
            message = initialize(revision, {"experimental": {"lamp": {"value": value}}})
            fields = {SESSION: (await http.post(message)).fields[SESSION]}
            assert (await http.post(request(revision, "tools/list"), **fields)).status == 200


@newest_session
def test_the_longest_id_has_4096_characters(revision: str) -> None:
    own, lengths = cipher_of(), set[int]()
    for size in range(2900, 3100):
        identifier = own.seal(session_of(revision, {"name": "n" * size}), None)
        lengths.add(0 if identifier is None else len(identifier))
        assert identifier is None or own.open(identifier, None) is not None
    assert max(lengths) == ID_CHARACTERS
    assert 0 in lengths


@sessions
async def test_delete_ends_a_session_in_one_process_and_says_so(revision: str) -> None:
    async with serve_sealed() as (http, each):
        await open_session(http, revision)
        for process in each:
            process.fields = http.fields
        ended, *others = each
        reply = await ended.delete()
        assert reply.status == 200
        assert reply.json == {"ended": "in this process; others serve the id until it expires"}
        for method in ("POST", "GET", "DELETE"):
            message = request(revision, "tools/list") if method == "POST" else None
            assert (await ended.request(method, message)).status == 404
        for other in others:
            assert (await call(other, revision, "about")).status == 200


@pytest.mark.requirement("http.post-unacceptable-status", "http.get-reply")
@sessions
@pytest.mark.parametrize(
    ("message", "status"),
    [
        *(
            (
                request("2025-06-18", "tools/call", {"name": "ask", "arguments": {"what": what}}),
                200,
            )
            for what in ("elicit", "sample", "roots", "ping", "state")
        ),
        (request("2025-06-18", "logging/setLevel", {"level": "info"}), 200),
        (request("2025-06-18", "resources/subscribe", {"uri": "note://today"}), 200),
        (request("2025-06-18", "resources/unsubscribe", {"uri": "note://today"}), 200),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, 400),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}, 400),
        ({"jsonrpc": "2.0", "id": 1, "result": 5}, 400),
    ],
    ids=str,
)
async def test_what_needs_a_store_is_refused_with_that_reason(
    revision: str, message: Any, status: int
) -> None:
    async with serve_sealed() as (http, _):
        await open_session(http, revision)
        reply = await http.post(message)
        assert (reply.status, NEED in reply.error["message"]) == (status, True)
        for last in (None, "0-1"):
            reply = await http.get(**{"last-event-id": last})
            assert (reply.status, reply.fields["allow"]) == (405, "POST, DELETE")
            assert NEED in reply.error["message"]


@sessions
async def test_refused_capabilities_are_not_declared(revision: str) -> None:
    async with serve_sealed() as (http, _):
        result = (await http.post(initialize(revision))).result
        assert result["capabilities"] == {"tools": {}, "resources": {}}


@pytest.mark.requirement("http.session-id-missing-400")
@sessions
async def test_the_rest_of_the_protocol_is_that_of_other_sessions(revision: str) -> None:
    async with serve_sealed() as (http, _):
        assert (await http.ask(revision, "tools/list")).status == 400
        await open_session(http, revision)
        reply = await call(http, revision, "steps", meta={"progressToken": "t"})
        assert [each.get("method") for each in reply.messages] == ["notifications/progress", None]
        reply = await http.post([{**PING, "id": 1}, {**PING, "id": 2}])
        assert (reply.status == 200) is REVISIONS[revision].batching
        assert (await call(http.another(), "2026-07-28", "steps")).text == "done"


def test_a_missing_package_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cryptography.exceptions", "cryptography.hazmat.primitives.ciphers.aead"):
        monkeypatch.setitem(sys.modules, name, None)
    server_of().asgi()
    with pytest.raises(MissingExtraError, match="needs the package 'cryptography'") as raised:
        server_of().asgi(sessions="sealed")
    assert "\n" not in str(raised.value)


IDS = {
    None: "Ia2rXDt4QIDlOG_Ff_11jF5KGZkYrWf4EKQ3kBKPHrhh24B8arunmxzWnz_QcEMxxXIsK2Ddzuy3gxicfa8UVKSm"
    "ggbcULmbqji6Gg",
    ("https://idp.example", "alice", None): "egpH85dg6CjQ6ic34iaRvH-tFxCCyWsv46DNBIAXWQ33oE0_ID6qW"
    "DsgU7K9NqsvFxkXse-aNK4VjY4ekZruDo4eRbBIW-DXOBpY8Q",
}
"""Ids that an earlier version sealed with `KEY`, by owner."""


@pytest.mark.parametrize("owner", IDS)
def test_an_id_that_an_earlier_version_sealed_still_opens(owner: Any) -> None:
    session: Any = ("2025-11-25", {"roots": {}}, {"name": "c", "version": "1"}, 1000, 1060)
    assert cipher_of().open(IDS[owner], owner) == SealedSession(*session)
    assert cipher_of().open(IDS[owner], ("https://idp.example", "bob", None)) is None
    sealed = cipher_of().seal(Session(REVISIONS[session[0]], {}, *session[1:3]), owner)
    assert sealed is not None
    assert len(sealed) == len(IDS[owner])
