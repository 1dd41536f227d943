"""Rules about all messages of a server, judged on records that each case gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from generator.checked_in_memory import judgement, session_with
from mcpgen.check_server.connections import Received

OLD, NEW = "2025-11-25", "2026-07-28"
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
LOG = {**CHANGED, "method": "notifications/message", "params": {"level": "info", "data": 1}}
PROGRESS = {**CHANGED, "method": "notifications/progress"}
LONG: dict[str, Any] = {"jsonrpc": "2.0", "x": "y" * 120}


def received(message: Any) -> Received:
    """A message of a server; bytes are a line that is no JSON."""
    if isinstance(message, bytes):
        return Received(message, error="not JSON")
    return Received(json.dumps(message).encode(), message)


def judged(rule: str, name: str, *records: Sequence[Received], capabilities: Any = None) -> str:
    """The words of a check about the records of some sessions; empty if the rule is kept."""
    session = session_with(name, capabilities=capabilities or {})
    session.records += map(list, records)
    return judgement(rule, session)


def failed(code: Any, message: Any = "m") -> dict[str, Any]:
    """An error response."""
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}


def cut(message: Any) -> str:
    """A long message as 120 characters."""
    return json.dumps(message)[:117] + "..."


LOUD = {**LOG, "params": {"level": "loud", "data": 1}}
LEVEL = (
    'expected one of ["alert", "critical", "debug", "emergency", "error", "info", "notice", '
    '"warning"] at message/'
)
UNKNOWN = 'expected a method of the revision at message/method, got "no"'
ONE_RESULT = "expected either result or error, got "
WRONG_REVISION = "expected one of [-32022, -32021, -32020], or a code that is free, got "
LEGACY = "expected no code from -32000 to -32019, got "
FIELDS = "expected an error with code and message, got "
INTEGER = "expected an integer as code, got "
TOKEN = "expected a progress token of a request, got "
UNASKED = "expected no requests of the server, got "


CASES = [
    ("jsonrpc.version-member", OLD, CHANGED, ""),
    (
        "jsonrpc.version-member",
        OLD,
        {**LONG, "jsonrpc": 2},
        f'expected jsonrpc "2.0", got {cut({**LONG, "jsonrpc": 2})}',
    ),
    ("jsonrpc.response-exactly-one", OLD, {**CHANGED, "result": {}, "error": {}}, ""),
    ("jsonrpc.response-exactly-one", OLD, {"result": {}}, ""),
    ("jsonrpc.response-exactly-one", OLD, {"error": {}}, ""),
    ("jsonrpc.response-exactly-one", OLD, LONG, ONE_RESULT + cut(LONG)),
    (
        "jsonrpc.response-exactly-one",
        OLD,
        {"result": {}, "error": {}},
        ONE_RESULT + '{"result": {}, "error": {}}',
    ),
    ("jsonrpc.result-object", OLD, CHANGED, ""),
    ("jsonrpc.result-object", OLD, {"result": {}}, ""),
    (
        "jsonrpc.result-object",
        OLD,
        {**LONG, "result": 5},
        f"expected an object as result, got {cut({**LONG, 'result': 5})}",
    ),
    ("jsonrpc.error-fields", OLD, failed(-1), ""),
    ("jsonrpc.error-fields", OLD, {"error": 5}, f"{FIELDS}5"),
    ("jsonrpc.error-fields", OLD, {"error": {"message": "m"}}, FIELDS + '{"message": "m"}'),
    ("jsonrpc.error-fields", OLD, failed(1, 2), FIELDS + '{"code": 1, "message": 2}'),
    ("jsonrpc.error-fields", OLD, {"error": LONG}, FIELDS + cut(LONG)),
    ("jsonrpc.error-code-integer", OLD, failed(1), ""),
    ("jsonrpc.error-code-integer", OLD, {"error": {"message": "m"}}, ""),
    ("jsonrpc.error-code-integer", OLD, {"error": 5}, ""),
    ("jsonrpc.error-code-integer", OLD, failed(True), f"{INTEGER}true"),
    ("jsonrpc.error-code-integer", OLD, failed("1"), f'{INTEGER}"1"'),
    ("jsonrpc.params-object", OLD, CHANGED, ""),
    ("jsonrpc.params-object", OLD, LOG, ""),
    ("jsonrpc.params-object", OLD, {"result": {}, "params": []}, ""),
    (
        "jsonrpc.params-object",
        OLD,
        {**LONG, "method": "a", "params": []},
        f"expected an object as params, got {cut({**LONG, 'method': 'a', 'params': []})}",
    ),
    ("jsonrpc.notification-no-id", OLD, CHANGED, ""),
    ("jsonrpc.notification-no-id", OLD, {"id": 1, "method": "ping"}, ""),
    ("jsonrpc.notification-no-id", OLD, {"id": 1, "method": 5}, ""),
    (
        "jsonrpc.notification-no-id",
        OLD,
        {**LONG, "method": "notifications/a", "id": 1},
        "expected no id in a notification, got "
        + cut({**LONG, "method": "notifications/a", "id": 1}),
    ),
    ("jsonrpc.server-no-requests", NEW, CHANGED, ""),
    ("jsonrpc.server-no-requests", NEW, {**CHANGED, "id": 1}, ""),
    ("jsonrpc.server-no-requests", NEW, {"id": 1, "result": {}}, ""),
    (
        "jsonrpc.server-no-requests",
        NEW,
        {**LONG, "id": 1, "method": "ping"},
        UNASKED + cut({**LONG, "id": 1, "method": "ping"}),
    ),
    ("jsonrpc.server-no-requests", NEW, {"id": 1, "method": 5}, UNASKED + '{"id": 1, "method": 5}'),
    ("jsonrpc.code-reserved-range", NEW, failed(-32100), ""),
    ("jsonrpc.code-reserved-range", NEW, failed(-32099), f"{WRONG_REVISION}-32099"),
    ("jsonrpc.code-reserved-range", NEW, failed(-32023), f"{WRONG_REVISION}-32023"),
    ("jsonrpc.code-reserved-range", NEW, failed(-32020), ""),
    ("jsonrpc.code-reserved-range", NEW, failed(-32042), ""),
    ("jsonrpc.code-reserved-range", NEW, failed(-32019), ""),
    ("jsonrpc.code-32042-not-emitted", NEW, failed(-32043), ""),
    ("jsonrpc.code-32042-not-emitted", NEW, failed(-32042), "expected no error -32042, got -32042"),
    ("jsonrpc.code-legacy-range-unused", NEW, failed(-32020), ""),
    ("jsonrpc.code-legacy-range-unused", NEW, failed(-32019), f"{LEGACY}-32019"),
    ("jsonrpc.code-legacy-range-unused", NEW, failed(-32000), f"{LEGACY}-32000"),
    ("jsonrpc.code-legacy-range-unused", NEW, failed(-32002), ""),
    ("jsonrpc.code-legacy-range-unused", NEW, failed(-31999), ""),
    ("progress.active-token-only", NEW, {**PROGRESS, "params": {"progressToken": 0}}, ""),
    ("progress.active-token-only", NEW, {**PROGRESS, "params": {"progressToken": "mcpgen"}}, ""),
    ("progress.active-token-only", NEW, {**PROGRESS, "params": {"progressToken": 1}}, f"{TOKEN}1"),
    ("progress.active-token-only", NEW, PROGRESS, f"{TOKEN}null"),
    ("progress.active-token-only", NEW, LOG, ""),
    ("jsonrpc.schema-is-authority", OLD, LOG, ""),
    ("jsonrpc.schema-is-authority", OLD, {"method": LOUD["method"], "params": {}}, ""),
    ("jsonrpc.schema-is-authority", OLD, {**LOUD, "params": []}, ""),
    ("jsonrpc.schema-is-authority", OLD, {**LOUD, "id": 1}, ""),
    ("jsonrpc.schema-is-authority", OLD, {**LOUD, "method": 5}, ""),
    ("jsonrpc.schema-is-authority", OLD, LOUD, f'{LEVEL}params/level, got "loud"'),
    ("jsonrpc.schema-is-authority", OLD, {**CHANGED, "id": 1, "method": "no"}, UNKNOWN),
    ("jsonrpc.schema-is-authority", NEW, {**CHANGED, "id": 1, "method": "no"}, ""),
    ("logging.per-request-level", NEW, CHANGED, ""),
    (
        "logging.per-request-level",
        NEW,
        LOG,
        (
            "expected no log messages, as no request asks for them, got "
            '[{"jsonrpc": "2.0", "method": "notifications/message", "p...'
        ),
    ),
]


@pytest.mark.parametrize(("rule", "name", "message", "verdict"), CASES)
def test_each_message_is_judged(rule: str, name: str, message: Any, verdict: str) -> None:
    others = [received(5), received(CHANGED), received(b"no JSON")]
    assert judged(rule, name, others, [received(message)]) == verdict


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("logging.declare-capability-initialize", OLD),
        ("logging.declare-capability-discover", NEW),
    ],
)
def test_a_server_that_logs_declares_it(rule: str, name: str) -> None:
    log, changed = received(LOG), received(CHANGED)
    expected = "expected the capability logging of a server that logs, got {}"
    assert judged(rule, name, [changed], [changed, log]) == expected
    assert judged(rule, name, [changed, log], capabilities={"logging": {}}) == ""
    assert judged(rule, name, [changed]) == ""


def test_one_unwanted_log_message_is_shown() -> None:
    log = {"method": "notifications/message"}
    verdict = judged("logging.per-request-level", NEW, [received(log)] * 2)
    assert verdict.endswith(f", got {json.dumps([log])}")


def test_an_id_of_an_event_is_unique_in_its_session() -> None:
    a, b, c, none = [Received(b"", event_id=id) for id in ("a", "b", "c", None)]
    rule = "http.event-id-unique"
    assert judged(rule, OLD, [a, b, none, none], [b, a]) == ""
    expected = 'expected each event id once in a session, got ["b", "c"] again'
    assert judged(rule, OLD, [a], [c, b, a, b, c]) == expected


def test_events_without_sessions_have_no_ids() -> None:
    events = [Received(b"", event_id=id) for id in (None, "a", "b", "c", "d")]
    rule, expected = "http.no-resumability", "expected no ids of events, got "
    assert judged(rule, NEW, events[:1], events[:1]) == ""
    assert judged(rule, NEW, events[:1], events[:2]) == expected + '["a"]'
    assert judged(rule, NEW, events) == expected + '["a", "b", "c"]'


LINE = "expected each message on one line, got a message over several lines"
ALONE = "expected messages alone on standard output, got "
SEVERAL = "not applicable: messages are written over several lines"


@pytest.mark.parametrize(
    ("lines", "on_one_line", "alone"),
    [
        ([CHANGED], "", ""),
        ([CHANGED, b"hi", CHANGED, b"ho"], "", f'{ALONE}"hi"'),
        ([[]], "", f'{ALONE}"[]"'),
        ([b'  {"a":', CHANGED, b" 1}", b"more"], LINE, SEVERAL),
        ([b"[1,", b"2]"], "", f'{ALONE}"[1,"'),
        ([b"[" * 100_000], "", f'{ALONE}"{"[" * 56}...'),
        ([b'{"a": "\xff"', b"}"], LINE, SEVERAL),
    ],
)
def test_standard_output_has_messages_in_lines(
    lines: list[Any], on_one_line: str, alone: str
) -> None:
    parts = [received(CHANGED)], [received(line) for line in lines]
    assert judged("stdio.no-embedded-newline", OLD, *parts) == on_one_line
    assert judged("stdio.stdout-only-messages", OLD, *parts) == alone
