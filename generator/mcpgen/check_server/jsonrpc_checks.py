"""JSON-RPC: ids, errors and their codes, notifications, batches, cancellation, progress tokens."""

from __future__ import annotations

from mcpgen.check_server.connections import Reply, encode
from mcpgen.check_server.outcomes import applies, require, require_error, result_of
from mcpgen.check_server.session import Session
from mcpgen.check_server.table import Table
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_object

TABLE = Table()

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

PROGRESS_TOKENS = ("mcpgen", 0)
"""The progress tokens that checks send."""

UNKNOWN_METHOD = "mcpgen/no-such-method"
UNKNOWN_NOTIFICATION = "notifications/mcpgen-no-such-notification"

LISTS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "prompts": ("prompts/list", "prompts"),
}
"""The request of each list, and the member of its result, by capability."""


@TABLE.add("jsonrpc.request-id-type")
async def strings_and_integers_are_ids(session: Session) -> None:
    for id in ("abc", "", 0, -5, 4294967296):
        reply = await session.ask(session.liveness, id=id)
        require(reply.result is not None, f"a result for the id {format_value(id)}", reply.text)


@TABLE.add("jsonrpc.response-same-id")
async def a_response_repeats_the_id(session: Session) -> None:
    for id in ("7001", 7001):
        reply = await session.ask(session.liveness, id=id)
        actual: Json = reply.answer.get("id") if reply.answer is not None else None
        same = actual == id and type(actual) is type(id)
        require(same, f"a response with the id {format_value(id)}", _id_text(reply.answer))


def _id_text(answer: Node | None) -> str:
    if answer is None:
        return "no answer"
    return f"id {format_value(answer['id'])}" if "id" in answer else "a response without id"


@TABLE.add("jsonrpc.request-id-not-null")
async def null_is_no_id(session: Session) -> None:
    message = {**session.request(session.liveness), "id": None}
    reply = await session.post(message)
    require(reply.result is None, "no result for a request with the id null", reply.text)


@TABLE.add("jsonrpc.request-id-unique-in-flight")
async def an_id_may_be_used_again_after_its_response(session: Session) -> None:
    id = session.new_id()
    for _ in range(2):
        result_of(await session.ask(session.liveness, id=id), f"a request with the id {id}")


@TABLE.add("jsonrpc.error-id-required")
async def an_error_repeats_a_readable_id(session: Session) -> None:
    message = session.request(UNKNOWN_METHOD)
    reply = await session.send(message)
    applies(reply.error is not None, "the server does not answer with an error")
    actual: Json = reply.answer.get("id") if reply.answer is not None else None
    require(
        actual == message["id"], f"an error with the id {message['id']}", _id_text(reply.answer)
    )


@TABLE.add("jsonrpc.error-id-omitted-if-unreadable")
async def an_error_about_unreadable_text_has_no_id(session: Session) -> None:
    reply = await session.post(b"{]")
    _expect_answer(reply)
    has_id = reply.answer is not None and "id" in reply.answer
    require(not has_id, "an error without the member id", _id_text(reply.answer))


@TABLE.add("jsonrpc.notification-no-response")
async def a_notification_is_not_answered(session: Session) -> None:
    reply = await session.post({"jsonrpc": "2.0", "method": UNKNOWN_NOTIFICATION})
    applies(not reply.is_refused, "refused by an HTTP status, which may have a body")
    require(reply.answer is None, "no answer to a notification", reply.text)


@TABLE.add("jsonrpc.code-parse-error")
async def text_that_is_no_json_is_a_parse_error(session: Session) -> None:
    reply = await session.post(b"{]")
    _expect_answer(reply)
    require_error(reply, PARSE_ERROR, what="for text that is no JSON")


def _expect_answer(reply: Reply) -> None:
    """Skip a check unless the server answers a message that is no request, since silence is
    allowed.

    A response needs an id, and not all revisions have responses without one.
    """
    applies(reply.answer is not None, f"the server does not answer: {reply.text}")


@TABLE.add("jsonrpc.code-invalid-request")
async def a_message_that_is_no_request_is_invalid(session: Session) -> None:
    message = {**session.request(session.liveness), "method": 5}
    reply = await session.post(message, session.fields_of(session.request(session.liveness)))
    _expect_answer(reply)
    require_error(reply, INVALID_REQUEST, what="for a method that is a number")


@TABLE.add("jsonrpc.code-method-not-found")
async def an_unknown_method_is_not_found(session: Session) -> None:
    require_error(await session.ask(UNKNOWN_METHOD), METHOD_NOT_FOUND, what="for an unknown method")


@TABLE.add("jsonrpc.code-method-ungated")
async def lists_without_a_capability_are_not_found(session: Session) -> None:
    ungated = [method for name, (method, _) in LISTS.items() if not session.declares(name)]
    applies(bool(ungated), "the server declares tools, resources and prompts")
    for method in ungated:
        reply = await session.ask(method)
        require_error(reply, METHOD_NOT_FOUND, what=f"for {method}, whose capability is missing")


