"""Header fields that repeat the body: held against it before anything runs."""

from __future__ import annotations

import base64
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgen_runtime.errors import HeaderMismatchError
from mcpgen_runtime.facts import Lifecycle, Revisions
from mcpgen_runtime.protocol import jsonrpc
from mcpgen_runtime.revisions import REVISIONS as SERVED
from mcpgen_runtime.server.asgi.header_validation import HeaderValidator
from mcpgen_runtime.server.asgi.request import HttpRequest
from package.asgi_client import asgi, fields_of
from package.asgi_stream import Reply
from package.rules import revisions_holding
from package.server.asgi.web import UNICODE, Web
from package.wire import HANDSHAKE, encode_message, facts, request

REVISIONS = revisions_holding("headers.server-validates")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("revision", REVISIONS),
    pytest.mark.processes,
]

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


# ---- the parts of a check


OLDER = HANDSHAKE[-1]
UNKNOWN = "v999.0.0"


def validator_of(revisions: Revisions = SERVED) -> HeaderValidator:
    """A validator of a server whose tool `marked` has a parameter header."""
    return HeaderValidator(
        revisions, lambda tool: {("region",): "Region"} if tool == "marked" else {}
    )


def request_with(**fields: str | None) -> HttpRequest:
    headers = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in fields.items()
        if value is not None
    ]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": headers})


@pytest.mark.parametrize("shown", [None, OLDER, UNKNOWN, "", "its own"])
def test_a_header_names_a_revision_without_sessions(revision: str, shown: str | None) -> None:
    head = request_with(mcp_protocol_version=revision if shown == "its own" else shown)
    assert validator_of().names_revision(head) is (shown == "its own")
    assert not validator_of(SERVED.of(Lifecycle.HANDSHAKE)).names_revision(head)


@pytest.mark.parametrize(
    ("method", "header", "body", "applies"),
    [
        ("tools/list", None, "its own", True),
        ("tools/list", OLDER, "its own", True),
        ("tools/list", None, UNKNOWN, True),
        ("tools/list", None, None, False),
        ("tools/list", OLDER, None, False),
        ("tools/list", f" {OLDER}", None, False),
        ("tools/list", UNKNOWN, None, True),
        ("tools/list", "its own", None, True),
        ("server/discover", None, "its own", False),
        ("server/discover", OLDER, "its own", False),
        ("server/discover", "its own", None, True),
        (None, "its own", None, True),  # a batch
        (None, None, None, False),
    ],
)
def test_header_or_body_decide_between_kinds_of_revisions(
    revision: str, method: str | None, header: str | None, body: str | None, applies: bool
) -> None:
    head = request_with(mcp_protocol_version=revision if header == "its own" else header)
    message: jsonrpc.Message | None = None
    if method is not None:
        key = facts(revision).meta.protocol_version
        meta = {} if body is None else {key: revision if body == "its own" else body}
        text = encode_message(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
        )
        message = jsonrpc.parse(text)
    validator = validator_of()
    assert validator.applies(head, message) is applies
    older = validator_of(SERVED.of(Lifecycle.HANDSHAKE))
    assert not older.applies(head, message)


def test_an_escaped_key_names_the_revision_too(revision: str) -> None:
    key = f"{facts(revision).meta.protocol_version}".replace("/", "\\/")
    params = f'{{"_meta":{{"{key}":"{revision}"}}}}'
    text = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}'
    assert validator_of().applies(request_with(), jsonrpc.parse(text.encode()))


@pytest.mark.parametrize("params", ["[]", "7", '{"_meta":7}', None])
def test_params_of_another_type_name_no_revision(revision: str, params: str | None) -> None:
    members = "" if params is None else f',"params":{params}'
    text = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list"{members}}}'
    message, validator = jsonrpc.parse(text.encode()), validator_of()
    assert not validator.applies(request_with(), message)
    assert validator.applies(request_with(mcp_protocol_version=revision), message)


