"""Rules of sessions and messages: versions, discovery, JSON-RPC, standard streams."""

from __future__ import annotations

import json
from typing import Any

from generator.check_server.rows import (
    ANCIENT,
    CAPABLE,
    CHANGED,
    LOG,
    MIDDLE,
    NAMED,
    NEW,
    OK,
    OLD,
    PREFIX,
    VERSION,
    Message,
    all_of,
    anonymous,
    answering,
    before,
    broken,
    capability,
    code,
    edit,
    error,
    fail,
    kept,
    members,
    method_of,
    numbered,
    params_of,
    refuse,
    refused,
    results,
    rule,
    says,
    serve,
    skipped,
    without,
)
from generator.check_server.tiny_server import INFO, meta_of, runs_on

DISCOVERED: Message = {"supportedVersions": [NEW], "resultType": "complete"}
BOTH, ALL_BUT_OLDEST = (OLD, NEW), (MIDDLE, OLD, NEW)
REQUIRED = {VERSION, CAPABLE}


def initialize(version: str, answer: str) -> Any:
    """The defect of an answer to a version that is requested."""

    def change(request: Any, answered: Any) -> Any:
        if str(params_of(request).get("protocolVersion")).startswith(version):
            answered["result"]["protocolVersion"] = answer
        return answered

    return change


class RemembersVersions:
    """Refuses what follows a request of another version."""

    def __init__(self) -> None:
        self.other = False

    def __call__(self, request: Any, answer: Any) -> Any:
        remembers, self.other = self.other, meta_of(request).get(VERSION, NEW) != NEW
        return error(request, -32602) if remembers and not self.other else answer


def pretty(request: Any, answer: Any) -> Any:
    """The defect of a message over several lines."""
    return json.dumps(answer, indent=1).encode() if method_of(request) == "ping" else answer


