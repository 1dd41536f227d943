"""Structured results of tools, held against the output schemas that the server listed.

Only tools that were listed in this session can be judged. A schema is read when a result is first
held against it.

Source: server/tools#output-schema.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from .._wire import UNSET
from ..errors import MissingExtraError, RemoteProtocolError
from ..foreign_text import safe_repr
from ..json_schema.validation import (
    VALIDATION_SECONDS,
    Complaint,
    Deadline,
    JsonSchema,
    complaint_in_time,
    validator_in_time,
)

KEPT_TOOLS = 10_000
"""Most tools of a server that something is kept of; of more, those listed longest ago go."""

_MISSING = "expected a value, since the tool has an output schema, got nothing"

_logger = logging.getLogger(__name__)


class OutputSchemas:
    """The output schemas of a server's tools, as it listed them last.

    Attributes:
        seconds: How long a result may be held against its schema, if its call has no timeout.
    """

    def __init__(self) -> None:
        self.seconds = VALIDATION_SECONDS
        self._schemas: dict[str, JsonSchema] = {}
        self._complaints: dict[str, Complaint] = {}
        self._can_check = True

    def listed(self, tools: Iterable[Any]) -> None:
        """Take note of tools, typed ones of any revision."""
        for tool in tools:
            schema = getattr(tool, "output_schema", None)
            if schema is None:
                self._schemas.pop(tool.name, None)
                self._complaints.pop(tool.name, None)
                continue
            if tool.name in self._complaints and not _same(schema, self._schemas[tool.name]):
                del self._complaints[tool.name]
            self._schemas[tool.name] = schema
            drop_oldest(self._schemas, KEPT_TOOLS)
            drop_oldest(self._complaints, KEPT_TOOLS)

    def forget(self) -> None:
        """Judge no tool until it is listed anew."""
        self._schemas.clear()
        self._complaints.clear()

    def promised(self, tool: str) -> bool:
        """Whether a tool's results can be judged."""
        return tool in self._schemas

    async def check(self, tool: str, result: Any, seconds: float | None = None) -> None:
        """Hold a tool's result against what the tool promised; failures promise nothing.

        That happens in the event loop only while it takes some milliseconds. Where `jsonschema` is
        not installed, a warning says so once, and results are not judged.

        Args:
            tool: Its name.
            result: Its result.
            seconds: How long that may take; `None` for `self.seconds`.

        Raises:
            RemoteProtocolError: The result is not as promised, the promise is no JSON Schema, or
                it can't be judged in time.
        """
        schema = self._schemas.get(tool)
        if schema is None or not hasattr(result, "structured_content") or result.is_error:
            return
        if seconds is None:
            deadline = Deadline.after(self.seconds, "Timeouts.validation")
        else:
            deadline = Deadline.after(seconds, "the call's own timeout")
        wrong: str | None = _MISSING
        if has_structured_content(result):
            wrong = await self._wrong(tool, schema, result.structured_content, deadline)
        if wrong is not None:
            raise RemoteProtocolError(f"tools/call {safe_repr(tool)}: structuredContent: {wrong}")

    async def _wrong(
        self, tool: str, schema: JsonSchema, value: Any, deadline: Deadline
    ) -> str | None:
        complaint = self._complaints.get(tool)
        if complaint is None and self._can_check:
            try:
                complaint = await validator_in_time(schema, "checking results", deadline)
                if self._schemas.get(tool) is schema:  # it may have been listed anew meanwhile
                    self._complaints[tool] = complaint
            except MissingExtraError as error:
                _logger.warning("structured results are taken as they come: %s", error)
                self._can_check = False
            except ValueError as error:
                return f"the tool's output schema is {error}"
        return None if complaint is None else await complaint_in_time(complaint, value, deadline)


def has_structured_content(result: Any) -> bool:
    """Whether a typed result has a structured value, which may be null in some revisions."""
    value = result.structured_content
    return value is not UNSET and (value is not None or _may_be_null(result.__class__))


@cache
def _may_be_null(kind: Any) -> bool:
    fields = msgspec.structs.fields(kind)
    return any(f.name == "structured_content" and f.default is not None for f in fields)


def _same(one: JsonSchema, other: JsonSchema) -> bool:
    try:
        return one == other
    except RecursionError:
        return False


def drop_oldest(kept: dict[str, Any], limit: int) -> None:
    """Drop what was put into a dict first until it has no more than a number of members."""
    while len(kept) > limit:
        del kept[next(iter(kept))]
