"""Whatever a client sends is answered: never with a 500, never by silence, never by a traceback."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kit.asgi_client import SESSION, asgi
from kit.asgi_stream import SECONDS, Reply, Stream
from kit.strategies import anything
from kit.web import Web
from kit.wire import ALL, PER_REQUEST, SESSIONS, request

pytestmark = [pytest.mark.slow, pytest.mark.processes]

FINE = {200, 202, 204, 307, 400, 403, 404, 405, 406, 408, 413, 415, 431}
REVISION = PER_REQUEST[-1]

calm = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

METHODS = [
    *("tools/call", "tools/list", "resources/read", "prompts/get", "server/discover", "initialize"),
    *("ping", "notifications/cancelled", "notifications/initialized", "no/such", ""),
]
NAMES = [
    *("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "mcp-session-id"),
    *("last-event-id", "accept", "content-type", "content-length", "host", "origin", "x-other"),
]
VALUES = [*ALL, *METHODS, "echo", "*/*", "application/json", "text/event-stream", "1", "0", ""]

values = st.one_of(
    st.sampled_from(VALUES),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30),
    st.builds("=?base64?{}?=".format, st.text("abcXYZ019+/=!", max_size=12)),
)
headers = st.dictionaries(st.sampled_from(NAMES), st.none() | values, max_size=5)
members = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "_meta", "name", "uri", "arguments", "result", "error"]
)
objects = st.dictionaries(members, anything | st.sampled_from(["2.0", *METHODS]), max_size=6)


def almost(revision: str) -> st.SearchStrategy[Any]:
    """Requests of a revision with a part of them replaced."""

    def changed(method: str, path: list[str], value: Any) -> Any:
        params = {"name": "echo", "uri": "memo://one", "arguments": {"text": "x"}}
        message: Any = request(revision, method, params)
        here = message
        for name in path[:-1]:
            here = here.setdefault(name, {})
            if not isinstance(here, dict):
                return message
        here[path[-1]] = value
        return message

    paths = st.lists(members, min_size=1, max_size=3)
    return st.builds(changed, st.sampled_from(METHODS), paths, anything)


bodies = st.one_of(
    st.binary(max_size=60),
    objects.map(lambda value: json.dumps(value).encode()),
    st.lists(objects, max_size=3).map(lambda value: json.dumps(value).encode()),
    *(almost(revision).map(lambda value: json.dumps(value).encode()) for revision in ALL),
)


def check(reply: Reply | Stream, log: pytest.LogCaptureFixture) -> None:
    assert reply.status in FINE, (reply.status, reply.fields)
    assert [record for record in log.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@calm
@given(bodies, headers, st.booleans())
@example(b"[" * 100_000, {}, True)
@example(b'{"a":' * 50_000, {"mcp-protocol-version": REVISION}, True)
@example(b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', {}, True)
@example(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', {}, False)
@example(b"\xef\xbb\xbf{}", {}, False)
def test_any_body_under_any_header_fields_gets_a_proper_answer(
    caplog: pytest.LogCaptureFixture,
    backend: str,
    body: bytes,
    fields: dict[str, str | None],
    alone: bool,
) -> None:
    web = Web()

    async def run() -> None:
        app = web.only(REVISION) if alone else web.server
        options: dict[str, Any] = {} if alone else {"sse_path": "/sse"}
        async with asgi(app, **options) as http:
            with anyio.fail_after(SECONDS):
                check(await http.post(body, **fields), caplog)
                if not alone:
                    check(await http.post(body, "/messages?session_id=x", **fields), caplog)
                assert (await http.ask(REVISION, "tools/list")).status == 200

    anyio.run(run, backend=backend)


@pytest.mark.parametrize("session", SESSIONS)
@calm
@given(bodies, headers)
def test_any_body_in_a_session_is_answered_and_harms_no_other(
    caplog: pytest.LogCaptureFixture, session: str, body: bytes, fields: dict[str, str | None]
) -> None:
    web = Web()
    fields.setdefault(SESSION, "")

    async def run() -> None:
        async with asgi(web.server) as http:
            own, other = http.another(), http.another()
            await own.initialize(session)
            await other.initialize(session)
            if fields[SESSION] == "":
                del fields[SESSION]
            with anyio.fail_after(SECONDS):
                check(await own.post(body, **fields), caplog)
                async with own.stream("GET", fields=fields) as stream:
                    check(stream, caplog)
                assert (await other.ask(session, "tools/list")).status == 200

    anyio.run(run)
