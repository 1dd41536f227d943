"""The typed API: calls with their arguments, and the API of several revisions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from generator.schemas import (
    COUNT,
    OPEN,
    TEXT,
    any_of,
    const,
    facts_of,
    methods_of,
    named_of,
    obj,
    ref,
)
from mcpgen.model import imports, rpc_api
from mcpgen.model.docstrings import Texts
from mcpgen.model.rpc_api import Call, Messages, RpcApi
from mcpgen.schema.docs import Docs
from mcpgen.schema.facts import Facts


def derive_api(known: Facts | None = None, **definitions: Any) -> RpcApi:
    """The API of these definitions."""
    known = known or facts_of()
    named = named_of(known, **definitions)
    texts = Texts(named.types.schema, Docs())
    return rpc_api.derive(named.types, methods_of(named, known), texts)


def asking_api(params: Any, *results: str, known: Facts | None = None, **more: Any) -> RpcApi:
    """The API of a client that sends one request, `ask`."""
    known = known or facts_of(client={"ask": results or ("AskResult",)})
    return derive_api(
        known,
        AskRequest=obj("method params", method=const("ask"), params=params),
        AskResult=obj("answer", answer=TEXT),
        ClientRequest=any_of("AskRequest"),
        **more,
    )


def only(api: RpcApi) -> Call:
    """The one request of a client."""
    (call,) = api.client.requests
    return call


def many(name: str) -> dict[str, Any]:
    """An array of a definition."""
    return {"type": "array", "items": ref(name)}


def show_parameters(call: Call) -> list[tuple[str, str, bool]]:
    return [(argument.name, argument.type, argument.required) for argument in call.arguments]


def test_params_become_arguments_those_that_must_be_given_first() -> None:
    params = obj("mimeType", _meta=OPEN, count=COUNT, mimeType=TEXT, args=OPEN)
    call = only(asking_api(params))
    assert show_parameters(call) == [
        ("mime_type", "str", True),
        ("count", "int", False),
        ("args", "Mapping[str, Any]", False),
    ]
    assert (call.params, call.answer) == ("models.AskRequestParams", "models.AskResult")


def test_an_argument_for_which_null_is_a_value_says_so() -> None:
    kinds: dict[str, Any] = {
        "text": TEXT,
        "anything": {},
        "named": ref("Anything"),
        "maybe": {"type": ["string", "null"]},
        "one": {"enum": ["a", None]},
        "either": any_of("Text", "Nothing"),
    }
    call = only(
        asking_api(
            obj(**kinds),
            Anything=any_of("Text", "Anything"),
            Text=TEXT,
            Nothing={"type": "null"},
        )
    )
    nullable = {argument.name: argument.nullable for argument in call.arguments}
    assert nullable == {**dict.fromkeys(kinds, True), "text": False}


def test_a_list_takes_what_holds_for_all_of_its_pages() -> None:
    api = derive_api(
        ListRequest=obj("method", method=const("list"), params=obj(cursor=TEXT, kind=TEXT)),
        ListResult=obj(nextCursor=TEXT, items={"type": "array", "items": obj(x=TEXT)}),
        ClientRequest=any_of("ListRequest"),
    )
    assert only(api).item == "models.ListResultItems"
    assert [argument.name for argument in only(api).filters] == ["kind"]


def test_an_object_may_be_passed_as_a_wire_object_only() -> None:
    params = obj("a b c d", a=ref("A"), b=ref("Either"), c=many("A"), d=ref("Word"))
    parts: dict[str, Any] = {"A": obj("a", a=TEXT), "B": obj("b", b=TEXT)}
    word = {"enum": ["x", "y"]}
    call = only(asking_api(params, **parts, Either=any_of("A", "B"), Word=word))
    assert show_parameters(call) == [
        ("a", "models.A | Mapping[str, Any]", True),
        ("b", "models.Either | Mapping[str, Any]", True),
        ("c", "Sequence[models.A | Mapping[str, Any]]", True),
        ("d", "models.Word", True),
    ]
    assert call.return_type == "models.AskResult | Mapping[str, Any]"


def test_a_handler_gets_none_where_params_may_be_absent() -> None:
    api = derive_api(
        PingRequest=obj("method", method=const("ping"), params=obj(x=TEXT)),
        PingResult=obj(x=TEXT),
        StopNotification=obj("method", method=const("stop")),
        ClientRequest=any_of("PingRequest"),
        ClientNotification=any_of("StopNotification"),
    )
    assert only(api).params == "models.PingRequestParams | None"
    assert api.client.notifications[0].params == "None"


def test_a_client_has_handlers_for_what_is_asked_inside_results() -> None:
    api = derive_api(
        ElicitRequest=obj("method", method=const("elicit")),
        ElicitResult=obj(x=TEXT),
        InputRequest=any_of("ElicitRequest"),
    )
    assert [call.python_name for call in api.handled.requests] == ["elicit"]
    assert api.server.requests == ()


def test_a_client_of_revisions_accepts_what_any_of_them_does() -> None:
    old = asking_api(obj("a b", a=TEXT, b=TEXT))
    new = asking_api(obj("a b c", a=COUNT, b=TEXT, c=TEXT))
    call = only(rpc_api.merge({"1": old, "2": new}))
    assert show_parameters(call) == [
        ("a", "int | str", True),
        ("b", "str", True),
        ("c", "str", False),
    ]


def test_arguments_keep_their_names_whatever_a_coroutine_needs() -> None:
    names = ["timeout", "timeout_", "self", "result", "in_thread", "fields", "value"]
    properties: dict[str, Any] = dict.fromkeys(names, TEXT)
    call = only(asking_api(obj(**properties)))
    by_field = {argument.field: argument.name for argument in call.arguments}
    assert len({*by_field.values()}) == len(names)
    assert by_field["value"] == "value"
    assert not {*by_field.values()} & {"timeout", "self", "result", "in_thread", "fields"}


TASKS: dict[str, Any] = {
    "known": facts_of(client={"ask": ("AskResult", "TaskResult")}),
    "TaskResult": obj("task", task=TEXT),
}
MORE: dict[str, Any] = {
    "known": facts_of(
        client={"ask": ("AskResult", "MoreResult")}, defaults={"MoreResult": {"type": "more"}}
    ),
    "MoreResult": obj("type", type=TEXT, inputRequests=OPEN),
}


@pytest.mark.parametrize(
    ("members", "more", "other"),
    [
        pytest.param({"task": OPEN}, TASKS, "TaskResult", id="tasks"),
        pytest.param(
            {"inputResponses": OPEN, "requestState": TEXT}, MORE, "MoreResult", id="more input"
        ),
    ],
)
def test_members_that_the_client_handles_are_not_in_the_api(
    members: dict[str, Any], more: dict[str, Any], other: str
) -> None:
    call = only(asking_api(obj("x", x=TEXT, **members), **more))
    assert show_parameters(call) == [("x", "str", True)]
    assert call.answer == "models.AskResult"
    assert call.result == f"models.AskResult | models.{other}"


def test_a_client_of_revisions_names_those_with_a_message() -> None:
    tasks = asking_api(obj("x", x=TEXT, task=OPEN), **TASKS)
    assert "Only in 1." in only(rpc_api.merge({"1": tasks, "2": derive_api()})).doc
    call = only(rpc_api.merge({"1": tasks, "2": asking_api(obj("x", x=TEXT))}))
    assert "Only in" not in call.doc
    assert call.result == "models.AskResult | models.TaskResult"


def test_params_of_several_kinds_stay_whole_in_all_revisions() -> None:
    whole = asking_api(any_of("A", "B"), A=obj("a", a=TEXT), B=obj("b", b=TEXT))
    merged = rpc_api.merge({"1": asking_api(obj("x", x=TEXT)), "2": whole})
    for api in (whole, merged):
        call = only(api)
        assert (call.whole, call.by_page, len(call.arguments)) == (True, True, 1)
    assert show_parameters(only(whole)) == [
        ("params", "models.AskRequestParams | Mapping[str, Any]", True)
    ]


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        pytest.param(
            imports.of_session(Messages((), ())), {"stubs": "SessionBase"}, id="a session"
        ),
        pytest.param(
            imports.of_connect(Messages((), ()), Messages((), ())),
            {"abc": "Mapping", "typing": "TYPE_CHECKING, Any, ClassVar, Literal, overload"},
            id="a function that opens sessions",
        ),
        pytest.param(imports.of_client_sync(Messages((), ())), {"abc": ""}, id="a blocking client"),
    ],
)
def test_a_module_without_messages_imports_little(
    imported: imports.Imports, expected: dict[str, str]
) -> None:
    assert asdict(imported) | expected == asdict(imported)
    assert (imported.models, imported.errors, imported.pending_requests) == ("", "", "")


def test_a_module_imports_what_its_messages_use() -> None:
    params = obj("tool", tool=ref("Tool"), kind={"enum": ["a"]}, many=many("Tool"), maybe={})
    api = asking_api(params, Tool=obj("a", a=TEXT))
    client = imports.of_client(api.client, api.handled)
    assert (client.abc, client.models) == ("Mapping, Sequence", "models")
    assert client.typing == "TYPE_CHECKING, Any, ClassVar, Literal"
    assert (client.stubs, client.pending_requests) == ("HandlersBase", "OnProgress")
    assert client.wire == "UNSET, UnsetType"
    handlers = imports.of_handlers_and_session(api.client, api.server)
    assert handlers.errors == "MethodNotFoundError"
    assert handlers.request_context == "RequestContext"
    blocking = imports.of_connect_sync([api.client], api.server)
    assert "overload" in blocking.typing
    notifying = derive_api(
        StopNotification=obj("method", method=const("stop")),
        ClientNotification=any_of("StopNotification"),
    )
    told = imports.of_client(notifying.client, notifying.handled)
    assert told.pending_requests == ""
