"""Messages from a file or standard input: one message, several, or a trace of `MCP_TRACE`.

A trace has one JSON object per line, with `message`, `direction` and `channel`. Plain JSON is one
message, an array of them, or one message per line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcpgen.errors import InputError, UsageError, format_value
from mcpgen.input_files import MAX_BYTES, check_json, read_text
from mcpgen.json_types import Json, Node, is_array, is_object

Direction = Literal["sent", "received"]

STDIN = "-"
_SHOWN_NAME = "standard input"
_DIRECTIONS: Mapping[str, Direction] = {"sent": "sent", "received": "received"}


@dataclass(frozen=True)
class Recorded:
    """One message.

    Attributes:
        line: The line in the file, or the position in an array, from 1.
        value: The message, or the value in place of one.
        direction: Whether the side that wrote the trace sent or received it; `None` if unknown.
        channel: The connection of the message; empty if unknown.
        error: The reason why there is no message; empty if there is one.
        time: The time of the message as the trace has it, in ISO 8601; empty if unknown.
        masked: Whether secrets in the message were replaced by `***`.
    """

    line: int
    value: Json
    direction: Direction | None = None
    channel: str = ""
    error: str = ""
    time: str = ""
    masked: bool = False


def read(source: str) -> tuple[Recorded, ...]:
    """The messages of a file, or of standard input for `-`.

    Raises:
        UsageError: The file does not exist, is too large or not UTF-8, or contains no JSON.
    """
    name = _SHOWN_NAME if source == STDIN else source
    try:
        text = _stdin() if source == STDIN else read_text(Path(source), InputError, "JSON text")
        messages = tuple(_messages(text, name))
    except InputError as error:
        raise UsageError(str(error)) from error
    if not messages:
        raise UsageError(f"{name}: expected a message, got nothing")
    return messages


def _stdin() -> str:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"{_SHOWN_NAME}: expected {MAX_BYTES} bytes at most, got more")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{_SHOWN_NAME}: expected JSON text in UTF-8, got {error}") from error


def without_ends(recorded: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
    """A recording without errors in the last line of each channel, which end a connection."""
    last = {each.channel: each for each in recorded if each.channel}
    return tuple(each for each in recorded if not each.error or last.get(each.channel) is not each)


def _messages(text: str, name: str) -> Iterator[Recorded]:
    try:
        whole = _parse(text, name)
    except ValueError as error:
        yield from _lines(text, name, str(error))
        return
    yield from _of_value(whole, 1)


def _of_value(value: Json, line: int) -> Iterator[Recorded]:
    if is_array(value) and not _is_batch(value):
        for number, item in enumerate(value, 1):
            yield from _of_value(item, number)
    elif is_object(value) and "message" in value and "direction" in value:
        yield _from_trace(value, line)
    elif is_object(value) and "error" in value and "direction" in value:
        yield Recorded(line, None, _direction(value), _channel(value), str(value["error"]))
    else:
        yield Recorded(line, value)


def _is_batch(value: list[Json]) -> bool:
    return bool(value) and all(is_object(item) and "jsonrpc" in item for item in value)


def _lines(text: str, name: str, why: str) -> Iterator[Recorded]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) < 2:
        raise UsageError(f"{name}: expected JSON text, got {why}")
    for number, line in lines:
        try:
            value = _parse(line, name)
        except ValueError as error:
            raise UsageError(f"{name}:{number}: expected JSON text, got {error}") from error
        except InputError as error:  # a line that is too large or too deep
            yield Recorded(number, None, error=str(error))
        else:
            yield from _of_value(value, number)


def _parse(text: str, name: str) -> Json:
    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise UsageError(f"{name}: expected JSON that is nested less deeply") from None
    check_json(value, name, InputError)
    return value


def _from_trace(row: Node, line: int) -> Recorded:
    time: Json = row.get("time")
    return Recorded(
        line,
        row["message"],
        _direction(row),
        _channel(row),
        time=time if isinstance(time, str) else "",
        masked=row.get("masked") is True,
    )


def _direction(row: Node) -> Direction | None:
    return _DIRECTIONS.get(str(row.get("direction")))


def _channel(row: Node) -> str:
    return format_value([row.get("channel"), row.get("pid")])
