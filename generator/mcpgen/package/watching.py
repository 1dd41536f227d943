"""Generate again whenever an input changes.

Each run is a separate process, so a failed run cannot affect the next one. The library watchfiles
reports changes, and groups those of the same moment.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from mcpgen import paths
from mcpgen.errors import UsageError
from mcpgen.package import directory as directories
from mcpgen.package.build_request import named_extensions, recorded_extension
from mcpgen.package.commands import PackageOptions

_DEBOUNCE = 200
"""Milliseconds during which changes are collected before a run."""

_ROUND = 500
"""Milliseconds after which a wait for changes starts anew."""


def inputs(options: PackageOptions, directory: Path) -> tuple[Path, ...]:
    """The files and folders that a package is made from.

    These are mcpgen's own schemas and templates, and the files of the user that the options or else
    the package's manifest name.

    Args:
        options: The options of the command line.
        directory: The package; it need not be there.
    """
    optional = (options.facts, options.templates)
    named = [*options.schemas, *(path for path in optional if path is not None)]
    extensions = [each.path for each in named_extensions(options.extensions)]
    record = directories.read_manifest(directory) if directory.is_dir() else None
    if record is not None and not named:
        for origin in record.revisions.values():
            named += [directory / path for path in (origin.schema, origin.facts) if path]
        if record.templates.directory:
            named.append(directory / record.templates.directory)
    folders = (paths.schema_dir(), paths.templates_dir(), paths.own_schema_dir())
    own = tuple(folder.resolve() for folder in folders if folder is not None)
    if options.patch is not None:
        named.append(options.patch)
    elif record is not None and record.patch.file:
        named.append(directory / record.patch.file)
    if record is not None and not extensions:
        extensions = [
            recorded_extension(directory, identifier, origin)
            for identifier, origin in record.extensions.items()
        ]
    named += extensions
    return (*own, *(path.resolve() for path in named))


def watch(arguments: Sequence[str], watched: Sequence[Path]) -> None:
    """Run mcpgen with the same arguments now, and again on each change, until Ctrl-C.

    A file is watched by its folder, since editors put a new file in the place of the old one.

    Args:
        arguments: The command line, `--watch` included.
        watched: Files and folders.

    Raises:
        UsageError: watchfiles is not installed.
    """
    try:
        import watchfiles
    except ImportError:
        raise UsageError("--watch needs watchfiles: pip install watchfiles") from None
    command = [sys.executable, "-m", "mcpgen", *(word for word in arguments if word != "--watch")]
    folders = {folder for path in watched for folder in _folders(path)}

    def is_input(_: watchfiles.Change, changed: str) -> bool:
        path = Path(changed)
        return any(path == one or one in path.parents for one in watched)

    changes = watchfiles.watch(
        *sorted(folders),
        watch_filter=is_input,
        debounce=_DEBOUNCE,
        rust_timeout=_ROUND,
        yield_on_timeout=True,
        raise_interrupt=False,
        recursive=False,
    )
    with suppress(KeyboardInterrupt):
        next(changes, None)  # from here on changes are noticed, those during a run too
        subprocess.run(command, check=False)
        click.echo("waiting for changes; Ctrl-C ends this", err=True)
        for changed in changes:
            if changed:
                names = sorted({Path(path).name for _, path in changed})
                click.echo(f"changed: {', '.join(names)}", err=True)
                subprocess.run(command, check=False)


def _folders(path: Path) -> Iterator[Path]:
    """The folder of a file, or a folder with all folders in it."""
    if not path.is_dir():
        yield path.parent
        return
    yield path
    yield from (folder for folder in path.rglob("*") if folder.is_dir())
