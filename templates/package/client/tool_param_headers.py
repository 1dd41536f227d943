"""The parameter headers of a server's tools: HTTP headers that repeat arguments of a call.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidParamsError, ProtocolError
from ..foreign_text import safe_repr
from ..protocol.param_headers import Path, format_path, param_headers_of, value_at
from .server_state import ParamHeaders, drop_oldest

_logger = logging.getLogger(__name__)


class ToolParamHeaders(ParamHeaders):
    """The parameter headers of a server's tools, from the latest list of each tool.

    The headers of a tool are stored until the tool is listed again, even after a notification that
    tools have changed. If the headers are stale, the server refuses the call, and the client lists
    the tools again.

    Args:
        limit: Most tools whose headers are stored; the oldest are dropped.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._headers: dict[str, Mapping[Path, str]] = {}
        self._warned: dict[str, str] = {}

    def store(self, tools: Iterable[Any]) -> list[Any]:
        """Store the parameter headers of typed tools.

        Returns:
            The tools that can be called. A warning is logged once for each other tool.
        """
        return [tool for tool in tools if not self.in_use or self._store_headers(tool)]

    def headers_for(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers of a call: encoded values by header name.

        Raises:
            InvalidParamsError: An argument cannot be encoded as a header value.
        """
        headers: dict[str, str] = {}
        names = self._headers.get(tool)
        if not names or not self.in_use:
            return headers
        from ..framing.header_values import (  # loaded by the transport already
            encode_value,
            value_text,
        )

        for path, name in names.items():
            value = value_at(arguments, path)
            if value is not None:
                try:
                    headers[f"{self.prefix}{name}"] = encode_value(value_text(value))
                except ProtocolError as error:
                    raise InvalidParamsError(
                        f"tool {safe_repr(tool)}: {format_path(path)}: {error}"
                    ) from None
        return headers

    def _store_headers(self, tool: Any) -> bool:
        try:
            self._headers[tool.name] = param_headers_of(tool.input_schema)
            drop_oldest(self._headers, self._limit)
        except ValueError as error:
            self._headers.pop(tool.name, None)
            if self._warned.get(tool.name) != str(error):
                self._warned[tool.name] = str(error)
                drop_oldest(self._warned, self._limit)
                _logger.warning("tool %s is left out: %s", safe_repr(tool.name), error)
            return False
        return True
