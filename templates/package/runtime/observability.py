"""Middleware for clients and servers: a log record, a span or a measurement for each message.

    server.middleware(log_requests())
    client.middleware(trace_requests())
    server.middleware(measure_requests())

The client's span becomes the parent of the server's span: the configured propagators of
OpenTelemetry write the context to `_meta` and read it there, by default `traceparent`, `tracestate`
and `baggage`. The current span on the server, such as that of the HTTP request, is linked.

Records, spans and measurements hold no arguments, no results, and no error texts, which may quote
arguments.

Source: OpenTelemetry semantic conventions for MCP; basic/index#_meta (2026-07-28, trace context).
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ..channel import RequestId
from ..errors import (
    InvalidParamsError,
    MissingExtraError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
)
from ..facts import Role
from .request_context import PRINCIPAL

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.trace import Link, Span

_PACKAGE = __name__.partition(".")[0]
_REQUESTS = logging.getLogger(f"{_PACKAGE}.requests")

_NAMED: Mapping[str, str] = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
"""The attribute for the target of a method; only targets with few values have one."""


class MiddlewareMessage(Protocol):
    """A request or notification: a `MiddlewareRequest` of a server, or a `ClientRequest`."""

    @property
    def role(self) -> Role:
        """The side that the middleware runs on: `client` sends, `server` handles the message."""
        ...

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        ...

    @property
    def is_notification(self) -> bool:
        """Whether no response is expected."""
        ...

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request; `None` for a notification, and on a client until it was sent."""
        ...

    @property
    def target(self) -> str | None:
        """Name of the tool or prompt, or URI of the resource; `None` if there is none."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta`; on a client only the members that the client adds."""
        ...

    def with_meta(self, meta: Mapping[str, Any]) -> Self:
        """A copy of the message with more members in `_meta`, for `next`."""
        ...

    @property
    def revision(self) -> str:
        """Name of the revision of the message."""
        ...

    @property
    def session_id(self) -> str | None:
        """Id of the session; `None` if it is unknown."""
        ...

    @property
    def transport(self) -> str:
        """Name of the transport, such as `stdio`, `HTTP` and `memory`."""
        ...


Message = TypeVar("Message", bound=MiddlewareMessage)


class TracerProvider(Protocol):
    """A `TracerProvider` of OpenTelemetry; types need no library this way."""

    def get_tracer(self, *args: Any, **options: Any) -> Any:
        """A tracer."""
        ...


class MeterProvider(Protocol):
    """A `MeterProvider` of OpenTelemetry."""

    def get_meter(self, *args: Any, **options: Any) -> Any:
        """A meter."""
        ...


class AnyMiddleware(Protocol):
    """Middleware for `Server.middleware` and for `Client.middleware`."""

    def __call__(
        self, request: Message, next: Callable[[Message], Awaitable[Any]], /
    ) -> Awaitable[Any]:
        """Handle a request or notification, and return the result of `next`."""
        ...


def log_requests(logger: logging.Logger = _REQUESTS, level: int = logging.INFO) -> AnyMiddleware:
    """Middleware that logs each message after its handling, without params and results.

    The text of a record is for people. Its attributes are for programs: `mcp_method`, `mcp_target`
    (tool, prompt or URI), `mcp_outcome` (`ok`, `tool error`, `error` with `mcp_error_code`,
    `cancelled`), `mcp_seconds`, `mcp_request_id`, `mcp_session`, `mcp_revision` and `mcp_subject`
    (of the principal). A session id allows its holder to use the session, so a record has the first
    12 hexadecimal digits of the id's SHA-256 instead.

    Args:
        logger: The logger; `<package>.requests` by default.
        level: Level of the records.
    """

    async def middleware(request: Message, next: Callable[[Message], Awaitable[Any]]) -> Any:
        started = time.perf_counter()
        outcome, code = "cancelled", None
        try:
            result = await next(request)
            outcome = "tool error" if getattr(result, "is_error", False) else "ok"
            return result
        except Exception as error:
            outcome = "error"
            code = error.code if isinstance(error, ProtocolError | RemoteError) else None
            raise
        finally:
            if logger.isEnabledFor(level):
                seconds = time.perf_counter() - started
                _write(logger, level, request, outcome, code, seconds)

    return middleware


