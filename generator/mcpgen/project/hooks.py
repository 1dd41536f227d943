"""Commands of the user that run after each generation.

A hook must not change the package, since `mcpgen check` compares the package with mcpgen's output,
and runs no hook. Changes of the package are undone, and the hook counts as failed.
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
"""Limit of the last lines of a failed hook's output that are shown."""


def run(console: Console, hooks: Sequence[Sequence[str]], directory: Path, project: Path) -> None:
    """Run the hooks of a package, in order, until one fails.

    Args:
        console: The output for progress.
        hooks: Programs with their arguments, run without a shell; `{output}` stands for the
            package's directory.
        directory: The package.
        project: The working directory.

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
            records = [record.name] if _restore(record, before[manifest.NAME]) else []
            put_back = output.write(directory, before, force=True)
        if put_back.changed or records:
            paths = ", ".join((*put_back.created, *put_back.updated, *records))
            raise HookError(
                f"hook {shown}: expected no change of the package, got another"
                f" {safe_text(paths)}; what mcpgen wrote was put back"
            )
        console.summary(f"hook: {shown}: ok")


def _restore(file: Path, text: str) -> bool:
    """Restore the text of a file; return whether the file had changed."""
    try:
        if file.read_text(encoding="utf-8") == text:
            return False
    except (OSError, ValueError):
        pass
    file.unlink(missing_ok=True)  # the file may have become a link
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
