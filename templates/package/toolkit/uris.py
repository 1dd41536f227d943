"""URIs, and RFC 6570 templates read backwards: from a URI to the values of its variables.

The library `uritemplate` parses a template; it can only expand. What an expansion may look like
is known from each expression's operator, so a regular expression finds the values again. A value
found this way is percent-decoded. Of a text that several values could have made, the shortest
first values win, as regular expressions do it.

Source: server/resources#resource-templates, RFC 6570 section 3.2.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from ..addresses import climbs, is_uri
from ..errors import InvalidParamsError, MissingExtraError

_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*")

_PAIRS = frozenset("?&")


def check_requested(uri: str) -> str:
    """The URI of a request, if it can be served at all.

    Raises:
        InvalidParamsError: Not an absolute URI, or a `file:` path that climbs upwards.
    """
    if not is_uri(uri):
        raise InvalidParamsError(f"uri: expected an absolute URI, got {uri!r}")
    if uri[:5].lower() == "file:" and climbs(uri):
        raise InvalidParamsError(f"uri: expected a path without '..', got {uri!r}")
    return uri


class _Variable(msgspec.Struct, frozen=True):
    name: str
    operator: str
    explode: bool
    group: str


class UriTemplate:
    """One template.

    Args:
        text: The template, such as `weather://{city}/now{?units}`.
        optional: Variables that a URI may leave out; those of a query always may be.

    Attributes:
        names: Its variables, in order.

    Raises:
        MissingExtraError: `uritemplate` is not installed.
        ValueError: Not a template, or one that can't be read backwards.
    """

    def __init__(self, text: str, optional: frozenset[str] = frozenset()) -> None:
        try:
            library: Any = importlib.import_module("uritemplate")
        except ImportError as error:
            raise MissingExtraError("a resource template", "uritemplate") from error
        _check_braces(text)
        self.text = text
        self._optional = optional
        self._variables: list[_Variable] = []
        try:
            parsed: list[Any] = list(library.URITemplate(text).variables)
        except ValueError as error:
            raise ValueError(f"{text!r}: not an RFC 6570 template: {error}") from error
        literals = re.split(r"\{[^{}]*\}", text)
        pattern = re.escape(literals[0])
        for expression, literal in zip(parsed, literals[1:], strict=True):
            pattern += self._expression(expression) + re.escape(literal)
        self._pattern = re.compile(pattern)
        self.names = tuple(variable.name for variable in self._variables)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{text!r}: expected each variable once, got {', '.join(self.names)}")
        if not is_uri(re.sub(r"\{[^{}]*\}", "x", text)):
            raise ValueError(f"{text!r}: expected a template of an absolute URI")

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The variables' values, or `None` if the URI is not one of this template's.

        An exploded variable (`{/path*}`) gives a list. What a URI leaves out is absent.
        """
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        values: dict[str, str | list[str]] = {}
        for variables in self._queries():
            given = _pairs(found[variables[0].group], variables)
            if given is None:
                return None
            values.update(given)
        for variable in self._variables:
            text = found[variable.group] if variable.operator not in _PAIRS else None
            if text is not None:
                values[variable.name] = _value(text, variable)
        return values

    def _queries(self) -> Iterator[list[_Variable]]:
        """The variables of each query expression."""
        groups: dict[str, list[_Variable]] = {}
        for variable in self._variables:
            if variable.operator in _PAIRS:
                groups.setdefault(variable.group, []).append(variable)
        yield from groups.values()

    def _expression(self, expression: Any) -> str:
        operator: str = expression.operator.value
        if operator not in _FORMS:
            raise ValueError(f"{self.text!r}: operator {operator!r} has no meaning yet (RFC 6570)")
        made: list[_Variable] = []
        for name, options in expression.variables:
            if not _NAME.fullmatch(name) or expression.defaults:
                raise ValueError(
                    f"{self.text!r}: expected a variable's name, got {expression.original!r}"
                )
            if options["prefix"] is not None:
                raise ValueError(
                    f"{self.text!r}: a prefix ({name}:{options['prefix']}) can't be read backwards"
                )
            number = len(self._variables) + (0 if operator in _PAIRS else len(made))
            made.append(_Variable(name, operator, bool(options["explode"]), f"v{number}"))
        self._variables += made
        if operator in _PAIRS:
            return rf"(?:\{operator}(?P<{made[0].group}>[^#]*))?"
        return "".join(
            self._part(variable, first=index == 0) for index, variable in enumerate(made)
        )

    def _part(self, variable: _Variable, *, first: bool) -> str:
        lead, separator, one = _FORMS[variable.operator]
        before = lead if first else separator
        if variable.operator == ";":
            before += re.escape(variable.name) + "=?"
        body = rf"{one}(?:{separator}{one})*" if variable.explode and separator else one
        part = f"{before}(?P<{variable.group}>{body})"
        return f"(?:{part})?" if variable.name in self._optional else part


_FORMS: Mapping[str, tuple[str, str, str]] = {
    "": ("", ",", r"[^/?#,]+"),
    "+": ("", ",", r".+?"),
    "#": ("#", ",", r".+?"),
    ".": (r"\.", r"\.", r"[^./?#,]+"),
    "/": ("/", "/", r"[^/?#]+"),
    ";": (";", ";", r"[^;/?#]*"),
    "?": (r"\?", "&", ""),
    "&": ("&", "&", ""),
}
"""By operator: what comes before the first value, what between values, and what one looks like."""


def _check_braces(text: str) -> None:
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth not in (0, 1):
            break
    if depth != 0 or "{}" in text:
        raise ValueError(f"{text!r}: not an RFC 6570 template: unbalanced or empty braces")


def _value(text: str, variable: _Variable) -> str | list[str]:
    if not variable.explode:
        return unquote(text)
    separator = {"/": "/", ".": ".", ";": ";"}.get(variable.operator, ",")
    pieces = text.split(separator)
    if variable.operator == ";":
        pieces = [piece.removeprefix(f"{variable.name}=") for piece in pieces]
    return [unquote(piece) for piece in pieces]


def _pairs(query: str | None, variables: list[_Variable]) -> dict[str, str | list[str]] | None:
    """Values of a query's variables in any order; `None` if it names another one."""
    known = {variable.name: variable for variable in variables}
    values: dict[str, str | list[str]] = {}
    for pair in (query or "").split("&") if query else ():
        name, _, text = pair.partition("=")
        if name not in known:
            return None
        if known[name].explode:
            held = values.setdefault(name, [])
            if isinstance(held, list):
                held.append(unquote(text))
        elif name in values:
            return None
        else:
            values[name] = unquote(text)
    return values
