"""The session behind the page of the inspector, and the events that the page shows.

The page sends actions and receives their results. Everything else reaches the page as events: the
state of the session, the messages on the wire, progress, changes of lists, and questions of the
server, which the page answers by a further action.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import msgspec

from .._wire import encode, is_object, to_builtins
from ..apps import UI_EXTENSION
from ..client.application import ELICITATION, ROOTS, SAMPLING, Handlers
from ..client.base import ClientBase
from ..client.listen import ListeningAgain, ResourceUpdated
from ..errors import ConnectionClosedError, McpError, MethodNotFoundError, ProtocolError
from ..facts import Method
from ..foreign_text import WEB_SCHEMES
from ..runtime.request_context import RequestContext
from ..runtime.trace import TRACE_SINK
from .app_sandbox import AppSandbox

KEPT_EVENTS = 2000
KEPT_BYTES = 64 * 2**20
"""Bytes of past events that are kept for a page that is opened later or again."""

CAPABILITIES: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "extensions": UI_EXTENSION,
}
"""Capabilities of the page besides those of its handlers."""

USER_REFUSED = -1
"""Code of the error for a question that the user refuses. Source: client/sampling."""

_QUESTIONS = (ELICITATION, SAMPLING, ROOTS)
_REQUESTS = (
    *("list_tools", "list_resources", "list_resource_templates", "list_prompts"),
    *("call_tool", "read_resource", "get_prompt", "complete"),
)
"""Methods of a client that the page may call."""

_NO_MEMBERS: Mapping[str, Any] = {}
_LISTS = ("tools", "prompts", "resources")

Opener = Callable[[str | None, Handlers], AbstractAsyncContextManager[ClientBase]]
"""Opens a session in a revision, negotiated if `None`, with handlers."""


class ActionError(Exception):
    """An action of the page can't be done; the text is for the page."""


class EventLog:
    """Events for the page, numbered from one. The oldest events are dropped if there are too many.

    Attributes:
        closed: Whether the log is closed; then `after` does not wait.
    """

    def __init__(self) -> None:
        self._events: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._last = 0
        self._news = anyio.Event()
        self.closed = False

    def append(self, kind: str, **members: Any) -> None:
        """Add an event."""
        self._last += 1
        event = encode({"number": self._last, "kind": kind, **members})
        self._events.append((self._last, event))
        self._size += len(event)
        while len(self._events) > KEPT_EVENTS or self._size > KEPT_BYTES:
            self._size -= len(self._events.popleft()[1])
        self._wake()

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a record of the wire trace."""
        self.append("wire", **record)

    def trace(self) -> bytes:
        """The messages among the events as a trace: one record a line, as MCP_TRACE writes them."""
        lines: list[bytes] = []
        for _, event in self._events:
            members = msgspec.json.decode(event, type=dict[str, msgspec.Raw])
            if bytes(members.pop("kind")) == b'"wire"':
                del members["number"]
                lines.append(msgspec.json.encode(members) + b"\n")
        return b"".join(lines)

    def close(self) -> None:
        """Wake all tasks that wait for events."""
        self.closed = True
        self._wake()

    async def after(self, number: int, seconds: float) -> bytes:
        """The events after a number as a JSON array; waits some seconds for the first event."""
        if number >= self._last and not self.closed:
            with anyio.move_on_after(seconds):
                await self._news.wait()
        return b"[%s]" % b",".join(event for each, event in self._events if each > number)

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


@dataclass(frozen=True)
class _Wire:
    """The trace sink of one session; closing it does not close the event log."""

    events: EventLog
    closed: bool = False

    def write(self, record: Mapping[str, Any]) -> None:
        self.events.write(record)

    def close(self) -> None:
        """Do nothing: the event log stays open."""


@dataclass(frozen=True)
class _Question:
    """A request of the server that the user has not answered yet."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: list[Any] = field(default_factory=list[Any])


