"""Decoding of tool results as a type that the caller names.

The structured value is decoded as the type. Without a structured value, the only text of the
content is decoded: as JSON if that matches, or else as a string. No content is decoded as `None`.

Source: server/tools#structured-content.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import msgspec

from .._wire import UNREADABLE, UNSET, UNWRITABLE, error_text
from ..errors import ToolFailedError, ToolResultError
from ..foreign_text import safe_repr
from ..json_schema import WRAPPER
from ..protocol.lifecycle import Session
from ..tool_results import (
    may_be_wrapped,
    only_text,
    plain_value,
    structured_value,
    texts,
)

if TYPE_CHECKING:
    from ..values.value_types import ValueType

_TEXTS: tuple[Any, ...] = (str, Any)
"""Types for which a text is not decoded, even if it is JSON."""


class ValueReader:
    """Reads the value of a tool's result as a type.

    Args:
        tool: The name of the tool, for errors.
        revision: The negotiated revision, for errors.
        returns: The type: any that a tool may have as return annotation.

    Raises:
        TypeError: The type can't be read from JSON.
    """

    def __init__(self, tool: str, revision: str, returns: Any) -> None:
        self._tool = tool
        self._revision = revision
        self._returns = returns
        try:
            self._kind = _cached_type(returns) if _is_hashable(returns) else _readable_type(returns)
        except TypeError as error:
            raise TypeError(f"returns={_label(returns)}: {error}") from error

    def __call__(self, result: Any) -> Any:
        """The value of a typed result.

        Raises:
            ToolFailedError: The tool reported an error.
            ToolResultError: The result has no value of the type.
        """
        if getattr(result, "is_error", None):
            raise ToolFailedError(self._tool, self._revision, result, "\n".join(texts(result)))
        reason = ""
        for value in self._candidates(result):
            try:
                return self._kind.read(value)
            except (msgspec.ValidationError, *UNWRITABLE) as error:
                reason = reason or error_text(error)
        raise ToolResultError(
            self._tool,
            self._revision,
            result,
            f"expected a value of {_label(self._returns)}, got {_describe_value(result)}",
            reason,
        )

    def _candidates(self, result: Any) -> Iterator[Any]:
        """The candidates for the value of a result, in the order to try."""
        value = structured_value(result)
        if value is not UNSET:
            if not may_be_wrapped(value):
                yield value
                return
            plain = plain_value(result)
            yield plain
            yield value if plain is not value else value[WRAPPER]
            return
        text = only_text(result)
        if text is None:
            if getattr(result, "content", None) == []:  # no content stands for null
                yield None
            return
        if not _is_text(self._returns):
            with suppress(*UNREADABLE):
                yield msgspec.json.decode(text)
        yield text


class TypedResults:
    """The part of a client whose method `call_tool` takes a type for the tool's value."""

    session: Session

    def _value_reader(self, name: str, fields: Mapping[str, Any], returns: object) -> ValueReader:
        """A reader that decodes the result of a request as a type that the caller names.

        Raises:
            TypeError: The type can't be read from JSON.
        """
        revision = self.session.revision
        named_by = revision.facts.method(name).named_by
        return ValueReader(str(fields.get(named_by or "")), revision.name, returns)


def _readable_type(returns: Any) -> ValueType:
    from ..values.value_types import value_type  # few clients decode values

    kind = value_type(returns)
    kind.schema()  # a type without a JSON form is refused before anything is sent
    return kind


@lru_cache(maxsize=256)
def _cached_type(returns: Any) -> ValueType:
    return _readable_type(returns)


def _is_hashable(returns: Any) -> bool:
    try:
        hash(returns)
    except TypeError:
        return False
    return True


def _is_text(returns: Any) -> bool:
    if get_origin(returns) is Annotated:
        return _is_text(get_args(returns)[0])
    return returns in _TEXTS


def _label(returns: Any) -> str:
    return inspect.formatannotation(returns, getattr(returns, "__module__", None))


def _describe_value(result: Any) -> str:
    value = structured_value(result)
    if value is not UNSET:
        return f"the structured value {safe_repr(value)}"
    text = only_text(result)
    if text is not None:
        return f"no structured value, and the text {safe_repr(text)}"
    return f"no structured value, and {len(getattr(result, 'content', ()))} content blocks"
