"""The cells of docs/features.md about the official SDK and FastMCP, run on the installed ones.

A probe uses the feature of a row, and returns whether it is there. Rows without a probe follow the
documentation and the public names of their peer.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import httpx2
import pytest
from fastmcp import Client as FastClient
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from fastmcp.client.group import ClientGroup
from fastmcp.dependencies import CallArgument, Depends
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.auth import StaticTokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier, RSAKeyPair
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware import Middleware as FastMiddleware
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.middleware.error_handling import RetryMiddleware
from fastmcp.server.middleware.rate_limiting import SlidingWindowRateLimitingMiddleware
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool as FastTool
from fastmcp.tools.tool_transform import ArgTransform
from fastmcp.utilities.types import Audio as FastAudio
from fastmcp.utilities.types import File as FastFile
from fastmcp.utilities.types import Image as FastImage
from mcp import Client, ClientSessionGroup, MCPError, StdioServerParameters
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Audio, Elicit, Extension, Image, MCPServer, Resolve
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import Completion, ElicitResult, PromptReference
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from documents import ROOT, tables_of

pytestmark = pytest.mark.interop

FEATURES = {row[0]: row[1:] for row in tables_of(ROOT / "docs" / "features.md")}
COLUMNS = {"SDK": 0, "FastMCP": 1}
REFUSED = (MCPError, ToolError, ValueError)
PNG = b"\x89PNG\r\n\x1a\n"

Probe = Callable[[], Awaitable[bool]]
PROBES: dict[tuple[str, str], Probe] = {}


def probe(peer: str, *rows: str) -> Callable[[Probe], Probe]:
    """Make a function the probe of some rows for a peer."""

    def add(function: Probe) -> Probe:
        PROBES.update({(row, peer): function for row in rows})
        return function

    return add


@pytest.mark.parametrize(("row", "peer"), PROBES, ids=lambda value: str(value))
def test_a_peer_has_the_feature_that_the_table_says(row: str, peer: str) -> None:
    assert anyio.run(PROBES[row, peer]) is (FEATURES[row][COLUMNS[peer]] != "no")


def test_the_document_counts_the_rows_that_are_run() -> None:
    text = (ROOT / "docs" / "features.md").read_text("utf-8")
    assert f"For {len({row for row, _ in PROBES})} rows, a test also runs" in text


class Place(BaseModel):
    """A model within another one."""

    city: str


class Trip(BaseModel):
    """A model."""

    place: Place
    days: Annotated[int, Field(description="How long.", ge=1)] = 1


async def refuses(call: Awaitable[Any]) -> bool:
    """Whether a call is an error, raised or in its result."""
    try:
        return bool((await call).is_error)
    except REFUSED:
        return True


def text_of(result: Any) -> str:
    """The text of the first block of a result."""
    return str(result.content[0].text)


# The same feature on both, spelled in the same way.


def of_both(row: str) -> Callable[[Callable[[Any, Any], Awaitable[bool]]], None]:
    """Make a function of a server and of a client's class the probe of a row for both peers."""

    def add(function: Callable[[Any, Any], Awaitable[bool]]) -> None:
        async def official() -> bool:
            return await function(MCPServer("peer"), Client)

        async def fast() -> bool:
            return await function(FastMCP("peer"), FastClient)

        PROBES.update({(row, "SDK"): official, (row, "FastMCP"): fast})

    return add


async def listed_tools(client: Any) -> list[Any]:
    """The tools that a client of either peer lists."""
    listed = await client.list_tools()
    return list(listed if isinstance(listed, list) else listed.tools)


@of_both("clients of revisions with and without a handshake")
async def negotiates(server: Any, client_of: Any) -> bool:
    spoken = set()
    for mode in ("legacy", "auto"):
        async with client_of(server, mode=mode) as client:
            spoken.add(client.protocol_version)
    return len(spoken) == 2


@of_both("subscriptions")
async def subscribes(server: Any, client_of: Any) -> bool:
    async with client_of(server) as client:
        return bool(client.server_capabilities.resources.subscribe)


