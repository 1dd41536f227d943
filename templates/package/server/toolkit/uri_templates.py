"""URIs, and RFC 6570 templates read backwards: from a URI to the values of its variables.

The library `uritemplate` parses a template; it can only expand. Here a template is a row of parts,
literal texts and variables. For each part, last one first, the places of the URI are marked at
which it may begin so that the rest of the template fits the rest of the URI. Then the values are
read, first one first. Both passes look at each character once for each part, so no URI takes long,
however many ways there are to divide it.

Of a text that several values could have made, the first value is the longest possible; of `{+x}`
and `{#x}`, which take any character, it is the shortest. A value is percent-decoded.

Source: server/resources#resource-templates, RFC 6570 section 3.2.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, get_args, get_origin
from urllib.parse import unquote

import msgspec

from ...errors import InvalidParamsError, MissingExtraError
from ...foreign_text import safe_repr
from ...protocol.uris import climbs, is_uri, leaves_its_place

URI_LIMIT = 8192
"""Characters of a URI that a client may ask for; a longer one is refused."""

_TAKES_ANY = "takes any path"

AnyPath: TypeAlias = Annotated[str, msgspec.Meta(extra={_TAKES_ANY: True})]
"""The type of a template's variable whose value may be any path.

Without it a value that leads out of its place is refused before the function runs: one with a part
`..`, an absolute path, a drive letter, a NUL character, or any of these still percent-encoded. Use
it where the function itself decides which paths are allowed:

    @server.resource("file://{+path}")
    async def read(path: AnyPath) -> bytes: ...

