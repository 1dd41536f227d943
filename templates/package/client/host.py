"""Functions for host applications: icons, and tools for a model's API.

`safe_icons` says which icons are safe to show.

`ModelTools` declares the tools of a server as functions of a model's API, and runs the calls that a
model requests. Each API has a row in `_APIS`: how functions are declared, which media types a
function result may have, and the form of that result. All APIs accept names that match `_NAME`;
other names are altered, and mapped back in calls, and so are the names of properties that an API
refuses. Unsupported parts are not dropped: keywords of a schema are stated in the description, and
content is replaced by a text that describes it. Strict mode is in `strict_schemas`.

Source: basic/index#icons (2025-11-25, 2026-07-28).
Sources of the APIs: developers.openai.com/api/docs/guides/function-calling and tools-tool-search;
platform.claude.com (tool use: define tools, strict tool use, tool search tool);
ai.google.dev/api/caching#FunctionDeclaration and #FunctionResponse.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from .._wire import UNREADABLE, UNSET, is_many, is_object, to_builtins
from ..errors import InvalidParamsError, McpError
from ..foreign_text import safe_repr
from ..runtime.pending_requests import OnProgress
from ..tool_results import plain_value, states_value, structured_value, texts
from .property_keys import PropertyKeys, safe_name
from .strict_schemas import SUBSETS, NotStrictError, Reduction, without_absent


class DeclaredTools(list[Any]):
    """Tools in the form of a model's API: a list of JSON objects.

    Attributes:
        notes: By name of a tool: the differences between its schema and its declaration, each with
            its place. Keywords that are removed are stated in a description where possible.
    """

    def __init__(self, tools: Iterable[Any], notes: Mapping[str, Sequence[str]]) -> None:
        super().__init__(tools)
        self.notes = notes


ModelApi: TypeAlias = Literal["openai", "openai-chat", "anthropic", "gemini"]
"""The API of a model: OpenAI's Responses or Chat Completions, Anthropic's Messages, Gemini's
generateContent."""

_CALL, _LIST = "tools/call", "tools/list"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names of functions that every API accepts."""

_ANTHROPIC_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_GEMINI_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Names of properties that the APIs accept."""

_COMBINING = ("allOf", "anyOf", "oneOf", "not", "enum")
"""Keywords that APIs refuse at the root of a function's schema."""

_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_PDF = "application/pdf"

_IMAGE = "data:image/"

_logger = logging.getLogger(__name__)


class HasSource(Protocol):
    """An object with the URI of an image."""

    @property
    def src(self) -> str:
        """The URI."""
        ...


AnyIcon = TypeVar("AnyIcon", bound=HasSource)


def safe_icons(icons: Iterable[AnyIcon] | None, server: str | None = None) -> list[AnyIcon]:
    """The icons that are safe to show: images in `data:` URIs and at `https:` URLs.

    No icon is fetched here. Fetch icons without credentials, follow no redirect to another scheme
    or origin, limit the size, and determine the type from the bytes.

    Args:
        icons: The icons of a tool, a resource and so on; `None` if they are absent.
        server: URL of the server; `https:` URLs of other origins are then excluded.
    """
    if icons is None:
        return []
    return [icon for icon in icons if _is_safe(icon.src, server)]


def _is_safe(src: str, server: str | None) -> bool:
    if not src.isascii() or not src.isprintable() or src != src.strip():
        return False
    if src[: len(_IMAGE)].lower() == _IMAGE:
        return True
    origin = _origin(src)
    return origin is not None and (server is None or origin == _origin(server))


