"""Tables of tests that are JSON in any case: schemas, documents, and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_table(folder: str, name: str) -> Any:
    """The table in a file of the folder `tables` of a folder of tests."""
    path = Path(__file__).parents[1] / folder / "tables" / f"{name}.json"
    return json.loads(path.read_text("utf-8"))
