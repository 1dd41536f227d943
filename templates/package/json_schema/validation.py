"""Validation of values against JSON Schemas that arrive as data, from a user or a server.

The library `jsonschema` validates; it is imported at its first use. References to other documents
are never fetched. A short schema can require unlimited work, so the work of every keyword is
bounded: it is counted in steps of some microseconds, and checked against the clock. A small
validation runs in the event loop. A larger validation is restarted in a worker thread, so that the
event loop is not blocked, and is abandoned at its deadline.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from .._wire import is_many, is_object
from ..errors import MissingExtraError
from ..foreign_text import SHOWN_TEXT, join_errors, safe_repr, safe_text
from . import CheckedSchema, Complaint, Deadline, JsonSchema

if TYPE_CHECKING:  # imported where they are used: they load slowly, and few programs need them
    from .keywords import Keyword

STEPS = 50_000
"""Steps allowed for any value: applied keywords, or work of the same duration."""

STEPS_PER_PART = 50
"""Further steps allowed for each part of the value: each object, array, member and item."""

SCHEMA_PARTS = 100_000
"""Most parts of a schema, counted like the parts of a value."""

INLINE_STEPS = 2_000
"""Steps run in the event loop, some milliseconds, before a worker thread takes over."""

INLINE_PARTS = 2_000
"""Most parts of a value or schema that is processed in the event loop."""

THREADS = 2
"""Worker threads of one event loop that validate at the same time."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of a schema without `$schema`."""

_ERRORS = 32  # most errors of one value and one schema, and most candidates for the best error
_STEPS_PER_CLOCK = 200

Result = TypeVar("Result")


class _TooManyStepsError(Exception):
    """A schema requires too much work."""


class _OutOfTimeError(Exception):
    """The deadline has passed, or the work allowed in the event loop is used up."""


class _SchemaError(ValueError):
    """The data is not a schema, or is a schema that can't be used."""

    def __init__(self, reason: str, kind: str = "not a JSON Schema that can be read") -> None:
        super().__init__(f"{kind}: {reason}")


class _Work(local):
    """The work allowed in this thread.

    Attributes:
        is_inline: Whether the thread runs an event loop.
        end: The deadline, by the monotonic clock.
    """

    is_inline = False
    end = float("inf")

    def __init__(self) -> None:
        self._left = STEPS
        self._until_clock = 0

    def begin(self, parts: int) -> None:
        """Start with a value of this many parts, including the value itself."""
        self._left = INLINE_STEPS if self.is_inline else STEPS + STEPS_PER_PART * parts

    def take(self, steps: int = 1) -> None:
        """Count steps before they are executed."""
        self._left -= steps
        if self._left < 0:
            raise _OutOfTimeError if self.is_inline else _TooManyStepsError
        self._until_clock -= steps
        if self._until_clock < 0:
            self._until_clock = _STEPS_PER_CLOCK
            self.look_at_clock()

    def look_at_clock(self) -> None:
        """Check the deadline."""
        if time.monotonic() > self.end:
            raise _OutOfTimeError

    def count(self, parts: int) -> None:
        """Check the number of parts of a value so far."""
        if self.is_inline and parts > INLINE_PARTS:
            raise _OutOfTimeError
        self.look_at_clock()

    def count_in_schema(self, parts: int) -> None:
        """Check the number of parts of a schema so far."""
        if parts > SCHEMA_PARTS:
            raise _SchemaError(f"it has more than {SCHEMA_PARTS} parts")
        self.count(parts)

    @contextmanager
    def limit(self, *, is_inline: bool, end: float) -> Generator[None]:
        """Limit the work in the block."""
        self.is_inline, self.end = is_inline, end
        try:
            yield
        finally:
            self.is_inline, self.end = False, float("inf")


_work = _Work()
_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("json_schema")


def validator(schema: JsonSchema, feature: str) -> Complaint:
    """Compile a schema. If a reference can't be resolved, no value is valid.

    Args:
        schema: The schema. A `CheckedSchema` is compiled at its first use.
        feature: The feature that needs validation, for error texts.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ValueError: The schema is invalid in its dialect or too large, or the dialect is unknown.
    """
    try:
        library: Any = importlib.import_module("jsonschema")
    except ImportError as error:
        raise MissingExtraError(feature, "jsonschema") from error
    if isinstance(schema, CheckedSchema):
        return _late_complaint(library, schema)
    return partial(_complaint, _compile(library, schema))


