"""The names of other SDKs, with what takes their place in a generated package.

The table is that of packages with the feature `migration`. An alternative that is a name alone,
such as `form=` or `ctx.state`, is a rename; any other one is advice for a person.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from mcpgen import paths
from mcpgen.package.program_names import PUBLIC
from mcpgen.schema.revisions import revisions

ROOTS = ("mcp", "mcp_types", "fastmcp")
"""The import names of the other SDKs."""

LOW_LEVEL = frozenset(
    f"{module}.Server"
    for module in ("mcp.server", "mcp.server.lowlevel", "mcp.server.lowlevel.server")
)
"""The low-level server of the official SDK."""

TYPES = frozenset({"mcp.types", "mcp_types"})
"""Modules of the message types."""

_HIGH_LEVEL = frozenset({"FastMCP", "MCPServer"})
_KEPT = frozenset(
    {
        *("Audio", "Context", "Depends", "File", "Image", "Middleware"),
        *("ToolError", "ToolResult"),
    }
)
_RENAMED = frozenset(
    {
        *("FastMCP", "MCPServer", "MCPError", "MiddlewareContext", "CallNext"),
        *("AcceptedElicitation", "CancelledElicitation", "DeclinedElicitation"),
    }
)
_BLOCKS = re.compile(r"\w+(?:Annotations|Content)|Icon")
"""Message types that modules of FastMCP have by import."""
_EXCEPTIONS = frozenset({"McpError", "MCPError"})


@dataclass(frozen=True)
class Target:
    """The name that takes the place of one of another SDK.

    Attributes:
        module: The module within the package; empty for the package itself.
        name: The name there; empty for the module itself.
    """

    module: str
    name: str


@cache
def tables() -> Any:
    """The names of the module `sdk_names` of the template of packages, with the tables."""
    path = paths.data_root() / "templates" / "package" / "sdk_names.py"
    return SimpleNamespace(**runpy.run_path(f"{path}"))  # an import would write bytecode there


def is_sdk(name: str) -> bool:
    """Whether a qualified name is one of another SDK, or of a module of it."""
    return name.partition(".")[0] in ROOTS


def target(name: str) -> Target | None:
    """The name for a qualified name; `None` if no name takes its place in every use."""
    if name in TYPES:
        return Target("models", "")
    module, _, own = name.rpartition(".")
    if name in LOW_LEVEL:
        return Target("", "Server")
    if own in _EXCEPTIONS:
        return Target("", "McpError")
    if own in _RENAMED:
        return Target("", tables().NAMES[own])
    if own in _KEPT and ("fastmcp" in module or "mcpserver" in module):
        return Target("", own)
    if is_prompt_message(name):
        return Target("", own)
    if tables().NAMES.get(own) == tables().ERRORS:
        return Target("errors", own)
    is_types = module in TYPES or module == "mcp" or _BLOCKS.fullmatch(own)
    if is_types and own in _message_types():
        return Target("models", own)
    return None


def is_prompt_message(name: str | None) -> bool:
    """Whether a qualified name is the class of messages of prompts, which takes any role."""
    return name is not None and ".prompts" in name and name.endswith(".Message")


def is_high_level(name: str) -> bool:
    """Whether a qualified name is the class of servers of FastMCP, or of the official SDK."""
    return name.rpartition(".")[2] in _HIGH_LEVEL


@cache
def _message_types() -> frozenset[str]:
    """Names of the definitions of all revisions."""
    names: set[str] = set()
    for row in revisions():
        text = (paths.schema_dir() / row.name / "schema.json").read_bytes()
        document: dict[str, dict[str, object]] = json.loads(text)
        names |= (document.get("$defs") or document["definitions"]).keys()
    return frozenset(names)


def advice_on_name(name: str) -> str:
    """The advice on a qualified name of another SDK."""
    own = name.rpartition(".")[2]
    known: str | None = tables().NAMES.get(own)
    if known is not None:
        return f"use {known}"
    if own in PUBLIC:
        return f"use {own} of the package, whose parameters may differ"
    return "nothing takes its place: see the page Coming from FastMCP or the official SDK"


def keyword(call: str, name: str) -> str | None:
    """The new name of a keyword; `None` if it has none. `call` is such as `server.tool`."""
    return _rename(tables().KEYWORDS.get(call, {}), name, r"(\w+)=")


def advice_on_keyword(call: str, name: str) -> str:
    """The advice on a keyword that has no new name."""
    return _advice(tables().KEYWORDS.get(call, {}), name)


def advice_on_attribute(kind: str, name: str) -> str | None:
    """The advice on an attribute that the package lacks; `None` if it has the attribute."""
    known: Mapping[str, str] = tables().ATTRIBUTES.get(kind, {})
    return f"use {known[name]}" if name in known else None


def _rename(table: Mapping[str, str], name: str, form: str) -> str | None:
    match = re.fullmatch(form, table.get(name, ""))
    return None if match is None else match[1]


def _advice(table: Mapping[str, str], name: str) -> str:
    if name in table:
        return f"use {table[name]}"
    return "there is no such keyword here: remove it"
