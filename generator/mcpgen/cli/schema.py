"""Commands about schemas and their facts: `export`, `facts`, `schema add`, `verify`, `errata`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcpgen.cli.options import FILE, common_options, json_option
from mcpgen.console import Console
from mcpgen.errors import DIFFERS, UsageError


@click.command()
@click.argument("schema_file", type=FILE, metavar="SCHEMA")
@click.option("--facts", "facts_file", type=FILE, help="Facts that differ, as for generating.")
@common_options
@click.pass_obj
def facts(console: Console, schema_file: Path, facts_file: Path | None) -> None:
    """Print all facts that are used for SCHEMA, ready to be edited and given by --facts.

    Facts are what the specification states in prose only: headers, statuses, capabilities, rules.
    They start from those of the revision whose structure is nearest. A file for --facts holds what
    differs, and may say `based_on = "2025-11-25"` to start from another revision.
    """
    from mcpgen.package import commands

    commands.facts_text(console, schema_file, facts_file)


@click.command()
@click.argument("source", metavar="SOURCE", required=False)
@click.option("--openrpc", is_flag=True, help="Print an OpenRPC document, not JSON Schema.")
@click.option(
    "--spec",
    is_flag=True,
    help="Print the values of mcpgen.spec as JSON; SOURCE may be all, too, and of a package they"
    " are those of all its revisions.",
)
@click.option("--spec-schema", is_flag=True, help="Print the JSON Schema of what --spec prints.")
@click.option(
    *("-r", "--revision"), metavar="DATE", help="The revision, if SOURCE is a package of several."
)
@click.option("--no-errata", is_flag=True, help="Take published schemas as they are.")
@common_options
@click.pass_obj
def export(
    console: Console,
    source: str | None,
    openrpc: bool,
    spec: bool,
    spec_schema: bool,
    revision: str | None,
    no_errata: bool,
) -> None:
    """Print SOURCE as JSON Schema 2020-12, with the defects of the published schema corrected.

    SOURCE is a revision (a date, or latest), a schema file in JSON or TypeScript, or the folder of
    a package. What a package reads otherwise than its schema says stands in `$comment`.
    """
    from mcpgen.package import exporting

    if openrpc + spec + spec_schema > 1:
        raise UsageError("expected one of --openrpc, --spec and --spec-schema, got several")
    if spec_schema:
        exporting.export_values_schema(console)
        return
    if source is None:
        raise UsageError("expected SOURCE: a revision, a schema file or the folder of a package")
    if spec:
        exporting.export_values(console, source, revision, errata=not no_errata)
        return
    exporting.export(console, source, revision, errata=not no_errata, rpc=openrpc)


@click.group()
def schema() -> None:
    """Work with the schemas themselves."""


@schema.command()
@click.option(
    "--against",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Checkout of the specification repository.",
)
@json_option
@common_options
@click.pass_obj
def verify(console: Console, against: Path) -> None:
    """Compare our schemas with the official ones, and name every difference.

    Reads DIR/schema/<revision>/schema.json; exits with 1 if the structures differ.
    """
    from mcpgen.package import commands

    if not commands.verify(console, against):
        sys.exit(DIFFERS)


@schema.command()
@click.argument("typescript_file", type=FILE, metavar="SCHEMA.TS")
@click.argument("json_file", type=FILE, metavar="SCHEMA.JSON")
@common_options
@click.pass_obj
def errata(console: Console, typescript_file: Path, json_file: Path) -> None:
    """Print where SCHEMA.JSON does not say what SCHEMA.TS says, as text for an errata.toml.

    The TypeScript is taken as the truth. Definitions that only one of the files has are listed in
    comments.
    """
    from mcpgen.package import commands

    commands.errata(console, typescript_file, json_file)


@schema.command()
@click.argument("schema_file", type=FILE, metavar="FILE")
@click.option(
    *("-r", "--revision"), required=True, metavar="DATE", help="The revision that FILE becomes."
)
@click.option("--draft", is_flag=True, help="The revision may still change: latest ignores it.")
@click.option(
    *("--facts", "facts_file"), type=FILE, help="Facts that differ from those of the nearest one."
)
@click.option("--force", is_flag=True, help="Write an existing revision again.")
@json_option
@common_options
@click.pass_obj
def add(
    console: Console,
    schema_file: Path,
    revision: str,
    draft: bool,
    facts_file: Path | None,
    force: bool,
) -> None:
    """Make FILE, a schema in JSON or TypeScript, a revision that every command has from then on.

    Writes structure, facts, corrections and fingerprints to the folder that --schemas or
    MCPGEN_SCHEMAS names, or to schema/ of the checkout that mcpgen runs from. Facts and corrections
    are those of the nearest revision, as far as the schema allows them; the output lists what of
    them to check, and on which page. With --force they are those that the revision has.
    """
    from mcpgen.adding import command

    command.add(console, command.Options(schema_file, revision, draft, facts_file, force))
