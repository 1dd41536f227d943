"""Bodies on their way: read within limits of bytes and time, or dropped after a refusal.

A body that is there when its request is costs nothing here. The others are counted: whose next part
is the longest overdue makes room for the next, so clients that send half a body keep nobody out.

A client may read nothing before it has written its whole body. If the connection were closed before
that, the refusal would be lost in a reset. So the refusal is sent at once, and what still comes of
the body is dropped before the response ends.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping

import anyio
from msgspec import Struct

from ...runtime.eager import pausing
from .request import Incoming, Receive, Send, too_long
from .responses import Reply, refusal, too_much
from .settings import Limits

SHORT = 64 * 1024
"""A body of so many bytes needs no room of its own."""

_LEFT = 16 * 1024  # bytes of a body that servers drop by themselves, if they come
_CLOSE: Mapping[str, str] = {"Connection": "close"}

LATE = refusal(408, "the body did not come in time (Limits.body_seconds)")
"""What refuses a body that did not come in time."""


class Disconnected(Exception):
    """The client went away before its request was whole: there is nobody to answer."""


class Refused(Struct, frozen=True):
    """A body that was not accepted.

    Attributes:
        reply: What refuses it.
        unread: Whether more of it may come.
        full: Whether there is no room for it.
    """

    reply: Reply
    unread: bool = True
    full: bool = False


class RequestBodies:
    """The bodies that one application reads and holds.

    Args:
        limits: How many, how long, and for how long.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._size = 0  # of all that are not short
        # What each body that is not whole has of that, the one longest without a new part first.
        self._waiting: OrderedDict[anyio.CancelScope, int] = OrderedDict()
        self._cut: dict[anyio.CancelScope, Reply] = {}
        self._dropping: OrderedDict[anyio.CancelScope, None] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes of the bodies of more than 64 KiB."""
        return self._size

    async def read(self, receive: Receive) -> bytes | Refused:
        """The whole body, to be given back by `release`, or what refuses it.

        Raises:
            Disconnected: The client left in the middle of it.
        """
        with anyio.CancelScope() as scope:
            return await self.read_in(scope, receive)
        return self.late(scope)

    async def read_in(self, scope: anyio.CancelScope, receive: Receive) -> bytes | Refused:
        """The same in a scope of the caller's, which is cancelled if the body does not come.

        `late` then tells what refuses it.

        Raises:
            Disconnected: The client left in the middle of it.
        """

        def start_the_clock() -> None:
            scope.deadline = anyio.current_time() + self._limits.body_seconds
            self._enter(scope)

        try:
            body = await pausing(self._gather(scope, receive), start_the_clock)
        except Disconnected:
            self._cut.pop(scope, None)
            raise
        finally:
            if scope in self._waiting:
                self._size -= self._waiting.pop(scope)
        if scope.deadline != math.inf:
            scope.deadline = math.inf
            if scope.cancel_called:  # when the last part was there already
                return self.late(scope)
        if isinstance(body, bytes) and len(body) > SHORT:
            if not self._has_room(len(body)):
                return Refused(too_much("bodies"), unread=False, full=True)
            self._size += len(body)
        return body

    def release(self, body: bytes) -> None:
        """Hold a body that was read no more."""
        if len(body) > SHORT:
            self._size -= len(body)

    def late(self, scope: anyio.CancelScope) -> Refused:
        """What refuses a body that did not come while its scope was not cancelled."""
        return Refused(self._cut.pop(scope, LATE))

    async def refuse(
        self,
        reply: Reply,
        request: Incoming,
        receive: Receive,
        send: Send,
        *,
        begun: bool = False,
    ) -> None:
        """Send a refusal of a request whose body was not read to its end.

        Args:
            reply: The refusal.
            request: What is refused.
            receive: Gives the body.
            send: The way out.
            begun: Whether some of the body was read.
        """
        if not request.version.startswith("1") or not (begun or _is_long(request)):
            await reply.send(send)
            return
        closing = Reply(reply.status, reply.body, {**reply.fields, **_CLOSE})
        if request.raw(b"expect") is not None and not begun:
            await closing.send(send)  # its client waits for leave to send the body
            return
        try:
            await closing.send(send, more=True)
            await self._drop(receive)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            return

    async def _drop(self, receive: Receive) -> None:
        """Read on, and keep nothing; as many at a time as are read otherwise."""
        limits = self._limits
        left = limits.discard
        if len(self._dropping) >= limits.reading:
            longest, _ = self._dropping.popitem(last=False)
            longest.cancel()
        with anyio.CancelScope(deadline=anyio.current_time() + limits.body_seconds) as scope:
            self._dropping[scope] = None
            try:
                while left > 0:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
                    left -= len(message.get("body", b""))
                    if scope in self._dropping:
                        self._dropping.move_to_end(scope)
            finally:
                self._dropping.pop(scope, None)

    async def _gather(self, scope: anyio.CancelScope, receive: Receive) -> bytes | Refused:
        gathered = bytearray()  # however small the parts are, they take no more room than the whole
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Disconnected
            part: bytes = message.get("body", b"")
            more: bool = message.get("more_body", False)
            if len(gathered) + len(part) > self._limits.body:
                return Refused(too_long(self._limits), more)
            if not more:
                return bytes(gathered + part) if gathered else part
            self._enter(scope)
            gathered += part
            if not self._grow(scope, len(gathered)):
                return Refused(too_much("bodies"), full=True)

    def _enter(self, scope: anyio.CancelScope) -> None:
        """Count a body that is not whole yet."""
        if scope not in self._waiting:
            if len(self._waiting) >= self._limits.reading:
                self._end(next(iter(self._waiting)), "reading")
            self._waiting[scope] = 0

    def _grow(self, scope: anyio.CancelScope, size: int) -> bool:
        """Take note that a part came; `False` if there is no room for all that there is now."""
        before = self._waiting.get(scope)
        if before is None:
            return True  # it was cut, and is about to see that
        self._waiting.move_to_end(scope)
        if size > SHORT:
            if not self._has_room(size - before, scope):
                return False
            self._size += size - before
            self._waiting[scope] = size
        return True

    def _has_room(self, size: int, own: anyio.CancelScope | None = None) -> bool:
        """Whether so many bytes more may be held, once those longest overdue are given up."""
        while self._size + size > self._limits.bodies:
            others = (each for each, held in self._waiting.items() if held and each is not own)
            longest = next(others, None)
            if longest is None:
                return False
            self._end(longest, "bodies")
        return True

    def _end(self, scope: anyio.CancelScope, limit: str) -> None:
        self._size -= self._waiting.pop(scope)
        self._cut[scope] = too_much(limit)
        scope.cancel()


def _is_long(request: Incoming) -> bool:
    """Whether more of a body may come than servers drop by themselves."""
    length = request.raw(b"content-length")
    if length is None:
        return request.raw(b"transfer-encoding") is not None
    return not length.isdigit() or len(length) > len(str(_LEFT)) or int(length) > _LEFT
