"""The client for code without an event loop: its calls, its threads, and how it ends."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from kit.live import handlers_with, server_with, text_of
from kit.rules import module_of
from kit.stdio_process import PATHS, SERVER
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, every
from mcpgen_runtime import (
    Client,
    ClientHandlers,
    ConnectionClosedError,
    Context,
    MethodNotFoundError,
    NotificationFilter,
    RemoteError,
    RequestTimeoutError,
    RevisionError,
    Server,
    ServerStartError,
    SyncClient,
    SyncClientHandlers,
    ToolsChanged,
    connect,
    connect_sync,
)
from mcpgen_runtime.client.sync import SessionThread
from package.client.blocking_stubs import members_of

pytestmark = pytest.mark.processes

both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


TOOLS = ["add", "count", "hang", "change", "where"]


def desk() -> Server:
    """A server with something to ask for."""
    server = Server("desk", "3", instructions="be kind", subscribe=True, drain=0.1)

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def count(to: int, ctx: Context) -> str:
        for number in range(to):
            await ctx.progress(number + 1, to)
        return "done"

    @server.tool()
    async def hang(ctx: Context) -> str:
        await ctx.progress(1)
        await anyio.sleep_forever()
        return "never"

    @server.tool()
    async def change() -> None:
        server.remove_tool("change")

    @server.tool()
    async def where(ctx: Context) -> str:
        return ", ".join(root.name or root.uri for root in await ctx.list_roots())

    @server.resource("memo://one", name="one")
    def one() -> str:
        return "the first"

    return server


def session_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "MCP session"]


@contextmanager
def sync(revision: str | None = None, **how: Any) -> Iterator[SyncClient]:
    """An open client of a desk; its thread ends with it."""
    before = len(session_threads())
    with connect_sync(desk(), revision=revision, **how) as client:
        assert len(session_threads()) == before + 1
        yield client
    assert len(session_threads()) == before


@both
@every
def test_a_session_is_had_without_an_event_loop(revision: str, backend: Any) -> None:
    with sync(revision, backend=backend) as client:
        assert client.revision == client.session.revision.name == revision
        assert client.server_info["name"] == "desk"
        assert client.instructions == "be kind"
        assert client.supports("tools")
        assert client.server_capabilities["tools"] == {"listChanged": True}
        assert [tool.name for tool in client.list_tools()] == TOOLS
        assert text_of(client.call_tool("add", {"a": 1, "b": 2})) == "3"
        assert client.read_resource("memo://one").contents[0].text == "the first"
        assert client.request("tools/list").tools[0].name == "add"
        assert b'"add"' in bytes(client.request_raw("tools/list"))
        with pytest.raises(RemoteError):
            client.call_tool("none")
        with pytest.raises(RequestTimeoutError):
            client.call_tool("hang", timeout=0.01)
        with pytest.raises(MethodNotFoundError):
            client.request("ping" if revision in PER_REQUEST else "server/discover")
        client.clear_cache()


@every
def test_a_client_of_one_revision_has_the_methods_of_that_one(revision: str) -> None:
    one = module_of(revision, "client").Client
    of_revision = {name for name in vars(one) if not name.startswith("_")}
    with sync(revision) as client:
        module = module_of(revision, "client_sync")
        assert isinstance(client, module.SyncClient)
        assert of_revision <= {*dir(client)}
        stub = members_of(str(Path(module.__file__).with_suffix(".pyi")), "SyncClient")
        assert of_revision <= stub.keys()
        assert repr(client).startswith("<SyncClient on <Client of desk")


def test_its_stub_has_every_method_of_the_asynchronous_client() -> None:
    blocking = members_of("client/sync_client.pyi", "SyncClient")
    other = {name: f for name, f in inspect.getmembers(Client) if not name.startswith("_")}
    beside = {"cache", "seen_as"}
    assert blocking.keys() - {"clear_cache"} == other.keys() - beside
    for name in blocking.keys() - {"clear_cache", "start_call"}:
        if inspect.isfunction(other[name]):
            assert blocking[name] == [*inspect.signature(other[name]).parameters], name


HOME = {"roots": [{"uri": "file:///home", "name": "home"}]}


class Plain(SyncClientHandlers):
    """Handlers that are plain functions: they may block, and call the client."""

    client: SyncClient

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def list_roots(self, params: Any, ctx: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        assert [tool.name for tool in self.client.list_tools()] == TOOLS
        return HOME


@every
@pytest.mark.parametrize(
    "make", [Plain, lambda: handlers_with(list_roots=HOME)], ids=["plain", "coroutine"]
)
def test_handlers_may_be_plain_functions_or_coroutine_functions(
    revision: str, make: Callable[[], Any]
) -> None:
    handlers = make()
    with sync(revision, handlers=handlers) as client:
        handlers.client = client
        assert text_of(client.call_tool("where")) == "home"
    if isinstance(handlers, Plain):
        assert handlers.threads
        assert "MCP session" not in handlers.threads


def test_a_session_that_cannot_be_opened_or_whose_block_fails_leaves_no_thread() -> None:
    with pytest.raises(RevisionError):
        connect_sync(desk(), revision="1999-01-01")
    with pytest.raises(ServerStartError):
        connect_sync([sys.executable, "-c", "raise SystemExit(3)"])
    for failure in (ValueError("mine"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(failure)) as caught, sync():
            raise failure
        assert caught.value is failure
    assert session_threads() == []


@both
@pytest.mark.parametrize("at_exit", [None, OSError("at the exit")])
def test_a_thread_raises_what_the_exit_raises(backend: Any, at_exit: Exception | None) -> None:
    @asynccontextmanager
    async def opening() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            if at_exit is not None:
                raise at_exit

    for cause in (None, ValueError("mine")):
        thread = SessionThread(opening(), backend)
        assert thread.opened == 1
        with pytest.raises(OSError, match="at the exit") if at_exit else nullcontext():
            thread.close(cause)  # the cause is not raised: the caller has it


@every
def test_changes_are_iterated_over(revision: str) -> None:
    with (
        sync(revision) as client,
        client.listen(tools=True, uris=["memo://one"]) as changes,
    ):
        assert changes.agreed == NotificationFilter(tools=True, uris=("memo://one",))
        client.call_tool("change")
        assert next(changes) == ToolsChanged()
        ending = threading.Thread(target=changes.close)
        ending.start()
        assert list(changes) == []
        ending.join()


@both
def test_blocking_calls_in_the_session_thread_are_errors(backend: Any) -> None:
    class Waits(ClientHandlers):
        client: SyncClient

        async def list_roots(self, params: Any, ctx: Any) -> Any:
            for call in (self.client.list_tools, self.client.close):
                with pytest.raises(RuntimeError, match="the session's own thread"):
                    call()
            return HOME

    handlers = Waits()
    with sync(handlers=handlers, backend=backend) as client:
        handlers.client = client
        assert text_of(client.call_tool("where")) == "home"
        assert client.list_tools()
    assert session_threads() == []


@both
@pytest.mark.parametrize("around", ["asyncio", "trio"])
def test_a_coroutine_may_wait_for_it_or_is_told_that_it_can_not(backend: Any, around: Any) -> None:
    """A notebook runs its cells in an event loop; trio's does not wait for another of its kind."""
    with sync(backend=backend) as client:

        async def use() -> list[str]:
            with sync(backend=backend) as other:
                assert other.list_tools()
            listed = [tool.name for tool in client.list_tools()]
            client.close()
            return listed

        async def try_in_vain() -> None:
            for call in (
                lambda: connect_sync(desk(), backend=backend),
                client.list_tools,
                client.close,
            ):
                with pytest.raises(RuntimeError, match="in a thread that runs trio"):
                    call()

        if backend == around == "trio":
            anyio.run(try_in_vain, backend=around)
            assert client.list_tools()
        else:
            assert anyio.run(use, backend=around) == TOOLS
    assert session_threads() == []


