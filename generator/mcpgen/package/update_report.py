"""The changes of the protocol between a package and its update.

The manifest of the old package has its revisions, and the digest of the structure of each. A schema
of mcpgen's or of the user's folder is found by that digest; the old state of a schema file that
changed since is in the cache.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgen import cache, schema
from mcpgen.diff import report
from mcpgen.diff.changes import Change
from mcpgen.diff.compare import Diff, compare
from mcpgen.diff.protocol import Protocol, of_schema
from mcpgen.errors import safe_text
from mcpgen.json_types import Node
from mcpgen.model import schema_facts, schema_sources
from mcpgen.model.load import load_revision
from mcpgen.model.name import Role
from mcpgen.model.normalize import normalize
from mcpgen.model.normalized import target
from mcpgen.model.schema_sources import Source
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.manifest import Manifest
from mcpgen.schema import Schema, SchemaFile, facts
from mcpgen.schema.facts import Facts

_STRUCTURE = "structure"
_NAMES = 12
"""Limit of the names in one line."""
_ELEMENTS = frozenset({"method", "notification", "type"})
_KINDS = ("methods", "notifications", "types")


@dataclass(frozen=True)
class Report:
    """The names that are new, removed and changed from one schema to another.

    Attributes:
        diff: The comparison.
        new: Names by kind: methods, notifications, types.
        gone: Names that were removed, by kind.
        changed: Names that changed, by kind.
        senders: The roles that send a new or removed message, by `new` or `gone` and its name: of
            each notification, and of a request that the other side still sends.
    """

    diff: Diff
    new: dict[str, tuple[str, ...]]
    gone: dict[str, tuple[str, ...]]
    changed: dict[str, tuple[str, ...]]
    senders: dict[str, dict[str, frozenset[Role]]] = field(
        default_factory=dict[str, dict[str, frozenset[Role]]]
    )

    def record(self) -> dict[str, Any]:
        """The report as a JSON object."""
        words = {"new": self.new, "gone": self.gone, "changed": self.changed}
        return {"old": self.diff.old, "new": self.diff.new, "counts": dict(self.diff.counts)} | {
            f"{word}_{kind}": list(names)
            for word, kinds in words.items()
            for kind, names in kinds.items()
        }

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield report.headline(self.diff)
        words = {"new": self.new, "gone": self.gone, "changed": self.changed}
        for word, kinds in words.items():
            for kind, names in kinds.items():
                rest = len(names[_NAMES:])
                more = f" and {rest} more" if rest else ""
                shown = ", ".join(self._label(word, name) for name in names[:_NAMES])
                yield f"  {word} {kind}: {shown}{more}"

    def _label(self, word: str, name: str) -> str:
        """A name, with its senders if these are not evident."""
        roles = self.senders.get(word, {}).get(name)
        return safe_text(name) + (f" (of the {' and '.join(sorted(roles))})" if roles else "")


def renamed_types(
    before: Manifest, request: BuildRequest, names: Collection[str]
) -> dict[str, str]:
    """Types that a newer revision renamed, by their names in a package.

    A type of a revision of the package may have another name in the newest revision of the update,
    or may be inline and get a name from a newer revision.

    Args:
        before: The manifest of the package.
        request: The request of the update.
        names: The types of the package.
    """
    after = {source.revision: source for source in request.sources}
    pairs = _pairs(before, after)
    pairs += [(name, max(after)) for name in before.revisions if name not in after]
    renames: dict[str, str] = {}
    for name, origin in before.revisions.items():
        side = _find_side(name, origin.structure, errata=before.options.errata)
        if side is None:
            continue
        renames |= _renamed_inline(side)
        for new in sorted({new for old, new in pairs if old == name}):
            renames |= _renamed_between(side, _load_side(after[new], request.errata))
    return {old: new for old, new in sorted(renames.items()) if old in names}


def _renamed_between(old: _Side, new: _Side) -> dict[str, str]:
    """The types that have another name in a newer revision, by comparison."""
    if old.schema.digest == new.schema.digest:
        return {}
    changes = compare(*_sides(old, new)).changes
    return {change.old: change.new for change in changes if change.rule.id == "TYPE_RENAMED"}


def _renamed_inline(side: _Side) -> dict[str, str]:
    """The names of inline types before and after newer revisions were known."""
    newer = schema_sources.newer_than(side.base, side.schema)
    now = normalize(side.schema, side.facts, newer)
    renames: dict[str, str] = {}
    for count in range(len(newer)):
        then = normalize(side.schema, side.facts, newer[:count])
        for name in then.definitions.keys() & now.definitions.keys():
            renames.update(_renamed_below(then.definitions[name].node, now.definitions[name].node))
    return renames


def _renamed_below(old: Node, new: Node) -> Iterator[tuple[str, str]]:
    """The pairs of different type names in two schemas of the same values."""
    if "$ref" in old and "$ref" in new:
        one, other = target(old), target(new)
        if one != other:
            yield one, other
        return
    for part in ("items", "additionalProperties"):
        if old.get(part) and new.get(part):
            yield from _renamed_below(old[part], new[part])
    for one, other in zip(old.get("anyOf", ()), new.get("anyOf", ()), strict=False):
        yield from _renamed_below(one, other)
    properties = new.get("properties", {})
    for wire, node in old.get("properties", {}).items():
        if wire in properties:
            yield from _renamed_below(node, properties[wire])


def remember(request: BuildRequest) -> None:
    """Store the structure of each schema file for the report of the next run."""
    for source in request.sources:
        if source.file is not None:
            document = schema.canonical(source.file.document).encode()
            cache.write(_STRUCTURE, source.file.digest, document)


def reports(before: Manifest, request: BuildRequest) -> list[Report]:
    """The changes from a package to its update; none for unknown schemas.

    A revision of both packages is compared with itself. If the newest revisions differ, these two
    are compared too.

    Args:
        before: The manifest of the package.
        request: The request of the update.
    """
    after = {source.revision: source for source in request.sources}
    changes: list[Report] = []
    for old, new in _pairs(before, after):
        side = _load_side(after[new], request.errata)
        digest = before.revisions[old].structure
        if side.schema.digest == digest:
            continue
        other = _find_side(old, digest, errata=before.options.errata)
        if other is not None:
            changes.append(_report(other, side))
    return changes


def _pairs(before: Manifest, after: Mapping[str, Source]) -> list[tuple[str, str]]:
    """The revisions to compare: each revision of both with itself, and the newest ones."""
    pairs = [(name, name) for name in before.revisions if name in after]
    newest = max(before.revisions), max(after)
    return [*dict.fromkeys([*pairs, newest])]


@dataclass(frozen=True)
class _Side:
    """One schema of a comparison.

    Attributes:
        schema: The schema.
        facts: Its facts.
        base: Its revision, or the revision that a schema file is based on.
    """

    schema: Schema
    facts: Facts
    base: str


def _load_side(source: Source, errata: bool) -> _Side:
    loaded = load_revision(source, errata=errata)
    return _Side(loaded.schema, loaded.facts, source.base)


def _find_side(name: str, digest: str, *, errata: bool) -> _Side | None:
    """The schema with a digest and its facts, if the schema is known."""
    row = next((row for row in schema.revisions() if row.digest == digest), None)
    if row is not None:
        return _Side(schema.load(row.name, errata=errata), facts.load(row.name), row.name)
    kept = cache.read(_STRUCTURE, digest)
    if kept is None:
        return None
    file = SchemaFile(Path(f"{name}.json"), json.loads(kept), digest)
    loaded = file.schema(revision=name, errata=errata)
    base = file.nearest.entry.name
    return _Side(loaded, schema_facts.facts_for(loaded, base, None).facts, base)


def _sides(one: _Side, other: _Side) -> tuple[Protocol, Protocol]:
    """Both sides of a comparison, each with the other's names for its inline types."""
    return _protocol(one, other), _protocol(other, one)


