"""A server as a process: the command line, standard streams, signals, and a bounded end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import REVISIONS
from mcpgen_runtime.facts import Lifecycle

REVISION = max(REVISIONS.of(Lifecycle.HANDSHAKE))

WEATHER = """
    import os, subprocess, sys, time
    from mcpgen_runtime.server.chosen import Server
    print("imported", flush=True)
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
        (
            "weather:nobody",
            "expected a Server named 'nobody' in weather, got nothing; it has server",
        ),
        ("weather.py", "did you mean weather:server?"),
        ("./deep/weather.py:mine", "did you mean deep.weather:mine?"),
        ("running", "put server.run() under `if __name__ == '__main__':`"),
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
