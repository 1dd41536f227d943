"""What many connections of one side have in common, worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from ..facts import Revisions
from .terms import TermsReader


class Shared:
    """What the connections of one client or server may share.

    Args:
        revisions: The revisions they speak.

    Attributes:
        terms: Reads what a request says of itself.
        stamps: By revision, what every request or result of this side says in `_meta`.
        encoded_stamps: The same as JSON.
    """

    __slots__ = ("encoded_stamps", "stamps", "terms")

    def __init__(self, revisions: Revisions) -> None:
        self.terms = TermsReader(revisions)
        self.stamps: dict[str, Mapping[str, Any]] = {}
        self.encoded_stamps: dict[str, Raw] = {}
