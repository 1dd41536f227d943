"""Imports of the rendered modules with stubs: exactly the names that each module uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from mcpgen.model.exports import RenamedExport
from mcpgen.model.merging import Merged
from mcpgen.model.rpc_api import Call, Messages
from mcpgen.model.type_hints import names_in

NO_MESSAGES = Messages((), ())


@dataclass(frozen=True)
class Imports:
    """Names to import by module, comma-separated; empty if a module is not needed.

    Attributes:
        abc: Of `collections.abc`.
        typing: Of `typing`.
        stubs: Of `runtime.stubs`.
        wire: Of `_wire`.
        errors: Of `errors`.
        request_context: Of `runtime.request_context`, for type checkers.
        pending_requests: Of `runtime.pending_requests`, for type checkers.
        models: The module `models`, for type checkers.
        core: The models of the revision, for type checkers of an extension.
    """

    abc: str
    typing: str
    stubs: str
    wire: str
    errors: str
    request_context: str
    pending_requests: str
    models: str
    core: str = ""


def of_client(sent: Messages, handled: Messages) -> Imports:
    """Imports of a client class and its handlers."""
    return _imports(_client(sent, handled))


def of_connect(sent: Messages, handled: Messages) -> Imports:
    """Imports of the module with a client class, its handlers and `connect`."""
    used = {"Literal", "Mapping", "Any", "overload", *_client(sent, handled)}
    return _imports(used)


def of_connect_alone(more: bool) -> Imports:
    """Imports of the module of `connect` if the client class has its own module.

    Args:
        more: Whether `connect` can open several servers.
    """
    used = {"Literal", "Mapping", "Any", "overload"}
    return _imports(used | {"TYPE_CHECKING"} if more else used)


def of_client_sync(sent: Messages) -> Imports:
    """Imports of a blocking client class."""
    used = {"Any", *_names_of_calls(sent)}
    return _imports(used | {"Mapping", "OnProgress"} if sent.requests else used)


def of_connect_sync(sent: Sequence[Messages], handled: Messages) -> Imports:
    """Imports of the stub of the module that has `connect_sync`.

    Args:
        sent: The messages of each client class in it.
        handled: The messages that handlers may handle.
    """
    used = {"Any", "Awaitable", "HandlersBase", "Literal", "overload"}
    used.update(_names_of_handlers(handled))
    for each in sent:
        used.update(_names_of_calls(each))
        if each.requests:
            used |= {"Mapping", "OnProgress"}
    return _imports(used - {"MethodNotFoundError"})


def of_group(sent: Messages) -> Imports:
    """Imports of the class of a client of several servers, and of the blocking one."""
    used = {"TYPE_CHECKING", *_names_of_calls(sent)}
    return _imports(used | {"Mapping", "OnProgress"} if sent.requests else used)


def of_handlers_and_session(handled: Messages, sent: Messages) -> Imports:
    """Imports of a server's handlers and its session class."""
    used = {"ClassVar", "HandlersBase", *_names_of_calls(sent), *_names_of_handlers(handled)}
    return _imports(used | {"SessionBase", "TYPE_CHECKING"})


def of_session(sent: Messages) -> Imports:
    """Imports of a server's session class."""
    used = {"SessionBase", *_names_of_calls(sent)}
    return _imports(used | {"TYPE_CHECKING"} if "models" in used else used)


def of_installed_server(sent: Messages, others: Set[str]) -> Imports:
    """Imports of the server's module in a package on an installed runtime.

    Args:
        sent: The messages of the session class in it.
        others: Names of `typing` that it uses besides.
    """
    used = (
        {"SessionBase", *_names_of_calls(sent)}
        if sent.requests or sent.notifications
        else set[str]()
    )
    return _imports(used | {"Any", "Mapping", "TYPE_CHECKING"} | others)


def of_merged(merged: Merged, deprecated: Sequence[RenamedExport] = ()) -> Imports:
    """Imports of the module of the merged types, with those for old names."""
    types = [alias.type for alias in merged.aliases]
    types += [member.type for each in merged.classes for member in each.members]
    used = {name for kind in types for name in names_in(kind)}
    if merged.classes:
        used.add("ClassVar")
    if "UnsetType" in used:
        used.add("UNSET")
    if any(each.has_value for each in merged.classes):
        used.add("Any")
    if deprecated:
        used |= {"TYPE_CHECKING", "Any"}
    return _imports({"TypeAlias", *used} if merged.aliases or deprecated else used)


def _client(sent: Messages, handled: Messages) -> set[str]:
    used = {
        "ClassVar",
        "HandlersBase",
        "TYPE_CHECKING",
        *_names_of_calls(sent),
        *_names_of_handlers(handled),
    }
    if sent.requests:
        used |= {"Mapping", "OnProgress"}
    return used


def _imports(used: set[str]) -> Imports:
    def pick(*names: str) -> str:
        return ", ".join(name for name in names if name in used)

    return Imports(
        abc=pick("Awaitable", "Mapping", "Sequence"),
        typing=pick("TYPE_CHECKING", "Any", "ClassVar", "Literal", "Self", "TypeAlias", "overload"),
        stubs=pick("HandlersBase", "SessionBase", "Value"),
        wire=pick("UNSET", "UnsetType"),
        errors=pick("MethodNotFoundError"),
        request_context=pick("RequestContext"),
        pending_requests=pick("OnProgress"),
        models=pick("models"),
        core=pick("core"),
    )


def _names_of_calls(messages: Messages) -> Iterator[str]:
    if messages.requests:
        yield "Any"
    for call in (*messages.requests, *messages.notifications):
        for argument in call.arguments:
            yield from names_in(argument.type)
            if argument.nullable and not argument.required:
                yield from ("UNSET", "UnsetType")
        yield from names_in(call.answer)
        if call.values:
            yield from ("overload", "Value")


def _names_of_handlers(messages: Messages) -> Iterator[str]:
    if messages.requests:
        yield "MethodNotFoundError"
    calls: tuple[Call, ...] = (*messages.requests, *messages.notifications)
    for call in calls:
        yield "RequestContext"
        yield from names_in(f"{call.params} {call.return_type}")
