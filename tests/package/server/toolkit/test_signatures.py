"""A signature becomes a schema, a validator with readable complaints, and a context's place."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from mcp_protocol import Depends
from mcp_protocol.server.toolkit.context import Context
from mcp_protocol.server.toolkit.signatures import (
    first_paragraph,
    parameter_descriptions,
    read,
)
from requirements import EVERY_REVISION


class Unit(enum.Enum):
    CELSIUS = "C"
    KELVIN = "K"


@dataclass
class Place:
    lat: float
    lon: float = 0.0


class Options(TypedDict, total=False):
    fast: bool


class Range(msgspec.Struct):
    low: int
    high: int


async def everything(
    city: str,
    days: Annotated[int, msgspec.Meta(ge=1, le=7)] = 3,
    unit: Unit = Unit.CELSIUS,
    mode: Literal["a", "b"] = "a",
    place: Place | None = None,
    options: Options = {},  # noqa: B006 - what users write
    span: Range | None = None,
    tags: list[str] = [],  # noqa: B006 - what users write
    extra: dict[str, int] | None = None,
    *,
    ctx: Context,
) -> str:
    """Everything a parameter may be.

    Args:
        city: Where.
        days: How many
            days to look ahead.
    """
    return city


def test_parameters_become_properties_and_the_context_does_not() -> None:
    schema = read(everything, "tool").schema()
    assert schema["type"] == "object"
    assert schema["required"] == ["city"]
    assert "additionalProperties" not in schema  # some clients fail to read it
    properties = schema["properties"]
    assert list(properties) == [
        *("city", "days", "unit", "mode", "place", "options", "span", "tags", "extra")
    ]
    assert properties["city"] == {"type": "string", "description": "Where."}
    assert properties["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "default": 3,
        "description": "How many days to look ahead.",
    }
    assert properties["mode"] == {"enum": ["a", "b"], "type": "string", "default": "a"}
    assert properties["tags"]["items"] == {"type": "string"}
    assert set(schema["$defs"]) == {"Unit", "Place", "Options", "Range"}


@pytest.mark.requirement("tools.no-parameter-schema", revisions=EVERY_REVISION)
def test_a_function_without_parameters_takes_only_empty_objects() -> None:
    def nothing() -> None: ...

    empty = {"type": "object", "properties": {}}
    assert read(nothing, "tool").schema() == empty


def test_bound_arguments_have_their_types_and_defaults() -> None:
    bound = read(everything, "tool").bind({"city": "Oslo", "place": {"lat": 1}, "unit": "K"})
    assert bound["city"] == "Oslo"
    assert bound["place"] == Place(1.0)
    assert bound["unit"] is Unit.KELVIN
    assert bound["days"] == 3
    assert "ctx" not in bound


def test_a_default_list_is_not_shared_between_calls() -> None:
    signature = read(everything, "tool")
    signature.bind({"city": "a"})["tags"].append("x")
    assert signature.bind({"city": "b"})["tags"] == []


COMPLAINTS: list[tuple[dict[str, Any], str]] = [
    ({"city": 1}, "argument 'city': expected str, got int"),
    ({}, "argument 'city': required, but missing"),
    ({"city": "x", "day": 1}, "unknown argument 'day'; expected: city, days"),
    ({"city": "x", "days": "three"}, "argument 'days': expected int, got str"),
    ({"city": "x", "days": 3.5}, "argument 'days': expected int, got float"),
    ({"city": "x", "days": True}, "argument 'days': expected int, got bool"),
    ({"city": "x", "days": 0}, "argument 'days': expected int >= 1, got 0"),
    (
        {"city": "x", "mode": "c"},
        "argument 'mode': invalid enum value 'c'; expected one of 'a', 'b'",
    ),
    ({"city": "x", "place": {"lat": "north"}}, "argument 'place.lat': expected float, got str"),
    ({"city": "x", "place": {}}, "argument 'place.lat': required, but missing"),
    ({"city": "x", "tags": ["a", 1]}, "argument 'tags[1]': expected str, got int"),
    ({"city": None}, "argument 'city': expected str, got null"),
]


@pytest.mark.requirement("tools.server-validates-inputs", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("arguments", "complaint"), COMPLAINTS)
def test_a_bad_argument_is_named_with_expected_and_actual_value(
    arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match="argument") as caught:
        read(everything, "tool").bind(arguments)
    assert str(caught.value).startswith(complaint)


def test_arguments_that_travel_as_text_are_read_as_their_types() -> None:
    def typed(count: int, exact: bool, ratio: float, name: str = "x") -> None: ...

    signature = read(typed, "prompt")
    bound = signature.bind({"count": "3", "exact": "true", "ratio": "0.5"})
    assert bound == {"count": 3, "exact": True, "ratio": 0.5, "name": "x"}
    with pytest.raises(ValueError, match="argument 'count'"):
        signature.bind({"count": "three", "exact": "true", "ratio": "0.5"})


def takes_starred(*names: str) -> None: ...


def takes_positional(name: str, /) -> None: ...


def takes_two_contexts(a: Context, b: Context) -> None: ...


async def generates() -> AsyncIterator[int]:
    yield 1


def takes_unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821 - the point


def takes_an_object(value: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (takes_starred, r"tool 'x': expected parameters that can be given by name, got \*names"),
        (takes_positional, "tool 'x': expected parameters that can be given by name, got name"),
        (takes_two_contexts, "tool 'x': expected one Context parameter, got a, b"),
        (generates, "tool 'x': expected a function that returns, got a generator"),
        (takes_unknown, "tool 'x': annotation can't be resolved: name 'Nowhere'"),
        (takes_an_object, "tool 'x': <class 'object'> has no JSON form; Any, a dataclass"),
        ("text", "tool 'x': expected a function, got 'text'"),
    ],
)
def test_unsupported_functions_are_refused_at_registration(
    function: Callable[..., Any], complaint: str
) -> None:
    with pytest.raises(TypeError, match=complaint):
        read(function, "tool 'x'").schema()


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once")
@pytest.mark.parametrize("annotation", ["Nowhere", "Annotated[int, Depends(provide)]"])
def test_a_deferred_annotation_that_names_nothing_is_refused(annotation: str) -> None:
    source = f"""
