"""Log messages in revisions where each request asks for them.

Source: server/utilities/logging (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterable

from .pipeline import RequestPipeline


class RequestLogs:
    """The method of clients that sets the level of log messages."""

    def _pipelines(self) -> Iterable[RequestPipeline]:
        """The request pipeline of each session that is open."""
        raise NotImplementedError

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages with each request, in revisions where requests do so.

        Args:
            level: The lowest level to send; `None` for no messages.
        """
        for requests in self._pipelines():
            requests.connection.state.log_level = level
