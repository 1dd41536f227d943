"""A client without an event loop, as users write it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, assert_type

from mcpgen_runtime import (
    Change,
    NotificationFilter,
    RequestContext,
    ResourceUpdated,
    SyncClient,
    SyncClientHandlers,
    connect_sync,
    models,
)
from mcpgen_runtime.r2025_06_18 import models as own
from mcpgen_runtime.r2025_06_18.client_sync import SyncClient as SyncClientOfOne


class Handlers(SyncClientHandlers):
    def list_roots(
        self,
        params: models.RequestParams | models.ListRootsRequestParams | None,
        ctx: RequestContext,
    ) -> models.ListRootsResult:
        return models.ListRootsResult(roots=[models.Root(uri="file:///home")])

    async def elicit(
        self, params: models.ElicitRequestParams, ctx: RequestContext
    ) -> models.ElicitResult:
        return models.ElicitResult(action="decline")

    def tool_list_changed(
        self, params: models.NotificationParams | None, ctx: RequestContext
    ) -> Awaitable[None] | None:
        return None


def told(progress: float, total: float | None, message: str | None) -> None:
    print(progress, total, message)


def listening() -> None:
    client = connect_sync("http://127.0.0.1:8000/mcp", headers={"X": "y"}, handlers=Handlers())
    assert_type(client, SyncClient)
    client.call_tool("forecast", on_progress=told)
    with client.listen(tools=True, uris=["memo://one"]) as changes:
        assert_type(changes.agreed, NotificationFilter)
        for change in changes:
            assert_type(change, Change)
            if isinstance(change, ResourceUpdated):
                assert_type(change.uri, str)
                break
    client.close()


def one_revision() -> None:
    with connect_sync(["python", "weather.py"], revision="2025-06-18", handlers=Handlers()) as one:
        assert_type(one, SyncClientOfOne)
        assert_type(one.list_tools(), list[own.Tool])
        result = one.call_tool("forecast", {"city": "Oslo"}, on_progress=told)
        assert_type(result, own.CallToolResult)
        assert_type(one.list_tools_page(), own.ListToolsResult)
        reference = own.PromptReference(name="compare")
        argument = own.CompleteRequestParamsArgument(name="first", value="O")
        completed = one.complete(ref=reference, argument=argument)
        assert_type(completed.completion.values, list[str])


def whichever(revision: str) -> None:
    with connect_sync("http://127.0.0.1:8000/mcp", revision="handshake") as client:
        assert_type(client, SyncClient)
    assert_type(connect_sync("http://127.0.0.1:8000/mcp", revision=revision), Any)
