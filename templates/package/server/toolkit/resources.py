"""Resources: contents that a client reads by URI, single or by URI template (RFC 6570).

The library `uritemplate` parses and expands templates but can't match them. Here a template is a
sequence of parts: literals and variables. A first pass goes through the parts from last to first,
and marks the positions of the URI where the part can start so that the rest of the template matches
the rest of the URI. A second pass reads the values from first to last. Each pass looks at every
character once per part, so the time is linear in the URI even if many divisions match.

If several divisions match, the first variable gets the longest possible value; `{+x}` and `{#x}`,
which accept any character, get the shortest. Values are percent-decoded.

Source: server/resources, server/resources#resource-templates, RFC 6570 section 3.2.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, get_args, get_origin
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from ..._wire import encode, is_many, to_builtins
from ...errors import InvalidParamsError, MissingExtraError, ResourceNotFoundError
from ...foreign_text import climbs, is_uri, leaves_its_place, safe_repr
from ...values.value_types import to_json
from . import signatures
from .content import (
    Audio,
    Contents,
    File,
    Image,
    Text,
    check_mime_type,
    expect,
    is_content,
    is_model,
    present,
)
from .context import Context
from .features import InputRequired, without_input_required
from .registry import NO_CACHING, CacheHint, Respond

URI_LIMIT = 8192
"""Most characters of a requested URI."""

_ANY_PATH = "takes any path"

AnyPath: TypeAlias = Annotated[str, msgspec.Meta(extra={_ANY_PATH: True})]
"""The type of a template variable whose value may be any path.

For other types a value that leaves its directory is refused before the function runs: a value with
a segment `..`, an absolute path, a drive letter, a NUL character, or any of these percent-encoded.
Use `AnyPath` if the function itself decides which paths are allowed:

    @server.resource("file://{+path}")
    async def read(path: AnyPath) -> bytes: ...

