"""The roots of a client: where it wants a server to work.

They say what matters, and keep nobody out: a server that is to stay within them has to see to it.

Source: client/roots.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from ...._wire import convert
from ....foreign_text import safe_repr
from .multi_round_trip import Question

QUESTION = Question("roots/list", None, "roots", repeats=False)


class Root(msgspec.Struct, frozen=True):
    """A directory or file.

    Attributes:
        uri: Its address; a `file://` URI in all revisions so far.
        name: Its name for people, if it has one.
        meta: Its `_meta`, if it has some.
    """

    uri: str
    name: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)

    @property
    def path(self) -> Path:
        """Where it is on this machine, if client and server share one.

        Raises:
            ValueError: It is no `file://` URI.
        """
        place = urlsplit(self.uri)
        if place.scheme != "file":
            raise ValueError(f"expected a file:// URI, got {safe_repr(self.uri)}")
        return Path(url2pathname(place.path))

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is the root or lies below it, by its text: no link is followed."""
        inner = Path(os.path.normpath(path))
        return inner.is_relative_to(os.path.normpath(self.path))


def roots_of(wire: Any) -> list[Root]:
    """The roots in a `ListRootsResult`."""
    return [convert(root, Root) for root in wire["roots"]]
