"""The metadata of protected servers that are mounted below the root of another application.

Source: RFC 9728, section 3.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ...auth.well_known import PROTECTED_RESOURCE
from ..asgi import http_response
from ..asgi.request import HttpRequest, Receive, Scope, Send
from .authenticator import metadata_response
from .protected import Protected


class ProtectedResourceMetadata:
    """An ASGI application that serves the metadata documents of several protected servers.

    It is mounted at `/.well-known/oauth-protected-resource` of the root application. The path below
    selects the server by the path of its `resource`; without one, the only server is meant.

    Args:
        protected: The settings of the servers.

    Raises:
        ValueError: There is none, or two have the same path.
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
