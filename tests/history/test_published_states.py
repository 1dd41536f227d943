"""Every published state of the schema becomes a package that imports and serves a tool call.

Reads every sixth state of the archive, in JSON and TypeScript by turns; all of them in both if
MCP_HISTORY is `all`. `nox -s history` runs this.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from generator.command_line import run_python
from generator.selections import write_package
from history.conftest import ARCHIVE
from mcpgen.errors import InputError
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline

pytestmark = [pytest.mark.history, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".json", ".ts")
TYPED = 12
"""Of so many states, the types of one are checked."""

REFUSED = {
    "2025-06-10-ace88165-draft.json": "ResourceReference",
    "2025-06-10-ace88165-draft.ts": "ResourceReference",
    "2025-05-06-405fc641-draft.ts": "a type with values for the required structuredContent",
    "2025-05-08-78251646-draft.ts": "a type with values for the required structuredContent",
    "2025-05-19-37c6dbef-draft.ts": "a type with values for the required structuredContent",
    "2025-05-19-cf3c0583-draft.ts": "a type with values for the required structuredContent",
}
"""Files that are refused: one state lacks a definition, four require what has no value."""

CALL = """
import anyio
import importlib
import pkgutil
import typing

import pkg
from pkg import REVISIONS, Server
from pkg.testing import connected

for module in pkgutil.walk_packages(pkg.__path__, "pkg."):
    if module.name != "pkg.__main__":
        importlib.import_module(module.name)

server = Server("sums", version="1.0")


@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
def join(a: str, b: str) -> str:
    return a + b


(revision,) = REVISIONS
methods = importlib.import_module(f"pkg.r{revision.replace('-', '_')}.methods")
params = methods.REVISION.client_requests["tools/call"].params
arguments = typing.get_type_hints(params)["arguments"]
# two states have maps of texts as arguments
only_texts = dict[str, str] in (arguments, *typing.get_args(arguments))
calls = {"join": ({"a": "1", "b": "2"}, "12"), "add": ({"a": 1, "b": 2}, "3")}


async def main() -> None:
    async with connected(server) as pair:
        names = [tool.name for tool in await pair.client.list_tools()]
        assert sorted(names) == sorted(calls), names
        for name in ["join"] if only_texts else calls:
            given, expected = calls[name]
            result = await pair.client.call_tool(name, given)
            if not hasattr(result, "content"):  # the oldest states have one value as the result
                assert result.tool_result == expected, result
                continue
            block = result.content[0]  # any JSON value where nothing tells blocks apart
            assert (block["text"] if isinstance(block, dict) else block.text) == expected, result


anyio.run(main)
"""


def archive() -> Path | None:
    """The archive of published states, if a folder of the specification is at hand."""
    place = os.environ.get("MCP_SPEC")
    path = ROOT / place / ARCHIVE if place else None
    return path if path is not None and path.is_file() else None


@cache
def states() -> tuple[str, ...]:
    """The names of all states, oldest first."""
    path = archive()
    if path is None:
        return ()
    with tarfile.open(path) as file:
        names = (Path(name) for name in file.getnames())
        return tuple(sorted(name.stem for name in names if name.suffix == ".json"))


def write_newest_draft(folder: Path) -> Path:
    """The file of the newest draft of the archive, unpacked in a folder."""
    path = archive()
    assert path is not None
    newest = max(name for name in states() if name.endswith("-draft"))
    with tarfile.open(path) as file:
        file.extract(f"history/{newest}.json", folder, filter="data")
    return folder / "history" / f"{newest}.json"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose files, and those whose types are checked; only when these tests are run."""
    if "name" not in metafunc.fixturenames:
        return
    names: list[str] = []
    if "not history" not in metafunc.config.getoption("markexpr"):
        refused = {name.partition(".")[0] for name in REFUSED}
        sample = sorted({*states()[::6], *(refused & {*states()})})
        names = [f"{name}{SUFFIXES[at % 2]}" for at, name in enumerate(sample)]
        if os.environ.get("MCP_HISTORY") == "all":
            names = [f"{name}{suffix}" for name in states() for suffix in SUFFIXES]
    files = [(name, at % TYPED == 0) for at, name in enumerate(names)]
    metafunc.parametrize(("name", "typed"), files, ids=names)


def test_a_published_state_is_a_package_that_serves_a_tool_call(
    history: Path, name: str, typed: bool
) -> None:
    path = history / name
    if name in REFUSED:
        with pytest.raises(InputError, match=REFUSED[name]):
            pipeline.build(build_request.BuildRequest("pkg", (schema_sources.of_file(path),)))
        return
    request = build_request.BuildRequest("pkg", (schema_sources.of_file(path),))
    files = pipeline.build(request, form=dict)
    folder = history.parent / "states"  # Python and mypy know the modules that are the same
    rewrite(folder / "pkg", files)
    run(folder, "-c", CALL)
    if typed:
        run(folder, "-m", "mypy", "--strict", "--no-error-summary", "pkg")


def rewrite(package: Path, files: Mapping[str, str]) -> None:
    """Make a package of some files, and leave those that are the same with their byte code."""
    for place in [path for path in package.rglob("*") if path.suffix != ".pyc" and path.is_file()]:
        if files.get(place.relative_to(package).as_posix()) != place.read_text("utf-8"):
            place.unlink()
            Path(cache_from_source(place)).unlink(missing_ok=True)
    missing = {path: text for path, text in files.items() if not (package / path).exists()}
    write_package(missing, package.parent, package.name)


def run(folder: Path, *words: str) -> None:
    """Run Python in a folder; what it says is the failure."""
    done = run_python(*words, cwd=folder)
    assert done.code == 0, done.out[-3000:] + done.err[-3000:]


@pytest.mark.skipif(archive() is None, reason="there is no archive of published states")
def test_few_states_are_refused_and_all_of_them_exist() -> None:
    assert len(REFUSED) <= 6
    assert REFUSED.keys() <= {f"{name}{suffix}" for name in states() for suffix in SUFFIXES}
