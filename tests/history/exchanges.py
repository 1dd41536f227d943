"""The messages of a package, sent from one side and read on the other one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from history.sampling import ABSENT, Samples
from mcpgen.json_types import is_object
from mcpgen.model import methods, schema_facts, schema_sources
from mcpgen.model.name import name_types
from mcpgen.model.normalize import normalize
from mcpgen.model.normalized import reference
from mcpgen.model.schema_sources import Source

LIFECYCLE = frozenset(
    {
        *("initialize", "ping", "server/discover", "subscriptions/listen"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        *("notifications/subscriptions/acknowledged", "notifications/elicitation/complete"),
    }
)
"""Messages that the package sends by itself."""
BY_ITSELF = ("_meta", "task", "inputResponses", "requestState")
"""Params that the package sends by itself."""
_TEXT = {"type": "text", "text": "hello"}
BY_PROSE: Mapping[str, Mapping[str, Any]] = {
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": _TEXT}],
        "role": "assistant",
        "content": _TEXT,
    },
    "elicitation/create": {
        "requestedSchema": {"type": "object", "properties": {}},
        "action": "accept",
        "content": {},
    },
}
"""Members about whose values pages have rules that no schema has, by method."""
LAST = "resources/unsubscribe"
"""The message after which a server has no subscriptions."""


def carried_members(value: Any) -> Any:
    """A value without the members that no field can name, which notes say are left out."""
    if isinstance(value, list):
        return [carried_members(each) for each in value]
    if not is_object(value):
        return value
    return {wire: carried_members(each) for wire, each in value.items() if '"' not in wire}


def values_of(source: Source, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the messages, capabilities and definitions of a schema file."""
    loaded = schema_sources.load(source, errata=True)
    stated = schema_facts.facts_for(loaded, source.base, source.facts).facts
    newer = schema_sources.newer_than(source.base, loaded)
    named = name_types(normalize(loaded, stated, newer), stated)
    roles = named.roles
    samples = Samples({"$defs": loaded.definitions})
    messages: dict[str, dict[str, Any]] = {"client": {}, "server": {}}
    items: dict[str, str | None] = {}
    every = methods.derive(named.types, named.messages, stated)
    for method in sorted(every.all, key=lambda each: each.name == LAST):
        asked_for = not every.handshake and stated.method(method.name).subscription
        if method.name in LIFECYCLE or asked_for:
            continue
        params = samples.member(reference(method.type), "params")
        result = None if method.result is None else samples.of(reference(method.results[-1]))
        params = {wire: value for wire, value in params.items() if wire not in BY_ITSELF}
        for value in (params, result or {}):
            ruled = {"resultType": "complete", **BY_PROSE.get(method.name, {})}
            value.update({wire: ruled[wire] for wire in ruled.keys() & value.keys()})
        if method.items is not None:  # the client asks for further pages by itself
            params.pop("cursor", None)
            result.pop("nextCursor", None)
        for tool in (result or {}).get("tools", ()):  # the client calls others as tasks by itself
            if "taskSupport" in tool.get("execution", {}):
                tool["execution"]["taskSupport"] = "optional"
        messages[method.sender][method.name] = [carried_members(params), carried_members(result)]
        items[method.name] = method.items
    values = {name: samples.of(reference(name)) for name in loaded.definitions}
    for side in messages:
        values[roles[f"{side}_capabilities"]].pop("extensions", None)
    return {
        "messages": messages,
        "items": items,
        "definitions": {
            name: carried_members(each) for name, each in values.items() if each is not ABSENT
        },
        **{f"{side} capabilities": values[roles[f"{side}_capabilities"]] for side in messages},
    }


