"""Completions as wire objects, and the functions that suggest them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from mcp_protocol import Completion, Context, Server
from mcp_protocol.server.toolkit.completions import Completer


def texts(count: int) -> list[str]:
    return [str(number) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "members", "total", "has_more"),
    [
        (0, {}, 0, False),
        (1, {}, 1, False),
        (1, {"total": 1}, 1, False),
        (1, {"total": 2}, 2, True),
        (1, {"total": 2, "has_more": False}, 2, False),
        (1, {"has_more": True}, 1, True),
        (100, {}, 100, False),
        (101, {}, 101, True),
        (101, {"has_more": False}, 101, False),
    ],
)
def test_a_list_of_values_has_a_total_and_is_cut(
    count: int, members: Any, total: int, has_more: bool
) -> None:
    wire = Completion(texts(count), **members).wire()
    assert wire == {"values": texts(min(count, 100)), "total": total, "hasMore": has_more}


@pytest.mark.parametrize(
    ("count", "has_more"), [(0, False), (1, False), (100, False), (101, True), (1000, True)]
)
def test_an_iterator_is_read_as_far_as_needed(count: int, has_more: bool) -> None:
    values = iter(texts(count))
    assert Completion(values).wire() == {"values": texts(min(count, 100)), "hasMore": has_more}
    assert list(values) == texts(count)[101:]


def test_a_value_that_is_no_text_is_refused() -> None:
    values: Any = ["a", 1]
    with pytest.raises(TypeError, match="completion"):
        Completion(values).wire()


def value_alone(value: str) -> Iterable[str]:
    return [value]


def value_and_others(value: str, others: dict[str, str]) -> Iterable[str]:
    return [value, *itertools.chain(*others.items())]


async def value_and_context(value: str, ctx: Context) -> Iterable[str]:
    return [value, str(ctx)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("function", "others", "values"),
    [
        (value_alone, {"b": "c"}, ["a"]),
        (value_and_others, {"b": "c"}, ["a", "b", "c"]),
        (value_and_others, None, ["a"]),
        (value_and_context, None, ["a", "context"]),
        (lambda value: value, None, None),
        (lambda value: 5, None, None),
    ],
)
async def test_a_function_gets_the_text_and_what_it_names(
    function: Any, others: Any, values: Any
) -> None:
    completer = Completer(function, "completion of x", {"Iterable": Iterable})
    context: Any = "context"
    if values is None:
        with pytest.raises(TypeError, match="completion of x: expected strings, got "):
            await completer.complete("a", others, context)
    else:
        result = await completer.complete("a", others, context)
        assert result["completion"]["values"] == values


@pytest.mark.parametrize(
    ("function", "taken"), [(lambda: ["a"], "nothing"), (lambda a, b, c: [], "a, b, c")]
)
def test_a_function_of_other_parameters_is_refused(function: Any, taken: str) -> None:
    with pytest.raises(TypeError, match=f"of the other arguments, got one of {taken}"):
        Server("s").completion(prompt="p", argument="x")(function)
