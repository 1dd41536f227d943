"""Type errors in a client."""

from __future__ import annotations

from mcpgen_runtime import SyncClient, connect, connect_sync
from mcpgen_runtime.r2025_06_18 import models


async def one_revision() -> None:
    async with connect(["python", "weather.py"], revision="2025-06-18") as client:
        await client.call_tool()  # expect: error
        await client.call_tool(7)  # expect: error
        await client.call_tool("forecast", ["Oslo"])  # expect: error
        await client.call_tool("forecast", timeout="10")  # expect: error
        await client.discover()  # expect: error
        number = await client.call_tool("forecast", returns=int)
        number.upper()  # expect: error
        result = await client.call_tool("forecast")
        result.isError  # expect: error
        result.data = 1  # expect: error
        result.is_error = True  # expect: error
        result.content[0].text  # expect: error
        tools = await client.list_tools()
        tools[0].nmae  # expect: error
        length: int = len(tools[0].title)  # expect: error
        print(length)
        await client.set_level("loud")  # expect: error


def messages() -> None:
    models.TextContent()  # expect: error
    models.TextContent("hello")  # expect: error
    models.TextContent(text="hello", colour="red")  # expect: error
    models.TextContent(text=None)  # expect: error
    models.PromptMessage(role="robot", content=models.TextContent(text=""))  # expect: error


async def whatever_revision() -> None:
    async with connect("python weather.py", revision=2025) as _:  # expect: error
        pass
    await connect(["python", "weather.py"])  # expect: error
    async with connect(7):  # expect: error
        pass


async def listening() -> None:
    async with connect(["python", "weather.py"], cache=5) as _:  # expect: error
        pass
    async with connect(["python", "weather.py"]) as client:
        async with client.listen(tools="yes") as changes:  # expect: error
            async for change in changes:
                change.uri  # expect: error
            for change in changes:  # expect: error
                pass
        async with client.listen(["memo://one"]):  # expect: error
            pass


def blocking() -> None:
    connect_sync(["python", "weather.py"], backend="gevent")  # expect: error
    with connect_sync(["python", "weather.py"]) as client:
        client.call_tool()  # expect: error
        result = client.call_tool("forecast")
        result.isError  # expect: error
        client.list_tools()[0].nmae  # expect: error


def blocking_in_one_revision() -> None:
    with connect_sync(["python", "weather.py"], revision="2025-06-18") as client:
        client.discover()  # expect: error
        client.call_tool("forecast", ["Oslo"])  # expect: error
        client.list_tools()[0].icons  # expect: error
        client.list_tools()[0].extra["category"] = "new"  # expect: error
        client.list_tools()[0].extra[7]  # expect: error
    connect_sync(["python", "weather.py"], revision=2025)  # expect: error
    connect_sync(["python", "weather.py"], extra="yes")  # expect: error


async def not_awaitable(client: SyncClient) -> None:
    await client.list_tools()  # expect: error
