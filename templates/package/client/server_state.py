"""A client's state of a server: its tools, its session, and pending elicitations.

A transport may replace a lost session by a new session. The client then repeats the requests whose
effect lasts for a session, before any other request.

Structured results of tools are validated by the latest output schema that the server listed. A
schema is compiled when the first result of its tool is validated.

Source: server/tools#output-schema, server/utilities/logging, server/resources#subscriptions,
client/elicitation; basic/transports (session management, to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, TypeAlias

import msgspec

from .._wire import UNSET, Raw, decoder, is_many, is_object, to_builtins
from ..errors import McpError, MissingExtraError, RemoteProtocolError
from ..facts import Method
from ..foreign_text import safe_repr
from ..json_schema import Complaint, Deadline, JsonSchema
from ..json_schema.checks import complaint_in_time, validator_in_time
from ..method_facts import MethodFacts
from ..protocol.requests import RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE
from ..tool_results import hints_of
from .client_settings import ClientSettings

TOOLS_LIST = "tools/list"
COMPLETE = "notifications/elicitation/complete"
SET_LEVEL = "logging/setLevel"
LASTING = frozenset({SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""Requests whose effect lasts for a session."""

ID_CHARACTERS = 1000
"""Longest id of an elicitation that is stored."""

_MISSING = "expected a value, since the tool has an output schema, got nothing"

_decode = decoder(dict[str, Any])
_logger = logging.getLogger(__name__)


OnStale: TypeAlias = Callable[[Collection[str] | None, str | None], None]
"""Called with the methods whose results are stale, `None` for all, and with the URI of a resource
that was updated, if any."""


class ServerState:
    """The state of a server, as of its lists, results and notifications.

    Attributes:
        output_schemas: The output schemas of the tools.
        elicitations: The pending URL mode elicitations.
        session: The state of the session.
        task_support: By name of a tool: whether calls as tasks are `optional` or `required`.
        has_listed_tools: Whether the server has listed tools.
        on_stale: Functions to call when results become stale.
    """

    def __init__(self, settings: ClientSettings) -> None:
        limits = settings.limits
        self.output_schemas = OutputSchemas(settings.timeouts.validation, limits.tools)
        self.elicitations = Elicitations(limits.elicitations)
        self.session = SessionRestore()
        self.task_support: dict[str, str] = {}
        self.has_listed_tools = False
        self.on_stale: list[OnStale] = []
        self._retryable_tools: dict[str, None] = {}
        self._max_tools = limits.tools

    def store_tools(self, tools: Iterable[Any]) -> None:
        """Store which typed tools may be called again."""
        self.has_listed_tools = True
        for tool in tools:
            hints = hints_of(tool)
            if hints.read_only or hints.idempotent:
                self._retryable_tools[tool.name] = None
                drop_oldest(self._retryable_tools, self._max_tools)
            else:
                self._retryable_tools.pop(tool.name, None)

    def retry_is_safe(self, facts: MethodFacts, params: Any) -> bool:
        """Whether a request may be sent again if its response was lost.

        Args:
            facts: The facts of its method.
            params: Its params: a Struct, a wire object, or raw JSON, whose tool is not decoded.
        """
        if facts.idempotent:
            return True
        if facts.listed_by != TOOLS_LIST:
            return False
        tool = params.get("name") if is_object(params) else getattr(params, "name", None)
        return isinstance(tool, str) and tool in self._retryable_tools

    def invalidate(self, notification: Method, params: Any) -> bool:
        """Drop the state that a notification invalidates.

        Returns:
            Whether to pass the notification to handlers.
        """
        if notification.name == COMPLETE:
            return self.elicitations.complete(params.elicitation_id)
        stale = notification.facts.invalidates
        if TOOLS_LIST in stale:
            self.output_schemas.forget()
        self.forget(stale, params.uri if notification.name == RESOURCE_UPDATED else None)
        return True

    def forget(self, methods: Collection[str] | None, uri: str | None = None) -> None:
        """Call the functions of `on_stale`."""
        for call in self.on_stale:
            call(methods, uri)

    def notifications_missed(self) -> None:
        """Drop all state that may have changed while no notifications were received."""
        self.output_schemas.forget()
        self.forget(None)

    def session_lost(self) -> None:
        """Drop the state of a session that the transport has replaced by a new session."""
        self.notifications_missed()
        self.session.lose()


class SessionRestore:
    """The requests whose effect lasts for a session, and the state of that session.

    Attributes:
        lost: Whether the session was replaced and the requests were not repeated yet.
        on_loss: Called when the session is replaced.
        stream_failure: Why the stream for messages of the server is unavailable; `None` while the
            stream is available, or if the server offers no stream.
        on_stream_failure: Called with each such failure.
    """

    def __init__(self) -> None:
        self.lost = False
        self.on_loss: set[Callable[[], None]] = set()
        self.stream_failure: McpError | None = None
        self.on_stream_failure: set[Callable[[McpError], None]] = set()
        self._lasting: dict[tuple[str, str], Any] = {}

    def record_request(self, name: str, params: Any) -> None:
        """Store the params of a successful request: a Struct, a wire object or raw JSON."""
        wire = _decode(params) if isinstance(params, Raw) else to_builtins(params)
        if name == SET_LEVEL:
            self._lasting[name, ""] = wire
        elif name == SUBSCRIBE:
            self._lasting[SUBSCRIBE, wire["uri"]] = wire
        else:
            self._lasting.pop((SUBSCRIBE, wire["uri"]), None)

    def lose(self) -> None:
        """Mark the session as replaced."""
        self.lost = True
        for call in tuple(self.on_loss):
            call()

    def stream_changed(self, failure: McpError | None) -> None:
        """Store why the stream for messages of the server failed; `None` if it is available."""
        self.stream_failure = failure
        if failure is not None:
            for call in tuple(self.on_stream_failure):
                call(failure)

    async def restore(self, request: Callable[[str, Any], Awaitable[Any]]) -> None:
        """Repeat the requests if the session was replaced. Failures are logged."""
        if not self.lost:
            return
        self.lost = False
        for (name, uri), params in tuple(self._lasting.items()):
            try:
                await request(name, params)
            except McpError as error:
                _logger.warning("%s %s: not restored in the new session: %s", name, uri, error)