@of_both("descriptions of parameters in docstrings")
async def describes(server: Any, client_of: Any) -> bool:
    @server.tool()
    def stay(days: int) -> int:
        """Stay.

        Args:
            days: How long.
        """
        return days

    async with client_of(server) as client:
        [tool] = await listed_tools(client)
    return bool(tool.input_schema["properties"]["days"].get("description") == "How long.")


@of_both("pydantic models and `Field`")
async def takes_models(server: Any, client_of: Any) -> bool:
    @server.tool()
    def book(trip: Trip) -> str:
        assert isinstance(trip, Trip)
        return f"{trip.place.city} {trip.days}"

    async with client_of(server) as client:
        result = await client.call_tool("book", {"trip": {"place": {"city": "Oslo"}}})
        wrong = {"trip": {"place": {"city": "Oslo"}, "days": 0}}
        return text_of(result) == "Oslo 1" and await refuses(client.call_tool("book", wrong))


@of_both("structured results with a schema")
async def structures(server: Any, client_of: Any) -> bool:
    @server.tool()
    def place() -> Place:
        return Place(city="Oslo")

    async with client_of(server) as client:
        [tool] = await listed_tools(client)
        result = await client.call_tool("place", {})
    return "city" in tool.output_schema["properties"] and result.structured_content == {
        "city": "Oslo"
    }


@of_both("definitions inlined in listed schemas, or not by a setting")
async def inlines(server: Any, client_of: Any) -> bool:
    @server.tool()
    def book(trip: Trip) -> str:
        return trip.place.city

    async with client_of(server) as client:
        [tool] = await listed_tools(client)
    return "$ref" not in str(tool.input_schema)


@of_both("plain functions in threads")
async def threads(server: Any, client_of: Any) -> bool:
    @server.tool()
    def thread() -> int:
        return threading.get_ident()

    async with client_of(server) as client:
        result = await client.call_tool("thread", {})
    return int(text_of(result)) != threading.get_ident()


@of_both("items added and removed while served")
async def changes(server: Any, client_of: Any) -> bool:
    def first() -> str:
        return "first"

    async with client_of(server) as client:
        server.add_tool(first)
        names = [tool.name for tool in await listed_tools(client)]
        getattr(server, "local_provider", server).remove_tool("first")
        return names == ["first"] and await refuses(client.call_tool("first", {}))


@of_both("URIs that leave their directory are refused")
async def stays_inside(server: Any, client_of: Any) -> bool:
    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return name

    async with client_of(server) as client:
        await client.read_resource("notes://today")
        try:
            await client.read_resource("notes://..%2Fsecret")
        except REFUSED:
            return True
    return False


@of_both("prompt arguments that are JSON")
async def reads_json_of_prompts(server: Any, client_of: Any) -> bool:
    @server.prompt()
    def total(loans: list[int]) -> str:
        return f"{sum(loans)}"

    async with client_of(server) as client:
        try:
            result = await client.get_prompt("total", {"loans": "[1, 3]"})
        except REFUSED:
            return False
    return bool(result.messages[0].content.text == "4")


@of_both("completion")
async def completes(server: Any, client_of: Any) -> bool:
    @server.prompt()
    def poem(theme: str) -> str:
        return theme

    @server.completion()
    async def suggest(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=["sea"])

    async with client_of(server) as client:
        ref, argument = (
            PromptReference(type="ref/prompt", name="poem"),
            {"name": "theme", "value": ""},
        )
        result = await client.complete(ref=ref, argument=argument)
    return bool(getattr(result, "completion", result).values == ["sea"])


