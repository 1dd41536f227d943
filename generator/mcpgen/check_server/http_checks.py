"""Streamable HTTP: statuses, content types, sessions, header fields, streams, origins."""

from __future__ import annotations

import base64
import re

from mcpgen.check_server.connections import Reply, encode
from mcpgen.check_server.http_connection import JSON, STREAM
from mcpgen.check_server.jsonrpc_checks import UNKNOWN_METHOD, UNKNOWN_NOTIFICATION
from mcpgen.check_server.lifecycle_checks import ANCIENT
from mcpgen.check_server.outcomes import applies, require, result_of
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import HTTP, Table
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object

TABLE = Table()

FOREIGN_ORIGIN = "http://evil.example"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})")
_NEXT = 1000
"""Session ids that are numbers with a smaller difference count as consecutive."""


def _status(reply: Reply) -> str:
    return f"status {reply.status}" if reply.status is not None else reply.reason


async def _get(session: Session) -> Reply:
    """The reply to GET in a new session, since a server may allow one stream per session."""
    async with session.open_another() as other:
        return await other.http.head("GET", {"Accept": STREAM})


@TABLE.add("http.endpoint-post-get", on=HTTP)
async def the_endpoint_knows_get(session: Session) -> None:
    reply = await _get(session)
    require(reply.status not in (None, 404), "a status other than 404 for GET", _status(reply))


@TABLE.add("http.get-reply", on=HTTP)
async def get_is_a_stream_or_not_allowed(session: Session) -> None:
    reply = await _get(session)
    applies(reply.status != 404, "the endpoint does not know GET: http.endpoint-post-get")
    kept = reply.status == 405 or (reply.status == 200 and reply.media_type == STREAM)
    actual = f"{_status(reply)} with {reply.media_type or 'no type'}"
    require(kept, f"{STREAM}, or status 405, for GET", actual)


@TABLE.add("http-compat.get-delete-405", on=HTTP, compares=True)
async def get_and_delete_are_not_allowed(session: Session) -> None:
    older = [each.name for each in session.server.spoken if each.methods("initialize", "client")]
    applies(not older, f"the server also speaks {', '.join(older)}, which have both")
    for verb in ("GET", "DELETE"):
        reply = await session.http.head(verb)
        require(reply.status == 405, f"status 405 for {verb}", _status(reply))


@TABLE.add(
    "http.post-202",
    "http.post-202-batch",
    "http.post-202-notification",
    on=HTTP,
)
async def a_notification_is_accepted_without_a_body(session: Session) -> None:
    known = "notifications/initialized" if session.has_handshake else UNKNOWN_NOTIFICATION
    reply = await session.post({"jsonrpc": "2.0", "method": known})
    refused = not session.has_handshake and reply.is_refused
    applies(not refused, "the server refuses unknown notifications")
    actual = f"{_status(reply)} with {len(reply.body)} bytes"
    require(reply.status == 202 and not reply.body, "status 202 without a body", actual)


@TABLE.add("http.post-unacceptable-status", on=HTTP)
async def what_is_no_message_has_an_error_status(session: Session) -> None:
    reply = await session.post(encode({"jsonrpc": "2.0"}))
    kept = reply.status is not None and 400 <= reply.status < 600
    require(kept, "an error status for a message without method", _status(reply))


@TABLE.add("http.request-reply-type", on=HTTP)
async def a_response_is_json_or_a_stream(session: Session) -> None:
    reply = await session.ask(session.liveness)
    actual = f"{_status(reply)} with {reply.media_type or 'no type'}"
    require(reply.media_type in (JSON, STREAM), f"{JSON} or {STREAM}", actual)
    require(reply.answer is not None, "the response in it", reply.text)


@TABLE.add("http.stream-end-after-response", "http.final-response-ends-stream", on=HTTP)
async def the_stream_ends_with_the_response(session: Session) -> None:
    reply = await session.send(session.request(session.liveness), to_end=True)
    applies(reply.media_type == STREAM, f"responses are no streams: {reply.media_type}")
    require(reply.ended, "the end of the stream after the response", "a stream that stays open")


@TABLE.add("http.independent-process", on=HTTP)
async def two_clients_are_served_at_a_time(session: Session) -> None:
    async with session.open_another() as other:
        result_of(await session.ask(session.liveness), "the first client's request")
        result_of(await other.ask(other.liveness), "the second client's request")


