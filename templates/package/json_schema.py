"""Values held against JSON Schemas that come as data: a user's own, or a server's.

`jsonschema` does it, imported only then. References beyond the schema itself are never fetched.

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
    checker = kind(schema, registry=dialects.REGISTRY)

    def complaint(value: Any) -> str | None:
        try:
            error = library.exceptions.best_match(checker.iter_errors(value))
        except referencing.Unresolvable as unresolved:
            return f"the schema has a reference that leads nowhere: {unresolved.ref!r}"
        except RecursionError:
            return "the schema goes round in circles, or the value is too deep"
        if error is None:
            return None
        where = error.json_path.removeprefix("$").removeprefix(".")
        return f"{where}: {error.message}" if where else str(error.message)

    return complaint
