"""A tiny server in raw JSON-RPC that keeps the rules, and ways to break one of them each.

`main` serves over stdio, with the words `DEFECT [SECONDS]`. A defect is a function by the name of
its rule in `DEFECTS`, or a message in `BEFORE`. A slow server takes some seconds to get ready for
the next message after an answer. Each check starts it some ten times, so it imports little, and is
imported itself: Python compiles a script each time.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Message = dict[str, "Any"]
REVISIONS = ("2025-06-18", "2025-11-25")
INFO = {"name": "raw", "version": "1"}
CAPABILITIES: Message = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "completions": {},
    "logging": {},
}
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
RESOURCES = [{"uri": "raw://now", "name": "now"}, {"uri": "raw://map", "name": "map"}]
TEMPLATES = [{"uriTemplate": "raw://{city}", "name": "city"}]
PROMPTS = [{"name": "report", "arguments": [{"name": "city", "required": True}]}]
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Refused(Exception):
    """A request is answered by an error."""

    def __init__(self, code: int, text: str = "refused") -> None:
        super().__init__(text)
        self.code = code


def result(method: str, params: Any) -> Message:
    """The result of a request."""
    if not isinstance(params, dict) or params.get("cursor"):
        raise Refused(-32602)
    listed = {
        "tools/list": {"tools": TOOLS},
        "resources/list": {"resources": RESOURCES},
        "resources/templates/list": {"resourceTemplates": TEMPLATES},
        "prompts/list": {"prompts": PROMPTS},
    }
    if method in listed:
        return json.loads(json.dumps(listed[method]))  # type: ignore[no-any-return] # an object
    match method:
        case "initialize":
            asked = params["protocolVersion"]
            version = asked if asked in REVISIONS else REVISIONS[-1]
            return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
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
        case "completion/complete" if "argument" in params and names_what_there_is(params["ref"]):
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
    return {
        "content": [{"type": "text", "text": '{"degrees": 1.5}'}],
        "structuredContent": {"degrees": 1.5},
    }


def names_what_there_is(reference: Message) -> bool:
    return reference.get("name") in ("report", None)


class RawServer:
    """Answers messages; `defect` may change an answer, or what is done in place of one."""

    def __init__(self, defect: str = "") -> None:
        self.answered = DEFECTS.get(defect, lambda request, answer: answer)
        self.initialized = False

    def answer(self, text: bytes) -> Any:
        """The answer to a line or body; `None` for none."""
        try:
            request = json.loads(text)
        except ValueError:
            return self.answered(
                text, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no JSON"}}
            )
        answer = self._answer(request)
        return self.answered(request, answer)

    def _answer(self, request: Any) -> Any:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            return self._error(request, -32600)
        if request.get("jsonrpc") != "2.0":
            return self._error(request, -32600)
        if "id" not in request:
            return None
        if request["id"] is None:
            return self._error(request, -32600)
        if not self.initialized and request["method"] not in ("initialize", "ping"):
            return self._error(request, -32600)
        self.initialized |= request["method"] == "initialize"
        try:
            value = result(request["method"], request.get("params", {}))
        except Refused as refused:
            return self._error(request, refused.code)
        return {"jsonrpc": "2.0", "id": request["id"], "result": value}

    def _error(self, request: Any, code: int) -> Message:
        own = (
            {"id": request["id"]}
            if isinstance(request, dict) and request.get("id") is not None
            else {}
        )
        return {"jsonrpc": "2.0", **own, "error": {"code": code, "message": "refused"}}


Defect = Callable[["Any", "Any"], "Any"]
DEFECTS: dict[str, Defect] = {}


def defect(rule: str) -> Callable[[Defect], Defect]:
    """Register what breaks one rule."""

    def registered(function: Defect) -> Defect:
        DEFECTS[rule] = function
        return function

    return registered


def edit_result(method: str, edit: Callable[[Any], Any]) -> Defect:
    """Change the result of one method."""

    def change(request: Any, answer: Any) -> Any:
        if (
            isinstance(request, dict)
            and request.get("method") == method
            and "result" in (answer or {})
        ):
            answer["result"] = edit(answer["result"])
        return answer

    return change


def change_code(old: int, new: Any, method: str = "") -> Defect:
    """Change the code of an error, of all methods or one."""

    def change(request: Any, answer: Any) -> Any:
        named = not method or (isinstance(request, dict) and request.get("method") == method)
        if named and answer is not None and answer.get("error", {}).get("code") == old:
            answer["error"]["code"] = new
        return answer

    return change


def tool(**members: Any) -> Callable[[Any], Any]:
    """Change members of the listed tool."""
    return lambda listed: {**listed, "tools": [{**listed["tools"][0], **members}]}


def without(name: str) -> Callable[[Any], Any]:
    """Leave out a member."""
    return lambda value: {key: each for key, each in value.items() if key != name}


def answer_anyway(rule_method: str, value: Any) -> Defect:
    """Answer requests of a method that should be refused."""

    def change(request: Any, answer: Any) -> Any:
        if (
            isinstance(request, dict)
            and request.get("method") == rule_method
            and "error" in (answer or {})
        ):
            return {"jsonrpc": "2.0", "id": request["id"], "result": value}
        return answer

    return change


def in_turn(*defects: Defect) -> Defect:
    """All of some changes."""

    def change(request: Any, answer: Any) -> Any:
        for each in defects:
            answer = each(request, answer)
        return answer

    return change


def refused_if(method: str, applies: Callable[[Any], bool], code: int) -> Defect:
    """Refuse some requests of a method, by their params."""

    def change(request: Any, answer: Any) -> Any:
        called = isinstance(request, dict) and request.get("method") == method
        if called and applies(request.get("params", {})):
            return {
                "jsonrpc": "2.0",
                "id": request["id"],
                "error": {"code": code, "message": "refused"},
            }
        return answer

    return change


def subscription_defect(subscribed: Message, unsubscribed: Message) -> Defect:
    """Subscriptions to resources, with some results."""
    return in_turn(
        edit_result(
            "initialize",
            lambda value: {
                **value,
                "capabilities": {**CAPABILITIES, "resources": {"subscribe": True}},
            },
        ),
        answer_anyway("resources/subscribe", subscribed),
        answer_anyway("resources/unsubscribe", unsubscribed),
    )


def with_block(block: Message) -> Defect:
    """Add a block to the content of the tool's results."""
    return edit_result(
        "tools/call",
        lambda value: (
            value if value.get("isError") else {**value, "content": [*value["content"], block]}
        ),
    )


