"""Responses that are streams, written to an ASGI server in memory: bytes, order and moments.

Time passes as soon as nothing else happens, so moments are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import anyio
import pytest

from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import ConnectionClosedError
from mcpgen_runtime.facts import Lifecycle
from mcpgen_runtime.protocol.lifecycle import Session
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.task_scope import TaskScope
from mcpgen_runtime.server.asgi.batches import BatchResponse
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpSettings
from mcpgen_runtime.server.asgi.event_store import EventStore, MemoryEventStore
from mcpgen_runtime.server.asgi.exchange import PostResponse
from mcpgen_runtime.server.asgi.http_response import HttpResponse, SseResponse, until_disconnect
from mcpgen_runtime.server.asgi.http_session import HttpSession, SessionResponse
from mcpgen_runtime.server.asgi.quotas import Quotas
from mcpgen_runtime.server.asgi.request import HttpRequest, response_forms
from mcpgen_runtime.server.asgi.resumable_stream import ResumableStream
from mcpgen_runtime.server.asgi.session_endpoint import SessionEndpoint
from mcpgen_runtime.server.asgi.settings import Limits
from mcpgen_runtime.server.chosen import Server, new_connection
from mcpgen_runtime.server.serving import Service
from package.asgi_wire import LAST, START, Wire, part
from package.client.simulation import ASYNCIO
from package.wire import SESSIONS

pytestmark = pytest.mark.processes

COMMENT = b":\n\n"
KIB_64 = 2**16
SEND_SECONDS = 8.0
"""Seconds that a client may leave events unread."""


@pytest.fixture
def anyio_backend() -> Any:
    return ASYNCIO


class Aborts:
    """Counts how often a client was found to be gone."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


async def opened(wire: Wire, seconds: float = SEND_SECONDS) -> tuple[SseResponse, Aborts]:
    """A response that was started."""
    response, aborts = SseResponse(wire.send, seconds), Aborts()
    response.on_abort = aborts
    await response.open()
    return response, aborts


async def test_a_stream_is_sent_byte_for_byte() -> None:
    wire = Wire()
    response = SseResponse(wire.send, SEND_SECONDS)
    assert (response.started, response.is_open, response.last_write) == (False, False, 0.0)
    await response.open({"Mcp-Session-Id": "one"})
    assert (response.started, response.is_open) == (True, True)
    await response.write_event(b"{}")
    await response.write_event(b"", type="endpoint", id="a-1", retry=500)
    await response.write_comment()
    await response.close()
    assert (response.started, response.is_open) == (True, False)
    await response.close()
    fields = [*START["headers"], (b"mcp-session-id", b"one")]
    assert wire.sent == [
        {**START, "headers": fields},
        part(b""),
        part(b"data: {}\n\n"),
        part(b"event: endpoint\nid: a-1\nretry: 500\ndata: \n\n"),
        part(COMMENT),
        LAST,
    ]


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_stream_that_is_not_open_takes_no_events(is_started: bool) -> None:
    wire, aborts = Wire(), Aborts()
    response = SseResponse(wire.send, SEND_SECONDS)
    response.on_abort = aborts
    if is_started:
        await response.open()
        await response.close()
    before = len(wire.sent)
    await response.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.watch)
        for turn in (1, 2):  # a loop that goes on regardless can be cancelled
            with pytest.raises(ConnectionClosedError, match=r"^the stream of events is closed$"):
                await response.write_event(b"{}")
            assert wire.turns == [before] * turn
        tasks.cancel_scope.cancel()
    assert aborts.count == 0


