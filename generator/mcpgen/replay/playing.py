"""Plays the client's side of a session, and compares the messages of the server.

A message of the client is sent once all messages of the server have come that the trace has before
it: it may depend on them. What comes between two messages of the client may come in any order, with
these exceptions, which the protocol promises:

    progress, requests of the server and the response to one request come as they were recorded
    other notifications within one request come as they were recorded among those of their method

Pings of the server are answered, and never compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcpgen.errors import ServerError, format_value, safe_text
from mcpgen.explain.revision import kind_of
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.schema_queries import META, canonical
from mcpgen.replay.carrying import Carried
from mcpgen.replay.channels import Wire
from mcpgen.replay.matching import Difference, Matcher, Subject
from mcpgen.replay.outcomes import RULES, Outcome, Run
from mcpgen.replay.recording import (
    CANCELLED,
    PROGRESS,
    PROGRESS_TOKEN,
    Message,
    Session,
)

PING = "ping"
SHOWN_DIFFERENCES = 20
"""Limit of the differences of one message."""

_NOUNS = {"request": "REQUEST", "notification": "NOTIFICATION"}


@dataclass(frozen=True)
class Timeouts:
    """How long messages of the server are waited for, in seconds.

    Attributes:
        answer: For a response, or a request of the server; besides twice the time that it took in
            the trace.
        notification: For a notification, likewise.
        silent: For responses after the first one that did not come.
        settle: At the end, for messages that were not recorded.
    """

    answer: float = 30.0
    notification: float = 2.0
    silent: float = 2.0
    settle: float = 0.2


class Player:
    """Plays one session.

    Args:
        wire: The channel to the server.
        session: The session.
        matcher: Compares messages.
        timeouts: How long messages are waited for.
        number: The number of the session in the trace.
        carried: How the session was carried over from another revision; `None` if it was not.
    """

    def __init__(
        self,
        wire: Wire,
        session: Session,
        matcher: Matcher,
        timeouts: Timeouts,
        number: int,
        carried: Carried | None = None,
    ) -> None:
        self._wire = wire
        self._errors: Any = wire.errors
        self._session = session
        self._matcher = matcher
        self._timeouts = timeouts
        self._number = number
        self._pings = {each.request.number for each in session.questions if _is_ping(each.request)}
        self._carried = carried
        self._uncompared = frozenset[str]() if carried is None else carried.uncompared
        self._pending = {
            each.number: each
            for each in session.messages
            if each.sender == "server"
            and each.number not in self._pings
            and each.method not in self._uncompared
        }
        self._given_up: set[int] = set()
        self._sent: dict[str, Message] = {}
        self._answered: set[int] = set()
        self._cancelled: set[int] = set()
        self._ids: dict[int, Json] = {}
        self._tokens: dict[str, Json] = {}
        self._spare: list[Node] = []
        self._last_arrivals: dict[tuple[int, str], int] = {}
        self._outcomes: list[Outcome] = [] if carried is None else [*carried.lost]
        self._change = anyio.Event()
        self._last_change = 0.0
        self._end = ""
        self._is_started = True
        self._silent = False
        self._sent_count = 0
        self._compared = 0

    async def play(self) -> Run:
        """Play the session, and return its outcomes.

        Raises:
            ServerError: The server ended before its first message.
        """
        sent_at = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read)
            for message in self._session.messages:
                if message.sender == "server" or message.request in self._pings:
                    continue
                await self._wait(message.number, message.seconds - sent_at)
                if self._end:
                    break
                await self._send(message, tasks)
                sent_at = message.seconds
            every = self._session.messages
            await self._wait(len(every), every[-1].seconds - sent_at)
            if not self._end:
                await anyio.sleep(self._timeouts.settle)
            tasks.cancel_scope.cancel()
        if not self._is_started:
            raise ServerError(f"expected a server that answers, got none: {self._end}")
        self._conclude()
        ordered = sorted(self._outcomes, key=lambda each: each.line)
        return Run(
            self._number, self._session.revision, self._sent_count, self._compared, tuple(ordered)
        )

    async def _wait(self, before: int, gap: float) -> None:
        """Wait for the messages that the trace has before a number.

        Args:
            before: The number.
            gap: Seconds that passed in the trace since the last message that was sent.
        """
        begun = anyio.current_time()
        while not self._end:
            awaited = [*self._missing_before(before)]
            if not awaited:
                return
            is_answer = any(each.kind != "notification" for each in awaited)
            limit = self._limit if is_answer else self._timeouts.notification
            since = begun if is_answer else max(begun, self._last_change)
            left = since + limit + 2 * max(gap, 0.0) - anyio.current_time()
            if left <= 0:
                self._given_up.update(each.number for each in awaited)
                self._silent = self._silent or is_answer
                return
            with anyio.move_on_after(left):
                await self._change.wait()

    @property
    def _limit(self) -> float:
        limit = self._timeouts.answer
        return min(limit, self._timeouts.silent) if self._silent else limit

    def _missing_before(self, before: int) -> Iterator[Message]:
        """The messages before a number that have not come, unless something else came for them."""
        spare = [each.get("method") for each in self._spare]
        for number, message in self._pending.items():
            if number >= before:
                return
            if number in self._given_up:
                continue
            if message.method in spare and message.kind == "notification":
                spare.remove(message.method)
                continue
            yield message

    async def _send(self, message: Message, tasks: TaskGroup) -> None:
        value = self._value_to_send(message)
        if value is None:
            return
        self._sent_count += 1
        if message.kind == "request":
            self._sent[canonical(value["id"])] = message
        if message.method == CANCELLED:
            requested = self._sent.get(canonical(message.params.get("requestId")))
            if requested is not None:
                self._cancelled.add(requested.number)
        if message.kind == "request" and not self._wire.is_ordered:
            tasks.start_soon(self._post, message, value)  # until the response has begun
        else:
            await self._post(message, value)

    async def _post(self, message: Message, value: Node) -> None:
        try:
            await self._wire.send(value, self._session.revision)
        except self._errors.McpError as error:
            reason = safe_text(" ".join(str(error).split()), 400)
            if isinstance(error, self._errors.ConnectionClosedError):
                self._end = self._end or reason
            elif message.kind == "request":
                self._fail(message, reason)
            else:
                self._add("NOT_SENT", message, f"the server refuses it: {reason}")
            self._announce()

    def _value_to_send(self, message: Message) -> Node | None:
        """A message of the client with the ids, cursors and states of this time."""
        value = dict(message.value)
        for part in ("params", "result"):
            if part in value:
                value[part] = self._matcher.bindings.apply(value[part])
        if message.is_response:
            if message.request not in self._ids:
                self._add(
                    "NOT_SENT", message, "the server did not send the request that it answers"
                )
                return None
            value["id"] = self._ids[message.request]
        if message.method == PROGRESS:
            token = canonical(message.params.get(PROGRESS_TOKEN))
            if token not in self._tokens:
                self._add("NOT_SENT", message, "the server did not send the request of the token")
                return None
            value["params"] = {**value["params"], PROGRESS_TOKEN: self._tokens[token]}
        return value

    async def _read(self) -> None:
        """Take the messages of the server until the channel ends."""
        while True:
            try:
                data = await self._wire.receive()
            except self._errors.RequestLost as lost:
                request = self._sent.get(canonical(lost.id))
                if request is not None:
                    self._fail(
                        request, safe_text(" ".join(str(lost.__cause__ or lost).split()), 400)
                    )
            except self._errors.FrameError as error:
                self._add_invalid(safe_text(str(error), 400), None)
            except self._errors.McpError as error:
                self._end = safe_text(" ".join(str(error).split()), 400) or "the connection ended"
                self._is_started = not isinstance(error, self._errors.ServerStartError)
                self._announce()
                return
            else:
                for value, problem in _messages(data):
                    await self._take(value, problem)
            self._announce()

    def _announce(self) -> None:
        self._last_change = anyio.current_time()
        self._change.set()
        self._change = anyio.Event()

    async def _take(self, value: Json, problem: str) -> None:
        match kind_of(value):
            case "invalid message":
                self._add_invalid(problem or "neither a request nor a response", value)
            case "request":
                await self._take_request(value)
            case "notification":
                self._take_notification(value)
            case _:
                self._take_answer(value)

    def _take_answer(self, value: Node) -> None:
        request = self._sent.get(canonical(value.get("id")))
        if request is None or request.number in self._answered:
            text = "no open request has its id"
            self._add_invalid(text, value)
            return
        self._answered.add(request.number)
        expected = self._session.answer_to(request)
        if expected is not None:
            del self._pending[expected.number]
            self._check_order(expected, request.number)
            value = self._common(value, request.value)
            self._compare(expected, value, "ANSWER_DIFFERS", Subject.of(request.value))
        elif request.number in self._cancelled:
            text = "it was cancelled, and had no answer"
            self._add("ANSWER_UNEXPECTED", request, text, actual=value)

    async def _take_request(self, value: Node) -> None:
        value = self._common(value, None)
        subject = Subject.of(value)
        candidates = [
            each
            for each in self._pending.values()
            if each.kind == "request" and each.method == subject.method
        ]
        reply: Node = {"error": {"code": -32601, "message": "not in the trace"}}
        if candidates:
            fitting = (
                each
                for each in candidates
                if self._matcher.fits(each.value, value, subject, masked=each.masked)
            )
            expected = next(fitting, candidates[0])
            del self._pending[expected.number]
            self._ids[expected.number] = value["id"]
            self._bind_token(expected.value, value)
            if expected.within is not None:
                self._check_order(expected, expected.within)
            self._compare(expected, value, "REQUEST_DIFFERS", subject)
            return
        if subject.method == PING:
            reply = {"result": {}}
        else:
            self._add_unexpected("REQUEST_UNEXPECTED", value)
        answer = {"jsonrpc": "2.0", "id": value["id"], **reply}
        try:
            await self._wire.send(answer, self._session.revision)
        except self._errors.McpError:
            return  # the end of the channel is reported where it is read

    def _common(self, value: Node, request: Json) -> Node:
        """A message with the members that the revision of the trace knows."""
        return value if self._carried is None else self._carried.common(value, request)

    def _bind_token(self, recorded: Node, actual: Node) -> None:
        tokens = [_token(recorded), _token(actual)]
        if None not in tokens:
            self._tokens[canonical(tokens[0])] = tokens[1]

    def _take_notification(self, value: Node) -> None:
        subject = Subject.of(value)
        if subject.method in self._uncompared:
            return
        value = self._common(value, None)
        expected = next(
            (
                each
                for each in self._candidates(value)
                if each.method == PROGRESS
                or self._matcher.fits(each.value, value, subject, masked=each.masked)
            ),
            None,
        )
        if expected is None:
            self._spare.append(value)
            return
        if expected.within is not None:
            self._check_order(expected, expected.within)
        self._take_expected(expected, value)

    def _take_expected(self, expected: Message, value: Node) -> None:
        del self._pending[expected.number]
        self._compare(expected, value, "NOTIFICATION_DIFFERS", Subject.of(value))

    def _candidates(self, value: Node) -> list[Message]:
        """The recorded notifications that one of this time may be, those of its request alone."""
        same = [
            each
            for each in self._pending.values()
            if each.kind == "notification" and each.method == value.get("method")
        ]
        params: Json = value.get("params")
        if value.get("method") != PROGRESS or not is_object(params):
            return same
        token = canonical(params.get(PROGRESS_TOKEN))
        return [each for each in same if canonical(each.params.get(PROGRESS_TOKEN)) == token]

    def _check_order(self, message: Message, within: int) -> None:
        """Report a message that comes after one that the trace has behind it."""
        for key in _chains(message):
            last = self._last_arrivals.get((within, key), -1)
            if message.number < last:
                later = self._session.messages[last]
                text = f"{_describe(message)} comes after {_describe(later)}"
                self._add("ORDER_DIFFERS", message, text)
            self._last_arrivals[within, key] = max(last, message.number)

    def _compare(self, expected: Message, actual: Node, rule: str, subject: Subject) -> None:
        self._compared += 1
        differences = self._matcher.differences(
            expected.value, actual, subject, masked=expected.masked
        )
        for each in differences[:SHOWN_DIFFERENCES]:
            self._outcomes.append(self._difference(rule, expected, actual, each))
        if len(differences) > SHOWN_DIFFERENCES:
            more = f"and {len(differences) - SHOWN_DIFFERENCES} more differences"
            self._add(rule, expected, more, actual=actual)

    def _difference(self, rule: str, expected: Message, actual: Node, each: Difference) -> Outcome:
        return Outcome(
            RULES[rule],
            expected.line,
            self._item(expected),
            each.text,
            each,
            expected.value,
            actual,
        )

    def _fail(self, request: Message, reason: str) -> None:
        """Report a request without a response, over a transport that says so."""
        self._answered.add(request.number)
        expected = self._session.answer_to(request)
        if expected is not None and self._pending.pop(expected.number, None) is not None:
            self._add("ANSWER_MISSING", expected, reason)

    def _conclude(self) -> None:
        """Report the messages that did not come, and those that came for none of them."""
        spare, self._spare = self._spare, []
        for value in spare:
            candidates = self._candidates(value)
            if candidates:
                self._take_expected(candidates[0], value)
            else:
                self._add_unexpected("NOTIFICATION_UNEXPECTED", value)
        if self._end and self._pending:
            first = next(iter(self._pending.values()))
            self._add("SERVER_ENDED", first, self._end)
        for message in self._pending.values():
            rule = f"{_NOUNS.get(message.kind, 'ANSWER')}_MISSING"
            self._add(rule, message, f"{_describe(message)} did not come")

    def _item(self, message: Message) -> str:
        request = message if message.request is None else self._session.messages[message.request]
        return item_of(request.value)

    def _add(self, rule: str, message: Message, text: str, *, actual: Json = None) -> None:
        self._outcomes.append(
            Outcome(
                RULES[rule],
                message.line,
                self._item(message),
                text,
                expected=message.value,
                actual=actual,
            )
        )

    def _add_unexpected(self, rule: str, value: Node) -> None:
        text = f"{item_of(value)} was not recorded"
        self._outcomes.append(
            Outcome(RULES[rule], self._line(), item_of(value), text, actual=value)
        )

    def _add_invalid(self, text: str, value: Json) -> None:
        self._outcomes.append(
            Outcome(RULES["MESSAGE_INVALID"], self._line(), "session", text, actual=value)
        )

    def _line(self) -> int:
        """The line of the last message that was sent."""
        sent = [each.line for each in self._sent.values()]
        return max(sent, default=self._session.messages[0].line)


def item_of(message: Json) -> str:
    """A request or notification in a few words: its method, and what it names."""
    subject = Subject.of(message)
    named = f" {subject.name}" if subject.name else ""
    return safe_text(f"{subject.method or 'message'}{named}")


def _describe(message: Message) -> str:
    """A message in a few words."""
    if message.is_response:
        return "the response"
    return f"{message.kind} {safe_text(message.method)}"


def _chains(message: Message) -> tuple[str, ...]:
    """The sequences within a request that a message of the server has a place in."""
    if message.is_response:
        return ("response",)
    if message.method in (PROGRESS, CANCELLED):
        return ("response", "questions")
    if message.kind == "request":
        return ("questions",) if message.params.keys() - {META} else ()
    return (f"{message.method} {message.params.get('uri')}",)


def _is_ping(message: Message) -> bool:
    return message.method == PING


def _token(message: Node) -> Json:
    params: Json = message.get("params")
    meta: Json = params.get(META) if is_object(params) else None
    return meta.get(PROGRESS_TOKEN) if is_object(meta) else None


def _messages(data: bytes) -> Iterable[tuple[Json, str]]:
    """The messages in what a channel received, each with the reason why it is none."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        shown = safe_text(data.decode("utf-8", "backslashreplace"), 120)
        return [(None, f"not JSON: {error}: {shown}")]
    values: Sequence[Json] = value if is_array(value) and value else [value]
    return [(each, "" if is_object(each) else format_value(each)) for each in values]
