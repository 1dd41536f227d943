"""Tools, resources, prompts, completion, logging and pages: shapes of results, and refusals."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Sequence
from typing import Any

import uritemplate

from mcpgen.check_server.connections import Reply
from mcpgen.check_server.jsonrpc_checks import INVALID_PARAMS, LISTS, METHOD_NOT_FOUND
from mcpgen.check_server.outcomes import (
    applies,
    no_objects,
    require,
    require_error,
    require_valid,
    result_of,
)
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import Table
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object

TABLE = Table()

MAX_READ = 3
"""Limit of the resources and prompts that are read."""

MAX_VALUES = 100
"""Limit of the values of one completion."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

NO_CACHE: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
"""Correct values of members that other rules check."""


async def _list_shape(session: Session, capability: str, method: str, type: str) -> None:
    applies(session.declares(capability), f"the server declares no {capability}")
    result = result_of(await session.ask(method), method)
    rest = {name: no_objects(value) for name, value in result.items() if name in _MEMBERS}
    hints = {} if session.has_handshake else NO_CACHE
    shape = {**result, **hints, **rest}
    if shape.get("nextCursor", "") is None:
        del shape["nextCursor"]  # judged by pagination.next-cursor-if-more
    require_valid(session.revision.violation(type, shape), "result")


_MEMBERS = {"tools", "resources", "prompts", "resourceTemplates"}


@TABLE.add("tools.list-result-shape", "tools.list-result-shape-2026")
async def tools_are_listed(session: Session) -> None:
    await _list_shape(session, "tools", "tools/list", "ListToolsResult")


@TABLE.add("resources.list-result-shape", "resources.list-result-shape-2026")
async def resources_are_listed(session: Session) -> None:
    await _list_shape(session, "resources", "resources/list", "ListResourcesResult")


@TABLE.add("resources.templates-result-shape", "resources.templates-result-shape-2026")
async def templates_are_listed(session: Session) -> None:
    applies(session.declares("resources"), "the server declares no resources")
    reply = await session.ask("resources/templates/list")
    applies(reply.code != METHOD_NOT_FOUND, "the server has no templates")
    type = "ListResourceTemplatesResult"
    await _list_shape(session, "resources", "resources/templates/list", type)


@TABLE.add("prompts.list-result-shape", "prompts.list-result-shape-2026")
async def prompts_are_listed(session: Session) -> None:
    await _list_shape(session, "prompts", "prompts/list", "ListPromptsResult")


async def _entries(session: Session, capability: str) -> list[Node]:
    applies(session.declares(capability), f"the server declares no {capability}")
    entries = await session.entries(*LISTS[capability])
    applies(bool(entries), f"the server lists no {capability}")
    return entries


async def _templates(session: Session) -> list[Node]:
    applies(session.declares("resources"), "the server declares no resources")
    templates = await session.entries("resources/templates/list", "resourceTemplates")
    applies(bool(templates), "the server lists no templates")
    return templates


def _repeated_values(values: Sequence[Json]) -> list[Json]:
    return [value for value, number in Counter(map(str, values)).items() if number > 1]


def _objects(values: Json) -> list[Node]:
    """The objects of an array; none of any other value."""
    return [each for each in values if is_object(each)] if is_array(values) else []


# ---- tools
@TABLE.add("tools.name-and-schema-required")
async def a_tool_has_name_and_schema(session: Session) -> None:
    for tool in await _entries(session, "tools"):
        schemas = [name for name in ("inputSchema", "outputSchema") if is_object(tool.get(name))]
        plain = {**tool, **{name: {"type": "object"} for name in schemas}}
        require_valid(session.revision.violation("Tool", plain), f"tool {tool.get('name')}")


def _schemas(tools: Sequence[Node], member: str) -> list[tuple[str, Node]]:
    return [(str(tool.get("name")), tool[member]) for tool in tools if is_object(tool.get(member))]


@TABLE.add("tools.input-schema-root-object")
async def arguments_are_an_object(session: Session) -> None:
    for name, schema in _schemas(await _entries(session, "tools"), "inputSchema"):
        actual: Json = schema.get("type")
        require(
            actual == "object", f"type object in the inputSchema of {name}", format_value(actual)
        )


@TABLE.add("tools.input-schema-property-objects")
async def properties_are_schemas(session: Session) -> None:
    for name, schema in _schemas(await _entries(session, "tools"), "inputSchema"):
        properties: Json = schema.get("properties", {})
        kept = is_object(properties) and all(is_object(each) for each in properties.values())
        require(kept, f"an object for each property of {name}", format_value(properties))
        required: Json = schema.get("required", [])
        kept = is_array(required) and all(isinstance(each, str) for each in required)
        require(kept, f"an array of names as required of {name}", format_value(required))