NULL: Message = {"jsonrpc": "2.0", "id": None}
REFUSED = refused(-32600)
UNKNOWN_METHOD = "mcpgen/no-such-method"
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
        "lifecycle.initialize-result",
        kept(opened={"protocolVersion": OLD, "capabilities": 5, "serverInfo": 5}),
        defect=members("initialize", instructions=5),
    ),
    rule(
        "lifecycle.implementation-basic",
        kept(opened={"serverInfo": {**INFO, "title": 5}}),
        broken(opened={"serverInfo": {"name": 5}}),
    ),
    rule(
        "lifecycle.implementation-title",
        kept(opened={"serverInfo": INFO}),
        defect=members("initialize", serverInfo={**INFO, "title": 5}),
    ),
    rule(
        "lifecycle.implementation-full",
        skipped(opened={"_meta": 5}, revision=NEW),
        defect=all_of(
            members("initialize", serverInfo={"name": "raw"}),
            members("server/discover", _meta={NAMED: {"name": "raw"}}),
        ),
    ),
    rule("lifecycle.initialize-first", defect=before("initialize", CHANGED), where=("stdio",)),
    rule(
        "lifecycle.no-handshake",
        defect=fail(-32600, lambda it: method_of(it) == "tools/list" and it["id"] == 1),
    ),
    rule("lifecycle.shutdown-by-transport", defect=runs_on),
    rule("stdio.shutdown-server-on-eof", defect=runs_on),
    rule(
        "versioning.server-echo", defect=all_of(initialize(MIDDLE, OLD), initialize("2024", MIDDLE))
    ),
    rule(
        "versioning.server-counter-offer",
        broken(says(protocolVersion=NEW), spoken=ALL_BUT_OLDEST),
        defect=refuse(
            "initialize", -32602, lambda params: params["protocolVersion"].startswith("1900")
        ),
    ),
    rule(
        "versioning.server-latest",
        skipped(says(protocolVersion=NEW), spoken=ALL_BUT_OLDEST),
        defect=initialize("9999", MIDDLE),
    ),
    rule(
        "versioning.no-modern-in-initialize",
        kept(says(protocolVersion=OLD), spoken=BOTH),
        broken(says(protocolVersion=NEW), spoken=BOTH),
    ),
    rule(
        "versioning.unsupported-error",
        broken(refused(-32022, data={"supported": 5, "requested": ANCIENT})),
        broken(refused(-32022, data={"supported": [], "requested": "1900"})),
        broken(refused(-32021, data={"supported": [], "requested": ANCIENT})),
        defect=fail(-32022, lambda it: meta_of(it).get(VERSION) == ANCIENT),
    ),
    rule("versioning.per-request-decision", broken(OK), defect=RemembersVersions, where=("stdio",)),
    rule(
        "versioning.modern-only-rejects-initialize",
        kept(refused(), spoken=(NEW,)),
        skipped(OK, spoken=BOTH),
        defect=serve("initialize", {}),
        where=("stdio",),
    ),
    rule(
        "versioning.modern-only-names-versions",
        kept(refused(data=NEW), spoken=(NEW,)),
        skipped(OK, spoken=(NEW,)),
        skipped(refused(), spoken=BOTH),
        defect=refuse("initialize", -32602),
        where=("stdio",),
    ),
    rule("ping.answered", defect=members("ping", pong=True)),
    rule("ping.removed", defect=serve("ping", {})),
    rule("discover.implemented", kept(OK), broken(refused())),
    rule(
        "discover.result-shape",
        kept(opened={**DISCOVERED, "capabilities": 5, "_meta": 5, "ttlMs": "x", "cacheScope": 1}),
        defect=members("server/discover", supportedVersions=[5, NEW]),
    ),
    rule(
        "discover.server-info",
        broken(opened={"_meta": {NAMED: {}}, "serverInfo": {}}),
        defect=edit("server/discover", without("_meta")),
    ),
    rule(
        "meta.client-info-optional-for-server",
        defect=lambda request, answer: (
            answer
            if f"{PREFIX}clientInfo" in meta_of(request) or "result" not in (answer or {})
            else error(request, -32602)
        ),
    ),
    rule(
        "meta.missing-required-rejected",
        kept((400, refused(-32602)), (400, refused(-32020)), http=True),
        broken(refused(-32602), refused(-32020)),
        defect=fail(-32600, lambda it: meta_of(it) and not {*meta_of(it)} >= REQUIRED),
    ),
    rule(
        "capabilities.server-features-advertised",
        skipped(capabilities={}),
        broken(OK, refused(-32602), OK, OK, refused(-32601)),
        defect=refuse("logging/setLevel", -32601),
        where=(OLD,),
    ),
    rule(
        "capabilities.server-set-2024",
        kept(capabilities={"completions": 1}),
        broken(capabilities={"tools": {"listChanged": 1}}),
    ),
    rule("capabilities.server-set-2025", kept(), defect=capability("completions", 1)),
    rule("capabilities.server-set-2025-11", defect=capability("tools", {"listChanged": 1})),
    rule("capabilities.server-set-2026", defect=capability("prompts", 1)),
    rule(
        "stdio.newline-delimited",
        kept({"jsonrpc": "2.0", "id": "1", "result": {}}, OK),
        broken(OK, None),
    ),
    rule("stdio.utf8", kept([b"hi", OK]), broken([b"\xff" * 99, OK])),
    rule("stdio.server-message-kinds", defect=before("server/discover", CHANGED)),
    rule(
        "stdio.no-embedded-newline",
        broken([b'{"a": "\xff"', b"}"]),
        defect=pretty,
        where=("process",),
    ),
    rule(
        "stdio.stdout-only-messages",
        skipped([b'{"a": "\xff"', b"}"]),
        defect=answering("ping", lambda answer: (answer, b"answered!")),
    ),
    rule(
        "jsonrpc.request-id-type",
        *(broken(*[OK] * number, REFUSED) for number in range(5)),
        defect=fail(-32600, lambda it: it.get("id") == 0),
    ),
    rule(
        "jsonrpc.response-same-id",
        broken(OK, numbered("7001")),
        broken(OK, numbered(7001.0)),
        broken(None),
        defect=results(lambda answer: {**answer, "id": str(answer["id"])}),
    ),
    rule(
        "jsonrpc.request-id-not-null",
        defect=lambda request, answer: (
            {**NULL, "result": {}}
            if isinstance(request, dict) and request.get("id", 1) is None
            else answer
        ),
    ),
    rule(
        "jsonrpc.request-id-unique-in-flight",
        kept(OK, OK, REFUSED),
        defect=RefusesUsedIds,
        where=("stdio",),
    ),
    rule(
        "jsonrpc.error-id-required",
        kept(REFUSED),
        skipped(OK),
        defect=answering(UNKNOWN_METHOD, without("id")),
    ),
    rule(
        "jsonrpc.error-id-omitted-if-unreadable",
        skipped(None),
        defect=lambda request, answer: (
            {**answer, "id": None} if isinstance(request, bytes) else answer
        ),
    ),
    rule(
        "jsonrpc.notification-no-response",
        skipped((401, {"jsonrpc": "2.0", "error": {"code": 1}}), http=True),
        defect=lambda request, answer: (
            anonymous(-32601) if "no-such-notification" in str(method_of(request)) else answer
        ),
        where=("stdio",),
    ),
    rule("jsonrpc.code-parse-error", skipped(None), defect=code(-32700, -32603)),
    rule("jsonrpc.code-invalid-request", skipped(None), defect=code(-32600, -32603)),
    rule(
        "jsonrpc.code-method-not-found",
        defect=code(-32601, -32602, UNKNOWN_METHOD),
        where=(OLD, "stdio"),
    ),
    rule(
        "jsonrpc.code-method-ungated",
        kept(refused(-32601), refused(-32601), OK, capabilities={"tools": {}}),
        defect=capability("prompts", None),
    ),
    rule(
        "jsonrpc.code-invalid-params",
        skipped(capabilities={}),
        broken(OK, capabilities={"resources": {}}),
        defect=code(-32602, -32603, "tools/call"),
        where=("stdio",),
    ),
    rule(
        "jsonrpc.batch-receive",
        kept(numbered("2", "1")),
        broken([*numbered(1), {**anonymous(-1), "id": 2}]),
    ),
    rule(
        "jsonrpc.batch-response",
        kept(numbered(1, 2), None),
        broken(numbered(1, 2), anonymous(-32700)),
        broken(numbered(1, 2, None)),
        skipped(numbered(1)),
    ),
    rule(
        "jsonrpc.batch-removed",
        kept({"jsonrpc": "2.0", "id": 1, **REFUSED}),
        defect=lambda request, answer: (
            numbered(*(each["id"] for each in request)) if isinstance(request, list) else answer
        ),
        where=("stdio",),
    ),
    rule(
        "cancellation.invalid-ignored",
        broken(*[None, OK] * 3, REFUSED),
        defect=answering("notifications/cancelled", lambda answer: anonymous(-32602)),
        where=(OLD, "stdio"),
    ),
    rule(
        "progress.token-type",
        defect=fail(-32602, lambda it: meta_of(it).get("progressToken") == 0),
    ),
    rule("jsonrpc.version-member", defect=results(without("jsonrpc"))),
    rule(
        "jsonrpc.response-exactly-one",
        broken({**STRAY, "data": "d" * 200}),
        defect=before("tools/list", {**STRAY, **OK, **refused(-32603)}),
    ),
    rule("jsonrpc.result-object", defect=before("tools/list", {**STRAY, "result": 5})),
    rule(
        "jsonrpc.error-fields",
        defect=answering(UNKNOWN_METHOD, lambda answer: {**answer, "error": {"code": -32601}}),
    ),
    rule(
        "jsonrpc.error-code-integer",
        defect=before("tools/list", {**STRAY, "error": {"code": 1.5, "message": "half"}}),
    ),
    rule("jsonrpc.params-object", defect=before("tools/list", {**CHANGED, "params": ["tools"]})),
    rule("jsonrpc.notification-no-id", defect=before("tools/list", {**CHANGED, "id": "changed"})),
    rule(
        "jsonrpc.schema-is-authority",
        kept(
            LOG,
            {"method": LOUD["method"], "params": {}},
            {**LOUD, "params": []},
            {**LOUD, "id": 1},
            {**LOUD, "method": 5},
        ),
        defect=before("tools/list", LOUD),
        where=(OLD,),
    ),
    rule(
        "jsonrpc.server-no-requests", defect=before("tools/list", {**STRAY, "method": "roots/list"})
    ),
    rule(
        "jsonrpc.code-reserved-range",
        broken({**STRAY, **refused(-32099)}),
        kept({**STRAY, **refused(-32100)}, {**STRAY, **refused(-32019)}),
        defect=unknown_tool(-32050),
    ),
    rule("jsonrpc.code-32042-not-emitted", defect=unknown_tool(-32042)),
    rule(
        "jsonrpc.code-legacy-range-unused",
        *(broken({**STRAY, **refused(number)}) for number in (-32019, -32000)),
        kept({**STRAY, **refused(-32020)}, {**STRAY, **refused(-31999)}),
        defect=unknown_tool(-32001),
    ),
    rule(
        "progress.active-token-only",
        *(kept({**PROGRESS, "params": {"progressToken": token}}) for token in ("mcpgen", 0)),
        broken({**PROGRESS, "params": {"progressToken": "m" * 200}}),
        broken(PROGRESS),
        defect=before(
            "tools/list", {**PROGRESS, "params": {"progressToken": "unknown", "progress": 1}}
        ),
    ),
]
