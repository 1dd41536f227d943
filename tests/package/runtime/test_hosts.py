"""Entries in the configuration of hosts: what is printed, and what is written into their files."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.runtime.config_command import add_command
from mcpgen_runtime.runtime.host_files import write_entry
from mcpgen_runtime.runtime.hosts import HOSTS, default_name

URL = "https://example.com/mcp"
READ: Mapping[str, Callable[[str], Any]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}
STARTED = {"command": "prog", "args": ["a"]}
GOOSE = {"enabled": True, "timeout": 300, "name": "a b"}
VALUES = {"KEY": "k", "B": "2"}
ENTRIES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "claude": (
        {**STARTED, "env": VALUES},
        {"command": "npx", "args": ["-y", "mcp-remote", URL, "--header", "X-A: 1"]},
    ),
    "claude-code": (
        {"type": "stdio", **STARTED, "env": {"KEY": "${KEY}", "B": "2"}},
        {"type": "http", "url": URL, "headers": {"X-A": "1"}},
    ),
    "codex": (
        {**STARTED, "env": {"B": "2"}, "env_vars": ["KEY"]},
        {"url": URL, "http_headers": {"X-A": "1"}},
    ),
    "cursor": (
        {"type": "stdio", **STARTED, "env": {"KEY": "${env:KEY}", "B": "2"}},
        {"url": URL, "headers": {"X-A": "1"}},
    ),
    "gemini": (
        {**STARTED, "env": {"KEY": "${KEY}", "B": "2"}},
        {"httpUrl": URL, "headers": {"X-A": "1"}},
    ),
    "goose": (
        {
            **GOOSE,
            "type": "stdio",
            "cmd": "prog",
            "args": ["a"],
            "envs": {"B": "2"},
            "env_keys": ["KEY"],
        },
        {**GOOSE, "type": "streamable_http", "uri": URL, "headers": {"X-A": "1"}},
    ),
    "vscode": (
        {"type": "stdio", **STARTED, "env": {"KEY": "${env:KEY}", "B": "2"}},
        {"type": "http", "url": URL, "headers": {"X-A": "1"}},
    ),
    "windsurf": (
        {**STARTED, "env": {"KEY": "${env:KEY}", "B": "2"}},
        {"serverUrl": URL, "headers": {"X-A": "1"}},
    ),
    "zed": ({**STARTED, "env": VALUES}, {"url": URL, "headers": {"X-A": "1"}}),
}
"""The entry of each host for a command with variables, and for a URL with a header field."""


Config: TypeAlias = Callable[..., str]


@pytest.fixture
def config(capsys: pytest.CaptureFixture[str]) -> Config:
    """A function that runs the command in this process, and gives what it prints."""

    def run(*words: object, code: int = 0) -> str:
        parser = argparse.ArgumentParser()
        add_command(parser.add_subparsers().add_parser, package="acme")
        chosen = parser.parse_args(["config", *map(str, words)])
        assert chosen.main(chosen) == code
        printed = capsys.readouterr()
        return printed.out if code == 0 else printed.out + printed.err

    return run


@pytest.mark.parametrize("host", HOSTS)
def test_the_entry_is_printed_and_written_as_the_host_has_it(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Config
) -> None:
    monkeypatch.setenv("KEY", "k")
    of_command = ("prog a", "--env", "KEY", "--env", "B=2")
    of_url = (URL, "--header", "X-A: 1")
    read, member = READ[HOSTS[host].form], HOSTS[host].member
    for words, expected in zip((of_command, of_url), ENTRIES[host], strict=True):
        common = (*words, "--client", host, "--name", "a b")
        assert read(config(*common)) == {member: {"a b": expected}}
        file = tmp_path / words[0].partition(" ")[0].partition(":")[0] / "settings"
        assert config(*common, "--write", "--file", file) == f"{file} has a b\n"
        assert read(file.read_text("utf-8")) == {member: {"a b": expected}}


@pytest.mark.parametrize("host", HOSTS)
def test_the_usual_file_is_in_the_project_or_the_home(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Config
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))
    said = config("prog", "--client", host, "--write")
    [file] = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.samefile(tmp_path / said.removesuffix(" has prog\n"))


JSONC = """\
// settings
{
  "theme": "dark", // "inline" }
  /* { */
  "servers": {
    // mine
    "other": {
      "url": "https://h/a//b"
    }, // last
  },
  "after": [1, 2,],
}
"""
ADDED = """\
    }, // last
    "new": {
      "type": "stdio",
      "command": "prog",
      "args": []
    },
  },
