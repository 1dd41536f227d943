"""Masks secrets in the logs of HTTP libraries.

At level DEBUG httpcore2 logs the header fields of responses, which include the session id, before
any code of this package sees them. httpx2 logs URLs, and the endpoint of HTTP+SSE identifies a
session.

Source: basic/transports (session management): the id of a session is handled as a secret.
"""

from __future__ import annotations

import logging
import re
from collections import Counter

MASK = "***"

_LOGGERS = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
)


_SESSION = re.compile(r"""(session-id['"], b)(?:'[^']*'|"[^"]*")""", re.IGNORECASE)


class _Masking(logging.Filter):
    """Replaces secrets in the texts of log records."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        masked = _SESSION.sub(rf"\1'{MASK}'", text)
        for secret in self.secrets:
            masked = masked.replace(secret, MASK)
        if masked != text:
            record.msg, record.args = masked, ()
        return True


_masking = _Masking()


class Secrets:
    """The secrets of one connection, masked until the connection is closed."""

    def __init__(self) -> None:
        self._own: list[str] = []
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_masking)

    def add(self, secret: str) -> None:
        """Mask a text in the logs of HTTP libraries."""
        if secret and secret not in self._own:
            self._own.append(secret)
            _masking.secrets[secret] += 1

    def clear(self) -> None:
        """Stop masking: the connection is closed. Idempotent."""
        for secret in self._own:
            _masking.secrets[secret] -= 1
        self._own.clear()
        for secret in [secret for secret, uses in _masking.secrets.items() if uses <= 0]:
            del _masking.secrets[secret]
