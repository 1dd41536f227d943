"""Logs, spans and metrics about messages, on both sides, and the trace context between them."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
import pytest
from opentelemetry import baggage, context, propagate
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from kit.asgi_client import asgi
from kit.live import live
from kit.wire import HANDSHAKE, both_lifecycles
from mcpgen_runtime import (
    InvalidParamsError,
    MissingExtraError,
    RemoteError,
    RequestTimeoutError,
    Server,
    ToolError,
    connect,
    connect_sync,
    log_requests,
    measure_application,
    measure_requests,
    trace_requests,
)
from mcpgen_runtime.facts import Role
from mcpgen_runtime.runtime import observability

FINGERPRINT = hashlib.sha256(b"session").hexdigest()[:12]


@dataclass(frozen=True)
class Call:
    """A message as middleware gets it."""

    role: Role = "server"
    method: str = "tools/call"
    target: str | None = "add"
    request_id: int | str | None = 7
    meta: Mapping[str, Any] = field(default_factory=dict)
    revision: str = "a revision"
    session_id: str | None = None
    transport: str = "memory"
    is_notification: bool = False

    def with_meta(self, meta: Mapping[str, Any]) -> Call:
        """See `MiddlewareMessage`."""
        return replace(self, meta={**self.meta, **meta})


async def run(middleware: Any, call: Call, outcome: Any = None) -> None:
    """Pass a message through middleware; its handling returns or raises an outcome."""

    async def handle(_: Call) -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    if isinstance(outcome, BaseException):
        with pytest.raises(type(outcome)) as caught:
            await middleware(call, handle)
        assert caught.value is outcome
    else:
        assert await middleware(call, handle) is outcome


SUCCESS, TOOL_ERROR = SimpleNamespace(is_error=False), SimpleNamespace(is_error=True)
REFUSED = RemoteError(-32000, "no", None, "tools/call")
INVALID = InvalidParamsError("no")
LATE = RequestTimeoutError("tools/call", 2)


@pytest.mark.parametrize(
    ("outcome", "shown", "code"),
    [
        (SUCCESS, "ok", None),
        (TOOL_ERROR, "tool error", None),
        (REFUSED, "error", -32000),
        (INVALID, "error", -32602),
        (KeyboardInterrupt(), "cancelled", None),
    ],
)
async def test_a_record_has_the_outcome_and_the_time(
    outcome: Any, shown: str, code: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await run(log_requests(), Call(session_id="session"), outcome)
    (record,) = caplog.records
    members = {name: value for name, value in vars(record).items() if name.startswith("mcp_")}
    milliseconds = 1000 * members.pop("mcp_seconds")
    assert record.getMessage() == f"tools/call 'add': {shown} in {milliseconds:.1f} ms"
    assert (record.name, record.levelno) == ("mcpgen_runtime.requests", logging.INFO)
    assert members == {
        "mcp_method": "tools/call",
        "mcp_target": "add",
        "mcp_outcome": shown,
        "mcp_error_code": code,
        "mcp_request_id": 7,
        "mcp_session": FINGERPRINT,
        "mcp_revision": "a revision",
        "mcp_subject": None,
    }


async def test_logger_and_level_are_those_of_the_user(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("own")
    caplog.set_level(logging.INFO, logger="own")
    for level in (logging.DEBUG, logging.WARNING):
        await run(log_requests(logger, level), Call(target=None))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert caplog.records[0].getMessage().startswith("tools/call: ok in ")


async def span_of(call: Call, outcome: Any = None) -> ReadableSpan:
    """The span of a message."""
    spans = Spans()
    await run(trace_requests(spans.provider), call, outcome)
    (span,) = spans.all()
    return span


NAMED = {"mcp.method.name": "tools/call", "mcp.protocol.version": "a revision"}
TOOL = {**NAMED, "gen_ai.tool.name": "add", "gen_ai.operation.name": "execute_tool"}


@pytest.mark.parametrize(
    ("call", "name", "attributes"),
    [
        (Call(), "tools/call add", TOOL),
        (Call(target=None), "tools/call", {**NAMED, "gen_ai.operation.name": "execute_tool"}),
        (
            Call(method="prompts/get"),
            "prompts/get add",
            {**NAMED, "mcp.method.name": "prompts/get", "gen_ai.prompt.name": "add"},
        ),
        (
            Call(method="resources/read", target="a://b?c=d?e"),
            "resources/read",
            {**NAMED, "mcp.method.name": "resources/read", "mcp.resource.uri": "a://b"},
        ),
        (Call(target="password=x"), "tools/call password=***", {**TOOL, "gen_ai.tool.name": ...}),
        (Call(session_id="session"), "tools/call add", {**TOOL, "mcp.session.id": FINGERPRINT}),
        (Call(transport="stdio"), "tools/call add", {**TOOL, "network.transport": "pipe"}),
        (
            Call(transport="HTTP"),
            "tools/call add",
            {**TOOL, "network.transport": "tcp", "network.protocol.name": "http"},
        ),
    ],
)
async def test_a_span_is_named_by_method_and_target(
    call: Call, name: str, attributes: Mapping[str, Any]
) -> None:
    span = await span_of(call)
    assert span.name == name
    shown = {"gen_ai.tool.name": "password=***"} if ... in attributes.values() else {}
    assert span.attributes == {**attributes, **shown, "jsonrpc.request.id": "7"}
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "mcpgen_runtime"
    assert "jsonrpc.request.id" not in (
        (await span_of(replace(call, request_id=None))).attributes or {}
    )


@pytest.mark.parametrize(
    ("outcome", "attributes"),
    [
        (None, {}),
        (SUCCESS, {}),
        (TOOL_ERROR, {"error.type": "tool_error"}),
        (REFUSED, {"error.type": "-32000", "rpc.response.status_code": "-32000"}),
        (INVALID, {"error.type": "-32602", "rpc.response.status_code": "-32602"}),
        (LATE, {"error.type": "timeout"}),
        (ValueError("secret"), {"error.type": "ValueError"}),
        (anyio.EndOfStream("secret"), {"error.type": "EndOfStream"}),
    ],
)
async def test_a_failed_span_has_the_type_of_the_error_alone(
    outcome: Any, attributes: Mapping[str, str]
) -> None:
    span = await span_of(Call(), outcome)
    added = dict((span.attributes or {}).items() - TOOL.items())
    assert added == {"jsonrpc.request.id": "7", **attributes}
    status = StatusCode.ERROR if attributes else StatusCode.UNSET
    assert (span.status.status_code, span.status.description, span.events) == (status, None, ())


@pytest.mark.parametrize("enable", [trace_requests, measure_requests, measure_application])
def test_without_opentelemetry_its_package_is_named(
    enable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match="opentelemetry-api"):
        enable(*([SimpleNamespace(counts={})] if enable is measure_application else []))


SECRET = "hunter2"


class Spans:
    """A tracer provider that keeps the spans in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def all(self) -> tuple[ReadableSpan, ...]:
        """Spans of requests, in the order in which they ended."""
        ended = self._exporter.get_finished_spans()
        return tuple(each for each in ended if not each.name.startswith("notifications/"))

    def named(self, name: str, kind: SpanKind) -> ReadableSpan:
        """The only span of a name and kind."""
        (span,) = (each for each in self.all() if (each.name, each.kind) == (name, kind))
        return span