Source: server/resources (security considerations).
"""

_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*")

_QUERY = frozenset("?&")

_JSON, _TEXT, _BINARY = "application/json", "text/plain", "application/octet-stream"


class Resource:
    """A function that returns the contents of one URI, or of the URIs of a template.

    Args:
        function: Coroutine function, or a plain function, which runs in a worker thread. For a
            template it takes the variables by name; a value that leaves its directory, such as
            `../x`, is refused unless the parameter's type is `AnyPath`. It returns text, bytes,
            an image, audio or a file, `Contents`, a list of `Contents`, or another value that has a
            JSON form.
        uri: URI, or URI template (RFC 6570) if it holds a `{`.
        name: Its name; that of the function by default.
        mime_type: MIME type of the contents.
        members: Further members of the wire object, such as `title`.
        cache: The cache hint of the contents.
        names: Further names that the annotations may use.

    Attributes:
        template: The template, or `None` for a single URI.
        scopes: Scopes that reading needs.
        tags: Names for groups of items.
        cache: As passed.
        respond: `None`: the server handles the requests about it.
        dependencies: What other functions provide for a call, if anything.

    Raises:
        TypeError: The parameters do not match the template's variables.
        ValueError: Not a URI, not a template, or not a MIME type.
        MissingExtraError: The URI is a template, and `uritemplate` is not installed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str | None,
        mime_type: str | None,
        members: Mapping[str, Any],
        cache: CacheHint,
        names: Mapping[str, Any] | None,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.uri = uri
        self.name = name or signatures.source_name(function)
        self.label = f"resource {uri!r}"
        self._signature = signatures.read(function, self.label, names)
        self.dependencies = self._signature.dependencies
        self._returns = without_input_required(self._signature.returns)
        self.template = self._template() if "{" in uri else None
        if self.template is None and not is_uri(uri):
            raise ValueError(f"{self.label}: expected an absolute URI (RFC 3986)")
        self._check_parameters()
        self._any_path = frozenset(
            each.name
            for each in self._signature.parameters.values()
            if self.template is not None and _takes_any_path(each.annotation)
        )
        expect(cache, CacheHint, "cache")
        self.cache = cache
        self._mime_type = check_mime_type(mime_type) if mime_type is not None else None
        self._wire = present(
            **{"uri" if self.template is None else "uriTemplate": uri},
            name=self.name,
            mimeType=mime_type,
            **{"description": self._signature.description, **members},
        )

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The resource in the result of its list request, in its newest form."""
        return self._wire

    def values(self, uri: str) -> dict[str, Any] | None:
        """The values of the template's variables in a URI, or `None` if the URI does not match.

        Raises:
            InvalidParamsError: A value leaves its directory; see `AnyPath`.
        """
        values = None if self.template is None else self.template.match(uri)
        if values is not None:
            _check_values(values, self._any_path)
        return values

    async def read(self, uri: str, values: Mapping[str, Any], context: Context) -> Any:
        """The result of `resources/read` as wire object, or the `InputRequired` of the function.

        Raises:
            InvalidParamsError: A variable's value does not fit the function's parameter.
        """
        try:
            bound = self._signature.bind_strings(values, context)
        except ValueError as error:
            raise InvalidParamsError(f"uri {safe_repr(uri)}: {error}") from error
        value = await self._signature.call(**bound)
        if isinstance(value, InputRequired):
            return value
        hint = NO_CACHING if context.is_retry else self.cache  # answers belong to one user
        return {"contents": self._contents(uri, value), **hint.wire()}

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        if is_model(value, "contents"):
            value = value.contents
        items: list[Any] = list(value) if _is_many(value, self._returns) else [value]
        return [self._content(uri, item) for item in items]

    def _content(self, uri: str, value: Any) -> dict[str, Any]:
        if value is None:
            raise TypeError(f"{self.label}: expected contents, got None")
        if not _is_contents(value):
            value = self._as_contents(value)
        wire: dict[str, Any] = to_builtins(value)
        wire.setdefault("uri", uri)
        return wire

    def _as_contents(self, value: Any) -> Contents:
        if isinstance(value, str):
            return Contents(text=value, mime_type=self._mime_type or _TEXT)
        if isinstance(value, bytes | bytearray):
            return Contents(blob=bytes(value), mime_type=self._mime_type or _BINARY)
        if isinstance(value, Image | Audio):
            return Contents(blob=value.data, mime_type=self._mime_type or value.mime_type)
        if isinstance(value, Text):
            return Contents(text=value.text, mime_type=self._mime_type or _TEXT)
        if isinstance(value, File):
            return replace(value.resource, uri="")
        if is_content(value):
            raise TypeError(f"{self.label}: expected contents, got {type(value).__name__}")
        text = encode(to_json(value)).decode()
        return Contents(text=text, mime_type=self._mime_type or _JSON)

    def _template(self) -> UriTemplate:
        optional = {p.name for p in self._signature.parameters.values() if not p.required}
        try:
            return UriTemplate(self.uri, frozenset(optional))
        except ValueError as error:
            raise ValueError(f"resource template {error}") from error

    def _check_parameters(self) -> None:
        variables = self.template.names if self.template is not None else ()
        parameters = self._signature.parameters
        unknown = [name for name in variables if name not in parameters]
        if unknown and not self._signature.open:
            raise TypeError(f"{self.label}: the function takes no {', '.join(unknown)}")
        unset = [p.name for p in parameters.values() if p.required and p.name not in variables]
        if unset:
            raise TypeError(f"{self.label}: nothing in the URI gives {', '.join(unset)}")
        if self.template is not None:
            for name in self.template.exploded & parameters.keys():
                kinds = parameters[name].json_types()
                if kinds and "array" not in kinds:
                    raise TypeError(
                        f"{self.label}: {name}* is a list of values, and the function takes no "
                        f"list; {{+{name}}} is one value that may have slashes"
                    )


def _is_many(value: Any, annotation: Any) -> bool:
    """Whether a value is a list of contents; an empty list is one only by its annotation."""
    if not is_many(value):
        return False
    if not value:
        return Contents in getattr(annotation, "__args__", ())
    return all(map(_is_contents, value))


def _is_contents(value: object) -> bool:
    """Whether a value is a `Contents`, or a generated model of contents."""
    if isinstance(value, Contents):
        return True
    return is_model(value, "uri", "mime_type") and not is_content(value)


def find_resource(
    uri: str, resources: Mapping[str, Resource], templates: Mapping[str, Resource]
) -> tuple[Resource, Mapping[str, Any]]:
    """The resource of a requested URI, and the values of its template's variables.

    Raises:
        InvalidParamsError: The URI is invalid, or a value leaves its directory.
        ResourceNotFoundError: No resource has this URI.
    """
    check_requested(uri)
    resource = resources.get(uri)
    if resource is not None:
        return resource, {}
    for template in list(templates.values()):
        values = template.values(uri)
        if values is not None:
            return template, values
    raise ResourceNotFoundError(uri)


def check_requested(uri: str) -> str:
    """The URI of a request, after a check of its form.

    Raises:
        InvalidParamsError: Not an absolute URI, longer than `URI_LIMIT`, or a `file:` path with
            a segment `..`.
    """
    if len(uri) > URI_LIMIT:
        raise InvalidParamsError(
            f"uri: expected at most {URI_LIMIT} characters, got {len(uri)} (resources.URI_LIMIT)"
        )
    if not is_uri(uri):
        raise InvalidParamsError(f"uri: expected an absolute URI, got {safe_repr(uri)}")
    if uri[:5].lower() == "file:" and climbs(uri):
        raise InvalidParamsError(f"uri: expected a path without '..', got {safe_repr(uri)}")
    return uri


def _check_values(values: Mapping[str, str | list[str]], any_path: frozenset[str]) -> None:
    """Refuse values of template variables that leave their directory.

    Args:
        values: Values by name of the variable.
        any_path: Variables that accept any value; see `AnyPath`.

    Raises:
        InvalidParamsError: Another value has a segment `..`, is absolute, or has a NUL.
    """
    for name, value in values.items():
        if name not in any_path:
            for text in [value] if isinstance(value, str) else value:
                if leaves_its_place(text):
                    raise InvalidParamsError(
                        f"uri: {name}: expected a path that stays in its place, without '..', "
                        f"leading separator, drive letter and NUL, got {safe_repr(text)}"
                    )


def _takes_any_path(annotation: Any) -> bool:
    """Whether the type of a parameter is or contains `AnyPath`, as `list[AnyPath]` does."""
    if get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        is_any_path = any(
            isinstance(each, msgspec.Meta) and bool((each.extra or {}).get(_ANY_PATH))
            for each in metadata
        )
        return is_any_path or _takes_any_path(kind)
    return any(_takes_any_path(inner) for inner in get_args(annotation))


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
        values = bytearray(size + 1)  # where a value may begin
        inside = after[size]
        values[size] = inside if least == 0 else 0
        for at in range(size - 1, -1, -1):
            char = uri[at]
            longer = 0 if char in excluded else inside
            inside = after[at] or longer or (values[at + 1] if char == separator else 0)
            values[at] = longer if least else inside
        if not self.prefix and not self.optional:
            return values
        reachable = after[:] if self.optional else bytearray(size + 1)
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
