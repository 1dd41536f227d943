"""Rules of Streamable HTTP: statuses, types, sessions, header fields, streams, origins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generator.check_server.rows import (
    CAPABLE,
    CHANGED,
    NEW,
    OK,
    OLD,
    OLDEST,
    PREFIX,
    STREAM,
    VERSION,
    anonymous,
    broken,
    kept,
    refused,
    rule,
    skipped,
)
from generator.check_server.tiny_http import (
    ACKNOWLEDGED,
    METHOD,
    NAME,
    ORIGIN,
    PROTOCOL,
    SESSION,
    HttpDefect,
    Request,
    Response,
    TinyHttp,
)
from generator.check_server.tiny_server import MISMATCH, UNSUPPORTED, meta_of

OPENED = (OK, 202)
"""The responses that open another session."""
BODY = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
UNKNOWN = "mcpgen/no-such-method"
KEY = f"{PREFIX}subscriptionId"


def respond(change: Callable[[Request, Response], object]) -> HttpDefect:
    """Change responses."""

    def changed(tiny: TinyHttp, request: Request) -> Response:
        response = tiny.serve(request)
        change(request, response)
        return response

    return changed


def status(old: int, new: int, when: Callable[[Request], Any] = lambda request: True) -> HttpDefect:
    """Change a status, of all requests or some."""

    def change(request: Request, response: Response) -> None:
        if response.status == old and when(request):
            response.status = new

    return respond(change)


def read(change: Callable[[Request], object]) -> HttpDefect:
    """Change requests before they are served."""

    def changed(tiny: TinyHttp, request: Request) -> Response:
        change(request)
        return tiny.serve(request)

    return changed


def answer(when: Callable[[Request], Any], response: Callable[[], Response]) -> HttpDefect:
    """Answer some requests in another way."""
    return lambda tiny, request: response() if when(request) else tiny.serve(request)


def take_method(when: Callable[[Request], Any]) -> HttpDefect:
    """Ignore the field of the method in some requests."""
    return read(
        lambda request: request.fields.update({METHOD: request.method} if when(request) else {})
    )


def is_other_method(request: Request) -> bool:
    return request.fields.get(METHOD) == UNKNOWN != request.method


def without_session(tiny: TinyHttp, request: Request) -> Response:
    """Serve requests without an id in the first session."""
    if tiny.sessions and request.method != "initialize":
        request.fields.setdefault(SESSION, next(iter(tiny.sessions)))
    return tiny.serve(request)


def new_ids(id: Callable[[int], str]) -> HttpDefect:
    """Give sessions ids by their number."""

    def serve(tiny: TinyHttp, request: Request) -> Response:
        tiny.new_id = lambda: id(len(tiny.sessions))
        return tiny.serve(request)

    return serve


def left_open(request: Request, response: Response) -> None:
    if "result" in str(response.messages):
        response.media_type = "text/event-stream"
        response.stays_open = True


def foreign_name(request: Request) -> None:
    if "!!!" in request.fields.get(NAME, ""):
        request.fields[NAME] = request.message["params"]["name"]


def encoded_name(tiny: TinyHttp, request: Request) -> Response:
    is_encoded = request.fields.get(NAME, "").startswith("=?base64?")
    return tiny.mismatch(request) if is_encoded else tiny.serve(request)


def acknowledged(change: Callable[[Request, list[Any]], object]) -> HttpDefect:
    """Change the messages of a subscription."""

    def changed(request: Request, response: Response) -> None:
        if response.messages and response.messages[0].get("method") == ACKNOWLEDGED:
            change(request, response.messages)

    return respond(changed)


def as_event(request: Request, response: Response) -> None:
    if response.messages:
        response.media_type, response.event_id = "text/event-stream", "1"


def plain_text(request: Request, response: Response) -> None:
    if response.media_type == "application/json":
        response.media_type = "text/plain"


RULES = [
    rule(
        "http.endpoint-post-get", over_http=status(405, 404, lambda request: request.verb == "GET")
    ),
    rule(
        "http.get-reply",
        broken(*OPENED, (201, b"", STREAM)),
        skipped(*OPENED, 404),
        over_http=status(405, 200, lambda request: request.verb == "GET"),
    ),
    rule(
        "http-compat.get-delete-405",
        skipped(spoken=("2025-06-18", OLD, NEW)),
        over_http=status(405, 404),
    ),
    rule("http.post-202", over_http=status(202, 200)),
    rule("http.post-202-batch", kept(202), broken(200)),
    rule("http.post-202-notification", skipped(400), over_http=status(202, 200)),
    rule(
        "http.post-unacceptable-status",
        broken(600),
        over_http=status(
            400, 200, lambda request: request.body and b'"method"' not in request.body
        ),
    ),
    rule("http.request-reply-type", broken((200, b"", STREAM)), over_http=respond(plain_text)),
    *(
        rule(id, kept((200, BODY, STREAM)), over_http=respond(left_open))
        for id in ("http.stream-end-after-response", "http.final-response-ends-stream")
    ),
    rule(
        "http.independent-process",
        kept(*OPENED, OK, OK, refused(1)),
        broken(*OPENED, OK, refused(1)),
    ),
    rule("http.utf8", kept(OK), broken(anonymous(1))),
    rule(
        "transport-security.validate-origin",
        skipped(OK, revision=OLDEST),
        over_http=read(lambda request: request.fields.pop(ORIGIN, None)),
    ),
    rule("transport-security.origin-403", skipped(OK), over_http=status(403, 401)),
    rule(
        "transport-security.session-id-nondeterministic",
        *(
            kept((200, OK, {"MCP-Session-Id": second}), 202, session_id=first)
            for first, second in (("s1000", "s2000"), ("s1", "t2"), ("s1", "s"), ("s", "s1"))
        ),
        *(
            broken((200, OK, {"MCP-Session-Id": second}), 202, session_id=first)
            for first, second in (("s", "s"), ("s1000", "s1999"), ("s1999", "s1000"))
        ),
        broken(*OPENED, session_id=""),
        skipped(),
        over_http=new_ids(lambda number: f"session-{number}"),
    ),
    rule(
        "http.session-id-charset",
        kept(session_id="!~"),
        broken(session_id="a\x7f"),
        skipped(),
        over_http=new_ids(lambda number: f"{number} x"),
    ),
    rule("http.session-id-missing-400", over_http=without_session),
    rule(
        "http.session-gone-404",
        skipped(),
        skipped(*OPENED, 300, session_id="a"),
        skipped(*OPENED, 405, session_id="a"),
        over_http=answer(lambda request: request.verb == "DELETE", lambda: Response(200)),
    ),
    rule(
        "http.no-sessions",
        over_http=respond(lambda request, response: response.fields.update({SESSION: "a"})),
    ),
    rule(
        "http-compat.session-header-ignored",
        over_http=answer(lambda request: SESSION in request.fields, lambda: Response(400)),
    ),
    rule(
        "http.version-header-invalid-400",
        over_http=read(lambda request: request.fields.update({PROTOCOL: OLD})),
    ),
    rule("http.version-header-missing-default", kept(OK), broken(refused(1))),
    rule(
        "http.version-header-missing-reject",
        broken((400, refused(UNSUPPORTED))),
        skipped(spoken=("2025-06-18", OLD, NEW)),
        over_http=read(lambda request: request.fields.setdefault(PROTOCOL, NEW)),
    ),
    rule(
        "http.version-header-mismatch",
        over_http=read(
            lambda request: request.fields.update(
                {PROTOCOL: meta_of(request.message)[VERSION]}
                if PROTOCOL in request.fields and VERSION in meta_of(request.message)
                else {}
            )
        ),
    ),
    rule(
        "http.version-unsupported",
        broken((400, refused(UNSUPPORTED, data={}))),
        over_http=respond(
            lambda request, response: setattr(
                response, "status", 200 if response.code == UNSUPPORTED else response.status
            )
        ),
    ),
    rule("http.unknown-method-404", over_http=status(404, 200)),
    rule(
        "http.missing-meta-400",
        over_http=status(
            400,
            200,
            lambda request: (
                VERSION in meta_of(request.message) and CAPABLE not in meta_of(request.message)
            ),
        ),
    ),
    rule(
        "headers.missing-required",
        broken((400, refused(UNSUPPORTED))),
        over_http=take_method(lambda request: METHOD not in request.fields),
    ),
    rule("headers.server-validates", over_http=take_method(is_other_method)),
    rule("headers.mismatch-status-400", skipped(OK), over_http=status(400, 422, is_other_method)),
    rule(
        "headers.mismatch-code",
        skipped(OK),
        over_http=respond(
            lambda request, response: (
                is_other_method(request) and response.messages[0]["error"].update(code=-32602)
            )
        ),
    ),
    rule(
        "headers.names-case-insensitive",
        over_http=lambda tiny, request: (
            tiny.mismatch(request) if "MCP-METHOD" in request.names else tiny.serve(request)
        ),
    ),
    rule(
        "headers.values-case-sensitive",
        over_http=take_method(lambda request: request.fields.get(METHOD, "").isupper()),
    ),
    rule("headers.decode-before-compare", over_http=encoded_name),
    rule(
        "headers.undecodable-base64",
        broken((200, refused(MISMATCH))),
        skipped(capabilities={}),
        over_http=read(foreign_name),
    ),
    rule(
        "http-compat.last-event-id-ignored",
        over_http=answer(lambda request: "last-event-id" in request.fields, lambda: Response(400)),
    ),
    rule(
        "http.event-id-unique",
        kept(["a", "b", "", ""], ["b", "a"]),
        broken(["a"], ["c", "b", "a", "b", "c"]),
        over_http=respond(as_event),
    ),
    rule(
        "http.no-resumability",
        over_http=respond(lambda request, response: setattr(response, "event_id", "1")),
    ),
    rule(
        "http.listen-response-stream",
        skipped((404, refused(-32601))),
        over_http=lambda tiny, request: (
            Response(404, [{"jsonrpc": "2.0", "id": request.message["id"], **refused(-32601)}])
            if request.method == "subscriptions/listen"
            else tiny.serve(request)
        ),
    ),
    rule(
        "subscriptions.ack-first",
        broken((200, b"", STREAM)),
        skipped(OK),
        over_http=acknowledged(
            lambda request, messages: messages.insert(
                0, {**CHANGED, "params": {"_meta": {KEY: request.message["id"]}}}
            )
        ),
    ),
    rule(
        "subscriptions.id-value",
        over_http=acknowledged(
            lambda request, messages: messages[0]["params"]["_meta"].update(
                {KEY: str(request.message["id"])}
            )
        ),
    ),
    rule(
        "http.x-accel-buffering",
        skipped(OK),
        over_http=respond(lambda request, response: response.fields.clear()),
    ),
]
