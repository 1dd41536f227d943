"""A trace as sessions: the messages of both sides, with their requests, streams and times.

A trace has the messages of all channels of its processes, as they were sent and received. A session
is the part of a channel from one opening to the next. Its messages have numbers, by which they
refer to each other:

    request     of a response: the request that it answers
    within      of a message that belongs to a request of the client: that request

Progress, cancellation and messages of a subscription name their request. Other messages of the
server do not: they belong to the only request of the client that is open, and to none if there are
several. A request of the server belongs to one that may be answered with requests for input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from itertools import groupby

from mcpgen import schema
from mcpgen.errors import UsageError
from mcpgen.explain import conversation, recordings
from mcpgen.explain.conversation import Turn
from mcpgen.explain.recordings import Recorded
from mcpgen.explain.revision import Kind, Revision, revision
from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.name import Role
from mcpgen.model.schema_queries import META, canonical
from mcpgen.schema import facts

INITIALIZE = "initialize"
PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"
PROGRESS_TOKEN = "progressToken"
SUBSCRIPTION_ID = "/subscriptionId"
"""End of the key in `_meta` that names the request of a subscription."""


@dataclass(frozen=True)
class Message:
    """One message of a session.

    Attributes:
        number: Its place in the session, from 0.
        line: Its line in the file, from 1; messages of a batch have the same line.
        sender: The role of its sender.
        kind: The kind of message.
        value: The message.
        seconds: Seconds since the first message of the session; 0 if the trace has no times.
        masked: Whether secrets in it were replaced by `***`.
        request: The number of the request that a response answers; `None` for other messages.
        within: The number of the client's request that the message belongs to; `None` for that
            request itself, and for messages that belong to none.
        linked: Whether the message itself names the request that it belongs to.
    """

    number: int
    line: int
    sender: Role
    kind: Kind
    value: Node
    seconds: float = 0.0
    masked: bool = False
    request: int | None = None
    within: int | None = None
    linked: bool = False

    @property
    def method(self) -> str:
        """The method of a request or notification; empty for a response."""
        method: Json = self.value.get("method")
        return method if isinstance(method, str) else ""

    @property
    def params(self) -> Node:
        """The params; empty if there are none."""
        params: Json = self.value.get("params")
        return params if is_object(params) else {}

    @property
    def is_response(self) -> bool:
        """Whether the message answers a request."""
        return self.kind in ("success response", "error response")


@dataclass(frozen=True)
class Exchange:
    """A request with everything that came of it.

    Attributes:
        request: The request.
        answer: Its response; `None` if there is none, as for a request that was cancelled.
        stream: The messages of both sides that belong to the request, in order, without its
            response: progress, log messages, requests of the server with the responses to them.
    """

    request: Message
    answer: Message | None
    stream: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Session:
    """One session of a trace.

    Attributes:
        channel: The name of its channel; empty if unknown.
        revision: The revision that it agrees on; empty if no message names one.
        recorder: The role of the side that wrote the trace; `None` if unknown.
        messages: All messages in order.
        lost: Lines without a message, with the reason.
    """

    channel: str
    revision: str
    recorder: Role | None
    messages: tuple[Message, ...]
    lost: Mapping[int, str]

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The requests of the client, in order."""
        return tuple(self._exchange(each) for each in self.messages if _is_call(each, "client"))

    @cached_property
    def questions(self) -> tuple[Exchange, ...]:
        """The requests of the server, in order."""
        return tuple(self._exchange(each) for each in self.messages if _is_call(each, "server"))

    @cached_property
    def unrelated(self) -> tuple[Message, ...]:
        """The notifications and requests of the server that belong to no request of the client."""
        return tuple(
            each
            for each in self.messages
            if each.sender == "server" and each.within is None and not each.is_response
        )

    @property
    def has_handshake(self) -> bool:
        """Whether the session begins with `initialize`."""
        return any(each.request.method == INITIALIZE for each in self.exchanges)

    def answer_to(self, request: Message) -> Message | None:
        """The response to a request; `None` if there is none."""
        return self._answers.get(request.number)

    @cached_property
    def _answers(self) -> Mapping[int, Message]:
        return {each.request: each for each in self.messages if each.request is not None}

    def _exchange(self, request: Message) -> Exchange:
        answer = self.answer_to(request)
        stream = (
            each for each in self.messages if each.within == request.number and each is not answer
        )
        return Exchange(request, answer, tuple(stream))


