"""A client as users write it: of whatever revision, and of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never, assert_type

from mcpgen_runtime import (
    Caching,
    Client,
    ListeningAgain,
    NotificationFilter,
    PromptsChanged,
    RemoteError,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
    connect,
    safe_icons,
)
from mcpgen_runtime.r2025_06_18 import models
from mcpgen_runtime.r2025_06_18.client import Client as ClientOfOne


async def whatever_revision() -> list[str]:
    async with connect(["python", "weather.py"]) as client:
        assert_type(client, Client)
        names = [tool.name for tool in await client.list_tools()]
        page = await client.list_tools_page()
        names += [tool.name for tool in page.tools]
        try:
            result = await client.call_tool("forecast", {"city": "Oslo"}, timeout=10)
        except RemoteError as error:
            return [f"{error.code}: {error.message}"]
        for block in result.content:
            if block.type == "text":
                names.append(block.text)
    return names


async def one_revision() -> None:
    async with connect(["python", "weather.py"], revision="2025-06-18") as client:
        assert_type(client, ClientOfOne)
        assert_type(await client.list_tools(), list[models.Tool])
        result = await client.call_tool("forecast", {"city": "Oslo"})
        assert_type(result, models.CallToolResult)
        assert_type(result.is_error, bool | None)
        read = await client.read_resource("weather://Oslo/now")
        for content in read.contents:
            if isinstance(content, models.TextResourceContents):
                assert_type(content.text, str)
        reference = models.PromptReference(name="compare")
        argument = models.CompleteRequestParamsArgument(name="first", value="O")
        completed = await client.complete(ref=reference, argument=argument)
        assert_type(completed.completion.values, list[str])


async def listening() -> None:
    async with connect(["python", "weather.py"], cache=Caching(entries=16)) as client:
        client.cache.clear()
        async with client.listen(tools=True, uris=["weather://Oslo/now"], timeout=5) as changes:
            assert_type(changes.agreed, NotificationFilter)
            async for change in changes:
                match change:
                    case ToolsChanged() | PromptsChanged() | ResourcesChanged() | ListeningAgain():
                        pass
                    case ResourceUpdated(uri=uri):
                        assert_type(uri, str)
                    case _:
                        assert_never(change)
        for tool in await client.list_tools():
            print([icon.src for icon in safe_icons(tool.icons, "https://a.example")])


async def extra_members() -> None:
    async with connect(["python", "weather.py"], extra=True) as client:
        for tool in await client.list_tools():
            assert_type(tool.extra, Mapping[str, Any])
            if tool.annotations is not None:
                print(tool.annotations.extra.get("category"))
    async with connect(["python", "weather.py"], revision="2025-06-18", extra=True) as one:
        for each in await one.list_tools():
            assert_type(each.extra, Mapping[str, Any])
        print((await one.call_tool("forecast")).extra)
