"""Methods: their names, params, results and lists, where the published revisions have others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.schemas import TEXT, any_of, array, const, facts_of, methods_of, named_of, obj, ref
from mcpgen.errors import SchemaError
from mcpgen.model.methods import Methods
from mcpgen.schema.facts import Facts, Results


def request(method: str, **more: Any) -> dict[str, Any]:
    """A request or notification."""
    return obj("method", method=const(method), **more)


def derive_methods(known: Facts | None = None, **definitions: Any) -> Methods:
    """The methods of these definitions."""
    known = known or facts_of()
    return methods_of(named_of(known, **definitions), known)


ASK: dict[str, Any] = {"AskRequest": request("ask"), "AskResult": obj("a", a=TEXT)}
OF_CLIENT: dict[str, Any] = {"ClientRequest": any_of("AskRequest")}


@pytest.mark.parametrize("method", ["$/cancel", "a b", "a'b", "a\\", "x" * 200])
def test_a_method_may_have_the_characters_of_methods(method: str) -> None:
    table = derive_methods(**{**ASK, **OF_CLIENT, "AskRequest": request(method)})
    assert (table.all[0].name, table.all[0].python_name) == (method, "ask")


def test_a_known_method_keeps_its_python_name_whatever_its_type_is_called() -> None:
    table = derive_methods(**{**ASK, **OF_CLIENT, "AskRequest": request("tools/call")})
    assert table.all[0].python_name == "call_tool"


@pytest.mark.parametrize("method", ["", " a", "a\n", "\u202ea", "x" * 201])
def test_a_method_that_cannot_be_printed_is_refused(method: str) -> None:
    with pytest.raises(SchemaError, match="a method of 1 to 200 characters that can") as caught:
        derive_methods(**{**ASK, **OF_CLIENT, "AskRequest": request(method)})
    assert caught.value.pointer == "/$defs/AskRequest/properties/method/const"


def test_two_messages_have_two_names_and_two_requests_for_input_two_methods() -> None:
    told: dict[str, Any] = {
        "AskNotification": request("asked"),
        "ClientNotification": any_of("AskNotification"),
    }
    with pytest.raises(
        SchemaError, match='a Python name of its own, got "ask", as AskReq'
    ) as caught:
        derive_methods(**ASK, **OF_CLIENT, **told)
    assert caught.value.pointer.startswith("/$defs/AskNotification")
    again: dict[str, Any] = {"TellRequest": request("ask"), "TellResult": obj(x=TEXT)}
    with pytest.raises(SchemaError, match="expected a method of its own"):
        derive_methods(**ASK, **again, InputRequest=any_of("AskRequest", "TellRequest"))


def test_a_name_of_a_union_of_results_has_one_meaning() -> None:
    results = Results({"a": ("A", "B")}, {"b": ("B", "A")})
    with pytest.raises(SchemaError, match="expected one meaning for AskResultResponseResult"):
        derive_methods(
            replace(facts_of(), results=results),
            AskRequest=request("a"),
            Ask=request("b"),
            A=obj("a", a=TEXT),
            B=obj("b", b=TEXT),
            ClientRequest=any_of("AskRequest"),
            ServerRequest=any_of("Ask"),
        )


@pytest.mark.parametrize(
    ("union", "method", "members", "items"),
    [
        ("ClientRequest", "tools/list", {"nextCursor": TEXT, "tools": array(ref("Tool"))}, "tools"),
        ("ClientRequest", "tools/list", {"nextCursor": TEXT, "names": {"type": "array"}}, None),
        ("ClientRequest", "tools/read", {"tools": array(ref("Tool"))}, None),
        (
            "ClientRequest",
            "tools/list",
            {"tools": array(ref("Tool")), "more": array(ref("Tool"))},
            None,
        ),
        ("ServerRequest", "roots/list", {"roots": array(ref("Tool"))}, None),
    ],
    ids=["in pages", "of texts", "of no list", "two lists", "asked by a server"],
)
def test_a_list_is_told_by_its_cursors_or_its_method(
    union: str, method: str, members: dict[str, Any], items: str | None
) -> None:
    params = {"params": obj(cursor=TEXT)} if "nextCursor" in members else {}
    definitions: dict[str, Any] = {
        "AskRequest": request(method, **params),
        "AskResult": obj(**members),
    }
    definitions |= {"Tool": obj(name=TEXT), "MoreResult": obj("asked", asked=array(ref("Tool")))}
    definitions[union] = any_of("AskRequest")
    (row,) = derive_methods(**definitions).all
    assert (row.items, row.item) == (items, items and "Tool")
    if items is not None:  # also as one of several results
        several: dict[str, Any] = {
            "AskResultResponse": obj(result=any_of("MoreResult", "AskResult"))
        }
        assert derive_methods(**definitions, **several).all[0].items == items
