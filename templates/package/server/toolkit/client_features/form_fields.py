"""The fields of a form, read from a dataclass, TypedDict or Struct.

A field has one wire form or several that mean the same, best first: a revision gets the first that
it can carry. A default goes along where the revision has a place for it; where it has none, the
field is just optional, and the type fills the default in.

Source: client/elicitation#requested-schema.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, inspect

from ...._wire import to_builtins
from ....protocol.elicitation_schema import FORMATS
from ..content import present

Wire: TypeAlias = dict[str, Any]

_TITLES = "titles"
_NOTES = frozenset({"title", "description", "format"})


def titles(by_value: Mapping[str, str] | None = None, /, **by_name: str) -> Meta:
    """Titles for the values of a choice, as an annotation.

        size: Annotated[Literal["s", "m"], titles(s="Small", m="Medium")]

    Args:
        by_value: Title by value, for values that are no names.
        by_name: Title by value.
    """
    return Meta(extra={_TITLES: {**(by_value or {}), **by_name}})


class FormField(msgspec.Struct, frozen=True):
    """One field of a form.

    Attributes:
        name: Its name on the wire.
        wires: Its schema without default, in every form there is, best first.
        default: What it starts with, as wire value; `None` for nothing.
        required: Whether a value has to be given.
        fills_none: Whether a value that is not given is `None`.
    """

    name: str
    wires: Sequence[Wire]
    default: Any
    required: bool
    fills_none: bool


class _NoFieldError(TypeError):
    """A type that is none for a field."""


class _Plain(msgspec.Struct, frozen=True):
    """A type without what is said around it."""

    node: inspect.Type
    notes: Mapping[str, Any]
    titles: Mapping[str, str]
    optional: bool


def fields_of(kind: Any) -> tuple[FormField, ...]:
    """The fields of a form type, in order.

    Raises:
        TypeError: It is no form: not an object, or with a field that is more than a plain value.
    """
    name = getattr(kind, "__name__", repr(kind))
    try:
        node = inspect.type_info(kind)
    except (TypeError, NameError) as error:
        raise TypeError(f"form {name}: {' '.join(str(error).split())}") from error
    if not isinstance(
        node, inspect.DataclassType | inspect.TypedDictType | inspect.StructType
    ) or getattr(node, "array_like", False):
        raise TypeError(f"form {name}: expected a dataclass, TypedDict or Struct")
    if getattr(node, "tag", None) is not None:
        raise TypeError(f"form {name}: expected a Struct without a tag")
    hints = typing.get_type_hints(typing.get_origin(kind) or kind, include_extras=True)
    made: list[FormField] = []
    for field in node.fields:
        try:
            made.append(_field(field, tuple(_literals(hints[field.name]))))
        except _NoFieldError as error:
            raise TypeError(f"form {name}: {field.encode_name}: {error}") from None
    return tuple(made)


def _literals(annotation: Any) -> Iterator[Any]:
    """The values of all that is Literal in a type, as they are written."""
    for part in typing.get_args(annotation):
        if typing.get_origin(annotation) is typing.Literal:
            yield part
        else:
            yield from _literals(part)


def _field(field: inspect.Field, written: Sequence[Any]) -> FormField:
    plain = _plain(field.type)
    wires = [{**wire, **plain.notes} for wire in _wires(plain, written)]
    return FormField(
        name=field.encode_name,
        wires=wires,
        default=_default(field),
        required=field.required and not plain.optional,
        fills_none=field.required and plain.optional,
    )


def _default(field: inspect.Field) -> Any:
    """A default as wire value, always in the same order; `None` if the form need not show it."""
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default is msgspec.NODEFAULT or default is None or default is UNSET:
        return None
    wire = to_builtins(default)
    if wire == []:
        return None
    return sorted(wire) if isinstance(default, set | frozenset) else wire


def _plain(node: inspect.Type) -> _Plain:
    """A type without its annotations and without `None`."""
    if isinstance(node, inspect.Metadata):
        inner = _plain(node.type)
        told: Any = node  # its dicts have no types of their own
        notes: dict[str, Any] = {**inner.notes, **(told.extra_json_schema or {})}
        if unknown := notes.keys() - _NOTES:
            raise _NoFieldError(f"a form says nothing of {', '.join(sorted(unknown))}")
        extra: dict[str, Any] = told.extra or {}
        said: Mapping[str, str] = extra.get(_TITLES, {})
        return _Plain(inner.node, notes, {**inner.titles, **said}, inner.optional)
    if isinstance(node, inspect.UnionType):
        rest = [each for each in node.types if not isinstance(each, inspect.NoneType)]
        if len(rest) == 1:
            inner = _plain(rest[0])
            return _Plain(inner.node, inner.notes, inner.titles, True)
        return _Plain(_number_of(rest), {}, {}, len(rest) < len(node.types))
    return _Plain(node, {}, {}, False)


def _number_of(nodes: Sequence[inspect.Type]) -> inspect.Type:
    """The one type that `int | float` means."""
    floats = [node for node in nodes if isinstance(node, inspect.FloatType)]
    ints = [node for node in nodes if isinstance(node, inspect.IntType)]
    if len(floats) == len(ints) == 1 and len(nodes) == 2:
        return floats[0]
    raise _NoFieldError("expected one type, got a choice of several")


def _wires(plain: _Plain, written: Sequence[Any]) -> list[Wire]:
    """The schema of a field in every form there is.

    Args:
        plain: Its type.
        written: Its literal values in the order of the source, which msgspec does not keep.
    """
    format_ = plain.notes.get("format")
    if format_ is not None and not isinstance(plain.node, inspect.StrType):
        raise _NoFieldError("a format is for text alone")
    if format_ is not None and format_ not in FORMATS:
        raise _NoFieldError(f"format: expected one of {', '.join(sorted(FORMATS))}")
    for kind, make in _MAKERS.items():
        if isinstance(plain.node, kind):
            return make(_in_order(plain.node, written), plain.titles)
    shown = type(plain.node).__name__.removesuffix("Type").lower()
    raise _NoFieldError(f"no field of a form holds a value of the type {shown}")


def _in_order(node: inspect.Type, written: Sequence[Any]) -> inspect.Type:
    if isinstance(node, inspect.LiteralType):
        return inspect.LiteralType(tuple(sorted(node.values, key=written.index)))
    if not isinstance(node, _LISTS):
        return node
    item = _plain(node.item_type)
    inner = inspect.Metadata(_in_order(item.node, written), extra={_TITLES: dict(item.titles)})
    return msgspec.structs.replace(node, item_type=inner)


def _text(node: Any, _: Mapping[str, str]) -> list[Wire]:
    if node.pattern is not None:
        raise _NoFieldError("a form has no patterns")
    return [present(type="string", minLength=node.min_length, maxLength=node.max_length)]


def _number(node: Any, _: Mapping[str, str]) -> list[Wire]:
    whole = isinstance(node, inspect.IntType)
    if node.multiple_of is not None:
        raise _NoFieldError("a form has no multiples")
    if not whole and (node.gt is not None or node.lt is not None):
        raise _NoFieldError("a form has bounds that are included: use ge and le")
    least = node.ge if node.gt is None else node.gt + 1
    most = node.le if node.lt is None else node.lt - 1
    return [present(type="integer" if whole else "number", minimum=least, maximum=most)]


def _choice(node: Any, said: Mapping[str, str]) -> list[Wire]:
    values = _values(node)
    untitled: Wire = {"type": "string", "enum": values}
    if not said:
        return [untitled]
    if unknown := said.keys() - set(values):
        raise _NoFieldError(f"titles: there is no value {', '.join(sorted(unknown))}")
    named = [said.get(value, value) for value in values]
    titled: Wire = {"type": "string", "oneOf": _titled(values, said)}
    return [titled, {**untitled, "enumNames": named}]


def _several(node: Any, said: Mapping[str, str]) -> list[Wire]:
    item = _plain(node.item_type)
    if not isinstance(item.node, inspect.EnumType | inspect.LiteralType):
        raise _NoFieldError("expected a list of an Enum or Literal: a form lists choices alone")
    values = _values(item.node)
    named = {**item.titles, **said}
    items: Wire = {"type": "string", "enum": values}
    if named:
        items = {"anyOf": _titled(values, named)}
    return [present(type="array", items=items, minItems=node.min_length, maxItems=node.max_length)]


def _titled(values: Sequence[str], said: Mapping[str, str]) -> list[Wire]:
    return [{"const": value, "title": said.get(value, value)} for value in values]


def _values(node: Any) -> list[str]:
    """The values of an Enum or Literal."""
    kind: type[enum.Enum] | None = getattr(node, "cls", None)
    values: list[Any] = list(node.values) if kind is None else [member.value for member in kind]
    if not all(isinstance(value, str) for value in values):
        raise _NoFieldError("expected a choice between texts")
    return values


def _date(_: Any, __: Mapping[str, str]) -> list[Wire]:
    return [{"type": "string", "format": "date"}]


def _date_time(_: Any, __: Mapping[str, str]) -> list[Wire]:
    return [{"type": "string", "format": "date-time"}]


def _boolean(_: Any, __: Mapping[str, str]) -> list[Wire]:
    return [{"type": "boolean"}]


_LISTS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
_MAKERS: Mapping[type, Callable[[Any, Mapping[str, str]], list[Wire]]] = {
    inspect.StrType: _text,
    inspect.DateType: _date,
    inspect.DateTimeType: _date_time,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.BoolType: _boolean,
    inspect.EnumType: _choice,
    inspect.LiteralType: _choice,
    **dict.fromkeys(_LISTS, _several),
}
