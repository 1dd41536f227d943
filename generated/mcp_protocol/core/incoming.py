"""Requests the peer sent and that are being served: what may still be said about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..channel import RequestId
from ..facts import Method, Revision
from .jsonrpc import is_id

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424). Source: server/utilities/logging."""


class Serving(msgspec.Struct):
    """One request of the peer's that has no answer yet.

    Attributes:
        method: What was asked.
        revision: The revision it is served by.
        params: Its typed params.
        token: Its progress token, if progress is wanted.
        log_level: Least level of log messages that its sender wants; `None` for no wish.
        peer_capabilities: What its sender declared.
        progress: The last value reported.
    """

    method: Method
    revision: Revision
    params: Any
    token: RequestId | None
    log_level: str | None
    peer_capabilities: Mapping[str, Any]
    progress: float | None = None

    def quiet(self) -> None:
        """Neither progress nor log messages are sent for it, though it asked for them."""
        self.token = self.log_level = None

    def advance(self, value: float) -> bool:
        """Whether this progress may be reported: wanted, and more than the last."""
        if self.token is None or (self.progress is not None and value <= self.progress):
            return False
        self.progress = value
        return True


def token_of(meta: Mapping[str, Any]) -> RequestId | None:
    """The progress token in a request's `_meta`; what can be none (`is_id`) counts as absent."""
    token = meta.get("progressToken")
    return token if is_id(token) else None


def loud_enough(level: str, least: str | None) -> bool:
    """Whether a log message of `level` is wanted by someone who wants `least` and above."""
    return least is None or LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)
