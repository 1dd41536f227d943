"""The operations of an OpenAPI document: their parameters, bodies and responses.

All parameters and the members of a body that is a plain object become arguments side by side. An
argument is renamed if two have the same name, or if APIs of models do not allow the name; then its
description states the original name.

Source: OpenAPI Specification 3.1.1, Operation, Parameter, Request Body and Responses Objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from ..._wire import is_many, is_object
from ...foreign_text import safe_repr, safe_text
from ...framing.http_headers import media_type
from ...json_schema import WRAPPED_MARKER, WRAPPER, CheckedSchema
from .document import Document, object_member
from .parameter_styles import STYLES, Place
from .route_maps import HTTPRoute
from .schema_conversion import SchemaConverter, unique_name, with_null

BodyKind: TypeAlias = Literal["json", "form", "multipart", "text", "binary"]

_BODY_KINDS: tuple[tuple[re.Pattern[str], BodyKind], ...] = (
    (re.compile(r"application/json|[\w.+\-]+/[\w.\-]+\+json|text/json"), "json"),
    (re.compile(r"application/x-www-form-urlencoded"), "form"),
    (re.compile(r"multipart/form-data"), "multipart"),
    (re.compile(r"text/[\w.+\-]+"), "text"),
    (re.compile(r"\*/\*|application/\*"), "json"),
    (
        re.compile(r"application/octet-stream|(image|audio|video)/[\w.+\-]+|application/pdf"),
        "binary",
    ),
)
"""Kinds of bodies by media type; of several, the first one in this order is used."""

_PATH = re.compile(r"/(?!/)[^\s?#\\\x00-\x1f\x7f]*")
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.\-]{1,64}")  # what APIs of models allow
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})  # as OpenAPI says
_REFUSED_HEADERS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "upgrade", "cookie"),
        *("expect", "te", "trailer", "keep-alive", "proxy-authorization", "proxy-connection"),
    }
)
_PLAIN = frozenset({"type", "properties", "required", "additionalProperties", "allOf"})
_NOTES = frozenset(
    {"title", "description", "example", "examples", "xml", "externalDocs", "deprecated", "default"}
)
_ALL_OF_LEVELS = 16
_FILE: Mapping[str, Any] = {"type": "string", "contentEncoding": "base64"}
_FILE_TEXT = "in Base64 or as a data: URI"
_BODY = "body"
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class RequestParameter:
    """A parameter of the HTTP request.

    Attributes:
        argument: Name of the tool's argument.
        name: Its own name.
        place: The part of the request that has it.
        is_json: Whether its value is sent as JSON.
    """

    argument: str
    name: str
    place: Place
    style: str
    explode: bool
    required: bool
    is_json: bool


@dataclass(frozen=True, kw_only=True)
class BodyMember:
    """A member of a body that is an object.

    Attributes:
        name: Its name in the body.
        style: The style of an array or object in a form; `None` for the default.
        is_file: Whether its values are files, in Base64 or as `data:` URIs.
        content_type: The media type of its part, if the document names one.
    """

    name: str
    style: str | None
    explode: bool
    is_file: bool
    content_type: str | None


@dataclass(frozen=True, kw_only=True)
class RequestBody:
    """The body of the HTTP request.

    Attributes:
        content_type: Its media type.
        kind: Its encoding.
        required: Whether it is sent even without arguments.
        members: The members by argument; `None` if the argument `argument` is the whole body.
    """

    content_type: str
    kind: BodyKind
    required: bool
    argument: str = _BODY
    members: Mapping[str, BodyMember] | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation that can be called.

    Attributes:
        route: Its method, path and description.
        parts: The path: literals, which are percent-encoded, and names of variables by turns.
        input_schema: JSON Schema of the arguments.
        output_schema: JSON Schema of the structured result, if there is one.
        is_wrapped: Whether the result is a member `result` of the structured value.
        mime_type: Media type of the response, if the document names one.
        left_out: Texts about unsupported parts of the operation.
    """

    route: HTTPRoute
    parts: Sequence[str]
    parameters: Sequence[RequestParameter]
    body: RequestBody | None
    input_schema: CheckedSchema
    output_schema: CheckedSchema | None
    is_wrapped: bool
    mime_type: str | None
    left_out: Sequence[str]


