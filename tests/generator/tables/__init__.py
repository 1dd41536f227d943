"""Tables of tests that are JSON in any case: schemas, lists of servers, and recorded messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def table(name: str) -> Any:
    """The table in a file of this folder."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