@pytest.mark.parametrize(
    ("read", "unread", "seconds"),
    [
        ((), 0, 8.0),
        ((), KIB_64, 9.0),
        ((), 3 * KIB_64, 11.0),
        ((2 * KIB_64,), KIB_64, 11.0),  # the last event that was taken may be in a buffer
        ((KIB_64, KIB_64), 2 * KIB_64, 11.0),
        ((5 * KIB_64, KIB_64 // 2), KIB_64, 9.5),
        ((5 * KIB_64, 0), KIB_64, 9.0),
    ],
)
async def test_a_client_has_a_second_more_for_each_64_kib_unread(
    read: Sequence[int], unread: int, seconds: float
) -> None:
    wire = Wire()
    response, aborts = await opened(wire)

    async def write(size: int) -> None:
        if size:
            await response.write_event(b"x" * (size - len(b"data: \n\n")))
        else:
            await response.write_comment()

    for size in read:
        await write(size)
    wire.stop_reading()
    sent = len(wire.sent)
    with pytest.raises(ConnectionClosedError) as caught:
        await write(unread)
    assert str(caught.value) == "the client read nothing for 8 s (Limits.send_seconds)"
    assert (anyio.current_time(), len(wire.sent)) == (seconds, sent)
    assert (response.is_open, aborts.count, response.on_abort) == (False, 1, None)
    with pytest.raises(ConnectionClosedError, match=r"is closed$"):
        await write(unread)
    response.abort()
    assert aborts.count == 1


async def test_a_client_that_reads_in_time_keeps_its_stream() -> None:
    wire = Wire()
    wire.stop_reading()
    response, aborts = SseResponse(wire.send, SEND_SECONDS), Aborts()
    response.on_abort = aborts
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read_at, 7.5)
        await response.open()
    assert (wire.moments, response.is_open, aborts.count) == ([7.5, 7.5], True, 0)
    assert response.last_write == 7.5


async def test_events_of_other_tasks_come_after_the_whole_head() -> None:
    wire = Wire()
    wire.stop_reading()
    response = SseResponse(wire.send, SEND_SECONDS)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(response.open)
        tasks.start_soon(response.write_event, b"1")
        tasks.start_soon(response.write_event, b"2")
        tasks.start_soon(wire.read_at, 1.0)
    assert wire.sent == [START, part(b""), part(b"data: 1\n\n"), part(b"data: 2\n\n")]


async def test_a_task_that_only_writes_lets_others_run_meanwhile() -> None:
    wire = Wire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.watch)
        response, _ = await opened(wire)
        for _ in range(40):
            await response.write_comment()
        tasks.cancel_scope.cancel()
    assert wire.turns == [15, 31]


async def test_a_stream_closed_while_others_run_takes_no_event() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    for _ in range(13):
        await response.write_comment()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(response.close)
        with pytest.raises(ConnectionClosedError, match=r"is closed$"):
            await response.write_comment()
    assert (wire.sent[-1], aborts.count) == (LAST, 0)


async def test_a_client_that_is_gone_is_told_to_the_writer_once() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    wire.is_gone = True
    with pytest.raises(ConnectionClosedError, match=r"^the client is gone: broken pipe$"):
        await response.write_comment()
    assert (response.is_open, aborts.count) == (False, 1)
    with pytest.raises(ConnectionClosedError, match=r"is closed$"):
        await response.write_comment()
    await response.close()
    assert aborts.count == 1


async def test_the_end_for_a_client_that_is_gone_is_no_error() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    wire.is_gone = True
    await response.close()
    assert (response.is_open, aborts.count) == (False, 1)


@pytest.mark.parametrize(
    ("read_at", "ended_at", "aborts"), [(7.0, 7.0, 0), (8.5, 8.0, 1)], ids=["in time", "too late"]
)
async def test_the_end_of_a_cancelled_stream_waits_for_the_reader(
    read_at: float, ended_at: float, aborts: int
) -> None:
    wire = Wire()
    response, counted = await opened(wire)
    wire.stop_reading()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read_at, read_at)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await response.close()
            ended = anyio.current_time()
    assert (ended, response.is_open, counted.count) == (ended_at, False, aborts)
    assert (wire.sent[-1] == LAST) == (not aborts)


DISCONNECT, MORE = "http.disconnect", "http.request"


