"""Connections to a server, which send payloads, read replies, and record all messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from mcpgen.errors import format_value, safe_text
from mcpgen.json_types import Json, Node, is_array, is_object

Transport = Literal["stdio", "http"]
Fields = Mapping[str, str | None]
"""Header fields of one HTTP request, in addition to those of its connection; `None` removes one."""

MESSAGE_LIMIT = 16 << 20
"""Limit of the bytes of one message, and of one HTTP response."""

FLOOD_MESSAGES = 10_000
"""Limit of the messages on one connection; a server that sends more is ended."""

FLOOD_BYTES = 256 << 20
"""Limit of the bytes on one connection; a server that sends more is ended."""


@dataclass(frozen=True)
class Received:
    """One message that a server sent, or invalid bytes in place of one.

    Attributes:
        data: Its bytes, without the line feed or the framing of an event.
        message: The JSON value; `None` if there is none.
        error: The reason why the bytes are not JSON; empty if they are.
        event_id: The id of its server-sent event; `None` without an id.
    """

    data: bytes
    message: Json = None
    error: str = ""
    event_id: str | None = None

    @property
    def is_response(self) -> bool:
        """Whether the message answers a request."""
        message: Json = self.message
        return is_object(message) and "method" not in message

    @property
    def text(self) -> str:
        """The bytes, shortened for a report."""
        return safe_text(self.data.decode("utf-8", "backslashreplace"), 160)


@dataclass
class Reply:
    """The reply to a payload.

    Attributes:
        received: Messages in order.
        answer: The awaited response; `None` if it did not come.
        reason: The reason why there is no answer; empty if there is one.
        status: The HTTP status; `None` on other transports, and if no HTTP response came.
        fields: Header fields of the HTTP response, names in lower case.
        body: The HTTP body, unless it was a stream.
        ended: Whether the HTTP response had ended when reading stopped.
    """

    received: list[Received] = field(default_factory=list[Received])
    answer: Node | None = None
    reason: str = ""
    status: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    ended: bool = False

    @property
    def media_type(self) -> str:
        """The type of the HTTP body, without parameters."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_refused(self) -> bool:
        """Whether the HTTP status is that of an error."""
        return self.status is not None and self.status >= 400

    @property
    def result(self) -> Json:
        """The result of the answer; `None` if there is none."""
        return self.answer.get("result") if self.answer is not None else None

    @property
    def error(self) -> Json:
        """The error of the answer; `None` if there is none."""
        return self.answer.get("error") if self.answer is not None else None

    @property
    def code(self) -> Json:
        """The code of the error of the answer; `None` if there is none."""
        error: Json = self.error
        return error.get("code") if is_object(error) else None

    @property
    def text(self) -> str:
        """The reply, in words for a report."""
        status = f"status {self.status} with " if self.status is not None else ""
        if self.answer is None:
            return f"{status}{self.reason or 'no answer'}"
        if self.error is not None:
            message: Json = self.error.get("message") if is_object(self.error) else None
            return f"{status}error {format_value(self.code)} ({format_value(message, 120)})"
        return f"{status}result {format_value(self.result, 120)}"


class Connection(Protocol):
    """A connection to a server.

    Attributes:
        received: All received messages.
        fields: Header fields of every HTTP request; empty for other transports.
    """

    received: list[Received]
    fields: dict[str, str]

    @property
    def transport(self) -> Transport:
        """The transport of the messages."""
        ...

    @property
    def end(self) -> str:
        """The reason of the end of the connection; empty while it is open."""
        ...

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Json] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """Send a payload, and read until the responses with some ids have come.

        Args:
            payload: The bytes to send, unchanged.
            awaited: Ids; over HTTP, without any, the response is read to its end.
            fields: Header fields of this HTTP request.
            to_end: Read on after the responses, until an HTTP response ends.
        """
        ...

    async def settle(self, seconds: float) -> None:
        """Return once another message has come, or after some seconds."""
        ...

    async def close(self) -> None:
        """End the connection, and the process behind it."""
        ...


def parse_messages(data: bytes, event_id: str | None = None) -> list[Received]:
    """The messages in a line, an event or a body; the elements of a batch one by one."""
    try:
        value: Json = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        return [Received(data, error=f"not UTF-8: {error.reason}", event_id=event_id)]
    except (ValueError, RecursionError) as error:
        return [Received(data, error=f"not JSON: {error}", event_id=event_id)]
    if is_array(value) and value:
        first, *others = value
        return [
            Received(data, first, event_id=event_id),
            *(Received(data, each) for each in others),
        ]
    return [Received(data, value, event_id=event_id)]


def flood(unfinished: int, messages: int, size: int) -> str:
    """The exceeded limit of output, in words; empty if a server keeps within the limits.

    Args:
        unfinished: Bytes of the line that has no end yet.
        messages: Messages on the connection.
        size: Bytes on the connection.
    """
    if unfinished > MESSAGE_LIMIT:
        return f"the server wrote a line of more than {MESSAGE_LIMIT} bytes"
    if messages > FLOOD_MESSAGES or size > FLOOD_BYTES:
        return f"the server wrote more than {FLOOD_MESSAGES} lines or {FLOOD_BYTES} bytes"
    return ""


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def answer_to(id: Json, messages: Sequence[Received]) -> Node | None:
    """The response with an id; else with the id as another JSON type; else without an id."""
    responses: list[Node] = [each.message for each in messages if each.is_response]
    same = [each for each in responses if each.get("id") == id]
    alike = [each for each in responses if "id" in each and str(each["id"]) == str(id)]
    without = [each for each in responses if each.get("id") is None]
    return next(iter([*same, *alike, *without]), None)


def refusal(message: Node) -> Node | None:
    """Our answer to a request of the server: a result for ping, else method not found."""
    if not isinstance(message.get("method"), str) or "id" not in message:
        return None
    envelope: Node = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return {**envelope, "result": {}}
    return {**envelope, "error": {"code": -32601, "message": "method not found"}}


def encode(message: Json) -> bytes:
    """A message as bytes."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
