"""Server Cards: a server's description of itself that is read before a connection."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from kit.asgi_client import asgi
from kit.guarded import protected_settings
from kit.live import open_and_close
from mcpgen_runtime import (
    RemoteProtocolError,
    RouteRequest,
    Server,
    ServerDocument,
    connect,
    connect_sync,
    read_server_card,
)
from mcpgen_runtime.client.card_reader import CARD_BYTES
from mcpgen_runtime.client.server_config import ServerEntry, config_servers
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


async def test_a_long_card_another_media_type_and_http_are_refused() -> None:
    async with card_client(b" " * CARD_BYTES + b"{}") as http:
        with pytest.raises(FrameError, match=f"at most {CARD_BYTES} bytes"):
            await read_server_card(URL, http_client=http)
    async with card_client(CARD, "text/html") as http:
        with pytest.raises(RemoteProtocolError, match=f"expected {CARD_TYPE}".replace("+", r"\+")):
            await read_server_card(URL, http_client=http)
    with pytest.raises(ValueError, match=r"expected https, got http://weather\.example/card"):
        await read_server_card("http://weather.example/card")


async def test_connect_takes_a_card_and_says_which_values_it_needs() -> None:
    package = {"registryType": "npm", "identifier": "evil", "transport": {"type": "stdio"}}
    async with card_client(CARD | {"packages": [package]}) as http:
        card = await read_server_card(URL, http_client=http)
    assert "packages" not in card
    with pytest.raises(ValueError, match=r"it needs X-Key \(required, secret\)"):
        await open_and_close(connect(card))


CLOSED = "http://127.0.0.1:1/mcp"
SECRET = "environment-s3cret"
REMOTE = {"type": "streamable-http", "url": CLOSED}


each_kind = pytest.mark.parametrize("kind", ["card", "registered", "bare"])


async def read_document(kind: str, members: Mapping[str, Any]) -> ServerDocument:
    """A document of a kind, with some members."""
    if kind == "card":
        async with card_client({**CARD, "remotes": [REMOTE], **members}) as http:
            return await read_server_card(URL, http_client=http)
    return ServerDocument(
        members if kind == "bare" else {"name": "a/b", "remotes": [REMOTE], **members}
    )


def forms(process: dict[str, Any], fields: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Members that a document can have, by a name: all forms of configurations, and their parts."""
    stdio = {"transport": {"type": "stdio"}, "registryType": "npm", "identifier": "x", **process}
    entry = {"url": CLOSED, "headers": fields}
    fixed = [{"name": name, "value": value} for name, value in fields.items()]
    default = [{"name": name, "default": value} for name, value in fields.items()]
    part = [
        {"name": name, "value": "{v}", "variables": {"v": {"default": value}}}
        for name, value in fields.items()
    ]
    query = "&".join(fields.values())
    return {
        "mcpServers": {"mcpServers": {"a": process, "b": entry}},
        "mcpServers, one": {"mcpServers": {"a": process}},
        "servers": {"servers": {"a": {"type": "stdio", **process}, "b": {"type": "http", **entry}}},
        "inputs": {
            "servers": {"b": {"url": CLOSED, "headers": {"X-A": "${input:i}"}}},
            "inputs": [{"id": "i", "default": query}],
        },
        "nested": {"mcp": {"servers": {"a": process}}, "server": {"mcpServers": {"a": process}}},
        "entry": process,
        "entry of a URL": entry,
        "packages": {"packages": [stdio]},
        "packages alone": {"packages": [stdio], "remotes": []},
        "remote": {"remotes": [{**process, **entry, **REMOTE, "headers": fixed}]},
        "remote by default": {"remotes": [{**REMOTE, "headers": default}]},
        "remote by a part": {"remotes": [{**REMOTE, "headers": part}]},
        "remote by its URL": {"remotes": [{**REMOTE, "url": f"{CLOSED}?{query}"}]},
        "remote of a process": {"remotes": [{**process, "type": "stdio", "url": CLOSED}]},
        "meta": {"_meta": {"mcpServers": {"a": process}}},
    }


async def opened(target: Any) -> None:
    await open_and_close(connect(target))


async def opened_in_thread(target: Any) -> None:
    def open_and_close() -> None:
        with connect_sync(target):
            pass

    await anyio.to_thread.run_sync(open_and_close)


async def proxied(target: Any) -> None:
    async with connect(Server.proxy(target)) as client:
        await client.list_tools()


@pytest.mark.parametrize("name", forms({}, {}))
@pytest.mark.parametrize("open_target", [opened, opened_in_thread, proxied])
@each_kind
async def test_a_document_of_others_starts_no_process(
    kind: str, open_target: Callable[[Any], Awaitable[None]], name: str, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    process = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each has its own
        await open_target(await read_document(kind, forms(process, {})[name]))
    assert not started.exists(), caught.value


VARIABLES = ["${env:SECRET}", "${SECRET}", "${SECRET:-x}", "${$}{SECRET}", "$SECRET", "{SECRET}"]


@pytest.mark.parametrize("name", forms({}, {}))
@each_kind
async def test_a_document_of_others_reads_nothing_here(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    (tmp_path / ".env").write_text(f"FROM_FILE={SECRET}\n")
    monkeypatch.chdir(tmp_path)
    folders = ["${userHome}", "${workspaceFolder}", "${pathSeparator}"]
    fields = {f"X-{number}": text for number, text in enumerate([*VARIABLES, *folders])}
    process = {"command": "${SECRET}", "env": fields, "envFile": ".env", "args": [*fields.values()]}
    servers: Mapping[str, ServerEntry | Exception | None] = {}
    reasons = ""
    try:
        servers = config_servers(await read_document(kind, forms(process, fields)[name]), {})
    except (ValueError, RemoteProtocolError) as error:
        reasons = str(error)
    for entry in servers.values():
        assert isinstance(entry, ServerEntry)
        headers = entry.headers or {}
        assert entry == ServerEntry(entry.target, transport="streamable-http", headers=headers)
        reasons += "\n".join([entry.target, *headers.values()])
    assert not [each for each in (SECRET, str(Path.home()), str(tmp_path)) if each in reasons]


@pytest.mark.parametrize("text", ['["sh", "-c", "true"]', '"http://127.0.0.1:1/mcp"', "null"])
async def test_targets_of_connect_are_no_documents(text: str) -> None:
    with pytest.raises(TypeError, match="expected an object, got"):
        ServerDocument(json.loads(text))


def test_a_plain_document_is_refused_with_the_form_that_reads_it() -> None:
    with pytest.raises(ValueError, match=r"got a document of the registry; ServerDocument\("):
        config_servers({"name": "a/b", "remotes": [REMOTE]}, {})


def test_a_file_is_a_configuration_or_a_document_and_never_both(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    path.write_text(json.dumps({"remotes": [REMOTE], "mcpServers": {"a": {"command": "sh"}}}))
    with pytest.raises(ValueError, match="got members of both: mcpServers starts commands"):
        config_servers(path, {})


def test_packages_run_where_the_program_says_so() -> None:
    package = {"registryType": "npm", "identifier": "x", "transport": {"type": "stdio"}}
    document = {"name": "a/b", "packages": [package], "mcpServers": {"a": {"command": "sh"}}}
    with pytest.raises(
        ValueError, match=r"expected a remote of .*packages=True\) lets its packages"
    ):
        config_servers(ServerDocument(document), {})
    [entry] = config_servers(ServerDocument(document, packages=True), {}).values()
    assert isinstance(entry, ServerEntry)
    assert entry.target == ["npx", "-y", "x"]
