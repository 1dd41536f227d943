"""The exchanges of a trace as scenes: what a server sends before and after each answer.

Messages of the server that belong to no request are sent at the place where they were recorded:

    before the first request    opening
    while a request is open     before the answer to the newest of these
    at any other time           after the answer to the last request

Requests that open a session, subscribe to a stream or check that the peer is alive are no scenes:
the package that serves the trace answers these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.schema_queries import META
from mcpgen.replay.recording import CANCELLED, INITIALIZE, Exchange, Message, Session

DISCOVER = "server/discover"
PING = "ping"
_OPENINGS = (INITIALIZE, DISCOVER)
_SERVER_INFO = "serverInfo"
_CACHE_HINTS = ("ttlMs", "cacheScope")


@dataclass(frozen=True)
class Scene:
    """A recorded request, and what the server sends for it.

    Attributes:
        exchange: The request and its answer.
        before: Notifications and requests of the server before the answer, in order.
        after: Those after the answer and before the next request.
    """

    exchange: Exchange
    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()

    @property
    def request(self) -> Message:
        """The request."""
        return self.exchange.request

    @property
    def answer(self) -> Message | None:
        """Its response; `None` if the trace has none."""
        return self.exchange.answer


@dataclass(frozen=True)
class Play:
    """A session as it is served.

    Attributes:
        revision: The revision that it was recorded in.
        info: The server's `Implementation`; empty if the trace does not have it.
        capabilities: The capabilities of the server; `None` if the trace does not have them.
        instructions: The server's instructions.
        cache: Cache hints of its description.
        opening: Messages of the server before the first request.
        scenes: The requests in order.
    """

    revision: str
    info: Node
    capabilities: Node | None
    instructions: str | None
    cache: Node
    opening: tuple[Message, ...]
    scenes: tuple[Scene, ...]


def play_of(sessions: Sequence[Session], listen: str | None) -> Play:
    """The play of sessions with one server, in one revision.

    Args:
        sessions: The sessions, of which the first one describes the server.
        listen: The request that opens a subscription stream in the revision; `None` if none does.
    """
    first = sessions[0]
    opening = _description_of(first)
    staged = [_stage(session, listen) for session in sessions]
    meta: Json = opening.get(META)
    stated = meta if is_object(meta) else {}
    infos: list[Json] = [opening.get(_SERVER_INFO)]
    infos += [value for name, value in stated.items() if name.endswith(f"/{_SERVER_INFO}")]
    named: list[Node] = list(filter(is_object, infos))
    instructions: Json = opening.get("instructions")
    return Play(
        first.revision,
        named[0] if named else {},
        opening.get("capabilities"),
        instructions if isinstance(instructions, str) else None,
        {name: opening[name] for name in _CACHE_HINTS if name in opening},
        staged[0][0],
        tuple(scene for _, scenes in staged for scene in scenes),
    )


def server_of(session: Session) -> str:
    """The name of a session's server; empty if the trace does not have it."""
    name: Json = play_of([session], None).info.get("name")
    return name if isinstance(name, str) else ""


def _description_of(session: Session) -> Node:
    """The result that opened a session; empty if there is none."""
    for exchange in session.exchanges:
        answer = exchange.answer
        if exchange.request.method in _OPENINGS and answer is not None:
            result: Json = answer.value.get("result")
            if is_object(result):
                return result
    return {}


def _stage(session: Session, listen: str | None) -> tuple[tuple[Message, ...], list[Scene]]:
    """The messages before the first request of a session, and its scenes."""
    others = (*_OPENINGS, PING, listen)
    scenes = [
        Scene(each, tuple(_sent_in(each.stream)))
        for each in session.exchanges
        if each.request.method not in others
    ]
    staged = {scene.request.number for scene in scenes}
    apart = [message for message in _sent_in(session.messages) if message.within not in staged]
    opening: list[Message] = []
    for message in apart:
        index = _index_before(message, scenes)
        if index is None:
            opening.append(message)
        else:
            scenes[index] = _with(scenes[index], message)
    return tuple(opening), scenes


def _sent_in(messages: Iterable[Message]) -> Iterable[Message]:
    """The messages among these that a server sends of itself, without what ends its requests."""
    return (
        each
        for each in messages
        if each.sender == "server" and not each.is_response and each.method not in _OF_THE_PACKAGE
    )


_OF_THE_PACKAGE: Collection[str] = (CANCELLED, "notifications/subscriptions/acknowledged", PING)
"""Messages that the package which serves a trace sends by itself."""


def _index_before(message: Message, scenes: Sequence[Scene]) -> int | None:
    """The index of the last scene that began before a message."""
    begun = (index for index, scene in enumerate(scenes) if scene.request.number < message.number)
    return max(begun, default=None)


def _with(scene: Scene, message: Message) -> Scene:
    if scene.answer is not None and scene.answer.number < message.number:
        return replace(scene, after=(*scene.after, message))
    before = sorted((*scene.before, message), key=lambda each: each.number)
    return replace(scene, before=tuple(before))
