"""What the module of a face imports: no name that it does not use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcpgen.merging import Merged
from mcpgen.rpc_api import Call, Face
from mcpgen.type_hints import names_in


@dataclass(frozen=True)
class Imports:
    """Names to import, by the module they come from, ready to be written after `import`.

    Attributes:
        abc: Of `collections.abc`; may be empty, like all of these.
        typing: Of `typing`.
        faces: Of `_faces`.
        wire: Of `_wire`.
        errors: Of `errors`.
        exchange: Of `exchange`, for type checkers.
        waiting: Of `waiting`, for type checkers.
        models: The module `models`, for type checkers.
    """

    abc: str
    typing: str
    faces: str
    wire: str
    errors: str
    exchange: str
    waiting: str
    models: str


def of_client(sent: Face, handled: Face) -> Imports:
    """For a module with a client's calls and handlers."""
    return _imports(_client(sent, handled))


def of_connect(sent: Face, handled: Face) -> Imports:
    """For a module that opens sessions beside."""
    return _imports({"Literal", "Mapping", "Any", "overload", *_client(sent, handled)})


def of_client_sync(sent: Face) -> Imports:
    """For a module with a client's calls for code without an event loop."""
    used = {"Any", "TYPE_CHECKING", *_called(sent)}
    return _imports(used | {"Mapping", "OnProgress"} if sent.requests else used)


def of_connect_sync(sent: Face, handled: Face) -> Imports:
    """For a module that opens sessions for code without an event loop."""
    used = {"Any", "Awaitable", "Literal", "Mapping", "overload", *_client(sent, handled)}
    return _imports(used - {"to_builtins", "wire_params"})


def of_handlers_and_session(handled: Face, sent: Face) -> Imports:
    """For a module with a server's handlers and what it may say by itself."""
    used = {"ClassVar", "HandlersBase", *_called(sent), *_handled(handled)}
    return _imports(used | {"SessionBase", "TYPE_CHECKING"})


def of_session(sent: Face) -> Imports:
    """For a module with what a server may say by itself."""
    used = {"SessionBase", *_called(sent)}
    return _imports(used | {"TYPE_CHECKING"} if "models" in used else used)


def of_merged(merged: Merged) -> Imports:
    """For the module of the merged types."""
    types = [alias.type for alias in merged.aliases]
    types += [member.type for each in merged.classes for member in each.members]
    used = {name for kind in types for name in names_in(kind)}
    if any(each.other_names for each in merged.classes):
        used.add("ClassVar")
    if "UnsetType" in used:
        used.add("UNSET")
    return _imports({"TypeAlias", *used} if merged.aliases else used)


def _client(sent: Face, handled: Face) -> set[str]:
    used = {"ClassVar", "HandlersBase", "TYPE_CHECKING", *_called(sent), *_handled(handled)}
    if sent.requests:
        used |= {"Mapping", "OnProgress"}
    if sent.notifications:
        used.add("wire_params")
    if any(call.whole for call in sent.requests):
        used.add("to_builtins")
    return used


def _imports(used: set[str]) -> Imports:
    def those(*names: str) -> str:
        return ", ".join(name for name in names if name in used)

    return Imports(
        abc=those("Awaitable", "Mapping", "Sequence"),
        typing=those("TYPE_CHECKING", "Any", "ClassVar", "Literal", "TypeAlias", "overload"),
        faces=those("HandlersBase", "SessionBase", "wire_params"),
        wire=those("UNSET", "UnsetType", "to_builtins"),
        errors=those("MethodNotFoundError"),
        exchange=those("RequestContext"),
        waiting=those("OnProgress"),
        models=those("models"),
    )


def _called(face: Face) -> Iterator[str]:
    for call in (*face.requests, *face.notifications):
        yield "Any"
        for argument in call.arguments:
            yield from names_in(argument.type)
            if argument.nullable and not argument.required:
                yield from ("UNSET", "UnsetType")
        yield from names_in(call.answer)


def _handled(face: Face) -> Iterator[str]:
    if face.requests:
        yield "MethodNotFoundError"
    calls: tuple[Call, ...] = (*face.requests, *face.notifications)
    for call in calls:
        yield "RequestContext"
        yield from names_in(f"{call.params} {call.returned}")
