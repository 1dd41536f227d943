"""A server as a process: the command line, standard streams, signals, and a bounded end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.limits import SetLimit
from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import REVISIONS, Server, connect
from mcpgen_runtime.__main__ import main
from mcpgen_runtime.facts import Lifecycle
from mcpgen_runtime.server.commands.serve_command import load
from mcpgen_runtime.server.commands.serve_reload import watched_directories

REVISION = max(REVISIONS.of(Lifecycle.HANDSHAKE))

WEATHER = """
    import os, subprocess, sys, time
    from mcpgen_runtime.server.chosen import Server
    print("imported")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    server = Server("weather", "1", drain=0.2)

    @server.tool()
    def city(name: str) -> str:
        print("printed", flush=True)
        os.write(1, b"written")
        return name

    @server.tool()
    def stuck() -> str:
        time.sleep(600)
        return "late"

    @server.tool()
    async def slow() -> str:
        import anyio
        await anyio.sleep(600)
        return "late"
"""

RUNNING = """
    from mcpgen_runtime import Server
    server = Server("running")
    server.run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a server in it."""
    (tmp_path / "weather.py").write_text(textwrap.dedent(WEATHER))
    (tmp_path / "failing.py").write_text("raise RuntimeError('while importing')\n")
    (tmp_path / "running.py").write_text(textwrap.dedent(RUNNING))
    (tmp_path / "needy.py").write_text("import not_installed_at_all\n")
    return tmp_path


def start(folder: Path, *argv: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)}
    return subprocess.Popen(
        [sys.executable, *argv],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def process(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has answered `initialize`."""
    argv: tuple[str, ...] = getattr(request, "param", ("-m", "mcpgen_runtime", "serve", "weather"))
    with start(folder, *argv) as process:
        say(process, "initialize", 0, INITIALIZE)
        assert hear(process)["result"]["serverInfo"]["name"] == "weather"
        say(process, "notifications/initialized")
        yield process
        process.kill()


