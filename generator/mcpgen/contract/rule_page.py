"""The reference page of the rules, rendered from their table and their examples."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mcpgen.contract.compare import Change
from mcpgen.contract.rule_examples import PLACES, Example, examples
from mcpgen.contract.rules import CATEGORIES, RULES, Rule
from mcpgen.json_types import Json

_HEAD = """# The rules of contracts

The changes of a server that [`mcpgen contract`](contract.md) names: {count} rules in {categories} \
categories. `--category` chooses a category, and `[[allow]]` names a rule or a category. This page \
is the output of `mcpgen contract rules --format markdown`; what each example reports is what a \
comparison of its two values says.

- **breaking**: something that worked before fails.
- **warning**: something works otherwise, or it can't be decided whether it still works.
- **compatible**: nothing that worked before fails.
"""


def text() -> str:
    """The page as Markdown."""
    lines = [_HEAD.format(count=len(RULES), categories=len(CATEGORIES))]
    known = examples()
    for category, protected in CATEGORIES.items():
        lines += [f"## {category.capitalize()}", "", protected, ""]
        for rule in RULES.values():
            if rule.category == category:
                lines += _section(rule, known[rule.id])
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(rule: Rule, example: Example) -> Iterator[str]:
    place, _ = PLACES[example.place]
    [change] = example.changes()
    yield f"### {rule.id}"
    yield ""
    yield f"{rule.severity.capitalize()}: {rule.reason}."
    yield ""
    yield f"| | {place} |"
    yield "| --- | --- |"
    yield f"| before | {_code(example.old)} |"
    yield f"| after | {_code(example.new)} |"
    yield from _report(change)
    yield ""


def _report(change: Change) -> Iterator[str]:
    yield f"| report | `{change.item}: {change.text}` |"
    if change.witness:
        yield f"| for example | `{change.witness}` |"


def _code(value: Json) -> str:
    """A value as JSON in a cell of a table."""
    return "none" if value is None else f"`{json.dumps(value).replace('|', chr(92) + '|')}`"
