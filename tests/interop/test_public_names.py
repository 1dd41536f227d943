"""The public names of the official SDK and of FastMCP: each works, or its error names ours."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import fastmcp
import fastmcp.server.context
import fastmcp.server.middleware
import fastmcp.tools
import fastmcp.utilities.types
import mcp
import mcp.server.context
import pytest
from mcp.server.mcpserver import Context as OfficialContext
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

import mcpgen_runtime
from interop.processes import HERE
from mcpgen_runtime import Client, Context, Middleware, Server, models, sdk_names
from mcpgen_runtime.client.chosen import ConnectOptions
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions
from mcpgen_runtime.server.chosen import ServerOptions, ToolOptions

pytestmark = pytest.mark.interop

TABLE = tomllib.loads((HERE / "tables" / "public_names.toml").read_text("utf-8"))
MODULES: list[str] = TABLE["modules"]
"""The modules that programs import from; their public names are those of `__all__`."""

ABSENT: dict[str, frozenset[str]] = {
    "a capability is a mapping with the names on the wire": frozenset(
        name for name in mcp.types.__all__ if name.endswith("Capability")
    ),
    "helpers that decode a union, and names of members": frozenset(
        name for name in mcp.types.__all__ if name.endswith(("_adapter", "_META_KEY"))
    ),
    "data of errors, which is a mapping": frozenset(
        name for name in mcp.types.__all__ if name.endswith("ErrorData") and name != "ErrorData"
    ),
    **{reason: frozenset(names) for reason, names in TABLE["absent"].items()},
}
"""Public names that are deliberately absent, without an error of their own, by reason."""

PAGES = frozenset({"cache_mode", "cursor", "max_pages", "params"})
"""Lists are read whole; `list_tools_page` and its like read one page."""
ROUNDS = frozenset({"allow_input_required", "input_responses", "request_state"})
"""The client answers by its handlers, and sends the request again."""

ABSENT_MEMBERS: dict[str, frozenset[str]] = {
    "Middleware": frozenset({"check_resource_access", "on_discover", "on_initialize"}),
    "Client": frozenset({"session"}),  # an attribute of the object
}
ABSENT_KEYWORDS: dict[str, frozenset[str]] = {
    "client.call_tool": ROUNDS
    | {"allow_claimed", "progress_callback", "progress_handler", "raise_on_error"}
    | {"read_timeout_seconds", "version"},
    "client.complete": frozenset({"context_arguments"}),
    "client.get_prompt": ROUNDS | {"version"},
    "client.list_prompts": PAGES,
    "client.list_resources": PAGES,
    "client.list_tools": PAGES,
    "client.read_resource": ROUNDS | {"cache_mode", "version"},
    "connect": frozenset({"dispatcher", "notification_bindings", "read_stream", "write_stream"}),
    "server.prompt": frozenset({"name_or_fn"}),  # given by position
    "server.run": frozenset({"max_sessions"}),
    "server.tool": frozenset({"name_or_fn"}),
    **dict.fromkeys(
        ("ctx.log", "ctx.debug", "ctx.info", "ctx.warning", "ctx.error"),
        frozenset({"logger_name", "message", "extra"}),  # docs/coming-from.md has them
    ),
}


OPTIONS: dict[str, frozenset[str]] = {
    "Server": ServerOptions.__optional_keys__,
    "connect": ConnectOptions.__optional_keys__,
    "server.run": ServerHttpOptions.__optional_keys__,
    "server.tool": ToolOptions.__optional_keys__,
}
"""Keywords of features, by function."""


def public_names(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return names


@pytest.mark.parametrize("module", MODULES)
def test_each_name_works_or_names_another_or_is_absent(module: str) -> None:
    absent = frozenset[str]().union(*ABSENT.values())
    unknown: list[str] = []
    for name in public_names(module):
        if name in absent or name in dir(mcpgen_runtime):
            continue
        with pytest.raises(ImportError) as error:
            exec(f"from mcpgen_runtime import {name}")
        if not str(error.value).startswith(f"mcpgen_runtime has no {name}: use "):
            unknown.append(name)
    assert unknown == []


def test_no_absent_name_works_or_names_another() -> None:
    names = {name for module in MODULES for name in public_names(module)}
    for reason, absent in ABSENT.items():
        assert absent <= names, reason
        assert absent.isdisjoint(dir(mcpgen_runtime)), reason
        assert not absent & sdk_names.NAMES.keys(), reason


CLASSES = [
    ("Server", MCPServer),
    ("Server", fastmcp.FastMCP),
    ("Context", OfficialContext),
    ("Context", fastmcp.server.context.Context),
    ("Client", mcp.Client),
    ("Client", mcp.ClientSession),
    ("Client", fastmcp.Client),
    ("Middleware", fastmcp.server.middleware.Middleware),
    ("MiddlewareRequest", fastmcp.server.middleware.MiddlewareContext),
    ("RequestContext", mcp.server.context.ServerRequestContext),
]


def members(kind: type) -> set[str]:
    names = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    return {name for name in names if not name.startswith("_") and not hasattr(BaseModel, name)}


def is_hook(name: str) -> bool:
    """Whether a method of a `Middleware` is called."""
    try:
        type("Probe", (Middleware,), {name: Middleware.on_request})
    except TypeError:
        return False
    return name.startswith("on_")


@pytest.mark.parametrize(("ours", "theirs"), CLASSES)
def test_each_member_works_or_names_another_or_is_absent(ours: str, theirs: type) -> None:
    kind: Any = getattr(mcpgen_runtime, ours)
    named = sdk_names.ATTRIBUTES.get(ours, {})
    unknown = {name for name in members(theirs) if name not in named and not hasattr(kind, name)}
    if ours == "Middleware":
        unknown = {name for name in unknown if not is_hook(name)}
    assert unknown - ABSENT_MEMBERS.get(ours, frozenset()) == set()


def functions() -> Iterator[tuple[str, Any, Callable[..., Any]]]:
    """Functions of the others: what it is here, our function, theirs."""
    fast, fast_types, tools = fastmcp.FastMCP, fastmcp.utilities.types, fastmcp.tools
    contexts = (OfficialContext, fastmcp.server.context.Context)
    for server in (MCPServer, fast):
        yield "Server", Server, server.__init__
        for name in ("tool", "resource", "prompt", "run"):
            yield f"server.{name}", getattr(Server, name), getattr(server, name)
    for run in (fast.http_app, fast.run_http_async, MCPServer.run_streamable_http_async):
        yield "server.run", Server.run, run
    yield "server.run", Server.run, MCPServer.run_sse_async
    yield "server.mount", Server.mount, fast.mount
    yield "Server", Server.from_openapi, fast.from_openapi
    for context in contexts:
        for name in ("log", "debug", "info", "warning", "error", "elicit", "report_progress"):
            yield f"ctx.{name}", getattr(Context, name), getattr(context, name)
    for client in (fastmcp.Client, mcp.Client, mcp.ClientSession):
        yield "connect", mcpgen_runtime.connect, client.__init__
        for name in ("call_tool", "complete", "get_prompt", "read_resource"):
            yield f"client.{name}", getattr(Client, name), getattr(client, name)
        for name in ("list_prompts", "list_resources", "list_tools"):
            yield f"client.{name}", getattr(Client, name), getattr(client, name)
    for kind in ("Audio", "File", "Image"):
        yield kind, getattr(mcpgen_runtime, kind), getattr(fast_types, kind).__init__
    yield "ToolResult", mcpgen_runtime.ToolResult, tools.ToolResult.__init__


def keywords(function: Callable[..., Any]) -> set[str]:
    return {
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }


@pytest.mark.parametrize(("name", "ours", "theirs"), list(functions()))
def test_each_keyword_works_or_names_another_or_is_absent(
    name: str, ours: Any, theirs: Callable[..., Any]
) -> None:
    known = keywords(ours) | sdk_names.KEYWORDS.get(name, {}).keys() | {"self"}
    known |= ABSENT_KEYWORDS.get(name, frozenset())
    known |= OPTIONS.get(name, frozenset())
    assert keywords(theirs) - known == set()


def test_message_types_are_those_of_the_module_of_types() -> None:
    for name in ("TextContent", "CallToolResult", "Tool"):
        assert getattr(mcpgen_runtime, name) is getattr(models, name)
