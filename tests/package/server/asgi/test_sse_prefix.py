"""HTTP+SSE below a path prefix: the event `endpoint` keeps clients within that."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import anyio
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from mcpgen_runtime import connect
from mcpgen_runtime.server.chosen import Server
from package.asgi_client import asgi
from package.rules import revisions_holding
from package.wire import initialize

pytestmark = pytest.mark.processes

PREFIX = "/team/tools"
OLD = revisions_holding("sse.two-endpoints")


def tools() -> Server:
    server = Server("tester", drain=0)

    @server.tool()
    def echo(text: str) -> str:
        return text

    return server


def mount_app(app: Any) -> Any:
    """The application mounted below the prefix, which it learns by `root_path`."""
    return Starlette(routes=[Mount(PREFIX, app)])


def strip_prefix(app: Any) -> Any:
    """The application as behind a proxy that takes the prefix away and says nothing of it."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{PREFIX}/"), scope["path"]
            scope = {**scope, "path": scope["path"].removeprefix(PREFIX)}
        await app(scope, receive, send)

    return proxied


@asynccontextmanager
async def serve_app(app: Any) -> AsyncIterator[str]:
    """Serve over real sockets."""
    host = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                host.should_exit = True


@pytest.mark.requirement("sse.endpoint-event")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("behind", "endpoint"),
    [
        (mount_app, None),
        (mount_app, "relative"),
        (strip_prefix, f"{PREFIX}/messages"),
        (strip_prefix, "relative"),
    ],
)
@pytest.mark.parametrize("revision", OLD)
async def test_a_client_below_a_prefix_makes_a_call(
    revision: str, behind: Any, endpoint: str | None, anyio_backend: str
) -> None:
    app = tools().asgi(sse_path="/sse", messages_endpoint=endpoint)
    async with serve_app(behind(app)) as url:
        async with connect(f"{url}{PREFIX}/sse", revision=revision) as client:
            result = await client.call_tool("echo", {"text": "sun"})
            assert result.content[0].text == "sun"
        await app.close_streams()


async def endpoint_of(http: Any, sse_path: str) -> str:
    """The path that the event `endpoint` names."""
    async with http.stream("GET", None, sse_path) as stream:
        named: str = (await stream.event()).data.decode()
        return named


@pytest.mark.parametrize(
    ("sse_path", "messages_path", "reference"),
    [
        ("/sse", "/messages", "/messages"),
        ("/sse", "/messages/", "/messages/"),
        ("/a/b/sse", "/messages", "/messages"),
        ("/sse", "/", "/"),
        ("/sse", "//other.example/m", "/other.example/m"),
        ("/sse", "/x:y", "/x%3Ay"),
        ("/sse", "/a b/\u00fc", "/a%20b/%C3%BC"),
    ],
)
async def test_the_endpoint_is_named_by_an_absolute_path(
    sse_path: str, messages_path: str, reference: str
) -> None:
    async with asgi(tools(), sse_path=sse_path, messages_path=messages_path) as http:
        named = await endpoint_of(http, sse_path)
    assert named.startswith(f"{reference}?session_id=")


@pytest.mark.parametrize("root", ["/team/tools", "/team/tools/", "//team/tools"])
async def test_the_path_of_the_mount_point_comes_first(root: str) -> None:
    async with asgi(tools(), sse_path="/sse") as http:
        http.scope["root_path"] = root
        assert (await endpoint_of(http, "/sse")).startswith("/team/tools/messages?session_id=")


@pytest.mark.parametrize(
    "endpoint", ["/team/messages", "https://tools.example/team/messages", "http://[::1]:80/m"]
)
async def test_the_endpoint_is_named_as_it_was_set(endpoint: str) -> None:
    async with asgi(tools(), sse_path="/sse", messages_endpoint=endpoint) as http:
        assert (await endpoint_of(http, "/sse")).startswith(f"{endpoint}?session_id=")


@pytest.mark.parametrize(
    "endpoint",
    ["messages", "//other.example/m", "/m?a=b", "/m#a", "/a b", "ftp://x/m", "", "/a\nb"],
)
def test_an_endpoint_that_no_client_could_post_to_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="messages_endpoint: expected a path that begins with"):
        tools().asgi(sse_path="/sse", messages_endpoint=endpoint)


@pytest.mark.parametrize(
    ("sse_path", "messages_path", "reference"),
    [
        ("/sse", "/messages", "messages"),
        ("/sse", "/messages/", "messages/"),
        ("/sse/", "/messages", "../messages"),
        ("/a/sse", "/a/messages", "messages"),
        ("/a/b/sse", "/messages", "../../messages"),
        ("/sse", "/sse/messages", "sse/messages"),
        ("/sse", "/", "./"),
        ("/sse", "/x:y", "x%3Ay"),
        ("/sse", "/a b/\u00fc", "a%20b/%C3%BC"),
    ],
)
async def test_the_endpoint_may_be_named_relative_to_the_stream(
    sse_path: str, messages_path: str, reference: str
) -> None:
    paths: Any = {"sse_path": sse_path, "messages_path": messages_path}
    async with (
        asgi(tools(), messages_endpoint="relative", **paths) as http,
        http.stream("GET", None, sse_path) as stream,
    ):
        named = (await stream.event()).data.decode()
        assert named.startswith(f"{reference}?session_id=")
        place = urlsplit(urljoin(f"http://host{sse_path}", named))
        assert unquote(place.path) == messages_path
        reply = await http.post(initialize(OLD[0]), f"{messages_path}?{place.query}")
        assert reply.status == 202
