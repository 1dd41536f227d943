"""What generating a package anew changes in the protocol that it speaks.

The package before is known by its manifest: revisions, and the digest of the structure of each. A
schema of mcpgen's, or of the user's folder, is found by that digest; of a schema file that changed
since, the state before is in the cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgen import cache, facts, pipeline, schema, schema_facts
from mcpgen.build_request import BuildRequest, Source
from mcpgen.diff import report
from mcpgen.diff.changes import Change
from mcpgen.diff.compare import Diff, compare
from mcpgen.diff.protocol import Protocol, of_schema
from mcpgen.errors import safe_text
from mcpgen.facts import Facts
from mcpgen.manifest import Manifest
from mcpgen.schema import Schema, SchemaFile

_STRUCTURE = "structure"
_NAMES = 12
"""Names that one line shows."""
_ELEMENTS = frozenset({"method", "notification", "type"})
_KINDS = ("methods", "notifications", "types")


@dataclass(frozen=True)
class Report:
    """What is new, gone and changed from one schema to another.

    Attributes:
        diff: The comparison.
        new: Names by kind: methods, notifications, types.
        gone: The same of what is not there any more.
        changed: The same of what is otherwise than before.
    """

    diff: Diff
    new: dict[str, tuple[str, ...]]
    gone: dict[str, tuple[str, ...]]
    changed: dict[str, tuple[str, ...]]

    def record(self) -> dict[str, Any]:
        """The report as a JSON object."""
        words = {"new": self.new, "gone": self.gone, "changed": self.changed}
        return {"old": self.diff.old, "new": self.diff.new, "counts": dict(self.diff.counts)} | {
            f"{word}_{kind}": list(names)
            for word, held in words.items()
            for kind, names in held.items()
        }

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield report.headline(self.diff)
        words = {"new": self.new, "gone": self.gone, "changed": self.changed}
        for word, held in words.items():
            for kind, names in held.items():
                more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
                shown = ", ".join(safe_text(name) for name in names[:_NAMES])
                yield f"  {word} {kind}: {shown}{more}"


def remember(request: BuildRequest) -> None:
    """Keep the structure of each schema file for the report of the next run."""
    for source in request.sources:
        if source.file is not None:
            document = schema.canonical(source.file.document).encode()
            cache.write(_STRUCTURE, source.file.digest, document)


def reports(before: Manifest, request: BuildRequest) -> list[Report]:
    """What changes from a package to what is built in its place; nothing that is not known.

    A revision that stays is compared with itself. If the newest revision is another one, the
    newest ones are compared.

    Args:
        before: The manifest of the package.
        request: What is built.
    """
    after = {source.revision: source for source in request.sources}
    pairs = [(name, name) for name in before.revisions if name in after]
    newest = max(before.revisions), max(after)
    if newest[0] != newest[1]:
        pairs.append(newest)
    found: list[Report] = []
    for old, new in pairs:
        side = _loaded(after[new], request.errata)
        digest = before.revisions[old].structure
        if side[0].digest == digest:
            continue
        other = _known(old, digest, errata=before.options.errata)
        if other is not None:
            found.append(_report(_protocol(other, side[0]), _protocol(side, other[0])))
    return found


_Side = tuple[Schema, Facts]


def _loaded(source: Source, errata: bool) -> _Side:
    loaded = pipeline.load(source, errata)
    if source.origin == "mcpgen":
        return loaded, facts.load(source.revision)
    stated = source.facts if source.facts_of is None else None
    return loaded, schema_facts.facts_for(loaded, source.base, stated).facts


def _known(name: str, digest: str, *, errata: bool) -> _Side | None:
    """The schema with a digest and its facts, if it is known."""
    row = next((row for row in schema.revisions() if row.digest == digest), None)
    if row is not None:
        return schema.load(row.name, errata=errata), facts.load(row.name)
    kept = cache.read(_STRUCTURE, digest)
    if kept is None:
        return None
    file = SchemaFile(Path(f"{name}.json"), json.loads(kept), digest)
    loaded = file.schema(revision=name, errata=errata)
    return loaded, schema_facts.facts_for(loaded, file.nearest.entry.name, None).facts


def _protocol(side: _Side, other: Schema) -> Protocol:
    loaded, stated = side
    return of_schema(loaded, stated, loaded.revision, [other.definitions])


def _report(old: Protocol, new: Protocol) -> Report:
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
    for change in diff.changes:
        kind = kinds.get(change.owner)
        if kind is not None:
            words[_word(change)].setdefault(kind, {})[_name(change)] = None
    for kind, names in words["changed"].items():
        for word in ("new", "gone"):
            for name in words[word].get(kind, {}):
                names.pop(name, None)
    new_names, gone, changed = (
        {kind: tuple(sorted(words[word][kind])) for kind in _KINDS if words[word].get(kind)}
        for word in ("new", "gone", "changed")
    )
    return Report(diff, new_names, gone, changed)


def _word(change: Change) -> str:
    if change.rule.element in _ELEMENTS:
        return {"added": "new", "removed": "gone"}.get(change.rule.kind, "changed")
    return "changed"


def _name(change: Change) -> str:
    if change.rule.element in _ELEMENTS and change.rule.kind == "renamed":
        return f"{change.old_place} (now {change.new_place})"
    return change.owner
