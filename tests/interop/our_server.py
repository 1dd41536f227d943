"""A stdio server on the generated package with one of everything, for other people's clients."""

from __future__ import annotations

from mcp_protocol import Context, ProtocolError, Server, ToolError

server = Server("ours", version="1.0", instructions="Ask for a city.")
CITIES = ("Oslo", "Ostrava", "Porto")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await ctx.progress(number, to, f"at {number}")
    return f"counted to {to}"


@server.tool()
async def note(text: str, ctx: Context) -> str:
    """Logs a text to the client."""
    await ctx.warning(text, "notes")
    return "noted"


@server.tool()
async def fail() -> str:
    """Fails on every call."""
    raise ToolError("out of order")


@server.tool()
async def refuse() -> str:
    """Refuses with a JSON-RPC error."""
    raise ProtocolError("not today", code=1050, data={"retry": False})


@server.tool()
async def shout(text: str) -> str:
    """Prints, which must not reach the client."""
    print(text, flush=True)
    return "shouted"


@server.resource("city://list", mime_type="text/plain")
def cities() -> str:
    """The cities, one per line."""
    return "\n".join(CITIES)


@server.resource("city://{name}/weather", mime_type="text/plain")
def weather(name: str) -> str:
    """The weather of a city."""
    return f"sun in {name}"


@server.resource("city://map", mime_type="image/png")
def picture() -> bytes:
    """A map."""
    return b"\x89PNG"


@server.prompt()
def greet(city: str) -> str:
    """A greeting from a city."""
    return f"Greetings from {city}"


@server.completion(prompt="greet", argument="city")
def complete_greeting(value: str) -> list[str]:
    return [city for city in CITIES if city.startswith(value)]


@server.completion(template="city://{name}/weather", argument="name")
def complete_name(value: str) -> list[str]:
    return [city for city in CITIES if city.startswith(value)]


if __name__ == "__main__":
    server.run()
