"""A server on the generated package with one of everything, for other people's clients."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated

import anyio
from msgspec import Meta

from mcpgen_runtime import (
    Context,
    ProtocolError,
    Server,
    ToolError,
    URLElicitation,
    URLElicitationRequiredError,
)

RETRY_SECONDS = 0.1
PAUSE_SECONDS = 0.02
"""After a report: the SDKs for TypeScript forget progress that comes along with the answer."""

CITIES = ("Oslo", "Ostrava", "Porto")

server = Server("ours", version="1.0", instructions="Ask for a city.", subscribe=True)
ended: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
paid: set[str] = set()


@dataclass
class Guest:
    """A visitor."""

    name: str
    nights: int = 2


async def ask(question: str, ctx: Context) -> str:
    """Ask the user for a visitor; the name and nights, or the user's other action."""
    answer = await ctx.elicit(question, Guest)
    if answer.content is None:
        return answer.action
    return f"{answer.content.name} ({answer.content.nights})"


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await ctx.progress(number, to, f"at {number}")
        await anyio.sleep(PAUSE_SECONDS)
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


@server.tool()
async def district(
    city: str, area: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Area"})]
) -> str:
    """Takes an argument that HTTP clients repeat in a header field."""
    return f"{area} of {city}"


@server.tool()
async def book(ctx: Context) -> str:
    """Asks the user for a name."""
    return f"booked for {await ask('Who is coming?', ctx)}"


@server.tool()
async def book_twice(ctx: Context) -> str:
    """Asks the user for two names, one after the other."""
    first = await ask("Who is coming?", ctx)
    second = await ask(f"Who else, beside {first}?", ctx)
    return f"booked for {first}, then {second}"


@server.tool()
async def translate(text: str, ctx: Context) -> str:
    """Asks the client's model."""
    answer = await ctx.sample(text, max_tokens=50)
    return f"{answer.model} says: {answer.text}"


@server.tool()
async def folders(ctx: Context) -> str:
    """Asks for the client's roots."""
    return " ".join(root.uri for root in await ctx.list_roots())


@server.tool()
async def plan(ctx: Context) -> str:
    """Asks for everything at once."""
    asks = (ask("Who is coming?", ctx), ctx.sample("sun", max_tokens=50), ctx.list_roots())
    guest, answer, roots = await ctx.ask_all(*asks)
    return f"{guest}, {answer.text}, {roots[0].uri}"


@server.tool()
async def sign_in(ctx: Context) -> str:
    """Sends the user to a web page, and tells the client once that is done."""
    identifier = f"sign-in-{ctx.request_id}"
    answer = await ctx.elicit_url(
        "Please sign in", "https://city.example/sign-in", elicitation_id=identifier
    )
    await server.elicitation_complete(identifier)
    return answer.action


@server.tool()
async def enter(name: str) -> str:
    """Wants a fee to be paid first, on a web page; then it lets in."""
    if name not in paid:
        paid.add(name)
        page = URLElicitation("Please pay", "https://city.example/fee", f"fee-{name}")
        raise URLElicitationRequiredError(page)
    return "welcome"


@server.tool()
async def wait(name: str, ctx: Context) -> str:
    """Waits to be cancelled, and reports progress once it does."""
    await ctx.progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        ended[name].set()
    return "never"


@server.tool()
async def was_cancelled(name: str) -> bool:
    """Whether the `wait` of that name has ended, or does soon."""
    with anyio.move_on_after(20):
        await ended[name].wait()
    return ended.pop(name).is_set()


@server.tool()
async def change() -> str:
    """Adds a tool, a prompt and a resource, and takes them away again."""
    server.tool("brief")(picture)
    server.remove_tool("brief")
    server.prompt("brief")(greet)
    server.remove_prompt("brief")
    server.resource("city://brief")(cities)
    server.remove_resource("city://brief")
    return "changed"


@server.tool()
async def update(uri: str) -> str:
    """Tells who subscribed to a resource that it changed."""
    server.resource_updated(uri)
    return "updated"


@server.tool()
async def part(ctx: Context) -> str:
    """Closes the stream that it is answered on, so that the client has to come back."""
    await ctx.progress(1)
    await ctx.close_stream()
    return "met again"


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
@server.completion(template="city://{name}/weather", argument="name")
def complete(value: str) -> list[str]:
    return [city for city in CITIES if city.startswith(value)]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    else:
        server.run(http=sys.argv[1], sse_path="/sse", retry=RETRY_SECONDS)
