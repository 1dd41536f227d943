"""Writes the rules that `mcpgen check-server` checks, from the ledger."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from mcpgen.check_server.rules import FILE

from .entries import Entry, ledger

HEAD = """\
# The entries of the ledger (tests/requirements/ledger) that `mcpgen check-server` checks.
# Written by tests/requirements/server_rules.py; the ledger is what to edit.
"""


def named_rules() -> list[str]:
    """The ids that checks name in their source, sorted."""
    sources = sorted(FILE.parent.glob("*_checks.py"))
    trees = (ast.parse(path.read_text("utf-8")) for path in sources)
    return sorted(id for tree in trees for node in ast.walk(tree) for id in _ids(node))


def _ids(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="TABLE"), attr="add"), args=arguments):
            yield from (ast.literal_eval(argument) for argument in arguments)


def text() -> str:
    """The expected text of the file of rules."""
    checked = set(named_rules())
    chosen = [entry for id, entry in ledger().items() if id in checked]
    return "\n".join([HEAD, *map(_row, chosen)])


def _row(entry: Entry) -> str:
    values = {
        "id": entry.id,
        "level": entry.level,
        "revisions": list(entry.revisions),
        "rule": " ".join(entry.rule.split()),
        "source": " ".join(entry.source.split()),
    }
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    return f"[[rule]]\n{''.join(lines)}"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
