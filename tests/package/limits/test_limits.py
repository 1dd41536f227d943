"""docs/limits.md in use: as much as a limit allows is taken, one more is not, unless it is off."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kit.limits import SetLimit
from kit.simulation import on_virtual_clock
from package.limits.table import Row, rows

pytestmark = [pytest.mark.processes, on_virtual_clock]


async def is_taken(row: Row, amount: int, *settings: Any) -> bool:
    """Whether an amount is taken."""
    taken = row.take(amount, *settings)
    return await taken if inspect.isawaitable(taken) else taken


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.setting} {row.place}".strip())
async def test_as_much_as_a_limit_allows_is_taken_and_no_more(
    row: Row, set_limit: SetLimit
) -> None:
    settings: list[Any] = []
    if row.amount is None:
        amount = row.default
    else:
        amount = row.amount
        off = [row.settings()] if row.field else []
        assert await is_taken(row, amount + 1, *off)
        if row.field:
            settings = [row.settings(**{row.field: amount})]
        else:
            set_limit(row.setting, amount)
    assert await is_taken(row, amount, *settings)
    assert not await is_taken(row, amount + 1, *settings)
