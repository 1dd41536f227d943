"""The command line: one group that generates a package, and commands around it.

Errors are one line on standard error, with exit code 2. Exit code 1 is the answer of commands that
compare or check something: it differs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

try:
    from mcpgen import __version__
except ImportError as error:
    from mcpgen import collisions

    click.echo(collisions.import_error_text(error), err=True)
    sys.exit(2)
from mcpgen.cli.options import (
    DIRECTORY,
    REPORT_FORMS,
    LazyGroup,
    common_options,
    extension_option,
    file_options,
    force_option,
    format_option,
    json_option,
    old_modules_option,
    patch_option,
    selection_options,
    templates_option,
    trusted_option,
    watch_option,
)
from mcpgen.console import Console
from mcpgen.errors import CANNOT, DIFFERS, McpgenError, UsageError

if TYPE_CHECKING:
    from mcpgen.findings import Report
    from mcpgen.package.commands import PackageOptions
    from mcpgen.package.settings import Settings


def _fail(error: Exception, *, debug: bool) -> NoReturn:
    if debug:
        import traceback  # takes long to import

        traceback.print_exception(error)
    click.echo(f"mcpgen: error: {' '.join(_describe_error(error).split())}", err=True)
    if isinstance(error, McpgenError) and error.details:
        click.echo(error.details, err=True)
    sys.exit(CANNOT)


def _describe_error(error: Exception) -> str:
    match error:
        case McpgenError():
            return str(error)
        case click.exceptions.NoArgsIsHelpError():
            return "expected a command; try mcpgen --help"
        case click.ClickException():
            text = error.format_message().rstrip(".")
            return text[:1].lower() + text[1:]
        case click.Abort():
            return "interrupted"
        case _:
            kind = type(error).__name__
            return f"unexpected {kind}: {error} (--debug shows where; please report it)"


def _package_options(words: Mapping[str, Any], *, trusted: bool) -> PackageOptions:
    """The options of a package, by the names of the parameters of a command."""
    from mcpgen.package import commands

    return commands.PackageOptions(
        words["revisions"],
        words["schemas"],
        words["facts_file"],
        words["parts"],
        words["transports"],
        words["models"] or "",
        words["templates"],
        words["extensions"],
        patch=words["patch"],
        features=words["features"],
        gitattributes=not words.get("no_gitattributes", False),
        runtime=words["runtime"] or "",
        decoding=words["decoding"] or "",
        extra=words["extra"],
        mutability=words["mutability"] or "",
        keeps_old_modules=words["keep_old_modules"],
        sources=words["sources"],
        trusted=trusted,
    )


def _watch_inputs(console: Console, package_options: PackageOptions, directory: Path) -> None:
    from mcpgen.package import watching

    if console.as_json:
        raise UsageError("--watch has no end, so it does not go with --json")
    watching.watch(sys.argv[1:], watching.inputs(package_options, directory))


def _watch_project(console: Console, project: Settings) -> None:
    from mcpgen.package import watching
    from mcpgen.project import commands as project_commands

    if console.as_json:
        raise UsageError("--watch has no end, so it does not go with --json")
    watching.watch(sys.argv[1:], project_commands.inputs(project))


def _own_revisions(directory: Path) -> AbstractContextManager[None]:
    """Use the revisions of the project that lists a package or a rendered directory."""
    from mcpgen.package import settings

    owner = settings.owner(directory) if directory.is_dir() else None
    return nullcontext() if owner is None else owner.own_revisions()


def _generate_by_settings(
    context: click.Context, console: Console, *, force: bool, trusted: bool, watch: bool
) -> None:
    """Generate the packages of the project's settings; without settings, show the help."""
    from mcpgen.package import settings

    project = settings.find(Path.cwd())
    if project is None:
        if force or trusted or watch:
            raise UsageError("expected --revision R or a pyproject.toml with [tool.mcpgen]")
        click.echo(context.get_help())
        return
    if watch:
        _watch_project(console, project)
        return
    from mcpgen.project import commands as project_commands

    project_commands.generate(console, project, force=force, trusted=trusted)


