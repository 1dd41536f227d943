"""The work of validation is counted before it is done: what each part costs, and what is left."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

from kit.limits import SetLimit
from mcpgen_runtime.json_schema import CheckedSchema
from mcpgen_runtime.json_schema.keywords import key_of
from mcpgen_runtime.json_schema.patterns import Pattern, PatternError
from mcpgen_runtime.json_schema.validation import validator

LENGTH = 63
"""Of a text for which patterns are reckoned with 64 characters."""


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)


def steps_of(pattern: str, text: str) -> list[int]:
    """The steps that a search counts."""
    taken: list[int] = []
    Pattern(pattern).search(text, taken.append)
    return taken


@pytest.mark.parametrize(
    ("part", "steps"),
    [
        *(("", 0), ("a", 1), (".", 1), ("[ab]", 1), (r"\u0041", 1), (r"\d", 1), ("ab", 2)),
        *(("$", 1), ("$b", 2), ("^", 1), ("^b", 2), ("(?:ab)", 3), ("(?:)", 1), ("(?:)b", 2)),
        *(("(?:a|b)", 2), ("(?:a|b)c", 4), ("(?:a|b|c)d", 6), ("(?:a|^)b", 4)),
        *(("(?=a)b", 2), ("(?!a)b", 2), ("(?=a|b)b", 3), (r"(a)\1", 65), (r"(a)\1b", 66)),
        *((r"\b", 64), (r"\bb", 65), ("a*", 65), ("a*b", 130), ("a+b", 129), ("a?b", 4)),
        *(("a{2}b", 4), ("a{2,5}b", 10), ("a{2,}b", 128), ("a{70,}b", 72), ("a{70,80}b", 72)),
        *(("(?:a|b){2}c", 36), ("(?:a|b)?c", 12), ("(?:-[a-z]+)*b", 194), ("(?:[a-z]+-)*b", 194)),
        *(("(?:a*){2}", 823875), ("a*b*", 4290), ("(?:-a?){2}b", 194)),
    ],
)
def test_the_worst_case_of_a_part_is_counted_in_advance(
    part: str, steps: int, without_re2: None
) -> None:
    base = 1 + 1 + 1 + LENGTH  # the sequence, `^`, the repetition of `c`, and the text
    rest = -(base + steps) % 5000
    least = [2, 1 + (base + steps + rest) // 5000]
    text = "x" * LENGTH
    assert steps_of(f"^c{{{rest - 1}}}{part}"[:99], text)[1] == least[1] - 1
    assert steps_of(f"^c{{{rest}}}{part}", text)[1] == least[1]


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("", [1, 2]),
        ("a", [1, 2]),
        ("ab", [1, 4]),
        ("a|b", [1, 3]),
        ("^a|b", [1, 5]),
        ("^a|^b", [1, 1]),
        ("^", [1, 1]),
        ("b^", [1, 4]),
        ("a" * 9, [1, 10]),
        ("a" * 10, [2, 10]),
    ],
)
def test_a_pattern_that_is_not_anchored_starts_anywhere(
    pattern: str, steps: list[int], without_re2: None
) -> None:
    assert steps_of(pattern, "x" * 4095) == steps


def test_the_cost_of_a_pattern_is_reckoned_once_for_like_lengths(without_re2: None) -> None:
    taken: list[int] = []
    pattern = Pattern("^a{9}b{9}")
    for length in (4, 7, 8, 5):
        pattern.search("x" * length, taken.append)
    assert taken == [1, 1, 1, 1, 1, 1]


def test_re_searches_within_so_many_steps(without_re2: None) -> None:
    assert steps_of("^c{16976}(a|b){14}cc", "x") == [3, 201]
    with pytest.raises(PatternError, match="linear time"):
        steps_of("^c{16977}(a|b){14}cc", "x")


@pytest.mark.parametrize(("length", "steps"), [(499, 1), (500, 2), (1000, 3)])
def test_re2_takes_steps_by_the_length_of_the_text(length: int, steps: int) -> None:
    pytest.importorskip("re2")
    assert steps_of("^(x|x)*y", "x" * length) == [1, steps]


def test_a_pattern_of_the_greatest_length_is_read() -> None:
    assert Pattern("a" * 10_000).search("a" * 10_000, lambda steps: None)
    with pytest.raises(PatternError, match=r"^longer than 10000 characters$"):
        Pattern("a" * 10_001)


@pytest.mark.parametrize(
    ("value", "key", "steps"),
    [
        (None, "None", []),
        (True, "True", []),
        (10, "0xa", []),
        (10.0, "0xa", []),
        (0.5, "0x1.0000000000000p-1", []),
        ("a", "1'a", [1]),
        ("a" * 999, "999'" + "a" * 999, [1]),
        ("a" * 1000, "1000'" + "a" * 1000, [2]),
        ({}, "{}", [1]),
        ({"b": 1, "aa": None}, "{1'b:0x1,2'aa:None}", [1]),
        (dict.fromkeys("abcd", 0), "{1'a:0x0,1'b:0x0,1'c:0x0,1'd:0x0}", [1]),
        (dict.fromkeys("edcba", 0), "{1'a:0x0,1'b:0x0,1'c:0x0,1'd:0x0,1'e:0x0}", [2]),
        ([0] * 9, "[" + ",".join(["0x0"] * 9) + "]", [1]),
        ([0] * 10, "[" + ",".join(["0x0"] * 10) + "]", [2]),
        ([["a"], {"b": "c"}], "[[1'a],{1'b:1'c}]", [1, 1, 1, 1, 1]),
    ],
)
def test_a_comparison_costs_by_the_size_of_a_value(value: Any, key: str, steps: list[int]) -> None:
    taken: list[int] = []
    assert key_of(value, taken.append) == key
    assert taken == steps


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch, set_limit: SetLimit) -> Any:
    """The steps of a validation: as many as are allowed at the least for a value of one part."""

    def measure(schema: Any, value: Any) -> int:
        complain = validator(CheckedSchema(schema), "a test")
        complain(value)  # compiles the schema
        low, high = -10_000, 10_000
        while low + 1 < high:
            middle = (low + high) // 2
            set_limit("pkg.json_schema.validation.STEPS", middle)
            too_many = complain(value) == "the schema asks for more work than the value is worth"
            low, high = (middle, high) if too_many else (low, middle)
        monkeypatch.undo()
        return high + 50

    return measure


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def schemas(count: int) -> dict[str, Any]:
    return dict.fromkeys(names(count), True)


def members(count: int) -> dict[str, Any]:
    return dict.fromkeys(names(count), 1)


def pointing(keys: Iterable[str]) -> dict[str, Any]:
    """A schema with a reference to a schema that lies under these keys."""
    path = [*keys]
    node: Any = True
    for key in reversed(path):
        node = {key: node}
    return {"$ref": "/".join(["#", *path]), **node}


@pytest.mark.parametrize(
    ("schema", "larger", "more"),
    [
        ({"properties": schemas(49)}, {"properties": schemas(50)}, 1),
        ({"required": names(49)}, {"required": names(50)}, 1),
        ({"enum": names(49)}, {"enum": names(50)}, 0),
        ({"dependentRequired": {"z": names(49)}}, {"dependentRequired": {"z": names(50)}}, 1),
        ({"allOf": [schemas(19)]}, {"allOf": [schemas(20)]}, 1),
        ({"const": "x" * 84}, {"const": "x" * 85}, 1),
        (pointing(["a" * 47]), pointing(["a" * 48]), 1),
        (pointing("aaaaaaa"), pointing("aaaaaaaa"), 1),
    ],
    ids=lambda schema: ",".join(schema) if isinstance(schema, dict) else "",
)
def test_a_larger_keyword_takes_a_step_more(schema: Any, larger: Any, more: int, cost: Any) -> None:
    assert cost(larger, {}) - cost(schema, {}) == more


PART = 50
"""Further steps that each part of a value allows."""


@pytest.mark.parametrize(
    ("schema", "each"),
    [
        ({"items": {"type": "integer"}}, {1: 0, 49: 0, 50: 1, 51: 0}),
        ({"uniqueItems": True}, {1: 1, 2: 1, 9: 1, 10: 1}),
        ({"unevaluatedItems": False, "items": {"type": "integer"}}, {19: 0, 20: 1, 21: 0}),
        ({"const": 0}, {9: 0, 10: 1, 11: 0, 20: 1}),
    ],
)
def test_a_longer_array_takes_a_step_more(schema: Any, each: dict[int, int], cost: Any) -> None:
    for size, more in each.items():
        longer, array = [*range(size)], [*range(size - 1)]
        assert cost(schema, longer) - cost(schema, array) == more - PART, size


@pytest.mark.parametrize(
    ("schema", "each"),
    [
        ({"additionalProperties": True}, {1: 0, 49: 0, 50: 1, 51: 0}),
        ({"patternProperties": {}}, {49: 0, 50: 1, 51: 0}),
        ({"properties": {}}, {50: 0}),
        ({"unevaluatedProperties": False, "additionalProperties": True}, {19: 0, 20: 1, 21: 0}),
        ({"const": {}}, {4: 0, 5: 1, 6: 0, 10: 1}),
    ],
)
def test_a_larger_object_takes_a_step_more(schema: Any, each: dict[int, int], cost: Any) -> None:
    for size, more in each.items():
        assert cost(schema, members(size)) - cost(schema, members(size - 1)) == more - PART, size


def test_errors_are_counted_up_to_a_bound() -> None:
    complain = validator({"items": {"type": "string"}}, "a test")
    for count, rest in (
        (10, ""),
        (11, "; and 1 more"),
        (32, "; and 22 more"),
        (40, "; and 22 more"),
    ):
        shown = "; ".join(f"[{at}]: 0 is not of type 'string'" for at in range(min(count, 10)))
        assert complain([0] * count) == shown + rest


def test_a_value_whose_pattern_takes_too_long_is_not_judged(without_re2: None) -> None:
    complain = validator({"pattern": "^(a+)+$"}, "a test")
    assert complain("a" * 41 + "!") == (
        "the schema has a pattern '^(a+)+$': can't be searched for in linear time"
        " (`pip install google-re2` may allow it)"
    )
