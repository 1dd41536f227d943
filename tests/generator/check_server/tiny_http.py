"""The tiny server over HTTP: a function of requests."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from generator.check_server.rows import CAPABLE, OLD, PREFIX, VERSION, Defect, Message
from generator.check_server.tiny_server import (
    MISMATCH,
    REVISIONS,
    UNSUPPORTED,
    TinyServer,
    meta_of,
)

SESSION, ORIGIN, METHOD, NAME = "mcp-session-id", "origin", "mcp-method", "mcp-name"
PROTOCOL = "mcp-protocol-version"
STATUSES = {-32601: 404, UNSUPPORTED: 400, MISMATCH: 400, -32600: 400}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Request:
    """A request of HTTP: its header fields by their names in lower case, and as they were sent."""

    def __init__(self, verb: str, fields: list[tuple[str, str]], body: bytes) -> None:
        self.verb = verb
        self.fields = {name.lower(): value for name, value in fields}
        self.names = [name for name, _ in fields]
        self.body = body
        self.message: Any = None
        with suppress(ValueError):
            self.message = json.loads(body)

    @property
    def method(self) -> str:
        """The method of the message; empty if it has none."""
        method = self.message.get("method") if isinstance(self.message, dict) else None
        return method if isinstance(method, str) else ""


@dataclass
class Response:
    """A response of HTTP: one message, or those of a stream with the same id of each event."""

    status: int
    messages: list[Any] = field(default_factory=list[Any])
    fields: dict[str, str] = field(default_factory=dict[str, str])
    media_type: str = "application/json"
    event_id: str = ""
    stays_open: bool = False

    @property
    def code(self) -> Any:
        """The code of an error."""
        return self.messages[0].get("error", {}).get("code") if self.messages else None

    @property
    def body(self) -> bytes:
        """The body."""
        texts = [json.dumps(each).encode() for each in self.messages]
        if self.media_type != "text/event-stream":
            return b"".join(texts)
        id = f"id: {self.event_id}\n".encode() if self.event_id else b""
        return b"".join(b"%bdata: %b\n\n" % (id, text) for text in texts)


def stream(*messages: Message, stays_open: bool = True) -> Response:
    """A stream of messages."""
    fields = {"x-accel-buffering": "no"}
    return Response(200, [*messages], fields, "text/event-stream", stays_open=stays_open)


class TinyHttp:
    """Answers requests of HTTP: with a handshake and sessions, or with neither."""

    def __init__(
        self,
        *,
        stateless: bool,
        defect: Defect | None = None,
        over_http: HttpDefect | None = None,
    ) -> None:
        self.sessions: dict[str, TinyServer] = {}
        self.new_id: Callable[[], str] = lambda: uuid.uuid4().hex
        self.stateless = stateless
        self._defect = defect
        self._over_http = over_http or TinyHttp.serve
        self._shared = TinyServer(stateless=stateless, defect=defect)

    def answer(self, request: Request) -> Response:
        """Serve a request, with the defect if there is one."""
        return self._over_http(self, request)

    def serve(self, request: Request) -> Response:
        """Serve a request as it should be."""
        if request.verb == "POST" and ORIGIN in request.fields:
            return Response(403)
        if self.stateless:
            return self._serve_stateless(request) if request.verb == "POST" else Response(405)
        if request.verb == "GET":
            return Response(405)
        if request.verb == "DELETE":
            self.sessions.pop(request.fields.get(SESSION, ""), None)
            return Response(200)
        return self._serve_in_session(request)

    def _serve_in_session(self, request: Request) -> Response:
        if request.fields.get(PROTOCOL, OLD) not in REVISIONS:
            return Response(400)
        fields: dict[str, str] = {}
        id = request.fields.get(SESSION)
        if request.method == "initialize":
            id = fields[SESSION] = self.new_id()
            self.sessions[id] = TinyServer(defect=self._defect)
        if id not in self.sessions:
            return Response(400 if id is None else 404)
        answers = self.sessions[id].read(request.body)
        if not answers:
            return Response(202)
        if len(answers) > 1:
            return stream(*answers, stays_open=False)
        return Response(200 if b'"method"' in request.body else 400, answers, fields)

    def _serve_stateless(self, request: Request) -> Response:
        if request.method == "subscriptions/listen":
            return self._listen(request.message)
        answers = self._shared.read(request.body)
        if not answers:
            return Response(202)
        if not request.method:
            return Response(400, answers)
        if self._is_mismatch(request):
            return self.mismatch(request)
        if len(answers) > 1:
            return stream(*answers, stays_open=False)
        code = answers[0].get("error", {}).get("code")
        lacks = code == -32602 and CAPABLE not in meta_of(request.message)
        return Response(400 if lacks else STATUSES.get(code, 200), answers)

    def mismatch(self, request: Request) -> Response:
        """The refusal of a request whose header differs from its body."""
        return Response(400, [self._shared.error(request.message, MISMATCH)])

    def _listen(self, request: Message) -> Response:
        meta = {"_meta": {f"{PREFIX}subscriptionId": request["id"]}}
        params = {**meta, "notifications": {"toolsListChanged": True}}
        return stream({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})

    def _is_mismatch(self, request: Request) -> bool:
        version = request.fields.get(PROTOCOL)
        if version is None or meta_of(request.message).get(VERSION, version) != version:
            return True
        if request.fields.get(METHOD) != request.method:
            return True
        name = request.message.get("params", {}).get(NAMED_BY.get(request.method))
        return name is not None and decoded(request.fields.get(NAME, "")) != str(name)


def decoded(value: str) -> str | None:
    """The value of a header field; `None` if it cannot be decoded."""
    if not value.startswith("=?base64?"):
        return value
    encoded = value.removeprefix("=?base64?").removesuffix("?=")
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except binascii.Error:
        return None


HttpDefect = Callable[[TinyHttp, Request], Response]
"""Serves a request in place of `TinyHttp.serve`."""
