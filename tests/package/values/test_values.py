"""Values of types as JSON data: names on the wire, members of unions, fields, constraints."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, TypeVar

import annotated_types
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field

from mcpgen_runtime.server.toolkit.signatures import field_default
from mcpgen_runtime.values.value_types import (
    as_msgspec,
    custom_schema,
    schema_of,
    to_json,
    value_type,
)


class Aliased(BaseModel):
    """A model whose member has another name on the wire."""

    model_config = ConfigDict(populate_by_name=True)

    count: int = Field(alias="n", ge=0)


@dataclass
class Small:
    a: int


@dataclass
class Large:
    a: int
    b: int = 0
    c: int = 0


@dataclass
class Other:
    x: str


class Holder(msgspec.Struct):
    """A Struct with a model of pydantic."""

    a: Aliased


class Odd(msgspec.Struct):
    """A Struct with a member that has no form in JSON."""

    a: types.ModuleType


Item = TypeVar("Item")


@dataclass
class Box(Generic[Item]):
    """A generic class."""

    item: Item


Ranged = Annotated[int, msgspec.Meta(ge=1), msgspec.Meta(le=3)]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Aliased(n=1), {"n": 1}),
        ({"a": [Aliased(n=1)]}, {"a": [{"n": 1}]}),
        (Small(1), {"a": 1}),
        (PurePosixPath("/a"), "/a"),
        ({1: Path("b")}, {"1": "b"}),
        (msgspec.Raw(b'{"a":1}'), {"a": 1}),
    ],
)
def test_a_value_of_any_type_has_a_json_form(value: Any, written: Any) -> None:
    assert to_json(value) == written
    assert value_type(Any).write(value) == written


@pytest.mark.parametrize(
    ("value", "reason"),
    [(object(), "object"), ({"a": {1, object()}}, "object"), (float("nan"), "")],
)
def test_a_value_without_a_json_form_is_refused(value: Any, reason: str) -> None:
    if reason:
        with pytest.raises(TypeError, match=reason):
            to_json(value)
    else:
        with pytest.raises((TypeError, ValueError)):
            value_type(int).write(value)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (Aliased, {"n": 1}, Aliased(n=1)),
        (list[Aliased], [{"n": 1}], [Aliased(n=1)]),
        (dict[str, Aliased | None], {"a": None, "b": {"n": 1}}, {"a": None, "b": Aliased(n=1)}),
        (Small | Large, {"a": 1}, Small(1)),
        (Small | Large, {"a": 1, "b": 2}, Large(1, 2)),
        (Large | Small, {"a": 1}, Small(1)),
        (Large | Small, {"a": 1, "c": 2, "z": 3}, Large(1, 0, 2)),
        (Small | Other, {"x": "y", "z": 3}, Other("y")),
        (Small | Other | None, None, None),
        (list[Small | Other], [{"x": "y"}, {"a": 1}], [Other("y"), Small(1)]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Holder, {"a": {"n": 1}}, Holder(Aliased(n=1))),
        (Box[Path], {"item": "a"}, Box(Path("a"))),
        (list[Ranged], [1, 3], [1, 3]),
        (tuple[Path, int], ["a", 1], (Path("a"), 1)),
    ],
)
def test_data_becomes_the_member_of_a_type_that_fits_best(kind: Any, data: Any, value: Any) -> None:
    read = value_type(kind)
    assert read.read(data) == value
    if "z" not in str(data) and data != {"a": 1, "b": 2}:
        assert read.read(read.write(value)) == value


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        (Small | Other, {"a": "b"}, "expected one of 2 types; Small: Expected `int`, got `str`"),
        (Small | Other, 1, "expected one of 2 types; Small: Expected `object`, got `int`"),
        (list[Path], ["a\0"], "expected a path, got 'a\\x00'"),
        (Path, 1, "expected a path, got 1"),
        (list[Ranged], [0], "Expected `int` >= 1"),
        (list[Ranged], [4], "Expected `int` <= 3"),
        (Box[int], {"item": "a"}, "Expected `int`, got `str` - at `$.item`"),
        (Holder, {"a": {"n": -1}}, "n: input should be greater than or equal to 0, got -1"),
        (Aliased, {"n": -1}, "n: input should be greater than or equal to 0, got -1"),
        (Aliased, {}, "n: field required"),
        (Aliased, "x", "input should be "),
    ],
)
def test_data_that_does_not_fit_is_refused_with_its_place(kind: Any, data: Any, error: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        value_type(kind).read(data)
    assert str(caught.value).startswith(error)


def test_a_model_is_written_by_its_own_rules() -> None:
    assert value_type(Aliased).write(Aliased(n=1)) == {"n": 1}
    assert value_type(Holder).write(Holder(Aliased(n=1))) == {"a": {"n": 1}}
    assert value_type(Annotated[int, pydantic.PlainSerializer(str)]).write(5) == "5"
    with pytest.raises(ValueError, match="greater than 0"):
        value_type(pydantic.PositiveInt).write(-1)
    with pytest.raises(ValueError, match="`int` >= 1"):
        value_type(Ranged).write(0)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Odd, "expected a type with a JSON form, got <class 'module'>"),
        (list[int] | set[str], "more than one array-like"),
    ],
)
def test_a_type_that_cannot_be_read_is_an_error(kind: Any, error: str) -> None:
    with pytest.raises((TypeError, msgspec.ValidationError), match=error):
        value_type(kind).read({"a": 1} if kind is Odd else [1])


def test_a_type_that_pydantic_refuses_is_an_error_of_one_line() -> None:
    class Calling(BaseModel):
        call: Callable[[], int]

    with pytest.raises(TypeError) as caught:
        value_type(Annotated[types.ModuleType, Field(description="d")])
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError) as caught:
        schema_of(value_type(Calling).kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, "; and 1 more"), (8, "; and 3 more")])
def test_five_reasons_are_shown(count: int, more: str) -> None:
    members: Any = {f"m{number}": (int, ...) for number in range(count)}
    model = pydantic.create_model("Model", **members)
    with pytest.raises(msgspec.ValidationError) as caught:
        value_type(model).read({})
    assert str(caught.value) == "; ".join(f"m{n}: field required" for n in range(5)) + more


def test_strict_reading_takes_no_text_for_a_number() -> None:
    for kind in (int, Aliased, Annotated[int, Field(ge=1)]):
        data = {"n": "5"} if kind is Aliased else "5"
        with pytest.raises(msgspec.ValidationError):
            value_type(kind).read(data)
        assert value_type(kind).read(data, strict=False) in (5, Aliased(n=5))


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, 3, (3, None)),
        (int, inspect.Parameter.empty, (inspect.Parameter.empty, None)),
        (Annotated[int, "a note"], inspect.Parameter.empty, (inspect.Parameter.empty, None)),
        (Annotated[int, Field(default=4)], inspect.Parameter.empty, (4, None)),
        (Annotated[int, Field(default=4)], 5, (5, None)),
        (Annotated[int, Field(ge=1)], inspect.Parameter.empty, (inspect.Parameter.empty, None)),
        (int, Field(ge=1), (inspect.Parameter.empty, None)),
        (int, Field(default=None), (None, None)),
        (list, Field(default_factory=list), (inspect.Parameter.empty, list)),
    ],
)
def test_a_field_sets_the_default_of_a_parameter(
    annotation: Any, default: Any, expected: tuple[Any, Callable[[], Any] | None]
) -> None:
    kind, *rest = field_default(annotation, default)
    assert tuple(rest) == expected
    if type(default).__name__ == "FieldInfo":
        assert kind == Annotated[annotation, default]
    else:
        assert kind is annotation


class FieldInfo:
    """Not that of pydantic."""


@pytest.mark.parametrize("make", [FieldInfo, pydantic.PrivateAttr])
def test_only_a_field_of_pydantic_is_one(make: Callable[[], object]) -> None:
    default = make()
    assert field_default(int, default) == (int, default, None)


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (Field(alias="b"), "expected no alias"),
        (Field(validation_alias="b"), "expected no alias"),
        (Field(default_factory=lambda data: data), "expected a default_factory without parameters"),
    ],
)
def test_a_field_with_another_setting_is_refused(field: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        field_default(int, field)


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("a note", ["a note"]),
        (annotated_types.Ge(1), [msgspec.Meta(ge=1)]),
        (annotated_types.Interval(gt=1, le=3), [msgspec.Meta(gt=1), msgspec.Meta(le=3)]),
        (annotated_types.Len(2), [msgspec.Meta(min_length=2)]),
        (annotated_types.Len(0, 3), [msgspec.Meta(max_length=3)]),
        (annotated_types.MultipleOf(2), [msgspec.Meta(multiple_of=2)]),
    ],
)
def test_constraints_are_those_of_msgspec(note: Any, expected: list[Any]) -> None:
    assert list(as_msgspec(note)) == expected


def test_a_constraint_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(TypeError, match="can't be checked without pydantic"):
        list(as_msgspec(annotated_types.Predicate(bool)))


def test_a_type_beside_a_foreign_constraint_is_refused() -> None:
    class Own(msgspec.Struct):
        a: Annotated[int, annotated_types.Gt(1)]

    with pytest.raises(TypeError, match=r"Gt\(gt=1\) can't be checked beside <class .*Own'>: exp"):
        value_type(Own)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Path, {"type": "string"}),
        (Decimal, {"type": "string"}),
        (Literal["b", "a"], {"enum": ["b", "a"], "type": "string"}),
        (
            list[datetime],
            {"type": "array", "items": {"type": "string", "format": "date-time"}},
        ),
        (
            Small | None,
            {
                "anyOf": [{"$ref": "#/$defs/Small"}, {"type": "null"}],
                "$defs": {
                    "Small": {
                        "title": "Small",
                        "type": "object",
                        "properties": {"a": {"type": "integer"}},
                        "required": ["a"],
                    }
                },
            },
        ),
    ],
)
def test_a_schema_describes_the_data(kind: Any, schema: Any) -> None:
    assert schema_of(value_type(kind).kind, "validation", kind) == schema


def test_choices_of_a_schema_have_the_order_of_their_source() -> None:
    assert schema_of(Literal["b", "a"]) == {"enum": ["b", "a"], "type": "string"}


class Computed(BaseModel):
    """A model with a member that only the written form has."""

    a: int = 1

    @pydantic.computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def b(self) -> int:
        """Twice the first."""
        return 2 * self.a


def test_the_schema_of_what_is_written_has_computed_members() -> None:
    kind = value_type(Computed).kind
    assert list(schema_of(kind)["properties"]) == ["a"]
    assert list(schema_of(kind, "serialization")["properties"]) == ["a", "b"]
    assert "title" not in schema_of(kind)["properties"]["a"]
    with pytest.raises(TypeError, match="has no JSON form; Any, a dataclass"):
        custom_schema(object, use="validation")
