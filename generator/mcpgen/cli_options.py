"""What the commands of the command line share, and a group that loads commands when needed."""

from __future__ import annotations

import importlib
from typing import Any

import click


def common(command: Any) -> Any:
    """Add the options that every command takes."""
    quiet = click.option("-q", "--quiet", is_flag=True, help="Leave out progress and summaries.")
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    )
    return quiet(debug(command))


class LazyGroup(click.Group):
    """A group of commands, of which some are imported only to be run or listed."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Take what a group takes."""
        super().__init__(*args, **settings)
        self._lazy: dict[str, str] = {}

    def add_lazy(self, module: str, *names: str) -> None:
        """Add commands of a module, by their names in it."""
        self._lazy.update(dict.fromkeys(names, module))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; `None` if there is none."""
        module = self._lazy.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(module), cmd_name)
        return command
