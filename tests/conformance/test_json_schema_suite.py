"""The official JSON-Schema-Test-Suite, as far as schemas of tools and results can use it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpgen_runtime.json_schema.validation import validator

SUITE_VARIABLE = "MCP_JSON_SCHEMA_SUITE"
"""Names the folder with the suite's tests, a folder for each dialect."""

DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
LEFT_OUT = ("refRemote.json", "vocabulary.json")
REMOTE = "http://localhost:1234/"
"""Where the suite's documents are served that its schemas refer to."""

FEWEST_TESTS = {"draft7": 850, "draft2020-12": 1100}


@pytest.fixture(scope="module")
def suite() -> Path:
    """The folder of the suite."""
    place = os.environ.get(SUITE_VARIABLE)
    if place is None:
        pytest.skip(f"{SUITE_VARIABLE} names no folder with the suite")
    return Path(place)


def cases(folder: Path) -> Iterator[tuple[str, Any, Any, bool]]:
    """The tests of a dialect: their names, schemas, values, and whether the values are valid."""
    for file in sorted(folder.glob("*.json")):
        for group in json.loads(file.read_text("utf-8")):
            schema = group["schema"]
            refers_elsewhere = file.name == "dynamicRef.json" and REMOTE in json.dumps(schema)
            if file.name in LEFT_OUT or not isinstance(schema, dict) or refers_elsewhere:
                continue
            for test in group["tests"]:
                name = f"{file.stem}: {group['description']}: {test['description']}"
                yield name, schema, test["data"], test["valid"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_verdict_is_that_of_the_official_suite(suite: Path, dialect: str) -> None:
    wrong, count = [], 0
    for name, schema, value, is_valid in cases(suite / dialect):
        complaint = validator({"$schema": DIALECTS[dialect], **schema}, "a test")(value)
        count += 1
        if (complaint is None) is not is_valid:
            wrong.append(f"{name}: expected valid={is_valid}, got {complaint}")
    assert wrong == []
    assert count > FEWEST_TESTS[dialect]
