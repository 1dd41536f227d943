"""Signatures of registered functions: parameters, JSON Schema, argument conversion, calls.

At registration the parameters become one msgspec Struct, from which the JSON Schema is made. A call
then converts its arguments with a single `msgspec.convert`. Arguments that do not fit are converted
once more: a number such as `5.0` is an integer in JSON Schema, and models send `"5"` or `"[1]"`
where a number or a list is expected. Defaults are fields of the Struct, so converted arguments are
complete. A parameter annotated with `Context` is not part of the Struct or the schema, since the
toolkit passes the context. Neither is a parameter with an `Injector`, such as that of `Depends`, in
its annotation or as its default.

Descriptions of parameters come from annotations and from the docstring: an `Args:` section
(Google), `:param name:` fields (Sphinx) or a `Parameters` section (NumPy).

Source: server/tools (Tool), basic/index#json-schema-usage.
"""

from __future__ import annotations

import copy
import inspect
import re
import types
import typing
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Annotated, Any, Optional, TypeAlias, Union

import msgspec

from ..._unions import with_integers
from ..._wire import UNREADABLE, UNWRITABLE, error_text
from ...values import value_types
from ...values.value_types import ValueType, one_line
from .context import Context

_MISSING = inspect.Parameter.empty
_CONTAINERS = frozenset({"array", "object", "null"})
_COPIED: tuple[type, ...] = (list, dict, set, bytearray)
_SHARED: tuple[type, ...] = (bool, int, float, str, bytes, tuple, frozenset, type(None))

# Descriptions of parameters in docstrings: a name and a text.
_SPHINX = r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$"
_GOOGLE = r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$"
_NUMPY = r"^\*{0,2}(\w+)\s*(?::.*)?()$"
_GOOGLE_TITLES = frozenset({"Args:", "Arguments:", "Parameters:"})

Field: TypeAlias = tuple[str, Any, Any]
"""A field of a Struct as `msgspec.defstruct` takes it: name, type, default."""


class Injector:
    """Base of the notes of parameters whose values other functions provide, such as `Depends`.

    A note is in the annotation of a parameter, or is its default.
    """

    def check_place(self, annotation: Any, name: str, default: Any, label: str) -> None:
        """Raise a `TypeError` if the note, the first one of a parameter, is in an invalid place."""
        raise NotImplementedError

    def call(
        self,
        function: Callable[..., Awaitable[Any]],
        context: str | None,
        injectors: Mapping[str, Any],
        argument_names: Collection[str],
        label: str,
        names: Mapping[str, Any] | None,
    ) -> Any:
        """A callable that calls a coroutine function with the values that its notes provide."""
        raise NotImplementedError


_asdict = msgspec.structs.asdict
_convert_strictly = msgspec.convert
_STRICT_HOOK = value_types.HOOKS[True]


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """One argument of a registered function.

    Attributes:
        name: Its name, in Python and on the wire.
        type: Its type; that of `Any` if it has no annotation.
        default: Its default; `inspect.Parameter.empty` if it has none.
        description: Its description in the annotation or the docstring.
    """

    name: str
    type: ValueType
    default: Any
    description: str | None

    @property
    def annotation(self) -> Any:
        """The type as the user wrote it."""
        return self.type.annotation

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is _MISSING

    def json_types(self) -> frozenset[str]:
        """The JSON types of its values; empty if all types are allowed."""
        schema = self.type.schema()
        return value_types.accepts(schema, schema.get("$defs", {}))