@of_both("middleware")
async def surrounds(server: Any, client_of: Any) -> bool:
    seen = []

    async def observe(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    class Observe(FastMiddleware):
        async def on_request(self, context: Any, call_next: Any) -> Any:
            return await observe(context, call_next)

    if isinstance(server, FastMCP):
        server.add_middleware(Observe())
    else:
        server.middleware.append(observe)
    async with client_of(server) as client:
        await client.list_tools()
    return "tools/list" in seen


@of_both("extensions")
async def extends(server: Any, client_of: Any) -> bool:
    class Loud(Extension):
        identifier = "example.peer/loud"

    class FastLoud(ServerExtension):
        identifier = "example.peer/loud"

    if isinstance(server, FastMCP):
        server.add_extension(FastLoud())
    else:
        server = MCPServer("peer", extensions=[Loud()])
    async with client_of(server) as client:
        return "example.peer/loud" in client.server_capabilities.extensions


@of_both("cache hints")
async def hints(server: Any, client_of: Any) -> bool:
    if isinstance(server, FastMCP):
        server = FastMCP("peer", cache_ttl=5000)
    else:
        server = MCPServer("peer", cache_hints={"tools/list": CacheHint(ttl_ms=5000_000)})
    async with client_of(server) as client:
        return bool((await client.session.list_tools()).ttl_ms == 5000_000)


@of_both("images, audio and files as results")
async def returns_files(server: Any, client_of: Any) -> bool:
    results = [Image(data=PNG, format="png"), Audio(data=b"a", format="wav")]
    kinds = ["image", "audio"]
    if isinstance(server, FastMCP):
        results = [
            FastImage(data=PNG, format="png"),
            FastAudio(data=b"a", format="wav"),
            FastFile(data=b"a", format="pdf"),
        ]
        kinds.append("resource")
    server.tool(name="files")(lambda: results)
    async with client_of(server) as client:
        return [block.type for block in (await client.call_tool("files", {})).content] == kinds


def asgi_of(server: Any) -> Starlette:
    """The application of a server of either peer that answers any revision without a session."""
    is_fast = isinstance(server, FastMCP)
    make = server.http_app if is_fast else server.streamable_http_app
    app: Starlette = make(stateless_http=True, json_response=True)
    return app


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"probe","version":"%s"}}}'
)


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application, whose lifespan runs."""
    transport = httpx2.ASGITransport(app)
    http = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")
    async with app.router.lifespan_context(app), http:
        yield http


@of_both("a limit of a request's size")
async def bounds_bodies(server: Any, client_of: Any) -> bool:
    async with served(asgi_of(server)) as http:
        small = await http.post("/mcp", content=INITIALIZE % "1", headers=HEADERS)
        large = await http.post("/mcp", content=INITIALIZE % ("1" * 2**23), headers=HEADERS)
    assert small.status_code == 200
    return large.status_code == 413


@of_both("checks of Host and Origin")
async def checks_origins(server: Any, client_of: Any) -> bool:
    app = asgi_of(server)
    if isinstance(server, FastMCP):
        app = server.http_app(stateless_http=True, host_origin_protection=True)
    async with served(app) as http:
        headers = {**HEADERS, "origin": "https://evil.example"}
        answer = await http.post("/mcp", content=INITIALIZE % "1", headers=headers)
    return answer.status_code == 403


@of_both("HTTP without sessions, for every revision over HTTP")
async def needs_no_session(server: Any, client_of: Any) -> bool:
    call = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    async with served(asgi_of(server)) as http:
        opened = await http.post("/mcp", content=INITIALIZE % "1", headers=HEADERS)
        headers = {**HEADERS, "mcp-protocol-version": "2025-06-18"}
        listed = await http.post("/mcp", content=call, headers=headers)
    return "mcp-session-id" not in opened.headers and listed.json()["result"] == {"tools": []}


@of_both("routes next to the endpoint")
async def has_routes(server: Any, client_of: Any) -> bool:
    @server.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> Response:
        return PlainTextResponse("well")

    async with served(asgi_of(server)) as http:
        return (await http.get("/health")).text == "well"


# What the peers spell each in its own way.


@probe("SDK", "types without server and client")
async def official_types_alone() -> bool:
    return is_fine("import sys, mcp_types; sys.exit('mcp' in sys.modules)")


LISTS_ON_TRIO = """
import anyio
from {module} import Client
from {server} import {name}

