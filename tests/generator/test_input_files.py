"""Files of the user: text and JSON are read within bounds, and each error says what and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen import input_files
from mcpgen.errors import SchemaError
from mcpgen.input_files import MAX_LEVELS, read_json, read_jsonc, read_text


@pytest.fixture
def file(here: Path) -> Path:
    """A file of JSON in the current directory."""
    return Path("a.json")


def refusal(file: Path, text: str | bytes) -> str:
    """The error about a file with a text."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SchemaError) as caught:
        read_json(file, SchemaError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": "// , ]"}', {"a": "// , ]"}),
        ('// one\n{"a": [1, /* , */ 2, ],\r\n} /**/', {"a": [1, 2]}),
        (r'["\"/*", "*/",]', ['"/*', "*/"]),
    ],
)
def test_a_configuration_may_have_comments_and_last_commas(
    file: Path, text: str, value: Any
) -> None:
    file.write_text(text, "utf-8")
    assert read_jsonc(file, SchemaError) == value


@pytest.mark.parametrize("text", ["[,]", "[1,,]", "[1] /* x", "[1] /*/", '{"a": 1, /*' * 90_000])
def test_a_configuration_is_json_besides_these(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")
    with pytest.raises(SchemaError, match="expected JSON text"):
        read_jsonc(file, SchemaError)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": "\ufeff"}', {"a": "\ufeff"}),
        ('{"a": [1, 1.5, null, true, "\u00e9"]}', {"a": [1, 1.5, None, True, "\u00e9"]}),
        (f"[{2**63 - 1}, {-(2**63)}]", [2**63 - 1, -(2**63)]),
        ("[" * MAX_LEVELS + "]" * MAX_LEVELS, None),
        ('"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_json_is_read_as_it_stands(file: Path, text: str, value: Any) -> None:
    file.write_text(text, "utf-8")
    read = read_json(file, SchemaError)
    assert value is None or read == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b'"\xff"', "a.json#: expected JSON text in UTF-8, got"),
        ("{}".encode("utf-16"), "a.json#: expected JSON text in UTF-8, got"),
        ("\ufeff\ufeff{}", "a.json#: expected JSON text, got"),
        ("[NaN]", "a.json#/0: expected a number that fits 64 bits, got"),
        ("{", "a.json#: expected JSON text, got"),
        (
            '{"a": {"x": 0, "b/c": 1, "b/c": 2}}',
            "a.json#/a/b~1c: expected one member of this name, got",
        ),
        (f"[1, {2**63}]", "a.json#/1: expected a number that fits 64 bits, got"),
        ("[1e999]", "a.json#/0: expected a number that fits 64 bits, got"),
        ('["\xe9", "\\ud800"]', "a.json#/1: expected text in Unicode, got half"),
        ('{"a": {"\\ud800": 1}}', "expected a name in Unicode, got half a surrogate pair"),
        ("[" * (MAX_LEVELS + 1) + "]" * (MAX_LEVELS + 1), f"at most {MAX_LEVELS} levels"),
    ],
)
def test_json_that_no_package_can_have_is_refused(file: Path, text: str, error: str) -> None:
    assert error in refusal(file, text)


def test_the_first_place_that_is_too_deep_is_named(file: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    text = f'{{"o": {{"a": [1, {{"b": "]"}}], "c:d": [[], {deep}]}}}}'
    place = f"a.json#/o/c:d/1{'/0' * (MAX_LEVELS - 3)}"
    assert refusal(file, text) == f"{place}: expected at most 64 levels of nesting, got more"


def test_text_has_as_many_bytes_as_a_limit(file: Path) -> None:
    file.write_text("abc")
    assert read_text(file, SchemaError, "text", 3) == "abc"
    with pytest.raises(SchemaError, match="expected a file of 2 bytes at most, got a larger one"):
        read_text(file, SchemaError, "text", 2)
    with pytest.raises(SchemaError, match=r"b\.json#?: expected a readable file, got No such file"):
        read_text(Path("b.json"), SchemaError, "text", 3)


def test_values_of_yaml_that_json_lacks_are_refused() -> None:
    with pytest.raises(SchemaError, match="expected a value that JSON has, got set"):
        input_files.check_json([{1}], "a", SchemaError)


ROW = f"[{'0,' * 4_999}0],"
BOUNDS = {
    "signs": tuple(f"[{ROW * 199}[{'0,' * last}0]]" for last in (4_799, 4_800)),
    "entries": ("[" + "0," * 4_999 + "0]", "[" + "0," * 5_000 + "0]"),
    "characters of a name": (f'{{"{"a" * 1_000}": 0}}', f'{{"b": {{"{"a" * 1_001}": 0}}}}'),
    "digits": (f"[-{2**63}]", f"[-{2**63}0]"),
    "levels": ("[" * 64 + "]" * 64, '{"a": [{"b": ' * 32 + "0" + "}]}" * 32),
}
"""Text within a bound, and text beyond it."""


def test_json_has_bounds(file: Path, snapshot: SnapshotAssertion) -> None:
    file.touch()
    os.truncate(file, 64 * 1024 * 1024)
    assert len(read_text(file, SchemaError, "text")) == 64 * 1024 * 1024
    errors = {"bytes": refusal(file, bytes(64 * 1024 * 1024 + 1))}
    for name, (within, beyond) in BOUNDS.items():
        file.write_text(within)
        read_json(file, SchemaError)
        errors[name] = refusal(file, beyond)
    assert errors == snapshot


def test_members_with_numbers_that_do_not_fit_can_be_left_out() -> None:
    left_out: list[str] = []
    value: Any = {"a/b": 2**63, "c": [1, 1e400], "d": {"e": [2**63 - 1, "f"], "g": -(2**63) - 1}}
    input_files.check_json(value, "a", SchemaError, left_out.append)
    assert value == {"d": {"e": [2**63 - 1, "f"]}}
    assert left_out == ["/a~1b", "/c", "/d/g"]
