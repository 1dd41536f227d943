"""Types of pydantic 2: values, JSON Schema, models as Structs, what a `Field` says of a parameter.

pydantic validates and describes such types, as a whole: only pydantic knows all its rules. This
module never imports pydantic, since such types exist only where the user's program has done so.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from ..foreign_text import safe_repr
from .type_parts import is_pydantic_class
from .type_schemas import Schema

Use: TypeAlias = Literal["validation", "serialization"]
"""What a JSON Schema describes: values that are read, or values that are written."""

_SHOWN_ERRORS = 5
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")


def field_default(annotation: Any, default: Any) -> tuple[Any, Any, Callable[[], Any] | None]:
    """A parameter's type, default and default factory, with what a `Field` of pydantic says.

    A `Field` may be the default value, or a note of the annotation; as a default value it becomes
    a note.

    Args:
        default: The default value; `inspect.Parameter.empty` for none.

    Raises:
        TypeError: The `Field` says what can't be honoured for a parameter.
    """
    if _is_field_info(default):
        annotation, field = Annotated[annotation, default], default
    else:
        notes = typing.get_args(annotation)[1:] if _is_annotated(annotation) else ()
        field = next((note for note in notes if _is_field_info(note)), None)
        if field is None or default is not inspect.Parameter.empty:
            return annotation, default, None
    if field.validation_alias is not None or field.alias is not None:
        raise TypeError(
            f"{field!r}: expected no alias; the name of a parameter is that on the wire"
        )
    if field.default_factory is not None:
        if field.default_factory_takes_validated_data:
            raise TypeError(f"{field!r}: expected a default_factory without parameters")
        return annotation, inspect.Parameter.empty, field.default_factory
    return annotation, inspect.Parameter.empty if field.is_required() else field.default, None


def _is_annotated(annotation: Any) -> bool:
    return typing.get_origin(annotation) is Annotated


def _is_field_info(value: Any) -> bool:
    kind: Any = value.__class__
    return bool(kind.__name__ == "FieldInfo" and kind.__module__ == "pydantic.fields")


def adapter_of(annotation: Any) -> Any:
    """pydantic's adapter of a type.

    Raises:
        TypeError: pydantic does not accept the type.
    """
    pydantic: Any = sys.modules["pydantic"]
    try:
        return pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(" ".join(str(error).split())) from error


@lru_cache(maxsize=1024)
def class_adapter(kind: type[Any]) -> Any:
    """pydantic's adapter of a class, made once.

    Raises:
        TypeError: pydantic does not accept the class.
    """
    return adapter_of(kind)


def pydantic_value(adapter: Any, value: Any, strict: bool) -> Any:
    """The value of decoded JSON.

    Args:
        strict: Whether JSON types have to match.

    Raises:
        ValueError: The data does not fit; the text names up to five reasons with their places.
    """
    pydantic: Any = sys.modules["pydantic"]
    try:
        if strict:  # as JSON, where a date is a text
            return adapter.validate_json(msgspec.json.encode(value), strict=True)
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        texts = [_pydantic_error(each) for each in details[:_SHOWN_ERRORS]]
        if len(details) > _SHOWN_ERRORS:
            texts.append(f"and {len(details) - _SHOWN_ERRORS} more")
        raise ValueError("; ".join(texts)) from error


def _pydantic_error(detail: Mapping[str, Any]) -> str:
    path = ".".join(map(str, detail["loc"]))
    text = detail["msg"][:1].lower() + detail["msg"][1:]
    if detail["type"] != "missing":
        text += f", got {safe_repr(detail['input'])}"
    return f"{path}: {text}" if path else text


def pydantic_schema(adapter: Any, use: Use) -> Schema:
    """The JSON Schema of an adapter's type.

    Raises:
        TypeError: The type has no JSON form.
    """
    pydantic: Any = sys.modules["pydantic"]
    try:
        schema: Schema = adapter.json_schema(
            mode=use,
            ref_template="#/$defs/{model}",
            schema_generator=_schema_generator(pydantic.json_schema.GenerateJsonSchema),
        )
    except pydantic.errors.PydanticInvalidForJsonSchema as error:
        raise TypeError(" ".join(str(error).split())) from error
    return schema


@cache
def _schema_generator(base: Any) -> Any:
    """pydantic's generator of JSON Schemas, without a title for each field."""
    return type("FieldsWithoutTitles", (base,), {"field_title_should_be_set": _never})


def _never(*_: object) -> bool:
    return False


def model_struct(model: Any) -> type[msgspec.Struct] | None:
    """A Struct with the fields of a pydantic model or dataclass; `None` for any other type.

    Raises:
        TypeError: A field has a constraint that msgspec can't express.
    """
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
    kind = field.annotation
    if isinstance(kind, type) and is_pydantic_class(kind):
        schema = pydantic_schema(adapter_of(kind), "validation")
        if schema.pop("type", None) == "string":
            schema.pop("minLength", None)  # of a URL: it says nothing beside the format
            kind = Annotated[str, msgspec.Meta(extra_json_schema=schema)]
    for note in [each for constraint in field.metadata for each in as_msgspec(constraint)]:
        if not isinstance(note, msgspec.Meta):
            raise TypeError(f"{note!r} can't be expressed")
        kind = Annotated[kind, note]
    shown = {
        name: value
        for name in ("title", "description", "examples")
        if (value := getattr(field, name)) is not None
    }
    return Annotated[kind, msgspec.Meta(**shown)] if shown else kind


def _struct_default(field: Any) -> Any:
    if field.is_required():
        return msgspec.NODEFAULT
    if field.default_factory is not None:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default_factory=lambda: field.default)


def as_msgspec(note: Any) -> Iterator[Any]:
    """A constraint of `annotated_types` as constraints of msgspec, any other note as it is.

    Raises:
        TypeError: msgspec can't check the constraint.
    """
    if type(note).__module__.partition(".")[0] != "annotated_types":
        yield note
        return
    inner: Iterator[Any] = iter(note) if hasattr(note, "__iter__") else iter((note,))
    for each in inner:
        limits = {name: getattr(each, name) for name in _LIMITS if hasattr(each, name)}
        if not limits:
            raise TypeError(f"{each!r} can't be checked without pydantic")
        yield msgspec.Meta(**{name: limit for name, limit in limits.items() if limit is not None})
