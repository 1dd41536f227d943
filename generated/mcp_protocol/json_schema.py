"""Values held against JSON Schemas that come as data: a user's own, or a server's.

`jsonschema` does it, imported only then. References beyond the schema itself are never fetched. The
work that a schema may ask for is bounded: a few lines of it can ask for more than there is time.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .errors import MissingExtraError

JsonSchema: TypeAlias = Mapping[str, Any]
"""A JSON Schema as decoded JSON."""

Complaint: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, in one line, or `None` if nothing is."""

STEPS = 50_000
"""How many keywords may be applied to a value, however small it is."""

STEPS_PER_PART = 50
"""How many more for each part of the value: each object, each array, each member of one."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What a schema without `$schema` is written in."""


def validator(schema: JsonSchema, feature: str) -> Complaint:
    """What says how a value breaks a schema. A schema that leads nowhere allows no value.

    Args:
        feature: What needs it, for the error text.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ValueError: Not a schema of its dialect, or of a dialect that is not known.
    """
    try:
        library: Any = importlib.import_module("jsonschema")
        dialects: Any = importlib.import_module("jsonschema_specifications")
        referencing: Any = importlib.import_module("referencing.exceptions")
    except ImportError as error:
        raise MissingExtraError(feature, "jsonschema") from error
    dialect = schema.get("$schema", DIALECT)
    kind = library.validators.validator_for({"$schema": dialect}, default=None)
    if kind is None:
        raise ValueError(f"$schema: expected a JSON Schema dialect that is known, got {dialect!r}")
    try:
        kind.check_schema(schema)
    except library.exceptions.SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {error.message}") from error
    except RecursionError:
        raise ValueError("not a JSON Schema that can be read: it is nested too deep") from None
    steps = _Steps()
    checker = _bounded(kind, steps, library.validators.extend)(schema, registry=dialects.REGISTRY)

    def complaint(value: Any) -> str | None:
        steps.begin(value)
        try:
            error = library.exceptions.best_match(checker.iter_errors(value))
        except referencing.Unresolvable as unresolved:
            return f"the schema has a reference that leads nowhere: {unresolved.ref!r}"
        except _TooManyStepsError:
            return "the schema asks for more work than the value is worth"
        except RecursionError:
            return "the schema goes round in circles, or the value is too deep"
        if error is None:
            return None
        where = error.json_path.removeprefix("$").removeprefix(".")
        return f"{where}: {error.message}" if where else str(error.message)

    return complaint


class _TooManyStepsError(Exception):
    """A schema asks for too much work."""


class _Steps:
    """Counts what is done to hold one value against a schema."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self, value: Any) -> None:
        """A new value comes."""
        self._left = STEPS + STEPS_PER_PART * _parts(value)

    def take(self) -> None:
        """One step more.

        Raises:
            _TooManyStepsError: There were too many.
        """
        self._left -= 1
        if self._left < 0:
            raise _TooManyStepsError


def _parts(value: Any) -> int:
    """How many parts a value of JSON has, itself included."""
    count = 0
    waiting = [value]
    while waiting:
        here = waiting.pop()
        count += 1
        if isinstance(here, Mapping):
            waiting += here.values()
        elif isinstance(here, list | tuple):
            waiting += here
    return count


def _bounded(kind: Any, steps: _Steps, extend: Callable[..., Any]) -> Any:
    """A class of validators like `kind` that counts its steps.

    A part of a schema may name a dialect of its own; the class for that counts them too.
    """
    fields: Any = importlib.import_module("attrs").fields

    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def apply(*arguments: Any) -> Any:
            steps.take()
            return keyword(*arguments)

        return apply

    made = extend(kind, {name: counted(keyword) for name, keyword in kind.VALIDATORS.items()})
    plain_evolve = made.evolve

    def evolve(self: Any, **changes: Any) -> Any:
        steps.take()
        evolved = plain_evolve(self, **changes)
        if type(evolved) is made:
            return evolved
        given = {f.alias: getattr(evolved, f.name) for f in fields(type(evolved)) if f.init}
        return _bounded(type(evolved), steps, extend)(**given)

    made.evolve = evolve
    return made
