"""`serve --workers` and `serve --reload`: processes that hang, die or are killed; hostile trees."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from kit.processes import PACKAGE_ROOT
from kit.raw_http import SECONDS
from kit.web_process import SERVE, Started, start_server

pytestmark = pytest.mark.attack

SERVER = """
    import asyncio, contextlib, os, subprocess, sys, time
    from multiprocessing import parent_process
    from mcpgen_runtime import Server
    from mcpgen_runtime.server.toolkit import workers

    workers._END_SECONDS = 0.5
    IS_WORKER = parent_process() is not None
    AT_IMPORT

    @contextlib.asynccontextmanager
    async def lifespan(server):
        IN_LIFESPAN
        yield

    server = Server("web", "1", drain=0.1, lifespan=lifespan)

    @server.tool()
    async def block() -> str:
        print("blocked", file=sys.stderr, flush=True)
        time.sleep(600)

    @server.tool()
    async def child() -> str:
        process = subprocess.Popen(["sleep", "600"])
        key = server._dispatcher.hooks.keys.keys()[0]
        print(process.pid, key.hex(), file=sys.stderr, flush=True)

    def create() -> Server:
        return server

    if __name__ == "__main__":
        from web import create
        Server.run_workers(create, 2, http="127.0.0.1:0")
"""
WORKERS = (*SERVE, "--workers", "2")
NOTES = 2
"""The lines that say what several processes lack."""


def write_server(folder: Path, at_import: str = "", in_lifespan: str = "") -> None:
    text = textwrap.dedent(SERVER).replace("AT_IMPORT", at_import)
    (folder / "web.py").write_text(text.replace("IN_LIFESPAN", in_lifespan or "pass"))


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 2 * SECONDS
    while not holds():
        assert time.monotonic() < deadline
        os.sched_yield()


def workers_of(pid: int) -> list[psutil.Process]:
    """The processes that serve for another one."""
    children = psutil.Process(pid).children()
    return [each for each in children if "resource_tracker" not in " ".join(each.cmdline())]


@contextmanager
def spawn_server(folder: Path, *argv: str) -> Generator[subprocess.Popen[str]]:
    """A server as a process; none of its processes is left in the end."""
    process = subprocess.Popen(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        family: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def is_over(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def call(server: Started, tool: str) -> None:
    """Call a tool, and skip the lines of the start."""
    for _ in range(NOTES):
        server.hear()
    server.call(tool)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_whose_event_loop_is_blocked_ends_all_the_same(tmp_path: Path, by: int) -> None:
    write_server(tmp_path)
    with start_server(tmp_path, "web.py") as server:
        workers = workers_of(server.process.pid)
        assert len(workers) == 2
        call(server, "block")
        server.says("blocked")
        server.process.send_signal(by)
        server.process.communicate(timeout=SECONDS)  # ends with the last of them
        until(lambda: all(map(is_over, workers)))


SAYS = "open('began', 'w').close(); "


@pytest.mark.timeout(180)
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    ("argv", "at_import", "in_lifespan"),
    [
        (WORKERS, f"if IS_WORKER: {SAYS} time.sleep(600)", ""),
        (("web.py",), "", f"{SAYS} time.sleep(600)"),
        (("web.py",), "", f"{SAYS} await asyncio.sleep(600)"),
    ],
    ids=["import", "blocked lifespan", "lifespan"],
)
def test_workers_that_hang_at_start_end_all_the_same(
    tmp_path: Path, by: int, argv: tuple[str, ...], at_import: str, in_lifespan: str
) -> None:
    write_server(tmp_path, at_import, in_lifespan)
    with spawn_server(tmp_path, *argv) as process:
        until((tmp_path / "began").exists)
        process.send_signal(by)
        process.communicate(timeout=3 * SECONDS)  # ends with the last of them


@pytest.mark.timeout(180)
def test_workers_that_die_at_start_are_started_a_few_times(tmp_path: Path) -> None:
    write_server(tmp_path, "if IS_WORKER: os._exit(7)")
    with spawn_server(tmp_path, *WORKERS) as process:
        _, errors = process.communicate(timeout=6 * SECONDS)
    assert process.returncode == 2
    lines = errors.splitlines()
    assert re.fullmatch(r"error: \d workers ended before they served", lines[-1])
    assert 4 <= len([line for line in lines if "ended with exit code" in line]) <= 10


@pytest.mark.timeout(180)
def test_workers_that_die_again_and_again_cost_little(tmp_path: Path) -> None:
    write_server(tmp_path, f"if os.path.exists({str(tmp_path / 'broken')!r}): os._exit(7)")
    with start_server(tmp_path, *WORKERS) as server:
        supervisor = psutil.Process(server.process.pid)
        descriptors = supervisor.num_fds()
        (tmp_path / "broken").touch()
        for worker in workers_of(supervisor.pid):
            worker.kill()
        before = time.monotonic()
        ended = 0
        while ended < 4:
            ended += "ended with exit code" in server.hear()
        assert time.monotonic() - before > 1
        (tmp_path / "broken").unlink()
        until(lambda: len(workers_of(supervisor.pid)) == 2)
        assert supervisor.num_fds() <= descriptors + 4
        assert server.end()[0] == 0


def test_the_state_key_is_in_no_command_line_or_environment(tmp_path: Path) -> None:
    write_server(tmp_path)
    with start_server(tmp_path, *WORKERS) as server:
        call(server, "child")
        pid, key = server.hear().split()
        assert len(key) == 64
        supervisor = psutil.Process(server.process.pid)
        workers = supervisor.children(recursive=True)
        for each in (supervisor, *workers, psutil.Process(int(pid))):
            for name in ("cmdline", "environ"):
                text = Path(f"/proc/{each.pid}/{name}").read_bytes()
                assert key.encode() not in text
                assert bytes.fromhex(key) not in text
        sockets = [each for each in psutil.Process(int(pid)).net_connections() if each.laddr]
        assert sockets == []
        os.kill(int(pid), signal.SIGKILL)
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=SECONDS)


def reload_arguments() -> tuple[str, ...]:
    """The arguments that serve what changes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return (*SERVE[:-1], f"127.0.0.1:{port}", "--reload")


