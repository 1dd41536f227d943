"""Values as Python source: the one place where foreign text becomes a literal or a docstring.

Text of a schema, of facts or of documentation may hold anything. The source made here is ASCII, and
no character of the text can end the string that holds it. `Code` marks such source; `source_text`
checks every value that a template writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeGuard

from mcpgen.json_types import is_array, is_object

WIDTH = 100
"""Limit of the length of a written line."""

_PLAIN = re.compile(r"[\w.,|\[\] -]*")
"""Names, types and numbers: neither quotes, brackets of a call, operators nor line ends."""


class Code(str):
    """Python source that this module wrote, or that was put together from such source."""

    __slots__ = ()


def literal(value: Any, write_text: Callable[[str], str] = ascii) -> Code:
    """A value as a Python literal, in ASCII.

    Args:
        value: Text, a finite number, a boolean, `None`, or a list, tuple or dict of these.
        write_text: Writes a text as a literal in ASCII.

    Raises:
        ValueError: There is no literal for the value.
    """
    if isinstance(value, str):
        return Code(write_text(str(value)))
    if value is None or isinstance(value, bool | int):
        return Code(repr(value))
    if isinstance(value, float) and math.isfinite(value):
        return Code(repr(value))
    if is_object(value):
        pairs = (
            f"{literal(key, write_text)}: {literal(item, write_text)}"
            for key, item in value.items()
        )
        return Code("{" + ", ".join(pairs) + "}")
    if is_array(value):
        return Code(f"[{', '.join(literal(item, write_text) for item in value)}]")
    if _is_tuple(value):
        items = ", ".join(literal(item, write_text) for item in value)
        return Code(f"({items},)" if len(value) == 1 else f"({items})")
    raise ValueError(f"expected a value with a Python literal, got {type(value).__name__}")


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def double_quoted(text: str) -> str:
    """A text as a literal in double quotes, or in those that need fewer escapes, as Black does."""
    single = ascii(text)
    return single if '"' in single else f'"{single[1:-1]}"'


def escape_docstring(text: str) -> str:
    """Escape a text for the inside of a triple-quoted docstring: ASCII, line ends kept.

    Three quotes in a row become apostrophes, and so does a quote at the very end. Other characters
    outside printable ASCII are written as escapes; a tab becomes spaces.
    """
    lines = text.replace("\r\n", "\n").expandtabs().split("\n")
    safe = "\n".join(_escape_line(line) for line in lines).replace('"""', "'''")
    return f"{safe[:-1]}'" if safe.endswith('"') else safe


def _escape_line(line: str) -> str:
    safe = line.replace("\\", "\\\\")
    if safe.isascii() and safe.isprintable():
        return safe
    return "".join(
        char if char.isascii() and char.isprintable() else ascii(char)[1:-1] for char in safe
    )


def docstring(text: str) -> Code:
    """A text as a docstring with its quotes; its lines stay as they are.

    The first line stands behind the opening quotes; the others have the indentation of the text.
    """
    return Code(f'"""{escape_docstring(text)}"""')


def ascii_source(source: str) -> Code:
    """Convert source, in which only literals hold foreign text, to ASCII."""
    return Code(source.encode("ascii", "backslashreplace").decode("ascii"))


def source_text(value: object) -> str:
    """The source that a template may write for a value: `Code`, a number, or names and types.

    Raises:
        ValueError: The value is arbitrary text, which has to be a literal.
    """
    if isinstance(value, Code):
        return value
    if isinstance(value, bool | int) or (isinstance(value, str) and _PLAIN.fullmatch(value)):
        return str(value)
    raise ValueError(f"expected a name or a literal in a template, got {ascii(value)[:60]}")