def _write(
    logger: logging.Logger,
    level: int,
    request: MiddlewareMessage,
    outcome: str,
    code: int | None,
    seconds: float,
) -> None:
    target = request.target
    extra = {
        "mcp_method": request.method,
        "mcp_target": target,
        "mcp_outcome": outcome,
        "mcp_error_code": code,
        "mcp_seconds": seconds,
        "mcp_request_id": request.request_id,
        "mcp_session": _session_fingerprint(request.session_id),
        "mcp_revision": request.revision,
        "mcp_subject": PRINCIPAL.get().subject or None,
    }
    name = request.method if target is None else f"{request.method} {target!r}"
    logger.log(level, "%s: %s in %.1f ms", name, outcome, seconds * 1000, extra=extra)


def _session_fingerprint(session: str | None) -> str | None:
    """12 hexadecimal digits of a session id's hash, since the id would allow to use the session."""
    return None if session is None else hashlib.sha256(session.encode()).hexdigest()[:12]


def trace_requests(tracer_provider: TracerProvider | None = None) -> AnyMiddleware:
    """Middleware that creates an OpenTelemetry span for each request and notification.

    Spans are named by method and tool or prompt, such as `tools/call forecast`. Without a
    configured SDK of OpenTelemetry, nothing is recorded or sent.

    Args:
        tracer_provider: Creates the tracer; the global provider by default.

    Raises:
        MissingExtraError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        raise MissingExtraError("tracing requests", "opentelemetry-api") from None

    provider: Any = tracer_provider
    tracer = trace.get_tracer(_PACKAGE, tracer_provider=provider)
    kinds = {"client": trace.SpanKind.CLIENT, "server": trace.SpanKind.SERVER}

    async def middleware(request: Message, next: Callable[[Message], Awaitable[Any]]) -> Any:
        received: AbstractContextManager[list[Link]] = nullcontext([])
        if request.role == "server":
            received = _attach_received_context(request)
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
                _set_failed(span, _error_type(error))
                if isinstance(error, ProtocolError | RemoteError):
                    span.set_attribute("rpc.response.status_code", str(error.code))
                raise
            finally:
                if request.request_id is not None:
                    span.set_attribute("jsonrpc.request.id", str(request.request_id))
            if getattr(result, "is_error", False):
                _set_failed(span, "tool_error")
            return result

    return middleware


TRACEPARENT_CHARACTERS = 256
"""Limit of the characters of a `traceparent` that propagators see: one of version 00 has 55."""

TRACE_CHARACTERS = 8_192
"""The same of every other text of `_meta`: `tracestate`, `baggage`, fields of other propagators."""

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Bounds of the buckets of a duration, as the semantic conventions define them."""

_MEASURED = ("mcp.method.name", "mcp.protocol.version", "network.transport", *_NAMED.values())
"""Attributes of a measurement: the attributes of a span with few values."""


def measure_requests(meter_provider: MeterProvider | None = None) -> AnyMiddleware:
    """Middleware that measures each request and notification with meters of OpenTelemetry.

    `mcp.server.operation.duration`, on a client `mcp.client.operation.duration`, is a histogram of
    seconds, whose count is the number of messages; failed messages have `error.type`.
    `mcp.server.active_operations` and `mcp.client.active_operations` are the messages that are
    being handled. A tool or prompt is an attribute only if the server has it, so clients can't
    invent attributes. Without a configured SDK of OpenTelemetry, nothing is recorded.

    Args:
        meter_provider: Creates the meter; the global provider by default.

    Raises:
        MissingExtraError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise MissingExtraError("measuring requests", "opentelemetry-api") from None

    provider: Any = meter_provider
    meter = metrics.get_meter(_PACKAGE, meter_provider=provider)
    durations = {
        role: meter.create_histogram(
            f"mcp.{role}.operation.duration",
            "s",
            "Duration of requests and notifications",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        for role in ("client", "server")
    }
    active = {
        role: meter.create_up_down_counter(
            f"mcp.{role}.active_operations", "{operation}", "Messages that are being handled"
        )
        for role in ("client", "server")
    }

    async def middleware(request: Message, next: Callable[[Message], Awaitable[Any]]) -> Any:
        attributes = {
            name: value for name, value in _attributes(request).items() if name in _MEASURED
        }
        method = {"mcp.method.name": request.method}
        started = time.perf_counter()
        active[request.role].add(1, method)
        try:
            result = await next(request)
            if getattr(result, "is_error", False):
                attributes["error.type"] = "tool_error"
            return result
        except BaseException as error:
            attributes["error.type"] = _error_type(error)
            if isinstance(error, InvalidParamsError):  # the target may be unknown
                attributes = {k: v for k, v in attributes.items() if k not in _NAMED.values()}
            raise
        finally:
            active[request.role].add(-1, method)
            durations[request.role].record(time.perf_counter() - started, attributes)

    return middleware


class CountedApplication(Protocol):
    """An object with counts of open requests: a `Server` or an `AsgiApplication`."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of open `requests`, `sessions` and `streams`."""
        ...