@pytest.fixture
def spans() -> Spans:
    return Spans()


def weather(spans: Spans) -> Server:
    server = Server("weather")
    server.middleware(trace_requests(spans.provider))

    @server.tool()
    async def forecast(city: str) -> str:
        with spans.tracer.start_as_current_span("look up"):
            return f"sun over {city}, for {baggage.get_baggage('user')}"

    @server.tool()
    async def fail(password: str) -> str:
        raise ToolError(f"{password} is wrong")

    @server.resource("weather://{user}@oslo{?token}")
    def now(user: str, token: str) -> str:
        return "sun"

    return server


def is_parent(parent: ReadableSpan, child: ReadableSpan) -> bool:
    """Whether a span has another one as its parent."""
    assert parent.context is not None
    assert child.parent is not None
    found = (child.parent.trace_id, child.parent.span_id)
    return found == (parent.context.trace_id, parent.context.span_id)


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


CALL = "tools/call forecast"


@pytest.mark.requirement("meta.trace-value-format", "meta.trace-keys-reserved")
@both_lifecycles
async def test_the_client_span_is_the_parent_of_the_server_span(
    spans: Spans, revision: str
) -> None:
    async with live(weather(spans), revision) as (client, record):
        client.middleware(trace_requests(spans.provider))
        token = context.attach(baggage.set_baggage("user", "ann"))
        with spans.tracer.start_as_current_span("agent"):
            result = await client.call_tool("forecast", {"city": "Oslo"})
        context.detach(token)
        (params,) = record.sent_as("tools/call")
    assert result.content[0].text == "sun over Oslo, for ann"
    assert params["_meta"].keys() >= {"traceparent", "baggage"}
    agent = spans.named("agent", SpanKind.INTERNAL)
    sent, served = spans.named(CALL, SpanKind.CLIENT), spans.named(CALL, SpanKind.SERVER)
    assert is_parent(agent, sent)
    assert is_parent(sent, served)
    assert is_parent(served, spans.named("look up", SpanKind.INTERNAL))
    expected = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": "forecast",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": attributes(sent)["jsonrpc.request.id"],
    }
    assert attributes(sent) == expected
    session = {"mcp.session.id"} if revision in HANDSHAKE else set[str]()
    assert attributes(served).keys() == expected.keys() | session
    assert attributes(served).items() >= expected.items()


