"""Records of logs, traces and meters about one message, member by member."""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from mcpgen_runtime import log_requests, measure_application, measure_requests, trace_requests
from mcpgen_runtime.errors import (
    InvalidParamsError,
    MissingExtraError,
    RemoteError,
    RequestTimeoutError,
)
from mcpgen_runtime.facts import Role

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]

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


@dataclass(frozen=True)
class Outcome:
    """The result of a tool."""

    is_error: bool


async def run(middleware: Any, call: Call, outcome: Any = None) -> None:
    """Pass a message through middleware; its handling returns or raises an outcome."""

    async def handle(_: Call) -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    await expect(middleware, call, handle, outcome)


async def expect(middleware: Any, call: Call, handle: Any, outcome: Any) -> None:
    """Check that middleware passes on the outcome of a handler unchanged."""
    if isinstance(outcome, BaseException):
        with pytest.raises(type(outcome)) as caught:
            await middleware(call, handle)
        assert caught.value is outcome
    else:
        assert await middleware(call, handle) is outcome


REFUSED = RemoteError(-32000, "no", None, "tools/call")
INVALID = InvalidParamsError("no")
LATE = RequestTimeoutError("tools/call", 2)
CANCELLED = KeyboardInterrupt()


@pytest.mark.parametrize(
    ("outcome", "shown", "code"),
    [
        (None, "ok", None),
        (Outcome(False), "ok", None),
        (Outcome(True), "tool error", None),
        (REFUSED, "error", -32000),
        (INVALID, "error", -32602),
        (ValueError("no"), "error", None),
        (CANCELLED, "cancelled", None),
    ],
)
async def test_a_record_has_the_outcome_and_the_time(
    outcome: Any,
    shown: str,
    code: int | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    await run(log_requests(), Call(session_id="session"), outcome)
    monkeypatch.undo()
    (record,) = caplog.records
    assert record.getMessage() == f"tools/call 'add': {shown} in 2500.0 ms"
    assert (record.name, record.levelno) == ("mcpgen_runtime.requests", logging.INFO)
    members = {name: value for name, value in vars(record).items() if name.startswith("mcp_")}
    assert members == {
        "mcp_method": "tools/call",
        "mcp_target": "add",
        "mcp_outcome": shown,
        "mcp_error_code": code,
        "mcp_seconds": 2.5,
        "mcp_request_id": 7,
        "mcp_session": FINGERPRINT,
        "mcp_revision": "a revision",
        "mcp_subject": None,
    }


@pytest.mark.parametrize(("level", "count"), [(logging.DEBUG, 0), (logging.WARNING, 1)])
async def test_logger_and_level_are_those_of_the_user(
    level: int, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("own")
    caplog.set_level(logging.INFO, logger="own")
    await run(log_requests(logger, level), Call(target=None))
    assert [record.name for record in caplog.records] == ["own"] * count
    assert all(record.getMessage().startswith("tools/call: ok in ") for record in caplog.records)


async def span_of(call: Call, outcome: Any = None) -> ReadableSpan:
    """The span of a message."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    await run(trace_requests(provider), call, outcome)
    (span,) = exporter.get_finished_spans()
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
        (Outcome(False), {}),
        (Outcome(True), {"error.type": "tool_error"}),
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


def metrics_in(reader: InMemoryMetricReader) -> dict[str, Any]:
    """The metrics of the package by name."""
    data: Any = reader.get_metrics_data()
    (scope,) = data.resource_metrics[0].scope_metrics
    assert scope.scope.name == "mcpgen_runtime"
    return {each.name: each for each in scope.metrics}


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize(
    ("outcome", "attributes"),
    [
        (None, {"gen_ai.tool.name": "add"}),
        (Outcome(False), {"gen_ai.tool.name": "add"}),
        (Outcome(True), {"gen_ai.tool.name": "add", "error.type": "tool_error"}),
        (REFUSED, {"gen_ai.tool.name": "add", "error.type": "-32000"}),
        (INVALID, {"error.type": "-32602"}),
        (LATE, {"gen_ai.tool.name": "add", "error.type": "timeout"}),
        (CANCELLED, {"gen_ai.tool.name": "add", "error.type": "KeyboardInterrupt"}),
    ],
)
async def test_a_message_is_measured_while_and_after_it_is_handled(
    role: Role, outcome: Any, attributes: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    middleware = measure_requests(MeterProvider([reader]))
    active: list[tuple[int, Any]] = []

    async def handle(_: Call) -> Any:
        (point,) = metrics_in(reader)[f"mcp.{role}.active_operations"].data.data_points
        active.append((point.value, dict(point.attributes)))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    clock = iter([10.0, 12.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    await expect(middleware, Call(role, session_id="session", transport="stdio"), handle, outcome)
    monkeypatch.undo()
    assert active == [(1, {"mcp.method.name": "tools/call"})]
    metrics = metrics_in(reader)
    (point,) = metrics[f"mcp.{role}.active_operations"].data.data_points
    assert (point.value, metrics[f"mcp.{role}.active_operations"].unit) == (0, "{operation}")
    duration = metrics[f"mcp.{role}.operation.duration"]
    (point,) = duration.data.data_points
    assert (duration.unit, point.count, point.sum) == ("s", 1, 2.5)
    assert dict(point.attributes) == {**NAMED, "network.transport": "pipe", **attributes}


@dataclass(frozen=True)
class Application:
    """An application with open requests."""

    counts: Mapping[str, int]


def test_gauges_count_what_is_open() -> None:
    reader = InMemoryMetricReader()
    counts = {"requests": 3, "sessions": 2, "streams": 1}
    measure_application(Application(counts), MeterProvider([reader]))
    gauges = metrics_in(reader)
    assert {
        name: (gauge.unit, gauge.description, [point.value for point in gauge.data.data_points])
        for name, gauge in gauges.items()
    } == {
        "mcp.server.open_requests": ("{request}", "Open requests", [3]),
        "mcp.server.open_sessions": ("{session}", "Open sessions", [2]),
        "mcp.server.open_streams": ("{stream}", "Open streams", [1]),
    }


@pytest.mark.parametrize("enable", [trace_requests, measure_requests, measure_application])
def test_without_opentelemetry_its_package_is_named(
    enable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match="opentelemetry-api"):
        enable(*([Application({})] if enable is measure_application else []))
