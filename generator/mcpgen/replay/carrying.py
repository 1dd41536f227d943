"""Sessions of one revision as sessions of another one, to be replayed there.

    initialize               server/discover, and the metadata of each request; or the other way
    logging/setLevel         the level in the metadata of requests; or the other way
    requests of a server     rounds of input within the call; or the other way
    results, params          without the members that the other revision does not know
    codes of errors          those that both revisions define

The other revision is played as far as it has counterparts. A message without one is left out, with
what belongs to it, and listed. A call with rounds of input begins again in each round, so it
reports progress again, and its notifications are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mcpgen.errors import safe_text
from mcpgen.explain.revision import Kind, Revision, revision
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.name import Role
from mcpgen.model.schema_queries import META
from mcpgen.replay.matching import INPUT_RESPONSES
from mcpgen.replay.outcomes import RULES, Outcome
from mcpgen.replay.recording import (
    INITIALIZE,
    PROGRESS,
    Exchange,
    Message,
    Session,
)

DISCOVER = "server/discover"
_OPENINGS = (INITIALIZE, DISCOVER)
INITIALIZED = "notifications/initialized"
LOG = "notifications/message"
SET_LEVEL = "logging/setLevel"
_INPUT_REQUESTS = "inputRequests"
_STATE = "requestState"
_INPUT_REQUIRED = "input_required"
_ROUND = ("resultType", _INPUT_REQUESTS, _STATE)
"""Members of a result that requires input."""
_ERRORS = ("resource_not_found", "unsupported_revision", "missing_capability")
"""Facts whose values are codes of errors that several revisions have."""


@dataclass(frozen=True)
class Carried:
    """A session in another revision.

    Attributes:
        session: The session.
        lost: The messages without a counterpart.
        uncompared: Methods of notifications that are not compared.
        source: The revision of the trace.
        target: The revision of the session.
    """

    session: Session
    lost: tuple[Outcome, ...]
    uncompared: frozenset[str]
    source: Revision
    target: Revision

    def common(self, message: Node, request: Json) -> Node:
        """A message of the server without the members that the trace's revision does not know."""
        result: Json = message.get("result")
        if is_object(request) and request.get("method") in _OPENINGS and is_object(result):
            return {**message, "result": _opening_members(result, self.source, self.target)}
        if is_object(result) and _INPUT_REQUESTS in result:
            return {**message, "result": {key: result[key] for key in _ROUND if key in result}}
        return without_unknown(self.source, message, "server", request)


def _opening_members(result: Node, *revisions: Revision) -> Node:
    """The members of a result of `initialize` or `server/discover` that both revisions have."""
    names = ["instructions"]
    if all(each.protocol.methods.handshake for each in revisions):
        names += ["protocolVersion", "serverInfo"]
    members = {name: result[name] for name in names if name in result}
    declared: Json = result.get("capabilities")
    known = [each.definitions["ServerCapabilities"]["properties"] for each in revisions]
    if is_object(declared):
        members["capabilities"] = {
            name: value for name, value in declared.items() if all(name in each for each in known)
        }
    return members


def carry(session: Session, name: str) -> Carried:
    """A session in another revision.

    Args:
        session: The session.
        name: The revision.
    """
    source, target = revision(session.revision), revision(name)
    writer = _Writer(session, source, target)
    writer.write()
    carried = replace(session, revision=name, messages=tuple(writer.messages))
    return Carried(carried, tuple(writer.lost), frozenset(writer.uncompared), source, target)


def without_unknown(other: Revision, message: Node, sender: Role, request: Json = None) -> Node:
    """A message without the members that a revision does not know, and without its metadata."""
    copy: Node = json.loads(json.dumps(message))
    for pointer in other.unknown_members(copy, sender, request):
        _remove(copy, [_unescape(step) for step in pointer.split("/")[1:]])
    for part in ("params", "result"):
        if is_object(copy.get(part)):
            _drop_reserved(copy[part])
    return copy


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _remove(value: Json, steps: list[str]) -> None:
    for step in steps[:-1]:
        value = value[int(step)] if is_array(value) else value[step]
    if is_object(value):
        value.pop(steps[-1], None)


def _drop_reserved(part: Node) -> None:
    """Remove the metadata that belongs to the protocol, which another revision has elsewhere."""
    meta: Json = part.get(META)
    if is_object(meta):
        kept = {key: value for key, value in meta.items() if "modelcontextprotocol" not in key}
        part.pop(META)
        if kept:
            part[META] = kept


def _like(message: Message, kind: Kind, sender: Role | None = None) -> Message:
    """A message that the trace does not have, at the place of one that it has."""
    return replace(message, number=-1, kind=kind, sender=sender or message.sender)


