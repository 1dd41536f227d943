"""Middleware of the official SDK 2: functions of a message and of what passes it on."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from mcpgen.port.servers import annotated_class, sdk_name


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
        match call:
            case cst.Call(
                func=cst.Name(value=self.next),
                args=[cst.Arg(value=cst.Name(value=self.message), keyword=None)],
            ):
                return True
            case _:
                return False


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
