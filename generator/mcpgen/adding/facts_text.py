"""The text of facts.toml for an added revision: the values that differ from the defaults.

The form is that of published revisions. Comments state the source of each value that a person has
to check. Keys of the fixed tables with default values are included as comments, so that they can be
changed easily.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mcpgen.adding.reviews import Review
from mcpgen.errors import safe_text
from mcpgen.json_types import Json, Node
from mcpgen.model import schema_facts
from mcpgen.schema import facts as facts_module
from mcpgen.schema.facts import Facts
from mcpgen.schema.method_facts import UNSTATED
from mcpgen.schema.structure import escape, unescape
from mcpgen.toml_records import toml_key, toml_value

_HEAD = """\
# {revision}: what only the prose of its pages states, where that differs from the defaults.
# `false`: this revision has no such thing.
#
# mcpgen schema add carried these facts over from {base}. Check them on the pages that are named,
# then remove what the comments say of it. A key behind a `#` has its default.
# generator/mcpgen/schema/revision_facts.py has each key, its meaning and its default; [methods] is
# laid on top of schema/facts.toml. Tables behind [methods]:
#
# [capabilities]  method = dotted path; requests: of the receiver, notifications: of the sender
# [results]       client, server: by the request's sender, method = result types that neither the
#                 naming rule (XRequest, XResult) nor an XResultResponse gives
# [defaults]      definition or "*": values of fields that the schema requires, yet peers leave out
# [renamed]       definition = the name a later revision gives it
# [pages]         what only readers need: `mcpgen diff` compares it;
#                 generator/mcpgen/schema/facts.py has its keys
"""


def text(facts: Facts, base: str, reviews: Sequence[Review]) -> str:
    """The text of facts.toml.

    Args:
        facts: The facts of the revision.
        base: The revision that the facts were carried over from.
        reviews: The facts to check.
    """
    table = schema_facts.as_table(facts)
    return _HEAD.format(revision=facts.revision, base=base) + "".join(
        f"{line}\n" for line in _Lines(base, reviews).of(table, _own_methods(facts))
    )


def _own_methods(facts: Facts) -> Node:
    """The facts about methods that differ from `schema/facts.toml`."""
    shared = facts_module.shared_methods()
    own_facts: Node = {}
    for name, row in sorted(facts.methods.items()):
        below = asdict(shared.get(name, UNSTATED))
        own = {key: _toml(value) for key, value in asdict(row).items() if value != below[key]}
        if own:
            own_facts[name] = own
    return own_facts


def _toml(value: Json) -> Json:
    """A value of a fact as a TOML value."""
    if value is None:
        return False
    return [*value] if isinstance(value, tuple) else value


class _Lines:
    """The lines of the file."""

    def __init__(self, base: str, reviews: Sequence[Review]) -> None:
        self._base = base
        self._reviews = {review.pointer: review for review in reviews}

    def of(self, table: Node, methods: Node) -> Iterator[str]:
        """All tables in order, with these facts about methods."""
        defaults = schema_facts.as_table(Facts(revision="", source=""))
        for name, rows in table.items():
            if name == "methods":
                yield from self._by_name(name, methods)
            elif name == "pages":
                yield from self._pages(rows)
            elif defaults[name] and name != "results":
                yield from self._fixed_table(name, rows, defaults[name])
            elif name in ("capabilities", "renamed"):
                yield from self._by_name(name, rows)
            else:
                for key, inner in rows.items():
                    yield from self._by_name(f"{name}/{escape(key)}", inner)

    def _fixed_table(self, name: str, rows: Node, defaults: Node) -> Iterator[str]:
        """The lines of a table whose keys are the same in every revision."""
        lines: list[str] = []
        for key, value in rows.items():
            review = self._reviews.get(f"/{name}/{key}")
            is_default = value == defaults[key]
            if is_default and review is None:
                continue
            origin = "from the schema" if review is None else self._origin(review)
            lines.append(f"{'# ' if is_default else ''}{key} = {toml_value(value)}  # {origin}")
        if not lines:
            return
        own = (each for each in self._reviews.values() if each.table == name)
        pages = dict.fromkeys(page for review in own for page in review.pages)
        yield ""
        yield from (f"# Check on {page}" for page in pages)
        yield f"[{name}]"
        yield from lines

    def _pages(self, rows: Node) -> Iterator[str]:
        """The lines of the pages' statements for readers, carried over unchanged."""
        if rows["unstated"]:
            yield from ("", "[pages]", f"unstated = {toml_value(rows['unstated'])}")
        for name in ("rules", "deprecated"):
            for key, row in rows[name].items():
                own = {
                    member: value for member, value in row.items() if value not in ("", [], "both")
                }
                yield from ("", f"[pages.{name}.{toml_key(key)}]  # as in {self._base}")
                yield from (f"{member} = {toml_value(value)}" for member, value in own.items())

    def _by_name(self, path: str, rows: Node) -> Iterator[str]:
        """The lines of a table whose keys are methods, definitions or members."""
        assumed = {
            key: review
            for pointer, review in self._reviews.items()
            if review.reason and (key := _key_in(pointer, path)) is not None
        }
        if not (rows or assumed):
            return
        yield ""
        yield f"[{'.'.join(toml_key(unescape(part)) for part in path.split('/'))}]"
        for key, value in rows.items():
            line = f"{toml_key(key)} = {toml_value(value)}"
            yield f"{line}  # {self._origin(assumed[key])}" if key in assumed else line
        for key, review in assumed.items():
            if key not in rows:
                yield f"# {toml_key(key)}: {self._origin(review)}; see {review.pages[0]}"

    def _origin(self, review: Review) -> str:
        return f"a guess: {safe_text(review.reason)}" if review.reason else f"as in {self._base}"


def _key_in(pointer: str, path: str) -> str | None:
    """The key of a table that a pointer leads to or into; `None` for other tables."""
    table = f"/{path}/"
    inner = pointer.removeprefix(table).partition("/")[0]
    return unescape(inner) if pointer.startswith(table) else None
