"""Our application in an ASGI host other than uvicorn, on both event loops."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from interop.hearing import Heard
from interop.processes import run_server
from interop.revisions import HANDSHAKE, STATELESS
from mcpgen_runtime import ClientHandlers, RequestContext, connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

HYPERCORN = (sys.executable, "-m", "hypercorn", "--bind", "127.0.0.1:0", "--graceful-timeout", "3")
WAYS = [
    *(("mcp", revision) for revision in (*HANDSHAKE[1:], STATELESS)),
    *(("sse", revision) for revision in (HANDSHAKE[0], HANDSHAKE[-1])),
]


class Person(ClientHandlers):
    """Answers what the server asks, and keeps what it hears."""

    def __init__(self) -> None:
        self.logs = Heard()

    async def create_message(self, params: Any, ctx: RequestContext) -> Any:
        said = {"type": "text", "text": "sunny"}
        return {"role": "assistant", "content": said, "model": "parrot"}

    async def logging_message(self, params: Any, ctx: RequestContext) -> None:
        self.logs.keep(params.data)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the host serves; `serving` sees that it ends when it is asked to."""
    command = (*HYPERCORN, "--worker-class", request.param, "interop.our_app:app")
    with run_server(*command) as served:
        yield served


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
async def session(request: pytest.FixtureRequest, url: str) -> AsyncIterator[tuple[Any, Person]]:
    path, revision = request.param
    person = Person()
    async with connect(f"{url}/{path}", revision=revision, handlers=person) as client:
        assert client.revision == revision
        yield client, person


@pytest.fixture
def client(session: tuple[Any, Person]) -> Any:
    return session[0]


async def test_tools_are_listed_and_called(client: Any) -> None:
    assert "add" in [tool.name for tool in await client.list_tools()]
    assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"


async def test_progress_arrives_in_order(client: Any) -> None:
    heard: list[Any] = []

    def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    await client.call_tool("count", {"to": 3}, on_progress=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(session: tuple[Any, Person]) -> None:
    client, person = session
    if client.revision == STATELESS:
        client.ask_for_logs("info")
    else:
        await client.set_level("info")
    await client.call_tool("note", {"text": "rain"})
    await person.logs.until(lambda log: log == "rain")


async def test_the_model_is_asked(client: Any) -> None:
    result = await client.call_tool("translate", {"text": "sun"})
    assert result.content[0].text == "parrot says: sunny"


async def test_changes_are_announced(client: Any) -> None:
    async with client.listen(tools=True) as changes:
        await client.call_tool("change")
        with anyio.fail_after(20):
            assert type(await anext(changes)).__name__ == "ToolsChanged"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(client: Any) -> None:
    name = f"{client.revision} {id(client)}"

    def leave(*progress: Any) -> None:
        scope.cancel()

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await client.call_tool("wait", {"name": name}, on_progress=leave)
    assert (await client.call_tool("was_cancelled", {"name": name})).content[0].text == "true"
