"""Rules of JSON-RPC: ids, errors and codes, batches, cancellation, progress, all messages."""

from __future__ import annotations

from typing import Any

from generator.check_server.rows import (
    CHANGED,
    GONE,
    LOG,
    NEW,
    OK,
    OLD,
    Message,
    anonymous,
    before,
    broken,
    capability,
    code,
    error,
    failed,
    kept,
    method_of,
    numbered,
    refuse,
    refused,
    rule,
    skipped,
    without,
)
from generator.check_server.tiny_server import meta_of

NULL: Message = {"jsonrpc": "2.0", "id": None}
ANONYMOUS_OVER_HTTP = {"jsonrpc": "2.0", "error": {"code": 1}}
REFUSED = refused(-32600)
UNKNOWN_METHOD = "mcpgen/no-such-method"
LONG: Message = {"jsonrpc": "2.0", "x": "y" * 120}
LOUD = {**LOG, "params": {"level": "loud", "data": 1}}
PROGRESS = {**CHANGED, "method": "notifications/progress"}
STRAY: Message = {"jsonrpc": "2.0", "id": 999999}


class RefusesUsedIds:
    """Refuses a request whose id was used before."""

    def __init__(self) -> None:
        self.used: set[Any] = set()

    def __call__(self, request: Any, answer: Any) -> Any:
        id = request.get("id") if isinstance(request, dict) else None
        if isinstance(id, int) and id in self.used:
            return error(request, -32600)
        self.used.add(id)
        return answer


def unknown_tool(number: int) -> Any:
    """The defect of another code for unknown tools."""
    return refuse("tools/call", number, lambda params: params.get("name") == "mcpgen-no-such-tool")


