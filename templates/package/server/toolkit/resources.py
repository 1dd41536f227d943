"""Resources: what a client can read under a URI, one by one or by template.

Source: server/resources.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._wire import encode, is_many, to_builtins
from ...errors import InvalidParamsError
from ...foreign_text import safe_repr
from ...protocol.uris import is_uri
from . import docstrings, invocation, signatures, uri_templates
from .cache_hints import NO_PROMISE, CacheHint
from .client_features.input_required import InputRequired, without_input_required
from .content import Annotations, Contents, Icon, check_mime_type, expect, present
from .context import Context

_JSON, _TEXT, _BINARY = "application/json", "text/plain", "application/octet-stream"


class Resource:
    """A function that gives the contents of one URI, or of all that a template makes.

    Args:
        function: Coroutine function, or a plain one that then runs in a thread. Of a template it
            takes the variables by name; a value that leads out of its place, such as `../x`, is
            refused unless the parameter's type is `AnyPath`. It returns text, bytes, `Contents`, a
            list of them, or anything else that has a JSON form.
        uri: URI, or URI template (RFC 6570) if it holds a `{`.
        name: Its name; that of the function by default.
        title: A name for people.
        description: What it is; the docstring's first paragraph by default.
        mime_type: Type of its contents.
        size: Bytes of its content before any encoding, if known.
        annotations: Whom it is for.
        icons: Images for user interfaces.
        meta: `_meta` of the resource.
        cache: How long clients may keep what they read, and for whom.
        names: Further names that the annotations may use.

    Attributes:
        template: The template, or `None` for a single URI.

    Raises:
        TypeError: The function does not take the template's variables.
        ValueError: Not a URI, not a template, not a MIME type.
        MissingExtraError: A template, and `uritemplate` is not installed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        cache: CacheHint = NO_PROMISE,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.name = name or invocation.source_name(function)
        self.label = f"resource {uri!r}"
        self._signature = signatures.read(function, self.label, names)
        self._returns = without_input_required(self._signature.returns)
        self.template = self._template() if "{" in uri else None
        if self.template is None and not is_uri(uri):
            raise ValueError(f"{self.label}: expected an absolute URI (RFC 3986)")
        self._check_parameters()
        self._any_path = frozenset(
            each.name
            for each in self._signature.parameters.values()
            if self.template is not None and uri_templates.takes_any_path(each.annotation)
        )
        expect(cache, CacheHint, "cache")
        self._cache = cache
        self._mime_type = check_mime_type(mime_type) if mime_type is not None else None
        self._call = invocation.caller(function)
        self._listed = present(
            **{"uri" if self.template is None else "uriTemplate": uri},
            name=self.name,
            title=title,
            description=description or docstrings.paragraph(inspect.getdoc(function)),
            mimeType=mime_type,
            size=size,
            annotations=to_builtins(annotations) if annotations else None,
            icons=[to_builtins(icon) for icon in icons] or None,
            _meta=dict(meta) if meta else None,
        )

    def listed(self, structured: str) -> dict[str, Any]:
        """The resource as its list request shows it, the same whatever the revision."""
        return self._listed

    def values(self, uri: str) -> dict[str, Any] | None:
        """The template's variables in a URI, or `None` if it is not one of its URIs.

        Raises:
            InvalidParamsError: A value leads out of its place; see `AnyPath`.
        """
        values = None if self.template is None else self.template.match(uri)
        if values is not None:
            uri_templates.check_values(values, self._any_path)
        return values

    async def read(self, uri: str, values: Mapping[str, Any], context: Context) -> Any:
        """The result of `resources/read` as wire object, or what it needs to be told first.

        Raises:
            InvalidParamsError: A variable's value does not fit the function's parameter.
        """
        try:
            bound = self._signature.bind_text(values)
        except ValueError as error:
            raise InvalidParamsError(f"uri {safe_repr(uri)}: {error}") from error
        if self._signature.context is not None:
            bound[self._signature.context] = context
        value = await self._call(bound)
        if isinstance(value, InputRequired):
            return value
        hint = NO_PROMISE if context.is_retry else self._cache  # others may be told otherwise
        return {"contents": self._contents(uri, value), **hint.wire()}

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        items: list[Any] = list(value) if _is_many(value, self._returns) else [value]
        return [self._content(uri, item) for item in items]

    def _content(self, uri: str, value: Any) -> dict[str, Any]:
        if value is None:
            raise TypeError(f"{self.label}: expected contents, got None")
        if not isinstance(value, Contents):
            value = self._made(value)
        made: dict[str, Any] = to_builtins(value)
        made.setdefault("uri", uri)
        return made

    def _made(self, value: Any) -> Contents:
        if isinstance(value, str):
            return Contents(text=value, mime_type=self._mime_type or _TEXT)
        if isinstance(value, bytes | bytearray):
            return Contents(blob=bytes(value), mime_type=self._mime_type or _BINARY)
        text = encode(value).decode()
        return Contents(text=text, mime_type=self._mime_type or _JSON)

    def _template(self) -> uri_templates.UriTemplate:
        optional = {p.name for p in self._signature.parameters.values() if not p.required}
        try:
            return uri_templates.UriTemplate(self.uri, frozenset(optional))
        except ValueError as error:
            raise ValueError(f"resource template {error}") from error

    def _check_parameters(self) -> None:
        named = self.template.names if self.template is not None else ()
        parameters = self._signature.parameters
        unknown = [name for name in named if name not in parameters]
        if unknown and not self._signature.open:
            raise TypeError(f"{self.label}: the function takes no {', '.join(unknown)}")
        lacking = [p.name for p in parameters.values() if p.required and p.name not in named]
        if lacking:
            raise TypeError(f"{self.label}: nothing in the URI gives {', '.join(lacking)}")


def _is_many(value: Any, annotation: Any) -> bool:
    """Whether a value is a list of contents; an empty one needs the annotation to say so."""
    if not is_many(value):
        return False
    if not value:
        return Contents in getattr(annotation, "__args__", ())
    return all(isinstance(item, Contents) for item in value)
