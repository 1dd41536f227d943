"""OpenAPI documents: what their operations become, names, faults, bounds, where they are read."""

from __future__ import annotations

import base64
import json
import re
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import anyio
import fastapi
import fastapi.responses
import httpx2
import pytest
import yaml
from pydantic import BaseModel
from starlette.responses import JSONResponse
from syrupy.assertion import SnapshotAssertion

from kit.faults import refusals
from kit.limits import SetLimit
from mcpgen_runtime import (
    HTTPRoute,
    MCPType,
    OpenApiWarning,
    RemoteError,
    RouteMap,
    Server,
    to_builtins,
)
from mcpgen_runtime.testing import connected
from package.server.openapi.one_server import (
    DOCUMENT,
    TEXT,
    Api,
    body_of,
    connect_api,
    make_server,
    one,
    parameter,
)

pytestmark = pytest.mark.on_asyncio
ROUTE = HTTPRoute(method="GET", path="/pets/{id}", tags=frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("criteria", "matches"),
    [
        ({}, True),
        ({"methods": ["POST"]}, False),
        ({"pattern": r"\{"}, True),
        ({"tags": ["a", "c"]}, False),
        ({"methods": ["POST"], "pattern": "pets", "tags": ["a"]}, False),
        ({"methods": "GET"}, r"methods: expected '\*' or a collection, got 'GET'"),
        ({"pattern": "("}, "pattern: expected a regular expression"),
        ({"tags": "a"}, "tags"),
    ],
)
def test_a_route_map_matches_by_all_of_its_criteria(
    criteria: dict[str, Any], matches: bool | str
) -> None:
    if isinstance(matches, str):
        with pytest.raises((TypeError, ValueError), match=matches):
            RouteMap(mcp_type=MCPType.TOOL, **criteria)
    else:
        assert RouteMap(mcp_type=MCPType.TOOL, **criteria).matches(ROUTE) is matches


ROUTE_MAPS = [
    RouteMap(tags={"admin"}, mcp_type=MCPType.EXCLUDE),
    RouteMap(methods=["GET"], pattern=r"\{", mcp_type=MCPType.RESOURCE_TEMPLATE, mcp_tags={"one"}),
    RouteMap(methods=["get"], pattern="^/pets$", mcp_type=MCPType.RESOURCE),
]


async def test_operations_become_what_the_first_route_map_says() -> None:
    api = Api()
    async with api.client() as http:
        server = Server.from_openapi(
            DOCUMENT, http, route_maps=ROUTE_MAPS, mcp_names={"getPet": "pet"}, tags={"all"}
        )
        async with connected(server) as pair:
            client: Any = pair.client
            assert [tool.name for tool in await client.list_tools()] == ["createPet"]
            (resource,) = await client.list_resources()
            assert (resource.uri, resource.mime_type) == ("resource://listPets", "application/json")
            (template,) = await client.list_resource_templates()
            assert template.uri_template == "resource://pet/{petId}"
            (contents,) = (await client.read_resource("resource://pet/1")).contents
            assert json.loads(contents.text)["name"] == "Rex"
            assert contents.mime_type == "application/json"
            for uri in ("resource://pet/9", "resource://pet/1%2Fsecret", "resource://pet/.."):
                with pytest.raises(RemoteError):
                    await client.read_resource(uri)
            assert api.target == "GET /v1/pets/9"
            server.disable(tags={"one"})
            assert await client.list_resource_templates() == []


async def test_operations_are_listed_so(snapshot: SnapshotAssertion) -> None:
    odd: dict[str, Any] = {"tags": ["x", 5], "description": 5, "deprecated": "yes"}
    others = {"/other": dict.fromkeys(("head", "put", "patch", "options", "trace"), odd)}
    others["/old"] = {"get": {"summary": "Short.", "deprecated": True, "tags": 5}}
    server = make_server({**DOCUMENT, "paths": {**DOCUMENT["paths"], **others}}, tags={"all"})
    rows = [json.dumps(to_builtins(each), sort_keys=True) for each in await server.list_tools()]
    assert rows == snapshot
    server.disable(tags={"x"})
    names = [tool.name for tool in await server.list_tools()]
    assert names == ["listPets", "createPet", "getPet", "deletePet", "get_old"]
    server.disable(tags={"all"})
    assert await server.list_tools() == []


