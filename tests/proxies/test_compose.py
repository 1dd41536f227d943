"""Compose files without containers, of docs/scaling.md and an example: commands and proxies."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from anyio import to_thread

from example_programs import EXAMPLES, build, run
from kit.engine import program
from kit.http_process import Process
from kit.wire import ONE_OF_EACH, SESSIONS
from mcpgen_runtime import HttpStatusError, McpError, RemoteError, ResponseLostError, connect
from proxies.programs import caddy_server, free_port, haproxy_server, nginx_server, wait_for

pytestmark = [pytest.mark.proxies, pytest.mark.timeout(120)]

PAGE = Path(__file__).parents[2] / "docs/scaling.md"
ADDRESS = "127.0.0.1"
ERROR_SECONDS = 5.0
CALLERS = 8
"""Tasks that make calls while workers are replaced."""

SERVED = 20
"""Calls that each new worker serves before the calls end."""

CITY = """
    import os
    import signal
    import anyio
    from mcpgen_runtime import Context, Server

    server = Server("city", state_key=b"the same in all processes")

    @server.tool(annotations={"readOnlyHint": True})
    def pid() -> str:
        return str(os.getpid())

    def crash(once: str) -> str:
        # It ends the process, unless there is a file: then it has done so before.
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return "served"
        os.kill(os.getpid(), signal.SIGKILL)
        return "killed"

    server.tool("reads", annotations={"readOnlyHint": True})(crash)
    server.tool("acts")(crash)

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
    """The services, as processes at ports of this machine."""

    def __init__(self, folder: Path, stack: ExitStack, proxy: str = "nginx") -> None:
        services: dict[str, Any] = yaml.safe_load(block("yaml"))["services"]
        self._ports = {name: free_port() for name in services}
        self._commands = {
            name: shlex.split(service["command"]) for name, service in services.items()
        }
        self._folder = folder
        self._stack = stack
        self.workers: dict[str, Process] = {}
        (folder / "city.py").write_text(textwrap.dedent(CITY))
        for name, command in self._commands.items():
            if name == "nginx":
                stack.enter_context(self._proxy(proxy, command))
            elif name == "engine":
                stack.enter_context(self._started(name, command))
            else:
                self.start(name)
        self.url = f"http://{ADDRESS}:{self._ports['nginx']}/mcp"

    def start(self, name: str) -> None:
        """Start a worker, also in place of one that has ended."""
        started = self._started(name, self._commands[name])
        self.workers[name] = self._stack.enter_context(started)

    def start_missing(self) -> None:
        """Start the workers again that have ended, as `restart: always` does."""
        for name in [name for name, worker in self.workers.items() if not worker.runs]:
            self.start(name)

    @contextmanager
    def _started(self, name: str, command: list[str]) -> Iterator[Process]:
        """A service but nginx; other than in its container, it has a port of this machine."""
        port = self._ports[name]
        if name == "engine":
            command = [program(), *command[1:], "--bind", ADDRESS, "--port", f"{port}"]
        else:
            assert command[:3] == ["python", "-m", "pkg"]
            words = [self._placed(each) for each in command[3:]]
            words[words.index("0.0.0.0:8000")] = f"{ADDRESS}:{port}"
            command = [sys.executable, "-m", "mcpgen_runtime", *words]
        process = Process(command, {"PYTHONSAFEPATH": ""}, self._folder)
        try:
            wait_for(process, port)
            yield process
        finally:
            process.kill()

    def _proxy(self, language: str, command: list[str]) -> AbstractContextManager[Process]:
        """A proxy with the page's file, but for the port where it listens."""
        own, port = self._placed(block(language)), self._ports["nginx"]
        match language:
            case "nginx":
                own = own.replace("listen 80;", f"listen {ADDRESS}:{port};")
                return nginx_server(self._folder, own, port, command[1:])
            case "haproxy":
                return haproxy_server(self._folder, own.replace(":80\n", f":{port}\n"), port)
            case _:
                own = own.replace(f"http://{ADDRESS} ", f"http://{ADDRESS}:{port} ")
                return caddy_server(self._folder, own, port)

    def _placed(self, text: str) -> str:
        """A text with addresses of this machine for those of the services, and their name."""
        services = "|".join(self._ports)
        return re.sub(
            rf"\b({services}):\d+",
            lambda service: f"{ADDRESS}:{self._ports[service[1]]}",
            text.replace("mcp.example.com", ADDRESS),
        )


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack, getattr(request, "param", "nginx"))


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


