"""Commands that begin a project, or need one: `new server`, `new client` and `generate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mcpgen.cli.options import (
    DIRECTORY,
    common_options,
    force_option,
    json_option,
    new_project_options,
    trusted_option,
)
from mcpgen.console import Console
from mcpgen.errors import DIFFERS


@click.group()
def new() -> None:
    """Write a new project: a server or a client, with tests and CI."""


@new.command("server")
@click.option(
    "--publish",
    metavar="NAMESPACE",
    help="Write server.json for the registry, and the manifest of a bundle: with your namespace,"
    " such as io.github.acme.",
)
@click.option("--app", is_flag=True, help="With a user interface of the tool (MCP Apps).")
@new_project_options
@click.pass_obj
def new_server(console: Console, /, **words: Any) -> None:
    """Write the project of a server: one tool, resource and prompt, tests, Dockerfile and CI.

    Its contract is in server.contract.json: a test tells when the server changes.

    Asks on a terminal for what is not given. The files are yours; mcpgen update renews only the
    package below src/NAME/protocol.
    """
    from mcpgen.contract.command import text_of_memory
    from mcpgen.project import commands as project_commands

    options = project_commands.complete_options("server", **words)
    project_commands.new(console, options, text_of_memory)


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


@click.group()
def publish() -> None:
    """Prepare a server for the registry of MCP servers, and for bundles (MCPB)."""


@publish.command("check")
@click.argument("directory", type=DIRECTORY, default=".")
@json_option
@common_options
@click.pass_obj
def publish_check(console: Console, directory: Path) -> None:
    """Check server.json and manifest.json in DIRECTORY.

    Against the official schemas, the versions and the name of pyproject.toml, and the mark
    mcp-name of the README. Exits with 1 if something is wrong.
    """
    from mcpgen.project import publishing

    if not publishing.check(console, directory):
        sys.exit(DIFFERS)


@click.command()
@force_option
@trusted_option
@common_options
@click.pass_obj
def generate(console: Console, force: bool, trusted: bool) -> None:
    """Generate the packages that [tool.mcpgen] in pyproject.toml names.

    The file is looked for from the current directory upwards. mcpgen without a command does the
    same.
    """
    from mcpgen.package import settings
    from mcpgen.project import commands as project_commands

    project = settings.require(Path.cwd())
    project_commands.generate(console, project, force=force, trusted=trusted)
