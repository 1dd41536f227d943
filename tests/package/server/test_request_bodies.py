"""The heads and bodies that an application reads: no body stays counted, whatever becomes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from mcpgen_runtime.protocol import jsonrpc
from mcpgen_runtime.server.asgi.http_response import Refused, refusal
from mcpgen_runtime.server.asgi.request import (
    Disconnected,
    HttpRequest,
    RequestBodies,
    check_events,
    check_initialize,
    check_post,
)
from mcpgen_runtime.server.asgi.settings import Limits

pytestmark = pytest.mark.anyio

PART = 40_000
LIMITS = Limits(body=4 * PART, bodies=10 * PART)


def part(size: int = PART, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


async def read(bodies: RequestBodies, *messages: MutableMapping[str, Any]) -> bytes | Refused:
    """The body that some messages have; it comes in pieces, and never ends if none is the last."""
    waiting = iter(messages)

    async def receive() -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        for message in waiting:
            return message
        await anyio.sleep_forever()
        raise AssertionError("sleeps for ever")

    try:
        return await bodies.read(receive)
    except Refused as refused:
        return refused


async def test_a_long_body_is_counted_until_it_is_released() -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(), part(more=False))
    assert isinstance(body, bytes)
    assert (len(body), bodies.size) == (2 * PART, 2 * PART)
    bodies.release(body)
    assert bodies.size == 0


async def test_a_short_body_is_not_counted() -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(64), part(64, more=False))
    assert isinstance(body, bytes)
    assert bodies.size == 0
    bodies.release(body)
    assert bodies.size == 0


async def test_an_incomplete_body_is_counted_as_it_comes() -> None:
    bodies = RequestBodies(LIMITS)
    sizes = []

    async def receive() -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        sizes.append(bodies.size)
        return part(more=len(sizes) < 4)

    body = await bodies.read(receive)
    assert isinstance(body, bytes)
    assert sizes == [0, 0, 2 * PART, 3 * PART]
    assert bodies.size == 4 * PART


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("last", "status"),
    [(part(2 * PART + 1), 413), ({"type": "http.disconnect"}, None)],
    ids=["too long", "disconnected"],
)
async def test_a_body_that_does_not_end_well_is_not_counted(
    last: dict[str, Any], status: int | None
) -> None:
    bodies = RequestBodies(LIMITS)
    if status is None:
        with pytest.raises(Disconnected):
            await read(bodies, part(), part(), last)
    else:
        refused = await read(bodies, part(), part(), last)
        assert isinstance(refused, Refused)
        assert (refused.response.status, refused.body) == (status, "partly read")
    assert bodies.size == 0


class Slow:
    """A body that comes part by part, when told; its outcome once there is one."""

    def __init__(self, bodies: RequestBodies) -> None:
        self._bodies = bodies
        self._send, self._parts = anyio.create_memory_object_stream[dict[str, Any]](9)
        self.outcome: bytes | Refused | None = None

    async def run(self) -> None:
        with self._send, self._parts:
            try:
                self.outcome = await self._bodies.read(self._parts.receive)
            except Refused as refused:
                self.outcome = refused

    async def comes(self, **how: Any) -> None:
        self._send.send_nowait(part(**how))
        await anyio.wait_all_tasks_blocked()

    @property
    def status(self) -> int | None:
        return self.outcome.response.status if isinstance(self.outcome, Refused) else None


@pytest.fixture
async def slow() -> AsyncIterator[Callable[[RequestBodies], Slow]]:
    """Begins bodies that come part by part."""
    async with anyio.create_task_group() as tasks:

        def begin(bodies: RequestBodies) -> Slow:
            body = Slow(bodies)
            tasks.start_soon(body.run)
            return body

        yield begin
        tasks.cancel_scope.cancel()


async def test_the_body_longest_without_a_part_makes_room(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies = RequestBodies(Limits(body=9 * PART, bodies=6 * PART))
    first, second, third = (slow(bodies) for _ in range(3))
    for body in (first, second, third):
        await body.comes(size=2 * PART)
    assert bodies.size == 6 * PART  # as many as fit
    await first.comes(size=0)
    await third.comes()
    assert [body.status for body in (first, second, third)] == [None, 503, None]
    assert bodies.size == 5 * PART
    await third.comes(more=False)
    assert isinstance(third.outcome, bytes)
    assert bodies.size == 6 * PART


async def test_a_body_without_room_is_refused_when_no_other_waits(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies, full = RequestBodies(Limits(body=9 * PART, bodies=3 * PART)), list[bool]()
    bodies.on_full = lambda: full.append(True)
    held = await read(bodies, part(2 * PART, more=False))
    assert isinstance(held, bytes)
    body = slow(bodies)
    for _ in range(2):
        await body.comes()
    assert body.status == 503
    assert isinstance(body.outcome, Refused)
    assert (body.outcome.body, full) == ("partly read", [True])
    whole = await read(bodies, part(2 * PART, more=False))
    assert isinstance(whole, Refused)
    assert (whole.response.status, whole.body, full) == (503, "read", [True, True])
    assert bodies.size == 2 * PART


async def test_only_so_many_bodies_are_read_at_once(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies = RequestBodies(Limits(reading=2))
    first, second = (slow(bodies) for _ in range(2))
    for body in (first, second, first):
        await body.comes()
    third = slow(bodies)
    await third.comes()
    assert [body.status for body in (first, second, third)] == [None, 503, None]
    await first.comes(more=False)
    assert isinstance(first.outcome, bytes)


@pytest.mark.parametrize(("size", "counted"), [(65536, 0), (65537, 65537)])
async def test_a_body_of_more_than_64_kib_is_counted(size: int, counted: int) -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(size, more=False))
    assert isinstance(body, bytes)
    assert bodies.size == counted
    bodies.release(body)
    assert bodies.size == 0


# ---- the head of a request


def request_with(*headers: tuple[str, str], **scope: Any) -> HttpRequest:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return HttpRequest({"method": "POST", "path": "/mcp", "headers": pairs, **scope})


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("", "/mcp", "/mcp"),
        ("", "", "/"),
        ("/", "/mcp", "/mcp"),
        ("/", "", "/"),
        ("/api", "/api/mcp", "/mcp"),
        ("/api/", "/api/mcp", "/mcp"),
        ("/api", "/api", "/"),
        ("/api", "/api/", "/"),
        ("/api", "/mcp", "/mcp"),
        ("/api", "/apis", "/apis"),
        ("/api", "", "/"),
    ],
)
def test_a_path_is_that_below_the_mount_point(root: str, path: str, below: str) -> None:
    assert request_with(root_path=root, path=path).path == below


def test_a_scope_without_optional_members_has_defaults() -> None:
    bare = request_with()
    assert (bare.query, bare.client, bare.server, bare.root, bare.version) == (
        b"",
        None,
        None,
        "",
        "1.1",
    )
    members = {"query_string": b"a=1", "client": ("c", 1), "server": ("s", 2)}
    whole = request_with(**members, root_path="/x", http_version="2")
    assert (whole.query, whole.client, whole.server, whole.root, whole.version) == (
        b"a=1",
        ("c", 1),
        ("s", 2),
        "/x",
        "2",
    )


def test_repeated_fields_are_joined_and_counted() -> None:
    twice = [("cookie", "a=1"), ("accept", "x"), ("cookie", "b=2"), ("accept", " y\t")]
    request = request_with(*twice)
    assert (request.count, request.field("COOKIE")) == (4, "a=1; b=2")
    assert (request.field("Accept"), request.field("other"), request.field(None)) == (
        "x,  y",
        None,
        None,
    )
    headers = (pair for pair in [(b"host", b"\xfc")])
    from_iterator = HttpRequest({"method": "GET", "path": "/", "headers": headers})
    assert (from_iterator.field("host"), from_iterator.count) == ("\xfc", 1)


def response_to(check: Callable[..., None], *arguments: Any, **options: Any) -> Any:
    """The response of a refusal; `None` if a check passes."""
    try:
        check(*arguments, **options)
    except Refused as refused:
        return refused.response
    return None


JSON, SSE = ("content-type", "application/json"), "text/event-stream"


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ([JSON], None, ""),
        ([("content-type", "Application/JSON; charset=utf-8")], None, ""),
        ([("content-type", "text/plain")], 415, "Content-Type: expected application/json, got"),
        ([], 415, "Content-Type: expected application/json, got nothing"),
        ([JSON, ("content-encoding", "identity")], None, ""),
        ([JSON, ("content-encoding", "gzip")], 415, "Content-Encoding: expected none, got 'gzip'"),
        ([JSON, ("content-length", "1000")], None, ""),
        ([JSON, ("content-length", "1001")], 413, "body: expected at most 1000 bytes"),
        ([JSON, ("content-length", f"{1000:018}")], None, ""),
        ([JSON, ("content-length", f"{1000:019}")], 413, "body: expected at most 1000 bytes"),
        ([JSON, ("content-length", "1e3")], 400, "Content-Length: expected a number, got '1e3'"),
        ([JSON, ("accept", "*/*")], None, ""),
        ([JSON, ("accept", SSE)], None, ""),
        ([JSON, ("accept", "application/*")], None, ""),
        ([JSON, ("accept", "a/b")], 406, f"Accept: expected application/json and {SSE}, got 'a/b'"),
        ([("accept", "a/b")], 415, "Content-Type: expected"),
    ],
)
def test_the_head_of_a_post_is_refused_for_its_first_fault(
    headers: list[tuple[str, str]], status: int | None, text: str
) -> None:
    refused = response_to(check_post, request_with(*headers), Limits(body=1000))
    if status is None:
        assert refused is None
    else:
        assert refused is not None
        assert (refused.status, text in refused.body.decode()) == (status, True)


@pytest.mark.parametrize(
    ("accept", "status"),
    [(None, None), (SSE, None), ("text/*", None), ("application/json", 406), (f"{SSE};q=0", 406)],
)
def test_a_stream_is_opened_only_if_it_is_accepted(accept: str | None, status: int | None) -> None:
    headers = [] if accept is None else [("accept", accept)]
    refused = response_to(check_events, request_with(*headers), id=7)
    assert (None if refused is None else refused.status) == status
    if refused is not None:
        error = msgspec.json.decode(refused.body)
        text = f"Accept: expected {SSE}, got {accept!r}"
        assert (error["id"], error["error"]["message"]) == (7, text)


@pytest.mark.parametrize(("size", "is_refused"), [(100, False), (101, True)])
def test_an_initialize_is_refused_beyond_its_limit(size: int, is_refused: bool) -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":3,"method":"initialize"}')
    assert isinstance(message, jsonrpc.Request)
    refused = response_to(check_initialize, message, bytes(size), Limits(initialize=100))
    assert (refused is not None) is is_refused
    if refused is not None:
        error = msgspec.json.decode(refused.body)
        text = "initialize: expected at most 100 bytes (Limits.initialize)"
        assert (refused.status, error["id"], error["error"]["message"]) == (413, 3, text)


async def test_a_deadline_of_the_caller_stays_unless_a_body_is_late() -> None:
    bodies = RequestBodies(LIMITS)

    async def receive() -> MutableMapping[str, Any]:
        return part(more=False)

    with anyio.CancelScope(deadline=anyio.current_time() + 600) as scope:
        deadline = scope.deadline
        await bodies.read(receive)
        assert scope.deadline == deadline


@pytest.mark.parametrize(
    ("version", "headers", "partly_read", "closes", "reads"),
    [
        ("1.1", {}, False, False, False),
        ("1.1", {}, True, True, True),
        ("2", {}, True, False, False),
        ("1.0", {"transfer-encoding": "chunked"}, False, True, True),
        ("1.1", {"content-length": "16384"}, False, False, False),
        ("1.1", {"content-length": "16385"}, False, True, True),
        ("1.1", {"content-length": "016384"}, False, True, True),
        ("1.1", {"content-length": "many"}, False, True, True),
        ("1.1", {"content-length": "16385", "expect": "100-continue"}, False, True, False),
        ("1.1", {"content-length": "16385", "expect": "100-continue"}, True, True, True),
    ],
)
async def test_the_rest_of_a_refused_body_is_read_where_that_helps(
    version: str, headers: dict[str, str], partly_read: bool, closes: bool, reads: bool
) -> None:
    sent, received = list[MutableMapping[str, Any]](), list[int]()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        received.append(len(sent))
        return part(more=len(received) < 3)

    request = request_with(*headers.items(), http_version=version)
    refused = refusal(403, "no", headers={"retry-after": "1"})
    bodies = RequestBodies(LIMITS)
    reason = Refused(refused, "partly read" if partly_read else "unread")
    await bodies.respond(reason, request, receive, send)
    fields = dict(sent[0]["headers"])
    assert (sent[0]["status"], fields[b"retry-after"]) == (403, b"1")
    assert (fields.get(b"connection") == b"close") is closes
    assert sent[1]["body"] == refused.body
    assert received == ([2, 2, 2] if reads else [])  # after the whole refusal was sent
    assert [each.get("more_body", False) for each in sent[1:]] == (
        [True, False] if reads else [False]
    )