async def test_a_function_finally_decides_what_an_operation_becomes() -> None:
    def only_internal(route: HTTPRoute, kind: MCPType) -> MCPType | None:
        assert kind is MCPType.TOOL
        return None if route.extensions.get("x-internal") else MCPType.EXCLUDE

    def wrong(route: HTTPRoute, kind: MCPType) -> Any:
        return kind.value

    paths = {
        "/a": {"get": {"x-internal": True, "responses": {}}},
        "/b/{c}": {"get": {"responses": {}}},
    }
    server = make_server({**one("/", {}), "paths": paths}, route_map_fn=only_internal)
    assert [tool.name for tool in await server.list_tools()] == ["get_a"]
    with pytest.raises(TypeError, match="route_map_fn: expected an MCPType or None, got 'TOOL'"):
        make_server(one("/", {}), route_map_fn=wrong)


async def test_names_are_valid_bounded_and_unique() -> None:
    ids = ["a b", "a.b", "x" * 80, "x" * 79 + "y", "z" * 60, "z" * 61, "?", None]
    paths = {f"/{n}": {"get": {"operationId": each}} for n, each in enumerate(ids)}
    spec = {**one("/", {}), "paths": paths}
    names = [tool.name for tool in await make_server(spec).list_tools()]
    digests = [f"{'x' * 51}_d929cdee", f"{'x' * 51}_8796770a", "z" * 60, f"{'z' * 51}_e0aa42ac"]
    assert names == ["a_b", "a_b_2", *digests, "operation", "get_7"]
    assert max(map(len, names)) == 60  # with room for a number
    chosen = make_server(spec, mcp_names={"GET /0": "c", "a.b": "a_b"})
    assert [tool.name for tool in await chosen.list_tools()][:2] == ["c", "a_b"]
    for mcp_names, error in (
        ({"b": "c"}, "mcp_names: the document has no operation 'b'"),
        ({"a b": "a b"}, "mcp_names: 'a b': expected letters"),
        ({"a b": "c", "a.b": "c"}, "mcp_names: expected each name once"),
    ):
        with pytest.raises(ValueError, match=error):
            make_server(spec, mcp_names=mcp_names)


BAD_OPERATIONS: list[tuple[str, Any]] = [
    ("/", body_of(TEXT, "application/xml")),
    ("/", {"parameters": [parameter("a\r\nb", "header")]}),
    ("//evil.test/a", {}),
    ("/", {"summary": "cut \ud83d"}),
    ("/", {"parameters": [parameter("a", "query", {"default": inf})]}),
    ("/", {"parameters": [parameter("a", "query", {"$ref": "other.yaml"})]}),
]


async def test_an_uncallable_operation_is_named_and_others_serve(
    snapshot: SnapshotAssertion,
) -> None:
    texts: list[str] = []
    for path, operation in BAD_OPERATIONS:
        spec = one(path, operation, "post", loop={"$ref": "#/loop"})
        spec["paths"]["/good"] = {"get": {"operationId": "good"}}
        with pytest.warns(OpenApiWarning) as warned:
            server = Server.from_openapi(spec, base_url="https://pets.test")
        texts.append(str(warned[0].message))
        assert warned[0].filename == __file__
        assert [tool.name for tool in await server.list_tools()] == ["good"]
    assert texts == snapshot


async def test_methods_of_3_2_are_called_and_a_broken_path_is_named() -> None:
    spec = one("/found", body_of({"type": "array"}), "query")
    others = {"COPY": {"operationId": "copy"}, "a b": {}}
    spec["paths"]["/found"]["additionalOperations"] = others
    spec["paths"]["/broken"] = {"$ref": "paths.yaml"}
    api = Api(JSONResponse({}))
    with pytest.warns(OpenApiWarning) as warned:
        server = Server.from_openapi({**spec, "openapi": "3.2.0"}, api.client())
    text = str(warned[0].message)
    assert "/found: expected a method, got 'a b'" in text
    assert re.search("/broken: .*expected a place in this document", text)
    assert [tool.name for tool in await server.list_tools()] == ["call", "copy"]
    await server.call_tool("call", {"body": [1]})
    assert (api.target, api.body) == ("QUERY /v1/found", b"[1]")
    await server.call_tool("copy")
    assert api.target == "COPY /v1/found"