@TABLE.add("transport-security.validate-origin", on=HTTP)
async def foreign_origins_are_not_served(session: Session) -> None:
    has_transport = session.revision.protocol.facts.transports.streamable_http is not None
    applies(has_transport, "the rule of this revision is about HTTP with SSE")
    reply = await session.ask(session.liveness, fields={"Origin": FOREIGN_ORIGIN})
    require(reply.result is None, f"a refusal of the origin {FOREIGN_ORIGIN}", reply.text)


@TABLE.add("transport-security.origin-403", on=HTTP)
async def foreign_origins_are_forbidden(session: Session) -> None:
    reply = await session.ask(session.liveness, fields={"Origin": FOREIGN_ORIGIN})
    applies(reply.result is None, "foreign origins are served: transport-security.validate-origin")
    require(reply.status == 403, f"status 403 for the origin {FOREIGN_ORIGIN}", _status(reply))


# ---- sessions
def _session_field(session: Session) -> str:
    applies(session.session_id is not None, "the server assigns no session id")
    return session.session_field


@TABLE.add("http.session-id-charset", on=HTTP)
async def a_session_id_is_visible_ascii(session: Session) -> None:
    _session_field(session)
    id = session.session_id or ""
    kept = bool(id) and all(0x21 <= ord(char) <= 0x7E for char in id)
    require(kept, "a session id of visible ASCII characters", format_value(id))


@TABLE.add("transport-security.session-id-nondeterministic", on=HTTP)
async def session_ids_cannot_be_guessed(session: Session) -> None:
    _session_field(session)
    async with session.open_another() as other:
        ids = [session.session_id or "", other.session_id or ""]
    require(not _is_counted(*ids), "two ids that no other id gives away", format_value(ids))


def _is_counted(first: str, second: str) -> bool:
    """Whether two ids are equal, or are consecutive numbers after the same prefix."""
    if first == second:
        return True
    numbered = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(second)
    if numbered[0] is None or numbered[1] is None or numbered[0][1] != numbered[1][1]:
        return False
    return abs(int(numbered[0][2]) - int(numbered[1][2])) < _NEXT


@TABLE.add("http.session-id-missing-400", on=HTTP)
async def a_request_without_its_session_is_refused(session: Session) -> None:
    field = _session_field(session)
    reply = await session.ask(session.liveness, fields={field: None})
    require(reply.status == 400, "status 400 without the session id", _status(reply))


@TABLE.add("http.session-gone-404", on=HTTP)
async def a_deleted_session_is_gone(session: Session) -> None:
    _session_field(session)
    async with session.open_another() as other:
        deleted = await other.http.head("DELETE")
        applies(deleted.status != 405, "the server lets no client end a session")
        done = deleted.status is not None and deleted.status < 300
        applies(done, f"the session is not deleted: {_status(deleted)}")
        reply = await other.ask(other.liveness)
    require(reply.status == 404, "status 404 for a deleted session", _status(reply))


# ---- the version in a header field
@TABLE.add("http.version-header-invalid-400", on=HTTP)
async def an_unknown_version_in_the_header_is_refused(session: Session) -> None:
    field = str(session.revision.protocol.facts.headers.protocol_version)
    for version in (ANCIENT, "abc"):
        reply = await session.ask(session.liveness, fields={field: version})
        require(reply.status == 400, f"status 400 for {field}: {version}", _status(reply))


@TABLE.add("http.version-header-missing-default", on=HTTP)
async def the_version_need_not_stand_in_the_header(session: Session) -> None:
    field = str(session.revision.protocol.facts.headers.protocol_version)
    reply = await session.ask(session.liveness, fields={field: None})
    result_of(reply, f"a request without {field}")


@TABLE.add("http.version-header-missing-reject", on=HTTP, compares=True)
async def the_version_must_stand_in_the_header(session: Session) -> None:
    older = [each.name for each in session.server.spoken if each.methods("initialize", "client")]
    applies(not older, f"the server also speaks {', '.join(older)}")
    facts = session.revision.protocol.facts
    field = str(facts.headers.protocol_version)
    reply = await session.ask(session.liveness, fields={field: None})
    kept = reply.status == 400 and reply.code == facts.errors.header_mismatch
    require(kept, f"status 400 with error {facts.errors.header_mismatch}", reply.text)


