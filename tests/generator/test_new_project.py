"""`mcpgen new`: what it writes, asks and refuses; `mcpgen update` in what it wrote."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from conventions.sources import ROOT
from generator.command_line import Done, run
from generator.test_cli import OLDEST
from generator.test_mirror import FORECAST, WEATHER
from mcpgen import schema
from mcpgen.errors import OutputError, UsageError
from mcpgen.package import settings
from mcpgen.project import skeleton as projects
from mcpgen.project import writing
from mcpgen.project.commands import NewProject, complete_options
from mcpgen.project.skeleton import Project, toml
from mcpgen.render.formatting import format_modules

pytestmark = pytest.mark.costly

SERVER, TESTS = "src/weather/server.py", "tests/test_server.py"
REVISIONS = tuple(row.name for row in schema.revisions())


def user_files(folder: Path) -> dict[str, bytes]:
    """The files of a project that are the user's, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {"protocol", "mirror", "__pycache__"} & set(path.parts)
    }


def answer_on_terminal(root: Path, folder: Path, answers: str, *words: str) -> str:
    """Output of mcpgen on a terminal on which a user types some lines."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(root / "generator"), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen", *words],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0, shown.decode()
    return shown.decode()


@pytest.mark.parametrize("transports", [("all",), ("stdio",)], ids=" ".join)
@pytest.mark.parametrize("side", ["server", "client"])
def test_the_files_of_a_user_read_as_expected(
    side: projects.Side, transports: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    project = Project("my-weather", side, ("2025-06-18", "2026-07-28"), transports)
    files = projects.user_files(project)
    assert "".join(f"=== {path}\n{files[path]}" for path in sorted(files)) == snapshot


def test_an_app_has_a_document_and_a_test_of_it() -> None:
    plain, app = (
        projects.user_files(Project("my-weather", "server", ("2026-07-28",), app=app))
        for app in (False, True)
    )
    changed = {path for path in app if app[path] != plain.get(path)}
    view = "src/my_weather/view.html"
    assert changed == {view, "src/my_weather/server.py", "tests/test_server.py"}
    assert 'VIEW = "ui://my-weather/view.html"' in app["src/my_weather/server.py"]
    assert "@server.tool(ui=VIEW)\n" in app["src/my_weather/server.py"]


def test_modules_are_formatted_below_a_folder_that_git_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert format_modules({"a.py": "x = 'y'\n"}) == {"a.py": 'x = "y"\n'}


def test_a_server_by_the_instructions_for_agents_works(tmp_path: Path) -> None:
    assert run("new", "server", "weather", "-q", "-r", OLDEST, cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    for title, blocks in indented_blocks((project / "AGENTS.md").read_text("utf-8")).items():
        target = {"Add a tool": SERVER, "Add a resource or a prompt": SERVER, "Add a test": TESTS}
        if title in target:
            with (project / target[title]).open("a", encoding="utf-8") as file:
                file.write(f"\n\n{blocks}")
    tests = project / TESTS
    text = tests.read_text("utf-8").replace('== ["measure"]', '== ["measure", "add"]')
    imports = "from weather.protocol import RemoteError, models\nfrom weather.protocol.testing"
    tests.write_text(text.replace("from weather.protocol.testing", imports, 1), "utf-8")
    for words in (("--contract-update",), ()):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=project,
            env={**os.environ, "PYTHONPATH": f"{project / 'src'}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "9 passed" in done.stdout


def indented_blocks(text: str) -> dict[str, str]:
    """The indented lines of the sections of a document, by heading."""
    sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        title: "".join(
            line.removeprefix("    ")
            for line in body.splitlines(keepends=True)
            if line.startswith("    ") or line == "\n"
        )
        for title, body in zip(sections[::2], sections[1::2], strict=True)
    }


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_new_project_has_its_package_and_is_up_to_date(side: str, tmp_path: Path) -> None:
    ended = run("new", side, "weather", "-r", OLDEST, "-o", "w/x", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, f"generating weather ({OLDEST}) ...\n")
    project = tmp_path / "w" / "x"
    package = project / "src" / "weather" / "protocol"
    inside = [path for path in package.rglob("*") if path.is_file()]
    own = [path for path in project.rglob("*") if path.is_file() and path not in inside]
    assert ended.out.splitlines()[-2:] == [
        f"w/x: {len(own)} files of yours, {len(inside)} files in src/weather/protocol",
        "next: cd w/x && pip install -e '.[dev]' && pytest",
    ]
    config = settings.read(project)
    assert config is not None
    assert config.packages[0].revisions == (OLDEST,)
    assert "schemas" not in config.packages[0].features
    assert run("check", cwd=project).out == "src/weather/protocol: up to date\n"
    assert not [path for path in tmp_path.rglob(".*") if "mcpgen" in path.name]


def test_an_update_rewrites_the_package_and_no_file_of_the_user(tmp_path: Path) -> None:
    made = run("new", "server", "weather", "-q", "-r", OLDEST, cwd=tmp_path)
    assert made == Done(0, "", "")
    project = tmp_path / "weather"
    server = project / "src/weather/server.py"
    server.write_text("mine = 1\n")
    (project / "tests/test_server.py").unlink()
    (project / "src/weather/protocol/errors.py").unlink()
    before = user_files(project)
    assert run("check", project).code == 1
    assert run("update", project).code == 0
    assert run("check", project).code == 0
    assert user_files(project) == before


def test_a_project_may_start_from_lists_in_a_file_it_follows(tmp_path: Path) -> None:
    lists = tmp_path / "tools.json"
    lists.write_text(json.dumps(WEATHER))
    words = ("new", "server", "weather", "-r", "latest", "--from", "tools.json")
    made = run(*words, cwd=tmp_path)
    assert "mirrored: 1 tool, 2 resources, 1 prompt" in made.out.splitlines()
    project = tmp_path / "weather"
    before = user_files(project)
    table = tomllib.loads((project / settings.FILE).read_text())["tool"]["mcpgen"]["mirror"]
    assert table == {"file": "../tools.json", "output": "src/weather/mirror"}
    assert run("check", cwd=project).out.splitlines()[-1] == "src/weather/mirror: up to date"
    other = {**FORECAST, "description": "Other."}
    lists.write_text(json.dumps({"tools": [other, {**FORECAST, "name": "rain"}]}))
    update = run("update", cwd=project)
    assert update.out.splitlines()[1:] == [
        "changed: tool forecast: description",
        "new: tool rain",
        "gone: resource weather://now",
        "gone: resource template weather://{city}/{+day}",
        "gone: prompt report",
        "mirrored: 2 tools, 0 resources, 0 prompts",
        "src/weather/mirror: updated",
    ]
    assert run("update", cwd=project).out.splitlines()[1:] == ["src/weather/mirror: unchanged"]
    assert user_files(project) == before


def test_a_mirror_that_was_edited_by_hand_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER))
    words = ("new", "client", "weather", "-q", "-r", "latest", "--from", "tools.json")
    assert run(*words, cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    module = project / "src/weather/mirror/__init__.py"
    written = module.read_text()
    module.write_text(f"{written}mine = 1\n")
    checked = run("check", cwd=project)
    assert (checked.code, checked.out.splitlines()[-1]) == (
        1,
        "differs: src/weather/mirror/__init__.py; run mcpgen",
    )
    for command in ("update", "generate"):
        ended = run(command, cwd=project)
        assert (ended.code, "mirror/__init__.py: edited by hand" in ended.err) == (2, True)
    assert run("--force", cwd=project).code == 0
    assert module.read_text() == written


BROKEN = {
    "no JSON": ("{", "expected JSON text"),
    "no lists": ("{}", "expected an object with tools"),
    "no names": ('{"tools": [{}]}', "expected a name"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_nothing_is_written_if_the_lists_are_wrong(case: str, tmp_path: Path) -> None:
    text, error = BROKEN[case]
    (tmp_path / "tools.json").write_text(text)
    words = ("new", "server", "weather", "-r", OLDEST, "--from", "tools.json")
    ended = run(*words, cwd=tmp_path)
    assert (ended.code, error in ended.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["tools.json"]


def ci_commands(folder: Path) -> list[str]:
    """The commands of a project's workflow."""
    workflow = yaml.safe_load((folder / ".github/workflows/ci.yml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_ci_runs_mcpgen_only_if_it_knows_where_to_get_it(tmp_path: Path) -> None:
    words = ("new", "server", "weather", "-q", "-r", OLDEST, "--transport", "stdio", "-o")
    assert run(*words, "without", cwd=tmp_path) == Done(0, "", "")
    assert ci_commands(tmp_path / "without")[0] == 'pip install -e ".[dev]"'
    assert not any("mcpgen" in command for command in ci_commands(tmp_path / "without"))
    for number, place in enumerate(PLACES):
        assert run(*words, f"w{number}", "--mcpgen", place, cwd=tmp_path) == Done(0, "", "")
        install, check, *rest = ci_commands(tmp_path / f"w{number}")
        assert shlex.split(install) == ["pip", "install", place]
        assert (check, rest[0]) == ("mcpgen check", 'pip install -e ".[dev]"')
        assert "as CI does" in (tmp_path / f"w{number}/README.md").read_text()


def test_ci_compares_the_contract_of_a_pull_request() -> None:
    [step] = conditional_steps(Project("weather", "server", ("2026-07-28",), mcpgen="m"))
    assert step["if"] == "github.event_name == 'pull_request'"
    assert "mcpgen contract diff server.contract.json --against FETCH_HEAD" in step["run"]
    assert conditional_steps(Project("weather", "server", ("2026-07-28",))) == []
    assert conditional_steps(Project("weather", "client", ("2026-07-28",), mcpgen="m")) == []


def conditional_steps(project: Project) -> list[dict[str, str]]:
    """The steps of a project's workflow that have a condition."""
    workflow = yaml.safe_load(projects.user_files(project)[".github/workflows/ci.yml"])
    return [step for step in workflow["jobs"]["test"]["steps"] if "if" in step]


PLACES = (
    "git+https://git.example/mcpgen@v1",
    "wheels/mcpgen-0.1.0-py3-none-any.whl",
    "mcpgen @ https://files.example/mcpgen.whl # a: comment",
    'a\'; echo "b" $(c)',
)


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--hosts", "mcp.example.com, mcp.example.org"], {}),
        ([], {"MCP_HOSTS": "mcp.example.com"}),
        ([], {"MCP_HOSTS": "mcp.example.com", "MCP_WORKERS": "2"}),
        (["--auth", "tokens.json", "--hosts", "mcp.example.com"], {}),
        ([], {"MCP_HOSTS": "mcp.example.com", "MCP_AUTH": "tokens.json"}),
    ],
)
def test_a_server_of_a_project_serves_behind_a_public_name(
    words: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    new = ("new", "server", "weather", "-q", "-r", "latest", "--features", "auth")
    assert run(*new, cwd=tmp_path).code == 0
    (tmp_path / "tokens.json").write_text('{"t0ken": "alice"}')
    needs_token = "--auth" in words or "MCP_AUTH" in environment
    command = [sys.executable, "-m", "weather", "--http", "127.0.0.1:0", *words]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **environment, "PYTHONPATH": str(tmp_path / "weather/src")},
    )
    assert process.stderr is not None
    try:
        lines = (line.strip() for line in process.stderr)
        url = next(line for line in lines if "serving at" in line).removeprefix("serving at ")
        statuses = {
            (host, token): httpx2.get(
                url,
                headers={"Host": host, **({"Authorization": f"Bearer {token}"} if token else {})},
            ).status_code
            for host in ("mcp.example.com", "other.example.com")
            for token in ("", "t0ken")
        }
        healthy = httpx2.get(url.replace("/mcp", "/health"))
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
    assert statuses == {
        ("mcp.example.com", ""): 401 if needs_token else 405,
        ("mcp.example.com", "t0ken"): 405,
        ("other.example.com", ""): 403,
        ("other.example.com", "t0ken"): 403,
    }
    assert (healthy.status_code, healthy.text) == (200, "ok")


