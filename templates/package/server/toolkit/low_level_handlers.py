"""Handlers of the low-level kind, mounted beside or instead of the toolkit's functions.

A rendered `ServerHandlers` answers for its own revision. Where it has a method for a request, it
wins over the toolkit. The state of an `InputRequiredResult` of its own it has to sign and to check
by itself: the toolkit passes it on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

from ...facts import Method, Revision
from ...runtime.request_context import RequestContext


class Handlers(Protocol):
    """What a server answers and hears in one revision: a rendered `ServerHandlers` is one."""

    revision: ClassVar[str]
    """Name of the revision."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The user's own coroutine function for a method; `None` if it was not overridden."""
        ...


class LowLevelHandlers:
    """All mounted handlers of one server, by revision.

    Raises:
        ValueError: Two for one revision.
    """

    def __init__(self, handlers: Sequence[Handlers]) -> None:
        self._by_revision: dict[str, Handlers] = {}
        for each in handlers:
            if each.revision in self._by_revision:
                raise ValueError(f"expected one set of handlers for {each.revision}, got two")
            self._by_revision[each.revision] = each

    def __bool__(self) -> bool:
        return bool(self._by_revision)

    def find(
        self, revision: Revision, method: Method
    ) -> Callable[[Any, RequestContext], Any] | None:
        """The coroutine function mounted for a method, or `None`."""
        handlers = self._by_revision.get(revision.name)
        return None if handlers is None else handlers.mcp_handler(method)

    def served(self, revision: Revision) -> Iterator[str]:
        """Names of the requests that are answered here."""
        for name, method in revision.client_requests.items():
            if self.find(revision, method) is not None:
                yield name