def _is_call(message: Message, sender: Role) -> bool:
    return message.kind == "request" and message.sender == sender


def read(source: str) -> tuple[Session, ...]:
    """The sessions of a trace, in the order of their first messages.

    Args:
        source: The file; `-` for standard input.

    Raises:
        UsageError: The file cannot be read, or it has no session.
    """
    sessions = sessions_of(recordings.read(source))
    if not sessions:
        raise UsageError(f"{source}: expected a trace with messages of a session, got none")
    return sessions


def sessions_of(recorded: Sequence[Recorded]) -> tuple[Session, ...]:
    """The sessions of recorded messages, in the order of their first messages."""
    every = tuple(conversation.split_batches(recordings.without_ends(tuple(recorded))))
    revisions = _revisions_in(every)
    turns = conversation.follow(every, revisions).turns
    listens = frozenset(
        each.protocol.facts.behaviour.listen
        for each in revisions
        if each.protocol.facts.behaviour.listen
    )
    first_lines: dict[str, int] = {}
    for turn in turns:
        first_lines.setdefault(turn.recorded.channel, turn.recorded.line)
    by_channel = sorted(turns, key=lambda turn: first_lines[turn.recorded.channel])
    return tuple(
        _Reader(part, listens).session()
        for _, group in groupby(by_channel, key=lambda turn: turn.recorded.channel)
        for part in _openings(list(group))
        if any(turn.kind != "invalid message" for turn in part)
    )


def _revisions_in(recorded: Sequence[Recorded]) -> list[Revision]:
    """The revisions that the messages name, newest first; all if they name none."""
    known = [row.name for row in schema.revisions()][::-1]
    named = {text for each in recorded for text in conversation.versions_in(each.value)}
    return [revision(name) for name in known if name in named] or [*map(revision, known)]


