"""Asking the client's user: by a form that is described by a type, or by a page to go to.

Source: client/elicitation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from ...._wire import UNSET, convert, error_text, is_object
from ....errors import INVALID_PARAMS, LocalProtocolError, RemoteProtocolError
from ....facts import Method, Revision
from ....foreign_text import safe_repr
from ....protocol import elicitation_schema
from ....protocol.uris import LOOPBACK, WEB_SCHEMES, url_complaint
from ....runtime.request_context import RequestContext
from .. import revision_types
from . import form_fields
from .form_fields import FormField
from .input_required import InputRequired
from .multi_round_trip import MultiRoundTrip, Question, askable
from .url_elicitation import Elicitations, URLElicitationRequiredError

METHOD = "elicitation/create"
_WORD = "elicitation"

Content = TypeVar("Content")
_logger = logging.getLogger(__name__)


class Accepted(msgspec.Struct, Generic[Content], frozen=True):
    """The user agreed.

    Attributes:
        content: What was filled in; `None` where there was no form. To have agreed to open a page
            is not to have done there what it is for.
    """

    content: Content
    action: Literal["accept"] = "accept"


class Declined(msgspec.Struct, frozen=True):
    """The user refused."""

    action: Literal["decline"] = "decline"
    content: None = None


class Cancelled(msgspec.Struct, frozen=True):
    """The user neither agreed nor refused, but closed the question."""

    action: Literal["cancel"] = "cancel"
    content: None = None


Answer: TypeAlias = Accepted[Content] | Declined | Cancelled
"""What became of an elicitation; `action` tells which."""


class Form:
    """What a person is to fill in.

    Args:
        kind: A dataclass, TypedDict or Struct; or the flat JSON Schema itself.

    Raises:
        TypeError: It is none of these, or has a field that no form can have.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._schema: Mapping[str, Any] | None = None
        self._fields: Sequence[FormField] = ()
        self._shapes: dict[str, Mapping[str, Any]] = {}
        if is_object(kind):
            self._schema = dict(kind)
        else:
            self._fields = form_fields.fields_of(kind)

    def schema(self, row: Method, revision: Revision) -> Mapping[str, Any]:
        """The form in the shape of a revision.

        Args:
            row: The elicitation request of that revision.

        Raises:
            LocalProtocolError: The revision has no such form.
        """
        known = self._shapes.get(revision.name)
        if known is not None:
            return known
        made = self._schema or _object(
            {field.name: _fitted(field, row, revision) for field in self._fields}, self._fields
        )
        wrong = revision_types.refusal(made, _form_type(row)) or elicitation_schema.form_complaint(
            made
        )
        if wrong:
            raise LocalProtocolError(f"{METHOD}: no form in {revision.name}: {wrong}")
        self._shapes[revision.name] = made
        return made

    def content(self, wire: Mapping[str, Any]) -> Any:
        """What was filled in, as an instance of the type.

        Raises:
            RemoteProtocolError: It does not fit the form.
        """
        full = self._schema or _object({f.name: f.wires[0] for f in self._fields}, self._fields)
        wrong = elicitation_schema.complaint(full, wire)
        if wrong is None and self._schema is not None:
            return dict(wire)
        if wrong is None:
            try:
                return convert(self._filled(wire), self._kind)
            except msgspec.ValidationError as error:
                wrong = error_text(error)
        raise RemoteProtocolError(f"{METHOD}: content: {wrong}", code=INVALID_PARAMS)

    def _filled(self, wire: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the fields that there are, integers written as such."""
        made: dict[str, Any] = {}
        for field in self._fields:
            value = wire.get(field.name, None if field.fills_none else UNSET)
            if field.wires[0]["type"] == "integer" and isinstance(value, float):
                value = int(value)
            if value is not UNSET:
                made[field.name] = value
        return made


@lru_cache(maxsize=256)
def _form_of(kind: Any) -> Form:
    return Form(kind)


def form_of(kind: Any) -> Form:
    """The form of a type or schema; see `Form`."""
    return Form(kind) if is_object(kind) or kind.__hash__ is None else _form_of(kind)


def form_question(message: str, form: Form, exchange: RequestContext) -> Question:
    """The question that a form asks, in the shape of the request's revision.

    Raises:
        MissingCapabilityError: The client did not declare that it shows forms.
        LocalProtocolError: The revision has no such form.
    """
    row = askable(exchange, METHOD, _WORD, {})
    schema = form.schema(row, exchange.revision)
    return Question(METHOD, {"message": message, "requestedSchema": schema}, _WORD)


def url_question(
    message: str,
    url: str,
    identifier: str | None,
    exchange: RequestContext,
    elicitations: Elicitations,
    schemes: Collection[str] = WEB_SCHEMES,
) -> Question:
    """The question whether the user goes to a page, in the shape of the request's revision.

    Args:
        message: Why.
        url: The page.
        identifier: The elicitation's id, for revisions that have one; `None` for a fresh one.
        exchange: The request.
        elicitations: Where the id is kept.
        schemes: The schemes that the address may have.

    Raises:
        MissingCapabilityError: The client did not declare that it opens pages.
        ValueError: Not a URL of such a scheme, or the id is that of another elicitation.
    """
    params = _page(message, url, schemes)
    row = askable(exchange, METHOD, _WORD, params)
    if _has_ids(row):
        params["elicitationId"] = elicitations.begin(exchange, url, identifier)
    return Question(METHOD, params, _WORD)


def required(
    error: URLElicitationRequiredError,
    exchange: RequestContext,
    dialogue: MultiRoundTrip,
    elicitations: Elicitations,
) -> dict[str, Any]:
    """What answers a request that needs its user to go to web pages first, as wire object.

    Args:
        error: The pages.
        exchange: The request.
        dialogue: What its client was told and asked so far.
        elicitations: Where ids are kept.

    Raises:
        URLElicitationRequiredError: That is the answer, where the revision has it.
        MissingCapabilityError: The client did not declare that it opens pages.
        ValueError: Not a URL, or the id is that of another elicitation.
    """
    askable(exchange, METHOD, _WORD, {"mode": "url"})
    if exchange.revision.facts.errors.url_elicitation_required is not None:
        for each in error.elicitations:
            elicitations.begin(exchange, _checked(each.url, each.schemes), each.elicitation_id)
        raise error
    asked = {
        f"{_WORD}-{at}": {"method": METHOD, "params": _page(each.message, each.url, each.schemes)}
        for at, each in enumerate(error.elicitations, 1)
    }
    return dialogue.sealed(InputRequired(asked, dialogue.state))


def answer_of(
    wire: Mapping[str, Any], content: Callable[[Mapping[str, Any]], Content]
) -> Answer[Content]:
    """The answer as a value.

    Args:
        wire: The result of an elicitation as wire object.
        content: Makes the content of what the wire has there.

    Raises:
        RemoteProtocolError: It is no such result, or its content does not fit.
    """
    match wire.get("action"):
        case "accept":
            return Accepted(content(wire.get("content", {})))
        case "decline":
            return Declined()
        case "cancel":
            return Cancelled()
        case _:
            raise RemoteProtocolError(
                f"{METHOD}: expected accept, decline or cancel", code=INVALID_PARAMS
            )


def _page(message: str, url: str, schemes: Collection[str]) -> dict[str, Any]:
    return {"mode": "url", "message": message, "url": _checked(url, schemes)}


def _checked(url: str, schemes: Collection[str]) -> str:
    wrong = url_complaint(url, schemes)
    if wrong is not None:
        raise ValueError(f"url: {wrong} (schemes=)")
    place = urlsplit(url)
    if place.scheme.lower() != "https" and place.hostname not in LOOPBACK:
        _logger.warning(
            "url: expected https, since what users do there matters, got %s", safe_repr(url)
        )
    return url


@cache
def _form_type(row: Method) -> Any:
    return revision_types.field_type(
        revision_types.struct_with(row.params, "requestedSchema"), "requestedSchema"
    )


@cache
def _has_ids(row: Method) -> bool:
    return any(
        revision_types.field_type(each, "elicitationId")
        for each in revision_types.structs_in(row.params)
    )


def _fitted(field: FormField, row: Method, revision: Revision) -> Mapping[str, Any]:
    """The best form of a field that a revision can carry."""
    for wire in field.wires:
        if field.default is not None and _carries({**wire, "default": field.default}, row):
            return {**wire, "default": field.default}
        if _carries(wire, row):
            return wire
    wanted = "choice of several" if field.wires[0]["type"] == "array" else "field"
    raise LocalProtocolError(
        f"{METHOD}: {field.name}: a form in {revision.name} has no such {wanted}"
    )


def _carries(wire: Mapping[str, Any], row: Method) -> bool:
    return revision_types.refusal(_object({"x": wire}, ()), _form_type(row)) is None


def _object(properties: Mapping[str, Any], fields: Sequence[FormField]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    required = [field.name for field in fields if field.required]
    return {**made, "required": required} if required else made
