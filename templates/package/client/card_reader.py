"""Reading a Server Card before connecting. A draft; see `server_card`.

Source: experimental-ext-server-card/docs/discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import RemoteProtocolError
from ..foreign_text import safe_text
from ..framing.http_hosts import format_url, is_loopback
from ..server_card import CARD_TYPE, parse_card
from ..transports.http.http_client import HttpRequests, content_type
from .server_document import ServerDocument

if TYPE_CHECKING:
    from .server_url import HttpClient

CARD_BYTES = 256 * 1024
"""Longest card that is read."""

_SECONDS = 10.0


async def read_server_card(url: str, *, http_client: HttpClient | None = None) -> ServerDocument:
    """The Server Card at a URL, without credentials; a target of `connect`, with `groups`.

        card = await read_server_card("https://weather.example/mcp/server-card")
        async with connect(card, inputs=ask) as client: ...

    A card is untrusted: let the user confirm the URL that it names and the values that it asks for,
    and base no security decision on it. Members that the schema of cards lacks are dropped, and
    `connect` uses only the remotes, so that a card starts no process and reads no files.

    Args:
        url: The URL of the card; by convention the URL of the endpoint with `/server-card`.
        http_client: The HTTP client to use; it is not closed.

    Raises:
        ValueError: The URL is neither https nor a loopback address.
        McpError: The server can't be reached or refuses, or the response is not a Server Card.
        MissingExtraError: The HTTP library is not installed.
    """
    split = urlsplit(url)
    if split.scheme != "https" and not is_loopback(split.hostname or ""):
        raise ValueError(f"read_server_card: expected https, got {format_url(url)}")
    requests = HttpRequests(
        client=http_client, silence=_SECONDS, body_seconds=_SECONDS, limit=CARD_BYTES
    )
    try:
        response = await requests.open("GET", url, {"Accept": CARD_TYPE})
        if content_type(response) != CARD_TYPE:
            raise await requests.unexpected_response(response, CARD_TYPE)
        data = await requests.read(response)
    finally:
        await requests.close()
    try:
        card = parse_card(data)
    except ValueError as error:
        raise RemoteProtocolError(f"{format_url(url)}: {safe_text(str(error))}") from None
    return ServerDocument(card)
