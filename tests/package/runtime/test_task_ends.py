"""Changes of the record of a task at the end of its request, and the response made from it."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpgen_runtime import InvalidParamsError, ProtocolError, TaskRecord
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.served_task import changes_at_end, has_ended, result_of, unknown_task

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]
REVISION = REVISIONS["2025-11-25"]


def record(**members: Any) -> TaskRecord:
    """A record of a task."""
    return TaskRecord(
        task_id="t", owner="", created=0, updated=0, ttl_ms=None, poll_interval_ms=1, **members
    )


OPEN: dict[str, Any] = {"input_requests": None}


@pytest.mark.parametrize(
    ("result", "error", "changes"),
    [
        ({"a": 1}, None, {"status": "completed", "result": {"a": 1}}),
        (
            None,
            ProtocolError("no", code=-32050, data=[1]),
            {
                "status": "failed",
                "error": {"code": -32050, "message": "no", "data": [1]},
                "message": "no",
            },
        ),
        (
            None,
            ValueError("secret"),
            {
                "status": "failed",
                "error": {"code": -32603, "message": "the task failed"},
                "message": "the task failed",
            },
        ),
    ],
)
async def test_a_request_ends_its_task_by_its_outcome(
    result: Any, error: Exception | None, changes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert changes_at_end(anyio.CancelScope(), result, error, REVISION) == {**OPEN, **changes}
    logged = [(record.name, record.levelno) for record in caplog.records]
    unexpected = isinstance(error, ValueError)
    assert logged == [("mcpgen_runtime.runtime.served_task", logging.ERROR)] * unexpected


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_cancelled_task_is_told_from_one_that_took_too_long(is_late: bool) -> None:
    now = anyio.current_time()
    with anyio.CancelScope(deadline=now if is_late else now + 60) as scope:
        scope.cancel()
        await anyio.sleep_forever()
    changes = changes_at_end(scope, None, None, REVISION)
    if is_late:
        text = "the task took longer than its time to live"
        error = {"code": -32603, "message": text}
        assert changes == {**OPEN, "status": "failed", "error": error, "message": text}
    else:
        assert changes == {**OPEN, "status": "cancelled"}


RELATED = {"task": "t"}


@pytest.mark.parametrize(
    ("members", "result"),
    [
        ({"status": "completed"}, {"_meta": RELATED}),
        (
            {"status": "completed", "result": {"a": 1, "_meta": {"b": 2, "task": "x"}}},
            {"a": 1, "_meta": {"b": 2, "task": "t"}},
        ),
    ],
)
def test_the_result_of_a_task_names_it(members: Any, result: Any) -> None:
    assert result_of(record(**members), RELATED) == result


@pytest.mark.parametrize("data", [{}, {"data": None}, {"data": [1]}])
def test_the_error_of_a_task_is_raised(data: Any) -> None:
    failed = record(status="failed", error={"code": -32050, "message": "no", **data})
    with pytest.raises(ProtocolError) as caught:
        result_of(failed, RELATED)
    error = caught.value
    assert (error.code, error.message) == (-32050, "no")
    plain = ProtocolError("no", code=-32050, **data)
    assert error.data == plain.data


def test_a_task_without_a_result_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidParamsError, match=r"^taskId: the task was cancelled, so it has no"):
        result_of(record(status="cancelled", result={"a": 1}), RELATED)
    assert str(unknown_task("x\n")).endswith(
        r"taskId: expected that of a task that has not expired, got 'x\n'"
    )
    ended = record(status="completed", result={"isError": True})
    assert str(has_ended(ended)).endswith("expected a task that has not ended, got one failed")