@pytest.mark.parametrize(
    ("keep_alive", "events", "commented"),
    [
        (10.0, [(35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(4.0, MORE), (35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(9.0, DISCONNECT)], []),
        (10.0, [(12.0, "")], [10.0]),
        (None, [(99.0, DISCONNECT)], []),
    ],
)
async def test_a_silent_stream_gets_comments_until_the_client_leaves(
    keep_alive: float | None, events: Sequence[tuple[float, str]], commented: Sequence[float]
) -> None:
    wire = Wire(*events)
    response, aborts = await opened(wire)
    await until_disconnect(wire.receive, response, keep_alive)
    assert wire.bodies() == [(moment, COMMENT) for moment in commented]
    assert anyio.current_time() == events[-1][0]
    assert (response.is_open, aborts.count) == (False, 1)


async def test_an_event_puts_the_next_comment_off() -> None:
    wire = Wire((45.0, DISCONNECT))
    response, _ = await opened(wire)

    async def write_at(moment: float) -> None:
        await anyio.sleep_until(moment)
        await response.write_event(b"{}")

    async with anyio.create_task_group() as tasks:
        for moment in (3.0, 7.0, 30.0):
            tasks.start_soon(write_at, moment)
        await until_disconnect(wire.receive, response, 10.0)
    assert [moment for moment, body in wire.bodies() if body == COMMENT] == [17.0, 27.0, 40.0]


async def test_a_comment_that_cannot_be_written_ends_the_watch() -> None:
    wire = Wire((99.0, DISCONNECT))
    response, aborts = await opened(wire)
    wire.is_gone = True
    await until_disconnect(wire.receive, response, 10.0)
    assert (anyio.current_time(), aborts.count) == (10.0, 1)


async def tell(moments: list[float]) -> None:
    """Record the moment of a call."""
    moments.append(anyio.current_time())


@pytest.mark.parametrize(
    ("is_started", "since", "called"),
    [(False, None, [10.0, 20.0]), (False, -4.0, [6.0, 16.0]), (True, None, [])],
)
async def test_silence_before_a_stream_is_told_after_each_period(
    is_started: bool, since: float | None, called: Sequence[float]
) -> None:
    wire, moments = Wire((25.0, DISCONNECT)), list[float]()
    response = SseResponse(wire.send, SEND_SECONDS)
    response.last_write = since or 0.0
    if is_started:
        await response.open()
        await response.close()
    await until_disconnect(wire.receive, response, 10.0, lambda: tell(moments))
    assert moments == called
    assert wire.bodies() == []


async def test_silence_that_nobody_is_told_of_is_waited_for() -> None:
    wire = Wire((25.0, DISCONNECT))
    response = SseResponse(wire.send, SEND_SECONDS)
    await until_disconnect(wire.receive, response, 10.0)
    assert (anyio.current_time(), wire.sent) == (25.0, [])


BOTH, JSON, SSE = b"application/json, text/event-stream", b"application/json", b"text/event-stream"
JSON_TYPE = (b"content-type", JSON)
PROGRESS = OutgoingMessage(b'{"progress":1}')
RESULT = OutgoingMessage(b'{"result":1}', "response")
OTHER_RESULT = OutgoingMessage(b'{"result":2}', "response")
REFUSED = HttpResponse(400, b"{}")


def whole(status: int, body: bytes, *more: tuple[bytes, bytes]) -> list[dict[str, Any]]:
    """A whole response."""
    fields = [(b"content-length", b"%d" % len(body)), *([JSON_TYPE] if body else ()), *more]
    return [
        {"type": "http.response.start", "status": status, "headers": fields},
        {"type": "http.response.body", "body": body, "more_body": False},
    ]


def error(code: int) -> OutgoingMessage:
    """An error response."""
    return OutgoingMessage(b'{"error":{}}', "error", error_code=code)


def head(accept: bytes = BOTH) -> HttpRequest:
    """The head of a POST."""
    request = HttpRequest({"method": "POST", "path": "/mcp", "headers": [(b"accept", accept)]})
    request.forms = response_forms(request, "auto")
    return request


def settings(**options: Any) -> ServerHttpSettings:
    """Settings without ids of events."""
    return ServerHttpSettings(**{"events": None, "keep_alive": 10.0, **options})


def respond(
    wire: Wire, accept: bytes = BOTH, headers: Mapping[str, str] | None = None, **options: Any
) -> PostResponse:
    """The response to a POST without session."""
    response = PostResponse(head(accept), wire.receive, wire.send, settings(), **options)
    response.headers = headers or {}
    return response


def open_session(revision: str, events: EventStore | None = None) -> HttpSession:
    """A session that has been initialized."""
    server = Server("tester")
    service = Service(server, REVISIONS, server.describe, new_connection)
    endpoint = SessionEndpoint(
        service,
        settings(events=events),
        REVISIONS.of(Lifecycle.HANDSHAKE),
        TaskScope(nullcontext, lambda: None),
        Quotas(Limits()),
    )
    return endpoint.single_session(head(), Session(REVISIONS[revision], {}, {}), "")


def respond_in(
    session: HttpSession, wire: Wire, accept: bytes = BOTH, count: int | None = None
) -> SessionResponse:
    """The response to a POST in a session: to a batch of some requests, or to one request."""
    parts = (head(accept), wire.receive, wire.send, session)
    response = SessionResponse(*parts) if count is None else BatchResponse(*parts, count)
    response.headers = {"X-More": "1"}
    return response


async def finish(post: SessionResponse, instead: HttpResponse | None) -> None:
    """End a response, that of a batch too."""
    await (post.finish_all if isinstance(post, BatchResponse) else post.finish)(instead)


MORE_FIELD = (b"x-more", b"1")
EVENTS_HEAD = {**START, "headers": [*START["headers"], MORE_FIELD]}


@pytest.mark.parametrize(
    ("accept", "message", "status"),
    [
        (BOTH, RESULT, 200),
        (JSON, RESULT, 200),
        (BOTH, error(-32601), 404),
        (BOTH, error(-32000), 418),
        (SSE, error(-32601), 404),
    ],
)
async def test_a_response_that_nothing_precedes_has_its_status(
    accept: bytes, message: OutgoingMessage, status: int
) -> None:
    wire = Wire()
    post = respond(wire, accept, headers={"X-More": "1"}, statuses={-32601: 404}, other_status=418)
    before = post.done
    await post.send(message)
    assert wire.sent == whole(status, message.data, MORE_FIELD)
    assert (before, post.done) == (False, True)
    await post.send(PROGRESS)
    await post.send(RESULT)
    await post.respond(REFUSED)
    await post.close()
    assert len(wire.sent) == 2


async def test_an_error_has_status_200_without_a_table() -> None:
    wire = Wire()
    await respond(wire).send(error(-32601))
    assert wire.sent == whole(200, error(-32601).data)


@pytest.mark.parametrize("accept", [BOTH, SSE])
async def test_a_message_before_the_response_begins_a_stream(accept: bytes) -> None:
    wire = Wire()
    post = respond(wire, accept, headers={"X-More": "1"}, other_status=418)
    done: list[bool] = []
    for message in (PROGRESS, PROGRESS, error(-32601)):
        await post.send(message)
        done.append(post.done)
    assert done == [False, False, True]
    await post.send(PROGRESS)
    events = [part(b"data: %b\n\n" % each.data) for each in (PROGRESS, PROGRESS, error(-1))]
    assert wire.sent == [EVENTS_HEAD, *events[:-1], {**events[-1], "more_body": False}]


async def test_a_result_alone_is_an_event_where_json_is_refused() -> None:
    wire = Wire()
    post = respond(wire, SSE)
    await post.start()
    await post.start()
    assert wire.sent == [START, part(b"")]
    await post.send(RESULT)
    assert wire.sent[2:] == [{**part(b'data: {"result":1}\n\n'), "more_body": False}]


async def test_where_the_response_is_json_nothing_precedes_it() -> None:
    wire = Wire()
    post = respond(wire, JSON)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.watch)
        for turn in (1, 2):
            await post.send(PROGRESS)
            assert wire.turns == [0] * turn
        tasks.cancel_scope.cancel()
    await post.start()
    await post.start_early()
    await post.send(RESULT)
    assert wire.sent == whole(200, RESULT.data)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_function_is_called_when_the_client_of_a_post_is_gone(is_late: bool) -> None:
    wire, aborts = Wire(), Aborts()
    post = respond(wire)
    if not is_late:
        post.call_on_abort(aborts)
    await post.open_stream()
    if is_late:
        post.call_on_abort(aborts)
    wire.is_gone = True
    with pytest.raises(ConnectionClosedError):
        await post.send(PROGRESS)
    assert aborts.count == 1


async def test_a_closed_response_tells_nobody_that_its_client_left() -> None:
    wire, aborts = Wire(), Aborts()
    post = respond(wire)
    post.call_on_abort(aborts)
    await post.open_stream()
    await post.close()
    await post.close()
    post.sse.abort()
    assert (post.done, wire.sent[2:], aborts.count) == (True, [LAST], 0)


@pytest.mark.parametrize(
    ("accept", "silent", "bodies"),
    [
        (BOTH, 0.0, [(20.0, COMMENT), (30.0, COMMENT)]),
        (BOTH, 4.0, [(16.0, COMMENT), (26.0, COMMENT)]),
        (JSON, 0.0, []),
        (SSE, 0.0, [(10.0, COMMENT), (20.0, COMMENT), (30.0, COMMENT)]),
    ],
)
async def test_silence_before_a_response_begins_a_stream_if_it_may(
    accept: bytes, silent: float, bodies: Sequence[tuple[float, bytes]]
) -> None:
    wire, aborts = Wire((35.0, DISCONNECT)), Aborts()
    post = respond(wire, accept)
    post.call_on_abort(aborts)
    post.created -= silent
    await post.watch()
    assert [(round(moment, 1), body) for moment, body in wire.bodies()] == bodies
    assert aborts.count == 1
    if accept == BOTH:
        assert round(wire.moments[0], 1) == 10.0 - silent


@pytest.mark.parametrize("in_session", [False, True])
async def test_an_ended_response_is_not_watched(in_session: bool) -> None:
    wire = Wire()
    post = respond_in(open_session(SESSIONS[-1]), wire) if in_session else respond(wire)
    await post.send(RESULT)
    await post.watch()
    assert (len(wire.sent), anyio.current_time()) == (2, 0)


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_session_counts_a_response_until_its_client_left(revision: str) -> None:
    wire, session = Wire(), open_session(revision)
    post = respond_in(session, wire)
    assert (session.users, post.attended, post.unfinished) == (1, True, True)
    await post.send(RESULT)
    assert wire.sent == whole(200, RESULT.data, MORE_FIELD)
    assert (post.done, post.unfinished, session.users) == (True, False, 1)
    await post.send(PROGRESS)
    await post.respond(REFUSED)
    for _ in range(2):
        await post.finish(REFUSED)
        assert (session.users, post.attended, len(wire.sent)) == (0, False, 2)


@pytest.mark.parametrize(
    ("is_left", "messages", "left_before"),
    [
        (False, [], True),
        (False, [PROGRESS], True),
        (False, [PROGRESS, RESULT], False),
        (True, [PROGRESS], False),
    ],
)
async def test_a_watch_tells_whether_the_client_left_before_the_end(
    is_left: bool, messages: Sequence[OutgoingMessage], left_before: bool
) -> None:
    wire, session = Wire((5.0, DISCONNECT)), open_session(SESSIONS[-1])
    post = respond_in(session, wire)

    async def send() -> None:
        for message in messages:
            await post.send(message)
        if is_left:
            post.leave()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await post.watch()
    assert post.disconnected is left_before
    assert (anyio.current_time(), session.users, post.connected) == (5.0, 0, False)


async def test_a_stopped_watch_tells_nothing() -> None:
    wire, session = Wire((5.0, DISCONNECT)), open_session(SESSIONS[-1])
    in_session, alone = respond_in(session, wire), respond(wire)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_session.watch)
        tasks.start_soon(alone.watch)
        await anyio.wait_all_tasks_blocked()
        in_session.stop()
        await alone.close()
    assert (in_session.disconnected, session.users) == (False, 0)
    assert anyio.current_time() < 5.0


