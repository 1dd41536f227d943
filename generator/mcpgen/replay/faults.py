"""Failures of a served trace on purpose, for tests of clients: `--fail METHOD:N`.

The calls of a method are counted from 1, over all clients. A call that fails does so in one form:

    error    a JSON-RPC error, -32603
    close    the connection ends without a response
    STATUS   over HTTP: a response with this status and no body
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mcpgen.errors import UsageError, safe_text
from mcpgen.json_types import Json, is_array, is_object

Form: TypeAlias = Literal["error", "close"] | int
"""How a call fails; a number is an HTTP status."""

_FAULT = re.compile(
    r"(?P<method>[^\s:]+):(?P<number>[1-9]\d{0,8})(?::(?P<form>error|close|[45]\d\d))?"
)
_REASON = "a failure on purpose, by --fail"


@dataclass(frozen=True)
class Fault:
    """One call that fails.

    Attributes:
        method: The method.
        number: The number of the call, from 1.
        form: How it fails.
    """

    method: str
    number: int
    form: Form = "error"

    @property
    def text(self) -> str:
        """The message of its error."""
        return f"{_REASON}: {self.method}, call {self.number}"


def parse(text: str) -> Fault:
    """The fault that a user writes as `METHOD:N` or `METHOD:N:FORM`.

    Raises:
        UsageError: The text has another form.
    """
    match = _FAULT.fullmatch(text)
    if match is None:
        expected = "METHOD:N, such as tools/call:2, or METHOD:N:FORM with error, close or a status"
        raise UsageError(f"--fail: expected {expected} from 400 to 599, got {safe_text(text)!r}")
    form: Form = "close" if match["form"] == "close" else "error"
    if match["form"] is not None and match["form"].isdecimal():
        form = int(match["form"])
    return Fault(match["method"], int(match["number"]), form)


@dataclass
class Faults:
    """Counts calls, and finds those that fail.

    Attributes:
        rows: The calls that fail.
    """

    rows: Sequence[Fault] = ()
    _calls: Counter[str] = field(default_factory=Counter[str])

    def take(self, method: str) -> Fault | None:
        """Count a call; the fault that it has, or `None`."""
        self._calls[method] += 1
        number = self._calls[method]
        return next(
            (row for row in self.rows if (row.method, row.number) == (method, number)), None
        )


Scope: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]


class FaultyApplication:
    """An ASGI application whose responses may be a status, or break off.

    Args:
        application: The application.
        faults: Those with a status, and those that close the connection.
    """

    def __init__(self, application: Any, faults: Faults) -> None:
        self._application = application
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the application."""
        return getattr(self._application, name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or let it fail."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        events = [await receive()]
        while events[-1]["type"] == "http.request" and events[-1].get("more_body"):
            events.append(await receive())
        fault = self._fault_in(b"".join(event.get("body", b"") for event in events))
        if fault is None:
            rest = iter(events)

            async def receive_again() -> Event:
                event = next(rest, None)
                return await receive() if event is None else event

            await self._application(scope, receive_again, send)
            return
        status = 200 if fault.form == "close" else fault.form
        headers = [(b"content-type", b"text/event-stream")] if fault.form == "close" else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if fault.form == "close":
            await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
            return  # the server closes a connection whose response has no end
        await send({"type": "http.response.body", "body": b""})

    def _fault_in(self, body: bytes) -> Fault | None:
        """The first fault of the calls in a body."""
        try:
            message: Json = json.loads(body)
        except (ValueError, RecursionError):
            return None
        calls = message if is_array(message) else [message]
        methods = [each.get("method") for each in calls if is_object(each)]
        faults = [self._faults.take(each) for each in methods if isinstance(each, str)]
        return next((each for each in faults if each is not None), None)
