"""Secrets that HTTP libraries would write into their logs, masked there.

At its most talkative httpcore2 writes the header fields of responses, among them the id of a
session, before anybody has read them; and httpx2 writes addresses, among them the one of HTTP+SSE
that a session is known by.

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
    """Replaces what is secret in the texts of records."""

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
    """The secrets of one connection, masked until it is closed."""

    def __init__(self) -> None:
        self._own: list[str] = []
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_masking)

    def add(self, secret: str) -> None:
        """Keep a text out of the logs of HTTP libraries."""
        if secret and secret not in self._own:
            self._own.append(secret)
            _masking.secrets[secret] += 1

    def clear(self) -> None:
        """The connection is closed, and what was secret is worth nothing. Idempotent."""
        for secret in self._own:
            _masking.secrets[secret] -= 1
        self._own.clear()
        for secret in [secret for secret, uses in _masking.secrets.items() if uses <= 0]:
            del _masking.secrets[secret]