"""
REPLACED = """\
    "other": {
      "type": "stdio",
      "command": "prog",
      "args": []
    }, // last
"""


MEMBER = """\
  "new": {
    "type": "stdio",
    "command": "prog",
    "args": []
  }"""
MEMBER_IN_FOUR = "  " + MEMBER.replace("\n", "\n  ")
MEMBER_IN_TABS = "\t" + MEMBER.replace("  ", "\t").replace("\n", "\n\t")
EDITS = {
    "a member is added": ("new", JSONC, JSONC.replace("    }, // last\n  },\n", ADDED)),
    "a member is replaced": (
        "other",
        JSONC,
        JSONC.replace('    "other": {\n      "url": "https://h/a//b"\n    }, // last\n', REPLACED),
    ),
    "without trailing commas": (
        "new",
        '{\n\t"servers": {\n\t\t"a": {} // x\n\t}\n}',
        '{\n\t"servers": {\n\t\t"a": {}, // x\n' + MEMBER_IN_TABS + "\n\t}\n}",
    ),
    "an empty object": ("new", '{"servers": {}}', '{"servers": {\n' + MEMBER + "\n}}"),
    "an empty line first": (
        "new",
        '\n  {"servers": {}}',
        '\n  {"servers": {\n' + MEMBER_IN_FOUR + "\n  }}",
    ),
    "a line with more after an empty line": (
        "new",
        '\n  {"servers": {"a": 1}}',
        '\n  {"servers": {"a": 1,\n' + MEMBER + "\n}}",
    ),
    "a value after an empty line": (
        "new",
        '\n  {"servers": {"new": 1}}',
        '\n  {"servers": {' + MEMBER.lstrip() + "}}",
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_json_is_edited_in_place(case: str, tmp_path: Path, config: Config) -> None:
    name, before, after = EDITS[case]
    file = tmp_path / "mcp.json"
    file.write_text(before)
    config("prog", "--client", "vscode", "--name", name, "--write", "--file", file)
    assert file.read_text() == after
    assert (tmp_path / "mcp.json.bak").read_text() == before
    for _ in range(2):
        (tmp_path / "mcp.json.bak").unlink(missing_ok=True)
        config("prog", "--client", "vscode", "--name", name, "--write", "--file", file)
        assert (file.read_text(), [*tmp_path.iterdir()]) == (after, [file])


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), VALUE, max_size=4),
    st.dictionaries(st.text(), VALUE, max_size=4),
    st.sampled_from([None, 1, 4, "\t"]),
    st.text(),
)
def test_any_document_has_one_entry_more(
    tmp_path_factory: pytest.TempPathFactory,
    others: dict[str, Any],
    servers: dict[str, Any],
    indent: int | str | None,
    name: str,
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.json"
    before = {"servers": servers, **others}
    before["servers"] = servers
    file.write_text(json.dumps(before, indent=indent, ensure_ascii=False), "utf-8", newline="")
    write_entry(HOSTS["vscode"], file, name, STARTED)
    after = json.loads(file.read_text("utf-8"))
    assert after == {**before, "servers": {**servers, name: STARTED}}
    assert [*after] == [*before]
    compact = json.dumps(after)
    file.write_text(compact)
    assert (write_entry(HOSTS["vscode"], file, name, STARTED), file.read_text()) == (None, compact)


TABLE = '[mcp_servers.prog]\ncommand = "prog"\nargs = []\n'
MAPPING = """\
  prog:
    enabled: true
    type: stdio
    timeout: 300
    name: prog
    cmd: prog
    args: []
