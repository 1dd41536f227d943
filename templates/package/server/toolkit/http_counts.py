"""The numbers of what is open over HTTP in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .asgi_hosting import AsgiHosting

if TYPE_CHECKING:
    from ..asgi.app import AsgiApplication


class CountedHosting(AsgiHosting):
    """The counts of a server's applications; a base of `Server`."""

    _applications: WeakSet[AsgiApplication] | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """How many `requests`, `sessions` and `streams` are open over HTTP, in this process."""
        counts = [each.counts for each in self._applications or ()]
        return {
            name: sum(each[name] for each in counts) for name in ("requests", "sessions", "streams")
        }

    def _application(self, call: str, path: str, options: Mapping[str, Any]) -> AsgiApplication:
        application = super()._application(call, path, options)
        if self._applications is None:
            self._applications = WeakSet()
        self._applications.add(application)
        return application
