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
from mcpgen.errors import UsageError
from mcpgen.project import publishing
from mcpgen.project.publishing import check_namespace
from mcpgen.project.skeleton import Project

pytestmark = pytest.mark.lengthy

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


@pytest.mark.parametrize("namespace", ["io.github.acme", "io.GitHub.Acme-1", "a.b"])
def test_a_namespace_is_kept_as_it_is(namespace: str) -> None:
    assert check_namespace(namespace) == namespace


@pytest.mark.parametrize("namespace", ["io.\u0457.acme", "io.github.acme/", "a"])
def test_a_namespace_is_of_ascii_letters(namespace: str) -> None:
    with pytest.raises(UsageError, match="got '"):
        check_namespace(namespace)


@pytest.mark.parametrize("transports", [("stdio",), ("http",), ("all",), ("stdio", "http")])
def test_published_files_say_what_the_project_is(transports: tuple[str, ...]) -> None:
    project = Project("my-weather", "server", ("2025-06-18",), transports)
    files = publishing.files(project, "io.github.acme")
    over_http = {"type": "streamable-http", "url": "http://127.0.0.1:8000/mcp"}
    package = {
        "registryType": "pypi",
        "identifier": "my-weather",
        "version": "0.1.0",
        "transport": over_http if transports == ("http",) else {"type": "stdio"},
    }
    server = {
        "$schema": SERVER_SCHEMA,
        "name": "io.github.acme/my-weather",
        "description": "The MCP server my-weather",
        "version": "0.1.0",
        "packages": [package],
    }
    bundle = {
        "manifest_version": "0.4",
        "name": "my-weather",
        "version": "0.1.0",
        "description": "The MCP server my-weather",
        "author": {"name": "acme"},
        "server": {
            "type": "uv",
            "entry_point": "src/my_weather/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "my-weather"],
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"runtimes": {"python": ">=3.11"}},
    }
    expected = {"server.json": server, "manifest.json": bundle}
    if transports == ("http",):
        del expected["manifest.json"]
    texts = {path: json.dumps(value, indent=2) + "\n" for path, value in expected.items()}
    assert files == texts


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


def npm(**own: Any) -> dict[str, Any]:
    """A package of another registry."""
    return {
        "registryType": "npm",
        "identifier": "other",
        "version": "3.0.0",
        "transport": {"type": "stdio"},
        **own,
    }


@pytest.mark.parametrize(
    ("table", "changed", "problems"),
    [
        ('name = "My_Weather"', {}, []),
        ('name = "my-weather"\nversion = "0.1.0"', {}, []),
        ('name = "x"', {"packages": [npm()]}, []),
        ('name = "x"', {"packages": [], "remotes": [{"type": "sse", "url": "https://a.b/c"}]}, []),
        (
            'name = "x"',
            {"packages": [npm(), npm(registryType="pypi")]},
            ["server.json: packages.1.identifier: expected x, got other"],
        ),
        (
            'name = "my-weather"',
            {"version": "v1"},
            ["server.json: version: expected one version, such as 1.0.2, got 'v1'"],
        ),
        (
            'name = "my-weather"',
            {"description": 5, "version": "v1"},
            ["server.json: description: 5 is not of type 'string'"],
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
    assert (
        "expected server.json or manifest.json, got neither"
        in run("publish", "check", cwd=folder).err
    )
    entry = {"type": "uv", "entry_point": "../server.json", "mcp_config": {"command": "uv"}}
    bundle = publishing.files(Project("x", "server", ("2025-06-18",)), "io.github.acme")
    document = json.loads(bundle["manifest.json"]) | {"server": entry}
    (folder / "manifest.json").write_text(json.dumps(document))
    checked = run("publish", "check", cwd=folder)
    assert "server.entry_point: there is no file ../server.json\n" in checked.out


def test_fifty_problems_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(MARK)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "my-weather"\n')
    document = json.loads(
        publishing.files(Project("my-weather", "server", ("2025-06-18",)), "io.github.acme")[
            "server.json"
        ]
    )
    document["packages"] = [npm(registryType="pypi")] * 70
    (tmp_path / "server.json").write_text(json.dumps(document))
    lines = run("publish", "check", cwd=tmp_path).out.splitlines()
    assert (len(lines), lines[50:]) == (52, ["... 20 more problems", ".: 70 problems"])


def test_each_mark_of_a_readme_is_named(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mcp-name:a/b\nmcp-name:   c/d")
    problems = check_files(tmp_path, 'name = "my-weather"')
    assert problems == [f"README: expected the text `{MARK}`, got a/b, c/d"]


@pytest.mark.parametrize("text", [None, "[", "a = 1", "[project]", "project = 5"])
def test_a_project_to_publish_has_a_name(text: str | None, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("{}")
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    checked = run("publish", "check", cwd=tmp_path)
    assert checked.code == 2
    assert "pyproject.toml: expected a file with [project] and its name\n" in checked.err


def test_a_file_to_publish_is_an_object(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("[]")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    checked = run("publish", "check", cwd=tmp_path)
    assert checked.out == "server.json: [] is not of type 'object'\n.: 1 problem\n"


@pytest.mark.parametrize("length", [400, 401])
def test_a_problem_is_shown_up_to_400_characters(length: int, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(MARK)
    problem = "server.json: packages.0.identifier: expected my-weather, got "
    identifier = "v" * (length - len(problem))
    packages = [npm(registryType="pypi", identifier=identifier)]
    check_files(tmp_path, 'name = "my-weather"', packages=packages)
    [shown, _] = run("publish", "check", cwd=tmp_path).out.splitlines()
    assert shown == f"{problem}{identifier}"[:400] + ("..." if length > 400 else "")
