"""A function's signature as the shape of its arguments: one Struct to validate with, one schema.

The Struct is made once, at registration; a call is then a single conversion. Defaults live in the
Struct, so a bound call always has every argument. A parameter annotated with `Context` is filled
in by the toolkit and is part of neither.
"""

from __future__ import annotations

import copy
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Optional, Union

import msgspec

from ..._wire import error_text
from ...foreign_text import safe_repr
from . import docstrings, tool_schemas
from .context import Context

_MISSING = inspect.Parameter.empty
_COPIED: tuple[type, ...] = (list, dict, set, bytearray)
_SHARED: tuple[type, ...] = (bool, int, float, str, bytes, tuple, frozenset, type(None))
_LOCATED = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_LACKING = re.compile(r"Object missing required field `(.*)`")


class Parameter(msgspec.Struct, frozen=True):
    """One argument that a caller may give.

    Attributes:
        name: Its name, in Python and on the wire.
        annotation: Its type; `Any` if it has none.
        required: Whether it has no default.
        description: What the docstring or its annotation says about it.
    """

    name: str
    annotation: Any
    required: bool
    description: str | None


class Signature(msgspec.Struct, frozen=True):
    """What a registered function takes and returns.

    Attributes:
        label: What it is called in error texts, such as `tool 'forecast'`.
        parameters: By name, in order, without the context.
        context: Name of the parameter that gets the `Context`, if there is one.
        struct: Type that arguments are converted into.
        open: Whether it takes arguments of any name (`**kwargs`).
        returns: The return annotation; `Signature.NOTHING_SAID` if there is none.
    """

    label: str
    parameters: Mapping[str, Parameter]
    context: str | None
    struct: type[msgspec.Struct]
    open: bool
    returns: Any

    NOTHING_SAID: typing.ClassVar[Any] = _MISSING

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as the function wants them, JSON types taken strictly.

        Raises:
            ValueError: They do not fit; the text says which, and why.
        """
        try:
            return msgspec.structs.asdict(msgspec.convert(arguments, self.struct))
        except (msgspec.ValidationError, RecursionError) as error:
            raise ValueError(self._readable(error_text(error), arguments)) from error

    def bind_text(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same for arguments that travel as text: `"3"` fits an integer, `"true"` a boolean.

        Raises:
            ValueError: They do not fit; the text says which, and why.
        """
        try:
            return msgspec.structs.asdict(msgspec.convert(arguments, self.struct, strict=False))
        except (msgspec.ValidationError, RecursionError) as error:
            raise ValueError(self._readable(error_text(error), arguments)) from error

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments.

        Raises:
            TypeError: A parameter's type has no JSON form.
        """
        try:
            made = tool_schemas.schema_of(self.struct)
        except TypeError as error:
            raise TypeError(f"{self.label}: {_first_line(error)}") from error
        # Present even if empty: clients exist that look there without asking (smolagents 1).
        slim: dict[str, Any] = {"type": "object", "properties": made.get("properties", {})}
        if made.get("required"):
            slim["required"] = made["required"]
        slim["additionalProperties"] = False
        if "$defs" in made:
            slim["$defs"] = made["$defs"]
        return slim

    def _readable(self, text: str, arguments: Mapping[str, Any]) -> str:
        match = _LOCATED.fullmatch(text)
        what, path = (match["what"], match["path"] or "") if match else (text, "")
        where = path.removeprefix(".")
        unknown, lacking = _UNKNOWN.fullmatch(what), _LACKING.fullmatch(what)
        if unknown and not where:
            known = ", ".join(self.parameters) or "none"
            return f"unknown argument {unknown[1]!r}; expected: {known}"
        if lacking:
            inner = f"{where}.{lacking[1]}" if where else lacking[1]
            return f"argument {inner!r}: required, but missing"
        text = what[:1].lower() + what[1:].replace("`", "")
        text += self._choices(what, where)
        if where in arguments and ", got" not in text and "value" not in text:
            text += f", got {safe_repr(arguments[where])}"
        return f"argument {where!r}: {text}" if where else text

    def _choices(self, what: str, where: str) -> str:
        if not what.startswith("Invalid enum value") or where not in self.parameters:
            return ""
        found = tool_schemas.schema_of(self.parameters[where].annotation)
        choices: list[Any] = found.get("enum", [])
        return f"; expected one of {', '.join(map(repr, choices))}" if choices else ""


def read(
    function: Callable[..., Any], label: str, names: Mapping[str, Any] | None = None
) -> Signature:
    """The signature of a function that is being registered.

    Args:
        function: Any callable; a coroutine function or a plain one.
        label: What to call it in error texts.
        names: Further names that its annotations may use, such as the caller's locals.

    Raises:
        TypeError: Something in it can't be served: `*args`, positional-only parameters, a
            generator, two contexts, or an annotation that can't be resolved.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{label}: expected a function that returns, got a generator function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{label}: expected a function, got {function!r}") from error
    hints = _hints(function, label, names)
    said = docstrings.parameters(function.__doc__)
    found: dict[str, Parameter] = {}
    fields: list[tuple[str, Any, Any]] = []
    contexts: list[str] = []
    open_ended = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"{label}: expected parameters that can be given by name, got {parameter}"
            )
        annotation = hints.get(name, Any)
        if _is_context(annotation):
            contexts.append(name)
            continue
        found[name], field = _field(name, annotation, parameter.default, said.get(name))
        fields.append(field)
    if len(contexts) > 1:
        raise TypeError(f"{label}: expected one Context parameter, got {', '.join(contexts)}")
    return Signature(
        label=label,
        parameters=found,
        context=contexts[0] if contexts else None,
        struct=_struct(label, fields, forbid=not open_ended),
        open=open_ended,
        returns=hints.get("return", _MISSING),
    )