@both
def test_a_call_that_is_open_when_the_client_is_closed_fails(backend: Any) -> None:
    with sync(backend=backend) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call_tool, "hang")
        client.list_tools()
        client.close()
        with pytest.raises(ConnectionClosedError):
            waiting.result(10)
        client.close()
        for call in (client.list_tools, client.clear_cache, lambda: client.listen(tools=True)):
            with pytest.raises(ConnectionClosedError):
                call()


def test_a_handler_that_hangs_does_not_keep_the_client_open() -> None:
    hanging, free = threading.Event(), threading.Event()

    class Hangs(SyncClientHandlers):
        def tool_list_changed(self, params: Any, ctx: Any) -> None:
            hanging.set()
            free.wait(60)

    with sync(HANDSHAKE[-1], handlers=Hangs()) as client:
        client.call_tool("change")
        assert hanging.wait(10)
    free.set()


@pytest.mark.skipif(sys.platform == "win32", reason="threads cannot be signalled there")
@both
def test_ctrl_c_takes_the_call_back_and_ends_nothing_else(backend: Any) -> None:
    main, ended = threading.get_ident(), threading.Event()

    async def hang(ctx: Context) -> str:
        try:
            await ctx.progress(1)
            await anyio.sleep_forever()
        finally:
            ended.set()
        return "never"

    server = server_with(hang)

    def interrupt(*progress: Any) -> None:
        signal.pthread_kill(main, signal.SIGINT)

    with connect_sync(server, backend=backend) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("hang", on_progress=interrupt)
        assert ended.wait(10)
        assert client.list_tools()
    with pytest.raises(KeyboardInterrupt), connect_sync(server, backend=backend) as client:
        client.call_tool("hang", on_progress=interrupt)
    assert session_threads() == []


def test_a_script_that_forgets_to_close_ends_all_the_same() -> None:
    code = (
        "from mcpgen_runtime import connect_sync; "
        "print(connect_sync({!r}, env={!r}).list_tools()[0].name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code.format(SERVER, PATHS)],
        env={**os.environ, **PATHS},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("add\n", 0), done.stderr


@pytest.mark.parametrize("revision", ["2025-06-18", ALL[-1]])
async def test_plain_functions_are_handlers_of_an_async_client_too(revision: str) -> None:
    asked: list[threading.Thread] = []
    logged = threading.Event()

    class Guest(SyncClientHandlers):
        def list_roots(self, params: Any, ctx: Any) -> Any:
            asked.append(threading.current_thread())
            return HOME

        def logging_message(self, params: Any, ctx: Any) -> None:
            logged.set()

    server = desk()

    @server.tool()
    async def says_where(ctx: Context) -> str:
        await ctx.info("asking")
        return (await ctx.list_roots())[0].uri

    async with connect(server, revision=revision, handlers=Guest()) as client:
        if revision == ALL[-1]:
            client.ask_for_logs("info")
        assert await client.call_tool("says_where", returns=str) == "file:///home"
        assert await to_thread.run_sync(logged.wait, 10)
    assert asked
    assert threading.main_thread() not in asked
