"""Filters for templates of the user's own: values of `mcpgen.spec` as Python, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

from mcpgen import names
from mcpgen.literals import Code, double_quoted, literal
from mcpgen.model import docstrings
from mcpgen.spec import naming
from mcpgen.spec.form import as_json
from mcpgen.spec.values import TypeExpression

Quotes: TypeAlias = Literal["double", "any"]
"""The quotes of texts: double ones, or those of Python's `repr`."""

_SCALARS = {
    "any": "Any",
    "null": "None",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "string": "str",
}
_CELL = str.maketrans({"\\": "\\\\", "|": "\\|", "<": "&lt;", "\r": " ", "\n": " "})


def python_type(
    kind: TypeExpression,
    prefix: str = "",
    array: str = "list",
    map: str = "dict",
    write: Callable[[Any], Code] = literal,
) -> Code:
    """A type as a Python annotation.

    Args:
        kind: The type.
        prefix: Text before the name of each type, such as `models.`.
        array: The type of an array.
        map: The type of a map.
        write: Writes a value as a literal.
    """

    def inner(each: TypeExpression) -> Code:
        return python_type(each, prefix, array, map, write)

    match kind:
        case TypeExpression(kind="reference", name=str(name)):
            return Code(f"{prefix}{name}")
        case TypeExpression(kind="literal", values=values):
            return Code(f"Literal[{', '.join(write(value) for value in values)}]")
        case TypeExpression(kind="array", items=TypeExpression() as items):
            return Code(f"{array}[{inner(items)}]")
        case TypeExpression(kind="map", items=TypeExpression() as items):
            return Code(f"{map}[str, {inner(items)}]")
        case TypeExpression(kind="union", alternatives=alternatives):
            return _join(inner(each) for each in alternatives)
        case _ if kind.kind in _SCALARS:
            return Code(_SCALARS[kind.kind])
        case _:  # a template may give a type with a name
            expected = "expected the type of a member or of an item"
            raise ValueError(f"{expected}, got {type(kind).__name__}")


def _join(types: Iterable[str]) -> Code:
    """A union of annotations, each once, `None` last."""
    return Code(" | ".join(sorted(dict.fromkeys(types), key=lambda kind: kind == "None")))


def docstring(text: str, indent: int = 0, source: str = "") -> Code:
    """A text as a docstring with its quotes, wrapped at an indentation.

    Args:
        text: The text; an empty line begins a paragraph.
        indent: Columns before the docstring.
        source: A sentence to append, such as one that names a page.
    """
    return docstrings.docstring(text.split("\n\n"), indent, source)


def comment(text: str, prefix: str = "# ") -> Code:
    """A text as comments of Python, a line each, in ASCII."""
    lines = (ascii(line)[1:-1] for line in text.splitlines())
    return Code("\n".join(f"{prefix}{line}".rstrip() for line in lines) or prefix.rstrip())


def cell(text: str) -> str:
    """A text for a cell of a table in Markdown: on one line, without markup that ends the cell."""
    return str(text).translate(_CELL)


def to_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON."""
    return json.dumps(as_json(value), indent=indent, ensure_ascii=False)


def constant(name: str) -> str:
    """A name as a constant of Python: `tools/call` gives `TOOLS_CALL`."""
    return "_".join(word.upper() for part in name.split("/") for word in names.words(part))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "camel": naming.camel,
    "cell": cell,
    "comment": comment,
    "constant": constant,
    "docstring": docstring,
    "json": to_json,
    "literal": literal,
    "pascal": naming.pascal,
    "python_type": python_type,
    "snake": names.snake,
}
"""The filters by name."""


def filters_for(quotes: Quotes) -> Mapping[str, Callable[..., Any]]:
    """The filters by name, with literals in a style.

    Args:
        quotes: The quotes of texts.
    """
    write = partial(literal, write_text=double_quoted) if quotes == "double" else literal
    return {**FILTERS, "literal": write, "python_type": partial(python_type, write=write)}
