"""`mcpgen new server --publish` and `mcpgen publish check`: the registry, and bundles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, run
from generator.test_cli import OLDEST
from mcpgen import paths
from mcpgen.project import publishing
from mcpgen.project.publishing import check_namespace
from mcpgen.project.skeleton import Project

pytestmark = pytest.mark.lengthy

NEW = ("new", "server", "weather", "-q", "--publish", "io.github.acme", "-r")

SERVER_SCHEMA = json.loads((paths.schema_dir() / "publishing/server.json").read_text())["$id"]


@pytest.fixture(scope="module")
def written_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as it is written."""
    folder = tmp_path_factory.mktemp("written")
    assert run(*NEW, OLDEST, "--transport", "stdio", cwd=folder).code == 0
    return folder / "weather"


@pytest.fixture
def project(written_project: Path, tmp_path: Path) -> Path:
    """That project without its package, to be edited."""
    kept = shutil.ignore_patterns("protocol")
    return Path(shutil.copytree(written_project, tmp_path / "weather", ignore=kept))


@pytest.mark.parametrize(
    ("transport", "kind", "files"),
    [
        ("stdio", "stdio", "server.json and manifest.json"),
        ("all", "stdio", "server.json and manifest.json"),
        ("http", "streamable-http", "server.json"),
    ],
)
def test_a_new_server_can_be_published_as_written(
    transport: str, kind: str, files: str, tmp_path: Path
) -> None:
    assert run(*NEW, "latest", "--transport", transport, cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    checked = run("publish", "check", "weather", cwd=tmp_path)
    assert checked == Done(0, f"weather: {files} can be published\n", "")
    assert "<!-- mcp-name: io.github.acme/weather -->" in (project / "README.md").read_text()
    text = (project / "server.json").read_text()
    server = json.loads(text)
    assert text == json.dumps(server, indent=2) + "\n"
    assert (server["$schema"], server["name"]) == (SERVER_SCHEMA, "io.github.acme/weather")
    [package] = server["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", "weather")
    assert package["transport"]["type"] == kind
    assert (project / "manifest.json").exists() is ("manifest.json" in files)
    if "manifest.json" in files:
        bundle = json.loads((project / "manifest.json").read_text())
        assert bundle["author"] == {"name": "acme"}
        assert bundle["tools_generated"] is bundle["prompts_generated"] is True
        config = bundle["server"]["mcp_config"]
        assert config["args"] == ["run", "--directory", "${__dirname}", "weather"]


def problems_of(project: Path) -> list[str]:
    """The problems that a check prints."""
    checked = run("publish", "check", cwd=project)
    *shown, _ = checked.out.splitlines()
    assert checked.code == int(bool(shown))
    return shown


@pytest.mark.parametrize(
    ("file", "member", "value", "problem"),
    [
        ("server.json", "name", "weather", "name: 'weather' does not match '^[a-zA-Z0-9.-]+/"),
        ("server.json", "$schema", "a", f"$schema: expected {SERVER_SCHEMA}, got a"),
        ("server.json", "packages", [], "expected packages or remotes, got neither"),
        ("manifest.json", "server.type", "uw", "server.type: 'uw' is not one of ['python', "),
        ("manifest.json", "server.entry_point", "a.py", "server.entry_point: there is no file"),
        ("manifest.json", "name", "x", "name: expected that of pyproject.toml, 'weather'"),
    ],
)
def test_a_document_that_prevents_publishing_is_reported(
    file: str, member: str, value: object, problem: str, project: Path
) -> None:
    document = json.loads((project / file).read_text())
    *outer, name = member.split(".")
    (document[outer[0]] if outer else document)[name] = value
    (project / file).write_text(json.dumps(document))
    [shown] = problems_of(project)
    assert shown.startswith(f"{file}: {problem}")
    record = json.loads(run("publish", "check", "--json", cwd=project).out)
    assert (record["files"], len(record["problems"])) == (["server.json", "manifest.json"], 1)


OTHERS = "expected that of pyproject.toml, 0.2.0, got 0.1.0"
MARK_OF = "mcp-name: io.github.acme/weather"


@pytest.mark.parametrize(
    ("file", "old", "new", "problems"),
    [
        ("pyproject.toml", 'version = "0.1.0"', 'dynamic = ["version"]', []),
        (
            *("pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"'),
            [
                f"server.json: version: {OTHERS}",
                f"server.json: packages.0.version: {OTHERS}",
                f"manifest.json: version: {OTHERS}",
            ],
        ),
        (
            *("README.md", MARK_OF, "mcp-name:a/b mcp-name: c/d"),
            [f"README: expected the text `{MARK_OF}`, got a/b, c/d"],
        ),
    ],
    ids=["computed", "another version", "other marks"],
)
def test_a_text_that_prevents_publishing_is_reported(
    file: str, old: str, new: str, problems: list[str], project: Path
) -> None:
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    assert problems_of(project) == problems


@pytest.mark.parametrize("text", ["[", "[project]", "project = 5"])
def test_a_project_to_publish_has_a_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("[]")
    (tmp_path / "pyproject.toml").write_text(text)
    checked = run("publish", "check", cwd=tmp_path)
    assert checked.code == 2
    assert "pyproject.toml: expected a file with [project] and its name\n" in checked.err
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    checked = run("publish", "check", cwd=tmp_path)
    assert checked.out == "server.json: [] is not of type 'object'\n.: 1 problem\n"


@pytest.mark.parametrize(
    ("namespace", "is_valid"),
    [
        *((name, True) for name in ("io.GitHub.Acme-1", "a.b")),
        *((name, False) for name in ("acme", "io.github/acme", "io..acme", "", 'io.a"b')),
        *((name, False) for name in ("io.\u0457.acme", "io.github.acme/", "a")),
    ],
)
def test_a_namespace_is_a_reverse_domain_name(
    namespace: str, is_valid: bool, tmp_path: Path
) -> None:
    if is_valid:
        assert check_namespace(namespace) == namespace
        return
    ended = run("new", "server", "weather", "--publish", namespace, cwd=tmp_path)
    assert ended.code == 2
    assert "expected a namespace of yours in the registry" in ended.err
    assert list(tmp_path.iterdir()) == []


MARK = "mcp-name: io.github.acme/my-weather"


def check_files(folder: Path, table: str, **changed: Any) -> list[str]:
    """The problems of a project over HTTP with a table [project], as JSON has them."""
    written = publishing.files(
        Project("my-weather", "server", ("2025-06-18",), ("http",)), "io.github.acme"
    )
    document = json.loads(written["server.json"]) | changed
    (folder / "server.json").write_text(json.dumps(document))
    (folder / "pyproject.toml").write_text(f"[project]\n{table}\n")
    checked = run("publish", "check", "--json", cwd=folder)
    problems: list[str] = json.loads(checked.out)["problems"]
    assert checked.code == bool(problems)
    return problems


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("", "README.md"),
        ('readme = "docs.md"', "docs.md"),
        ('readme = {file = "docs.md"}', "docs.md"),
        ('readme = {text = "x"}', None),
        ('readme = "none.md"', None),
    ],
)
def test_the_readme_is_the_one_of_the_project(table: str, file: str | None, tmp_path: Path) -> None:
    for name in ("README.md", "docs.md"):
        (tmp_path / name).write_text(MARK if name == file else "")
    problems = check_files(tmp_path, f'name = "my-weather"\n{table}')
    assert problems == ([] if file else [f"README: expected the text `{MARK}`, got none"])