PROGRAM = '''
import importlib
import inspect
import json
import sys

import anyio
import msgspec
from pkg import REVISIONS, Server, decoder, encode
from pkg._wire import STRUCTS, convert
from pkg.testing import connected

VALUES = json.load(open(sys.argv[1], encoding="utf-8"))
(NAME,) = REVISIONS
REVISION = REVISIONS[NAME]
FOLDER = f"pkg.r{NAME.replace('-', '_')}"
models = importlib.import_module(f"{FOLDER}.models")
stubs = {side: importlib.import_module(f"{FOLDER}.{side}") for side in ("client", "server")}
arrived = {}


def plain(value):
    return msgspec.json.decode(encode(value))


def holds(whole, part):
    """Whether JSON has all that is in other JSON."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and holds(whole[key], each) for key, each in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part


def expect(what, got, sent):
    assert holds(got, sent), f"{what}: sent {json.dumps(sent)}, got {json.dumps(got)}"


def handlers_of(side, rows):
    """Handlers of each message: they note the params, and send the value of the result."""

    def handler(row):
        async def handle(self, params, ctx):
            arrived[row.sender, row.name] = {} if params is None else plain(params)
            if row.kind == "notification":
                return None
            if row.name == "tools/call" and VALUES["messages"]["server"]:
                await from_server(ctx)
            return convert(VALUES["messages"][row.sender][row.name][1], row.result)

        return handle

    base = stubs[side]
    owner = base.ServerHandlers if side == "server" else base.ClientHandlers
    return type("Handlers", (owner,), {row.python_name: handler(row) for row in rows})()


def arguments_of(call, row, params):
    """The arguments of a typed call."""
    expected = inspect.signature(call).parameters
    if "params" in expected and not (
        isinstance(row.params, type) and issubclass(row.params, STRUCTS)
    ):
        return {"params": params}
    python = {wire: name for name, wire in row.wire_names.items()}
    # calls have a timeout and a `_meta` of their own
    python |= {wire: f"{name}_" for wire, name in python.items() if f"{name}_" in expected}
    return {python[wire]: value for wire, value in params.items()}


async def from_server(ctx):
    session = stubs["server"].ServerSession(ctx)
    for name, (params, result) in VALUES["messages"]["server"].items():
        table = REVISION.server_requests if result is not None else REVISION.server_notifications
        row = table[name]
        call = getattr(session, row.python_name)
        got = await call(**arguments_of(call, row, params))
        if result is not None:
            expect(f"result of {name}", plain(got), result)


async def main():
    messages = VALUES["messages"]
    tables = {
        "client": {**REVISION.client_requests, **REVISION.client_notifications},
        "server": {**REVISION.server_requests, **REVISION.server_notifications},
    }
    rows = {side: [tables[side][name] for name in messages[side]] for side in messages}
    server = Server("sums", handlers=[handlers_of("server", rows["client"])],
                    capabilities=VALUES["server capabilities"])
    pairing = connected(
        server,
        revision=NAME,
        handlers=handlers_of("client", rows["server"]),
        capabilities=VALUES["client capabilities"],
    )
    async with pairing as pair:
        if hasattr(pair.client, "ask_for_logs"):  # where each request asks for its log messages
            pair.client.ask_for_logs("debug")
        for row in rows["client"]:
            params, result = messages["client"][row.name]
            call = getattr(pair.client, row.python_name)
            got = await call(**arguments_of(call, row, params))
            if result is not None and row.items:
                expect(f"result of {row.name}", [plain(each) for each in got],
                       result[VALUES["items"][row.name]])
            elif result is not None:
                expect(f"result of {row.name}", plain(got), result)
        await anyio.wait_all_tasks_blocked()
    for side in messages:
        for name, (params, _) in messages[side].items():
            if name == "logging/setLevel":  # the package handles it, and calls nobody
                continue
            assert (side, name) in arrived, f"{name} of the {side} did not arrive"
            expect(f"params of {name}", arrived[side, name], params)
    for name, value in VALUES["definitions"].items():
        kind = getattr(models, name)
        expect(name, plain(decoder(kind)(json.dumps(value).encode())), value)


anyio.run(main)
'''
