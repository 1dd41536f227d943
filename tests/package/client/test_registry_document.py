"""Documents of the registry (`server.json`) as targets of `connect`: what is started and asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft7Validator

from mcp_protocol import ConfigInput, connect
from mcp_protocol.client.server_config import ServerEntry, config_servers, read_config
from package.live import text_of
from package.stdio_process import PATHS, SERVER

SCHEMA = Path(__file__).parents[3] / "schema/publishing/server.json"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def document(**members: Any) -> dict[str, Any]:
    """A document that the official schema accepts."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    whole = {
        "$schema": schema["$id"],
        "name": "io.github.acme/weather",
        "description": "Weather",
        "version": "1.0.2",
        **members,
    }
    Draft7Validator(schema).validate(whole)
    return whole


def package(kind: str, identifier: str, **members: Any) -> dict[str, Any]:
    return {
        "registryType": kind,
        "identifier": identifier,
        "transport": {"type": "stdio"},
        **members,
    }


def entry_of(content: dict[str, Any], **inputs: str) -> ServerEntry:
    [(name, entry)] = config_servers(content, inputs).items()
    assert name == "weather"
    if isinstance(entry, Exception):
        raise entry
    assert entry is not None
    return entry


KEY = {"name": "API_KEY", "description": "Your key", "isRequired": True, "isSecret": True}
STARTED: list[tuple[dict[str, Any], list[str], dict[str, str]]] = [
    (
        package("npm", "@acme/weather", version="1.0.2", environmentVariables=[KEY]),
        ["npx", "-y", "@acme/weather@1.0.2"],
        {"API_KEY": "k"},
    ),
    (
        package("pypi", "acme-weather", version="1.0.2", runtimeHint="uvx"),
        ["uvx", "acme-weather@1.0.2"],
        {},
    ),
    (
        package("oci", "docker.io/acme/weather:1.0.2", environmentVariables=[KEY]),
        ["docker", "run", "-i", "--rm", "-e", "API_KEY", "docker.io/acme/weather:1.0.2"],
        {"API_KEY": "k"},
    ),
    (package("nuget", "Acme.Weather", version="1.0.2"), ["dnx", "--yes", "Acme.Weather@1.0.2"], {}),
    (
        package(
            "pypi",
            "acme",
            packageArguments=[
                {"type": "positional", "value": "serve"},
                {"type": "named", "name": "--verbose"},
                {"type": "named", "name": "--unit", "default": "c", "choices": ["c", "k"]},
                {"type": "named", "name": "--city", "valueHint": "city"},
                {
                    "type": "named",
                    "name": "--header",
                    "value": "X-Key: {API_KEY}, {unknown}",
                    "variables": {"API_KEY": {"isRequired": True, "isSecret": True}},
                },
            ],
            environmentVariables=[{"name": "HOME_URL", "value": "${HOME}$"}, {"name": "OPTIONAL"}],
        ),
        [
            *("uvx", "acme", "serve", "--verbose", "--unit", "c"),
            *("--header", "X-Key: k, {unknown}"),
        ],
        {"HOME_URL": "${HOME}$"},
    ),
]


@pytest.mark.parametrize(("described", "command", "env"), STARTED, ids=lambda _: "")
def test_a_package_is_started_by_the_command_of_its_registry(
    described: dict[str, Any], command: list[str], env: dict[str, str]
) -> None:
    needs = "API_KEY" in json.dumps(described)
    entry = entry_of(document(packages=[described]), **({"API_KEY": "k"} if needs else {}))
    assert entry == ServerEntry(command, env=env)


REMOTE = {
    "type": "streamable-http",
    "url": "https://{region}.example.com/mcp",
    "variables": {"region": {"description": "Where", "choices": ["eu", "us"]}},
    "headers": [
        {
            "name": "Authorization",
            "value": "Bearer {token}",
            "variables": {"token": {"isRequired": True, "isSecret": True, "default": "hidden"}},
        },
        {"name": "X-Trace", "description": "Optional"},
    ],
}


def test_a_remote_is_taken_before_a_package() -> None:
    content = document(remotes=[REMOTE], packages=[package("npm", "weather")])
    entry = entry_of(content, region="eu", token="t")
    assert entry == ServerEntry(
        "https://eu.example.com/mcp",
        transport="streamable-http",
        headers={"Authorization": "Bearer t"},
    )
    assert entry_of(content, region="us", **{"X-Trace": "1"}).headers == {
        "Authorization": "Bearer hidden",
        "X-Trace": "1",
    }
    with pytest.raises(ValueError, match="inputs: 'region': expected one of eu, us"):
        entry_of(content, region="mars")


def test_the_values_that_are_needed_are_shown_at_once() -> None:
    with pytest.raises(ValueError, match="config: it needs") as caught:
        entry_of(document(remotes=[REMOTE]))
    assert str(caught.value) == (
        "config: it needs region (required, one of eu, us): Where; token (required, secret); "
        "X-Trace (optional): Optional; inputs= of connect() gives them"
    )


def test_a_function_is_asked_for_the_values() -> None:
    asked: list[ConfigInput] = []

    def ask(declared: ConfigInput) -> str | None:
        asked.append(declared)
        return {"region": "eu", "token": "t"}.get(declared.id)

    [entry] = anyio.run(read_config, document(remotes=[REMOTE]), ask).values()
    assert isinstance(entry, ServerEntry)
    assert entry.headers == {"Authorization": "Bearer t"}
    assert [(each.id, each.password) for each in asked] == [
        *(("region", False), ("token", True), ("X-Trace", False))
    ]


REFUSED: list[dict[str, Any]] = [
    package("mcpb", "https://example.com/weather.mcpb"),
    package("npm", "weather", transport={"type": "sse", "url": "http://localhost:1/"}),
    package("npm", "weather", runtimeHint="sh"),
    package("npm", "--call=evil"),
]


@pytest.mark.parametrize("described", REFUSED, ids=lambda each: each["identifier"])
def test_a_package_that_nothing_here_starts_is_refused(described: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected a remote, or a package of npm, pypi, oci"):
        config_servers(document(packages=[described]), {})


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for uvx is a script of sh")
async def test_a_file_of_the_registry_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = tmp_path / "uvx"
    runner.write_text(f'#!/bin/sh\nexec "{SERVER[0]}" "{SERVER[1]}" asyncio\n')
    runner.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    path = tmp_path / "server.json"
    path_of_package = {"name": "PYTHONPATH", "value": PATHS["PYTHONPATH"]}
    described = package("pypi", "acme-weather", environmentVariables=[path_of_package])
    path.write_text(json.dumps(document(packages=[described])))
    async with connect(path) as client:
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
