"""Configurations of servers as other programs write them: files, entries, and secrets in them."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft7Validator

from kit.live import expect_refusal, text_of
from kit.stdio_process import PATHS, SERVER
from mcpgen_runtime import (
    ConfigInput,
    ConnectionClosedError,
    Server,
    ServerDocument,
    ServerStartError,
    TransportError,
    connect,
    connect_sync,
)
from mcpgen_runtime.__main__ import main
from mcpgen_runtime.client.server_config import ServerEntry, config_servers, read_config
from package.client.test_group import git, two

pytestmark = pytest.mark.on_asyncio

BROKEN = [sys.executable, "-c", "raise SystemExit('no database')"]


async def test_a_file_names_processes_and_their_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPT", SERVER[1])
    path = tmp_path / "mcp.json"
    entry: dict[str, Any] = {"command": SERVER[0], "env": PATHS, "type": "stdio"}
    entry["args"] = ["${SCRIPT}", "${BACKEND:-asyncio}"]
    path.write_text(json.dumps({"mcpServers": {"one": entry, "two": entry}}))
    async with connect(path) as client:
        assert text_of(await client.call_tool("one_add", {"a": 1, "b": 2})) == "3"
        pids = {text_of(await client.call_tool(f"{name}_pids")) for name in client.servers}
        assert len(pids) == 2


ASKED: Any = {
    "inputs": [
        {"id": "token", "type": "promptString", "description": "Of the shop", "password": True},
        {"id": "place", "type": "pickString", "options": ["north", {"value": "south"}]},
        {"id": "level", "type": "promptString", "default": "2"},
        {"id": "unused", "type": "promptString"},
    ],
    "servers": {
        "x": {
            "command": "run",
            "args": ["${input:place}", "${input:level}"],
            "env": {"TOKEN": "Bearer ${input:token}", "AGAIN": "${input:token}"},
        },
        "off": {"command": "${input:unused}", "disabled": True},
    },
}


@pytest.mark.parametrize("how", ["function", "coroutine function", "mapping"])
def test_each_input_that_is_used_has_one_value_or_its_default(how: str) -> None:
    asked: list[ConfigInput] = []

    def ask(question: ConfigInput) -> str | None:
        asked.append(question)
        return {"token": "secret", "place": "south"}.get(question.id, question.default)

    async def ask_later(question: ConfigInput) -> str | None:
        return ask(question)

    values = {"token": "secret", "place": "south"}
    inputs = {"function": ask, "coroutine function": ask_later, "mapping": values}[how]
    env = {"TOKEN": "Bearer secret", "AGAIN": "secret"}
    x = ServerEntry(["run", "south", "2"], env=env)
    assert servers_of(ASKED, inputs) == {"x": x, "off": None}
    if how != "mapping":
        assert asked == [
            ConfigInput("place", "pickString", options=("north", "south")),
            ConfigInput("level", default="2"),
            ConfigInput("token", description="Of the shop", password=True),
        ]


def test_inputs_with_unknown_ids_or_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^inputs: 'place': expected one of north, south$"):
        servers_of(ASKED, {"token": "secret", "place": "east"})
    with pytest.raises(ValueError, match=r"^inputs: expected ids .* has \(place, .*got tokn"):
        servers_of(ASKED, {"tokn": "secret"})
    with pytest.raises(TypeError, match=r"^inputs: 'token': expected a text, got a int$"):
        servers_of(ASKED, {"token": 5, "place": "north"})
    with pytest.raises(ValueError, match="inputs: expected an object with id, got a number"):
        servers_of({**ASKED, "inputs": [5]})


async def test_the_values_of_inputs_reach_the_servers() -> None:
    shown = [sys.executable, "-c", "import os; raise SystemExit(os.environ['TOKEN'] + '!')"]
    told = {"command": shown[0], "args": shown[1:], "env": {"TOKEN": "${input:token}"}}
    servers = {"git": git(), "told": told}
    async with connect({"servers": servers}, inputs=lambda question: None) as client:
        assert list(client.servers) == ["git"]
        assert str(client.failures["told"]).startswith(
            "config: servers.told: env.TOKEN: ${input:token} has no value: "
        )
    with connect_sync({"servers": servers}, inputs=lambda question: "of-thread") as blocking:
        assert "of-thread!" in str(blocking.failures["told"])


def test_a_file_gives_variables_of_a_process_and_env_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    (tmp_path / ".env").write_text(
        "# of the shop\nexport A=1\nB='two words'\nC=${A}\nD=file\nGONE=1\n", encoding="utf-8"
    )
    path = folder / "mcp.json"
    expected = {"A": "1", "B": "two words", "C": "${A}", "D": "own"}
    for file in (".env", "${workspaceFolder}${/}.env", f"{tmp_path}/.env"):
        entry = {"command": "x", "envFile": file, "env": {"D": "own", "GONE": None}}
        path.write_text(json.dumps({"servers": {"x": entry}}))
        assert servers_of(path)["x"] == ServerEntry(["x"], env=expected)
    monkeypatch.setitem(sys.modules, "dotenv", None)
    error = servers_of(path)["x"]
    assert str(error) == (
        "mcp.json: servers.x: envFile needs the package 'python-dotenv': pip install python-dotenv"
    )


def servers_of(config: Any, inputs: Any = None) -> dict[str, Any]:
    """The entries of a configuration as they are read."""
    return anyio.run(read_config, config, inputs)


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        (
            {
                "command": "${HOME_OF}/run",
                "args": ["-v", "${LEVEL:-2}"],
                "env": {"A": "${env:TOKEN}", "N": 1, "Z": None},
            },
            ServerEntry(["/opt/run", "-v", "2"], env={"A": "secret", "N": "1"}),
        ),
        ({"command": "x", "cwd": "${HOME_OF}"}, ServerEntry(["x"], cwd="/opt")),
        (
            {"command": "x", "args": ["${TOKEN:-no}", "$TOKEN", "{a}"]},
            ServerEntry(["x", "secret", "$TOKEN", "{a}"]),
        ),
        (
            {
                "url": "https://${HOST:-a.example}/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"},
            },
            ServerEntry("https://a.example/mcp", headers={"Authorization": "Bearer secret"}),
        ),
        ({"type": "http", "url": "https://a"}, ServerEntry("https://a")),
        ({"type": "sse", "url": "https://a"}, ServerEntry("https://a", transport="sse")),
        (
            {"transport": "streamable-http", "url": "https://a"},
            ServerEntry("https://a", transport="streamable-http"),
        ),
        ({"command": "x", "disabled": True}, None),
        (
            {"command": "${userHome}${/}x${pathSeparator}${workspaceFolderBasename}"},
            ServerEntry([f"{Path.home()}{os.sep}x{os.sep}{Path.cwd().name}"]),
        ),
    ],
)
def test_entries_are_read_as_the_programs_of_the_field_do(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], read: Any
) -> None:
    for name, value in (("HOME_OF", "/opt"), ("TOKEN", "secret")):
        monkeypatch.setenv(name, value)
    servers = {"x": entry, "y": {"command": "y"}}
    assert servers_of({"mcpServers": servers})["x"] == read
    assert servers_of({"servers": servers})["x"] == read


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "expected either command or url"),
        ({"command": "x", "url": "https://a"}, "expected either command or url"),
        ({"command": 5}, "command: expected a text, got a number"),
        ({"command": "x", "args": "-v"}, "args: expected a list of texts, got a text"),
        ({"command": "x", "env": ["A=1"]}, "env: expected an object"),
        ({"url": "https://a", "headers": {"A": ["b"]}}, "headers.A: expected a text"),
        ({"url": "https://a", "type": "ws"}, "type: expected http or streamable-http or "),
        ({"command": "x", "type": "sse"}, "type: expected stdio, got 'sse'"),
        ({"command": "x", "transport": {}}, "type: expected stdio, got an object"),
        ({"url": "https://a", "auth": "oauth"}, "auth: expected an object such as OAuth"),
        ({"command": "${UNSET_ONE}"}, "command: the variable UNSET_ONE is not set"),
        ({"command": "${input:a}"}, r"command: \$\{input:a\} has no value: inputs=\{'a': "),
        ({"command": "${a:b}"}, r"command: expected \$\{NAME\}, .* got \$\{a:b\}"),
        ({"command": "x", "envFile": "no.env"}, "envFile: 'no.env': No such file"),
    ],
)
def test_a_wrong_entry_says_where_and_what_was_expected(entry: dict[str, Any], reason: str) -> None:
    error = servers_of({"mcpServers": {"x": entry}})["x"]
    assert isinstance(error, ValueError)
    with pytest.raises(ValueError, match=rf"config: mcpServers\.x: {reason}"):
        raise error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", r"mcp\.json: expected JSON"),
        ("[]", "expected a member mcpServers"),
        ('{"server": {}}', "expected a member mcpServers, got server"),
        ('{"mcpServers": {}}', "mcpServers: expected an object with servers"),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "every server is disabled"),
    ],
)
async def test_a_file_without_servers_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=reason):
        await expect_refusal(connect(path))


TRICKY = [r"http://a//b \" // no", "/* no */", ",]", ",}", "\\", "\u00e9/*"]
ENTRY = json.dumps({"command": "x", "args": TRICKY}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": ENTRY}}',
        '\ufeff{"mcpServers": {"a": ENTRY}}',
        '// of this project\r\n{"servers": /* , */ {"a": ENTRY}} // "',
        '{"servers": {"a": ENTRY,\n /* one, */ // two\n },\t}',
        '{"servers": {"a": ENTRY /***/ /* " */}, "inputs": [{"id": "i",},]} /**/',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16"])
def test_a_file_is_read_as_hosts_write_it(tmp_path: Path, text: str, encoding: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(text.replace("ENTRY", ENTRY).encode(encoding))
    [entry] = config_servers(path, {}).values()
    assert isinstance(entry, ServerEntry)
    assert entry.target == ["x", *TRICKY]


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": ENTRY},,}',
        '{"mcpServers": {,}}',
        '{"mcpServers": {"a": ENTRY}} /* never closed',
        '{"mcpServers": {"a": ENTRY}} /*/',
        '{"mcpServers": {"a": {"command": "x',
        '[ , "' * 100_000 + "[     " * 100_000,
    ],
    ids=range(6),
)
def test_other_texts_than_json_with_comments_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text.replace("ENTRY", ENTRY), "utf-8")
    with pytest.raises(ValueError, match=r"mcp\.json: expected JSON: "):
        config_servers(path, {})


def test_members_of_other_programs_are_named_in_a_warning(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    path = folder / "mcp.json"
    entry = {"command": "${workspaceFolder}/run", "sandboxEnabled": True, "description": "shown"}
    path.write_text(json.dumps({"servers": {"x": entry}}))
    with caplog.at_level(logging.WARNING):
        assert servers_of(path) == {"x": ServerEntry([f"{tmp_path}/run"])}
    assert "mcp.json: servers.x: not used: sandboxEnabled" in caplog.text


SCHEMA = Path(__file__).parents[3] / "schema/publishing/server.json"


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


def registered_entry(content: dict[str, Any], **inputs: str) -> ServerEntry:
    [(name, entry)] = config_servers(ServerDocument(content, packages=True), inputs).items()
    assert name == "weather"
    if isinstance(entry, Exception):
        raise entry
    assert entry is not None
    return entry


KEY = {"name": "API_KEY", "description": "Your key", "isRequired": True, "isSecret": True}
HEADER = {
    "type": "named",
    "name": "--header",
    "value": "X-Key: {API_KEY}, {unknown}",
    "variables": {"API_KEY": {"isRequired": True, "isSecret": True}},
}
PLANET = {
    "type": "named",
    "name": "--at",
    "value": "{planet}/{city}",
    "variables": {"planet": {"value": "${EARTH}"}, "city": {"default": "Oslo"}},
}
ARGUMENTS = [
    {"type": "positional", "value": "serve"},
    {"type": "named", "name": "--verbose"},
    {"type": "named", "name": "--unit", "default": "c", "choices": ["c", "k"]},
    {"type": "named", "name": "--city", "valueHint": "city"},
    HEADER,
]
VARIABLES = [{"name": "HOME_URL", "value": "${HOME}$"}, {"name": "OPTIONAL"}]
KEYED: dict[str, Any] = {"version": "1.0.2", "environmentVariables": [KEY]}
STARTED: list[tuple[dict[str, Any], str, dict[str, str]]] = [
    (package("npm", "@acme/a", **KEYED), "npx|-y|@acme/a@1.0.2", {"API_KEY": "k"}),
    (package("pypi", "a", version="1", runtimeHint="uvx"), "uvx|a@1", {}),
    (
        package("oci", "docker.io/a:1", environmentVariables=[KEY]),
        "docker|run|-i|--rm|-e|API_KEY|docker.io/a:1",
        {"API_KEY": "k"},
    ),
    (package("nuget", "Acme.A", version="1"), "dnx|--yes|Acme.A@1", {}),
    (
        package("pypi", "acme", packageArguments=ARGUMENTS, environmentVariables=VARIABLES),
        "uvx|acme|serve|--verbose|--unit|c|--header|X-Key: k, {unknown}",
        {"HOME_URL": "${HOME}$"},
    ),
    (package("npm", "acme", packageArguments=[PLANET]), "npx|-y|acme|--at|${EARTH}/Oslo", {}),
]


@pytest.mark.parametrize(("described", "command", "env"), STARTED, ids=lambda _: "")
def test_a_package_is_started_by_the_command_of_its_registry(
    described: dict[str, Any], command: str, env: dict[str, str]
) -> None:
    needs = "API_KEY" in json.dumps(described)
    entry = registered_entry(document(packages=[described]), **({"API_KEY": "k"} if needs else {}))
    assert entry == ServerEntry(command.split("|"), env=env)


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
    entry = registered_entry(content, region="eu", token="t")
    assert entry == ServerEntry(
        "https://eu.example.com/mcp",
        transport="streamable-http",
        headers={"Authorization": "Bearer t"},
    )
    assert registered_entry(content, region="us", **{"X-Trace": "1"}).headers == {
        "Authorization": "Bearer hidden",
        "X-Trace": "1",
    }
    with pytest.raises(ValueError, match="inputs: 'region': expected one of eu, us"):
        registered_entry(content, region="mars")


REFUSED: list[dict[str, Any]] = [
    package("mcpb", "https://example.com/weather.mcpb"),
    package("npm", "weather", transport={"type": "sse", "url": "http://localhost:1/"}),
    package("npm", "weather", runtimeHint="sh"),
    package("npm", "--call=evil"),
]


@pytest.mark.parametrize("described", REFUSED, ids=lambda each: each["identifier"])
def test_a_package_that_nothing_here_starts_is_refused(described: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected a remote, or a package of npm, pypi, oci"):
        registered_entry(document(packages=[described]))


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


SECRET = "hunter2-Zx81"
TOKEN = "ghp_0123456789abcdefghij"
URL = "http://127.0.0.1:1/"


def of(entry: Any) -> dict[str, Any]:
    """A configuration with one server."""
    return {"mcpServers": {"a": entry}}


CONFIGS: list[Any] = [
    SECRET,
    {"mcpServers": [{"command": "x", "env": {"TOKEN": SECRET}}]},
    {TOKEN: {}},
    of(SECRET),
    of({TOKEN: 1}),
    of({"command": {"x": SECRET}}),
    of({"command": "x", "args": "--token " + SECRET}),
    of({"command": "x", "args": [["--token", SECRET]]}),
    of({"command": "x", "type": TOKEN}),
    of({"command": "x", "env": ["TOKEN=" + SECRET]}),
    of({"command": "x", "env": {TOKEN: [1]}}),
    of({"command": "x", "env": {"A": "${" + TOKEN + "}"}}),
    of({"command": "x", "env": {"A": "${input:" + TOKEN + "}"}}),
    of({"command": "x", "env": {"A": "${token=" + SECRET + "}"}}),
    of({"command": "x", "envFile": "/no/" + TOKEN}),
    of({"command": "/nonexistent --token " + SECRET}),
    of({"command": "x\0", "args": ["--token", SECRET]}),
    of({"command": sys.executable, "cwd": "/no/" + TOKEN}),
    of({"command": sys.executable, "env": {"A": SECRET + "\0"}}),
    of({"command": sys.executable, "env": {"A=" + TOKEN: SECRET}}),
    of({"url": "http://" + SECRET + "@127.0.0.1:1/?key=" + SECRET}),
    of({"url": "https//" + TOKEN}),
    of({"url": URL, "auth": SECRET}),
    of({"url": URL, "headers": ["Authorization: " + SECRET]}),
    of({"url": URL, "headers": {"X-Key": SECRET + "\r\nX: y"}}),
    {**of({"command": "x"}), "inputs": [{"token": SECRET}]},
    {
        **of({"command": "${input:k}"}),
        "inputs": [{"id": "k", "password": True, "default": SECRET, "options": [SECRET + "2"]}],
    },
]


@pytest.mark.parametrize("config", CONFIGS)
async def test_no_error_of_a_configuration_shows_a_secret(
    config: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(config))
    targets: list[Any] = [path, config] if isinstance(config, dict) else [path]
    for target in targets:
        caplog.set_level(logging.DEBUG, "mcpgen_runtime")
        with pytest.raises(Exception, match=r".") as failed:
            await expect_refusal(connect(target))
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


def test_settings_of_one_server_are_refused_for_a_configuration_and_inputs_for_a_server() -> None:
    one: Any = git()
    path: Any = "mcp.json"
    several: Any = two()
    with pytest.raises(TypeError, match=r"^connect: headers: only for a URL"):
        connect(several, headers={"Authorization": "secret"})
    with pytest.raises(TypeError, match=r"a configuration as dict or pathlib\.Path"):
        connect_sync(path)
    with pytest.raises(TypeError, match=r"^connect: inputs: only for a configuration as dict"):
        connect(one, inputs={"token": "secret"})


def test_the_values_that_are_needed_are_shown_at_once_and_by_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="config: it needs") as caught:
        registered_entry(document(remotes=[REMOTE]))
    assert str(caught.value) == (
        "config: it needs region (required, one of eu, us): Where; token (required, secret); "
        "X-Trace (optional): Optional; inputs= of connect() gives them"
    )
    file = {"type": "positional", "valueHint": "{file}", "isRequired": True}
    choice = {"type": "positional", "valueHint": "mode", "choices": ["a", "b"], "default": "a"}
    pin = {"type": "named", "name": "--pin", "valueHint": "pin", "isSecret": True, "default": "0"}
    content = document(packages=[package("npm", "w", packageArguments=[file, file, choice, pin])])
    with pytest.raises(ValueError, match="it needs") as caught:
        registered_entry(content, _file_="x")
    assert str(caught.value).startswith(
        "config: it needs _file_ (required); _file__2 (required); "
        "mode (optional, one of a, b, default 'a'); pin (optional, secret); "
    )
    entry = registered_entry(content, _file_="x", _file__2="y", mode="b")
    assert entry.target == ["npx", "-y", "w", "x", "y", "b", "--pin", "0"]


async def test_a_server_that_fails_is_reported_and_fatal_only_if_none_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = {"command": BROKEN[0], "args": BROKEN[1:]}
    unset = {"url": "https://example.com/${NO_SUCH_VARIABLE}"}
    servers = {"git": git(), "broken": broken, "unset": unset}
    async with connect({"mcpServers": servers}) as client:
        assert list(client.servers) == ["git"]
        assert isinstance(client.failures["broken"], ServerStartError)
        assert "no database" in str(client.failures["broken"])
        assert str(client.failures["unset"]) == (
            "config: mcpServers.unset: url: the variable NO_SUCH_VARIABLE is not set, and "
            "${NO_SUCH_VARIABLE} has no default"
        )
        assert "server 'broken': " in caplog.text
        assert len(await client.list_tools()) == 2
        assert text_of(await client.call_tool("git_status")) == "clean: ."
        with pytest.raises(ConnectionClosedError, match=r"server 'broken' is not open: .*no datab"):
            await client.call_tool("broken_tool")
    with pytest.raises(TransportError, match=r"(?s)none of the servers .* a: .*no database.*; b: "):
        await expect_refusal(connect({"mcpServers": {"a": broken, "b": broken}}))
    with pytest.raises(ServerStartError, match="no database"):
        await expect_refusal(connect({"mcpServers": {"a": broken}}))
