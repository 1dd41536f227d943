"""Types of Python for schemas in plain form."""

from __future__ import annotations

import pytest

from mcpgen.model.type_hints import annotation, names_in, union


def test_texts_in_a_type_are_no_part_of_it() -> None:
    hostile = annotation({"enum": ["a | b", "]", "[", "'\" | \\", "models.Tool"]})
    assert union([hostile, f"{hostile} | None", "str"]) == f"{hostile} | str | None"
    assert names_in(f"{hostile} | models.Tool | Sequence[Any]") == [
        "Literal",
        "models",
        "Sequence",
        "Any",
    ]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["a", "b"], "a | b"),
        (["a | b", "b | c"], "a | b | c"),
        (["list[a | b]", "a | list[a | b]"], "list[a | b] | a"),
        (["list[a | b]", "dict[c | b]"], "list[a | b] | dict[c | b]"),
        (["list[a | None]", "None", "b"], "list[a | None] | b | None"),
        (["dict[str, a | list[b | c]] | None", "None"], "dict[str, a | list[b | c]] | None"),
        ([], ""),
    ],
)
def test_a_union_names_each_type_once_and_leaves_brackets_whole(
    types: list[str], expected: str
) -> None:
    assert union(types) == expected
