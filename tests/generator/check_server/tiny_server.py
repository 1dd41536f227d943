"""A tiny server in raw JSON-RPC that keeps each rule, unless it is given a defect.

`main` serves over stdio, with the words `handshake|stateless RULE [SECONDS]`: with the defect of a
rule, or with that of no rule. A slow server takes some seconds to get ready for the next message
after an answer. Each check starts it some ten times, so it imports little.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from generator.check_server.rows import (
    CAPABLE,
    LEVEL,
    MIDDLE,
    NAMED,
    NEW,
    OLD,
    VERSION,
    Defect,
    Message,
    params_of,
)

REVISIONS = (MIDDLE, OLD)
"""The revisions with a handshake."""
INFO = {"name": "raw", "version": "1"}
TOOLS = [
    {
        "name": "measure",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"degrees": {"type": "number"}},
            "required": ["degrees"],
        },
        "annotations": {"readOnlyHint": True},
    }
]
LISTS: dict[str, Message] = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {
        "resources": [{"uri": "raw://now", "name": "now"}, {"uri": "raw://map", "name": "map"}]
    },
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "raw://{city}", "name": "city"}]
    },
    "prompts/list": {
        "prompts": [{"name": "report", "arguments": [{"name": "city", "required": True}]}]
    },
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
GONE = ("initialize", "ping", "logging/setLevel", "resources/subscribe")
"""Methods of servers with a handshake alone."""
UNSUPPORTED, MISMATCH = -32022, -32020


class Refused(Exception):
    """A request is answered by an error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def meta_of(request: Any) -> Message:
    """The metadata of a request; empty if it has none."""
    meta = params_of(request).get("_meta")
    return meta if isinstance(meta, dict) else {}


class TinyServer:
    """Answers messages of one connection, of revisions with a handshake or of that without."""

    def __init__(self, *, stateless: bool = False, defect: Defect | None = None) -> None:
        names = ("tools", "resources", "prompts", "completions", "logging")
        self.capabilities: Message = {name: {} for name in names}
        if stateless:
            self.capabilities["tools"] = {"listChanged": True}
        self._stateless = stateless
        self._change: Any = defect() if isinstance(defect, type) else defect
        self._initialized = stateless

    def read(self, text: bytes) -> list[Any]:
        """The answers to a line or body: JSON values, or bytes in place of them."""
        request: Any
        try:
            request = json.loads(text)
            answer = self._answer(request)
        except ValueError:
            request, answer = text, self.error(None, -32700)
        answered = self._change(request, answer) if self._change else answer
        answers = answered if isinstance(answered, tuple) else (answered,)
        return [each for each in answers if each is not None]

    def error(self, request: Any, code: int) -> Message:
        """An error in answer to a message, whose id is repeated if it has one."""
        message: Message = request if isinstance(request, dict) else {}
        own = {} if message.get("id") is None else {"id": message["id"]}
        body: Message = {"code": code, "message": "refused"}
        if self._stateless and message.get("method") == "initialize":
            body["message"] = f"refused; this server speaks {NEW}"
        if code == UNSUPPORTED:
            body["data"] = {"supported": [NEW], "requested": meta_of(request)[VERSION]}
        return {"jsonrpc": "2.0", **own, "error": body}

    def _answer(self, request: Any) -> Message | None:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            return self.error(request, -32600)
        if "id" not in request:
            return None
        early = not self._initialized and request["method"] not in ("initialize", "ping")
        if request["id"] is None or early:
            return self.error(request, -32600)
        self._initialized |= request["method"] == "initialize"
        try:
            value = self._result(request["method"], request.get("params", {}))
        except Refused as refused:
            return self.error(request, refused.code)
        copied: Message = json.loads(json.dumps(value))  # for defects that change a part
        return {"jsonrpc": "2.0", "id": request["id"], "result": copied}

    def _result(self, method: str, params: Any) -> Message:
        if not self._stateless:
            return self._plain_result(method, params)
        meta = meta_of({"params": params})
        if VERSION not in meta or CAPABLE not in meta:
            raise Refused(-32602)
        if meta[VERSION] != NEW:
            raise Refused(UNSUPPORTED)
        if method in GONE:
            raise Refused(-32601)
        if meta.get(LEVEL, "info") not in LEVELS:
            raise Refused(-32602)
        try:
            value = self._plain_result(method, params)
        except Refused as refused:
            raise Refused(-32602 if refused.code == -32002 else refused.code) from None
        cached = method in (*LISTS, "server/discover", "resources/read")
        hints: Message = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
        return {"resultType": "complete", **value, **hints, "_meta": {NAMED: INFO}}

    def _plain_result(self, method: str, params: Any) -> Message:
        """The result of a request in revisions with a handshake."""
        if not isinstance(params, dict) or params.get("cursor"):
            raise Refused(-32602)
        if method in LISTS:
            return LISTS[method]
        match method:
            case "initialize":
                asked = params["protocolVersion"]
                version = asked if asked in REVISIONS else OLD
                named = {"capabilities": self.capabilities, "serverInfo": INFO}
                return {"protocolVersion": version, **named}
            case "server/discover" if self._stateless:
                return {"supportedVersions": [NEW], "capabilities": self.capabilities}
            case "ping":
                return {}
            case "tools/call" if params.get("name") == "measure":
                return call_result(params.get("arguments", {}))
            case "resources/read" if params.get("uri") == "raw://now":
                return {"contents": [{"uri": "raw://now", "text": "now"}]}
            case "resources/read" if params.get("uri") == "raw://map":
                return {"contents": [{"uri": "raw://map", "blob": "AAE="}]}
            case "resources/read" if isinstance(params.get("uri"), str):
                raise Refused(-32002)
            case "prompts/get" if params.get("name") == "report" and params.get("arguments"):
                return {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}
            case "completion/complete" if "argument" in params and is_known(params["ref"]):
                return {"completion": {"values": ["Oslo"]}}
            case "logging/setLevel" if params.get("level") in LEVELS:
                return {}
            case (
                "tools/call"
                | "resources/read"
                | "prompts/get"
                | "completion/complete"
                | "logging/setLevel"
            ):
                raise Refused(-32602)
            case _:
                raise Refused(-32601)


def call_result(arguments: Message) -> Message:
    """The result of the one tool."""
    if "city" not in arguments:
        return {"content": [{"type": "text", "text": "city is missing"}], "isError": True}
    content = [{"type": "text", "text": '{"degrees": 1.5}'}]
    return {"content": content, "structuredContent": {"degrees": 1.5}}


def is_known(reference: Message) -> bool:
    """Whether there is a prompt or template to complete."""
    return reference.get("name") in ("report", None)


def runs_on(request: Any, answer: Any) -> Any:
    """The defect of a process that does not end with its input."""
    return answer


def lines(answers: list[Any]) -> list[bytes]:
    """The lines of some answers."""
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in answers]
    return b"\n".join(written).split(b"\n") if written else []


def main() -> None:
    """Serve over stdio."""
    from generator.check_server.areas import RULES

    kind, name, *seconds = sys.argv[1:]
    defect = RULES[name].defect if name in RULES else None
    server = TinyServer(stateless=kind == "stateless", defect=defect)
    for line in sys.stdin.buffer:
        for each in lines(server.read(line)):
            sys.stdout.buffer.write(each + b"\n")
        sys.stdout.buffer.flush()
        threading.Event().wait(float([*seconds, "0"][0]))
    if defect is runs_on:
        threading.Event().wait()
