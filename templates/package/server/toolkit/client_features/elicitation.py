"""Elicitation: forms described by a type, and web pages that the user visits.

A form is a dataclass, TypedDict, Struct or pydantic model with plain fields, a flat JSON Schema, or
the type of a single value, which is a form of one field. A field has one schema, or several
equivalent ones in order of preference: a revision gets the first that it can express. A default is
sent where the revision has a member for it; elsewhere the field is optional, and the type supplies
the default.

Source: client/elicitation.
"""

from __future__ import annotations

import datetime
import enum
import logging
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, inspect

from ...._wire import encode, error_text, is_object, structs_in, to_builtins
from ....errors import (
    INVALID_PARAMS,
    LocalProtocolError,
    MissingCapabilityError,
    RemoteProtocolError,
)
from ....facts import Method, Revision
from ....foreign_text import LOOPBACK, WEB_SCHEMES, safe_repr, safe_text, url_complaint
from ....protocol.client_features import FORMATS, content_complaint, field_complaint
from ....runtime.request_context import RequestContext
from ....values import value_types
from ....values.value_types import is_pydantic_class
from ..content import field_type, present_members, struct_with
from .input_required import InputRequired, OpenURLElicitations, URLElicitationRequiredError
from .multi_round_trip import MultiRoundTrip, Question, askable_method, mismatch

