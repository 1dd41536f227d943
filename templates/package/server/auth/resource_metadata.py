"""Protected resource metadata: the document, its URL, and the responses that serve it.

Source: RFC 9728, sections 2 and 3; basic/authorization (protected resource metadata).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...auth.identifiers import PROTECTED_RESOURCE, protected_resource_url
from ..asgi import http_response
from ..asgi.http_response import HttpResponse
from ..asgi.request import HttpRequest, Receive, Scope, Send
from .protected import Protected


class ProtectedResourceMetadata:
    """An ASGI application that serves the metadata documents of several protected servers.

    Mount the application at `/.well-known/oauth-protected-resource` of the root application, for
    servers that are mounted below the root. The rest of the path selects the server by the path of
    its `resource`. A request without such a path gets the document if there is only one server.

    Args:
        protected: The settings of the servers.

    Raises:
        ValueError: There is no server, or two servers have the same path.
    """

    def __init__(self, *protected: Protected) -> None:
        self._by_path = {urlsplit(each.resource).path.rstrip("/"): each for each in protected}
        if not protected or len(self._by_path) < len(protected):
            raise ValueError("expected protected servers with paths that differ")
        if len(protected) == 1:
            self._by_path[""] = protected[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            return
        request = HttpRequest(scope)
        path = request.path.removeprefix(PROTECTED_RESOURCE).rstrip("/")
        protected = self._by_path.get(path)
        if protected is None:
            await http_response.refusal(404, "no protected server has this path").send(send)
        else:
            await metadata_response(request, protected).send(send)


def metadata_response(request: HttpRequest, protected: Protected) -> HttpResponse:
    """The response to a request for the document. Web pages of any origin may read it."""
    if request.method != "GET":
        return http_response.not_allowed("GET")
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=300"}
    return HttpResponse(200, metadata_document(protected), headers)


def metadata_document(protected: Protected) -> bytes:
    """The document, as JSON."""
    scopes = protected.scopes if protected.scopes_supported is None else protected.scopes_supported
    members: dict[str, Any] = {
        "resource": protected.resource,
        "authorization_servers": list(protected.issuers),
        "bearer_methods_supported": ["header"],
    }
    if scopes:
        members["scopes_supported"] = list(scopes)
    if protected.dpop is not None:
        members["dpop_signing_alg_values_supported"] = list(protected.dpop.algorithms)
        members["dpop_bound_access_tokens_required"] = protected.dpop.required
    return msgspec.json.encode({**protected.metadata, **members})


def metadata_url(protected: Protected, mount_point: str) -> str:
    """The URL of the document, for `resource_metadata` of a challenge.

    The outer application may not route the well-known URL of an application that is mounted below a
    path. The URL is then one that the mounted application serves itself.

    Args:
        protected: The settings of the server.
        mount_point: The path that the application is mounted at; empty for the root.
    """
    if protected.metadata_url is not None:
        return protected.metadata_url
    root = mount_point.rstrip("/")
    split = urlsplit(protected.resource)
    if not root or not split.path.startswith(f"{root}/"):
        return protected_resource_url(protected.resource)
    rest = split.path.removeprefix(root)
    return f"{split.scheme}://{split.netloc}{root}{PROTECTED_RESOURCE}{rest}"


def is_metadata_path(protected: Protected, path: str, mount_point: str) -> bool:
    """Whether a path, relative to the mount point, is one that the document is served at."""
    if not path.startswith(PROTECTED_RESOURCE):
        return False
    resource_path = urlsplit(protected.resource).path.rstrip("/")
    rest = path.removeprefix(PROTECTED_RESOURCE).rstrip("/")
    return rest in ("", resource_path, resource_path.removeprefix(mount_point.rstrip("/")))
