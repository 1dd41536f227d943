"""Surfaces of a server for tests of contracts, and pairs that differ by one rule each."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from generator.shop_sessions import PACKAGES
from generator.tables import table
from mcpgen.contract.document import Contract
from mcpgen.project.live_server import Surface
from mcpgen.project.server_lists import parse

REVISION = "2025-11-25"
TEXT: dict[str, Any] = {"type": "string"}
SHOP: dict[str, Any] = table("shop")
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "logging": {},
    "extensions": {"io.example/a": {"level": 1}},
}


def contract(
    lists: Mapping[str, Any] = SHOP,
    capabilities: Mapping[str, Any] = CAPABILITIES,
    *revisions: str,
) -> Contract:
    """A contract that is the same in all of its revisions."""
    named = revisions or (REVISION,)
    surfaces = (
        Surface(
            each, "shop", copy.deepcopy(dict(capabilities)), parse(copy.deepcopy(lists), "shop")
        )
        for each in named
    )
    return Contract("shop", tuple(surfaces))


def changed(path: str, value: object) -> dict[str, Any]:
    """The lists of the shop with another value at a path of names and indices; `...` removes it."""
    lists = copy.deepcopy(SHOP)
    *words, last = path.split("/")
    part: Any = lists
    for word in words:
        part = part[int(word)] if isinstance(part, list) else part[word]
    key: Any = int(last) if isinstance(part, list) else last
    if value is ...:
        del part[key]
    elif isinstance(part, list):
        part[key : key + (key < len(part))] = [value]
    else:
        part[key] = value
    return lists


SHOP_SERVER = f"""
import os, sys
sys.path.insert(0, {PACKAGES!r})
from typing import Literal
from mcpgen_runtime import Server

server = Server("shop", instructions=f"Key: {{os.environ.get('SHOP_KEY')}}")

@server.tool()
def order(item: str, size: Literal["s", "m", "l"] = "m", code: str = "") -> dict[str, int]:
    "Orders an item."
    return {{"price": len(item)}}

@server.tool()
def count(item: str) -> int:
    return 1

@server.resource("shop://{{item}}")
def page(item: str) -> str:
    return f"about {{item}}"

@server.prompt()
def advise(about: str) -> str:
    return f"advise on {{about}}"

if __name__ == "__main__":
    server.run()
"""
WHOLE_SIZES, SMALLER_SIZES = '"s", "m", "l"', '"s", "m"'
