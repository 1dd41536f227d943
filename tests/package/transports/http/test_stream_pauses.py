"""When the client connects to a stream of events again, how long it waits, and when it gives up."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import anyio
import pytest

from mcpgen_runtime.errors import (
    ConnectFailedError,
    FrameError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
)
from mcpgen_runtime.runtime.time_limits import HTTP_TIMEOUTS, HttpTimeouts
from mcpgen_runtime.transports.http.http_client import HttpRequests
from mcpgen_runtime.transports.http.http_library import TakePart
from mcpgen_runtime.transports.http.streamable_http import EventStream
from package.client.simulation import SimulatedResponse, simulate

pytestmark = pytest.mark.processes

URL = "https://mcp.example/a"
STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
BROKEN = ResponseLostError("the line broke")


class StreamResponse(SimulatedResponse):
    """A response with a stream of events, which may break at its end.

    Args:
        body: The events.
        failure: The error at the end.
        silent: Whether nothing more comes, not even the end.
        fields: Header fields.
    """

    def __init__(
        self,
        body: bytes = b"",
        failure: Exception | None = None,
        *,
        silent: bool = False,
        fields: Mapping[str, str] = STREAM,
    ) -> None:
        super().__init__(URL, 200, fields, body)
        self._failure = failure
        self._silent = silent

    async def each_part(self, take: TakePart) -> None:
        """See `Response.each_part`."""
        await super().each_part(take)
        if self._silent:
            await anyio.sleep_forever()
        if self._failure is not None:
            raise self._failure


class Server:
    """Answers the requests for a stream in turn: by a response, or by an error.

    Attributes:
        ids: The last event ids of the requests.
        times: When they came.
        heard: The messages that the client received.
        states: Reports about the standalone stream: whether it is open.
    """

    def __init__(self, *answers: StreamResponse | McpError) -> None:
        self._answers = list(answers)
        self.ids: list[str | None] = []
        self.times: list[float] = []
        self.heard: list[bytes] = []
        self.states: list[bool] = []

    async def resume(self, last_id: str | None) -> Any:
        """Answer a GET; the last answer is repeated."""
        self.ids.append(last_id)
        self.times.append(anyio.current_time())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, McpError):
            raise answer
        return answer

    async def hear(self, message: bytes) -> None:
        """Keep a message."""
        self.heard.append(message)

    def report(self, failure: McpError | None) -> None:
        """Keep whether the stream is open."""
        self.states.append(failure is None)

    def stream(self, id: int | None = 1, timeouts: HttpTimeouts = HTTP_TIMEOUTS) -> EventStream:
        """A stream of a client to this server."""
        return EventStream(HttpRequests(), self.resume, self.hear, id, timeouts)

    def pauses(self, first: float = 0.0) -> list[float]:
        """The seconds between requests, from a time on."""
        return [round(b - a, 6) for a, b in pairwise([first, *self.times])]


def refused(status: int) -> HttpStatusError:
    return HttpStatusError("GET", status, "", b"")


def follow(server: Server, first: StreamResponse, **how: Any) -> EventStream:
    """Follow the stream of a request to its end."""
    streams: list[EventStream] = []

    async def main() -> None:
        streams.append(server.stream(**how))
        await streams[0].follow(first)

    simulate("asyncio", 0, main)
    return streams[0]


def listen(server: Server, **how: Any) -> EventStream:
    """Listen to the standalone stream until the server refuses it."""
    streams: list[EventStream] = []

    async def main() -> None:
        streams.append(server.stream(None, **how))
        await streams[0].listen(server.report)

    with pytest.raises((HttpStatusError, RemoteProtocolError)):
        simulate("asyncio", 0, main)
    return streams[0]


@pytest.mark.parametrize(
    ("answer", "pauses"),
    [
        (refused(503), [0.5, 0.5, 1, 2, 4]),
        (ConnectFailedError(URL, "no"), [0.5, 0.5, 1, 2, 4]),
        (BROKEN, [0.5, 0.5, 1, 2, 4]),
        (StreamResponse(b"data: x\n\n", BROKEN), []),
    ],
    ids=["refused", "unreachable", "broken", "none"],
)
def test_a_response_is_lost_after_five_attempts(
    answer: StreamResponse | McpError, pauses: list[float]
) -> None:
    server = Server(answer)
    if pauses:
        with pytest.raises(ResponseLostError) as caught:
            follow(server, StreamResponse(b"id: 7\ndata\n\n"))
        assert str(caught.value) == (
            f"{URL}: the stream ended before the answer came, "
            f"and 5 attempts to take it up again brought nothing; the last one: {answer}"
        )
        assert server.ids == ["7"] * 5
        assert server.pauses() == pauses
    else:
        with pytest.raises(ResponseLostError) as caught:
            follow(server, StreamResponse(b"data: x\n\n", BROKEN))
        assert str(caught.value) == (
            f"{URL}: the stream ended before the answer came: the line broke"
        )
        assert (server.ids, server.heard) == ([], [b"x"])


@pytest.mark.parametrize("status", [404, 409, 410])
def test_a_lasting_refusal_ends_the_waiting_at_once(status: int) -> None:
    server = Server(refused(status))
    with pytest.raises(ResponseLostError) as caught:
        follow(server, StreamResponse(b"id: 7\n\n"))
    assert str(caught.value) == (
        f"{URL}: the stream ended before the answer came, and can't be taken up again: "
        f"{refused(status)}"
    )
    assert server.pauses() == [0.5]


@pytest.mark.parametrize("event", [b"", b"data\n", b"event: other\ndata: x\n"])
def test_empty_connections_are_polled_less_and_less_often(event: bytes) -> None:
    empty = [StreamResponse(b"id: %d\n%b\n" % (number, event)) for number in range(2, 9)]
    server = Server(*empty, refused(404))
    with pytest.raises(ResponseLostError):
        follow(server, StreamResponse(b"id: 1\nretry: 0\n\n"))
    assert server.pauses() == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]
    assert server.ids == [str(number) for number in range(1, 9)]


def test_a_message_ends_the_growth_of_pauses() -> None:
    empty, message = StreamResponse(), StreamResponse(b"data: x\n\n")
    server = Server(empty, message, empty, empty, refused(404))
    with pytest.raises(ResponseLostError):
        follow(server, StreamResponse(b"id: 1\nretry: 0\n\n"))
    assert server.pauses() == [0.1, 0.2, 0.1, 0.1, 1]


def test_the_pause_of_the_server_holds_until_a_second_failure() -> None:
    server = Server(refused(503), refused(503), refused(404))
    with pytest.raises(ResponseLostError):
        follow(server, StreamResponse(b"retry: 200\nid: 1\n\n"))
    assert server.pauses() == [0.2, 0.2, 1]


def test_the_reason_of_an_end_is_that_of_the_last_connection() -> None:
    server = Server(StreamResponse(b"id\n\n"))
    with pytest.raises(ResponseLostError, match=r"before the answer came$"):
        follow(server, StreamResponse(b"id: 7\n\n", BROKEN))


@pytest.mark.parametrize(
    ("fields", "came"),
    [({}, "no content type"), ({"Content-Type": "application/json"}, "application/json")],
)
def test_a_stream_goes_on_with_events_only(fields: Mapping[str, str], came: str) -> None:
    text = f"{URL}: expected text/event-stream, came HTTP 200, {came}"
    with pytest.raises(ResponseLostError) as caught:
        follow(Server(StreamResponse(fields=fields)), StreamResponse(b"id: 7\n\n"))
    assert str(caught.value).endswith(f", and can't be taken up again: {text}")
    server = Server(StreamResponse(fields=fields))
    assert not listen(server).connected
    assert server.states == []


@pytest.mark.parametrize(
    ("retry", "pause"),
    [(b"0", 0.1), (b"99", 0.1), (b"101", 0.101), (b"3600000", 3600), (b"3600001", 3600)],
)
def test_a_server_sets_the_pause_within_bounds(retry: bytes, pause: float) -> None:
    server = Server(refused(404))
    with pytest.raises(ResponseLostError):
        follow(server, StreamResponse(b"retry: %b\nid: 1\n\n" % retry))
    assert server.pauses() == [pause]


def test_a_message_resets_the_attempts() -> None:
    message = StreamResponse(b"data: x\n\n")
    server = Server(refused(503), refused(503), refused(503), message, refused(503), refused(404))
    with pytest.raises(ResponseLostError):
        follow(server, StreamResponse(b"id: 7\n\n"))
    assert server.pauses() == [0.5, 0.5, 1, 2, 0.5, 0.5]
    assert server.ids == ["7"] * 6


def test_a_stream_is_read_for_a_second_after_its_answer() -> None:
    answered: list[bool] = []

    async def main() -> float:
        async def hear(message: bytes) -> None:
            answered.append(stream.answered)
            stream.mark_answered()
            answered.append(stream.answered)

        stream = EventStream(HttpRequests(), None, hear, 1, HTTP_TIMEOUTS)
        await stream.follow(StreamResponse(b"data: x\n\n", silent=True))
        return anyio.current_time()

    assert simulate("asyncio", 0, main) == pytest.approx(1)
    assert answered == [False, True]


def test_an_answer_elsewhere_ends_a_stream_between_connections() -> None:
    async def main() -> bool:
        async def resume(last_id: str | None) -> Any:
            stream.mark_answered()
            raise refused(404)

        stream = EventStream(HttpRequests(), resume, Server().hear, 1, HTTP_TIMEOUTS)
        with pytest.raises(ResponseLostError):
            await stream.follow(StreamResponse(b"id: 7\n\n"))
        return stream.scope.cancel_called

    assert simulate("asyncio", 0, main)


def test_an_answer_elsewhere_ends_a_stream_at_once() -> None:
    async def main() -> float:
        stream = Server(refused(404)).stream()
        stream.mark_answered()
        assert stream.answered
        assert stream.scope.cancel_called
        return anyio.current_time()

    assert simulate("asyncio", 0, main) == 0


@pytest.mark.parametrize("id", [1, None])
def test_only_an_event_of_a_request_may_be_too_long(
    id: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[bytes] = []

    async def hear(message: bytes) -> None:
        heard.append(message)

    async def main() -> None:
        stream = EventStream(HttpRequests(limit=10), None, hear, id, HTTP_TIMEOUTS)
        body = b"data: 0123456789a\n\nevent: other\ndata: b\n\ndata: c\n\ndata\n\n"
        await stream.follow(StreamResponse(body))

    with pytest.raises(FrameError if id else ResponseLostError):
        simulate("asyncio", 0, main)
    assert heard == ([] if id else [b"c"])
    warnings = [(record.name, record.levelname) for record in caplog.records]
    assert warnings == ([] if id else [("mcpgen_runtime", "WARNING")])


def test_a_standalone_stream_is_reopened_until_it_is_refused() -> None:
    server = Server(
        ConnectFailedError(URL, "no"),
        StreamResponse(b"id: 1\ndata: x\n\n"),
        refused(503),
        refused(409),
        StreamResponse(),
        refused(405),
    )
    stream = listen(server)
    assert server.states == [True, False, False, True]
    assert server.ids == [None, None, "1", "1", "1", "1"]
    assert server.pauses() == [0, 0.5, 0.5, 0.5, 1, 2]
    assert (stream.connected, stream.answered, server.heard) == (True, False, [b"x"])


@pytest.mark.parametrize("status", [404, 405, 409])
def test_a_stream_that_is_not_offered_is_not_asked_for_again(status: int) -> None:
    server = Server(refused(status))
    stream = listen(server)
    assert (stream.connected, server.states, server.ids) == (False, [], [None])


def test_pauses_stop_growing() -> None:
    timeouts = HttpTimeouts(first_pause=1e-6, shortest_pause=1e-9, longest_pause=10)
    server = Server(StreamResponse(b"data: x\n\n"), *[refused(503)] * 24, refused(405))
    listen(server, timeouts=timeouts)
    assert server.pauses()[-1] == 2**20 * 1e-6
    assert len(server.times) == 26


def test_a_lost_stream_is_tried_each_half_minute() -> None:
    server = Server(StreamResponse(b"data: x\n\n"), *[refused(503)] * 8, refused(405))
    listen(server)
    assert server.pauses() == [0, 0.5, 0.5, 1, 2, 4, 8, 16, 30, 30]