def _late_complaint(library: Any, schema: JsonSchema) -> Complaint:
    """A check of values that compiles the schema for the first value."""
    checker: Any = None

    def complain(value: Any) -> str | None:
        nonlocal checker
        try:
            checker = checker or _compile(library, schema)
        except _SchemaError as error:
            return str(error)
        return _complaint(checker, value)

    return complain


def _compile(library: Any, schema: JsonSchema) -> Any:
    """Compile a schema to the library's validator; errors are those of `validator`."""
    try:
        return _checker(library, schema)
    except (_OutOfTimeError, _SchemaError):
        raise
    except RecursionError:
        raise _SchemaError("it is nested too deep") from None
    except Exception as error:
        raise _SchemaError(_type_name(error)) from error


async def validator_in_time(schema: JsonSchema, feature: str, deadline: Deadline) -> Complaint:
    """Compile a schema as `validator` does, in a worker thread if it takes long.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ValueError: See `validator`; or the deadline has passed.
    """
    try:
        return await _in_time(partial(validator, schema, feature), deadline.end)
    except _OutOfTimeError:
        raise _SchemaError(f"not within {deadline}") from None


async def complaint_in_time(complaint: Complaint, value: Any, deadline: Deadline) -> str | None:
    """The errors of a value, or `None`; validates in a worker thread if it takes long.

    If the deadline passes, the error says so.
    """
    try:
        return await _in_time(partial(complaint, value), deadline.end)
    except _OutOfTimeError:
        return f"it can't be held against the schema within {deadline}"


async def _in_time(work: Callable[[], Result], end: float) -> Result:
    """Run a little work in the event loop, and more work in a worker thread."""
    try:
        with _work.limit(is_inline=True, end=end):
            return work()
    except _OutOfTimeError:
        pass

    def run_limited() -> Result:
        with _work.limit(is_inline=False, end=end):
            return work()

    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
    with anyio.move_on_after(end - time.monotonic()):
        return await anyio.to_thread.run_sync(run_limited, limiter=limiter, abandon_on_cancel=True)
    raise _OutOfTimeError


def _checker(library: Any, schema: JsonSchema) -> Any:
    """The library's validator for a schema."""
    from .keywords import ID_CHARACTERS, Copier

    copier = Copier(_work.count_in_schema)
    copied = copier.copy(schema)
    if copier.id_characters > ID_CHARACTERS:
        raise _SchemaError(f"its identifiers have more than {ID_CHARACTERS} characters")
    dialect = copied.get("$schema", DIALECT)
    kind = library.validators.validator_for({"$schema": dialect}, default=None)
    if kind is None:
        raise _SchemaError(
            f"$schema: expected a JSON Schema dialect that is known, got {dialect!r}"
        )
    _work.begin(copier.parts)
    try:
        error = _best(library, _meta_checker(library, kind), copied)
    except _TooManyStepsError:
        raise _SchemaError("it takes too much work") from None
    if error is not None:
        raise _SchemaError(error, "not a JSON Schema")
    specifications: Any = importlib.import_module("jsonschema_specifications")
    dialects: Any = importlib.import_module("referencing.jsonschema")
    resource = dialects.specification_with(kind.META_SCHEMA["$schema"]).create_resource(copied)
    uri = resource.id() or ""
    registry = specifications.REGISTRY.with_resource(uri, resource).crawl()
    return _bounded_class(kind)(copied, registry=registry, _resolver=registry.resolver(uri))


@lru_cache
def _meta_checker(library: Any, kind: Any) -> Any:
    """The validator for schemas of a dialect; it also checks their patterns."""
    from .keywords import Copier
    from .patterns import PatternError

    formats = library.FormatChecker(formats=())
    formats.checks("regex", raises=PatternError)(_is_pattern)
    schema = Copier(_accept_parts).copy(kind.META_SCHEMA)
    return _bounded_class(kind)(schema, format_checker=formats)


def _accept_parts(parts: int) -> None:
    """Accept any number of parts."""


def _is_pattern(text: object) -> bool:
    from .patterns import pattern_of

    if isinstance(text, str):
        pattern_of(text)
    return True


