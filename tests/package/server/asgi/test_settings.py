"""Settings of a server over HTTP: what is refused when the application is made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kit.web import Web
from kit.wire import SESSIONS
from mcpgen_runtime import Limits


@pytest.mark.parametrize("field", [each.name for each in dataclasses.fields(Limits)])
def test_a_limit_has_to_be_above_zero(field: str) -> None:
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"Limits\.{field}: expected more than 0, got"):
            Limits(**{field: value})
    assert getattr(Limits(**{field: 1}), field) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": "mcp"}, "path: expected a path that begins with '/'"),
        ({"sse_path": "sse"}, "sse_path: expected"),
        ({"messages_path": ""}, "messages_path: expected"),
        ({"answers": "xml"}, "answers: expected one of auto, json, sse"),
        ({"keep_alive": 0}, "keep_alive: expected more than 0"),
        ({"retry": 0}, "retry: expected more than 0"),
        ({"sse_path": "/mcp"}, "differ"),
        ({"sse_path": "/messages"}, "differ"),
        ({"sessions": "sealed"}, r"expected a key that all processes have, Server\(state_key="),
        ({"sse_path": "/sse", "stateless": True}, "stateless: HTTP\\+SSE has sessions only"),
        ({"sse_path": "/sse", "sessions": "sealed"}, "sessions='sealed': HTTP\\+SSE has sessions"),
        ({"stateless": True, "sessions": "sealed"}, "a stateless server has none"),
        ({"sessions": "shared"}, r"sessions: expected one of \('process', 'sealed'\), got"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Web().server.asgi(**options)


def test_transports_that_no_revision_has_are_refused() -> None:
    with pytest.raises(ValueError, match="none of the revisions that are served has HTTP"):
        Web().only(SESSIONS[-1], sse_path="/sse")
