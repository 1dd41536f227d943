"""The command `python -m <package> trace FILE`: a wire trace for people, or for programs.

Each message is one line; a response names the method of its request and the elapsed time. The
request of a response is the oldest open one of the same process, channel and id.

A client may close its channel at any time: such an end is an error only to a client, or to a side
whose requests have no response.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

import msgspec

from .._wire import is_many, is_object
from ..foreign_text import safe_text
from .command_table import CANNOT, DONE
from .terminal_output import PlainOutput, TextStyle, output

_SHOWN = 120  # characters of a message that its line shows

_Kind: TypeAlias = Literal["request", "notification", "result", "error", "end", "lost", "invalid"]
"""`end`: the peer closed the channel; `lost`: another failed receive; `invalid`: no JSON-RPC."""


class _Recorded(msgspec.Struct):
    """A line of the file."""

    time: str
    direction: Literal["received", "sent"]
    channel: str = ""
    pid: int = 0
    message: Any = msgspec.UNSET
    error: str = ""
    end: bool = False


class _Row(msgspec.Struct, omit_defaults=True):
    """One message.

    Attributes:
        kind: The kind of message.
        method: The method; for a response that of its request, or empty if the file lacks it.
        id: The id.
        ms: Milliseconds from the request to the response.
        failed: Whether the message reports an error, as results of tools may.
    """

    time: str
    direction: str
    channel: str
    pid: int
    kind: _Kind
    failed: bool = False
    method: str = ""
    id: Any = None
    ms: float | None = None
    message: Any = None


class _Requests:
    """The requests without a response so far."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], list[_Row]] = {}
        self._first: dict[tuple[object, ...], str] = {}  # a client's first message is a sent one

    def add(self, row: _Row) -> None:
        """Add a request; set method and elapsed time of a response; judge the end of a channel."""
        channel = (row.pid, row.channel)
        if self._first.setdefault(channel, row.direction) == "sent" and row.kind == "end":
            row.failed = True
        elif row.kind == "end":
            row.failed = any(key[:3] == (*channel, "sent") for key in self._open)
        direction = row.direction if row.kind == "request" else _OTHER[row.direction]
        key = (row.pid, row.channel, direction, json.dumps(row.id))
        if row.kind == "request":
            self._open.setdefault(key, []).append(row)
        elif (row.kind == "result" or row.kind == "error") and key in self._open:
            requests = self._open[key]
            request = requests.pop(0)
            if not requests:
                del self._open[key]
            row.method = request.method
            row.ms = _ms(request.time, row.time)

    def count(self) -> int:
        """The number of requests without a response."""
        return sum(map(len, self._open.values()))


