"""Values held against JSON Schemas that come as data: a user's own, or a server's.

`jsonschema` does it, imported only then. References beyond the schema itself are never fetched. A
few lines of a schema can ask for more work than there is time, so the work is bounded, whatever
the keyword: it is counted in steps of some microseconds, and it looks at the clock. A little of it
is done at once; what takes longer is begun anew in a worker thread, so that an event loop goes on
meanwhile, and is given up when its time is over.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from threading import local
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from .._wire import is_many, is_object
from ..errors import MissingExtraError
from ..foreign_text import SHOWN_TEXT, safe_repr, safe_text

if TYPE_CHECKING:  # imported where they are used: they take long, and few need them
    from .keywords import Keyword

JsonSchema: TypeAlias = Mapping[str, Any]
"""A JSON Schema as decoded JSON."""

Complaint: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, in one line, or `None` if nothing is."""

STEPS = 50_000
"""How many steps a value may take, however small it is: keywords applied, or work as long."""

STEPS_PER_PART = 50
"""How many more for each part of the value: each object, each array, each member of one."""

SCHEMA_PARTS = 100_000
"""Most parts of a schema, counted like those of a value."""

VALIDATION_SECONDS = 10.0
"""How long a value may be held against a schema, unless something else is set."""

INLINE_STEPS = 2_000
"""Steps that are done in the event loop, some milliseconds, before a worker thread takes over."""

INLINE_PARTS = 2_000
"""Most parts of a value, or of a schema, that is looked at in the event loop."""

THREADS = 2
"""How many worker threads of one event loop hold values against schemas at the same time."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What a schema without `$schema` is written in."""

_ERRORS = 32  # of one value and one schema that are compared for the best one
_STEPS_PER_CLOCK = 200

Result = TypeVar("Result")


class _TooManyStepsError(Exception):
    """A schema asks for too much work."""


class _OutOfTimeError(Exception):
    """The time is over, or what may be done in the event loop."""


class _SchemaError(ValueError):
    """A schema is none, or can't be read."""

    def __init__(self, reason: str, kind: str = "not a JSON Schema that can be read") -> None:
        super().__init__(f"{kind}: {reason}")


class _Work(local):
    """What may still be done in this thread.

    Attributes:
        is_inline: Whether an event loop waits.
        end: When to stop, by the monotonic clock.
    """

    is_inline = False
    end = float("inf")

    def __init__(self) -> None:
        self._left = STEPS
        self._until_clock = 0

    def begin(self, parts: int) -> None:
        """Begin with a value of a number of parts, itself included."""
        self._left = INLINE_STEPS if self.is_inline else STEPS + STEPS_PER_PART * parts

    def take(self, steps: int = 1) -> None:
        """Take note of steps that will be done now.

        Raises:
            _TooManyStepsError: There were too many.
            _OutOfTimeError: There were too many for the event loop, or the time is over.
        """
        self._left -= steps
        if self._left < 0:
            raise _OutOfTimeError if self.is_inline else _TooManyStepsError
        self._until_clock -= steps
        if self._until_clock < 0:
            self._until_clock = _STEPS_PER_CLOCK
            self.look_at_clock()

    def look_at_clock(self) -> None:
        """Stop if the time is over.

        Raises:
            _OutOfTimeError: It is.
        """
        if time.monotonic() > self.end:
            raise _OutOfTimeError

    def count(self, parts: int) -> None:
        """Take note of how many parts have been found in a value.

        Raises:
            _OutOfTimeError: There are too many for the event loop, or the time is over.
        """
        if self.is_inline and parts > INLINE_PARTS:
            raise _OutOfTimeError
        self.look_at_clock()

    def count_in_schema(self, parts: int) -> None:
        """The same for a schema.

        Raises:
            _SchemaError: There are too many for any schema.
        """
        if parts > SCHEMA_PARTS:
            raise _SchemaError(f"it has more than {SCHEMA_PARTS} parts")
        self.count(parts)

    @contextmanager
    def limited(self, *, is_inline: bool, end: float) -> Generator[None]:
        """Limit what is done meanwhile."""
        self.is_inline, self.end = is_inline, end
        try:
            yield
        finally:
            self.is_inline, self.end = False, float("inf")


