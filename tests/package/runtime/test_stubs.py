"""The rendered stubs: messages that they send and refuse to send, and handlers that they find."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import module_of
from kit.wire import ALL, every
from mcpgen_runtime import (
    REVISIONS,
    ClientHandlers,
    InvalidParamsError,
    MethodNotFoundError,
    RequestContext,
)
from mcpgen_runtime.facts import Revision
from mcpgen_runtime.runtime.stubs import typed_params

ASKING = tuple(name for name in ALL if "sampling/createMessage" in REVISIONS[name].server_requests)
NEWEST = ALL[-1]


@pytest.mark.parametrize(
    ("revision", "method", "fields", "error"),
    [
        (ALL[0], "completion/complete", {"context": {}}, "has no 'context'"),
        (NEWEST, "tools/call", {"arguments": {}}, "tools/call: .*name"),
        (NEWEST, "tools/call", {"name": "a", "meat": {}}, "has no 'meat'"),
    ],
)
def test_params_that_do_not_fit_the_revision_are_not_sent(
    revision: str, method: str, fields: Any, error: str
) -> None:
    with pytest.raises(InvalidParamsError, match=error):
        typed_params(REVISIONS[revision].client_requests[method], fields, revision)


@every
async def test_a_handler_that_is_not_overridden_is_none(revision: str) -> None:
    known: Revision = REVISIONS[revision]
    for handlers, methods in (
        (module_of(revision, "server").ServerHandlers(), known.client_requests),
        (module_of(revision, "client").ClientHandlers(), known.server_requests),
        (ClientHandlers(), known.server_notifications),
    ):
        for method in methods.values():
            assert handlers.mcp_handler(method) is None
            assert callable(getattr(handlers, method.python_name))


async def test_a_stub_refuses_a_request_and_ignores_a_notification() -> None:
    stubs: Any = ClientHandlers()
    with pytest.raises(MethodNotFoundError, match="roots/list"):
        await stubs.list_roots(None, None)
    assert await stubs.tool_list_changed(None, None) is None


async def test_overrides_of_an_indirect_subclass_count() -> None:
    class Answering(ClientHandlers):
        async def create_message(self, params: Any, ctx: RequestContext) -> Any: ...

    class More(Answering):
        async def tool_list_changed(self, params: Any, ctx: RequestContext) -> None: ...

    known = REVISIONS[ASKING[0]]
    seen = {
        name
        for name, method in {**known.server_requests, **known.server_notifications}.items()
        if More().mcp_handler(method) is not None
    }
    assert seen == {"sampling/createMessage", "notifications/tools/list_changed"}
