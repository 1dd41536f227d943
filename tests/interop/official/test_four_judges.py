"""Four judges of random values of all definitions, which differ by the rows of two tables."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from decoding.instances import Instances
from decoding.leniency import as_read
from decoding.test_agreement import Judged, decodes, judge_values
from generator.command_line import run
from interop.official import wire_types
from interop.official.wire_types import CORRECTIONS, LEFT_OUT, ROWS, WHOLE, WIRE
from mcpgen import names

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

VALUES = int(os.environ.get("MCP_JUDGED_VALUES", "100"))
FIGURES = os.environ.get("MCP_JUDGED_FIGURES")
"""A folder in which a run leaves its counts."""

REVISION = pytest.mark.parametrize("revision", WIRE)

Judge = Callable[[Any], bool]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A package of types with models of pydantic."""
    folder = tmp_path_factory.mktemp("judged")
    words = [word for revision in WIRE for word in ("-r", revision)]
    options = ("--models", "pydantic", "--parts", "types", "-o", f"{folder / 'judged_models'}")
    assert run("-q", *words, *options).code == 0
    sys.path.insert(0, f"{folder}")
    yield importlib.import_module("judged_models")
    sys.path.remove(f"{folder}")


def decoder_of(package: Any, revision: str, name: str) -> Judge:
    """A function that says whether a package of models of pydantic decodes a value."""
    module = importlib.import_module(f"{package.__name__}.{names.folder(revision)}.models")
    decode = package.decoder(getattr(module, name))

    def judged(value: Any) -> bool:
        try:
            decode(json.dumps(value).encode())
        except ValueError:
            return False
        return True

    return judged


def values_of(own: Judged, name: str) -> Iterator[Any]:
    """Values of a definition: a third valid, the others with one or two changes."""
    instances = Instances(own.definitions, Random(name))
    for number in range(VALUES):
        value = instances.valid(name)
        for _ in range(number % 3):
            value = instances.changed(value)
        yield value


@REVISION
def test_judges_differ_by_the_rows_of_the_tables_alone(revision: str, models: Any) -> None:
    own = judge_values(revision)
    tables = as_read(own.reading), wire_types.as_read(own.reading, revision)
    counts, wrong = Counter[str](), list[tuple[str, str, Any]]()
    for name in [name for name in own.definitions if name not in LEFT_OUT]:
        schema = own.judge(own.definitions, name)
        ours, theirs = (own.judge(definitions, name) for definitions in tables)
        judges: dict[str, tuple[Judge, Judge]] = {
            "SDK": (wire_types.judge(revision, name), theirs),
            "Structs": (partial(decodes, own.kind(name)), ours),
            "pydantic": (decoder_of(models, revision, name), ours),
        }
        for value in values_of(own, name):
            expected = schema(value)
            counts["values"] += 1
            for judge, (accepts, table) in judges.items():
                if (verdict := accepts(value)) != expected:
                    counts[judge] += 1
                    if table(value) != verdict:
                        wrong.append((judge, name, value))
    if FIGURES:
        Path(FIGURES, f"judges-{revision}.json").write_text(json.dumps(counts), "utf-8")
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[:3])}"


EXAMPLES: list[tuple[str, str, str, Any]] = [
    (
        "null for an optional member",
        "2025-11-25",
        "TextContent",
        {"type": "text", "text": "", "annotations": None},
    ),
    (CORRECTIONS, "2026-07-28", "ElicitResult", {"action": "accept", "content": {"a": None}}),
    (WHOLE, "2025-11-25", "TaskMetadata", {"ttl": 1.0}),
]
"""For each row of the SDK a value about which it and the schema disagree."""


@pytest.mark.parametrize(
    ("row", "revision", "name", "value"), EXAMPLES, ids=lambda each: str(each)[:20]
)
def test_each_row_of_the_sdk_is_a_difference(
    row: str, revision: str, name: str, value: Any
) -> None:
    own = judge_values(revision)
    allowed = own.judge(own.definitions, name)(value)
    assert wire_types.judge(revision, name, copy)(value) is not allowed
    if row == WHOLE:
        assert wire_types.judge(revision, name)(value) is allowed
        return
    table, without = (wire_types.as_read(own.reading, revision, left) for left in ("", row))
    assert own.judge(table, name)(value) is not allowed
    assert own.judge(without, name)(value) is allowed


def test_each_row_of_the_sdk_has_an_example() -> None:
    assert [row for row, *_ in EXAMPLES] == [*ROWS, CORRECTIONS, WHOLE]
