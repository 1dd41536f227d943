"""The command line: one group that generates a package, and commands around it.

Errors are one line on standard error: exit code 2 for what was asked wrongly, 1 for the rest.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mcpgen import __version__
from mcpgen.cli_options import LazyGroup
from mcpgen.cli_options import common as _common
from mcpgen.console import Console
from mcpgen.errors import McpgenError, UsageError
from mcpgen.parts import PARTS, TRANSPORTS

if TYPE_CHECKING:
    from mcpgen.commands import Wanted

_DIRECTORY = click.Path(file_okay=True, dir_okay=True, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _fail(error: Exception, *, debug: bool) -> NoReturn:
    if debug:
        import traceback  # takes long to import

        traceback.print_exception(error)
    text, code = _said(error)
    click.echo(f"mcpgen: error: {' '.join(text.split())}", err=True)
    sys.exit(code)


def _said(error: Exception) -> tuple[str, int]:
    match error:
        case McpgenError():
            return str(error), error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            return "expected a command; try mcpgen --help", error.exit_code
        case click.ClickException():
            text = error.format_message().rstrip(".")
            return text[:1].lower() + text[1:], error.exit_code
        case click.Abort():
            return "interrupted", 1
        case _:
            kind = type(error).__name__
            return f"unexpected {kind}: {error} (--debug shows where; please report it)", 1


def _file_options(command: Any) -> Any:
    """Add the options that name the files a package is made from."""
    schemas = click.option(
        "--schema",
        "schemas",
        type=_FILE,
        multiple=True,
        help="Schema file, JSON or TypeScript (.ts, .d.ts), such as a draft; a date in its name or"
        " its folder's names the revision. May be given several times, one revision each.",
    )
    facts = click.option(
        "--facts",
        "facts_file",
        type=_FILE,
        help="Facts that differ from those of the nearest revision; see mcpgen facts --help.",
    )
    return schemas(facts(command))


def _complete_revisions(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from mcpgen import schema

    words = ["latest", "all", *(entry.name for entry in schema.revisions())]
    return [word for word in words if word.startswith(begun)]


def _complete_parts(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _with_commas(begun, PARTS)


def _complete_transports(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _with_commas(begun, TRANSPORTS)


def _with_commas(begun: str, words: Iterable[str]) -> list[str]:
    """The words that complete the last of several words with commas between them."""
    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def _choices(command: Any) -> Any:
    """Add the options that choose revisions, parts and transports."""
    revisions = click.option(
        "-r",
        "--revision",
        "revisions",
        multiple=True,
        shell_complete=_complete_revisions,
        metavar="REVISION",
        help="Revision to generate: its date, latest or all. May be given several times.",
    )
    parts = click.option(
        "--parts",
        multiple=True,
        shell_complete=_complete_parts,
        metavar="PARTS",
        help="Only these parts, with commas between them: types, protocol (with the connection"
        " without I/O), client, server, or all (the default).",
    )
    transports = click.option(
        "--transport",
        "transports",
        multiple=True,
        shell_complete=_complete_transports,
        metavar="TRANSPORTS",
        help="Only these transports: stdio, http, http+sse (which brings http), or all (the"
        " default).",
    )
    return revisions(parts(transports(command)))


def _json(command: Any) -> Any:
    """Add the option for output that programs read."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_set_json,
        help="Print one JSON object instead of text.",
    )(command)


def _watch(command: Any) -> Any:
    """Add the option that generates again on each change."""
    return click.option(
        "--watch", is_flag=True, help="Generate again whenever an input changes, until Ctrl-C."
    )(command)


def _watch_inputs(console: Console, wanted: Wanted, directory: Path) -> None:
    from mcpgen import watching

    if console.as_json:
        raise UsageError("--watch has no end, so it does not go with --json")
    watching.watch(sys.argv[1:], watching.inputs(wanted, directory))


def _set_json(context: click.Context, _: click.Parameter, chosen: bool) -> None:
    if chosen:
        context.ensure_object(Console).as_json = True


