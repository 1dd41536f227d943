"""A configuration of servers as the target of a client."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard

from .connect import AnyTarget, Opening, TargetKind, is_config_path

if TYPE_CHECKING:
    from .server_config import Config, Inputs, ServerEntry
    from .server_document import ConfigInput

_OF_ENTRY = ("env", "cwd", "transport", "headers", "auth")


class ConfigOptions(TypedDict, total=False):
    """Options of `connect` for a configuration of servers as target.

    Attributes:
        inputs: Values for `${input:id}` in a configuration, by id, or a function that asks the
            user: it gets a `ConfigInput`, and returns the value, or `None` for none.
    """

    inputs: Inputs | None


def is_configuration(target: AnyTarget) -> TypeGuard[Mapping[str, Any] | PathLike[str]]:
    """Whether a target is a configuration of servers, or the path of one."""
    return isinstance(target, Mapping) or (isinstance(target, PathLike) and is_config_path(target))


def open_configuration(opening: Opening, target: Config) -> AbstractAsyncContextManager[Any]:
    """Open a session with each server of a configuration.

    Raises:
        TypeError: The package on this runtime has no class for several servers.
    """
    from .group_base import open_group  # many clients have one server

    try:
        group_class = importlib.import_module(".group", opening.package).ClientGroup
    except ModuleNotFoundError:
        from ..absence import missing_text  # for the error only

        root = opening.package.rpartition(".")[0]
        raise TypeError(missing_text("a configuration of servers", "groups", root)) from None

    @asynccontextmanager
    async def open_entry(name: str, entry: ServerEntry) -> AsyncGenerator[Any, None]:
        own = {key: value for key, value in opening.options.items() if key != "inputs"}
        if isinstance(entry.target, str):
            own.pop("restart", None)
        members = {key: getattr(entry, key) for key in _OF_ENTRY}
        own |= {key: value for key, value in members.items() if value is not None}
        async with replace(opening, options=own, server=name).open(entry.target) as client:
            yield client

    return open_group(group_class, target, opening.options.get("inputs"), open_entry)


async def read_server(
    path: PathLike[str], name: str, ask: Callable[[ConfigInput], str | None] | None
) -> ServerEntry:
    """A server of the configuration in a file; see `server_config.read_server`."""
    from .server_config import read_server  # few commands have a configuration

    return await read_server(path, name, ask)


CONFIGURATION = TargetKind(
    "a configuration as dict or pathlib.Path",
    is_configuration,
    open_configuration,
    ConfigOptions.__optional_keys__ | {"restart"},
)
"""Configurations of servers as a kind of target."""