DEFECTS |= {
    "jsonrpc.code-parse-error": change_code(-32700, -32603),
    "jsonrpc.code-invalid-request": change_code(-32600, -32099),
    "jsonrpc.code-method-not-found": change_code(-32601, -32602, "mcpgen/no-such-method"),
    "jsonrpc.code-invalid-params": change_code(-32602, -32603, "tools/call"),
    "ping.answered": edit_result("ping", lambda value: {"pong": True}),
    "lifecycle.initialize-result": edit_result(
        "initialize", lambda value: {**value, "instructions": 5}
    ),
    "lifecycle.implementation-full": edit_result(
        "initialize", lambda value: {**value, "serverInfo": {"name": "raw"}}
    ),
    "capabilities.server-set-2025-11": edit_result(
        "initialize",
        lambda value: {**value, "capabilities": {**CAPABILITIES, "tools": {"listChanged": 1}}},
    ),
    "tools.list-result-shape": edit_result("tools/list", lambda value: {**value, "nextCursor": 5}),
    "tools.name-and-schema-required": edit_result("tools/list", tool(description=5)),
    "tools.input-schema-root-object": edit_result(
        "tools/list", tool(inputSchema={"type": "string"})
    ),
    "tools.input-schema-property-objects": edit_result(
        "tools/list", tool(inputSchema={"type": "object", "properties": {"city": True}})
    ),
    "tools.output-schema-root-object": edit_result(
        "tools/list", tool(outputSchema={"required": ["degrees"]})
    ),
    "json-schema.schema-valid": edit_result(
        "tools/list",
        tool(inputSchema={"type": "object", "properties": {"city": {"type": "objekt"}}}),
    ),
    "tools.name-charset": edit_result("tools/list", tool(name="measure it", annotations={})),
    "tools.name-length": edit_result("tools/list", tool(name="m" * 129, annotations={})),
    "tools.name-unique": edit_result("tools/list", lambda value: {"tools": value["tools"] * 2}),
    "tools.output-conforms": edit_result(
        "tools/call",
        lambda value: (
            value
            if value.get("isError")
            else {
                "content": [{"type": "text", "text": '{"degrees": "cold"}'}],
                "structuredContent": {"degrees": "cold"},
            }
        ),
    ),
    "tools.call-result-content-required": edit_result(
        "tools/call",
        lambda value: {**value, "isError": "yes"} if "structuredContent" in value else value,
    ),
    "content.text-shape": edit_result(
        "tools/call",
        lambda value: (
            value
            if value.get("isError")
            else {**value, "content": [*value["content"], {"type": "text"}]}
        ),
    ),
    "content.structured-text-fallback": edit_result(
        "tools/call",
        lambda value: {**value, "content": []} if "structuredContent" in value else value,
    ),
    "tools.input-validation-is-execution-error": edit_result("tools/call", without("isError")),
    "resources.list-result-shape": edit_result(
        "resources/list", lambda value: {**value, "nextCursor": 5}
    ),
    "resources.uri-and-name-required": edit_result(
        "resources/list",
        lambda value: {"resources": [without("name")(each) for each in value["resources"]]},
    ),
    "resources.uri-unique": edit_result(
        "resources/list", lambda value: {"resources": value["resources"] * 2}
    ),
    "resources.templates-result-shape": edit_result(
        "resources/templates/list", lambda value: {**value, "nextCursor": 5}
    ),
    "resources.templates-rfc6570": edit_result(
        "resources/templates/list",
        lambda value: {"resourceTemplates": [{"uriTemplate": "raw://{city", "name": "x"}]},
    ),
    "resources.read-result-shape": edit_result("resources/read", lambda value: {"contents": {}}),
    "resources.contents-text-or-blob": edit_result(
        "resources/read", lambda value: {"contents": [{"uri": "raw://now"}]}
    ),
    "resources.binary-encoded": edit_result(
        "resources/read", lambda value: {"contents": [{"uri": "raw://map", "blob": "%"}]}
    ),
    "resources.not-found-32002": change_code(-32002, -32602),
    "resources.subscribe-flag-legacy": answer_anyway("resources/subscribe", {}),
    "prompts.list-result-shape": edit_result(
        "prompts/list", lambda value: {**value, "nextCursor": 5}
    ),
    "prompts.name-required": edit_result(
        "prompts/list", lambda value: {"prompts": [*value["prompts"], {"title": "no name"}]}
    ),
    "prompts.get-result-shape": edit_result(
        "prompts/get", lambda value: {"messages": [{"role": "system"}]}
    ),
    "completion.result-shape": edit_result(
        "completion/complete", lambda value: {"completion": {"values": [5]}}
    ),
    "completion.max-100-values": edit_result(
        "completion/complete", lambda value: {"completion": {"values": ["x"] * 101}}
    ),
    "logging.invalid-level-error": change_code(-32602, -32603, "logging/setLevel"),
    "pagination.next-cursor-if-more": edit_result(
        "prompts/list", lambda value: {**value, "nextCursor": None}
    ),
    "content.structured-object": in_turn(
        edit_result("tools/list", lambda value: {"tools": [without("outputSchema")(TOOLS[0])]}),
        edit_result(
            "tools/call",
            lambda value: (
                value
                if value.get("isError")
                else {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}
            ),
        ),
    ),
    "lifecycle.implementation-title": edit_result(
        "initialize", lambda value: {**value, "serverInfo": {**INFO, "title": 5}}
    ),
    "capabilities.server-set-2025": edit_result(
        "initialize",
        lambda value: {**value, "capabilities": {**CAPABILITIES, "completions": 1}},
    ),
    "capabilities.server-features-advertised": refused_if(
        "logging/setLevel", lambda params: True, -32601
    ),
    "prompts.invalid-name-error": refused_if(
        "prompts/get", lambda params: params["name"] != "report", -32603
    ),
    "prompts.missing-arguments-error": refused_if(
        "prompts/get",
        lambda params: params.get("name") == "report" and "arguments" not in params,
        -32603,
    ),
    "completion.invalid-prompt-error": refused_if(
        "completion/complete", lambda params: not names_what_there_is(params["ref"]), -32603
    ),
    "completion.missing-arguments-error": refused_if(
        "completion/complete", lambda params: "argument" not in params, -32603
    ),
    "logging.levels": refused_if(
        "logging/setLevel", lambda params: params["level"] == "notice", -32602
    ),
    "progress.token-type": refused_if(
        "ping", lambda params: params.get("_meta", {}).get("progressToken") == 0, -32602
    ),
    "pagination.invalid-cursor-error": answer_anyway("tools/list", {"tools": TOOLS}),
    "resources.subscribe-request": subscription_defect({"subscribed": True}, {}),
    "resources.unsubscribe-request": subscription_defect({}, {"subscribed": False}),
    "logging.declare-capability-initialize": edit_result(
        "initialize",
        lambda value: {**value, "capabilities": without("logging")(CAPABILITIES)},
    ),
    "completion.unsupported-error": in_turn(
        edit_result(
            "initialize",
            lambda value: {**value, "capabilities": without("completions")(CAPABILITIES)},
        ),
        change_code(-32601, -32602, "completion/complete"),
    ),
    "jsonrpc.code-method-ungated": edit_result(
        "initialize", lambda value: {**value, "capabilities": without("prompts")(CAPABILITIES)}
    ),
}
for _kind, _rule in (
    ("image", "content.image-shape"),
    ("audio", "content.audio-shape"),
    ("resource_link", "content.resource-link-shape"),
    ("resource", "content.embedded-shape"),
):
    DEFECTS[_rule] = with_block({"type": _kind})


