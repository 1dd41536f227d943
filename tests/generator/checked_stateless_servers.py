"""The tiny raw server of 2026-07-28: no handshake, no sessions, and ways to break one rule each.

`main` speaks over stdio, with the word `DEFECT`. `DEFECTS` change answers on each transport; see
`checked_stateless_http_servers` for the other one.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable

from generator import checked_servers as older
from generator.checked_servers import (
    CHANGED,
    STRAY,
    Defect,
    Message,
    Refused,
    edit_result,
    refused_if,
    without,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABLE, LEVEL = (
    f"{PREFIX}{name}" for name in ("protocolVersion", "clientCapabilities", "logLevel")
)
META = {f"{PREFIX}serverInfo": older.INFO}
HINTS: Message = {"ttlMs": 0, "cacheScope": "private"}
CAPABILITIES: Message = {**older.CAPABILITIES, "tools": {"listChanged": True}}
DISCOVERY: Message = {"supportedVersions": [REVISION], "capabilities": CAPABILITIES}
CACHED = ("server/discover", "resources/read")
GONE = ("initialize", "ping", "logging/setLevel", "resources/subscribe")
UNSUPPORTED, MISMATCH = -32022, -32020


def result(method: str, params: Any) -> Message:
    """The result of a request.

    Raises:
        Refused: It is answered by an error.
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or VERSION not in meta or CAPABLE not in meta:
        raise Refused(-32602)
    if meta[VERSION] != REVISION:
        raise Refused(UNSUPPORTED)
    if method in GONE:
        raise Refused(-32601)
    if meta.get(LEVEL, "info") not in older.LEVELS:
        raise Refused(-32602)
    try:
        value = DISCOVERY if method == "server/discover" else older.result(method, params)
    except Refused as refused:
        raise Refused(-32602 if refused.code == -32002 else refused.code) from None
    hints = HINTS if method in CACHED or method.endswith("/list") else {}
    return json.loads(  # type: ignore[no-any-return] # an object
        json.dumps({"resultType": "complete", **value, **hints, "_meta": META})
    )


def error(request: Any, code: int) -> Message:
    """An error in answer to a message, whose id is repeated if it has one."""
    id = request.get("id") if isinstance(request, dict) else None
    method = request.get("method") if isinstance(request, dict) else None
    text = f"refused; this server speaks {REVISION}" if method == "initialize" else "refused"
    body: Message = {"code": code, "message": text}
    if code == UNSUPPORTED:
        requested = request["params"]["_meta"][VERSION]
        body["data"] = {"supported": [REVISION], "requested": requested}
    return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "error": body}


def answer(request: Any) -> Message | None:
    """The answer to a message; `None` for a notification."""
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return error(request, -32600)
    if "id" not in request:
        return None
    if request["id"] is None:
        return error(request, -32600)
    try:
        value = result(request["method"], request.get("params"))
    except Refused as refused:
        return error(request, refused.code)
    return {"jsonrpc": "2.0", "id": request["id"], "result": value}


def accept_requests(applies: Callable[[Any], bool]) -> Defect:
    """Serve requests that should be refused, by their method and params."""

    def change(request: Any, answered: Any) -> Any:
        refused = isinstance(request, dict) and isinstance(answered, dict) and "error" in answered
        if refused and applies(request):
            value = {"resultType": "complete", **DISCOVERY, **HINTS, "_meta": META}
            return {"jsonrpc": "2.0", "id": request["id"], "result": value}
        return answered

    return change


def meta_of(request: Any) -> Any:
    """The metadata of a request; empty if it has none."""
    params = request.get("params") if isinstance(request, dict) else None
    return params.get("_meta", {}) if isinstance(params, dict) else {}


def of_another_version(request: Any) -> bool:
    """Whether a request names a version that the server does not speak."""
    return bool(meta_of(request).get(VERSION, REVISION) != REVISION)


_turn = iter(range(1_000_000))


def another_order(value: Message) -> Message:
    """The tools, each time in another order."""
    tools = [*value["tools"], {"name": "another", "inputSchema": {"type": "object"}}]
    return {**value, "tools": tools if next(_turn) % 2 else tools[::-1]}


def refuse_after(request: Any, answered: Any) -> Any:
    """Refuse a request whose id was used before."""
    id = request.get("id") if isinstance(request, dict) else None
    if isinstance(id, int) and id in _used:
        return error(request, -32600)
    _used.add(id)
    return answered


_used: set[Any] = set()


def forget_supported(request: Any, answered: Any) -> Any:
    """Do not say which versions are spoken, in errors about the version."""
    if isinstance(answered, dict) and answered.get("error", {}).get("code") == UNSUPPORTED:
        del answered["error"]["data"]
    return answered


def unknown_tool_is(code: int) -> Defect:
    """Answer calls of an unknown tool by some code."""
    return refused_if(
        "tools/call", lambda params: params.get("name") == "mcpgen-no-such-tool", code
    )


def refuse_before_discovery(request: Any, answered: Any) -> Any:
    """Refuse lists on a connection that did not begin with discovery."""
    method = request.get("method") if isinstance(request, dict) else None
    if method == "tools/list" and "server/discover" not in _used:
        return error(request, -32600)
    _used.add(method)
    return answered


