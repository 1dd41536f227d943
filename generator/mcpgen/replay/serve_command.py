"""`mcpgen replay TRACE --serve`: its choice of sessions, and what it tells."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcpgen.errors import UsageError, safe_text
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import package_cache
from mcpgen.package.build_request import BuildRequest
from mcpgen.project import live_server
from mcpgen.replay import recording, served_trace
from mcpgen.replay.recording import Session
from mcpgen.replay.scenes import server_of
from mcpgen.replay.served_trace import Latency, ServeOptions

_LATENCY = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,6})?)(?P<unit>ms|s)")
_UNITS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True)
class ServeRequest:
    """A trace to serve.

    Attributes:
        source: The file.
        session: The number of the session to serve, from 1; `None` to choose.
        address: Host and port to listen at over HTTP; `None` for standard input and output.
        options: How it is served.
    """

    source: str
    session: int | None
    address: str | None
    options: ServeOptions


def parse_latency(text: str) -> Latency:
    """The latency that a user writes: `50ms`, `1.5s` or `recorded`.

    Raises:
        UsageError: The text has another form.
    """
    if text == "recorded":
        return "recorded"
    match = _LATENCY.fullmatch(text)
    if match is None:
        expected = "a time such as 50ms or 1.5s, or recorded"
        raise UsageError(f"--latency: expected {expected}, got {safe_text(text)!r}")
    return float(match["number"]) * _UNITS[match["unit"]]


def serve(
    request: ServeRequest, tell: Callable[[str], object], on_start: Callable[[str], object]
) -> list[str]:
    """Serve a trace until its client disconnects, or a signal comes.

    Args:
        request: The trace, and how to serve it.
        tell: Called with lines for the user.
        on_start: Called with the URL once clients can connect over HTTP.

    Returns:
        The requests that were not as recorded, and those that never came, one line each.

    Raises:
        UsageError: The trace has no session that can be served, or the address can't be used.
    """
    sessions = select_sessions(recording.read(request.source), request.session)
    if request.address is None:
        for fault in request.options.faults:
            if isinstance(fault.form, int):
                raise UsageError(f"--fail: a status such as {fault.form} needs --http")
    masked = sum(message.masked for session in sessions for message in session.messages)
    if masked:
        tell(f"{masked} messages of the trace have *** in place of secrets, and so do the answers")
    with live_server.import_package(package_files()) as package:
        logging.getLogger(package.__name__).setLevel(logging.WARNING)
        recorded = served_trace.recorded_server(package, sessions, request.options)
        for line in served_trace.methods_without_counterpart(recorded):
            tell(line)
        if request.address is None:
            served_trace.run_stdio(recorded)
        else:
            served_trace.run_http(recorded, request.address, on_start)
        return recorded.problems()


def package_files() -> Mapping[str, str]:
    """The files of a package with a client, a server and a proxy of every revision."""
    every = schema_sources.by_name(("all",))
    chosen = selection(("client", "server"), features=("none", "proxy"))
    return package_cache.build_package(
        BuildRequest("peer", every, selection=chosen), lambda note: None
    )


def select_sessions(sessions: Sequence[Session], number: int | None) -> tuple[Session, ...]:
    """The sessions to serve: one of them, or all if they are with one server in one revision.

    Both sides of a session may have written to the trace; then those of the client count.

    Args:
        sessions: The sessions of a trace.
        number: The number of a session, from 1; `None` to choose.

    Raises:
        UsageError: There is no such session, there are several servers or revisions, or no message
            names the revision.
    """
    if number is not None:
        if not 1 <= number <= len(sessions):
            raise UsageError(f"expected --session of 1 to {len(sessions)}, got {number}")
        chosen: tuple[Session, ...] = (sessions[number - 1],)
    else:
        of_clients = tuple(each for each in sessions if each.recorder == "client")
        chosen = of_clients or tuple(sessions)
        kinds = {(server_of(each), each.revision) for each in chosen}
        if len(kinds) > 1:
            rows = ", ".join(
                f"{index} is of {safe_text(server_of(each)) or 'a server'} in {each.revision}"
                for index, each in enumerate(sessions, 1)
                if each in chosen
            )
            raise UsageError(f"expected --session N, since the trace has several: {rows}")
    if not chosen[0].revision:
        raise UsageError("expected a trace with a message that names the revision, got none")
    return chosen
