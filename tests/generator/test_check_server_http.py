"""The checks of `mcpgen check-server` judge the HTTP responses that each case gives."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest

from generator.checked_in_memory import judgement, session_over_http, session_with

OLDEST, OLD, NEW = "2024-11-05", "2025-11-25", "2026-07-28"
STREAM = {"content-type": "text/event-stream"}
OK: tuple[Any, ...] = (200, {"result": {}})
OPENED = (OK, (202,))
"""The responses that open another session."""
GONE = httpx2.ConnectError("refused")
ORIGIN = "the origin http://evil.example"
CODE, VERSION = -32020, -32022


def failed(status: int, code: int, **members: Any) -> tuple[int, dict[str, Any]]:
    """A response with an error."""
    return status, {"error": {"code": code, "message": "no", **members}}


def event(method: str, **params: Any) -> tuple[Any, ...]:
    """A stream of one notification."""
    text = str({"jsonrpc": "2.0", "method": method, "params": params}).replace("'", '"')
    return 200, f"data: {text}\n\n".encode(), STREAM


Case = tuple[str, str, list[Any], str]
FAILED = 'got status 200 with error 1 ("no")'
GET = "expected text/event-stream, or status 405, for GET, got status "
RESPONSES: list[Case] = [
    ("http.endpoint-post-get", OLD, [*OPENED, (405,)], ""),
    (
        "http.endpoint-post-get",
        OLD,
        [*OPENED, (404,)],
        "expected a status other than 404 for GET, got status 404",
    ),
    (
        "http.endpoint-post-get",
        OLD,
        [*OPENED, GONE],
        "expected a status other than 404 for GET, got GET failed: refused",
    ),
    ("http.get-reply", OLD, [*OPENED, (405,)], ""),
    ("http.get-reply", OLD, [*OPENED, (200, b"", STREAM)], ""),
    ("http.get-reply", OLD, [*OPENED, (200,)], f"{GET}200 with no type"),
    ("http.get-reply", OLD, [*OPENED, (201, b"", STREAM)], f"{GET}201 with text/event-stream"),
    (
        "http.get-reply",
        OLD,
        [*OPENED, (404,)],
        "not applicable: the endpoint does not know GET: http.endpoint-post-get",
    ),
    ("http-compat.get-delete-405", NEW, [(405,), (405,)], ""),
    (
        "http-compat.get-delete-405",
        NEW,
        [(405,), (404,)],
        "expected status 405 for DELETE, got status 404",
    ),
    ("http.post-202", OLD, [(202,)], ""),
    (
        "http.post-202",
        OLD,
        [(202, b"x")],
        "expected status 202 without a body, got status 202 with 1 bytes",
    ),
    (
        "http.post-202",
        OLD,
        [(400,)],
        "expected status 202 without a body, got status 400 with 0 bytes",
    ),
    (
        "http.post-202-notification",
        NEW,
        [(400,)],
        "not applicable: the server refuses unknown notifications",
    ),
    (
        "http.post-202-notification",
        NEW,
        [(399,)],
        "expected status 202 without a body, got status 399 with 0 bytes",
    ),
    (
        "http.post-202-notification",
        NEW,
        [GONE],
        "expected status 202 without a body, got POST failed: refused with 0 bytes",
    ),
    *(
        (
            "http.post-unacceptable-status",
            OLD,
            [answer],
            f"expected an error status for a message without method, got {came}" if came else "",
        )
        for answer, came in (
            ((400,), ""),
            ((599,), ""),
            ((399,), "status 399"),
            ((600,), "status 600"),
            (GONE, "POST failed: refused"),
        )
    ),
    ("http.request-reply-type", OLD, [OK], ""),
    (
        "http.request-reply-type",
        OLD,
        [(200, b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n', STREAM)],
        "",
    ),
    (
        "http.request-reply-type",
        OLD,
        [(200, b"")],
        "expected application/json or text/event-stream, got status 200 with no type",
    ),
    (
        "http.request-reply-type",
        OLD,
        [(200, b"", STREAM)],
        "expected the response in it, got status 200 with the stream ended without the response",
    ),
    (
        "http.final-response-ends-stream",
        NEW,
        [OK],
        "not applicable: responses are no streams: application/json",
    ),
    ("http.independent-process", OLD, [*OPENED, OK, OK, failed(200, 1)], ""),
    *(
        (
            "http.independent-process",
            OLD,
            [*OPENED, *answers, failed(200, 1)],
            f"expected a result of the {client} client's request, {FAILED}",
        )
        for answers, client in (([], "first"), ([OK], "second"))
    ),
    ("transport-security.validate-origin", OLD, [(403,)], ""),
    (
        "transport-security.validate-origin",
        OLD,
        [OK],
        f"expected a refusal of {ORIGIN}, got status 200 with result {{}}",
    ),
    (
        "transport-security.validate-origin",
        OLDEST,
        [OK],
        "not applicable: the rule of this revision is about HTTP with SSE",
    ),
    ("transport-security.origin-403", OLD, [(403,)], ""),
    (
        "transport-security.origin-403",
        OLD,
        [(402,)],
        f"expected status 403 for {ORIGIN}, got status 402",
    ),
    (
        "transport-security.origin-403",
        OLD,
        [OK],
        "not applicable: foreign origins are served: transport-security.validate-origin",
    ),
    ("http.version-header-invalid-400", OLD, [(400,), (400,), OK], ""),
    *(
        (
            "http.version-header-invalid-400",
            OLD,
            [*answers, (404,)],
            f"expected status 400 for MCP-Protocol-Version: {version}, got status 404",
        )
        for answers, version in (([], "1900-01-01"), ([(400,)], "abc"))
    ),
    (
        "http.version-header-missing-default",
        OLD,
        [failed(200, 1)],
        f"expected a result of a request without MCP-Protocol-Version, {FAILED}",
    ),
    ("http.unknown-method-404", NEW, [(404,)], ""),
    (
        "http.unknown-method-404",
        NEW,
        [(400,)],
        "expected status 404 for an unknown method, got status 400",
    ),
    ("http.missing-meta-400", NEW, [(400,)], ""),
    (
        "http.missing-meta-400",
        NEW,
        [OK],
        "expected status 400 without io.modelcontextprotocol/clientCapabilities, got status 200",
    ),
    ("http.no-sessions", NEW, [OK], ""),
    (
        "http.no-sessions",
        NEW,
        [(*OK, {"Mcp-Session-Id": "a"})],
        'expected no session id in the response, got "a"',
    ),
    ("jsonrpc.notification-no-response", OLD, [(202,)], ""),
    (
        "jsonrpc.notification-no-response",
        OLD,
        [(399, {"jsonrpc": "2.0", "error": {"code": 1}})],
        "expected no answer to a notification, got status 399 with error 1 (null)",
    ),
    *(
        (
            "jsonrpc.notification-no-response",
            OLD,
            [(status, {"jsonrpc": "2.0", "error": {"code": 1}})],
            "not applicable: refused by an HTTP status, which may have a body",
        )
        for status in (400, 401)
    ),
    ("jsonrpc.notification-no-response", OLD, [GONE], ""),
    ("jsonrpc.batch-removed", OLD, [(400, {"jsonrpc": "2.0", "error": {"code": 1}})], ""),
    (
        "jsonrpc.batch-removed",
        OLD,
        [(200, [{"id": 1, "result": {}}])],
        'expected no result for the request of a batch, got [{"id": 1, "result": {}}]',
    ),
    (
        "cancellation.invalid-ignored",
        OLD,
        [(400, {"jsonrpc": "2.0", "error": {"code": 1}}), (202,), (202,), OK],
        "",
    ),
    (
        "cancellation.invalid-ignored",
        OLD,
        [(399, {"jsonrpc": "2.0", "error": {"code": 1}})],
        (
            'expected no answer to a cancellation with the params {"requestId": 999999}, '
            "got status 399 with error 1 (null)"
        ),
    ),
]


@pytest.mark.parametrize(("rule", "name", "answers", "verdict"), RESPONSES)
def test_responses_are_judged(rule: str, name: str, answers: list[Any], verdict: str) -> None:
    assert judgement(rule, session_over_http(name, answers)) == verdict


MISMATCH = "expected status 400 with error -32020"
REFUSAL = "not applicable: the server does not refuse it: headers.server-validates"
SUPPORTED = "expected 2026-07-28 in supported, got "
FIELDS: list[Case] = [
    *(
        (rule, NEW, [answer], f"{MISMATCH}{of}, got {came}" if came else "")
        for rule, of in (
            ("http.version-header-missing-reject", ""),
            ("http.version-header-mismatch", " for two versions"),
            ("headers.missing-required", " without Mcp-Method"),
        )
        for answer, came in (
            (failed(400, CODE), ""),
            (failed(401, CODE), 'status 401 with error -32020 ("no")'),
            (failed(400, VERSION), 'status 400 with error -32022 ("no")'),
        )
    ),
    ("http.version-unsupported", NEW, [failed(400, VERSION, data={"supported": [NEW]})], ""),
    ("http.version-unsupported", NEW, [failed(400, VERSION, data=5)], f"{SUPPORTED}5"),
    (
        "http.version-unsupported",
        NEW,
        [failed(400, VERSION, data={"supported": 5})],
        f'{SUPPORTED}{{"supported": 5}}',
    ),
    ("http.version-unsupported", NEW, [failed(400, VERSION, data={})], f"{SUPPORTED}{{}}"),
    (
        "http.version-unsupported",
        NEW,
        [failed(200, VERSION)],
        (
            "expected status 400 with error -32022 for the version 1900-01-01, "
            'got status 200 with error -32022 ("no")'
        ),
    ),
    (
        "http.version-unsupported",
        NEW,
        [failed(400, CODE)],
        (
            "expected status 400 with error -32022 for the version 1900-01-01, "
            'got status 400 with error -32020 ("no")'
        ),
    ),
    (
        "headers.server-validates",
        NEW,
        [OK],
        "expected a refusal of another method in Mcp-Method, got status 200 with result {}",
    ),
    ("headers.mismatch-status-400", NEW, [OK], REFUSAL),
    ("headers.mismatch-status-400", NEW, [failed(400, 1)], ""),
    (
        "headers.mismatch-status-400",
        NEW,
        [failed(404, 1)],
        "expected status 400 for another method in the header, got status 404",
    ),
    ("headers.mismatch-code", NEW, [OK], REFUSAL),
    ("headers.mismatch-code", NEW, [failed(404, CODE)], ""),
    (
        "headers.mismatch-code",
        NEW,
        [failed(400, VERSION)],
        (
            "expected error -32020 for another method in the header, "
            'got status 400 with error -32022 ("no")'
        ),
    ),
    (
        "headers.names-case-insensitive",
        NEW,
        [failed(400, CODE)],
        'expected a result of a request with MCP-METHOD, got status 400 with error -32020 ("no")',
    ),
    (
        "headers.values-case-sensitive",
        NEW,
        [OK],
        "expected a refusal of the value SERVER/DISCOVER, got status 200 with result {}",
    ),
    (
        "headers.decode-before-compare",
        NEW,
        [failed(400, CODE)],
        (
            "expected a name in Base64 to be decoded and compared, "
            'got status 400 with error -32020 ("no")'
        ),
    ),
    ("headers.decode-before-compare", NEW, [failed(400, VERSION)], ""),
    ("headers.undecodable-base64", NEW, [failed(400, CODE)], ""),
    *(
        (
            "headers.undecodable-base64",
            NEW,
            [answer],
            (
                "expected status 400 with error -32020 for a name that is no Base64, "
                f'got status {answer[0]} with error {answer[1]["error"]["code"]} ("no")'
            ),
        )
        for answer in (failed(400, VERSION), failed(200, CODE))
    ),
    (
        "http-compat.session-header-ignored",
        NEW,
        [failed(400, 1)],
        'expected a result of a request with a session id, got status 400 with error 1 ("no")',
    ),
    (
        "http-compat.last-event-id-ignored",
        NEW,
        [failed(400, 1)],
        'expected a result of a request with Last-Event-ID, got status 400 with error 1 ("no")',
    ),
    ("meta.missing-required-rejected", NEW, [failed(400, -32602), failed(400, CODE)], ""),
    ("meta.missing-required-rejected", NEW, [failed(400, -32602)] * 2, ""),
    (
        "meta.missing-required-rejected",
        NEW,
        [failed(400, CODE)],
        (
            "expected error -32602 without io.modelcontextprotocol/clientCapabilities in _meta, "
            'got status 400 with error -32020 ("no")'
        ),
    ),
    (
        "meta.missing-required-rejected",
        NEW,
        [failed(400, -32602), failed(400, VERSION)],
        (
            "expected error -32602 or -32020 without io.modelcontextprotocol/protocolVersion in "
            '_meta, got status 400 with error -32022 ("no")'
        ),
    ),
    (
        "jsonrpc.code-invalid-params",
        NEW,
        [failed(400, -32602)],
        "not applicable: a header field would have to match",
    ),
    ("jsonrpc.code-invalid-params", OLD, [failed(400, -32602)], ""),
]


@pytest.mark.parametrize(("rule", "name", "answers", "verdict"), FIELDS)
def test_responses_about_fields_are_judged(
    rule: str, name: str, answers: list[Any], verdict: str
) -> None:
    assert judgement(rule, session_over_http(name, answers, capabilities={"tools": {}})) == verdict


@pytest.mark.parametrize("rule", ["headers.decode-before-compare", "headers.undecodable-base64"])
def test_names_in_fields_are_those_of_tools(rule: str) -> None:
    verdict = judgement(rule, session_over_http(NEW, [failed(400, 1)]))
    assert verdict == "not applicable: the server declares no tools"


@pytest.mark.parametrize(
    ("rule", "end"),
    [
        ("http-compat.get-delete-405", ", which have both"),
        ("http.version-header-missing-reject", ""),
    ],
)
def test_a_server_of_older_revisions_too_may_serve_them(rule: str, end: str) -> None:
    verdict = judgement(rule, session_over_http(NEW, [OK], spoken=("2025-06-18", OLD, NEW)))
    assert verdict == f"not applicable: the server also speaks 2025-06-18, {OLD}{end}"


CHARSET = "expected a session id of visible ASCII characters, got "
GUESSED = "expected two ids that no other id gives away, got "
NONE = "not applicable: the server assigns no session id"
SESSIONS: list[tuple[str, str | None, list[Any], str]] = [
    *(
        (rule, None, [], NONE)
        for rule in (
            "http.session-id-charset",
            "http.session-id-missing-400",
            "http.session-gone-404",
            "transport-security.session-id-nondeterministic",
        )
    ),
    ("http.session-id-charset", "!~", [], ""),
    ("http.session-id-charset", "", [], f'{CHARSET}""'),
    ("http.session-id-charset", "a b", [], f'{CHARSET}"a b"'),
    ("http.session-id-charset", "a\x7f", [], f'{CHARSET}"a\\u007f"'),
    ("http.session-id-missing-400", "a", [(400,)], ""),
    (
        "http.session-id-missing-400",
        "a",
        [(404,)],
        "expected status 400 without the session id, got status 404",
    ),
    ("http.session-gone-404", "a", [*OPENED, (299,), (404,)], ""),
    (
        "http.session-gone-404",
        "a",
        [*OPENED, (200,), (400,)],
        "expected status 404 for a deleted session, got status 400",
    ),
    (
        "http.session-gone-404",
        "a",
        [*OPENED, (405,)],
        "not applicable: the server lets no client end a session",
    ),
    *(
        (
            "http.session-gone-404",
            "a",
            [*OPENED, answer],
            f"not applicable: the session is not deleted: {came}",
        )
        for answer, came in (((300,), "status 300"), (GONE, "DELETE failed: refused"))
    ),
    *(
        (
            "transport-security.session-id-nondeterministic",
            first,
            [(*OK, {"MCP-Session-Id": second}), (202,)],
            f'{GUESSED}["{first}", "{second}"]' if is_guessed else "",
        )
        for first, second, is_guessed in (
            ("s", "s", True),
            ("s1000", "s1999", True),
            ("s1999", "s1000", True),
            ("s1000", "s2000", False),
            ("s1", "t2", False),
            ("s1", "s", False),
            ("s", "s1", False),
        )
    ),
    (
        "transport-security.session-id-nondeterministic",
        "",
        [*OPENED],
        f'{GUESSED}["", ""]',
    ),
]


@pytest.mark.parametrize(("rule", "session_id", "answers", "verdict"), SESSIONS)
def test_responses_about_sessions_are_judged(
    rule: str, session_id: str | None, answers: list[Any], verdict: str
) -> None:
    assert judgement(rule, session_over_http(OLD, answers, session_id=session_id)) == verdict


ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
KEY = "io.modelcontextprotocol/subscriptionId"
NO_STREAM = "not applicable: the reply is no stream: http.listen-response-stream"
NO_CHANGES = "not applicable: the server has no changes to announce"
SILENT = "expected an acknowledgement, got status 200 with the stream ended without the response"
UNKNOWN = failed(404, -32601)
SUBSCRIPTIONS: list[tuple[str, tuple[Any, ...], str]] = [
    ("http.listen-response-stream", event("x"), ""),
    (
        "http.listen-response-stream",
        OK,
        "expected text/event-stream for subscriptions/listen, got status 200 with application/json",
    ),
    (
        "http.listen-response-stream",
        (200,),
        "expected text/event-stream for subscriptions/listen, got status 200 with no type",
    ),
    ("subscriptions.ack-first", OK, NO_STREAM),
    ("subscriptions.ack-first", (200, b"", STREAM), SILENT),
    ("subscriptions.ack-first", event(ACKNOWLEDGED), ""),
    (
        "subscriptions.ack-first",
        event("x"),
        f'expected {ACKNOWLEDGED} first, got {{"jsonrpc": "2.0", "method": "x", "params": {{}}}}',
    ),
    ("subscriptions.id-value", event(ACKNOWLEDGED, _meta={KEY: 1}), ""),
    (
        "subscriptions.id-value",
        event(ACKNOWLEDGED, _meta={KEY: "1"}),
        f'expected 1 as {KEY}, got "1"',
    ),
    ("subscriptions.id-value", event(ACKNOWLEDGED, _meta=5), f"expected 1 as {KEY}, got null"),
    (
        "subscriptions.id-value",
        (200, b'data: {"method": "x", "params": 5}\n\n', STREAM),
        f"expected 1 as {KEY}, got null",
    ),
    ("http.x-accel-buffering", OK, NO_STREAM),
    ("http.x-accel-buffering", (*event("x")[:2], {**STREAM, "X-Accel-Buffering": "no"}), ""),
    (
        "http.x-accel-buffering",
        event("x"),
        "expected X-Accel-Buffering: no on a stream, got null",
    ),
]


@pytest.mark.parametrize(("rule", "answer", "verdict"), SUBSCRIPTIONS)
def test_subscriptions_are_judged(rule: str, answer: tuple[Any, ...], verdict: str) -> None:
    assert judgement(rule, session_over_http(NEW, [answer])) == verdict


def test_a_server_without_changes_needs_no_subscriptions() -> None:
    rule, tools = "http.listen-response-stream", {"tools": {"listChanged": True}}
    assert judgement(rule, session_over_http(NEW, [UNKNOWN])) == NO_CHANGES
    for answer, capabilities in ((UNKNOWN, tools), (failed(404, -32600), {})):
        session = session_over_http(NEW, [answer], capabilities=capabilities)
        assert judgement(rule, session).startswith("expected text/event-stream")


@pytest.mark.parametrize(("name", "method"), [(OLD, None), (NEW, "server/discover")])
def test_unreadable_bytes_have_the_fields_of_a_request(name: str, method: str | None) -> None:
    sent: list[httpx2.Request] = []
    session = session_over_http(name, [(400,)] * 3, sent=sent)

    async def post() -> None:
        await session.post(b"{]")
        await session.post(b"{]", {"Mcp-Method": "x"})
        await session.post({"jsonrpc": "2.0", "method": "a"}, {"y": "z"})

    anyio.run(post)
    assert [request.content for request in sent[:2]] == [b"{]"] * 2
    own = "a" if method else None
    assert [request.headers.get("mcp-method") for request in sent] == [method, "x", own]
    assert sent[2].headers["y"] == "z"


def test_opening_a_session_sends_its_fields_from_then_on() -> None:
    sent: list[httpx2.Request] = []
    opened = (*OK, {"MCP-Session-Id": "a"})
    session = session_over_http(OLD, [opened, (202,)], sent=sent)
    anyio.run(session.open)
    assert [b'"notifications/initialized"' in request.content for request in sent] == [False, True]
    assert [request.headers.get("mcp-session-id") for request in sent] == [None, "a"]
    refused = session_over_http(OLD, [failed(400, 1)], sent=sent)
    anyio.run(refused.open)
    assert len(sent) == 3


def test_tools_with_parameters_in_fields_are_not_called() -> None:
    schema = {"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}
    tool = {"name": "a", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    plain = {**tool, "name": "b", "inputSchema": {"type": "object"}}
    rule, listed = "tools.call-result-content-required", {"result": {"tools": [tool, plain]}}
    for session, name in (
        (session_over_http(NEW, [(200, listed)], capabilities={"tools": {}}), "b"),
        (session_over_http(OLD, [(200, listed)], capabilities={"tools": {}}), "a"),
        (session_with(NEW, [listed], capabilities={"tools": {}}), "a"),
    ):
        assert f"result of {name}/" in judgement(rule, session)