def _project_settings(directory: Path | None) -> Settings | None:
    """The project settings for a command; `None` if its directory is a package or missing.

    Raises:
        UsageError: No directory was named, and there are no settings.
    """
    from mcpgen.package import manifest

    if directory is not None and ((directory / manifest.NAME).is_file() or not directory.is_dir()):
        return None
    from mcpgen.package import settings  # a check of a package needs none

    if directory is not None:
        return settings.read(directory.resolve())
    return settings.require(Path.cwd())


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@selection_options
@click.option(
    "-o",
    "--output",
    type=DIRECTORY,
    metavar="DIR",
    help="Directory of the package; its name is the import name.",
)
@file_options
@extension_option
@templates_option
@patch_option
@old_modules_option
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a schema file of unknown structure unless --facts states the missing facts.",
)
@click.option(
    "--no-errata", is_flag=True, help="Take published schemas as they are, defects included."
)
@click.option(
    "--no-gitattributes",
    is_flag=True,
    help="Write no .gitattributes, which tells Git that the package is generated.",
)
@trusted_option
@force_option
@watch_option
@json_option
@common_options
@click.version_option(__version__, prog_name="mcpgen", message="%(prog)s %(version)s")
@click.pass_context
def cli(
    context: click.Context,
    /,
    output: Path | None,
    strict: bool,
    no_errata: bool,
    trusted: bool,
    force: bool,
    watch: bool,
    **words: Any,
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
      mcpgen render templates/ -r latest -o out/    templates of your own
      mcpgen                                        what [tool.mcpgen] of pyproject.toml says
    """
    options = {name for name, value in context.params.items() if value}
    console = context.ensure_object(Console)
    if context.invoked_subcommand is not None:
        if options:
            raise UsageError(f"options for generating go without {context.invoked_subcommand}")
        return
    if options <= {"force", "trusted", "watch"}:
        _generate_by_settings(context, console, force=force, trusted=trusted, watch=watch)
        return
    if output is None:
        raise UsageError("expected the directory to write to, got no -o DIR")
    from mcpgen.package import commands

    chosen = _package_options(words, trusted=trusted)
    if watch:
        _watch_inputs(console, chosen, output)
        return
    request = commands.new_request(chosen, output, errata=not no_errata, strict=strict)
    commands.generate(console, request, output, force=force)


@cli.command()
@click.argument("directory", type=DIRECTORY, required=False)
@file_options
@trusted_option
@click.option("--offline", is_flag=True, help="Do not ask the server that the project mirrors.")
@format_option(*REPORT_FORMS)
@common_options
@click.pass_obj
def check(
    console: Console,
    directory: Path | None,
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    trusted: bool,
    offline: bool,
) -> None:
    """Tell whether DIRECTORY is what mcpgen would write, and if not, what changed.

    DIRECTORY is a package, what mcpgen render wrote, a module of mcpgen mirror, or a project with
    [tool.mcpgen] in its pyproject.toml: without it, the one around the current directory. Exits
    with 1 if something is not what mcpgen would write, and prints a unified diff from what is there
    to what would be.

    The server that a project or a module mirrors is asked too: exits with 1 if it has changed, and
    with 2 if it does not answer.
    """
    from mcpgen.findings import join_reports

    reports = _check(console, directory, schemas, facts_file, trusted=trusted, offline=offline)
    whole = join_reports(reports, "pyproject.toml")
    console.report(whole)
    if whole.fails:
        sys.exit(DIFFERS)


def _check(
    console: Console,
    directory: Path | None,
    schemas: tuple[Path, ...],
    facts_file: Path | None,
    *,
    trusted: bool,
    offline: bool,
) -> list[Report]:
    """Check what a directory is: a module of calls, a rendered directory, a project, a package."""
    if directory is not None and directory.suffix == ".py":
        from mcpgen.cli import mirror

        return [mirror.check_module(console, directory, offline=offline)]
    if directory is not None and _is_rendered(directory):
        from mcpgen.package import rendering

        _refuse_for_rendered(schemas, facts_file)
        with _own_revisions(directory):
            return [rendering.compare_recorded(console, directory, trusted=trusted)]
    project = _project_settings(directory)
    if project is not None:
        _refuse_options(project, None, schemas, facts_file)
        return _check_project(console, project, trusted=trusted, offline=offline)
    from mcpgen.package import commands

    assert directory is not None  # or there are settings
    package_options = commands.PackageOptions(schemas=schemas, facts=facts_file, trusted=trusted)
    with _own_revisions(directory):
        return [commands.check(console, directory, package_options)]


def _check_project(
    console: Console, project: Settings, *, trusted: bool, offline: bool
) -> list[Report]:
    """Check all that a project generates, and the servers that it mirrors."""
    from mcpgen.project import commands as project_commands

    reports = project_commands.check(console, project, trusted=trusted)
    if not offline and project.mirror is not None and project.mirror.server:
        reports.append(_check_mirrored_server(console, project))
    for path in project.calls_files:
        from mcpgen.cli import mirror

        reports.append(mirror.check_module(console, path, offline=offline))
    return reports


def _check_mirrored_server(console: Console, project: Settings) -> Report:
    """Report the changes of the server that a project mirrors."""
    from mcpgen.cli import mirror
    from mcpgen.contract import command, report
    from mcpgen.findings import Report

    with console.progress("asking the mirrored server"):
        changes = command.changes_of_mirror(project)
    if changes:
        console.summary(f"the server has changed: {report.summary(changes)}; run mcpgen update")
        console.text(report.text(changes))
    return Report("server", mirror.changed_server(changes, project.mirror_directory))


@cli.command()
@click.argument("directory", type=DIRECTORY, required=False)
@selection_options
@file_options
@extension_option
@templates_option
@patch_option
@old_modules_option
@trusted_option
@force_option
@watch_option
@json_option
@common_options
@click.pass_obj
def update(
    console: Console,
    /,
    directory: Path | None,
    trusted: bool,
    force: bool,
    watch: bool,
    **words: Any,
) -> None:
    """Generate the package in DIRECTORY again, by its manifest.

    What is given here takes the place of what is recorded: --revision latest moves on to the
    newest revision. A schema file is looked for where it was, from the package's directory.

    DIRECTORY may be what mcpgen render wrote, which is rendered again, or a module of mcpgen
    mirror, whose server is asked again. It may be a project with
    [tool.mcpgen] in its pyproject.toml; without it, the one around the current directory. Its
    packages are generated by those settings, and a server that it mirrors is asked again.
    """
    options, features = [*words.values()], words["features"]
    if directory is not None and directory.suffix == ".py":
        from mcpgen.cli import mirror

        if any(options) or watch:
            raise UsageError("options of packages are not for modules of mcpgen mirror")
        mirror.update_module(console, directory, force=force)
        return
    if directory is not None and _is_rendered(directory):
        revisions = words.pop("revisions")
        _refuse_for_rendered(*words.values())
        with _own_revisions(directory):
            _update_rendered(console, directory, revisions, watch, trusted=trusted, force=force)
        return
    project = _project_settings(directory)
    if project is not None:
        _refuse_options(project, features, *options)
        _update_project(console, project, watch, trusted=trusted, force=force)
        return
    from mcpgen.package import commands, settings

    assert directory is not None  # or there are settings
    owner = settings.owner(directory) if any(options) else None
    if owner is not None:
        _refuse_options(owner, features, *options)
    package_options = _package_options(words, trusted=trusted)
    with _own_revisions(directory):
        if watch:
            _watch_inputs(console, package_options, directory)
            return
        request = commands.update_request(package_options, directory)
        commands.generate(console, request, directory, force=force)


def _update_project(console: Console, project: Settings, watch: bool, **flags: bool) -> None:
    """Generate a project again from its settings, with `watch` on each change."""
    from mcpgen.project import commands as project_commands

    if watch:
        _watch_project(console, project)
        return
    project_commands.update(console, project, **flags)
    for path in project.calls_files:
        from mcpgen.cli import mirror

        mirror.update_module(console, path, force=flags["force"])


def _is_rendered(directory: Path) -> bool:
    """Whether `mcpgen render` wrote to a directory."""
    from mcpgen.package import rendering

    return (directory / rendering.NAME).is_file()


def _update_rendered(
    console: Console, directory: Path, revisions: Sequence[str], watch: bool, **flags: bool
) -> None:
    """Render a directory again from what its record says, with `watch` on each change."""
    from mcpgen.package import rendering, watching

    if watch:
        watching.watch(sys.argv[1:], rendering.inputs(directory))
        return
    rendering.update(console, directory, revisions, **flags)


def _refuse_for_rendered(*given: object) -> None:
    """Refuse options of packages for a rendered directory.

    Raises:
        UsageError: Such options were given.
    """
    if any(given):
        raise UsageError("options of packages are not for rendered directories: mcpgen render")


def _refuse_options(project: Settings, features: Sequence[str] | None, *given: object) -> None:
    """Refuse options that the settings of a project replace.

    Raises:
        UsageError: Such options were given.
    """
    if any(given):
        raise UsageError(project.refusal(features or ()))


@cli.command("list")
@click.option(
    "--modules",
    "directory",
    type=DIRECTORY,
    metavar="DIR",
    help="List the modules of the package in DIR instead: lines, and what imports each first.",
)
@json_option
@common_options
@click.pass_obj
def list_(console: Console, directory: Path | None) -> None:
    """List the revisions and what each has, the extensions, and the features."""
    from mcpgen.package import listing

    if directory is not None:
        listing.list_modules(console, directory)
        return
    listing.list_revisions(console)


@cli.command()
@click.argument("directory", type=DIRECTORY, default=".")
@json_option
@common_options
@click.pass_obj
def doctor(console: Console, directory: Path) -> None:
    """Examine this installation of mcpgen, and the packages of mcpgen below DIRECTORY.

    Says for each finding what to do. Exits with 1 if something is wrong.
    """
    from mcpgen.project import diagnosis

    if not diagnosis.diagnose(console, directory):
        sys.exit(DIFFERS)


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

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click has these three
    click.echo(completion_class(cli, {}, "mcpgen", "_MCPGEN_COMPLETE").source())


cli.add_lazy("mcpgen.cli.contract", "contract")
cli.add_lazy("mcpgen.cli.port", "port")
cli.add_lazy("mcpgen.cli.mirror", "mirror")
cli.add_lazy("mcpgen.cli.project", "generate", "new", "publish")
cli.add_lazy("mcpgen.cli.rendering", "render")
cli.add_lazy("mcpgen.cli.replay", "record", "replay")
cli.add_lazy("mcpgen.cli.protocol", "diff", "explain", "validate")
cli.add_lazy("mcpgen.cli.schema", "export", "facts", "schema")
cli.add_lazy("mcpgen.cli.server", "check-server")
cli.add_lazy("mcpgen.cli.customization", "patch", "templates")


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        words: The command line without the program's name; that of the process by default.
    """
    arguments = sys.argv[1:] if words is None else list(words)
    gc.disable()  # almost none of the many objects of a run is garbage
    try:
        code = cli.main(arguments, prog_name="mcpgen", standalone_mode=False)
    except Exception as error:
        _fail(error, debug="--debug" in arguments)
    finally:
        gc.enable()
    sys.exit(code)