async def main():
    with anyio.fail_after(20):
        async with Client({name}("peer")) as client:
            await client.list_tools()

anyio.run(main, backend="trio")
"""


def is_fine(code: str) -> bool:
    """Whether a program ends without an error."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode == 0


@probe("SDK", "trio as well as asyncio")
async def official_on_trio() -> bool:
    return is_fine(
        LISTS_ON_TRIO.format(module="mcp", server="mcp.server.mcpserver", name="MCPServer")
    )


@probe("FastMCP", "trio as well as asyncio")
async def fast_on_trio() -> bool:
    return is_fine(LISTS_ON_TRIO.format(module="fastmcp", server="fastmcp", name="FastMCP"))


@probe("SDK", "changes announced by other processes")
async def official_announces() -> bool:
    bus = InMemorySubscriptionBus()  # stands for one that processes share
    async with (
        Client(MCPServer("peer", subscriptions=bus)) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        await bus.publish(ToolsListChanged())
        with anyio.fail_after(20):
            return isinstance(await anext(aiter(changes)), ToolsListChanged)


@probe("SDK", "texts converted to other types, or refused by a setting")
async def official_converts() -> bool:
    server = MCPServer("peer")
    server.tool(name="twice")(twice)
    async with Client(server) as client:
        return text_of(await client.call_tool("twice", {"number": "2"})) == "4"


def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


@probe("FastMCP", "texts converted to other types, or refused by a setting")
async def fast_converts_or_refuses() -> bool:
    outcomes = []
    for strict in (False, True):
        server = FastMCP("peer", strict_input_validation=strict)
        server.tool(twice)
        async with FastClient(server) as client:
            outcomes.append(await refuses(client.call_tool("twice", {"number": "2"})))
    return outcomes == [False, True]


@probe("FastMCP", "many tools found by a search (BM25) and called by one tool")
async def fast_searches() -> bool:
    server = FastMCP("peer", transforms=[BM25SearchTransform()])
    server.tool(twice)
    async with FastClient(server) as client:
        names = {tool.name for tool in await client.list_tools()}
        result = await client.call_tool("call_tool", {"name": "twice", "arguments": {"number": 2}})
    return names == {"search_tools", "call_tool"} and text_of(result) == "4"


@probe("FastMCP", "plain functions in the event loop")
async def fast_in_the_loop() -> bool:
    server = FastMCP("peer")
    server.tool(name="thread", run_in_thread=False)(lambda: threading.get_ident())
    async with FastClient(server) as client:
        return int(text_of(await client.call_tool("thread", {}))) == threading.get_ident()


@probe("FastMCP", "a timeout of a tool")
async def fast_times_out() -> bool:
    server = FastMCP("peer")
    server.tool(name="wait", timeout=0.01)(anyio.sleep_forever)
    async with FastClient(server) as client:
        with anyio.fail_after(20):
            return await refuses(client.call_tool("wait", {}))


async def double_of(number: int) -> int:
    """Something that depends on an argument of the call."""
    return 2 * number


@probe("SDK", "dependencies", "dependencies that read arguments of the call")
async def official_depends() -> bool:
    server = MCPServer("peer")

    @server.tool()
    async def report(number: int, double: Annotated[int, Resolve(double_of)]) -> int:
        return number + double

    async with Client(server) as client:
        return text_of(await client.call_tool("report", {"number": 2})) == "6"


@probe("FastMCP", "dependencies", "dependencies that read arguments of the call")
async def fast_depends() -> bool:
    async def double(number: int = CallArgument("number")) -> int:
        return 2 * number

    server = FastMCP("peer")

    @server.tool
    async def report(number: int, other: int = Depends(double)) -> int:
        return number + other

    async with FastClient(server) as client:
        return text_of(await client.call_tool("report", {"number": 2})) == "6"


@probe("FastMCP", "items hidden by name and tag")
async def fast_hides() -> bool:
    server = FastMCP("peer")
    server.tool(twice, tags={"old"})
    server.disable(tags={"old"})
    async with FastClient(server) as client:
        return not await client.list_tools()


@probe("FastMCP", "several versions of a tool")
async def fast_keeps_versions() -> bool:
    server = FastMCP("peer")
    server.tool(name="version", version="1")(lambda: "first")
    server.tool(name="version", version="2")(lambda: "second")
    async with FastClient(server) as client:
        older = await client.call_tool("version", {}, version="1")
        return (text_of(older), text_of(await client.call_tool("version", {}))) == (
            "first",
            "second",
        )


@probe("FastMCP", "tools made from other tools: renamed, with arguments renamed or fixed")
async def fast_makes_tools() -> bool:
    server = FastMCP("peer")
    arguments = {"number": ArgTransform(name="value")}
    server.add_tool(FastTool.from_tool(twice, name="double", transform_args=arguments))
    async with FastClient(server) as client:
        return text_of(await client.call_tool("double", {"value": 2})) == "4"


class Answer(BaseModel):
    """The answer of a form."""

    row: int


async def ask_for_row() -> Elicit[Answer]:
    """Ask for a row."""
    return Elicit("Which row?", Answer)


@probe("SDK", "the same code asks the client in every revision")
async def official_asks() -> bool:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"row": 7})

    server = MCPServer("peer")

    @server.tool()
    async def book(answered: Annotated[Answer, Resolve(ask_for_row)]) -> int:
        return answered.row

    texts = []
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode, elicitation_callback=answer) as client:
            texts.append(text_of(await client.call_tool("book", {})))
    return texts == ["7", "7"]


