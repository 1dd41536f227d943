"""Types of Python for schemas in plain form."""

from __future__ import annotations

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
