"""Options that several commands share, and a group that loads commands when they are needed.

Options for the output alone (`--quiet`, `--json`, `--format`, `--debug`) are kept in the `Console`
of the run: no command takes these as parameters.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from mcpgen import paths
from mcpgen.console import Console
from mcpgen.errors import UsageError
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import ALL, NONE, PARTS, TRANSPORTS, USED
from mcpgen.model.runtime import DISTRIBUTION, RUNTIMES
from mcpgen.names import DECODINGS, LIBRARIES, MUTABILITIES

DIRECTORY = click.Path(file_okay=True, dir_okay=True, path_type=Path)
"""A directory, which need not exist: the code that reads it reports that it is no directory."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that exists."""


class LazyGroup(click.Group):
    """A group that imports some of its commands only to run or list them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Accept the arguments of a group."""
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
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


def _set_quiet(context: click.Context, _: click.Parameter, chosen: bool) -> None:
    if chosen:
        context.ensure_object(Console).quiet = True


def _set_form(context: click.Context, _: click.Parameter, form: str | bool | None) -> None:
    """Keep the form of the result that an option names; `--json` is `--format json`."""
    if not form:
        return
    console = context.ensure_object(Console)
    word = "json" if form is True else str(form)
    if console.form not in ("text", word):
        raise UsageError(f"expected one form of the result, got {console.form} and {word}")
    console.form = word


def common_options(command: Any) -> Any:
    """Add the options that every command takes."""
    quiet = click.option(
        *("-q", "--quiet"),
        is_flag=True,
        expose_value=False,
        callback=_set_quiet,
        help="Print neither progress nor summaries.",
    )
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    )
    schemas = click.option(
        *("--schemas", "own_schemas"),
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        expose_value=False,
        callback=_use_schemas,
        help="Folder of revisions of your own, as mcpgen schema add writes it; MCPGEN_SCHEMAS names"
        " it too.",
    )
    no_cache = click.option(
        "--no-cache",
        is_flag=True,
        expose_value=False,
        callback=_turn_cache_off,
        help="Do not use the cache; MCPGEN_NO_CACHE does the same.",
    )
    return schemas(no_cache(quiet(debug(command))))


def _turn_cache_off(context: click.Context, _: click.Parameter, chosen: bool) -> None:
    if chosen:
        from mcpgen import cache  # few commands need it

        context.with_resource(cache.disable())