def _origin(url: str) -> tuple[str, int] | None:
    """Host and port of an `https:` URL; `None` for other URIs."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (host, port or 443) if host and parts.scheme == "https" else None


class Requests(Protocol):
    """Sends requests, as `RequestPipeline` does."""

    async def pages(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """The items of all pages of a list."""
        ...

    def call(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Awaitable[Any]:
        """The typed result of a request."""
        ...


class ModelTools:
    """The tools of a client as functions of models.

    Args:
        requests: Sends the requests of the client.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._tools: dict[str, str] = {}  # names of tools by names of functions
        self._withheld: frozenset[str] = frozenset()  # tools that models may not call
        self._listed: dict[str, Any] = {}  # tools by names of functions
        self._keys: dict[tuple[ModelApi, str], PropertyKeys] = {}  # by names of functions
        # Schemas of functions that were declared with all members required, by API and name.
        self._all_required: dict[ModelApi, dict[str, Mapping[str, Any]]] = {}

    async def declare_tools(
        self, api: ModelApi, strict: bool, defer: bool, timeout: float | None
    ) -> DeclaredTools:
        """Declare the tools in the form of an API; see `ClientBase.tools_for`."""
        if api not in _APIS:
            raise ValueError(f"expected one of {', '.join(_APIS)}, got {api!r}")
        search = _SEARCH_TOOLS.get(api)
        if defer and search is None:
            raise ValueError(
                f"defer: expected one of {', '.join(_SEARCH_TOOLS)}, got {api!r}, which has no "
                "search for tools"
            )
        tools = await self._list_tools(timeout)
        functions: list[Function] = []
        notes: dict[str, Sequence[str]] = {}
        self._all_required[api] = {}
        for name, tool in tools.items():
            function = _function(name, to_builtins(tool), defer, self._keys_of(api, name))
            if strict:
                function = self._make_strict(api, function)
            functions.append(function)
            if function.notes:
                notes[tool.name] = function.notes
        declared = _APIS[api].declare(functions)
        return DeclaredTools([search, *declared] if defer and declared else declared, notes)

    def _make_strict(self, api: ModelApi, function: Function) -> Function:
        """A function in strict mode, if the API can express its schema; else with a note."""
        subset = SUBSETS[api]
        reduction = Reduction(subset)
        try:
            parameters = reduction.reduce_arguments(function.parameters)
        except NotStrictError as error:
            return replace(function, notes=[*function.notes, f"not strict: {error}"])
        if subset.requires_all:
            self._all_required[api][function.name] = function.parameters
        notes = [*function.notes, *reduction.notes]
        return replace(function, parameters=parameters, is_strict=True, notes=notes)

    def _arguments(self, call: ToolCall) -> Mapping[str, Any]:
        """The arguments of a call by the names of the tool, without nulls for absent members.

        Raises:
            InvalidParamsError: The arguments are not a JSON object.
        """
        arguments = call.decoded_arguments()
        schema = self._all_required.get(call.api, {}).get(call.name)
        if schema is not None:
            arguments = without_absent(arguments, schema)
        return self._keys_of(call.api, call.name).restore(arguments)

    def _keys_of(self, api: ModelApi, function: str) -> PropertyKeys:
        """The names of the properties of a function, which may differ from those of its tool."""
        place = api, function
        if place not in self._keys:
            tool = self._listed.get(function)
            schema: dict[str, Any] = {} if tool is None else to_builtins(tool.input_schema)
            self._keys[place] = PropertyKeys(schema, _APIS[api].keys)
        return self._keys[place]

    async def run(
        self,
        tool_call: object,
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Any:
        """Run a call that a model requests; see `ClientBase.call_from`."""
        call = ToolCall.of(tool_call)
        api = _APIS[call.api]
        try:
            name = await self._tool_name(call.name, timeout)
            fields = {"name": name, "arguments": self._arguments(call)}
            result = await self._requests.call(_CALL, fields, meta, timeout, on_progress)
        except McpError as error:
            _logger.info("the model is told that %s failed: %s", safe_repr(call.name), error)
            return api.answer(call, Answer([str(error)], failed=True))
        parts = list(_replace_rejected_media(_contents(result), call.api))
        failed = bool(getattr(result, "is_error", None))
        if failed and not any(isinstance(part, str) for part in parts):
            parts.insert(0, "the tool gave no text")
        return api.answer(call, Answer(parts, failed))

    async def _list_tools(self, timeout: float | None) -> dict[str, Any]:
        """The tools by function name; a tool keeps its function name from earlier lists."""
        listed = await self._requests.pages(_LIST, {}, None, timeout)
        tools = {tool.name: tool for tool in listed if _is_for_models(tool)}
        self._withheld = frozenset(tool.name for tool in listed) - tools.keys()
        taken = {name: name for name in tools if _NAME.fullmatch(name)}
        taken |= {function: name for function, name in self._tools.items() if name in tools}
        functions = {tool: function for function, tool in taken.items()}
        for name in tools:
            if name not in functions:
                function = safe_name(name, _NAME, taken)
                taken[function], functions[name] = name, function
        self._tools = taken
        self._listed = {functions[name]: tool for name, tool in tools.items()}
        self._keys.clear()
        return self._listed

    async def _tool_name(self, function: str, timeout: float | None) -> str:
        """The name of the tool of a function; the name of the function if no tool is listed.

        Raises:
            InvalidParamsError: Models may not call the tool.
        """
        if function not in self._tools:
            await self._list_tools(timeout)
        if function in self._withheld:
            raise InvalidParamsError(f"unknown tool: {safe_repr(function)}")
        return self._tools.get(function, function)


def _is_for_models(tool: Any) -> bool:
    """Whether models may call a tool; some tools are for user interfaces only.

    Source: ext-apps/specification/2026-01-26/apps (visibility).
    """
    meta: Any = getattr(tool, "meta", None)
    ui: Any = meta.get("ui") if is_object(meta) else None
    visibility: Any = ui.get("visibility") if is_object(ui) else None
    return not is_many(visibility) or "model" in visibility


@dataclass(frozen=True)
class ToolCall:
    """A call that a model requests.

    Attributes:
        api: The API whose form the call has.
        id: The id of the call, which the result repeats; Gemini may omit the id.
        name: The name of the function.
        arguments: A JSON object, decoded, or as text in calls of OpenAI.
    """

    api: ModelApi
    id: str | None
    name: str
    arguments: Any

    @classmethod
    def of(cls, tool_call: Any) -> ToolCall:
        """Read a call from JSON data, or from an object of the provider's library.

        Raises:
            TypeError: The object does not have the form of any API.
        """
        get = _getter(tool_call)
        match get("type"):
            case "tool_use":
                return cls("anthropic", get("id"), get("name"), get("input"))
            case "function_call":
                return cls("openai", get("call_id"), get("name"), get("arguments"))
            case "function" if (function := get("function")) is not None:
                of = _getter(function)
                return cls("openai-chat", get("id"), of("name"), of("arguments"))
            case None:
                of = _getter(get("functionCall") or get("function_call") or tool_call)
                if isinstance(of("name"), str) and of("function") is None:
                    return cls("gemini", of("id"), of("name"), of("args"))
            case _:
                pass
        raise TypeError(
            "tool_call: expected a function_call or a tool call of type function of OpenAI, a "
            "tool_use block of Anthropic, or a functionCall of Gemini, got "
            f"{type(tool_call).__name__} {safe_repr(tool_call)}"
        )

    def decoded_arguments(self) -> Mapping[str, Any]:
        """The arguments as JSON data.

        Raises:
            InvalidParamsError: The arguments are not a JSON object.
        """
        arguments = self.arguments
        if isinstance(arguments, str):
            try:
                arguments = msgspec.json.decode(arguments) if arguments.strip() else None
            except UNREADABLE as error:
                raise InvalidParamsError(f"arguments: expected JSON: {error}") from None
        if arguments is None:
            return {}
        if not is_object(arguments):
            raise InvalidParamsError(
                f"arguments: expected a JSON object, got {safe_repr(self.arguments)}"
            )
        return dict(arguments)


def _getter(holder: Any) -> Callable[[str], Any]:
    """A function that reads members of a mapping or attributes of an object; absent: `None`."""
    if is_object(holder):
        return holder.get
    return lambda name: getattr(holder, name, None)


@dataclass(frozen=True)
class Media:
    """Binary content.

    Attributes:
        mime_type: Its media type, in lower case and without parameters; may be empty.
        data: The content in base64.
        name: A file name for the content.
    """

    mime_type: str
    data: str
    name: str


@dataclass(frozen=True)
class Answer:
    """The result of a call, for a model.

    Attributes:
        parts: Its texts, and the media that the API accepts, in order.
        failed: Whether the call failed.
    """

    parts: Sequence[str | Media]
    failed: bool

    @property
    def texts(self) -> list[str]:
        """The texts; the first text of a failed call begins with `Error`."""
        texts = [part for part in self.parts if isinstance(part, str)]
        return ["Error: " + texts[0], *texts[1:]] if self.failed and texts else texts

    @property
    def media(self) -> list[Media]:
        """The media."""
        return [part for part in self.parts if isinstance(part, Media)]


@dataclass(frozen=True)
class Function:
    """A tool as a function: its name, its description and the JSON Schema of its arguments.

    Attributes:
        is_deferred: Whether the model has to search for the function.
        is_strict: Whether the function is declared in strict mode.
        notes: The differences between the declaration and the tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    is_deferred: bool
    is_strict: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Api:
    """The forms of one API.

    Attributes:
        declare: Returns the value of `tools` for functions.
        media: Media types that the result of a function may have.
        answer: Returns the message with the result of a call.
        keys: Names of properties that the API accepts; `None` for any name.
    """

    declare: Callable[[Sequence[Function]], list[Any]]
    media: frozenset[str]
    answer: Callable[[ToolCall, Answer], Any]
    keys: re.Pattern[str] | None = None


def _function(
    name: str, tool: Mapping[str, Any], is_deferred: bool, keys: PropertyKeys
) -> Function:
    """The function of a tool; `tool` is a wire object, `keys` are the names of its properties."""
    description: str = tool.get("description") or tool.get("title") or tool["name"]
    parameters = {key: value for key, value in keys.schema.items() if key != "$schema"}
    parameters.setdefault("properties", {})
    moved = {key: parameters.pop(key) for key in _COMBINING if key in parameters}
    if moved:
        rule = msgspec.json.encode(moved).decode()
        description += f"\n\nThe arguments must also match this JSON Schema: {rule}"
    notes = [f"/: {', '.join(moved)} is in the description alone"] if moved else []
    return Function(name, description, parameters, is_deferred, notes=[*keys.notes, *notes])


def _contents(result: Any) -> Iterator[str | Media]:
    """The content of a typed result, and its structured value unless a text contains it."""
    for block in getattr(result, "content", ()):
        yield _part(to_builtins(block))
    value = structured_value(result)
    if value is UNSET:
        return
    repeated = plain_value(result) is not value and not getattr(result, "is_error", None)
    if not repeated and not any(states_value(text, value) for text in texts(result)):
        yield msgspec.json.encode(to_builtins(value)).decode()


def _part(block: Mapping[str, Any]) -> str | Media:
    """Convert a content block, as wire object, to text or media."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _media(block, data, kind)
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data)} as resource}:
            return _media(resource, data, uri.rstrip("/").rpartition("/")[2] or "file")
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)} as resource}:
            mime_type = resource.get("mimeType")
            kind = f" ({mime_type})" if mime_type else ""
            return f"Resource {uri}{kind}:\n{text}"
        case _:
            return msgspec.json.encode(block).decode()