@TABLE.add("tools.output-schema-root-object")
async def structured_results_are_objects(session: Session) -> None:
    schemas = _schemas(await _entries(session, "tools"), "outputSchema")
    applies(bool(schemas), "no tool has an outputSchema")
    for name, schema in schemas:
        actual: Json = schema.get("type")
        require(
            actual == "object", f"type object in the outputSchema of {name}", format_value(actual)
        )


@TABLE.add("json-schema.schema-valid")
async def schemas_are_valid(session: Session) -> None:
    from jsonschema import SchemaError

    tools = await _entries(session, "tools")
    for member in ("inputSchema", "outputSchema"):
        for name, schema in _schemas(tools, member):
            try:
                validator_class(schema).check_schema(schema)
            except SchemaError as error:
                require(False, f"a valid {member} of {name}", format_value(error.message, 120))


def validator_class(schema: Node) -> Any:
    """The library's validators of a schema's dialect; of 2020-12 if it names none that is known."""
    from jsonschema.validators import Draft202012Validator, validator_for

    is_named = isinstance(schema.get("$schema"), str)
    return validator_for(schema, Draft202012Validator) if is_named else Draft202012Validator


@TABLE.add("tools.name-length")
async def names_of_tools_are_short(session: Session) -> None:
    for tool in await _entries(session, "tools"):
        name = str(tool.get("name"))
        require(1 <= len(name) <= 128, "names of 1 to 128 characters", f"{len(name)}: {name[:40]}")


@TABLE.add("tools.name-charset")
async def names_of_tools_are_plain(session: Session) -> None:
    for tool in await _entries(session, "tools"):
        name = str(tool.get("name"))
        plain = name.isascii() and all(char.isalnum() or char in "_-." for char in name)
        require(plain, "names of letters, digits, _, - and .", format_value(name))


@TABLE.add("tools.name-unique")
async def names_of_tools_are_unique(session: Session) -> None:
    repeated = _repeated_values([tool.get("name") for tool in await _entries(session, "tools")])
    require(not repeated, "each name once", f"{format_value(repeated)} more than once")


@TABLE.add("tools.list-deterministic-order")
async def tools_keep_their_order(session: Session) -> None:
    await _entries(session, "tools")
    orders: list[Json] = []
    for _ in range(3):
        tools = _objects(result_of(await session.ask("tools/list")).get("tools"))
        orders.append([tool.get("name") for tool in tools])
    require(
        orders[0] == orders[1] == orders[2], "the same order each time", format_value(orders[1:])
    )


@TABLE.add("tools.unknown-tool-error")
async def an_unknown_tool_is_an_error(session: Session) -> None:
    applies(session.declares("tools"), "the server declares no tools")
    reply = await session.ask("tools/call", {"name": "mcpgen-no-such-tool", "arguments": {}})
    require_error(reply, what="for an unknown tool")


# ---- resources
@TABLE.add("resources.uri-and-name-required")
async def a_resource_has_uri_and_name(session: Session) -> None:
    for resource in await _entries(session, "resources"):
        wrong = session.revision.violation("Resource", resource)
        require_valid(wrong, f"resource {resource.get('uri')}")


@TABLE.add("resources.uri-unique")
async def uris_are_unique(session: Session) -> None:
    repeated = _repeated_values([each.get("uri") for each in await _entries(session, "resources")])
    require(not repeated, "each URI once", f"{format_value(repeated)} more than once")


@TABLE.add("resources.templates-rfc6570")
async def templates_can_be_expanded(session: Session) -> None:
    for template in await _templates(session):
        text = str(template.get("uriTemplate"))
        balanced = text.count("{") == text.count("}")
        kept = balanced and not set("{}") & set(uritemplate.expand(text, {}))
        require(kept, "a template of RFC 6570", format_value(text))


async def _read_resources(session: Session) -> list[tuple[str, Node]]:
    resources = (await _entries(session, "resources"))[:MAX_READ]
    uris = [str(each.get("uri")) for each in resources]
    replies = [(uri, await session.ask_once("resources/read", {"uri": uri})) for uri in uris]
    results = [(uri, reply.result) for uri, reply in replies if is_object(reply.result)]
    results = [row for row in results if row[1].get("resultType") != "input_required"]
    applies(bool(results), "no listed resource can be read as it is")
    return results


