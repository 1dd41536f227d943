"""Schemas, arguments, requests and results of OpenAPI operations, by tables, without a server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen_runtime import HTTPRoute, McpError, ToolError
from mcpgen_runtime.server.openapi.document import Document
from mcpgen_runtime.server.openapi.http_operation import OperationResource, OperationTool
from mcpgen_runtime.server.openapi.operations import Operation, OperationReader
from mcpgen_runtime.server.openapi.schema_conversion import SchemaConverter
from package.server.openapi.one_server import one

pytestmark = pytest.mark.on_asyncio
TEXT, NUMBER, OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
COMPONENTS: Mapping[str, Any] = {
    "schemas": {
        "Pet": {**OBJECT, "properties": {"id": {**NUMBER, "readOnly": True}, "name": TEXT}},
        "Loop": {**OBJECT, "properties": {"next": {"$ref": "#/components/schemas/Loop"}}},
        "a b": {"$ref": "#/components/schemas/Pet"},
        "Secret": {**TEXT, "writeOnly": True},
    },
    "parameters": {"limit": {"name": "limit", "in": "query", "schema": NUMBER}},
    "requestBodies": {"pet": {"content": {"application/json": {"schema": OBJECT}}}},
}
PET, SECRET = ({"$ref": f"#/components/schemas/{name}"} for name in ("Pet", "Secret"))


def keyword_schemas(keyword: str, *values: Any) -> list[dict[str, Any]]:
    """Schemas that say one thing each: a keyword with a value."""
    return [{keyword: value} for value in values]


SCHEMAS: list[Any] = [
    *(True, False, 5, None, [], {}, TEXT, PET, SECRET, {"$ref": "#/components/schemas/a b"}),
    *({"$ref": place} for place in ("#", "#/components/schemas/Loop", "#/x", "other.json", 5)),
    {**PET, "description": "d", "title": "t", "minProperties": 1},
    *({"$schema": text} for text in ("https://json-schema.org/draft/2020-12/schema", "x", 5)),
    {"$schema": "https://spec.openapis.org/oas/3.1/dialect/base"},
    *({keyword: "x"} for keyword in ("$id", "$dynamicRef", "$recursiveRef", "x-own", "$anchor")),
    *({"type": kind} for kind in (["string", "null"], [], "file", ["string", 5], None)),
    *({"required": names} for names in (["a"], [], ["a", "a"], "a", [5])),
    *({"enum": values} for values in ([1, None], [], "a")),
    *({"multipleOf": factor} for factor in (1, 0.5, 0, -1, True, "1")),
    *({"maxLength": count} for count in (0, 3, -1, 1.5, True)),
    *({bound: 5} for bound in ("minItems", "maxItems", "minContains", "maxProperties", "maxI")),
    *({"minimum": value} for value in (0, 1.5, True, "1")),
    *({"exclusiveMinimum": value, "minimum": 3} for value in (True, False, 4)),
    *({"exclusiveMaximum": value, "maximum": 3} for value in (True, False)),
    *({"exclusiveMaximum": True}, {"uniqueItems": True}, {"uniqueItems": 1}, {"deprecated": True}),
    *({"title": 5}, {"description": "d", "format": "uuid"}, {"format": "byte", **TEXT}),
    {"format": "byte", "contentEncoding": "base64url"},
    *({"nullable": True, **more} for more in ({}, TEXT, {"$ref": "#/components/schemas/Pet"})),
    *({"nullable": True, **TEXT, "enum": values} for values in (["a"], ["a", None], "a")),
    {"nullable": False, **TEXT},
    *(
        {"example": 1},
        {"example": 1, "examples": [2]},
        {"examples": 5},
        {"default": 1, "const": {}},
    ),
    *({"pattern": pattern} for pattern in ("^a+$", "(a", 5)),
    {"patternProperties": {"^a": TEXT, "(a": TEXT}},
    {"properties": {"a": PET, "b": SECRET, "c": {"readOnly": True}, "d": {"writeOnly": True}}},
    {"properties": {"a": {"readOnly": True}, "b": SECRET, "c": {}}, "required": ["a", "b", "c"]},
    *keyword_schemas("properties", [], None),
    *keyword_schemas("dependentRequired", {"a": ["b"]}, {"a": "b"}, []),
    {"dependentSchemas": {"a": PET}},
    *({keyword: [TEXT, PET]} for keyword in ("allOf", "anyOf", "oneOf", "prefixItems")),
    *keyword_schemas("allOf", [], {}, [5]),
    *({keyword: PET} for keyword in ("items", "contains", "not", "additionalProperties", "then")),
    {"items": [TEXT]},
    {"contentMediaType": "image/png", "contentSchema": PET, "xml": {}, "discriminator": {}},
]


def line(value: Any) -> str:
    return json.dumps(value, default=repr)


def convert_schema(version: str, direction: Any, schema: Any) -> str:
    """The converted schema, its definitions and what is left out; or the error."""
    document = Document({"openapi": version, "components": COMPONENTS})
    converter = SchemaConverter(document, direction)
    try:
        words = [line(converter.convert(schema))]
        definitions = converter.definitions()
    except ValueError as error:
        return f"ValueError: {error}"
    words += [line(definitions)] if definitions else []
    return " | ".join([*words, *converter.left_out])


def test_schemas_are_converted_or_refused_so(snapshot: SnapshotAssertion) -> None:
    texts = []
    for schema in SCHEMAS:
        rows = {
            f"{version} {direction}": convert_schema(version, direction, schema)
            for version in ("3.1.0", "3.0.3")
            for direction in ("request", "response")
        }
        first = rows["3.1.0 request"]
        others = [f"{name}: {text}" for name, text in rows.items() if text != first]
        texts.append(" ## ".join([f"{line(schema)} -> {first}", *others]))
    assert texts == snapshot


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": TEXT, **more}


def body(kind: str, schema: Any = None, required: bool = True, **media: Any) -> dict[str, Any]:
    content = {kind: {**({} if schema is None else {"schema": schema}), **media}}
    return {"requestBody": {"required": required, "content": content}}


def answers(*schemas: Any, kind: str = "application/json") -> dict[str, Any]:
    rows = {
        f"20{number}": {"content": {} if schema is None else {kind: {"schema": schema}}}
        for number, schema in enumerate(schemas)
    }
    return {"responses": rows}


PARTS = {**OBJECT, "properties": {"a": TEXT, "b": NUMBER}, "required": ["a"]}
FILES = {
    **OBJECT,
    "properties": {
        "one": {**TEXT, "format": "binary"},
        "many": {"type": "array", "items": {"contentMediaType": "image/png"}, "description": "d"},
        "json": {"contentMediaType": "application/json"},
        "note": TEXT,
        "object": OBJECT,
    },
}
LISTS = {**OBJECT, "properties": {"a": {}, "b": {}, "c": {}, "d": {}}}
STYLED = {
    "a": {"style": "deepObject"},
    "b": {"style": "pipeDelimited"},
    "c": {"style": "form", "explode": False},
    "d": {"style": "matrix"},
}
JSON = "application/json"
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "no parameter": ("/a", {}),
    "the path is encoded": ("/a\u00e9<@/{x}:y", {"parameters": [parameter("x", "path")]}),
    "two variables": (
        "/{x}/{y}/{x}",
        {"parameters": [parameter("x", "path", style="label"), parameter("y", "path")]},
    ),
    "a matrix": ("/{x}", {"parameters": [parameter("x", "path", style="matrix")]}),
    "a parameter that the path lacks": ("/{x}", {"parameters": [parameter("y", "path")]}),
    **{
        f"the path {path}": (path, {}) for path in ("a", "/a/../b", "/./a", "/a%2Fb", "//a", "/a?b")
    },
    "the longest path": ("/" + "a" * 2047, {}),
    "a path too long": ("/" + "a" * 2048, {}),
    "servers of its own": ("/", {"servers": [{"url": "https://other.test"}]}),
    "each place": (
        "/{p}",
        {
            "parameters": [
                parameter("p", "path", explode=True),
                parameter("q", required=True, description="d", deprecated=True, example="e"),
                parameter("X-H", "header", explode=True),
                parameter("c", "cookie"),
                parameter("d", "cookie", style="cookie", explode=False),
                parameter("s", style="spaceDelimited"),
                parameter("o", style="deepObject"),
                parameter("j", content={JSON: {"schema": PARTS}}),
                {"name": "none", "in": "query"},
                {"$ref": "#/components/parameters/limit"},
            ]
        },
    ),
    "ignored header fields": (
        "/",
        {"parameters": [parameter(name, "header") for name in ("Accept", "authorization")]},
    ),
    **{
        f"the {place} {name}": ("/", {"parameters": [parameter(name, place)]})
        for place, name in (
            *(("header", "Host"), ("header", "a b"), ("cookie", "a b"), ("body", "x")),
            *(("query", "own"), ("header", "X-Own"), ("cookie", "own"), ("path", "own")),
        )
    },
    "malformed parameters": ("/", {"parameters": 5}),
    "a parameter without a place": ("/", {"parameters": [{"name": "x"}]}),
    "an unknown style": ("/", {"parameters": [parameter("x", style="matrix")]}),
    "two kinds of content": ("/", {"parameters": [parameter("x", content={JSON: {}, "a/b": {}})]}),
    "content that is no JSON": ("/", {"parameters": [parameter("x", content={"text/plain": {}})]}),
    "a parameter twice": (
        "/",
        {"parameters": [parameter("x"), parameter("x", "header"), parameter("x", schema=NUMBER)]},
    ),
    "odd names": (
        "/",
        {
            "parameters": [
                *(parameter(name) for name in ("$top", "filter[x]", "_", "a" * 64, "b" * 65)),
                *(parameter(name) for name in ("c.d-e_f", "g!", "g?")),
                parameter("h!", schema=True, description="d"),
            ]
        },
    ),
    "a body": ("/", body(JSON, PARTS)),
    "a body that is optional": ("/", body(JSON, PARTS, required=False)),
    "a body of two required members": (
        "/",
        body(JSON, {**PARTS, "required": ["a", "b"]}, required=False),
    ),
    "a body and parameters of its names": (
        "/{a}",
        {"parameters": [parameter("a", "path"), parameter("body")], **body(JSON, PARTS)},
    ),
    "a whole body and a parameter body": (
        "/",
        {"parameters": [parameter("body")], **body(JSON, {"type": "array"})},
    ),
    "a body by reference": ("/", {"requestBody": {"$ref": "#/components/requestBodies/pet"}}),
    "a body of a component": ("/", body(JSON, PET)),
    "a body with all of": ("/", body(JSON, {"allOf": [PET, PARTS], "title": "t", "x-own": 1})),
    "members of two": ("/", body(JSON, {"allOf": [PARTS, PARTS]})),
    "an open body": ("/", body(JSON, {**PARTS, "additionalProperties": True})),
    "a closed body": ("/", body(JSON, {**PARTS, "additionalProperties": False})),
    "a closed body with all of": (
        "/",
        body(JSON, {**PARTS, "additionalProperties": False, "allOf": [PET]}),
    ),
    "a required member that is not there": ("/", body(JSON, {**PARTS, "required": ["c"]})),
    "a body that may be null": ("/", body(JSON, {**PARTS, "type": ["object", "null"]})),
    "a body of type [object]": ("/", body(JSON, {**PARTS, "type": ["object"]})),
    "malformed required": ("/", body(JSON, {**PARTS, "required": 5})),
    "a body of any type": ("/", body("*/*", TEXT)),
    "a body with a suffix": ("/", body("application/merge-patch+json; charset=utf-8", TEXT)),
    "a text": ("/", body("text/csv")),
    "a binary body": ("/", body("image/png")),
    "a form": ("/", body("application/x-www-form-urlencoded", LISTS, encoding=STYLED)),
    "a form that is no object": ("/", body("application/x-www-form-urlencoded", TEXT)),
    "files": (
        "/",
        body("multipart/form-data", FILES, encoding={"note": {"contentType": "text/x"}}),
    ),
    "another type of part": (
        "/",
        body("multipart/form-data", FILES, encoding={"one": {"contentType": "image/png"}}),
    ),
    "an unknown type of part": (
        "/",
        body("multipart/form-data", FILES, encoding={"one": {"contentType": "a/b"}}),
    ),
    "an unknown type": ("/", body("application/xml", TEXT)),
    "two types": (
        "/",
        {"requestBody": {"content": {"text/plain": {}, JSON: {"schema": TEXT}, "a/b": {}}}},
    ),
    "an object as result": ("/", answers(PARTS)),
    "a component as result": ("/", answers(PET)),
    "a text as result": ("/", answers(TEXT)),
    "two results": ("/", answers(PARTS, TEXT)),
    "the same result twice": ("/", answers(PARTS, PARTS)),
    "a result or nothing": ("/", answers(PARTS, None)),
    "no result": ("/", answers(None)),
    "a result of no schema": ("/", answers({}, None)),
    "a result with a loop": ("/", answers({"$ref": "#/components/schemas/Loop"})),
    "a result that may be null": ("/", answers({**PARTS, "type": ["object", "null"]})),
    "a text result": ("/", answers(TEXT, kind="text/csv; charset=utf-8")),
    "any result": ("/", answers(TEXT, kind="*/*")),
    "an error alone": ("/", {"responses": {"404": {"content": {JSON: {"schema": PARTS}}}}}),
    "a callback": ("/", {"callbacks": {"done": {}}}),
    "a pattern": ("/", {"parameters": [parameter("x", schema={"pattern": "(a"})]}),
}
OWN = {place: frozenset({"own", "x-own"}) for place in ("query", "header", "cookie")}


def read(case: str) -> Operation:
    """An operation of the table."""
    path, operation = OPERATIONS[case]
    document = Document(one(path, operation, components=COMPONENTS))
    route = HTTPRoute(method="POST", path=path, operation_id="call")
    return OperationReader(document, route, {}, operation, OWN).read()


def describe_operation(operation: Operation) -> dict[str, Any]:
    """The parts of an operation, without its route."""
    parameters = [
        f"{each.argument}={each.place}:{each.name} {each.style}"
        f"{' explode' * each.explode}{' required' * each.required}{' json' * each.is_json}"
        for each in operation.parameters
    ]
    members = operation.body.members if operation.body is not None else None
    return {
        "parts": operation.parts,
        "input": dict(operation.input_schema),
        "parameters": parameters,
        "body": str(operation.body).partition(", members=")[0],
        "members": {name: str(member) for name, member in (members or {}).items()},
        "output": operation.output_schema and dict(operation.output_schema),
        "wrapped": operation.is_wrapped,
        "type": operation.mime_type,
        "left out": list(operation.left_out),
    }


def test_operations_are_read_or_refused_so(snapshot: SnapshotAssertion) -> None:
    rows = []
    for case in OPERATIONS:
        try:
            said = describe_operation(read(case)).items()
            row = " | ".join(f"{name}: {line(value)}" for name, value in said if value)
        except ValueError as error:
            row = f"ValueError: {error}"
        rows.append(f"{case} -> {row}")
    assert rows == snapshot


@pytest.mark.parametrize("levels", [16, 17])
def test_members_are_arguments_down_to_16_levels_of_all_of(levels: int) -> None:
    schema: dict[str, Any] = {"properties": {"a": TEXT}}
    for _ in range(levels - 1):
        schema = {"allOf": [schema]}
    operation = body(JSON, schema)
    reader = OperationReader(
        Document(one("/", operation)), HTTPRoute(method="POST", path="/"), {}, operation, OWN
    )
    assert (reader.read().input_schema["properties"].keys() == {"a"}) is (levels == 16)


class Http:
    """An HTTP client whose server gives one response in two parts; keeps the request."""

    base_url = "https://api.test"
    headers: Mapping[str, str] = {}
    params: Mapping[str, Any] = {}
    cookies: Mapping[str, Any] = {}

    def __init__(self, status: int = 200, reason: str = "", kind: str = "", body: bytes = b""):
        self.status_code, self.reason_phrase, self._body = status, reason, body
        self.request: dict[str, Any] = {}
        self._kind = kind

    def __call__(self) -> Http:
        """Itself, as the client of an operation that runs."""
        return self

    @asynccontextmanager
    async def stream(self, method: str, url: str, **how: Any) -> AsyncIterator[Any]:
        """Send a request."""
        self.request = {
            "url": f"{method} {url}",
            **{key: each for key, each in how.items() if each},
        }
        yield SimpleNamespace(
            status_code=self.status_code,
            reason_phrase=self.reason_phrase,
            headers={"content-type": self._kind} if self._kind else {},
            aiter_bytes=self._parts,
        )

    async def _parts(self) -> AsyncIterator[bytes]:
        half = len(self._body) // 2
        yield self._body[:half]
        yield self._body[half:]


VALUES: list[tuple[str, dict[str, Any]]] = [
    ("the path is encoded", {"x": "a/b"}),
    ("the path is encoded", {"x": "\u00e9 ?#"}),
    *(
        ("the path is encoded", each)
        for each in keyword_schemas("x", None, "", "..", "%2e%2E", 0, [])
    ),
    *(("a matrix", {"x": value}) for value in ([1, 2], {"a": 1}, "b c")),
    ("two variables", {"x": ["1", 2], "y": {"a": 1}}),
    (
        "each place",
        {
            "p": {"a": 1, "b": [2]},
            "q": "&=",
            "X-H": {"a": 1, "b": 2},
            "c": [1, "; "],
            "d": {"a": 1},
            "s": [1, 2],
            "o": {"a": {"b": 1}, "c": [2]},
            "j": {"a": [1]},
            "none": None,
            "limit": 5,
        },
    ),
    ("each place", {"p": "x", "X-H": "a\nb"}),
    ("a parameter twice", {"x__query": 1, "x__header": "b"}),
    *(("a body", value) for value in ({"a": "x"}, {"a": "x", "b": None}, {})),
    *(("a body that is optional", value) for value in ({"a": "x"}, {})),
    *(("a body of any type", value) for value in ({"body": {"a": 1}}, {})),
    *(("a text", value) for value in ({"body": "a,b"}, {"body": [1]})),
    *(("a binary body", {"body": value}) for value in ("eA==", "%", 5)),
    (
        "a form",
        {"a": {"x": 1, "y": [2]}, "b": [1, "a b"], "c": [1, 2], "d": {"x": 1}},
    ),
    ("a form", {"a": "&", "d": None}),
    ("a form", {"d": [1, "2"]}),
    (
        "files",
        {"one": "eA==", "many": ["eA==", "eQ=="], "json": {"a": 1}, "note": "n", "object": {}},
    ),
    *(("files", value) for value in ({"note": None, "object": [1, "a", {}]}, {"one": "%"}, {})),
    ("another type of part", {"one": "eA=="}),
    ("an object as result", {}),
]


async def test_arguments_become_these_requests(snapshot: SnapshotAssertion) -> None:
    rows = []
    for case, arguments in VALUES:
        http = Http(kind=JSON, body=b'{"a": "x"}')
        tool = OperationTool(read(case), http, slashes=False, timeout=None)
        text = ""
        try:
            await tool(**arguments)
        except ToolError as error:
            text = f"error: {error}"
        rows.append(f"{case}: {line(arguments)} -> {text or line(http.request)}")
    assert rows == snapshot


RESPONSES: list[tuple[int, str, str, bytes]] = [
    (200, "OK", JSON, b'{"a": "x"}'),
    (200, "OK", "application/problem+json; charset=utf-8", b"[1]"),
    (200, "OK", JSON, b"{"),
    (200, "OK", JSON, b"\xff"),
    (204, "No Content", "", b""),
    (299, "", "", b""),
    (200, "OK", "text/plain; charset=latin-1", b"\xe9"),
    (200, "OK", 'text/plain; a=b; Charset="utf-16-le"', "\u00e9".encode("utf-16-le")),
    *((200, "OK", f"text/plain; charset={name}", b"\xe9") for name in ("no-such", "\0", "hex")),
    *((200, "OK", kind, b"x") for kind in ("application/xml", "application/x-yaml", "IMAGE/PNG")),
    *((200, "OK", kind, b"x") for kind in ("audio/ogg", "application/pdf", "", "odd", "a /b")),
    *((status, "Gone\n", "text/plain", b"why") for status in (199, 300, 404, 410, 500)),
    (404, "Not Found", JSON, b" "),
    (500, "", "application/soap+xml", b"<x/>"),
    (500, "", "image/png", b"x"),
    (500, "", "text/plain", b"x" * 4000),
    (500, "", "text/plain", b"x" * 4001),
]


async def shown(response: tuple[int, str, str, bytes], call: Callable[[Any], Any]) -> str:
    """What a response becomes, without most of it if that is long."""
    try:
        text = str(await call(lambda: Http(*response)))
    except McpError as error:
        kind = "error" if isinstance(error, ToolError) else type(error).__name__
        text = f"{kind}: {error}"
    text = text if len(text) < 1000 else f"{text[:100]} ... {text[-30:]} ({len(text)})"
    return f"{response!r:.90} -> {text}"


@pytest.mark.parametrize("case", ["no parameter", "an object as result", "a text as result"])
async def test_responses_become_these_results(case: str, snapshot: SnapshotAssertion) -> None:
    def call(http: Any) -> Any:
        return OperationTool(read(case), http, slashes=False, timeout=None)()

    assert [await shown(response, call) for response in RESPONSES] == snapshot


async def test_responses_become_these_contents(snapshot: SnapshotAssertion) -> None:
    def call(http: Any) -> Any:
        uri, operation = "resource://call/{x}", read("the path is encoded")
        return OperationResource(operation, http, uri, slashes=False, timeout=None)(x="a b")

    assert [await shown(response, call) for response in RESPONSES] == snapshot
