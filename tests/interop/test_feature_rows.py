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
from functools import partial
from typing import Annotated, Any, TypeVar

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
from interop.protected import text_of

pytestmark = pytest.mark.interop

FEATURES = {row[0]: row[1:] for row in tables_of(ROOT / "docs" / "features.md")}
COLUMNS = {"SDK": 0, "FastMCP": 1}
REFUSED = (MCPError, ToolError, ValueError)
PNG = b"\x89PNG\r\n\x1a\n"

PROBES: dict[tuple[str, str], Callable[[], Awaitable[bool]]] = {}

Function = TypeVar("Function", bound=Callable[..., Awaitable[bool]])


def sdk(*rows: str, **options: Any) -> Callable[[Function], Function]:
    """Make a function of a server and its client the probe of some rows for the official SDK."""
    return _probe("SDK", rows, lambda: MCPServer("peer", **options), Client)


def fast(*rows: str, mode: Any = "auto", **options: Any) -> Callable[[Function], Function]:
    """Make a function of a server and its client the probe of some rows for FastMCP."""
    client_of = partial(FastClient, mode=mode)
    return _probe("FastMCP", rows, lambda: FastMCP("peer", **options), client_of)


def _probe(
    peer: str, rows: tuple[str, ...], make: Callable[[], Any], client_of: Any
) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        async def probe() -> bool:
            server = make()
            async with client_of(server) as client:
                return await function(server, client)

        PROBES.update({(row, peer): probe for row in rows})
        return function

    return add


def both(*rows: str) -> Callable[[Function], Function]:
    """Make a function of a server and its client the probe of some rows for both peers."""
    return lambda function: fast(*rows)(sdk(*rows)(function))


@pytest.mark.parametrize(("row", "peer"), PROBES, ids=str)
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


def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


async def refuses(call: Awaitable[Any]) -> bool:
    """Whether a call is an error, raised or in its result."""
    try:
        result = await call
    except REFUSED:
        return True
    return bool(getattr(result, "is_error", False))


async def listed_tools(client: Any) -> list[Any]:
    """The tools that a client of either peer lists."""
    listed = await client.list_tools()
    return list(getattr(listed, "tools", listed))


# The same feature on both, spelled in the same way.


@both("clients of revisions with and without a handshake")
async def negotiates(server: Any, client: Any) -> bool:
    spoken = set()
    for mode in ("legacy", "auto"):
        async with type(client)(server, mode=mode) as other:
            spoken.add(other.protocol_version)
    return len(spoken) == 2


@both("subscriptions")
async def subscribes(server: Any, client: Any) -> bool:
    return bool(client.server_capabilities.resources.subscribe)


@both("descriptions of parameters in docstrings")
async def describes(server: Any, client: Any) -> bool:
    @server.tool()
    def stay(days: int) -> int:
        """Stay.

        Args:
            days: How long.
        """
        return days

    [tool] = await listed_tools(client)
    return bool(tool.input_schema["properties"]["days"].get("description") == "How long.")


@both("pydantic models and `Field`")
async def takes_models(server: Any, client: Any) -> bool:
    @server.tool()
    def book(trip: Trip) -> str:
        assert isinstance(trip, Trip)
        return f"{trip.place.city} {trip.days}"

    wrong = {"trip": {"place": {"city": "Oslo"}, "days": 0}}
    text = await text_of(client, "book", trip={"place": {"city": "Oslo"}})
    return text == "Oslo 1" and await refuses(client.call_tool("book", wrong))


@both("structured results with a schema")
async def structures(server: Any, client: Any) -> bool:
    @server.tool()
    def place() -> Place:
        return Place(city="Oslo")

    [tool] = await listed_tools(client)
    result = await client.call_tool("place", {})
    return "city" in tool.output_schema["properties"] and result.structured_content == {
        "city": "Oslo"
    }


@both("definitions inlined in listed schemas, or not by a setting")
async def inlines(server: Any, client: Any) -> bool:
    @server.tool()
    def book(trip: Trip) -> str:
        return trip.place.city

    [tool] = await listed_tools(client)
    return "$ref" not in str(tool.input_schema)


def thread() -> int:
    return threading.get_ident()


@both("plain functions in threads")
async def threads(server: Any, client: Any) -> bool:
    server.tool()(thread)
    return int(await text_of(client, "thread")) != threading.get_ident()


@both("items added and removed while served")
async def changes(server: Any, client: Any) -> bool:
    server.add_tool(twice)
    names = [tool.name for tool in await listed_tools(client)]
    getattr(server, "local_provider", server).remove_tool("twice")
    return names == ["twice"] and await refuses(client.call_tool("twice", {"number": 1}))


