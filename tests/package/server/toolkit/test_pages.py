"""Cursors: opaque, stable, and refused when they mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.server.toolkit.registry import cursor_after, page_bounds
from requirements import EVERY_REVISION

KEYS = ["a", "b", "c", "d", "e"]


@pytest.mark.requirement(
    "pagination.next-cursor-if-more", "pagination.opaque-cursor", revisions=EVERY_REVISION
)
@given(keys=st.lists(st.text(), unique=True, max_size=30), size=st.integers(1, 40))
def test_pages_hold_every_item_once_and_in_order(keys: list[str], size: int) -> None:
    items: list[str] = []
    cursor: str | None = None
    for _ in range(len(keys) + 1):
        start, end, cursor = page_bounds("tools", keys, cursor, size)
        items += keys[start:end]
        if cursor is None:
            break
    assert items == keys


@pytest.mark.requirement("pagination.stable-cursors", revisions=EVERY_REVISION)
def test_a_cursor_keeps_its_place_while_others_come_and_go() -> None:
    cursor = cursor_after("tools", "b")
    assert page_bounds("tools", KEYS, cursor, 2) == (2, 4, cursor_after("tools", "d"))
    assert page_bounds("tools", ["b", "c", "x"], cursor, 2) == (1, 3, None)


@pytest.mark.requirement("pagination.invalid-cursor-error", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    "cursor",
    [
        *("", "garbage", "\u00e9", "===", "////", "b"),
        cursor_after("prompts", "b"),
        cursor_after("tools", "z"),
    ],
)
def test_a_cursor_that_the_list_did_not_give_out_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParamsError, match="cursor"):
        page_bounds("tools", KEYS, cursor, 2)


def test_without_a_size_all_is_one_page() -> None:
    assert page_bounds("tools", KEYS, None, None) == (0, 5, None)
    assert page_bounds("tools", [], None, 2) == (0, 0, None)