class Signature(msgspec.Struct, frozen=True, dict=True):
    """Parameters and return type of a registered function.

    Attributes:
        label: Its name in error texts, such as `tool 'forecast'`.
        description: The first paragraph of its docstring.
        parameters: By name, in order, without the context.
        context: Name of the parameter that gets the `Context`, if there is one.
        struct: Type that arguments are converted into.
        open: Whether it takes arguments of any name (`**kwargs`).
        returns: The return annotation; `Signature.NO_ANNOTATION` if there is none.
        call: The function, or a coroutine function that runs it in a worker thread.
        dependencies: The values that other functions provide; `None` if there are none. `context`
            and `call` include them.
    """

    label: str
    description: str | None
    parameters: Mapping[str, Parameter]
    context: str | None
    struct: type[msgspec.Struct]
    open: bool
    returns: Any
    call: Callable[..., Awaitable[Any]]
    dependencies: Any = None

    NO_ANNOTATION: typing.ClassVar[Any] = _MISSING

    def bind(self, arguments: Mapping[str, Any], *, coerce: bool = True) -> dict[str, Any]:
        """Convert arguments to the types of the parameters.

        Args:
            coerce: Whether texts are converted where another type is expected: `"3"` to an integer,
                `"true"` to a boolean, `"[1]"` to a list. `5.0` is an integer in any case.

        Raises:
            ValueError: The arguments do not fit; the text lists all errors.
        """
        try:
            return _asdict(
                _convert_strictly(arguments, self.struct, str_keys=True, dec_hook=_STRICT_HOOK)
            )
        except (msgspec.ValidationError, RecursionError):
            pass
        strict = not coerce
        try:
            arguments = with_integers(arguments) if strict else self._with_parsed_texts(arguments)
            return _asdict(value_types.convert(arguments, self.struct, strict=strict))
        except (msgspec.ValidationError, RecursionError) as error:
            from .argument_errors import argument_errors  # for the error only

            errors = argument_errors(
                self.parameters,
                arguments,
                allows_unknown=self.open,
                strict=strict,
                first=error_text(error),
            )
            raise ValueError(errors) from error

    def _with_parsed_texts(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with JSON texts parsed where only a list or an object is expected."""
        parsed = dict(arguments)
        for name in self._containers & parsed.keys():
            if isinstance(parsed[name], str):
                with suppress(*UNREADABLE):
                    parsed[name] = msgspec.json.decode(parsed[name])
        return parsed

    @cached_property
    def _containers(self) -> frozenset[str]:
        """Names of the parameters that take lists or objects, and no texts."""
        accepted = ((name, each.json_types()) for name, each in self.parameters.items())
        return frozenset(name for name, kinds in accepted if kinds and kinds <= _CONTAINERS)

    def bind_strings(self, arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Convert arguments that are strings on the wire; the result includes the context.

        Raises:
            ValueError: The arguments do not fit.
        """
        bound = self.bind(arguments)
        if self.open:
            bound = {**arguments, **bound}
        if self.context is not None:
            bound[self.context] = context
        return bound

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments.

        Raises:
            TypeError: A parameter's type has no JSON form.
        """
        try:
            full = value_types.schema_of(self.struct)
        except TypeError as error:
            raise TypeError(f"{self.label}: {one_line(error)}") from error
        # `properties` is present even if empty: some clients require it (smolagents 1).
        properties: dict[str, Any] = full.get("properties", {})
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        for parameter in self.parameters.values():
            if not parameter.required and parameter.default is not None:
                with suppress(*UNWRITABLE):  # a default need not have a JSON form
                    default = value_types.to_json(parameter.default)
                    properties[parameter.name].setdefault("default", default)
        if full.get("required"):
            schema["required"] = full["required"]
        if "$defs" in full:
            schema["$defs"] = full["$defs"]
        return schema


def read(
    function: Callable[..., Any],
    label: str,
    names: Mapping[str, Any] | None = None,
    context_name: str | None = None,
    *,
    threads: bool = True,
) -> Signature:
    """The signature of a function that is being registered.

    Args:
        function: A coroutine function, or another callable, which then runs in a worker thread.
        label: Its name in error texts.
        names: Further names that its annotations may use, such as the caller's locals.
        context_name: Name of a parameter that gets the context without an annotation, if any.
        threads: Whether a plain function runs in a worker thread, or else in the event loop.

    Raises:
        TypeError: The signature can't be served: `*args`, positional-only parameters, a generator,
            two contexts, a dependency that can't be provided, or an annotation that can't be
            resolved.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{label}: expected a function that returns, got a generator function")
    signature = signature_of(function, label)
    _check_bound(function, signature, label)
    hints = resolved_hints(function, label, names)
    documented: Any = getattr(function, "func", function)  # of a `functools.partial`
    descriptions = parameter_descriptions(documented.__doc__)
    parameters: dict[str, Parameter] = {}
    fields: list[Field] = []
    contexts: list[str] = []
    injectors: dict[str, Injector] = {}
    has_kwargs = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            has_kwargs = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"{label}: expected parameters that can be given by name, got {parameter}"
            )
        annotation = hints.get(name, Any)
        if is_context(annotation) or (name == context_name and name not in hints):
            contexts.append(name)
            continue
        default = parameter.default
        if (note := injector_of(annotation, name, default, label)) is not None:
            injectors[name] = note
            continue
        parameters[name], field = _field(name, annotation, default, descriptions.get(name))
        fields.append(field)
    if len(contexts) > 1:
        raise TypeError(f"{label}: expected one Context parameter, got {', '.join(contexts)}")
    context = contexts[0] if contexts else None
    call = function if is_coroutine_function(function) else _coroutine(function, context, threads)
    dependencies: Any = None
    if injectors:
        injector = next(iter(injectors.values()))
        dependencies = call = injector.call(
            call, context, injectors, tuple(parameters), label, names
        )
        context = dependencies.context
    return Signature(
        label=label,
        description=first_paragraph(inspect.getdoc(documented)),
        parameters=parameters,
        context=context,
        struct=_struct(label, fields, forbid_unknown=not has_kwargs),
        open=has_kwargs,
        returns=hints.get("return", _MISSING),
        call=call,
        dependencies=dependencies,
    )


