"""The command `mirror`, and `check` and `update` of the modules that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from mcpgen.cli.contract import selection_options
from mcpgen.cli.options import common_options, force_option, json_option, output_option
from mcpgen.console import Console
from mcpgen.contract import calls, report
from mcpgen.contract.command import Selection
from mcpgen.contract.compare import Change
from mcpgen.errors import OutputError, safe_text
from mcpgen.findings import Finding, Report
from mcpgen.package.check import file_finding

_RENEW = "not what mcpgen would write; run mcpgen update"


@click.command()
@click.argument("target", metavar="TARGET")
@output_option("The module to write, such as src/app/calls.py.")
@click.option(
    "--package",
    metavar="NAME",
    help="The generated package that the module imports, such as app.protocol or .protocol; the"
    " only one beside the module unless given.",
)
@click.option(
    *("--class", "class_name"),
    metavar="NAME",
    default="",
    help="Name of the class of calls; that of the server unless given.",
)
@selection_options
@force_option
@json_option
@common_options
@click.pass_obj
def mirror(
    console: Console,
    target: str,
    output: Path,
    package: str | None,
    class_name: str,
    selection: Selection,
    force: bool,
) -> None:
    """Write typed calls of the running server TARGET as one module of your project.

    TARGET is as for mcpgen contract write, or the file of a contract. A running server is written
    to a contract beside the module too. The module imports a generated package with a client.

    mcpgen check FILE tells whether the server has changed, and mcpgen update FILE renews the
    module.
    """
    if output.exists() and not force:
        raise OutputError(f"{output}: expected a new file; mcpgen update {output} renews a module")
    name = calls.find_package(output) if package is None else package
    with console.progress(f"asking {target}"):
        module = calls.new_module(target, output, name, class_name, selection)
    notes = module.write()
    _report(console, module, notes)


def _report(console: Console, module: calls.Module, notes: Sequence[str]) -> None:
    record = {
        "file": str(module.path),
        "class": module.origin.calls_class,
        "contract": str(module.contract_path),
        "notes": [*notes],
    }
    console.record(record)
    for note in notes:
        console.summary(f"note: {safe_text(note, 400)}")
    console.summary(f"wrote {module.path}: class {module.origin.calls_class}")


def check_module(console: Console, path: Path, *, offline: bool) -> Report:
    """Report whether a module is what mcpgen would write, and whether its server has changed.

    Args:
        console: The output.
        path: The module.
        offline: Whether the server is left out.

    Returns:
        The findings, of which none fails if neither is so.

    Raises:
        McpgenError: The file is no such module, or the server does not answer.
    """
    module = calls.read_module(path)
    current = module.is_current()
    console.summary(
        f"{path}: {'up to date' if current else 'differs; run mcpgen update ' + str(path)}"
    )
    listed = [] if current else [file_finding(path.parent, path.name, _RENEW)]
    if offline or not module.origin.server:
        return Report(path.as_posix(), listed)
    with console.progress(f"asking {safe_text(module.origin.server)}"):
        _, changes = calls.server_changes(module)
    if changes:
        summary = report.summary(changes)
        console.summary(f"the server has changed: {summary}; run mcpgen update {path}")
        console.text(report.text(changes))
    return Report(path.as_posix(), [*listed, *changed_server(changes, module.contract_path)])


def changed_server(changes: Sequence[Change], file: Path) -> Sequence[Finding]:
    """The changes of a server that code was written from, each of which fails a check.

    Args:
        changes: The changes.
        file: The file with what was recorded of the server.
    """
    return [replace(each, level="error") for each in report.report_of(changes, file).findings]


def update_module(console: Console, path: Path, *, force: bool) -> None:
    """Renew a module from its server or contract, and report the changes of the server.

    Args:
        console: The output.
        path: The module.
        force: Whether to overwrite edits.

    Raises:
        McpgenError: The module was edited by hand, or the server does not answer.
    """
    with console.progress(f"renewing {path}"):
        module, changes, notes = calls.update(path, force=force)
    if changes:
        console.text(report.text(changes))
    _report(console, module, notes)
