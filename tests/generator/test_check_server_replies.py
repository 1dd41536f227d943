"""The checks of `mcpgen check-server` judge the replies that each case gives, in this process."""

from __future__ import annotations

from typing import Any

import pytest

from generator.checked_in_memory import judgement, session_with

OLDEST, BATCHES, OLD, NEW = "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"
OK: dict[str, Any] = {"result": {}}
NULL = {"jsonrpc": "2.0", "id": None}


def refused(code: int, **members: Any) -> dict[str, Any]:
    """An error, as the end of a message."""
    return {"error": {"code": code, "message": "no"}, **members}


def anonymous(code: int) -> dict[str, Any]:
    """An error without id."""
    return refused(code, jsonrpc="2.0")


def numbered(*ids: Any, **other: Any) -> list[dict[str, Any]]:
    """Results with ids."""
    return [{"jsonrpc": "2.0", "id": id, "result": {}, **other} for id in ids]


REFUSED = refused(-32600)
BATCH = "expected results for the ids [1, 2] of a batch, got "
EACH = "expected one response for each of [1, 2], and none for the notification, got "
SAME = "expected a response with the id "
NO_ID = "expected an error without the member id, got "
NO_ANSWER = "not applicable: the server does not answer: no answer"
CANCELLED = "expected no answer to a cancellation with the params "
JSONRPC: list[tuple[str, str, list[Any], str]] = [
    *(
        (
            "jsonrpc.request-id-type",
            OLD,
            [OK] * number + [REFUSED],
            f'expected a result for the id {id}, got error -32600 ("no")',
        )
        for number, id in enumerate(('"abc"', '""', "0", "-5", "4294967296"))
    ),
    ("jsonrpc.request-id-type", OLD, [*[OK] * 5, REFUSED], ""),
    ("jsonrpc.response-same-id", OLD, [OK, OK, REFUSED], ""),
    ("jsonrpc.response-same-id", OLD, [refused(1), refused(2)], ""),
    ("jsonrpc.response-same-id", OLD, [numbered(7001)], f'{SAME}"7001", got id 7001'),
    ("jsonrpc.response-same-id", OLD, [OK, numbered("7001")], f'{SAME}7001, got id "7001"'),
    ("jsonrpc.response-same-id", OLD, [OK, numbered(7001.0)], f"{SAME}7001, got id 7001.0"),
    ("jsonrpc.response-same-id", OLD, [None], f'{SAME}"7001", got no answer'),
    ("jsonrpc.response-same-id", OLD, [anonymous(1)], f'{SAME}"7001", got a response without id'),
    ("jsonrpc.request-id-not-null", OLD, [None], ""),
    ("jsonrpc.request-id-not-null", OLD, [{**NULL, **REFUSED}], ""),
    (
        "jsonrpc.request-id-not-null",
        OLD,
        [{**NULL, "result": {"a": 1}}],
        'expected no result for a request with the id null, got result {"a": 1}',
    ),
    ("jsonrpc.request-id-unique-in-flight", NEW, [OK, OK, REFUSED], ""),
    (
        "jsonrpc.request-id-unique-in-flight",
        NEW,
        [OK, REFUSED],
        'expected a result of a request with the id 1, got error -32600 ("no")',
    ),
    ("jsonrpc.error-id-required", OLD, [REFUSED], ""),
    (
        "jsonrpc.error-id-required",
        OLD,
        [OK],
        "not applicable: the server does not answer with an error",
    ),
    (
        "jsonrpc.error-id-required",
        OLD,
        [anonymous(-32601)],
        "expected an error with the id 1, got a response without id",
    ),
    (
        "jsonrpc.error-id-required",
        OLD,
        [{**NULL, **REFUSED}],
        "expected an error with the id 1, got id null",
    ),
    ("jsonrpc.error-id-omitted-if-unreadable", OLD, [anonymous(-32700)], ""),
    ("jsonrpc.error-id-omitted-if-unreadable", OLD, [{**NULL, **REFUSED}], f"{NO_ID}id null"),
    ("jsonrpc.error-id-omitted-if-unreadable", OLD, [None], NO_ANSWER),
    ("jsonrpc.notification-no-response", OLD, [None], ""),
    (
        "jsonrpc.notification-no-response",
        OLD,
        [anonymous(-32601)],
        'expected no answer to a notification, got error -32601 ("no")',
    ),
    ("jsonrpc.code-parse-error", OLD, [anonymous(-32700)], ""),
    ("jsonrpc.code-parse-error", OLD, [None], NO_ANSWER),
    (
        "jsonrpc.code-parse-error",
        OLD,
        [anonymous(-32701)],
        'expected error -32700 for text that is no JSON, got error -32701 ("no")',
    ),
    ("jsonrpc.code-invalid-request", OLD, [REFUSED], ""),
    ("jsonrpc.code-invalid-request", OLD, [None], NO_ANSWER),
    (
        "jsonrpc.code-invalid-request",
        OLD,
        [refused(-32601)],
        'expected error -32600 for a method that is a number, got error -32601 ("no")',
    ),
    ("jsonrpc.code-method-not-found", OLD, [refused(-32601)], ""),
    (
        "jsonrpc.code-method-not-found",
        OLD,
        [REFUSED],
        'expected error -32601 for an unknown method, got error -32600 ("no")',
    ),
    ("jsonrpc.batch-receive", BATCHES, [numbered(1, 2)], ""),
    ("jsonrpc.batch-receive", BATCHES, [numbered("2", "1")], ""),
    ("jsonrpc.batch-receive", BATCHES, [None], f"{BATCH}no answer"),
    ("jsonrpc.batch-receive", BATCHES, [anonymous(-32600)], f'{BATCH}error -32600 ("no")'),
    ("jsonrpc.batch-receive", BATCHES, [numbered(1)], f"{BATCH}responses with the ids [1]"),
    (
        "jsonrpc.batch-receive",
        BATCHES,
        [[*numbered(1), refused(-1, jsonrpc="2.0", id=2)]],
        f"{BATCH}responses with the ids [1]",
    ),
    ("jsonrpc.batch-response", BATCHES, [numbered(1, 2), anonymous(-32600)], ""),
    ("jsonrpc.batch-response", BATCHES, [numbered(1, 2), None], ""),
    (
        "jsonrpc.batch-response",
        BATCHES,
        [numbered(1, 2), anonymous(-32700)],
        'expected error -32600 for an empty batch, got error -32700 ("no")',
    ),
    (
        "jsonrpc.batch-response",
        BATCHES,
        [numbered(1)],
        "not applicable: the server does not serve batches: jsonrpc.batch-receive",
    ),
    (
        "jsonrpc.batch-response",
        BATCHES,
        [numbered(1, 2, None)],
        f"{EACH}responses with the ids [1, 2, null]",
    ),
    ("jsonrpc.batch-removed", OLD, [anonymous(-32600)], ""),
    ("jsonrpc.batch-removed", OLD, [numbered(2)], ""),
    ("jsonrpc.batch-removed", OLD, [refused(-32600, jsonrpc="2.0", id=1)], ""),
    (
        "jsonrpc.batch-removed",
        OLD,
        [numbered(1)],
        (
            'expected no result for the request of a batch, got {"jsonrpc": "2.0", "id": 1, '
            '"result": {}}'
        ),
    ),
    ("cancellation.invalid-ignored", OLD, [None, OK, None, OK, None, OK, OK], ""),
    *(
        (
            "cancellation.invalid-ignored",
            OLD,
            [*[None, OK] * number, anonymous(-32602), OK],
            f'{CANCELLED}{{"requestId": {id}}}, got error -32602 ("no")',
        )
        for number, id in enumerate(("999999", '"no-such-request"', "{}"))
    ),
    (
        "cancellation.invalid-ignored",
        OLD,
        [*[None, OK] * 3, REFUSED],
        'expected a result of the request after these cancellations, got error -32600 ("no")',
    ),
    ("progress.token-type", OLD, [OK, OK, REFUSED], ""),
    (
        "progress.token-type",
        OLD,
        [OK, REFUSED],
        'expected a result of a request with the progress token 0, got error -32600 ("no")',
    ),
    (
        "progress.token-type",
        OLD,
        [REFUSED],
        'expected a result of a request with the progress token "mcpgen", got error -32600 ("no")',
    ),
]


