"""The marks of a server's tools, by which a client repeats arguments in HTTP headers.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidParamsError, ProtocolError
from ..foreign_text import safe_repr
from ..protocol.param_headers import Path, marks_of, shown_path, value_at
from .output_schemas import KEPT_TOOLS, drop_oldest

_logger = logging.getLogger(__name__)


class ToolParamHeaders:
    """The marks of a server's tools, as it listed them last.

    Those of a tool are kept until it is listed anew, even if the server says that its tools
    changed: should they be wrong by then, the server refuses the call, and the client lists again.

    Attributes:
        mirrored: Whether the transport has headers; it says so itself.
        prefix: What the names of the headers begin with; `None` in revisions without marks.
    """

    def __init__(self) -> None:
        self.mirrored = False
        self.prefix: str | None = None
        self._marks: dict[str, Mapping[Path, str]] = {}
        self._told: dict[str, str] = {}

    @property
    def in_use(self) -> bool:
        """Whether arguments are repeated in headers at all."""
        return self.mirrored and self.prefix is not None

    def listed(self, tools: Iterable[Any]) -> list[Any]:
        """Take note of typed tools.

        Returns:
            Those that can be called; a warning tells of each other one, once.
        """
        return [tool for tool in tools if not self.in_use or self._keep(tool)]

    def headers_for(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers of a call, by name, their values as they are sent.

        Raises:
            InvalidParamsError: An argument has no form in which a header could carry it.
        """
        headers: dict[str, str] = {}
        marks = self._marks.get(tool)
        if not marks or not self.in_use:
            return headers
        from ..framing.http_headers import (  # loaded by the transport already
            encode_value,
            value_text,
        )

        for path, mark in marks.items():
            value = value_at(arguments, path)
            if value is not None:
                try:
                    headers[f"{self.prefix}{mark}"] = encode_value(value_text(value))
                except ProtocolError as error:
                    raise InvalidParamsError(
                        f"tool {safe_repr(tool)}: {shown_path(path)}: {error}"
                    ) from None
        return headers

    def _keep(self, tool: Any) -> bool:
        try:
            self._marks[tool.name] = marks_of(tool.input_schema)
            drop_oldest(self._marks, KEPT_TOOLS)
        except ValueError as error:
            self._marks.pop(tool.name, None)
            if self._told.get(tool.name) != str(error):
                self._told[tool.name] = str(error)
                drop_oldest(self._told, KEPT_TOOLS)
                _logger.warning("tool %s is left out: %s", safe_repr(tool.name), error)
            return False
        return True
