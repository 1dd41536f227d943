"""A server made with a mirror lists what the mirrored one does, or a note says so; its calls."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcpgen_runtime
from generator.command_line import run
from generator.test_mirror import FORECAST
from kit.live import text_of
from mcpgen.errors import MirrorError
from mcpgen.package import directory
from mcpgen.project import live_server, server_lists
from mcpgen.project import mirror as mirrors
from mcpgen.project.mirror import Snapshot
from mcpgen_runtime import REVISIONS, convert, encode

pytestmark = pytest.mark.costly

ODD, WEATHER = (Path(__file__).parent / f"{name}.json" for name in ("odd_server", "weather"))
PACKAGE = Path(mcpgen_runtime.__file__).parent
NOTES = ["tool with_execution: listed without /execution"]
"""Items that a mirror cannot list: the package runs no tasks that a tool call begins."""

_NUMBERS = itertools.count()


def build_mirror(document: object) -> tuple[Snapshot, Mapping[str, str]]:
    """The snapshot of some lists, and the files of its mirror."""
    lists = server_lists.parse(document, "odd.json")
    snapshot = Snapshot(lists, live_server.limits(mcpgen_runtime, lists), "Odd")
    return snapshot, mirrors.files(mirrors.build(snapshot, "protocol"), snapshot)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package that mirrors are written to, beside a package with every revision."""
    folder = tmp_path_factory.mktemp("projects") / "odd_mirrors"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "protocol").symlink_to(PACKAGE)
    sys.path.insert(0, str(folder.parent))
    yield folder
    sys.path.remove(str(folder.parent))


def import_mirror(project: Path, files: Mapping[str, str]) -> Any:
    """The module of a mirror."""
    name = f"mirror{next(_NUMBERS)}"
    (project / name).mkdir()
    for path, text in files.items():
        (project / name / path).write_text(text, "utf-8")
    importlib.invalidate_caches()
    return importlib.import_module(f"{project.name}.{name}")


async def read_list(
    project: Path, mirror: Any, method: str, member: str, revision: str | None = None
) -> bytes:
    """A list of a server whose handlers do nothing, as it is sent; by default in the newest."""
    protocol, testing = (
        importlib.import_module(f"{project.name}.{name}")
        for name in ("protocol", "protocol.testing")
    )

    async def unused(self: Any, *arguments: Any) -> None: ...

    methods = dict.fromkeys(mirror.Handlers.__abstractmethods__, unused)
    server = protocol.Server("odd", instructions=mirror.INSTRUCTIONS)
    mirror.register(server, type("Idle", (mirror.Handlers,), methods)())
    async with testing.connected(server, revision=revision) as pair:
        result = bytes(await pair.client.request_raw(method, {}))
    return bytes(msgspec.json.decode(result, type=dict[str, msgspec.Raw])[member])


each_list = pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)


def text(value: object) -> str:
    """JSON without the order of members, which is that of the types of the revision."""
    return json.dumps(value, sort_keys=True)


@each_list
async def test_each_odd_entry_is_listed_as_it_was_and_in_order(
    project: Path, method: str, member: str
) -> None:
    document = json.loads(ODD.read_text("utf-8"))
    entries = document[member]
    for entry in entries:
        entry.pop("execution", None)
    _, files = build_mirror(document)
    items = json.loads(await read_list(project, import_mirror(project, files), method, member))
    assert [text(entry) for entry in items] == [text(entry) for entry in entries]


@each_list
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_mirror_lists_the_bytes_of_the_mirrored_server(
    project: Path, revision: str, method: str, member: str
) -> None:
    row = REVISIONS[revision].client_requests[method]
    document = json.loads(ODD.read_text("utf-8"))
    for tool in document["tools"]:
        tool.pop("execution", None)
    defaults = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    result = convert({member: document[member], **defaults}, row.result)
    sent = bytes(msgspec.json.decode(encode(result), type=dict[str, msgspec.Raw])[member])
    _, files = build_mirror({member: json.loads(sent)})
    assert await read_list(project, import_mirror(project, files), method, member, revision) == sent


