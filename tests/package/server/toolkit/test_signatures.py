"""A signature becomes a schema, a validator with readable complaints, and a context's place."""

from __future__ import annotations

import enum
import functools
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from mcpgen_runtime import Depends
from mcpgen_runtime.server.chosen import Context
from mcpgen_runtime.server.toolkit.signatures import (
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


def test_texts_are_converted_only_where_the_type_takes_no_text() -> None:
    def typed(
        count: int,
        numbers: list[int],
        any_: Any,
        either: int | str,
        listed: list[int] | str,
        three: list[int] | dict[str, int] | None,
    ) -> None: ...

    texts = dict.fromkeys(("count", "any_", "either"), "3")
    texts |= dict.fromkeys(("numbers", "listed", "three"), "[1]")
    signature = read(typed, "tool")
    bound = signature.bind(texts)
    assert bound == {**texts, "count": 3, "numbers": [1], "three": [1]}
    exact = {**texts, "count": 3, "numbers": [1], "three": None}
    assert signature.bind(exact)["either"] == "3"
    with pytest.raises(ValueError, match="argument 'count': expected int, got str"):
        signature.bind({**exact, "count": "3"}, coerce=False)
    with pytest.raises(ValueError, match="argument 'numbers': expected array, got str"):
        signature.bind({**texts, "numbers": "[1"})


def test_a_number_without_a_fraction_is_an_integer_anywhere() -> None:
    def typed(count: int, numbers: list[int], named: dict[str, int], ratio: float) -> None: ...

    floats = {"count": 5.0, "numbers": [1.0], "named": {"a": 2.0}, "ratio": 0.5}
    for coerce in (True, False):
        bound = read(typed, "tool").bind(floats, coerce=coerce)
        assert repr(bound) == "{'count': 5, 'numbers': [1], 'named': {'a': 2}, 'ratio': 0.5}"


async def run(function: Any, threads: bool | None = None) -> tuple[Any, bool]:
    """The value that a registered function returns, and whether it ran in this thread."""
    options: Any = {} if threads is None else {"threads": threads}
    value, thread = await read(function, "tool", **options).call()
    return value, thread == threading.get_ident()


@pytest.mark.anyio
async def test_plain_functions_run_in_threads_unless_told_otherwise() -> None:
    def plain() -> tuple[str, int]:
        return "plain", threading.get_ident()

    async def coroutine() -> tuple[str, int]:
        return "coroutine", threading.get_ident()

    assert await run(plain) == ("plain", False)
    assert await run(plain, threads=True) == ("plain", False)
    assert await run(plain, threads=False) == ("plain", True)
    for threads in (True, False):
        assert read(coroutine, "tool", threads=threads).call is coroutine


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
    assert read(typed, "tool").bind({})["made"] == [1]


def test_a_function_of_this_place_may_call_its_argument_self() -> None:
    def local(self) -> None: ...  # type: ignore[no-untyped-def] # the point of the test

    assert list(read(local, "tool").parameters) == ["self"]


def takes_starred(*names: str) -> None: ...


def takes_positional(name: str, /) -> None: ...


def takes_two_contexts(a: Context, b: Context) -> None: ...


async def generates() -> AsyncIterator[int]:
    yield 1


def takes_unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821 - the point


def takes_a_number_as_type(value: 1) -> None: ...  # type: ignore[valid-type] # the point


def takes_a_reserved_name(__weakref__: int = 1) -> None: ...


class Box:
    def method(self, size: int) -> int:
        return size

    async def __call__(self, size: int) -> int:
        return size


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
        (Box.method, "tool 'x': expected a bound method, got a function with 'self'; register"),
        (takes_a_reserved_name, "tool 'x': Cannot have a struct field named '__weakref__'"),
        (takes_a_number_as_type, "tool 'x': .*1"),
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

    def explicit(value: Annotated[int | None, msgspec.Meta(title="A")] = None) -> None: ...

    assert read(implicit, "tool").bind({"value": None}) == {"value": None}
    kinds = [{"type": "integer"}, {"type": "null"}]
    properties = read(explicit, "tool").schema()["properties"]
    assert properties == {"value": {"title": "A", "anyOf": kinds, "default": None}}


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
    "text",
    [
        "Does it.\n\nParameters\n\n  city : str\n    The city.\n",  # no rule below the title
        "Does it.\n\nParameters",
        "Does it.\n\nNotes\n-----\ncity : str\n    The city.\n",
        "Args:\n\nReturns:\n    city: The city.\n",
        "Parameters\n----------\n",
    ],
)
def test_other_sections_describe_no_parameters(text: str) -> None:
    assert parameter_descriptions(text) == {}


@pytest.mark.parametrize(
    ("text", "first"),
    [(None, None), ("", None), ("One\n  line.\n\nMore.", "One line."), ("\n\n  Late.\n", "Late.")],
)
def test_the_first_paragraph_is_the_description(text: str | None, first: str | None) -> None:
    assert first_paragraph(text) == first
