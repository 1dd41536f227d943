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


@pytest.mark.parametrize(
    "method", ["a/b.c", "$/cancel", "A_1-b:c", "/a", "a b", "a'b", "a\\", "x" * 200]
)
def test_a_method_may_have_the_characters_of_methods(method: str) -> None:
    table = derive_methods(
        AskRequest=request(method), AskResult=obj(x=TEXT), ClientRequest=any_of("AskRequest")
    )
    assert table.all[0].name == method


def test_params_are_required_where_the_message_requires_them() -> None:
    table = derive_methods(
        A=obj("method params", method=const("a"), params=obj(x=TEXT)),
        B=obj("method", method=const("b"), params=obj(x=TEXT)),
        C=obj("method", method=const("c")),
        ClientNotification=any_of("A", "B", "C"),
    )
    rows = [(row.params, row.has_params, row.params_required) for row in table.all]
    assert rows == [("AParams", True, True), ("BParams", True, False), (None, False, False)]


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


ASK: dict[str, Any] = {"AskRequest": request("ask"), "AskResult": obj("a", a=TEXT)}
OF_CLIENT: dict[str, Any] = {"ClientRequest": any_of("AskRequest")}


@pytest.mark.parametrize(
    ("definitions", "expected", "pointer"),
    [
        pytest.param(
            {
                **ASK,
                **OF_CLIENT,
                "AskNotification": request("asked"),
                "ClientNotification": any_of("AskNotification"),
            },
            'a Python name of its own, got "ask", as AskReq',
            "/$defs/AskNotification",
            id="two messages of one name",
        ),
        *(
            pytest.param(
                {**ASK, **OF_CLIENT, "AskRequest": request(method)},
                "a method of 1 to 200 characters that can be printed",
                "/$defs/AskRequest/properties/method/const",
                id=f"the method {method[:9]!r}",
            )
            for method in ("", " a", "a\n", "\u202ea", "x" * 201)
        ),
        pytest.param(
            {"AskRequest": request("ask"), **OF_CLIENT},
            "a result type for ask, such as AskResult",
            "/$defs/AskRequest",
            id="no result",
        ),
        pytest.param(
            {**ASK, **OF_CLIENT, "AskRequest": obj(params=TEXT)},
            "a method with a const",
            "/$defs/AskRequest",
            id="no method",
        ),
        *(
            pytest.param(
                {
                    **ASK,
                    **OF_CLIENT,
                    "AskRequest": request("ask", params=params),
                    "Word": TEXT,
                },
                "expected params that are an object",
                "/$defs/AskRequest/properties/params",
                id=f"params that are {params}",
            )
            for params in (
                *(TEXT, const("a"), {"enum": ["a", "b"]}),
                *(many("AskResult"), ref("Word")),
            )
        ),
        pytest.param(
            {
                **ASK,
                "TellRequest": request("ask"),
                "TellResult": obj(x=TEXT),
                "InputRequest": any_of("AskRequest", "TellRequest"),
            },
            "expected a method of its own",
            None,
            id="two requests for input of one method",
        ),
    ],
)
def test_messages_that_no_package_can_have_are_refused(
    definitions: dict[str, Any], expected: str, pointer: str | None
) -> None:
    with pytest.raises(SchemaError, match=expected) as caught:
        derive_methods(**definitions)
    assert pointer is None or caught.value.pointer.startswith(pointer)


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
    ("stated", "response", "name", "results"),
    [
        ((), None, "AskResult", ("AskResult",)),
        ((), ("MoreResult", "AskResult"), "AskResultResponseResult", ("MoreResult", "AskResult")),
        (
            ("AskResult", "MoreResult"),
            ("MoreResult",),
            "AskResultResponseResult",
            ("AskResult", "MoreResult"),
        ),
    ],
    ids=["named like the request", "of a response", "of the facts before any rule"],
)
def test_a_request_has_results(
    stated: tuple[str, ...], response: tuple[str, ...] | None, name: str, results: tuple[str, ...]
) -> None:
    known = facts_of(client={"ask": stated} if stated else {})
    of_response = {"AskResultResponse": obj(result=any_of(*response))} if response else {}
    named = named_of(known, **ASK, **OF_CLIENT, MoreResult=obj("b", b=TEXT), **of_response)
    [row] = methods_of(named, known).all
    assert (row.result, row.results) == (name, results)
    if len(results) > 1:
        assert named.types.definitions[name].node == any_of(*results)


