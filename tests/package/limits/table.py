"""The table of limits: for each setting of docs/limits.md, a function that uses an amount of it.

A function of the table uses so much and says whether it was taken. It does not set the limit: the
test does, and then asks for as much as it allows, for one more, and for that with the default.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcpgen_runtime

Take = Callable[..., bool | Awaitable[bool]]


@dataclass(frozen=True)
class Row:
    """One place in which a limit holds.

    Attributes:
        setting: Its setting, as docs/limits.md writes it.
        amount: How much the test allows; `None` for as much as the default.
        place: Where it holds, if it does in more than one place.
        take: Uses so much, and says whether it was taken.
    """

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


SECTIONS = ("clients", "documents", "messages", "protected_servers", "servers", "stores")
"""The modules with rows, by the sections of the page."""

_ROWS: list[Row] = []


def rows() -> list[Row]:
    """The whole table."""
    for section in SECTIONS:
        importlib.import_module(f"package.limits.{section}")
    return _ROWS


def limit(setting: str, amount: int | None = None, *, place: str = "") -> Callable[[Take], Take]:
    """Make a row of a function.

    Args:
        setting: The setting, as docs/limits.md writes it.
        amount: How much the test allows. Left out for a constant that others read when they are
            imported: it stays as it is.
        place: Where the limit holds, if it does in more than one place.

    Returns:
        A decorator. The test calls the function with an amount and, if the setting is a field of a
        class, with an instance of that class.
    """

    def add(take: Take) -> Take:
        _ROWS.append(Row(setting, amount, place, take))
        return take

    return add
