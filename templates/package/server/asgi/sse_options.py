"""The options of HTTP+SSE."""

from __future__ import annotations

from typing import TypedDict


class SseOptions(TypedDict, total=False):
    """Attributes of `ServerHttpSettings` for HTTP+SSE."""

    sse_path: str | None
    messages_path: str
    messages_endpoint: str | None