async def test_a_write_ends_once_the_client_is_seen_to_leave() -> None:
    wire, session = Wire((5.0, DISCONNECT)), open_session(SESSIONS[-1])
    post = respond_in(session, wire)
    await post.open_stream()
    wire.stop_reading()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post.send, PROGRESS)
        await post.watch()
    assert (anyio.current_time(), post.connected) == (5.0, False)


@pytest.mark.parametrize("count", [1, 2])
async def test_the_results_of_a_batch_are_one_array(count: int) -> None:
    wire, session = Wire(), open_session(SESSIONS[0])
    post = respond_in(session, wire, count=count)
    for message in (RESULT, OTHER_RESULT)[:count]:
        assert (wire.sent, post.done) == ([], False)
        await post.send(message)
    body = [b'[{"result":1}]', b'[{"result":1},{"result":2}]'][count - 1]
    assert wire.sent == whole(200, body, MORE_FIELD)
    assert (post.done, post.unfinished) == (True, False)
    await post.finish(REFUSED)
    assert len(wire.sent) == 2


async def test_ready_results_of_a_batch_come_first_on_its_stream() -> None:
    wire, session = Wire(), open_session(SESSIONS[0])
    post = respond_in(session, wire, count=2)
    await post.send(RESULT)
    await post.send(PROGRESS)
    assert (post.connected, len(session.streams)) == (True, 1)
    await post.send(OTHER_RESULT)
    assert (post.connected, post.unfinished, len(session.streams)) == (False, False, 0)
    events = [part(b"data: %b\n\n" % each.data) for each in (RESULT, PROGRESS, OTHER_RESULT)]
    assert wire.sent == [EVENTS_HEAD, *events[:-1], {**events[-1], "more_body": False}]


