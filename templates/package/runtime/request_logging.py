"""Middleware of a server, or of a client, that logs each request with its duration.

server.middleware(log_requests())
client.middleware(log_requests())
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..errors import ProtocolError, RemoteError
from .any_middleware import AnyMiddleware, Message, MiddlewareMessage
from .principal import PRINCIPAL

_REQUESTS = logging.getLogger(f"{__name__.partition('.')[0]}.requests")


def log_requests(logger: logging.Logger = _REQUESTS, level: int = logging.INFO) -> AnyMiddleware:
    """Middleware that logs each message after its handling, without params and results.

    The text of a record is for people. Its attributes are for programs: `mcp_method`, `mcp_target`
    (tool, prompt or URI), `mcp_outcome` (`ok`, `tool error`, `error` with `mcp_error_code`,
    `cancelled`), `mcp_seconds`, `mcp_request_id`, `mcp_session`, `mcp_revision` and `mcp_subject`
    (of the principal). Who knows the id of a session can take it over, so that a record has 12
    hexadecimal digits of its SHA-256.

    Args:
        logger: Where to log; `<package>.requests` by default.
        level: Level of the records.
    """

    async def middleware(request: Message, next: Callable[[Message], Awaitable[Any]]) -> Any:
        started = time.perf_counter()
        outcome, code = "cancelled", None
        try:
            result = await next(request)
            outcome = "tool error" if getattr(result, "is_error", False) else "ok"
            return result
        except Exception as error:
            outcome = "error"
            code = error.code if isinstance(error, ProtocolError | RemoteError) else None
            raise
        finally:
            if logger.isEnabledFor(level):
                seconds = time.perf_counter() - started
                _write(logger, level, request, outcome, code, seconds)

    return middleware


def _write(
    logger: logging.Logger,
    level: int,
    request: MiddlewareMessage,
    outcome: str,
    code: int | None,
    seconds: float,
) -> None:
    target = request.target
    extra = {
        "mcp_method": request.method,
        "mcp_target": target,
        "mcp_outcome": outcome,
        "mcp_error_code": code,
        "mcp_seconds": seconds,
        "mcp_request_id": request.request_id,
        "mcp_session": session_fingerprint(request.session_id),
        "mcp_revision": request.revision,
        "mcp_subject": PRINCIPAL.get().subject or None,
    }
    name = request.method if target is None else f"{request.method} {target!r}"
    logger.log(level, "%s: %s in %.1f ms", name, outcome, seconds * 1000, extra=extra)


def session_fingerprint(session: str | None) -> str | None:
    """12 hexadecimal digits that tell sessions apart, since whoever knows an id can use it."""
    return None if session is None else hashlib.sha256(session.encode()).hexdigest()[:12]