@probe("FastMCP", "the same code asks the client in every revision")
async def fast_asks() -> bool:
    async def answer(message: Any, kind: Any, params: Any, context: Any) -> Any:
        return kind(value=7)

    server = FastMCP("peer")

    @server.tool
    async def book(ctx: FastContext) -> int:
        return int((await ctx.elicit("Which row?", int)).data)

    refusals = []
    for mode in ("legacy", "auto"):
        async with FastClient(server, mode=mode, elicitation_handler=answer) as client:
            refusals.append(await refuses(client.call_tool("book", {}, raise_on_error=False)))
    assert refusals[0] is False
    return not refusals[1]


@probe("FastMCP", "logging and rate limits as middleware")
async def fast_limits_rates() -> bool:
    server = FastMCP("peer", middleware=[SlidingWindowRateLimitingMiddleware(3)])
    server.tool(twice)
    async with FastClient(server) as client:
        calls = [await refuses(client.call_tool("twice", {"number": 2})) for _ in range(5)]
    return calls[-1]


@probe("FastMCP", "caching and truncation of results as middleware")
async def fast_keeps_results() -> bool:
    server = FastMCP(
        "peer", middleware=[ResponseCachingMiddleware(), ResponseLimitingMiddleware(max_size=200)]
    )
    calls = []

    @server.tool
    def long() -> str:
        calls.append(1)
        return "x" * 1000

    async with FastClient(server) as client:
        texts = {text_of(await client.call_tool("long", {}, raise_on_error=False)) for _ in "ab"}
    return len(calls) == 1 and all(len(text) < 1000 for text in texts)


@probe("FastMCP", "retries as middleware")
async def fast_retries() -> bool:
    server = FastMCP("peer", middleware=[RetryMiddleware(max_retries=2, base_delay=0.001)])
    calls = []

    @server.resource("flaky://one")
    def flaky() -> str:
        calls.append(1)
        if len(calls) < 2:
            raise ConnectionError
        return "done"

    async with FastClient(server) as client:
        return bool((await client.read_resource("flaky://one"))[0].text == "done")


@probe("FastMCP", "a fixed token in one line")
async def fast_knows_a_token() -> bool:
    verifier = StaticTokenVerifier({"secret": {"client_id": "alice", "scopes": ["read"]}})
    token = await verifier.verify_token("secret")
    return token is not None and await verifier.verify_token("other") is None


