"""URI templates (RFC 6570) that match URIs.

The library `uritemplate` parses and expands templates but can't match them. Here a template is a
sequence of parts: literals and variables. A first pass goes through the parts from last to first,
and marks the positions of the URI where the part can start so that the rest of the template matches
the rest of the URI. A second pass reads the values from first to last. Each pass looks at every
character once per part, so the time is linear in the URI even if many divisions match.

If several divisions match, the first variable gets the longest possible value; `{+x}` and `{#x}`,
which accept any character, get the shortest. Values are percent-decoded.

Source: RFC 6570 section 3.2.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from ...errors import MissingExtraError
from ...foreign_text import is_uri

_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*")

_QUERY = frozenset("?&")


class _Literal(msgspec.Struct, frozen=True):
    """A literal part of the template."""

    text: str

    def starts(self, uri: str, after: bytearray) -> bytearray:
        """Positions of a URI where the part can start, if the next one starts at one of `after`."""
        reachable = bytearray(len(after))
        at = uri.find(self.text)
        while at >= 0:
            reachable[at] = after[at + len(self.text)]
            at = uri.find(self.text, at + 1)
        return reachable

    def read(self, uri: str, at: int, after: bytearray) -> tuple[int, str | None]:
        """The end of the part that starts at `at`, and no value."""
        return at + len(self.text), None


class _Variable(msgspec.Struct, frozen=True):
    """A variable with the text before its value; for a query, all variables of the expression.

    Attributes:
        name: Its name; for a query, the name of the first variable.
        operator: The operator of its expression.
        explode: Whether the value is a list.
        prefix: Text before the value.
        optional: Whether a URI may omit the variable.
    """

    name: str
    operator: str
    explode: bool
    prefix: str
    optional: bool

    def starts(self, uri: str, after: bytearray) -> bytearray:
        """Positions of a URI where the part can start, if the next one starts at one of `after`."""
        form = _FORMS[self.operator]
        size = len(uri)
        least, excluded = form.least, form.excluded
        separator = form.separator if self.explode else ""
        values = bytearray(len(after))  # where a value may begin
        inside = after[size]
        values[size] = inside if least == 0 else 0
        for at in range(size - 1, -1, -1):
            char = uri[at]
            longer = 0 if char in excluded else inside
            inside = after[at] or longer or (values[at + 1] if char == separator else 0)
            values[at] = longer if least else inside
        if not self.prefix and not self.optional:
            return values
        reachable = after[:] if self.optional else bytearray(len(after))
        at = uri.find(self.prefix)
        while at >= 0:
            reachable[at] = reachable[at] or any(
                values[start] for start in self._value_starts(uri, at)
            )
            at = uri.find(self.prefix, at + 1)
        return reachable

    def read(self, uri: str, at: int, after: bytearray) -> tuple[int, str | None]:
        """The end of the part that starts at `at`, and its value; `None` if omitted."""
        if uri.startswith(self.prefix, at):
            for start in self._value_starts(uri, at):
                end = self._end(uri, start, after)
                if end is not None:
                    return end, uri[start:end]
        return at, None

    def _value_starts(self, uri: str, at: int) -> tuple[int, ...]:
        """Possible starts of the value if its prefix is at `at`; best first."""
        start = at + len(self.prefix)
        if self.operator == ";" and uri.startswith("=", start):
            return start + 1, start
        return (start,)

    def _end(self, uri: str, start: int, after: bytearray) -> int | None:
        """The end of the value that starts at `start`; `None` if no value can start there."""
        form = _FORMS[self.operator]
        separator = form.separator if self.explode else ""
        end: int | None = None
        item, at = start, start
        while True:
            if at - item >= form.least and after[at]:
                end = at
                if not form.greedy:
                    return end
            if at == len(uri):
                return end
            if uri[at] == separator and at - item >= form.least:
                item = at + 1
            elif uri[at] in form.excluded:
                return end
            at += 1


class UriTemplate:
    """An RFC 6570 template that URIs are matched against.

    Args:
        text: The template, such as `weather://{city}/now{?units}`.
        optional: Variables that a URI may omit; variables of a query are always optional.

    Attributes:
        names: Its variables, in order.
        exploded: Those of them whose value is a list.

    Raises:
        MissingExtraError: `uritemplate` is not installed.
        ValueError: Not a template, or one that can't be matched.
    """

    def __init__(self, text: str, optional: frozenset[str] = frozenset()) -> None:
        try:
            library: Any = importlib.import_module("uritemplate")
        except ImportError as error:
            raise MissingExtraError("a resource template", "uritemplate") from error
        _check_braces(text)
        self.text = text
        self._optional = optional
        self._exploded: list[str] = []
        self._queries: dict[str, Mapping[str, bool]] = {}
        self._parts: list[_Literal | _Variable] = []
        names: list[str] = []
        try:
            parsed: list[Any] = list(library.URITemplate(text).variables)
        except ValueError as error:
            raise ValueError(f"{text!r}: not an RFC 6570 template: {error}") from error
        literals = re.split(r"\{[^{}]*\}", text)
        self._prefix = literals[0]
        for expression, literal in zip(parsed, literals[1:], strict=True):
            names += self._add_expression(expression)
            self._add_literal(literal)
        self.names = tuple(names)
        self.exploded = frozenset(self._exploded)
        if len(set(names)) < len(names):
            raise ValueError(f"{text!r}: expected each variable once, got {', '.join(names)}")
        if not is_uri(re.sub(r"\{[^{}]*\}", "x", text)):
            raise ValueError(f"{text!r}: expected a template of an absolute URI")

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The values of the variables, or `None` if the URI does not match.

        An exploded variable (`{/path*}`) has a list. Omitted variables are absent.
        """
        rest = uri.removeprefix(self._prefix)
        if len(rest) == len(uri) and self._prefix:
            return None
        reachable = [bytearray(len(rest)) + b"\1"]
        for part in reversed(self._parts):
            reachable.append(part.starts(rest, reachable[-1]))
        return self._values(rest, reachable) if reachable.pop()[0] else None

    def _values(self, uri: str, reachable: list[bytearray]) -> dict[str, str | list[str]] | None:
        values: dict[str, str | list[str]] = {}
        at = 0
        for part in self._parts:
            at, text = part.read(uri, at, reachable.pop())
            if text is None or isinstance(part, _Literal):
                continue
            if part.operator not in _QUERY:
                values[part.name] = _value(text, part)
            elif (pairs := _pairs(text, self._queries[part.name])) is None:
                return None
            else:
                values.update(pairs)
        return values

    def _add_literal(self, text: str) -> None:
        if text:
            self._parts.append(_Literal(text))

    def _add_expression(self, expression: Any) -> Sequence[str]:
        """Add the variables of an expression; return their names."""
        operator: str = expression.operator.value
        if operator not in _FORMS:
            raise ValueError(f"{self.text!r}: operator {operator!r} has no meaning yet (RFC 6570)")
        exploded: dict[str, bool] = {}
        names: list[str] = []
        for name, options in expression.variables:
            if not _NAME.fullmatch(name) or expression.defaults:
                raise ValueError(
                    f"{self.text!r}: expected a variable's name, got {expression.original!r}"
                )
            if options["prefix"] is not None:
                raise ValueError(
                    f"{self.text!r}: a prefix ({name}:{options['prefix']}) can't be read backwards"
                )
            names.append(name)
            exploded[name] = bool(options["explode"])
        self._exploded += [name for name in names if exploded[name]]
        if operator in _QUERY:
            self._queries[names[0]] = exploded
            self._parts.append(_Variable(names[0], operator, False, operator, True))
            return names
        form = _FORMS[operator]
        for index, name in enumerate(names):
            prefix = form.prefix if index == 0 else form.separator
            prefix += name if operator == ";" else ""
            optional = name in self._optional
            self._parts.append(_Variable(name, operator, exploded[name], prefix, optional))
        return names


