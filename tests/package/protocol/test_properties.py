"""Invariants: unique ids, calls that settle once, and JSON that survives the types."""

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

from kit.ends import Pair, ask, end_of
from kit.live import App, live, text_of
from kit.rules import module_of
from kit.strategies import anything, describe_revision
from kit.wire import HANDSHAKE, PER_REQUEST, every, sent_request, sole
from mcpgen_runtime import OutgoingMessage, ProtocolError, RemoteError, RequestContext, _wire
from mcpgen_runtime._wire import Untagged
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.protocol.connection import Connection
from mcpgen_runtime.protocol.events import (
    CancelReceived,
    CancelRequest,
    ReportProgress,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendError,
    SendRequest,
    SendResponse,
)

pytestmark = pytest.mark.lengthy

both_kinds = pytest.mark.parametrize("revision", [HANDSHAKE[-1], PER_REQUEST[-1]])
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "fail", "cancel", "to server", "to client", "progress"]),
        st.integers(0, 7),
    ),
    max_size=60,
)


class Wire:
    """Two connected ends, with messages that are under way for as long as the test likes."""

    def __init__(self, revision: str) -> None:
        pair = Pair(revision)
        self.client: Connection = pair.client
        self.server: Connection = pair.server
        self.under_way: dict[str, list[OutgoingMessage]] = {"to server": [], "to client": []}
        self.asked: list[RequestId] = []
        self.settled: dict[RequestId, int] = {}
        self.served: list[RequestId] = []
        self.stopped: set[RequestId] = set()

    def step(self, what: str, number: int) -> None:
        """Do one thing, if it can be done: with the request or the message of that number."""
        id: RequestId
        if what == "ask":
            id, message = sent_request(self.client.send(SendRequest("tools/list", progress=True)))
            assert id not in self.asked
            self.asked.append(id)
            self.under_way["to server"].append(message)
        elif what == "cancel" and self.asked:
            id = self.asked[number % len(self.asked)]
            cancelled = sole(self.client.send(CancelRequest(id)))
            if cancelled is not None:
                self.settled[id] = self.settled.get(id, 0) + 1
                self.under_way["to server"].append(cancelled)
        elif what in ("answer", "fail", "progress") and self.served:
            self._serve(what, self.served[number % len(self.served)])
        elif self.under_way.get(what):
            self._deliver(what)

    def finish(self) -> None:
        """Answer and deliver all there is."""
        while any(self.under_way.values()) or self.server.state.inbound:
            for direction in self.under_way:
                while self.under_way[direction]:
                    self._deliver(direction)
            for id in self.served:
                self._serve("answer", id)

    def _serve(self, what: str, id: RequestId) -> None:
        if what == "answer":
            message = sole(self.server.send(SendResponse(id, {"tools": []})))
        elif what == "fail":
            message = sole(self.server.send(SendError(id, ProtocolError("no", code=7))))
        else:
            message = sole(self.server.send(ReportProgress(id, random.random())))
        assert message is None or id not in self.stopped
        if message is not None:
            self.under_way["to client"].append(message)

    def _deliver(self, direction: str) -> None:
        message = self.under_way[direction].pop(0)
        end = self.server if direction == "to server" else self.client
        for event in end.receive(message.data):
            match event:
                case RequestReceived(id=id):
                    self.served.append(id)
                case CancelReceived(id=id):
                    self.stopped.add(id)
                case ResponseReceived(id=id) | RequestFailed(id=id):
                    self.settled[id] = self.settled.get(id, 0) + 1


@pytest.mark.requirement("cancellation.races", "cancellation.late-response-ignored")
@both_kinds
@given(steps=STEPS)
@settings(calm, max_examples=150)
def test_each_request_settles_once_however_messages_cross(revision: str, steps: list[Step]) -> None:
    wire = Wire(revision)
    for what, number in steps:
        wire.step(what, number)
    wire.finish()
    assert wire.settled == dict.fromkeys(wire.asked, 1)
    assert len(wire.client.state.outbound) == 0
    assert not wire.server.state.inbound


async def work(ctx: RequestContext) -> Any:
    """A tool that takes as many steps as it is told to, and may fail."""
    arguments = ctx.params.arguments
    for _ in range(arguments["steps"]):
        await anyio.lowlevel.checkpoint()
    if arguments["fails"]:
        raise ValueError
    return {"content": [{"type": "text", "text": str(arguments["n"])}]}


@pytest.mark.requirement("cancellation.races")
@both_kinds
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
@settings(calm, max_examples=300)
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
@both_kinds
@given(noise=st.lists(NOISE, max_size=8))
@settings(calm, max_examples=150)
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
