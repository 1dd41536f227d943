"""`mcpgen port`: programs of FastMCP and of the official SDK, rewritten to a generated package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import output_of, run

command: Any = pytest.importorskip("mcpgen.port.command")  # which needs libcst

OFFICIAL = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('a')\n"
PORTED = "from pkg import Server\nmcp = Server('a', compatibility=\"mcp-1\")\n"
FASTMCP = "from fastmcp import FastMCP\nmcp = FastMCP('a')\n"
PORTED_FASTMCP = "from pkg import Server\nmcp = Server('a', compatibility=\"fastmcp-4\")\n"
LOW = "from mcp.server import Server\nserver = Server('a')\n"
PORTED_LOW = "from pkg import Server\nserver = Server('a')\n"
OFFICIAL_2 = "from mcp.server.mcpserver import MCPServer\n"
SDK_MIDDLEWARE = (
    "from mcp.server.context import CallNext, HandlerResult, ServerRequestContext\n"
    "async def f(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:\n"
)
CONTEXT = "from fastmcp import Context\nasync def tool(ctx: Context) -> None:\n    "
PORTED_CONTEXT = "from pkg import Context\nasync def tool(ctx: Context) -> None:\n    "

ROWS = {
    # Servers.
    OFFICIAL: PORTED,
    FASTMCP: PORTED_FASTMCP,
    LOW: PORTED_LOW,
    "from mcp.server.mcpserver import MCPServer\na = MCPServer('a')\n": (
        "from pkg import Server\na = Server('a', compatibility=\"mcp-2\")\n"
    ),
    "import fastmcp\na = fastmcp.FastMCP()\n": (
        'from pkg import Server\na = Server("FastMCP", compatibility="fastmcp-4")\n'
    ),
    "from fastmcp import FastMCP as F\na = F('a')\n": (
        "from pkg import Server as F\na = F('a', compatibility=\"fastmcp-4\")\n"
    ),
    "from fastmcp import FastMCP\na = FastMCP('a', 'Use it.', version='2')\n": (
        "from pkg import Server\n"
        "a = Server('a', instructions='Use it.', version='2', compatibility=\"fastmcp-4\")\n"
    ),
    "from fastmcp import FastMCP\na = FastMCP('a', on_duplicate='error', list_page_size=5)\n": (
        "from pkg import Server\na = Server('a', page_size=5, compatibility=\"fastmcp-4\")\n"
    ),
    "from fastmcp import FastMCP\na = FastMCP('a', strict_input_validation=True)\n": (
        "from pkg import Server\na = Server('a', coerce=False, compatibility=\"fastmcp-4\")\n"
    ),
    "from fastmcp import FastMCP\nclass A(FastMCP): ...\na = A('a', on_duplicate='error')\n"
    "a.tool(f, run_in_thread=False)\n": (
        "from pkg import Server\nclass A(Server): ...\na = A('a', compatibility=\"fastmcp-4\")\n"
        "a.tool(f, threads=False)\n"
    ),
    "from fastmcp import FastMCP\nclass A(FastMCP):\n    def __init__(self, b):\n"
    "        super().__init__('a')\n        self.tool(b, name='b')\na = A(1)\n": (
        "from pkg import Server\nclass A(Server):\n    def __init__(self, b):\n"
        "        super().__init__('a', compatibility=\"fastmcp-4\")\n"
        "        self.add_tool(b, name='b')\na = A(1)\n"
    ),
    "from fastmcp import FastMCP\nfrom fastmcp.tools import Tool\nmcp = FastMCP('a')\n"
    "mcp.add_tool(Tool.from_function(f, name='a'))\n": (
        PORTED_FASTMCP + "mcp.add_tool(f, name='a')\n"
    ),
    "from fastmcp.utilities.types import Image\na = Image(path='a')\nb = a.to_data_uri()\n": (
        "import base64\nfrom pkg import Image\na = Image(path='a')\n"
        'b = f"data:{a.mime_type};base64,{base64.b64encode(a.data).decode()}"\n'
    ),
    "from fastmcp.utilities.logging import get_logger\na = get_logger('a')\n": (
        "import logging\na = logging.getLogger('a')\n"
    ),
    FASTMCP + "app = mcp.http_app(path='/', stateless_http=True)\n": (
        PORTED_FASTMCP + "app = mcp.asgi(path='/', stateless=True)\n"
    ),
    "from fastmcp.server.middleware import Middleware, MiddlewareContext\n"
    "class A(Middleware):\n    async def on_message(self, a: MiddlewareContext[B], b): ...\n": (
        "from pkg import Middleware, MiddlewareRequest\n"
        "class A(Middleware):\n    async def on_message(self, a: MiddlewareRequest, b): ...\n"
    ),
    OFFICIAL_2 + "a = MCPServer('a', subscriptions=False)\n": (
        "from pkg import Server\na = Server('a', list_changed=False, compatibility=\"mcp-2\")\n"
    ),
    OFFICIAL_2 + "def a() -> MCPServer: ...\nasync def b():\n    await a().run_stdio_async()\n": (
        "from pkg import Server\n"
        "def a() -> Server: ...\nasync def b():\n    await a().run_async()\n"
    ),
    OFFICIAL_2 + SDK_MIDDLEWARE + "    if ctx.method == 'a' and ctx.params is not None:\n"
    "        print(ctx.params.get('name'), ctx.lifespan_context)\n    return await call_next(ctx)\n"
    "a = MCPServer('a')\na.middleware.append(f)\n": (
        "from pkg import MiddlewareRequest, Next, Server, to_builtins\n"
        "async def f(ctx: MiddlewareRequest, call_next: Next) -> object:\n"
        "    if ctx.method == 'a' and to_builtins(ctx.params) is not None:\n"
        "        print(to_builtins(ctx.params).get('name'), ctx.state)\n"
        "    return await call_next(ctx)\n"
        "a = Server('a', compatibility=\"mcp-2\")\na.middleware(f)\n"
    ),
    "from mcp.server import Server\ndef f():\n    return Server('a', on_list_tools=g)\n": (
        "from pkg import Server\ndef f():\n    new_server = Server('a')\n"
        '    new_server.request_handler("tools/list")(g)\n    return new_server\n'
    ),
    "from mcp.server import Server\nfrom mcp.server.models import InitializationOptions\n"
    "from mcp.server.stdio import stdio_server\nserver = Server('a')\nasync def f():\n"
    "    async with stdio_server() as (r, w):\n"
    "        o = InitializationOptions(server_name='b', server_version='1', capabilities=c)\n"
    "        await server.run(r, w, o)\n": (
        "from pkg import Server\nserver = Server('b', version='1')\nasync def f():\n"
        "    await server.run_async()\n"
    ),
    "from typing import Any\nfrom mcp.server.context import ServerMiddleware\n"
    "def f() -> ServerMiddleware[Any]: ...\n": (
        "import collections.abc\nfrom typing import Any\nfrom pkg import MiddlewareRequest, Next\n"
        "def f() -> collections.abc.Callable[[MiddlewareRequest, Next], "
        "collections.abc.Awaitable[object]]: ...\n"
    ),
    "from fastmcp.server.middleware.logging import LoggingMiddleware\n"
    "a = LoggingMiddleware(logger=b, log_level=10, include_payloads=False, methods=None)\n": (
        "from pkg import log_requests\na = log_requests(logger=b, level=10)\n"
    ),
    "from fastmcp.server.middleware.timing import TimingMiddleware\n"
    "a = TimingMiddleware(b, 10)\n": (
        "from pkg import log_requests\na = log_requests(logger=b, level=10)\n"
    ),
    # Decorators and their keywords.
    OFFICIAL + "@mcp.tool(structured_output=False)\ndef f() -> str: ...\n": (
        PORTED + "@mcp.tool(structured=False)\ndef f() -> str: ...\n"
    ),
    OFFICIAL + "@mcp.tool(structured_output=True)\ndef f() -> str: ...\n": (
        PORTED + "@mcp.tool()\ndef f() -> str: ...\n"
    ),
    FASTMCP + "@mcp.tool(run_in_thread=False)\ndef f() -> str: ...\n": (
        PORTED_FASTMCP + "@mcp.tool(threads=False)\ndef f() -> str: ...\n"
    ),
    FASTMCP + "@mcp.resource('a://{path*}')\ndef f(path: str) -> str: ...\n": (
        PORTED_FASTMCP + "@mcp.resource('a://{+path}')\ndef f(path: str) -> str: ...\n"
    ),
    FASTMCP + "@mcp.tool\ndef f() -> str: ...\n": (
        PORTED_FASTMCP + "@mcp.tool\ndef f() -> str: ...\n"
    ),
    FASTMCP + "mcp.tool(f, name='a')\n": PORTED_FASTMCP + "mcp.add_tool(f, name='a')\n",
    # Low-level handlers.
    LOW + "@server.list_tools()\nasync def f(): ...\n": (
        PORTED_LOW + '@server.request_handler("tools/list")\nasync def f(): ...\n'
    ),
    LOW + "@server.call_tool(validate_input=False)\nasync def f(name, arguments): ...\n": (
        PORTED_LOW + '@server.request_handler("tools/call", validate_input=False)\n'
        "async def f(name, arguments): ...\n"
    ),
    "from mcp.server import Server\nserver = Server('a', on_list_tools=f)\n": (
        "from pkg import Server\nserver = Server('a')\nserver.request_handler(\"tools/list\")(f)\n"
    ),
    LOW + "def f():\n    return server.request_context.lifespan_context\n": (
        PORTED_LOW + "def f():\n    return server.current_context.state\n"
    ),
    # Standard streams of the low level.
    "from mcp.server import Server\nfrom mcp.server.stdio import stdio_server\n"
    "server = Server('a')\n"
    "async def main():\n"
    "    options = server.create_initialization_options()\n"
    "    async with stdio_server() as (read, write):\n"
    "        await server.run(read, write, options, raise_exceptions=True)\n": (
        "from pkg import Server\n"
        "server = Server('a')\n"
        "async def main():\n"
        "    await server.run_async()\n"
    ),
    "from mcp.server import NotificationOptions, Server\n"
    "from mcp.server.models import InitializationOptions\n"
    "import mcp.server.stdio\n"
    "server = Server('a')\n"
    "async def main():\n"
    "    async with mcp.server.stdio.stdio_server() as streams:\n"
    "        # serve\n"
    "        await server.run(streams[0], streams[1], InitializationOptions(\n"
    "            server_name='b', server_version='2',\n"
    "            capabilities=server.get_capabilities(NotificationOptions(), {})))\n": (
        "from pkg import Server\n"
        "server = Server('b', version='2')\n"
        "async def main():\n"
        "    # serve\n"
        "    await server.run_async()\n"
    ),
    FASTMCP + "app = mcp.http_app()\n": PORTED_FASTMCP + "app = mcp.asgi()\n",
    OFFICIAL + "app = mcp.sse_app()\n": PORTED + 'app = mcp.asgi(sse_path="/sse")\n',
    LOW + "async def f():\n"
    "    await server.request_context.session.send_log_message('info', data='a')\n": (
        PORTED_LOW + "async def f():\n"
        "    await server.current_context.log(level='info', data='a')\n"
    ),
    LOW + "async def f():\n    await server.request_context.session.send_resource_updated(uri)\n": (
        PORTED_LOW + "async def f():\n"
        "    await server.current_context.request_context.notify("
        '"notifications/resources/updated", {"uri": str(uri)})\n'
    ),
    CONTEXT + "await ctx.session.send_progress_notification('t', 1, total=2)\n": (
        PORTED_CONTEXT + "await ctx.report_progress(progress=1, total=2)\n"
    ),
    # Runs.
    OFFICIAL + "mcp.run(transport='stdio')\n": PORTED + "mcp.run(transport='stdio')\n",
    FASTMCP + "mcp.run('http', host='a', port=1, show_banner=False)\n": (
        PORTED_FASTMCP + "mcp.run('http', host='a', port=1, banner=False)\n"
    ),
    FASTMCP + "async def f():\n    await mcp.run_http_async(port=1)\n": (
        PORTED_FASTMCP + 'async def f():\n    await mcp.run_async("http", port=1)\n'
    ),
    # Contexts.
    CONTEXT + "await ctx.info(message='a', logger_name='b')\n": (
        PORTED_CONTEXT + "await ctx.info(data='a', logger='b')\n"
    ),
    CONTEXT + "await ctx.elicit('a', response_type=str)\n": (
        PORTED_CONTEXT + "await ctx.elicit('a', form=str)\n"
    ),
    CONTEXT + "ctx.request_context.lifespan_context['db']\n": PORTED_CONTEXT + "ctx.state['db']\n",
    CONTEXT + "ctx.lifespan_context['db']\n": PORTED_CONTEXT + "ctx.state['db']\n",
    "from mcp.server.fastmcp import Context\ndef f(ctx: Context[A, B]): ...\n": (
        "from pkg import Context\ndef f(ctx: Context[B]): ...\n"
    ),
    "from mcp.server.fastmcp import Context\ndef f(ctx: Context[A, None] | None = None): ...\n": (
        "from pkg import Context\ndef f(ctx: Context | None = None): ...\n"
    ),
    # Results and errors.
    "from mcp import types\na = types.TextContent(type='text', text='a')\n": (
        "from pkg import models as types\na = types.TextContent(type='text', text='a')\n"
    ),
    "from mcp.types import TextContent\na = TextContent(type='text', text='a')\n": (
        "from pkg.models import TextContent\na = TextContent(type='text', text='a')\n"
    ),
    "import mcp.types as types\nraise ValueError(types.INVALID_PARAMS)\n": (
        "from pkg.errors import INVALID_PARAMS\nraise ValueError(INVALID_PARAMS)\n"
    ),
    "from mcp.shared.exceptions import McpError\nfrom mcp.types import ErrorData, INTERNAL_ERROR\n"
    "raise McpError(ErrorData(code=INTERNAL_ERROR, message='a'))\n": (
        "from pkg import ProtocolError\nfrom pkg.errors import INTERNAL_ERROR\n"
        "raise ProtocolError('a', code=INTERNAL_ERROR)\n"
    ),
    "from fastmcp.exceptions import ToolError\nraise ToolError('a')\n": (
        "from pkg import ToolError\nraise ToolError('a')\n"
    ),
    "from mcp.server.fastmcp.prompts import base\na = [base.UserMessage('a')]\n": (
        "from pkg import Message\na = [Message(\"user\", 'a')]\n"
    ),
    # Clients and tests.
    "from fastmcp import Client\nasync def f(s):\n    async with Client(s) as c: ...\n": (
        "from pkg import connect\nasync def f(s):\n    async with connect(s) as c: ...\n"
    ),
    "from mcp import ClientSession, StdioServerParameters\n"
    "from mcp.client.stdio import stdio_client\n"
    "a = StdioServerParameters(command='python', args=['b.py'], env=None)\n"
    "async def f():\n"
    "    async with stdio_client(a) as (read, write):\n"
    "        async with ClientSession(read, write) as session:\n"
    "            await session.initialize()\n"
    "            print((await session.list_tools()).tools)\n": (
        "from pkg import connect\n"
        "a = ['python', 'b.py']\n"
        "async def f():\n"
        "    async with connect(a, env=None) as session:\n"
        "        print((await session.list_tools_page()).tools)\n"
    ),
    "from mcp import ClientSession\n"
    "from mcp.client.streamable_http import streamablehttp_client\n"
    "async def f():\n"
    "    async with streamablehttp_client('http://a', headers=h) as (r, w, _), ClientSession(\n"
    "        r, w\n"
    "    ) as session:\n"
    "        await session.initialize()\n": (
        "from pkg import connect\n"
        "async def f():\n"
        "    async with connect('http://a', headers=h) as session:\n"
        "        pass\n"
    ),
}
"""Programs, and what they are after a port."""

LEFT = {
    "from fastmcp import FastMCP\na = FastMCP('a', auth=b)\n": (2, "FastMCP(auth=)", "asgi(auth="),
    "from fastmcp.server.auth import OAuthProxy\na = OAuthProxy()\n": (
        1,
        "from fastmcp.server.auth import OAuthProxy",
        "use Protected(issuers=[...])",
    ),
    FASTMCP + "mcp.add_transform(b)\n": (3, "add_transform()", "server.mount(other, prefix=...)"),
    FASTMCP + "@mcp.tool(exclude_args=['a'])\ndef f(a): ...\n": (
        3,
        "tool(exclude_args=)",
        "Depends",
    ),
    CONTEXT + "await ctx.read_resource('a')\n": (
        3,
        "ctx.read_resource()",
        "server.read_resource(uri)",
    ),
    FASTMCP + "assert result.isError\n": (3, ".isError", "have is_error"),
    FASTMCP + "a = image.to_data_uri()\n": (3, ".to_data_uri()", "base64.b64encode"),
    LOW + "def f():\n    server.request_context.session\n": (
        4,
        "request_context.session",
        "use ctx.client",
    ),
    SDK_MIDDLEWARE + "    return await call_next(replace(ctx, params=a))\n": (
        3,
        "ctx",
        "with_params()",
    ),
    SDK_MIDDLEWARE + "    ctx.session\n": (3, ".session", ".context"),
    "from mcp.server.fastmcp import FastMCP\na = FastMCP\n": (2, "FastMCP", "compatibility="),
    OFFICIAL_2 + "a = MCPServer('a')\na.middleware.insert(0, f)\n": (
        3,
        "middleware.insert()",
        "server.middleware(f)",
    ),
    "from fastmcp.server.middleware.logging import LoggingMiddleware\n"
    "a = LoggingMiddleware(include_payloads=True)\n": (
        2,
        "LoggingMiddleware(include_payloads=)",
        "no params",
    ),
    "from fastmcp import FastMCP\nclass A(FastMCP):\n    def http_app(self): ...\n": (
        3,
        "A.http_app()",
        "change the call",
    ),
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


@pytest.mark.parametrize("before", ROWS)
def test_a_program_becomes_one_of_the_package_once(before: str, tmp_path: Path) -> None:
    after = ROWS[before].encode()
    assert ported(tmp_path, before.encode()) == (after, ())
    assert ported(tmp_path, after) == (after, ())


@pytest.mark.parametrize("before", LEFT)
def test_code_that_is_not_understood_stays_and_is_listed(before: str, tmp_path: Path) -> None:
    line, code, remedy = LEFT[before]
    _, [left] = ported(tmp_path, before.encode())
    assert (left.line, left.code) == (line, code)
    assert remedy in left.remedy


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


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encoding_and_line_ends_are_kept(newline: str, encoding: str, tmp_path: Path) -> None:
    declared = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    before = f"{declared}from fastmcp import FastMCP\nmcp = FastMCP('M\u00fcller')\n"
    after = f"{declared}{PORTED_FASTMCP}".replace("'a'", "'M\u00fcller'")
    text = before.replace("\n", newline).encode(encoding)
    assert ported(tmp_path, text)[0] == after.replace("\n", newline).encode(encoding)


def test_a_syntax_error_is_listed_with_its_line(tmp_path: Path) -> None:
    text, [left] = ported(tmp_path, b"import fastmcp\ndef f(:\n")
    assert text == b"import fastmcp\ndef f(:\n"
    assert (left.line, left.code) == (2, "syntax error")


def test_a_server_of_another_module_is_known(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "app.py").write_text(OFFICIAL)
    (program / "tools.py").write_text(
        "from .app import mcp\n@mcp.tool(structured_output=False)\ndef f() -> str: ...\n"
    )
    result = command.port([program], tmp_path / "pkg", 4)
    assert b"structured=False" in result.files[program / "tools.py"]


def test_without_write_no_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(FASTMCP)
    done = run("port", file, "-o", tmp_path / "pkg")
    assert "-from fastmcp import FastMCP\n" in done.out
    assert "+from pkg import Server\n" in done.out
    assert file.read_text() == FASTMCP
    assert not (tmp_path / "pkg").exists()
    file.write_text("from mcp.types import *\n")
    done = run("port", file, "-o", tmp_path / "pkg", "--json")
    [left] = json.loads(done.out)["left"]
    assert (done.code, left["line"], left["code"]) == (1, 1, "from mcp.types import *")
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
    [("fastmcp>=2,<3", "2"), ("fastmcp>=2.3", "4"), ("fastmcp==3.1.0", "3"), ("mcp", "4")],
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