Source: server/resources (security considerations).
"""

_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*")

_QUERY = frozenset("?&")


def check_requested(uri: str) -> str:
    """The URI of a request, if it can be served at all.

    Raises:
        InvalidParamsError: Not an absolute URI, longer than `URI_LIMIT`, or a `file:` path that
            climbs upwards.
    """
    if len(uri) > URI_LIMIT:
        raise InvalidParamsError(
            f"uri: expected at most {URI_LIMIT} characters, got {len(uri)} (toolkit.uris.URI_LIMIT)"
        )
    if not is_uri(uri):
        raise InvalidParamsError(f"uri: expected an absolute URI, got {safe_repr(uri)}")
    if uri[:5].lower() == "file:" and climbs(uri):
        raise InvalidParamsError(f"uri: expected a path without '..', got {safe_repr(uri)}")
    return uri


def check_values(values: Mapping[str, str | list[str]], any_path: frozenset[str]) -> None:
    """Refuse values of a template's variables that lead out of their place.

    Args:
        values: By the variable's name.
        any_path: Variables that may have any value; see `AnyPath`.

    Raises:
        InvalidParamsError: One of the others has a part `..`, is absolute, or has a NUL.
    """
    for name, value in values.items():
        if name not in any_path:
            for text in [value] if isinstance(value, str) else value:
                if leaves_its_place(text):
                    raise InvalidParamsError(
                        f"uri: {name}: expected a path that stays in its place, without '..', "
                        f"leading separator, drive letter and NUL, got {safe_repr(text)}"
                    )


def takes_any_path(annotation: Any) -> bool:
    """Whether the type of a parameter is `AnyPath`, or holds it, as `list[AnyPath]` does."""
    if get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        marked = any(
            isinstance(each, msgspec.Meta) and bool((each.extra or {}).get(_TAKES_ANY))
            for each in metadata
        )
        return marked or takes_any_path(kind)
    return any(takes_any_path(inner) for inner in get_args(annotation))


class _Literal(msgspec.Struct, frozen=True):
    """A text of the template that stands in each URI as it is."""

    text: str

    def begins(self, uri: str, after: bytearray) -> bytearray:
        """Where in a URI it may begin, if what follows may begin at the marks of `after`."""
        marks = bytearray(len(after))
        at = uri.find(self.text)
        while at >= 0:
            marks[at] = after[at + len(self.text)]
            at = uri.find(self.text, at + 1)
        return marks

    def read(self, uri: str, at: int, after: bytearray) -> tuple[int, str | None]:
        """Where it ends in a URI in which it begins at `at`."""
        return at + len(self.text), None


class _Variable(msgspec.Struct, frozen=True):
    """A variable and what stands before its value; of a query, all variables of the expression.

    Attributes:
        name: Its name; of a query that of the first one.
        operator: The operator of its expression.
        explode: Whether it is a list.
        lead: Text before the value.
        optional: Whether a URI may leave it out.
    """

    name: str
    operator: str
    explode: bool
    lead: str
    optional: bool

    def begins(self, uri: str, after: bytearray) -> bytearray:
        """Where in a URI it may begin, if what follows may begin at the marks of `after`."""
        form = _FORMS[self.operator]
        size = len(uri)
        least, excluded = form.least, form.excluded
        separator = form.separator if self.explode else ""
        values = bytearray(size + 1)  # where a value may begin
        inside = after[size]
        values[size] = inside if least == 0 else 0
        for at in range(size - 1, -1, -1):
            char = uri[at]
            longer = 0 if char in excluded else inside
            inside = after[at] or longer or (values[at + 1] if char == separator else 0)
            values[at] = longer if least else inside
        if not self.lead and not self.optional:
            return values
        marks = after[:] if self.optional else bytearray(size + 1)
        at = uri.find(self.lead)
        while at >= 0:
            marks[at] = marks[at] or any(values[start] for start in self._starts(uri, at))
            at = uri.find(self.lead, at + 1)
        return marks

    def read(self, uri: str, at: int, after: bytearray) -> tuple[int, str | None]:
        """Where it ends in a URI in which it begins at `at`, and its value; `None` if left out."""
        if uri.startswith(self.lead, at):
            for start in self._starts(uri, at):
                end = self._end(uri, start, after)
                if end is not None:
                    return end, uri[start:end]
        return at, None

    def _starts(self, uri: str, at: int) -> tuple[int, ...]:
        """Where its value may begin if its lead is at `at`; best first."""
        start = at + len(self.lead)
        if self.operator == ";" and uri.startswith("=", start):
            return start + 1, start
        return (start,)

    def _end(self, uri: str, start: int, after: bytearray) -> int | None:
        """Where a value that begins at `start` ends; `None` if there is no such value."""
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
        if len(set(names)) < len(names):
            raise ValueError(f"{text!r}: expected each variable once, got {', '.join(names)}")
        if not is_uri(re.sub(r"\{[^{}]*\}", "x", text)):
            raise ValueError(f"{text!r}: expected a template of an absolute URI")

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The variables' values, or `None` if the URI is not one of this template's.

        An exploded variable (`{/path*}`) gives a list. What a URI leaves out is absent.
        """
        rest = uri.removeprefix(self._prefix)
        if len(rest) == len(uri) and self._prefix:
            return None
        marks = [bytearray(len(rest)) + b"\1"]
        for part in reversed(self._parts):
            marks.append(part.begins(rest, marks[-1]))
        return self._values(rest, marks) if marks.pop()[0] else None

    def _values(self, uri: str, marks: list[bytearray]) -> dict[str, str | list[str]] | None:
        values: dict[str, str | list[str]] = {}
        at = 0
        for part in self._parts:
            at, text = part.read(uri, at, marks.pop())
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
        """Add the variables of an expression; returns their names."""
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
        if operator in _QUERY:
            self._queries[names[0]] = exploded
            self._parts.append(_Variable(names[0], operator, False, operator, True))
            return names
        form = _FORMS[operator]
        for index, name in enumerate(names):
            lead = form.lead if index == 0 else form.separator
            lead += name if operator == ";" else ""
            optional = name in self._optional
            self._parts.append(_Variable(name, operator, exploded[name], lead, optional))
        return names


class _Form(msgspec.Struct, frozen=True):
    """How the values of an operator's variables look.

    Attributes:
        lead: What comes before the first one.
        separator: What comes between two, and between the items of a list.
        excluded: Characters that a value does not have.
        least: How many characters it has at least.
        greedy: Whether the first one that fits is the longest one.
    """

    lead: str
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
"""By operator."""


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
    """Values of a query's variables in any order; `None` if it names another one."""
    values: dict[str, str | list[str]] = {}
    for pair in query.split("&") if query else ():
        name, _, text = pair.partition("=")
        if name not in exploded:
            return None
        if exploded[name]:
            held = values.setdefault(name, [])
            if isinstance(held, list):
                held.append(unquote(text))
        elif name in values:
            return None
        else:
            values[name] = unquote(text)
    return values
