"""Names of the protocol that the fixed modules of a package use, from `core_names.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcpgen.errors import FactsError
from mcpgen.toml_records import convert, read_toml

FILE = Path(__file__).with_name("core_names.toml")


@dataclass(frozen=True)
class CoreMethod:
    """Members of the params and the result of a method that fixed modules read or write."""

    params: tuple[str, ...] = ()
    result: tuple[str, ...] = ()


@dataclass(frozen=True)
class CoreNames:
    """The names.

    Attributes:
        handshake: The request that opens a session.
        by_itself: Messages that an open client sends without its user.
        running: The request that runs a tool.
        connecting: Requests by one of which a client connects.
        tools: Requests of clients and servers with tools.
        items: Requests of servers with other items.
        owners: Objects that a package makes itself, by their maker.
    """

    handshake: str
    by_itself: tuple[str, ...]
    running: str
    connecting: Mapping[str, CoreMethod]
    tools: Mapping[str, CoreMethod]
    items: Mapping[str, CoreMethod]
    owners: Mapping[str, tuple[str, ...]]


@cache
def core_names() -> CoreNames:
    """The names, read from the file once."""
    table, place = read_toml(FILE, FactsError)
    return convert(table, CoreNames, place)