TEMPLATE, RESOURCE = (
    [RouteMap(mcp_type=kind)] for kind in (MCPType.RESOURCE_TEMPLATE, MCPType.RESOURCE)
)
ID, LIMIT, FIELD = parameter("id", "path"), parameter("limit", "query"), parameter("h", "header")
DASHED = parameter("a-b", "query")


RESOURCES: list[tuple[list[RouteMap], str, dict[str, Any]]] = [
    (RESOURCE, "/", {"parameters": []}),
    (TEMPLATE, "/{id}", {"parameters": [ID]}),
    (TEMPLATE, "/", {"parameters": [LIMIT]}),
    (TEMPLATE, "/{id}", {"parameters": [ID, LIMIT, FIELD]}),
    (RESOURCE, "/", {"parameters": [LIMIT]}),
    (RESOURCE, "/{id}", {"parameters": [ID]}),
    (RESOURCE, "/", body_of(TEXT)),
    (TEMPLATE, "/", {}),
    (TEMPLATE, "/", {"parameters": [LIMIT, FIELD | {"required": True}]}),
    (TEMPLATE, "/", {"parameters": [DASHED]}),
]


async def test_a_resource_has_a_uri_of_its_parameters(snapshot: SnapshotAssertion) -> None:
    texts: list[str] = []
    for route_maps, path, operation in RESOURCES:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            server = make_server(one(path, operation), route_maps=route_maps)
        texts += [str(each.message) for each in warned]
        if not warned:
            async with connected(server) as pair:
                texts += [each.uri for each in await pair.client.list_resources()]
                templates = await pair.client.list_resource_templates()
                texts += [each.uri_template for each in templates]
    assert texts == snapshot


@pytest.mark.parametrize(
    ("identifier", "status", "error"),
    [
        ("7", 404, "resource not found: resource://call/7"),
        ("7", 403, "GET /{id}: HTTP 403 Forbidden"),
        ("%252e", 200, "GET /{id}: argument 'id': expected no '.' or '..' in the path"),
    ],
)
async def test_a_resource_that_can_not_be_read_says_why(
    identifier: str, status: int, error: str
) -> None:
    spec = one("/{id}", {"parameters": [ID]})
    async with connect_api(spec, JSONResponse({}, status), route_maps=TEMPLATE) as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.read_resource(f"resource://call/{identifier}")
        assert error in str(caught.value)


async def test_a_resource_needs_no_library_of_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = JSONResponse({}, 404)
    async with connect_api(one("/", {}), gone, route_maps=RESOURCE) as (client, _):
        monkeypatch.setitem(sys.modules, "uritemplate", None)
        with pytest.raises(RemoteError, match="resource not found: resource://call"):
            await client.read_resource("resource://call")


async def test_parts_that_tools_can_not_have_are_named() -> None:
    callbacks: Any = {"paid": {"{$request.body#/url}": {"post": {}}}}
    pattern = parameter("a", "query", {"type": "string", "pattern": "("})
    spec = one("/", {"callbacks": callbacks, "parameters": [pattern]}, webhooks={"new": {}})
    with pytest.warns(OpenApiWarning) as warned:
        Server.from_openapi(spec, base_url="https://pets.test")
    lines = str(warned[0].message).splitlines()[1:]
    assert lines[0] == "  GET /: the callback paid"
    assert lines[1].startswith("  GET /: a pattern, which is not checked here")
    assert lines[2] == "  the webhook new"


INVALID = [
    *({"swagger": "2.0"}, {"openapi": "3.1.0"}, {"openapi": "3.1.0", "paths": []}, {"openapi": 3}),
    *({"openapi": "2.0"}, "{}", "https://pets.test/openapi.json", '{"openapi"', "a: [\n"),
    *("[" * 100_000 + "\n", "- a\n- b\n"),
]


