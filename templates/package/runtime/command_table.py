"""The command line of a package: its commands, and those of features that it lacks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..absence import missing_text

AddCommand: TypeAlias = Callable[[Callable[..., argparse.ArgumentParser]], None]
"""Adds a command by the `add_parser` method of subparsers.

Its default of `main` is a function that takes the parsed command line and returns the exit code.
"""


def run(
    package: str,
    commands: Sequence[AddCommand],
    absent: Mapping[str, str],
    argv: Sequence[str] | None,
) -> None:
    """Run a command.

    Args:
        package: The import name of the package.
        commands: Its commands.
        absent: Commands that it lacks, perhaps with an option, such as `serve --reload`; each with
            the feature that adds it.
        argv: The arguments; by default those of the process.

    Raises:
        SystemExit: Always; with code 2 if the command line is wrong.
    """
    words = sys.argv[1:] if argv is None else argv
    for name, feature in absent.items():
        command, *option = name.split()
        if words[:1] == [command] and set(option) <= {*words}:
            raise SystemExit(missing_text(f"the command {name}", feature))
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}", description="Serve and use MCP servers."
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    for add in commands:
        add(subparsers.add_parser)
    chosen = parser.parse_args(argv)
    raise SystemExit(chosen.main(chosen))