def _check_bound(function: Callable[..., Any], signature: inspect.Signature, label: str) -> None:
    """Check that a function is not an unbound method, whose `self` would have no value."""
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.name not in ("self", "cls") or first.annotation is not _MISSING:
        return
    place, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if place and not place.endswith("<locals>"):
        raise TypeError(
            f"{label}: expected a bound method, got a function with {first.name!r}; "
            "register the method of an object: server.add_tool(object.method)"
        )


def injector_of(annotation: Any, name: str, default: Any, label: str) -> Injector | None:
    """The first `Injector` in the annotation of a parameter, or its default if that is one."""
    notes = (*_notes_in(annotation), default)
    note = next((note for note in notes if isinstance(note, Injector)), None)
    if note is not None:
        note.check_place(annotation, name, default, label)
    return note


def _notes_in(annotation: Any) -> list[Any]:
    """The metadata of an annotation, and of the members of a union."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return [note for part in typing.get_args(annotation) for note in _notes_in(part)]
    return list(getattr(annotation, "__metadata__", ()))


def _coroutine(
    function: Callable[..., Any], context: str | None, threads: bool
) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that calls a plain function, in a worker thread if `threads`.

    When a request is cancelled, its worker thread runs on: nothing can stop it.
    """

    async def call_in_event_loop(**arguments: Any) -> Any:
        return function(**arguments)

    if not threads:
        return call_in_event_loop
    from anyio.to_thread import run_sync  # needed for plain functions only

    async def call_in_thread(**arguments: Any) -> Any:
        if context is not None:
            from .context import use_in_thread  # few plain functions have a context

            use_in_thread(arguments[context])

        def work() -> tuple[Any]:
            return (function(**arguments),)  # trio takes no awaitable as the result of a thread

        (result,) = await run_sync(work, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return call_in_thread


def _field(
    name: str, annotation: Any, default: Any, documented: str | None
) -> tuple[Parameter, Field]:
    annotation, default, factory = field_default(annotation, default)
    annotation, description = _without_notes(annotation, documented)
    if default is None and not _accepts_none(annotation):
        annotation = Optional[annotation]  # noqa: UP045 - `|` fails for annotations that are text
    kind = value_types.value_type(annotation)
    described: Any = kind.kind
    if description:
        described = Annotated[described, msgspec.Meta(description=description)]
    if factory is None:
        return Parameter(name, kind, default, description), (name, described, _default(default))
    field = msgspec.field(default_factory=factory)
    return Parameter(name, kind, None, description), (name, described, field)


def field_default(annotation: Any, default: Any) -> tuple[Any, Any, Callable[[], Any] | None]:
    """A parameter's type, default and default factory, which a `Field` of pydantic may set.

    A `Field` may be the default value, or a note of the annotation; a default value becomes a note.
    Raises `TypeError` for settings of a `Field` that parameters do not support.
    """
    if _is_field_info(default):
        annotation, field = Annotated[annotation, default], default
    else:
        notes = getattr(annotation, "__metadata__", ())
        field = next((note for note in notes if _is_field_info(note)), None)
        if field is None or default is not _MISSING:
            return annotation, default, None
    if field.validation_alias is not None or field.alias is not None:
        raise TypeError(
            f"{field!r}: expected no alias; the name of a parameter is that on the wire"
        )
    if field.default_factory is not None:
        if field.default_factory_takes_validated_data:
            raise TypeError(f"{field!r}: expected a default_factory without parameters")
        return annotation, _MISSING, field.default_factory
    return annotation, _MISSING if field.is_required() else field.default, None


def _is_field_info(value: Any) -> bool:
    kind: Any = value.__class__
    return (kind.__module__, kind.__name__) == ("pydantic.fields", "FieldInfo")


def _accepts_none(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(_accepts_none(part) for part in typing.get_args(annotation))
    return annotation in (Any, None, type(None))


def _without_notes(annotation: Any, documented: str | None) -> tuple[Any, str | None]:
    """The annotation without plain-text notes, and the parameter's description.

    A description in the annotation wins over the docstring's.
    """
    if typing.get_origin(annotation) is not Annotated:
        return annotation, documented
    kind, *notes = typing.get_args(annotation)
    description = documented
    metadata: list[Any] = []
    for note in notes:
        text = note if isinstance(note, str) else getattr(note, "documentation", None)
        if isinstance(text, str):
            description = text
        else:
            metadata.append(note)
            description = getattr(note, "description", None) or description
    for note in metadata:
        kind = Annotated[kind, note]
    return kind, description


def _default(value: object) -> Any:
    """The default of a Struct field; a mutable value is copied for each call."""
    if value is _MISSING:
        return msgspec.NODEFAULT
    if isinstance(value, _COPIED):
        return msgspec.field(default_factory=partial(copy.copy, value))
    if isinstance(value, _SHARED):
        return value
    return msgspec.field(default_factory=lambda: value)


def _struct(label: str, fields: list[Field], *, forbid_unknown: bool) -> type[msgspec.Struct]:
    try:
        return msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=forbid_unknown
        )
    except TypeError as error:
        raise TypeError(f"{label}: {one_line(error)}") from error


def first_paragraph(docstring: str | None) -> str | None:
    """The first paragraph of a docstring on one line, or `None` if there is none."""
    lines: list[str] = []
    for line in inspect.cleandoc(docstring or "").splitlines():
        if not line.strip():
            break
        lines.append(line.strip())
    return " ".join(lines) or None


def parameter_descriptions(docstring: str | None) -> dict[str, str]:
    """Description by parameter name, each on one line; text in another form is ignored."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    texts: dict[str, list[str]] = {}
    current: list[str] | None = None  # the description that further lines continue
    head: str | None = None  # what begins a description in the section
    outer = depth = 0  # indents of the section's title and of its descriptions
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        is_numpy = text == "Parameters" and set(following.strip()) == {"-"}
        if match := re.match(_SPHINX, text):
            head, current = None, texts.setdefault(match[1], [])
            current[:] = [match[2]]
        elif is_numpy or text in _GOOGLE_TITLES:
            head, current = _NUMPY if is_numpy else _GOOGLE, None
            outer, depth = -1 if is_numpy else indent, 1000
        elif not text:
            current = current if head else None
        elif head is None or indent > depth:
            current = None if head is None and text.startswith(":") else current
            if current is not None:
                current.append(text)
        elif head is _NUMPY and set(text) == {"-"}:
            continue
        elif indent > outer and (match := re.match(head, text)):
            depth, current = indent, texts.setdefault(match[1], [])
            current[:] = [match[2]]
        else:
            head = current = None
    joined = {name: " ".join(part.strip() for part in parts) for name, parts in texts.items()}
    return {name: text.strip() for name, text in joined.items() if text.strip()}


def source_name(function: Callable[..., Any]) -> str:
    """The name of a function, or that of the class of another callable."""
    inner: Any = getattr(function, "func", function)
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a call of a function, or of an object with `__call__`, gives a coroutine."""
    kind: Any = type(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(kind.__call__)


def resolved_hints(
    function: Callable[..., Any], label: str, names: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The annotations of a function, with strings resolved to types; raises `TypeError`."""
    annotated: Any = function
    if "<locals>" not in getattr(function, "__qualname__", "<locals>"):
        names = None  # defined in a module: local names of whoever registers it mean other things
    if not isinstance(function, types.FunctionType | types.MethodType | type):
        annotated = getattr(function, "func", None) or type(function).__call__
    try:
        return typing.get_type_hints(annotated, localns=dict(names or {}), include_extras=True)
    except NameError as error:
        raise TypeError(f"{label}: annotation can't be resolved: {error}") from error
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from error


def signature_of(function: Callable[..., Any], label: str) -> inspect.Signature:
    """The parameters of a function; raises `TypeError`."""
    try:
        return inspect.signature(function)
    except NameError as error:  # Python 3.14 evaluates annotations here
        raise TypeError(f"{label}: annotation can't be resolved: {error}") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{label}: expected a function, got {function!r}") from error


def local_names(frame: types.FrameType | None) -> Mapping[str, Any] | None:
    """The local names where the function of a frame was called; `None` at the top of a module.

    Frames of the toolkit itself are skipped.
    """
    caller = None if frame is None else frame.f_back
    while caller is not None and caller.f_globals.get("__package__") == __package__:
        caller = caller.f_back
    if caller is None or caller.f_locals is caller.f_globals:
        return None
    return dict(caller.f_locals)


def is_context(annotation: Any) -> bool:
    """Whether an annotation is `Context`, perhaps in a union."""
    if typing.get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(is_context(part) for part in typing.get_args(annotation))
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Context)
