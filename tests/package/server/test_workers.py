"""Several processes that serve at one port: `--workers`, and `Server.run_workers`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.raw_http import SECONDS
from kit.web_process import REVISION, SERVE, Started, WebClient, rest, run, start_server
from kit.web_process import WEB as ONE
from kit.wire import SESSIONS, newest_session, streamable
from mcpgen_runtime import Server

pytestmark = [pytest.mark.processes, pytest.mark.costly]

PRINT = 'print("left", file=sys.stderr, flush=True)'
MORE = """
    import asyncio
    from dataclasses import dataclass
    from mcpgen_runtime import Context

    asyncio.run(asyncio.sleep(0))  # a module may run an event loop while it is imported
    inner = Server("inner")

    @dataclass
    class Name:
        name: str

    @server.tool()
    def pid() -> str:
        return str(os.getpid())

    @server.tool()
    @inner.tool()
    async def greet(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return f"Hello, {answer.content.name}, from {os.getpid()}"

    server.mount(inner, prefix="inner")

    def create() -> Server:
        return server

    if __name__ == "__main__":
        from web import create
        Server.run_workers(create, 2, http="127.0.0.1:0")
"""
WHOLE = 'os.write(2, b"left\\n")'  # beside those of other processes
ONE = ONE.replace("app = server.asgi()", "").replace(PRINT, WHOLE).partition("    if __name__")[0]
WEB = textwrap.dedent(ONE + MORE)
WORKERS = (*SERVE, "--workers", "2")

ABLE: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a server in it."""
    (tmp_path / "web.py").write_text(WEB)
    return tmp_path


def worker_of(server: Started) -> int:
    """The process that served a call."""
    return int(WebClient(server.port, REVISION).call("pid")[1])


@contextmanager
def pause_process(pid: int) -> Iterator[None]:
    """While the block runs, a process does nothing, so that others serve."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def run_workers(
    folder: Path, *argv: str, **environment: str
) -> Iterator[tuple[Started, list[str]]]:
    """A server of two processes, and the lines that say what they lack."""
    with start_server(folder, *(argv or WORKERS), **environment) as server:
        assert server.process.stderr is not None
        yield server, [server.process.stderr.readline() for _ in range(2)]


def two_workers(server: Started) -> tuple[int, int]:
    """The processes that serve."""
    one = worker_of(server)
    with pause_process(one):
        return one, worker_of(server)


def are_gone(*pids: int) -> bool:
    """Whether processes have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return False
    return True


@pytest.fixture(scope="module")
def shared_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A server of two processes, for several tests."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "web.py").write_text(WEB)
    with run_workers(folder) as (server, _):
        yield server
        assert server.end()[0] == 0


@pytest.mark.parametrize(("more", "kind"), [((), "sealed"), (("--stateless",), "no")])
def test_limits_of_several_processes_are_printed_at_the_start(
    folder: Path, more: tuple[str, ...], kind: str
) -> None:
    with run_workers(folder, *WORKERS, *more) as (server, (sessions, changes)):
        assert server.end()[0] == 0
    assert sessions.startswith(f"2 workers: {kind} sessions: clients of ")
    assert all(revision in sessions for revision in SESSIONS)
    assert "announced by the worker in which it happens" in changes
    assert REVISION in changes


def test_one_worker_serves_with_sessions_as_without_the_option(folder: Path) -> None:
    with start_server(folder, *SERVE, "--workers", "1") as server:
        assert worker_of(server) == server.process.pid
        code, _, err, _ = server.end()
    assert (code, err) == (0, "left\n")


@pytest.mark.parametrize("argv", [WORKERS, ("web.py",)], ids=["command line", "run_workers"])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_each_process_serves_and_a_signal_ends_all(
    folder: Path, argv: tuple[str, ...], by: int
) -> None:
    with run_workers(folder, *argv) as (server, _):
        one, two = two_workers(server)
        assert len({one, two, server.process.pid}) == 3
        code, out, err, _ = server.end(by)
    assert (code, out) == (0, "")
    assert err.splitlines() == ["left", "left"]
    assert are_gone(one, two)


@pytest.mark.parametrize("tool", ["slow", "stuck"])
def test_a_slow_call_is_answered_when_its_time_is_over(folder: Path, tool: str) -> None:
    with run_workers(folder) as (server, _):
        calling = server.call(tool, **({"seconds": 600} if tool == "slow" else {}))
        server.says(f"{tool} begins")
        code, _, err, _ = server.end()
        answer = rest(calling)
    assert code == 0
    assert "left" in err
    assert answer.startswith(b"HTTP/1.1 503")


def test_a_hangup_replaces_the_processes_with_changed_code(folder: Path) -> None:
    with run_workers(folder) as (server, _):
        before = two_workers(server)
        text = (folder / "web.py").read_text().replace("str(os.getpid())", "f'{os.getpid()}0'")
        (folder / "web.py").write_text(text)
        server.process.send_signal(signal.SIGHUP)
        server.says("left")
        server.says("left")
        now = worker_of(server)
        assert now % 10 == 0
        assert now // 10 not in before
        assert server.end()[0] == 0
    assert are_gone(*before)


@streamable
def test_either_process_serves_each_request_of_a_revision(
    shared_workers: Started, revision: str
) -> None:
    one, two = two_workers(shared_workers)
    for other, served in ((one, two), (two, one)):
        with pause_process(served):
            client = WebClient(shared_workers.port, revision)
        with pause_process(other):
            assert client.call("pid") == (200, str(served))


@pytest.mark.parametrize("tool", ["greet", "inner_greet"])
def test_a_question_of_one_process_is_answered_to_another(folder: Path, tool: str) -> None:
    with run_workers(folder) as (server, _):
        client = WebClient(server.port, REVISION)

        def ask(**more: Any) -> Any:
            message = client.message(tool, capabilities=ABLE)
            message["params"] |= more
            return json.loads(client.post(message)[2])["result"]

        one, two = two_workers(server)
        with pause_process(two):
            asked = ask()
        assert asked["resultType"] == "input_required"
        [key] = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
        with pause_process(one):
            state = asked["requestState"]
            said = ask(inputResponses=answers, requestState=state)
        assert said["content"][0]["text"] == f"Hello, Ada, from {two}"
        os.kill(one, signal.SIGKILL)  # one that is started later has the same key
        third = replacement_pid(server, one)
        with pause_process(two):
            said = ask(inputResponses=answers, requestState=state)
        assert said["content"][0]["text"] == f"Hello, Ada, from {third}"
        assert server.end()[0] == 0


@newest_session
def test_a_session_outlives_the_process_that_opened_it(folder: Path, revision: str) -> None:
    with run_workers(folder) as (server, _):
        one, two = two_workers(server)
        with pause_process(two):
            client = WebClient(server.port, revision)
        os.kill(one, signal.SIGKILL)
        third = replacement_pid(server, one)
        for other, served in ((two, third), (third, two)):
            with pause_process(other):
                assert client.call("pid") == (200, str(served))
        assert server.end()[0] == 0


def replacement_pid(server: Started, killed: int) -> int:
    """The process that was started for one that was killed, once it serves."""
    assert server.process.stderr is not None
    line = server.process.stderr.readline()
    begin = f"worker {killed} ended with exit code -9; started "
    assert line.startswith(begin)
    new = int(line.removeprefix(begin))
    deadline = time.monotonic() + SECONDS
    while worker_of(server) != new:
        assert time.monotonic() < deadline
    return new


def test_workers_end_when_their_parent_process_is_killed(folder: Path) -> None:
    with run_workers(folder) as (server, _):
        two_workers(server)
        server.process.kill()
        _, err = server.process.communicate(timeout=SECONDS)  # ends with the last of them
    assert err.splitlines() == ["left", "left"]


FAILS = "import multiprocessing\nif multiprocessing.parent_process():\n    1 / 0\n"


@pytest.mark.parametrize(
    ("text", "environment", "error"),
    [
        pytest.param("", {"FAIL": "1"}, "RuntimeError: no database", id="the lifespan"),
        pytest.param(FAILS, {}, "ZeroDivisionError", id="the module, in a worker"),
    ],
)
def test_what_fails_in_a_worker_ends_all_with_its_error(
    folder: Path, text: str, environment: dict[str, str], error: str
) -> None:
    (folder / "web.py").write_text(text + WEB)
    done = run(folder, *WORKERS, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
    assert "serving at" not in done.stderr
    assert "never awaited" not in done.stderr
    assert done.stderr.endswith("error: a worker could not start to serve; its error is above\n")


def test_without_a_package_it_says_what_to_install(folder: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography.exceptions'] = None\n"
        "from mcpgen_runtime.__main__ import main\n"
        "main(['serve', 'web', '--http', '127.0.0.1:0', '--workers', '2'])\n"
    )
    done = run(folder, "-c", code)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: sessions='sealed' needs the package 'cryptography'")


def plain() -> Server:
    return Server("plain")


def test_errors_of_run_workers_name_the_alternative() -> None:
    with pytest.raises(ValueError, match=r"expected at least 2, got 1; run\(\) is one process"):
        Server.run_workers(plain, 1, http=":0")
    with pytest.raises(ValueError, match="expected sessions='sealed'"):
        Server.run_workers(plain, 2, http=":0", sessions="process")
    with pytest.raises(ValueError, match="HTTP\\+SSE has sessions only"):
        Server.run_workers(plain, 2, http=":0", sse_path="/sse")
    with pytest.raises(TypeError, match="expected a function of a module"):
        Server.run_workers(lambda: Server("local"), 2, http=":0")
    with pytest.raises(TypeError, match=r"Server\.run_workers\(function, 4, http=\.\.\.\)"):
        plain().run(http=":0", workers=2)  # type: ignore[call-arg]  # as other SDKs have it


def test_a_function_of_the_main_module_of_a_package_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "weather"
    package.mkdir()
    (package / "__main__.py").write_text(
        "from mcpgen_runtime import Server\n"
        "def create() -> Server:\n"
        "    return Server('weather')\n"
        "Server.run_workers(create, 2, http='127.0.0.1:0')\n"
    )
    done = run(tmp_path, "-m", "weather")
    assert done.returncode == 1
    assert "weather.__main__, which `python -m` runs: move it" in done.stderr.splitlines()[-1]
