"""Header fields that repeat the body: held against it before anything runs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from package.asgi_client import asgi, fields_of
from package.asgi_stream import Reply
from package.rules import revisions_holding
from package.server.asgi.web import UNICODE, Web
from package.wire import facts, request

REVISIONS = revisions_holding("headers.server-validates")

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("revision", REVISIONS)]

VERSION, METHOD, NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
ECHO = {"name": "echo", "arguments": {"text": "hi"}}


def sentinel(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return f"=?base64?{base64.b64encode(raw).decode()}?="


async def post(web: Web, revision: str, message: dict[str, Any], **changed: str | None) -> Reply:
    async with asgi(web.server) as http:
        given = {name.replace("_", "-"): value for name, value in changed.items()}
        return await http.post(message, **(fields_of(revision, message) | given))


def is_mismatch(reply: Reply, id: int | str = 1) -> bool:
    return (reply.status, reply.error["code"], reply.json["id"]) == (400, -32020, id)


@pytest.mark.requirement(
    "headers.missing-required", "headers.mismatch-status-400", "headers.mismatch-code"
)
@pytest.mark.parametrize("field", [VERSION, METHOD, NAME])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", ECHO),
        ("prompts/get", {"name": "greeting", "arguments": {"who": "Bo"}}),
        ("resources/read", {"uri": "memo://one"}),
    ],
)
async def test_each_standard_field_has_to_be_there(
    revision: str, method: str, params: dict[str, Any], field: str
) -> None:
    web = Web()
    message = request(revision, method, params, id="a")
    reply = await post(web, revision, message, **{field: None})
    assert is_mismatch(reply, "a")
    assert field in reply.error["message"].lower()
    assert web.called == []


async def test_a_request_about_nothing_by_name_needs_no_name(revision: str) -> None:
    reply = await post(Web(), revision, request(revision, "tools/list"), **{NAME: "whatever"})
    assert reply.status == 200


@pytest.mark.requirement(
    "headers.server-validates", "headers.values-case-sensitive", "headers.mismatch-code"
)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (METHOD, "tools/list"),
        (METHOD, "TOOLS/CALL"),
        (METHOD, "tools/call, tools/call"),
        (METHOD, ""),
        (METHOD, sentinel("tools/call")),
        (NAME, "foo"),
        (NAME, "Echo"),
        (NAME, ""),
        (NAME, "echo, echo"),
        (NAME, sentinel("foo")),
    ],
)
async def test_a_field_that_says_something_else_is_refused(
    revision: str, field: str, value: str
) -> None:
    web = Web()
    message = request(revision, "tools/call", ECHO)
    reply = await post(web, revision, message, **{field: value})
    assert is_mismatch(reply)
    assert web.called == []


@pytest.mark.requirement("http.version-header-mismatch", "meta.header-matches-body")
@pytest.mark.parametrize(
    ("header", "body"),
    [
        (None, "v999.0.0"),
        (None, "2025-11-25"),
        ("2025-11-25", None),
        ("v999.0.0", None),
        ("2025-11-25", "2025-06-18"),
    ],
    ids=str,
)
async def test_different_revisions_in_header_and_body_are_a_mismatch(
    revision: str, header: str | None, body: str | None
) -> None:
    message = request(revision, "tools/list")
    message["params"]["_meta"][facts(revision).meta.protocol_version] = body or revision
    reply = await post(Web(), revision, message, **{VERSION: header or revision})
    assert is_mismatch(reply)


@pytest.mark.requirement("headers.mismatch-not-legacy-code")
async def test_the_code_is_that_of_the_revision(revision: str) -> None:
    reply = await post(Web(), revision, request(revision, "tools/call", ECHO), **{NAME: "foo"})
    assert reply.error["code"] == facts(revision).errors.header_mismatch == -32020


@pytest.mark.requirement("headers.optional-whitespace")
@pytest.mark.parametrize("value", ["  echo  ", "\techo", "echo \t"])
async def test_white_space_around_a_value_is_no_part_of_it(revision: str, value: str) -> None:
    message = request(revision, "tools/call", ECHO)
    changed = {NAME: value, METHOD: " tools/call", VERSION: f"{revision}\t"}
    assert (await post(Web(), revision, message, **changed)).status == 200


@pytest.mark.requirement("headers.decode-before-compare", "headers.reader-decodes")
@pytest.mark.parametrize(
    ("method", "params", "value"),
    [
        ("tools/call", ECHO, sentinel("echo")),
        ("resources/read", {"uri": UNICODE}, sentinel(UNICODE)),
    ],
)
async def test_an_encoded_name_is_decoded_before_it_is_compared(
    revision: str, method: str, params: dict[str, Any], value: str
) -> None:
    reply = await post(Web(), revision, request(revision, method, params), **{NAME: value})
    assert reply.status == 200
    assert "result" in reply.json


@pytest.mark.requirement("headers.invalid-characters", "headers.undecodable-base64")
@pytest.mark.parametrize(
    "value",
    [
        UNICODE,  # raw bytes beyond ASCII
        UNICODE.encode().decode("latin-1"),
        "memo://one\x01",
        "memo://one\x7f",
        "=?base64?bWVtbzovL29uZQ?=",  # no padding
        "=?base64?bWVtbzovL29u!!!ZQ==?=",
        "=?base64?bWVtbzovL29uZQ==",  # no suffix: a literal
        "=?BASE64?bWVtbzovL29uZQ==?=",
        sentinel(b"memo://one\xff"),
    ],
)
async def test_a_value_that_cannot_be_read_is_refused(revision: str, value: str) -> None:
    for uri in ("memo://one", UNICODE):
        message = request(revision, "resources/read", {"uri": uri})
        assert is_mismatch(await post(Web(), revision, message, **{NAME: value}))


@pytest.mark.requirement("headers.server-validates")
@pytest.mark.parametrize("twice", [VERSION, METHOD, NAME, "host"])
async def test_a_field_that_comes_twice_is_no_value_that_could_fit(
    revision: str, twice: str
) -> None:
    message = request(revision, "tools/call", ECHO)
    fields = {"host": "localhost", "content-type": "application/json"}
    pairs = [*fields.items(), *fields_of(revision, message).items()]
    given = [(name.lower().encode(), str(value).encode()) for name, value in pairs]
    async with asgi(Web().server) as http:
        given += [(b"accept", b"application/json"), (b"accept", b"text/event-stream")]
        http.scope["headers"] = given
        assert (await http.post(message)).status == 200
        http.scope["headers"] = [*given, *(pair for pair in given if pair[0] == twice.encode())]
        reply = await http.post(message)
    assert reply.status == (403 if twice == "host" else 400)


@pytest.mark.parametrize("wrong", [None, 7, ["echo"], {}])
async def test_a_name_that_is_no_text_is_refused_for_that(revision: str, wrong: Any) -> None:
    web = Web()
    message = request(revision, "tools/call", {"name": wrong})
    reply = await post(web, revision, message, **{NAME: "echo"})
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert web.called == []


async def test_no_params_keep_the_fields_from_being_checked(revision: str) -> None:
    web = Web()
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
        b'{"text":"hi"},"uri":%b,"_meta":%b}}'
    )
    meta = b'{"io.modelcontextprotocol/protocolVersion":"%b",' % revision.encode()
    meta += b'"io.modelcontextprotocol/clientCapabilities":{}}'
    for uri in (b"[" * 900 + b"]" * 900, b'"\\ud800"', b"1e999", b"null"):
        async with asgi(web.server) as http:
            fields = {VERSION: revision, METHOD: "tools/call", NAME: "harmless"}
            reply = await http.post(body % (uri, meta), **fields)
        assert reply.status == 400
        assert reply.error["code"] in (-32020, -32602, -32700)
    assert web.called == []
