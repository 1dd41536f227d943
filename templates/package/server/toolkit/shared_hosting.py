"""Serving by processes that share their state, and announcements to the clients of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from .worker_hosting import SealedHosting

if TYPE_CHECKING:
    from ..shared.state import SharedState
    from ..shared.worker import ChangeAnnouncer
    from .workers import WorkerSessions


class SharedHosting(SealedHosting):
    """The method that announces changes; a base of `Server`."""

    def announcer(self, shared: SharedState | str) -> AbstractAsyncContextManager[ChangeAnnouncer]:
        """Announces changes to the clients of all processes that serve, from any process.

            async with server.announcer("redis://127.0.0.1:6379/0") as announcer:
                await announcer.list_changed("tools")

        Args:
            shared: The state that they share; see the option of `ServerHttpSettings`.

        Raises:
            ValueError: The URL is malformed.
            MissingExtraError: `valkey` is not installed.
        """
        from ..shared.worker import open_announcer  # few servers share state

        return open_announcer(self.name, shared)

    @classmethod
    def _worker_sessions(cls, options: Mapping[str, Any]) -> WorkerSessions:
        from .workers import WorkerSessions  # loaded already

        if options.get("shared") is None:
            return super()._worker_sessions(options)
        return WorkerSessions(options, "no" if options.get("stateless") else "", is_shared=True)
