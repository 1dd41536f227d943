"""`mcpgen new server --publish` and `mcpgen publish check`: the registry, and bundles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from generator.test_cli import OLDEST
from mcpgen import paths

NEW = ("new", "server", "weather", "-q", "--publish", "io.github.acme", "-r")

SERVER_SCHEMA = json.loads((paths.schema_dir() / "publishing/server.json").read_text())["$id"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as it is written, in a directory of its own."""
    assert run(*NEW, OLDEST, "--transport", "stdio", cwd=tmp_path).code == 0
    return tmp_path / "weather"


def test_a_new_server_can_be_published_as_written(project: Path) -> None:
    checked = run("publish", "check", cwd=project)
    assert checked.code == 0
    assert checked.out == ".: server.json and manifest.json can be published\n"
    server = json.loads((project / "server.json").read_text())
    assert server["name"] == "io.github.acme/weather"
    assert server["packages"][0]["transport"] == {"type": "stdio"}
    assert "<!-- mcp-name: io.github.acme/weather -->" in (project / "README.md").read_text()


def test_a_server_over_http_alone_has_no_bundle(tmp_path: Path) -> None:
    assert run(*NEW, "latest", "--transport", "http", cwd=tmp_path).code == 0
    assert not (tmp_path / "weather" / "manifest.json").exists()
    server = json.loads((tmp_path / "weather" / "server.json").read_text())
    assert server["packages"][0]["transport"]["type"] == "streamable-http"
    assert run("publish", "check", "weather", cwd=tmp_path).code == 0


def edit_json(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """An edit of a JSON file of the project."""

    def edit(folder: Path) -> None:
        document = json.loads((folder / name).read_text())
        change(document)
        (folder / name).write_text(json.dumps(document))

    return edit


def edit_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    """An edit of a text file of the project."""

    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return edit


WRONG = {
    "another version": (
        edit_text("pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"'),
        [
            "server.json: version: expected that of pyproject.toml, 0.2.0, got 0.1.0",
            "server.json: packages.0.version: expected that of pyproject.toml, 0.2.0, got 0.1.0",
            "manifest.json: version: expected that of pyproject.toml, 0.2.0, got 0.1.0",
        ],
    ),
    "a range of versions": (
        edit_json("server.json", lambda server: server.update(version="^1.2.3")),
        ["server.json: version: expected one version, such as 1.0.2, got '^1.2.3'"],
    ),
    "no mark in the README": (
        edit_text("README.md", "mcp-name:", "name:"),
        ["README: expected the text `mcp-name: io.github.acme/weather`, got none"],
    ),
    "another mark in the README": (
        edit_text("README.md", "acme/weather -->", "acme/wether -->"),
        ["README: expected the text `mcp-name: io.github.acme/weather`, got io.github.acme/wether"],
    ),
    "a name without a namespace": (
        edit_json("server.json", lambda server: server.update(name="weather")),
        ["server.json: name: 'weather' does not match '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$'"],
    ),
    "an older schema": (
        edit_json("server.json", lambda server: server.update({"$schema": "https://x.example/a"})),
        [f"server.json: $schema: expected {SERVER_SCHEMA}, got https://x.example/a"],
    ),
    "nothing to install": (
        edit_json("server.json", lambda server: server.update(packages=[])),
        ["server.json: expected packages or remotes, got neither"],
    ),
    "another distribution": (
        edit_json("server.json", lambda server: server["packages"][0].update(identifier="wether")),
        ["server.json: packages.0.identifier: expected weather, got wether"],
    ),
    "an unknown kind of server": (
        edit_json("manifest.json", lambda bundle: bundle["server"].update(type="uw")),
        ["manifest.json: server.type: 'uw' is not one of ['python', 'node', 'binary', 'uv']"],
    ),
    "an entry that is no file": (
        edit_json("manifest.json", lambda bundle: bundle["server"].update(entry_point="a.py")),
        ["manifest.json: server.entry_point: there is no file a.py"],
    ),
    "another name of the bundle": (
        edit_json("manifest.json", lambda bundle: bundle.update(name="wether")),
        ["manifest.json: name: expected that of pyproject.toml, 'weather'"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_problems_that_prevent_publishing_are_reported(case: str, project: Path) -> None:
    edit, problems = WRONG[case]
    edit(project)
    checked = run("publish", "check", cwd=project)
    *shown, _ = checked.out.splitlines()
    assert (checked.code, shown) == (1, problems)
    record = json.loads(run("publish", "check", "--json", cwd=project).out)
    files = [name for name in ("server.json", "manifest.json") if (project / name).is_file()]
    assert (record["files"], len(record["problems"])) == (files, len(problems))


def test_a_version_that_a_build_computes_is_not_compared(project: Path) -> None:
    edit_text("pyproject.toml", 'version = "0.1.0"', 'dynamic = ["version"]')(project)
    assert run("publish", "check", cwd=project).code == 0


def test_a_directory_without_these_files_is_refused(tmp_path: Path) -> None:
    checked = run("publish", "check", cwd=tmp_path)
    assert checked.code == 2
    assert "expected server.json or manifest.json, got neither" in checked.err


@pytest.mark.parametrize("namespace", ["acme", "io.github/acme", "io..acme", "", 'io.a"b'])
def test_a_namespace_is_a_reverse_domain_name(namespace: str, tmp_path: Path) -> None:
    ended = run("new", "server", "weather", "--publish", namespace, cwd=tmp_path)
    assert ended.code == 2
    assert "expected a namespace of yours in the registry" in ended.err
    assert list(tmp_path.iterdir()) == []
