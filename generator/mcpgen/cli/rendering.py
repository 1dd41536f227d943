"""`mcpgen render`: a folder of the user's own templates."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcpgen.cli.options import (
    DIRECTORY,
    common_options,
    extension_option,
    file_options,
    force_option,
    json_option,
    patch_option,
    trusted_option,
    watch_option,
)
from mcpgen.console import Console
from mcpgen.errors import UsageError


@click.command()
@click.argument("templates", type=DIRECTORY, metavar="DIR")
@click.option(
    "-o", "--output", type=DIRECTORY, required=True, metavar="DIR", help="Where the files go."
)
@click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Revision to render: its date, latest or all. May be given several times.",
)
@file_options
@extension_option
@click.option("--no-errata", is_flag=True, help="Take published schemas as they are.")
@patch_option
@trusted_option
@force_option
@watch_option
@json_option
@common_options
@click.pass_obj
def render(
    console: Console,
    templates: Path,
    output: Path,
    revisions: tuple[str, ...],
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    extensions: tuple[str, ...],
    no_errata: bool,
    patch: Path | None,
    trusted: bool,
    force: bool,
    watch: bool,
) -> None:
    """Render a folder of templates of your own with the values of mcpgen.spec.

    Each file NAME.jinja in DIR makes a file NAME; {revision}, {type} and {method} in a path make
    one for each. Other files are copied. The output has a record, by which mcpgen check and mcpgen
    update know it.
    """
    from mcpgen.package import rendering

    options = rendering.RenderOptions(
        templates, revisions, schemas, facts_file, extensions, not no_errata, trusted, patch
    )
    if watch:
        from mcpgen.package import watching

        if console.as_json:
            raise UsageError("--watch has no end, so it does not go with --json")
        watching.watch(sys.argv[1:], rendering.inputs(output, options))
        return
    rendering.write(console, rendering.new_request(options, output), force=force)