def measure_application(
    application: CountedApplication, meter_provider: MeterProvider | None = None
) -> None:
    """Measure the open requests, sessions and streams of a server over HTTP, by gauges.

    The gauges are `mcp.server.open_requests`, `mcp.server.open_sessions` and
    `mcp.server.open_streams`. They are read whenever the meter provider collects.

    Args:
        application: The result of `Server.asgi`, or a server for its `run(http=...)` and workers;
            each process is measured by itself. Kept as long as the meter provider.
        meter_provider: Creates the meter; the global provider by default.

    Raises:
        MissingExtraError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise MissingExtraError("measuring an application", "opentelemetry-api") from None

    def observe(name: str, options: CallbackOptions) -> list[Observation]:
        return [metrics.Observation(application.counts[name])]

    provider: Any = meter_provider
    meter = metrics.get_meter(_PACKAGE, meter_provider=provider)
    for name in ("requests", "sessions", "streams"):
        meter.create_observable_gauge(
            f"mcp.server.open_{name}", [partial(observe, name)], f"{{{name[:-1]}}}", f"Open {name}"
        )


@contextmanager
def _attach_received_context(request: MiddlewareMessage) -> Generator[list[Link], None, None]:
    """Make the context that a client sent the current context.

    Yields:
        A link to the span that was current before, if it is not the span of the client's context.
    """
    from opentelemetry import context as contexts
    from opentelemetry import propagate, trace

    carrier = {
        key: value
        for key, value in request.meta.items()
        if isinstance(value, str)
        and len(value) <= (TRACEPARENT_CHARACTERS if key == "traceparent" else TRACE_CHARACTERS)
    }
    before = trace.get_current_span().get_span_context()
    token = contexts.attach(propagate.extract(carrier, contexts.get_current()))
    try:
        received = trace.get_current_span().get_span_context()
        yield [trace.Link(before)] if before.is_valid and before != received else []
    finally:
        contexts.detach(token)


def _name(request: MiddlewareMessage) -> str:
    target = request.target if request.method in _NAMED else None
    return request.method if target is None else f"{request.method} {_mask(target)}"


def _attributes(request: MiddlewareMessage) -> dict[str, str]:
    """The attributes that are known before a message is handled."""
    attributes = {"mcp.method.name": request.method, "mcp.protocol.version": request.revision}
    target = request.target
    if target is not None:
        if request.method in _NAMED:
            attributes[_NAMED[request.method]] = _mask(target)
        else:
            attributes["mcp.resource.uri"] = _mask(target.partition("?")[0])
    if request.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    if (session := _session_fingerprint(request.session_id)) is not None:
        attributes["mcp.session.id"] = session
    if request.transport == "HTTP":
        attributes |= {"network.transport": "tcp", "network.protocol.name": "http"}
    elif request.transport == "stdio":
        attributes["network.transport"] = "pipe"
    return attributes


def _mask(text: str) -> str:
    from .masking import mask_text  # its patterns take long to compile

    return mask_text(text)


def _set_failed(span: Span, error_type: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def _error_type(error: BaseException) -> str:
    if isinstance(error, ProtocolError | RemoteError):
        return str(error.code)
    if isinstance(error, RequestTimeoutError):
        return "timeout"
    return type(error).__qualname__
