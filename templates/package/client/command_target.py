"""A command, or the path of a script, as the target of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from os import PathLike
from typing import Any, TypedDict, TypeGuard

from .base import ClientApplication
from .connect import is_config_path, script_command
from .opening import AnyTarget, Opening, TargetKind


class CommandOptions(TypedDict, total=False):
    """Options of `connect` for a command as target.

    Attributes:
        env: Environment of the server process.
        cwd: Working directory of the server process.
    """

    env: Mapping[str, str] | None
    cwd: str | None


def is_command(target: AnyTarget) -> TypeGuard[Sequence[str] | PathLike[str]]:
    """Whether a target is a command, as the words of its line, or the path of a script."""
    if isinstance(target, PathLike):
        return not is_config_path(target)
    return isinstance(target, Sequence) and not isinstance(target, str | bytes)


def command_kind(
    open_process: Callable[..., AbstractAsyncContextManager[Any]],
    restarting: Callable[[ClientApplication], Callable[..., Any] | None] | None = None,
    options: frozenset[str] = frozenset(),
) -> TargetKind:
    """Commands as a kind of target.

    Args:
        open_process: Starts a process and opens a session with it; see `open_with_process`.
        restarting: Returns what makes a channel that starts another process; `None` for no such.
        options: Further options of commands.
    """

    def open_command(
        opening: Opening, target: Sequence[str] | PathLike[str]
    ) -> AbstractAsyncContextManager[Any]:
        argv = script_command(target) if isinstance(target, PathLike) else target
        application, options = opening.application(), opening.options
        return open_process(
            opening.client_class,
            argv,
            opening.revisions,
            application,
            options.get("env"),
            options.get("cwd"),
            None if restarting is None else restarting(application),
        )

    return TargetKind(
        "a command as a list of words, or a script as pathlib.Path",
        is_command,
        open_command,
        CommandOptions.__optional_keys__ | options,
    )
