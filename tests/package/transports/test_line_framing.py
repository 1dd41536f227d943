"""Lines come out whole, wherever the stream is cut and whatever passes the limit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.errors import INVALID_REQUEST, LocalProtocolError
from mcpgen_runtime.transports.line_channel import LineReader, frame_line
from requirements import EVERY_REVISION

MESSAGES = [b'{"a":1}', '{"text":"\u00e9\U0001f600"}'.encode(), b"[1,2]", b'"\\n"']
WIRE = b"".join(frame_line(message) for message in MESSAGES)


def read(reader: LineReader, wire: bytes, size: int) -> list[bytes | TooLong]:
    lines: list[bytes | TooLong] = []
    for start in range(0, len(wire), size):
        lines += reader.feed(wire[start : start + size])
    return lines


@pytest.mark.requirement("stdio.newline-delimited", revisions=EVERY_REVISION)
@pytest.mark.parametrize("size", [1, 2, 5, 16, len(WIRE) - 1, len(WIRE)])
def test_messages_come_out_whole_wherever_the_pipe_cuts_them(size: int) -> None:
    assert read(LineReader(), WIRE, size) == MESSAGES


@pytest.mark.requirement("stdio.newline-delimited", revisions=EVERY_REVISION)
def test_an_unfinished_line_waits_for_its_newline() -> None:
    reader = LineReader()
    assert reader.feed(b'{"a"') == []
    assert reader.feed(b":1}") == []
    assert reader.feed(b"\n") == [b'{"a":1}']


@pytest.mark.parametrize("size", [1, 3, 100])
def test_crlf_and_blank_lines_are_no_part_of_messages(size: int) -> None:
    wire = b"\r\n\n1\r\n   \n\t\r\n2\n\n"
    assert read(LineReader(), wire, size) == [b"1", b"2"]


def test_a_last_line_without_newline_is_delivered_at_the_end() -> None:
    reader = LineReader()
    assert reader.feed(b"1\n2") == [b"1"]
    assert reader.end() == [b"2"]
    assert reader.end() == []


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_line_over_the_limit_is_one_error_and_the_next_is_read(size: int) -> None:
    wire = b"12345\n123456\r\n12345\r\n1234567890123\n1\n"
    lines = read(LineReader(limit=5), wire, size)
    assert lines == [b"12345", TooLong(5), b"12345", TooLong(5), b"1"]


def test_a_line_over_the_limit_is_reported_early_and_not_stored() -> None:
    reader = LineReader(limit=5)
    assert reader.feed(b"1234567") == [TooLong(5)]
    assert reader.feed(b"890") == []
    assert reader.end() == []
    assert reader.feed(b"\n1\n") == [b"1"]


def test_a_message_over_the_limit_is_an_error_with_the_limit() -> None:
    error = TooLong(5).error()
    assert error.code == INVALID_REQUEST
    assert str(error) == (
        "expected a message of at most 5 bytes, came a longer one; it was dropped"
    )


@pytest.mark.requirement("stdio.no-embedded-newline", revisions=EVERY_REVISION)
def test_a_message_with_a_raw_newline_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="came a newline at byte 1"):
        frame_line(b"{\n}")


LINES = st.lists(
    st.binary(min_size=1, max_size=30).filter(
        lambda line: b"\n" not in line and not line.endswith(b"\r") and not line.isspace()
    )
)


@pytest.mark.requirement("stdio.newline-delimited", revisions=EVERY_REVISION)
@given(lines=LINES, cuts=st.lists(st.integers(0, 400)), ends=st.sampled_from([b"\n", b"\r\n"]))
def test_any_lines_survive_any_cuts(lines: list[bytes], cuts: list[int], ends: bytes) -> None:
    wire = b"".join(line + ends for line in lines)
    reader = LineReader(limit=30)
    read_lines: list[bytes | TooLong] = []
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    for start, stop in pairwise(places):
        read_lines += reader.feed(wire[start:stop])
    assert read_lines == lines


@given(wire=st.binary(max_size=300), size=st.integers(1, 300), limit=st.integers(1, 20))
def test_where_a_stream_is_cut_never_changes_what_is_read(
    wire: bytes, size: int, limit: int
) -> None:
    whole, cut = LineReader(limit), LineReader(limit)
    expected = whole.feed(wire) + whole.end()
    assert read(cut, wire, size) + cut.end() == expected


def test_feeding_byte_by_byte_takes_linear_work() -> None:
    class Counting(bytes):
        """Bytes that count how many of them are searched."""

        searched = 0

        def split(self, *args: object, **kwargs: object) -> list[bytes]:
            Counting.searched += len(self)
            return bytes(self).split(b"\n")

    reader = LineReader()
    for _ in range(10_000):
        reader.feed(Counting(b"x"))
    assert reader.feed(Counting(b"\n")) == [b"x" * 10_000]
    assert Counting.searched == 10_001