_work = _Work()
_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("json_schema")


def validator(schema: JsonSchema, feature: str) -> Complaint:
    """What says how a value breaks a schema. A schema that leads nowhere allows no value.

    Args:
        feature: What needs it, for the error text.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ValueError: Not a schema of its dialect, one of a dialect that is not known, or one that
            is too large to be read.
    """
    try:
        library: Any = importlib.import_module("jsonschema")
    except ImportError as error:
        raise MissingExtraError(feature, "jsonschema") from error
    try:
        return partial(_complaint, _checker(library, schema))
    except (_OutOfTimeError, _SchemaError):
        raise
    except RecursionError:
        raise _SchemaError("it is nested too deep") from None
    except Exception as error:
        raise _SchemaError(_named(error)) from error


@dataclass(frozen=True)
class Deadline:
    """Until when values are held against schemas.

    Attributes:
        seconds: How long that may take in all.
        setting: What sets the seconds, for the error text.
        end: When it ends, by the monotonic clock.
    """

    seconds: float
    setting: str
    end: float

    @classmethod
    def after(cls, seconds: float, setting: str) -> Deadline:
        """A time that begins now."""
        return cls(seconds, setting, time.monotonic() + seconds)

    def __str__(self) -> str:
        return f"{self.seconds:g} s ({self.setting})"


async def validator_in_time(schema: JsonSchema, feature: str, deadline: Deadline) -> Complaint:
    """The same as `validator`, off the event loop if it takes long.

    Raises:
        ValueError: Also if it takes too long.
    """
    try:
        return await _in_time(partial(validator, schema, feature), deadline.end)
    except _OutOfTimeError:
        raise _SchemaError(f"not within {deadline}") from None


async def complaint_in_time(complaint: Complaint, value: Any, deadline: Deadline) -> str | None:
    """What is wrong with a value, found off the event loop if it takes long.

    That it takes too long is wrong, too.
    """
    try:
        return await _in_time(partial(complaint, value), deadline.end)
    except _OutOfTimeError:
        return f"it can't be held against the schema within {deadline}"


async def _in_time(work: Callable[[], Result], end: float) -> Result:
    """Do a little work here, and more than that in a thread.

    Raises:
        _OutOfTimeError: It takes longer than that.
    """
    try:
        with _work.limited(is_inline=True, end=end):
            return work()
    except _OutOfTimeError:
        pass

    def limited() -> Result:
        with _work.limited(is_inline=False, end=end):
            return work()

    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
    with anyio.move_on_after(max(end - time.monotonic(), 0.0)):
        return await anyio.to_thread.run_sync(limited, limiter=limiter, abandon_on_cancel=True)
    raise _OutOfTimeError


def _checker(library: Any, schema: JsonSchema) -> Any:
    """The library's validator for a schema.

    Raises:
        ValueError: Not a schema, or of a dialect that is not known.
        _OutOfTimeError: It takes too long to find out.
    """
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
        wrong = _best(library, _meta_checker(library, kind), copied)
    except _TooManyStepsError:
        raise _SchemaError("it takes too much work") from None
    if wrong is not None:
        raise _SchemaError(wrong, "not a JSON Schema")
    specifications: Any = importlib.import_module("jsonschema_specifications")
    dialects: Any = importlib.import_module("referencing.jsonschema")
    resource = dialects.specification_with(kind.META_SCHEMA["$schema"]).create_resource(copied)
    uri = resource.id() or ""
    registry = specifications.REGISTRY.with_resource(uri, resource).crawl()
    return _bounded(kind)(copied, registry=registry, _resolver=registry.resolver(uri))


