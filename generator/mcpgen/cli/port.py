"""The command `port`, which moves a program of another SDK to a generated package."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcpgen.cli.options import DIRECTORY, common_options, force_option, json_option
from mcpgen.console import Console, count_of
from mcpgen.errors import DIFFERS, UsageError


@click.command()
@click.argument(
    "sources", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    *("-o", "--output"),
    type=DIRECTORY,
    metavar="DIR",
    help="Directory of the package that the program will use; its name is the import name."
    " By default my_protocol, beside the first PATH.",
)
@click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Revision of the package: a date, latest or all. May be repeated; by default all.",
)
@click.option(
    "--fastmcp",
    type=click.Choice(["2", "3", "4"]),
    help="Major version of FastMCP that the program was written for; by default the newest that"
    " its pyproject.toml allows.",
)
@click.option("--write", is_flag=True, help="Write the files, and generate the package.")
@force_option
@json_option
@common_options
@click.pass_obj
def port(
    console: Console,
    sources: tuple[Path, ...],
    output: Path | None,
    revisions: tuple[str, ...],
    fastmcp: str | None,
    write: bool,
    force: bool,
) -> None:
    """Rewrite a program of FastMCP or of the official SDK to a generated package.

    PATH is a Python file or a folder. Without --write, prints a diff and changes nothing. Places
    that a person has to change are listed with file, line and remedy; nothing is changed that is
    not understood. The package gets the features that the program uses.

    \b
    Exit codes:
      0  everything was rewritten
      1  something is left to a person
      2  the program can't be read
    """
    try:
        from mcpgen.port import command
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise UsageError("port needs libcst, which the extra port of mcpgen brings") from None
    package = output or command.default_package(sources[0])
    with console.progress("reading the program"):
        major = int(fastmcp) if fastmcp else command.fastmcp_version(sources[0])
        ported = command.port(sources, package, major)
    if write:
        command.write(console, ported, package, revisions or ("all",), force=force)
    else:
        console.diff(ported.diff())
    for finding in ported.findings:
        console.text(f"left: {finding}")
    console.record(ported.record())
    console.summary(
        f"{count_of(len(ported.files), 'file')} {'written' if write else 'would change'},"
        f" {count_of(len(ported.findings), 'place')} left to a person;"
        f" features: {', '.join(ported.features()) or 'none'}"
    )
    if ported.findings:
        sys.exit(DIFFERS)
