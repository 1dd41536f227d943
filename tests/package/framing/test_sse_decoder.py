"""Server-sent events: the encoder that servers use and the decoder that clients use."""

from __future__ import annotations

import re
import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpgen_runtime import LocalProtocolError
from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.framing.sse import encode_comment, encode_event
from mcpgen_runtime.framing.sse_decoder import FIELD_LIMIT, EventDecoder, ServerSentEvent
from requirements import EVERY_REVISION

BOM = b"\xef\xbb\xbf"
WHOLE = 10**6
sizes = pytest.mark.parametrize("size", [WHOLE, 1, 3], ids=["whole", "byte by byte", "in threes"])


def decode(
    data: bytes, size: int = WHOLE, decoder: EventDecoder | None = None
) -> list[ServerSentEvent | TooLong]:
    """The events of a stream that comes in pieces of a size."""
    decoder = decoder or EventDecoder()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [event for piece in pieces for event in decoder.feed(piece)]


class Model:
    """A decoder of a whole stream of whole lines, as simple as the standard has it."""

    def __init__(self, stream: bytes) -> None:
        self.events: list[ServerSentEvent] = []
        self.last_id: str | None = None
        self.retry: int | None = None
        data: list[bytes] = []
        id, type = None, ""
        for line in re.split(rb"\r\n|\n|\r", stream.removeprefix(BOM))[:-1]:
            if not line:
                self.last_id = self.last_id if id is None else id
                if data:
                    joined = b"\n".join(data)
                    event = ServerSentEvent(joined, type or "message", self.last_id or "")
                    self.events.append(event)
                data, id, type = [], None, ""
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            match name:
                case b"data":
                    data.append(value)
                case b"event":
                    type = value.decode()
                case b"id" if b"\0" not in value:
                    id = value.decode()
                case b"retry" if re.fullmatch(rb"[0-9]{1,9}", value):
                    self.retry = int(value)


LINES = [
    *(
        b"",
        b"",
        b"",
        b"data: a",
        b"data:no space",
        b"data:  two spaces",
        b"data",
        b"data: 12345678",
    ),
    *(b"id: 1", b"id", b"id: 2\x003", b"event: endpoint", b"event", b": ping", b":", b":data: no"),
    *(b"retry: 15", b"retry:0", b"retry: -1", b"retry: 1.5", b"retry:", b"retry: 1s"),
    *(b"retry: 999999999", b"retry: 1000000000", "retry: \u0661".encode(), b"retry: " + b"9" * 99),
    *(b"other: field", "data: \u4e16\u754c".encode(), b":\xff\xfe", BOM + b"data: c"),
]
ENDS = [b"\n", b"\r\n", b"\r"]


@pytest.mark.requirement("http.utf8", "http.comments-ignored", revisions=EVERY_REVISION)
@pytest.mark.requirement("http.prime-event-not-a-message", revisions=EVERY_REVISION)
@given(
    lines=st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)).map(b"".join)),
    bom=st.sampled_from([b"", BOM]),
    cuts=st.lists(st.integers(0, 200)),
)
@example(lines=[each + b"\r\n" for each in LINES], bom=BOM, cuts=list(range(400)))
@example(lines=[b"data: a\r\rdata: b\n\rdata: c\r\n\ndata: d\r\n\r"], bom=b"", cuts=list(range(50)))
@example(lines=[b"id: 1\ndata: a\n\nid: 2\ndata: b\n"], bom=b"", cuts=[3])
def test_events_come_out_whole_wherever_the_network_cuts_them(
    lines: list[bytes], bom: bytes, cuts: list[int]
) -> None:
    stream = bom + b"".join(lines)
    decoder, model = EventDecoder(), Model(stream)
    events: list[ServerSentEvent | TooLong] = []
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, stop in pairwise(places):
        events += decoder.feed(stream[start:stop])
    assert events == model.events
    assert (decoder.last_id, decoder.retry) == (model.last_id, model.retry)


