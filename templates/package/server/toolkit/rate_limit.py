"""Middleware that limits the rate of requests, by a token bucket for each sender.

server.middleware(limit_rate(100, seconds=60))
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Literal, TypeAlias

from ...errors import ProtocolError
from .middleware import Middleware, MiddlewareRequest, Next

RATE_LIMITED = 429
"""Code of the error that answers a request over the limit; `data` has `retryAfterSeconds`."""

MOST_SENDERS = 10_000
"""Senders that are remembered; at more, the one that was silent the longest is forgotten."""

Sender: TypeAlias = Literal["session", "principal"] | Callable[[MiddlewareRequest], Hashable]

_logger = logging.getLogger(__name__)


def limit_rate(
    requests: int,
    *,
    seconds: float = 1.0,
    per: Sender = "session",
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Middleware that refuses requests, and drops notifications, over a rate.

    A sender may send `requests` at once; these are then granted anew evenly over `seconds`.

    Args:
        requests: Most requests in the time.
        seconds: The time.
        per: Who shares a limit: a session, a principal, or what a function returns for a request.
            Without sessions a `session` is the principal, and the address of the HTTP client for
            anonymous requests.
        clock: The time in seconds.

    Raises:
        ValueError: A number is not positive, or `per` is unknown.
    """
    if requests < 1 or not seconds > 0:
        raise ValueError(f"expected positive numbers, got {requests} requests in {seconds} seconds")
    if per not in ("session", "principal") and not callable(per):
        raise ValueError(f"per: expected session, principal or a function, got {per!r}")
    buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    async def middleware(request: MiddlewareRequest, next: Next) -> Any:
        sender, now = _sender(request, per), clock()
        tokens, then = buckets.pop(sender, (float(requests), now))
        tokens = min(float(requests), tokens + (now - then) * requests / seconds)
        granted = tokens >= 1
        buckets[sender] = (tokens - 1 if granted else tokens, now)
        if len(buckets) > MOST_SENDERS:
            buckets.popitem(last=False)
        if granted:
            return await next(request)
        if request.is_notification:
            _logger.warning("%s was dropped: over the rate limit", request.method)
            return None
        wait = math.ceil((1 - tokens) * seconds / requests * 1000) / 1000
        raise ProtocolError(
            f"expected at most {requests} requests in {seconds:g} seconds; retry in {wait:g} "
            "seconds",
            code=RATE_LIMITED,
            data={"retryAfterSeconds": wait},
        )

    return middleware


def _sender(request: MiddlewareRequest, per: Sender) -> Hashable:
    if callable(per):
        return per(request)
    if per == "session" and request.session_id is not None:
        return request.session_id
    principal = request.principal
    if not principal.is_anonymous:
        return principal.identity
    http = request.http_request
    return None if http is None or http.client is None else http.client[0]