METHOD = "elicitation/create"
_CAPABILITY = "elicitation"
_TITLES = "titles"
_VALUE = "value"
_VALUE_TYPES = (str, int, float, bool, datetime.date, datetime.datetime)
_NOTES = frozenset({"title", "description", "format", "minLength", "maxLength"})
_RULES = frozenset({"pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "examples"})
"""Keywords that a form lacks: its description states them, and the type checks the answer."""

FormContent = TypeVar("FormContent")
FieldSchema: TypeAlias = dict[str, Any]
_logger = logging.getLogger(__name__)


class Accepted(msgspec.Struct, Generic[FormContent], frozen=True):
    """The user accepted.

    Attributes:
        content: Content of the form; `None` for a URL, where accepting means to agree to the visit.
    """

    content: FormContent
    action: Literal["accept"] = "accept"

    @property
    def data(self) -> FormContent:
        """The content, by the name that other SDKs have for it."""
        return self.content


class Declined(msgspec.Struct, frozen=True):
    """The user declined."""

    action: Literal["decline"] = "decline"
    content: None = None


class Cancelled(msgspec.Struct, frozen=True):
    """The user dismissed the question without a choice."""

    action: Literal["cancel"] = "cancel"
    content: None = None


Answer: TypeAlias = Accepted[FormContent] | Declined | Cancelled
"""The outcome of an elicitation, told apart by `action`."""


def titles(by_value: Mapping[str, str] | None = None, /, **by_name: str) -> Meta:
    """Titles for the values of a choice, as an annotation.

        size: Annotated[Literal["s", "m"], titles(s="Small", m="Medium")]

    Args:
        by_value: Title by value, for values that are not identifiers.
        by_name: Title by value.
    """
    return Meta(extra={_TITLES: {**(by_value or {}), **by_name}})


class FormField(msgspec.Struct, frozen=True):
    """One field of a form.

    Attributes:
        name: Its name on the wire.
        schemas: Equivalent schemas without default, best first.
        default: The default as wire value; `None` for no default.
        required: Whether a value has to be given.
        fills_none: Whether an absent value becomes `None`.
    """

    name: str
    schemas: Sequence[FieldSchema]
    default: Any
    required: bool
    fills_none: bool

    def best_schema(self, row: Method, revision: Revision) -> Mapping[str, Any]:
        """The best schema that a revision can express, with the default if possible.

        Raises:
            LocalProtocolError: The revision can express none of the schemas.
        """
        for schema in self.schemas:
            if self.default is not None:
                with_default = {**schema, "default": self.default}
                if _is_expressible(with_default, row):
                    return with_default
            if _is_expressible(schema, row):
                return schema
        kind = "choice of several" if self.schemas[0]["type"] == "array" else "field"
        raise LocalProtocolError(
            f"{METHOD}: {self.name}: a form in {revision.name} has no such {kind}"
        )


class Form:
    """A form for the user.

    Args:
        kind: A dataclass, TypedDict, Struct or pydantic model; the type of a single value, which is
            a form of one field; or a flat JSON Schema.

    Raises:
        TypeError: Another type, or a field has a type that a form can't have.
    """

    def __init__(self, kind: Any) -> None:
        self._is_value = _is_value_type(kind)
        if self._is_value:
            kind = msgspec.defstruct(_VALUE, [(_VALUE, kind)])
        self._kind = kind
        self._schema: Mapping[str, Any] | None = None
        self._fields: Sequence[FormField] = ()
        self._by_revision: dict[str, Mapping[str, Any]] = {}
        if is_object(kind):
            self._schema = dict(kind)
        else:
            self._fields = fields_of(kind)

    def schema(self, row: Method, revision: Revision) -> Mapping[str, Any]:
        """The schema of the form in a revision.

        Args:
            row: The elicitation request of that revision.

        Raises:
            LocalProtocolError: The revision can't express the form.
        """
        known = self._by_revision.get(revision.name)
        if known is not None:
            return known
        schema = self._schema or _object_schema(
            {field.name: field.best_schema(row, revision) for field in self._fields}, self._fields
        )
        error = mismatch(schema, _form_type(row)) or _form_complaint(schema)
        if error:
            raise LocalProtocolError(f"{METHOD}: no form in {revision.name}: {error}")
        self._by_revision[revision.name] = schema
        return schema

    def content(self, wire: Mapping[str, Any]) -> Any:
        """The content of an accepted form, as an instance of the type.

        Raises:
            RemoteProtocolError: The content does not fit the form.
        """
        full = self._schema or _object_schema(
            {field.name: field.schemas[0] for field in self._fields}, self._fields
        )
        error = content_complaint(full, wire)
        if error is None and self._schema is not None:
            return dict(wire)
        if error is None:
            try:
                content = value_types.convert(self._members(wire), self._kind, strict=True)
                return getattr(content, _VALUE) if self._is_value else content
            except msgspec.ValidationError as validation_error:
                error = error_text(validation_error)
        raise RemoteProtocolError(f"{METHOD}: content: {error}", code=INVALID_PARAMS)

    def _members(self, wire: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the fields; whole floats of integer fields become integers."""
        members: dict[str, Any] = {}
        for field in self._fields:
            value = wire.get(field.name, None if field.fills_none else UNSET)
            if field.schemas[0]["type"] == "integer" and isinstance(value, float):
                value = int(value)
            if value is not UNSET:
                members[field.name] = value
        return members


@lru_cache(maxsize=256)
def _cached_form(kind: Any) -> Form:
    return Form(kind)


def form_of(kind: Any) -> Form:
    """The form of a type or schema; see `Form`."""
    return Form(kind) if is_object(kind) or kind.__hash__ is None else _cached_form(kind)


def form_question(message: str, form: Form, request: RequestContext) -> Question:
    """The question that shows a form, for the revision of a request.

    Raises:
        MissingCapabilityError: The client did not declare form elicitation.
        LocalProtocolError: The revision can't express the form.
    """
    row = askable_method(request, METHOD, _CAPABILITY, {})
    schema = form.schema(row, request.revision)
    return Question(METHOD, {"message": message, "requestedSchema": schema}, _CAPABILITY)


def url_question(
    message: str,
    url: str,
    elicitation_id: str | None,
    request: RequestContext,
    url_elicitations: OpenURLElicitations,
    schemes: Collection[str] = WEB_SCHEMES,
) -> Question:
    """The question that sends the user to a web page, for the revision of a request.

    Args:
        message: Why the visit is needed.
        url: URL of the page.
        elicitation_id: Id in revisions that have one; generated if `None`.
        request: The request.
        url_elicitations: Stores the id.
        schemes: Allowed schemes of the URL.

    Raises:
        MissingCapabilityError: The client did not declare URL elicitation.
        ValueError: Not a URL of an allowed scheme, or the id belongs to another elicitation.
    """
    params = _url_params(message, url, schemes)
    row = _url_method(request)
    if _has_ids(row):
        params["elicitationId"] = url_elicitations.begin(request, url, elicitation_id)
    return Question(METHOD, params, _CAPABILITY)


def _url_method(request: RequestContext) -> Method:
    """The row of a URL elicitation in the method table of a request's revision."""
    row = askable_method(request, METHOD, _CAPABILITY, {"mode": "url"})
    if not any(field_type(each, "url") for each in structs_in(row.params)):
        raise MissingCapabilityError((_CAPABILITY, "url"), f"{METHOD} in {request.revision.name}")
    return row


def required_result(
    error: URLElicitationRequiredError,
    request: RequestContext,
    multi_round_trip: MultiRoundTrip,
    url_elicitations: OpenURLElicitations,
) -> dict[str, Any]:
    """The result of a request whose user has to visit web pages first, as wire object.

    Raises:
        URLElicitationRequiredError: The revision has this error, which is the response then.
        MissingCapabilityError: The client did not declare URL elicitation.
        ValueError: Not a URL of an allowed scheme, or an id belongs to another elicitation.
    """
    _url_method(request)
    if request.revision.facts.errors.url_elicitation_required is not None:
        for each in error.elicitations:
            url = _checked_url(each.url, each.schemes)
            url_elicitations.begin(request, url, each.elicitation_id)
        raise error
    input_requests = {
        f"{_CAPABILITY}-{at}": {
            "method": METHOD,
            "params": _url_params(each.message, each.url, each.schemes),
        }
        for at, each in enumerate(error.elicitations, 1)
    }
    return multi_round_trip.explicit_result(InputRequired(input_requests, multi_round_trip.state))


def answer_of(
    wire: Mapping[str, Any], content: Callable[[Mapping[str, Any]], FormContent]
) -> Answer[FormContent]:
    """The answer in the result of an elicitation.

    Args:
        wire: The result as wire object.
        content: Converts the content of an accepted form.

    Raises:
        RemoteProtocolError: The result has an unknown action, or content that does not fit.
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


def _url_params(message: str, url: str, schemes: Collection[str]) -> dict[str, Any]:
    return {"mode": "url", "message": message, "url": _checked_url(url, schemes)}


def _checked_url(url: str, schemes: Collection[str]) -> str:
    error = url_complaint(url, schemes)
    if error is not None:
        raise ValueError(f"url: {error} (schemes=)")
    parts = urlsplit(url)
    if parts.scheme.lower() != "https" and parts.hostname not in LOOPBACK:
        _logger.warning(
            "url: expected https, since what users do there matters, got %s", safe_repr(url)
        )
    return url


@cache
def _form_type(row: Method) -> Any:
    return field_type(struct_with(row.params, "requestedSchema"), "requestedSchema")


@cache
def _has_ids(row: Method) -> bool:
    return any(field_type(each, "elicitationId") for each in structs_in(row.params))


def _is_expressible(schema: Mapping[str, Any], row: Method) -> bool:
    return mismatch(_object_schema({"x": schema}, ()), _form_type(row)) is None


def _object_schema(properties: Mapping[str, Any], fields: Sequence[FormField]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    required = [field.name for field in fields if field.required]
    return {**schema, "required": required} if required else schema


class _FieldTypeError(TypeError):
    """A type that a form field can't have."""


class _PlainType(msgspec.Struct, frozen=True):
    """A type without annotations and without `None`.

    Attributes:
        node: The type.
        notes: Title, description and format from the annotations.
        titles: Title by value of a choice.
        optional: Whether `None` is allowed.
    """

    node: inspect.Type
    notes: Mapping[str, Any]
    titles: Mapping[str, str]
    optional: bool


def fields_of(kind: Any) -> tuple[FormField, ...]:
    """The fields of a form type, in order.

    Raises:
        TypeError: Not a dataclass, TypedDict, Struct or pydantic model, or a field is more than a
            plain value.
    """
    name = getattr(kind, "__name__", repr(kind))
    try:
        kind = _model_struct(kind) or kind
        node = inspect.type_info(kind)
    except (TypeError, NameError) as error:
        raise TypeError(f"form {name}: {' '.join(str(error).split())}") from error
    if not isinstance(
        node, inspect.DataclassType | inspect.TypedDictType | inspect.StructType
    ) or getattr(node, "array_like", False):
        raise TypeError(f"form {name}: expected a dataclass, TypedDict, Struct or pydantic model")
    if getattr(node, "tag", None) is not None:
        raise TypeError(f"form {name}: expected a Struct without a tag")
    hints = typing.get_type_hints(typing.get_origin(kind) or kind)
    fields: list[FormField] = []
    for field in node.fields:
        try:
            fields.append(_field(field, tuple(_literals(hints[field.name]))))
        except _FieldTypeError as error:
            raise TypeError(f"form {name}: {field.encode_name}: {error}") from None
    return tuple(fields)


def _is_value_type(kind: Any) -> bool:
    """Whether a type is that of a single field rather than that of a form."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return _is_value_type(typing.get_args(kind)[0])
    is_choice = isinstance(kind, type) and issubclass(kind, enum.Enum)
    return is_choice or kind in _VALUE_TYPES or origin in (Literal, list)


def _literals(annotation: Any) -> Iterator[Any]:
    """The values of every Literal in a type, in the order of the source."""
    for part in typing.get_args(annotation):
        if typing.get_origin(annotation) is typing.Literal:
            yield part
        else:
            yield from _literals(part)


def _field(field: inspect.Field, literals: Sequence[Any]) -> FormField:
    plain = _plain(field.type)
    schemas = [_described({**schema, **plain.notes}) for schema in _schemas(plain, literals)]
    return FormField(
        name=field.encode_name,
        schemas=schemas,
        default=_default(field),
        required=field.required and not plain.optional,
        fills_none=field.required and plain.optional,
    )


def _described(schema: FieldSchema) -> FieldSchema:
    """The schema of a field; rules that a form lacks are in its description."""
    rules = [f"{key}: {encode(schema[key]).decode()}" for key in schema if key in _RULES]
    if not rules:
        return schema
    texts = [schema.get("description"), f"({', '.join(rules)})"]
    rest = {key: value for key, value in schema.items() if key not in _RULES}
    return {**rest, "description": " ".join(filter(None, texts))}


def _default(field: inspect.Field) -> Any:
    """A default as wire value, sets in sorted order; `None` if there is none or it is empty."""
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default is msgspec.NODEFAULT or default is None or default is UNSET:
        return None
    wire = to_builtins(default)
    if wire == []:
        return None
    return sorted(wire) if isinstance(default, set | frozenset) else wire


def _plain(node: inspect.Type) -> _PlainType:
    if isinstance(node, inspect.Metadata):
        inner = _plain(node.type)
        metadata: Any = node  # its dicts have no types of their own
        notes: dict[str, Any] = {**inner.notes, **(metadata.extra_json_schema or {})}
        if unknown := notes.keys() - _NOTES - _RULES:
            raise _FieldTypeError(
                f"a form says nothing of {', '.join(sorted(unknown))}; remove it, or say it in the "
                "description"
            )
        extra: dict[str, Any] = metadata.extra or {}
        value_titles: Mapping[str, str] = extra.get(_TITLES, {})
        return _PlainType(inner.node, notes, {**inner.titles, **value_titles}, inner.optional)
    if isinstance(node, inspect.UnionType):
        rest = [each for each in node.types if not isinstance(each, inspect.NoneType)]
        if len(rest) == 1:
            inner = _plain(rest[0])
            return _PlainType(inner.node, inner.notes, inner.titles, True)
        return _PlainType(_number_of(rest), {}, {}, len(rest) < len(node.types))
    return _PlainType(node, {}, {}, False)


def _number_of(nodes: Sequence[inspect.Type]) -> inspect.Type:
    """The type of numbers for `int | float`, the only union that is allowed."""
    by_type = {type(node): node for node in nodes}
    if by_type.keys() == {inspect.IntType, inspect.FloatType}:
        return by_type[inspect.FloatType]
    raise _FieldTypeError("expected one type, got a choice of several")


def _schemas(plain: _PlainType, literals: Sequence[Any]) -> list[FieldSchema]:
    """The equivalent schemas of a field, best first."""
    format_ = plain.notes.get("format")
    if format_ is not None and not isinstance(plain.node, inspect.StrType):
        raise _FieldTypeError("a format is for text alone")
    if format_ is not None and format_ not in FORMATS:
        raise _FieldTypeError(f"format: expected one of {', '.join(sorted(FORMATS))}")
    for kind, build in _BUILDERS.items():
        if isinstance(plain.node, kind):
            return build(_in_order(plain.node, literals), plain.titles)
    name = type(plain.node).__name__.removesuffix("Type").lower()
    raise _FieldTypeError(f"no field of a form holds a value of the type {name}")


def _in_order(node: inspect.Type, literals: Sequence[Any]) -> inspect.Type:
    if isinstance(node, inspect.LiteralType):
        return inspect.LiteralType(tuple(sorted(node.values, key=literals.index)))
    if not isinstance(node, _LISTS):
        return node
    item = _plain(node.item_type)
    inner = inspect.Metadata(_in_order(item.node, literals), extra={_TITLES: dict(item.titles)})
    return msgspec.structs.replace(node, item_type=inner)


def _text(node: Any, _: Mapping[str, str]) -> list[FieldSchema]:
    lengths = present_members(minLength=node.min_length, maxLength=node.max_length)
    return [{"type": "string", **lengths, **present_members(pattern=node.pattern)}]


def _number(node: Any, _: Mapping[str, str]) -> list[FieldSchema]:
    if isinstance(node, inspect.IntType):
        least = node.ge if node.gt is None else node.gt + 1
        most = node.le if node.lt is None else node.lt - 1
        bounds = present_members(type="integer", minimum=least, maximum=most)
    else:
        bounds = present_members(
            type="number",
            minimum=node.ge,
            maximum=node.le,
            exclusiveMinimum=node.gt,
            exclusiveMaximum=node.lt,
        )
    return [bounds | present_members(multipleOf=node.multiple_of)]


def _choice(node: Any, value_titles: Mapping[str, str]) -> list[FieldSchema]:
    values = _values(node)
    untitled: FieldSchema = {"type": "string", "enum": values}
    if not value_titles:
        return [untitled]
    if unknown := value_titles.keys() - set(values):
        raise _FieldTypeError(f"titles: there is no value {', '.join(sorted(unknown))}")
    names = [value_titles.get(value, value) for value in values]
    titled: FieldSchema = {"type": "string", "oneOf": _titled(values, value_titles)}
    return [titled, {**untitled, "enumNames": names}]


def _choices(node: Any, value_titles: Mapping[str, str]) -> list[FieldSchema]:
    item = _plain(node.item_type)
    if not isinstance(item.node, inspect.EnumType | inspect.LiteralType):
        raise _FieldTypeError("expected a list of an Enum or Literal: a form lists choices alone")
    values = _values(item.node)
    all_titles = {**item.titles, **value_titles}
    items: FieldSchema = {"type": "string", "enum": values}
    if all_titles:
        items = {"anyOf": _titled(values, all_titles)}
    return [
        present_members(
            type="array", items=items, minItems=node.min_length, maxItems=node.max_length
        )
    ]


def _titled(values: Sequence[str], value_titles: Mapping[str, str]) -> list[FieldSchema]:
    return [{"const": value, "title": value_titles.get(value, value)} for value in values]


def _values(node: Any) -> list[str]:
    """The values of an Enum or Literal."""
    kind: type[enum.Enum] | None = getattr(node, "cls", None)
    values: list[Any] = list(node.values) if kind is None else [member.value for member in kind]
    if not all(isinstance(value, str) for value in values):
        raise _FieldTypeError("expected a choice between texts")
    return values


def _date(_: Any, __: Mapping[str, str]) -> list[FieldSchema]:
    return [{"type": "string", "format": "date"}]


def _date_time(_: Any, __: Mapping[str, str]) -> list[FieldSchema]:
    return [{"type": "string", "format": "date-time"}]


def _boolean(_: Any, __: Mapping[str, str]) -> list[FieldSchema]:
    return [{"type": "boolean"}]


_LISTS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
_BUILDERS: Mapping[type, Callable[[Any, Mapping[str, str]], list[FieldSchema]]] = {
    inspect.StrType: _text,
    inspect.DateType: _date,
    inspect.DateTimeType: _date_time,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.BoolType: _boolean,
    inspect.EnumType: _choice,
    inspect.LiteralType: _choice,
    **dict.fromkeys(_LISTS, _choices),
}


def _form_complaint(schema: Mapping[str, Any]) -> str | None:
    """The error of a form itself, or `None`."""
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in properties:
            return f"required: there is no field {safe_repr(name)}"
    for name, field in properties.items():
        if "default" in field and (wrong := field_complaint(field, field["default"])):
            return f"{safe_text(name)}: default: {wrong}"
    return None


def _model_struct(model: Any) -> type[msgspec.Struct] | None:
    """A Struct with the fields of a pydantic model or dataclass; `None` for any other type."""
    if not isinstance(model, type) or not is_pydantic_class(model):
        return None
    fields: Mapping[str, Any] | None = getattr(model, "__pydantic_fields__", None)
    if fields is None:
        return None
    wire_names = {name: field.alias for name, field in fields.items() if field.alias is not None}
    return msgspec.defstruct(
        model.__name__,
        [(name, _field_kind(field), _struct_default(field)) for name, field in fields.items()],
        rename=wire_names,
        kw_only=True,
    )


def _field_kind(field: Any) -> Any:
    kind = _map_parts(_map_parts(field.annotation, _part_kind), partial(_noted, field.metadata))
    notes = {
        name: value
        for name in ("title", "description", "examples")
        if (value := getattr(field, name)) is not None
    }
    return Annotated[kind, msgspec.Meta(**notes)] if notes else kind


def _form_notes(constraint: Any) -> Iterator[Meta]:
    """A constraint of pydantic as notes; none for one that only the model checks."""
    with suppress(TypeError):
        for note in value_types.as_msgspec(constraint):
            pattern = getattr(note, "pattern", None)
            pattern = getattr(pattern, "pattern", pattern)  # of a compiled one
            if isinstance(note, Meta):
                yield note
            elif isinstance(pattern, str):
                yield Meta(extra_json_schema={"pattern": pattern})


def _map_parts(kind: Any, change: Callable[[Any], Any]) -> Any:
    """A type with its parts changed: the members of a union but `None`, or the type itself."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return change(kind)
    parts = [part if part is type(None) else change(part) for part in typing.get_args(kind)]
    return typing.Union[tuple(parts)]  # noqa: UP007 - the parts are known at run time only


def _noted(constraints: Sequence[Any], kind: Any) -> Any:
    """A type with the constraints that a form can state."""
    for note in [note for each in constraints for note in _form_notes(each)]:
        kind = Annotated[kind, note]
    return kind


def _part_kind(kind: Any) -> Any:
    """A type as msgspec knows it: without notes of pydantic, text for pydantic's types of texts."""
    if typing.get_origin(kind) is Annotated:
        inner, *notes = typing.get_args(kind)
        constraints = [each for note in notes for each in getattr(note, "metadata", (note,))]
        return _noted(constraints, _part_kind(inner))
    if isinstance(kind, type) and is_pydantic_class(kind):
        schema = value_types.custom_schema(kind, use="validation")
        if schema.pop("type", None) == "string":
            schema.pop("minLength", None)  # of a URL: the format implies it
            return Annotated[str, Meta(extra_json_schema=schema)]
    return kind


def _struct_default(field: Any) -> Any:
    if field.is_required():
        return msgspec.NODEFAULT
    if field.default_factory is not None:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default_factory=lambda: field.default)