_ONLY_FORCE = ((), (), (), None, (), None, False, False, True)
"""The options for generating, with nothing given but --force."""


def _generate_by_settings(context: click.Context, console: Console, *, force: bool) -> None:
    """Generate what the project's settings say; show the help where there are none."""
    from mcpgen import settings

    found = settings.find(Path.cwd())
    if found is None:
        if force:
            raise UsageError("expected --revision R or a pyproject.toml with [tool.mcpgen]")
        click.echo(context.get_help())
        return
    from mcpgen import project_commands

    project_commands.generate(console, found, force=force)


def _project(directory: Path | None) -> Any:
    """The settings that a command without a package works by; `None` if it names a package.

    Raises:
        UsageError: No directory was named, and there are no settings.
    """
    from mcpgen import manifest

    if directory is not None and ((directory / manifest.NAME).is_file() or not directory.is_dir()):
        return None
    from mcpgen import settings  # a check of a package needs none

    if directory is not None:
        return settings.read(directory.resolve())
    found = settings.find(Path.cwd())
    if found is None:
        raise UsageError(
            "expected the directory of a package, or a pyproject.toml with [tool.mcpgen]"
        )
    return found


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@_choices
@click.option(
    "-o",
    "--output",
    type=_DIRECTORY,
    metavar="DIR",
    help="Directory of the package; its name is the import name.",
)
@_file_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a schema file of unknown structure unless --facts states what it does not.",
)
@click.option(
    "--no-errata", is_flag=True, help="Take published schemas as they are, defects included."
)
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
@_watch
@_json
@_common
@click.version_option(__version__, prog_name="mcpgen", message="%(prog)s %(version)s")
@click.pass_context
def cli(
    context: click.Context,
    revisions: tuple[str, ...],
    parts: tuple[str, ...],
    transports: tuple[str, ...],
    output: Path | None,
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    strict: bool,
    no_errata: bool,
    force: bool,
    watch: bool,
    quiet: bool,
) -> None:
    """Generate a typed Python package from the schemas of the Model Context Protocol.

    \b
    Common calls:
      mcpgen --revision latest -o my_protocol/      the newest revision
      mcpgen --revision 2025-06-18 --revision 2025-11-25 -o my_protocol/
      mcpgen --revision all -o my_protocol/         every revision, one package
      mcpgen --revision latest --parts types -o my_types/
      mcpgen update my_protocol/                    generate again what is there
      mcpgen check my_protocol/                     is it what mcpgen would write? (for CI)
      mcpgen list                                   the revisions, and what each has
      mcpgen new server weather                     a project: server, tests, CI
      mcpgen                                        what [tool.mcpgen] of pyproject.toml says
    """
    wanted = (revisions, parts, transports, output, schemas, facts_file, strict, no_errata, force)
    given = any(wanted) or watch
    console = context.ensure_object(Console)
    console.quiet |= quiet
    if context.invoked_subcommand is not None:
        if given:
            raise UsageError(f"options for generating go without {context.invoked_subcommand}")
        return
    if not given or (wanted == _ONLY_FORCE and not watch):
        _generate_by_settings(context, console, force=force)
        return
    if output is None:
        raise UsageError("expected the directory to write to, got no -o DIR")
    from mcpgen import commands

    chosen = commands.Wanted(revisions, schemas, facts_file, parts, transports)
    if watch:
        _watch_inputs(console, chosen, output)
        return
    request = commands.requested(chosen, output, errata=not no_errata, strict=strict)
    commands.generate(console, request, output, force=force)


