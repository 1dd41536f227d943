"""Serving over HTTP by several processes, any of which serves the sessions in their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .worker_hosting import WorkerHosting

if TYPE_CHECKING:
    from .workers import WorkerSessions


class SealedHosting(WorkerHosting):
    """Several processes have sealed sessions; a base of `Server`."""

    @classmethod
    def _worker_sessions(cls, options: Mapping[str, Any]) -> WorkerSessions:
        from .workers import WorkerSessions  # loaded already

        if options.get("sessions") == "process":
            raise ValueError("workers: a session lives in one process; expected sessions='sealed'")
        if options.get("stateless"):
            return WorkerSessions(options, "no")
        return WorkerSessions({**options, "sessions": "sealed"}, "sealed")