INITIALIZE = {
    "protocolVersion": REVISION,
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def say(
    process: subprocess.Popen[bytes], method: str, identifier: int | None = None, params: Any = None
) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if identifier is not None:
        message["id"] = identifier
    if params is not None:
        message["params"] = params
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def end(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Close standard input and wait; what is left on the two outputs."""
    out, err = process.communicate(timeout=30)
    return out.decode(), err.decode()


SERVING = [
    ("-m", "mcpgen_runtime", "serve", "weather"),
    ("-m", "mcpgen_runtime", "serve", "weather:server", "--backend", "trio"),
]


@pytest.mark.parametrize("process", SERVING, indirect=True)
def test_prints_go_to_standard_error_and_the_stream_stays_clean(
    process: subprocess.Popen[bytes],
) -> None:
    say(process, "tools/call", 1, {"name": "city", "arguments": {"name": "Oslo"}})
    assert hear(process)["result"]["content"] == [{"type": "text", "text": "Oslo"}]
    out, err = end(process)
    assert out == ""
    for text in ("imported", "from a child", "printed", "written"):
        assert text in err
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("process", SERVING, indirect=True)
def test_a_signal_ends_it_without_a_traceback(
    process: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    say(process, "tools/call", 1, {"name": "slow"})
    say(process, "ping", 2)
    assert hear(process) == {"jsonrpc": "2.0", "id": 2, "result": {}}
    process.send_signal(number)
    assert process.wait(30) == 0
    assert "Traceback" not in end(process)[1]


@pytest.mark.parametrize("tool", ["slow", "stuck"])
def test_the_end_of_input_ends_it_whatever_still_runs(
    process: subprocess.Popen[bytes], tool: str
) -> None:
    say(process, "tools/call", 1, {"name": tool})
    say(process, "ping", 2)
    assert hear(process)["id"] == 2
    end(process)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("nowhere:server", "there is no module 'nowhere' in"),
        ("failing", "RuntimeError: while importing"),
        ("needy", "No module named 'not_installed"),
    ],
)
def test_invalid_targets_are_one_line_or_the_error_of_the_module(
    folder: Path, target: str, complaint: str
) -> None:
    with start(folder, "-m", "mcpgen_runtime", "serve", target) as process:
        out, err = end(process)
    assert (process.returncode, out) == (2, "")
    assert complaint in err
    is_of_the_module = target in ("failing", "needy")  # which is shown whole
    assert ("Traceback" in err) == is_of_the_module
    assert err.splitlines()[-1].startswith("error: ") or is_of_the_module


TARGETS = {
    "the name server": ("server = Server('a'); app = Server('b')", "MODULE", "a"),
    "the name mcp": ("weather = Server('b'); mcp = Server('a')", "MODULE", "a"),
    "an app that is something else": ("app = 3; mcp = Server('a')", "MODULE", "a"),
    "the only one": ("weather = same = Server('a')", "MODULE", "a"),
    "a function": ("def create(n=1): return Server('a')", "MODULE:create", "a"),
    "a method": (
        "class Made:\n @staticmethod\n def new(): return Server('a')",
        "MODULE:Made.new",
        "a",
    ),
}

COMMANDS = ("serve", "announce", "list", "call", "read", "prompt", "inspect", "config", "trace")
UNCLEAR = {
    "several": ("one = Server('a'); two = Server('b')", "MODULE"),
    "a function with arguments": ("def create(n): ...", "MODULE:create"),
    "a function that returns something else": ("def create(): return 3", "MODULE:create"),
    "none": ("other = 3", "MODULE"),
    "another name": ("server = Server('a')", "MODULE:nobody"),
    "a path": ("", "./a/MODULE.py"),
    "a file": ("", "MODULE.py:mine"),
    "no name of a module": ("", "MODULE-1"),
    "no module": ("", "MODULE_2:mine"),
    "a module inside a module": ("", "MODULE.inner"),
    "a module that runs its server": ("server = Server('a'); server.run()", "MODULE"),
}


def write_module(folder: Path, text: str, target: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The target for a module with a text, in the current directory."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [f"{folder}/later", *sys.path])
    module = f"made_{re.sub(r'[^a-z0-9]', '_', folder.name)}"
    (folder / f"{module}.py").write_text(f"from mcpgen_runtime import Server\n{text}\n")
    (folder / "later").mkdir()
    (folder / "later" / f"{module}.py").write_text("raise ValueError('of the same name')\n")
    return target.replace("MODULE", module)


@pytest.mark.parametrize("case", TARGETS)
def test_a_server_is_found_by_name_or_guess(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text, target, expected = TARGETS[case]
    text = f"import os; os.write(1, b'imported')\n{text}"
    server = load(write_module(tmp_path, text, target, monkeypatch))
    os.write(1, b"loaded")
    assert capfd.readouterr() == ("loaded", "imported")
    assert isinstance(server, Server)
    assert server.name == expected


@pytest.mark.parametrize("case", UNCLEAR)
def test_ambiguous_targets_are_explained_in_one_line(
    tmp_path: Path,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    with pytest.raises(SystemExit) as ended:
        load(write_module(tmp_path, *UNCLEAR[case], monkeypatch))
    assert ended.value.code == 2
    [path] = tmp_path.glob("*.py")
    said = capsys.readouterr().err.replace(path.stem, "MODULE").replace(str(tmp_path), "FOLDER")
    assert said == snapshot


def test_each_command_says_what_it_takes(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    texts = []
    for command in ("", *COMMANDS):
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert ended.value.code == 0
        texts.append(" ".join(capsys.readouterr().out.split()))
    assert texts == snapshot


CHANGING = """
from mcpgen_runtime import Server
server = Server("{name}")
"""


def test_directories_of_the_users_code_are_watched_nearest_first(
    tmp_path: Path, set_limit: SetLimit
) -> None:
    for name in ("b/d", "a/c/e", ".git/x", "__pycache__", "node_modules/y", "env/lib"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "module.py").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    watched = [tmp_path / name for name in ("", "a", "b", "a/c", "b/d", "a/c/e")]
    assert watched_directories(tmp_path) == watched
    set_limit("pkg.server.commands.serve_reload.WATCHED_DIRECTORIES", 4)
    assert watched_directories(tmp_path) == watched[:4]
    assert watched_directories(tmp_path / "gone") == [tmp_path / "gone"]


@contextmanager
def run_reloading(module: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves a module over HTTP, and again after changes; it is ended by SIGTERM."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = ("serve", module.stem, "--http", f"127.0.0.1:{port}", "--reload")
    process = start(module.parent, "-m", "mcpgen_runtime", *serve)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def served_at(process: subprocess.Popen[bytes]) -> str:
    """The URL at which a process begins to serve."""
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("serving at "), line
    return line.split()[-1]


def test_a_change_is_served_by_a_new_process_at_the_same_address(tmp_path: Path) -> None:
    module = tmp_path / "changing.py"
    module.write_text(CHANGING.format(name="before"))
    with run_reloading(module) as process:
        before = anyio.run(served_name, served_at(process))
        module.write_text(CHANGING.format(name="after"))
        after = anyio.run(served_name, served_at(process))
    assert (before, after) == ("before", "after")


async def served_name(url: str) -> str:
    """The name of the server at a URL."""
    async with connect(url) as client:
        return str(client.server_info["name"])
