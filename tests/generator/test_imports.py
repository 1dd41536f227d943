"""Imports of the rendered modules with stubs: all names that are used, and no others."""

from __future__ import annotations

from mcpgen.model import imports
from mcpgen.model.imports import Imports
from mcpgen.model.rpc_api import Argument, Call, Messages

EMPTY = Messages((), ())


def call(*arguments: Argument, result: str = "models.AskResult") -> Call:
    return Call(
        name="ask",
        python_name="ask",
        doc="",
        page_doc="",
        handler_doc="",
        params="models.AskParams",
        arguments=arguments,
        whole=False,
        result=result,
        answer=result,
        item=None,
        summary="",
        source="",
        values=(),
    )


def test_a_session_that_says_nothing_imports_only_its_base() -> None:
    assert imports.of_session(EMPTY) == Imports("", "", "SessionBase", "", "", "", "", "")


def test_names_come_in_the_order_of_import_sorters() -> None:
    optional = Argument(
        "kind", "kind", "Literal['a'] | Sequence[Mapping[str, Any]]", False, True, ""
    )
    names = imports.of_session(Messages((call(optional),), ()))
    assert names.abc == "Mapping, Sequence"
    assert names.typing == "TYPE_CHECKING, Any, Literal"
    assert names.wire == "UNSET, UnsetType"
    assert names.models == "models"


def test_handlers_need_what_they_refuse_with() -> None:
    requests = imports.of_handlers_and_session(Messages((call(),), ()), EMPTY)
    assert (requests.errors, requests.request_context) == ("MethodNotFoundError", "RequestContext")
    notifications = imports.of_handlers_and_session(Messages((), (call(),)), EMPTY)
    assert (notifications.errors, notifications.request_context) == ("", "RequestContext")


def test_a_client_that_only_notifies_waits_for_nothing() -> None:
    names = imports.of_client(Messages((), (call(),)), EMPTY)
    assert (names.stubs, names.pending_requests) == ("HandlersBase", "")


def test_opening_sessions_takes_a_little_more() -> None:
    names = imports.of_connect(EMPTY, EMPTY)
    assert names.abc == "Mapping"
    assert names.typing == "TYPE_CHECKING, Any, ClassVar, Literal, overload"


def test_blocking_session_openers_import_what_their_methods_name() -> None:
    names = imports.of_connect_sync([Messages((call(),), (call(),))], Messages((call(),), ()))
    assert names.abc == "Awaitable, Mapping"
    assert names.typing == "Any, Literal, overload"
    assert (names.stubs, names.wire) == ("HandlersBase", "")
    assert (names.request_context, names.pending_requests) == ("RequestContext", "OnProgress")


def test_a_blocking_client_of_one_revision_has_no_handlers() -> None:
    names = imports.of_client_sync(Messages((call(),), (call(),)))
    assert (names.abc, names.typing) == ("Mapping", "Any")
    assert (names.stubs, names.errors, names.request_context) == ("", "", "")
    assert names.pending_requests == "OnProgress"
    assert imports.of_client_sync(EMPTY).abc == ""
