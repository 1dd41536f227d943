"""Checks that call tools: read-only tools, or all tools if the user allows it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mcpgen.check_server.connections import Reply
from mcpgen.check_server.feature_checks import validator_class
from mcpgen.check_server.jsonrpc_checks import LISTS
from mcpgen.check_server.outcomes import applies, no_objects, require, require_valid
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import Run, Table
from mcpgen.errors import format_value
from mcpgen.explain import violations
from mcpgen.json_types import Json, Node, is_array, is_object

TABLE = Table()

MAX_CALLS = 10
"""Limit of the tools that are called."""

_VALUES: dict[str, Json] = {
    "string": "mcpgen",
    "integer": 1,
    "number": 1,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}
_PARAM_HEADER = "x-mcp-header"


@dataclass(frozen=True)
class Call:
    """A tool that may be called.

    Attributes:
        tool: Its entry in the list.
        arguments: Arguments that its inputSchema allows.
    """

    tool: Node
    arguments: Node

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.tool.get("name"))


def arguments_for(schema: Json) -> Node | None:
    """Values for the required members of an inputSchema; `None` if they cannot be built."""
    from jsonschema import SchemaError
    from referencing.exceptions import Unresolvable

    if not is_object(schema):
        return None
    properties: Json = schema.get("properties", {})
    required: Json = schema.get("required", [])
    named = is_array(required) and all(isinstance(name, str) for name in required)
    if not is_object(properties) or not named:
        return None
    built: Node = {}
    for name in required:
        member: Json = properties.get(name)
        kind: Json = member.get("type") if is_object(member) else None
        fixed: Json = next(
            (member[key] for key in ("const", "default") if is_object(member) and key in member),
            None,
        )
        options: Json = member.get("enum") if is_object(member) else None
        if fixed is not None:
            built[name] = fixed
        elif is_array(options) and options:
            built[name] = options[0]
        elif isinstance(kind, str) and kind in _VALUES:
            built[name] = _VALUES[kind]
        else:
            return None
    validators = validator_class(schema)
    try:
        validators.check_schema(schema)
        return built if validators(schema).is_valid(built) else None
    except (SchemaError, Unresolvable, RecursionError, ValueError):
        return None


async def _calls(session: Session) -> list[Call]:
    """The tools that may be called, with arguments."""
    applies(session.declares("tools"), "the server declares no tools")
    tools = await session.entries(*LISTS["tools"])
    allowed = [tool for tool in tools if session.server.call_tools or _only_reads(tool)]
    applies(bool(allowed), "no tool says that it only reads; --call-tools calls them all")
    if not session.has_handshake and session.transport == "http":
        allowed = [tool for tool in allowed if _PARAM_HEADER not in json.dumps(tool)]
    pairs = [(tool, arguments_for(tool.get("inputSchema"))) for tool in allowed]
    calls = [Call(tool, arguments) for tool, arguments in pairs if arguments is not None]
    applies(bool(calls), "no arguments can be built from the schemas of the tools")
    return calls[:MAX_CALLS]


def _only_reads(tool: Node) -> bool:
    annotations: Json = tool.get("annotations")
    return is_object(annotations) and annotations.get("readOnlyHint") is True


async def _call(session: Session, name: str, arguments: Json) -> Reply:
    return await session.ask_once("tools/call", {"name": name, "arguments": arguments})


async def _results(session: Session) -> list[tuple[Call, Node]]:
    results: list[tuple[Call, Node]] = []
    for call in await _calls(session):
        result: Json = (await _call(session, call.name, call.arguments)).result
        complete = is_object(result) and result.get("resultType") != "input_required"
        results += [(call, result)] if complete else []
    applies(bool(results), "no tool gives a complete result without more input")
    return results


@TABLE.add("tools.call-result-content-required")
async def a_call_has_content(session: Session) -> None:
    for call, result in await _results(session):
        if "task" in result:
            continue
        rest: Node = {"content": no_objects(result["content"])} if "content" in result else {}
        rest |= {"structuredContent": {}} if "structuredContent" in result else {}
        wrong = session.revision.violation("CallToolResult", {**result, **rest})
        require_valid(wrong, f"result of {call.name}")


async def _blocks(session: Session, kind: str) -> list[tuple[str, Node]]:
    """The content blocks of a type, in all results; with the names of the tools."""
    matching: list[tuple[str, Node]] = []
    for call, result in await _results(session):
        content: Json = result.get("content")
        blocks = [each for each in content if is_object(each)] if is_array(content) else []
        matching += [(call.name, each) for each in blocks if each.get("type") == kind]
    return matching


def _shape_check(kind: str, type: str) -> Run:
    async def blocks_have_their_shape(session: Session) -> None:
        blocks = await _blocks(session, kind)
        applies(bool(blocks), f"no result has a block of type {kind}")
        for name, block in blocks:
            require_valid(session.revision.violation(type, block), f"{kind} of {name}")

    return blocks_have_their_shape


def _absence_check(kind: str) -> Run:
    async def blocks_do_not_exist_yet(session: Session) -> None:
        names = [name for name, _ in await _blocks(session, kind)]
        require(not names, f"no block of type {kind}", f"one in the result of {names[:1]}")

    return blocks_do_not_exist_yet


TABLE.add("content.text-shape")(_shape_check("text", "TextContent"))
TABLE.add("content.image-shape")(_shape_check("image", "ImageContent"))
TABLE.add("content.audio-shape")(_shape_check("audio", "AudioContent"))
TABLE.add("content.resource-link-shape")(_shape_check("resource_link", "ResourceLink"))
TABLE.add("content.embedded-shape")(_shape_check("resource", "EmbeddedResource"))
TABLE.add("content.no-audio-2024")(_absence_check("audio"))
TABLE.add("content.no-resource-link-before-2025-06")(_absence_check("resource_link"))


@TABLE.add("content.structured-object")
async def structured_content_is_an_object(session: Session) -> None:
    for call, content in await _structured_results(session):
        require(
            is_object(content),
            f"an object as structuredContent of {call.name}",
            format_value(content),
        )


async def _structured_results(session: Session) -> list[tuple[Call, Json]]:
    structured = [
        (call, result["structuredContent"])
        for call, result in await _results(session)
        if "structuredContent" in result
    ]
    applies(bool(structured), "no result has structuredContent")
    return structured


@TABLE.add("tools.output-conforms")
async def structured_content_keeps_its_schema(session: Session) -> None:
    from jsonschema import SchemaError
    from referencing.exceptions import Unresolvable

    judged = False
    for call, result in await _results(session):
        schema: Json = call.tool.get("outputSchema")
        if not is_object(schema) or result.get("isError") is True:
            continue
        judged = True
        expected = f"structuredContent of {call.name}, which has an outputSchema"
        require("structuredContent" in result, expected, format_value(result))
        validators = validator_class(schema)
        try:
            validators.check_schema(schema)
            wrong = violations.first(validators(schema).iter_errors(result["structuredContent"]))
        except (SchemaError, Unresolvable, RecursionError):
            continue  # judged by json-schema.schema-valid, or in another document
        require_valid(wrong, f"structuredContent of {call.name}")
    applies(judged, "no tool that was called has an outputSchema")


@TABLE.add("content.structured-text-fallback")
async def structured_content_is_also_text(session: Session) -> None:
    for call, result in await _results(session):
        if "structuredContent" not in result:
            continue
        content: Json = result.get("content")
        blocks = content if is_array(content) else []
        texts = [each.get("text") for each in blocks if is_object(each)]
        kept = any(_same_json(text, result["structuredContent"]) for text in texts)
        require(kept, f"structuredContent of {call.name} as text too", format_value(content, 120))


def _same_json(text: Json, value: Json) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (TypeError, ValueError, RecursionError):
        return False


async def _incomplete_calls(session: Session) -> list[tuple[Call, Reply]]:
    """Calls without the arguments that are required."""
    calls = [call for call in await _calls(session) if call.arguments]
    calls = [call for call in calls if call.tool["inputSchema"].get("required")]
    applies(bool(calls), "no tool that may be called requires an argument")
    return [(call, await _call(session, call.name, {})) for call in calls[:1]]


@TABLE.add("tools.invalid-arguments-protocol-error")
async def missing_arguments_are_refused(session: Session) -> None:
    for call, reply in await _incomplete_calls(session):
        failed = is_object(reply.result) and reply.result.get("isError") is True
        expected = f"an error, or isError, for {call.name} without arguments"
        require(failed or is_object(reply.error), expected, reply.text)


@TABLE.add("tools.input-validation-is-execution-error")
async def missing_arguments_are_told_to_the_model(session: Session) -> None:
    for call, reply in await _incomplete_calls(session):
        failed = is_object(reply.result) and reply.result.get("isError") is True
        require(failed, f"isError for {call.name} without arguments", reply.text)