@both("URIs that leave their directory are refused")
async def stays_inside(server: Any, client: Any) -> bool:
    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return name

    await client.read_resource("notes://today")
    return await refuses(client.read_resource("notes://..%2Fsecret"))


@both("prompt arguments that are JSON")
async def reads_json_of_prompts(server: Any, client: Any) -> bool:
    @server.prompt()
    def total(loans: list[int]) -> str:
        return f"{sum(loans)}"

    try:
        result = await client.get_prompt("total", {"loans": "[1, 3]"})
    except REFUSED:
        return False
    return bool(result.messages[0].content.text == "4")


@both("completion")
async def completes(server: Any, client: Any) -> bool:
    server.prompt(name="poem")(lambda theme: theme)

    @server.completion()
    async def suggest(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=["sea"])

    ref = PromptReference(type="ref/prompt", name="poem")
    result = await client.complete(ref=ref, argument={"name": "theme", "value": ""})
    return bool(getattr(result, "completion", result).values == ["sea"])


@both("middleware")
async def surrounds(server: Any, client: Any) -> bool:
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
    await client.list_tools()
    return "tools/list" in seen


class Loud(Extension):
    identifier = "example.peer/loud"


class FastLoud(ServerExtension):
    identifier = "example.peer/loud"


@both("extensions")
async def extends(server: Any, client: Any) -> bool:
    if isinstance(server, FastMCP):
        server = FastMCP("peer")
        server.add_extension(FastLoud())
    else:
        server = MCPServer("peer", extensions=[Loud()])
    async with type(client)(server) as other:
        return "example.peer/loud" in other.server_capabilities.extensions


@sdk("cache hints", cache_hints={"tools/list": CacheHint(ttl_ms=5000_000)})
@fast("cache hints", cache_ttl=5000)
async def hints(server: Any, client: Any) -> bool:
    return bool((await client.session.list_tools()).ttl_ms == 5000_000)


@both("images, audio and files as results")
async def returns_files(server: Any, client: Any) -> bool:
    is_fast = isinstance(server, FastMCP)
    image, audio = (FastImage, FastAudio) if is_fast else (Image, Audio)
    results: list[Any] = [image(data=PNG, format="png"), audio(data=b"a", format="wav")]
    results += [FastFile(data=b"a", format="pdf")] if is_fast else []
    server.tool(name="files")(lambda: results)
    kinds = [block.type for block in (await client.call_tool("files", {})).content]
    return kinds == ["image", "audio", "resource"][: len(results)]


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
    base = "http://127.0.0.1:8000"
    http = httpx2.AsyncClient(transport=transport, base_url=base, headers=HEADERS)
    async with app.router.lifespan_context(app), http:
        yield http


@both("a limit of a request's size")
async def bounds_bodies(server: Any, client: Any) -> bool:
    async with served(asgi_of(server)) as http:
        small = await http.post("/mcp", content=INITIALIZE % "1")
        large = await http.post("/mcp", content=INITIALIZE % ("1" * 2**23))
    assert small.status_code == 200
    return large.status_code == 413


@both("checks of Host and Origin")
async def checks_origins(server: Any, client: Any) -> bool:
    app = asgi_of(server)
    if isinstance(server, FastMCP):
        app = server.http_app(stateless_http=True, host_origin_protection=True)
    async with served(app) as http:
        headers = {"origin": "https://evil.example"}
        answer = await http.post("/mcp", content=INITIALIZE % "1", headers=headers)
    return answer.status_code == 403


@both("HTTP without sessions, for every revision over HTTP")
async def needs_no_session(server: Any, client: Any) -> bool:
    call = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    async with served(asgi_of(server)) as http:
        opened = await http.post("/mcp", content=INITIALIZE % "1")
        headers = {"mcp-protocol-version": "2025-06-18"}
        listed = await http.post("/mcp", content=call, headers=headers)
    return "mcp-session-id" not in opened.headers and listed.json()["result"] == {"tools": []}


@both("routes next to the endpoint")
async def has_routes(server: Any, client: Any) -> bool:
    @server.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> Response:
        return PlainTextResponse("well")

    async with served(asgi_of(server)) as http:
        return (await http.get("/health")).text == "well"


# What the peers spell each in its own way.


LISTS_ON_TRIO = """
import anyio
from {0} import Client
from {1} import {2}

async def main():
    with anyio.fail_after(20):
        async with Client({2}("peer")) as client:
            await client.list_tools()

anyio.run(main, backend="trio")
"""


