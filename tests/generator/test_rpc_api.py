"""The typed API: arguments of calls, where the published revisions have no example."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import (
    COUNT,
    TEXT,
    any_of,
    const,
    facts_of,
    methods_of,
    named_of,
    obj,
    ref,
)
from generator.tables import table
from mcpgen.model import imports, rpc_api
from mcpgen.model.docstrings import Texts
from mcpgen.model.rpc_api import RpcApi
from mcpgen.schema.docs import Docs


def asking_api(params: Any, method: str = "ask", **more: Any) -> RpcApi:
    """The API of a client that sends one request."""
    named = named_of(
        AskRequest=obj("method params", method=const(method), params=params),
        AskResult=obj("answer", answer=TEXT),
        ClientRequest=any_of("AskRequest"),
        **more,
    )
    texts = Texts(named.types.schema, Docs())
    return rpc_api.derive(named.types, methods_of(named, facts_of()), texts)


def test_an_argument_for_which_null_is_a_value_says_so() -> None:
    kinds: dict[str, Any] = {
        "text": TEXT,
        "anything": {},
        "named": ref("Anything"),
        "maybe": {"type": ["string", "null"]},
        "one": {"enum": ["a", None]},
        "either": any_of("Text", "Nothing"),
    }
    others: dict[str, Any] = {
        "Anything": any_of("Text", "Anything"),
        "Text": TEXT,
        "Nothing": {"type": "null"},
    }
    api = asking_api(obj(**kinds), **others)
    (call,) = api.client.requests
    nullable = {argument.name: argument.nullable for argument in call.arguments}
    assert nullable == {**dict.fromkeys(kinds, True), "text": False}
    assert imports.of_client(api.client, api.handled).wire == "UNSET, UnsetType"


def test_a_client_of_revisions_accepts_what_any_of_them_does() -> None:
    old = asking_api(obj("a b", a=TEXT, b=TEXT))
    new = asking_api(obj("a b c", a=COUNT, b=TEXT, c=TEXT))
    (call,) = rpc_api.merge({"1": old, "2": new}).client.requests
    shown = [(argument.name, argument.type, argument.required) for argument in call.arguments]
    assert shown == [("a", "int | str", True), ("b", "str", True), ("c", "str", False)]


@pytest.mark.parametrize("case", table("call_arguments").values(), ids=table("call_arguments"))
def test_params_become_arguments(case: Any) -> None:
    method, params, expected = case
    named = ref("Params") if "anyOf" in params else params
    (call,) = asking_api(named, method, Params=params, Thing=obj(a=TEXT)).client.requests
    flags = {"required": ", required", "positional": ", by position"}
    assert expected == [
        f"{each.name}: {each.type}{''.join(flags[flag] for flag in flags if getattr(each, flag))}"
        for each in call.arguments
    ]
    assert (call.params == "None") is (not expected)


def test_a_list_without_pages_is_one_call_for_all_items() -> None:
    named = named_of(
        ListRequest=obj("method params", method=const("things/list"), params=obj(kind=TEXT)),
        ListResult=obj("things", things={"type": "array", "items": ref("Thing")}),
        ClientRequest=any_of("ListRequest"),
        Thing=obj(a=TEXT),
    )
    api = rpc_api.derive(
        named.types, methods_of(named, facts_of()), Texts(named.types.schema, Docs())
    )
    call = api.client.requests[0]
    assert (call.item, "Follows the pages" in call.doc) == ("models.Thing", False)


def test_arguments_keep_their_names_whatever_a_coroutine_needs() -> None:
    names = ["timeout", "timeout_", "self", "result", "in_thread", "fields", "value"]
    texts: dict[str, Any] = dict.fromkeys(names, TEXT)
    (call,) = asking_api(obj(**texts)).client.requests
    by_field = {argument.field: argument.name for argument in call.arguments}
    assert len({*by_field.values()}) == len(names)
    assert by_field["value"] == "value"
    assert not {*by_field.values()} & {"timeout", "self", "result", "in_thread", "fields"}
