"""The Server Card of a server, as a route beside its endpoint. A draft; see `server_card`.

Clients and pages of all origins may read the card, and cache it for an hour.

Source: experimental-ext-server-card/docs/discovery (location, CORS requirements, caching).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..._wire import encode
from ...facts import Revisions
from ...server_card import CARD_SCHEMA, CARD_TYPE, parse_card
from .routes import RouteHandler, RouteRequest, RouteResponse

CARD_METHODS = ("GET", "OPTIONS")

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match",
    "Access-Control-Expose-Headers": "ETag",
}


def card_of(
    info: Mapping[str, Any],
    revisions: Revisions,
    url: str,
    headers: Sequence[Mapping[str, Any]],
    others: Mapping[str, Any],
) -> bytes:
    """The card of a server that is reached at a URL.

    Args:
        info: Name, version and further members of `Implementation`, as wire object.
        revisions: The revisions of the server.
        url: The URL of the endpoint for clients.
        headers: The header fields that clients have to send, in the form of the registry.
        others: Members of the card that take precedence, unless they are `None`.

    Raises:
        ValueError: A member does not have the form of the card schema; the text names the member.
    """
    remote: dict[str, Any] = {"type": "streamable-http", "url": url}
    if headers:
        remote["headers"] = [dict(each) for each in headers]
    remote["supportedProtocolVersions"] = [
        each for each in revisions if revisions[each].facts.transports.streamable_http
    ]
    stated = {name: value for name, value in others.items() if value is not None}
    card = encode({"$schema": CARD_SCHEMA, **info, **stated, "remotes": [remote]})
    parse_card(card)
    return card


def card_handler(body: bytes) -> RouteHandler:
    """The handler of a route that responds with a card, or with 304 if `ETag` matches."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    fields = {**_CORS, "Cache-Control": "public, max-age=3600", "ETag": tag}

    async def respond(request: RouteRequest) -> RouteResponse:
        if request.method == "OPTIONS":
            return RouteResponse(status=204, headers=_CORS)
        tags = request.headers.get("If-None-Match", "").split(",")
        if any(each.strip().removeprefix("W/") in (tag, "*") for each in tags):
            return RouteResponse(status=304, headers=fields)
        return RouteResponse(body, headers=fields, content_type=CARD_TYPE)

    return respond