@pytest.mark.parametrize(
    ("accept", "sent", "instead", "expected"),
    [
        (BOTH, [], REFUSED, whole(400, b"{}")),
        (BOTH, [], None, [EVENTS_HEAD, part(b""), LAST]),
        (JSON, [], None, whole(202, b"", MORE_FIELD)),
        (BOTH, [RESULT], REFUSED, whole(200, b'[{"result":1}]', MORE_FIELD)),
        (BOTH, [RESULT], None, whole(200, b'[{"result":1}]', MORE_FIELD)),
        (
            BOTH,
            [PROGRESS],
            REFUSED,
            [EVENTS_HEAD, part(b'data: {"progress":1}\n\n'), LAST],
        ),
    ],
)
async def test_a_post_whose_requests_were_cancelled_ends(
    accept: bytes,
    sent: Sequence[OutgoingMessage],
    instead: HttpResponse | None,
    expected: Sequence[Mapping[str, Any]],
) -> None:
    wire, session = Wire(), open_session(SESSIONS[0])
    post = respond_in(session, wire, accept, count=2)
    for message in sent:
        await post.send(message)
    await finish(post, instead)
    assert wire.sent == expected
    assert (session.users, len(session.streams)) == (0, 0)
    await finish(post, instead)
    await post.send(PROGRESS)
    assert len(wire.sent) == len(expected)


