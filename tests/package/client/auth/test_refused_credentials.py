"""The error of a server that wants other credentials: its reason, and what to write."""

from __future__ import annotations

from typing import Any

import pytest

from kit.http_script import Script
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.wire import STREAMABLE
from mcpgen_runtime import HttpStatusError, connect

pytestmark = pytest.mark.anyio
revisions = pytest.mark.parametrize("revision", STREAMABLE)


def refuses(status: int, challenge: str, body: bytes = b"") -> Handler:
    """A server that refuses each request."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, body, WWW_Authenticate=challenge)

    return handler


async def refusal(handler: Handler, revision: str, **how: Any) -> str:
    """The text of the error of a client."""
    async with HttpServer(handler) as server:
        with pytest.raises(HttpStatusError) as refused:
            async with connect(server.url, revision=revision, **how):
                pass
    return str(refused.value)


@revisions
async def test_a_refusal_without_credentials_names_the_ways_to_some(revision: str) -> None:
    text = await refusal(refuses(401, "Bearer"), revision)
    assert "HTTP 401" in text
    assert "auth=OAuth(" in text
    assert "auth='...'" in text


@pytest.mark.parametrize("how", [{"auth": "s3cret"}, {"headers": {"authorization": "s3cret"}}])
@revisions
async def test_a_refusal_of_credentials_says_so(how: dict[str, Any], revision: str) -> None:
    challenge = 'Bearer error="invalid_token", error_description="it ended yesterday"'
    text = await refusal(refuses(401, challenge), revision, **how)
    assert "the server's reason: it ended yesterday" in text
    assert "the credentials of auth= or headers= were refused" in text
    assert "s3cret" not in text
    assert "OAuth(" not in text


@revisions
async def test_the_reason_is_escaped_bounded_and_given_once(revision: str) -> None:
    loud = 'Bearer error_description="\x1b[2Jred{}"'.format("x" * 5000)
    text = await refusal(refuses(401, loud), revision)
    assert "\x1b" not in text
    assert len(text) < 1000
    twice = refuses(401, 'Bearer error_description="who are you"', b"who are you")
    assert (await refusal(twice, revision)).count("who are you") == 1
    code = await refusal(refuses(403, 'Bearer error="insufficient_scope"'), revision)
    assert "the server's reason: insufficient_scope" in code
    assert "auth=" not in code


@pytest.mark.parametrize(
    ("auth", "text"),
    [("oauth", "auth: use OAuth"), ("Bearer s3cret", "without the word Bearer")],
)
async def test_a_text_that_is_no_token_is_refused_before_it_is_sent(auth: str, text: str) -> None:
    async with HttpServer(Script("2025-11-25")) as server:
        with pytest.raises(ValueError, match=text) as refused:
            async with connect(server.url, auth=auth):
                pass
        assert "s3cret" not in str(refused.value)
        assert server.asked == []