def _protocol(side: _Side, other: _Side) -> Protocol:
    loaded = side.schema
    return of_schema(loaded, side.facts, loaded.revision, [other.schema.definitions])


def _report(one: _Side, other: _Side) -> Report:
    old, new = _sides(one, other)
    diff = compare(old, new)
    kinds = {
        **dict.fromkeys(old.types | new.types, "types"),
        **{
            method.name: "methods" if method.kind == "request" else "notifications"
            for side in (old, new)
            for method in (*side.methods.all, *side.methods.inputs)
        },
    }
    words: dict[str, dict[str, dict[str, None]]] = {"new": {}, "gone": {}, "changed": {}}
    senders: dict[str, dict[str, frozenset[Role]]] = {"new": {}, "gone": {}}
    staying = {row.name for row in old.methods.all} & {row.name for row in new.methods.all}
    for change in diff.changes:
        kind = kinds.get(change.owner)
        if kind is not None and change.rule.element != "type name":
            word, name = _word(change), _name(change)
            words[word].setdefault(kind, {})[name] = None
            if word in senders and (kind == "notifications" or name in staying):
                senders[word][name] = senders[word].get(name, frozenset()) | change.senders
    for kind, names in words["changed"].items():
        for word in ("new", "gone"):
            for name in words[word].get(kind, {}):
                names.pop(name, None)
    new_names, gone, changed = (
        {kind: tuple(sorted(words[word][kind])) for kind in _KINDS if words[word].get(kind)}
        for word in ("new", "gone", "changed")
    )
    return Report(diff, new_names, gone, changed, senders)


def _word(change: Change) -> str:
    if change.rule.element in _ELEMENTS:
        return {"added": "new", "removed": "gone"}.get(change.rule.kind, "changed")
    return "changed"


def _name(change: Change) -> str:
    if change.rule.element in _ELEMENTS and change.rule.kind == "renamed":
        return f"{change.old_place} (now {change.new_place})"
    return change.owner