def _complaint(checker: Any, value: Any) -> str | None:
    """The errors of a value in one line, or `None`."""
    from .keywords import Copier
    from .patterns import PatternError

    library: Any = importlib.import_module("jsonschema")
    copier = Copier(_work.count)
    try:
        copied = copier.copy(value)
        _work.begin(copier.parts)
        errors: list[Any] = list(islice(checker.iter_errors(copied), _ERRORS))
        texts = [_text_of(library.exceptions.best_match([error])) for error in errors]
        return join_errors(list(dict.fromkeys(texts))) or None
    except _TooManyStepsError:
        return "the schema asks for more work than the value is worth"
    except _OutOfTimeError:
        raise
    except RecursionError:
        return "the schema goes round in circles, or the value is too deep"
    except PatternError as error:
        return f"the schema has a {error}"
    except Exception as error:
        if isinstance(error, _unresolvable_error()):
            shown = safe_repr(getattr(error, "ref", ""))
            return f"the schema has a reference that leads nowhere: {shown}"
        return f"the schema can't be applied to it ({_type_name(error)})"


def _type_name(error: Exception) -> str:
    """The type of a library's exception, whose text may contain the whole schema."""
    return type(error).__name__


def _unresolvable_error() -> type[Exception]:
    library: Any = importlib.import_module("referencing.exceptions")
    kind: type[Exception] = library.Unresolvable
    return kind


def _best(library: Any, checker: Any, value: Any) -> str | None:
    """The most relevant error in one line, or `None`."""
    error = library.exceptions.best_match(islice(checker.iter_errors(value), _ERRORS))
    return None if error is None else _text_of(error)


def _text_of(error: Any) -> str:
    """An error of the library in one line."""
    from .patterns import PatternError

    reason = f": {error.cause}" if isinstance(error.cause, PatternError) else ""
    message = safe_text(f"{error.message}{reason}", 3 * SHOWN_TEXT)
    where = safe_text(error.json_path.removeprefix("$").removeprefix("."))
    return f"{where}: {message}" if where else message


@lru_cache
def _bounded_class(kind: Any) -> Any:
    """A class of validators like `kind`, with bounded work.

    A subschema may have another dialect; the class for its dialect is bounded as well.
    """
    from .keywords import Keywords

    library: Any = importlib.import_module("jsonschema")
    fields: Any = importlib.import_module("attrs").fields
    bounded = Keywords(library.ValidationError, _work.take)
    keywords = {
        name: _count_work(name, bounded.implementation(name, original))
        for name, original in kind.VALIDATORS.items()
    }
    extended = library.validators.extend(kind, keywords)
    plain_evolve, plain_descend = extended.evolve, extended.descend

    def evolve(self: Any, **changes: Any) -> Any:
        schema = changes.get("schema")
        _work.take(1 + len(schema) // 20 if is_object(schema) else 1)
        evolved = plain_evolve(self, **changes)
        if type(evolved) is extended:
            return evolved
        members = {f.alias: getattr(evolved, f.name) for f in fields(evolved.__class__) if f.init}
        return _bounded_class(evolved.__class__)(**members)

    def descend(self: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
        _work.take()
        return islice(plain_descend(self, *arguments, **options), _ERRORS)

    extended.evolve, extended.descend = evolve, descend
    return extended


def _count_work(name: str, keyword: Keyword) -> Keyword:
    """A keyword that counts its work in advance, and the length of its errors."""

    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _work.take(_steps(name, value, instance))
        for error in keyword(validator, value, instance, schema) or ():
            _work.take(1 + len(error.message) // 100)
            yield error

    return apply


def _steps(name: str, value: Any, instance: Any) -> int:
    """The steps of a keyword, without those of its subschemas."""
    if name in _REFERENCES and isinstance(value, str):
        return 1 + len(value) // 50 + value.count("/") ** 2 // 50
    steps = 1
    if name not in _COMPARING and (is_object(value) or is_many(value)):
        steps += len(value) // 50
    if name in _DEPENDENCIES and is_object(value):
        steps += sum(len(names) for names in value.values() if is_many(names)) // 50
    if name in _OVER_MEMBERS and (is_object(instance) or is_many(instance)):
        steps += len(instance) // 50
    return steps


_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_COMPARING = frozenset({"const", "enum"})
_DEPENDENCIES = frozenset({"dependentRequired", "dependencies"})
_OVER_MEMBERS = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "items",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that visit each member of a value, even without a subschema for it."""
