"""Servers over HTTP as child processes: their URLs, their memory, their end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .measure import FASTMCP, FLOOR, OURS, SDK
from .processes import ROOT, environment

SCRIPTED = {OURS: "ours", SDK: "official", FASTMCP: "fastmcp", FLOOR: "echo"}
"""What `http_server.py` calls each contender."""


@dataclass(frozen=True)
class HttpServer:
    """A server that runs.

    Attributes:
        url: Its endpoint; of a protected server, with an access token as the fragment.
        pid: Its process.
    """

    url: str
    pid: int

    def memory(self) -> int:
        """Bytes of it that are in memory now."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def cpu_time(self) -> float:
        """Seconds that it has run on a CPU."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(contender: str) -> Iterator[HttpServer]:
    """Run the server of a contender."""
    with subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.http_server", SCRIPTED.get(contender, contender)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode().strip()
            assert url, f"the server of {contender} did not start"
            yield HttpServer(url, process.pid)
        finally:
            process.stdin.close()
            process.wait(30)


@contextmanager
def all_serving(contenders: Mapping[str, str] = SCRIPTED) -> Iterator[dict[str, HttpServer]]:
    """Run the servers of several contenders side by side."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(serving(name)) for name in contenders}