behind_each = pytest.mark.parametrize("site", ["nginx", "haproxy", "caddyfile"], indirect=True)


class Load:
    """Calls of a read-only tool, one after the other in each of some tasks."""

    def __init__(self, client: Any) -> None:
        self.failures: list[str] = []
        self._client = client
        self._served: dict[int, int] = {}
        self._news = anyio.Event()

    async def call(self) -> None:
        """Make calls until cancelled."""
        while True:
            try:
                result = await self._client.call_tool("pid")
            except McpError as error:
                self.failures.append(str(error))
            else:
                pid = int(result.content[0].text)
                self._served[pid] = self._served.get(pid, 0) + 1
            self._news.set()
            self._news = anyio.Event()

    async def until_served_by(self, pid: int) -> None:
        """Wait until a process has served calls."""
        with anyio.fail_after(20):
            while self._served.get(pid, 0) < SERVED:
                await self._news.wait()


@behind_each
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_no_read_only_call_fails_as_workers_are_replaced(site: Site) -> None:
    for revision in ONE_OF_EACH:
        async with connect(site.url, revision=revision) as client:
            await client.list_tools()
            load = Load(client)
            async with anyio.create_task_group() as tasks:
                for _ in range(CALLERS):
                    tasks.start_soon(load.call)
                for name in list(site.workers):
                    site.workers[name].send(signal.SIGTERM)
                    assert await site.workers[name].ended() == 0
                    await to_thread.run_sync(site.start, name)
                for worker in site.workers.values():
                    await load.until_served_by(worker.pid)
                tasks.cancel_scope.cancel()
        assert load.failures == []


@behind_each
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_whose_worker_is_killed_is_made_again_or_in_doubt(
    site: Site, tmp_path: Path
) -> None:
    for revision in ONE_OF_EACH:
        async with connect(site.url, revision=revision) as client:
            killed = {"once": f"{tmp_path}/{revision}-reads"}
            result: Any = await client.call_tool("reads", killed)
            assert result.content[0].text == "served"
            await to_thread.run_sync(site.start_missing)
            # On a connection that was kept, HAProxy passes on that the worker closed it.
            with pytest.raises((HttpStatusError, ResponseLostError)) as refused:
                await client.call_tool("acts", {"once": f"{tmp_path}/{revision}-acts"})
            await to_thread.run_sync(site.start_missing)
            assert getattr(refused.value, "status", 502) == 502
            assert "the server may or may not have worked on tools/call" in str(refused.value)
            result = await client.call_tool("pid")
            assert int(result.content[0].text) in {each.pid for each in site.workers.values()}


async def served_by(client: Any) -> set[int]:
    """The processes that serve calls of a session."""
    with anyio.fail_after(ERROR_SECONDS):
        results = [await client.call_tool("pid") for _ in range(12)]
    return {int(each.content[0].text) for each in results}


TOKENS = {"READER_TOKEN": "token-of-rita", "WRITER_TOKEN": "token-of-walt"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_processes_behind_nginx_serve_the_example(tmp_path: Path) -> None:
    folder = build("protected-server", tmp_path)
    nginx = Path(os.environ["MCP_NGINX"]).parent
    environment = {**TOKENS, "PYTHONSAFEPATH": "", "PATH": f"{nginx}:{os.environ['PATH']}"}
    if libraries := os.environ.get("MCP_PROXY_LIBRARIES"):
        environment["LD_LIBRARY_PATH"] = libraries
    port = free_port()
    process = Process((sys.executable, "local.py", f"{port}"), environment, folder)
    try:
        wait_for(process, port)
        printed = run(folder, "two_users.py", f"http://127.0.0.1:{port}/mcp", **TOKENS)
        assert len({*re.findall(r"walt wrote today in process (\d+)", printed)}) == 2
        assert "read: Bring tea too." in printed
        assert "refused: " in printed
        process.send(signal.SIGTERM)
        assert await process.ended() == 0
    finally:
        process.kill()


def test_the_compose_file_sets_what_the_server_reads() -> None:
    folder = EXAMPLES / "protected-server"
    worker = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["one"]
    code = (folder / "shared_notes.py").read_text()
    assert {*worker["environment"]} == {*re.findall(r'os\.environ\["(\w+)"\]', code)}
