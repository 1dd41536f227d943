"""Settings of a server over HTTP: what is refused when the application is made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.faults import refusals
from kit.web import Web
from kit.wire import SESSIONS
from mcpgen_runtime import Limits


@pytest.mark.parametrize("field", [each.name for each in dataclasses.fields(Limits)])
def test_a_limit_has_to_be_above_zero(field: str) -> None:
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"Limits\.{field}: expected more than 0, got"):
            Limits(**{field: value})
    assert getattr(Limits(**{field: 1}), field) == 1


OPTIONS: list[dict[str, Any]] = [
    *({"path": "mcp"}, {"sse_path": "sse"}, {"messages_path": ""}, {"answers": "xml"}),
    *({"keep_alive": 0}, {"retry": 0}, {"sse_path": "/mcp"}, {"sse_path": "/messages"}),
    *({"sessions": "sealed"}, {"sessions": "shared"}, {"stateless": True, "sessions": "sealed"}),
    *({"sse_path": "/sse", **more} for more in ({"stateless": True}, {"sessions": "sealed"})),
]


def test_settings_that_mean_nothing_are_refused(snapshot: SnapshotAssertion) -> None:
    assert refusals(lambda options: Web().server.asgi(**options), OPTIONS) == snapshot


def test_transports_that_no_revision_has_are_refused() -> None:
    with pytest.raises(ValueError, match="none of the revisions that are served has HTTP"):
        Web().only(SESSIONS[-1], sse_path="/sse")