def test_a_project_of_an_odd_server_names_each_difference(tmp_path: Path) -> None:
    done = run("new", "server", "odd", "--from", str(ODD), "-o", str(tmp_path / "odd"))
    assert done.code == 0
    notes = [line for line in done.out.splitlines() if ": listed " in line]
    assert notes == [f"note: {note}" for note in NOTES]
    (tmp_path / "odd/src/odd/mirror/__init__.py").unlink()
    place = "src/odd/mirror/__init__.py"
    assert f"differs: {place}; run mcpgen\n" in run("check", cwd=tmp_path / "odd").out
    assert f"{place} differs; mcpgen generate\n" in run("doctor", cwd=tmp_path / "odd").out
    again = run("generate", cwd=tmp_path / "odd").out.splitlines()
    assert [line for line in again if ": listed " in line] == notes
    texts = (tmp_path / "odd" / "src" / "odd" / "server.py").read_text("utf-8")
    assert "instructions=mirror.INSTRUCTIONS" in texts
    package = json.loads((tmp_path / "odd/src/odd/protocol/mcpgen.json").read_text("utf-8"))
    assert "schemas" in package["options"]["features"]


def differences(document: object, **changed: str) -> list[str]:
    """The differences that are named for a mirror of some lists, in which files may be changed."""
    snapshot, files = build_mirror(document)
    tree = {f"protocol/{path}": text for path, text in directory.texts(PACKAGE).items()}
    tree |= {f"mirror/{path}": text for path, text in files.items()}
    tree |= {"__init__.py": "", "mirror/__init__.py": changed.get("module", files["__init__.py"])}
    return live_server.mirror_differences(tree, ("mirror",), "protocol", snapshot)


def test_a_project_that_cannot_be_imported_is_no_success() -> None:
    broken, got = "raise ValueError('x' * 501)", f"got ValueError: {'x' * 488}..."
    with pytest.raises(MirrorError) as raised:
        differences([FORECAST], module=broken)
    assert f"{raised.value}" == f"the project#: expected a mirror that serves its lists, {got}"
    files = {"__init__.py": "", "protocol.py": "", "own.py": broken}
    with pytest.raises(MirrorError) as raised:
        live_server.read_project(files, "own", "protocol", lambda _, __: pytest.fail("it is read"))
    assert f"{raised.value}" == f"the project#: expected a server that answers, {got}"


def test_items_that_a_package_lists_otherwise_are_named() -> None:
    document = {
        "tools": [{"name": name, "inputSchema": {"type": "array"}} for name in ("b", "a")],
        "prompts": [{"name": "p", "description": "", "arguments": [{"name": "x"}]}],
    }
    assert differences(document) == [
        "tool b, tool a: listed with another /inputSchema/type",
        "prompt p: listed without /description",
        "prompt p: listed with /arguments/0/required, which the server leaves out",
    ]


NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["class", "self", "ctx", '"', "\\", "\x00", "\u2028", "__init__", "a-b", "a_b"]
    ),
)
TOOL_NAMES = st.text("aBc01_.-", min_size=1, max_size=6)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(TOOL_NAMES, st.lists(NAMES, unique=True, max_size=6), min_size=1, max_size=6)
)
async def test_a_mirror_of_any_names_is_imported_and_lists_them(
    project: Path, tools: dict[str, list[str]]
) -> None:
    entries = [
        {
            "name": name,
            "inputSchema": {
                "type": "object",
                "properties": {each: {"type": "string"} for each in members},
                "required": members[:1],
            },
        }
        for name, members in tools.items()
    ]
    _, files = build_mirror(entries)
    items = json.loads(
        await read_list(project, import_mirror(project, files), "tools/list", "tools")
    )
    assert [text(entry) for entry in items] == [text(entry) for entry in entries]


@pytest.fixture(scope="module")
def mirror(project: Path) -> Any:
    """The module of a mirror with typed handlers and calls."""
    return import_mirror(project, build_mirror(json.loads(WEATHER.read_text("utf-8")))[1])


@pytest.fixture(scope="module")
def protocol(project: Path) -> Any:
    """The package of the project."""
    return importlib.import_module(f"{project.name}.protocol")


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


@pytest.fixture(params=REVISIONS)
async def calls(request: pytest.FixtureRequest, project: Path, mirror: Any, server: Any) -> Any:
    """The typed calls of a session with that server."""
    testing = importlib.import_module(f"{project.name}.protocol.testing")
    async with testing.connected(server, revision=request.param) as pair:
        yield mirror.Odd(pair.client, timeout=20)


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
