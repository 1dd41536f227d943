"""Cross-origin resource sharing (CORS): pages of listed origins make requests and read responses.

Before a request with JSON or with fields of the protocol, a browser sends a preflight request
(OPTIONS), which has no credentials. Cookies are never shared: pages send access tokens themselves.

Source: fetch.spec.whatwg.org/#http-cors-protocol.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from .http_response import HttpResponse
from .request import HttpRequest, Send

_ALLOWED = b"access-control-allow-origin"
_SHARED = (
    (b"vary", b"origin"),
    (
        b"access-control-expose-headers",
        b"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, Allow, ETag",
    ),
)

PREFLIGHT = HttpResponse(
    200,
    headers={
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": "*, Authorization",  # which the wildcard leaves out
        "Access-Control-Max-Age": "7200",  # the most that browsers accept
    },
)
"""The response to a preflight request, besides the fields of all shared responses."""


def is_preflight(request: HttpRequest) -> bool:
    """Whether a browser asks by a request whether a page may send another one."""
    return request.method == "OPTIONS" and b"access-control-request-method" in request.headers


def share_responses(send: Send, origin: bytes) -> Send:
    """An ASGI send callable whose responses pages of an origin may read.

    A response that states by itself who may read it stays as it is.
    """

    async def send_shared(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            fields = [*message.get("headers", ())]
            if not any(name.lower() == _ALLOWED for name, _ in fields):
                message = {**message, "headers": [*fields, (_ALLOWED, origin), *_SHARED]}
        await send(message)

    return send_shared
