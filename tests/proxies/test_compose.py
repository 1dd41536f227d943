"""The compose file of docs/scaling.md without containers: its commands, and its nginx.conf."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from mcpgen_runtime import connect
from mcpgen_runtime.errors import RemoteError
from package.http_process import Process
from package.server.shared.engine import program
from package.wire import SESSIONS
from proxies.programs import free_port, nginx_server, wait_for

pytestmark = [pytest.mark.proxies, pytest.mark.timeout(120)]

PAGE = Path(__file__).parents[2] / "docs/scaling.md"
ADDRESS = "127.0.0.1"
ERROR_SECONDS = 5.0

CITY = """
    import os
    import anyio
    from mcpgen_runtime import Context, Server

    server = Server("city", state_key=b"the same in all processes")

    @server.tool
    def pid() -> str:
        return str(os.getpid())

    @server.tool
    async def hang(ctx: Context) -> None:
        await ctx.progress(os.getpid())
        await anyio.sleep_forever()

    @server.tool
    def add(name: str) -> None:
        server.tool(name)(pid)
"""


def block(language: str) -> str:
    """The text of the page's block of a language that tells of three workers."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [text] = [each for each in blocks if "three" in each]
    return str(text)


class Site:
    """The services, as processes at ports of this machine.

    Attributes:
        url: Where clients reach them.
        workers: The processes of the server, by name.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        services: dict[str, Any] = yaml.safe_load(block("yaml"))["services"]
        self._ports = {name: free_port() for name in services}
        self.workers: dict[str, Process] = {}
        (folder / "city.py").write_text(textwrap.dedent(CITY))
        for name, service in services.items():
            command = shlex.split(service["command"])
            if name == "nginx":
                stack.enter_context(self._nginx(folder, command))
            else:
                process = stack.enter_context(self._started(folder, name, command))
                if name != "engine":
                    self.workers[name] = process
        self.url = f"http://{ADDRESS}:{self._ports['nginx']}/mcp"

    @contextmanager
    def _started(self, folder: Path, name: str, command: list[str]) -> Iterator[Process]:
        """A service but nginx; other than in its container, it has a port of this machine."""
        port = self._ports[name]
        if name == "engine":
            command = [program(), *command[1:], "--bind", ADDRESS, "--port", f"{port}"]
        else:
            assert command[:3] == ["python", "-m", "pkg"]
            words = [self._placed(each) for each in command[3:]]
            words[words.index("0.0.0.0:8000")] = f"{ADDRESS}:{port}"
            command = [sys.executable, "-m", "mcpgen_runtime", *words]
        process = Process(command, {"PYTHONSAFEPATH": ""}, folder)
        try:
            wait_for(process, port)
            yield process
        finally:
            process.kill()

    @contextmanager
    def _nginx(self, folder: Path, command: list[str]) -> Iterator[None]:
        own = self._placed(block("nginx"))
        own = own.replace("listen 80;", f"listen {ADDRESS}:{self._ports['nginx']};")
        with nginx_server(folder, own, self._ports["nginx"], command[1:]):
            yield

    def _placed(self, text: str) -> str:
        """A text with addresses of this machine for those of the services, and their name."""
        services = "|".join(self._ports)
        return re.sub(
            rf"\b({services}):\d+",
            lambda service: f"{ADDRESS}:{self._ports[service[1]]}",
            text.replace("mcp.example.com", ADDRESS),
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_session_goes_on_as_a_worker_is_killed(site: Site) -> None:
    pids = {process.pid for process in site.workers.values()}
    async with (
        connect(site.url, revision=SESSIONS[-1]) as client,
        client.listen(tools=True) as changes,
    ):
        assert await served_by(client) == pids
        await client.call_tool("add", {"name": "first"})
        await anext(changes)
        begun: list[float] = []

        async def kill(pid: float, *_: Any) -> None:
            os.kill(int(pid), signal.SIGKILL)
            begun.append(time.monotonic())
            pids.remove(int(pid))

        with pytest.raises(RemoteError, match="it may have been acted on"):
            await client.call_tool("hang", {}, on_progress=kill)
        assert time.monotonic() - begun[0] < ERROR_SECONDS
        assert await served_by(client) == pids
        await client.call_tool("add", {"name": "second"})
        await anext(changes)


async def served_by(client: Any) -> set[int]:
    """The processes that serve calls of a session."""
    with anyio.fail_after(ERROR_SECONDS):
        results = [await client.call_tool("pid") for _ in range(12)]
    return {int(each.content[0].text) for each in results}
