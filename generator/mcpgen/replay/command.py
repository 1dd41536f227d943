"""Replays the sessions of a trace against a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from mcpgen import __version__, schema
from mcpgen.contract.command import peer_files
from mcpgen.errors import ServerError, UsageError, safe_text
from mcpgen.explain.revision import revision
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.schema_queries import META
from mcpgen.project import live_server
from mcpgen.project.live_server import Target
from mcpgen.replay.carrying import DISCOVER, carry
from mcpgen.replay.channels import Wire, in_memory, listed_tools, open_wire
from mcpgen.replay.matching import Matcher, Rule
from mcpgen.replay.outcomes import Run
from mcpgen.replay.playing import Player, Timeouts
from mcpgen.replay.recording import INITIALIZE, Session


@dataclass(frozen=True)
class Options:
    """The options of a replay.

    Attributes:
        rules: How messages are compared, besides the rules of the protocol.
        timeouts: How long messages are waited for.
        session: The number of the only session to play, from 1; `None` for all.
        revisions: The revisions in which each session is played: names, or `all` for those that the
            server speaks; that of the session if there are none.
    """

    rules: tuple[Rule, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    session: int | None = None
    revisions: tuple[str, ...] = ()


ALL = "all"

OpenWire: TypeAlias = Callable[[Session], AbstractAsyncContextManager[Wire]]
"""Opens a channel to the server for a session."""


def replay(sessions: Sequence[Session], words: str, directory: Path, options: Options) -> list[Run]:
    """Replay sessions against a server that a user names, each over a connection of its own.

    Args:
        sessions: The sessions.
        words: The server, as a user names it.
        directory: The working directory of a command.
        options: The options.

    Raises:
        UsageError: The words name no server, or there is no such session.
        MirrorError: A file that the words name has no such server.
        ServerError: The server does not start.
    """
    target = live_server.target(words, directory)
    chosen = choose(sessions, options)
    with live_server.import_package(peer_files()) as package:
        return anyio.run(_replay_all, package, chosen, target, options)


def replay_in_process(sessions: Sequence[Session], server: Any, options: Options) -> list[Run]:
    """Replay sessions against a server of a generated package in this process.

    Args:
        sessions: The sessions.
        server: The server.
        options: The options.

    Raises:
        UsageError: It is no server of a generated package, or there is no such session.
    """
    package = _package_of(server)
    chosen = choose(sessions, options)

    def opener(_: Session) -> AbstractAsyncContextManager[Wire]:
        return in_memory(package, server)

    return anyio.run(play_all, chosen, opener, options)


def _package_of(server: Any) -> Any:
    """The generated package that a server is of.

    Raises:
        UsageError: It is none of one.
    """
    names = [each.__module__ for each in type(server).__mro__]
    for name in names:
        while name:
            package = sys.modules.get(name)
            is_package = hasattr(package, "__path__") and hasattr(package, "REVISIONS")
            if is_package and callable(getattr(server, "serve", None)):
                return package
            name = name.rpartition(".")[0]
    expected = "TARGET, or a server of a generated package"
    raise UsageError(f"expected {expected}, got {safe_text(type(server).__name__)}")


def choose(sessions: Sequence[Session], options: Options) -> dict[int, Session]:
    """The sessions to play, by number.

    Raises:
        UsageError: There is no such session.
    """
    numbered = dict(enumerate(sessions, 1))
    if options.session is None:
        return numbered
    if options.session not in numbered:
        expected = f"--session of 1 to {len(sessions)}"
        raise UsageError(f"expected {expected}, got {options.session}")
    return {options.session: numbered[options.session]}


async def _replay_all(
    package: Any, sessions: dict[int, Session], target: Target, options: Options
) -> list[Run]:
    def opener(session: Session) -> AbstractAsyncContextManager[Wire]:
        tools = [tool for each in session.messages for tool in listed_tools(each.value)]
        return open_wire(package, target, tools)

    return await play_all(sessions, opener, options)


async def play_all(sessions: dict[int, Session], opener: OpenWire, options: Options) -> list[Run]:
    """Play sessions one after the other, each over a channel of its own.

    Raises:
        UsageError: A revision does not exist, or a session names none to carry it over from.
        ServerError: The server does not start, or does not speak a revision that was named.
    """
    runs: list[Run] = []
    spoken: dict[str, bool] = {}
    for number, session in sessions.items():
        for name in _revisions_of(session, options):
            if name != session.revision and name not in spoken:
                async with opener(session) as wire:
                    spoken[name] = await speaks(wire, name, options.timeouts.answer)
            if spoken.get(name, True):
                async with opener(session) as wire:
                    runs.append(await _play(wire, session, name, number, options))
            elif ALL not in options.revisions:
                raise ServerError(f"expected a server that speaks {name}, got one of others")
    return runs


def _revisions_of(session: Session, options: Options) -> list[str]:
    """The revisions in which a session is played."""
    known = [row.name for row in schema.revisions()]
    if not options.revisions:
        return [session.revision]
    if not session.revision:
        raise UsageError("expected a session that names its revision, for --revision; got none")
    for name in options.revisions:
        if name != ALL and name not in known:
            raise UsageError(
                f"expected --revision of {', '.join(known)} or {ALL}, got {safe_text(name)}"
            )
    return known if ALL in options.revisions else [*options.revisions]


async def _play(wire: Wire, session: Session, name: str, number: int, options: Options) -> Run:
    matcher = Matcher(options.rules)
    if name == session.revision:
        return await Player(wire, session, matcher, options.timeouts, number).play()
    carried = carry(session, name)
    player = Player(wire, carried.session, matcher, options.timeouts, number, carried)
    return await player.play()


async def speaks(wire: Wire, name: str, seconds: float) -> bool:
    """Whether a server answers the first message of a revision in that revision, in so long."""
    each = revision(name)
    keys = each.protocol.facts.meta
    client = {"name": "mcpgen", "version": __version__}
    if each.protocol.methods.handshake:
        params: Node = {"protocolVersion": each.version, "capabilities": {}, "clientInfo": client}
        method = INITIALIZE
    else:
        meta = {
            str(keys.protocol_version): each.version,
            str(keys.client_info): client,
            str(keys.client_capabilities): {},
        }
        params, method = {META: meta}, DISCOVER
    request = {"jsonrpc": "2.0", "id": "mcpgen", "method": method, "params": params}
    result: Json = None
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_ask, wire, request, name, tasks)
            result = await _result_of(wire)
            tasks.cancel_scope.cancel()
    if not is_object(result):
        return False
    versions: Json = result.get("supportedVersions")
    return result.get("protocolVersion") == each.version or (
        is_array(versions) and each.version in versions
    )


async def _ask(wire: Wire, request: Node, name: str, tasks: TaskGroup) -> None:
    """Send a request; end the tasks if it is refused."""
    try:
        await wire.send(request, name)
    except wire.errors.McpError:
        tasks.cancel_scope.cancel()


async def _result_of(wire: Wire) -> Json:
    """The result of the only request; `None` if there is none."""
    while True:
        try:
            message: Json = json.loads(await wire.receive())
        except (wire.errors.FrameError, ValueError):
            continue
        except wire.errors.McpError:
            return None
        if is_object(message) and message.get("id") == "mcpgen" and "method" not in message:
            return message.get("result")