@both_lifecycles
async def test_over_http_the_span_has_the_client_as_parent_and_a_link(
    spans: Spans, revision: str
) -> None:
    app = weather(spans).asgi(hosts=["app"])

    async def instrumented(scope: Any, receive: Any, send: Any) -> None:
        with spans.tracer.start_as_current_span("POST", context=context.Context()):
            await app(scope, receive, send)

    transport = httpx2.ASGITransport(instrumented)
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        connect("http://app/mcp", http_client=http, revision=revision) as client,
    ):
        client.middleware(trace_requests(spans.provider))
        await client.call_tool("forecast", {"city": "Oslo"})
    sent, served = spans.named(CALL, SpanKind.CLIENT), spans.named(CALL, SpanKind.SERVER)
    assert is_parent(sent, served)
    linked = {(link.context.trace_id, link.context.span_id) for link in served.links}
    posted = [span.context for span in spans.all() if span.name == "POST" and span.context]
    assert len(linked) == 1
    assert linked <= {(each.trace_id, each.span_id) for each in posted}
    for span in (sent, served):
        assert attributes(span)["network.transport"] == "tcp"
        assert attributes(span)["network.protocol.name"] == "http"


async def test_a_malformed_context_makes_the_span_a_root(spans: Spans) -> None:
    async with live(weather(spans), HANDSHAKE[-1]) as (client, _):
        await client.call_tool("forecast", {"city": "Oslo"}, meta={"traceparent": "00-no"})
    assert spans.named(CALL, SpanKind.SERVER).parent is None


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("traceparent", observability.TRACEPARENT_CHARACTERS),
        ("tracestate", observability.TRACE_CHARACTERS),
        ("baggage", observability.TRACE_CHARACTERS),
        ("b3", observability.TRACE_CHARACTERS),
    ],
)
async def test_long_trace_fields_are_not_read(spans: Spans, field: str, limit: int) -> None:
    seen: dict[str, str] = {}

    def extract(carrier: Any, context: Any = None, getter: Any = None) -> Context:
        seen.update(carrier)
        return context or Context()

    propagator: Any = SimpleNamespace(extract=extract, inject=lambda *_, **__: None, fields=set())
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(propagator)
    try:
        async with live(weather(spans), HANDSHAKE[0]) as (client, _):
            for length in (limit, limit + 1):
                await client.call_tool("forecast", {"city": "Oslo"}, meta={field: "x" * length})
    finally:
        propagate.set_global_textmap(before)
    assert {name: len(value) for name, value in seen.items()} == {field: limit}