@TABLE.add("http.version-header-mismatch", on=HTTP)
async def the_version_is_the_same_in_header_and_body(session: Session) -> None:
    facts = session.revision.protocol.facts
    reply = await session.ask(session.liveness, meta={str(facts.meta.protocol_version): ANCIENT})
    kept = reply.status == 400 and reply.code == facts.errors.header_mismatch
    expected = f"status 400 with error {facts.errors.header_mismatch} for two versions"
    require(kept, expected, reply.text)


@TABLE.add("http.version-unsupported", on=HTTP)
async def an_unknown_version_is_refused_over_http(session: Session) -> None:
    facts = session.revision.protocol.facts
    reply = await session.ask(
        session.liveness,
        meta={str(facts.meta.protocol_version): ANCIENT},
        fields={str(facts.headers.protocol_version): ANCIENT},
    )
    data: Json = reply.error.get("data") if is_object(reply.error) else None
    supported: Json = data.get("supported") if is_object(data) else None
    code = facts.errors.unsupported_revision
    kept = reply.status == 400 and reply.code == code
    require(kept, f"status 400 with error {code} for the version {ANCIENT}", reply.text)
    named = is_array(supported) and session.version in supported
    require(named, f"{session.version} in supported", format_value(data))


@TABLE.add("http.unknown-method-404", on=HTTP)
async def an_unknown_method_has_its_status(session: Session) -> None:
    status = session.revision.protocol.facts.http.unknown_method
    reply = await session.ask(UNKNOWN_METHOD)
    require(reply.status == status, f"status {status} for an unknown method", _status(reply))


@TABLE.add("http.missing-meta-400", on=HTTP)
async def missing_metadata_has_its_status(session: Session) -> None:
    key = session.revision.protocol.facts.meta.client_capabilities
    reply = await session.ask(session.liveness, meta={str(key): None})
    require(reply.status == 400, f"status 400 without {key}", _status(reply))


# ---- header fields that repeat the body
def _method_field(session: Session) -> str:
    return str(session.revision.protocol.facts.headers.method)


@TABLE.add("headers.missing-required", on=HTTP)
async def the_method_must_stand_in_a_header(session: Session) -> None:
    field = _method_field(session)
    code = session.revision.protocol.facts.errors.header_mismatch
    reply = await session.ask(session.liveness, fields={field: None})
    kept = reply.status == 400 and reply.code == code
    require(kept, f"status 400 with error {code} without {field}", reply.text)


async def _mismatch(session: Session) -> Reply:
    return await session.ask(session.liveness, fields={_method_field(session): UNKNOWN_METHOD})


@TABLE.add("headers.server-validates", on=HTTP)
async def header_and_body_must_agree(session: Session) -> None:
    reply = await _mismatch(session)
    expected = f"a refusal of another method in {_method_field(session)}"
    require(reply.result is None, expected, reply.text)


@TABLE.add("headers.mismatch-status-400", on=HTTP)
async def a_mismatch_has_its_status(session: Session) -> None:
    reply = await _mismatch(session)
    applies(reply.result is None, "the server does not refuse it: headers.server-validates")
    require(reply.status == 400, "status 400 for another method in the header", _status(reply))


@TABLE.add("headers.mismatch-code", on=HTTP)
async def a_mismatch_has_its_code(session: Session) -> None:
    reply = await _mismatch(session)
    applies(reply.result is None, "the server does not refuse it: headers.server-validates")
    code = session.revision.protocol.facts.errors.header_mismatch
    require(reply.code == code, f"error {code} for another method in the header", reply.text)


@TABLE.add("headers.names-case-insensitive", on=HTTP)
async def names_of_fields_have_no_case(session: Session) -> None:
    field = _method_field(session).upper()
    reply = await session.ask(session.liveness, fields={field: session.liveness})
    result_of(reply, f"a request with {field}")


@TABLE.add("headers.values-case-sensitive", on=HTTP)
async def values_of_fields_have_case(session: Session) -> None:
    value = session.liveness.upper()
    reply = await session.ask(session.liveness, fields={_method_field(session): value})
    require(reply.result is None, f"a refusal of the value {value}", reply.text)


