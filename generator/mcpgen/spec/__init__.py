"""The protocol as finished values: a public interface for whoever renders files of their own.

`load("all")` reads revisions that mcpgen has, schema files and extensions, and returns a
`Specification`: revisions with their types, methods, facts, extensions and errata, and the
differences of neighbours. The classes are frozen and documented; `SPEC_VERSION` is their version.
`json_schema()` describes the form in which `as_json` writes them and `from_json` reads them.
"""

from __future__ import annotations

from mcpgen.spec.form import as_json, from_json, json_schema
from mcpgen.spec.loading import load
from mcpgen.spec.values import (
    SPEC_VERSION,
    Alternative,
    Bounds,
    Change,
    Deprecation,
    Difference,
    Erratum,
    Extension,
    Member,
    Method,
    Methods,
    Note,
    Revision,
    Role,
    Specification,
    Type,
    TypeExpression,
    TypeKind,
    Union,
)

__all__ = [
    "SPEC_VERSION",
    "Alternative",
    "Bounds",
    "Change",
    "Deprecation",
    "Difference",
    "Erratum",
    "Extension",
    "Member",
    "Method",
    "Methods",
    "Note",
    "Revision",
    "Role",
    "Specification",
    "Type",
    "TypeExpression",
    "TypeKind",
    "Union",
    "as_json",
    "from_json",
    "json_schema",
    "load",
]