@cli.command()
@click.argument("directory", type=_DIRECTORY, required=False)
@_file_options
@_json
@_common
@click.pass_obj
def check(
    console: Console,
    directory: Path | None,
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    quiet: bool,
) -> None:
    """Tell whether DIRECTORY is what mcpgen would write, and if not, what changed.

    DIRECTORY is a package, or a project with [tool.mcpgen] in its pyproject.toml: without it, the
    one around the current directory. Exits with 1 if something is not what mcpgen would write, and
    prints a unified diff from what is there to what would be.
    """
    console.quiet |= quiet
    project = _project(directory)
    if project is not None:
        from mcpgen import project_commands

        _refuse_options(schemas, facts_file)
        if not project_commands.check(console, project):
            sys.exit(1)
        return
    from mcpgen import commands

    assert directory is not None  # or there are settings
    wanted = commands.Wanted(schemas=schemas, facts=facts_file)
    if not commands.check(console, directory, wanted):
        sys.exit(1)


@cli.command()
@click.argument("directory", type=_DIRECTORY, required=False)
@_choices
@_file_options
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
@_watch
@_json
@_common
@click.pass_obj
def update(
    console: Console,
    directory: Path | None,
    revisions: tuple[str, ...],
    parts: tuple[str, ...],
    transports: tuple[str, ...],
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    force: bool,
    watch: bool,
    quiet: bool,
) -> None:
    """Generate the package in DIRECTORY again, from what its manifest says.

    What is given here takes the place of what is recorded: --revision latest moves on to the
    newest revision. A schema file is looked for where it was, from the package's directory.

    DIRECTORY may be a project with [tool.mcpgen] in its pyproject.toml; without it, the one around
    the current directory. Its packages are generated by those settings, and a server that it
    mirrors is asked again.
    """
    console.quiet |= quiet
    project = _project(directory)
    if project is not None:
        from mcpgen import project_commands

        _refuse_options(revisions, parts, transports, schemas, facts_file, watch)
        project_commands.update(console, project, force=force)
        return
    from mcpgen import commands

    assert directory is not None  # or there are settings
    wanted = commands.Wanted(revisions, schemas, facts_file, parts, transports)
    if watch:
        _watch_inputs(console, wanted, directory)
        return
    commands.generate(console, commands.updated(wanted, directory), directory, force=force)


def _refuse_options(*given: object) -> None:
    if any(given):
        raise UsageError("expected [tool.mcpgen] to say what a project has, got options too")


@cli.command("generate")
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
@_common
@click.pass_obj
def generate_(console: Console, force: bool, quiet: bool) -> None:
    """Generate the packages that [tool.mcpgen] in pyproject.toml names.

    The file is looked for from the current directory upwards. mcpgen without a command does the
    same.
    """
    from mcpgen import project_commands

    console.quiet |= quiet
    project_commands.generate(console, _project(None), force=force)


@cli.group()
def new() -> None:
    """Write a new project: a server or a client, with tests and CI."""