@pytest.mark.parametrize(("rule", "name", "answers", "verdict"), JSONRPC)
def test_replies_of_json_rpc_are_judged(
    rule: str, name: str, answers: list[Any], verdict: str
) -> None:
    assert judgement(rule, session_with(name, answers)) == verdict


CAPABLE: list[tuple[str, dict[str, Any], list[Any], str]] = [
    (
        "jsonrpc.code-method-ungated",
        {"tools": {}, "resources": {}, "prompts": {}},
        [OK],
        "not applicable: the server declares tools, resources and prompts",
    ),
    ("jsonrpc.code-method-ungated", {"tools": {}}, [refused(-32601), refused(-32601), OK], ""),
    (
        "jsonrpc.code-method-ungated",
        {"tools": {}},
        [refused(-32601), OK],
        "expected error -32601 for prompts/list, whose capability is missing, got result {}",
    ),
    (
        "jsonrpc.code-invalid-params",
        {},
        [],
        "not applicable: the server declares neither tools nor prompts nor resources",
    ),
    ("jsonrpc.code-invalid-params", {"tools": {}}, [refused(-32602)], ""),
    (
        "jsonrpc.code-invalid-params",
        {"tools": {}, "resources": {}},
        [OK],
        "expected error -32602 for tools/call without a valid name, got result {}",
    ),
    (
        "jsonrpc.code-invalid-params",
        {"prompts": {}, "resources": {}},
        [OK],
        "expected error -32602 for prompts/get without a valid name, got result {}",
    ),
    (
        "jsonrpc.code-invalid-params",
        {"resources": {}},
        [OK],
        "expected error -32602 for resources/read without a valid uri, got result {}",
    ),
    (
        "capabilities.server-features-advertised",
        {},
        [],
        "not applicable: the server declares no feature",
    ),
    *(
        (
            "capabilities.server-features-advertised",
            {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}},
            [*[OK, refused(-32602)][:number], *[OK] * (number - 2), answer],
            f"expected an answer to {method}, as the server declares {feature}, got {came}",
        )
        for answer, came in ((None, "no answer"), (refused(-32601), 'error -32601 ("no")'))
        for number, (feature, method) in enumerate(
            (
                ("tools", "tools/list"),
                ("resources", "resources/list"),
                ("prompts", "prompts/list"),
                ("completions", "completion/complete"),
                ("logging", "logging/setLevel"),
            )
        )
    ),
    ("capabilities.server-features-advertised", {"logging": {}}, [OK, None], ""),
    ("capabilities.server-set-2025-11", {"tools": {"listChanged": True}}, [], ""),
    (
        "capabilities.server-set-2025-11",
        {"tools": {"listChanged": 1}},
        [],
        "expected boolean at capabilities/tools/listChanged, got 1",
    ),
]


@pytest.mark.parametrize(("rule", "capabilities", "answers", "verdict"), CAPABLE)
def test_replies_are_judged_by_the_capabilities(
    rule: str, capabilities: dict[str, Any], answers: list[Any], verdict: str
) -> None:
    assert judgement(rule, session_with(OLD, answers, capabilities=capabilities)) == verdict
