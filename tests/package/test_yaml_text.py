"""Untrusted YAML is read with the types of JSON, within bounds."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcpgen_runtime import MissingExtraError
from mcpgen_runtime.yaml_text import DocumentTooLargeError, read_yaml

OTHER_TYPES = ("timestamp 2026-01-01", "binary aGk=", "set {a}", "omap [a: 1]", "pairs [a: 1]")
DIGITS = "7" * 400


def read(text: str, limit: int = 10_000) -> Any:
    return read_yaml(text.encode(), "skill.md", limit, "a skill")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("[true, False, yes, No, on, OFF]", [True, False, "yes", "No", "on", "OFF"]),
        ("[12, 0x1f, 1:30, 0.5, 1:30.5]", [12, 31, "1:30", 0.5, "1:30.5"]),
        (f"[{DIGITS}, {DIGITS}7]", [int(DIGITS), f"{DIGITS}7"]),
        (f"[.{DIGITS[1:]}, .{DIGITS}]", [float(f".{DIGITS[1:]}"), f".{DIGITS}"]),
        (
            "{since: 2026-01-01, 200: [{1: {true: x}}]}",
            {"since": "2026-01-01", "200": [{"1": {"true": "x"}}]},
        ),
        ("{a: &a {x: 1}, b: {<<: *a}}", {"a": {"x": 1}, "b": {"<<": {"x": 1}}}),
        ("[&a b, *a, &c {d: e}, *c]", ["b", "b", {"d": "e"}, {"d": "e"}]),
    ],
)
def test_values_have_the_types_of_json(text: str, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a", "while parsing a flow sequence"),
        ("!!map [a]", "expected a mapping, got a sequence"),
        ("{[a]: 1}", "expected texts as keys"),
        ("!!bool [a]", "expected a scalar, got a sequence"),
        ("!!int {a: 1}", "expected a scalar, got a mapping"),
        *((f"!!{tag}", "could not determine a constructor") for tag in OTHER_TYPES),
        ("&a [*a]", "the alias 'a' is within its own anchor"),
    ],
)
def test_values_that_json_lacks_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^skill\.md: not YAML: .*{reason}"):
        read(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("{a: bc}", 13),
        ("[&a bcd, *a]", 16),
        ("[&a [b, c], *a]", 22),
        ("[&a [b], &c [*a, *a], *c]", 35),
    ],
)
def test_each_alias_counts_as_a_copy(text: str, size: int) -> None:
    read(text, size)
    with pytest.raises(DocumentTooLargeError) as caught:
        read(text, size - 1)
    assert str(caught.value) == (
        f"skill.md: expected at most {size - 1} characters with a copy for each alias"
    )


def test_a_document_has_at_most_so_many_levels() -> None:
    value = read("[" * 198 + "]" * 198)  # the stream and the document are levels too
    for _ in range(197):
        [value] = value
    assert value == []
    with pytest.raises(DocumentTooLargeError, match=r"^skill\.md: it is nested too deep$"):
        read("[" * 199 + "]" * 199)


def test_without_pyyaml_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"^a skill needs the package 'pyyaml'"):
        read("a")
