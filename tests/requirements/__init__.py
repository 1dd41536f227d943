"""The ledger of what the specification asks, and the marker by which tests claim entries of it.

>>> from requirements import requirement
>>> @requirement("stdio.one-message-per-line")
... def test_a_message_is_one_line() -> None: ...
"""

from __future__ import annotations

import pytest

__all__ = ["requirement"]

requirement = pytest.mark.requirement
"""Names the ledger entries that a test proves. Only string literals: the check reads source."""