def test_a_reloaded_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    write_server(tmp_path)
    with start_server(tmp_path, *reload_arguments()) as server:
        [child] = workers_of(server.process.pid)
        server.process.kill()
        server.process.communicate(timeout=SECONDS)
        until(lambda: is_over(child))


def test_many_changes_at_once_are_one_reload(tmp_path: Path) -> None:
    write_server(tmp_path)
    (tmp_path / "package").mkdir()
    with start_server(tmp_path, *reload_arguments()) as server:
        for number in range(2000):
            (tmp_path / "package" / f"{'module' * 20}{number}.py").touch()
        assert server.hear().startswith("serving at ")
        assert server.end()[0] == 0


def test_hostile_trees_are_watched_in_bounded_time_and_memory(tmp_path: Path) -> None:
    write_server(tmp_path)
    (tmp_path / "itself").symlink_to(tmp_path)
    (tmp_path / "root").symlink_to("/")
    (tmp_path / "nothing").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "fifo.py")
    for number in range(6000):
        (tmp_path / "many" / f"{number}").mkdir(parents=True)
    deep = tmp_path / "deep"
    while len(str(deep)) < 3500:
        deep /= "d" * 50
    deep.mkdir(parents=True)
    with spawn_server(tmp_path, *reload_arguments()) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        assert sorted(line.partition(" at ")[0] for line in lines)[1] == "serving"
        assert any("only 4000 directories below" in line for line in lines)
        watches = Path(f"/proc/{process.pid}/fdinfo")
        until(lambda: 3999 <= count(watches) <= 4001)
        assert psutil.Process(process.pid).memory_info().rss < 200 * 2**20
        (tmp_path / "web.py").touch()
        while not process.stderr.readline().startswith("serving at "):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def count(fdinfo: Path) -> int:
    """The directories that a process watches."""
    return sum(each.read_text().count("inotify wd:") for each in fdinfo.iterdir())


def test_a_new_directory_is_watched(tmp_path: Path) -> None:
    write_server(tmp_path)
    with start_server(tmp_path, *reload_arguments()) as server:
        (tmp_path / "package").mkdir()
        assert server.hear().startswith("serving at ")
        watches = Path(f"/proc/{server.process.pid}/fdinfo")
        until(lambda: count(watches) == 2)
        (tmp_path / "package" / "module.py").touch()
        assert server.hear().startswith("serving at ")
