"""Tools that are listed, and answer, as those of FastMCP and of the official SDK do.

A server that is ported from another SDK keeps its lists: with `Server(compatibility=...)` the
description of an item is its whole docstring, schemas are those that pydantic makes, and results
have the texts of the other SDK. Without it, descriptions are shorter, and schemas have no titles.

The schemas need pydantic, on which both SDKs run.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import msgspec

from ..._wire import is_many, is_object, replace
from ...errors import ProtocolError, ToolError
from ...json_schema import WRAPPED_MARKER, WRAPPER
from ...runtime.request_context import RequestContext
from ...values.value_types import ValueType, value_type
from . import signatures
from .compatible_arguments import (
    Arguments,
    CallArguments,
    ModelArguments,
    Parameters,
    pydantic_module,
)
from .content import Text, ToolResult, UnfinishedResult, as_tool_result, is_content
from .context import Context
from .dispatcher import Dispatcher, Handler
from .output_conversion import Output, ToolResultBuilder, from_annotation
from .registry import PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED
from .server import ServerKernel
from .tools import Tool

Compatibility: TypeAlias = Literal["mcp-1", "mcp-2", "fastmcp-2", "fastmcp-3", "fastmcp-4"]
"""Another SDK: the high level of the official one, or FastMCP of a major version."""


class Dialect(msgspec.Struct, frozen=True):
    """The form of the lists and results of another SDK.

    Attributes:
        raw_docstring: Whether descriptions are docstrings with their indentation, or are cleaned.
        splits_docstring: Whether the part about parameters moves to the parameters.
        splits_sections: Whether a docstring is cut at any section, not only if it has parameters.
        titles: Whether schemas have the titles that pydantic gives.
        titles_tools: Whether a tool without a title has one that is made of its name.
        closed: Whether input schemas refuse other arguments.
        inline: Whether schemas have definitions in the place of references.
        arguments: The class that validates arguments.
        tags_key: The member of `_meta` in which items have their tags; empty for none.
        marker: The members that tell clients to unwrap a structured result.
        tells_wrapped: Whether a wrapped result says in `_meta` that it is one.
        wrapper_text: The description of the schema of a wrapped result; empty for none.
        indent: The indentation of JSON texts; 0 for one line without spaces.
        splits_lists: Whether each item of a list is a text of its own.
        failure: Template of the text of an unexpected exception.
        tool_failure: Template of the text of a `ToolError`, and of arguments that do not fit.
        unknown: Template of the text for a tool that does not exist.
    """

    raw_docstring: bool = False
    splits_docstring: bool = False
    splits_sections: bool = False
    titles: bool = True
    titles_tools: bool = False
    closed: bool = False
    inline: bool = False
    arguments: Callable[[Callable[..., Any], Parameters], Arguments] = ModelArguments
    tags_key: str = ""
    marker: Mapping[str, Any] = {}
    tells_wrapped: bool = False
    wrapper_text: str = ""
    indent: int = 0
    splits_lists: bool = False
    failure: str = "Error calling tool {name!r}: {error}"
    tool_failure: str = "{error}"
    unknown: str = "Unknown tool: {name}"


_PLAIN = (str, int, float, bool, bytes, type(None))
_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_VALUES = frozenset({"default", "const", "enum", "examples", "required"})
_MARKER: Mapping[str, Any] = {WRAPPED_MARKER: True}
_LISTS = {
    "prompts/list": PROMPTS_CHANGED,
    "resources/list": RESOURCES_CHANGED,
    "resources/templates/list": RESOURCES_CHANGED,
    "tools/list": TOOLS_CHANGED,
}
"""Lists that servers of other SDKs have, also empty ones, with the notifications of changes."""

_MCP_FAILURE = "Error executing tool {name}: {error}"

_OFFICIAL = Dialect(
    raw_docstring=True,
    indent=2,
    splits_lists=True,
    failure=_MCP_FAILURE,
    tool_failure=_MCP_FAILURE,
)

_FASTMCP_2 = Dialect(
    titles=False,
    inline=True,
    arguments=CallArguments,
    tags_key="_fastmcp",
    marker=_MARKER,
    wrapper_text="Generic wrapper for non-object return types.",
)
_FASTMCP = msgspec.structs.replace(
    _FASTMCP_2,
    splits_docstring=True,
    closed=True,
    tags_key="fastmcp",
    tells_wrapped=True,
    wrapper_text="",
    unknown="Unknown tool: {name!r}",
)

DIALECTS: Mapping[str, Dialect] = {
    "mcp-1": _OFFICIAL,
    "mcp-2": msgspec.structs.replace(_OFFICIAL, failure="Error executing tool {name}"),
    "fastmcp-2": _FASTMCP_2,
    "fastmcp-3": _FASTMCP,
    "fastmcp-4": msgspec.structs.replace(_FASTMCP, splits_sections=True, titles_tools=True),
}


class CompatibilityOptions(TypedDict, total=False):
    """Compatibility with another SDK.

    Attributes:
        compatibility: The SDK whose lists and results the server keeps; `None` for none.
        host, port: The address of `run` over HTTP, unless that is given one.
        streamable_http_path: The path of the endpoint, likewise.
        sse_path: The path of HTTP+SSE, for `run(transport="sse")`.
        stateless_http: Whether `run` keeps no sessions.
        json_response: Whether `run` answers by JSON instead of streams.
        auth: A `Protected` of `run` over HTTP, or `None`.
    """

    compatibility: Compatibility | None
    host: str
    port: int
    streamable_http_path: str
    sse_path: str
    stateless_http: bool
    json_response: bool
    auth: Any


@dataclass
class HostingSettings:
    """The settings that the constructor of another SDK takes, and that a program may change.

    The attributes are those of `CompatibilityOptions`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    streamable_http_path: str = "/mcp"
    sse_path: str = "/sse"
    stateless_http: bool = False
    json_response: bool = False
    auth: Any = None

    def arguments(self, transport: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `Server.run` for a transport of another SDK."""
        if transport in (None, "stdio"):
            return {"transport": transport, **given}
        made: dict[str, Any] = {"transport": "http", "path": self.streamable_http_path}
        if transport == "sse":
            made["sse_path"] = self.sse_path
        if "http" not in given:
            made |= {"host": self.host, "port": self.port}
        if self.stateless_http:
            made["stateless"] = True
        if self.json_response:
            made["answers"] = "json"
        if self.auth is not None:
            made["auth"] = self.auth
        return {**made, **given}


class CompatibleServer(ServerKernel):
    """A server whose tools may look as those of another SDK; a base of `Server`."""

    _dialect: Dialect | None
    _settings: HostingSettings

    @property
    def settings(self) -> HostingSettings:
        """The address and the form of `run` over HTTP, which a program may change before it."""
        return self._settings

    def _use_options(self, options: dict[str, Any]) -> None:
        names = [each.name for each in fields(HostingSettings) if each.name in options]
        self._settings = HostingSettings(**{name: options.pop(name) for name in names})
        word: str | None = options.pop("compatibility", None)
        if word is not None and word not in DIALECTS:
            raise ValueError(f"compatibility: expected one of {', '.join(DIALECTS)}, got {word!r}")
        self._dialect = dialect = None if word is None else DIALECTS[word]
        if dialect is not None:
            dispatcher = self._dispatcher
            dispatcher.hooks.describe = functools.partial(_described, dialect)
            dispatcher.hooks.mime_type = "text/plain"
            call_tool = dispatcher.item_handlers["tools/call"]
            known = functools.partial(_call_known_tool, dispatcher, dialect, call_tool)
            dispatcher.item_handlers["tools/call"] = known
        super()._use_options(options)
        if dialect is not None:
            changes = set(_LISTS.values()) if self._dispatcher.settings.list_changed else ()
            self._dispatcher.serve_items(_LISTS, *changes)

    if not TYPE_CHECKING:  # the signatures are those of the decorators, which a package may lack

        @functools.wraps(ServerKernel.tool)
        def tool(self, name: Any = None, *, enabled: bool = True, **options: Any) -> Any:
            """Register a tool as `tool` of the toolkit does, unless it is not enabled."""
            if enabled:
                return super().tool(name, **options)
            return name if callable(name) else lambda function: function

        def run(
            self,
            transport: str | None = None,
            *,
            http: str | None = None,
            host: str | None = None,
            port: int | None = None,
            path: str | None = None,
            backend: str | None = None,
            principal: Any = None,
            banner: bool = True,
            **options: Any,
        ) -> None:
            """Serve as `run` of the hosting does, with `settings`, also over `sse`."""
            options |= _without_none(
                http=http, host=host, port=port, path=path, backend=backend, principal=principal
            )
            super().run(**self._arguments(transport, options), banner=banner)

        async def run_async(
            self,
            transport: str | None = None,
            *,
            http: str | None = None,
            host: str | None = None,
            port: int | None = None,
            path: str | None = None,
            principal: Any = None,
            banner: bool = True,
            task_status: Any = None,
            **options: Any,
        ) -> None:
            """Serve as `run_async` of the hosting does, with `settings`, also over `sse`."""
            options |= _without_none(http=http, host=host, port=port, path=path)
            options |= _without_none(principal=principal, task_status=task_status)
            await super().run_async(**self._arguments(transport, options), banner=banner)

    def _arguments(self, transport: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `run` of the hosting, with the settings of a server of another SDK."""
        if self._dialect is None and self._settings == HostingSettings():
            return {**({} if transport is None else {"transport": transport}), **given}
        return self._settings.arguments(transport, given)

    def _use_tool_options(self, options: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
        lacks_schema = self._dialect is not None and options.get("output_schema", "") is None
        if lacks_schema:
            del options["output_schema"]  # which the feature `schemas` alone has
        made = super()._use_tool_options(options, members)
        if self._dialect is None:
            return made
        if lacks_schema:
            made = {**made, "lacks_schema": True}
        kind = _compatible_class(made.get("kind", Tool))
        return {**made, "kind": kind, "dialect": self._dialect}

    def _prepare_tool(self, tool: Tool) -> None:
        if isinstance(tool, CompatibleTool):
            tool.add_tags()
        super()._prepare_tool(tool)


def _described(
    dialect: Dialect, function: Callable[..., Any], members: Mapping[str, Any], tags: Iterable[str]
) -> Mapping[str, Any]:
    """The members of a prompt or a resource, with its description and its tags."""
    text = description(function, dialect)
    described = {} if text is None else {"description": text}
    return _tagged(dialect, {**described, **members}, tags)


def _tagged(dialect: Dialect, members: Mapping[str, Any], tags: Iterable[str]) -> Mapping[str, Any]:
    """The members of an item, with its tags in `_meta`."""
    if not dialect.tags_key:
        return members
    meta: Mapping[str, Any] = members.get("_meta") or {}
    own = {**meta.get(dialect.tags_key, {}), "tags": sorted(tags)}
    return {**members, "_meta": {**meta, dialect.tags_key: own}}


def _call_known_tool(
    dispatcher: Dispatcher, dialect: Dialect, call_tool: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    """The result of a call; one that says so if there is no such tool."""
    name: str = request.params.name
    if dispatcher.is_open or dispatcher.registries.tools.item_of(request, name) is not None:
        return call_tool(request)
    return _failed(dialect.unknown.format(name=name))


async def _failed(text: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _without_none(**arguments: Any) -> dict[str, Any]:
    """The arguments that are given: those that are not `None`."""
    return {name: value for name, value in arguments.items() if value is not None}


@functools.cache
def _compatible_class(kind: type[Tool]) -> type[Tool]:
    """A class of tools in a dialect that has what another class of tools has."""
    if kind is Tool:
        return CompatibleTool
    return type(kind.__name__, (CompatibleTool, kind), {})


class CompatibleTool(Tool):
    """A tool in the dialect of another SDK.

    Args:
        function: See `Tool`.
        dialect: The dialect.
        members: See `Tool`.
        names: See `Tool`.
        lacks_schema: Whether it has no output schema, whatever its function returns.
        options: See `Tool`.
    """

    _own_input: Mapping[str, Any] | None = None
    _own_output: object = "from signature"

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        dialect: Dialect,
        members: Mapping[str, Any],
        names: Mapping[str, Any] | None,
        lacks_schema: bool = False,
        **options: Any,
    ) -> None:
        self._lacks_schema = lacks_schema
        self._dialect, self._own_function, self._names = dialect, function, names
        described = {"description": description(function, dialect), **members}
        hints: Mapping[str, Any] = members.get("annotations") or {}
        if dialect.marker and "title" in hints:
            described.setdefault("title", hints["title"])
        if dialect.titles_tools:
            name = options.get("name") or signatures.source_name(function)
            described.setdefault("title", re.sub("[_-]", " ", name).title())
        super().__init__(function, *arguments, members=described, names=names, **options)
        self.function = self._converted(self.function)

    def add_tags(self) -> None:
        """Add the tags to the listed members, where the other SDK lists these."""
        self._wire = dict(_tagged(self._dialect, self._wire, self.tags))

    @functools.cached_property
    def _arguments(self) -> Arguments:
        """The arguments, which the annotations of the function as it is written describe."""
        hints = signatures.resolved_hints(self._own_function, self.label, self._names)
        declared = signatures.signature_of(self._own_function, self.label).parameters
        parameters = [
            declared[name].replace(annotation=hints.get(name, inspect.Parameter.empty))
            for name in self.signature.parameters
        ]
        return self._dialect.arguments(self._own_function, parameters)

    def call(
        self, arguments: Mapping[str, Any] | None, context: Context, results: ToolResultBuilder
    ) -> Coroutine[Any, Any, Any]:
        """See `Tool`; a result says everywhere whether it is an error."""
        if self._own_input is not None:
            return self._with_success(super().call(arguments, context, results))
        try:
            bound = self._arguments.bind(arguments or {})
        except ValueError as error:
            return _failed(self._dialect.tool_failure.format(name=self.name, error=error))
        if self.signature.context is not None:
            bound[self.signature.context] = context
        return self._with_success(self._run(bound, results))

    async def _with_success(self, call: Awaitable[Any]) -> Any:
        result = await call
        is_unsaid = getattr(result, "is_error", True) in (None, msgspec.UNSET)
        return replace(result, is_error=False) if is_unsaid else result

    def _input_schema(self) -> Mapping[str, Any]:
        if self._own_input is not None:
            return super()._input_schema()
        schema = self._arguments.schema()
        if not self._dialect.closed:
            schema.pop("additionalProperties", None)
        written = _written_titles(schema)
        if self._dialect.splits_docstring:
            described = parameters_in(inspect.getdoc(self._own_function))
            for name in described.keys() & schema["properties"].keys():
                schema["properties"][name].setdefault("description", described[name])
        styled = self._styled(schema)
        for name, title in written.items():
            styled["properties"][name]["title"] = title
        return styled

    def _output_of(self, structured: bool) -> Output:
        if not structured or self._own_output != "from signature":
            return super()._output_of(structured)
        if self._lacks_schema:
            return Output("by value")
        returns = self.signature.returns
        own = None
        with suppress(TypeError):  # only pydantic knows the type
            own = from_annotation(returns, self.label) if returns is not None else None
        if own is not None and own.form in ("by value", "content"):
            return Output("by value")
        make = _official_output if self._dialect.splits_lists else _fastmcp_output
        made: _Made | None = None
        with suppress(pydantic_module().PydanticUserError):  # such a type has no schema
            made = make(returns, signatures.source_name(self._own_function))
        if made is None:
            return Output("by value")
        is_wrapped, schema, kind = made
        styled = {**self._styled(schema), **(self._dialect.marker if is_wrapped else {})}
        if is_wrapped and self._dialect.wrapper_text:
            styled["description"] = self._dialect.wrapper_text
        return Output("wrapped" if is_wrapped else "object", kind or value_type(returns), styled)

    def _styled(self, schema: dict[str, Any]) -> dict[str, Any]:
        if not self._dialect.titles:
            schema = _without_titles(schema)
        return schema

    def _listed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return super()._listed(schema) if self._dialect.inline else schema

    def _converted(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The function of a call, with the content and the errors of the dialect."""
        dialect, name, output = self._dialect, self.name, self._output

        @functools.wraps(function)
        async def call(**arguments: Any) -> Any:
            try:
                value = await function(**arguments)
            except ProtocolError:
                raise
            except ToolError as error:
                raise ToolError(dialect.tool_failure.format(name=name, error=error)) from error
            except Exception as error:
                raise ToolError(dialect.failure.format(name=name, error=error)) from error
            if isinstance(value, UnfinishedResult) or as_tool_result(value) is not None:
                return value
            content = _content(value, dialect)
            is_free = output.form == "by value" and output.schema is None
            if is_free and (dialect.splits_lists or not isinstance(value, dict)):
                return ToolResult(content=content)
            is_told = output.form == "wrapped" and dialect.tells_wrapped
            meta = {dialect.tags_key: {"wrap_result": True}} if is_told else None
            return ToolResult(content=content, structured=value, meta=meta)

        return call


def description(function: Callable[..., Any], dialect: Dialect) -> str | None:
    """The description of an item in a dialect; `None` if there is none."""
    documented: Any = getattr(function, "func", function)  # of a `functools.partial`
    text: str | None = documented.__doc__
    if dialect.raw_docstring:
        return text or ""
    text = inspect.getdoc(documented)
    if text is not None and dialect.splits_docstring:
        is_cut = dialect.splits_sections or bool(parameters_in(text))
        return description_in(text) if is_cut else text
    return text


_TITLE = re.compile(r"(\w[\s\w-]*):(?:\s+\S.*)?\s*")
_PARAMETERS = frozenset({"args", "arguments", "params", "parameters"})
_SECTIONS = _PARAMETERS | {
    *("keyword args", "keyword arguments", "other args", "other arguments", "other params"),
    *("other parameters", "raises", "exceptions", "returns", "yields", "receives", "examples"),
    *("attributes", "functions", "methods", "classes", "modules", "warns", "warnings"),
    *("attention", "caution", "danger", "error", "example", "hint", "important", "note", "notes"),
    *("raise", "references", "return", "see-also", "tip", "todo", "warning", "yield"),
}
_FIELD = re.compile(r"^:(?:param|type|returns?|rtype|raises)\b", re.MULTILINE)
_UNDERLINED = re.compile(r"^\w[\w ]*\n-{3,}\s*$", re.MULTILINE)


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """The parts of a docstring in Google's style: lower-case titles, empty for text, and lines."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    lines, is_code = text.splitlines(), False
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _TITLE.fullmatch(line)
        if match is not None and following.startswith(" "):
            parts.append((match[1].lower(), []))
        elif parts[-1][0] and line and not line.startswith(" "):
            parts.append(("", [line]))
        else:
            parts[-1][1].append(line)
    return parts


def description_in(text: str) -> str:
    """The description in a docstring, without sections such as `Args:`; FastMCP 3 lists it."""
    parts = _sections(text)
    if any(title in _SECTIONS for title, _ in parts):
        texts = ("\n".join(lines).strip() for title, lines in parts if not title)
        return next((each for each in texts if each), "")
    for form in (_UNDERLINED, _FIELD):
        if (match := form.search(text)) is not None:
            return text[: match.start()].strip()
    return text


def parameters_in(text: str | None) -> dict[str, str]:
    """The descriptions of parameters in a docstring, with their lines, as FastMCP 3 lists them."""
    described: dict[str, list[str]] = {}
    for title, lines in _sections(text or ""):
        if title not in _PARAMETERS:
            continue
        indent = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
        item: list[str] = []
        for line in lines:
            depth = len(line) - len(line.lstrip())
            if depth == indent and ":" in line:
                name, _, rest = line.strip().partition(":")
                item = described[name.partition(" ")[0].lstrip("*")] = [rest.strip()]
            elif not line.strip():
                item.append("")
            else:
                item.append(line[2 * indent :] if depth >= 2 * indent else line.strip())
    if not described:
        return signatures.parameter_descriptions(text)
    return {name: "\n".join(lines).strip() for name, lines in described.items()}


def _written_titles(schema: Mapping[str, Any]) -> dict[str, str]:
    """The titles of arguments that are none of those that pydantic makes of names."""
    return {
        name: each["title"]
        for name, each in schema.get("properties", {}).items()
        if "title" in each and each["title"] != name.title().replace("_", " ").strip()
    }


class _AttributesType(ValueType, frozen=True):
    """The type of a class with hints, written by a model of its attributes."""

    def write(self, value: Any) -> Any:
        """See `ValueType`."""
        return self.kind.model_validate(value, from_attributes=True).model_dump(mode="json")


_Made: TypeAlias = tuple[bool, dict[str, Any], ValueType | None]
"""Whether an output is wrapped, its schema, and its type if that is not one of the annotation."""


def _official_output(annotation: Any, name: str) -> _Made | None:
    """The output as the official SDK has it; `None` if it has no schema."""
    pydantic = pydantic_module()
    kind = annotation
    if typing.get_origin(annotation) is typing.Annotated:
        kind = typing.get_args(annotation)[0]
    is_alias = isinstance(kind, GenericAlias)
    wrapped = is_alias or not isinstance(kind, type) or kind in _PLAIN
    if is_alias and typing.get_origin(kind) is dict and typing.get_args(kind)[0] is str:
        titled: Any = typing.Annotated[annotation, pydantic.Field(title=f"{name}DictOutput")]
        return False, pydantic.TypeAdapter(titled).json_schema(), None
    if wrapped:
        model = pydantic.create_model(f"{name}Output", result=annotation)
        return True, model.model_json_schema(), None
    if not typing.get_type_hints(kind):
        return None
    is_model = isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
    if is_model or typing.is_typeddict(kind):
        return False, pydantic.TypeAdapter(kind).json_schema(), None
    hints = typing.get_type_hints(kind, include_extras=True)
    members = {each: (hint, getattr(kind, each, ...)) for each, hint in hints.items()}
    model = pydantic.create_model(kind.__name__, **members)
    return False, model.model_json_schema(), _AttributesType(annotation, model)


def _fastmcp_output(annotation: Any, name: str) -> _Made | None:
    """The output as FastMCP has it; `None` if it has no schema."""
    if annotation in (None, bytes):
        return None
    pydantic = pydantic_module()
    schema: dict[str, Any] = pydantic.TypeAdapter(annotation).json_schema(mode="serialization")
    if schema.get("type") == "object" or "properties" in schema or "$ref" in schema:
        return False, schema, None
    model = pydantic.create_model("_WrappedResult", **{WRAPPER: annotation})
    return True, model.model_json_schema(mode="serialization"), None


def _content(value: Any, dialect: Dialect) -> list[Any]:
    """The content of a value of a function."""
    if value is None:
        return []
    if is_content(value):
        return [value]
    if is_many(value):
        if dialect.splits_lists:
            return [block for item in value for block in _content(item, dialect)]
        if any(map(is_content, value)):
            return [each if is_content(each) else _text(each, dialect) for each in value]
    return [_text(value, dialect)]


def _text(value: Any, dialect: Dialect) -> Text:
    if isinstance(value, str):
        return Text(text=value)
    to_json = importlib.import_module("pydantic_core").to_json
    encoded: bytes = to_json(value, fallback=str, indent=dialect.indent or None)
    return Text(text=encoded.decode())


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without the titles of its schemas; members may be called `title`."""
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _MAPS and is_object(value):
            made[name] = {key: _without_title(each) for key, each in value.items()}
        elif name != "title" and name not in _VALUES:
            made[name] = _without_title(value)
        elif name != "title":
            made[name] = value
    return made


def _without_title(value: Any) -> Any:
    if is_object(value):
        return _without_titles(value)
    if is_many(value):
        return [_without_title(each) for each in value]
    return value
