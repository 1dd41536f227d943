"""Operations as items: route maps, hints, URIs, base URLs, and bounds of reading at their value."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse

from kit.limits import SetLimit
from mcpgen_runtime import HTTPRoute, MCPType, RouteMap, Server, to_builtins
from mcpgen_runtime.errors import RemoteError, ToolError
from mcpgen_runtime.server.openapi.document import Document
from mcpgen_runtime.server.openapi.http_operation import OperationTool
from mcpgen_runtime.server.openapi.openapi_server import OpenApiWarning
from mcpgen_runtime.server.openapi.operations import OperationReader
from mcpgen_runtime.server.openapi.parameter_styles import check_path_value
from mcpgen_runtime.server.openapi.schema_conversion import unique_name
from mcpgen_runtime.testing import connected
from package.server.openapi.one_server import TEXT, body_of, connect_api, make_server, parameter
from package.server.openapi.pet_store import one
from package.server.openapi.test_operations import Http, Response, read

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]
ROUTE = HTTPRoute(method="GET", path="/pets/{id}", tags=frozenset({"a", "b"}))
TEMPLATE, RESOURCE = (
    [RouteMap(mcp_type=kind)] for kind in (MCPType.RESOURCE_TEMPLATE, MCPType.RESOURCE)
)


@pytest.mark.parametrize(
    ("criteria", "matches"),
    [
        ({}, True),
        ({"methods": ["get"]}, True),
        ({"methods": ["POST"]}, False),
        ({"pattern": r"\{"}, True),
        ({"pattern": "^/id"}, False),
        ({"tags": ["a"]}, True),
        ({"tags": ["a", "c"]}, False),
        ({"methods": ["GET"], "pattern": "pets", "tags": ["c"]}, False),
        ({"methods": ["POST"], "pattern": "pets", "tags": ["a"]}, False),
    ],
)
def test_a_route_map_matches_by_all_of_its_criteria(
    criteria: dict[str, Any], matches: bool
) -> None:
    assert RouteMap(mcp_type=MCPType.TOOL, **criteria).matches(ROUTE) is matches


@pytest.mark.parametrize(
    ("criteria", "error", "text"),
    [
        ({"methods": "GET"}, TypeError, r"methods: expected '\*' or a collection, got 'GET'"),
        ({"pattern": "("}, ValueError, "pattern: expected a regular expression"),
        ({"tags": "a"}, TypeError, "tags"),
        ({"mcp_tags": "a"}, TypeError, "tags"),
    ],
)
def test_criteria_of_another_form_are_refused(
    criteria: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        RouteMap(mcp_type=MCPType.TOOL, **criteria)


def test_a_function_that_returns_no_kind_of_item_is_an_error() -> None:
    def name(route: HTTPRoute, kind: MCPType) -> Any:
        return kind.value

    with pytest.raises(TypeError, match="route_map_fn: expected an MCPType or None, got 'TOOL'"):
        make_server(one("/", {}), route_map_fn=name)


def test_a_name_that_is_taken_gets_the_next_number() -> None:
    names: list[str] = []
    for _ in range(4):
        names.append(unique_name("call", names))
    assert names == ["call", "call_2", "call_3", "call_4"]


async def test_a_resource_that_is_not_found_is_named_without_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, gone = one("/", {}), JSONResponse({}, 404)
    async with connect_api(spec, gone, route_maps=RESOURCE) as (client, _):
        monkeypatch.setitem(sys.modules, "uritemplate", None)  # which only templates need
        with pytest.raises(RemoteError, match="resource not found: resource://call"):
            await client.read_resource("resource://call")


@pytest.mark.parametrize(
    ("identifier", "response", "error"),
    [
        ("7", JSONResponse({}, 404), "resource not found: resource://call/7"),
        ("7", JSONResponse({}, 410), "resource not found: resource://call/7"),
        ("7", JSONResponse({}, 403), "GET /{id}: HTTP 403 Forbidden"),
        (
            "%252e",
            JSONResponse({}),
            "GET /{id}: argument 'id': expected no '.' or '..' in the path",
        ),
    ],
)
async def test_a_resource_that_can_not_be_read_says_why(
    identifier: str, response: JSONResponse, error: str
) -> None:
    spec = one("/{id}", {"parameters": [ID]})
    async with connect_api(spec, response, route_maps=TEMPLATE) as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.read_resource(f"resource://call/{identifier}")
        assert error in str(caught.value)


async def test_a_resource_of_a_silent_server_is_an_internal_error() -> None:
    async def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(fail), base_url="https://a.test")
    server = Server.from_openapi(one("/", {}), http, route_maps=RESOURCE)
    async with http, connected(server) as pair:
        with pytest.raises(RemoteError, match="GET /: ") as caught:
            await pair.client.read_resource("resource://call")
    assert caught.value.code == -32603


def test_two_operations_can_not_have_one_chosen_name() -> None:
    paths = {f"/{name}": {"get": {"operationId": name}} for name in "ab"}
    with pytest.raises(ValueError, match="mcp_names: expected each name once"):
        make_server({**one("/", {}), "paths": paths}, mcp_names={"a": "c", "b": "c"})


async def test_a_chosen_name_may_be_that_of_method_and_path() -> None:
    paths = {f"/{name}": {"get": {"operationId": name}} for name in "ab"}
    server = make_server({**one("/", {}), "paths": paths}, mcp_names={"GET /a": "c", "b": "a"})
    assert [tool.name for tool in await server.list_tools()] == ["c", "a"]


HINTS = {
    "get": {"readOnlyHint": True, "openWorldHint": True},
    "put": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": True,
    },
    "post": {"readOnlyHint": False, "openWorldHint": True},
}


@pytest.mark.parametrize("method", HINTS)
async def test_tools_have_hints_by_their_http_method(method: str) -> None:
    operation = {"deprecated": True, "summary": "Short.", "tags": ["a", 5], "operationId": "call"}
    server = make_server(one("/", operation, method), tags={"b"})
    (tool,) = await server.list_tools()
    assert to_builtins(tool.annotations) == HINTS[method]
    assert (tool.title, tool.description) == ("Short.", "Deprecated. Short.")
    server.disable(tags={"a"})
    assert await server.list_tools() == []


ID, LIMIT = parameter("id", "path"), parameter("limit", "query")


@pytest.mark.parametrize(
    ("route_maps", "path", "parameters", "uri"),
    [
        (RESOURCE, "/", [], "resource://call"),
        (RESOURCE, "/", [LIMIT], "resource://call"),
        (TEMPLATE, "/{id}", [ID], "resource://call/{id}"),
        (TEMPLATE, "/", [LIMIT], "resource://call{?limit}"),
        (TEMPLATE, "/{id}", [ID, LIMIT, parameter("h", "header")], "resource://call/{id}{?limit}"),
    ],
)
async def test_a_resource_has_a_uri_of_its_parameters(
    route_maps: list[RouteMap], path: str, parameters: list[Any], uri: str
) -> None:
    server = make_server(one(path, {"parameters": parameters}), route_maps=route_maps)
    async with connected(server) as pair:
        client: Any = pair.client
        uris = [each.uri for each in await client.list_resources()]
        uris += [each.uri_template for each in await client.list_resource_templates()]
    assert uris == [uri]


REQUIRED = {"required": True}


@pytest.mark.parametrize(
    ("route_maps", "path", "method", "operation", "reason"),
    [
        (RESOURCE, "/", "post", {}, "expected GET without a body for a resource"),
        (RESOURCE, "/", "get", body_of(TEXT), "expected GET without a body for a resource"),
        (RESOURCE, "/{id}", "get", {"parameters": [ID]}, "nothing in the URI gives id"),
        (TEMPLATE, "/", "get", {}, "expected parameters for a resource template; map it"),
        (
            *(TEMPLATE, "/", "get", {"parameters": [LIMIT, parameter("h", "header") | REQUIRED]}),
            "nothing in the URI gives h",
        ),
        (
            *(TEMPLATE, "/", "get", {"parameters": [parameter("a-b", "query")]}),
            "a URI template has no variable a-b",
        ),
    ],
)
def test_an_operation_that_is_no_resource_is_left_out(
    route_maps: list[RouteMap], path: str, method: str, operation: Any, reason: str
) -> None:
    with pytest.warns(OpenApiWarning, match=reason):
        make_server(one(path, operation, method), route_maps=route_maps)


def test_a_method_of_another_form_is_left_out() -> None:
    spec = one("/", {})
    spec["paths"]["/"]["additionalOperations"] = {"a b": {}}
    with pytest.warns(OpenApiWarning, match="/: expected a method, got 'a b'"):
        make_server({**spec, "openapi": "3.2.0"})


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "https://a.test"}, {"url": "https://b.test"}], "https://a.test"),
        (
            [{"url": "https://{host}/v", "variables": {"host": {"default": "c.test"}, "v": {}}}],
            "https://c.test/v",
        ),
        ([{"url": "https://{v}.test", "variables": {"v": 5}}], None),
        ([], None),
        ([5], None),
        ([{"url": 5}], None),
        ({}, None),
    ],
)
async def test_the_first_server_of_a_document_is_the_base(servers: Any, url: str | None) -> None:
    spec = one("/", {}, servers=servers)
    if url is None:
        with pytest.raises(ValueError, match=r"expected http_client or base_url|base_url: "):
            Server.from_openapi(spec)
    else:
        assert len(await Server.from_openapi(spec).list_tools()) == 1


def test_a_client_has_its_own_base_url() -> None:
    client = httpx2.AsyncClient(base_url="https://a.test")
    with pytest.raises(ValueError, match="base_url: expected the base_url of http_client instead"):
        Server.from_openapi(one("/", {}), client, base_url="https://b.test")


@pytest.mark.parametrize(("levels", "members"), [(1, True), (16, True), (17, False)])
def test_members_are_arguments_down_to_16_levels_of_all_of(levels: int, members: bool) -> None:
    schema: dict[str, Any] = {"properties": {"a": TEXT}}
    for _ in range(levels - 1):
        schema = {"allOf": [schema]}
    document = Document(one("/", operation := body_of(schema)))
    route = HTTPRoute(method="POST", path="/")
    body = OperationReader(document, route, {}, operation, {}).read().body
    assert body is not None
    assert (body.members is not None) is members


async def test_a_parameter_gives_its_name_to_a_member_of_the_body() -> None:
    members = {"properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}
    operation = {"parameters": [parameter("a", "query")], **body_of(members)}
    (tool,) = await make_server(one("/", operation, "post")).list_tools()
    assert tool.input_schema["properties"].keys() == {"a__query", "a", "b"}


@pytest.mark.parametrize(("references", "is_followed"), [(0, True), (31, True), (32, False)])
def test_so_many_references_are_followed_in_a_row(references: int, is_followed: bool) -> None:
    nodes = {f"n{number}": {"$ref": f"#/n{number + 1}"} for number in range(references)}
    document = Document({"openapi": "3.1.0", **nodes, f"n{references}": {"a": 1}})
    if is_followed:
        assert document.follow(document.root["n0"], "here") == {"a": 1}
    else:
        with pytest.raises(ValueError, match="here: expected at most 32 references in a row"):
            document.follow(document.root["n0"], "here")


@pytest.mark.parametrize(
    ("value", "size"),
    [
        *(("text", 6), (b"text", 6), ("", 2), (None, 2), (True, 2), (1.5, 2), (0, 2), (1000, 5)),
        *(([], 2), ({}, 2), ([None, "a"], 7), ({"ab": None, "c": [""]}, 15), ({5: 1}, 7)),
    ],
)
def test_a_value_counts_as_the_characters_of_its_json(value: Any, size: int) -> None:
    document = Document({"openapi": "3.1.0"})
    assert document.take_text(value) == size
    shared = [value]
    assert document.take_text([shared, shared]) == 2 + 2 * (2 + size)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a", None),
        ("%25252e%25252e", None),
        ("a..b", None),
        ("%252e%252e", "expected no '.' or '..'"),
        ("a\\..", "expected no '.' or '..'"),
        ("%00", "expected no '.' or '..'"),
        ("%25252f", None),
        ("%252f", "expected no '/'"),
        ({"a": "", "..": "b"}, "expected no '.' or '..'"),
        ({"": ""}, "expected a value for the path"),
        ([None], None),
    ],
)
def test_a_value_in_a_path_is_decoded_twice_before_it_is_checked(
    value: Any, reason: str | None
) -> None:
    if reason is None:
        check_path_value(value, slashes=False)
    else:
        with pytest.raises(ValueError, match=reason):
            check_path_value(value, slashes=False)


@pytest.mark.parametrize(("size", "is_read"), [(10, True), (11, False)])
async def test_a_response_may_have_as_many_bytes_as_the_limit(
    size: int, is_read: bool, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.openapi.http_operation.RESPONSE_BYTES", 10)
    http = Http(kind="text/plain", body=b"x" * size)
    tool = OperationTool(read("no parameter"), lambda: http, slashes=False, timeout=None)
    if is_read:
        assert "xxxxxxxxxx" in str(await tool())
    else:
        with pytest.raises(ToolError, match="the response has more than 10 bytes"):
            await tool()


async def test_a_response_is_read_up_to_a_part_beyond_the_limit(
    set_limit: SetLimit,
) -> None:
    set_limit("pkg.server.openapi.http_operation.RESPONSE_BYTES", 10)
    parts = [b"x" * 10, b"x", b"x"]

    class Parts(Response):
        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            while parts:
                yield parts.pop(0)

    class Large(Http):
        @asynccontextmanager
        async def stream(self, *words: str, **how: Any) -> AsyncIterator[Response]:
            yield Parts(200, "", "text/plain", b"")

    tool = OperationTool(read("no parameter"), Large, slashes=False, timeout=None)
    with pytest.raises(ToolError, match="the response has more than 10 bytes"):
        await tool()
    assert parts == [b"x"]


async def test_a_failed_request_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Http):
        def stream(self, *words: str, **how: Any) -> Any:
            raise ValueError("hunter2")

    tool = OperationTool(read("no parameter"), Broken, slashes=False, timeout=None)
    with pytest.raises(ToolError) as caught:
        await tool()
    label = "POST /a: no response"
    assert str(caught.value) == f"{label} (ValueError)"
    assert caplog.messages == [f"{label}: ValueError"]


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#/list/0", "a"),
        ("#/list/1", "b"),
        ("#/list/2", None),
        ("#/list/-1", None),
        ("#/a~1b~0/c%20d", 5),
        ("#/a~1b~0/other", None),
        ("#list", None),
        ("list", None),
    ],
)
def test_a_reference_leads_to_a_place_or_nowhere(reference: str, target: Any) -> None:
    document = Document({"openapi": "3.1.0", "list": ["a", "b"], "a/b~": {"c d": 5}})
    if target is None:
        with pytest.raises(ValueError, match=r"\$ref: "):
            document.target(reference)
    else:
        assert document.target(reference) == target