@probe("FastMCP", "JSON Web Tokens verified")
async def fast_verifies() -> bool:
    pair, other = RSAKeyPair.generate(), RSAKeyPair.generate()
    verifier = JWTVerifier(public_key=pair.public_key, issuer="https://issuer.example")
    good = pair.create_token(issuer="https://issuer.example")
    wrong = other.create_token(issuer="https://issuer.example")
    accepted = await verifier.verify_token(good)
    return accepted is not None and await verifier.verify_token(wrong) is None


@probe("FastMCP", "servers mounted in servers")
async def fast_mounts() -> bool:
    server, other = FastMCP("peer"), FastMCP("other")
    other.tool(twice)
    server.mount(other, namespace="other")
    async with FastClient(server) as client:
        return [tool.name for tool in await client.list_tools()] == ["other_twice"]


@probe("FastMCP", "a proxy")
async def fast_is_a_proxy() -> bool:
    server = FastMCP("peer")
    server.tool(twice)
    async with FastClient(create_proxy(server)) as client:
        return text_of(await client.call_tool("twice", {"number": 2})) == "4"


@probe("FastMCP", "a server from an OpenAPI document")
async def fast_reads_openapi() -> bool:
    operation = {"operationId": "getPet", "responses": {"200": {"description": "A pet."}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "paths": {"/pet": {"get": operation}},
    }
    api = httpx2.AsyncClient(
        base_url="https://api.example",
        transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json={"id": 7})),
    )
    async with FastClient(FastMCP.from_openapi(document, client=api)) as client:
        return bool((await client.call_tool("getPet", {})).structured_content == {"id": 7})


@probe("FastMCP", "values per session")
async def fast_keeps_values() -> bool:
    server = FastMCP("peer")

    @server.tool
    async def count(ctx: FastContext) -> int:
        number = (await ctx.get_state("number") or 0) + 1
        await ctx.set_state("number", number)
        return int(number)

    async with FastClient(server, mode="legacy") as client:
        return [text_of(await client.call_tool("count", {})) for _ in "ab"] == ["1", "2"]


@probe("FastMCP", "items shown to one session")
async def fast_shows_to_one() -> bool:
    server = FastMCP("peer")
    server.tool(twice, tags={"old"})

    @server.tool
    async def tidy(ctx: FastContext) -> None:
        await ctx.disable_components(tags={"old"})

    async with (
        FastClient(server, mode="legacy") as client,
        FastClient(server, mode="legacy") as other,
    ):
        await client.call_tool("tidy", {})
        return [len(await each.list_tools()) for each in (client, other)] == [1, 2]


ECHO = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")
server.tool(name="echo")(lambda text: text)
server.run()
"""


@probe("SDK", "several servers as one client")
async def official_groups() -> bool:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", ECHO])
    prefixes = iter("ab")
    async with ClientSessionGroup(
        component_name_hook=lambda tool, server: f"{next(prefixes)}_{tool}"
    ) as group:
        for _ in "ab":
            await group.connect_to_server(parameters)
        return {*group.tools} == {"a_echo", "b_echo"}


@probe("FastMCP", "several servers as one client")
async def fast_groups() -> bool:
    first, second = FastMCP("first"), FastMCP("second")
    first.tool(twice)
    second.tool(twice)
    async with ClientGroup({"a": FastClient(first), "b": FastClient(second)}) as group:
        return {tool.name for tool in await group.list_tools()} == {"a_twice", "b_twice"}


@probe("FastMCP", "one call cancelled by a method")
async def fast_cancels() -> bool:
    server = FastMCP("peer")
    started, ended = anyio.Event(), anyio.Event()
    ids: list[str] = []

    @server.tool
    async def wait(ctx: FastContext) -> None:
        ids.append(ctx.request_id)
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with FastClient(server, mode="legacy") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "wait")
        await started.wait()
        await client.cancel(int(ids[0]))
        with anyio.move_on_after(2):
            await ended.wait()
        tasks.cancel_scope.cancel()
    return ended.is_set()
