"""Resources: contents that a client reads by URI, single or by URI template (RFC 6570).

Source: server/resources, server/resources#resource-templates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Unpack, get_args, get_origin

import msgspec
from msgspec.structs import replace

from ..._wire import encode, is_many, to_builtins
from ...errors import InvalidParamsError, ResourceNotFoundError
from ...foreign_text import has_parent_segment, is_uri, may_escape_directory, safe_repr
from ...protocol.requests import RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE
from ...runtime.request_context import RequestContext, checked_scopes
from ...values.value_types import to_json
from . import signatures
from .content import (
    Annotations,
    Audio,
    Contents,
    File,
    Icon,
    Image,
    Text,
    UnfinishedResult,
    check_mime_type,
    expect,
    is_content,
    is_model,
    present_members,
    wire_of,
    without_unfinished,
)
from .context import Context
from .dispatcher import Dispatcher, is_permitted
from .registry import RESOURCES_CHANGED, STALE, Respond, checked_tags
from .server import (
    Function,
    ServerKernel,
    adder,
    check_others,
    split_options,
    wire_members,
)
from .signatures import local_names

if TYPE_CHECKING:
    from ..chosen import ResourceOptions
    from .uri_templates import UriTemplate

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

_JSON, _TEXT, _BINARY = "application/json", "text/plain", "application/octet-stream"


class Resource:
    """A function that returns the contents of one URI, or of the URIs of a template.

    Args:
        function: See `ResourceDecorator.resource`, also for errors.
        uri: URI, or URI template (RFC 6570) if it holds a `{`.
        members: Further members of the wire object, such as `title`.
        names: Further names that the annotations may use.
        hint: The cache hint of the contents, as members of the result.

    Attributes:
        template: The template, or `None` for a single URI.
        dependencies: The values that other functions provide for a call, if any.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str | None,
        mime_type: str | None,
        members: Mapping[str, Any],
        names: Mapping[str, Any] | None,
        hint: Mapping[str, Any] = STALE,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.uri = uri
        self.name = name or signatures.source_name(function)
        self.label = f"resource {uri!r}"
        self._signature = signatures.read(function, self.label, names)
        self.dependencies = self._signature.dependencies
        self._returns = without_unfinished(self._signature.returns)
        self.template = self._parse_template() if "{" in uri else None
        if self.template is None and not is_uri(uri):
            raise ValueError(f"{self.label}: expected an absolute URI (RFC 3986)")
        self._check_parameters()
        self._any_path = frozenset(
            each.name
            for each in self._signature.parameters.values()
            if self.template is not None and _takes_any_path(each.annotation)
        )
        self.hint = hint
        self._mime_type = check_mime_type(mime_type) if mime_type is not None else None
        self._wire = present_members(
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
        """The result of `resources/read` as wire object, or the unfinished result of the function.

        Raises:
            InvalidParamsError: A variable's value does not fit the function's parameter.
        """
        try:
            bound = self._signature.bind_strings(values, context)
        except ValueError as error:
            raise InvalidParamsError(f"uri {safe_repr(uri)}: {error}") from error
        value = await self._signature.call(**bound)
        if isinstance(value, UnfinishedResult):
            return value
        hint = STALE if context.is_retry else self.hint  # answers belong to one user
        return {"contents": self._contents(uri, value), **hint}

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

    def _parse_template(self) -> UriTemplate:
        from .uri_templates import UriTemplate  # few servers have templates

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


class SubscriptionOptions(TypedDict, total=False):
    """Subscriptions to resources.

    Attributes:
        subscribe: Whether clients may subscribe to resources (see `Server.resource_updated`).
    """

    subscribe: bool


class ResourceDecorator(ServerKernel):
    """The decorator of resources and templates; a base of `Server`."""

    def _use_options(self, options: dict[str, Any]) -> None:
        dispatcher = self._dispatcher
        dispatcher.add_item_handlers(ITEM_HANDLERS)
        dispatcher.hooks.find_resource = find_resource
        if options.pop("subscribe", False):
            subscription = (SUBSCRIBE, UNSUBSCRIBE), RESOURCE_UPDATED
            dispatcher.with_lists[RESOURCES_CHANGED] = subscription
        super()._use_options(options)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Sequence[Icon] | None = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
        tags: Collection[str] | None = (),
        **options: Unpack[ResourceOptions],
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a resource, or as a resource template.

        A coroutine function, or a plain function, which runs in a worker thread. For a template it
        takes the variables by name; a value that leaves its directory, such as `../x`, is refused
        unless the parameter's type is `AnyPath`. It returns text, bytes, an image, audio or a file,
        `Contents`, a list of `Contents`, or another value that has a JSON form.

        Args:
            uri: URI, or URI template (RFC 6570) if it contains a `{`.
            name: Its name; that of the function by default.
            title: A name for display.
            description: What the resource is; the docstring's first paragraph by default.
            mime_type: MIME type of the contents.
            size: Size of the contents in bytes before encoding, if known.
            annotations: Audience and priority; a mapping has their names.
            icons: Images for user interfaces.
            meta: `_meta` of the resource.
            scopes: Scopes that reading needs, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.
            options: Options of features; see `ResourceOptions`.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the parameters do not
                match the template's variables.
            ValueError: (from the decorator) Not a URI or template, or already registered.
            MissingExtraError: (from the decorator) A template, and `uritemplate` is missing.
        """
        if callable(uri):
            raise TypeError('expected @server.resource("scheme://path"), got @server.resource')
        own, rest = split_options(self._dispatcher, "resource", options)
        required, take_hint = checked_scopes(scopes), self._dispatcher.hooks.resource_hint
        hint = STALE if take_hint is None else take_hint(rest, bool(required))
        check_others(rest, "server.resource", self._absent)
        notes = wire_of(annotations, Annotations, "annotations") if annotations else None
        members = own | wire_members(title, description, icons, meta, notes)
        if size is not None:
            expect(size, int, "size")
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            hooks = self._dispatcher.hooks
            describe = hooks.describe
            shown = members if describe is None else describe(function, members, tags or ())
            resource = Resource(
                function,
                uri,
                name=name,
                mime_type=hooks.mime_type if mime_type is None else mime_type,
                members=shown if size is None else {**shown, "size": size},
                names=names,
                hint=hint,
            )
            registries = self._dispatcher.registries
            registry = registries.resources if resource.template is None else registries.templates
            resource.scopes, resource.tags = required, checked_tags(tags)
            registry.add(uri, resource)
            return function

        return register

    add_resource = adder(resource)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template, also for clients that are connected.

        Raises:
            LookupError: There is no such resource.
        """
        registries = self._dispatcher.registries
        is_template = registries.templates.find(uri) is not None
        (registries.templates if is_template else registries.resources).remove(uri)

    def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribed to a resource of a change.

        Callable from any thread. Returns before the notifications are sent.

        Raises:
            ValueError: The server does not have `subscribe=True`.
        """
        if RESOURCES_CHANGED not in self._dispatcher.with_lists:
            raise ValueError("expected a server made with subscribe=True")
        self._dispatcher.announcer.announce(RESOURCE_UPDATED, {"uri": uri})


def _read_resource(dispatcher: Dispatcher, request: RequestContext) -> Coroutine[Any, Any, Any]:
    uri: str = request.params.uri
    resource, values = resource_of(dispatcher, request, uri)
    if resource.respond is not None and (response := resource.respond(request)) is not None:
        return response
    context = dispatcher.context_of(request)
    return dispatcher.result_of(context, resource.read(uri, values, context))


async def _subscribe(dispatcher: Dispatcher, request: RequestContext) -> None:
    """Check the URI; the connection keeps the subscriptions of a session."""
    resource, _ = resource_of(dispatcher, request, request.params.uri)
    if resource.respond is not None and (response := resource.respond(request)) is not None:
        await response


ITEM_HANDLERS = {
    "resources/read": _read_resource,
    SUBSCRIBE: _subscribe,
    UNSUBSCRIBE: _subscribe,
}
"""Handlers of requests about resources, by wire name."""


def resource_of(
    dispatcher: Dispatcher, request: RequestContext, uri: str
) -> tuple[Resource, Mapping[str, Any]]:
    """The resource that a request is about, and the values of its template's variables.

    Raises:
        InvalidParamsError: The URI is invalid, or a value leaves its directory.
        ResourceNotFoundError: No resource has this URI.
    """
    resources, templates = dispatcher.registries.resources, dispatcher.registries.templates
    try:
        resource, values = find_resource(
            uri, resources.items_for(request), templates.items_for(request)
        )
    except ResourceNotFoundError:
        unregistered = resources.item_of(request, uri)  # of a server that is a proxy
        if unregistered is None:
            raise
        return unregistered, {}
    forbidden = dispatcher.settings.forbidden_items
    if resource.scopes and not is_permitted(resource.scopes, resource.label, forbidden):
        raise ResourceNotFoundError(uri)
    return resource, values


def find_resource(
    uri: str, resources: Mapping[str, Resource], templates: Mapping[str, Resource]
) -> tuple[Resource, Mapping[str, Any]]:
    """The resource of a requested URI, and the values of its variables; raises as `resource_of`."""
    check_requested(uri)
    resource = resources.get(uri)
    if resource is not None:
        return resource, {}
    for template in list(templates.values()):
        values = template.values(uri)
        if values is not None:
            return template, values
    raise ResourceNotFoundError(uri)


def check_requested(uri: str) -> None:
    """Refuse a URI that is not absolute, longer than `URI_LIMIT`, or a `file:` path with `..`."""
    if len(uri) > URI_LIMIT:
        raise InvalidParamsError(
            f"uri: expected at most {URI_LIMIT} characters, got {len(uri)} (resources.URI_LIMIT)"
        )
    if not is_uri(uri):
        raise InvalidParamsError(f"uri: expected an absolute URI, got {safe_repr(uri)}")
    if uri[:5].lower() == "file:" and has_parent_segment(uri):
        raise InvalidParamsError(f"uri: expected a path without '..', got {safe_repr(uri)}")


def _check_values(values: Mapping[str, str | list[str]], any_path: frozenset[str]) -> None:
    """Refuse values of variables that leave their directory, except those of `any_path`."""
    for name, value in values.items():
        if name not in any_path:
            for text in [value] if isinstance(value, str) else value:
                if may_escape_directory(text):
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
