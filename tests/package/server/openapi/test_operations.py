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
from package.tables import table

pytestmark = pytest.mark.on_asyncio
TABLES = table("openapi_operations")
"""Components of documents, schemas, operations with these components, and arguments of calls."""


def line(value: Any) -> str:
    return json.dumps(value, default=repr)


def convert_schema(version: str, direction: Any, schema: Any) -> str:
    """The converted schema, its definitions and what is left out; or the error."""
    document = Document({"openapi": version, "components": TABLES["components"]})
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
    for schema in TABLES["schemas"]:
        rows = {
            f"{version} {direction}": convert_schema(version, direction, schema)
            for version in ("3.1.0", "3.0.3")
            for direction in ("request", "response")
        }
        first = rows["3.1.0 request"]
        others = [f"{name}: {text}" for name, text in rows.items() if text != first]
        texts.append(" ## ".join([f"{line(schema)} -> {first}", *others]))
    assert texts == snapshot


JSON = "application/json"
OPERATIONS: dict[str, dict[str, Any]] = {
    **TABLES["operations"],
    "the longest path": {"path": "/" + "a" * 2047, "operation": {}},
    "a path too long": {"path": "/" + "a" * 2048, "operation": {}},
}
OWN = {place: frozenset({"own", "x-own"}) for place in ("query", "header", "cookie")}


def read(case: str) -> Operation:
    """An operation of the table."""
    path, operation = OPERATIONS[case]["path"], OPERATIONS[case]["operation"]
    document = Document(one(path, operation, components=TABLES["components"]))
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
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    for _ in range(levels - 1):
        schema = {"allOf": [schema]}
    operation = {"requestBody": {"content": {JSON: {"schema": schema}}}}
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


async def test_arguments_become_these_requests(snapshot: SnapshotAssertion) -> None:
    rows = []
    for case, arguments in TABLES["arguments"]:
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
