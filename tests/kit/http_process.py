"""HTTP servers and clients in processes of their own, which tests kill, end and start again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from kit.processes import PACKAGE_ROOT

SERVER = Path(__file__).parent / "http_process_server.py"
SECONDS = 20
"""How long anything may take before a test counts it as hanging."""

_URL = re.compile(r"serving at (http://127\.0\.0\.1:(\d+)/\S*)")
_NOISE = re.compile(r"Traceback|ExceptionGroup|log (ERROR|CRITICAL)|Warning:")
_GRACE_IS_OVER = re.compile(r"log ERROR uvicorn.error Cancel \d+ running task\(s\), .*")


class Process:
    """A process whose lines on standard error are kept, with those of its output if `merged`."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] = {},
        folder: Path | None = None,
        *,
        merged: bool = False,
    ) -> None:
        self._folder = folder
        self._merged = merged
        self._env = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **env}
        self.lines: list[str] = []
        self._told = threading.Condition()
        self._launch(command)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    async def until(self, pattern: str, times: int = 1) -> None:
        """Wait until it has said lines that match a pattern as a whole, so many."""
        await to_thread.run_sync(self.wait_for, pattern, times)

    def wait_for(
        self, pattern: str, times: int = 1, seconds: float = SECONDS
    ) -> list[re.Match[str]]:
        """Wait as `until` does, in this thread, and return the matches."""
        matches: list[re.Match[str]] = []

        def said() -> bool:
            matches[:] = filter(None, (re.fullmatch(pattern, line) for line in self.lines))
            return len(matches) >= times or self._reader_ended

        with self._told:
            self._told.wait_for(said, seconds)
        assert len(matches) >= times, (pattern, times, self.lines)
        return matches

    def said(self, line: str) -> int:
        """How often it has said a line."""
        return self.lines.count(line)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it without a chance to say good-bye, unless it has ended."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """Ask it to end, unless it has ended; its exit code."""
        return self._end(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until it has ended after `send`; its exit code."""
        return await to_thread.run_sync(self._end, None)

    def check_quiet(self) -> None:
        """See that it said nothing that tells of a mistake of its own."""
        noise = [line for line in self.lines if _NOISE.search(line)]
        assert [line for line in noise if not _GRACE_IS_OVER.match(line)] == [], self.lines

    def _launch(self, command: Sequence[str]) -> None:
        self._reader_ended = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self._merged else None,
            stderr=subprocess.STDOUT if self._merged else subprocess.PIPE,
            text=True,
            env=self._env,
            cwd=self._folder,
        )
        output = self._process.stdout or self._process.stderr
        assert output is not None
        self._output = output
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _end(self, by: signal.Signals | None) -> int:
        if by is not None and self._process.poll() is None:
            self._process.send_signal(by)
        try:
            code = self._process.wait(SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
        self._reader.join(SECONDS)
        self._output.close()
        return code

    def _read(self) -> None:
        for line in self._output:
            with self._told:
                self.lines.append(line.rstrip("\n"))
                self._told.notify_all()
        with self._told:
            self._reader_ended = True
            self._told.notify_all()


class HttpProcess(Process):
    """A server at a free port, started again at the same one."""

    def __init__(
        self,
        limits: Mapping[str, Any] | None = None,
        drain: float = 0.5,
        env: Mapping[str, str] = {},
        **how: Any,
    ) -> None:
        self._how = json.dumps({"limits": dict(limits or {}), **how})
        self._starts = 1
        super().__init__(self._command(0), {"DRAIN": str(drain), **env})
        self.url, port = self.wait_for(_URL.pattern)[0].groups()
        self.port = int(port)
        self.sse_url = f"http://127.0.0.1:{port}{how.get('sse_path')}"

    def start(self) -> None:
        """Start it again, and wait until it serves."""
        self._starts += 1
        self._launch(self._command(self.port))
        self.wait_for(_URL.pattern, self._starts)

    async def restarted(self) -> None:
        """Start it again."""
        await to_thread.run_sync(self.start)

    async def refusing(self) -> None:
        """Wait until it takes no connections any more."""
        with anyio.fail_after(SECONDS), suppress(OSError):
            while True:
                async with await anyio.connect_tcp("127.0.0.1", self.port):
                    pass

    def _command(self, port: int) -> list[str]:
        return [sys.executable, str(SERVER), f"127.0.0.1:{port}", self._how]


@contextmanager
def http_process(**how: Any) -> Iterator[HttpProcess]:
    """A server, killed in the end, that must not have told of a mistake of its own till then."""
    server = HttpProcess(**how)
    try:
        yield server
    finally:
        server.kill()
    server.check_quiet()
