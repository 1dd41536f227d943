"""The command line of a package: its commands, and those of features that it lacks.

Exit codes of all commands: 0, done; 1, the server answered with an error; 2, the command could not
do its work.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ..absence import missing_text

DONE, FAILED, CANNOT = 0, 1, 2
"""The exit codes."""

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
        SystemExit: Always, with the exit code.
    """
    words = sys.argv[1:] if argv is None else argv
    for name, feature in absent.items():
        command, *option = name.split()
        if words[:1] == [command] and set(option) <= {*words}:
            print(missing_text(f"the command {name}", feature), file=sys.stderr)
            raise SystemExit(CANNOT)
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}", description="Serve and use MCP servers."
    )
    parser.add_argument(
        "--version",
        action=_PrintVersion,
        nargs=0,
        default=argparse.SUPPRESS,
        help="print the version of mcpgen that wrote the package, and its revisions",
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    for add in commands:
        add(subparsers.add_parser)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for words
        import argcomplete

        argcomplete.autocomplete(parser)
    chosen = parser.parse_args(argv)
    try:
        code: int = chosen.main(chosen)
    except Exception:
        traceback.print_exc()
        code = CANNOT
    raise SystemExit(code)


class _PrintVersion(argparse.Action):
    """Prints the package, the version of mcpgen that wrote it, and its revisions; then exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        package = parser.prog.rpartition(" ")[2]
        folder: str = sys.modules[package].__path__[0]
        manifest = json.loads((Path(folder) / "mcpgen.json").read_text("utf-8"))
        revisions = ", ".join(manifest["revisions"])
        print(f"{package}: mcpgen {manifest['mcpgen']}, MCP {revisions}")
        parser.exit()
