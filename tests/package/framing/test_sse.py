"""Server-sent events: the encoder that servers use and the decoder that clients use."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.errors import LocalProtocolError
from mcpgen_runtime.framing.sse import encode_comment, encode_event
from mcpgen_runtime.framing.sse_decoder import FIELD_LIMIT, EventDecoder, ServerSentEvent
from requirements import EVERY_REVISION

Cut = Callable[[bytes], Iterator[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    yield data


def byte_by_byte(data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        yield data[at : at + 1]


def in_threes(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), 3):
        yield data[at : at + 3]


CUTS: dict[str, Cut] = {"whole": whole, "byte by byte": byte_by_byte, "in threes": in_threes}


@pytest.fixture(params=CUTS)
def cut(request: pytest.FixtureRequest) -> Cut:
    return CUTS[request.param]


def decode(
    data: bytes, cut: Cut = whole, decoder: EventDecoder | None = None
) -> list[ServerSentEvent | TooLong]:
    decoder = EventDecoder() if decoder is None else decoder
    return [event for chunk in cut(data) for event in decoder.feed(chunk)]


def data_of(data: bytes, cut: Cut = whole, decoder: EventDecoder | None = None) -> list[bytes]:
    events = decode(data, cut, decoder)
    return [event.data for event in events if isinstance(event, ServerSentEvent)]


STREAM = """\
: hello

event: endpoint
data: /messages?s=1

data: {"a":
data: "\u4e16\u754c"}
id: 7

data:no space
data

unknown: field
data:  two spaces

id
data: last

