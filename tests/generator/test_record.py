"""`mcpgen record`: a tap between a host and a server, and what its trace has of secrets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from generator.command_line import run
from generator.shop_sessions import (
    PATHS,
    REVISIONS,
    Guest,
    configuration,
    everything,
    record,
    served_over_http,
)
from mcpgen_runtime import connect

pytestmark = pytest.mark.timeout(300)
"""The first tap of a machine generates a package."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": PATHS}
SECRETS: dict[str, tuple[dict[str, Any], str]] = {
    "a password": ({"password": "hunter2-and-more"}, "hunter2-and-more"),
    "an API key": ({"apiKey": "k-0123456789"}, "k-0123456789"),
    "an access token": ({"access_token": "t-0123456789"}, "t-0123456789"),
    "a client secret": ({"client_secret": "s-0123456789"}, "s-0123456789"),
    "a session id": ({"sessionId": "sid-0123456789"}, "sid-0123456789"),
    "a cookie": ({"headers": {"Cookie": "sid=0123456789"}}, "0123456789"),
    "a bearer token": ({"text": "Bearer abcdefgh.12345678"}, "abcdefgh.12345678"),
    "basic credentials": ({"text": "Authorization: Basic QWRhOnNlc2FtMQ=="}, "QWRhOnNlc2FtMQ"),
    "a JSON Web Token": ({"text": "eyJhbGciOi.eyJzdWIiOiJB.c2lnbmF0dXJl"}, "eyJzdWIiOiJB"),
    "a password in a URL": ({"text": "postgres://ada:sesame@db/x"}, "sesame"),
    "a token of a service": ({"text": f"ghp_{'a1' * 18}"}, "a1a1a1a1"),
    "a private key": (
        {"text": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----"},
        "MIIEvQIBADAN",
    ),
    "an argument of a command": ({"args": ["--token", "t-9876543210"]}, "t-9876543210"),
    "what a schema calls a secret": ({"pin_code": "4711-4711"}, "4711-4711"),
}
SECRET_SERVER = """
from typing import Annotated, Any
from msgspec import Meta
from mcpgen_runtime import Server
server = Server("vault")
PIN = Meta(extra_json_schema={"format": "password"})
@server.tool()
def keep(values: dict[str, Any], pin_code: Annotated[str, PIN] = "") -> str:
    return "kept"
if __name__ == "__main__":
    server.run()
"""


CALL = "tools/call"


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The package of the tap, which the first tap of a machine generates."""
    folder = tmp_path_factory.mktemp("package")
    run("record", "no-such-program", "-o", "trace.jsonl", cwd=folder)


def tap(target: str, trace: Path) -> list[str]:
    """The command of a host that starts the tap in place of a server."""
    return [sys.executable, "-m", "mcpgen", "record", target, "-o", str(trace)]


@pytest.mark.parametrize("revision", REVISIONS[::2])
def test_a_session_passes_unchanged_and_is_replayed(tmp_path: Path, revision: str) -> None:
    target = configuration(tmp_path)

    async def session() -> None:
        command = tap(target, tmp_path / "tap.jsonl")
        more: dict[str, Any] = {"env": ENVIRONMENT, "cwd": str(tmp_path)}
        async with connect(command, revision=revision, handlers=Guest(), **more) as client:
            await everything(client)

    anyio.run(session)
    own = record(tmp_path / "own.jsonl", revision)
    recorded, tapped = (  # without the order of what one side does at once
        sorted((each["direction"], each["message"].get("method", "")) for each in records(path))
        for path in (own, tmp_path / "tap.jsonl")
    )
    assert recorded == tapped
    done = run("replay", "tap.jsonl", "--against", target, cwd=tmp_path)
    assert done.code == 0, done.out


def records(trace: Path) -> list[dict[str, Any]]:
    """The records of a trace that have a message."""
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    return [each for each in lines if "message" in each]


@pytest.mark.parametrize("revision", REVISIONS[2::2])
def test_a_host_over_stdio_reaches_a_server_over_http(tmp_path: Path, revision: str) -> None:
    async def session(url: str) -> str:
        command = tap(url, tmp_path / "tap.jsonl")
        async with connect(command, revision=revision, env=ENVIRONMENT) as client:
            text: str = (await client.call_tool("greet", {"name": "Ada"})).content[0].text
            return text

    with served_over_http() as url:
        assert anyio.run(session, url) == "Hello Ada"
        done = run("replay", "tap.jsonl", "--against", url, cwd=tmp_path)
    assert done.code == 0, done.out


@pytest.fixture(scope="module")
def secret_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of calls with one secret each, in the order of `SECRETS`."""
    folder = tmp_path_factory.mktemp("vault")
    (folder / "vault.py").write_text(SECRET_SERVER)
    command = tap(f"{sys.executable} vault.py", folder / "tap.jsonl")
    more: dict[str, Any] = {
        "env": ENVIRONMENT,
        "cwd": str(folder),
    }

    async def session() -> None:
        async with connect(command, **more) as client:
            await client.list_tools()
            for values, _ in SECRETS.values():
                pin = values.get("pin_code", "")
                await client.call_tool(
                    "keep", {"values": {**values, "pin_code": ""}, "pin_code": pin}
                )

    anyio.run(session)
    return folder / "tap.jsonl"


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_masked_and_its_record_says_so(secret_trace: Path, kind: str) -> None:
    calls = [each for each in records(secret_trace) if each["message"].get("method") == CALL]
    call = calls[[*SECRETS].index(kind)]
    assert SECRETS[kind][1] not in secret_trace.read_text()
    assert call["masked"] is True


def test_a_record_without_secrets_does_not_say_masked(secret_trace: Path) -> None:
    received = [each for each in records(secret_trace) if each["direction"] == "received"]
    assert {each.get("masked") for each in received} == {None}


def test_a_server_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    done = run("record", "no-such-program", "-o", "trace.jsonl", cwd=tmp_path)
    assert done.code == 2
    assert "expected a server that starts" in done.err
