"""Roots: the directories and files that a client wants the server to work on.

Roots are not enforced: a server that has to stay within them checks paths with `Root.contains`.

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
    """A directory or file that a client names.

    Attributes:
        uri: URI; a `file://` URI in all revisions so far.
        name: Name for display, if there is one.
        meta: `_meta`, if present.
    """

    uri: str
    name: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(name="_meta", default=None)

    @property
    def path(self) -> Path:
        """The path on this machine, if client and server share a file system.

        Raises:
            ValueError: Not a `file://` URI.
        """
        parts = urlsplit(self.uri)
        if parts.scheme != "file":
            raise ValueError(f"expected a file:// URI, got {safe_repr(self.uri)}")
        return Path(url2pathname(parts.path))

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is the root or below it; links are not resolved."""
        inner = Path(os.path.normpath(path))
        return inner.is_relative_to(os.path.normpath(self.path))


def roots_of(wire: Any) -> list[Root]:
    """The roots in a `ListRootsResult`."""
    return [convert(root, Root) for root in wire["roots"]]