def test_invalid_documents_are_refused(snapshot: SnapshotAssertion) -> None:
    texts = refusals(make_server, INVALID)
    texts = [re.sub("(?<=YAML: ).*", "...", text) for text in texts]
    assert [text.replace("it is nested too deep", "not YAML: ...") for text in texts] == snapshot


@pytest.mark.parametrize(
    "servers",
    [[{"url": "https://{v}.test", "variables": {"v": 5}}], [], {}, [{"url": "file:///etc/passwd"}]],
)
def test_an_api_needs_one_base_url_and_a_positive_timeout(servers: Any) -> None:
    with pytest.raises(ValueError, match="timeout: expected more than 0, got 0"):
        make_server(one("/", {}), timeout=0)
    with pytest.raises(ValueError, match=r"expected http_client or base_url|base_url: "):
        Server.from_openapi(one("/", {}, servers=servers))
    with pytest.raises(ValueError, match="http_client: expected a client with a base_url"):
        Server.from_openapi(one("/", {}), httpx2.AsyncClient())
    client = httpx2.AsyncClient(base_url="https://a.test")
    with pytest.raises(ValueError, match="base_url: expected the base_url of http_client instead"):
        Server.from_openapi(one("/", {}), client, base_url="https://b.test")


async def test_the_first_server_of_a_document_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text=str(request.url))

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(httpx2, "AsyncClient", partial(httpx2.AsyncClient, transport=transport))
    first = {"url": "https://{host}.test/v", "variables": {"host": {"default": "a"}, "v": {}}}
    server = Server.from_openapi(one("/x", {}, servers=[first, {"url": "https://b.test"}]))
    async with connected(server) as pair:
        assert await pair.client.call_tool("call", returns=str) == "https://a.test/v/x"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("#/x-list/1", "b"),
        ("#/x-a~1b~0/c%20d", "c"),
        ("#/x-list/2", None),
        ("#/x-list/-1", None),
        ("x-list", None),
    ],
)
async def test_a_reference_leads_to_a_place_or_nowhere(reference: str, name: str | None) -> None:
    members = [parameter(each, "query") for each in "abc"]
    places: dict[str, Any] = {"x-list": members[:2], "x-a/b~": {"c d": members[2]}}
    spec = one("/", {"parameters": [{"$ref": reference}]}, **places)
    if name is None:
        with pytest.warns(OpenApiWarning, match=r"\$ref: "):
            make_server(spec)
    else:
        (tool,) = await make_server(spec).list_tools()
        assert tool.input_schema["properties"].keys() == {name}


async def test_documents_are_read_as_text_and_from_files(tmp_path: Path) -> None:
    places = [tmp_path / "a.json", tmp_path / "a.yaml"]
    places[0].write_text(json.dumps(DOCUMENT))
    places[1].write_text(yaml.safe_dump(DOCUMENT))
    specs: list[Path | str] = [*places, str(places[1])]
    for spec in (*specs, places[0].read_text(), places[1].read_text()):
        server = Server.from_openapi(spec)
        assert len(await server.list_tools()) == 4
    text = places[1].read_text().replace("'200'", "200").replace("title: Pets", "title: no")
    assert Server.from_openapi(text).name == "no"


class Item(BaseModel):
    name: str
    price: float | None = None
    parts: list[Item] = []