@TABLE.add("resources.read-result-shape", "resources.read-result-shape-2026")
async def contents_are_an_array(session: Session) -> None:
    for uri, result in await _read_resources(session):
        hints = {} if session.has_handshake else NO_CACHE
        rest = {"contents": no_objects(result["contents"])} if "contents" in result else {}
        wrong = session.revision.violation("ReadResourceResult", {**result, **hints, **rest})
        require_valid(wrong, f"result of {uri}")


async def _contents(session: Session) -> list[tuple[str, Node]]:
    contents: list[tuple[str, Node]] = []
    for uri, result in await _read_resources(session):
        contents += [(uri, part) for part in _objects(result.get("contents"))]
    applies(bool(contents), "the resources are empty")
    return contents


@TABLE.add("resources.contents-text-or-blob")
async def contents_are_text_or_blob(session: Session) -> None:
    for uri, part in await _contents(session):
        kept = isinstance(part.get("uri"), str) and (
            isinstance(part.get("text"), str) or isinstance(part.get("blob"), str)
        )
        require(
            kept, f"uri, and text or blob, in the contents of {uri}", format_value(sorted(part))
        )


@TABLE.add("resources.binary-encoded")
async def binary_data_is_base64(session: Session) -> None:
    blobs = [(uri, part["blob"]) for uri, part in await _contents(session) if "blob" in part]
    applies(bool(blobs), "no resource that was read is binary")
    for uri, blob in blobs:
        require(_is_base64(blob), f"Base64 as the blob of {uri}", format_value(blob))


def _is_base64(text: Json) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return False
    return True


@TABLE.add("resources.not-found-32002", "resources.not-found-32602")
async def a_missing_resource_has_its_code(session: Session) -> None:
    applies(session.declares("resources"), "the server declares no resources")
    code = session.revision.protocol.facts.errors.resource_not_found
    reply = await session.ask("resources/read", {"uri": "mcpgen://no-such-resource"})
    require_error(reply, code, what="for an unknown resource")


@TABLE.add("resources.subscribe-flag-legacy")
async def subscribing_needs_the_capability(session: Session) -> None:
    applies(not session.declares("resources.subscribe"), "the server declares resources.subscribe")
    reply = await session.ask("resources/subscribe", {"uri": "mcpgen://no-such-resource"})
    require_error(reply, what="for resources/subscribe, which is not declared")


async def _empty_result(session: Session, *methods: str) -> None:
    applies(session.declares("resources.subscribe"), "the server declares no resources.subscribe")
    uri = (await _entries(session, "resources"))[0].get("uri")
    result: Node = {}
    for method in methods:
        result = result_of(await session.ask(method, {"uri": uri}), method)
    require(
        not result.keys() - {"_meta"}, f"an empty result of {methods[-1]}", format_value(result)
    )


@TABLE.add("resources.subscribe-request")
async def resources_can_be_subscribed_to(session: Session) -> None:
    await _empty_result(session, "resources/subscribe")


@TABLE.add("resources.unsubscribe-request")
async def subscriptions_can_be_ended(session: Session) -> None:
    await _empty_result(session, "resources/subscribe", "resources/unsubscribe")


# ---- prompts
@TABLE.add("prompts.name-required")
async def a_prompt_has_a_name(session: Session) -> None:
    prompts = await _entries(session, "prompts")
    for prompt in prompts:
        wrong = session.revision.violation("Prompt", prompt)
        require_valid(wrong, f"prompt {prompt.get('name')}")
    repeated = _repeated_values([prompt.get("name") for prompt in prompts])
    require(not repeated, "each name once", f"{format_value(repeated)} more than once")


def _arguments(prompt: Node) -> list[Node]:
    return _objects(prompt.get("arguments"))


@TABLE.add("prompts.get-result-shape")
async def a_prompt_has_messages(session: Session) -> None:
    got = False
    for prompt in (await _entries(session, "prompts"))[:MAX_READ]:
        arguments = {str(each.get("name")): "1" for each in _arguments(prompt)}
        params: Node = {"name": prompt.get("name")}
        params |= {"arguments": arguments} if arguments else {}
        result: Json = (await session.ask("prompts/get", params)).result
        if is_object(result) and result.get("resultType") != "input_required":
            got = True
            wrong = session.revision.violation("GetPromptResult", result)
            require_valid(wrong, f"result of prompt {prompt.get('name')}")
    applies(got, "no prompt can be had with plain arguments")


@TABLE.add("prompts.invalid-name-error")
async def an_unknown_prompt_has_its_code(session: Session) -> None:
    applies(session.declares("prompts"), "the server declares no prompts")
    reply = await session.ask("prompts/get", {"name": "mcpgen-no-such-prompt"})
    require_error(reply, INVALID_PARAMS, what="for an unknown prompt")


