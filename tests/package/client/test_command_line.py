"""The commands of a package that use a server, as processes against a server of one's own."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from kit.processes import PACKAGE_ROOT
from kit.web_process import run
from mcpgen_runtime import REVISIONS, __version__

pytestmark = [pytest.mark.processes, pytest.mark.costly]

SERVER = """
    import os

    from mcpgen_runtime import Context, Server

    server = Server("weather", "1.0")

    @server.tool()
    async def book(ctx: Context) -> str:
        return (await ctx.elicit("Which seat?", int)).action

    @server.tool()
    def hostile() -> str:
        return "\\x1b[2Jgone\\nnext\\u202e"

    @server.tool()
    def variable() -> str:
        return os.environ.get("FORECAST_KEY", "absent")

    if __name__ == "__main__":
        server.run()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a server in it; processes of commands in this process find the package."""
    place = tmp_path_factory.mktemp("commands")
    (place / "weather.py").write_text(textwrap.dedent(SERVER))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PACKAGE_ROOT))
        yield place


def use(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the package in a folder."""
    return run(folder, "-m", "mcpgen_runtime", *words, **environment)


def use_here(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, where its words and its server are all that matters."""
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        importlib.import_module("mcpgen_runtime.__main__").main(words)
    code = ended.value.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def output(folder: Path, *words: str) -> str:
    """The standard output of a command that succeeds."""
    done = use_here(folder, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_terminal_acts_on_nothing_that_a_server_says(folder: Path) -> None:
    assert output(folder, "call", "weather:server", "hostile") == "\\x1b[2Jgone\nnext\\u202e\n"
    encoded = output(folder, "call", "weather:server", "hostile", "--json")
    assert encoded.isascii()
    assert "\x1b" not in encoded
    asked = use(folder, "call", "weather:server", "book")  # where there is no terminal
    assert asked.returncode == 1
    assert "elicitation" in asked.stdout + asked.stderr


def test_only_named_variables_reach_a_command(folder: Path) -> None:
    target = f"'{sys.executable}' weather.py"
    words = ("call", target, "variable", "--env", "PYTHONPATH")
    assert use(folder, *words, FORECAST_KEY="k").stdout == "absent\n"
    assert use(folder, *words, "--env", "FORECAST_KEY", FORECAST_KEY="k").stdout == "k\n"


def config(folder: Path) -> str:
    """A file with the configuration of two servers, one of which has inputs."""
    module = [sys.executable, "-m", "mcpgen_runtime", "serve", "weather:server"]
    entry = {"command": module[0], "args": module[1:], "cwd": "${workspaceFolder}"}
    env = {"PYTHONPATH": str(PACKAGE_ROOT)}
    secret = {**env, "FORECAST_KEY": "${input:place}-${input:key}"}
    inputs = [
        {"id": "key", "type": "promptString", "description": "Key of forecasts", "password": True},
        {"id": "place", "type": "pickString", "options": ["north", "south"], "default": "south"},
    ]
    servers = {"plain": {**entry, "env": env}, "secret": {**entry, "env": secret}}
    (folder / "mcp.json").write_text(json.dumps({"inputs": inputs, "servers": servers}))
    return "mcp.json"


def test_a_server_of_a_configuration_is_a_target(folder: Path) -> None:
    file = config(folder)
    done = use(folder, "call", f"{file}:plain", "variable", "--env", "FORECAST_KEY=mine")
    assert done.stdout == "mine\n"
    done = use(folder, "list", f"{file}:secret")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "servers.secret: env.FORECAST_KEY: ${input:key} has no value" in done.stderr


WRONG = {
    "arguments nested too deeply": (
        ("call", "weather:server", "book", "--args", "[" * 100_000),
        "nested too deeply",
    ),
    "a module": (("config", "weather", "--client", "cursor"), "did you mean weather:server"),
    "headers for a command": (("list", "python x.py", "--header", "A: b"), "URL"),
    "no server": (("list", "http://127.0.0.1:1/mcp"), "error: "),
    "no script": (("list", "python not_there.py"), "error: "),
    "no module": (("list", "nothing:server"), "error: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_command_line_ends_with_2_and_one_line(folder: Path, case: str) -> None:
    words, expected = WRONG[case]
    done = use_here(folder, *words)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_names_mcpgen_and_the_revisions(folder: Path) -> None:
    done = use_here(folder, "--version")
    revisions = ", ".join(REVISIONS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"mcpgen_runtime: mcpgen {__version__}, MCP {revisions}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python -m mcpgen_runtime insp", ["inspect "]),
        ("python -m mcpgen_runtime config a:b --client c", ["claude", "codex", "cursor"]),
    ],
)
def test_argcomplete_completes_words_of_the_package(
    folder: Path, line: str, words: list[str]
) -> None:
    marked = [sys.executable, "-m", "argcomplete._check_module", "mcpgen_runtime"]
    assert subprocess.run(marked, cwd=PACKAGE_ROOT, check=False).returncode == 0
    answer = folder / "words"
    use(
        folder,
        _ARGCOMPLETE="3",
        COMP_LINE=line,
        COMP_POINT=f"{len(line)}",
        _ARGCOMPLETE_STDOUT_FILENAME=f"{answer}",
    )
    completed = answer.read_text().split("\v")
    assert {*words} <= {*completed}