async def test_an_application_of_fastapi_is_served_by_its_own_document() -> None:
    @asynccontextmanager
    async def lifespan(app: fastapi.FastAPI) -> AsyncIterator[None]:
        open_parts.append("shelf")
        yield
        open_parts.clear()

    open_parts: list[str] = []
    app = fastapi.FastAPI(title="Shop", lifespan=lifespan)

    @app.post("/items/{shelf}")
    def add(shelf: int, item: Item, token: str = fastapi.Header("")) -> Item:
        return item.model_copy(update={"price": float(shelf)})

    @app.post("/files")
    def upload(file: fastapi.UploadFile) -> dict[str, int]:
        return {"size": len(file.file.read())}

    @app.post("/pictures", operation_id="picture")
    def picture(picture: fastapi.UploadFile | None = None) -> str:
        return "none" if picture is None else f"{picture.content_type} {picture.size}"

    @app.get("/lines", operation_id="lines")
    def lines() -> Any:  # its document says that it is JSON of any kind
        return fastapi.responses.PlainTextResponse("one\ntwo")

    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            server = Server.from_openapi(
                app.openapi(), http, lifespan=lambda _: app.router.lifespan_context(app)
            )
        async with connected(server) as pair:
            assert open_parts == ["shelf"]
            arguments = {"shelf": 3, "name": "pen", "parts": [{"name": "cap"}]}
            client: Any = pair.client
            result = await client.call_tool("add_items__shelf__post", arguments)
            assert result.structured_content["price"] == 3.0
            data = base64.b64encode(b"12345").decode()
            sized = await client.call_tool("upload_files_post", {"file": data})
            assert sized.structured_content == {"size": 5}
            for sent, expected in (
                (None, "none"),
                (data, "application/octet-stream 5"),
                (f"data:image/png;base64,{data}", "image/png 5"),
                ("data:text/plain,a%20b", "text/plain 3"),
            ):
                shown = await client.call_tool("picture", {"picture": sent})
                assert shown.structured_content == {"result": expected}
            for wrong in ("https://a.test/b.png", "data:image/png;base64", "data:;base64,%"):
                assert (await client.call_tool("picture", {"picture": wrong})).is_error
            assert (await client.call_tool("lines")).content[0].text == "one\ntwo"
    assert open_parts == []


LAUGHS = "x-0: &a0 [lol, lol]\n" + "".join(
    f"x-{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    "place", ["paths: *a9", "paths: {}\nservers: *a9", "paths: {/: {get: {x-other: *a9}}}"]
)
def test_aliases_count_as_copies_wherever_they_stand(place: str) -> None:
    with pytest.raises(ValueError, match="expected at most 67108864 characters with a copy"):
        make_server(f"openapi: 3.1.0\ninfo: {{title: x, version: '1'}}\n{LAUGHS}{place}\n")


def test_a_decoded_document_counts_as_its_text_would() -> None:
    around: dict[str, Any] = {}
    around["not"] = around
    with pytest.raises(ValueError, match="nested too deep"):
        make_server(one("/", {"x-around": around}))
    many: list[Any] = ["lol"]
    for _ in range(40):
        many = [many, many]
    with pytest.raises(ValueError, match="expected at most 67108864 characters"):
        make_server(
            one("/", {"parameters": [{"name": "a", "in": "query", "schema": {"const": many}}]})
        )


def test_values_that_many_operations_refer_to_are_counted(
    monkeypatch: pytest.MonkeyPatch, set_limit: SetLimit
) -> None:
    schemas = {"Big": {"enum": ["x" * 1000]}}
    operation = {
        "parameters": [
            {"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/Big"}}
        ],
        "responses": {},
    }
    paths = {f"/{number}": {"get": operation} for number in range(20)}
    spec = {**one("/", {}), "paths": paths, "components": {"schemas": schemas}}
    set_limit("pkg.server.openapi.document.DOCUMENT_TEXT", 20_370)
    make_server(spec)
    set_limit("pkg.server.openapi.document.DOCUMENT_TEXT", 20_369)
    with pytest.raises(ValueError, match="expected operations with at most 20369 characters"):
        make_server(spec)
    monkeypatch.undo()
    set_limit("pkg.server.openapi.schema_conversion.SCHEMA_TEXT", 500)
    with pytest.warns(OpenApiWarning, match="expected schemas with at most 500 characters"):
        make_server(spec)


async def drip() -> AsyncIterator[bytes]:
    """A body that never ends and never pauses for long."""
    while True:
        yield b"x"
        await anyio.lowlevel.checkpoint()


async def never() -> AsyncIterator[bytes]:
    await anyio.sleep_forever()
    yield b""


@pytest.mark.parametrize("body", [drip, never])
async def test_a_request_has_a_time_for_its_whole_response(body: Any) -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body())

    transport = httpx2.MockTransport(answer)
    http = httpx2.AsyncClient(transport=transport, base_url="https://a.test", timeout=None)
    server = Server.from_openapi(one("/", {}), http, timeout=0.1)
    with anyio.fail_after(10):
        async with http, connected(server) as pair:
            result: Any = await pair.client.call_tool("call", {})
    assert result.content[0].text == "GET /: no whole response within 0.1 s"