@defect("versioning.server-counter-offer")
def refuse_unknown_versions(request: Any, answer: Any) -> Any:
    asked = isinstance(request, dict) and request.get("params")
    if isinstance(asked, dict) and asked.get("protocolVersion", "2025").startswith("1900"):
        return {
            "jsonrpc": "2.0",
            "id": request["id"],
            "error": {"code": -32602, "message": "unknown"},
        }
    return answer


@defect("versioning.server-latest")
def offer_the_oldest(request: Any, answer: Any) -> Any:
    initializes = isinstance(request, dict) and request.get("method") == "initialize"
    if initializes and request["params"]["protocolVersion"] not in REVISIONS:
        answer["result"]["protocolVersion"] = REVISIONS[0]
    return answer


@defect("jsonrpc.response-same-id")
def turn_ids_into_text(request: Any, answer: Any) -> Any:
    if isinstance(answer, dict) and "result" in answer:
        answer["id"] = str(answer["id"])
    return answer


@defect("jsonrpc.error-id-omitted-if-unreadable")
def answer_unreadable_text_with_null(request: Any, answer: Any) -> Any:
    return {**answer, "id": None} if isinstance(request, bytes) else answer


@defect("jsonrpc.notification-no-response")
def answer_notifications(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and "no-such-notification" in str(request.get("method")):
        return {"jsonrpc": "2.0", "error": {"code": -32601, "message": "unknown"}}
    return answer


@defect("jsonrpc.request-id-not-null")
def serve_requests_with_null(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and "id" in request and request["id"] is None:
        return {"jsonrpc": "2.0", "id": None, "result": {}}
    return answer


@defect("jsonrpc.request-id-type")
def refuse_the_id_zero(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and request.get("id") == 0:
        return {"jsonrpc": "2.0", "id": 0, "error": {"code": -32600, "message": "no id"}}
    return answer


@defect("jsonrpc.batch-removed")
def serve_batches(request: Any, answer: Any) -> Any:
    if isinstance(request, list):
        return [{"jsonrpc": "2.0", "id": each["id"], "result": {}} for each in request]
    return answer


@defect("jsonrpc.version-member")
def forget_the_version_of_results(request: Any, answer: Any) -> Any:
    return without("jsonrpc")(answer) if isinstance(answer, dict) and "result" in answer else answer


@defect("jsonrpc.error-fields")
def forget_the_message_of_errors(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and request.get("method") == "mcpgen/no-such-method":
        answer["error"] = without("message")(answer["error"])
    return answer


@defect("cancellation.invalid-ignored")
def answer_cancellations(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and request.get("method") == "notifications/cancelled":
        return {"jsonrpc": "2.0", "error": {"code": -32602, "message": "unknown request"}}
    return answer


@defect("tools.unknown-tool-error")
def unknown_tools_are_results(request: Any, answer: Any) -> Any:
    calls = isinstance(request, dict) and request.get("method") == "tools/call"
    if calls and "error" in answer and request["params"].get("name"):
        value = {"content": [], "isError": True}
        return {"jsonrpc": "2.0", "id": request["id"], "result": value}
    return answer


@defect("jsonrpc.error-id-required")
def forget_the_id_of_errors(request: Any, answer: Any) -> Any:
    if isinstance(request, dict) and request.get("method") == "mcpgen/no-such-method":
        return without("id")(answer)
    return answer


@defect("versioning.server-echo")
def offer_the_newest_alone(request: Any, answer: Any) -> Any:
    initializes = isinstance(request, dict) and request.get("method") == "initialize"
    if initializes and request["params"]["protocolVersion"] == REVISIONS[0]:
        answer["result"]["protocolVersion"] = REVISIONS[-1]
    if initializes and request["params"]["protocolVersion"].startswith("2024"):
        answer["result"]["protocolVersion"] = REVISIONS[0]
    return answer


DEFECTS["unsafe"] = edit_result("tools/list", tool(annotations={}))

BY_LINE: dict[str, Callable[[Any], bytes]] = {
    "stdio.no-embedded-newline": lambda answer: json.dumps(answer, indent=1).encode(),
    "stdio.stdout-only-messages": lambda answer: json.dumps(answer).encode() + b"\nanswered!",
}
"""Encoders of the answer to `ping`, each of which breaks a rule of lines."""


CHANGED: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
STRAY: Message = {"jsonrpc": "2.0", "id": 999_999}
BEFORE: dict[str, tuple[str, Message]] = {
    "lifecycle.initialize-first": ("initialize", CHANGED),
    "jsonrpc.params-object": ("ping", {**CHANGED, "params": ["tools"]}),
    "jsonrpc.notification-no-id": ("ping", {**CHANGED, "id": "changed"}),
    "jsonrpc.schema-is-authority": (
        "ping",
        {**CHANGED, "method": "notifications/message", "params": {"level": "loud", "data": 1}},
    ),
    "jsonrpc.response-exactly-one": (
        "ping",
        {**STRAY, "result": {}, "error": {"code": -32603, "message": "both"}},
    ),
    "jsonrpc.result-object": ("ping", {**STRAY, "result": 5}),
    "jsonrpc.error-code-integer": ("ping", {**STRAY, "error": {"code": 1.5, "message": "half"}}),
    "progress.active-token-only": (
        "ping",
        {
            **CHANGED,
            "method": "notifications/progress",
            "params": {"progressToken": "unknown", "progress": 1},
        },
    ),
    "logging.declare-capability-initialize": (
        "ping",
        {**CHANGED, "method": "notifications/message", "params": {"level": "info", "data": 1}},
    ),
}
"""Messages that break a rule when they are sent before the answer to a method."""


def server_function(name: str) -> Callable[[bytes], list[bytes]]:
    """A server that has read nothing yet: gives the lines that it writes for one that it reads."""
    server = RawServer(name)
    method, early = BEFORE.get(name, ("", {}))

    def respond(line: bytes) -> list[bytes]:
        answer = server.answer(line)
        before = bool(method) and f'"{method}"'.encode() in line
        written = [json.dumps(early).encode()] if before else []
        if answer is not None:
            write = BY_LINE.get(name) if b'"ping"' in line else None
            written += (write(answer) if write else json.dumps(answer).encode()).split(b"\n")
        return written

    return respond


def main() -> None:
    """Serve over stdio."""
    name, seconds = sys.argv[1], float([*sys.argv, "0"][2])
    respond = server_function(name)
    for line in sys.stdin.buffer:
        written = respond(line)
        if written:
            sys.stdout.buffer.write(b"\n".join(written) + b"\n")
            sys.stdout.buffer.flush()
            threading.Event().wait(seconds)
    if name == "lifecycle.shutdown-by-transport":
        threading.Event().wait()
