"""Exit codes are one table for all commands: 0 is fine, 1 is a difference, 2 can't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest

from generator.command_line import run
from mcpgen.cli import cli
from mcpgen_runtime.__main__ import main

NOWHERE = "http://127.0.0.1:1/mcp"
OTHERWISE = {
    "check-server": NOWHERE,
    "completion": "tcsh",
    "contract accept": "none.json",
    "contract check": f"{NOWHERE} NOWHERE.json",
    "contract diff": "NOWHERE.json NOWHERE.json",
    "contract rules": "--format toml",
    "contract write": "none.json -o a.json",
    "diff": "NOWHERE.json latest",
    "generate": "",
    "list": "--modules NOWHERE",
    "mirror": "none.json -o calls.py",
    "record": "none.json -o a.jsonl",
    "render": "NOWHERE -r latest -o out",
    "replay": f"NOWHERE --against {NOWHERE}",
    "schema errata": "NOWHERE.json NOWHERE.ts",
    "schema verify": "--against NOWHERE",
    "templates accept": "NOWHERE a",
    "templates copy": "NOWHERE here",
}
"""The words with which commands of mcpgen can't do their work, unless a place that is not there."""
DIFFERS = {
    "check": "pkg",
    "diff": "2024-11-05 2025-03-26 --fail-on any",
    "doctor": ".",
    "validate": "wrong.json -r 2025-06-18",
}
"""Commands whose answer is that something differs, with words for it."""
FINE = {
    "check": "fine",
    "diff": "2025-03-26 2025-03-26 --fail-on any",
    "doctor": "fine",
    "validate": "right.json -r 2025-06-18",
}
OF_PACKAGE = {
    "announce": ("nothing:server", "tools", "--shared", "redis://127.0.0.1:1/0"),
    "call": (NOWHERE, "add"),
    "config": ("", "--client", "cursor"),
    "inspect": (NOWHERE,),
    "list": (NOWHERE,),
    "prompt": (NOWHERE, "greet"),
    "read": (NOWHERE, "a://b"),
    "serve": ("nothing:server",),
    "trace": ("NOWHERE",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package, one that was edited, messages and contracts."""
    place = tmp_path_factory.mktemp("codes")
    for name in ("pkg", "fine"):
        words = ("-q", "-r", "2025-06-18", "--parts", "types", "-o", name)
        assert run(*words, cwd=place).code == 0
    (place / "pkg" / "__init__.py").write_text("edited = True\n")
    (place / "none.json").write_text('{"mcpServers": {}}')
    for name, method in (("right", "ping"), ("wrong", "ping/pong")):
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        (place / f"{name}.json").write_text(json.dumps(message))
    return place


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    """The words of all commands of a group that do something."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


CANNOT = dict.fromkeys(commands(cli), "NOWHERE") | OTHERWISE
ROWS = [
    *(
        (code, name, words)
        for code, table in enumerate((FINE, DIFFERS, CANNOT))
        for name, words in table.items()
    )
]


@pytest.mark.parametrize(("code", "name", "words"), ROWS, ids=lambda value: f"{value}")
def test_a_command_exits_as_the_table_says(folder: Path, code: int, name: str, words: str) -> None:
    done = run(*name.split(), *words.split(), cwd=folder)
    assert done.code == code, done
    last = done.err.splitlines()[-1:]
    assert [line.startswith("mcpgen: error: ") for line in last] == [True] * (code == 2)
    assert "please report it" not in done.err


@pytest.mark.parametrize("command", OF_PACKAGE)
def test_a_command_of_a_package_that_cannot_run_exits_with_2(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with chdir(folder), pytest.raises(SystemExit) as ended:
        main([command, *OF_PACKAGE[command]])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert ("error: " in shown, "Traceback" in shown) == (True, False)