def _media(holder: Mapping[str, Any], data: str, name: str) -> Media:
    mime_type: str = holder.get("mimeType") or ""
    return Media(mime_type.partition(";")[0].strip().lower(), data, name)


def _replace_rejected_media(parts: Iterator[str | Media], api: ModelApi) -> Iterator[str | Media]:
    """Replace each media part that the API does not accept by a text."""
    for part in parts:
        if isinstance(part, Media) and part.mime_type not in _APIS[api].media:
            size = len(part.data) * 3 // 4 - part.data.count("=")
            kind = part.mime_type or "content of unknown type"
            _logger.warning("%s: a result of a tool can't have %s", api, safe_repr(kind))
            yield f"[{part.name}: {kind}, {size} bytes, which can't be shown in this conversation]"
        elif part:
            yield part


def _openai_tools(functions: Sequence[Function]) -> list[Any]:
    return [{"type": "function", **_openai_function(function)} for function in functions]


def _openai_chat_tools(functions: Sequence[Function]) -> list[Any]:
    return [{"type": "function", "function": _openai_function(function)} for function in functions]


def _openai_function(function: Function) -> dict[str, Any]:
    """A declaration; `strict` is always stated, since the API may default to true."""
    return {
        "name": function.name,
        "description": function.description,
        "parameters": function.parameters,
        "strict": function.is_strict,
        **_deferral_members(function),
    }


