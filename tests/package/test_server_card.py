"""Server Cards: a server's description of itself that is read before a connection."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from kit.asgi_client import asgi
from kit.guarded import protected_settings
from mcpgen_runtime import RemoteProtocolError, RouteRequest, Server, connect, read_server_card
from mcpgen_runtime.client.card_reader import CARD_BYTES
from mcpgen_runtime.errors import FrameError
from mcpgen_runtime.server_card import CARD_SCHEMA, CARD_TYPE

pytestmark = pytest.mark.on_asyncio

PLACE = "/mcp/server-card"
URL = f"http://127.0.0.1:8000{PLACE}"
CARD = {
    "$schema": CARD_SCHEMA,
    "name": "com.example/weather",
    "version": "1.0",
    "title": "Weather",
    "description": "Forecasts for cities",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://weather.example/mcp",
            "headers": [{"name": "X-Key", "isRequired": True, "isSecret": True}],
            "supportedProtocolVersions": ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
        }
    ],
}


def weather() -> Server:
    server = Server(
        "com.example/weather", "1.0", title="Weather", description="Forecasts for cities"
    )
    key = {"name": "X-Key", "isRequired": True, "isSecret": True}
    server.publish_card("https://weather.example/mcp", headers=[key])
    return server


def card_client(body: Any, kind: str = CARD_TYPE) -> httpx2.AsyncClient:
    """A client of a server whose card has this body."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["accept"] == CARD_TYPE
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(200, headers={"content-type": kind}, content=content)

    return httpx2.AsyncClient(transport=httpx2.MockTransport(respond))


async def test_a_card_says_what_the_server_declares() -> None:
    def client_of(server: Server) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=server.asgi()))

    async with client_of(weather()) as http:
        assert await read_server_card(URL, http_client=http) == CARD


async def test_anybody_may_read_a_card_from_any_origin() -> None:
    async with asgi(weather(), auth=protected_settings()) as http:
        reply = await http.get(PLACE, origin="https://elsewhere.example")
        assert (reply.status, json.loads(reply.body)) == (200, CARD)
        assert reply.fields["content-type"] == CARD_TYPE
        assert reply.fields["access-control-allow-origin"] == "*"
        preflight = await http.request("OPTIONS", path=PLACE, origin="https://elsewhere.example")
        assert preflight.status == 204
        assert preflight.fields["access-control-allow-headers"] == "Content-Type, If-None-Match"
        assert (await http.get(PLACE, host="evil.example")).status == 403


@pytest.mark.parametrize("path", ["/own", "/mcp"])
async def test_a_card_opens_no_other_path_to_other_origins(path: str) -> None:
    server = weather()

    @server.custom_route("/own")
    async def own(_request: RouteRequest) -> None:
        return None

    async with asgi(server) as http:
        assert (await http.get(PLACE, origin="https://elsewhere.example")).status == 200
        assert (await http.get(path, origin="https://elsewhere.example")).status == 403


@pytest.mark.parametrize("known", ["{}", "W/{}", '"old", {}', "*"])
async def test_a_card_that_is_known_is_not_sent_again(known: str) -> None:
    async with asgi(weather()) as http:
        first = await http.get(PLACE)
        assert first.fields["cache-control"] == "public, max-age=3600"
        tag = first.fields["etag"]
        again = await http.get(PLACE, **{"if-none-match": known.format(tag)})
        assert (again.status, again.body) == (304, b"")
        assert again.fields["etag"] == tag
        assert "content-length" not in again.fields
        assert (await http.get(PLACE, **{"if-none-match": '"old"'})).status == 200


@pytest.mark.parametrize(
    ("name", "arguments", "refused"),
    [
        ("weather", {}, "name"),
        ("com.example/weather", {"description": "x" * 101}, "description"),
    ],
)
def test_a_malformed_card_is_not_published(
    name: str, arguments: dict[str, Any], refused: str
) -> None:
    server = Server(name, "1.0")
    members: dict[str, Any] = {
        "url": "https://weather.example/mcp",
        "description": "Forecasts",
    } | arguments
    with pytest.raises(ValueError, match=rf"expected a Server Card: .*{refused}`"):
        server.publish_card(**members)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (CARD | {"name": "weather"}, r"`\$\.name`"),
        (CARD | {"$schema": "https://example.com/server.schema.json"}, r"`\$\.\$schema`"),
        (CARD | {"remotes": [{"type": "stdio", "url": "https://x"}]}, "type`"),
        (b"<html>", "expected a Server Card"),
        (b"[" * 100_000, "expected a Server Card"),
    ],
    ids=range(5),
)
async def test_other_documents_are_refused(body: Any, error: str) -> None:
    async with card_client(body) as http:
        with pytest.raises(RemoteProtocolError, match=error):
            await read_server_card(URL, http_client=http)


async def test_a_card_has_a_greatest_length() -> None:
    async with card_client(b" " * CARD_BYTES + b"{}") as http:
        with pytest.raises(FrameError, match=f"at most {CARD_BYTES} bytes"):
            await read_server_card(URL, http_client=http)


async def test_another_media_type_is_refused() -> None:
    async with card_client(CARD, "text/html") as http:
        with pytest.raises(RemoteProtocolError, match=f"expected {CARD_TYPE}".replace("+", r"\+")):
            await read_server_card(URL, http_client=http)


async def test_a_card_from_afar_is_read_over_https_alone() -> None:
    with pytest.raises(ValueError, match=r"expected https, got http://weather\.example/card"):
        await read_server_card("http://weather.example/card")


async def test_connect_takes_a_card_and_says_which_values_it_needs() -> None:
    package = {"registryType": "npm", "identifier": "evil", "transport": {"type": "stdio"}}
    async with card_client(CARD | {"packages": [package]}) as http:
        card = await read_server_card(URL, http_client=http)
    assert "packages" not in card
    with pytest.raises(ValueError, match=r"it needs X-Key \(required, secret\)"):
        async with connect(card):
            pass
