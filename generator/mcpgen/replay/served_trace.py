"""A trace as a server: a generated package serves it, and answers as it was recorded.

There are two servers, joined in memory:

    client  <->  proxy, in any revision  <->  recorded server, in the revision of the trace

The recorded server has the description, the answers, the notifications and the requests of the
trace. The proxy is that of `Server.proxy`: it speaks all transports and revisions, and converts
messages where the client's revision is another one. Each session of a client over HTTP, and each
client over stdio, has a playback of its own; clients without sessions share one.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import anyio
import anyio.abc

from mcpgen.errors import UsageError, safe_text
from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.schema_queries import META
from mcpgen.replay.faults import Fault, Faults, FaultyApplication
from mcpgen.replay.matching import Rule
from mcpgen.replay.playback import Miss, Playback, SequentialPlayback, UnorderedPlayback
from mcpgen.replay.recording import PROGRESS, PROGRESS_TOKEN, SUBSCRIPTION_ID, Message, Session
from mcpgen.replay.scenes import Play, Scene, play_of

Latency: TypeAlias = float | Literal["recorded"]
"""Seconds before each answer, or the times of the trace before each message."""

PATH = "/mcp"
"""Path of the endpoint over HTTP."""

_NAME = "recorded server"
_SET_LEVEL = "logging/setLevel"
_SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
_STATE = (_SET_LEVEL, *_SUBSCRIPTIONS)
"""Requests that change what a session gets. They have no order, and succeed unless recorded
otherwise: the proxy sends them itself, for clients whose revision has another way."""

_NOT_PASSED = "tasks"
"""The capability that proxies do not pass on: they wait for tasks themselves."""


@dataclass(frozen=True)
class ServeOptions:
    """The options of a served trace.

    Attributes:
        order: Whether requests come in any order, or in that of the trace.
        latency: The delay of answers.
        faults: Calls that fail.
        rules: What is compared by shape, besides the rules of the protocol.
    """

    order: Literal["any", "strict"] = "any"
    latency: Latency = 0.0
    faults: Sequence[Fault] = ()
    rules: Sequence[Rule] = ()

    def playback(self, scenes: Sequence[Scene]) -> Playback:
        """A new playback of scenes."""
        kind = UnorderedPlayback if self.order == "any" else SequentialPlayback
        return kind(scenes, self.rules)


@dataclass
class RecordedServer:
    """A server that answers as a trace has it, in the revision of the trace.

    Attributes:
        package: A generated package with that revision.
        play: The recorded session.
        options: The options.
        playbacks: The playback of each session that was served, in order.
    """

    package: Any
    play: Play
    options: ServeOptions
    playbacks: list[Playback] = field(default_factory=list[Playback])

    async def serve(self, channel: Any) -> None:
        """Serve one client over a channel of the package, until it disconnects."""
        serving, chosen, upstream = (
            importlib.import_module(f"{self.package.__name__}.{name}")
            for name in ("server.serving", "server.chosen", "proxy.upstream")
        )
        playback = self.options.playback(self._scenes)
        self.playbacks.append(playback)
        async with anyio.create_task_group() as tasks:
            responder = _Responder(self.package, self.play, self.options, playback, tasks)
            service = serving.Service(
                application=SimpleNamespace(handle=responder.handle, notified=responder.ignore),
                revisions=self.package.REVISIONS.only(self.play.revision),
                describe=self.describe,
                new_connection=chosen.new_connection,
                extensions=upstream.PassedMethods(),
            )
            await serving.serve(service, channel)
            tasks.cancel_scope.cancel()

    def describe(self, _: Any) -> Any:
        """The description of the server, as it was recorded."""
        lifecycle = importlib.import_module(f"{self.package.__name__}.protocol.lifecycle")
        return lifecycle.Description(
            self.info, self.capabilities, self.play.instructions, self.play.cache or None
        )

    @property
    def _scenes(self) -> list[Scene]:
        """The scenes that have an order."""
        return [each for each in self.play.scenes if each.request.method not in _STATE]

    @property
    def info(self) -> Node:
        """The `Implementation` of the server."""
        return {"name": _NAME, "version": "0", **self.play.info}

    @property
    def capabilities(self) -> Node:
        """The capabilities of the server; without a recorded description, those it used."""
        if self.play.capabilities is not None:
            return {
                name: value for name, value in self.play.capabilities.items() if name != _NOT_PASSED
            }
        rows = self.package.REVISIONS[self.play.revision].client_requests
        methods = {scene.request.method for scene in self.play.scenes} & rows.keys()
        return {rows[name].capability[0]: {} for name in sorted(methods) if rows[name].capability}

    def problems(self) -> list[str]:
        """The requests that were not as recorded, and those that never came, one line each.

        A session without any request does not count, unless all are.
        """
        count = len(self._scenes)
        used = [each for each in self.playbacks if each.missed or len(each.unplayed) < count]
        lines: list[str] = []
        for playback in used or [self.options.playback(self._scenes)]:
            lines += playback.missed
            lines += (
                f"{each.request.method}: the request of line {each.request.line} never came"
                for each in playback.unplayed
            )
        return lines


class _Responder:
    """Answers the requests of one session by the scenes that they ask for.

    Args:
        package: The generated package.
        play: The recorded session.
        options: The options.
        playback: Finds the scenes.
        tasks: Runs what is sent after an answer.
    """

    def __init__(
        self,
        package: Any,
        play: Play,
        options: ServeOptions,
        playback: Playback,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._package = package
        self._latency = options.latency
        self._playback = playback
        self._state = UnorderedPlayback(
            [scene for scene in play.scenes if scene.request.method in _STATE], options.rules
        )
        self._tasks = tasks
        self._opening = play.opening

    async def handle(self, context: Any) -> Any:
        """The recorded result of a request.

        Raises:
            ProtocolError: The recorded error; or the trace has no such request.
        """
        arrival = anyio.current_time()
        opening, self._opening = self._opening, ()
        if opening:
            self._tasks.start_soon(self._send_all, context.peer, opening, opening[0])
        method, params = context.method.name, _params(context)
        taken = self._take(method, params)
        if isinstance(taken, Miss):
            if method in _STATE:
                return {}
            raise self._error(taken.code, taken.text, taken.data)
        for message in taken.before:
            await anyio.sleep_until(arrival + self._delay(taken, message))
            if message.kind == "request":
                await self._ask(context, message)
            else:
                await self._notify(context, message)
        if taken.answer is None:  # it was cancelled, or the connection ended
            await anyio.sleep_forever()
        return await self._answer(context, taken, arrival)

    async def ignore(self, context: Any) -> None:
        """Ignore a notification of the client."""

    def _take(self, method: str, params: Node) -> Scene | Miss:
        if method not in _STATE:
            return self._playback.take(method, params)
        return self._state.take(method, params)

    async def _answer(self, context: Any, scene: Scene, arrival: float) -> Any:
        """The result of a scene, after whose response the rest of it is sent."""
        assert scene.answer is not None
        await anyio.sleep_until(arrival + self._delay(scene, scene.answer))
        if scene.after:  # a new task runs only when the response is on its way
            self._tasks.start_soon(self._send_all, context.peer, scene.after, scene.answer)
        value = scene.answer.value
        error: Json = value.get("error")
        if is_object(error):
            raise self._error(error.get("code"), error.get("message"), error.get("data"))
        return self._raw(value.get("result"))

    def _delay(self, scene: Scene, message: Message) -> float:
        """Seconds from the arrival of a request to the sending of a message."""
        if isinstance(self._latency, str):
            return message.seconds - scene.request.seconds
        return self._latency if message is scene.answer else 0.0

    async def _notify(self, context: Any, message: Message) -> None:
        """Send a notification on the stream of a request."""
        params = message.params
        if message.method == PROGRESS:
            progress, total, text = (params.get(name) for name in ("progress", "total", "message"))
            await context.progress(progress, total, text)
        else:
            await context.notify(message.method, _without_meta_of_protocol(params))

    async def _ask(self, context: Any, message: Message) -> None:
        """Send a request of the server to the client, whose result may be any.

        Raises:
            ProtocolError: The client did not answer with a result.
        """
        try:
            await context.peer.request_raw(
                message.method,
                self._raw(_without_meta_of_protocol(message.params)),
                related_request_id=context.request_id,
            )
        except self._package.RemoteError as error:
            text = (
                f"the client refused {message.method}, which the server sent in line"
                f" {message.line}: {error.message}"
            )
            raise self._error(error.code, text, None) from error

    async def _send_all(self, peer: Any, messages: Sequence[Message], since: Message) -> None:
        """Send messages that belong to no request; `since` is the recorded message before them."""
        start = anyio.current_time()
        for message in messages:
            params = _without_meta_of_protocol(message.params)
            if self._latency == "recorded":
                await anyio.sleep_until(start + message.seconds - since.seconds)
            try:
                if message.kind == "request":
                    await peer.request_raw(message.method, self._raw(params))
                else:
                    await peer.notify(message.method, params)
            except self._package.McpError as error:
                logger = logging.getLogger(self._package.__name__)
                logger.warning("line %d: not sent: %s", message.line, error)

    def _raw(self, value: Json) -> Any:
        wire = importlib.import_module(f"{self._package.__name__}._wire")
        return wire.Raw(wire.encode(value))

    def _error(self, code: Json, message: Json, data: Json) -> Exception:
        more = {} if data is None else {"data": data}
        error: Exception = self._package.ProtocolError(str(message), code=code, **more)
        return error


def _params(context: Any) -> Node:
    """The params of a request as they were received."""
    raw = context.raw_params
    params: Json = {} if raw is None else json.loads(bytes(raw))
    return params if is_object(params) else {}


def _without_meta_of_protocol(params: Node) -> Node:
    """The params of a message without tokens of progress and ids of subscriptions in `_meta`."""
    meta: Json = params.get(META)
    if not is_object(meta):
        return params
    kept = {
        name: value
        for name, value in meta.items()
        if name != PROGRESS_TOKEN and not name.endswith(SUBSCRIPTION_ID)
    }
    others = {name: value for name, value in params.items() if name != META}
    return {**others, META: kept} if kept else others


def recorded_server(
    package: Any, sessions: Sequence[Session], options: ServeOptions
) -> RecordedServer:
    """A server for recorded sessions.

    Args:
        package: A generated package with all revisions, a client, a server and the feature `proxy`.
        sessions: The sessions of one server in one revision; see `select_sessions`.
        options: The options.

    Raises:
        UsageError: The package does not have the revision.
    """
    revision = sessions[0].revision
    if revision not in package.REVISIONS:
        raise UsageError(f"expected a trace of {', '.join(package.REVISIONS)}, got {revision!r}")
    listen = package.REVISIONS[revision].facts.behaviour.listen
    return RecordedServer(package, play_of(sessions, listen), options)


_MEMBERS = {
    "title": "title",
    "description": "description",
    "websiteUrl": "website_url",
    "icons": "icons",
}
"""Arguments of `Server`, by the members of the recorded `Implementation`."""


def mock_server(recorded: RecordedServer, *, closes_channel: bool) -> Any:
    """A server of the package, in all its revisions, that answers as a recorded server.

    Args:
        recorded: The recorded server.
        closes_channel: Whether faults that close the connection close the channel of the client;
            over HTTP an application around the server does that.
    """
    info = recorded.info
    described = {keyword: info[name] for name, keyword in _MEMBERS.items() if name in info}
    own_faults = [
        each
        for each in recorded.options.faults
        if each.form == "error" or (each.form == "close" and closes_channel)
    ]
    faults = Faults(own_faults)
    package = recorded.package
    errors = importlib.import_module(f"{package.__name__}.errors")

    def begin(self: Any, name: str, version: str, **options: Any) -> None:
        own = {**described, **options, "capabilities": recorded.capabilities}
        package.Server.__init__(self, name, version, **own)

    async def handle(self: Any, context: Any) -> Any:
        fault = faults.take(context.method.name)
        if fault is None:
            return await package.Server.handle(self, context)
        if fault.form == "close":
            await context.peer.channel.close()
        raise errors.InternalError(fault.text)

    mock: Any = type("MockServer", (package.Server,), {"__init__": begin, "handle": handle})
    return mock.proxy(recorded, info["name"], info["version"], revision=recorded.play.revision)


def run_stdio(recorded: RecordedServer) -> None:
    """Serve one client at standard input and output, until it disconnects or a signal comes."""
    mock_server(recorded, closes_channel=True).run(banner=False)


def run_http(recorded: RecordedServer, address: str, on_start: Callable[[str], object]) -> None:
    """Serve clients over HTTP until a signal comes.

    Args:
        recorded: The recorded server.
        address: Host and port to listen at, such as `127.0.0.1:8000`.
        on_start: Called with the URL once clients can connect.

    Raises:
        UsageError: The address is malformed or taken, or a library for HTTP is missing.
    """
    package = recorded.package
    adapter, errors = (
        importlib.import_module(f"{package.__name__}.{name}")
        for name in ("server.asgi.uvicorn_adapter", "errors")
    )
    application = mock_server(recorded, closes_channel=False).asgi(PATH)
    faults = Faults([each for each in recorded.options.faults if each.form != "error"])
    try:
        adapter.run(
            FaultyApplication(application, faults), adapter.parse_address(address), 0.0, on_start
        )
    except errors.MissingExtraError as error:
        raise UsageError("--http needs uvicorn, which the extra http of mcpgen brings") from error
    except (ValueError, errors.ListenFailedError) as error:
        raise UsageError(f"--http: {safe_text(str(error))}") from error


def methods_without_counterpart(recorded: RecordedServer) -> list[str]:
    """The recorded requests that other revisions lack, one line for each revision."""
    revisions = recorded.package.REVISIONS
    own = revisions[recorded.play.revision]
    methods = {scene.request.method for scene in recorded.play.scenes} & own.client_requests.keys()
    methods -= {*_STATE}
    sent = {
        message.method
        for scene in recorded.play.scenes
        for message in scene.before
        if message.kind == "request"
    }
    lines: list[str] = []
    for revision in revisions.values():
        questions = {**revision.server_requests, **revision.input_requests}
        lost = sorted({*(methods - revision.client_requests.keys()), *(sent - questions.keys())})
        if lost:
            lines.append(f"{revision.name} has no {', '.join(lost)}")
    return lines