def keep_the_version(request: Any, answered: Any) -> Any:
    """Refuse what follows a request of another version."""
    if of_another_version(request):
        _used.add(VERSION)
    elif VERSION in _used:
        _used.remove(VERSION)
        return error(request, -32602)
    return answered


DEFECTS: dict[str, Defect] = {
    "discover.result-shape": edit_result(
        "server/discover", lambda value: {**value, "supportedVersions": [5, REVISION]}
    ),
    "discover.server-info": edit_result("server/discover", without("_meta")),
    "capabilities.server-set-2026": edit_result(
        "server/discover",
        lambda value: {**value, "capabilities": {**CAPABILITIES, "prompts": 1}},
    ),
    "lifecycle.implementation-full": edit_result(
        "server/discover",
        lambda value: {**value, "_meta": {f"{PREFIX}serverInfo": {"name": "raw"}}},
    ),
    "meta.client-info-optional-for-server": lambda request, answered: (
        answered
        if f"{PREFIX}clientInfo" in meta_of(request) or "result" not in (answered or {})
        else error(request, -32602)
    ),
    "meta.missing-required-rejected": lambda request, answered: (
        error(request, -32600)
        if meta_of(request) and not {VERSION, CAPABLE} <= {*meta_of(request)}
        else answered
    ),
    "meta.result-server-info": edit_result("tools/list", without("_meta")),
    "versioning.unsupported-error": forget_supported,
    "ping.removed": accept_requests(lambda request: request.get("method") == "ping"),
    "logging.set-level-removed": accept_requests(
        lambda request: request.get("method") == "logging/setLevel"
    ),
    "resources.subscribe-method-removed": accept_requests(
        lambda request: request.get("method") == "resources/subscribe"
    ),
    "jsonrpc.request-id-unique-in-flight": refuse_after,
    "tools.list-result-shape-2026": edit_result("tools/list", without("resultType")),
    "resources.list-result-shape-2026": edit_result("resources/list", without("resultType")),
    "resources.templates-result-shape-2026": edit_result(
        "resources/templates/list", without("resultType")
    ),
    "prompts.list-result-shape-2026": edit_result("prompts/list", without("resultType")),
    "resources.read-result-shape-2026": edit_result("resources/read", without("resultType")),
    "prompts.get-result-shape": edit_result("prompts/get", without("resultType")),
    "completion.result-shape": edit_result("completion/complete", without("resultType")),
    "tools.call-result-content-required": edit_result("tools/call", without("resultType")),
    "tools.list-deterministic-order": edit_result("tools/list", another_order),
    "resources.not-found-32602": refused_if(
        "resources/read", lambda params: "no-such" in str(params.get("uri")), -32603
    ),
    "logging.invalid-level-error-2026": lambda request, answered: (
        error(request, -32600) if meta_of(request).get(LEVEL) == "verbose" else answered
    ),
    "caching.hints-required": edit_result("tools/list", without("ttlMs")),
    "caching.ttl-integer-ms": edit_result("tools/list", lambda value: {**value, "ttlMs": 0.5}),
    "caching.ttl-non-negative": edit_result("tools/list", lambda value: {**value, "ttlMs": -1}),
    "caching.scope-values": edit_result(
        "tools/list", lambda value: {**value, "cacheScope": "shared"}
    ),
    "jsonrpc.code-reserved-range": unknown_tool_is(-32050),
    "jsonrpc.code-32042-not-emitted": unknown_tool_is(-32042),
    "jsonrpc.code-legacy-range-unused": unknown_tool_is(-32001),
    "lifecycle.no-handshake": refuse_before_discovery,
    "versioning.per-request-decision": keep_the_version,
    "versioning.modern-only-rejects-initialize": accept_requests(
        lambda request: request.get("method") == "initialize"
    ),
    "versioning.modern-only-names-versions": lambda request, answered: (
        error({**request, "method": ""}, -32602)
        if isinstance(request, dict) and request.get("method") == "initialize"
        else answered
    ),
}
"""Changes of a response that break one rule, on each transport."""

BEFORE: dict[str, tuple[str, Message]] = {
    "stdio.server-message-kinds": ("server/discover", CHANGED),
    "jsonrpc.server-no-requests": ("tools/list", {**STRAY, "method": "roots/list"}),
    "logging.per-request-level": (
        "tools/list",
        {**CHANGED, "method": "notifications/message", "params": {"level": "info", "data": 1}},
    ),
}
"""Messages that break a rule when they are sent before the answer to a method."""


def server_function(name: str) -> Callable[[bytes], list[bytes]]:
    """A server that has read nothing yet: gives the lines that it writes for one that it reads."""
    method, early = BEFORE.get(name, ("", {}))
    _used.clear()

    def respond(line: bytes) -> list[bytes]:
        try:
            request = json.loads(line)
            answered = answer(request)
        except ValueError:
            request, answered = None, error(None, -32700)
        answered = DEFECTS[name](request, answered) if name in DEFECTS else answered
        before = bool(method) and bool(meta_of(request)) and request["method"] == method
        written = [early] if before else []
        return [json.dumps(each).encode() for each in (*written, answered) if each is not None]

    return respond


def main() -> None:
    """Serve over stdio."""
    name = sys.argv[1]
    respond = server_function(name)
    for line in sys.stdin.buffer:
        for written in respond(line):
            print(written.decode(), flush=True)
    if name == "stdio.shutdown-server-on-eof":
        threading.Event().wait()
