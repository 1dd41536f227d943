"""Middleware: functions of the official SDK 2, of a message and what passes it on; request logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mcpgen.port.call_arguments import is_name, keyword_argument, keyword_of
from mcpgen.port.sdk_members import sdk_members
from mcpgen.port.servers import annotated_class, sdk_name

MIDDLEWARE = (
    "collections.abc.Callable[[MiddlewareRequest, Next], collections.abc.Awaitable[object]]"
)
"""The type of middleware here."""


@dataclass(frozen=True)
class MiddlewareParameters:
    """The parameters of middleware.

    Attributes:
        message: The name of the message.
        next: The name of the function that passes it on.
    """

    message: str
    next: str

    def is_passed_on(self, call: cst.Call) -> bool:
        """Whether a call passes the message on, unchanged."""
        if len(call.args) != 1 or call.args[0].keyword is not None:
            return False
        return is_name(call.func, self.next) and is_name(call.args[0].value, self.message)


def is_message(visitor: cst.MetadataDependent, annotation: cst.BaseExpression) -> bool:
    """Whether an annotation is the class of messages in middleware."""
    return _class(visitor, annotation) == "ServerRequestContext"


def middleware_parameters(
    visitor: cst.MetadataDependent, function: cst.FunctionDef
) -> MiddlewareParameters | None:
    """The parameters of a function that is middleware; `None` for another function."""
    names = {
        _class(visitor, each.annotation.annotation): each.name.value
        for each in function.params.params
        if each.annotation is not None
    }
    if not names.keys() >= {"ServerRequestContext", "CallNext"}:
        return None
    return MiddlewareParameters(names["ServerRequestContext"], names["CallNext"])


def _class(visitor: cst.MetadataDependent, annotation: cst.BaseExpression) -> str:
    """The last part of the name of a class of another SDK; empty for another class."""
    return (sdk_name(visitor, annotated_class(annotation)) or "").rpartition(".")[2]


def log_arguments(call: cst.Call) -> list[cst.Arg]:
    """The arguments of `log_requests` for those of middleware that logs, with the others kept."""
    options = sdk_members().log_options
    return [
        keyword_argument(options[keyword], each.value) if keyword in options else each
        for each, keyword in _given(call)
    ]


def other_log_arguments(call: cst.Call) -> list[tuple[cst.Arg, str]]:
    """The arguments of middleware that logs, with their keywords, that `log_requests` lacks."""
    options = sdk_members().log_options
    return [(each, keyword) for each, keyword in _given(call) if keyword not in options]


def _given(call: cst.Call) -> Iterator[tuple[cst.Arg, str]]:
    """The arguments that say more than their absence, each with its keyword; empty for stars."""
    order = tuple(sdk_members().log_options)
    for index, each in enumerate(call.args):
        if each.star:
            yield each, ""
        elif not (is_name(each.value, "None") or is_name(each.value, "False")):
            yield each, keyword_of(each) or (order[index] if index < len(order) else "")