def provide(value: Nowhere) -> int: ...
def takes(value: {annotation}) -> None: ...
"""
    space: dict[str, Any] = {"Annotated": Annotated, "Depends": Depends}
    exec(compile(source, "deferred.py", "exec", dont_inherit=True), space)
    with pytest.raises(TypeError, match="annotation can't be resolved: name 'Nowhere'"):
        read(space["takes"], "tool 'x'")


def test_a_parameter_without_annotation_takes_anything() -> None:
    def loose(value, other=None):  # type: ignore[no-untyped-def] # the point of the test
        return value

    signature = read(loose, "tool")
    assert signature.schema()["properties"] == {"value": {}, "other": {"default": None}}
    assert signature.bind({"value": [1, {"a": None}]})["value"] == [1, {"a": None}]


def test_none_as_default_makes_a_parameter_nullable() -> None:
    def implicit(value: int = None) -> None: ...  # type: ignore[assignment] # noqa: RUF013 - what users write

    assert read(implicit, "tool").bind({"value": None}) == {"value": None}


class Box:
    def method(self, size: int) -> int:
        return size

    async def __call__(self, size: int) -> int:
        return size


@pytest.mark.parametrize(
    "function", [Box().method, Box(), functools.partial(lambda size: size, size=3)]
)
def test_methods_callables_and_partials_have_signatures_too(function: Callable[..., Any]) -> None:
    assert list(read(function, "tool").parameters) == ["size"]


def test_annotations_may_name_what_is_local_where_they_stand() -> None:
    class Local(msgspec.Struct):
        x: int

    def takes_local(value: Local) -> None: ...

    assert read(takes_local, "tool", {"Local": Local}).bind({"value": {"x": 1}})["value"].x == 1


def test_a_note_in_an_annotation_is_the_description() -> None:
    def noted(city: Annotated[str, "Where to look."]) -> None: ...

    assert read(noted, "tool").schema()["properties"]["city"]["description"] == "Where to look."


SPHINX = """Does it.

:param city: The city,
    by name.
:param int days: Days.
:returns: Nothing.
"""
NUMPY = """Does it.

Parameters
----------
city : str
    The city,
    by name.
days : int, optional
    Days.

Returns
-------
None
"""
GOOGLE = """Does it.

Args:
    city (str): The city,
        by name.

    days: Days.

Returns:
    None
"""


@pytest.mark.parametrize("text", [SPHINX, NUMPY, GOOGLE], ids=["sphinx", "numpy", "google"])
def test_parameters_are_described_in_the_usual_docstring_styles(text: str) -> None:
    assert parameter_descriptions(text) == {"city": "The city, by name.", "days": "Days."}


@pytest.mark.parametrize(
    ("text", "first"),
    [(None, None), ("", None), ("One\n  line.\n\nMore.", "One line."), ("\n\n  Late.\n", "Late.")],
)
def test_the_first_paragraph_is_the_description(text: str | None, first: str | None) -> None:
    assert first_paragraph(text) == first