"""
EVENTS = [
    ServerSentEvent(b"/messages?s=1", "endpoint"),
    ServerSentEvent('{"a":\n"\u4e16\u754c"}'.encode(), "message", "7"),
    ServerSentEvent(b"no space\n", "message", "7"),
    ServerSentEvent(b" two spaces", "message", "7"),
    ServerSentEvent(b"last", "message", ""),
]


@pytest.mark.requirement("http.utf8", revisions=EVERY_REVISION)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_events_come_out_whole_wherever_the_network_cuts_them(
    cut: Cut, end: str, bom: bytes
) -> None:
    assert decode(bom + STREAM.replace("\n", end).encode(), cut) == EVENTS


def test_a_byte_order_mark_counts_at_the_beginning_alone(cut: Cut) -> None:
    mark = b"\xef\xbb\xbf"
    long = b"x" * (FIELD_LIMIT + 1000)
    stream = mark + b"data: " + long + b"\n" + mark + b"data: b\n\n" + mark + b"data: c\n\n"
    assert data_of(stream, cut) == [long]
    assert data_of(mark + b"data: a\n\n", cut) == [b"a"]
    assert data_of(mark + b"data: a\n" + mark + b"data: b\n\n", cut) == [b"a"]


def test_ends_of_lines_may_be_mixed(cut: Cut) -> None:
    assert data_of(b"data: a\r\rdata: b\n\r\ndata: c\r\n\ndata: d\r\n\r", cut) == [
        b"a",
        b"b",
        b"c",
        b"d",
    ]


def test_an_event_is_there_as_soon_as_its_blank_line_begins() -> None:
    decoder = EventDecoder()
    assert decode(b"data: a\r\n", decoder=decoder) == []
    assert decode(b"\r", decoder=decoder) == [ServerSentEvent(b"a")]
    assert decode(b"\n", decoder=decoder) == []
    assert decode(b"data: b\n\n", decoder=decoder) == [ServerSentEvent(b"b")]


@pytest.mark.requirement("http.comments-ignored", revisions=EVERY_REVISION)
@pytest.mark.parametrize("comment", [b":", b": ping", b":\xff\xfe", b":data: no"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_comments_mean_nothing_wherever_they_stand(cut: Cut, comment: bytes, end: bytes) -> None:
    stream = end.join(
        [comment, b"data: a", comment, b"data: b", b"", comment, b"", b"data: c", b""]
    )
    assert data_of(stream + end, cut) == [b"a\nb", b"c"]


def test_an_event_that_no_blank_line_closed_is_not_one(cut: Cut) -> None:
    decoder = EventDecoder()
    assert decode(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", cut, decoder) == [
        ServerSentEvent(b"a", "message", "1")
    ]
    assert decoder.last_id == "1"


@pytest.mark.requirement("http.prime-event-not-a-message", revisions=EVERY_REVISION)
def test_an_event_without_data_sets_the_id_only(cut: Cut) -> None:
    decoder = EventDecoder()
    assert decode(b"id: 7\n\n", cut, decoder) == []
    assert decoder.last_id == "7"
    assert decode(b"id: 8\ndata:\n\n", cut, decoder) == [ServerSentEvent(b"", "message", "8")]
    assert decoder.last_id == "8"


def test_an_id_with_nul_is_ignored(cut: Cut) -> None:
    decoder = EventDecoder()
    decode(b"id: 1\n\nid: 2\x003\ndata: a\n\n", cut, decoder)
    assert decoder.last_id == "1"


def test_no_id_is_not_the_empty_id() -> None:
    decoder = EventDecoder()
    decode(b"data: a\n\n", decoder=decoder)
    assert decoder.last_id is None
    decode(b"id:\ndata: a\n\n", decoder=decoder)
    assert decoder.last_id == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"1500", 1500),
        (b" 0", 0),
        (b"-1", None),
        (b"1.5", None),
        (b"", None),
        (b"1s", None),
        ("\u0661".encode(), None),
        (b"9" * 9, 999_999_999),
        (b"1" + b"0" * 9, None),
        (b"9" * 5000, None),
    ],
)
def test_retry_is_a_number_of_digits_or_nothing(
    cut: Cut, value: bytes, expected: int | None
) -> None:
    decoder = EventDecoder()
    decode(b"retry:" + value + b"\n\n", cut, decoder)
    assert decoder.retry == expected


def test_an_event_of_just_the_limit_passes(cut: Cut) -> None:
    decoder = EventDecoder(limit=100)
    for lines in ([b"x" * 100], [b"x" * 40, b"x" * 59], [b"x" * 98, b"x"], [b"x"] * 50 + [b""]):
        stream = b"data: " + b"\ndata: ".join(lines)
        assert data_of(stream + b"\n\n", cut) == [b"\n".join(lines)]
        assert decode(stream + b"\n\n", cut, decoder) == [ServerSentEvent(b"\n".join(lines))]
        assert decode(stream + b"x\n\n", cut, decoder) == [TooLong(100)]


def test_an_event_over_the_limit_is_reported_at_once() -> None:
    for head, room in ((b"data: ", 100), (b"data: x\ndata: ", 98)):
        decoder = EventDecoder(limit=100)
        assert decoder.feed(head + b"x" * room) == []
        assert decoder.feed(b"x") == [TooLong(100)]


@pytest.mark.parametrize("rest", [b"", b"xx", b"xx\n", b"\ndata: more than the rest\n"])
def test_the_event_after_a_dropped_one_is_not_lost(rest: bytes) -> None:
    decoder = EventDecoder(limit=100)
    events = [decoder.feed(piece) for piece in (b"data: " + b"x" * 99, b"xx" + rest, b"\n")]
    assert [event for part in events for event in part] == [TooLong(100)]
    decoder.feed(b"\n")
    assert decoder.feed(b"data: b") == []
    assert decoder.feed(b"\n\n") == [ServerSentEvent(b"b")]


@pytest.mark.parametrize("limit", [100, FIELD_LIMIT + 2001])
@pytest.mark.parametrize("name", [b"", b"event", b"other"])
def test_another_line_may_have_the_limit_and_a_name_of_16_bytes(
    cut: Cut, name: bytes, limit: int
) -> None:
    line, end = (name + b":").ljust(limit + 16, b"x"), b"\ndata: a\n\n"
    for before in (b"", b"id: 1\n", b"id: 1\n\n"):
        assert data_of(before + line + end, cut, EventDecoder(limit)) == [b"a"]
    for more in (b"x", b"xx", b"xxx"):
        assert decode(line + more + end, cut, EventDecoder(limit)) == [TooLong(limit)]


@pytest.mark.parametrize(
    "event",
    [
        b"data: " + b"x" * 101,
        b"data: " + b"x" * 5000,
        b"data: " + b"x" * 60 + b"\ndata: " + b"x" * 40,
        b"data: x\n" * 50 + b"data: x",
        b":" + b"x" * 200,
        b"id: " + b"x" * 200,
    ],
    ids=["one more", "long", "lines", "many lines", "comment", "id"],
)
def test_an_event_over_the_limit_is_one_error_and_no_end(cut: Cut, event: bytes) -> None:
    decoder = EventDecoder(limit=100)
    stream = b"data: a\n\n" + event + b"\ndata: rest\nid: 1\n\ndata: b\n\n"
    assert decode(stream, cut, decoder) == [
        ServerSentEvent(b"a"),
        TooLong(100),
        ServerSentEvent(b"b"),
    ]
    assert decoder.last_id is None


def test_a_line_without_end_does_not_fill_memory() -> None:
    decoder = EventDecoder(limit=100)
    events = [event for _ in range(1000) for event in decoder.feed(b"x" * 100)]
    assert events == [TooLong(100)]
    assert decode(b"\n\ndata: b\n\n", decoder=decoder) == [ServerSentEvent(b"b")]


LIMIT = 32 * 1024
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


@pytest.mark.parametrize("rest", [b"x", b"x\n", b"\n" + b"y" * 2 * LIMIT])
def test_an_event_over_the_limit_takes_no_memory(rest: bytes) -> None:
    decoder = EventDecoder(LIMIT)
    tracemalloc.start()
    try:
        decoder.feed(b"data: " + b"x" * LIMIT)
        assert tracemalloc.get_traced_memory()[0] > LIMIT
        assert decoder.feed(rest) == [TooLong(LIMIT)]
        assert tracemalloc.get_traced_memory()[0] < LIMIT / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", [b"data: ab\n", b"data: " + b"x" * 994 + b"\n"])
def test_an_event_of_many_lines_comes_out_whole(line: bytes) -> None:
    decoder = EventDecoder(LIMIT)
    count = LIMIT // len(line)
    (event,) = decoder.feed(line * count + b"\n")
    assert isinstance(event, ServerSentEvent)
    assert event.data == b"\n".join([line[6:-1]] * count)


@pytest.mark.parametrize(
    "line", [b"data: " + b"x" * 100_000, b"data: x\n" * 12_000, b":" * 100_000]
)
def test_many_tiny_pieces_take_time_linear_in_their_number(line: bytes) -> None:
    decoder = EventDecoder()
    started = time.process_time()
    events = [event for byte in line + b"\n\n" for event in decoder.feed(bytes([byte]))]
    assert len(events) <= 1
    assert time.process_time() - started < 3


@pytest.mark.parametrize("cut", [whole, in_threes], ids=["whole", "in threes"])
@pytest.mark.parametrize("size", [FIELD_LIMIT, FIELD_LIMIT + 1, FIELD_LIMIT + 100, 100_000])
def test_an_id_that_no_header_field_could_carry_counts_as_none(cut: Cut, size: int) -> None:
    decoder = EventDecoder()
    stream = b"id: 1\n\nid: " + b"x" * size + b"\ndata: a\n\n"
    (event,) = decode(stream, cut, decoder)
    assert isinstance(event, ServerSentEvent)
    assert event.id == decoder.last_id == ("x" * size if size <= FIELD_LIMIT else "")


@pytest.mark.parametrize("cut", [whole, in_threes], ids=["whole", "in threes"])
def test_a_type_of_any_length_takes_little_memory(cut: Cut) -> None:
    (event,) = decode(b"event: " + b"x" * 100_000 + b"\ndata: a\n\n", cut)
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


lines = st.binary(max_size=30).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b""))
words = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]))


@given(st.lists(st.tuples(st.lists(lines, min_size=1).map(b"\n".join), words, words)), st.data())
def test_encoded_events_decode_to_the_same_events(
    events: list[tuple[bytes, str, str]], data: st.DataObject
) -> None:
    stream = b"".join(encode_event(raw, type=type, id=id) for raw, type, id in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    decoder = EventDecoder()
    decoded_events = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoded_events += decoder.feed(stream[start:end])
    assert decoded_events == [
        ServerSentEvent(raw, type or "message", id) for raw, type, id in events
    ]


@given(st.lists(st.binary(max_size=50)))
def test_any_bytes_decode_the_same_in_any_pieces_without_errors(pieces: list[bytes]) -> None:
    inside = [piece + b"\ndata: x\n\r" for piece in pieces]
    at_once, in_pieces = EventDecoder(limit=40), EventDecoder(limit=40)
    assert at_once.feed(b"".join(inside)) == [
        event for piece in inside for event in in_pieces.feed(piece)
    ]
    assert (at_once.last_id, at_once.retry) == (in_pieces.last_id, in_pieces.retry)