CURSOR = {"params": obj(cursor=TEXT)}


@pytest.mark.parametrize(
    ("asked", "result", "items"),
    [
        pytest.param(
            request("tools/list", **CURSOR), {"tools": many("Tool")}, "tools", id="in pages"
        ),
        pytest.param(
            request("tools/list", **CURSOR),
            {"names": {"type": "array", "items": TEXT}},
            None,
            id="of texts",
        ),
        pytest.param(request("tools/list"), {"tools": many("Tool")}, None, id="without a param"),
        pytest.param(request("tools/read"), {"tools": many("Tool")}, None, id="of no list"),
    ],
)
def test_a_list_in_pages_is_told_by_its_cursors(
    asked: dict[str, Any], result: dict[str, Any], items: str | None
) -> None:
    definitions: dict[str, Any] = {
        "AskRequest": asked,
        "AskResult": obj(" ".join(result), nextCursor=TEXT, **result),
        "Tool": obj(name=TEXT),
        "MoreResult": obj("asked", asked=many("Tool")),
    }
    table = derive_methods(**definitions, **OF_CLIENT)
    assert [(row.items, row.item) for row in table.all] == [(items, items and "Tool")]
    if items is not None:  # also as one of several results
        several = obj(result=any_of("MoreResult", "AskResult"))
        table = derive_methods(**definitions, **OF_CLIENT, AskResultResponse=several)
        assert table.all[0].items == items


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


def test_a_request_of_an_extension_may_lack_a_result_but_no_method() -> None:
    def name_two(tell: str = "tell", **definitions: Any) -> NamedSchema:
        known = facts_of(client={"tell": ("TellResult", "EmptyResult")})
        requests = {"AskRequest": request("ask"), "TellRequest": request(tell)}
        normal = normal_of(facts=known, **requests, **definitions)
        return name_messages(normal, known, {}, {"ClientRequest": (*requests,)})

    named = name_two(EmptyResult=obj(e=TEXT), TellResult=obj(x=TEXT))
    assert [row.result for row in named.messages.all] == ["EmptyResult", "TellResultResponseResult"]
    assert [(note.pointer, note.text) for note in named.types.notes] == [
        ("/$defs/AskRequest", "no type AskResult, taken as EmptyResult")
    ]
    with pytest.raises(SchemaError, match="expected a result type for ask, such as AskResult"):
        name_two(TellResult=obj(x=TEXT))
    twice = name_two("ask", EmptyResult=obj(e=TEXT), TellResult=obj(x=TEXT))
    with pytest.raises(SchemaError, match="expected a method of its own"):
        methods_of(twice, facts_of())


@pytest.mark.parametrize("revision", NAMES)
def test_messages_of_a_revision_have_params_and_results_that_exist(revision: str) -> None:
    known = facts.load(revision)
    named = name_types(normalize(schema.load(revision), known), known)
    table, types = methods_of(named, known), named.types.definitions
    for row in (*table.all, *table.inputs):
        assert row.params is None or row.params in types, row.name
        assert (row.result in types) is (row.kind == "request"), row.name
    names = {row.name for row in table.of("client", "request")}
    assert table.handshake is ("initialize" in names)
    assert table.handshake is not ("server/discover" in names)
    assert table.batching is (revision == "2025-03-26")
    inputs = {row.python_name for row in table.inputs}
    assert inputs == (set() if table.handshake else {"create_message", "list_roots", "elicit"})
    assert bool(table.of("server", "request")) is table.handshake