def _anthropic_tools(functions: Sequence[Function]) -> list[Any]:
    return [
        {
            "name": each.name,
            "description": each.description,
            "input_schema": each.parameters,
            **({"strict": True} if each.is_strict else {}),
            **_deferral_members(each),
        }
        for each in functions
    ]


def _deferral_members(function: Function) -> dict[str, Any]:
    return {"defer_loading": True} if function.is_deferred else {}


def _gemini_tools(functions: Sequence[Function]) -> list[Any]:
    declarations = [
        {"name": each.name, "description": each.description, **_gemini_parameters(each)}
        for each in functions
    ]
    return [{"functionDeclarations": declarations}] if declarations else []


def _gemini_parameters(function: Function) -> dict[str, Any]:
    if not function.is_strict:
        return {"parametersJsonSchema": function.parameters}
    return {"parameters": function.parameters} if function.parameters["properties"] else {}


def _openai_answer(call: ToolCall, answer: Answer) -> Any:
    output: Any = "\n".join(answer.texts)
    if answer.media:
        following = iter(answer.texts)
        output = [
            _openai_part(next(following) if isinstance(part, str) else part)
            for part in answer.parts
        ]
    return {"type": "function_call_output", "call_id": call.id, "output": output}


def _openai_part(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    url = f"data:{part.mime_type};base64,{part.data}"
    if part.mime_type in _IMAGES:
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": part.name, "file_data": url}


def _openai_chat_answer(call: ToolCall, answer: Answer) -> Any:
    return {"role": "tool", "tool_call_id": call.id, "content": "\n".join(answer.texts)}


def _anthropic_answer(call: ToolCall, answer: Answer) -> Any:
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": [_anthropic_part(part) for part in answer.parts],
        "is_error": answer.failed,
    }