@pytest.mark.parametrize("kind", ["request", "notification"])
async def test_of_messages_before_json_only_requests_take_another_way(kind: Any) -> None:
    wire, session = Wire(), open_session(SESSIONS[-1])
    post = respond_in(session, wire, JSON)
    await post.send(OutgoingMessage(b'{"said":1}', kind))
    elsewhere = Wire()
    stream = session.new_stream()
    await stream.open(SseResponse(elsewhere.send, SEND_SECONDS))
    session.listening.append(stream)
    await session.send_pending(stream)
    events = [(0.0, b'data: {"said":1}\n\n')] if kind == "request" else []
    assert (wire.sent, elsewhere.bodies()) == ([], events)


async def test_a_closed_connection_leaves_the_result_to_be_resumed() -> None:
    store, wire = MemoryEventStore(), Wire()
    session = open_session(SESSIONS[-1], store)
    post = respond_in(session, wire)
    await post.start_early()
    [stream] = session.streams
    assert isinstance(stream, ResumableStream)
    await stream.close_connection()
    name = stream.name
    without_data = part(f"id: {name}-1\nretry: 1000\ndata: \n\n".encode())
    assert wire.sent == [EVENTS_HEAD, without_data, without_data, LAST]
    assert (post.connected, post.unfinished) == (False, True)
    for message in (PROGRESS, RESULT):
        await post.send(message)
    assert (post.unfinished, len(wire.sent)) == (False, 4)
    stored = await store.after(session.id, f"{name}-1")
    assert stored is not None
    assert [each.message for each in stored.events] == [PROGRESS.data, RESULT.data]
    assert stored.over


async def test_a_head_that_waits_to_be_read_is_not_cut_by_the_end() -> None:
    wire, session = Wire((99.0, DISCONNECT)), open_session(SESSIONS[-1])
    post = respond_in(session, wire)
    wire.stop_reading()

    async def finish_at(moment: float) -> None:
        await anyio.sleep_until(moment)
        await post.finish()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post.watch)
        tasks.start_soon(finish_at, 11.0)
        tasks.start_soon(wire.read_at, 12.0)
    assert wire.sent == [EVENTS_HEAD, part(b""), LAST]
    assert wire.moments == [12.0] * 3
