"""Header fields that repeat the body: held against it before anything runs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kit.asgi_client import asgi, fields_of
from kit.asgi_stream import Reply
from kit.rules import revisions_holding
from kit.web import UNICODE, Web
from kit.wire import HANDSHAKE, encode_message, facts, request

REVISIONS = revisions_holding("headers.server-validates")

pytestmark = [pytest.mark.parametrize("revision", REVISIONS), pytest.mark.processes]

VERSION, METHOD, NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
ECHO = {"name": "echo", "arguments": {"text": "hi"}}


def sentinel(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return f"=?base64?{base64.b64encode(raw).decode()}?="


async def post(web: Web, revision: str, message: dict[str, Any], **changed: str | None) -> Reply:
    async with asgi(web.server) as http:
        return await http.post(message, **(fields_of(revision, message) | changed))


def is_mismatch(reply: Reply, id: int | str = 1) -> bool:
    return (reply.status, reply.error["code"], reply.json["id"]) == (400, -32020, id)


UNREADABLE = [
    UNICODE.encode().decode("latin-1"),
    "memo://one\x01",
    "=?base64?bWVtbzovL29uZQ?=",  # no padding
    "=?base64?bWVtbzovL29uZQ==",  # no suffix: a literal
    sentinel(b"memo://one\xff"),
]
STANDARD: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", ECHO),
    ("prompts/get", {"name": "greeting", "arguments": {"who": "Bo"}}),
    ("resources/read", {"uri": "memo://one"}),
]
OTHERS = [
    *((METHOD, value) for value in ("tools/list", "TOOLS/CALL", "tools/call, tools/call", "")),
    *((NAME, value) for value in ("Echo", "", "echo, echo", sentinel("foo"))),
]


@pytest.mark.requirement(
    "headers.missing-required",
    "headers.mismatch-status-400",
    "headers.mismatch-code",
    "headers.server-validates",
    "headers.values-case-sensitive",
    "headers.mismatch-not-legacy-code",
    "headers.invalid-characters",
    "headers.undecodable-base64",
)
@pytest.mark.requirement("http.version-header-missing-reject")
@pytest.mark.requirement("http.version-header-mismatch", "meta.header-matches-body")
@pytest.mark.requirement("jsonrpc.code-legacy-range-unused", "jsonrpc.code-legacy-range-closed")
@pytest.mark.parametrize(
    ("method", "params", "changed", "body"),
    [
        *((*each, {field: None}, None) for field in (VERSION, METHOD, NAME) for each in STANDARD),
        *(("tools/call", ECHO, {field: value}, None) for field, value in OTHERS),
        *(("tools/list", {}, {}, named) for named in ("v999.0.0", "2025-11-25")),
        *(("tools/list", {}, {VERSION: named}, None) for named in ("v999.0.0", "2025-11-25")),
        ("tools/list", {}, {VERSION: "2025-11-25"}, "2025-06-18"),
        *(
            ("resources/read", {"uri": uri}, {NAME: value}, None)
            for uri in ("memo://one", UNICODE)
            for value in UNREADABLE
        ),
    ],
)
async def test_fields_that_do_not_repeat_the_body_are_a_mismatch(
    revision: str, method: str, params: Any, changed: dict[str, str | None], body: str | None
) -> None:
    web, message = Web(), request(revision, method, params, id="a")
    message["params"]["_meta"][facts(revision).meta.protocol_version] = body or revision
    reply = await post(web, revision, message, **changed)
    assert is_mismatch(reply, "a")
    absent = [name for name, value in changed.items() if value is None]
    assert all(name in reply.error["message"].lower() for name in absent)
    assert web.called == []


@pytest.mark.requirement("headers.optional-whitespace")
@pytest.mark.requirement("headers.decode-before-compare", "headers.reader-decodes")
@pytest.mark.parametrize(
    ("method", "params", "changed"),
    [
        pytest.param("tools/list", {}, {NAME: "whatever"}, id="no name is needed"),
        ("tools/call", ECHO, {NAME: "  echo  ", METHOD: " tools/call"}),
        ("tools/call", ECHO, {NAME: sentinel("echo")}),
        ("resources/read", {"uri": UNICODE}, {NAME: sentinel(UNICODE)}),
    ],
)
async def test_fields_may_have_white_space_around_and_encoded_names(
    revision: str, method: str, params: dict[str, Any], changed: dict[str, str]
) -> None:
    changed = {VERSION: f"{revision}\t", **changed}
    reply = await post(Web(), revision, request(revision, method, params), **changed)
    assert (reply.status, "result" in reply.json) == (200, True)


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


NAMED = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize(
    ("header", "params", "is_for_a_session"),
    [
        pytest.param(None, '{"_meta":{"NAMED":"OWN"}}', False, id="the body names its revision"),
        pytest.param("OLDER", '{"_meta":{"NAMED":"OWN"}}', False, id="the header an older one"),
        pytest.param(None, '{"_meta":{"NAMED":"v999"}}', False, id="the body an unknown one"),
        pytest.param(None, '{"_meta":{"ESCAPED":"OWN"}}', False, id="by an escaped key"),
        pytest.param("v999", "{}", False, id="the header alone an unknown one"),
        pytest.param("OWN", "{}", False, id="the header alone its own"),
        *(
            pytest.param("OWN", params, False, id=f"the header, above {params}")
            for params in ("[]", "7", '{"_meta":7}')
        ),
        *((None, params, True) for params in ("{}", "[]", "7", '{"_meta":7}')),
        pytest.param("OLDER", "{}", True, id="the header alone an older one"),
        pytest.param(" OLDER", "{}", True, id="after white space"),
    ],
)
async def test_header_or_body_say_whether_a_request_is_for_a_session(
    revision: str, header: str | None, params: str, is_for_a_session: bool
) -> None:
    assert facts(revision).meta.protocol_version == NAMED
    words = {"OWN": revision, "OLDER": HANDSHAKE[-1], "NAMED": NAMED}
    words["ESCAPED"] = NAMED.replace("/", "\\/")
    for word, text in words.items():
        params = params.replace(word, text)
        header = None if header is None else header.replace(word, text)
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}'
    async with asgi(Web().server) as http:
        reply = await http.post(body.encode(), **{VERSION: header, METHOD: "tools/list"})
        assert reply.status == 400
        assert ("mcp-session-id" in reply.error["message"].lower()) is is_for_a_session


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
async def test_the_method_of_a_notification_may_be_repeated(
    revision: str, method: str, field: str | None, is_valid: bool
) -> None:
    message = {"jsonrpc": "2.0", "method": method}
    async with asgi(Web().server) as http:
        reply = await http.post(message, **{VERSION: revision, METHOD: field})
        assert reply.status == (202 if is_valid else 400)


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


async def call(
    web: Web, revision: str, arguments: Any, fields: dict[str, str] | None = None
) -> Reply:
    """Call the tool with parameter headers, given without their prefix."""
    message = request(revision, "tools/call", {"name": "marked", "arguments": arguments})
    given = {f"Mcp-Param-{name}": value for name, value in (fields or {}).items()}
    async with asgi(web.server) as http:
        return await http.post(message, **(fields_of(revision, message) | given))


FITTING: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "us-west1"}, {"REGION": "us-west1"}),
    ({"region": ""}, {"Region": ""}),
    ({"region": "Hello, \u4e16\u754c"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
    ({"region": "=?base64?literal?="}, {"Region": sentinel("=?base64?literal?=")}),
    ({"region": "a"}, {"Region": "  a "}),
    ({"count": 42}, {"Count": "42.0"}),
    ({"dry": True}, {"Dry": "true"}),
    ({"deep": {"inner": "here"}}, {"Inner": "here"}),
    ({"region": None}, {}),
    ({"plain": "no header"}, {"Plain": "something else"}),
    ({}, {"Unknown": "us\x01west"}),
]


@pytest.mark.requirement(
    "headers.param-not-expected",
    "headers.integer-numeric-compare",
    "headers.sentinel-exact",
    "headers.reader-decodes",
    "headers.body-is-truth",
    "headers.param-statically-reachable",
    "headers.param-integer-range",
)
@pytest.mark.parametrize(("arguments", "fields"), FITTING)
async def test_a_call_whose_fields_repeat_its_arguments_is_served(
    revision: str, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    web = Web()
    reply = await call(web, revision, arguments, fields)
    told = reply.result["content"][0]["text"]
    if any(value is None for value in arguments.values()):
        assert reply.status == 200  # the schema of this tool takes no null, whatever HTTP says
    else:
        assert (reply.status, told) == (200, "done")
        assert web.called == [arguments]


DIFFERING: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "us-west1"}, {}),
    ({"deep": {"inner": "here"}}, {}),
    ({"region": "us-west1"}, {"Region": "eu"}),
    ({"region": "us-west1"}, {"Region": "US-WEST1"}),
    ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8?="}),
    ({"region": "us west"}, {"Region": "us\x01west"}),
    ({"region": "a"}, {"Region": "a, a"}),
    ({"count": 42}, {"Count": "4.2e1x"}),
    ({"deep": {"inner": "here"}}, {"Inner": "there"}),
    ({"region": None}, {"Region": "us-west1"}),
    ({}, {"Region": "us-west1"}),
    ({"deep": "flat"}, {"Inner": "flat"}),
    ({"region": ["us"]}, {"Region": "us"}),
]


@pytest.mark.requirement(
    "headers.param-validated",
    "headers.param-omitted-reject",
    "headers.param-invalid-characters",
    "headers.undecodable-base64",
    "headers.values-case-sensitive",
    "headers.mismatch-status-400",
)
@pytest.mark.parametrize(("arguments", "fields"), DIFFERING)
async def test_a_call_whose_fields_say_something_else_is_refused(
    revision: str, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    web = Web()
    assert is_mismatch(await call(web, revision, arguments, fields))
    assert web.called == []


async def test_a_tool_that_came_later_has_its_fields_checked_too(revision: str) -> None:
    web = Web()
    message = request(revision, "tools/call", {"name": "later", "arguments": {"at": "noon"}})
    properties = {"at": {"type": "string", "x-mcp-header": "At"}}

    async def later(at: str = "") -> str:
        return at

    async with asgi(web.server) as http:
        web.server.tool(input_schema={"type": "object", "properties": properties})(later)
        fields = fields_of(revision, message)
        assert is_mismatch(await http.post(message, **fields))
        assert (await http.post(message, **fields, **{"mcp-param-at": "noon"})).status == 200
