"""What a client is asked, and what its handlers answer, held against the rules of both.

A server may only ask for what the client declared, and an answer may only be what was asked for.
That holds whether the question came as a request or in a result.

Source: client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

import msgspec

from .._wire import convert, error_text, is_many, is_object, to_builtins
from ..errors import INVALID_PARAMS, LocalProtocolError, RemoteProtocolError
from ..facts import Method
from ..protocol import elicitation_schema, sampling_messages
from ..protocol.capabilities import missing
from ..protocol.lenient import recast
from ..protocol.uris import root_complaint, url_complaint
from ..runtime.request_context import RequestContext

Handler: TypeAlias = Callable[[Any, RequestContext], Awaitable[Any]]

ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
COMPLETE = "notifications/elicitation/complete"

ID_CHARACTERS = 1000
"""Longest id of an elicitation that is remembered."""

_REMEMBERED = 1000


class Elicitations:
    """The URL mode elicitations that a client heard of and that are not completed yet.

    Of more than a thousand, the oldest are forgotten. One whose id is very long is never known.

    Source: client/elicitation#completion-notifications-for-url-mode-elicitation (2025-11-25).
    """

    def __init__(self) -> None:
        self._open: dict[str, None] = {}

    def begun(self, identifier: Any) -> None:
        """Take note of one."""
        if isinstance(identifier, str) and len(identifier) <= ID_CHARACTERS:
            self._open[identifier] = None
            if len(self._open) > _REMEMBERED:
                del self._open[next(iter(self._open))]

    def required(self, data: Any) -> None:
        """Take note of those that a request was refused for, as the error lists them."""
        if is_object(data):
            listed: object = data.get("elicitations")
            for each in listed if is_many(listed) else ():
                self.begun(each.get("elicitationId") if is_object(each) else None)

    def completed(self, identifier: Any) -> bool:
        """Whether one was under way that now is over."""
        return self._open.pop(identifier, False) is None


async def answer(
    handler: Handler,
    context: RequestContext,
    own: Mapping[str, Any],
    elicitations: Elicitations,
    schemes: Collection[str],
) -> Any:
    """Have a handler answer what the server asks.

    Args:
        handler: The user's.
        context: What is asked.
        own: What the client declared.
        elicitations: Where URL mode elicitations are noted.
        schemes: Schemes of the addresses that the user may be asked to open.

    Returns:
        What the handler gave, without what is not to be sent.

    Raises:
        RemoteProtocolError: The server must not ask this (-32602).
        LocalProtocolError: The handler's answer breaks a rule.
    """
    method = context.method
    checks = _CHECKS.get(method.name)
    if checks is None:
        return await handler(context.params, context)
    asked: Any = to_builtins(context.params) if context.params is not None else {}
    path = missing(method, asked, own)
    wrong = f"this client did not declare {'.'.join(path)}" if path else checks[0](asked)
    if method.name == ELICITATION and "url" in asked and not wrong:
        wrong = url_complaint(asked["url"], schemes)
        wrong = f"url: {wrong}" if wrong else None
    if wrong:
        raise RemoteProtocolError(f"{method.name}: {wrong}", code=INVALID_PARAMS)
    elicitations.begun(asked.get("elicitationId"))
    given = _typed(method, await handler(_whole(method, context.params, asked), context))
    told: Mapping[str, Any] = to_builtins(given)
    wrong = checks[1](asked, told)
    if wrong:
        raise LocalProtocolError(f"{method.name}: {wrong}")
    return _without_content(given) if _is_without_form(asked, told) else given


def _typed(method: Method, given: Any) -> Any:
    """An answer in the revision's own type."""
    try:
        return recast(given, method.result)
    except msgspec.ValidationError as error:
        raise LocalProtocolError(f"{method.name}: answer: {error_text(error)}") from None


def _whole(method: Method, params: Any, asked: Mapping[str, Any]) -> Any:
    """Typed params with what it means that they leave something out."""
    if method.name != SAMPLING or "tools" not in method.wire_names.values():
        return params
    whole = {"includeContext": "none", **asked}
    if "tools" in asked:
        whole["toolChoice"] = {"mode": "auto", **asked.get("toolChoice", {})}
    return convert(whole, method.params)


def _form(asked: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """What is wrong with the answer to an elicitation."""
    if told.get("action") != "accept" or "requestedSchema" not in asked:
        return None
    wrong = elicitation_schema.complaint(asked["requestedSchema"], told.get("content", {}))
    return f"content: {wrong}" if wrong else None


def _is_without_form(asked: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether an answer has content that is not to be sent: nobody agreed to a form."""
    return (
        "content" in told
        and "action" in told
        and (told["action"] != "accept" or "requestedSchema" not in asked)
    )


def _without_content(given: Any) -> Any:
    return msgspec.structs.replace(given, content=None)


def _conversation(asked: Mapping[str, Any]) -> str | None:
    return sampling_messages.complaint(asked["messages"])


def _message(asked: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """What is wrong with the answer of a model."""
    return sampling_messages.speaker_complaint(told) if "content" in told else None


def _roots(asked: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """What is wrong with a list of roots."""
    for at, root in enumerate(told["roots"]):
        if wrong := root_complaint(root["uri"]):
            return f"roots[{at}].uri: {wrong}"
    return None


def _nothing(asked: Mapping[str, Any]) -> str | None:
    return None


_CHECKS: Mapping[
    str,
    tuple[
        Callable[[Mapping[str, Any]], str | None],
        Callable[[Mapping[str, Any], Mapping[str, Any]], str | None],
    ],
] = {
    ELICITATION: (_nothing, _form),
    SAMPLING: (_conversation, _message),
    ROOTS: (_nothing, _roots),
}
"""By method: what is wrong with a question, and with its answer."""