def _project_options(command: Any) -> Any:
    """Add the arguments and options of a new project."""
    options = (
        click.argument("name", required=False),
        click.option(
            "-o", "--output", type=_DIRECTORY, metavar="DIR", help="Where; the name by default."
        ),
        click.option(
            "-r",
            "--revision",
            "revisions",
            multiple=True,
            metavar="REVISION",
            help="Revision to generate: its date, latest or all (the default).",
        ),
        click.option(
            "--transport",
            "transports",
            multiple=True,
            metavar="TRANSPORTS",
            help="Only these transports: stdio, http, http+sse, or all (the default).",
        ),
        click.option(
            "--from",
            "from_file",
            type=_FILE,
            metavar="FILE",
            help="Start from the tools, resources and prompts in a JSON file.",
        ),
        click.option(
            "--from-server",
            metavar="TARGET",
            help="Start from those of a server: a URL, the command that starts it, or an entry"
            " of a configuration with mcpServers, as FILE or FILE#NAME.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return _common(command)


@new.command("server")
@_project_options
@click.pass_obj
def new_server(console: Console, /, quiet: bool, **words: Any) -> None:
    """Write the project of a server: one tool, resource and prompt, tests, Dockerfile and CI.

    Asks on a terminal for what is not given. The files are yours; mcpgen update renews only the
    package below src/NAME/protocol.
    """
    from mcpgen import project_commands

    console.quiet |= quiet
    project_commands.new(console, project_commands.answered("server", **words))


@new.command("client")
@_project_options
@click.pass_obj
def new_client(console: Console, /, quiet: bool, **words: Any) -> None:
    """Write the project of a client, with tests, Dockerfile and CI.

    Asks on a terminal for what is not given. The files are yours; mcpgen update renews only the
    package below src/NAME/protocol.
    """
    from mcpgen import project_commands

    console.quiet |= quiet
    project_commands.new(console, project_commands.answered("client", **words))


@cli.command("list")
@_json
@_common
@click.pass_obj
def list_(console: Console, quiet: bool) -> None:
    """List the revisions, and what each has."""
    from mcpgen import listing

    console.quiet |= quiet
    listing.list_revisions(console)


@cli.command("facts")
@click.argument("schema_file", type=_FILE, metavar="SCHEMA")
@click.option("--facts", "facts_file", type=_FILE, help="Facts that differ, as for generating.")
@_common
@click.pass_obj
def facts_(console: Console, schema_file: Path, facts_file: Path | None, quiet: bool) -> None:
    """Print all facts that are used for SCHEMA, ready to be edited and given by --facts.

    Facts are what the specification states in prose only: headers, statuses, capabilities, rules.
    They start from those of the revision whose structure is nearest. A file for --facts holds what
    differs, and may say `based_on = "2025-11-25"` to start from another revision.
    """
    from mcpgen import commands

    console.quiet |= quiet
    commands.facts_text(console, schema_file, facts_file)


@cli.command()
@click.argument("directory", type=_DIRECTORY, default=".")
@_json
@_common
@click.pass_obj
def doctor(console: Console, directory: Path, quiet: bool) -> None:
    """Examine this installation of mcpgen, and the packages of mcpgen below DIRECTORY.

    Says for each finding what to do. Exits with 1 if something is wrong.
    """
    from mcpgen import diagnosis

    console.quiet |= quiet
    if not diagnosis.diagnose(console, directory):
        sys.exit(1)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes mcpgen's words in a shell.

    \b
    Add one of these lines to the shell's start file:
      eval "$(mcpgen completion bash)"        ~/.bashrc
      eval "$(mcpgen completion zsh)"         ~/.zshrc
      mcpgen completion fish | source         ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # click has these three
    click.echo(found(cli, {}, "mcpgen", "_MCPGEN_COMPLETE").source())


cli.add_lazy("mcpgen.protocol_commands", "diff", "explain", "validate")


@cli.group()
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
@_json
@_common
@click.pass_obj
def verify(console: Console, against: Path, quiet: bool) -> None:
    """Compare our schemas with the official ones, and name every difference.

    Reads DIR/schema/<revision>/schema.json; exits with 1 if the structures differ.
    """
    from mcpgen import commands

    console.quiet |= quiet
    if not commands.verify(console, against):
        sys.exit(1)


@schema.command()
@click.argument("typescript_file", type=_FILE, metavar="SCHEMA.TS")
@click.argument("json_file", type=_FILE, metavar="SCHEMA.JSON")
@_common
@click.pass_obj
def errata(console: Console, typescript_file: Path, json_file: Path, quiet: bool) -> None:
    """Print where SCHEMA.JSON does not say what SCHEMA.TS says, as text for an errata.toml.

    The TypeScript is taken as the truth. Definitions that only one of the files has are listed in
    comments.
    """
    from mcpgen import commands

    console.quiet |= quiet
    commands.errata(console, typescript_file, json_file)


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        words: The command line without the program's name; that of the process by default.
    """
    arguments = sys.argv[1:] if words is None else list(words)
    gc.disable()  # of the many objects that one run makes, next to none is garbage
    try:
        code = cli.main(arguments, prog_name="mcpgen", standalone_mode=False)
    except Exception as error:
        _fail(error, debug="--debug" in arguments)
    finally:
        gc.enable()
    sys.exit(code)
