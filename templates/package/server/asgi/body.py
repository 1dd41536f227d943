"""The bodies of HTTP requests, within limits of bytes and time.

A body that arrives with its head is not counted. Incomplete bodies are counted: when there are too
many, the body that has waited longest for its next part is cancelled, so clients that send half a
body do not block others.

Some clients read no response before their whole body is written. If the connection were closed
earlier, a reset would destroy the refusal. So the refusal is sent at once, and the rest of the body
is discarded before the response ends.

Source: ASGI specification 3.0 (HTTP connection scope).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from types import CoroutineType
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import anyio

from ...runtime.concurrency import outcome
from ...runtime.eager_tasks import on_asyncio, resume
from ...runtime.task_scope import NativeScope
from .http_response import CLOSE, HttpResponse, Receive, Refused, Send, over_limit, refusal
from .quotas import SHORT_BODY
from .request import HttpRequest, body_too_long
from .settings import Limits

_Receiving: TypeAlias = Coroutine[Any, Any, MutableMapping[str, Any]]
_Scope: TypeAlias = anyio.CancelScope | NativeScope

_DROPPED_BY_SERVERS = 16 * 1024  # bytes of an unread body that ASGI servers discard themselves
_TIMED_OUT = refusal(408, "the body did not come in time (Limits.body_seconds)")


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class RequestBodies:
    """The request bodies that one application reads and holds.

    Attributes:
        on_full: Called when a body is refused because there is no room for it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._longest = min(SHORT_BODY, limits.body)
        self._size = 0  # bytes of all bodies that are not short
        # Counted bytes of each incomplete body, the one longest without a new part first.
        self._incomplete: OrderedDict[_Scope, int] = OrderedDict()
        self._cancelled: WeakKeyDictionary[_Scope, HttpResponse] = WeakKeyDictionary()
        self._discarding: OrderedDict[anyio.CancelScope, None] = OrderedDict()
        self.on_full: Callable[[], object] | None = None

    @property
    def size(self) -> int:
        """Bytes of the bodies of more than 64 KiB."""
        return self._size

    def begin(
        self, receive: Receive
    ) -> tuple[bytes | None, Awaitable[MutableMapping[str, Any]] | None]:
        """The body, if it is short and has arrived with its head; else what `read` continues.

        On asyncio only: trio must not run a coroutine in a scope that it was begun before.
        """
        receiving = receive()
        if not isinstance(receiving, CoroutineType):
            return None, receiving
        coroutine = cast("_Receiving", receiving)  # what it yields is for the event loop
        try:
            return None, resume(coroutine, coroutine.send(None))
        except StopIteration as end:
            message: MutableMapping[str, Any] = end.value
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            if len(body) <= self._longest:
                return body, None
        return None, outcome(message)

    async def read(
        self, receive: Receive, first: Awaitable[MutableMapping[str, Any]] | None = None
    ) -> bytes:
        """Read the whole body. Call `release` after the response.

        Args:
            receive: The ASGI receive callable.
            first: Returns the first message, if `begin` has begun.

        Raises:
            Refused: The body is too long, came too late, or has no room.
            Disconnected: The client disconnected before the end of the body.
        """
        body = b""
        with NativeScope() if on_asyncio() else anyio.CancelScope() as scope:
            body = await self._read(scope, receive, first)
        if scope.cancel_called:  # perhaps although the last part arrived
            raise Refused(self._cancelled.get(scope, _TIMED_OUT), "partly read")
        if len(body) > SHORT_BODY:
            if not self._make_room(len(body)):
                raise self._refuse_full("read")
            self._size += len(body)
        return body

    def release(self, body: bytes) -> None:
        """Stop counting a body."""
        if len(body) > SHORT_BODY:
            self._size -= len(body)

    async def respond(
        self, refused: Refused, request: HttpRequest, receive: Receive, send: Send
    ) -> None:
        """Send the response of a refusal, and discard what was not read of the body."""
        response, partly_read = refused.response, refused.body == "partly read"
        if (
            refused.body == "read"
            or not request.version.startswith("1")
            or not (partly_read or _is_long(request))
        ):
            await response.send(send)
            return
        closing = HttpResponse(response.status, response.body, {**response.headers, **CLOSE})
        if b"expect" in request.headers and not partly_read:
            await closing.send(send)  # the client sends no body before `100 Continue`
            return
        try:
            await closing.send(send, more=True)
            await self._discard(receive)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            return

    async def _discard(self, receive: Receive) -> None:
        """Read the rest of a body and drop it; at most `Limits.reading` bodies at a time."""
        limits = self._limits
        left = limits.discard
        if len(self._discarding) >= limits.reading:
            longest, _ = self._discarding.popitem(last=False)
            longest.cancel()
        with anyio.CancelScope(deadline=anyio.current_time() + limits.body_seconds) as scope:
            self._discarding[scope] = None
            try:
                while left > 0:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
                    left -= len(message.get("body", b""))
                    if scope in self._discarding:
                        self._discarding.move_to_end(scope)
            finally:
                self._discarding.pop(scope, None)

    async def _read(
        self,
        scope: _Scope,
        receive: Receive,
        first: Awaitable[MutableMapping[str, Any]] | None,
    ) -> bytes:
        """Read a body in a scope, which is counted and gets a deadline once the body waits."""
        reading = self._read_parts(scope, receive, first)
        try:
            try:
                awaited = reading.send(None)
            except StopIteration as end:  # the body has arrived with its head, as most do
                whole: bytes = end.value
                return whole
            scope.deadline = anyio.current_time() + self._limits.body_seconds
            self._count_body(scope)
            body = await resume(reading, awaited)
            scope.deadline = math.inf
            return body
        finally:
            if scope in self._incomplete:
                self._size -= self._incomplete.pop(scope)

    async def _read_parts(
        self,
        scope: _Scope,
        receive: Receive,
        first: Awaitable[MutableMapping[str, Any]] | None,
    ) -> bytes:
        gathered: bytearray | None = None  # one buffer, since small parts have overhead
        while True:
            message = await (first or receive())
            first = None
            if message["type"] != "http.request":
                raise Disconnected
            part: bytes = message.get("body", b"")
            more: bool = message.get("more_body", False)
            if len(gathered or b"") + len(part) > self._limits.body:
                raise Refused(body_too_long(self._limits), "partly read" if more else "read")
            if not more:
                return bytes(gathered + part) if gathered else part
            self._count_body(scope)
            if gathered is None:
                gathered = bytearray()
            gathered += part
            if not self._count_part(scope, len(gathered)):
                raise self._refuse_full("partly read")

    def _refuse_full(self, body: Any) -> Refused:
        if self.on_full is not None:
            self.on_full()
        return Refused(over_limit("bodies"), body)

    def _count_body(self, scope: _Scope) -> None:
        """Count an incomplete body."""
        if scope not in self._incomplete:
            if len(self._incomplete) >= self._limits.reading:
                self._cancel(next(iter(self._incomplete)), "reading")
            self._incomplete[scope] = 0

    def _count_part(self, scope: _Scope, size: int) -> bool:
        """Count a new part; `False` if there is no room for the body."""
        before = self._incomplete[scope]
        self._incomplete.move_to_end(scope)
        if size > SHORT_BODY:
            if not self._make_room(size - before, scope):
                return False
            self._size += size - before
            self._incomplete[scope] = size
        return True

    def _make_room(self, size: int, own: _Scope | None = None) -> bool:
        """Make room for bytes by cancelling the most overdue bodies; `False` if there is none."""
        while self._size + size > self._limits.bodies:
            others = (each for each, held in self._incomplete.items() if held and each is not own)
            longest = next(others, None)
            if longest is None:
                return False
            self._cancel(longest, "bodies")
        return True

    def _cancel(self, scope: _Scope, limit: str) -> None:
        self._size -= self._incomplete.pop(scope)
        self._cancelled[scope] = over_limit(limit)
        scope.cancel()


def _is_long(request: HttpRequest) -> bool:
    """Whether the body may exceed the size that ASGI servers discard by themselves."""
    length = request.headers.get(b"content-length")
    if length is None:
        return b"transfer-encoding" in request.headers
    digits = len(str(_DROPPED_BY_SERVERS))
    return not length.isdigit() or len(length) > digits or int(length) > _DROPPED_BY_SERVERS
