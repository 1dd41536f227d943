"""Code for FastMCP or the official SDK works, or the error names the replacement."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from typing import Any

import pytest

import mcpgen_runtime
from kit.live import server_with
from kit.processes import python
from kit.stdio_process import PATHS
from mcpgen_runtime import (
    CacheHint,
    ClientHandlers,
    ClientLimits,
    Context,
    Image,
    Server,
    Text,
    Timeouts,
    ToolResult,
    connect,
    connect_sync,
    sdk_names,
)
from mcpgen_runtime.client.chosen import ConnectOptions
from mcpgen_runtime.sdk_names import NOT_EXPORTED
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions
from mcpgen_runtime.server.chosen import ServerOptions, ToolOptions

NO_TYPES: Any = Server("untyped")
"""As a program without types uses a server."""
CLIENT: Any = mcpgen_runtime.Client
CONNECT: Any = connect
CONNECT_SYNC: Any = connect_sync


def double(number: int) -> int:
    return 2 * number


def path_of(path: str) -> str:
    return path


@pytest.mark.parametrize(
    ("use", "alternative"),
    [
        (lambda: NO_TYPES.tool(structured_output=False), "use structured=False for False"),
        (lambda: NO_TYPES.tool(task=True), "use runner=Tasks.*--extension tasks, .*capabilities="),
        (lambda: NO_TYPES.add_tool(double, enabled=False), r"server\.disable"),
        (lambda: NO_TYPES.prompt(auth=None), "scopes="),
        (lambda: NO_TYPES.tool(whatever=1), "server.tool: unexpected keyword argument 'whatever'$"),
        (lambda: NO_TYPES.run(transport="sse"), r"use run\(transport='http', sse_path='/sse'\)"),
        (lambda: NO_TYPES.mount("b", Server("b")), r"got str: use server\.mount\(other, prefix="),
        (lambda: NO_TYPES.call_tool("a", {}, version="2"), "unexpected keyword argument"),
        (lambda: CLIENT(Server("b")), r"Client: .*: use connect\(target\)$"),
        (lambda: NO_TYPES.asgi(port=1), r"server.asgi: .* use run\(http='127.0.0.1:8000'\)"),
        (lambda: type(NO_TYPES)("a", on_duplicate="error"), r"server\.remove_tool"),
        (lambda: type(NO_TYPES)("a", icons=["a.png"]), "expected Icon, got 'a.png'"),
        (lambda: NO_TYPES.tool(annotations={"readOnly": True}), "expected title, read_only_hint"),
        (lambda: NO_TYPES.tool(annotations={"title": 1}), "Expected `str"),
        (lambda: NO_TYPES.resource("a://{path*}")(path_of), r"{\+path} is one value"),
        (
            lambda: NO_TYPES.mount(Server("other"), namespace="git"),
            "server.mount: .*: use prefix=$",
        ),
        (lambda: CONNECT("x", sampling_handler=None), r"^connect: .* with create_message\(\)$"),
        (lambda: CONNECT("x", nothing=1), "^connect: unexpected keyword argument 'nothing'$"),
        (lambda: CONNECT_SYNC("x", timeout=5), r"^connect_sync: .* use timeouts=Timeouts"),
    ],
)
def test_names_of_other_sdks_are_refused_with_an_alternative(use: Any, alternative: str) -> None:
    with pytest.raises(TypeError, match=alternative):
        use()


def test_a_missing_attribute_names_another_one() -> None:
    with pytest.raises(AttributeError, match=r"or server\.middleware\(function\)$"):
        NO_TYPES.add_transform(None)
    with pytest.raises(AttributeError, match="'Image' object has no attribute 'to_data_uri': use "):
        getattr(Image(b"a", "image/png"), "to_data_uri")  # noqa: B009 - the name is of another SDK
    for server in (NO_TYPES, Server):
        with pytest.raises(AttributeError, match=r"'Server' object .*: use Server\.proxy\(target"):
            server.as_proxy("https://example.com/mcp")
    with pytest.raises(AttributeError, match=r"use Server\.from_openapi\(app\.openapi\(\), "):
        type(NO_TYPES).from_fastapi(None)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        _ = NO_TYPES.nothing


@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_context_and_its_request_name_other_words(is_plain: bool) -> None:
    refused: list[str] = []

    def look(ctx: Any) -> None:
        for use in (
            lambda: ctx.read_resource("data://a"),
            lambda: ctx.request_context.lifespan_context,
        ):
            with pytest.raises(AttributeError) as error:
                use()
            refused.append(str(error.value))

    async def in_the_loop(ctx: Context) -> None:
        untyped: Any = ctx
        with pytest.raises(TypeError, match=r"ctx.elicit: .*: use form=$"):
            await untyped.elicit("Seat?", response_type=str)
        look(ctx)

    def in_a_thread(ctx: Context) -> None:
        look(ctx)

    server = server_with(in_the_loop, in_a_thread)
    called = await server.call_tool("in_a_thread" if is_plain else "in_the_loop")
    assert not called.is_error
    assert refused[0].endswith(": use await server.read_resource(uri)")
    assert refused[1].endswith("has no attribute 'lifespan_context': use ctx.state")


async def test_a_client_names_another_attribute() -> None:
    async with connect(Server("names")) as client:
        for name, alternative in sdk_names.ATTRIBUTES["Client"].items():
            with pytest.raises(AttributeError) as error:
                getattr(client, name)
            assert str(error.value).endswith(f"no attribute {name!r}: use {alternative}")


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        ("", "FastMCP", r"^mcpgen_runtime has no FastMCP: use Server$"),
        ("", "types", "^mcpgen_runtime has no types: use models, a module$"),
        ("", "METHOD_NOT_FOUND", "^mcpgen_runtime has no .*FOUND: use errors, a module$"),
        (".server", "nothing", r"^cannot import name 'nothing' from 'mcpgen_runtime\.server"),
    ],
)
def test_an_import_of_a_name_of_another_sdk_says_what_to_import(
    module: str, name: str, text: str
) -> None:
    with pytest.raises(ImportError, match=text):
        exec(f"from mcpgen_runtime{module} import {name}")


def test_any_other_module_is_not_there() -> None:
    absent = "nothing"
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'mcpgen_runtime\.nothing'$"):
        exec(f"import mcpgen_runtime.{absent}")
    with pytest.raises(
        AttributeError, match=r"^module 'mcpgen_runtime' has no attribute 'nothing'$"
    ):
        getattr(mcpgen_runtime, absent)


FAILING = """
    import asyncio
    from mcpgen_runtime import Server
    from mcpgen_runtime.testing import connected

    def fail() -> None:
        raise ValueError("seen")

    async def main() -> None:
        for shows in (True, False, False):
            server = Server("fails", show_errors=shows)
            server.tool(fail)
            async with connected(server) as pair:
                print((await pair.client.call_tool("fail")).content[0].text)

    asyncio.run(main())
