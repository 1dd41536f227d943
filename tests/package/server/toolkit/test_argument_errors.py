"""Wrong arguments: the error of each argument with its path, within bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from pydantic import BaseModel

from mcpgen_runtime import Server, TextContent

pytestmark = pytest.mark.on_asyncio


@dataclass
class Place:
    city: str
    height: int = 0
    tags: list[str] = field(default_factory=list)


class Stop(TypedDict):
    place: Place
    days: NotRequired[int]


class Rule(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    max_days: int
    on_hold: bool = False


class Guest(BaseModel):
    name: str
    age: int


@dataclass
class Tree:
    size: int
    inner: Tree | None = None


def plan(
    stops: list[Stop],
    days: int,
    mode: Literal["car", "train"] = "car",
    rule: Rule | None = None,
    prices: dict[str, float] | None = None,
    pair: tuple[int, str] = (1, "a"),
    guest: Guest | None = None,
    tree: Tree | None = None,
    level: Annotated[int, msgspec.Meta(ge=1)] = 1,
) -> str:
    return "planned"


RIGHT: dict[str, Any] = {"stops": [], "days": 1}


async def errors_of(
    arguments: dict[str, Any], function: Callable[..., Any] = plan, *, coerce: bool = True
) -> str:
    """The errors that a call of a tool ends with."""
    server = Server("tester", coerce=coerce)
    server.add_tool(function, "tool")
    [text] = (await server.call_tool("tool", arguments)).content
    assert isinstance(text, TextContent)
    return text.text.removeprefix("tool 'tool': ")


@pytest.mark.parametrize("coerce", [True, False])
@pytest.mark.parametrize(
    ("arguments", "errors"),
    [
        (
            {"stops": 5, "days": "x", "mode": "bus", "level": 0},
            [
                "'stops': expected array, got int",
                "'days': expected int, got str",
                "'mode': invalid enum value 'bus'; expected one of 'car', 'train'",
                "'level': expected int >= 1, got 0",
            ],
        ),
        (
            {"stops": [{"place": {"tags": ["a", 5]}, "days": "x"}, 7], "days": 1},
            ["'stops[0].place.tags[1]': expected str, got int"],
        ),
        (
            {**RIGHT, "rule": {"onHold": "x"}, "prices": {"a": "x", "b": 1}},
            [
                "'rule.onHold': expected bool, got str",
                "'prices[...]': expected float, got str",
            ],
        ),
        (
            {**RIGHT, "rule": {}, "pair": [1, 5], "tree": {"size": 1, "inner": {"size": "x"}}},
            [
                "'rule.maxDays': required, but missing",
                "'pair[1]': expected str, got int",
                "'tree.inner.size': expected int, got str",
            ],
        ),
        (
            {"stops": [{"place": {"city": "a"}}] * 5000 + [5], "days": 1},
            ["'stops[5000]': expected object, got int"],
        ),
    ],
)
async def test_every_wrong_argument_is_named_with_its_path(
    arguments: dict[str, Any], errors: list[str], coerce: bool
) -> None:
    expected = "; ".join(f"argument {each}" for each in errors)
    assert await errors_of(arguments, coerce=coerce) == expected


async def test_unknown_arguments_and_errors_of_models_stand_beside_the_others() -> None:
    known = ", ".join(inspect.signature(plan).parameters)
    assert await errors_of({"stops": [], "dayz": 1, "moode": 2}) == (
        "argument 'days': required, but missing; "
        f"unknown argument 'dayz', 'moode'; expected: {known}"
    )
    text = await errors_of({"stops": [], "days": "x", "guest": {"age": "old"}})
    assert text.startswith("argument 'days': expected int, got str; argument 'guest': ")
    assert "name: field required" in text
    assert "age: input should be a valid integer" in text


async def test_a_deep_value_costs_little() -> None:
    tree: Any = {"size": "x"}
    for _ in range(100):
        tree = {"size": 1, "inner": tree}
    text = await errors_of({**RIGHT, "tree": tree})
    assert text.startswith("argument 'tree.inner.inner.")
    assert text.endswith("': expected int, got str")
    endless: Any = []
    for _ in range(100):
        endless = [endless]
    assert "argument 'stops" in await errors_of({**RIGHT, "stops": endless})


T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    items: list[T]
    total: int


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Page[int], {"items": [], "total": "x"}, ".total': expected int, got str"),
        (tuple[int, ...], ["x", 1, "y"], "[0]': expected int, got str"),
        (int | list[str], 1.5, "': expected int | array, got float"),
        (
            Annotated[list[int], msgspec.Meta(max_length=2)],
            [1, 2, 3],
            "': expected array of length <= 2, got [1, 2, 3]",
        ),
    ],
)
async def test_an_error_belongs_to_the_part_that_does_not_fit(
    annotation: Any, value: Any, expected: str
) -> None:
    def take(given: Any) -> None: ...

    take.__annotations__["given"] = annotation
    errors = await errors_of({"given": value}, take, coerce=False)
    assert errors == f"argument 'given{expected}"
