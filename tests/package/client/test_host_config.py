"""Entries for servers in the configuration of programs that use them."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.client.host_config import HOSTS, default_name, entry

URL = "https://example.com/mcp"
FIELDS = {"X-A": "1", "X-B": "2"}
BRIDGED = {"command": "npx", "args": ["-y", "mcp-remote", URL]}
OF_URLS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("claude", {}, {"mcpServers": {"s": BRIDGED}}),
    (
        "claude",
        FIELDS,
        {
            "mcpServers": {
                "s": {
                    "command": "npx",
                    "args": [*BRIDGED["args"], "--header", "X-A: 1", "--header", "X-B: 2"],
                }
            }
        },
    ),
    ("claude-code", {}, {"mcpServers": {"s": {"type": "http", "url": URL}}}),
    ("cursor", FIELDS, {"mcpServers": {"s": {"url": URL, "headers": FIELDS}}}),
    ("vscode", FIELDS, {"servers": {"s": {"type": "http", "url": URL, "headers": FIELDS}}}),
]


@pytest.mark.parametrize(("host", "headers", "expected"), OF_URLS)
def test_a_url_is_an_entry_or_goes_through_a_bridge(
    host: str, headers: dict[str, str], expected: dict[str, Any]
) -> None:
    assert entry(HOSTS[host], "s", URL, {}, headers) == expected


@pytest.mark.parametrize("env", [{}, {"KEY": "${KEY}"}])
@pytest.mark.parametrize(("host", "kind"), [("claude", {}), ("vscode", {"type": "stdio"})])
def test_a_command_has_its_variables_if_any(
    host: str, kind: dict[str, str], env: dict[str, str]
) -> None:
    written = entry(HOSTS[host], "s", ["python", "-m", "notes"], env, {})
    started = {
        **kind,
        "command": "python",
        "args": ["-m", "notes"],
        **({"env": env} if env else {}),
    }
    assert written == {HOSTS[host].member: {"s": started}}


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (URL, "example.com"),
        ("http://", "server"),
        (["python", "/srv/notes.py"], "notes"),
        (["python", "C:\\srv\\notes.py"], "notes"),
        (["python", "-m", "acme.notes"], "notes"),
        (["serve", "acme.notes:server"], "notes"),
        (["./"], "server"),
    ],
)
def test_a_server_is_named_after_its_host_or_module(target: Any, name: str) -> None:
    assert default_name(target) == name
