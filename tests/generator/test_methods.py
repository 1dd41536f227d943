"""Methods: who sends them, their params, their results, and what depends on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.schemas import (
    TEXT,
    any_of,
    const,
    facts_of,
    methods_of,
    named_of,
    normal_of,
    obj,
    ref,
)
from mcpgen import schema
from mcpgen.errors import SchemaError
from mcpgen.model.methods import Methods
from mcpgen.model.name import NamedSchema, name_messages, name_types, results_by_rule
from mcpgen.model.normalize import normalize
from mcpgen.schema import facts
from mcpgen.schema.facts import Facts, Results
from mcpgen.schema.method_facts import MethodFacts

NAMES = [row.name for row in schema.revisions()]


def request(method: str, **more: Any) -> dict[str, Any]:
    """A request or notification."""
    return obj("method", method=const(method), **more)


def many(name: str) -> dict[str, Any]:
    """An array of a definition."""
    return {"type": "array", "items": ref(name)}


def derive_methods(known: Facts | None = None, **definitions: Any) -> Methods:
    """The methods of these definitions."""
    known = known or facts_of()
    return methods_of(named_of(known, **definitions), known)


def derived_from(revision: str) -> Methods:
    """The methods of a revision that mcpgen has."""
    loaded = schema.load(revision)
    known = facts.load(revision)
    return methods_of(name_types(normalize(loaded, known), known), known)


def test_the_unions_by_direction_say_who_sends_what() -> None:
    table = derive_methods(
        PingRequest=request("ping"),
        DoneNotification=request("done"),
        PingResult=obj(x=TEXT),
        ClientRequest=any_of("PingRequest"),
        ServerRequest=any_of("PingRequest"),
        ServerNotification=ref("DoneNotification"),
    )
    rows = [(row.sender, row.kind, row.name, row.python_name) for row in table.all]
    assert rows == [
        ("client", "request", "ping", "ping"),
        ("server", "request", "ping", "ping"),
        ("server", "notification", "done", "done"),
    ]


def test_two_messages_of_a_sender_need_different_python_names() -> None:
    with pytest.raises(
        SchemaError, match='a Python name of its own, got "ask", as AskReq'
    ) as raised:
        derive_methods(
            AskRequest=request("ask"),
            AskResult=obj(x=TEXT),
            AskNotification=request("asked"),
            ClientRequest=any_of("AskRequest"),
            ClientNotification=any_of("AskNotification"),
        )
    assert raised.value.pointer == "/$defs/AskNotification"


@pytest.mark.parametrize(
    "method", ["a/b.c", "$/cancel", "A_1-b:c", "/a", "a b", "a'b", "a\\", "x" * 200]
)
def test_a_method_may_have_the_characters_of_methods(method: str) -> None:
    table = derive_methods(
        AskRequest=request(method), AskResult=obj(x=TEXT), ClientRequest=any_of("AskRequest")
    )
    assert table.all[0].name == method


@pytest.mark.parametrize("method", ["", " a", "a\n", "\u202ea", "x" * 201])
def test_a_method_with_other_characters_is_refused(method: str) -> None:
    with pytest.raises(
        SchemaError, match="a method of 1 to 200 characters that can be printed"
    ) as raised:
        derive_methods(
            AskRequest=request(method), AskResult=obj(x=TEXT), ClientRequest=any_of("AskRequest")
        )
    assert raised.value.pointer == "/$defs/AskRequest/properties/method/const"


def test_a_result_is_named_like_its_request() -> None:
    table = derive_methods(
        AskRequest=request("ask"), AskResult=obj(a=TEXT), ClientRequest=any_of("AskRequest")
    )
    assert table.all[0].result == "AskResult"
    assert table.all[0].results == ("AskResult",)


def test_a_response_says_what_the_result_is() -> None:
    table = derive_methods(
        AskRequest=request("ask"),
        AskResult=obj("a", a=TEXT),
        MoreResult=obj("b", b=TEXT),
        AskResultResponse=obj(result=any_of("MoreResult", "AskResult")),
        ClientRequest=any_of("AskRequest"),
    )
    assert table.all[0].result == "AskResultResponseResult"
    assert table.all[0].results == ("MoreResult", "AskResult")


def test_facts_say_what_the_result_is_before_any_rule() -> None:
    known = facts_of(client={"ask": ("AskResult", "TaskResult")})
    named = named_of(
        known,
        AskRequest=request("ask"),
        AskResult=obj("a", a=TEXT),
        TaskResult=obj("t", t=TEXT),
        ClientRequest=any_of("AskRequest"),
    )
    assert methods_of(named, known).all[0].results == ("AskResult", "TaskResult")
    added = named.types.definitions["AskResultResponseResult"]
    assert added.node == any_of("AskResult", "TaskResult")


def test_a_request_without_a_result_is_refused() -> None:
    with pytest.raises(SchemaError, match="a result type for ask, such as AskResult") as caught:
        derive_methods(AskRequest=request("ask"), ClientRequest=any_of("AskRequest"))
    assert caught.value.pointer == "/$defs/AskRequest"


def test_a_message_without_a_method_is_refused() -> None:
    with pytest.raises(SchemaError, match="a method with a const"):
        derive_methods(AskRequest=obj(params=TEXT), ClientRequest=any_of("AskRequest"))


def test_params_are_required_where_the_message_requires_them() -> None:
    table = derive_methods(
        A=obj("method params", method=const("a"), params=obj(x=TEXT)),
        B=obj("method", method=const("b"), params=obj(x=TEXT)),
        C=obj("method", method=const("c")),
        ClientNotification=any_of("A", "B", "C"),
    )
    rows = [(row.params, row.has_params, row.params_required) for row in table.all]
    assert rows == [("AParams", True, True), ("BParams", True, False), (None, False, False)]


def test_a_list_in_pages_is_told_by_its_cursors() -> None:
    pages = obj(nextCursor=TEXT, names={"type": "array", "items": TEXT})
    items = obj(nextCursor=TEXT, tools={"type": "array", "items": obj(name=TEXT)})
    table = derive_methods(
        ListToolsRequest=request("tools/list", params=obj(cursor=TEXT)),
        ListToolsResult=items,
        ListNamesRequest=request("names/list", params=obj(cursor=TEXT)),
        ListNamesResult=pages,
        ClientRequest=any_of("ListToolsRequest", "ListNamesRequest"),
    )
    assert [(row.items, row.item) for row in table.all] == [
        ("tools", "ListToolsResultTools"),
        (None, None),
    ]


def test_a_list_in_pages_may_be_one_of_several_results() -> None:
    table = derive_methods(
        ListToolsRequest=request("tools/list", params=obj(cursor=TEXT)),
        ListToolsResult=obj("tools", nextCursor=TEXT, tools=many("Tool")),
        Tool=obj(name=TEXT),
        MoreResult=obj("asked", asked=many("Tool")),
        ListToolsResultResponse=obj(result=any_of("MoreResult", "ListToolsResult")),
        ClientRequest=any_of("ListToolsRequest"),
    )
    assert [(row.items, row.item) for row in table.all] == [("tools", "Tool")]


@pytest.mark.parametrize(
    ("union", "method", "result", "items"),
    [
        ("ClientRequest", "tools/list", {"tools": "Tool"}, "tools"),
        ("ClientRequest", "tools/list", {"tools": "Tool", "more": "Tool"}, None),
        ("ClientRequest", "tools/read", {"tools": "Tool"}, None),
        ("ServerRequest", "roots/list", {"roots": "Tool"}, None),
    ],
    ids=["one list", "two lists", "no request for a list", "asked by a server"],
)
def test_a_list_without_pages_is_told_by_its_method(
    union: str, method: str, result: dict[str, str], items: str | None
) -> None:
    definitions: dict[str, Any] = {union: any_of("AskRequest"), "Tool": obj(name=TEXT)}
    answered = {"type": "object", "properties": {wire: many(result[wire]) for wire in result}}
    table = derive_methods(AskRequest=request(method), AskResult=answered, **definitions)
    assert [(row.items, row.item) for row in table.all] == [(items, items and "Tool")]


def test_a_result_with_a_cursor_without_its_param_is_no_list() -> None:
    table = derive_methods(
        ListToolsRequest=request("tools/list"),
        ListToolsResult=obj(nextCursor=TEXT, tools=many("Tool")),
        Tool=obj(name=TEXT),
        ClientRequest=any_of("ListToolsRequest"),
    )
    assert [(row.items, row.item) for row in table.all] == [(None, None)]


@pytest.mark.parametrize("revision", NAMES)
def test_every_request_has_params_and_a_result_that_exist(revision: str) -> None:
    known = facts.load(revision)
    named = name_types(normalize(schema.load(revision), known), known)
    table, types = methods_of(named, known), named.types.definitions
    for row in (*table.all, *table.inputs):
        assert row.params is None or row.params in types, row.name
        assert (row.result in types) is (row.kind == "request"), row.name


@pytest.mark.parametrize("revision", NAMES)
def test_a_handshake_is_where_initialize_is(revision: str) -> None:
    table = derived_from(revision)
    names = {row.name for row in table.of("client", "request")}
    assert table.handshake is ("initialize" in names)
    assert table.handshake is not ("server/discover" in names)


def test_batches_are_where_the_schema_has_them() -> None:
    assert [derived_from(name).batching for name in NAMES].count(True) == 1


def test_input_requests_of_results_are_apart_from_requests() -> None:
    newest = derived_from(NAMES[-1])
    assert not newest.of("server", "request")
    assert {row.python_name for row in newest.inputs} == {
        "create_message",
        "list_roots",
        "elicit",
    }


@pytest.mark.parametrize(
    "params", [TEXT, const("a"), {"enum": ["a", "b"]}, many("Ask"), ref("Word")]
)
def test_params_that_are_no_object_are_refused(params: Any) -> None:
    with pytest.raises(SchemaError, match="expected params that are an object") as raised:
        derive_methods(
            AskRequest=request("ask", params=params),
            AskResult=obj(x=TEXT),
            Ask=obj(a=TEXT),
            Word=TEXT,
            ClientRequest=any_of("AskRequest"),
        )
    assert raised.value.pointer == "/$defs/AskRequest/properties/params"


def test_requests_for_input_have_methods_of_their_own() -> None:
    with pytest.raises(SchemaError, match="expected a method of its own"):
        derive_methods(
            AskRequest=request("ask"),
            TellRequest=request("ask"),
            AskResult=obj(x=TEXT),
            TellResult=obj(x=TEXT),
            InputRequest=any_of("AskRequest", "TellRequest"),
        )


def name_two(**definitions: Any) -> NamedSchema:
    """The types of two requests, which an extension might add."""
    known = facts_of(client={"tell": ("TellResult", "EmptyResult")})
    normal = normal_of(
        facts=known, AskRequest=request("ask"), TellRequest=request("tell"), **definitions
    )
    return name_messages(normal, known, {}, {"ClientRequest": ("AskRequest", "TellRequest")})


def test_a_request_of_an_extension_may_lack_a_result() -> None:
    named = name_two(EmptyResult=obj(e=TEXT), TellResult=obj(x=TEXT))
    assert [row.result for row in named.messages.all] == ["EmptyResult", "TellResultResponseResult"]
    assert [(note.pointer, note.text) for note in named.types.notes] == [
        ("/$defs/AskRequest", "no type AskResult, taken as EmptyResult")
    ]
    with pytest.raises(SchemaError, match="expected a result type for ask, such as AskResult"):
        name_two(TellResult=obj(x=TEXT))


def test_requests_of_an_extension_have_methods_of_their_own() -> None:
    normal = normal_of(
        AskRequest=request("ask"), TellRequest=request("ask"), EmptyResult=obj(e=TEXT)
    )
    with pytest.raises(SchemaError, match="expected a method of its own"):
        methods_of(
            name_messages(normal, facts_of(), {}, {"ClientRequest": ("AskRequest", "TellRequest")}),
            facts_of(),
        )


def test_results_by_rule_are_those_that_the_schema_has() -> None:
    known = facts_of(client={"stated": ("AskResult",)})
    normal = normal_of(
        facts=known,
        AskRequest=request("ask"),
        AskResult=obj(x=TEXT),
        StatedRequest=request("stated"),
        StatedResult=obj(x=TEXT),
        NoneRequest=request("none"),
        InputAskRequest=request("input"),
        InputAskResult=obj(y=TEXT),
        ClientRequest=any_of("AskRequest", "StatedRequest", "NoneRequest"),
        InputRequest=any_of("InputAskRequest"),
    )
    results = results_by_rule(normal, known)
    assert results.client == {"ask": ("AskResult",)}
    assert results.server == {"input": ("InputAskResult",)}


def test_a_name_of_a_union_of_results_has_one_meaning() -> None:
    known = replace(
        facts_of(client={"ask": ("A", "B")}), results=Results({"a": ("A", "B")}, {"b": ("B", "A")})
    )
    with pytest.raises(SchemaError, match="expected one meaning for AskResultResponseResult"):
        derive_methods(
            known,
            AskRequest=request("a"),
            Ask=request("b"),
            A=obj("a", a=TEXT),
            B=obj("b", b=TEXT),
            ClientRequest=any_of("AskRequest"),
            ServerRequest=any_of("Ask"),
        )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (MethodFacts(), False),
        (MethodFacts(named_by="name"), True),
        (MethodFacts(named_by="uri"), True),
        (MethodFacts(named_by="taskId"), False),
        (MethodFacts(routed_by="ref"), True),
    ],
)
def test_a_client_of_several_servers_sends_what_names_its_server(
    row: MethodFacts, expected: bool
) -> None:
    table = derive_methods(
        replace(facts_of(), methods={"ask": row}),
        AskRequest=request("ask"),
        AskResult=obj(x=TEXT),
        ClientRequest=any_of("AskRequest"),
    )
    assert table.all[0].for_groups is expected