def test_an_event_is_there_as_soon_as_its_blank_line_begins() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: a\r\n") == []
    assert decoder.feed(b"\r") == [ServerSentEvent(b"a")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: b\n\n") == [ServerSentEvent(b"b")]


@sizes
def test_an_event_of_just_the_limit_passes(size: int) -> None:
    decoder = EventDecoder(limit=100)
    for lines in ([b"x" * 100], [b"x" * 40, b"x" * 59], [b"x" * 98, b"x"], [b"x"] * 50 + [b""]):
        stream = b"data: " + b"\ndata: ".join(lines)
        assert decode(stream + b"\n\n", size, decoder) == [ServerSentEvent(b"\n".join(lines))]
        assert decode(stream + b"x\n\n", size, decoder) == [TooLong(100)]


@pytest.mark.parametrize("rest", [b"", b"xx", b"xx\n", b"\ndata: more than the rest\n"])
def test_an_event_over_the_limit_is_reported_at_once_and_the_next_is_read(rest: bytes) -> None:
    decoder = EventDecoder(limit=100)
    assert decoder.feed(b"data: x\ndata: " + b"x" * 98) == []
    assert decoder.feed(b"x") == [TooLong(100)]
    assert decoder.feed(rest) == []
    decoder.feed(b"\n")
    decoder.feed(b"\n")
    assert decoder.feed(b"data: b") == []
    assert decoder.feed(b"\n\n") == [ServerSentEvent(b"b")]


@pytest.mark.parametrize("line", [BOM + b"data: " + b"x" * 101, b":" * 117, b"id:" + b"1" * 114])
def test_a_line_over_the_limit_is_reported_before_its_end(line: bytes) -> None:
    decoder = EventDecoder(limit=100)
    assert decoder.feed(line[:-1]) == []
    assert decoder.feed(line[-1:]) == [TooLong(100)]
    assert decoder.feed(b"x" * 200) == []
    assert decoder.feed(b"\n\ndata: a\n\n") == [ServerSentEvent(b"a")]


def test_only_the_first_line_may_have_a_byte_order_mark() -> None:
    decoder = EventDecoder()
    for piece in (b"data: 12345", b"6\n\n", BOM, b"data: 12345", b"\n\n"):
        assert decoder.feed(piece) == ([ServerSentEvent(b"123456")] if piece == b"6\n\n" else [])


@sizes
@pytest.mark.parametrize("limit", [100, FIELD_LIMIT + 2001])
@pytest.mark.parametrize("name", [b"", b"event", b"other"])
def test_another_line_may_have_the_limit_and_a_name_of_16_bytes(
    size: int, name: bytes, limit: int
) -> None:
    line, end = (name + b":").ljust(limit + 16, b"x"), b"\ndata: a\n\n"
    for before in (b"", b"id: 1\n", b"id: 1\n\n"):
        (event,) = decode(before + line + end, size, EventDecoder(limit))
        assert isinstance(event, ServerSentEvent)
        assert event.data == b"a"
    for more in (b"x", b"xx", b"xxx"):
        assert decode(line + more + end, size, EventDecoder(limit)) == [TooLong(limit)]


@sizes
@pytest.mark.parametrize(
    "event",
    [
        b"data: " + b"x" * 5000,
        b"data: " + b"x" * 60 + b"\ndata: " + b"x" * 40,
        b"data: x\n" * 50 + b"data: x",
        b":" + b"x" * 200,
        b"id: " + b"x" * 200,
    ],
    ids=["long", "lines", "many lines", "comment", "id"],
)
def test_an_event_over_the_limit_is_one_error_and_no_end(size: int, event: bytes) -> None:
    decoder = EventDecoder(limit=100)
    stream = b"data: a\n\n" + event + b"\ndata: rest\nid: 1\n\ndata: b\n\n"
    events = [ServerSentEvent(b"a"), TooLong(100), ServerSentEvent(b"b")]
    assert decode(stream, size, decoder) == events
    assert decoder.last_id is None


@sizes
def test_a_long_first_line_may_have_a_byte_order_mark(size: int) -> None:
    long = b"x" * (FIELD_LIMIT + 1000)
    assert decode(BOM + b"data: " + long + b"\n\n", size) == [ServerSentEvent(long)]


LIMIT = 16 * 1024
FLOODS = {
    "short lines of data": b"data: ab\n",
    "empty lines of data": b"data\n",
    "one line of data": b"x",
    "comments": b": ping\n",
    "empty comments": b":\n",
    "ids": b"id: 1\nid: 2\n",
    "types": b"event: a\n",
    "retries": b"retry: 1\n",
    "unknown fields": b"a:b\n",
    "ends of lines": b"\r\n",
    "events without data": b"id: 1\n\n",
}
BEGINNINGS = [b"", b"data: x\ndata: ", b"id: ", b": "]


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_takes_a_small_multiple_of_the_limit_in_memory(
    flood: str, beginning: bytes
) -> None:
    decoder = EventDecoder(LIMIT)
    piece = FLOODS[flood] * (1024 // len(FLOODS[flood]))
    decoder.feed(beginning)
    tracemalloc.start()
    try:
        for _ in range(6 * LIMIT // len(piece)):
            decoder.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A piece of short lines is a list of them for a moment.
    assert peak < 2.5 * LIMIT + 64 * len(piece)


@pytest.mark.parametrize(
    "line", [b"data: " + b"x" * 100_000, b"data: x\n" * 12_000, b":" * 100_000]
)
def test_many_tiny_pieces_take_time_linear_in_their_number(line: bytes) -> None:
    decoder = EventDecoder()
    started = time.process_time()
    events = [event for byte in line + b"\n\n" for event in decoder.feed(bytes([byte]))]
    assert len(events) <= 1
    assert time.process_time() - started < 3


@pytest.mark.parametrize("size", [WHOLE, 3])
@pytest.mark.parametrize("length", [FIELD_LIMIT, FIELD_LIMIT + 1, FIELD_LIMIT + 100, 100_000])
def test_an_id_that_no_header_field_could_carry_counts_as_none(size: int, length: int) -> None:
    decoder = EventDecoder()
    stream = b"id: 1\n\nid: " + b"x" * length + b"\ndata: a\n\n"
    (event,) = decode(stream, size, decoder)
    assert isinstance(event, ServerSentEvent)
    assert event.id == decoder.last_id == ("x" * length if length <= FIELD_LIMIT else "")


@pytest.mark.parametrize("size", [WHOLE, 3])
def test_a_type_of_any_length_takes_little_memory(size: int) -> None:
    (event,) = decode(b"event: " + b"x" * 100_000 + b"\ndata: a\n\n", size)
    assert isinstance(event, ServerSentEvent)
    assert event.type == "x" * FIELD_LIMIT


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (encode_event(b"{}"), b"data: {}\n\n"),
        (encode_event(b""), b"data: \n\n"),
        (encode_event(b"", id="7", retry=500), b"id: 7\nretry: 500\ndata: \n\n"),
        (encode_event(b"/m?s=1", type="endpoint"), b"event: endpoint\ndata: /m?s=1\n\n"),
        (encode_event(b"a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
        (encode_comment(), b":\n\n"),
        (encode_comment("ping"), b": ping\n\n"),
        (encode_comment("a\tb"), b": a\tb\n\n"),
    ],
)
def test_the_encoder_writes_the_expected_fields(encoded: bytes, expected: bytes) -> None:
    assert encoded == expected


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_the_encoder_refuses_what_would_be_decoded_differently(text: str) -> None:
    for build in (
        lambda: encode_event(b"", type=text),
        lambda: encode_event(b"", id=text),
        lambda: encode_comment(text),
    ):
        with pytest.raises(LocalProtocolError, match="one line"):
            build()


@given(st.lists(st.binary(max_size=50)))
def test_any_bytes_decode_the_same_in_any_pieces_without_errors(pieces: list[bytes]) -> None:
    inside = [piece + b"\ndata: x\n\r" for piece in pieces]
    at_once, in_pieces = EventDecoder(limit=40), EventDecoder(limit=40)
    assert at_once.feed(b"".join(inside)) == [
        event for piece in inside for event in in_pieces.feed(piece)
    ]
    assert (at_once.last_id, at_once.retry) == (in_pieces.last_id, in_pieces.retry)
