"""`mcpgen port`: programs of FastMCP and of the official SDK, rewritten to a generated package."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, output_of, run
from mcpgen.errors import UsageError
from mcpgen.package.used_features import MAX_BYTES

command: Any = pytest.importorskip("mcpgen.port.command")  # which needs libcst

OFFICIAL = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('a')\n"
FASTMCP = "from fastmcp import FastMCP\nmcp = FastMCP('a')\n"
PORTED_FASTMCP = "from pkg import Server\nmcp = Server('a', compatibility=\"fastmcp-4\")\n"
PROGRAMS = tomllib.loads((Path(__file__).parent / "ported_programs.toml").read_text("utf-8"))


def ported(folder: Path, source: bytes) -> tuple[bytes, Any]:
    """The text of a file after a port, and what was left to a person."""
    file = folder / "program.py"
    file.write_bytes(source)
    result = command.port([file], folder / "pkg", 4)
    return result.files.get(file, source), result.findings


def check_port(row: dict[str, Any], folder: Path) -> None:
    """Check what becomes of a program, and what is left to a person."""
    made, left = ported(folder, row["before"].encode())
    lines = [f"{each.line}: {each.code}: {each.remedy}" for each in left]
    assert (made.decode(), lines) == (row["after"], row.get("left", []))


@pytest.mark.parametrize("row", PROGRAMS["program"], ids=lambda row: row["before"])
def test_a_program_becomes_one_of_the_package(row: dict[str, Any], tmp_path: Path) -> None:
    check_port(row, tmp_path)


@pytest.mark.parametrize("row", PROGRAMS["form"], ids=lambda row: row["before"])
def test_each_form_of_a_construct_is_ported_or_listed(row: dict[str, Any], tmp_path: Path) -> None:
    check_port(row, tmp_path)


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    left = 0
    for number, row in enumerate([*PROGRAMS["program"], *PROGRAMS["form"]]):
        (tmp_path / f"program{number}.py").write_bytes(row["after"].encode())
        left += len(row.get("left", []))
    result = command.port([tmp_path], tmp_path / "pkg", 4)
    assert ([*result.files], len(result.findings) <= left) == ([], True)


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-8-sig", "\n"), ("utf-8", "\r\n"), ("latin-1", "\r\n")]
)
def test_encoding_and_line_ends_are_kept(newline: str, encoding: str, tmp_path: Path) -> None:
    declared = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    before = f"{declared}from fastmcp import FastMCP\nmcp = FastMCP('M\u00fcller')\n"
    after = f"{declared}{PORTED_FASTMCP}".replace("'a'", "'M\u00fcller'")
    text = before.replace("\n", newline).encode(encoding)
    assert ported(tmp_path, text)[0] == after.replace("\n", newline).encode(encoding)


MODULES = {
    "app.py": f"{OFFICIAL}def make() -> FastMCP: ...\nclass Plain(FastMCP): ...\n"
    "class Own(FastMCP):\n    def __init__(self): super().__init__('b')\n",
    "inner/__init__.py": "from ..app import mcp as server, make, Own, Plain\n",
    "tools.py": "import mcp.types\nfrom os.path import *\n"
    "from .inner import server, make, Own as O, Plain\n"
    "@server.tool(structured_output=False)\ndef f() -> str: ...\n"
    "make().run(mount_path='/a')\na = O()\na.run(mount_path='/b')\nb = Plain(debug=True)\n",
}


def test_a_server_of_another_module_is_known(tmp_path: Path) -> None:
    for name, text in MODULES.items():
        (tmp_path / "program" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "program" / name).write_text(text)
    result = command.port([tmp_path / "program"], tmp_path / "pkg", 4)
    assert [path.name for path in result.files] == ["app.py", "tools.py"]
    assert result.findings == ()
    assert result.files[tmp_path / "program" / "tools.py"].decode() == (
        "from os.path import *\nfrom .inner import server, make, Own as O, Plain\n"
        "@server.tool(structured=False)\ndef f() -> str: ...\n"
        'make().run()\na = O()\na.run()\nb = Plain("FastMCP", compatibility="mcp-1")\n'
    )


def test_without_write_no_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    before = FASTMCP.removesuffix("\n").replace("\n", "\r\n").encode()
    file.write_bytes(before)
    done = run("port", file, "-o", tmp_path / "pkg")
    assert done.out == (
        f"--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n"
        "-from fastmcp import FastMCP\r\n-mcp = FastMCP('a')\n+from pkg import Server\r\n"
        "+mcp = Server('a', compatibility=\"fastmcp-4\")\n"
        "1 file would change, 0 places left to a person; features: compatibility\n"
    )
    assert (done.code, done.err) == (0, "reading the program ...\n")
    assert file.read_bytes() == before
    assert not (tmp_path / "pkg").exists()
    file.write_text("from mcp.types import *\n")
    left = {"path": f"{file}", "line": 1, "code": "from mcp.types import *"}
    done = run("-q", "port", file)
    assert done == Done(1, f"left: {file}:1: {left['code']}: import each name\n", "")
    record = {"files": [], "features": [], "left": [left | {"remedy": "import each name"}]}
    done = run("port", file, "--json")
    assert (done.code, json.loads(done.out)) == (1, record | {"diff": ""})
    done = run("port", tmp_path / "nothing", "-o", tmp_path / "pkg")
    assert (done.code, "which is not there" in done.err) == (2, True)


def test_files_outside_the_paths_and_links_stay(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(FASTMCP)
    program = tmp_path / "program"
    program.mkdir()
    (program / "link.py").symlink_to(outside)
    (program / "server.py").write_text(FASTMCP)
    words = ("-o", tmp_path / "pkg", "-r", "2025-06-18", "--write", "--json")
    done = run("port", program, *words)
    assert json.loads(done.out)["files"] == [(program / "server.py").as_posix()]
    assert (program / "server.py").read_text() == PORTED_FASTMCP
    assert outside.read_text() == FASTMCP


def test_the_package_has_the_features_that_the_program_uses(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        f"{FASTMCP}@mcp.tool\n"
        "def add(a: int, b: int = 1) -> int:\n    '''Add.'''\n    return a + b\n"
    )
    done = run("port", file, "-o", tmp_path / "pkg", "--write", "-r", "2025-06-18")
    assert done.code == 0, done.err
    assert [path.name for path in (tmp_path / "pkg").glob("r20*")] == ["r2025_06_18"]
    assert "features: compatibility" in done.out
    assert json.loads((tmp_path / "pkg" / "mcpgen.json").read_text())["options"]["errata"]
    program = (
        "import asyncio, json, program\nfrom pkg import connect\n"
        "async def main():\n    async with connect(program.mcp) as client:\n"
        "        print(json.dumps((await client.list_tools())[0].input_schema))\n"
        "asyncio.run(main())\n"
    )
    schema = json.loads(output_of(program, cwd=tmp_path))
    assert schema["properties"]["b"] == {"default": 1, "type": "integer"}


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        *(("fastmcp>=2,<3", "2"), ("fastmcp==3.1.0", "3"), ("mcp", "4"), ("mcp==2.1.0", "4")),
        *(("FastMCP_slim<4", "3"), ("fastmcp==2.*", "2"), ("fastmcp>=5", "4"), ("fastmcp", "4")),
    ],
)
def test_the_project_says_which_fastmcp_it_was_for(
    requirement: str, version: str, tmp_path: Path
) -> None:
    for folder, text in ((tmp_path, "fastmcp==2.*"), (tmp_path / "inner", requirement)):
        (folder / "inner" / "src").mkdir(parents=True)
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "a"\nversion = "1"\ndependencies = ["{text}"]\n'
        )
    file = tmp_path / "inner" / "src" / "program.py"
    file.write_text(FASTMCP)
    done = run("port", file, "-o", tmp_path / "pkg")
    assert f'compatibility="fastmcp-{version}"' in done.out


def test_a_file_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    largest = f"{FASTMCP}#".ljust(MAX_BYTES, "x").encode()
    assert ported(tmp_path, largest)[0].startswith(PORTED_FASTMCP.encode())
    with pytest.raises(UsageError, match="expected a Python file or a folder with some, got none"):
        ported(tmp_path, largest + b"x")


@pytest.mark.parametrize(
    ("source", "package"),
    [("app/inner/server.py", ""), ("app/inner", ""), ("alone/a.py", "alone"), ("alone", "alone")],
)
def test_the_package_is_beside_the_outermost_package(
    source: str, package: str, tmp_path: Path
) -> None:
    for name in ("app/__init__.py", "app/inner/__init__.py", "app/inner/server.py", "alone/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FASTMCP)
    assert command.default_package(tmp_path / source) == tmp_path / package / "my_protocol"