"""


def test_hidden_text_of_exceptions_is_warned_of_once() -> None:
    ended = subprocess.run(
        python(FAILING), capture_output=True, text=True, check=True, env={**os.environ, **PATHS}
    )
    assert ended.stdout.splitlines() == ["seen", *["tool 'fail' failed"] * 2]
    assert ended.stderr.count("Server(show_errors=True)") == 1


ROOT = frozenset(dir(mcpgen_runtime))
TEXTS = " ".join(
    text
    for tables in (sdk_names.KEYWORDS, sdk_names.ATTRIBUTES)
    for table in tables.values()
    for text in table.values()
)
TEXTS += " ".join(sdk_names.NAMES.values())
OWNERS: dict[str, Any] = {
    "server": Server,
    "Server": Server,
    "ctx": Context,
    "client": mcpgen_runtime.Client,
    "request": mcpgen_runtime.MiddlewareRequest,
}


def test_every_alternative_exists() -> None:
    for owner, name in re.findall(r"\b(server|Server|ctx|client|request)\.(?!py\b)(\w+)", TEXTS):
        slots: Any = getattr(OWNERS[owner], "__slots__", ())
        assert hasattr(OWNERS[owner], name) or name in slots, f"{owner}.{name}"
    for name in re.findall(r"handlers= of connect, with (\w+)\(\)", TEXTS):
        assert hasattr(ClientHandlers, name), name
    for name in re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", TEXTS):
        assert name in ROOT | {"TypeError"}, name
    client = mcpgen_runtime.Client
    calls: tuple[Any, ...] = (
        *(Server, Server.tool, Server.add_tool_variant, Server.resource, Server.asgi, Server.run),
        *(Server.mount, Server.from_openapi, Server.completion, Server.method, Server.run_workers),
        *(Context.elicit, Context.log, connect, client.listen, client.call_tool),
        *(Timeouts, ClientLimits, mcpgen_runtime.Protected, CacheHint),
    )
    keywords = {name for call in calls for name in inspect.signature(call).parameters}
    for options in (ConnectOptions, ServerHttpOptions, ServerOptions, ToolOptions):
        keywords |= options.__optional_keys__
    assert set(re.findall(r"\b(\w+)=", TEXTS)) <= keywords


def test_every_alternative_begins_with_a_public_name() -> None:
    for name, alternative in sdk_names.NAMES.items():
        first = re.findall(r"\w+", alternative)[0]
        assert first in ROOT or first in NOT_EXPORTED, name


OF_COMPATIBILITY = {"settings"}
"""Attributes of other SDKs that servers of packages with the feature `compatibility` have."""


def test_no_alternative_is_for_what_exists() -> None:
    owners = {"server": Server, "ctx": Context, "client": mcpgen_runtime.Client}
    for call, table in sdk_names.KEYWORDS.items():
        owner, _, name = call.partition(".")
        function: Any = getattr(owners[owner], name) if name else getattr(mcpgen_runtime, owner)
        assert not table.keys() & inspect.signature(function).parameters.keys(), call
    for kind, names in sdk_names.ATTRIBUTES.items():
        others = names.keys() - OF_COMPATIBILITY
        assert not [name for name in others if hasattr(getattr(mcpgen_runtime, kind), name)]
    assert not sdk_names.NAMES.keys() & ROOT


@pytest.mark.parametrize(
    "annotations", [{"readOnlyHint": True}, {"read_only_hint": True, "title": "Twice"}]
)
async def test_hints_may_be_a_mapping(annotations: dict[str, Any]) -> None:
    server = Server("hints")
    server.add_tool(double, annotations=annotations)
    (tool,) = await server.list_tools()
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is True


@pytest.mark.parametrize("content", ["3 books", Text(text="3 books"), ["3 books"]])
async def test_the_content_of_a_result_may_be_one_text_or_block(content: Any) -> None:
    server = Server("results")
    server.add_tool(lambda: ToolResult(content=content, structured={"books": 3}), "report")
    result: Any = await server.call_tool("report")
    assert [block.text for block in result.content] == ["3 books"]
    assert result.structured_content == {"books": 3}
