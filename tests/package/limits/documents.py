"""Limits of what is read and shown: URIs, schemas, documents of APIs, skills, apps, secrets."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.responses import Response

from kit.wire import PER_REQUEST
from mcpgen_runtime import InvalidParamsError, Server, connect
from mcpgen_runtime.apps import resource_ui
from mcpgen_runtime.json_schema.inlining import inline_references
from mcpgen_runtime.json_schema.patterns import Pattern, PatternError
from mcpgen_runtime.json_schema.validation import validator
from mcpgen_runtime.server.toolkit.resources import check_requested
from mcpgen_runtime.skills import read_frontmatter
from package.limits.table import is_valid, limit
from package.server.openapi.one_server import connect_api

TEXT = {"type": "string"}


limit("pkg.server.toolkit.resources.URI_LIMIT", 20)(
    lambda amount: is_valid(check_requested, "x:".ljust(amount, "a"), errors=InvalidParamsError)
)
limit("pkg.json_schema.validation.SCHEMA_PARTS", 50)(
    lambda amount: is_valid(validator, {"enum": [*range(amount - 2)]}, "a schema")
)


@limit("pkg.json_schema.inlining.INLINED_PARTS", 50)
def inlined_parts(amount: int) -> bool:
    properties: dict[str, Any] = {f"p{number}": TEXT for number in range(amount - 3)}
    properties["last"] = {"$ref": "#/$defs/T"}
    schema = {"type": "object", "properties": properties, "$defs": {"T": TEXT}}
    return "$defs" not in inline_references(schema)


limit("pkg.json_schema.patterns.PATTERN_CHARACTERS", 50)(
    lambda amount: is_valid(Pattern, "a" * amount, errors=PatternError)
)
limit("pkg.json_schema.keywords.MULTIPLE_BITS", 64)(
    lambda amount: validator({"multipleOf": 1}, "a schema")(1 << amount - 1) is None
)


@limit("pkg.server.openapi.document.DOCUMENT_BYTES", 1000, place="file")
def openapi_file(amount: int) -> bool:
    with TemporaryDirectory() as folder:
        path = Path(folder, "api.json")
        path.write_text(json.dumps(operations(1)).ljust(amount), "utf-8")
        return is_valid(read_api, path)


limit("pkg.server.openapi.document.DOCUMENT_BYTES", 1000, place="text")(
    lambda amount: is_valid(read_api, json.dumps(operations(1)).ljust(amount))
)


def read_api(spec: Any) -> Server:
    """A server of an API that nobody calls."""
    return Server.from_openapi(spec, base_url="https://a.test")


def operations(count: int, schema: Any = TEXT) -> dict[str, Any]:
    """A document of so many operations, each of which takes a value of a schema."""
    parameter = {"name": "a", "in": "query", "schema": schema}
    paths = {
        f"/{number}": {"get": {"parameters": [parameter], "responses": {}}}
        for number in range(count)
    }
    return {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}


limit("pkg.server.openapi.document.OPERATIONS", 5)(
    lambda amount: is_valid(read_api, operations(amount))
)
limit("pkg.server.openapi.document.DOCUMENT_WORK", 5)(
    lambda amount: is_valid(read_api, operations(amount))
)


def is_converted(schema: Any) -> bool:
    """Whether an operation with a schema becomes a tool; others are left out with a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_api(operations(1, schema))
    return not caught


limit("pkg.server.openapi.schema_conversion.SCHEMA_NODES", 10)(
    lambda amount: is_converted({"anyOf": [TEXT] * (amount - 1)})
)
limit("pkg.server.openapi.schema_conversion.SCHEMA_TEXT", 500)(
    lambda amount: is_converted({"enum": ["x" * (amount - 6)]})
)


@limit("pkg.server.openapi.schema_conversion.SCHEMA_DEPTH", 5)
def levels_of_an_openapi_schema(amount: int) -> bool:
    schema: dict[str, Any] = TEXT
    for _ in range(amount):
        schema = {"items": schema}
    return is_converted(schema)


@limit("pkg.skills.FRONTMATTER_BYTES", 200)
def frontmatter(amount: int) -> bool:
    head = b"name: a\ndescription: b\n# "
    text = b"---\n" + head.ljust(amount - 1, b"x") + b"\n---\n"
    return is_valid(read_frontmatter, text, "a skill")


def skill(sizes: list[int]) -> Any:
    """Serve a skill whose files have these sizes."""
    with TemporaryDirectory() as folder:
        text = b"---\nname: own\ndescription: b\n---\n"
        (place := Path(folder, "own")).mkdir()
        for number, size in enumerate(sizes):
            name = f"{number}.md" if number else "SKILL.md"
            (place / name).write_bytes((b"" if number else text).ljust(size, b"x"))
        return Server("skills").skills(folder)


limit("pkg.skills.FILES")(lambda amount: is_valid(skill, [0] * amount))
limit("pkg.skills.SKILL_BYTES")(lambda amount: is_valid(skill, [100, amount - 100]))


@limit("pkg.apps.DOMAINS_CHARACTERS", 100)
def origins_of_an_app(amount: int) -> bool:
    first = "https://a.example"
    second = "https://".ljust(amount - len(first), "b")
    meta = {"csp": {"connectDomains": [first, second]}}
    return len(resource_ui("ui://a", "text/html;profile=mcp-app", meta).csp.connect_domains) == 2


async def search(query: str, tags: list[str] | None = None) -> Any:
    """The result of a search for tools."""
    server = Server("tools", discovery="search")
    server.add_tool(lambda: "", name="gate", tags=["tag"])
    async with connect(server, revision=PER_REQUEST[-1]) as client:
        return await client.call_tool("search_tools", {"query": query, "tags": tags or []})


@limit("pkg.server.toolkit.tool_discovery.QUERY_CHARACTERS")
async def characters_of_a_query(amount: int) -> bool:
    return not (await search("x" * amount)).is_error


@limit("pkg.server.toolkit.tool_discovery.QUERY_TAGS")
async def tags_of_a_query(amount: int) -> bool:
    return not (await search("gate", ["tag"] * amount)).is_error


@limit("pkg.server.toolkit.tool_discovery.QUERY_WORDS", 5)
async def words_of_a_query(amount: int) -> bool:
    words = [f"w{number}" for number in range(amount - 1)]
    return "gate" in (await search(" ".join([*words, "gate"]))).content[0].text


async def call_of_an_api(text: str, status: int = 200) -> Any:
    """The result of a tool that passes on what an API responds."""
    response = Response(text, status, media_type="text/plain")
    async with connect_api(operations(1), response) as (client, _):
        (tool,) = await client.list_tools()
        return await client.call_tool(tool.name, {"a": "b"})


@limit("pkg.server.openapi.http_operation.RESPONSE_BYTES", 50)
async def response_of_an_api(amount: int) -> bool:
    return not (await call_of_an_api("x" * amount)).is_error


@limit("pkg.server.openapi.http_operation.ERROR_CHARACTERS", 50)
async def error_of_an_api(amount: int) -> bool:
    result = await call_of_an_api("x" * amount, 500)
    return "characters" not in result.content[0].text