def _use_schemas(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    """Use the revisions of a folder while the command runs."""
    if folder is not None:
        context.with_resource(paths.own_schemas(folder))


def json_option(command: Any) -> Any:
    """Add the option for JSON output, which commands pass to `Console.record`."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_set_form,
        help="Print one JSON value instead of text.",
    )(command)


REPORT_FORMS = ("text", "markdown", "json", "junit", "sarif", "github")
"""The forms of a report of findings."""


def format_option(*forms: str) -> Callable[[Any], Any]:
    """The options for the form of the result, which is kept in the `Console` of the run.

    Args:
        forms: The words of `--format`, `text` and `json` among them.
    """

    def add(command: Any) -> Any:
        option = click.option(
            "--format",
            "form",
            type=click.Choice(forms),
            expose_value=False,
            callback=_set_form,
            help="Form of the result; text unless given"
            + (", github for annotations of a workflow." if "github" in forms else "."),
        )
        return option(json_option(command))

    return add


def extension_option(command: Any) -> Any:
    """Add the option that names extensions."""
    return click.option(
        "--extension",
        "extensions",
        multiple=True,
        metavar="EXTENSION",
        help="Extension of the revisions: a name that mcpgen list shows, or a schema file in JSON"
        " or TypeScript, as FILE, or as ID=FILE if the file does not state its identifier."
        " May be given several times.",
    )(command)


def watch_option(command: Any) -> Any:
    """Add the option that generates again on each change."""
    return click.option(
        "--watch", is_flag=True, help="Generate again whenever an input changes, until Ctrl-C."
    )(command)


def output_option(meaning: str) -> Callable[[Any], Any]:
    """The option that names the file to write.

    Args:
        meaning: Its help.
    """
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option(*("-o", "--output"), type=kind, required=True, metavar="FILE", help=meaning)


def force_option(command: Any) -> Any:
    """Add the option that overwrites edits."""
    return click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")(
        command
    )


def trusted_option(command: Any) -> Any:
    """Add the option that lets code of templates of the user's own run."""
    return click.option(
        "--trusted",
        is_flag=True,
        help="Run templates of your own without a sandbox: those of model classes, and rendered"
        " folders with their filters and formatter.",
    )(command)


def old_modules_option(command: Any) -> Any:
    """Add the option that keeps the modules of removed revisions."""
    return click.option(
        "--keep-old-modules",
        is_flag=True,
        help="Keep the modules of removed revisions for one update: each has the names of the"
        " nearest revision, with a DeprecationWarning.",
    )(command)


def file_options(command: Any) -> Any:
    """Add the options that name the files a package is made from."""
    schemas = click.option(
        "--schema",
        "schemas",
        type=FILE,
        multiple=True,
        help="Schema file, JSON or TypeScript (.ts, .d.ts), such as a draft; a date in its name or"
        " its folder's names the revision. May be given several times, one revision each.",
    )
    facts = click.option(
        "--facts",
        "facts_file",
        type=FILE,
        help="Facts that differ from those of the nearest revision; see mcpgen facts --help.",
    )
    return schemas(facts(command))


def templates_option(command: Any) -> Any:
    """Add the option for templates of the user's own."""
    return click.option(
        "--templates",
        type=DIRECTORY,
        metavar="DIR",
        help="Directory with templates that replace mcpgen's; see mcpgen templates --help.",
    )(command)


def patch_option(command: Any) -> Any:
    """Add the option for the patch of a package."""
    return click.option(
        "--patch",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Patch to apply, as mcpgen patch writes it; by default the recorded patch of the"
        " package.",
    )(command)


def _decoding_options(command: Any) -> Any:
    """Add the options of what is decoded, and what becomes of unknown members."""
    decoding = click.option(
        "--decoding",
        type=click.Choice(DECODINGS),
        metavar="KIND",
        help="lenient (the default): null counts as absent, and so on; strict: exactly what the"
        " schema allows.",
    )
    extra = click.option(
        "--extra",
        multiple=True,
        metavar="POLICY",
        help="Policy for members that a type does not have: ignore (the default), forbid or"
        " keep; TYPE=POLICY for one type. May be given several times.",
    )
    mutability = click.option(
        "--mutability",
        type=click.Choice(MUTABILITIES),
        metavar="KIND",
        help="frozen (the default), or mutable: members of models of pydantic can be assigned.",
    )
    return decoding(extra(mutability(command)))


def selection_options(command: Any) -> Any:
    """Add the options that choose the contents of a package."""
    revisions = click.option(
        *("-r", "--revision", "revisions"),
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
        *("--transport", "transports"),
        multiple=True,
        shell_complete=_complete_transports,
        metavar="TRANSPORTS",
        help="Only these transports: stdio, http, http+sse (which brings http), or all (the"
        " default).",
    )
    features = click.option(
        "--features",
        multiple=True,
        shell_complete=_complete_features,
        metavar="FEATURES",
        help="Add these features to the default ones, with commas between them, or all:"
        f" {', '.join(each.name for each in FEATURES if not each.is_default)}. none starts without"
        " the default ones, -NAME removes one:"
        f" {', '.join(each.name for each in FEATURES if each.is_default)}. used selects the"
        " features that your code uses. update takes +NAME and -NAME.",
    )
    sources = click.option(
        "--sources",
        type=click.Path(exists=True, path_type=Path),
        multiple=True,
        metavar="PATH",
        help="With --features used: a file or folder of your code; by default the folder of the"
        " package. May be given several times.",
    )
    library = click.option(
        "--models",
        type=click.Choice(LIBRARIES),
        metavar="LIBRARY",
        help="Library of the models: msgspec (the default) or pydantic.",
    )
    form = click.option(
        "--runtime",
        type=click.Choice(RUNTIMES),
        metavar="FORM",
        help="vendored (the default): the package has all of its modules; installed: it has only"
        f" the rendered ones, and imports the rest from {DISTRIBUTION}, which has all features.",
    )
    return revisions(
        parts(transports(features(sources(library(form(_decoding_options(command)))))))
    )


def _complete_revisions(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from mcpgen import schema

    words = ["latest", "all", *(entry.name for entry in schema.revisions())]
    return [word for word in words if word.startswith(begun)]


def _complete_parts(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _with_commas(begun, PARTS)


def _complete_transports(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _with_commas(begun, TRANSPORTS)


def _complete_features(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _with_commas(begun, [*(each.name for each in FEATURES), ALL, NONE, USED])


def _with_commas(begun: str, words: Iterable[str]) -> list[str]:
    """The words that complete the last of several words with commas between them."""
    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def new_project_options(command: Any) -> Any:
    """Add the arguments and options of a new project."""
    options = (
        click.argument("name", required=False),
        click.option(
            *("-o", "--output"), type=DIRECTORY, metavar="DIR", help="By default the name."
        ),
        click.option(
            *("-r", "--revision", "revisions"),
            multiple=True,
            shell_complete=_complete_revisions,
            metavar="REVISION",
            help="Revision to generate: its date, latest or all (the default).",
        ),
        click.option(
            *("--transport", "transports"),
            multiple=True,
            shell_complete=_complete_transports,
            metavar="TRANSPORTS",
            help="Only these transports: stdio, http, http+sse, or all (the default).",
        ),
        click.option(
            "--features",
            multiple=True,
            shell_complete=_complete_features,
            metavar="FEATURES",
            help="Add these features of the package to the default ones, with commas between them,"
            " or all. A server with auth can require access tokens.",
        ),
        click.option(
            *("--from", "from_file"),
            type=FILE,
            metavar="FILE",
            help="Start from the tools, resources and prompts in a JSON file, or in a contract.",
        ),
        click.option(
            "--from-server",
            metavar="TARGET",
            help="Start from those of a server: a URL, the command that starts it, or an entry"
            " of a configuration with mcpServers, as FILE or FILE#NAME.",
        ),
        click.option(
            "--mcpgen",
            metavar="REQUIREMENT",
            help="Source of mcpgen for pip in CI: a wheel, or git+https://...@COMMIT. Without it,"
            " CI does not run mcpgen check.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return common_options(command)