@dataclass
class _Current:
    """An open session."""

    client: Any  # a client of the revision: its methods are called by name
    tasks: anyio.abc.TaskGroup
    ended: anyio.Event = field(default_factory=anyio.Event)
    followed: dict[str, anyio.CancelScope] = field(default_factory=dict[str, anyio.CancelScope])


class InspectorSession:
    """A session with the inspected server, opened again when the page asks.

    Args:
        open_client: Opens the session.
        target: The target, for the page.
        revisions: The revisions that the page can choose, oldest first.
        revision: The revision to start with; negotiated if `None`.

    Attributes:
        events: The events for the page.
        sandbox: The sandboxes of user interfaces of tools.
        url_schemes: URL schemes that a server may ask the user to open.
    """

    def __init__(
        self, open_client: Opener, target: str, revisions: Collection[str], revision: str | None
    ) -> None:
        self.events = EventLog()
        self.sandbox = AppSandbox()
        self.url_schemes: Collection[str] = WEB_SCHEMES
        self._open_client = open_client
        self._target = target
        self._revisions = revisions
        self._revision = revision
        self._current: _Current | None = None
        self._connect = anyio.Event()
        self._questions: dict[int, _Question] = {}
        self._numbers = itertools.count()
        self._actions: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            "request": self._request,
            "app": self._open_app,
            "answer": self._answer,
            "connect": self._connect_again,
            "follow": self._follow,
            "unfollow": self._unfollow,
            "log_level": self._set_log_level,
        }

    async def run(self) -> None:
        """Open sessions, one at a time, until cancelled."""
        TRACE_SINK.set(_Wire(self.events))
        while True:
            self._state("connecting", revision=self._revision)
            try:
                async with self._open_client_session() as current:
                    await current.ended.wait()
                self._state("closed")
            except (McpError, OSError, TypeError, ValueError) as error:
                self._state("failed", error=_text(error))
            await self._connect.wait()
            self._connect = anyio.Event()

    async def act(self, name: str, members: Mapping[str, Any]) -> Any:
        """Run an action of the page.

        Returns:
            Data that can be encoded as JSON.

        Raises:
            ActionError: The action is invalid or impossible.
            McpError: The server refused the request, or the connection ended.
        """
        action = self._actions.get(name)
        if action is None:
            raise ActionError(f"expected one of {', '.join(self._actions)}, got {name!r}")
        try:
            return await action(members)
        except ConnectionClosedError:
            if self._current is not None:
                self._current.ended.set()
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise ActionError(f"{name}: {error}") from None

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The handler of questions to the user; `None` for other methods."""
        return self._ask if method.name in _QUESTIONS else None

    @asynccontextmanager
    async def _open_client_session(self) -> AsyncGenerator[_Current, None]:
        opening = self._open_client(self._revision, self)
        async with opening as client, anyio.create_task_group() as tasks:
            self._current = current = _Current(client, tasks)
            try:
                self._state("open", **_description(client))
                tasks.start_soon(self._report_changes, current)
                yield current
            finally:
                self._current = None
                tasks.cancel_scope.cancel()

    def _state(self, state: str, **members: Any) -> None:
        common = {"target": self._target, "revisions": [*reversed([*self._revisions])]}
        self.events.append("state", state=state, **common, **members)

    def _open_session(self) -> _Current:
        if self._current is None:
            raise ActionError("there is no session: connect again")
        return self._current

    async def _connect_again(self, members: Mapping[str, Any]) -> None:
        revision = members.get("revision")
        self._revision = None if revision is None else str(revision)
        if self._current is not None:
            self._current.ended.set()
        self._connect.set()

    async def _request(self, members: Mapping[str, Any]) -> Any:
        """Call a method of the client by name, with its parameters; progress becomes events."""
        name, call = members["method"], members["call"]
        fields: Any = members.get("params", _NO_MEMBERS)
        if name not in _REQUESTS or not is_object(fields):
            raise ValueError(f"expected one of {', '.join(_REQUESTS)} with an object, got {name!r}")

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self.events.append(
                "progress", call=call, progress=progress, total=total, message=message
            )

        options = {} if name.startswith("list_") else {"on_progress": on_progress}
        return to_builtins(await getattr(self._open_session().client, name)(**fields, **options))

    async def _open_app(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the user interface of a tool, and add a sandbox for it."""
        client, name = self._open_session().client, members["tool"]
        tools = {tool.name: tool for tool in await client.list_tools()}
        document = await client.read_ui(tools[name])
        path = self.sandbox.add(document)
        return {"path": path, "html": document.html, "border": document.prefers_border}

    # Questions of the server.

    async def _ask(self, params: Any, context: RequestContext) -> Any:
        number = next(self._numbers)
        question = self._questions[number] = _Question()
        members: Mapping[str, Any] = _NO_MEMBERS if params is None else to_builtins(params)
        self.events.append("question", id=number, method=context.method.name, params=members)
        try:
            await question.answered.wait()
        finally:
            del self._questions[number]
            self.events.append("answered", id=number)
        if not question.answer:
            raise ProtocolError("the user refused", code=USER_REFUSED)
        return question.answer[0]

    async def _answer(self, members: Mapping[str, Any]) -> None:
        question = self._questions.get(members["id"])
        if question is None:
            raise ActionError("the question was answered or withdrawn")
        if members.get("result") is not None:
            question.answer.append(members["result"])
        question.answered.set()

    # Notifications of the server.

    async def _report_changes(self, current: _Current) -> None:
        """Report changes of lists while the session is open."""
        flags = {name: current.client.supports(f"{name}.listChanged") for name in _LISTS}
        if not any(flags.values()):
            return
        try:
            async with current.client.listen(**flags, idle_seconds=None) as changes:
                async for change in changes:
                    what = type(change).__name__.removesuffix("Changed").lower()
                    all_lists = isinstance(change, ListeningAgain)
                    self.events.append("changed", lists=_LISTS if all_lists else [what])
        except ConnectionClosedError:
            current.ended.set()
        except McpError as error:
            self.events.append("notice", text=f"changes are not shown: {_text(error)}")

    async def _follow(self, members: Mapping[str, Any]) -> None:
        current, uri = self._open_session(), str(members["uri"])
        if uri not in current.followed:
            await current.tasks.start(self._report_updates, current, uri)

    async def _unfollow(self, members: Mapping[str, Any]) -> None:
        scope = self._open_session().followed.pop(str(members["uri"]), None)
        if scope is not None:
            scope.cancel()

    async def _report_updates(
        self, current: _Current, uri: str, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Report updates of a resource until the user unsubscribes."""
        listening = False
        try:
            with anyio.CancelScope() as scope:
                async with current.client.listen(uris=[uri], idle_seconds=None) as changes:
                    current.followed[uri] = scope
                    listening = True
                    task_status.started()
                    async for change in changes:
                        if isinstance(change, ResourceUpdated):
                            self.events.append("updated", uri=change.uri)
        except McpError as error:
            if not listening:
                raise
            self.events.append("notice", text=f"{uri}: {_text(error)}")
        finally:
            if listening:
                current.followed.pop(uri, None)

    async def _set_log_level(self, members: Mapping[str, Any]) -> None:
        client, level = self._open_session().client, str(members["level"])
        try:
            await client.set_level(level)
        except MethodNotFoundError:  # the revision asks with each request
            client.ask_for_logs(level)


def _description(client: ClientBase) -> dict[str, Any]:
    """The description of a server on the page."""
    return {
        "revision": client.revision,
        "server": dict(client.server_info),
        "capabilities": dict(client.server_capabilities),
        "instructions": client.instructions,
    }


def _text(error: Exception) -> str:
    """The text of an error for JSON: without lone surrogates."""
    return str(error).encode(errors="replace").decode()