@dataclass
class _Writer:
    """Writes the messages of the other revision, one after the other."""

    session: Session
    source: Revision
    target: Revision
    messages: list[Message] = field(default_factory=list[Message])
    lost: list[Outcome] = field(default_factory=list[Outcome])
    uncompared: set[str] = field(default_factory=set[str])
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    skipped: set[int] = field(default_factory=set[int])
    level: Json = None
    _made: int = 0

    def write(self) -> None:
        if not self._has_handshake(self.target):
            self._discover()
        elif not self.session.has_handshake:
            self._initialize()
        for message in self.session.messages:
            if message.number not in self.skipped:
                self._message(message)

    @staticmethod
    def _has_handshake(each: Revision) -> bool:
        return each.protocol.methods.handshake

    # Openings

    def _discover(self) -> None:
        """Ask for what the result of `initialize` said."""
        exchange = self._opening(INITIALIZE)
        if exchange is None:
            return
        request = self._add(exchange.request, self._with_meta({"method": DISCOVER, "params": {}}))
        answer = exchange.answer
        result: Json = answer.value.get("result") if answer is not None else None
        if answer is not None and is_object(result):
            expected = _opening_members(result, self.source, self.target)
            self._add(answer, {"result": expected}, request=request)

    def _initialize(self) -> None:
        """Open a session as the metadata of the first request describes the client."""
        first = next((each for each in self.session.exchanges if self._meta_of(each.request)), None)
        if first is None:
            return
        keys = self.source.protocol.facts.meta
        if not any(
            keys.log_level in self._meta_of(each.request) for each in self.session.exchanges
        ):
            self.uncompared.add(LOG)  # without a level there were none; a session has some
        meta = self._meta_of(first.request)
        params = {
            "protocolVersion": self.target.version,
            "capabilities": meta.get(str(keys.client_capabilities)) or {},
            "clientInfo": meta.get(str(keys.client_info)) or {"name": "mcpgen", "version": "0"},
        }
        call: Node = {"method": INITIALIZE, "params": params}
        call = without_unknown(self.target, call, "client")
        request = self._add(_like(first.request, "request"), call, id=self._new_id())
        discovery = self._opening(DISCOVER)
        answer = discovery.answer if discovery is not None else None
        result: Json = answer.value.get("result") if answer is not None else None
        if answer is not None and is_object(result):
            expected = _opening_members(result, self.source, self.target)
            self._add(answer, {"result": expected}, request=request)
        else:
            answer = _like(first.request, "success response", "server")
            self._add(answer, {"result": {}}, request=request)
        self._add(_like(first.request, "notification"), {"method": INITIALIZED})

    def _opening(self, method: str) -> Exchange | None:
        """The exchange that opens the session, which is not carried over as it is."""
        chosen = None
        for exchange in self.session.exchanges:
            if exchange.request.method == method:
                self._skip(exchange)
                answered = exchange.answer is not None and exchange.answer.kind != "error response"
                chosen = exchange if answered or chosen is None else chosen
        return chosen

    def _skip(self, exchange: Exchange) -> None:
        parts = (exchange.request, exchange.answer, *exchange.stream)
        self.skipped.update(each.number for each in parts if each is not None)

    def _meta_of(self, message: Message) -> Node:
        meta: Json = message.params.get(META)
        key = self.source.protocol.facts.meta.protocol_version
        return meta if is_object(meta) and key in meta else {}

    # Messages

    def _message(self, message: Message) -> None:
        match message.kind:
            case "request" if message.sender == "client":
                self._call(message)
            case "request":
                self._question(message)
            case "notification":
                self._notification(message)
            case _:
                self._response(message)

    def _call(self, message: Message) -> None:
        exchange = next(each for each in self.session.exchanges if each.request is message)
        if message.method == SET_LEVEL and not self.target.methods(SET_LEVEL, "client"):
            self.level = message.params.get("level")
            self._skip(exchange)
            return
        reason = self._reason(message)
        if reason:
            self._skip(exchange)
            self._lose(message, reason)
            return
        questions = [
            each for each in exchange.stream if each.kind == "request" and each.sender == "server"
        ]
        methods = [*(each.method for each in questions), *self._methods_asked(exchange)]
        absent = next((method for method in methods if not self._asks(method)), None)
        if absent is not None:
            for each in (exchange, *self._following(exchange)):
                self._skip(each)
            self._lose(message, f"the server asks by {absent}, which {self.target.name} lacks")
            return
        self._set_level(message)
        if questions and not self._has_handshake(self.target):
            self._write_rounds(exchange, questions)
        elif self._requests_of(exchange.answer) and self._has_handshake(self.target):
            self._asked_call(exchange)
        else:
            self._add(message, self._client_value(message, exchange))

    def _methods_asked(self, exchange: Exchange) -> list[str]:
        """The methods of the requests for input in a response."""
        requests = self._requests_of(exchange.answer).values()
        return [str(each.get("method")) for each in requests]

    def _asks(self, method: str) -> bool:
        """Whether a server of the other revision asks by a method, in a message or in a result."""
        inside = self.target.protocol.methods.inputs
        asks = bool(self.target.methods(method, "server"))
        return asks or any(each.name == method for each in inside)

    def _reason(self, message: Message) -> str:
        """Why a message of the client has no counterpart; empty if it has one."""
        if not self.target.methods(message.method, "client"):
            return f"{self.target.name} has no {message.method}"
        wrong = self.target.judge(self._client_value(message, None), "client").violation
        if wrong is None:
            return ""
        return f"{wrong.pointer}: expected {wrong.expected}, got {wrong.actual}"

    def _client_value(self, message: Message, exchange: Exchange | None) -> Node:
        value = without_unknown(self.target, message.value, "client")
        if message.method == INITIALIZE:
            value["params"]["protocolVersion"] = self.target.version
        if not self._has_handshake(self.target):
            has_logs = exchange is not None and any(e.method == LOG for e in exchange.stream)
            value = self._with_meta(value, self.level or ("debug" if has_logs else None))
        return value

    def _with_meta(self, value: Node, level: Json = None) -> Node:
        """A request with the metadata that the other revision requires."""
        keys = self.target.protocol.facts.meta
        client = self._client()
        own: dict[str | None, Json] = {
            keys.protocol_version: self.target.version,
            keys.client_info: client.get("clientInfo"),
            keys.client_capabilities: client.get("capabilities") or {},
            keys.log_level: level,
        }
        params: Node = value.get("params") or {}
        meta: Node = {
            **(params.get(META) or {}),
            **{str(key): each for key, each in own.items() if key and each is not None},
        }
        return {**value, "params": {**params, META: meta}}

    def _client(self) -> Node:
        """The description of the client, as params of `initialize`."""
        for exchange in self.session.exchanges:
            if exchange.request.method == INITIALIZE:
                call = without_unknown(self.target, exchange.request.value, "client")
                params: Json = call.get("params")
                return params if is_object(params) else {}
            meta = self._meta_of(exchange.request)
            if meta:
                keys = self.source.protocol.facts.meta
                return {
                    "clientInfo": meta.get(str(keys.client_info)),
                    "capabilities": meta.get(str(keys.client_capabilities)),
                }
        return {}

    def _set_level(self, message: Message) -> None:
        """Ask for the log level of a request's metadata, if that is a request of its own."""
        key = self.source.protocol.facts.meta.log_level
        level: Json = self._meta_of(message).get(str(key)) if key else None
        if level is None or level == self.level:
            return
        self.level = level
        if self.target.methods(SET_LEVEL, "client"):
            call = {"method": SET_LEVEL, "params": {"level": level}}
            request = self._add(_like(message, "request"), call, id=self._new_id())
            answer = _like(message, "success response", "server")
            self._add(answer, {"result": {}}, request=request)

    def _response(self, message: Message) -> None:
        if message.request is None or message.request not in self.numbers:
            return
        request = self.session.messages[message.request]
        new = self.numbers[message.request]
        value = without_unknown(self.target, message.value, message.sender, request.value)
        if request.method == INITIALIZE and is_object(message.value.get("result")):
            opened = {**message.value["result"], "protocolVersion": self.target.version}
            value = {"result": _opening_members(opened, self.source, self.target)}
        self._add(message, self._with_code(value), request=new, id=self.messages[new].value["id"])

    def _with_code(self, value: Node) -> Node:
        """An error with the code that the other revision has for it."""
        error: Json = value.get("error")
        if not is_object(error):
            return value
        old, new = self.source.protocol.facts.errors, self.target.protocol.facts.errors
        for name in _ERRORS:
            if getattr(old, name) == error.get("code") and getattr(new, name) is not None:
                return {**value, "error": {**error, "code": getattr(new, name)}}
        return value

    def _question(self, message: Message) -> None:
        if not self._asks(message.method):
            self._lose(message, f"{self.target.name} has no {message.method} of the server")
            return
        value = without_unknown(self.target, message.value, "server")
        self._add(message, value, within=self._within(message))

    def _notification(self, message: Message) -> None:
        if message.method == INITIALIZED and not self.target.methods(INITIALIZED, "client"):
            return
        if message.method in self.uncompared and message.sender == "server":
            return
        if not self.target.methods(message.method, message.sender):
            self._lose(message, f"{self.target.name} has no {message.method}")
            return
        if message.sender == "server" and self._is_subscribed(message):
            self.uncompared.add(message.method)
            self._lose(message, "it comes by a subscription in one of both revisions")
            return
        value = without_unknown(self.target, message.value, message.sender)
        if message.method == PROGRESS:
            value["params"].pop(META, None)
        self._add(message, value, within=self._within(message))

    def _is_subscribed(self, message: Message) -> bool:
        """Whether a notification comes by a subscription in one of both revisions only."""
        if self._has_handshake(self.source) == self._has_handshake(self.target):
            return False
        return any(
            len(each.protocol.facts.capability(message.method)) > 1
            for each in (self.source, self.target)
        )

    def _within(self, message: Message) -> int | None:
        return None if message.within is None else self.numbers.get(message.within)

    # Rounds of input

    def _write_rounds(self, exchange: Exchange, questions: list[Message]) -> None:
        """Answer the questions of a call in rounds: each repeats the call with more answers."""
        self.uncompared |= {PROGRESS, LOG}
        message = exchange.request
        value = self._client_value(message, exchange)
        request = self._add(message, value)
        self._skip(exchange)
        for number, question in enumerate(questions, 1):
            reply = self.session.answer_to(question)
            inner = without_unknown(self.target, question.value, "server")
            content = {key: inner[key] for key in ("method", "params") if key in inner}
            name = f"input-{number}"
            result = {"resultType": _INPUT_REQUIRED, _INPUT_REQUESTS: {name: content}}
            state = f"state-{message.number}-{number}"
            answer = _like(question, "success response")
            self._add(answer, {"result": {**result, _STATE: state}}, request=request)
            if reply is None or "result" not in reply.value:
                self._lose(question, "the client refused it, which rounds of input can't say")
                return
            answers = {name: reply.value["result"]}
            params = {**value["params"], INPUT_RESPONSES: answers, _STATE: state}
            request = self._add(
                _like(reply, "request"), {**value, "params": params}, id=self._new_id()
            )
        if exchange.answer is not None:
            final = without_unknown(self.target, exchange.answer.value, "server", message.value)
            self._add(exchange.answer, self._with_code(final), request=request)

    def _requests_of(self, answer: Message | None) -> Mapping[str, Node]:
        """The requests for input in a response; empty if it has none."""
        result: Json = answer.value.get("result") if answer is not None else None
        requests: Json = result.get(_INPUT_REQUESTS) if is_object(result) else None
        return requests if is_object(requests) else {}

    def _asked_call(self, exchange: Exchange) -> None:
        """Ask what the rounds of a call asked by requests of the server."""
        self.uncompared |= {PROGRESS, LOG}
        message = exchange.request
        call = self._add(message, self._client_value(message, exchange))
        rounds = [exchange, *self._following(exchange)]
        for each, following in zip(rounds, [*rounds[1:], None], strict=True):
            self._skip(each)
            given: Json = following.request.params.get(INPUT_RESPONSES) if following else None
            for name, content in self._requests_of(each.answer).items():
                assert each.answer is not None  # it has the requests
                source = _like(each.answer, "request")
                question = self._add(source, dict(content), within=call, id=self._new_id())
                if is_object(given) and name in given and following is not None:
                    reply = _like(following.request, "success response")
                    self._add(reply, {"result": given[name]}, request=question)
        last = rounds[-1].answer
        if last is not None and not self._requests_of(last):
            final = without_unknown(self.target, last.value, "server", message.value)
            self._add(last, self._with_code(final), request=call)

    def _following(self, exchange: Exchange) -> Iterator[Exchange]:
        """The further rounds of a call, in order."""
        names = self._requests_of(exchange.answer).keys()
        for each in self.session.exchanges:
            answers: Json = each.request.params.get(INPUT_RESPONSES)
            same = each.request.params.get("name") == exchange.request.params.get("name")
            is_later = each.request.number > exchange.request.number
            if is_later and same and is_object(answers) and names & answers.keys():
                yield each
                names = self._requests_of(each.answer).keys()

    # Writing

    def _new_id(self) -> str:
        self._made += 1
        return f"mcpgen-{self._made}"

    def _lose(self, message: Message, reason: str) -> None:
        item = safe_text(message.method or "response")
        self.lost.append(
            Outcome(
                RULES["NO_COUNTERPART"],
                message.line,
                item,
                safe_text(reason, 400),
                expected=message.value,
            )
        )

    def _add(
        self,
        source: Message,
        value: Node,
        *,
        request: int | None = None,
        within: int | None = None,
        id: Json = None,
    ) -> int:
        """Write a message that stands for one of the trace; returns its number."""
        number = len(self.messages)
        whole: Node = {"jsonrpc": "2.0", **value}
        if source.kind == "request":
            whole["id"] = source.value.get("id") if id is None else id
        elif request is not None:
            whole["id"] = self.messages[request].value["id"]
            within = self._call_of(request)
        self.messages.append(
            replace(
                source,
                number=number,
                value=whole,
                request=request,
                within=within,
                linked=source.linked or request is not None,
            )
        )
        self.numbers.setdefault(source.number, number)
        return number

    def _call_of(self, request: int) -> int | None:
        message = self.messages[request]
        return request if message.sender == "client" else message.within
