"""Scripts of messages and commands: all that an end sends and reports for each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.samples import EVERY_CLIENT_CAPABILITY, EVERY_SERVER_CAPABILITY
from kit.wire import HANDSHAKE, PER_REQUEST, describe_as, encode_message, request
from mcpgen_runtime import REVISIONS, ProtocolError, errors
from mcpgen_runtime.errors import FrameError, RequestLost
from mcpgen_runtime.facts import Method, Revision
from mcpgen_runtime.protocol import events
from mcpgen_runtime.protocol.batch_parsing import parse_batch
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.connection import Connection
from mcpgen_runtime.protocol.jsonrpc import ParsedMessage, is_batch, parse
from mcpgen_runtime.protocol.lifecycle import Session
from mcpgen_runtime.protocol.requests import custom_method
from mcpgen_runtime.protocol.server_connection import ServerConnection

TEXTS = json.loads(Path(__file__).with_name("messages.json").read_text("utf-8"))
"""Messages, valid or not, as text in which a lone surrogate is a byte that is no UTF-8."""

SCRIPTS = json.loads(Path(__file__).with_name("traffic.json").read_text("utf-8"))
"""Steps of each end: what it receives or is told to send, by name, and the arguments.

`~` stands for the id of its oldest open request."""


def plain(value: Any) -> Any:
    """A value of an event or a message as text, with names for the tables that it refers to."""
    match value:
        case Method() | Revision():
            return value.name
        case Exception():
            return f"{type(value).__name__}: {value}"
        case bytes() | msgspec.Raw():
            return bytes(value).decode(errors="replace")
        case msgspec.Struct() if type(value).__module__ in (events.__name__, parse.__module__):
            members = {name: plain(each) for name, each in msgspec.structs.asdict(value).items()}
            return f"{type(value).__name__} {members}"
        case _ if hasattr(value, "data") and hasattr(value, "kind"):
            about = (value.kind, value.id, value.related_request_id, value.error_code)
            return f"{' '.join(map(str, about))} {plain(value.data)}"
        case _:
            return msgspec.to_builtins(value, enc_hook=str)


def take(end: Connection, revision: str, step: list[Any], now: float) -> Any:
    """The events or messages of one step."""
    name, *words = step
    match name:
        case "say":
            text = words[0] if isinstance(words[0], str) else json.dumps(words[0])
            return end.receive(text.encode(), now)
        case "ask":
            return end.receive(encode_message(request(revision, *words[:2], **words[2])), now)
        case "lost":
            return end.receive(RequestLost(words[0], ProtocolError("lost")), now)
        case "frame":
            return end.receive(FrameError("torn"), now)
        case "timeout":
            return end.receive(events.StepTimedOut(), now)
        case "subscriber":
            return end.has_subscriber(*words), sorted(end.subscribed_uris())
        case "closed":
            return end.closed()
        case "assume" if isinstance(end, ServerConnection):
            session = Session(REVISIONS[revision], {}, {"sampling": {}})
            end.assume_session(session, *words)
            return [words]
        case "SendError":
            error = getattr(errors, words[1])(*words[2:-1], **words[-1])
            return end.send(events.SendError(words[0], error), now)
        case "raw":
            return end.send(events.SendResponse(words[0], msgspec.Raw(words[1].encode())), now)
        case _:
            return end.send(getattr(events, name)(*words[:-1], **words[-1]), now)


EXTENSIONS = {name: method for name in ("x/do", "x/told") if (method := custom_method(name))}
NEWEST = {"handshake": HANDSHAKE[-1], "per request": PER_REQUEST[-1], "batches": "2025-03-26"}


def make_end(role: str, spoken: str | None) -> Connection:
    """An end that speaks one revision, or all of them."""
    revisions = REVISIONS.only(spoken) if spoken else REVISIONS
    if role == "client":
        describe = describe_as(EVERY_CLIENT_CAPABILITY, role)
        return ClientConnection(revisions, describe, EXTENSIONS)
    describe = describe_as(EVERY_SERVER_CAPABILITY, role)
    return ServerConnection(revisions, describe, EXTENSIONS, parse_batch=parse_batch)


def state_of(end: Connection) -> str:
    """The open requests of an end, with their deadlines, and the step of its negotiation."""
    outbound = end.state.outbound
    deadlines = {id: outbound.deadline(id) for id in outbound.ids()}
    text = f"  open: {[*end.state.inbound]} {deadlines}"
    if isinstance(end, ClientConnection):
        steps = [step and step.method for step in (end.step, end.first_step)]
        text += f" {steps} {[id for id in outbound.ids() if end.awaits(id)]}"
    return text


@pytest.mark.structs("events are shown with their Structs")
@pytest.mark.parametrize("case", [name for name in SCRIPTS if "," in name])
def test_each_step_has_its_events_and_messages(
    case: str, snapshot: SnapshotAssertion, caplog: pytest.LogCaptureFixture
) -> None:
    role, kind = case.split(", ")
    revision = NEWEST.get(kind, HANDSHAKE[-1])
    end = make_end(role, NEWEST.get(kind))
    seen: list[str] = []
    last_open = ""
    for now, step in enumerate(SCRIPTS[case] + SCRIPTS[role]):
        oldest = next(iter(end.state.outbound.ids()), 0)
        text = json.dumps(step).replace("REVISION", revision).replace('"~text"', f'"{oldest}"')
        try:
            taken = take(end, revision, json.loads(text.replace('"~"', f"{oldest}")), float(now))
            outcome = [plain(each) for each in taken]
        except ProtocolError as error:
            outcome = [f"! {plain(error)}"]
        seen += ["", json.dumps(step), *(f"  {each}" for each in outcome)]
        if (now_open := state_of(end)) != last_open:
            seen.append(last_open := now_open)
    assert "\n".join([*seen, *caplog.messages]) == snapshot


def test_each_message_is_parsed_as_expected(snapshot: SnapshotAssertion) -> None:
    long = [
        TEXTS[0].replace("1", f'"{"i" * count}"').replace('"m"', method)
        for count in (1024, 1025)
        for method in ('"m"', '"\x01"')
    ]
    long += ['{"jsonrpc":"2.0","id":1,"result":NaN}'.ljust(2**20 + more) for more in (0, 1)]
    seen: list[str] = []
    for text in TEXTS + long:
        data = text.encode(errors="surrogateescape")
        parsed = ParsedMessage.of(data, parse_batch)
        about = (is_batch(data), parsed.is_batch, parsed.has_response, parsed.results())
        is_error = parsed.error_response() is not None
        seen += [
            "",
            f"{data[:200]!r} {about} {is_error}",
            *(f"  {plain(each)}" for each in parsed.messages),
        ]
        assert not ParsedMessage.of(data).is_batch
    assert "\n".join(seen) == snapshot
