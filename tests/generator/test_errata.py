"""Corrections of published schemas: each matches what it corrects, and is there for a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mcpgen import schema
from mcpgen.errors import ErrataError
from mcpgen.schema.errata import Erratum, apply, read_errata, select_fitting

pytestmark = pytest.mark.lengthy

NEWEST = schema.latest().name


def validator(revision: str, definition: str, *, errata: bool = True) -> Draft202012Validator:
    """A validator for one definition of a revision."""
    definitions = schema.load(revision, errata=errata).definitions
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions})


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("ElicitResult", {"action": "accept", "content": {"weight": 1.5}}),
        ("JSONValue", 1.5),
        ("JSONValue", None),
        ("JSONObject", {"a": [1.5, None, {"b": None}]}),
    ],
)
def test_messages_forbidden_by_schema_mistakes_are_valid(definition: str, message: Any) -> None:
    assert not validator(NEWEST, definition, errata=False).is_valid(message)
    validator(NEWEST, definition).validate(message)


ENTRY = {"pointer": "/a", "old": 1, "new": 2, "reason": "r", "source": "s"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source": " "}, "#/erratum/0/source: expected a text, got "),
        ({"new": 1}, "#/erratum/0/new: expected a value other than old, got 1"),
    ],
)
def test_a_malformed_entry_is_refused(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in {**ENTRY, **changes}.items()]
    path = tmp_path / "errata.toml"
    path.write_text("[[erratum]]\n" + "".join(lines))
    with pytest.raises(ErrataError) as raised:
        read_errata(path)
    assert str(raised.value).startswith(f"{path}{expected}")


@pytest.mark.parametrize(
    ("document", "came"), [({"a": 3}, "3"), ({"b": 1}, "nothing"), ({"a": True}, "true")]
)
def test_an_entry_with_nothing_to_correct_any_more_says_so(document: Any, came: str) -> None:
    erratum = Erratum(pointer="/a", old=1, new=2, reason="r", source="s")
    with pytest.raises(ErrataError) as raised:
        apply(document, [erratum], "schema.json")
    assert str(raised.value) == (
        "schema.json#/a: expected 1 (the old value of an entry in errata.toml), got " + came
    )


def test_corrections_that_find_their_old_value_fit_other_schemas() -> None:
    first = Erratum(pointer="/a", old=1, new=[0, 1], reason="r", source="s")
    then = Erratum(pointer="/a/1", old=1, new="x", reason="r", source="s")
    gone = Erratum(pointer="/b/c", old=1, new=2, reason="r", source="s")
    assert select_fitting({"a": 1}, [first, gone, then]) == (first, then)
    assert select_fitting({"a": 2, "b": []}, [first, gone, then]) == ()