def _anthropic_part(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    return {"type": "image" if part.mime_type in _IMAGES else "document", "source": source}


def _gemini_answer(call: ToolCall, answer: Answer) -> Any:
    text = "\n".join(part for part in answer.parts if isinstance(part, str))
    response: dict[str, Any] = {
        "name": call.name,
        "response": {"error" if answer.failed else "output": text},
    }
    if call.id is not None:
        response["id"] = call.id
    if answer.media:
        response["parts"] = [
            {"inlineData": {"mimeType": part.mime_type, "data": part.data}} for part in answer.media
        ]
    return {"functionResponse": response}


_SEARCH_TOOLS: Mapping[ModelApi, Mapping[str, str]] = {
    "openai": {"type": "tool_search"},
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
}
"""By API: the built-in tool with which a model searches for deferred tools."""

_APIS: Mapping[ModelApi, _Api] = {
    "openai": _Api(_openai_tools, _IMAGES | {_PDF}, _openai_answer),
    "openai-chat": _Api(_openai_chat_tools, frozenset(), _openai_chat_answer),
    "anthropic": _Api(_anthropic_tools, _IMAGES | {_PDF}, _anthropic_answer, _ANTHROPIC_KEY),
    "gemini": _Api(
        _gemini_tools,
        frozenset({"image/jpeg", "image/png", "image/webp", _PDF}),
        _gemini_answer,
        _GEMINI_KEY,
    ),
}
