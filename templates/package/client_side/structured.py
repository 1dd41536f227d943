"""Structured results of tools, held against the output schemas that the server listed.

Only tools that were listed in this session can be judged. A schema is read when a result is first
held against it.

Source: server/tools#output-schema.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from .._wire import UNSET
from ..errors import MissingExtraError, RemoteProtocolError
from ..json_schema import Complaint, JsonSchema, validator

_logger = logging.getLogger(__name__)


class OutputSchemas:
    """The output schemas of a server's tools, as it listed them last."""

    def __init__(self) -> None:
        self._schemas: dict[str, JsonSchema] = {}
        self._complaints: dict[str, Complaint] = {}
        self._can_check = True

    def listed(self, tools: Iterable[Any]) -> None:
        """Take note of tools, typed ones of any revision."""
        for tool in tools:
            schema = getattr(tool, "output_schema", UNSET)
            if schema is UNSET:
                self._schemas.pop(tool.name, None)
            elif schema != self._schemas.get(tool.name):
                self._schemas[tool.name] = schema
                self._complaints.pop(tool.name, None)

    def forget(self) -> None:
        """Judge no tool until it is listed anew."""
        self._schemas.clear()
        self._complaints.clear()

    def check(self, tool: str, result: Any) -> None:
        """Hold a tool's result against what the tool promised; failures promise nothing.

        Where `jsonschema` is not installed, a warning says so once, and results are not judged.

        Raises:
            RemoteProtocolError: The result is not as promised, or the promise is no JSON Schema.
        """
        schema = self._schemas.get(tool)
        if schema is None or not hasattr(result, "structured_content") or result.is_error:
            return
        wrong = self._wrong(tool, schema, result.structured_content)
        if wrong is not None:
            raise RemoteProtocolError(f"tools/call {tool!r}: structuredContent: {wrong}")

    def _wrong(self, tool: str, schema: JsonSchema, value: Any) -> str | None:
        if value is UNSET:
            return "expected a value, since the tool has an output schema, got nothing"
        complaint = self._complaints.get(tool)
        if complaint is None and self._can_check:
            try:
                complaint = self._complaints[tool] = validator(schema, "checking results")
            except MissingExtraError as error:
                _logger.warning("structured results are taken as they come: %s", error)
                self._can_check = False
            except ValueError as error:
                return f"the tool's output schema is {error}"
        return None if complaint is None else complaint(value)
