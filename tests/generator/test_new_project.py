"""`mcpgen new`: what it writes, asks and refuses; `mcpgen update` in what it wrote."""

from __future__ import annotations

import io
import json
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from conventions.sources import ROOT
from generator.command_line import Done, run, run_python
from generator.test_cli import OLDEST
from generator.test_mirror import FORECAST, WEATHER
from kit.terminal import Terminal
from mcpgen import schema
from mcpgen.errors import OutputError, UsageError
from mcpgen.package import settings
from mcpgen.project import skeleton as projects
from mcpgen.project import writing
from mcpgen.project.commands import NewProject, complete_options
from mcpgen.project.skeleton import Project

pytestmark = pytest.mark.costly

TESTS = "tests/test_server.py"
REVISIONS = tuple(row.name for row in schema.revisions())


def user_files(folder: Path) -> dict[str, bytes]:
    """The files of a project that are the user's, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {"protocol", "mirror", "__pycache__"} & set(path.parts)
    }


@pytest.mark.parametrize("transports", [("all",), ("stdio",)], ids=" ".join)
@pytest.mark.parametrize("side", ["server", "client"])
def test_the_files_of_a_user_read_as_expected(
    side: projects.Side, transports: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    project = Project("my-weather", side, ("2025-06-18", "2026-07-28"), transports)
    files = projects.user_files(project)
    assert "".join(f"=== {path}\n{files[path]}" for path in sorted(files)) == snapshot


def user_text(path: str, side: projects.Side = "server", **options: Any) -> str:
    """A file of a project of the newest revision."""
    return projects.user_files(Project("my-weather", side, (REVISIONS[-1],), **options))[path]


def test_an_app_has_a_document_and_a_test_of_it() -> None:
    project = Project("my-weather", "server", REVISIONS[-1:])
    plain, app = (projects.user_files(replace(project, app=app)) for app in (False, True))
    server, view = "src/my_weather/server.py", "src/my_weather/view.html"
    assert {path for path in app if app[path] != plain.get(path)} == {view, server, TESTS}
    assert 'VIEW = "ui://my-weather/view.html"' in app[server]
    assert "@server.tool(ui=VIEW)\n" in app[server]


def test_a_server_by_the_instructions_for_agents_works(tmp_path: Path) -> None:
    assert run("new", "server", "weather", "-q", "-r", OLDEST, cwd=tmp_path).code == 0
    project = tmp_path / "weather"
    document = (project / "AGENTS.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", document, re.MULTILINE))
    tests, server = project / TESTS, project / "src/weather/server.py"
    text = tests.read_text("utf-8").replace('== ["measure"]', '== ["measure", "add"]')
    imports = "from weather.protocol import RemoteError, models\nfrom weather.protocol.testing"
    tests.write_text(text.replace("from weather.protocol.testing", imports, 1), "utf-8")
    for title, target in (
        ("Add a tool", server),
        ("Add a resource or a prompt", server),
        ("Add a test", tests),
    ):
        code = re.findall(r"^(?:    (.*\n)|\n)", sections[title], re.MULTILINE)
        with target.open("a", encoding="utf-8") as file:
            file.write("\n\n" + "".join(line or "\n" for line in code))
    for words in (("--contract-update",), ()):
        program = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *words)
        done = run_python(*program, cwd=project, paths=(project / "src",))
        assert (done.code, "9 passed" in done.out) == (0, True), done.out + done.err


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_new_project_has_its_package_and_is_up_to_date(side: str, tmp_path: Path) -> None:
    ended = run("new", side, "weather", "-r", OLDEST, "-o", "v/w/x", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, f"generating weather ({OLDEST}) ...\n")
    project = tmp_path / "v" / "w" / "x"
    own, all_files = user_files(project), [each for each in project.rglob("*") if each.is_file()]
    assert ended.out.splitlines()[-2] == (
        f"v/w/x: {len(own)} files of yours, {len(all_files) - len(own)} files in"
        " src/weather/protocol"
    )
    assert ended.out.endswith("next: cd v/w/x && pip install -e '.[dev]' && pytest\n")
    config = settings.read(project)
    assert config is not None
    assert config.packages[0].revisions == (OLDEST,)
    assert config.packages[0].features == (
        ("config", "routes", "workers") if side == "server" else ()
    )
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
    document = tomllib.loads((project / settings.FILE).read_text())
    needed = {line.partition(">")[0] for line in document["project"]["dependencies"]}
    assert needed == {"anyio", "jsonschema", "msgspec", "uritemplate"}
    assert document["tool"]["mcpgen"]["mirror"] == {
        "file": "../tools.json",
        "output": "src/weather/mirror",
    }
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


PLACES = (
    "git+https://git.example/mcpgen@v1",
    "wheels/mcpgen-0.1.0-py3-none-any.whl",
    "mcpgen @ https://files.example/mcpgen.whl # a: comment",
    'a\'; echo "b" $(c)',
)


@pytest.mark.parametrize("place", ["", *PLACES])
def test_ci_runs_mcpgen_only_if_it_knows_where_to_get_it(place: str) -> None:
    mcpgen = projects.check_requirement(place) if place else None
    workflow = yaml.safe_load(user_text(".github/workflows/ci.yml", mcpgen=mcpgen))
    steps = workflow["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    contract = [step for step in steps if "if" in step]
    assert 'pip install -e ".[dev]"' in commands
    assert ("as CI does" in user_text("README.md", mcpgen=mcpgen)) is bool(place)
    if place:
        assert shlex.split(commands[0]) == ["pip", "install", place]
        assert commands[1] == "mcpgen check"
        [step] = contract
        assert step["if"] == "github.event_name == 'pull_request'"
        assert "mcpgen contract diff server.contract.json --against FETCH_HEAD" in step["run"]
    else:
        assert (contract, [each for each in commands if "mcpgen" in each]) == ([], [])


WRONG = {
    "x --mcpgen --pre": "--mcpgen: expected what pip",
    "x --mcpgen 'a\nb'": "--mcpgen: expected what pip",
    "x --mcpgen ' '": "--mcpgen: expected what pip",
    "x --mcpgen 'MCPGEN [http] >= 1'": "since no package index has mcpgen, got",
    "": "expected mcpgen new server NAME, got no name",
    "Weather": "expected a name of lower-case letters",
    "json": "try json-protocol",
    "x -r 2000-01-01": "2000-01-01",
    "x --transport tcp": "--transport: expected",
    "x --from f.json --from-server y": "expected --from or --from-server, got both",
    "x --app -r 2025-03-26": "expected a revision whose tools have _meta, got 2025-03-26",
    "x --app --from f.json": "--app: expected no --from",
    "x -o .": "holds the current directory",
    "x --from no.json": "expected JSON text",
    "x --from f.json": "expected an object with tools",
    "x --from nameless.json": "expected a name",
    "x -o taken": "taken: expected a new or an empty directory, got one with files",
    "x -o f.json": "got a file",
    f"x -o f.json/x -r {OLDEST} --transport stdio": "nothing was written: File exists",
}


@pytest.mark.parametrize(("words", "error"), WRONG.items())
def test_usage_errors_are_one_line_and_write_nothing(
    words: str, error: str, tmp_path: Path
) -> None:
    files = {"f.json": "{}", "no.json": "{", "nameless.json": '{"tools": [{}]}'}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").touch()
    ended = run("new", "server", *shlex.split(words), "-q", cwd=tmp_path)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert error in ended.err
    assert {path.name for path in tmp_path.rglob("*")} == {*files, "taken", "mine.txt"}


def test_a_project_is_written_whole_and_only_files_that_differ_later(tmp_path: Path) -> None:
    place = tmp_path / "x"
    with pytest.raises(OutputError, match="nothing was written"):
        writing.write_project(place, {"a": "", "a/b": ""})
    assert list(tmp_path.iterdir()) == []
    place.mkdir()
    writing.write_project(place, {"same": "x\n", "other": "y\n", "a/b.txt": "b\n"})
    files = dict.fromkeys(("same", "other", "a", "none"), "x\n")
    assert writing.differing_files(place, files) == ["other", "a", "none"]
    before = (place / "same").stat().st_ino
    assert writing.write_files(place, {"same": "x\n", "other": "x\n"})
    assert (place / "same").stat().st_ino == before
    assert [(place / name).read_text() for name in ("same", "other")] == ["x\n", "x\n"]
    with pytest.raises(OutputError, match="y: not all was written: File exists"):
        writing.write_files(place / "same" / "y", {"a": ""})
    assert writing.write_files(tmp_path / "new", {"a": ""})
    with pytest.raises(OutputError, match="got one with files in it"):
        writing.write_project(place, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "x"]
    (place / "link").symlink_to("same")
    with pytest.raises(OutputError, match="link"):
        writing.differing_files(place, {"link": ""})


OPTIONS: dict[str, Any] = dict.fromkeys(
    ("name", "output", "from_file", "from_server", "mcpgen")
) | dict.fromkeys(("revisions", "transports", "features"), ())


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


@pytest.mark.parametrize(
    ("name", "module"),
    [
        *(("a" * 60, "a" * 60), ("my-weather.x_y", "my_weather_x_y"), ("a1", "a1"), ("x", "x")),
        *((name, "") for name in ("a" * 61, "-x", "x-", "x--y", "x y", "\u0456x", "1x", "")),
        *((name, "") for name in ("mcp", "tests", "ruff", "msgspec", "json", "class", "async")),
    ],
)
def test_a_project_has_the_name_of_a_distribution_and_of_a_module(name: str, module: str) -> None:
    if module:
        assert projects.module_name(name) == module
        return
    with pytest.raises(UsageError) as caught:
        projects.module_name(name)
    is_taken = name.isalpha() and name.isascii() and len(name) < 60
    assert str(caught.value).endswith(f"try {name}-protocol") is is_taken


def test_a_project_needs_what_mcpgen_is_tested_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    stated = {*project["dependencies"], *(line for lines in extras for line in lines)}
    assert set(projects.REQUIREMENTS.values()) <= stated
