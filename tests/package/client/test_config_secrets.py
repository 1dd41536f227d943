"""Secrets of configurations, wherever a malformed one has them: no error shows them."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_protocol import Server, connect
from mcp_protocol.__main__ import main

SECRET = "hunter2-Zx81"
TOKEN = "ghp_0123456789abcdefghij"
URL = "http://127.0.0.1:1/"


def of(entry: Any) -> dict[str, Any]:
    """A configuration with one server."""
    return {"mcpServers": {"a": entry}}


CONFIGS: list[Any] = [
    SECRET,
    [SECRET],
    {"mcpServers": [{"command": "x", "env": {"TOKEN": SECRET}}]},
    {"mcpServers": SECRET},
    {TOKEN: {}},
    of(SECRET),
    of({TOKEN: 1}),
    of({"command": [SECRET]}),
    of({"command": {"x": SECRET}}),
    of({"command": "x", "args": "--token " + SECRET}),
    of({"command": "x", "args": {"--token": SECRET}}),
    of({"command": "x", "args": [["--token", SECRET]]}),
    of({"command": "x", "args": [{"--token": SECRET}]}),
    of({"command": "x", "type": {"token": SECRET}}),
    of({"command": "x", "type": TOKEN}),
    of({"command": "x", "env": ["TOKEN=" + SECRET]}),
    of({"command": "x", "env": "TOKEN=" + SECRET}),
    of({"command": "x", "env": {"TOKEN": [SECRET]}}),
    of({"command": "x", "env": {TOKEN: [1]}}),
    of({"command": "x", "env": {"A": "${" + TOKEN + "}"}}),
    of({"command": "x", "env": {"A": "${input:" + TOKEN + "}"}}),
    of({"command": "x", "env": {"A": "${token=" + SECRET + "}"}}),
    of({"command": "x", "envFile": {"A": SECRET}}),
    of({"command": "x", "envFile": "/no/" + TOKEN}),
    of({"command": "x", "cwd": [SECRET]}),
    of({"command": "/nonexistent --token " + SECRET}),
    of({"command": "x\0", "args": ["--token", SECRET]}),
    of({"command": sys.executable, "cwd": "/no/" + TOKEN}),
    of({"command": sys.executable, "env": {"A": SECRET + "\0"}}),
    of({"command": sys.executable, "env": {"A=" + TOKEN: SECRET}}),
    of({"url": [SECRET]}),
    of({"url": "http://" + SECRET + "@127.0.0.1:1/?key=" + SECRET}),
    of({"url": "http://u:" + SECRET + "@127.0.0.1:1/", "command": "x"}),
    of({"url": "https//" + TOKEN}),
    of({"url": URL, "auth": SECRET}),
    of({"url": URL, "headers": "Authorization: Bearer " + SECRET}),
    of({"url": URL, "headers": ["Authorization: " + SECRET]}),
    of({"url": URL, "headers": {"Authorization": ["Bearer " + SECRET]}}),
    of({"url": URL, "headers": {"X-Key": SECRET + "\r\nX: y"}}),
    {**of({"command": "x"}), "inputs": SECRET},
    {**of({"command": "x"}), "inputs": [{"token": SECRET}]},
    {
        **of({"command": "${input:k}"}),
        "inputs": [{"id": "k", "password": True, "default": SECRET, "options": [SECRET + "2"]}],
    },
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("config", CONFIGS)
async def test_no_error_of_a_configuration_shows_a_secret(
    config: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(config))
    targets: list[Any] = [path, config] if isinstance(config, dict) else [path]
    for target in targets:
        caplog.set_level(logging.DEBUG, "mcp_protocol")
        with pytest.raises(Exception, match=r".") as failed:
            async with connect(target):
                pytest.fail("there is no server")
        for text in (str(failed.value), str(failed.value.__cause__), caplog.text):
            assert SECRET not in text
            assert TOKEN not in text
            assert len(text) < 3000


@pytest.mark.parametrize(
    "argv",
    [
        ["list", URL, "--header", "Authorization Bearer " + SECRET],
        ["list", "npx 'server --token " + SECRET],
    ],
)
def test_no_error_of_the_command_line_shows_a_secret(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    shown = capsys.readouterr().err
    assert "expected" in shown
    assert SECRET not in shown


def test_a_proxy_does_not_show_the_values_of_inputs() -> None:
    with pytest.raises(TypeError, match="expected values by the ids of the inputs, got a list"):
        Server.proxy({"mcpServers": {"a": {"command": "x"}}}, inputs=[SECRET])
