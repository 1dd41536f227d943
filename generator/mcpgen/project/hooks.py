"""Commands of the user's that are run after each generation.

A hook may do anything but change the package: `mcpgen check` compares the package with what mcpgen
writes, and runs no hook. What one changes in the package is put back, and the hook has failed.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from mcpgen.console import Console
from mcpgen.errors import HookError, safe_text
from mcpgen.package import directory as directories
from mcpgen.package import manifest, output

_LINES = 40
"""Lines of the output of a hook that failed, the last ones, that are shown."""


def run(console: Console, hooks: Sequence[Sequence[str]], directory: Path, project: Path) -> None:
    """Run the hooks of a package, in order, until one fails.

    Args:
        console: Where they are told of.
        hooks: A program and its arguments each; `{output}` stands for the package's directory. No
            shell reads them.
        directory: The package.
        project: Where they are run.

    Raises:
        HookError: A program cannot be started, exits with another code than 0, or changes the
            package.
    """
    if not hooks:
        return
    before = directories.texts(directory)
    record = directory / manifest.NAME
    before[manifest.NAME] = record.read_text(encoding="utf-8")
    for hook in hooks:
        words = [word.replace("{output}", str(directory.resolve())) for word in hook]
        shown = safe_text(shlex.join(word.replace("{output}", str(directory)) for word in hook))
        try:
            with console.progress(f"hook: {shown}"):
                _run(words, shown, project)
        finally:
            records = [record.name] if _puts_back(record, before[manifest.NAME]) else []
            put_back = output.write(directory, before, force=True)
        if put_back.changed or records:
            paths = ", ".join((*put_back.created, *put_back.updated, *records))
            raise HookError(
                f"hook {shown}: expected no change of the package, got another"
                f" {safe_text(paths)}; what mcpgen wrote was put back"
            )
        console.summary(f"hook: {shown}: ok")


def _puts_back(file: Path, text: str) -> bool:
    """Whether a file had another text, which is undone."""
    try:
        if file.read_text(encoding="utf-8") == text:
            return False
    except (OSError, ValueError):
        pass
    file.unlink(missing_ok=True)  # perhaps a link
    file.write_text(text, encoding="utf-8")
    return True


def _run(words: Sequence[str], shown: str, project: Path) -> None:
    try:
        done = subprocess.run(
            words,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise HookError(f"hook {shown}: cannot be started: {reason}") from error
    if done.returncode:
        for line in done.stdout.splitlines()[-_LINES:]:
            click.echo(f"  {safe_text(line)}", err=True)
        raise HookError(f"hook {shown}: expected exit code 0, got {done.returncode}")
