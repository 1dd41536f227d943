"""Which revisions a ledger entry holds in, as far as the package speaks them."""

from __future__ import annotations

from mcp_protocol.revisions import REVISIONS
from requirements.entries import ledger


def holding(*ids: str) -> tuple[str, ...]:
    """The revisions in which all of these entries hold; none at all is a mistake of the test."""
    entries = [ledger()[id] for id in ids]
    found = tuple(name for name in REVISIONS if all(name in entry.revisions for entry in entries))
    assert found, ids
    return found
