"""Servers made of OpenAPI documents: names, registration, warnings, the HTTP client."""

from __future__ import annotations

import hashlib
import importlib
import re
import warnings
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, TypeVar

from ..._wire import is_many, is_object
from ...errors import MissingExtraError
from ...foreign_text import safe_repr, safe_text, url_complaint
from ...yaml_text import DocumentTooLargeError
from ..toolkit.content import ToolAnnotations
from ..toolkit.registry import checked_tags
from .document import Document, Spec, object_member
from .http_operation import (
    HttpClient,
    OperationOptions,
    OperationResource,
    OperationTool,
    resource_name,
)
from .operations import Operation, OperationReader
from .route_maps import HTTPRoute, MCPType, RouteMap, RouteMapFunction, map_route
from .schema_conversion import unique_name

NAME_CHARACTERS = 64
"""Most characters of the name of a tool or resource: APIs of models allow no more."""


_Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
_ServerT = TypeVar("_ServerT", bound="_Registering")

_READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_REPLACING = frozenset({"PUT", "DELETE"})
_NONE: frozenset[str] = frozenset()
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_METHOD = re.compile(r"[A-Z0-9!#$%&'*+\-.^_`|~]{1,32}")


class OpenApiWarning(UserWarning):
    """Parts of an OpenAPI document that the server does not have; the text lists them."""


class _Registering(Protocol):
    """A `Server`, which imports this module: its decorators."""

    @property
    def tool(self) -> Callable[..., Callable[[Any], Any]]: ...

    @property
    def resource(self) -> Callable[..., Callable[[Any], Any]]: ...


