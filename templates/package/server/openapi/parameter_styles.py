"""Values as parameters of HTTP requests, in the styles of OpenAPI.

A value in a path is percent-encoded and can't leave its segment. Names and values of a query are
left to the HTTP library, which encodes them.

Source: OpenAPI Specification 3.1.1, Parameter Object (style values), Appendix C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote

from ..._wire import encode, is_many, is_object
from ...foreign_text import safe_repr
from ...framing.http_headers import is_field_value

Place: TypeAlias = Literal["path", "query", "header", "cookie"]

STYLES: Mapping[Place, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
"""The styles of each place; the first one is the default."""

_SEPARATORS: Mapping[str, str] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_DECODED = 3  # a server behind a proxy may decode twice


def text_of(value: Any) -> str:
    """A JSON value as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def path_text(name: str, value: Any, style: str, explode: bool) -> str:
    """A value for a variable of a path template, percent-encoded."""
    if style == "simple":
        return _join_parts(value, ",", explode, _quote)
    if style == "label":
        return "." + _join_parts(value, "." if explode else ",", explode, _quote)
    if explode and (is_many(value) or is_object(value)):
        pairs = value.items() if is_object(value) else ((name, each) for each in value)
        return "".join(f";{_quote(key)}={_quote(each)}" for key, each in pairs)
    return f";{_quote(name)}={_join_parts(value, ',', False, _quote)}"


def check_path_value(value: Any, *, slashes: bool) -> None:
    """Check that a value can't lead to another path on a server that decodes before routing.

    Args:
        value: The value.
        slashes: Whether `/` and `\\` are allowed.

    Raises:
        ValueError: The value is null or empty, has a segment `.` or `..`, a NUL, or a
            slash that is not allowed.
    """
    parts = list(_leaves(value))
    if value is None or not "".join(map(text_of, parts)):
        raise ValueError("expected a value for the path that is not empty")
    for part in parts:
        text = text_of(part)
        for _ in range(_DECODED):
            segments = text.replace("\\", "/").split("/")
            if "\0" in text or ".." in segments or "." in segments:
                raise ValueError(f"expected no '.' or '..' in the path, got {safe_repr(part)}")
            if len(segments) > 1 and not slashes:
                raise ValueError(
                    f"expected no '/' in the path, got {safe_repr(part)} "
                    "(encoded_slashes=True of from_openapi allows it)"
                )
            text = unquote(text)


def query_pairs(name: str, value: Any, style: str, explode: bool) -> Iterator[tuple[str, str]]:
    """Names and values for a query or a form."""
    if style == "deepObject" and is_object(value):
        for key, each in value.items():
            yield from query_pairs(f"{name}[{key}]", each, style, True)
    elif is_object(value) and explode:
        yield from ((key, text_of(each)) for key, each in value.items())
    elif is_many(value) and explode:
        yield from ((name, text_of(each)) for each in value)
    else:
        yield name, _join_parts(value, _SEPARATORS.get(style, ","), False, text_of)


def header_text(value: Any, explode: bool) -> str:
    """A value for a header field.

    Raises:
        ValueError: The value has characters that a header field can't have.
    """
    text = _join_parts(value, ",", explode, text_of)
    if not is_field_value(text):
        raise ValueError(f"expected visible ASCII for a header field, got {safe_repr(text)}")
    return text


def cookie_text(value: Any) -> str:
    """A value for a cookie, percent-encoded."""
    return _join_parts(value, ",", False, _quote)


def _join_parts(value: Any, separator: str, explode: bool, write: Callable[[Any], str]) -> str:
    """A value, or the parts of an array or object, as one text."""
    if is_object(value):
        if explode:
            return separator.join(f"{write(key)}={write(each)}" for key, each in value.items())
        return separator.join(write(part) for pair in value.items() for part in pair)
    if is_many(value):
        return separator.join(map(write, value))
    return write(value)


def _leaves(value: Any) -> Iterator[Any]:
    if is_object(value):
        for key, each in value.items():
            yield key
            yield each
    elif is_many(value):
        yield from value
    else:
        yield value


def _quote(value: Any) -> str:
    return quote(text_of(value), safe="")
