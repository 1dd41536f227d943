"""Resources: contents that a client reads by URI, single or by URI template.

Source: server/resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ..._wire import encode, is_many, to_builtins
from ...errors import InvalidParamsError, ResourceNotFoundError
from ...foreign_text import safe_repr
from ...protocol.uris import is_uri
from ...values.value_types import to_json
from . import signatures, uri_templates
from .callables import source_name
from .client_features.input_required import InputRequired, without_input_required
from .content import (
    Audio,
    Contents,
    File,
    Image,
    Text,
    check_mime_type,
    expect,
    is_content,
    present,
)
from .context import Context
from .registry import NO_CACHING, CacheHint

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
        self.uri = uri
        self.name = name or source_name(function)
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
            if self.template is not None and uri_templates.takes_any_path(each.annotation)
        )
        expect(cache, CacheHint, "cache")
        self._cache = cache
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
            uri_templates.check_values(values, self._any_path)
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
        hint = NO_CACHING if context.is_retry else self._cache  # answers belong to one user
        return {"contents": self._contents(uri, value), **hint.wire()}

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        items: list[Any] = list(value) if _is_many(value, self._returns) else [value]
        return [self._content(uri, item) for item in items]

    def _content(self, uri: str, value: Any) -> dict[str, Any]:
        if value is None:
            raise TypeError(f"{self.label}: expected contents, got None")
        if not isinstance(value, Contents):
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

    def _template(self) -> uri_templates.UriTemplate:
        optional = {p.name for p in self._signature.parameters.values() if not p.required}
        try:
            return uri_templates.UriTemplate(self.uri, frozenset(optional))
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
    return all(isinstance(item, Contents) for item in value)


def find_resource(
    uri: str, resources: Mapping[str, Resource], templates: Mapping[str, Resource]
) -> tuple[Resource, Mapping[str, Any]]:
    """The resource of a requested URI, and the values of its template's variables.

    Raises:
        InvalidParamsError: The URI is invalid, or a value leaves its directory.
        ResourceNotFoundError: No resource has this URI.
    """
    uri_templates.check_requested(uri)
    resource = resources.get(uri)
    if resource is not None:
        return resource, {}
    for template in list(templates.values()):
        values = template.values(uri)
        if values is not None:
            return template, values
    raise ResourceNotFoundError(uri)
