"""Replays the sessions of a trace against a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mcpgen.contract.command import peer_files
from mcpgen.errors import UsageError
from mcpgen.json_types import Node, is_array, is_object
from mcpgen.project import live_server
from mcpgen.project.live_server import Target
from mcpgen.replay.channels import open_channel
from mcpgen.replay.matching import Matcher, Rule
from mcpgen.replay.outcomes import Run
from mcpgen.replay.playing import Player, Timeouts
from mcpgen.replay.recording import Session

_TOOLS = "tools"


@dataclass(frozen=True)
class Options:
    """The options of a replay.

    Attributes:
        rules: How messages are compared, besides the rules of the protocol.
        timeouts: How long messages are waited for.
        session: The number of the only session to play, from 1; `None` for all.
    """

    rules: tuple[Rule, ...] = ()
    timeouts: Timeouts = Timeouts()
    session: int | None = None


OpenChannel = Callable[[Session], AbstractAsyncContextManager[Any]]
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
    def opener(session: Session) -> AbstractAsyncContextManager[Any]:
        return open_channel(package, target, _tools(session), session.revision)

    return await play_all(package, sessions, opener, options)


async def play_all(
    package: Any, sessions: dict[int, Session], opener: OpenChannel, options: Options
) -> list[Run]:
    """Play sessions one after the other, each over a channel of its own.

    Raises:
        ServerError: The server does not start.
    """
    runs: list[Run] = []
    for number, session in sessions.items():
        matcher = Matcher(options.rules)
        player = Player(package, session, matcher, options.timeouts, number)
        async with opener(session) as channel:
            runs.append(await player.play(channel))
    return runs


def _tools(session: Session) -> list[Node]:
    """The tools in the lists of a session."""
    tools: list[Node] = []
    for exchange in session.exchanges:
        result = exchange.answer.value.get("result") if exchange.answer is not None else None
        listed = result.get(_TOOLS) if is_object(result) else None
        tools += [each for each in listed if is_object(each)] if is_array(listed) else []
    return tools
