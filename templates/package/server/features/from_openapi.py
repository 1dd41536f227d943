"""Servers that make the HTTP requests of an OpenAPI document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ..toolkit.resources import ResourceDecorator

if TYPE_CHECKING:
    from ..openapi.document import Spec
    from ..openapi.http_operation import HttpClient
    from ..openapi.route_maps import RouteMap, RouteMapFunction


class OpenApiServer(ResourceDecorator):
    """A server that can be made of an OpenAPI document."""

    @classmethod
    def from_openapi(
        cls,
        spec: Spec | None = None,
        http_client: HttpClient | None = None,
        *,
        openapi_spec: Spec | None = None,
        client: HttpClient | None = None,
        name: str | None = None,
        base_url: str | None = None,
        route_maps: Sequence[RouteMap] = (),
        route_map_fn: RouteMapFunction | None = None,
        mcp_names: Mapping[str, str] | None = None,
        tags: Collection[str] = (),
        validate_output: bool = True,
        encoded_slashes: bool = False,
        timeout: float | None = 30.0,
        **settings: Any,
    ) -> Self:
        """A server whose tools and resources make the HTTP requests of an OpenAPI document.

        Args:
            spec: The document, version 3: decoded, as text of JSON or YAML, or the path of a file.
            http_client: Makes the requests, to its `base_url` and with its credentials; stays open.
                By default the server opens a client of httpx2 while it runs.
            openapi_spec: Another name for `spec`.
            client: Another name for `http_client`.
            name: Name of the server; the title of the document by default.
            base_url: Where that client sends requests; the document's first server by default.
            route_maps: What operations become. The first match counts; others become tools.
            route_map_fn: Gets an operation and the kind of item for it; may return another kind.
            mcp_names: Names by `operationId`, or by `"GET /path"`.
            tags: Tags of everything, besides those of the document.
            validate_output: Whether the schemas of responses are output schemas.
            encoded_slashes: Whether values in a path may contain `/`, which is sent as `%2F`.
            timeout: Seconds for a request with its whole response, whatever `http_client` allows;
                `None` for no limit.
            settings: Further arguments of the class.

        Raises:
            TypeError: There is no document.
            ValueError: The document can't be served at all, or a name is invalid or unknown.
            OSError: The file can't be read.
            MissingExtraError: `jsonschema`, `httpx2` or `pyyaml` is needed and not installed.
        """
        from ..openapi.openapi_server import OpenApiServerBuilder  # few servers are made so

        document = openapi_spec if spec is None else spec
        if document is None:
            raise TypeError("from_openapi: expected an OpenAPI document as spec, got none")
        builder = OpenApiServerBuilder(
            document,
            client if http_client is None else http_client,
            base_url=base_url,
            route_maps=route_maps,
            route_map_fn=route_map_fn,
            mcp_names=mcp_names or {},
            tags=tags,
            validate_output=validate_output,
            encoded_slashes=encoded_slashes,
            timeout=timeout,
        )
        return builder.build(cls, name, settings)