def _unknown_tool(session: Session) -> tuple[str, Node, str]:
    applies(session.declares("tools"), "the server declares no tools")
    name = "mcpgen-no-such-tool"
    field = str(session.revision.protocol.facts.headers.name)
    return field, {"name": name, "arguments": {}}, name


@TABLE.add("headers.decode-before-compare", on=HTTP)
async def a_name_may_be_encoded(session: Session) -> None:
    field, params, name = _unknown_tool(session)
    value = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    reply = await session.ask("tools/call", params, fields={field: value})
    code = session.revision.protocol.facts.errors.header_mismatch
    require(reply.code != code, "a name in Base64 to be decoded and compared", reply.text)


@TABLE.add("headers.undecodable-base64", on=HTTP)
async def a_name_that_cannot_be_decoded_is_refused(session: Session) -> None:
    field, params, _ = _unknown_tool(session)
    reply = await session.ask("tools/call", params, fields={field: "=?base64?SGVs!!!bG8=?="})
    code = session.revision.protocol.facts.errors.header_mismatch
    kept = reply.status == 400 and reply.code == code
    require(kept, f"status 400 with error {code} for a name that is no Base64", reply.text)


@TABLE.add("http.no-sessions", on=HTTP)
async def no_session_is_assigned(session: Session) -> None:
    reply = await session.ask(session.liveness)
    actual = reply.fields.get("mcp-session-id")
    require(actual is None, "no session id in the response", format_value(actual))


@TABLE.add("http-compat.session-header-ignored", on=HTTP)
async def a_session_id_is_ignored(session: Session) -> None:
    reply = await session.ask(session.liveness, fields={"Mcp-Session-Id": "mcpgen"})
    result_of(reply, "a request with a session id")


@TABLE.add("http-compat.last-event-id-ignored", on=HTTP)
async def a_last_event_id_is_ignored(session: Session) -> None:
    reply = await session.ask(session.liveness, fields={"Last-Event-ID": "5"})
    result_of(reply, "a request with Last-Event-ID")


# ---- subscriptions
async def _open_subscription(session: Session) -> tuple[Reply, Node]:
    """Open a subscription; return the reply, whose stream stays open, and the request."""
    method = session.revision.protocol.facts.behaviour.listen
    request = session.request(str(method), {"notifications": {"toolsListChanged": True}})
    reply = await session.http.listen(encode(request), request["id"], session.fields_of(request))
    unsupported = reply.code == -32601 and not session.declares("tools.listChanged")
    applies(not unsupported, "the server has no changes to announce")
    return reply, request


@TABLE.add("http.listen-response-stream", on=HTTP)
async def changes_come_on_a_stream(session: Session) -> None:
    reply, request = await _open_subscription(session)
    actual = f"{_status(reply)} with {reply.media_type or 'no type'}"
    require(reply.media_type == STREAM, f"{STREAM} for {request['method']}", actual)


def _first(reply: Reply) -> Node:
    """The first message of a stream."""
    messages = [each.message for each in reply.received if is_object(each.message)]
    applies(reply.media_type == STREAM, "the reply is no stream: http.listen-response-stream")
    require(bool(messages), "an acknowledgement", reply.text)
    return messages[0]


@TABLE.add("subscriptions.ack-first", on=HTTP)
async def an_acknowledgement_comes_first(session: Session) -> None:
    message = _first((await _open_subscription(session))[0])
    actual: Json = message.get("method")
    kept = actual == "notifications/subscriptions/acknowledged"
    require(kept, "notifications/subscriptions/acknowledged first", format_value(message))


@TABLE.add("subscriptions.id-value", on=HTTP)
async def an_acknowledgement_names_its_request(session: Session) -> None:
    reply, request = await _open_subscription(session)
    params: Json = _first(reply).get("params")
    meta: Json = params.get("_meta") if is_object(params) else None
    key = str(session.revision.protocol.facts.meta.subscription_id)
    actual: Json = meta.get(key) if is_object(meta) else None
    require(actual == request["id"], f"{request['id']} as {key}", format_value(actual))


@TABLE.add("http.x-accel-buffering", on=HTTP)
async def streams_are_not_buffered(session: Session) -> None:
    reply, _ = await _open_subscription(session)
    applies(reply.media_type == STREAM, "the reply is no stream: http.listen-response-stream")
    actual = reply.fields.get("x-accel-buffering")
    require(actual == "no", "X-Accel-Buffering: no on a stream", format_value(actual))
