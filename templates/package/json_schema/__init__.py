"""Validation against JSON Schemas that arrive as data: written by a user, or listed by a server.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

VALIDATION_SECONDS = 10.0
"""Default time limit of one validation."""

WRAPPER = "result"
"""Name of the only member of an object that wraps another value."""

WRAPPED_MARKER = "x-fastmcp-wrap-result"
"""Keyword of an output schema that makes clients of FastMCP unwrap these objects."""

JsonSchema: TypeAlias = Mapping[str, Any]
"""A JSON Schema as decoded JSON."""

Complaint: TypeAlias = Callable[[Any], str | None]
"""Returns the errors of a value in one line, or `None` if the value is valid."""


class CheckedSchema(dict[str, Any]):
    """A schema that was checked by its creator: `validator` compiles it at its first use."""


class Deadline(msgspec.Struct, frozen=True):
    """The deadline of a validation.

    Attributes:
        seconds: The time limit.
        setting: The setting of the time limit, for error texts.
        end: The deadline, by the monotonic clock.
    """

    seconds: float
    setting: str
    end: float

    @classmethod
    def after(cls, seconds: float, setting: str) -> Deadline:
        """A deadline in this many seconds."""
        return cls(seconds, setting, time.monotonic() + seconds)

    def __str__(self) -> str:
        return f"{self.seconds:g} s ({self.setting})"