_OTHER = {"sent": "received", "received": "sent"}
_ARROWS: Mapping[str, tuple[str, TextStyle]] = {"sent": ("->", "green"), "received": ("<-", "cyan")}


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to a parser.

    Args:
        add: The `add_parser` method of the subparsers.
    """
    parser = add(
        "trace",
        help="show a file that MCP_TRACE recorded",
        description="Show a file that MCP_TRACE recorded; several conditions must all hold.",
    )
    parser.add_argument("file", metavar="FILE", help="the file; - is standard input")
    parser.add_argument(
        "--method", metavar="PATTERN", help="method, such as 'tools/*', of messages and answers"
    )
    parser.add_argument("--direction", choices=("sent", "received"))
    parser.add_argument("--id", metavar="ID", help="id of a request and its answer")
    parser.add_argument("--channel", metavar="NAME", help="name of a channel, such as client")
    parser.add_argument("--errors", action="store_true", help="errors and failed results only")
    parser.add_argument("--full", action="store_true", help="show messages as a whole")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.set_defaults(main=run)


def run(chosen: argparse.Namespace) -> int:
    """Print a trace, and return the exit code: 2 if the file can't be read, else 0.

    Args:
        chosen: The parsed command line.
    """
    try:
        with _open_file(chosen.file) as file:
            _print_all(file, chosen)
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"error: {chosen.file}: {error.strerror}", file=sys.stderr)
        return CANNOT
    return DONE


def _open_file(file: str) -> AbstractContextManager[TextIO]:
    return nullcontext(sys.stdin) if file == "-" else Path(file).open(errors="replace")


def _print_all(lines: Iterable[str], chosen: argparse.Namespace) -> None:
    counts: Counter[str] = Counter()
    shown = output()
    requests = _Requests()
    for number, line in enumerate(lines, 1):
        try:
            rows = [*_rows(line)]
        except (msgspec.MsgspecError, RecursionError) as error:
            print(f"line {number}: no record of a trace: {error}", file=sys.stderr)
            continue
        for row in rows:
            requests.add(row)
            counts["messages"] += 1
            counts["errors"] += row.failed
            if _is_selected(row, chosen):
                if chosen.json:
                    print(msgspec.json.encode(row).decode())
                else:
                    _show(shown, row, chosen.full)
    if not chosen.json:
        shown.heading(
            f"{counts['messages']} messages, {counts['errors']} errors, "
            f"{requests.count()} requests without answer"
        )


def _rows(line: str) -> Iterator[_Row]:
    """The messages of a line; a batch has several.

    Raises:
        MsgspecError: The line is not a record.
    """
    record = msgspec.json.decode(line, type=_Recorded)
    messages = record.message if is_many(record.message) else [record.message]
    for message in messages:
        members: Mapping[str, Any] = message if is_object(message) else {}
        kind = _kind(record, members)
        result = members.get("result")
        yield _Row(
            record.time,
            record.direction,
            record.channel,
            record.pid,
            kind,
            kind in ("error", "lost", "invalid")
            or (is_object(result) and result.get("isError") is True),
            str(members.get("method", "")),
            members.get("id"),
            message=record.error if kind in ("end", "lost") else message,
        )


def _kind(record: _Recorded, members: Mapping[str, Any]) -> _Kind:
    if record.message is msgspec.UNSET:
        return "end" if record.end else "lost"
    if "method" in members:
        return "request" if "id" in members else "notification"
    if "error" in members:
        return "error"
    return "result" if "result" in members else "invalid"


def _is_selected(row: _Row, chosen: argparse.Namespace) -> bool:
    return (
        (chosen.method is None or fnmatchcase(row.method, chosen.method))
        and chosen.direction in (None, row.direction)
        and chosen.channel in (None, row.channel)
        and (chosen.id is None or str(row.id) == chosen.id)
        and (row.failed or not chosen.errors)
    )


def _show(shown: PlainOutput, row: _Row, full: bool) -> None:
    """Print a message as one line, or its head and its JSON."""
    head = _head(row)
    if full:
        shown.line(head)
        shown.value(row.message)
        return
    inner = row.message
    if is_object(inner):
        inner = next((inner[name] for name in ("params", "result", "error") if name in inner), "")
    text = safe_text(inner if isinstance(inner, str) else json.dumps(inner), _SHOWN)
    shown.line([*head, (f"  {text}", "dim")] if text else head)


def _head(row: _Row) -> list[tuple[str, TextStyle]]:
    """The head of a message: time, channel, direction, method, id and elapsed time."""
    clock = row.time.partition("T")[2].partition("+")[0]
    arrow, style = _ARROWS[row.direction]
    title = row.method
    if row.kind not in ("request", "notification"):
        title = f"{row.kind} of {row.method}" if row.method else row.kind
    number = "" if row.id is None else f" #{row.id}"
    took = "" if row.ms is None else f" ({row.ms:g} ms)"
    parts: list[tuple[str, TextStyle]] = [
        (f"{clock} {row.channel} ", "dim"),
        (arrow, style),
        (" !" if row.failed else "", "red"),
        (f" {title}", "red" if row.failed else "bold"),
        (number + took, ""),
    ]
    return [(safe_text(text), style) for text, style in parts]


def _ms(start: str, end: str) -> float | None:
    """Milliseconds between two ISO 8601 times; `None` for invalid times."""
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
    return round(1000 * seconds, 3)