@pytest.mark.parametrize(
    ("method", "name", "changed", "matches"),
    [
        ("tools/call", "echo", {}, True),
        ("tools/call", "echo", {VERSION: OLDER}, False),
        ("tools/call", "echo", {VERSION: None}, False),
        ("tools/call", "echo", {METHOD: "tools/list"}, False),
        ("tools/call", "echo", {METHOD: None}, False),
        ("tools/call", "echo", {NAME: "other"}, False),
        ("tools/call", "echo", {NAME: None}, False),
        ("tools/call", 7, {NAME: "7"}, False),
        ("tools/call", "=?base64?eA==?=", {}, False),
        ("tools/call", "\xfc", {}, False),
        ("tools/call", "marked", {}, False),  # its parameter header is compared too
        ("prompts/get", "marked", {}, True),
        ("tools/list", None, {}, True),
    ],
)
def test_fields_that_repeat_plain_text_certainly_match(
    revision: str, method: str, name: Any, changed: dict[str, str | None], matches: bool
) -> None:
    given: dict[str, str | None] = {
        VERSION: revision,
        METHOD: method,
        NAME: name if isinstance(name, str) else None,
    }
    head = request_with(**{**given, **changed})
    params, row = SimpleNamespace(name=name), SERVED[revision].client_requests[method]
    assert validator_of().matches(head, SERVED[revision], row, params) is matches


@pytest.mark.parametrize(
    ("method", "field", "is_valid"),
    [
        ("notifications/x", None, True),
        ("notifications/x", "notifications/x", True),
        ("notifications/x", "notifications/y", False),
        ("=?x", "=?x", True),  # no encoding is needed, so there is none
        ("notifications/x", sentinel("notifications/x"), False),
        ("\xfc", sentinel("\xfc"), True),
        ("\xfc", "\xfc", False),
    ],
)
def test_the_method_of_a_notification_may_be_repeated(
    revision: str, method: str, field: str | None, is_valid: bool
) -> None:
    head = request_with(mcp_protocol_version=revision, mcp_method=field)
    message = jsonrpc.parse(encode_message({"jsonrpc": "2.0", "method": method}))
    assert isinstance(message, jsonrpc.Notification)
    with nullcontext() if is_valid else pytest.raises(HeaderMismatchError):
        validator_of().check_notification(head, message)


def test_a_prompt_has_no_parameter_headers_of_a_tool(revision: str) -> None:
    message = request(revision, "prompts/get", {"name": "marked", "arguments": {"region": "eu"}})
    fields = {name.lower(): value for name, value in fields_of(revision, message).items()}
    for each, is_valid in ((message, True), ({**message, "method": "tools/call"}, False)):
        parsed, validator = jsonrpc.parse(encode_message(each)), validator_of()
        assert isinstance(parsed, jsonrpc.Request)
        head = request_with(**{**fields, METHOD: each["method"]})
        with nullcontext() if is_valid else pytest.raises(HeaderMismatchError, match="Region"):
            validator.check(head, parsed, validator.values_of(parsed))


async def test_a_body_of_two_lengths_is_refused_and_ends_a_connection(revision: str) -> None:
    message = request(revision, "tools/list")
    both = {"content-length": str(len(encode_message(message))), "transfer-encoding": "chunked"}
    async with asgi(Web().server) as http:
        fields = fields_of(revision, message)
        for more, status in (({}, 200), (both, 400), ({}, 200), (both, 400)):
            reply = await http.post(message, **fields, **more)
            assert (reply.status, reply.fields.get("connection")) == (
                status,
                "close" if status == 400 else None,
            )
        assert reply.error["message"] == "expected Content-Length or Transfer-Encoding, got both"
        for method, path in (("GET", "/mcp"), ("DELETE", "/mcp"), ("POST", "/elsewhere")):
            reply = await http.request(method, path=path, **both)
            assert (reply.status, reply.fields["connection"]) == (400, "close")