@TABLE.add("prompts.missing-arguments-error")
async def a_missing_argument_has_its_code(session: Session) -> None:
    prompts = [
        prompt
        for prompt in await _entries(session, "prompts")
        if any(each.get("required") is True for each in _arguments(prompt))
    ]
    applies(bool(prompts), "no prompt requires an argument")
    name: Json = prompts[0].get("name")
    reply = await session.ask("prompts/get", {"name": name})
    expected = f"for {name} without its arguments"
    require_error(reply, INVALID_PARAMS, what=expected)


# ---- completion
async def _references(session: Session) -> list[tuple[Node, str]]:
    """The references that can be completed, each with the name of an argument."""
    applies(session.declares("completions"), "the server declares no completions")
    references: list[tuple[Node, str]] = []
    if session.declares("prompts"):
        for prompt in await session.entries(*LISTS["prompts"]):
            reference = {"type": "ref/prompt", "name": prompt.get("name")}
            references += [(reference, str(each.get("name"))) for each in _arguments(prompt)]
    if session.declares("resources"):
        for template in await session.entries("resources/templates/list", "resourceTemplates"):
            text = str(template.get("uriTemplate"))
            names = uritemplate.variables(text)
            references += [({"type": "ref/resource", "uri": text}, name) for name in names]
    applies(bool(references), "nothing that the server lists has arguments")
    return references


@TABLE.add("completion.result-shape")
async def a_completion_has_values(session: Session) -> None:
    for result in await _completions(session):
        completion: Json = result.get("completion")
        values: Json = completion.get("values") if is_object(completion) else None
        shortened: Node = result
        if is_object(completion) and is_array(values):
            shortened = {**result, "completion": {**completion, "values": values[:MAX_VALUES]}}
        require_valid(session.revision.violation("CompleteResult", shortened), "result")


@TABLE.add("completion.max-100-values")
async def a_completion_has_few_values(session: Session) -> None:
    for result in await _completions(session):
        completion: Json = result.get("completion")
        values: Json = completion.get("values") if is_object(completion) else None
        if is_array(values):
            number = len(values)
            require(number <= MAX_VALUES, f"{MAX_VALUES} values at most", f"{number} values")


async def _completions(session: Session) -> list[Node]:
    completions: list[Node] = []
    for reference, name in (await _references(session))[:MAX_READ]:
        params = {"ref": reference, "argument": {"name": name, "value": ""}}
        result: Json = (await session.ask_once("completion/complete", params)).result
        completions += [result] if is_object(result) else []
    applies(bool(completions), "nothing that the server lists can be completed")
    return completions


async def _complete(session: Session, params: Node) -> Reply:
    applies(session.declares("completions"), "the server declares no completions")
    return await session.ask("completion/complete", params)


@TABLE.add("completion.invalid-prompt-error")
async def an_unknown_prompt_cannot_be_completed(session: Session) -> None:
    reference = {"type": "ref/prompt", "name": "mcpgen-no-such-prompt"}
    argument = {"name": "mcpgen", "value": ""}
    reply = await _complete(session, {"ref": reference, "argument": argument})
    require_error(reply, INVALID_PARAMS, what="for an unknown prompt")


@TABLE.add("completion.missing-arguments-error")
async def a_completion_needs_its_argument(session: Session) -> None:
    reference, _ = (await _references(session))[0]
    reply = await _complete(session, {"ref": reference})
    require_error(reply, INVALID_PARAMS, what="for a completion without argument")


@TABLE.add("completion.unsupported-error")
async def completion_needs_the_capability(session: Session) -> None:
    applies(not session.declares("completions"), "the server declares completions")
    reference = {"type": "ref/prompt", "name": "mcpgen-no-such-prompt"}
    params = {"ref": reference, "argument": {"name": "mcpgen", "value": ""}}
    reply = await session.ask("completion/complete", params)
    require_error(reply, METHOD_NOT_FOUND, what="for completion, which is not declared")


# ---- logging
async def _set_level(session: Session, level: str) -> Reply:
    applies(session.declares("logging"), "the server declares no logging")
    reply = await session.ask("logging/setLevel", {"level": level})
    missing = reply.code == METHOD_NOT_FOUND
    applies(not missing, "there is no logging/setLevel: capabilities.server-features-advertised")
    return reply


@TABLE.add("logging.levels")
async def every_level_can_be_set(session: Session) -> None:
    applies(session.has_handshake, "the level is said by each request")
    for level in LEVELS:
        result_of(await _set_level(session, level), f"the level {level}")