NPM: dict[str, Any] = {"registryType": "npm", "identifier": "other", "version": "3.0.0"}
NPM |= {"transport": {"type": "stdio"}}
PYPI = {**NPM, "registryType": "pypi"}


@pytest.mark.parametrize(
    ("table", "changed", "problems"),
    [
        ('name = "My_Weather"\nversion = "0.1.0"', {}, []),
        ('name = "x"', {"packages": [NPM]}, []),
        ('name = "x"', {"packages": [], "remotes": [{"type": "sse", "url": "https://a.b/c"}]}, []),
        (
            'name = "x"',
            {"packages": [NPM, PYPI]},
            ["server.json: packages.1.identifier: expected x, got other"],
        ),
        (
            'name = "my-weather"',
            {"version": "v1"},
            ["server.json: version: expected one version, such as 1.0.2, got 'v1'"],
        ),
    ],
)
def test_a_server_is_compared_with_its_project(
    table: str, changed: dict[str, Any], problems: list[str], tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text(f"first\nmcp-name: a/b\n{MARK}\n")
    assert check_files(tmp_path, table, **changed) == problems


@pytest.mark.parametrize("way", ["a parent", "a link", "many bytes"])
def test_a_readme_of_others_is_not_read(way: str, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("mcp-name: of/others")
    folder = tmp_path / "project"
    folder.mkdir()
    table = 'name = "my-weather"'
    if way == "a parent":
        table += '\nreadme = "../secret.md"'
    elif way == "a link":
        (folder / "README.md").symlink_to("../secret.md")
    else:
        (folder / "README.md").write_text("mcp-name: of/others\n" + "x" * 2**20)
    assert check_files(folder, table) == [f"README: expected the text `{MARK}`, got none"]


def test_a_link_is_no_file_to_publish(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"secret": 1}')
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (folder / "server.json").symlink_to("../server.json")
    refused = run("publish", "check", cwd=folder)
    assert refused.code == 2
    assert "expected server.json or manifest.json, got neither" in refused.err
    entry = {"type": "uv", "entry_point": "../server.json", "mcp_config": {"command": "uv"}}
    bundle = publishing.files(Project("x", "server", ("2025-06-18",)), "io.github.acme")
    document = json.loads(bundle["manifest.json"]) | {"server": entry}
    (folder / "manifest.json").write_text(json.dumps(document))
    checked = run("publish", "check", cwd=folder)
    assert "server.entry_point: there is no file ../server.json\n" in checked.out


def test_many_problems_and_long_ones_are_cut(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(MARK)
    long = {**PYPI, "identifier": "v" * 500}
    problems = check_files(tmp_path, 'name = "my-weather"', packages=[long] + [PYPI] * 69)
    assert len(problems) == 70
    *shown, more, count = run("publish", "check", cwd=tmp_path).out.splitlines()
    assert (more, count) == ("... 20 more problems", ".: 70 problems")
    assert max(map(len, shown)) == 403