@pytest.mark.parametrize("side", ["server", "client"])
def test_checks_before_a_commit_are_programs_of_the_project(
    side: projects.Side, tmp_path: Path
) -> None:
    project = Project("my-weather", side, ("2026-07-28",), mcpgen="./wheels/mcpgen.whl")
    files = projects.user_files(project)
    [local] = yaml.safe_load(files[".pre-commit-config.yaml"])["repos"]
    entries = [hook["entry"].split() for hook in local["hooks"]]
    development = tomllib.loads(files["pyproject.toml"])["project"]["optional-dependencies"]["dev"]
    names = {line.partition(">")[0] for line in development}
    assert [words[0] for words in entries] == ["ruff", "ruff", "mypy", "mcpgen"]
    assert {words[0] for words in entries} <= names | {"mcpgen"}
    assert len(development) <= 8


def test_a_workflow_runs_on_each_version_with_few_rights() -> None:
    workflow = yaml.safe_load(
        projects.user_files(Project("weather", "server", ("2026-07-28",)))[
            ".github/workflows/ci.yml"
        ]
    )
    job = workflow["jobs"]["test"]
    assert workflow["permissions"] == {"contents": "read"}
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14", "3.15"]
    [python] = [step["with"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert python["python-version"] == "${{ matrix.python }}"
    assert python["cache"] == "pip"


WRONG = {
    "an option of pip": (["server", "x", "--mcpgen", "--pre"], "--mcpgen: expected what pip"),
    "two lines": (["server", "x", "--mcpgen", "a\nb"], "--mcpgen: expected what pip"),
    "nothing to install": (["server", "x", "--mcpgen", " "], "--mcpgen: expected what pip"),
    "no name": (["server"], "expected mcpgen new server NAME, got no name"),
    "a name with capitals": (["server", "Weather"], "expected a name of lower-case letters"),
    "a path as a name": (["server", "../x"], "expected a name of lower-case letters"),
    "the name of a module": (["server", "json"], "try json-protocol"),
    "a keyword": (["client", "class"], "expected a name that no other module has"),
    "a package that it needs": (["client", "anyio"], "expected a name that no other module has"),
    "an unknown revision": (["server", "x", "-r", "2000-01-01"], "2000-01-01"),
    "an unknown transport": (["server", "x", "--transport", "tcp"], "--transport: expected"),
    "two origins": (
        ["server", "x", "--from", "f.json", "--from-server", "y"],
        "expected --from or --from-server, got both",
    ),
    "an app of an old revision": (
        ["server", "x", "--app", "-r", "2025-03-26"],
        "--app: expected a revision whose tools have _meta, got 2025-03-26",
    ),
    "an app of a mirror": (
        ["server", "x", "--app", "--from", "f.json"],
        "--app: expected no --from",
    ),
    "the current directory": (["server", "x", "-o", "."], "holds the current directory"),
}


@pytest.mark.parametrize("case", WRONG)
def test_usage_errors_are_one_line_and_write_nothing(case: str, tmp_path: Path) -> None:
    words, error = WRONG[case]
    (tmp_path / "f.json").write_text("{}")
    ended = run("new", *words, cwd=tmp_path)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert error in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_a_directory_with_files_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "weather").mkdir()
    (tmp_path / "weather" / "mine.txt").touch()
    ended = run("new", "server", "weather", cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "weather: expected a new or an empty directory, got one with files" in ended.err
    assert [path.name for path in (tmp_path / "weather").iterdir()] == ["mine.txt"]


def test_an_empty_directory_becomes_the_project(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    writing.write_project(tmp_path / "x", {"a/b.txt": "b\n"})
    assert (tmp_path / "x/a/b.txt").read_text() == "b\n"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(OutputError, match="got a file"):
        writing.write_project(tmp_path / "x", {"a": ""})


def test_a_write_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nothing was written"):
        writing.write_project(tmp_path / "x", {"a": "", "a/b": ""})
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return True


OPTIONS: dict[str, Any] = {
    "name": None,
    "output": None,
    "revisions": (),
    "transports": (),
    "features": (),
    "from_file": None,
    "from_server": None,
    "mcpgen": None,
}


@pytest.mark.parametrize(
    ("given", "answers", "options"),
    [
        ({}, "x\n\n\n\n", NewProject("server", "x", Path("x"), transports=("all",))),
        (
            {"name": "x"},
            "latest\nstdio\ny\n",
            NewProject("server", "x", Path("y"), ("latest",), ("stdio",)),
        ),
        (
            {"name": "x", "revisions": ("all",), "output": Path("z")},
            "http\n",
            NewProject("server", "x", Path("z"), ("all",), ("http",)),
        ),
        (
            {"name": "x", "transports": ("all",), "publish": "a.b", "mcpgen": "m", "app": True},
            "\n\n",
            NewProject(
                *("server", "x", Path("x"), ("all",), ("all",), ()),
                mcpgen="m",
                publish="a.b",
                app=True,
            ),
        ),
    ],
)
def test_a_terminal_is_asked_in_order_for_what_is_missing(
    given: dict[str, Any], answers: str, options: NewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = Terminal(answers)
    monkeypatch.setattr("sys.stdin", stdin)
    with redirect_stdout(Terminal()):
        assert complete_options("server", **OPTIONS | given) == options
    assert stdin.read() == ""


@pytest.mark.parametrize("is_input", [True, False])
def test_without_a_terminal_nothing_is_asked(
    is_input: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal() if is_input else io.StringIO())
    with redirect_stdout(io.StringIO() if is_input else Terminal()):
        assert complete_options("client", **OPTIONS | {"name": "x", "features": ("a",)}) == (
            NewProject("client", "x", Path("x"), ("all",), (), ("a",))
        )


def test_files_differ_if_they_are_missing_or_say_other_things(tmp_path: Path) -> None:
    (tmp_path / "same").write_text("x\n")
    (tmp_path / "other").write_text("y\n")
    (tmp_path / "folder").mkdir()
    files = dict.fromkeys(("same", "other", "folder", "none"), "x\n")
    assert writing.differing_files(tmp_path, files) == ["other", "folder", "none"]


def test_only_files_that_differ_are_written(tmp_path: Path) -> None:
    (tmp_path / "same").write_text("x\n")
    (tmp_path / "mine").touch()
    before = (tmp_path / "same").stat().st_ino
    assert writing.write_files(tmp_path, {"same": "x\n", "new": "y\n"})
    assert (tmp_path / "same").stat().st_ino == before
    assert (tmp_path / "new").read_bytes() == b"y\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new", "same"]


def test_files_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(OutputError, match="x/y: not all was written: "):
        writing.write_files(tmp_path / "x" / "y", {"a": ""})
    with pytest.raises(OutputError, match="x/y: nothing was written: "):
        writing.write_project(tmp_path / "x" / "y", {"a": ""})
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_terminal_is_asked_for_what_is_not_given(root: Path, tmp_path: Path) -> None:
    shown = answer_on_terminal(root, tmp_path, f"weather\n{OLDEST}\n\nplace\n", "new", "server")
    questions = ("Name of the server", "Revisions (a date, latest, or all) [all]")
    assert all(text in shown for text in (*questions, "[all]", "Directory [weather]"))
    config = settings.read(tmp_path / "place")
    assert config is not None
    assert config.packages[0].revisions == (OLDEST,)


@pytest.mark.parametrize("name", ["a" * 61, "-x", "x-", "x--y", "x y", "\u0456x", "1x", ""])
def test_a_name_that_could_not_be_a_distribution_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        projects.module_name(name)


@pytest.mark.parametrize(
    ("name", "module"),
    [("a" * 60, "a" * 60), ("my-weather.x_y", "my_weather_x_y"), ("a1", "a1"), ("x", "x")],
)
def test_a_distribution_is_imported_by_its_name(name: str, module: str) -> None:
    assert projects.module_name(name) == module


@pytest.mark.parametrize("name", ["mcp", "tests", "ruff", "msgspec", "json", "class", "async"])
def test_a_name_that_is_taken_gets_another_one_proposed(name: str) -> None:
    with pytest.raises(UsageError, match=f"try {name}-protocol$"):
        projects.module_name(name)


@pytest.mark.parametrize(
    ("transports", "http", "stdio"),
    [
        (("all",), True, True),
        (("stdio",), False, True),
        (("http",), True, False),
        (("stdio", "http"), True, True),
    ],
)
def test_a_project_has_what_its_transports_need(
    transports: tuple[str, ...], http: bool, stdio: bool
) -> None:
    client = Project("my-weather", "client", ("2026-07-28",), transports)
    server = Project("my-weather", "server", ("2026-07-28",), transports)
    assert (client.http, client.stdio, server.http, server.stdio) == (http, stdio) * 2
    targets = "URL | COMMAND [ARGUMENT...]" if http else "COMMAND [ARGUMENT...]"
    assert client.usage == f"usage: python -m my_weather {targets}"
    tools = [line.partition(">")[0] for line in projects.TOOLS]
    assert named(client.dev_requirements) == [*(["httpx2"] if http else []), *tools]
    assert named(server.dev_requirements) == tools
    assert named(client.http_requirements) == ["httpx2"]
    assert named(server.http_requirements) == ["uvicorn"]


def named(requirements: str) -> list[str]:
    """The distributions of requirements in TOML."""
    lines: list[str] = tomllib.loads(f"x = {requirements}")["x"]
    return [line.partition(">")[0] for line in lines]


def test_a_project_has_what_its_mirror_and_features_need() -> None:
    plain = Project("w", "server", ("2026-07-28",))
    assert (named(plain.requirements), plain.features, plain.auth) == (
        ["anyio", "msgspec"],
        None,
        False,
    )
    full = Project(
        *("w", "server", ("2025-06-18", "2026-07-28")),
        mirror=toml("x"),
        needs_uritemplate=True,
        mcpgen="git+https://a.b/c; x",
        feature_names=("auth",),
    )
    assert named(full.requirements) == ["anyio", "jsonschema", "msgspec", "uritemplate"]
    assert (full.features, full.auth) == ('["auth"]', True)
    assert full.revisions == '["2025-06-18", "2026-07-28"]'
    assert full.install_mcpgen == "\"pip install 'git+https://a.b/c; x'\""
    assert (full.about_uri, full.view_uri) == ("w://about", "ui://w/view.html")
    assert replace(full, feature_names=("all",)).auth


@pytest.mark.parametrize("text", ["mcpgen @ https://x/1.whl", "./a b.whl", "git+https://x@1"])
def test_a_requirement_is_kept_as_it_is(text: str) -> None:
    assert projects.check_requirement(text) == text


@pytest.mark.parametrize("text", ["mcpgen", "mcpgen==1", "MCPGEN [http] >= 1", " mcpgen; x"])
def test_a_name_that_no_index_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="since no package index has mcpgen, got"):
        projects.check_requirement(text)


def test_a_project_needs_what_mcpgen_is_tested_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    stated = {*project["dependencies"], *(line for lines in extras for line in lines)}
    assert set(projects.REQUIREMENTS.values()) <= stated


def test_the_command_line_starts_without_what_projects_need(root: Path) -> None:
    code = (
        "import sys, mcpgen.cli, mcpgen.package.settings\n"
        "print([name for name in sys.modules if 'project' in name or name in"
        " ('jinja2', 'anyio', 'msgspec', 'tomllib', 'asyncio')])"
    )
    # Without measuring its coverage, which imports some of them.
    rest = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment = {**rest, "PYTHONPATH": str(root / "generator")}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout == "[]\n"
