"""The README's larger servers do what the README says of them, in every revision."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_protocol import Client, ClientHandlers, Server, connect
from mcp_protocol.errors import RemoteError
from mcp_protocol.testing import connected
from package.respondent import refusal_code
from package.rules import holding
from package.wire import ALL
from package_single import BOOKED, NO_FORMS, README, examples

pytestmark = pytest.mark.anyio

FORMS = holding("elicitation.message-required")
NO_SEAT = {"action": "decline"}
AISLE = {"action": "accept", "content": {"row": 12}}
WINDOW = {"action": "accept", "content": {"row": 3, "side": "window"}}


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of the README, as a module of its own that found our package as `pkg`."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "pkg", sys.modules["mcp_protocol"])
    source = examples()[f"{name}.py"]
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


@pytest.fixture
def city(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server of many kinds of things."""
    server: Server = example("city", monkeypatch).server
    return server


@pytest.fixture
def booking(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server that asks its client."""
    server: Server = example("booking", monkeypatch).server
    return server


@pytest.mark.parametrize("revision", ALL)
async def test_the_readmes_server_serves(city: Server, revision: str) -> None:
    async with connected(city, revision=revision) as pair:
        client: Any = pair.client
        population = await client.call_tool("population", {"city": "Oslo"})
        assert population.content[0].text == "400000"
        assert pair.sent[-1]["method"] == "tools/call"
        refused = await client.call_tool("forecast", {"city": "Atlantis"})
        assert (refused.is_error, refused.content[0].text) == (True, "no such city")
        found = await client.call_tool("forecast", {"city": "Oslo", "days": 1})
        assert '"degrees":20.5' in found.content[0].text
        now = await client.read_resource("city://Oslo/now")
        assert now.contents[0].text == "sun over Oslo"
        greeting = await client.get_prompt("greet", {"city": "Oslo"})
        assert greeting.messages[0].content.text == "Write a greeting to the people of Oslo."


@pytest.mark.parametrize("revision", ALL)
async def test_the_readmes_notes_stay_in_their_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str
) -> None:
    notes = example("notes", monkeypatch)
    (tmp_path / "secret").write_text("hunter2")
    notes.ROOT = tmp_path / "notes"
    notes.ROOT.mkdir()
    (notes.ROOT / "today").write_text("sun")
    async with connected(notes.server, revision=revision) as pair:
        client: Any = pair.client
        for uri in ("notes://today", f"file://{notes.ROOT}/today"):
            assert (await client.read_resource(uri)).contents[0].text == "sun"
        for uri in ("notes://..%2Fsecret", f"file://{tmp_path}/secret", "notes://%2Fetc%2Fpasswd"):
            with pytest.raises(RemoteError) as refused:
                await client.read_resource(uri)
            assert "hunter2" not in str(refused.value)


class Guest(ClientHandlers):
    """Gives an answer, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def elicit(self, params: Any, ctx: Any) -> Any:
        self.asked.append(params.message)
        return self.answer


@pytest.mark.parametrize("revision", FORMS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (AISLE, BOOKED),
        (WINDOW, "SK 4035: row 3, window"),
        (NO_SEAT, "nothing was booked"),
        ({"action": "cancel"}, "nothing was booked"),
    ],
)
async def test_the_readmes_tool_asks_its_client(
    booking: Server, revision: str, answer: Any, said: str
) -> None:
    guest = Guest(answer)
    async with connected(booking, revision=revision, handlers=guest) as pair:
        client: Any = pair.client
        result = await client.call_tool("book", {"flight": "SK 4035"})
    assert result.content[0].text == said
    assert guest.asked == ["Which seat on SK 4035?"]


@pytest.mark.parametrize("revision", ALL)
async def test_the_readmes_tool_asks_nobody_who_can_not_be_asked(
    booking: Server, revision: str
) -> None:
    handlers = ClientHandlers() if revision in FORMS else Guest(AISLE)
    async with connected(booking, revision=revision, handlers=handlers) as pair:
        client: Any = pair.client
        with pytest.raises(RemoteError) as refused:
            await client.call_tool("book", {"flight": "SK 4035"})
    assert refused.value.code == refusal_code(revision)
    assert NO_FORMS in str(refused.value)


BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets() -> list[str]:
    """The blocks of Python that are no files, each as the body of a coroutine function."""
    blocks = BLOCK.findall(README.read_text("utf-8"))
    inner = [block for block in blocks if block not in examples().values()]
    return [f"async def snippet():\n{textwrap.indent(block, '    ')}" for block in inner]


def calls(source: str) -> Iterator[tuple[Any, ast.Call]]:
    """What a snippet calls of a client or to get one, and each such call."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="client"), attr=name)):
                yield getattr(Client, name), node
            case ast.Call(func=ast.Name(id="connect")):
                yield connect, node


async def test_the_readmes_snippet_for_tests_runs(
    city: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pkg.testing", sys.modules["mcp_protocol.testing"])
    names: dict[str, Any] = {"server": city}
    exec(compile(snippets()[0], "snippet", "exec"), names)
    await names["snippet"]()


@pytest.mark.parametrize("source", snippets())
def test_the_readmes_snippets_call_what_there_is(source: str) -> None:
    for function, call in calls(source):
        own = () if function is connect else (None,)
        named = {str(keyword.arg): None for keyword in call.keywords}
        inspect.signature(function).bind(*own, *call.args, **named)


def test_the_readme_has_snippets_of_a_client() -> None:
    assert [len(list(calls(source))) for source in snippets()] == [0, 7]