@TABLE.add("jsonrpc.code-invalid-params")
async def params_of_another_type_are_invalid(session: Session) -> None:
    requests: dict[str, tuple[str, Node]] = {
        "tools": ("tools/call", {"arguments": {}}),
        "prompts": ("prompts/get", {"arguments": {}}),
        "resources": ("resources/read", {"uri": 5}),
    }
    declared = [row for name, row in requests.items() if session.declares(name)]
    applies(bool(declared), "the server declares neither tools nor prompts nor resources")
    method, params = declared[0]
    member = "uri" if "uri" in params else "name"
    named = session.revision.protocol.facts.headers.name
    applies(not named or session.transport == "stdio", "a header field would have to match")
    reply = await session.ask(method, params)
    require_error(reply, INVALID_PARAMS, what=f"for {method} without a valid {member}")


def _batch(session: Session) -> tuple[list[Node], list[Json]]:
    requests = [session.request(session.liveness) for _ in range(2)]
    notification: Node = {"jsonrpc": "2.0", "method": UNKNOWN_NOTIFICATION}
    return [requests[0], notification, requests[1]], [each["id"] for each in requests]


@TABLE.add("jsonrpc.batch-receive")
async def requests_of_a_batch_are_answered(session: Session) -> None:
    batch, ids = _batch(session)
    reply = await session.connection.send(encode(batch), ids)
    actual = [
        each.message for each in reply.received if each.is_response and "result" in each.message
    ]
    served = {str(message.get("id")) for message in actual}
    expected = f"results for the ids {format_value(ids)} of a batch"
    require(set(map(str, ids)) <= served, expected, _ids_text(actual, reply.text))


def _ids_text(messages: list[Node], text: str) -> str:
    ids: list[Json] = [message.get("id") for message in messages]
    return f"responses with the ids {format_value(ids)}" if ids else text


@TABLE.add("jsonrpc.batch-response")
async def each_request_of_a_batch_has_one_response(session: Session) -> None:
    batch, ids = _batch(session)
    reply = await session.connection.send(encode(batch), ids)
    actual = [each.message for each in reply.received if each.is_response]
    served = len(actual) >= len(ids)
    applies(served, "the server does not serve batches: jsonrpc.batch-receive")
    expected = f"one response for each of {format_value(ids)}, and none for the notification"
    require(len(actual) == len(ids), expected, _ids_text(actual, reply.text))
    reply = await session.post(b"[]")
    if reply.answer is not None:
        require_error(reply, INVALID_REQUEST, what="for an empty batch")


@TABLE.add("jsonrpc.batch-removed")
async def a_batch_is_not_processed(session: Session) -> None:
    request = session.request(session.liveness)
    fields, id = session.fields_of(request), request["id"]
    if session.transport == "http":
        reply = await session.connection.send(encode([request]), [id], fields)
    else:
        reply = await session.post(encode([request]))
    own = [each for each in reply.received if each.is_response]
    served = [each for each in own if "result" in each.message and each.message.get("id") == id]
    actual = served[0].text if served else ""
    require(not served, "no result for the request of a batch", actual)


@TABLE.add("cancellation.invalid-ignored")
async def cancellations_of_nothing_are_ignored(session: Session) -> None:
    wrong: tuple[Json, ...] = (999_999, "no-such-request", {})
    for params in [{"requestId": id} for id in wrong]:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        reply = await session.post(message)
        expected = f"no answer to a cancellation with the params {format_value(params)}"
        require(reply.answer is None or reply.is_refused, expected, reply.text)
    reply = await session.ask(session.liveness)
    result_of(reply, "the request after these cancellations")


@TABLE.add("progress.token-type")
async def strings_and_integers_are_progress_tokens(session: Session) -> None:
    for token in PROGRESS_TOKENS:
        reply = await session.ask(session.liveness, meta={"progressToken": token})
        result_of(reply, f"a request with the progress token {format_value(token)}")


@TABLE.add("capabilities.server-features-advertised")
async def declared_features_are_there(session: Session) -> None:
    probes: list[tuple[str, str, Node | None]] = [
        (name, method, None) for name, (method, _) in LISTS.items()
    ]
    reference = {"type": "ref/prompt", "name": "mcpgen-no-such-prompt"}
    argument = {"name": "mcpgen", "value": ""}
    probes.append(("completions", "completion/complete", {"ref": reference, "argument": argument}))
    if session.has_handshake:
        probes.append(("logging", "logging/setLevel", {"level": "warning"}))
    declared = [row for row in probes if session.declares(row[0])]
    applies(bool(declared), "the server declares no feature")
    for name, method, params in declared:
        reply = await session.ask(method, params)
        expected = f"an answer to {method}, as the server declares {name}"
        answered = reply.answer is not None and reply.code != METHOD_NOT_FOUND
        require(answered, expected, reply.text)


@TABLE.add(
    "capabilities.server-set-2024",
    "capabilities.server-set-2025",
    "capabilities.server-set-2025-11",
    "capabilities.server-set-2026",
)
async def capabilities_have_their_shape(session: Session) -> None:
    result: Json = session.opening.result
    capabilities: Json = result.get("capabilities") if is_object(result) else None
    wrong = session.revision.violation("ServerCapabilities", capabilities)
    if wrong is not None:
        require(False, f"{wrong.expected} at capabilities{wrong.pointer}", wrong.actual)