class OpenApiServerBuilder:
    """Makes a server from a document.

    Args:
        spec: The document.
        http_client: The HTTP client of the user; `None` to open one while the server runs.
        base_url: The base URL of a client to open; the document's first server by default.
        route_maps: The kinds of items for operations; the first route map that matches counts.
        route_map_fn: Overrides the route maps.
        mcp_names: Names by `operationId`, or by method and path.
        tags: Tags of all items.
        validate_output: Whether tools have output schemas.
        encoded_slashes: Whether values in paths may have slashes.
        timeout: Seconds for a request with its whole response; `None` for no limit.

    Raises:
        ValueError: Not a document of OpenAPI 3, or no base URL.
        OSError: The file can't be read.
        MissingExtraError: PyYAML or httpx2 is needed and not installed.
    """

    def __init__(
        self,
        spec: Spec,
        http_client: HttpClient | None,
        *,
        base_url: str | None,
        route_maps: Sequence[RouteMap],
        route_map_fn: RouteMapFunction | None,
        mcp_names: Mapping[str, str],
        tags: Collection[str],
        validate_output: bool,
        encoded_slashes: bool,
        timeout: float | None,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout: expected more than 0, got {timeout}")
        self._document = Document(spec)
        base_url = _base_url(self._document, http_client, base_url)
        self._client = CurrentClient(http_client, base_url)
        self._own: Mapping[str, frozenset[str]] = {}
        if http_client is not None:
            self._own = {
                "header": frozenset(map(str.lower, http_client.headers)),
                "query": frozenset(http_client.params),
                "cookie": frozenset(http_client.cookies),
            }
        self._route_maps = route_maps
        self._route_map_fn = route_map_fn
        self._mcp_names = _checked_names(mcp_names)
        self._tags = checked_tags(tags)
        self._validate_output = validate_output
        self._options: OperationOptions = {"slashes": encoded_slashes, "timeout": timeout}
        self._names = set(mcp_names.values())
        self._left_out: list[str] = []

    def build(
        self, make: Callable[..., _ServerT], name: str | None, settings: Mapping[str, Any]
    ) -> _ServerT:
        """The server. A warning lists the operations, and parts of these, that it lacks.

        Args:
            make: The class of the server.
            name: Its name; the title of the document by default.
            settings: Further arguments of the class.

        Raises:
            ValueError: The document has no operations, or a name is unknown, invalid or taken.
        """
        document = self._document
        server = make(
            name or document.text("info", "title") or "openapi",
            **{
                "version": document.text("info", "version") or "0",
                **settings,
                "lifespan": self._client.lifespan(settings.get("lifespan")),
            },
        )
        self._register(server)
        if self._left_out:
            lines = ["the server lacks parts of the OpenAPI document:", *self._left_out]
            warnings.warn("\n  ".join(lines), OpenApiWarning, stacklevel=3)
        return server

    def _register(self, server: _Registering) -> None:
        """Register all operations."""
        unused_names = set(self._mcp_names)
        count = 0
        for route, item, operation in self._routes():
            count += 1
            kind, tags = map_route(route, self._route_maps, self._route_map_fn)
            unused_names -= {route.operation_id, route.label}
            name = self._name(route)
            if kind is MCPType.EXCLUDE:
                continue
            try:
                reader = OperationReader(self._document, route, item, operation, self._own)
                self._add(server, reader.read(), kind, name, tags)
            except DocumentTooLargeError:
                raise
            except ValueError as error:
                self._left_out.append(f"{route.label}: {error}")
        if unused_names:
            unknown = ", ".join(sorted(map(repr, unused_names)))
            raise ValueError(f"mcp_names: the document has no operation {unknown}")
        if not count and not self._left_out:
            raise ValueError("spec: expected operations in paths, got none")
        webhooks = object_member(self._document.root, "webhooks")
        self._left_out += [f"the webhook {safe_text(str(name))}" for name in webhooks]

    def _routes(self) -> Iterator[tuple[HTTPRoute, Mapping[str, Any], Mapping[str, Any]]]:
        for path, node in self._document.path_items():
            try:
                operations = self._document.operations_of(node)
            except DocumentTooLargeError:
                raise
            except ValueError as error:
                self._left_out.append(f"{safe_text(path)}: {error}")
                continue
            for method, item, operation in operations:
                if _METHOD.fullmatch(method):
                    yield _route(method, path, operation), item, operation
                else:
                    reason = f"expected a method, got {safe_repr(method)}"
                    self._left_out.append(f"{safe_text(path)}: {reason}")

    def _name(self, route: HTTPRoute) -> str:
        """The name of the tool or resource for an operation."""
        for key in (route.operation_id, route.label):
            if key is not None and key in self._mcp_names:
                return self._mcp_names[key]
        source = route.operation_id or f"{route.method.lower()}{route.path}"
        stem = re.sub(r"[^A-Za-z0-9_\-]+", "_", source).strip("_") or "operation"
        if len(stem) > NAME_CHARACTERS - 4:  # room for a number
            digest = hashlib.sha256(source.encode()).hexdigest()[:8]
            stem = f"{stem[: NAME_CHARACTERS - 13]}_{digest}"
        name = unique_name(stem, self._names)
        self._names.add(name)
        return name

    def _add(
        self,
        server: _Registering,
        operation: Operation,
        kind: MCPType,
        name: str,
        tags: frozenset[str],
    ) -> None:
        route = operation.route
        description = route.description or route.summary or route.label
        if route.deprecated:
            description = f"Deprecated. {description}"
        self._document.take_text([route.summary, description])
        all_tags = self._tags | tags | route.tags
        if kind is MCPType.TOOL:
            if not self._validate_output:
                operation = replace(operation, output_schema=None, is_wrapped=False)
            server.tool(
                name,
                title=route.summary,
                description=description,
                annotations=_hints(route.method),
                input_schema=operation.input_schema,
                output_schema=operation.output_schema,
                tags=all_tags,
            )(OperationTool(operation, self._client, **self._options))
        else:
            uri = _resource_uri(operation, name, kind)
            server.resource(
                uri,
                name=name,
                title=route.summary,
                description=description,
                mime_type=operation.mime_type,
                tags=all_tags,
            )(OperationResource(operation, self._client, uri, **self._options))
        self._left_out += [f"{route.label}: {each}" for each in operation.left_out]


def _route(method: str, path: str, operation: Mapping[str, Any]) -> HTTPRoute:
    def text(name: str) -> str | None:
        value = operation.get(name)
        return value if isinstance(value, str) else None

    tags = operation.get("tags")
    return HTTPRoute(
        method=method,
        path=path,
        operation_id=text("operationId"),
        summary=text("summary"),
        description=text("description"),
        tags=frozenset(each for each in tags if isinstance(each, str)) if is_many(tags) else _NONE,
        deprecated=operation.get("deprecated") is True,
        extensions={key: operation[key] for key in operation if str(key).startswith("x-")},
    )


def _checked_names(names: Mapping[str, str]) -> Mapping[str, str]:
    """The names of the user, after a check."""
    for key, name in names.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"mcp_names: {key!r}: expected letters, digits, '_', '-' and '.'")
    if len(set(names.values())) < len(names):
        raise ValueError("mcp_names: expected each name once")
    return names