def test_spans_of_a_blocking_client_have_the_span_of_the_caller(spans: Spans) -> None:
    with connect_sync(weather(spans)) as client:
        client.middleware(trace_requests(spans.provider))
        with spans.tracer.start_as_current_span("agent"):
            client.call_tool("forecast", {"city": "Oslo"})
    agent, sent = spans.named("agent", SpanKind.INTERNAL), spans.named(CALL, SpanKind.CLIENT)
    assert is_parent(agent, sent)
    assert is_parent(sent, spans.named(CALL, SpanKind.SERVER))


@both_lifecycles
async def test_requests_are_measured_on_both_sides_with_their_errors(
    spans: Spans, revision: str
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    server = weather(spans)
    server.middleware(measure_requests(provider))
    async with connect(server, revision=revision) as client:
        client.middleware(measure_requests(provider))
        for _ in range(2):
            await client.call_tool("forecast", {"city": SECRET})
        await client.call_tool("fail", {"password": SECRET})
        with pytest.raises(RemoteError):
            await client.call_tool(f"made up {SECRET}", {})
        await client.read_resource(f"weather://ann@oslo?token={SECRET}")
    data: Any = reader.get_metrics_data()
    (scope,) = data.resource_metrics[0].scope_metrics
    metrics = {each.name: each.data.data_points for each in scope.metrics}
    for role in ("client", "server"):
        counts = {
            (
                point.attributes["mcp.method.name"],
                point.attributes.get("gen_ai.tool.name"),
                point.attributes.get("error.type"),
            ): point.count
            for point in metrics[f"mcp.{role}.operation.duration"]
            if not point.attributes["mcp.method.name"].startswith("notifications/")
        }
        unknown = f"made up {SECRET}" if role == "client" else None
        assert counts == {
            ("tools/call", "forecast", None): 2,
            ("tools/call", "fail", "tool_error"): 1,
            ("tools/call", unknown, "-32602"): 1,
            ("resources/read", None, None): 1,
        }
        active = metrics[f"mcp.{role}.active_operations"]
        assert {point.value for point in active} == {0}
    point = metrics["mcp.server.operation.duration"][0]
    assert point.attributes["mcp.protocol.version"] == revision
    bounds = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
    assert point.explicit_bounds == bounds


@pytest.mark.parametrize("whole_server", [False, True])
async def test_open_sessions_and_streams_are_measured(spans: Spans, whole_server: bool) -> None:
    reader = InMemoryMetricReader()
    server = weather(spans)
    application = server.asgi()
    measure_application(server if whole_server else application, MeterProvider([reader]))

    def measured() -> dict[str, int]:
        data: Any = reader.get_metrics_data()
        metrics = data.resource_metrics[0].scope_metrics[0].metrics
        return {each.name: each.data.data_points[0].value for each in metrics}

    def expected(sessions: int, streams: int) -> dict[str, int]:
        names = ("mcp.server.open_requests", "mcp.server.open_sessions", "mcp.server.open_streams")
        return dict(zip(names, (0, sessions, streams), strict=True))

    async with asgi(application) as http:
        assert measured() == expected(0, 0)
        await http.initialize(HANDSHAKE[-1])
        assert measured() == expected(1, 0)
        async with http.stream("GET") as stream:
            assert stream.status == 200
            assert measured() == expected(1, 1)
    assert measured() == expected(0, 0)
