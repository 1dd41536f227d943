"""A signature becomes a schema, a validator with readable complaints, and a context's place."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen_runtime import Context
from mcpgen_runtime.server.toolkit.signatures import first_paragraph, parameter_descriptions, read
from requirements import EVERY_REVISION


@dataclass
class Place:
    lat: float
    lon: float = 0.0


@pytest.mark.requirement("tools.no-parameter-schema", revisions=EVERY_REVISION)
def test_a_function_without_parameters_takes_an_empty_object() -> None:
    assert read(lambda: None, "tool").schema() == {"type": "object", "properties": {}}


def test_a_number_without_a_fraction_is_an_integer_anywhere() -> None:
    def typed(count: int, numbers: list[int], named: dict[str, int], ratio: float) -> None: ...

    floats = {"count": 5.0, "numbers": [1.0], "named": {"a": 2.0}, "ratio": 0.5}
    for coerce in (True, False):
        bound = read(typed, "tool").bind(floats, coerce=coerce)
        assert repr(bound) == "{'count': 5, 'numbers': [1], 'named': {'a': 2}, 'ratio': 0.5}"


def test_further_arguments_of_an_open_function_are_kept() -> None:
    def closed(count: int, ctx: Context | None = None) -> None: ...
    def takes_all(count: int = 1, *, name: str, **rest: Any) -> None: ...

    signature = read(takes_all, "tool")
    assert (list(signature.parameters), signature.open) == (["count", "name"], True)
    texts = {"count": "2", "name": "a", "other": "b"}
    assert signature.bind_strings(texts, None) == {"count": 2, "name": "a", "other": "b"}
    signature = read(closed, "tool")
    assert (signature.open, signature.context) == (False, "ctx")
    assert signature.bind_strings({"count": "2"}, "context") == {"count": 2, "ctx": "context"}


def test_defaults_with_a_json_form_are_in_the_schema() -> None:
    def typed(
        tags: list[str] = ["a"],  # noqa: B006 - what users write
        place: Place = Place(1.0),  # noqa: B008 - what users write
        nothing: int | None = None,
        made: list[int] = pydantic.Field(default_factory=lambda: [1]),  # noqa: B008 - what users write
        odd: Any = object(),  # noqa: B008 - what users write
    ) -> None: ...

    properties = read(typed, "tool").schema()["properties"]
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    place = {"lat": 1.0, "lon": 0.0}
    assert defaults == {"tags": ["a"], "place": place, "nothing": None}
    one, other = (read(typed, "tool").bind({}) for _ in range(2))
    assert (one["made"], one["tags"]) == ([1], ["a"])
    assert one["tags"] is not other["tags"]  # what one call adds, no other has


class Box:
    def method(self, size: int) -> int:
        return size

    async def __call__(self, size: int) -> int:
        return size


def test_methods_callables_and_local_functions_have_signatures_too() -> None:
    class Local(msgspec.Struct):
        x: int

    def local(self, value: Local, city: Annotated[str, "Where to look."]) -> None: ...  # type: ignore[no-untyped-def] # the point of the test

    for function in (Box().method, Box(), functools.partial(lambda size: size, size=3)):
        assert list(read(function, "tool").parameters) == ["size"]
    signature = read(local, "tool", {"Local": Local})
    assert list(signature.parameters) == ["self", "value", "city"]
    assert signature.bind({"self": 1, "value": {"x": 1}, "city": ""})["value"].x == 1
    assert signature.schema()["properties"]["city"]["description"] == "Where to look."


def test_unsupported_functions_are_refused_at_registration() -> None:
    def starred(*names: str) -> None: ...

    def positional(name: str, /) -> None: ...

    def two_contexts(a: Context, b: Context) -> None: ...

    async def generates() -> AsyncIterator[int]:
        yield 1

    def unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821 - the point

    def number_as_type(value: 1) -> None: ...  # type: ignore[valid-type] # the point

    def reserved_name(__weakref__: int = 1) -> None: ...

    def any_object(value: object) -> None: ...

    functions: list[tuple[Any, str]] = [
        (starred, r"expected parameters that can be given by name, got \*names"),
        (positional, "expected parameters that can be given by name, got name"),
        (two_contexts, "expected one Context parameter, got a, b"),
        (generates, "expected a function that returns, got a generator"),
        (unknown, "annotation can't be resolved: name 'Nowhere'"),
        (any_object, "<class 'object'> has no JSON form; Any, a dataclass"),
        ("text", "expected a function, got 'text'"),
        (Box.method, r"expected a bound method, .*'self'; .*server\.add_tool\(object\.method\)"),
        (reserved_name, "Cannot have a struct field named '__weakref__'"),
        (number_as_type, ".*1"),
    ]
    for function, complaint in functions:
        with pytest.raises(TypeError, match=f"tool 'x': {complaint}"):
            read(function, "tool 'x'").schema()


def test_a_parameter_without_annotation_takes_anything() -> None:
    def loose(value, other=None):  # type: ignore[no-untyped-def] # the point of the test
        return value

    signature = read(loose, "tool")
    assert signature.schema()["properties"] == {"value": {}, "other": {"default": None}}
    assert signature.bind({"value": [1, {"a": None}]})["value"] == [1, {"a": None}]


def test_none_as_default_makes_a_parameter_nullable() -> None:
    def implicit(value: int = None) -> None: ...  # type: ignore[assignment] # noqa: RUF013 - what users write

    def explicit(value: Annotated[int | None, msgspec.Meta(title="A")] = None) -> None: ...

    assert read(implicit, "tool").bind({"value": None}) == {"value": None}
    kinds = [{"type": "integer"}, {"type": "null"}]
    properties = read(explicit, "tool").schema()["properties"]
    assert properties == {"value": {"title": "A", "anyOf": kinds, "default": None}}


def test_parameters_are_described_in_the_usual_docstring_styles(
    snapshot: SnapshotAssertion,
) -> None:
    """The styles are those of Google, NumPy and Sphinx; other sections describe no parameters."""
    assert [
        f"{each!r} -> {first_paragraph(each)!r}, {parameter_descriptions(each)}"
        for each in json.loads(Path(__file__).with_name("docstrings.json").read_text("utf-8"))
    ] == snapshot
