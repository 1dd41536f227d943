"""Documents of MCP Apps: resources with the user interfaces of tools.

Source: ext-apps/specification/2026-01-26/apps (UI resource format).
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from .resources import Resource

_META = "_meta"


class UiDocument(Resource):
    """A document whose metadata are sent both in the list and with the contents."""

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        contents = super()._contents(uri, value)
        meta = self._wire.get(_META)
        return [each if meta is None else {_META: meta, **each} for each in contents]


def reader(html: str | PathLike[str]) -> Callable[[], Any]:
    """The function of a document that is a text or a file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The text has no HTML.
    """
    if not isinstance(html, str):
        path = Path(html)
        if not path.is_file():
            raise FileNotFoundError(f"html: expected the path of a file, got {path}")
        return lambda: path.read_text("utf-8")
    if "<" not in html:
        raise ValueError(f"html: expected a document, or Path(...) of a file, got {html!r}")

    async def read() -> str:
        return html

    return read
