"""The commands and options of the tool, which VERSIONING.md promises, without help texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
from syrupy.assertion import SnapshotAssertion

from mcpgen.cli import cli

NAMED = ("required", "multiple", "is_flag", "count", "exists", "file_okay", "dir_okay")
"""Facts that a line names where they hold."""

STATED = ("choices", "min", "max", "nargs", "default", "flag_value")
"""Facts whose value a line states, if it is not the usual one."""

USUAL = (None, 1, True, False)


def lines_of(info: Mapping[str, Any], path: str) -> Iterator[str]:
    """The lines of a command, each of its parameters with what it takes, and of those below."""
    yield path
    for parameter in info["params"]:
        facts = parameter["type"] | parameter
        named = [name for name in NAMED if facts.get(name)]
        stated = [
            f"{name}={'|'.join(map(str, value)) if isinstance(value, list | tuple) else value}"
            for name in STATED
            if (value := facts.get(name)) not in USUAL
        ]
        words = [*parameter["opts"], *parameter.get("secondary_opts", ())]
        words.append(parameter["type"]["param_type"].lower())
        yield f"  {' '.join([*words, *named, *stated])}"
    for name, below in info.get("commands", {}).items():
        yield from lines_of(below, f"{path} {name}")


def test_commands_keep_their_options(snapshot: SnapshotAssertion) -> None:
    info = cli.to_info_dict(click.Context(cli, **cli.context_settings))
    assert "\n".join(lines_of(info, "mcpgen")) == snapshot