def _openings(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """The messages of one channel, cut where a client opens another session."""
    part: list[Turn] = []
    is_open = False
    for turn in turns:
        if is_open and _method(turn.message) == INITIALIZE and turn.kind == "request":
            yield part
            part, is_open = [], False
        part.append(turn)
        answers = turn.kind == "success response" and is_object(turn.request)
        is_open = is_open or (answers and _method(turn.request) == INITIALIZE)
    yield part


def _method(message: Json) -> str:
    method: Json = message.get("method") if is_object(message) else None
    return method if isinstance(method, str) else ""


class _Reader:
    """Makes a session of the messages of one opening.

    Args:
        turns: The messages.
        listens: Methods of requests that stay open as long as their sender listens.
    """

    def __init__(self, turns: Sequence[Turn], listens: frozenset[str]) -> None:
        self._turns = turns
        self._listens = listens
        self._messages: list[Message] = []
        self._open: dict[tuple[Role, str], Message] = {}
        self._cancelled: set[int] = set()
        self._by_token: dict[tuple[Role, str], int] = {}
        self._by_id: dict[tuple[Role, str], Message] = {}

    def session(self) -> Session:
        lost = {
            turn.recorded.line: turn.recorded.error or "neither a request nor a response"
            for turn in self._turns
            if turn.kind == "invalid message"
        }
        for turn in self._turns:
            if turn.kind != "invalid message":
                self._add(turn)
        messages = tuple(_with_seconds(self._messages, self._turns))
        own: set[Role] = {
            turn.sender if turn.recorded.direction == "sent" else _OTHER[turn.sender]
            for turn in self._turns
            if turn.sender is not None and turn.recorded.direction is not None
        }
        recorder = own.pop() if len(own) == 1 else None
        channel = self._turns[0].recorded.channel
        return Session(channel, _negotiated_revision(messages), recorder, messages, lost)

    def _add(self, turn: Turn) -> None:
        sender = turn.sender or self._likely_sender(turn)
        message = Message(
            len(self._messages),
            turn.recorded.line,
            sender,
            turn.kind,
            turn.message,
            masked=turn.recorded.masked,
        )
        key = (sender, canonical(message.value.get("id")))
        if message.is_response:
            request = self._open.pop((_OTHER[sender], key[1]), None)
            if request is not None:
                message = replace(
                    message, request=request.number, within=_call_of(request), linked=True
                )
        else:
            message = self._with_request(message)
        if (message.method, message.sender) == (CANCELLED, "client") and message.within is not None:
            self._cancelled.add(message.within)
        if message.kind == "request":
            self._open[key] = self._by_id[key] = message
            token = _token(message)
            if token is not None:
                number = message.number if message.within is None else message.within
                self._by_token[sender, token] = number
        self._messages.append(message)

    def _likely_sender(self, turn: Turn) -> Role:
        """The sender of a message that either side may send, in a trace without directions."""
        if turn.kind in ("success response", "error response"):
            id = canonical(turn.message.get("id"))
            return "client" if ("server", id) in self._open else "server"
        return "client"

    def _with_request(self, message: Message) -> Message:
        """A request or notification, with the request of the client that it belongs to."""
        number = self._named_request(message)
        if number is not None:
            return replace(message, within=number, linked=True)
        if message.sender == "client":
            return message
        calls = [
            each
            for (sender, _), each in self._open.items()
            if sender == "client" and each.method not in self._listens
            if each.number not in self._cancelled
        ]
        if message.kind == "request":
            calls = [each for each in calls if _may_ask(each.method)]
        return replace(message, within=calls[0].number) if len(calls) == 1 else message

    def _named_request(self, message: Message) -> int | None:
        """The number of the client's request that a message names."""
        other = _OTHER[message.sender]
        if message.method == PROGRESS:
            return self._by_token.get((other, canonical(message.params.get(PROGRESS_TOKEN))))
        if message.method == CANCELLED:
            key = (message.sender, canonical(message.params.get("requestId")))
            return _call_of(self._by_id[key]) if key in self._by_id else None
        meta: Json = message.params.get(META)
        named = meta.items() if is_object(meta) else ()
        for name, value in named:
            if name.endswith(SUBSCRIPTION_ID):
                request = self._by_id.get(("client", canonical(value)))
                return None if request is None else request.number
        return None


_OTHER: Mapping[Role, Role] = {"client": "server", "server": "client"}


@cache
def _may_ask(method: str) -> bool:
    """Whether a server may ask for input before it answers a request."""
    return facts.load(schema.latest().name).method(method).input_required


def _call_of(request: Message) -> int | None:
    """The number of the client's request that a request is or belongs to."""
    return request.number if request.sender == "client" else request.within


def _token(message: Message) -> str | None:
    meta: Json = message.params.get(META)
    if not is_object(meta) or PROGRESS_TOKEN not in meta:
        return None
    return canonical(meta[PROGRESS_TOKEN])


def _with_seconds(messages: Sequence[Message], turns: Sequence[Turn]) -> Iterator[Message]:
    """The messages, with seconds since the first one."""
    times = {turn.recorded.line: _time(turn.recorded.time) for turn in turns}
    known = [time for time in times.values() if time is not None]
    for message in messages:
        time = times.get(message.line)
        seconds = 0.0 if time is None else max(0.0, (time - known[0]).total_seconds())
        yield replace(message, seconds=seconds)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _negotiated_revision(messages: Sequence[Message]) -> str:
    """The revision that a session agrees on; empty if no message names a known one."""
    known = {row.name for row in schema.revisions()}

    def last(named: Iterator[Message]) -> str:
        texts = [text for each in named for text in conversation.versions_in(each.value)]
        return next((text for text in reversed(texts) if text in known), "")

    return last(each for each in messages if each.sender == "server") or last(iter(messages))
