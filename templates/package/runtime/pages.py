"""The pages of a list of a peer.

Some servers end a list with an empty cursor, or repeat a cursor. Such a list ends with the last new
page, and a warning says so. An empty cursor is followed all the same: it is a valid cursor.

Source: server/utilities/pagination.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import ProtocolError, RemoteError, RemoteProtocolError
from ..foreign_text import safe_repr

PAGES = 1000
"""Most pages of a list, unless the user sets another limit."""

RequestPage: TypeAlias = Callable[[str | None], Awaitable[tuple[Sequence[Any], str | None]]]
"""Requests the page at a cursor, `None` for the first; returns its items and the next cursor."""

_logger = logging.getLogger(__name__)


async def pages_of(
    request: RequestPage, label: str, *, pages: int = PAGES, items: int | None = None
) -> AsyncGenerator[Sequence[Any]]:
    """The items of each page of a list.

    Args:
        request: Requests a page.
        label: The list in error texts, such as its method.
        pages: Most pages.
        items: Most items; `None` for no limit.

    Raises:
        RemoteProtocolError: The list has more pages or items.
    """
    cursors: set[int] = set()  # hashes, since a cursor may be long
    cursor: str | None = None
    first: Sequence[Any] | None = None
    count = 0
    while True:
        try:
            page, following = await request(cursor)
        except (ProtocolError, RemoteError) as error:
            if cursor != "":
                raise
            _logger.warning("%s: the list ends at an empty nextCursor, refused: %s", label, error)
            return
        if cursor == "" and page == first:
            _logger.warning("%s: the list ends at an empty nextCursor, for the first page", label)
            return
        yield page
        first = page if first is None else first
        count += len(page)
        if items is not None and count > items:
            raise _too_long(label, pages, items)
        if following is None:
            return
        if hash(following) in cursors:
            got = safe_repr(following)
            _logger.warning("%s: the list ends at nextCursor %s, which came again", label, got)
            return
        cursors.add(hash(following))
        if len(cursors) >= pages:
            raise _too_long(label, pages, items)
        cursor = following


def _too_long(label: str, pages: int, items: int | None) -> RemoteProtocolError:
    most = f"{pages} pages" if items is None else f"{pages} pages and {items} items"
    return RemoteProtocolError(
        f"{label}: expected a list of at most {most}, got more; read it page by page"
    )


def next_cursor(result: Mapping[str, Any]) -> str | None:
    """The cursor of the next page in a result as wire object; `None` at the end."""
    cursor = result.get("nextCursor")
    return cursor if isinstance(cursor, str) else None
