"""The table of limits: for each setting, a function that says whether an amount was taken."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcpgen_runtime
from mcpgen_runtime import McpError

Take = Callable[..., bool | Awaitable[bool]]


@dataclass(frozen=True)
class Row:
    """One place in which a limit holds, and how much of it the test allows."""

    setting: str
    amount: int | None
    place: str
    take: Take

    @property
    def default(self) -> int:
        """The value of a constant."""
        module, _, name = self.setting.replace("pkg", "mcpgen_runtime", 1).rpartition(".")
        value: int = getattr(importlib.import_module(module), name)
        return value

    def settings(self, **fields: int) -> Any:
        """An instance of the class whose field the setting is."""
        return getattr(mcpgen_runtime, self.setting.partition(".")[0])(**fields)

    @property
    def field(self) -> str | None:
        """The field of a class that the setting is; `None` for a constant."""
        owner, _, name = self.setting.partition(".")
        return None if owner == "pkg" else name


SECTIONS = ("clients", "documents", "messages", "servers")
"""The modules with rows."""

_ROWS: list[Row] = []


def rows() -> list[Row]:
    """The whole table."""
    for section in SECTIONS:
        importlib.import_module(f"package.limits.{section}")
    return _ROWS


def limit(setting: str, amount: int | None = None, *, place: str = "") -> Callable[[Take], Take]:
    """Make a row of a function, which is given an amount and, if it is a field's, an instance.

    Without an amount, a constant stays as it is, which others read when they are imported.
    """

    def add(take: Take) -> Take:
        _ROWS.append(Row(setting, amount, place, take))
        return take

    return add


async def succeeds(call: Awaitable[object]) -> bool:
    """Whether a client's call gives no error."""
    try:
        await call
    except McpError:
        return False
    return True


def is_valid(read: Callable[..., object], *arguments: Any, errors: Any = ValueError) -> bool:
    """Whether a value is read without an error."""
    try:
        read(*arguments)
    except errors:
        return False
    return True
