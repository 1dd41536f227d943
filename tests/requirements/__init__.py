"""The ledger of what the specification asks, and the marker by which tests claim entries of it.

>>> from requirements import requirement
>>> @requirement("stdio.one-message-per-line")
... @pytest.mark.parametrize("revision", REVISIONS)
... def test_a_message_is_one_line(revision: str) -> None: ...

A claim counts for the revisions in the name of the test, where parametrization puts them. A test
without a revision parameter declares its revisions, for example `revisions=("2025-11-25",)`, or
`revisions=EVERY_REVISION`. A claim that counts in no revision of its rule is an error of
collection.
"""

from __future__ import annotations

import re

import pytest

__all__ = ["EVERY_REVISION", "INTERIM", "REVISION_NAME", "requirement"]

requirement = pytest.mark.requirement
"""Names the ledger entries that a test proves. Only string literals: the check reads source."""

EVERY_REVISION = "*"
"""The tested code is the same object for all revisions: one run counts for each of them."""

INTERIM = ("interim-2026",)
"""The ledger's name of the draft after 2025-11-25, whose clients are served in its sessions."""

REVISION_NAME = re.compile(r"20\d\d-\d\d-\d\d")
"""A revision in the name of a test, where parametrization puts it."""
