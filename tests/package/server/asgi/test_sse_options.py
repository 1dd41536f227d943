"""HTTP+SSE below a path prefix: the event `endpoint` keeps clients within that."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from kit.asgi_client import asgi
from kit.rules import revisions_holding
from kit.uvicorn_host import serve_on_uvicorn
from kit.web import Web
from kit.wire import initialize
from mcpgen_runtime import connect

pytestmark = pytest.mark.processes

PREFIX = "/team/tools"
OLD = revisions_holding("sse.two-endpoints")


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
    app = Web(drain=0).server.asgi(sse_path="/sse", messages_endpoint=endpoint)
    async with serve_on_uvicorn(behind(app)) as url:
        async with connect(f"{url}{PREFIX}/sse", revision=revision) as client:
            result = await client.call_tool("echo", {"text": "sun"})
            assert result.content[0].text == "sun"
        await app.close_streams()


@pytest.mark.parametrize(
    "endpoint",
    ["messages", "//other.example/m", "/m?a=b", "/m#a", "/a b", "ftp://x/m", "", "/a\nb"],
)
def test_an_endpoint_that_no_client_could_post_to_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="messages_endpoint: expected a path that begins with"):
        Web(drain=0).server.asgi(sse_path="/sse", messages_endpoint=endpoint)


@pytest.mark.parametrize(
    ("sse_path", "messages_path", "absolute", "relative"),
    [
        ("/sse", "/messages", "/messages", "messages"),
        ("/sse/", "/messages", "/messages", "../messages"),
        ("/a/b/sse", "/messages", "/messages", "../../messages"),
        ("/sse", "/sse/messages", "/sse/messages", "sse/messages"),
        ("/sse", "//other.example/m", "/other.example/m", "other.example/m"),
        ("/sse", "/x:y", "/x%3Ay", "x%3Ay"),
        ("/sse", "/a b/\u00fc", "/a%20b/%C3%BC", "a%20b/%C3%BC"),
    ],
)
async def test_the_endpoint_is_named_by_a_path_that_clients_find(
    sse_path: str, messages_path: str, absolute: str, relative: str
) -> None:
    paths: Any = {"sse_path": sse_path, "messages_path": messages_path}
    for endpoint, reference in ((None, absolute), ("relative", relative)):
        async with (
            asgi(Web(drain=0).server, messages_endpoint=endpoint, **paths) as http,
            http.stream("GET", None, sse_path) as stream,
        ):
            named = (await stream.event()).data.decode()
            assert named.startswith(f"{reference}?session_id=")
            place = urlsplit(urljoin(f"http://host{sse_path}", named))
            assert unquote(place.path) == f"/{messages_path.lstrip('/')}"
            reply = await http.post(initialize(OLD[0]), f"{messages_path}?{place.query}")
            assert reply.status == 202


@pytest.mark.parametrize(
    ("root", "endpoint", "reference"),
    [
        ("/t\u00f8ols/", None, "/t%C3%B8ols/messages"),
        ("//team/tools", None, "/team/tools/messages"),
        ("", "/team/messages", "/team/messages"),
        ("", "http://[::1]:80/m", "http://[::1]:80/m"),
    ],
)
async def test_the_endpoint_is_named_below_the_mount_point_or_as_it_was_set(
    root: str, endpoint: str | None, reference: str
) -> None:
    async with asgi(Web(drain=0).server, sse_path="/sse", messages_endpoint=endpoint) as http:
        http.scope["root_path"] = root
        async with http.stream("GET", None, "/sse") as stream:
            event = await stream.event()
            assert event.data.decode().startswith(f"{reference}?session_id=")
