"""The parts of the tables of rules: rules, cases, answers, and defects of a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Message = dict[str, Any]
Defect = Callable[[Any, Any], Any] | type[Any]
"""Changes the answer to a request.

Both are JSON values; a request that is no JSON is bytes. An answer can be `None` for none, bytes
for what is written in its place, or a tuple of several messages. A class is a defect with a state:
each connection has an instance of it.
"""

OLDEST, MIDDLE, OLD, NEW = "2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"
ANCIENT = "1900-01-01"
PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABLE, LEVEL, NAMED = (
    f"{PREFIX}{name}"
    for name in ("protocolVersion", "clientCapabilities", "logLevel", "serverInfo")
)
FIRST = ("initialize", "server/discover")
"""The methods of the first request of a session."""


class Case(NamedTuple):
    """Answers of a server to the requests of one check, and the verdict.

    Attributes:
        state: kept, broken or skipped.
        answers: The answers in order; empty results follow. Rules about all messages get messages.
        options: The revision, the capabilities and so on; see `judging.judge`.
    """

    state: str
    answers: tuple[Any, ...]
    options: dict[str, Any]


@dataclass
class Rule:
    """One rule with its cases.

    Attributes:
        id: The rule.
        cases: Answers that are judged, where they are not those of the tiny server.
        defect: Changes answers of a correct server so that it breaks this rule alone.
        over_http: Does so in requests and responses of HTTP; see `tiny_http.HttpDefect`.
        where: The revisions, or the transport, where the defect breaks the rule; all unless given.
    """

    id: str
    cases: tuple[Case, ...] = ()
    defect: Defect | None = None
    over_http: Any = None
    where: tuple[str, ...] = ()


def rule(id: str, *cases: Case, **more: Any) -> Rule:
    """A rule; see there."""
    return Rule(id, cases, **more)


def kept(*answers: Any, **options: Any) -> Case:
    """The rule is kept."""
    return Case("kept", answers, options)


def broken(*answers: Any, **options: Any) -> Case:
    """The rule is broken."""
    return Case("broken", answers, options)


def skipped(*answers: Any, **options: Any) -> Case:
    """The rule does not apply."""
    return Case("skipped", answers, options)


# Answers: members of a response, to which the id is added, or messages with `jsonrpc`. Over HTTP,
# they can be a status, or a tuple of status, message or bytes, and header fields, too.
OK: Message = {"result": {}}
CHANGED: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
LOG = {**CHANGED, "method": "notifications/message", "params": {"level": "info", "data": 1}}
STREAM = {"content-type": "text/event-stream"}
READS = {"annotations": {"readOnlyHint": True}}
NEEDS = {
    **READS,
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    },
}


def says(**members: Any) -> Message:
    """A result."""
    return {"result": members}


def refused(code: int = -1, **members: Any) -> Message:
    """An error."""
    return {"error": {"code": code, "message": "no", **members}}


def anonymous(code: int) -> Message:
    """An error without id."""
    return {"jsonrpc": "2.0", **refused(code)}


def numbered(*ids: Any) -> list[Message]:
    """Results with these ids."""
    return [{"jsonrpc": "2.0", "id": id, "result": {}} for id in ids]


def tools(*each: Any) -> Message:
    """A list of tools with names and schemas, unless they have others."""
    plain = {"name": "a", "inputSchema": {"type": "object"}}
    return says(tools=[{**plain, **one} if isinstance(one, dict) else one for one in each])


# Defects
def method_of(request: Any) -> Any:
    """The method of a message; `None` if it has none."""
    return request.get("method") if isinstance(request, dict) else None


def params_of(request: Any) -> Message:
    """The params of a message; empty if it has none."""
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}


def error(request: Any, code: int) -> Message:
    """An error in answer to a request."""
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "refused"}}


def edit(methods: str | Sequence[str], change: Callable[[Any], Any]) -> Defect:
    """Change the results of a method, or of some."""

    def edited(request: Any, answer: Any) -> Any:
        named = [methods] if isinstance(methods, str) else methods
        if method_of(request) in named and "result" in (answer or {}):
            answer["result"] = change(answer["result"])
        return answer

    return edited


def members(methods: str | Sequence[str], **new: Any) -> Defect:
    """Change members of the results of a method, or of some."""
    return edit(methods, lambda result: {**result, **new})


def without(name: str) -> Callable[[Any], Any]:
    """Leave out a member."""
    return lambda value: {key: each for key, each in value.items() if key != name}


def entries(name: str, change: Callable[[list[Any]], list[Any]]) -> Defect:
    """Change the list of tools, resources or prompts."""
    return edit(f"{name}/list", lambda result: {**result, name: change(result[name])})


def tool(**new: Any) -> Defect:
    """Change members of the listed tool."""
    return entries("tools", lambda listed: [{**listed[0], **new}])


def called(change: Callable[[Any], Any]) -> Defect:
    """Change the results of calls that do not fail."""
    return edit("tools/call", lambda result: result if result.get("isError") else change(result))


def block(value: Message) -> Defect:
    """Add a block to the content of the tool's results."""
    return called(lambda result: {**result, "content": [*result["content"], value]})


def structured(value: Any) -> Defect:
    """Give other structured content, with its text."""
    content = [{"type": "text", "text": json.dumps(value)}]
    return called(lambda result: {**result, "content": content, "structuredContent": value})


def answering(method: str, change: Callable[[Any], Any]) -> Defect:
    """Change the answers to a method."""
    return lambda request, answer: change(answer) if method_of(request) == method else answer


def results(change: Callable[[Any], Any]) -> Defect:
    """Change responses with a result."""
    return lambda request, answer: change(answer) if "result" in (answer or {}) else answer


def capability(name: str, value: Any) -> Defect:
    """Declare a capability with another value, or not with `None`."""

    def declare(result: Message) -> Message:
        declared = {**result["capabilities"], name: value}
        return {
            **result,
            "capabilities": declared if value is not None else without(name)(declared),
        }

    return edit(FIRST, declare)


def code(old: int, new: Any, method: str = "") -> Defect:
    """Change the code of an error, of all methods or one."""

    def change(request: Any, answer: Any) -> Any:
        if (
            method in ("", method_of(request))
            and (answer or {}).get("error", {}).get("code") == old
        ):
            answer["error"]["code"] = new
        return answer

    return change


def refuse(method: str, number: int, applies: Callable[[Any], Any] = lambda params: True) -> Defect:
    """Refuse requests of a method, or those with some params."""
    return fail(number, lambda it: method_of(it) == method and applies(params_of(it)))


def fail(number: int, when: Callable[[Any], Any]) -> Defect:
    """Refuse some requests."""
    return lambda request, answer: (
        error(request, number) if isinstance(request, dict) and when(request) else answer
    )


def serve(method: str, result: Message) -> Defect:
    """Answer requests of a method that should be refused."""
    return lambda request, answer: (
        {"jsonrpc": "2.0", "id": request["id"], "result": result}
        if method_of(request) == method and "error" in answer
        else answer
    )


def before(method: str, message: Message) -> Defect:
    """Send a message before the answer to a method."""
    return answering(method, lambda answer: (message, answer))


def all_of(*defects: Defect) -> Defect:
    """All of some changes."""

    def change(request: Any, answer: Any) -> Any:
        for each in defects:
            answer = each(request, answer)
        return answer

    return change
