"""Invariants: calls that end, messages that harm nothing, and JSON that survives the types."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.ends import ask, end_of
from kit.live import App, live, text_of
from kit.rules import module_of
from kit.strategies import anything, describe_revision
from kit.wire import both_lifecycles, every, sent_request
from mcpgen_runtime import RemoteError, RequestContext, _wire
from mcpgen_runtime._wire import Untagged
from mcpgen_runtime.protocol.events import SendRequest

pytestmark = pytest.mark.lengthy

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def work(ctx: RequestContext) -> Any:
    """A tool that takes as many steps as it is told to, and may fail."""
    arguments = ctx.params.arguments
    for _ in range(arguments["steps"]):
        await anyio.lowlevel.checkpoint()
    if arguments["fails"]:
        raise ValueError
    return {"content": [{"type": "text", "text": str(arguments["n"])}]}


@pytest.mark.requirement("cancellation.races")
@both_lifecycles
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(seed=st.integers(0, 2**32))
@settings(calm, max_examples=4)
def test_calls_aborted_at_any_moment_disturb_no_others(
    revision: str, backend: str, seed: int
) -> None:
    chance = random.Random(seed)

    async def call(client: Any, number: int) -> None:
        arguments = {"n": number, "steps": chance.randrange(6), "fails": chance.random() < 0.1}

        async def abort(scope: anyio.CancelScope, rounds: int) -> None:
            for _ in range(rounds):
                await anyio.lowlevel.checkpoint()
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort, tasks.cancel_scope, chance.randrange(12))
            with suppress(RemoteError):
                assert text_of(await client.call_tool("work", arguments)) == str(number)

    async def main() -> str:
        async with live(App(work), revision) as (client, _):
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    for number in range(250):
                        tasks.start_soon(call, client, number)
                last = {"n": -1, "steps": 0, "fails": False}
                return text_of(await client.call_tool("work", last))

    assert anyio.run(main, backend=backend) == "-1"


def models(revision: str) -> dict[str, Any]:
    """The types of a revision that carry the name of a definition of its schema."""
    module = module_of(revision)
    types = {name: getattr(module, name, None) for name in describe_revision(revision).definitions}
    return {
        name: kind
        for name, kind in types.items()
        if isinstance(kind, type) and issubclass(kind, (*_wire.STRUCTS, Untagged))
    }


@every
@given(data=st.data())
@settings(calm, max_examples=100)
def test_schema_data_is_the_same_json_after_a_round_trip(
    revision: str, data: st.DataObject
) -> None:
    name, kind = data.draw(st.sampled_from(sorted(models(revision).items())))
    value = data.draw(describe_revision(revision).named(name))
    decoded = _wire.decoder(kind)(json.dumps(value).encode())
    encoded_again = _wire.encode(decoded)
    assert exact(json.loads(encoded_again)) == exact(value)
    assert _wire.decoder(kind)(encoded_again) == decoded
    assert exact(_wire.to_builtins(_wire.convert(value, kind))) == exact(value)


exact = partial(json.dumps, sort_keys=True)
"""A JSON value as a text, in which 1, 1.0 and true differ."""


NOISE = st.one_of(
    st.binary(max_size=40),
    anything.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0", 2]) | anything,
            "id": st.integers(0, 5) | st.text(max_size=2) | anything,
            "method": st.sampled_from(
                ["tools/call", "initialize", "ping", "notifications/cancelled", "x"]
            )
            | anything,
            "params": anything,
            "result": anything,
            "error": anything,
        },
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.parametrize("role", ["client", "server"])
@both_lifecycles
@given(noise=st.lists(NOISE, max_size=8))
@settings(calm, max_examples=60)
def test_no_message_whatever_it_is_raises_or_ends_the_session(
    revision: str, role: Any, noise: list[bytes]
) -> None:
    end = end_of(revision, role)
    id, _ = (
        sent_request(end.connection.send(SendRequest("tools/list")))
        if role == "client"
        else (None, None)
    )
    for message in noise:
        end.say(message)
    if role == "client":
        end.say({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})
        assert len(end.connection.state.outbound) == 0
    else:
        known = set(end.connection.state.inbound)
        ask(end, "tools/list", id="after all that")
        assert set(end.connection.state.inbound) == known | {"after all that"}
