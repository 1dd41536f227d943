"""Rules about all messages of a server, checked at the end from the records of all sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mcpgen.check_server.connections import Received
from mcpgen.check_server.jsonrpc_checks import PROGRESS_TOKENS
from mcpgen.check_server.outcomes import applies, require, require_valid
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import HTTP, STDIO, Table
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_object

TABLE = Table()

_LEGACY = range(-32019, -31999)
_RESERVED = range(-32099, _LEGACY.start)


def _shown(message: Json) -> str:
    return format_value(message, 120)


def _messages(session: Session) -> Iterator[Node]:
    for part in session.records:
        yield from (each.message for each in part if is_object(each.message))


def _errors(session: Session) -> Iterator[Json]:
    yield from (each["error"] for each in _messages(session) if "error" in each)


def _codes(session: Session) -> list[Json]:
    return [error.get("code") for error in _errors(session) if is_object(error)]


@TABLE.add("jsonrpc.version-member")
async def every_message_names_its_version(session: Session) -> None:
    for message in _messages(session):
        require(message.get("jsonrpc") == "2.0", 'jsonrpc "2.0"', _shown(message))


@TABLE.add("jsonrpc.response-exactly-one")
async def a_response_is_result_or_error(session: Session) -> None:
    for message in _messages(session):
        kept = "method" in message or ("result" in message) != ("error" in message)
        require(kept, "either result or error", _shown(message))


@TABLE.add("jsonrpc.result-object")
async def a_result_is_an_object(session: Session) -> None:
    for message in _messages(session):
        kept = "result" not in message or is_object(message["result"])
        require(kept, "an object as result", _shown(message))


@TABLE.add("jsonrpc.error-fields")
async def an_error_has_code_and_message(session: Session) -> None:
    for error in _errors(session):
        kept = is_object(error) and "code" in error and isinstance(error.get("message"), str)
        require(kept, "an error with code and message", _shown(error))


@TABLE.add("jsonrpc.error-code-integer")
async def a_code_is_an_integer(session: Session) -> None:
    for code in _codes(session):
        kept = code is None or (isinstance(code, int) and not isinstance(code, bool))
        require(kept, "an integer as code", format_value(code))


@TABLE.add("jsonrpc.params-object")
async def params_are_an_object(session: Session) -> None:
    for message in _messages(session):
        kept = "method" not in message or is_object(message.get("params", {}))
        require(kept, "an object as params", _shown(message))


@TABLE.add("jsonrpc.notification-no-id")
async def notifications_have_no_id(session: Session) -> None:
    for message in _messages(session):
        kept = not _is_notification(message) or "id" not in message
        require(kept, "no id in a notification", _shown(message))


def _is_notification(message: Node) -> bool:
    name: Json = message.get("method")
    return isinstance(name, str) and name.startswith("notifications/")


@TABLE.add("jsonrpc.schema-is-authority")
async def notifications_and_requests_have_their_types(session: Session) -> None:
    for message in _messages(session):
        other_rules = "jsonrpc" not in message or not is_object(message.get("params", {}))
        other_rules |= "id" in message and (_is_notification(message) or not session.has_handshake)
        if isinstance(message.get("method"), str) and not other_rules:
            require_valid(session.revision.judge(message, "server").violation, "message")


@TABLE.add("jsonrpc.server-no-requests")
async def a_server_sends_no_requests(session: Session) -> None:
    for message in _messages(session):
        asks = "id" in message and "method" in message and not _is_notification(message)
        require(not asks, "no requests of the server", _shown(message))


@TABLE.add("jsonrpc.code-reserved-range")
async def reserved_codes_are_those_of_the_revision(session: Session) -> None:
    errors = session.revision.protocol.facts.errors
    known = (*(errors.defined or ()), *errors.retired)
    for code in _codes(session):
        kept = code not in _RESERVED or code in known
        require(
            kept,
            f"one of {format_value(errors.defined)}, or a code that is free",
            format_value(code),
        )


@TABLE.add("jsonrpc.code-32042-not-emitted")
async def a_retired_code_is_not_sent(session: Session) -> None:
    for code in _codes(session):
        require(code != -32042, "no error -32042", format_value(code))


@TABLE.add("jsonrpc.code-legacy-range-unused")
async def old_codes_are_not_sent(session: Session) -> None:
    retired = session.revision.protocol.facts.errors.retired
    for code in _codes(session):
        kept = code not in _LEGACY or code in retired
        require(kept, "no code from -32000 to -32019", format_value(code))


@TABLE.add("progress.active-token-only")
async def progress_names_a_token_that_was_sent(session: Session) -> None:
    for message in _messages(session):
        if message.get("method") == "notifications/progress":
            params: Json = message.get("params")
            token: Json = params.get("progressToken") if is_object(params) else None
            require(token in PROGRESS_TOKENS, "a progress token of a request", format_value(token))


@TABLE.add("logging.declare-capability-initialize", "logging.declare-capability-discover")
async def log_messages_are_declared(session: Session) -> None:
    logged = any(each.get("method") == "notifications/message" for each in _messages(session))
    kept = not logged or session.declares("logging")
    require(
        kept, "the capability logging of a server that logs", format_value(session.capabilities)
    )


@TABLE.add("logging.per-request-level")
async def nothing_is_logged_unasked(session: Session) -> None:
    logged = [each for each in _messages(session) if each.get("method") == "notifications/message"]
    require(not logged, "no log messages, as no request asks for them", format_value(logged[:1]))


@TABLE.add("http.event-id-unique", on=HTTP)
async def event_ids_are_unique(session: Session) -> None:
    for part in session.records:
        ids = [each.event_id for each in part if each.event_id]
        repeated = sorted({id for id in ids if ids.count(id) > 1})
        require(not repeated, "each event id once in a session", f"{format_value(repeated)} again")


@TABLE.add("http.no-resumability", on=HTTP)
async def events_have_no_ids(session: Session) -> None:
    ids = [each.event_id for part in session.records for each in part if each.event_id]
    require(not ids, "no ids of events", format_value(ids[:3]))


def _is_pretty_printed(part: Sequence[Received]) -> bool:
    """Whether lines that are no JSON form a JSON object when joined."""
    lines = [each.data for each in part if not is_object(each.message)]
    text = b"\n".join(lines).decode("utf-8", "replace").lstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return is_object(value)


@TABLE.add("stdio.no-embedded-newline", on=STDIO)
async def a_message_has_no_line_feed(session: Session) -> None:
    broken = next((part for part in session.records if _is_pretty_printed(part)), None)
    require(broken is None, "each message on one line", "a message over several lines")


@TABLE.add("stdio.stdout-only-messages", on=STDIO)
async def standard_output_has_messages_alone(session: Session) -> None:
    for part in session.records:
        junk = next((each for each in part if not is_object(each.message)), None)
        applies(not _is_pretty_printed(part), "messages are written over several lines")
        require(
            junk is None,
            "messages alone on standard output",
            format_value(junk.text) if junk else "",
        )