class _Form(msgspec.Struct, frozen=True):
    """The form of the values of an operator.

    Attributes:
        prefix: Text before the first value.
        separator: Text between two values, and between the items of a list.
        excluded: Characters that a value can't contain.
        least: Least length of a value.
        greedy: Whether the longest match is preferred.
    """

    prefix: str
    separator: str
    excluded: str
    least: int = 1
    greedy: bool = True


_FORMS: Mapping[str, _Form] = {
    "": _Form("", ",", "/?#,"),
    "+": _Form("", ",", "", greedy=False),
    "#": _Form("#", ",", "", greedy=False),
    ".": _Form(".", ".", "./?#,"),
    "/": _Form("/", "/", "/?#"),
    ";": _Form(";", ";", ";/?#", least=0),
    "?": _Form("?", "&", "#", least=0),
    "&": _Form("&", "&", "#", least=0),
}
"""The form of the values by operator."""


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


def _pairs(query: str, exploded: Mapping[str, bool]) -> dict[str, str | list[str]] | None:
    """Values of a query's variables in any order; `None` if it has an unknown name."""
    values: dict[str, str | list[str]] = {}
    for pair in query.split("&") if query else ():
        name, _, text = pair.partition("=")
        if name not in exploded:
            return None
        if exploded[name]:
            items = values.setdefault(name, [])
            if isinstance(items, list):
                items.append(unquote(text))
        elif name in values:
            return None
        else:
            values[name] = unquote(text)
    return values
