"""The command about hand edits of generated modules: `adopt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcpgen.cli_options import DIRECTORY, common_options, json_option
from mcpgen.console import Console


@click.command()
@click.argument("directory", type=DIRECTORY, metavar="DIR")
@click.option(
    "--adopted",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to keep the rules of a package that has none yet; DIR.adopted.toml by default.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Adopt what can be adopted; modules with other edits stay as they are.",
)
@json_option
@common_options
@click.pass_obj
def adopt(console: Console, directory: Path, file: Path | None, partial: bool) -> None:
    """Turn hand edits of the package in DIR into rules, replayed on every later generation.

    Docstrings, defaults of parameters and members, further functions and methods, and public names
    become rules in a TOML file beside the package. Each other edit is named with the reason why it
    becomes none; then nothing is written, and the exit code is 1.
    """
    from mcpgen import adopting

    if not adopting.adopt(console, directory, file, partial=partial):
        sys.exit(1)
