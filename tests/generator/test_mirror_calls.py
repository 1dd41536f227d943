"""A mirror at work: handlers behind a server, and typed calls in front of it, in every revision."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mcpgen_runtime
from mcpgen.project import live_server, server_lists
from mcpgen.project import mirror as mirrors
from mcpgen.project.mirror import Snapshot

LISTS = Path(__file__).parent / "weather.json"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of a mirror beside a package with every revision."""
    folder = tmp_path_factory.mktemp("project")
    lists = server_lists.read_file(LISTS)
    snapshot = Snapshot(lists, live_server.limits(mcpgen_runtime, lists), "Weather")
    project = folder / "mirrored_weather"
    (project / "mirror").mkdir(parents=True)
    (project / "__init__.py").touch()
    (project / "protocol").symlink_to(Path(mcpgen_runtime.__file__).parent)
    built = mirrors.build(snapshot, "protocol")
    for path, text in mirrors.files(built, snapshot).items():
        (project / "mirror" / path).write_text(text)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("mirrored_weather.mirror")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def protocol(mirror: Any) -> Any:
    """The package of the project."""
    return importlib.import_module("mirrored_weather.protocol")


@pytest.fixture
def server(mirror: Any, protocol: Any) -> Any:
    """A server whose handlers answer with what they were asked."""

    class Handlers(mirror.Handlers):  # type: ignore[misc] # the module is written by a fixture
        async def forecast(self, arguments: Any, ctx: Any) -> Any:
            if arguments.city == "Atlantis":
                raise protocol.ToolError("no such city")
            place = arguments.near.latitude if arguments.near else 0.0
            return mirror.ForecastResult(degrees=[float(arguments.days), place])

        async def set_alarm(self, arguments: Any, ctx: Any) -> Any:
            return f"{arguments.class_} {arguments.self_} {arguments.at_hour!r}"

        async def raw(self, arguments: dict[str, Any], ctx: Any) -> Any:
            return json.dumps(arguments)

        async def read_now(self, ctx: Any) -> Any:
            return "sun"

        async def read_day(self, city: str, day: str, ctx: Any) -> Any:
            return f"{city} on {day}"

        async def report_prompt(self, city: str, style: str | None, ctx: Any) -> Any:
            return f"{city} {style}"

    server = protocol.Server("weather")
    mirror.register(server, Handlers())
    return server


@pytest.fixture(params=mcpgen_runtime.REVISIONS)
async def calls(request: pytest.FixtureRequest, mirror: Any, server: Any) -> Any:
    """The typed calls of a session with that server."""
    testing = importlib.import_module("mirrored_weather.protocol.testing")
    async with testing.connected(server, revision=request.param) as pair:
        yield mirror.Weather(pair.client, timeout=20)


def text_of(result: Any) -> str:
    """The text of the first block of a result."""
    text: str = result.content[0].text
    return text


async def test_arguments_and_results_have_their_types_on_both_sides(
    calls: Any, mirror: Any
) -> None:
    assert (await calls.forecast(city="Oslo")).degrees == [3.0, 0.0]
    near = mirror.ForecastArgumentsPlace(latitude=59.9, longitude=10.7)
    result = await calls.forecast(city="Oslo", days=5, near=near)
    assert result == mirror.ForecastResult(degrees=[5.0, 59.9])


async def test_a_tool_that_fails_raises_what_it_said(calls: Any, mirror: Any) -> None:
    with pytest.raises(mirror.ToolCallError, match="tool 'forecast': no such city") as raised:
        await calls.forecast(city="Atlantis")
    assert (raised.value.tool, raised.value.result.is_error) == ("forecast", True)


async def test_the_server_validates_arguments_by_the_mirrored_schema(
    calls: Any, mirror: Any, protocol: Any
) -> None:
    with pytest.raises((mirror.ToolCallError, protocol.RemoteError), match="days"):
        await calls.forecast(city="Oslo", days=8)


async def test_names_reserved_in_python_are_sent_by_their_wire_names(
    calls: Any,
) -> None:
    assert text_of(await calls.set_alarm(class_="rain", self_=True)) == "rain True UNSET"
    assert text_of(await calls.set_alarm(class_="rain", at_hour=None)) == "rain None None"


async def test_a_tool_without_types_takes_any_arguments(calls: Any) -> None:
    assert text_of(await calls.raw({"a": [1]})) == '{"a": [1]}'
    assert text_of(await calls.raw()) == "{}"


async def test_resources_and_prompts_are_calls_too(calls: Any) -> None:
    assert (await calls.read_now()).contents[0].text == "sun"
    assert (await calls.read_day(city="Oslo", day="May 1")).contents[0].text == "Oslo on May 1"
    messages = (await calls.report_prompt(city="Oslo")).messages
    assert messages[0].content.text == "Oslo None"


def test_a_handler_that_is_missing_is_an_error_at_the_start(mirror: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (mirror.Handlers,), {})()
