"""Completion: values that an argument of a prompt or a resource template may have.

Source: server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from . import invocation, signatures
from .content import expect
from .context import Context

MOST_VALUES = 100
"""Most values that one result may hold."""

_NO_ARGUMENTS: Mapping[str, str] = {}


class Completion(msgspec.Struct, frozen=True):
    """Suggestions with what is known about the rest.

    Attributes:
        values: Best first; more than 100 are cut.
        total: How many there are in all, if known.
        has_more: Whether there are more than these; worked out if `None`.
    """

    values: Iterable[str]
    total: int | None = None
    has_more: bool | None = None

    def wire(self) -> dict[str, Any]:
        """The `completion` member of the result.

        Raises:
            TypeError: A value is not a string.
        """
        counted = list(islice(self.values, MOST_VALUES + 1)) if self._is_open else list(self.values)
        for value in counted:
            expect(value, str, "completion")
        made: dict[str, Any] = {"values": counted[:MOST_VALUES]}
        total = self.total
        if total is None and not self._is_open:
            total = len(counted)
        if total is not None:
            made["total"] = total
        more = self.has_more
        if more is None:
            more = len(counted) > MOST_VALUES or (total or 0) > len(made["values"])
        made["hasMore"] = more
        return made

    @property
    def _is_open(self) -> bool:
        """Whether the values may be endless: an iterator that is read only as far as needed."""
        return not hasattr(self.values, "__len__")


class Completer:
    """A function that suggests values of one argument.

    Args:
        function: Takes what was typed so far; a second parameter, if there is one, gets the
            arguments that are already settled, by name. Returns strings or a `Completion`.
        label: What it is called in error texts.
        names: Further names that the annotations may use.

    Raises:
        TypeError: It takes something else.
    """

    def __init__(
        self, function: Callable[..., Any], label: str, names: Mapping[str, Any] | None = None
    ) -> None:
        self.label = label
        signature = signatures.read(function, label, names)
        parameters = list(signature.parameters)
        if not 1 <= len(parameters) <= 2:
            raise TypeError(
                f"{label}: expected a function of the text and perhaps of the other arguments, "
                f"got one of {', '.join(parameters) or 'nothing'}"
            )
        self._value = parameters[0]
        self._settled = parameters[1] if len(parameters) == 2 else None
        self._context = signature.context
        self._call = invocation.caller(function)

    async def complete(
        self, value: str, settled: Mapping[str, str] | None, context: Context
    ) -> dict[str, Any]:
        """The result of `completion/complete` as wire object.

        Raises:
            TypeError: The function returned something else.
        """
        arguments: dict[str, Any] = {self._value: value}
        if self._settled is not None:
            arguments[self._settled] = dict(settled or _NO_ARGUMENTS)
        if self._context is not None:
            arguments[self._context] = context
        found = await self._call(arguments)
        if not isinstance(found, Completion):
            found = Completion(_strings(found, self.label))
        return {"completion": found.wire()}


def _strings(found: Any, label: str) -> Iterable[str]:
    if isinstance(found, str) or not hasattr(found, "__iter__"):
        raise TypeError(f"{label}: expected strings, got {type(found).__name__}")
    strings: Iterable[str] = found  # each is checked in `wire`
    return strings
