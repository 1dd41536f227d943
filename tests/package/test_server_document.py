"""Documents of others: whatever they have, `connect` starts nothing and reads nothing here."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcpgen_runtime import (
    RemoteProtocolError,
    Server,
    ServerDocument,
    connect,
    connect_sync,
    read_server_card,
)
from mcpgen_runtime.client.server_config import ServerEntry, config_servers
from package.test_server_card import CARD, URL, card_client

pytestmark = pytest.mark.on_asyncio

CLOSED = "http://127.0.0.1:1/mcp"
SECRET = "environment-s3cret"
REMOTE = {"type": "streamable-http", "url": CLOSED}

Reader = Callable[[Mapping[str, Any]], Awaitable[ServerDocument]]


async def card(members: Mapping[str, Any]) -> ServerDocument:
    async with card_client({**CARD, "remotes": [REMOTE], **members}) as http:
        return await read_server_card(URL, http_client=http)


async def registered(members: Mapping[str, Any]) -> ServerDocument:
    return ServerDocument({"name": "a/b", "remotes": [REMOTE], **members})


async def bare(members: Mapping[str, Any]) -> ServerDocument:
    return ServerDocument(members)


READERS: list[Reader] = [card, registered, bare]


def forms(process: dict[str, Any], fields: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Members that a document can have, by a name: all forms of configurations, and their parts.

    Args:
        process: An entry of a process.
        fields: Header fields.
    """
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
    async with connect(target):
        pass


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
@pytest.mark.parametrize("read", READERS)
async def test_a_document_of_others_starts_no_process(
    read: Reader, open_target: Callable[[Any], Awaitable[None]], name: str, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    process = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each has its own
        await open_target(await read(forms(process, {})[name]))
    assert not started.exists(), caught.value


VARIABLES = ["${env:SECRET}", "${SECRET}", "${SECRET:-x}", "${$}{SECRET}", "$SECRET", "{SECRET}"]


@pytest.mark.parametrize("name", forms({}, {}))
@pytest.mark.parametrize("read", READERS)
async def test_a_document_of_others_reads_nothing_here(
    read: Reader, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        servers = config_servers(await read(forms(process, fields)[name]), {})
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