@dataclass
class _Arguments:
    """The arguments of an operation while it is read."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])

    def add(
        self, name: str, schema: Any, origin: str, *, required: bool, is_taken: bool = False
    ) -> str:
        """Add an argument and return its name."""
        argument = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).strip("_")[:60] or "argument"
        argument = name if _ARGUMENT.fullmatch(name) else argument
        if is_taken or argument in self.properties:
            argument = unique_name(f"{argument[:50]}__{origin.partition(' ')[0]}", self.properties)
        if argument != name:
            members = schema if is_object(schema) else {"allOf": [schema]}
            text = f"{members.get('description', '')} (the {origin} {safe_text(name)!r})"
            schema = {**members, "description": text.strip()}
        self.properties[argument] = schema
        if required:
            self.required.append(argument)
        return argument


class OperationReader:
    """Reads one operation.

    Args:
        document: The document.
        route: Its method and path.
        item: The path item.
        operation: The operation.
        own: Names of the parameters that the HTTP client sends with each request, by their place,
            those of header fields in lower case. They do not become arguments.
    """

    def __init__(
        self,
        document: Document,
        route: HTTPRoute,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
        own: Mapping[str, frozenset[str]],
    ) -> None:
        self._document = document
        self._route = route
        self._item = item
        self._operation = operation
        self._own = own
        self._converter = SchemaConverter(document, "request")
        self._arguments = _Arguments()
        self._encoding: Mapping[str, Any] = {}

    def read(self) -> Operation:
        """The operation.

        Raises:
            ValueError: A tool can't call the operation; the text has the reason.
        """
        for owner in (self._item, self._operation):
            servers = owner.get("servers")
            if servers and servers != self._document.root.get("servers"):
                raise ValueError("it has servers of its own")
        parameters = list(self._all_parameters())
        body, body_schema = self._body_content()
        members = None if body is None else self._plain_members(body_schema, body)
        taken = {_BODY} if members is None and body is not None else set[str]()
        if members is not None:
            taken.update(members[0])
        names = [each["name"] for each in parameters]
        read = [
            self._parameter(each, is_taken=each["name"] in taken or names.count(each["name"]) > 1)
            for each in parameters
        ]
        parts = self._path_parts({each.name for each in read if each.place == "path"})
        dependent = None
        if body is not None:
            body, dependent = self._add_body(body, body_schema, members)
        response = _ResponseReader(self._document, self._operation)
        schema, is_wrapped = response.schema()
        callbacks = object_member(self._operation, "callbacks")
        return Operation(
            route=self._route,
            parts=parts,
            parameters=read,
            body=body,
            input_schema=self._input_schema(dependent),
            output_schema=schema,
            is_wrapped=is_wrapped,
            mime_type=response.mime_type(),
            left_out=[
                *(f"the callback {safe_text(str(name))}" for name in callbacks),
                *dict.fromkeys(self._converter.left_out),
                *dict.fromkeys(response.left_out),
            ],
        )

    def _input_schema(self, dependent: Mapping[str, Any] | None) -> CheckedSchema:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": self._arguments.properties,
            "required": self._arguments.required,
            "additionalProperties": False,
            "dependentRequired": dependent,
            "$defs": self._converter.definitions(),
        }
        optional = ("required", "dependentRequired", "$defs")
        return CheckedSchema(
            {name: each for name, each in schema.items() if each or name not in optional}
        )

    def _path_parts(self, declared: set[str]) -> list[str]:
        path = self._route.path
        if len(path) > 2048 or not _PATH.fullmatch(path):
            raise ValueError(f"expected a path that begins with '/', got {safe_repr(path)}")
        parts = _VARIABLE.split(path)
        if {".", ".."} & set(_VARIABLE.sub("x", path).split("/")) or "%" in "".join(parts[::2]):
            raise ValueError("expected a path without '.', '..' and '%'")
        if set(parts[1::2]) != declared:
            missing = ", ".join(sorted(set(parts[1::2]) ^ declared))
            raise ValueError(f"path and path parameters differ: {safe_text(missing)}")
        parts[::2] = [quote(part, safe="/:@!$&'()*+,;=~") for part in parts[::2]]
        return parts

    def _all_parameters(self) -> Iterator[Mapping[str, Any]]:
        """The parameters that are arguments, those of the path item first."""
        merged: dict[tuple[str, str], Mapping[str, Any]] = {}
        for owner in (self._item, self._operation):
            listed: Any = owner.get("parameters", ())
            if not is_many(listed):
                raise ValueError(f"parameters: expected a list, got {safe_repr(listed)}")
            for node in listed:
                parameter = self._document.follow(node, "parameter")
                match parameter:
                    case {"name": str() as name, "in": str() as place}:
                        merged[place, name.lower() if place == "header" else name] = parameter
                    case _:
                        shown = safe_repr(parameter)
                        raise ValueError(f"parameter: expected name and in, got {shown}")
        for (place, name), parameter in merged.items():
            if place not in STYLES:
                raise ValueError(f"parameter {safe_text(name)!r}: in {safe_repr(place)}")
            if place == "header" and name in _IGNORED_HEADERS:
                continue
            if place == "header" and (name in _REFUSED_HEADERS or not _TOKEN.fullmatch(name)):
                raise ValueError(f"the header field {safe_repr(name)} is the HTTP library's")
            if place == "cookie" and not _TOKEN.fullmatch(name):
                raise ValueError(f"cookie: expected a name, got {safe_repr(name)}")
            if name not in self._own.get(place, ()):
                yield parameter

    def _parameter(self, parameter: Mapping[str, Any], *, is_taken: bool) -> RequestParameter:
        name, place = parameter["name"], parameter["in"]
        where = f"parameter {safe_text(name)!r}"
        schema: Any = parameter.get("schema", True)
        content = parameter.get("content")
        if content is not None:
            kinds = list(content) if is_object(content) else []
            if len(kinds) != 1 or _body_kind(kinds[0]) != "json":
                raise ValueError(f"{where}: expected JSON as content, got {safe_repr(kinds)}")
            schema = self._document.follow(content[kinds[0]], where).get("schema", True)
        style = parameter.get("style", STYLES[place][0])
        if style not in STYLES[place]:
            raise ValueError(f"{where}: style {safe_repr(style)}")
        required = place == "path" or parameter.get("required") is True
        converted = self._converter.convert(schema)
        if is_object(converted):
            more = {
                key: parameter[key] for key in ("description", "deprecated") if key in parameter
            }
            if "example" in parameter:
                more["examples"] = [parameter["example"]]
            self._converter.take_text(more)
            converted = {**converted, **more}
        return RequestParameter(
            argument=self._arguments.add(
                name, converted, f"{place} parameter", required=required, is_taken=is_taken
            ),
            name=name,
            place=place,
            style=style,
            explode=bool(parameter.get("explode", style in ("form", "deepObject", "cookie"))),
            required=required,
            is_json=content is not None,
        )

    def _body_content(self) -> tuple[RequestBody | None, Any]:
        """The body without its arguments, and its schema."""
        if "requestBody" not in self._operation:
            return None, None
        body = self._document.follow(self._operation["requestBody"], "requestBody")
        content = object_member(body, "content")
        required = body.get("required") is True
        for pattern, kind in _BODY_KINDS:
            for content_type, node in content.items():
                if pattern.fullmatch(media_type(content_type)):
                    media = self._document.follow(node, "requestBody")
                    sent = "application/json" if "*" in content_type else media_type(content_type)
                    request_body = RequestBody(content_type=sent, kind=kind, required=required)
                    schema = media.get("schema", kind in ("json", "form", "multipart"))
                    self._encoding = object_member(media, "encoding")
                    return request_body, schema
        raise ValueError(
            f"the body's content type is not supported: {safe_text(', '.join(content))}"
        )

    def _add_body(
        self,
        body: RequestBody,
        schema: Any,
        members: tuple[Mapping[str, Any], set[str]] | None,
    ) -> tuple[RequestBody, Mapping[str, Any] | None]:
        """The body with its arguments, and the required arguments that each of them implies."""
        if members is None:
            if body.kind == "binary":
                converted: Any = {
                    **_FILE,
                    "description": f"the body, {body.content_type}, {_FILE_TEXT}",
                }
            elif body.kind == "text":
                converted = self._converter.convert(schema or {"type": "string"})
            elif body.kind == "json":
                converted = self._converter.convert(schema)
            else:
                raise ValueError(f"the body, {body.content_type}, is no object with properties")
            argument = self._arguments.add(_BODY, converted, "body", required=body.required)
            return replace(body, argument=argument), None
        properties, needed = members
        written: dict[str, BodyMember] = {}
        for name, each in properties.items():
            if self._converter.is_hidden(each):
                continue
            member, converted = self._member(name, each, body.kind)
            argument = self._arguments.add(
                name, converted, "body member", required=body.required and name in needed
            )
            written[argument] = member
        needed_arguments = [key for key, member in written.items() if member.name in needed]
        dependent = {
            argument: [each for each in needed_arguments if each != argument]
            for argument in written
            if not body.required and set(needed_arguments) - {argument}
        }
        return replace(body, members=written), dependent

    def _member(self, name: str, schema: Any, kind: BodyKind) -> tuple[BodyMember, Any]:
        """A member of the body, and the JSON Schema of its argument."""
        encoding = object_member(self._encoding, name)
        content_type: Any = encoding.get("contentType")
        if not isinstance(content_type, str) or _body_kind(content_type) is None:
            content_type = None
        converted = self._converter.convert(schema)
        is_file = False
        if kind == "multipart":
            resolved, is_optional = self._without_null(schema, name)
            many = resolved.get("type") == "array"
            inner = object_member(resolved, "items") if many else resolved
            if _is_binary(self._document.follow(inner, name)):
                is_file = True
                text = resolved.get("description", f"a file, {_FILE_TEXT}")
                converted = {"type": "array", "items": _FILE} if many else _FILE
                converted = {**converted, "description": text}
                converted = with_null(converted) if is_optional else converted
        style: Any = encoding.get("style")
        style = style if style in STYLES["query"] else None
        explode = bool(encoding.get("explode", style in (None, "form", "deepObject")))
        return (
            BodyMember(
                name=name, style=style, explode=explode, is_file=is_file, content_type=content_type
            ),
            converted,
        )

    def _without_null(self, schema: Any, name: str) -> tuple[Mapping[str, Any], bool]:
        """A schema, or the only one that it allows next to null; whether it allows null so."""
        if not is_object(schema):
            return _NOTHING, False
        resolved = self._document.follow(schema, name)
        alternatives: Any = resolved.get("anyOf")
        if not is_many(alternatives):
            return resolved, False
        others = [each for each in alternatives if each != {"type": "null"}]
        if len(others) != 1 or len(alternatives) != 2 or not is_object(others[0]):
            return resolved, False
        return self._document.follow(others[0], name), True

    def _plain_members(
        self, schema: Any, body: RequestBody
    ) -> tuple[dict[str, Any], set[str]] | None:
        """Members and required members of a schema, if it has no other rules."""
        if body.kind not in ("json", "form", "multipart") or not is_object(schema):
            return None
        members = self._members_of(schema, _ALL_OF_LEVELS)
        is_whole = members is not None and members[0] and members[1] <= members[0].keys()
        return members if is_whole else None

    def _members_of(self, schema: Any, levels: int) -> tuple[dict[str, Any], set[str]] | None:
        schema = self._document.follow(schema, "a schema")
        says = {name for name in schema.keys() - _NOTES if not name.startswith("x-")}
        kind = schema.get("type", "object")
        allows_more = schema.get("additionalProperties", False) is not False
        if not levels or not says <= _PLAIN or kind not in ("object", ["object"]) or allows_more:
            return None
        needed: Any = schema.get("required", ())
        parts: Any = schema.get("allOf", ())
        if not is_many(needed) or not is_many(parts):
            raise ValueError("a schema has malformed required or allOf")
        properties = dict(object_member(schema, "properties"))
        required = set(map(str, needed))
        for each in parts:
            inner = self._members_of(each, levels - 1)
            if inner is None or properties.keys() & inner[0].keys():
                return None
            properties |= inner[0]
            required |= inner[1]
        return properties, required


class _ResponseReader:
    """Reads the successful responses of an operation."""

    def __init__(self, document: Document, operation: Mapping[str, Any]) -> None:
        self._document = document
        self._converter = SchemaConverter(document, "response")
        self._responses: list[Mapping[str, Any]] = []
        responses = object_member(operation, "responses")
        for status in sorted(responses, key=str):
            if str(status)[:1] == "2":
                response = document.follow(responses[status], "response")
                content = object_member(response, "content")
                self._responses.append(
                    {key: document.follow(each, "response") for key, each in content.items()}
                )
        self.left_out = self._converter.left_out

    def mime_type(self) -> str | None:
        """The media type of the first response that has one."""
        types = [media_type(each) for content in self._responses for each in content]
        return next((each for each in types if "*" not in each and "/" in each), None)

    def schema(self) -> tuple[CheckedSchema | None, bool]:
        """The JSON Schema of the structured result, and whether it wraps the result.

        The schema is `None` unless every response is JSON with a schema, or empty. A schema that
        allows any value is none: FastAPI writes one for functions whose result has no type.
        """
        schemas: list[Any] = []
        for content in self._responses:
            if any(_body_kind(each) != "json" for each in content):
                return None, False
            bodies = [each.get("schema") for each in content.values()] or [{"type": "null"}]
            schemas += [each for each in bodies if each not in schemas]
        if not schemas or any(map(_allows_all, schemas)) or schemas == [{"type": "null"}]:
            return None, False
        roots = [self._document.follow(each, "a schema") for each in schemas if is_object(each)]
        if len(schemas) == 1 and roots and roots[0].get("type") == "object":
            root: Mapping[str, Any] = self._converter.convert(roots[0])
            if root["type"] == "object":  # and not null
                definitions = self._converter.definitions()
                return _with_definitions(root, definitions), False
        converted = [self._converter.convert(each) for each in schemas]
        definitions = self._converter.definitions()
        wrapped: dict[str, Any] = {
            "type": "object",
            "properties": {WRAPPER: converted[0] if len(converted) == 1 else {"anyOf": converted}},
            "required": [WRAPPER],
            WRAPPED_MARKER: True,
        }
        return _with_definitions(wrapped, definitions), True


def _allows_all(schema: Any) -> bool:
    """Whether a schema is absent, or has no rules."""
    return schema is None or schema is True or (is_object(schema) and not schema.keys() - _NOTES)


def _with_definitions(root: Mapping[str, Any], definitions: Mapping[str, Any]) -> CheckedSchema:
    return CheckedSchema({**root, "$defs": definitions} if definitions else root)


def _is_binary(schema: Mapping[str, Any]) -> bool:
    """Whether a schema in a multipart body is that of a file."""
    if schema.get("format") in ("binary", "byte") or "contentEncoding" in schema:
        return True
    kind = schema.get("contentMediaType", "")
    return isinstance(kind, str) and _body_kind(kind) == "binary"


def _body_kind(content_type: str) -> BodyKind | None:
    kind = media_type(content_type)
    return next((each for pattern, each in _BODY_KINDS if pattern.fullmatch(kind)), None)