"""
LONG_LINE = f"L: {'word ' * 40}end\n"
KEPT = {
    "TOML": (
        "codex",
        'model = "m" # mine\n\n# servers\n[mcp_servers.other]\nurl = "x" # y\n\n',
        TABLE,
        "[tui]\na = 1\n",
    ),
    "TOML without servers": ("codex", "a = 1\n\n", TABLE, ""),
    "YAML": (
        "goose",
        "A: 'b' # mine\n# servers\nextensions:\n  other:\n    enabled: true # y\n",
        MAPPING,
        f"Z: 1\n{LONG_LINE}",
    ),
    "YAML with a member without a value": ("goose", "extensions:\n", MAPPING, ""),
}
"""By case the host, what is before the entry, the entry, and what is after it."""


@pytest.mark.parametrize(("host", "before", "added", "after"), KEPT.values(), ids=KEPT)
def test_comments_and_order_of_toml_and_yaml_are_kept(
    host: str, before: str, added: str, after: str, tmp_path: Path, config: Config
) -> None:
    file = tmp_path / "settings"
    file.write_text(before + after)
    for _ in range(2):
        config("prog", "--client", host, "--write", "--file", file)
    assert file.read_text() == before + added + after
    assert (tmp_path / "settings.bak").read_text() == before + after


def test_a_file_keeps_its_mode_its_link_and_its_newlines(tmp_path: Path, config: Config) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_bytes(b'\xef\xbb\xbf{\r\n  "a": 1\r\n}\r\n')
    real.chmod(0o640)
    link.symlink_to(real)
    config("prog", "--client", "cursor", "--write", "--file", link)
    content = real.read_bytes()
    assert (content.count(b"\r\n"), content.count(b"\n")) == (content.count(b"\n"),) * 2
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    assert json.loads(content)["a"] == 1


NO_YAML = (
    "while parsing a flow node expected the node content, but found '<stream end>' in "
    '"<unicode string>", line 1, column 5: a: [ ^ (line: 1)'
)
NO_JSON = "expected JSON, perhaps with comments, got something else"
WRONG = {
    "not JSON": ("vscode", '{"servers": }', NO_JSON),
    "a comment that does not end": ("vscode", "{ /* }", NO_JSON),
    "arrays without end": ("vscode", "[" * 100_000, NO_JSON),
    "servers that are a list": ("vscode", '{"servers": []}', "servers: expected an object, got ["),
    "servers that are a text": (
        "vscode",
        f'{{"servers": "{"1234567890" * 3}"}}',
        'servers: expected an object, got "1234567890123456789',
    ),
    "a list": ("vscode", "[]", "its root: expected an object, got ["),
    "TOML without a table": (
        "codex",
        "mcp_servers = 1",
        "mcp_servers: expected an object, got another value",
    ),
    "a list in YAML": ("goose", "- 1", "its root: expected an object, got another value"),
    "not YAML": ("goose", "a: [", f"expected YAML: {NO_YAML}"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_not_understood_is_left_alone(
    case: str, tmp_path: Path, config: Config
) -> None:
    host, content, error = WRONG[case]
    file = tmp_path / "settings"
    file.write_text(content)
    said = config("prog", "--client", host, "--write", "--file", file, code=2)
    assert said == f"error: {file}: {error}\n"
    assert ([*tmp_path.iterdir()], file.read_text()) == ([file], content)


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path, config: Config) -> None:
    file, backup = tmp_path / "mcp.json", tmp_path / "mcp.json.bak"
    file.write_text("{}")
    backup.mkdir()
    assert f"{backup}'" in config("prog", "--client", "cursor", "--write", "--file", file, code=2)
    assert ({*tmp_path.iterdir()}, file.read_text()) == ({file, backup}, "{}")


COMMANDS = {
    (
        "claude-code",
        "prog a --env B=2",
    ): "claude mcp add --env B=2 --transport stdio prog -- prog a",
    ("claude-code", f"{URL} --header 'A: b'"): (
        f"claude mcp add --header 'A: b' --transport http example.com {URL}"
    ),
    ("codex", "prog a --env B=2"): "codex mcp add prog --env B=2 -- prog a",
    ("codex", URL): f"codex mcp add example.com --url {URL}",
    ("vscode", URL): (
        'code --add-mcp \'{"name":"example.com","type":"http","url":"https://example.com/mcp"}\''
    ),
}


@pytest.mark.parametrize(("host", "words"), COMMANDS)
def test_the_command_of_the_host_adds_the_server(host: str, words: str, config: Config) -> None:
    target, *options = shlex.split(words.replace("prog a", "'prog a'"))
    name = "prog" if target == "prog a" else default_name(target)
    options += ["--client", host, "--name", name, "--command"]
    assert config(target, *options) == f"{COMMANDS[host, words]}\n"


def test_links_have_the_entry(config: Config) -> None:
    words = ("prog \u00fc", "--name", "a b", "--link", "--client")
    server = {"type": "stdio", "command": "prog", "args": ["\u00fc"]}
    link = urlsplit(config(*words, "cursor").strip())
    assert (link.scheme, link.netloc, link.path) == (
        *("cursor", "anysphere.cursor-deeplink", "/mcp/install"),
    )
    query = parse_qs(link.query)
    assert query["name"] == ["a b"]
    assert json.loads(base64.b64decode(query["config"][0])) == server
    place, _, query_text = config(*words, "vscode").strip().partition("?")
    assert place == "vscode:mcp/install"
    assert json.loads(unquote(query_text)) == {"name": "a b", **server}


def test_an_entry_of_this_environment_works_from_anywhere(
    monkeypatch: pytest.MonkeyPatch, config: Config
) -> None:
    monkeypatch.setenv("PYTHONPATH", "own")
    [server] = json.loads(config("notes:server", "--client", "claude"))["mcpServers"].values()
    assert server == {
        "command": sys.executable,
        "args": ["-m", "acme", "serve", "notes:server"],
        "env": {"PYTHONPATH": f"{Path.cwd()}{os.pathsep}own"},
    }
    # gemini refuses to set PYTHONPATH
    [server] = json.loads(config("notes:server", "--client", "gemini"))["mcpServers"].values()
    assert server == {
        "command": sys.executable,
        "args": ["-m", "acme", "serve", "notes:server"],
        "cwd": f"{Path.cwd()}",
    }
    [server] = json.loads(config("pytest -x", "--client", "claude"))["mcpServers"].values()
    assert (Path(server["command"]).is_absolute(), server["args"]) == (True, ["-x"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([URL, "--env", "A=b"], "--env: expected a command or MODULE:SERVER, got a URL"),
        (["prog", "--header", "A: b"], "--header: expected a URL, got a command or MODULE:SERVER"),
        (["a.json:b"], "expected a URL, a command line or MODULE:SERVER, got a configuration"),
        (["prog", "--link"], "--link: expected one of cursor, vscode, got codex"),
        (["prog", "--file", "a"], "expected --write with --file, got none"),
        (
            [URL, "--header", "A: b", "--command"],
            "codex mcp add has no option for http_headers; --write writes it",
        ),
    ],
)
def test_a_command_line_that_fits_no_entry_is_refused(
    words: list[str], error: str, config: Config
) -> None:
    assert config(*words, "--client", "codex", code=2) == f"error: {error}\n"


def test_the_host_has_to_be_named(config: Config) -> None:
    with pytest.raises(SystemExit):
        config("prog")


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
