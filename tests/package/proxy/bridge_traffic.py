"""Messages of every kind through a proxy between two revisions, and the places that they lose."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, TypeAlias, get_args

from decoding.instances import Instances
from kit.live import RawServer
from kit.wire import ACKNOWLEDGED, HANDSHAKE, LISTEN, PER_REQUEST, RawEnd, speaking_to
from mcpgen import diff
from mcpgen.diff import bridge
from mcpgen.diff.protocol import Protocol
from mcpgen.json_types import is_array, is_object
from mcpgen.model.methods import Method
from mcpgen.model.name import Kind, Role
from mcpgen_runtime import Server
from mcpgen_runtime.errors import METHOD_NOT_FOUND

Json: TypeAlias = Any
Wire: TypeAlias = dict[str, Any]

CALL, PROGRESS, MESSAGE = "tools/call", "notifications/progress", "notifications/message"
ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
COMPLETE = "notifications/elicitation/complete"
UPDATED, ROOTS_CHANGED = "notifications/resources/updated", "notifications/roots/list_changed"

CLIENT: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {"listChanged": True},
}
SERVER: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
WITH_CONTENT = frozenset({CALL, "prompts/get"})
"""Requests whose results have blocks of content: they are sent more often, for all kinds."""

URL = "https://example.com/a"
HOLOGRAM = {"type": "hologram", "mimeType": "model/x", "data": "AAAA"}
"""A block of a kind that no revision has."""

CALLS = {"tool_use", "tool_result"}
KIND = "type=hologram"
UNKNOWN = re.compile(r"x\d")
"""The members that `Instances` adds to open objects."""
OWN_MEMBERS = frozenset({"_meta", "inputResponses", "requestState"})
FRAME = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@cache
def protocols(old: str, new: str) -> tuple[Protocol, Protocol]:
    """Both sides of a pair."""
    return diff.load(old, new, errata=True)


@cache
def table(old: str, new: str) -> bridge.Bridge:
    """The bridge of a pair."""
    return bridge.derive(*protocols(old, new))


@dataclass
class Passage:
    """The messages of one revision that were sent to a peer of another one."""

    count: int = 0
    lost: dict[str, str] = field(default_factory=dict[str, str])
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def miss(self, message: str) -> None:
        """Record a message that did not arrive."""
        self.count += 1
        self.lost.setdefault(message, "")

    def compare(self, message: str, before: Json, after: Json) -> None:
        """Compare params or a result before and after the proxy."""
        self.count += 1
        part = message.rpartition(".")[2]
        for place in differences(_with_single_blocks(before, after), after, message):
            holder, _, name = place.rpartition(".")
            is_unknown = UNKNOWN.fullmatch(name) is not None or name == KIND
            row = f"{part}.*" if is_unknown and (part == "result" or holder == message) else place
            self.lost.setdefault(row, f"{json.dumps(before)} -> {json.dumps(after)}")


@dataclass(frozen=True)
class Block:
    """A block of a message that had several."""

    value: Json


def _with_single_blocks(before: Json, after: Json) -> Json:
    """Params of sampling with a message for each block, if that is how they arrived."""
    messages, others = before.get("messages"), after.get("messages", [])
    if messages is None or any(is_array(each.get("content")) for each in others):
        return before
    contents = [
        [Block(block) for block in each["content"]]
        if is_array(each["content"])
        else [each["content"]]
        for each in messages
    ]
    split = [
        {**each, "content": block}
        for each, blocks in zip(messages, contents, strict=True)
        for block in blocks
    ]
    return {**before, "messages": split}


def differences(before: Json, after: Json, place: str) -> Iterator[str]:
    """The places where a value differs, except for members that were added."""
    if is_object(before) and is_object(after):
        if before.get("type") != after.get("type"):
            yield f"{place}.type={before.get('type')}"
            return
        is_map = place.endswith("requestedSchema.properties")
        for name, value in before.items():
            inner = f"{place}{{}}" if is_map else f"{place}.{name}"
            if name in after:
                yield from differences(value, after[name], inner)
            elif value is not None:
                yield inner
    elif isinstance(before, Block):
        yield f"{place}[]"
        yield from differences(before.value, after, place)
    elif is_array(before) != is_array(after):
        yield f"{place}[]"
    elif is_array(before) and is_array(after):
        if len(before) != len(after):
            yield f"{place}[]"
        for one, other in zip(before, after, strict=False):
            yield from differences(one, other, f"{place}[]")
    elif before != after:
        yield place


@dataclass
class Script:
    """The behaviour of the server behind the proxy in the next request."""

    outcome: Wire
    question: Wire | None = None
    notifications: list[Wire] = field(default_factory=list[Wire])


class Far(RawServer):
    """The server behind the proxy."""

    def __init__(self, revision: str) -> None:
        super().__init__(SERVER)
        self.script = Script({"result": {}})
        self.params: Wire = {}
        self.reply: Json = None
        self.heard: list[Wire] = []
        self._waiting: Json = None
        self._revision = revision

    async def take(self, message: Wire) -> None:
        """Answer by the script."""
        method = message.get("method")
        if method is None:
            self.reply = message.get("result", message)
            await self.send({"id": self._waiting, **self.script.outcome})
        elif "id" not in message:
            self.heard.append(message)
        elif method == LISTEN:
            params = {**message["params"], "_meta": {SUBSCRIPTION: message["id"]}}
            await self.send({"method": ACKNOWLEDGED, "params": params})
        elif method in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
            frame = {} if self._revision in HANDSHAKE else FRAME
            await self.send({"id": message["id"], "result": frame})
        else:
            self.params = message.get("params", {})
            self._waiting = message["id"]
            token = self.params.get("_meta", {}).get("progressToken")
            for each in self.script.notifications:
                sent = copy.deepcopy(each)
                if each["method"] == PROGRESS:
                    sent["params"]["progressToken"] = token
                await self.send(sent)
            await self.send(self.answer(self._waiting))

    def answer(self, identifier: Json) -> Wire:
        """The response, or the question before it."""
        question = self.script.question
        if question is None:
            return {"id": identifier, **self.script.outcome}
        if self._revision in HANDSHAKE:
            return {"id": "question", **question}
        if "inputResponses" in self.params:
            self.reply = self.params["inputResponses"]["q"]
            return {"id": identifier, **self.script.outcome}
        asked = {"resultType": "input_required", "inputRequests": {"q": question}}
        return {"id": identifier, "result": {**asked, "requestState": "s"}}


class Traffic:
    """Random messages between a client of one revision and a server of another one."""

    def __init__(self, near: str, far: str, seed: int = 0) -> None:
        self.near, self.far = near, far
        self.forth, self.back = Passage(), Passage()
        self._ours, self._theirs = protocols(near, far)
        random = Random(f"{near} {far} {seed}")
        self._random = random
        self._values = {
            (name, chance): Instances(side.normal.schema.definitions, random, chance)
            for name, side in ((near, self._ours), (far, self._theirs))
            for chance in (0.4, 0.9)
        }
        self._server = Far(far)

    async def run(self, exchanges: int) -> None:
        """Send so many requests, one after the other, each with its response."""
        proxy = Server.proxy(self._server, name="bridge", revision=self.far)
        requests = self._requests()
        requests += 2 * [pair for pair in requests if pair[0].name in WITH_CONTENT]
        questions = self._questions()
        async with speaking_to(proxy, self.near, CLIENT) as client:
            for number in range(exchanges):
                if questions and number % 3 == 0:
                    await self._ask(client, questions[number // 3 % len(questions)])
                else:
                    await self._request(client, self._random.choice(requests))

    async def run_notifications(self, rounds: int) -> None:
        """Send progress and log messages so many times, and changes of the client's roots once."""
        proxy = Server.proxy(self._server, name="bridge", revision=self.far)
        meta: Wire = {"progressToken": "own"}
        if self.near in PER_REQUEST:
            meta["io.modelcontextprotocol/logLevel"] = "debug"
        result = empty_result(self.far)
        async with speaking_to(proxy, self.near, CLIENT) as client:
            if self.near in HANDSHAKE:
                await client.ask("logging/setLevel", {"level": "debug"})
            for _ in range(rounds):
                sent = {name: self._notification(name) for name in (PROGRESS, MESSAGE)}
                messages = [{"method": name, "params": params} for name, params in sent.items()]
                self._server.script = Script({"result": result}, None, messages)
                await client.ask(CALL, {"name": "t"}, meta=meta, capabilities=CLIENT)
                heard = {each["method"]: each["params"] for each in client.heard}
                for name, params in sent.items():
                    self.back.compare(f"{name}.params", params, heard.get(name, {}))
            if ROOTS_CHANGED in self._ours.messages("client", "notification"):
                params = {"_meta": {"com.example/own": 1}}
                await client.send({"jsonrpc": "2.0", "method": ROOTS_CHANGED, "params": params})
                await client.ask(CALL, {"name": "t"}, capabilities=CLIENT)
                heard = {each["method"]: each.get("params", {}) for each in self._server.heard}
                if ROOTS_CHANGED in heard:
                    self.forth.compare(f"{ROOTS_CHANGED}.params", params, heard[ROOTS_CHANGED])
                else:
                    self.forth.miss(ROOTS_CHANGED)

    async def run_absent(self) -> None:
        """Send the messages that the other revision lacks."""
        proxy = Server.proxy(self._server, name="bridge", revision=self.far)
        result = empty_result(self.far)
        async with speaking_to(proxy, self.near, CLIENT) as client:
            for method in self._absent(self._ours, self._theirs, "client"):
                self._server.script = Script({"result": result})
                await self._send_absent(client, method)
                self.forth.miss(method.name)
            for method in self._absent(self._theirs, self._ours, "server"):
                await self._get_absent(client, method, result)
                self.back.miss(method.name)

    async def _send_absent(self, client: RawEnd, method: Method) -> None:
        """Send a message that the server's revision lacks, and check that it does not arrive."""
        params = self._params(self._ours, method)
        if method.kind == "request":
            response = await client.ask(method.name, params, capabilities=CLIENT)
            assert response["error"]["code"] == METHOD_NOT_FOUND
            return
        await client.send({"jsonrpc": "2.0", "method": method.name, "params": params})
        await client.ask(CALL, {"name": "t"}, capabilities=CLIENT)
        assert method.name not in [each["method"] for each in self._server.heard]

    async def _get_absent(self, client: RawEnd, method: Method, result: Wire) -> None:
        """Have the server send a message that the client's revision lacks, likewise."""
        params = self._params(self._theirs, method)
        if method.name == COMPLETE and ELICIT in self._ours.messages("server", "request"):
            link = {"mode": "url", "message": "?", "url": URL, "elicitationId": "e"}
            question = {"method": ELICIT, "params": link}
            self._server.script = Script({"result": result}, question)
            await ask_tool(client, {"action": "accept"})
            params["elicitationId"] = "e"
        message = {"method": method.name, "params": params}
        is_request = method.kind == "request"
        asked, announced = (message, []) if is_request else (None, [message])
        self._server.script = Script({"result": result}, asked, announced)
        self._server.reply = None
        got, response = await ask_tool(client, {})
        assert got is None
        assert method.name not in [each["method"] for each in client.heard]
        assert is_request is ("error" in response or "error" in (self._server.reply or {}))

    def _absent(self, side: Protocol, other: Protocol, sender: Role) -> list[Method]:
        """The messages of a side that are lost, since the other one lacks them."""
        decided = bridge.decisions()
        names = {*decided.separate[sender], *decided.replaced.get(sender, {})}
        return [
            method
            for kind in get_args(Kind)
            for name, method in side.messages(sender, kind).items()
            if name not in names and name not in other.messages(sender, kind)
        ]

    async def run_errors(self) -> None:
        """Answer with an error of each code that the server's revision has."""
        proxy = Server.proxy(self._server, name="bridge", revision=self.far)
        rows = [row.id for row in table(self.far, self.near).rows]
        codes = [int(row.partition("=")[2]) for row in rows if row.startswith("error.code=")]
        async with speaking_to(proxy, self.near, CLIENT) as client:
            for code in codes:
                error = {"code": code, "message": "m", "data": {"uri": "x:y", "own": [1.0]}}
                self._server.script = Script({"error": error})
                response = await client.ask("resources/read", {"uri": "x:y"}, capabilities=CLIENT)
                got = response["error"]
                self.back.count += 1
                if got["code"] != code:
                    self.back.lost[f"error.code={code}"] = json.dumps(got)
                if got["data"] != error["data"]:
                    self.back.lost[f"error.code={code}.data"] = json.dumps(got)

    def _notification(self, name: str) -> Wire:
        """Params of a notification of the server."""
        method = self._theirs.messages("server", "notification")[name]
        params = self._params(self._theirs, method)
        return {key: value for key, value in params.items() if key != "progressToken"}

    def _requests(self) -> list[tuple[Method, Method]]:
        """The requests of a client that pass, in both revisions."""
        theirs = self._theirs.messages("client", "request")
        separate = bridge.decisions().separate["client"].keys()
        left_out = {*separate, "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
        return [
            (method, theirs[name])
            for name, method in self._ours.messages("client", "request").items()
            if name in theirs and name not in left_out
        ]

    def _questions(self) -> list[tuple[Method, Method]]:
        """The requests of a server that pass, in the client's revision and in its own."""
        ours = self._ours.messages("server", "request")
        separate = bridge.decisions().separate["server"].keys()
        return [
            (ours[name], method)
            for name, method in self._theirs.messages("server", "request").items()
            if name in ours and name not in separate
        ]

    async def _request(self, client: RawEnd, pair: tuple[Method, Method]) -> None:
        ours, theirs = pair
        params = self._params(self._ours, ours)
        result = self._result(self._theirs, theirs)
        self._server.script = Script({"result": result})
        self._server.params = {}
        response = await client.ask(ours.name, params, capabilities=CLIENT)
        if "error" in response:
            (self.back if self._server.params else self.forth).refused.setdefault(
                ours.name, f"{response['error']}: {json.dumps(result)}"
            )
            return
        self.forth.compare(f"{ours.name}.params", params, self._server.params)
        self.back.compare(f"{ours.name}.result", result, response["result"])

    async def _ask(self, client: RawEnd, pair: tuple[Method, Method]) -> None:
        ours, theirs = pair
        params = self._params(self._theirs, theirs)
        reply = self._result(self._ours, ours)
        result = empty_result(self.far)
        self._server.script = Script({"result": result}, {"method": ours.name, "params": params})
        self._server.reply = None
        got, response = await ask_tool(client, reply)
        if "error" in response or got is None:
            answer = response.get("error", self._server.reply)
            text = f"{answer}: {json.dumps(params)}: {json.dumps(reply)}"
            (self.back if got is None else self.forth).refused.setdefault(ours.name, text)
            return
        self.back.compare(f"{ours.name}.params", params, got)
        self.forth.compare(f"{ours.name}.result", reply, self._server.reply)

    def _instances(self, side: Protocol) -> Instances:
        return self._values[side.name, self._random.choice((0.4, 0.9))]

    def _params(self, side: Protocol, method: Method) -> Wire:
        """Params without the members that belong to the protocol."""
        definition = side.normal.schema.definitions[method.type]
        node = definition["properties"].get("params")
        params: Wire = {} if node is None else self._instances(side).of(node)
        has_meta = "_meta" in bridge.params_of(side, method).fields
        own: Wire = {"com.example/own": self._random.random()}
        meta: Wire = {"_meta": own} if has_meta else {}
        kept = {name: value for name, value in params.items() if name not in OWN_MEMBERS}
        kept |= {"url": URL} if "url" in kept else {}
        if "messages" in kept:
            kept["messages"] = self._with_whole_calls(side, kept["messages"])
        return {**kept, **meta}

    def _with_whole_calls(self, side: Protocol, messages: list[Wire]) -> list[Wire]:
        """Messages of sampling, each call of a tool followed by its result."""
        plain = [each for each in messages if not CALLS & _kinds(each["content"])]
        if "ToolUseContent" not in side.normal.schema.definitions or self._random.random() < 0.5:
            return plain
        values = self._instances(side)
        use, result = values.valid("ToolUseContent"), values.valid("ToolResultContent")
        result["toolUseId"] = use["id"]
        is_list = self._random.random() < 0.5
        pair = (("assistant", use), ("user", result))
        return plain + [
            {"role": role, "content": [block] if is_list else block} for role, block in pair
        ]

    def _result(self, side: Protocol, method: Method) -> Wire:
        """A complete result."""
        variants = {name for each in bridge.decisions().variants.values() for name in each}
        names = [name for name in method.results if name not in variants]
        result: Wire = self._instances(side).valid(self._random.choice(names))
        meta = result.pop("_meta", {})
        kept = {key: value for key, value in meta.items() if "modelcontextprotocol" not in key}
        result |= {"_meta": kept} if kept else {}
        if side.name in PER_REQUEST and method.sender == "client":
            result["resultType"] = "complete"
        if method.name == SAMPLE and self.near in HANDSHAKE and self._random.random() < 0.2:
            result["content"] = dict(HOLOGRAM)
        return result


def empty_result(revision: str) -> Wire:
    """A tool's result without content."""
    return {"content": [], **({} if revision in HANDSHAKE else FRAME)}


def _kinds(content: Json) -> set[str]:
    """The kinds of blocks of content."""
    return {block["type"] for block in (content if is_array(content) else [content])}


async def ask_tool(client: RawEnd, reply: Wire) -> tuple[Json, Wire]:
    """Call a tool that asks; gives the params of the question, and the response."""
    got: Json = None
    call: Wire = {"name": "t", "arguments": {}}
    if client.revision in PER_REQUEST:
        response = await client.ask(CALL, call, capabilities=CLIENT)
        result = response.get("result", {})
        if result.get("resultType") == "input_required":
            [(key, question)] = result["inputRequests"].items()
            got = question.get("params", {})
            call |= {"inputResponses": {key: reply}}
            call |= {"requestState": result["requestState"]} if "requestState" in result else {}
            response = await client.ask(CALL, call, capabilities=CLIENT)
        return got, response
    client.heard = []
    await client.send({"jsonrpc": "2.0", "id": "call", "method": CALL, "params": call})
    while True:
        message = await client.receive()
        if "method" not in message:
            return got, message
        if "id" not in message:
            client.heard.append(message)
        else:
            got = message.get("params", {})
            await client.send({"jsonrpc": "2.0", "id": message["id"], "result": reply})
