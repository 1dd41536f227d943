"""Middleware of a server, or of a client, that makes an OpenTelemetry span of each message.

    server.middleware(trace_requests())
    client.middleware(trace_requests())

The client's span becomes the parent of the server's: the propagators that OpenTelemetry is set up
with write the context to `_meta` and read it there, by default `traceparent`, `tracestate` and
`baggage`. A span that is current on the server, such as one of the HTTP request, is linked.

Spans hold no arguments, no results and no texts of errors, which may quote arguments.

Source: OpenTelemetry semantic conventions for MCP; basic/index#_meta (2026-07-28, trace context).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, ProtocolError, RemoteError, RequestTimeoutError
from .any_middleware import AnyMiddleware, Message, MiddlewareMessage
from .masking import masked_text
from .request_logging import session_fingerprint

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, TracerProvider

_NAMED: Mapping[str, str] = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
"""The attribute for the target of a method; few values are expected of these."""

_PACKAGE = __name__.partition(".")[0]


def trace_requests(tracer_provider: TracerProvider | None = None) -> AnyMiddleware:
    """Middleware that makes an OpenTelemetry span of each request and notification.

    Spans are named by method and tool or prompt, such as `tools/call forecast`. Without an SDK of
    OpenTelemetry that is set up, nothing is recorded or sent.

    Args:
        tracer_provider: Where the spans go; the global provider by default.

    Raises:
        MissingExtraError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        raise MissingExtraError("tracing requests", "opentelemetry-api") from None

    tracer = trace.get_tracer(_PACKAGE, tracer_provider=tracer_provider)
    kinds = {"client": trace.SpanKind.CLIENT, "server": trace.SpanKind.SERVER}

    async def middleware(request: Message, next: Callable[[Message], Awaitable[Any]]) -> Any:
        received: AbstractContextManager[list[Link]] = nullcontext([])
        if request.role == "server":
            received = _received_context(request)
        with (
            received as links,
            tracer.start_as_current_span(
                _name(request),
                kind=kinds[request.role],
                attributes=_attributes(request),
                links=links,
                record_exception=False,
                set_status_on_exception=False,
            ) as span,
        ):
            if request.role == "client":
                carrier: dict[str, str] = {}
                propagate.inject(carrier)
                request = request.with_meta(carrier) if carrier else request
            try:
                result = await next(request)
            except BaseException as error:
                _fail(span, _error_type(error))
                if isinstance(error, ProtocolError | RemoteError):
                    span.set_attribute("rpc.response.status_code", str(error.code))
                raise
            finally:
                if request.request_id is not None:
                    span.set_attribute("jsonrpc.request.id", str(request.request_id))
            if getattr(result, "is_error", False):
                _fail(span, "tool_error")
            return result

    return middleware


@contextmanager
def _received_context(request: MiddlewareMessage) -> Generator[list[Link], None, None]:
    """Make the context that a client sent the current one.

    Yields:
        A link to the span that was current before, if that is not the one of the context.
    """
    from opentelemetry import context as contexts
    from opentelemetry import propagate, trace

    carrier = {key: value for key, value in request.meta.items() if isinstance(value, str)}
    before = trace.get_current_span().get_span_context()
    token = contexts.attach(propagate.extract(carrier, contexts.get_current()))
    try:
        received = trace.get_current_span().get_span_context()
        yield [trace.Link(before)] if before.is_valid and before != received else []
    finally:
        contexts.detach(token)


def _name(request: MiddlewareMessage) -> str:
    target = request.target if request.method in _NAMED else None
    return request.method if target is None else f"{request.method} {masked_text(target)}"


def _attributes(request: MiddlewareMessage) -> dict[str, str]:
    """What is known before a message is handled."""
    attributes = {"mcp.method.name": request.method, "mcp.protocol.version": request.revision}
    target = request.target
    if target is not None:
        if request.method in _NAMED:
            attributes[_NAMED[request.method]] = masked_text(target)
        else:
            attributes["mcp.resource.uri"] = masked_text(target.partition("?")[0])
    if request.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    if (session := session_fingerprint(request.session_id)) is not None:
        attributes["mcp.session.id"] = session
    if request.transport == "HTTP":
        attributes |= {"network.transport": "tcp", "network.protocol.name": "http"}
    elif request.transport == "stdio":
        attributes["network.transport"] = "pipe"
    return attributes


def _fail(span: Span, error_type: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def _error_type(error: BaseException) -> str:
    if isinstance(error, ProtocolError | RemoteError):
        return str(error.code)
    if isinstance(error, RequestTimeoutError):
        return "timeout"
    return type(error).__qualname__
