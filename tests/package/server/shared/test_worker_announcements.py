"""Changes reach the clients of all workers, whichever process announces them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from kit.asgi_stream import Stream
from kit.engine import Engine
from kit.web_process import run
from kit.wire import (
    ACKNOWLEDGED,
    ALL_LISTS,
    CHANGED,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    modern,
    streamable,
)
from mcpgen_runtime import MissingExtraError, Server, SharedStateError
from package.server.shared.shared_servers import Workers, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

URI = "note://today"
TOOLS = CHANGED["toolsListChanged"]


@asynccontextmanager
async def listen_stream(workers: Workers, revision: str, at: int) -> AsyncIterator[Stream]:
    """A stream of changes of the resource, and of all lists, at a worker."""
    http = workers.each[at]
    if revision in PER_REQUEST:
        params = {"notifications": {**ALL_LISTS, "resourceSubscriptions": [URI]}}
        async with http.asking(revision, LISTEN, params) as stream:
            assert (await stream.message())["method"] == ACKNOWLEDGED
            yield stream
        return
    http.fields = dict(http.fields)
    await http.initialize(revision)
    assert (await http.ask(revision, "resources/subscribe", {"uri": URI})).status == 200
    async with http.stream("GET") as stream:
        yield stream


@pytest.fixture
async def workers(engine: Engine) -> AsyncIterator[Workers]:
    """Workers without a session."""
    async with run_workers(engine.url) as workers:
        yield workers


async def next_method(stream: Stream) -> str:
    method: str = (await stream.message())["method"]
    return method


@streamable
async def test_a_change_reaches_the_clients_of_all_workers(revision: str, workers: Workers) -> None:
    async with (
        listen_stream(workers, revision, 0) as one,
        listen_stream(workers, revision, 1) as two,
        listen_stream(workers, revision, 2) as three,
    ):
        workers.servers[1].server.tool("added")(lambda: "added")
        workers.servers[2].server.resource_updated(URI)
        for stream in (one, two, three):
            assert {await next_method(stream) for _ in range(2)} == {TOOLS, UPDATED}


@streamable
async def test_a_process_that_does_not_serve_announces(
    revision: str, engine: Engine, workers: Workers
) -> None:
    async with (
        listen_stream(workers, revision, 0) as stream,
        Server("tester").announcer(engine.url) as announcer,
    ):
        for name in ("tools", "prompts", "resources"):
            await announcer.list_changed(name)
            assert await next_method(stream) == f"notifications/{name}/list_changed"
        await announcer.resource_updated("note://tomorrow")
        await announcer.resource_updated(URI)
        assert (await stream.message())["params"]["uri"] == URI


@streamable
async def test_after_a_gap_everything_has_changed(
    revision: str, engine: Engine, workers: Workers
) -> None:
    async with listen_stream(workers, revision, 0) as stream:
        engine.ask("DEL", "mcp:{tester}:changes")
        expected = {*CHANGED.values(), UPDATED}
        assert {await next_method(stream) for _ in range(4)} == expected


async def test_an_announcer_names_its_mistakes(engine: Engine) -> None:
    async with Server("tester").announcer(engine.url) as announcer:
        with pytest.raises(ValueError, match="expected one of tools, prompts, resources"):
            await announcer.list_changed("tool")
    async with Server("tester").announcer("unix:///nowhere.sock") as announcer:
        with pytest.raises(SharedStateError, match="can't be used: ConnectionError"):
            await announcer.list_changed("tools")


@modern
async def test_a_command_announces(revision: str, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "web.py").write_text(
        "from mcpgen_runtime import Server\nserver = Server('tester')\n"
    )
    async with run_workers(engine.url) as workers, listen_stream(workers, revision, 0) as stream:
        words = ("-m", "mcpgen_runtime", "announce", "web", "--shared", engine.url, "tools", URI)
        done = await anyio.to_thread.run_sync(run, tmp_path, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert {await next_method(stream) for _ in range(2)} == {TOOLS, UPDATED}


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        *("", "redis", "127.0.0.1:6379", f"http://:{SECRET}@h/", f"redis://:{SECRET}@h:port/0"),
        *(f"redis://:{SECRET}@[/", "redis://", f"rediss://:{SECRET}@h/0?socket_timeout=x"),
    ],
)
def test_other_urls_than_those_of_an_engine_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="shared: expected the URL of an engine") as raised:
        Server("tester").asgi(shared=url)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_missing_library_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkey.asyncio", None)
    with pytest.raises(MissingExtraError, match="needs the package 'valkey'") as raised:
        Server("tester").asgi(shared="redis://127.0.0.1/0")
    assert "\n" not in str(raised.value)


@modern
async def test_a_change_in_a_thread_reaches_other_workers(revision: str, workers: Workers) -> None:
    async with listen_stream(workers, revision, 0) as stream:
        server = workers.servers[1].server
        await anyio.to_thread.run_sync(server.resource_updated, URI)
        assert await next_method(stream) == UPDATED