RULES = [
    rule(
        "jsonrpc.request-id-type",
        kept(*[OK] * 5, REFUSED),
        *(broken(*[OK] * number, REFUSED) for number in range(5)),
        defect=lambda request, answer: (
            error(request, -32600)
            if isinstance(request, dict) and request.get("id") == 0
            else answer
        ),
    ),
    rule(
        "jsonrpc.response-same-id",
        kept(OK, OK, REFUSED),
        kept(refused(1), refused(2)),
        broken(numbered(7001)),
        broken(OK, numbered("7001")),
        broken(OK, numbered(7001.0)),
        broken(None),
        broken(anonymous(1)),
        defect=lambda request, answer: (
            {**answer, "id": str(answer["id"])} if "result" in (answer or {}) else answer
        ),
    ),
    rule(
        "jsonrpc.request-id-not-null",
        kept(None),
        kept({**NULL, **REFUSED}),
        broken({**NULL, "result": {"a": 1}}),
        defect=lambda request, answer: (
            {**NULL, "result": {}}
            if isinstance(request, dict) and request.get("id", 1) is None
            else answer
        ),
    ),
    rule(
        "jsonrpc.request-id-unique-in-flight",
        kept(OK, OK, REFUSED),
        broken(OK, REFUSED),
        defect=RefusesUsedIds,
        where=("stdio",),
    ),
    rule(
        "jsonrpc.error-id-required",
        kept(REFUSED),
        skipped(OK),
        broken(anonymous(-32601)),
        broken({**NULL, **REFUSED}),
        defect=lambda request, answer: (
            without("id")(answer) if method_of(request) == UNKNOWN_METHOD else answer
        ),
    ),
    rule(
        "jsonrpc.error-id-omitted-if-unreadable",
        kept(anonymous(-32700)),
        skipped(None),
        broken({**NULL, **REFUSED}),
        defect=lambda request, answer: (
            {**answer, "id": None} if isinstance(request, bytes) else answer
        ),
    ),
    rule(
        "jsonrpc.notification-no-response",
        kept(None),
        kept(202, http=True),
        kept(GONE, http=True),
        broken(anonymous(-32601)),
        broken((399, ANONYMOUS_OVER_HTTP), http=True),
        *(skipped((status, ANONYMOUS_OVER_HTTP), http=True) for status in (400, 401)),
        defect=lambda request, answer: (
            anonymous(-32601) if "no-such-notification" in str(method_of(request)) else answer
        ),
        where=("stdio",),
    ),
    rule(
        "jsonrpc.code-parse-error",
        kept(anonymous(-32700)),
        skipped(None),
        broken(anonymous(-32701)),
        defect=code(-32700, -32603),
    ),
    rule(
        "jsonrpc.code-invalid-request",
        kept(REFUSED),
        skipped(None),
        broken(refused(-32601)),
        defect=code(-32600, -32603),
    ),
    rule(
        "jsonrpc.code-method-not-found",
        defect=code(-32601, -32602, UNKNOWN_METHOD),
        where=(OLD, "stdio"),
    ),
    rule(
        "jsonrpc.code-method-ungated",
        kept(refused(-32601), refused(-32601), OK, capabilities={"tools": {}}),
        broken(refused(-32601), OK, capabilities={"tools": {}}),
        skipped(),
        defect=capability("prompts", None),
    ),
    rule(
        "jsonrpc.code-invalid-params",
        kept(refused(-32602)),
        kept((400, refused(-32602)), http=True),
        broken(OK),
        broken(OK, capabilities={"prompts": {}, "resources": {}}),
        broken(OK, capabilities={"resources": {}}),
        skipped(capabilities={}),
        skipped(revision=NEW, http=True),
        defect=code(-32602, -32603, "tools/call"),
        where=("stdio",),
    ),
    rule(
        "jsonrpc.batch-receive",
        kept(numbered(1, 2)),
        kept(numbered("2", "1")),
        broken(None),
        broken(anonymous(-32600)),
        broken(numbered(1)),
        broken([*numbered(1), {**anonymous(-1), "id": 2}]),
    ),
    rule(
        "jsonrpc.batch-response",
        kept(numbered(1, 2), anonymous(-32600)),
        kept(numbered(1, 2), None),
        broken(numbered(1, 2), anonymous(-32700)),
        broken(numbered(1, 2, None)),
        skipped(numbered(1)),
    ),
    rule(
        "jsonrpc.batch-removed",
        kept(anonymous(-32600)),
        kept(numbered(2)),
        kept({"jsonrpc": "2.0", "id": 1, **REFUSED}),
        kept((400, ANONYMOUS_OVER_HTTP), http=True),
        broken(numbered(1)),
        broken((200, [{"id": 1, **OK}]), http=True),
        defect=lambda request, answer: (
            numbered(*(each["id"] for each in request)) if isinstance(request, list) else answer
        ),
        where=("stdio",),
    ),
    rule(
        "cancellation.invalid-ignored",
        kept(*[None, OK] * 3, OK),
        kept((400, ANONYMOUS_OVER_HTTP), 202, 202, OK, http=True),
        broken((399, ANONYMOUS_OVER_HTTP), http=True),
        *(broken(*[None, OK] * number, anonymous(-32602), OK) for number in range(3)),
        broken(*[None, OK] * 3, REFUSED),
        defect=lambda request, answer: (
            anonymous(-32602) if method_of(request) == "notifications/cancelled" else answer
        ),
        where=(OLD, "stdio"),
    ),
    rule(
        "progress.token-type",
        kept(OK, OK, REFUSED),
        broken(OK, REFUSED),
        broken(REFUSED),
        defect=lambda request, answer: (
            error(request, -32602) if meta_of(request).get("progressToken") == 0 else answer
        ),
    ),
    rule(
        "jsonrpc.version-member",
        defect=lambda request, answer: (
            without("jsonrpc")(answer) if "result" in (answer or {}) else answer
        ),
    ),
    rule(
        "jsonrpc.response-exactly-one",
        kept({**CHANGED, "result": {}, "error": {}}),
        kept({"result": {}}),
        kept({"error": {}}),
        broken(LONG),
        broken({"result": {}, "error": {}}),
        defect=before("tools/list", {**STRAY, **OK, **refused(-32603)}),
    ),
    rule(
        "jsonrpc.result-object",
        kept(CHANGED, {"result": {}}),
        broken({**LONG, "result": 5}),
        defect=before("tools/list", {**STRAY, "result": 5}),
    ),
    rule(
        "jsonrpc.error-fields",
        kept(failed(-1)),
        broken({"error": 5}),
        broken({"error": {"message": "m"}}),
        broken(failed(1, 2)),
        broken({"error": LONG}),
        defect=lambda request, answer: (
            {**answer, "error": {"code": -32601}}
            if method_of(request) == UNKNOWN_METHOD
            else answer
        ),
    ),
    rule(
        "jsonrpc.error-code-integer",
        kept(failed(1), {"error": {"message": "m"}}, {"error": 5}),
        broken(failed(True)),
        broken(failed("1")),
        defect=before("tools/list", {**STRAY, "error": {"code": 1.5, "message": "half"}}),
    ),
    rule(
        "jsonrpc.params-object",
        kept(CHANGED, LOG, {"result": {}, "params": []}),
        broken({**LONG, "method": "a", "params": []}),
        defect=before("tools/list", {**CHANGED, "params": ["tools"]}),
    ),
    rule(
        "jsonrpc.notification-no-id",
        kept(CHANGED, {"id": 1, "method": "ping"}, {"id": 1, "method": 5}),
        broken({**LONG, "method": "notifications/a", "id": 1}),
        defect=before("tools/list", {**CHANGED, "id": "changed"}),
    ),
    rule(
        "jsonrpc.schema-is-authority",
        kept(
            LOG,
            {"method": LOUD["method"], "params": {}},
            {**LOUD, "params": []},
            {**LOUD, "id": 1},
            {**LOUD, "method": 5},
        ),
        kept({**CHANGED, "id": 1, "method": "no"}, revision=NEW),
        broken(LOUD),
        broken({**CHANGED, "id": 1, "method": "no"}),
        defect=before("tools/list", LOUD),
        where=(OLD,),
    ),
    rule(
        "jsonrpc.server-no-requests",
        kept(CHANGED, {**CHANGED, "id": 1}, {"id": 1, "result": {}}),
        broken({**LONG, "id": 1, "method": "ping"}),
        broken({"id": 1, "method": 5}),
        defect=before("tools/list", {**STRAY, "method": "roots/list"}),
    ),
    rule(
        "jsonrpc.code-reserved-range",
        kept(*map(failed, (-32100, -32020, -32042, -32019))),
        broken(failed(-32099)),
        broken(failed(-32023)),
        defect=unknown_tool(-32050),
    ),
    rule("jsonrpc.code-32042-not-emitted", defect=unknown_tool(-32042)),
    rule(
        "jsonrpc.code-legacy-range-unused",
        kept(*map(failed, (-32020, -32002, -31999))),
        broken(failed(-32019)),
        broken(failed(-32000)),
        defect=unknown_tool(-32001),
    ),
    rule(
        "progress.active-token-only",
        kept(*({**PROGRESS, "params": {"progressToken": token}} for token in (0, "mcpgen")), LOG),
        broken({**PROGRESS, "params": {"progressToken": 1}}),
        broken(PROGRESS),
        defect=before(
            "tools/list", {**PROGRESS, "params": {"progressToken": "unknown", "progress": 1}}
        ),
    ),
]