def _hints(method: str) -> ToolAnnotations:
    """Hints by the semantics of HTTP methods (RFC 9110, section 9.2)."""
    if method in _READING:
        return ToolAnnotations(read_only_hint=True, open_world_hint=True)
    if method in _REPLACING:
        return ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True
        )
    return ToolAnnotations(read_only_hint=False, open_world_hint=True)


def _resource_uri(operation: Operation, name: str, kind: MCPType) -> str:
    """The URI of a resource, or the URI template with parameters of the path and the query."""
    if operation.route.method not in ("GET", "QUERY") or operation.body is not None:
        raise ValueError("expected GET without a body for a resource")
    variables = [each for each in operation.parameters if each.place == "path"]
    queries = [each for each in operation.parameters if each.place == "query"]
    if kind is MCPType.RESOURCE_TEMPLATE:
        unset = [each for each in operation.parameters if each.place in ("header", "cookie")]
        if not variables and not queries:
            raise ValueError("expected parameters for a resource template; map it to RESOURCE")
    else:
        unset, variables, queries = [*operation.parameters], [], []
    if missing := [each.argument for each in unset if each.required]:
        raise ValueError(f"nothing in the URI gives {safe_text(', '.join(missing))}")
    if odd := [each.argument for each in variables + queries if "-" in each.argument]:
        raise ValueError(f"a URI template has no variable {safe_text(', '.join(odd))}")
    path = "".join(f"/{{{each.argument}}}" for each in variables)
    query = ",".join(each.argument for each in queries)
    return f"resource://{resource_name(name)}{path}{f'{{?{query}}}' if query else ''}"


class CurrentClient:
    """The HTTP client that a server opens in its lifespan, or the user's, which stays open.

    An opened client has no timeouts, since each request has one.

    Args:
        client: The client of the user; `None` to open one.
        base_url: The base URL of a client to open.

    Raises:
        MissingExtraError: A client is to be opened, and httpx2 is not installed.
    """

    def __init__(self, client: HttpClient | None, base_url: str) -> None:
        self._client = client
        self._base_url = base_url
        self._users = 0
        self._make: Callable[..., Any] | None = None
        if client is None:
            try:
                self._make = importlib.import_module("httpx2").AsyncClient
            except ImportError as error:
                raise MissingExtraError("from_openapi without http_client", "httpx2") from error

    def __call__(self) -> HttpClient:
        """The client.

        Raises:
            RuntimeError: The server is not running.
        """
        if self._client is None:
            raise RuntimeError("the HTTP client is open only while the server runs")
        return self._client

    def lifespan(self, inner: _Lifespan | None) -> _Lifespan | None:
        """The lifespan of the server: it opens a client, if needed, around the user's lifespan."""
        make = self._make
        if make is None:
            return inner

        @asynccontextmanager
        async def lifespan(server: Any) -> AsyncGenerator[Any]:
            if self._client is None:
                self._client = make(base_url=self._base_url, timeout=None)
            self._users += 1
            try:
                async with nullcontext() if inner is None else inner(server) as state:
                    yield state
            finally:
                self._users -= 1
                if not self._users:
                    client: Any = self._client
                    self._client = None
                    await client.aclose()

        return lifespan


def _base_url(document: Document, client: HttpClient | None, base_url: str | None) -> str:
    """The base URL of the requests.

    The document's URL is used only for a client without the user's credentials.
    """
    if client is not None:
        if base_url is not None:
            raise ValueError("base_url: expected the base_url of http_client instead")
        if not str(client.base_url).startswith(("http://", "https://")):
            raise ValueError("http_client: expected a client with a base_url")
        return ""
    if base_url is None:
        servers = document.root.get("servers")
        first = servers[0] if is_many(servers) and servers else None
        if not is_object(first) or not isinstance(first.get("url"), str):
            raise ValueError("expected http_client or base_url: the document names no server")
        base_url = _with_variables(first["url"], first.get("variables"))
    if complaint := url_complaint(base_url):
        raise ValueError(f"base_url: {complaint}")
    return base_url


def _with_variables(url: str, variables: Any) -> str:
    """The URL of a server with the defaults of its variables."""
    for name, variable in variables.items() if is_object(variables) else ():
        default = variable.get("default") if is_object(variable) else None
        if isinstance(default, str):
            url = url.replace(f"{{{name}}}", default)
    return url