class Elicitations:
    """Pending URL mode elicitations. Ids over `ID_CHARACTERS` are not stored.

    Args:
        limit: Most elicitations that are stored; the oldest are dropped.

    Source: client/elicitation#completion-notifications-for-url-mode-elicitation (2025-11-25).
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending: dict[str, None] = {}

    def add(self, identifier: Any) -> None:
        """Store an elicitation by its id."""
        if isinstance(identifier, str) and len(identifier) <= ID_CHARACTERS:
            self._pending[identifier] = None
            drop_oldest(self._pending, self._limit)

    def add_from_error(self, data: Any) -> None:
        """Store the elicitations that are listed in the data of an error."""
        if is_object(data):
            listed: object = data.get("elicitations")
            for each in listed if is_many(listed) else ():
                self.add(each.get("elicitationId") if is_object(each) else None)

    def complete(self, identifier: Any) -> bool:
        """Remove an elicitation; returns whether it was pending."""
        return self._pending.pop(identifier, False) is None


class OutputSchemas:
    """The output schemas of a server's tools, from the latest list of each tool.

    Args:
        seconds: Seconds for validating a result, if its call has no timeout.
        limit: Most tools whose schemas are stored; the oldest are dropped.

    Attributes:
        seconds: As passed.
    """

    def __init__(self, seconds: float, limit: int) -> None:
        self.seconds = seconds
        self._limit = limit
        self._tools: dict[str, _ToolSchema] = {}
        self._can_check = True

    def store(self, tools: Iterable[Any]) -> None:
        """Store the schemas of typed tools."""
        for tool in tools:
            schema = getattr(tool, "output_schema", None)
            stored = self._tools.get(tool.name)
            if schema is None:
                self._tools.pop(tool.name, None)
            elif stored is None or stored.complaint is None or not _is_same(schema, stored.schema):
                self._tools[tool.name] = _ToolSchema(schema)
                drop_oldest(self._tools, self._limit)

    def forget(self) -> None:
        """Drop all schemas."""
        self._tools.clear()

    def has_schema(self, tool: str) -> bool:
        """Whether a tool has an output schema."""
        return tool in self._tools

    async def check(self, tool: str, result: Any, seconds: float | None = None) -> None:
        """Validate a tool's result, unless it is an error or the tool has no schema.

        Validation moves to a thread if it takes more than some milliseconds. If `jsonschema` is not
        installed, a warning is logged once, and results are validated against schemas of flat
        objects only.

        Args:
            tool: The name of the tool.
            result: Its result.
            seconds: Seconds for the validation; `None` for `self.seconds`.

        Raises:
            RemoteProtocolError: The result does not match, the schema is not a JSON Schema, or the
                validation took too long.
        """
        stored = self._tools.get(tool)
        if stored is None or not hasattr(result, "structured_content") or result.is_error:
            return
        from ..tool_results import structured_value  # few clients list tools with such schemas

        if seconds is None:
            deadline = Deadline.after(self.seconds, "Timeouts.validation")
        else:
            deadline = Deadline.after(seconds, "the call's own timeout")
        wrong: str | None = _MISSING
        if (value := structured_value(result)) is not UNSET:
            wrong = await self._check(stored, value, deadline)
        if wrong is not None:
            raise RemoteProtocolError(f"tools/call {safe_repr(tool)}: structuredContent: {wrong}")

    async def _check(self, tool: _ToolSchema, value: Any, deadline: Deadline) -> str | None:
        if tool.complaint is None:
            from ..json_schema.flat_schemas import flat_complaint

            schema = tool.schema  # a Struct in some revisions
            tool.complaint = flat_complaint(schema if is_object(schema) else to_builtins(schema))
        if tool.complaint is None and self._can_check:
            try:
                tool.complaint = await validator_in_time(tool.schema, "checking results", deadline)
            except MissingExtraError as error:
                _logger.warning("structured results are taken as they come: %s", error)
                self._can_check = False
            except ValueError as error:
                return f"the tool's output schema is {error}"
        if tool.complaint is None:
            return None
        return await complaint_in_time(tool.complaint, value, deadline)


class _ToolSchema(msgspec.Struct):
    """The output schema of a tool, and its validator after the first validation."""

    schema: JsonSchema
    complaint: Complaint | None = None


def _is_same(left: JsonSchema, right: JsonSchema) -> bool:
    try:
        return left == right
    except RecursionError:
        return False


def is_part(uri: str, whole: str) -> bool:
    """Whether a URI identifies a resource or a part of the resource.

    Source: server/resources (subscriptions: the URI of an update may be that of a sub-resource).
    """
    return uri == whole or uri.startswith(f"{whole.rstrip('/')}/")


def drop_oldest(entries: dict[str, Any], limit: int) -> None:
    """Remove the oldest entries while there are more than `limit`."""
    while len(entries) > limit:
        del entries[next(iter(entries))]