def _hints(
    function: Callable[..., Any], label: str, names: Mapping[str, Any] | None
) -> dict[str, Any]:
    described: Any = function
    if not isinstance(function, types.FunctionType | types.MethodType | type):
        described = getattr(function, "func", None) or type(function).__call__
    try:
        return typing.get_type_hints(described, localns=dict(names or {}), include_extras=True)
    except NameError as error:
        raise TypeError(f"{label}: annotation can't be resolved: {error}") from error
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from error


def _is_context(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(_is_context(part) for part in typing.get_args(annotation))
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Context)


def _field(
    name: str, annotation: Any, default: Any, said: str | None
) -> tuple[Parameter, tuple[str, Any, Any]]:
    annotation, description = _described(annotation, said)
    if default is None and annotation is not Any:
        annotation = Optional[annotation]  # noqa: UP045 - `|` fails for annotations that are text
    if description:
        annotation = Annotated[annotation, msgspec.Meta(description=description)]
    required = default is _MISSING
    return (
        Parameter(name, annotation, required, description),
        (name, annotation, _default(default)),
    )


def _described(annotation: Any, said: str | None) -> tuple[Any, str | None]:
    """The annotation without plain-text notes, and the best description there is."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, said
    kind, *notes = typing.get_args(annotation)
    kept: list[Any] = []
    for note in notes:
        text = note if isinstance(note, str) else getattr(note, "documentation", None)
        if isinstance(text, str):
            said = text
        else:
            kept.append(note)
            said = getattr(note, "description", None) or said
    for note in kept:
        kind = Annotated[kind, note]
    return kind, said


def _default(value: object) -> Any:
    """A Struct field's default: copied for each call where Python would share and change it."""
    if value is _MISSING:
        return msgspec.NODEFAULT
    if isinstance(value, _COPIED):
        return msgspec.field(default_factory=partial(_copied, value))
    if isinstance(value, _SHARED):
        return value
    return msgspec.field(default_factory=partial(_same, value))


def _copied(value: object) -> object:
    return copy.copy(value)


def _same(value: object) -> object:
    return value


def _struct(
    label: str, fields: list[tuple[str, Any, Any]], *, forbid: bool
) -> type[msgspec.Struct]:
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=forbid)
    except TypeError as error:
        raise TypeError(f"{label}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split())
