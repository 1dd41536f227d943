"""HTTP+SSE below a path prefix: the event `endpoint` keeps clients within that."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from kit.asgi_client import asgi
from kit.rules import revisions_holding
from kit.web import Web
from kit.wire import initialize

pytestmark = pytest.mark.processes

OLD = revisions_holding("sse.two-endpoints")


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
