"""Rules of sessions: version negotiation, initialization, discovery, metadata, standard streams."""

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
    OLDEST,
    PREFIX,
    VERSION,
    Message,
    all_of,
    anonymous,
    before,
    broken,
    capability,
    edit,
    error,
    kept,
    members,
    method_of,
    params_of,
    refuse,
    refused,
    rule,
    says,
    serve,
    skipped,
    without,
)
from generator.check_server.tiny_server import INFO, meta_of, runs_on

OPENED = {"protocolVersion": OLD, "capabilities": {}, "serverInfo": INFO}
DISCOVERED: Message = {"supportedVersions": [NEW], "resultType": "complete"}
BOTH, ALL_BUT_OLDEST = (OLD, NEW), (MIDDLE, OLD, NEW)
PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}


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


def unsupported(**data: Any) -> Message:
    """An error about the version."""
    return refused(-32022, data=data)


def pretty(request: Any, answer: Any) -> Any:
    """The defect of a message over several lines."""
    return json.dumps(answer, indent=1).encode() if method_of(request) == "ping" else answer


def talkative(request: Any, answer: Any) -> Any:
    """The defect of text between messages."""
    return (answer, b"answered!") if method_of(request) == "ping" else answer


TWO_LINES = [b'  {"a":', CHANGED, b" 1}", b"more"]
RULES = [
    rule(
        "lifecycle.initialize-result",
        kept(opened=OPENED),
        kept(opened={"protocolVersion": OLD, "capabilities": 5, "serverInfo": 5}),
        broken(opened={}),
        broken(opened={"protocolVersion": OLD, "capabilities": 5}),
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
        broken(opened={"serverInfo": {**INFO, "title": 5}}),
        defect=members("initialize", serverInfo={**INFO, "title": 5}),
    ),
    rule(
        "lifecycle.implementation-full",
        kept(opened=OPENED),
        skipped(),
        skipped(opened={"_meta": {NAMED: {"name": 5}}}),
        skipped(opened={"serverInfo": {"name": 5}}, revision=NEW),
        skipped(opened={"_meta": 5}, revision=NEW),
        broken(opened={"serverInfo": {"name": 5}}),
        broken(opened={"_meta": {NAMED: {"name": 5}}}, revision=NEW),
        defect=all_of(
            members("initialize", serverInfo={"name": "raw"}),
            members("server/discover", _meta={NAMED: {"name": "raw"}}),
        ),
    ),
    rule(
        "lifecycle.initialize-first",
        kept([PING, LOG, says(**OPENED)]),
        kept([says(**OPENED), CHANGED]),
        kept([b"hi", says(**OPENED)]),
        broken([LOG, CHANGED, says(**OPENED)]),
        broken(refused()),
        defect=before("initialize", CHANGED),
        where=("stdio",),
    ),
    rule(
        "lifecycle.no-handshake",
        broken(refused(), capabilities={}),
        broken(refused(), capabilities={"prompts": {}, "resources": {}}),
        defect=lambda request, answer: (
            error(request, -32600)
            if method_of(request) == "tools/list" and request["id"] == 1
            else answer
        ),
    ),
    rule("lifecycle.shutdown-by-transport", defect=runs_on),
    rule("stdio.shutdown-server-on-eof", defect=runs_on),
    rule(
        "versioning.server-echo",
        kept(initialized={MIDDLE: MIDDLE, OLD: OLD}),
        kept(initialized={OLDEST: MIDDLE, MIDDLE: MIDDLE}),
        kept(initialized={MIDDLE: 5, OLD: 5}),
        broken(initialized={MIDDLE: OLD, OLD: MIDDLE}),
        broken(initialized={MIDDLE: 5, OLD: MIDDLE}),
        defect=all_of(initialize(MIDDLE, OLD), initialize("2024", MIDDLE)),
    ),
    rule(
        "versioning.server-counter-offer",
        kept(says(protocolVersion=MIDDLE), spoken=ALL_BUT_OLDEST),
        broken(says(protocolVersion=NEW), spoken=ALL_BUT_OLDEST),
        broken(refused(), spoken=ALL_BUT_OLDEST),
        defect=refuse(
            "initialize", -32602, lambda params: params["protocolVersion"].startswith("1900")
        ),
    ),
    rule(
        "versioning.server-latest",
        kept(says(protocolVersion=OLD), spoken=ALL_BUT_OLDEST),
        broken(says(protocolVersion=MIDDLE), spoken=ALL_BUT_OLDEST),
        skipped(says(protocolVersion=NEW), spoken=ALL_BUT_OLDEST),
        defect=initialize("9999", MIDDLE),
    ),
    rule(
        "versioning.no-modern-in-initialize",
        kept(says(protocolVersion=OLD), spoken=BOTH),
        broken(says(protocolVersion=NEW), spoken=BOTH),
        skipped(spoken=(OLD,)),
    ),
    rule(
        "versioning.unsupported-error",
        kept(unsupported(supported=[], requested=ANCIENT)),
        broken(refused(-32022)),
        broken(unsupported(supported=5, requested=ANCIENT)),
        broken(unsupported(supported=[], requested="1900")),
        broken(refused(-32021, data={"supported": [], "requested": ANCIENT})),
        defect=lambda request, answer: (
            error(request, -32022) if meta_of(request).get(VERSION) == ANCIENT else answer
        ),
    ),
    rule(
        "versioning.per-request-decision",
        kept(refused(), OK),
        broken(refused(), refused()),
        broken(OK),
        defect=RemembersVersions,
        where=("stdio",),
    ),
    rule(
        "versioning.modern-only-rejects-initialize",
        kept(refused(), spoken=(NEW,)),
        broken(OK, spoken=(NEW,)),
        skipped(OK, spoken=BOTH),
        defect=lambda request, answer: (
            {"jsonrpc": "2.0", "id": request["id"], "result": {}}
            if method_of(request) == "initialize"
            else answer
        ),
        where=("stdio",),
    ),
    rule(
        "versioning.modern-only-names-versions",
        kept(refused(data=NEW), spoken=(NEW,)),
        broken({**refused(), "x": NEW}, spoken=(NEW,)),
        skipped(OK, spoken=(NEW,)),
        skipped(refused(), spoken=BOTH),
        defect=refuse("initialize", -32602),
        where=("stdio",),
    ),
    rule(
        "ping.answered",
        kept(says(_meta={})),
        broken(says(_meta={}, pong=1)),
        broken(refused()),
        defect=members("ping", pong=True),
    ),
    rule("ping.removed", defect=serve("ping", {})),
    rule("discover.implemented", kept(OK), broken(refused())),
    rule(
        "discover.result-shape",
        kept(opened={**DISCOVERED, "capabilities": 5, "_meta": 5, "ttlMs": "x", "cacheScope": 1}),
        broken(opened=DISCOVERED),
        broken(opened={**DISCOVERED, "capabilities": {}, "supportedVersions": [5]}),
        defect=members("server/discover", supportedVersions=[5, NEW]),
    ),
    rule(
        "discover.server-info",
        kept(opened={"_meta": {NAMED: {}}}),
        broken(opened={"_meta": {NAMED: 5}}),
        broken(opened={"_meta": 5}),
        broken(opened={}),
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
        kept(refused(-32602), refused(-32602)),
        kept((400, refused(-32602)), (400, refused(-32602)), http=True),
        kept((400, refused(-32602)), (400, refused(-32020)), http=True),
        broken(refused(-32600)),
        broken((400, refused(-32020)), http=True),
        broken(refused(-32602), refused(-32020)),
        broken((400, refused(-32602)), (400, refused(-32022)), http=True),
        defect=lambda request, answer: (
            error(request, -32600)
            if meta_of(request) and (not {VERSION, CAPABLE} <= {*meta_of(request)})
            else answer
        ),
    ),
    rule(
        "capabilities.server-features-advertised",
        kept(OK, None, capabilities={"logging": {}}),
        skipped(capabilities={}),
        *(
            broken(*[OK, refused(-32602), OK, OK][:number], answer)
            for answer in (None, refused(-32601))
            for number in range(5)
        ),
        defect=refuse("logging/setLevel", -32601),
        where=(OLD,),
    ),
    rule(
        "capabilities.server-set-2024",
        kept(capabilities={"completions": 1}),
        broken(capabilities={"tools": {"listChanged": 1}}),
    ),
    rule(
        "capabilities.server-set-2025",
        kept(),
        broken(capabilities={"completions": 1}),
        defect=capability("completions", 1),
    ),
    rule(
        "capabilities.server-set-2025-11",
        kept(capabilities={"tools": {"listChanged": True}}),
        broken(capabilities={"tools": {"listChanged": 1}}),
        defect=capability("tools", {"listChanged": 1}),
    ),
    rule(
        "capabilities.server-set-2026",
        kept(),
        broken(capabilities={"prompts": 1}),
        defect=capability("prompts", 1),
    ),
    rule(
        "stdio.newline-delimited",
        kept(OK, OK),
        kept({"jsonrpc": "2.0", "id": "1", "result": {}}, OK),
        broken(None, OK),
        broken(OK, None),
    ),
    rule(
        "stdio.utf8",
        kept(OK),
        kept([b"hi", OK]),
        broken({"jsonrpc": "2.0", "id": "mcpgen", "result": {}}),
        broken(anonymous(-1)),
        broken(None),
        broken([b"\xff", OK]),
    ),
    rule(
        "stdio.server-message-kinds",
        kept(OK),
        kept([b"hi", says(**DISCOVERED), CHANGED]),
        broken([CHANGED, says(**DISCOVERED)]),
        defect=before("server/discover", CHANGED),
    ),
    rule(
        "stdio.no-embedded-newline",
        kept([CHANGED]),
        kept([CHANGED, b"hi", CHANGED, b"ho"]),
        kept([CHANGED], [b"[1,", b"2]"]),
        kept([b"[" * 100000]),
        broken([CHANGED], TWO_LINES),
        broken([b'{"a": "\xff"', b"}"]),
        defect=pretty,
        where=("process",),
    ),
    rule(
        "stdio.stdout-only-messages",
        kept([CHANGED]),
        broken([CHANGED], [CHANGED, b"hi", CHANGED, b"ho"]),
        broken([[]]),
        broken([b"[1,", b"2]"]),
        broken([b"[" * 100000]),
        skipped([CHANGED], TWO_LINES),
        skipped([b'{"a": "\xff"', b"}"]),
        defect=talkative,
    ),
]
