"""Results that a client keeps over HTTP, where header fields say for whom it asks.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import pytest

from package.client.cached import cacheable_result, names
from package.http_script import Script, connect_scripted, result
from package.http_server import Asked, Reply
from package.rules import revisions_holding

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("revision", revisions_holding("caching.private-not-shared")),
    pytest.mark.processes,
]


class Lists(Script):
    """A server that tells each user of the tools that are there for that user.

    Args:
        scope: Whom the list is for.
    """

    def __init__(self, revision: str, scope: str) -> None:
        super().__init__(revision)
        self.scope = scope
        self.on["tools/list"] = self._tools

    async def _tools(self, asked: Asked, reply: Reply) -> None:
        tool = {"name": asked.fields["authorization"], "inputSchema": {"type": "object"}}
        await reply.json(
            result(asked, **cacheable_result("tools/list", 60_000, self.scope, tools=[tool]))
        )


class User:
    """The user on whose behalf the client acts.

    Attributes:
        name: Its name, which may be changed.
        fields: Its header fields.
    """

    def __init__(self) -> None:
        self.fields = {"Authorization": "one"}
        self._requests = 0

    @property
    def name(self) -> str:
        return self.fields["Authorization"]

    @name.setter
    def name(self, name: str) -> None:
        self.fields["Authorization"] = name

    def made(self) -> dict[str, str]:
        """Its header fields, which are traced."""
        self._requests += 1
        return {**self.fields, "traceparent": str(self._requests)}

    async def awaited(self) -> dict[str, str]:
        """The header fields, from a coroutine function."""
        return self.made()


@pytest.mark.requirement("caching.private-not-shared", "caching.private-same-authorization")
@pytest.mark.parametrize("how", ["fields", "made", "awaited"])
async def test_private_results_are_requested_again_for_another_token(
    revision: str, how: str
) -> None:
    user = User()
    headers = getattr(user, how)
    async with connect_scripted(Lists(revision, "private"), headers=headers) as (client, server):
        for _ in range(3):
            assert names(await client.list_tools()) == ["one"]
        assert len(server.of("tools/list")) == 1
        user.name = "two"
        for _ in range(3):
            assert names(await client.list_tools()) == ["two"]
        user.name = "one"
        assert names(await client.list_tools()) == ["one"]


@pytest.mark.requirement("caching.public-shareable", "caching.public-crosses-authorization")
async def test_public_results_are_used_for_another_token(revision: str) -> None:
    user = User()
    async with connect_scripted(Lists(revision, "public"), headers=user.made) as (client, server):
        assert names(await client.list_tools()) == ["one"]
        user.name = "two"
        assert names(await client.list_tools()) == ["one"]
        assert len(server.of("tools/list")) == 1


@pytest.mark.requirement("caching.private-not-shared")
async def test_a_result_after_a_token_change_is_not_kept_for_others(
    revision: str,
) -> None:
    user = User()
    script = Lists(revision, "private")

    async def late(asked: Asked, reply: Reply) -> None:
        user.name = "two"
        await client.call_tool("echo", {})
        user.name = "one"
        await script.on["tools/list"](asked, reply)

    script.once["tools/list"] = [late]
    async with connect_scripted(script, headers=user.made) as (client, server):
        assert names(await client.list_tools()) == ["one"]
        assert names(await client.list_tools()) == ["one"]
        assert len(server.of("tools/list")) == 2