async def is_fine(code: str) -> bool:
    """Whether a program ends without an error."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode == 0


ON_TRIO = "trio as well as asyncio"
TYPES = "import sys, mcp_types; sys.exit('mcp' in sys.modules)"
OFFICIAL = LISTS_ON_TRIO.format("mcp", "mcp.server.mcpserver", "MCPServer")
FAST = LISTS_ON_TRIO.format("fastmcp", "fastmcp", "FastMCP")
sdk("types without server and client")(lambda server, client: is_fine(TYPES))
sdk(ON_TRIO)(lambda server, client: is_fine(OFFICIAL))
fast(ON_TRIO)(lambda server, client: is_fine(FAST))

BUS = InMemorySubscriptionBus()  # stands for one that processes share


@sdk("changes announced by other processes", subscriptions=BUS)
async def announces(server: Any, client: Any) -> bool:
    async with client.listen(tools_list_changed=True) as changes:
        await BUS.publish(ToolsListChanged())
        with anyio.fail_after(20):
            return isinstance(await anext(aiter(changes)), ToolsListChanged)


CONVERTS = "texts converted to other types, or refused by a setting"


@sdk(CONVERTS)
async def converts(server: Any, client: Any) -> bool:
    server.tool()(twice)
    return await text_of(client, "twice", number="2") == "4"


@fast(CONVERTS, strict_input_validation=True)
async def converts_or_refuses(server: Any, client: Any) -> bool:
    lenient = FastMCP("peer", strict_input_validation=False)
    lenient.tool(twice)
    server.tool(twice)
    async with FastClient(lenient) as other:
        assert await converts(lenient, other)
    return await refuses(client.call_tool("twice", {"number": "2"}))


@fast(
    "many tools found by a search (BM25) and called by one tool", transforms=[BM25SearchTransform()]
)
async def searches(server: Any, client: Any) -> bool:
    server.tool(twice)
    names = {tool.name for tool in await client.list_tools()}
    text = await text_of(client, "call_tool", name="twice", arguments={"number": 2})
    return names == {"search_tools", "call_tool"} and text == "4"


@fast("plain functions in the event loop")
async def in_the_loop(server: Any, client: Any) -> bool:
    server.tool(thread, run_in_thread=False)
    return int(await text_of(client, "thread")) == threading.get_ident()


@fast("a timeout of a tool")
async def times_out(server: Any, client: Any) -> bool:
    server.tool(name="wait", timeout=0.01)(anyio.sleep_forever)
    with anyio.fail_after(20):
        return await refuses(client.call_tool("wait", {}))


async def double_of(number: int = CallArgument("number")) -> int:
    """Something that depends on an argument of the call."""
    return 2 * number


@both("dependencies", "dependencies that read arguments of the call")
async def depends(server: Any, client: Any) -> bool:
    async def official(number: int, double: Annotated[int, Resolve(double_of)]) -> int:
        return number + double

    async def fast(number: int, double: int = Depends(double_of)) -> int:
        return number + double

    server.tool(name="report")(fast if isinstance(server, FastMCP) else official)
    return await text_of(client, "report", number=2) == "6"


@fast("items hidden by name and tag")
async def hides(server: Any, client: Any) -> bool:
    server.tool(twice, tags={"old"})
    server.disable(tags={"old"})
    return not await client.list_tools()


@fast("several versions of a tool")
async def keeps_versions(server: Any, client: Any) -> bool:
    for version in ("1", "2"):
        server.tool(name="version", version=version)(lambda version=version: f"of {version}")
    older = await client.call_tool("version", {}, version="1")
    return (older.content[0].text, await text_of(client, "version")) == ("of 1", "of 2")


@fast("tools made from other tools: renamed, with arguments renamed or fixed")
async def makes_tools(server: Any, client: Any) -> bool:
    arguments = {"number": ArgTransform(name="value")}
    server.add_tool(FastTool.from_tool(twice, name="double", transform_args=arguments))
    return await text_of(client, "double", value=2) == "4"


class Answer(BaseModel):
    """The answer of a form."""

    row: int


ROW = Resolve(lambda: Elicit("Which row?", Answer))
ASKS = "the same code asks the client in every revision"


@sdk(ASKS)
async def official_asks(server: Any, client: Any) -> bool:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"row": 7})

    @server.tool()
    async def book(
        answered: Annotated[Answer, ROW],
    ) -> int:
        return answered.row

    texts = []
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode, elicitation_callback=answer) as other:
            texts.append(await text_of(other, "book"))
    return texts == ["7", "7"]


@fast(ASKS)
async def fast_asks(server: Any, client: Any) -> bool:
    async def answer(message: Any, kind: Any, params: Any, context: Any) -> Any:
        return kind(value=7)

    @server.tool
    async def book(ctx: FastContext) -> int:
        return int((await ctx.elicit("Which row?", int)).data)

    refusals = []
    for mode in ("legacy", "auto"):
        async with FastClient(server, mode=mode, elicitation_handler=answer) as other:
            refusals.append(await refuses(other.call_tool("book", {}, raise_on_error=False)))
    assert refusals[0] is False
    return not refusals[1]


@fast("logging and rate limits as middleware", middleware=[SlidingWindowRateLimitingMiddleware(3)])
async def limits_rates(server: Any, client: Any) -> bool:
    server.tool(twice)
    calls = [await refuses(client.call_tool("twice", {"number": 2})) for _ in range(5)]
    return calls[-1]


@fast(
    "caching and truncation of results as middleware",
    middleware=[ResponseCachingMiddleware(), ResponseLimitingMiddleware(max_size=200)],
)
async def keeps_results(server: Any, client: Any) -> bool:
    calls = []

    @server.tool
    def long() -> str:
        calls.append(1)
        return "x" * 1000

    results = [await client.call_tool("long", {}, raise_on_error=False) for _ in "ab"]
    return len(calls) == 1 and all(len(each.content[0].text) < 1000 for each in results)


@fast("retries as middleware", middleware=[RetryMiddleware(max_retries=2, base_delay=0.001)])
async def retries(server: Any, client: Any) -> bool:
    calls = []

    @server.resource("flaky://one")
    def flaky() -> str:
        calls.append(1)
        if len(calls) < 2:
            raise ConnectionError
        return "done"

    return bool((await client.read_resource("flaky://one"))[0].text == "done")


@fast("a fixed token in one line")
async def fast_knows_a_token(server: Any, client: Any) -> bool:
    verifier = StaticTokenVerifier({"secret": {"client_id": "alice", "scopes": ["read"]}})
    token = await verifier.verify_token("secret")
    return token is not None and await verifier.verify_token("other") is None


@fast("JSON Web Tokens verified")
async def fast_verifies(server: Any, client: Any) -> bool:
    pair, other = RSAKeyPair.generate(), RSAKeyPair.generate()
    verifier = JWTVerifier(public_key=pair.public_key, issuer="https://issuer.example")
    good = pair.create_token(issuer="https://issuer.example")
    wrong = other.create_token(issuer="https://issuer.example")
    accepted = await verifier.verify_token(good)
    return accepted is not None and await verifier.verify_token(wrong) is None


@fast("servers mounted in servers")
async def mounts(server: Any, client: Any) -> bool:
    other = FastMCP("other")
    other.tool(twice)
    server.mount(other, namespace="other")
    return [tool.name for tool in await client.list_tools()] == ["other_twice"]


@fast("a proxy")
async def fast_is_a_proxy(server: Any, client: Any) -> bool:
    server.tool(twice)
    async with FastClient(create_proxy(server)) as other:
        return await text_of(other, "twice", number=2) == "4"


@fast("a server from an OpenAPI document")
async def fast_reads_openapi(server: Any, client: Any) -> bool:
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
    async with FastClient(FastMCP.from_openapi(document, client=api)) as other:
        return bool((await other.call_tool("getPet", {})).structured_content == {"id": 7})


@fast("values per session", mode="legacy")
async def keeps_values(server: Any, client: Any) -> bool:
    @server.tool
    async def count(ctx: FastContext) -> int:
        number = (await ctx.get_state("number") or 0) + 1
        await ctx.set_state("number", number)
        return int(number)

    return [await text_of(client, "count") for _ in "ab"] == ["1", "2"]


@fast("items shown to one session", mode="legacy")
async def shows_to_one(server: Any, client: Any) -> bool:
    server.tool(twice, tags={"old"})

    @server.tool
    async def tidy(ctx: FastContext) -> None:
        await ctx.disable_components(tags={"old"})

    async with FastClient(server, mode="legacy") as other:
        await client.call_tool("tidy", {})
        return [len(await each.list_tools()) for each in (client, other)] == [1, 2]


ECHO = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")
server.tool(name="echo")(lambda text: text)
server.run()
"""


@sdk("several servers as one client")
async def official_groups(server: Any, client: Any) -> bool:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", ECHO])
    prefixes = iter("ab")
    async with ClientSessionGroup(
        component_name_hook=lambda tool, server: f"{next(prefixes)}_{tool}"
    ) as group:
        for _ in "ab":
            await group.connect_to_server(parameters)
        return {*group.tools} == {"a_echo", "b_echo"}


@fast("several servers as one client")
async def fast_groups(server: Any, client: Any) -> bool:
    server.tool(twice)
    async with ClientGroup({name: FastClient(server) for name in "ab"}) as group:
        return {tool.name for tool in await group.list_tools()} == {"a_twice", "b_twice"}


@fast("one call cancelled by a method", mode="legacy")
async def cancels(server: Any, client: Any) -> bool:
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

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "wait")
        await started.wait()
        await client.cancel(int(ids[0]))
        with anyio.move_on_after(2):
            await ended.wait()
        tasks.cancel_scope.cancel()
    return ended.is_set()
