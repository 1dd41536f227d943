"""Features of the revisions, as far as tests of peers need them; independent of our own code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

STATELESS = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BATCHES = "2025-03-26"
STRUCTURED_OUTPUT = ("2025-06-18", "2025-11-25", STATELESS)
ELICITATION = ("2025-06-18", "2025-11-25", STATELESS)
PAGES = ("2025-11-25", STATELESS)
ELICITATION_IDS = ("2025-11-25",)
RESUMING = ("2025-11-25",)

PYTHON_WAYS = [
    *(("sse", HANDSHAKE_PROTOCOL_VERSIONS[0]), ("sse", HANDSHAKE_PROTOCOL_VERSIONS[-1])),
    *(("http", name) for name in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)),
]
"""Transports and revisions of the official SDK, and of FastMCP, which is built on it."""


def is_modern(revision: str) -> bool:
    """Whether the official SDK counts it among the revisions without a handshake."""
    return revision in MODERN_PROTOCOL_VERSIONS


def mode_of(revision: str) -> Any:
    """The mode of the official client, and of FastMCP's, that ends in a revision."""
    return "auto" if is_modern(revision) else "legacy"


@asynccontextmanager
async def opened(client: Any, revision: str) -> AsyncIterator[Any]:
    """A client of the official SDK or of FastMCP, opened in a revision."""
    offered = HANDSHAKE_PROTOCOL_VERSIONS[0] if is_modern(revision) else revision
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:  # by itself the SDK offers its newest
            patched.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", offered)
            await stack.enter_async_context(client)
        assert client.protocol_version == revision
        yield client
