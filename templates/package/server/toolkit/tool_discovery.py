"""Discovery of tools by search: instead of many tools, a client lists one to search, one to call.

`search_tools` ranks the tools by BM25 over their names, descriptions and arguments. The index is a
full text search of SQLite in memory. It has only tools that the client of the request may see, so
that ranks reveal nothing about others. `call_tool` calls the tool that it names: the arguments are
checked, and the scopes, timeouts and runner are those of that tool.

A tool may be called by its own name as well, whether it is listed or not.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Raw

from ..._wire import encode, is_many, is_object
from ...errors import InvalidParamsError, ToolError
from ...foreign_text import safe_list, safe_repr
from ...protocol import jsonrpc
from ...runtime.request_context import RequestContext
from .content import ToolAnnotations
from .context import Context
from .dispatcher import Dispatcher
from .registry import Listed, checked_tags
from .server import ServerKernel
from .tools import Tool
from .varying_registry import varying

SEARCH, CALL = "search_tools", "call_tool"

QUERY_CHARACTERS = 4096
"""Most characters of a query."""
QUERY_TAGS = 64
"""Most tags that a search may name."""
QUERY_WORDS = 32
"""Most words of a query that are searched for."""
KEPT_INDEXES = 8
"""Indexes that are kept: sessions and principals may see different tools."""

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WEIGHTS = "4.0, 2.0, 1.0"  # of name, description, arguments

_RequiredScopes = Callable[[jsonrpc.Message], Collection[str]]


@dataclass(frozen=True)
class ToolSearch:
    """Settings of the search for tools.

    Attributes:
        results: Most tools that a search returns, unless the model asks for fewer.
        listed: Names or tags of tools that are listed as well.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: Less than one result.
    """

    results: int = 5
    listed: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.results < 1:
            raise ValueError(f"results: expected at least 1, got {self.results}")
        checked_tags(self.listed, "listed")


class CallTool(Tool):
    """The tool that calls another one.

    Args:
        function: A function with the parameters of the tool, which is never called.
        dispatcher: Has the other tools.
        options: See `Tool`.
    """

    def __init__(
        self, function: Callable[..., Any], dispatcher: Dispatcher, **options: Any
    ) -> None:
        super().__init__(function, dispatcher.settings, **options)
        self._dispatcher = dispatcher
        self.respond = self._respond

    @property
    def secret_names(self) -> frozenset[str]:  # pyright: ignore[reportIncompatibleVariableOverride] - not cached, as tools come and go
        """Names of secret arguments of all tools, since a call contains those of one of them."""
        tools = self._dispatcher.registries.tools.all().values()
        others = (each for each in tools if each is not self)
        return frozenset(name for each in others for name in each.secret_names)

    def _respond(self, request: RequestContext) -> Coroutine[Any, Any, Any] | None:
        """The response of the tool that a call names; `None` if the call does not fit."""
        try:
            bound = self.signature.bind(request.params.arguments or {}, coerce=self._coerce)
        except ValueError:
            return None  # `call_tool` itself reports the error
        name = bound["name"]
        item = self._dispatcher.registries.tools.item_of(request, name)
        wire = getattr(item, "wire", _no_members)("any")
        if name in (SEARCH, CALL) or not _is_for_models(wire):
            raise InvalidParamsError(f"unknown tool: {safe_repr(name)}")
        members: dict[str, Any] = {"name": name, "arguments": bound["arguments"] or {}}
        inner = request.with_members(members)
        return self._dispatcher.item_handlers[request.method.name](inner)


class Discovery:
    """The search and call tools of a server, in place of the list of all tools.

    Args:
        dispatcher: Handles the requests of the server.
        search: The settings of the search.
    """

    def __init__(self, dispatcher: Dispatcher, search: ToolSearch) -> None:
        self._tools = varying(dispatcher.registries)[0]
        self._search = search
        self._shown = frozenset(search.listed)
        self._view = self._tools.view
        self._tools.view = self._listed_tools

    def _listed_tools(
        self, listed: Mapping[str, Listed], request: RequestContext
    ) -> Mapping[str, Listed]:
        """The tools that a client lists."""
        shown = {
            key: item
            for key, item in listed.items()
            if key in (SEARCH, CALL)
            or key in self._shown
            or self._shown.intersection(getattr(item, "tags", ()))
        }
        return shown if self._view is None else self._view(shown, request)

    async def find(
        self, query: str, tags: Collection[str], limit: int | None, request: RequestContext
    ) -> list[dict[str, Any]]:
        """The best tools for a query, or the first ones for a query without words.

        Raises:
            ToolError: No tool has one of the tags.
        """
        visible = await self._tools_of(request)
        tools = [wire for wire, own in visible if own.issuperset(tags)]
        if tags and not tools:
            known = sorted({tag for _, own in visible for tag in own})
            raise ToolError(f"no tool has the tags {safe_list([*tags])}; tags: {safe_list(known)}")
        most = min(limit or self._search.results, self._search.results)
        ranked = _index(tuple(map(_texts, tools))).search(query)
        return [tools[number] for number in ranked][:most]

    async def _tools_of(
        self, request: RequestContext
    ) -> list[tuple[dict[str, Any], frozenset[str]]]:
        """The tools that a request may find, each with its tags."""
        listing = RequestContext(
            request.peer,
            request.revision.client_requests["tools/list"],
            None,
            None,
            request.meta,
            request.revision,
            request.request_id,
            request.peer_info,
            request.peer_capabilities,
        )
        tools = await self._tools.listed_now(self._tools.visible_items(listing), listing)
        wires = (
            (item.wire("any"), item) for key, item in tools.items() if key not in (SEARCH, CALL)
        )
        return [
            (wire, frozenset(getattr(item, "tags", ())))
            for wire, item in wires
            if _is_for_models(wire)
        ]


def _no_members(structured_content: str) -> Mapping[str, Any]:
    """The members of a tool that only a proxied server knows: none."""
    return {}


def _is_for_models(wire: Mapping[str, Any]) -> bool:
    """Whether models may call a tool: some are for user interfaces alone (MCP Apps)."""
    meta: Any = wire.get("_meta")
    ui: Any = meta.get("ui") if is_object(meta) else None
    visibility: Any = ui.get("visibility") if is_object(ui) else None
    return not is_many(visibility) or "model" in visibility


def _texts(wire: Mapping[str, Any]) -> tuple[str, str, str]:
    """The texts of a tool: its name, its description, its arguments."""
    properties: Any = wire["inputSchema"].get("properties", {})
    arguments = (
        f"{name} {each.get('description', '') if is_object(each) else ''}"
        for name, each in properties.items()
    )
    description = f"{wire.get('title', '')} {wire.get('description', '')}"
    return wire["name"], description, " ".join(arguments)


class _Index:
    """An index of texts in memory, which is closed with its last reference."""

    def __init__(self, tools: Collection[tuple[str, str, str]]) -> None:
        self._count = len(tools)
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)  # else Python warns of an open database
        self._database.execute(
            "CREATE VIRTUAL TABLE tools"
            " USING fts5(name, description, arguments, tokenize='porter unicode61')"
        )
        rows = ((number, *map(_words, texts)) for number, texts in enumerate(tools))
        self._database.executemany(
            "INSERT INTO tools(rowid, name, description, arguments) VALUES (?, ?, ?, ?)", rows
        )

    def search(self, query: str) -> Iterator[int]:
        """Numbers of the tools that match a word of a query, best first; all tools if no words."""
        words = dict.fromkeys(_words(query).split())
        if not words:
            return iter(range(self._count))
        match = " OR ".join(f'"{word}"' for word in [*words][:QUERY_WORDS])
        rows = self._database.execute(
            f"SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {_WEIGHTS}), rowid",
            (match,),
        )
        return (number for (number,) in rows)


_index = lru_cache(KEPT_INDEXES)(_Index)


def _words(text: str) -> str:
    """The words of a text; names in camel case are split."""
    return " ".join(_WORD.findall(_HUMP.sub(" ", text)))


def add_discovery(
    server: ServerKernel, dispatcher: Dispatcher, search: ToolSearch | Literal["search"]
) -> None:
    """Add the search and call tools to a server, in place of the list of all its tools.

    Args:
        server: Registers tools.
        dispatcher: Handles its requests.
        search: The settings of the search.

    Raises:
        ValueError: Not a known form of discovery.
        RuntimeError: The SQLite of this Python has no full text search.
    """
    if isinstance(search, str):
        if search != "search":
            raise ValueError(f"discovery: expected 'search' or a ToolSearch, got {search!r}")
        search = ToolSearch()
    try:
        _index(())
    except sqlite3.OperationalError as error:
        raise RuntimeError(f"discovery: this Python's SQLite has no FTS5: {error}") from None
    discovery = Discovery(dispatcher, search)

    async def search_tools(
        ctx: Context,
        query: Annotated[
            str,
            msgspec.Meta(
                description="Words for what the tool should do.", max_length=QUERY_CHARACTERS
            ),
        ],
        tags: Annotated[
            Annotated[list[str], msgspec.Meta(max_length=QUERY_TAGS)] | None,
            msgspec.Meta(description="Tags that it must have."),
        ] = None,
        limit: Annotated[
            Annotated[int, msgspec.Meta(ge=1)] | None,
            msgspec.Meta(description="Most tools to return."),
        ] = None,
    ) -> str:
        """Find tools of this server by what they do. Returns the best with their input schemas;
        call one by call_tool."""
        matches = await discovery.find(query, tags or (), limit, ctx.request_context)
        kept = ("name", "description", "inputSchema")
        tools = [{key: tool[key] for key in kept if key in tool} for tool in matches]
        return encode(tools).decode()

    async def call_tool(
        name: Annotated[str, msgspec.Meta(description="Its name, as search_tools gives it.")],
        arguments: Annotated[
            dict[str, Any] | None, msgspec.Meta(description="Its arguments, by its input schema.")
        ] = None,
    ) -> None:
        """Call a tool that search_tools found."""

    hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    server.tool(structured=False, annotations=hints)(search_tools)
    call = CallTool(call_tool, dispatcher, name=CALL, members={}, structured=False, names=None)
    dispatcher.registries.tools.add(CALL, call)


class _Inner(msgspec.Struct):
    name: str


class _Outer(msgspec.Struct):
    name: str
    arguments: _Inner


_decode_outer = msgspec.json.Decoder(_Outer).decode


def with_inner_calls(required: _RequiredScopes) -> _RequiredScopes:
    """A function of required scopes that finds those of the tool in calls of `call_tool`."""

    def scopes_of(message: jsonrpc.Message) -> Collection[str]:
        if isinstance(message, jsonrpc.Request) and message.method == "tools/call":
            try:
                outer = _decode_outer(message.params or b"null")
            except msgspec.MsgspecError:
                return required(message)
            if outer.name == CALL:
                params = Raw(encode({"name": outer.arguments.name}))
                return required(jsonrpc.Request(message.id, message.method, params))
        return required(message)

    return scopes_of
