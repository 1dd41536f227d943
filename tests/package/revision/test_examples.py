"""The official example messages: decoded by the models and encoded again, nothing changes."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpgen_runtime import _wire
from mcpgen_runtime.revisions import REVISIONS

Change = Callable[[dict[str, Any]], object]

DEFECTS: dict[str, Change] = {
    # A request inside a result has no id: the schema does not know one.
    "list-roots-request.json": lambda message: message.pop("id"),
    # The schema requires both; a peer that leaves them out means these values.
    "read-resource-result-response.json": lambda message: message["result"].update(
        {"ttlMs": 0, "cacheScope": "private"}
    ),
}
"""Examples that are not what their schema says, and what would make them so."""


def models_of(revision: str) -> Any:
    """The module with a revision's models."""
    return importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.models")


def examples(spec: Path, revision: str) -> Iterator[tuple[str, Path]]:
    """Every official example of a revision, each with the type it is one of."""
    for path in sorted((spec / "schema" / revision / "examples").glob("*/*.json")):
        yield path.parent.name, path


def exact(value: Any) -> Any:
    """A JSON value in a form in which 1, 1.0 and true differ, and the order of members does not."""
    if isinstance(value, dict):
        return {key: exact(child) for key, child in value.items()}
    if isinstance(value, list):
        return [exact(child) for child in value]
    return (type(value), value)


@pytest.mark.parametrize("revision", REVISIONS)
def test_official_examples_stay_the_same_json(spec: Path, revision: str) -> None:
    models = models_of(revision)
    for name, path in examples(spec, revision):
        text = path.read_bytes()
        decoded = _wire.decoder(getattr(models, name))(text)
        expected = json.loads(text)
        DEFECTS.get(path.name, id)(expected)
        assert exact(json.loads(_wire.encode(decoded))) == exact(expected), path.name


def test_there_are_official_examples(spec: Path) -> None:
    assert any(True for revision in REVISIONS for _ in examples(spec, revision))
