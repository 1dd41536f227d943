"""How much of its package a server needs that has one tool and serves over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from generator.selections import MIDDLE, render_selection, write_package
from generator.shop_sessions import Serving
from mcpgen_runtime import connect_sync

pytestmark = pytest.mark.lengthy

MOST = 0.035
"""The part of the package that such a server may leave unused, in lines."""

UNUSED: Mapping[str, str] = {
    "__main__.py": "the command line",
    "json_schema/inlining.py": "schemas of nested types",
    "models.py": "names of types, for annotations",
    "runtime/command_table.py": "the command line",
    "server/toolkit/argument_errors.py": "arguments that are wrong",
}
"""Modules of the package that it does not import, each with what does."""

SERVES = """
import atexit, json, sys
sys.path.insert(0, {folder!r})
from pkg import Server

server = Server("sums")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@atexit.register
def tell():
    modules = [each for name, each in sys.modules.items() if name.partition(".")[0] == "pkg"]
    print(json.dumps([each.__file__ for each in modules]), file=sys.stderr)

server.run(http="127.0.0.1:0")
"""


def test_a_running_server_imports_nearly_all_of_its_package(tmp_path: Path) -> None:
    files = render_selection("server", "http", (MIDDLE,), features=("none",))
    folder = write_package(files, tmp_path).resolve()
    program = SERVES.format(folder=f"{folder}")
    with (
        Serving(sys.executable, "-c", program) as serving,
        connect_sync(serving.url, revision=MIDDLE) as client,
    ):
        assert [tool.name for tool in client.list_tools()] == ["add"]
        assert client.call_tool("add", {"a": 1, "b": 2}).structured_content == {"result": 3}
    imported = [Path(name) for name in json.loads(serving.err.splitlines()[-1])]
    used = {name.relative_to(folder / "pkg").as_posix() for name in imported}
    lines = {path: text.count("\n") for path, text in files.items() if path.endswith(".py")}
    unused = lines.keys() - used
    assert unused == {*UNUSED}
    assert sum(lines[path] for path in unused) <= MOST * sum(lines.values())