@TABLE.add("logging.invalid-level-error")
async def an_unknown_level_cannot_be_set(session: Session) -> None:
    reply = await _set_level(session, "verbose")
    require_error(reply, INVALID_PARAMS, what="for the level verbose")


@TABLE.add("logging.invalid-level-error-2026")
async def an_unknown_level_is_refused(session: Session) -> None:
    applies(session.declares("logging"), "the server declares no logging")
    key = str(session.revision.protocol.facts.meta.log_level)
    reply = await session.ask(session.liveness, meta={key: "verbose"})
    require_error(reply, INVALID_PARAMS, what="for the level verbose")


# ---- pages and caching
async def _declared_lists(session: Session) -> list[tuple[str, str]]:
    lists = [row for name, row in LISTS.items() if session.declares(name)]
    applies(bool(lists), "the server declares no lists")
    return lists


@TABLE.add("pagination.next-cursor-if-more")
async def a_cursor_is_text_or_absent(session: Session) -> None:
    for method, _ in await _declared_lists(session):
        result: Json = (await session.ask(method)).result
        cursor: Json = result.get("nextCursor", "") if is_object(result) else ""
        require(cursor is not None, f"no nextCursor on the last page of {method}", "null")


@TABLE.add("pagination.results-after-cursor")
async def pages_do_not_repeat_entries(session: Session) -> None:
    keys = {"tools": "name", "resources": "uri", "prompts": "name"}
    paged = False
    for method, member in await _declared_lists(session):
        first: Json = (await session.ask(method)).result
        if not is_object(first) or not isinstance(first.get("nextCursor"), str):
            continue
        paged = True
        own = [each.get(keys[member]) for each in _objects(first.get(member))]
        second: Json = (await session.ask(method, {"cursor": first["nextCursor"]})).result
        rows = _objects(second.get(member)) if is_object(second) else []
        again = [each for each in rows if each.get(keys[member]) in own]
        require(not again, f"other entries on the second page of {method}", format_value(again))
    applies(paged, "every list has one page")


@TABLE.add("pagination.invalid-cursor-error")
async def an_unknown_cursor_has_its_code(session: Session) -> None:
    for method, _ in await _declared_lists(session):
        reply = await session.ask(method, {"cursor": "mcpgen-no-such-cursor"})
        require_error(reply, INVALID_PARAMS, what=f"for an unknown cursor of {method}")


async def _hints(session: Session, name: str) -> list[tuple[str, Json]]:
    """The values of a member of these results, by their method; those that lack it have none."""
    results = await _cacheable(session)
    return [(method, result[name]) for method, result in results if name in result]


async def _cacheable(session: Session) -> list[tuple[str, Node]]:
    """The results of lists and of discovery, by their method."""
    methods = [row[0] for name, row in LISTS.items() if session.declares(name)]
    results: list[tuple[str, Node]] = [(session.liveness, session.opening.result)]
    for method in methods:
        result: Json = (await session.ask(method)).result
        results += [(method, result)] if is_object(result) else []
    return results


@TABLE.add("caching.hints-required")
async def results_say_how_long_they_hold(session: Session) -> None:
    for method, result in await _cacheable(session):
        missing = [name for name in NO_CACHE if name not in result]
        require(not missing, f"ttlMs and cacheScope in the result of {method}", f"no {missing}")


@TABLE.add("caching.ttl-integer-ms")
async def the_time_is_an_integer(session: Session) -> None:
    for method, value in await _hints(session, "ttlMs"):
        kept = isinstance(value, int) and not isinstance(value, bool)
        require(kept, f"an integer as ttlMs of {method}", format_value(value))


@TABLE.add("caching.ttl-non-negative")
async def the_time_is_not_negative(session: Session) -> None:
    for method, value in await _hints(session, "ttlMs"):
        kept = not isinstance(value, int) or value >= 0
        require(kept, f"0 or more as ttlMs of {method}", format_value(value))


@TABLE.add("caching.scope-values")
async def the_scope_is_public_or_private(session: Session) -> None:
    for method, value in await _hints(session, "cacheScope"):
        require(
            value in ("public", "private"), f"public or private for {method}", format_value(value)
        )


@TABLE.add("meta.result-server-info")
async def results_name_the_server(session: Session) -> None:
    key = str(session.revision.protocol.facts.meta.server_info)
    for method, result in (await _cacheable(session))[1:]:
        meta: Json = result.get("_meta")
        kept = is_object(meta) and is_object(meta.get(key))
        require(kept, f"{key} in _meta of the result of {method}", format_value(meta))
