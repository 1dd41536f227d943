"""The revisions of this package. Importing this module loads none of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from .facts import Lifecycle, Revision, Revisions

FOLDERS = {
    "2024-11-05": "r2024_11_05",
    "2025-03-26": "r2025_03_26",
    "2025-06-18": "r2025_06_18",
    "2025-11-25": "r2025_11_25",
    "2026-07-28": "r2026_07_28",
}
"""The subpackage of each revision, oldest first."""


def _in(folder: str) -> Callable[[], Revision]:
    def load() -> Revision:
        revision: Revision = importlib.import_module(f".{folder}.methods", __package__).REVISION
        return revision

    return load


REVISIONS = Revisions(
    {
        "2024-11-05": (Lifecycle.HANDSHAKE, _in("r2024_11_05")),
        "2025-03-26": (Lifecycle.HANDSHAKE, _in("r2025_03_26")),
        "2025-06-18": (Lifecycle.HANDSHAKE, _in("r2025_06_18")),
        "2025-11-25": (Lifecycle.HANDSHAKE, _in("r2025_11_25")),
        "2026-07-28": (Lifecycle.PER_REQUEST, _in("r2026_07_28")),
    }
)
"""Oldest first."""
