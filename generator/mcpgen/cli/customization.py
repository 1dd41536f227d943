"""Commands for users' changes of generated code: `templates list`, `copy`, `diff`, `accept`
for templates of the user's own, and `patch` for hand edits.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from mcpgen.cli.options import DIRECTORY, common_options, json_option, trusted_option
from mcpgen.console import Console
from mcpgen.errors import DIFFERS


@click.group()
def templates() -> None:
    """Override single templates of the package.

    \b
    mcpgen templates copy NAME DIR     begin with the template as it is, then edit it
    mcpgen -r latest -o pkg --templates DIR
    """


def _complete_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from mcpgen.package import overrides

    return [name for name in overrides.names() if name.startswith(begun)]


_NAME = click.argument("name", shell_complete=_complete_names)
_PLACE = click.argument("directory", type=DIRECTORY, metavar="DIR")


@templates.command("list")
@click.argument("directory", type=DIRECTORY, metavar="[DIR]", required=False)
@json_option
@common_options
@click.pass_obj
def list_(console: Console, directory: Path | None) -> None:
    """List the templates, or with DIR the overrides in it: current or outdated."""
    from mcpgen.package import overrides

    if directory is None:
        console.record([{"name": name} for name in overrides.names()])
        for name in overrides.names():
            console.text(name)
        return
    states = overrides.states(directory)
    console.record([{"name": name, "state": state} for name, state in states.items()])
    for name, state in states.items():
        console.text(f"{state}: {name}")


@templates.command()
@_NAME
@_PLACE
@common_options
@click.pass_obj
def copy(console: Console, name: str, directory: Path) -> None:
    """Copy the template NAME to DIR, where it takes the place of mcpgen's.

    DIR/.originals keeps a second copy: by it, mcpgen tells when the template has changed. Commit
    both.
    """
    from mcpgen.package import overrides

    place = overrides.copy(name, directory)
    console.summary(f"{place}: copied; edit it, then generate with --templates {directory}")


@templates.command()
@_PLACE
@json_option
@common_options
@click.pass_obj
def diff(console: Console, directory: Path) -> None:
    """Show how templates changed in mcpgen since the overrides in DIR were copied.

    Exits with 1 if an override is outdated.
    """
    from mcpgen.package import overrides

    names = [name for name, state in overrides.states(directory).items() if state == "outdated"]
    text = overrides.changes(directory)
    console.record({"outdated": names, "diff": text})
    console.diff(text)
    if names:
        console.summary(
            f"take over into {directory} what matters, then run mcpgen templates accept NAME"
            f" {directory}"
        )
        sys.exit(DIFFERS)
    console.summary(f"{directory}: all overrides are current")


@templates.command()
@_NAME
@_PLACE
@common_options
@click.pass_obj
def accept(console: Console, name: str, directory: Path) -> None:
    """Record that the override of NAME in DIR fits the template as it is now."""
    from mcpgen.package import overrides

    overrides.accept(name, directory)
    console.summary(f"{directory / name}: accepted")


@click.command()
@click.argument("directory", type=DIRECTORY, metavar="DIR")
@click.option(
    "--patch",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to keep the patch of a package that has none yet; DIR.patch by default.",
)
@trusted_option
@json_option
@common_options
@click.pass_obj
def patch(console: Console, directory: Path, file: Path | None, trusted: bool) -> None:
    """Keep the hand edits of the package in DIR as a patch, applied on every later generation.

    DIR may also be what mcpgen render wrote.

    Any edit of any file counts. Where mcpgen writes something else at the place of an edit later,
    generation stops, shows both sides, and writes nothing.
    """
    from mcpgen.package import patching, rendering, settings

    owner = settings.owner(directory) if directory.is_dir() else None
    with nullcontext() if owner is None else owner.own_revisions():
        if (directory / rendering.NAME).is_file():
            patching.patch_rendered(console, directory, file, trusted=trusted)
        else:
            patching.patch(console, directory, file, trusted=trusted)
