"""`mcpgen port`: programs of FastMCP and of the official SDK, rewritten to a generated package."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, output_of, run

command: Any = pytest.importorskip("mcpgen.port.command")  # which needs libcst

OFFICIAL = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('a')\n"
FASTMCP = "from fastmcp import FastMCP\nmcp = FastMCP('a')\n"
PORTED_FASTMCP = "from pkg import Server\nmcp = Server('a', compatibility=\"fastmcp-4\")\n"
LOW = "from mcp.server import Server\nserver = Server('a')\n"
OFFICIAL_2 = "from mcp.server.mcpserver import MCPServer\n"
SDK_MIDDLEWARE = (
    "from mcp.server.context import CallNext, HandlerResult, ServerRequestContext\n"
    "async def f(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:\n"
)
CONTEXT = "from fastmcp import Context\nasync def tool(ctx: Context) -> None:\n    "

PROGRAMS = tomllib.loads((Path(__file__).parent / "ported_programs.toml").read_text("utf-8"))

OTHER_AUTH = "from fastmcp.server.auth import OAuthProxy\na = OAuthProxy()\n"
LOGGING = "from fastmcp.server.middleware.logging import LoggingMiddleware\n"
STDIO = (
    f"from mcp.server.stdio import stdio_server\n{LOW}async def f():\n    async with stdio_server()"
)
OF_CLIENTS = (1, "from mcp import stdio_client", "use connect([command, ...])")
IN_STREAMS = (5, "stdio_server()", "use await server.run_async()")
SESSION = (
    "from mcp import ClientSession, StdioServerParameters, stdio_client\nasync def f():\n"
    "    async with stdio_client(StdioServerParameters(command='a')) as (r, w):\n"
    "        async with ClientSession(r, w) as session:\n            "
)
SUBCLASS = "from fastmcp import FastMCP\nclass A(FastMCP):\n    def http_app(self): ...\n"
LEFT = {
    FASTMCP.replace(")", ", auth=b)"): (2, "FastMCP(auth=)", "asgi(auth="),
    OTHER_AUTH: (1, "from fastmcp.server.auth import OAuthProxy", "use Protected(issuers=[...])"),
    FASTMCP + "mcp.add_transform(b)\n": (3, "add_transform()", "server.mount(other, prefix=...)"),
    FASTMCP + "mcp.own()\n": (3, "own()", "pages on servers"),
    FASTMCP + "mcp.run(own=1)\n": (3, "run(own=)", "remove it"),
    FASTMCP + "@mcp.tool(structured_output=a)\ndef f(): ...\n": (
        *(3, "tool(structured_output=)", "use structured=False for False"),
    ),
    FASTMCP.replace("'a'", "*a"): (2, "a server's arguments", "name each one"),
    FASTMCP.replace("'a'", "'a', 'b', c"): (2, "a server's arguments", "name each one"),
    FASTMCP.replace(")", ", mask_error_details=True)"): (
        2,
        "mask_error_details=",
        "compatibility=",
    ),
    "from fastmcp import FastMCP\nclass A(FastMCP):\n    def f(self): self.add_transform(b)\n": (
        *(3, "add_transform()", "server.mount(other, prefix=...)"),
    ),
    "from fastmcp import Client\na = Client(s, timeout=3)\n": (2, "Client(timeout=)", "timeouts="),
    CONTEXT + "await ctx.info('a', extra=b)\n": (3, "ctx.info(extra=)", "a dict as the message"),
    CONTEXT + "ctx.request_context.session\n": (3, "request_context.session", "use ctx.client"),
    LOW + "f(Server('a', on_list_tools=g))\n": (3, "Server(on_list_tools=)", "request_handler("),
    LOW + "@server.call_tool(own=1)\ndef f(): ...\n": (3, "call_tool(own=)", "remove it"),
    f"{STDIO} as s:\n        await server.run(s[0], s[1], a)\n        print(s)\n": IN_STREAMS,
    f"{STDIO} as s:\n        await server.run(s[0], s[1], a, own=True)\n": IN_STREAMS,
    f"{SESSION}await session.call_tool('a', read_timeout_seconds=3)\n": (
        *(5, "call_tool(read_timeout_seconds=)", "use timeout="),
    ),
    SESSION.replace("='a'", "='a', encoding='b'") + "pass\n": OF_CLIENTS,
    SESSION.replace("(r, w) as s", "(r, w, f) as s") + "pass\n": OF_CLIENTS,
    f"{SESSION}print(r)\n": OF_CLIENTS,
    FASTMCP + "@mcp.tool(exclude_args=[])\ndef f(): ...\n": (3, "tool(exclude_args=)", "Depends"),
    CONTEXT + "await ctx.read_resource('a')\n": (3, "ctx.read_resource()", "server.read_resource"),
    FASTMCP + "assert result.isError\n": (3, ".isError", "have is_error"),
    LOW + "def f():\n    server.request_context.session\n": (
        *(4, "request_context.session", "use ctx.client"),
    ),
    SDK_MIDDLEWARE + "    call_next(replace(ctx, params=a))\n": (3, "ctx", "with_params()"),
    SDK_MIDDLEWARE + "    ctx.session\n": (3, ".session", ".context"),
    "from mcp.server.fastmcp import FastMCP\na = FastMCP\n": (2, "FastMCP", "compatibility="),
    OFFICIAL_2 + "a = MCPServer('a')\na.middleware.insert(0, f)\n": (
        *(3, "middleware.insert()", "server.middleware(f)"),
    ),
    LOGGING + "a = LoggingMiddleware(include_payloads=True)\n": (
        *(2, "LoggingMiddleware(include_payloads=)", "no params"),
    ),
    SUBCLASS: (3, "A.http_app()", "change the call"),
    "import fastmcp\ndef f(:\n": (2, "syntax error", ""),
    "from fastmcp.prompts import Message\na = Message\n": (
        *(2, "Message", "whose parameters may differ"),
    ),
    "from mcp.server.fastmcp.prompts import base\na = [base.Message(1, 2, 3)]\n": (
        *(2, "Message", "whose parameters may differ"),
    ),
    LOW + "print(server.create_initialization_options())\n": (
        *(3, "create_initialization_options()", "needs no options"),
    ),
    CONTEXT + "ctx.session.own()\n": (3, "ctx.session", "use ctx.client"),
    "from mcp.types import *\n": (1, "from mcp.types import *", "import each name"),
}
"""Programs with one place that is left to a person: its line, its code, a part of the remedy."""

FOREIGN = (
    "from flask import Flask\napp = Flask('a')\n@app.tool(structured_output=False)\ndef f(): ...\n",
    "class FastMCP: ...\nmcp = FastMCP('a', debug=True)\n",
    "def f(ctx):\n    ctx.info(message='fastmcp')\n",
    "from mcpx import FastMCP\nmcp = FastMCP('a', debug=True)\n",
)
"""Programs of which nothing comes from another SDK."""


def ported(folder: Path, source: bytes) -> tuple[bytes, Any]:
    """The text of a file after a port, and what was left to a person."""
    file = folder / "program.py"
    file.write_bytes(source)
    result = command.port([file], folder / "pkg", 4)
    return result.files.get(file, source), result.findings


@pytest.mark.parametrize("row", PROGRAMS["program"], ids=lambda row: row["before"])
def test_a_program_becomes_one_of_the_package_once(row: dict[str, Any], tmp_path: Path) -> None:
    before, after = row["before"].encode(), row["after"].encode()
    made, left = ported(tmp_path, before)
    assert (made, [each.code for each in left]) == (after, row.get("left", []))
    assert ported(tmp_path, after) == (after, ())


@pytest.mark.parametrize("before", LEFT)
def test_code_that_is_not_understood_stays_and_is_listed(before: str, tmp_path: Path) -> None:
    line, code, remedy = LEFT[before]
    after, [*others, left] = ported(tmp_path, before.encode())
    assert (left.line, left.code) == (line, code)
    assert remedy in left.remedy
    assert [each.code for each in others if not each.code.startswith("from mcp")] == []
    kept = {each.code.rpartition(" ")[2] for each in (*others, left) if " import " in each.code}
    imports = " ".join(re.findall(r"^from .* import (.*)", after.decode(), re.MULTILINE))
    assert kept <= {*re.split(r",? ", imports)}


@pytest.mark.parametrize("source", FOREIGN)
def test_code_of_no_other_sdk_stays(source: str, tmp_path: Path) -> None:
    assert ported(tmp_path, source.encode()) == (source.encode(), ())


def test_comments_and_formatting_are_kept(tmp_path: Path) -> None:
    before = (
        "# top\nfrom fastmcp import FastMCP  # the server\n\n\nmcp = FastMCP(\n    'a',  # name\n"
        "    version = '1',\n)\n\n@mcp.tool( name = 'b' )  # why\n"
        "def f( a:int ) -> int:\n    return a\n"
    )
    after = before.replace("from fastmcp import FastMCP", "from pkg import Server")
    after = after.replace("FastMCP(", "Server(")
    after = after.replace("'1',\n", "'1',\n    compatibility=\"fastmcp-4\",\n")
    assert ported(tmp_path, before.encode()) == (after.encode(), ())


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
    file.write_text(FASTMCP, newline="\r\n")
    done = run("port", file, "-o", tmp_path / "pkg")
    assert done.out == (
        f"--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n"
        "-from fastmcp import FastMCP\r\n-mcp = FastMCP('a')\r\n+from pkg import Server\r\n"
        "+mcp = Server('a', compatibility=\"fastmcp-4\")\r\n"
        "1 file would change, 0 places left to a person; features: compatibility\n"
    )
    assert (done.code, done.err) == (0, "reading the program ...\n")
    assert file.read_bytes() == FASTMCP.replace("\n", "\r\n").encode()
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
    assert "features: compatibility" in done.out
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
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "a"\nversion = "1"\ndependencies = ["{requirement}"]\n'
    )
    file = tmp_path / "program.py"
    file.write_text(FASTMCP)
    done = run("port", file, "-o", tmp_path / "pkg")
    assert f'compatibility="fastmcp-{version}"' in done.out


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