@lru_cache
def _meta_checker(library: Any, kind: Any) -> Any:
    """The validator of a dialect's schemas; it also looks at the patterns in them."""
    from .keywords import Copier
    from .patterns import PatternError

    formats = library.FormatChecker(formats=())
    formats.checks("regex", raises=PatternError)(_is_pattern)
    schema = Copier(_nothing).copy(kind.META_SCHEMA)
    return _bounded(kind)(schema, format_checker=formats)


def _nothing(parts: int) -> None:
    """Count nothing."""


def _is_pattern(text: object) -> bool:
    from .patterns import pattern_of

    if isinstance(text, str):
        pattern_of(text)
    return True


def _complaint(checker: Any, value: Any) -> str | None:
    """What is wrong with a value."""
    from .keywords import Copier
    from .patterns import PatternError

    library: Any = importlib.import_module("jsonschema")
    copier = Copier(_work.count)
    try:
        copied = copier.copy(value)
        _work.begin(copier.parts)
        return _best(library, checker, copied)
    except _TooManyStepsError:
        return "the schema asks for more work than the value is worth"
    except _OutOfTimeError:
        raise
    except RecursionError:
        return "the schema goes round in circles, or the value is too deep"
    except PatternError as error:
        return f"the schema has a {error}"
    except Exception as error:
        if isinstance(error, _unresolvable()):
            shown = safe_repr(getattr(error, "ref", ""))
            return f"the schema has a reference that leads nowhere: {shown}"
        return f"the schema can't be applied to it ({_named(error)})"


def _named(error: Exception) -> str:
    """An exception of a library; some write all that they know of the schema into their text."""
    return type(error).__name__


def _unresolvable() -> type[Exception]:
    library: Any = importlib.import_module("referencing.exceptions")
    kind: type[Exception] = library.Unresolvable
    return kind


def _best(library: Any, checker: Any, value: Any) -> str | None:
    """The error that tells most, in one line."""
    from .patterns import PatternError

    error = library.exceptions.best_match(islice(checker.iter_errors(value), _ERRORS))
    if error is None:
        return None
    reason = f": {error.cause}" if isinstance(error.cause, PatternError) else ""
    message = safe_text(f"{error.message}{reason}", 3 * SHOWN_TEXT)
    where = safe_text(error.json_path.removeprefix("$").removeprefix("."))
    return f"{where}: {message}" if where else message


@lru_cache
def _bounded(kind: Any) -> Any:
    """A class of validators like `kind`, whose work is bounded.

    A part of a schema may name a dialect of its own; the class for that is bounded too.
    """
    from .keywords import Keywords

    library: Any = importlib.import_module("jsonschema")
    fields: Any = importlib.import_module("attrs").fields
    own = Keywords(library.ValidationError, _work.take)
    keywords = {
        name: _counted(name, own.instead_of(name, original))
        for name, original in kind.VALIDATORS.items()
    }
    made = library.validators.extend(kind, keywords)
    plain_evolve, plain_descend = made.evolve, made.descend

    def evolve(self: Any, **changes: Any) -> Any:
        schema = changes.get("schema")
        _work.take(1 + len(schema) // 20 if is_object(schema) else 1)
        evolved = plain_evolve(self, **changes)
        if type(evolved) is made:
            return evolved
        given = {f.alias: getattr(evolved, f.name) for f in fields(evolved.__class__) if f.init}
        return _bounded(evolved.__class__)(**given)

    def descend(self: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
        _work.take()
        return islice(plain_descend(self, *arguments, **options), _ERRORS)

    made.evolve, made.descend = evolve, descend
    return made


def _counted(name: str, keyword: Keyword) -> Keyword:
    """A keyword that says beforehand how much work it is, and then how long its errors are."""

    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _work.take(_steps(name, value, instance))
        for error in keyword(validator, value, instance, schema) or ():
            _work.take(1 + len(error.message) // 100)
            yield error

    return apply


def _steps(name: str, value: Any, instance: Any) -> int:
    """Steps of a keyword, without those of the schemas that it applies."""
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
"""Keywords that look at each member of a value, even if they apply no schema to it."""
