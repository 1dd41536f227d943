"""Commands that begin a project, or need one: `new server`, `new client` and `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mcpgen.cli.options import common_options, force_option, new_project_options
from mcpgen.console import Console


@click.group()
def new() -> None:
    """Write a new project: a server or a client, with tests and CI."""


@new.command("server")
@new_project_options
@click.pass_obj
def new_server(console: Console, /, **words: Any) -> None:
    """Write the project of a server: one tool, resource and prompt, tests, Dockerfile and CI.

    Asks on a terminal for what is not given. The files are yours; mcpgen update renews only the
    package below src/NAME/protocol.
    """
    from mcpgen.project import commands as project_commands

    project_commands.new(console, project_commands.complete_options("server", **words))


@new.command("client")
@new_project_options
@click.pass_obj
def new_client(console: Console, /, **words: Any) -> None:
    """Write the project of a client, with tests, Dockerfile and CI.

    Asks on a terminal for what is not given. The files are yours; mcpgen update renews only the
    package below src/NAME/protocol.
    """
    from mcpgen.project import commands as project_commands

    project_commands.new(console, project_commands.complete_options("client", **words))


@click.command()
@force_option
@common_options
@click.pass_obj
def generate(console: Console, force: bool) -> None:
    """Generate the packages that [tool.mcpgen] in pyproject.toml names.

    The file is looked for from the current directory upwards. mcpgen without a command does the
    same.
    """
    from mcpgen.package import settings
    from mcpgen.project import commands as project_commands

    project_commands.generate(console, settings.around(Path.cwd()), force=force)
