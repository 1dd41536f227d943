"""Pages of a list: a cursor names the item after which the next page starts.

A cursor holds the item's key, so it means the same place after items were added or taken away;
once its own item is gone it is invalid. Clients can't tell what is in it and must not try.

Source: server/utilities/pagination.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from ...errors import InvalidParamsError
from ...foreign_text import safe_repr


def cursor_after(kind: str, key: str) -> str:
    """The cursor for what follows the item `key` in a list of this kind."""
    return base64.urlsafe_b64encode(f"{kind}\n{key}".encode()).decode("ascii")


def page(
    kind: str, keys: Sequence[str], cursor: str | None, size: int | None
) -> tuple[int, int, str | None]:
    """Where a page starts and ends, and the cursor of the page after it.

    Args:
        kind: What is listed; a cursor of one list is none of another.
        keys: The items' keys, in order, each once.
        cursor: Where to start; `None` is the beginning, an empty string is not.
        size: Most items on a page; `None` for all.

    Raises:
        InvalidParamsError: The cursor names no place in this list.
    """
    start = 0 if cursor is None else _position(kind, keys, cursor)
    end = len(keys) if size is None else min(start + size, len(keys))
    return start, end, cursor_after(kind, keys[end - 1]) if end < len(keys) else None


def _position(kind: str, keys: Sequence[str], cursor: str) -> int:
    try:
        found, _, key = (
            base64.b64decode(cursor, altchars=b"-_", validate=True).decode().partition("\n")
        )
        if found == kind:
            return keys.index(key) + 1
    except (binascii.Error, ValueError):
        pass
    raise InvalidParamsError(
        f"cursor: expected one that this list gave out, got {safe_repr(cursor)}"
    )
