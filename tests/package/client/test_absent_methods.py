"""Errors of a client for messages and revisions that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from kit.wire import ALL
from mcpgen_runtime import (
    REVISIONS,
    AbsentMethodError,
    MethodNotFoundError,
    RevisionError,
    Server,
    connect,
    connect_sync,
)

pytestmark = pytest.mark.on_asyncio

NEWEST, OLDEST = ALL[-1], ALL[0]
HANDSHAKES = ", ".join(ALL[:-1])


def absent_attribute(client: object, name: str) -> Any:
    """An attribute that type checkers would refuse."""
    return getattr(client, name)


ABSENT = [
    (NEWEST, "set_level", ("info",), "logging/setLevel", "client.ask_for_logs(level)"),
    (NEWEST, "subscribe", ("memo://one",), "resources/subscribe", "client.listen(uris=[...])"),
    (NEWEST, "ping", (), "ping", "client.discover()"),
    (OLDEST, "discover", (), "server/discover", "client.server_capabilities"),
]


@pytest.mark.parametrize(("revision", "name", "arguments", "method", "instead"), ABSENT)
async def test_a_missing_message_names_what_to_use_instead(
    revision: str, name: str, arguments: tuple[Any, ...], method: str, instead: str
) -> None:
    async with connect(Server("s"), revision=revision) as narrow:
        with pytest.raises(AttributeError) as missing:
            absent_attribute(narrow, name)
        assert not hasattr(narrow, name)
    handshake = "handshake" if revision != NEWEST else None
    async with connect(Server("s"), revision=handshake) as wide:
        assert wide.revision == (NEWEST if revision == NEWEST else ALL[-2])
        with pytest.raises(MethodNotFoundError) as refused:
            await getattr(wide, name)(*arguments)
    for error, spoken in ((missing.value, revision), (refused.value, wide.revision)):
        assert isinstance(error, AbsentMethodError)
        assert error.method == method
        assert str(error).startswith(f"{spoken} has no ")
        assert instead in str(error)
        others = HANDSHAKES if revision == NEWEST else NEWEST
        assert str(error).endswith(f"; it is in {others}")


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("initialize", r"connect\(\), which has sent it; client\.server_info has the answer"),
        ("initialized", r"connect\(\), which has sent it"),
        ("cancelled", "cancel the task that waits for the request"),
    ],
)
async def test_messages_that_a_client_sends_itself_are_no_methods(
    revision: str, name: str, instead: str
) -> None:
    async with connect(Server("s"), revision=revision) as client:
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use .*{instead}"):
            absent_attribute(client, name)


async def test_a_missing_message_names_the_revisions_that_have_it() -> None:
    async with connect(Server("s"), revision="2025-06-18") as client:
        text = r"^2025-06-18 has no list_tasks\(\) \(tasks/list\); it is in 2025-11-25$"
        with pytest.raises(AbsentMethodError, match=text):
            absent_attribute(client, "list_tasks")
        with pytest.raises(AttributeError, match="object has no attribute 'call_tol'") as info:
            absent_attribute(client, "call_tol")
        assert (type(info.value), info.value.obj) == (AttributeError, client)
        with pytest.raises(MethodNotFoundError, match=r"^2025-06-18 has no request tasks/list$"):
            await client.request("tasks/list")
    with (
        connect_sync(Server("s"), revision=NEWEST) as blocking,
        pytest.raises(AbsentMethodError, match="ask_for_logs"),
    ):
        absent_attribute(blocking, "set_level")


async def test_a_revision_that_nobody_knows_is_not_the_offer_of_a_peer() -> None:
    with pytest.raises(RevisionError) as info:
        connect(Server("s"), revision="2020-01-01")
    assert str(info.value) == f"unknown revision '2020-01-01'; this side speaks {', '.join(ALL)}"
    assert (info.value.supported, info.value.offered) == (tuple(REVISIONS), ())
