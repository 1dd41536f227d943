"""Compares two contracts: what changed, and whom it breaks.

Arguments are judged by the values that the old schema describes, results by those that the new
schema describes: see `inclusion`. A change of one argument or member is named by its own rule; what
shows only in the schema as a whole has a rule of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcpgen.contract.document import Contract
from mcpgen.contract.inclusion import Inclusion, terms_included
from mcpgen.contract.rules import RULES, SEVERITIES, Rule
from mcpgen.contract.schema_document import Document, Place, UndecidedError, canonical
from mcpgen.diff import similarity
from mcpgen.json_types import Json, Node, is_object
from mcpgen.project.live_server import Surface
from mcpgen.project.server_lists import KINDS, WORDS

_ANNOTATIONS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""Hints of tools, with what holds where a tool has none."""
_NOUNS: Mapping[str, str] = {
    "tools": "TOOL",
    "resources": "RESOURCE",
    "resourceTemplates": "TEMPLATE",
    "prompts": "PROMPT",
}
_SAME_NAME = 0.7
_SHOWN = 160


@dataclass(frozen=True)
class Change:
    """One change of a server.

    Attributes:
        rule: Its rule.
        item: What changed, such as `tool add`; `server` for the whole.
        text: The change in words.
        pointer: JSON pointer in the contract; empty for the whole.
        witness: A value that shows it, as JSON; empty if there is none.
        revisions: The revisions that have it, newest first; none if all have.
        allowed: Why it does not count; empty if it does.
    """

    rule: Rule
    item: str
    text: str
    pointer: str = ""
    witness: str = ""
    revisions: tuple[str, ...] = ()
    allowed: str = ""


def compare(old: Contract, new: Contract) -> list[Change]:
    """The changes from one contract to another, gravest first."""
    by_change: dict[Change, list[str]] = {}
    before, after = old.by_revision, new.by_revision
    common = [each for each in after if each in before]
    for revision in common:
        for change in _surface_changes(before[revision], after[revision]):
            by_change.setdefault(change, []).append(revision)
    changes = [*_revision_changes(old, new)]
    for change, revisions in by_change.items():
        shown = () if len(revisions) == len(common) else tuple(revisions)
        changes.append(
            Change(change.rule, change.item, change.text, change.pointer, change.witness, shown)
        )
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(
        changes,
        key=lambda each: (SEVERITIES.index(each.rule.severity), each.item, order[each.rule.id]),
    )


def _change(
    rule: str, item: str, pointer: str = "", old: object = "", new: object = "", witness: str = ""
) -> Change:
    row = RULES[rule]
    return Change(row, item, row.text.format(old=old, new=new), pointer, witness)


def _revision_changes(old: Contract, new: Contract) -> Iterator[Change]:
    for revision in old.revisions:
        if revision not in new.revisions:
            yield _change("REVISION_REMOVED", "server", "/revisions", old=revision)
    for revision in new.revisions:
        if revision not in old.revisions:
            yield _change("REVISION_ADDED", "server", "/revisions", new=revision)


def _surface_changes(old: Surface, new: Surface) -> Iterator[Change]:
    if old.lists.instructions != new.lists.instructions:
        yield _change("INSTRUCTIONS_CHANGED", "server", "/instructions")
    yield from _capability_changes(old.capabilities, new.capabilities)
    for kind, key in KINDS.items():
        before = {entry[key]: entry for entry in old.lists.entries[kind]}
        after = {entry[key]: entry for entry in new.lists.entries[kind]}
        yield from _list_changes(kind, before, after)


def _capability_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = _capabilities(old), _capabilities(new)
    for name in sorted(before - after):
        yield _change("CAPABILITY_REMOVED", "server", "/capabilities", old=name)
    for name in sorted(after - before):
        yield _change("CAPABILITY_ADDED", "server", "/capabilities", new=name)
    ours, theirs = _extensions(old), _extensions(new)
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            yield _change("EXTENSION_REMOVED", "server", "/capabilities/extensions", old=name)
        elif name not in ours:
            yield _change("EXTENSION_ADDED", "server", "/capabilities/extensions", new=name)
        elif canonical(ours[name]) != canonical(theirs[name]):
            yield _change("EXTENSION_CHANGED", "server", "/capabilities/extensions", old=name)


def _extensions(capabilities: Mapping[str, Any]) -> Node:
    value = capabilities.get("extensions")
    return value if is_object(value) else {}


def _capabilities(capabilities: Mapping[str, Any]) -> set[str]:
    """The capabilities by dotted name, without extensions and what is set to `false`."""
    names: set[str] = set()
    for name, value in capabilities.items():
        if name == "extensions" or value in (False, None):
            continue
        names.add(name)
        if is_object(value):
            names |= {f"{name}.{each}" for each in _capabilities(value)}
    return names


def _list_changes(kind: str, old: Mapping[str, Node], new: Mapping[str, Node]) -> Iterator[Change]:
    noun, word = _NOUNS[kind], WORDS[kind]
    removed = [name for name in old if name not in new]
    added = [name for name in new if name not in old]
    renamed: list[tuple[str, str]] = []
    if kind in ("tools", "prompts"):
        renamed = [
            (one, other)
            for one, other, _ in similarity.pairs(
                removed, added, lambda a, b: _likeness(old[a], new[b]), str, least=_SAME_NAME
            )
        ]
    for name in removed:
        if name not in {one for one, _ in renamed}:
            yield _change(f"{noun}_REMOVED", f"{word} {name}", f"/{kind}/{_escape(name)}")
    for name in added:
        if name not in {other for _, other in renamed}:
            yield _change(f"{noun}_ADDED", f"{word} {name}", f"/{kind}/{_escape(name)}")
    for one, other in renamed:
        pointer = f"/{kind}/{_escape(other)}"
        yield _change(f"{noun}_RENAMED", f"{word} {other}", pointer, old=one)
    for one, other in (*((name, name) for name in old if name in new), *renamed):
        pointer = f"/{kind}/{_escape(other)}"
        if canonical(old[one]) != canonical(new[other]):
            yield from _entry_changes(kind, f"{word} {other}", pointer, old[one], new[other])


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _likeness(old: Node, new: Node) -> float:
    """The similarity of two entries: by name, and by whether they take and give the same."""
    names = similarity.of_names(old["name"], new["name"])
    same = [
        canonical(old.get(key)) == canonical(new.get(key))
        for key in ("inputSchema", "outputSchema", "arguments", "description")
    ]
    return 0.5 * names + 0.5 * sum(same) / len(same)


def _entry_changes(kind: str, item: str, pointer: str, old: Node, new: Node) -> Iterator[Change]:
    for key, rule in (
        ("title", "TITLE_CHANGED"),
        ("description", "DESCRIPTION_CHANGED"),
        ("_meta", "META_CHANGED"),
        ("icons", "ICONS_CHANGED"),
    ):
        if canonical(old.get(key)) != canonical(new.get(key)):
            yield _change(rule, item, f"{pointer}/{key}")
    if kind == "tools":
        yield from _tool_changes(item, pointer, old, new)
    elif kind == "prompts":
        yield from _prompt_changes(item, pointer, old, new)
    else:
        yield from _resource_changes(item, pointer, old, new)


def _resource_changes(item: str, pointer: str, old: Node, new: Node) -> Iterator[Change]:
    for key, rule in (
        ("mimeType", "MIME_TYPE_CHANGED"),
        ("name", "RESOURCE_NAME_CHANGED"),
        ("size", "RESOURCE_SIZE_CHANGED"),
    ):
        one, other = old.get(key), new.get(key)
        if one != other:
            yield _change(rule, item, f"{pointer}/{key}", _short_json(one), _short_json(other))
    if canonical(old.get("annotations")) != canonical(new.get("annotations")):
        texts = (_short_json(old.get("annotations")), _short_json(new.get("annotations")))
        yield _change("ANNOTATION_CHANGED", item, f"{pointer}/annotations", *texts)


def _prompt_changes(item: str, pointer: str, old: Node, new: Node) -> Iterator[Change]:
    before = {each["name"]: each for each in old.get("arguments", ())}
    after = {each["name"]: each for each in new.get("arguments", ())}
    place = f"{pointer}/arguments"
    for name in before:
        if name not in after:
            yield _change("ARGUMENT_REMOVED", item, place, old=name)
    for name, argument in after.items():
        is_required = argument.get("required") is True
        if name not in before:
            rule = "ARGUMENT_ADDED_REQUIRED" if is_required else "ARGUMENT_ADDED"
            yield _change(rule, item, place, new=name)
            continue
        if (before[name].get("required") is True) != is_required:
            rule = "ARGUMENT_MADE_REQUIRED" if is_required else "ARGUMENT_MADE_OPTIONAL"
            yield _change(rule, item, place, old=name)
        if before[name].get("description") != argument.get("description"):
            yield _change("ARGUMENT_DESCRIPTION_CHANGED", item, place, old=name)


def _tool_changes(item: str, pointer: str, old: Node, new: Node) -> Iterator[Change]:
    ours, theirs = old.get("annotations", {}), new.get("annotations", {})
    for name, default in _ANNOTATIONS.items():
        if ours.get(name, default) != theirs.get(name, default):
            value = json.dumps(theirs.get(name, default))
            yield _change("ANNOTATION_CHANGED", item, f"{pointer}/annotations", name, value)
    if ours.get("title") != theirs.get("title"):
        yield _change("TITLE_CHANGED", item, f"{pointer}/annotations/title")
    yield from _task_changes(item, f"{pointer}/execution", old, new)
    old_input, new_input = old.get("inputSchema", {}), new.get("inputSchema", {})
    if canonical(old_input) != canonical(new_input):
        place = f"{pointer}/inputSchema"
        yield from _Schemas(item, place, Document(old_input), Document(new_input)).input_changes()
    old_output, new_output = old.get("outputSchema"), new.get("outputSchema")
    place = f"{pointer}/outputSchema"
    if old_output is None and new_output is not None:
        yield _change("OUTPUT_ADDED", item, place)
    elif old_output is not None and new_output is None:
        yield _change("OUTPUT_REMOVED", item, place)
    elif canonical(old_output) != canonical(new_output):
        documents = Document(old_output), Document(new_output)
        yield from _Schemas(item, place, *documents).output_changes()


def _task_changes(item: str, pointer: str, old: Node, new: Node) -> Iterator[Change]:
    ours = old.get("execution", {}).get("taskSupport", "forbidden")
    theirs = new.get("execution", {}).get("taskSupport", "forbidden")
    if ours == theirs:
        return
    if theirs == "required":
        yield _change("TASK_REQUIRED", item, pointer)
    elif theirs == "forbidden":
        yield _change("TASK_REFUSED", item, pointer)
    else:
        yield _change("TASK_ALLOWED", item, pointer, ours, theirs)


def _short_json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True)
class _Schemas:
    """The schemas of one tool before and after, of its arguments or of its results."""

    item: str
    pointer: str
    old: Document
    new: Document

    def input_changes(self) -> Iterator[Change]:
        """The changes of arguments; old calls are judged by the new schema."""
        changes = [*self._argument_changes()]
        yield from changes
        whole = self._inclusion(Place(self.old, ""), Place(self.new, ""))
        grave = {change.rule.severity for change in changes}
        if whole.verdict == "excluded" and "breaking" not in grave:
            yield self._by_inclusion("INPUT_NARROWED", whole)
        elif whole.verdict == "undecided" and not {"breaking", "warning"} & grave:
            yield self._by_inclusion("INPUT_UNDECIDED", whole, new=_why(whole))

    def _argument_changes(self) -> Iterator[Change]:
        before, after = _members(self.old), _members(self.new)
        was, is_now = _required_names(self.old), _required_names(self.new)
        renamed = [
            (one, other)
            for one, other, _ in similarity.pairs(
                [name for name in before if name not in after],
                [name for name in after if name not in before],
                lambda a, b: self._argument_likeness(a, b, before, after),
                str,
                least=_SAME_NAME,
            )
        ]
        pairs = [(name, name) for name in before if name in after] + renamed
        for name in before:
            if name not in {one for one, _ in pairs}:
                yield self._by_name("ARGUMENT_REMOVED", old=name)
        for name in after:
            if name not in {other for _, other in pairs}:
                rule = "ARGUMENT_ADDED_REQUIRED" if name in is_now else "ARGUMENT_ADDED"
                yield self._by_name(rule, new=name)
        for one, other in renamed:
            yield self._by_name("ARGUMENT_RENAMED", old=one, new=other)
        for one, other in pairs:
            if (one in was) != (other in is_now):
                rule = "ARGUMENT_MADE_REQUIRED" if other in is_now else "ARGUMENT_MADE_OPTIONAL"
                yield self._by_name(rule, old=other)
            yield from self._argument(one, other, before[one], after[other])

    def _argument_likeness(
        self, one: str, other: str, before: Mapping[str, Place], after: Mapping[str, Place]
    ) -> float:
        same = canonical(before[one].schema) == canonical(after[other].schema)
        return 0.5 * similarity.of_names(one, other) + (0.5 if same else 0.0)

    def _argument(self, one: str, other: str, old: Place, new: Place) -> Iterator[Change]:
        ours, theirs = old.schema, new.schema
        narrowed = self._inclusion(old, new)
        if narrowed.verdict == "excluded":
            yield self._by_inclusion("ARGUMENT_NARROWED", narrowed, old=other)
        elif narrowed.verdict == "undecided":
            yield self._by_inclusion("ARGUMENT_UNDECIDED", narrowed, old=other, new=_why(narrowed))
        else:
            widened = self._inclusion(new, old)
            if widened.verdict == "excluded":
                yield self._by_inclusion("ARGUMENT_WIDENED", widened, old=other)
        if is_object(ours) and is_object(theirs):
            if canonical(ours.get("default")) != canonical(theirs.get("default")):
                texts = _short_json(ours.get("default")), _short_json(theirs.get("default"))
                place = f"{self.pointer}/properties/{_escape(other)}/default"
                yield _change("ARGUMENT_DEFAULT_CHANGED", self.item, place, *texts)
            if _texts(ours) != _texts(theirs):
                yield self._by_name("ARGUMENT_DESCRIPTION_CHANGED", old=other)

    def output_changes(self) -> Iterator[Change]:
        """The changes of results; new results are judged by the old schema."""
        changes = [*self._member_changes()]
        yield from changes
        whole = self._inclusion(Place(self.new, ""), Place(self.old, ""))
        grave = {change.rule.severity for change in changes}
        if whole.verdict == "excluded" and "breaking" not in grave:
            yield self._by_inclusion("OUTPUT_WIDENED", whole)
        elif whole.verdict == "undecided" and not {"breaking", "warning"} & grave:
            yield self._by_inclusion("OUTPUT_UNDECIDED", whole, new=_why(whole))

    def _member_changes(self) -> Iterator[Change]:
        before, after = _members(self.old), _members(self.new)
        was, is_now = _required_names(self.old), _required_names(self.new)
        for name, old in before.items():
            if name not in after:
                yield self._by_name("OUTPUT_MEMBER_REMOVED", old=name)
                continue
            if name in was and name not in is_now:
                yield self._by_name("OUTPUT_MEMBER_MADE_OPTIONAL", old=name)
            elif name in is_now and name not in was:
                yield self._by_name("OUTPUT_MEMBER_MADE_REQUIRED", old=name)
            new = after[name]
            widened = self._inclusion(new, old)
            if widened.verdict == "excluded":
                yield self._by_inclusion("OUTPUT_MEMBER_WIDENED", widened, old=name)
            elif widened.verdict == "included":
                narrowed = self._inclusion(old, new)
                if narrowed.verdict == "excluded":
                    yield self._by_inclusion("OUTPUT_MEMBER_NARROWED", narrowed, old=name)
        for name in after:
            if name not in before:
                yield self._by_name("OUTPUT_MEMBER_ADDED", new=name)

    def _inclusion(self, one: Place, other: Place) -> Inclusion:
        """The answer for two places, with the place in the old schema as `old` either way."""
        if _is_same(one, other):
            return Inclusion("included")
        answer = terms_included(frozenset({one}), frozenset({other}), named_only=True)
        if one.document is self.old:
            return answer
        return replace(answer, old=answer.new, new=answer.old)

    def _by_name(self, rule: str, old: str = "", new: str = "") -> Change:
        name = new if rule.endswith(("_ADDED", "_ADDED_REQUIRED", "_RENAMED")) else old
        pointer = f"{self.pointer}/properties/{_escape(name)}"
        return _change(rule, self.item, pointer, old, new)

    def _by_inclusion(
        self, rule: str, inclusion: Inclusion, old: str = "", new: str = ""
    ) -> Change:
        witness = _short_json(inclusion.witness[0]) if inclusion.witness else ""
        return _change(rule, self.item, f"{self.pointer}{inclusion.new}", old, new, witness)


def _why(inclusion: Inclusion) -> str:
    return f"{inclusion.reason} (old {inclusion.old or '/'}, new {inclusion.new or '/'})"


def _is_same(one: Place, other: Place) -> bool:
    """Whether two places say the same, whatever else their documents say."""
    text = canonical(one.schema)
    references = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')
    return text == canonical(other.schema) and not any(each in text for each in references)


def _texts(schema: Node) -> tuple[Json, Json]:
    return schema.get("description"), schema.get("title")


def _top(document: Document) -> Place:
    """The schema of the object itself, behind references to definitions."""
    place = Place(document, "")
    for _ in range(5):
        schema = place.schema
        if not is_object(schema) or "$ref" not in schema or "properties" in schema:
            break
        place = document.target(schema["$ref"], place.pointer)
    return place


def _members(document: Document) -> dict[str, Place]:
    """The places of the members of an object by name."""
    try:
        place = _top(document)
    except UndecidedError:
        return {}
    listed = place.schema.get("properties") if is_object(place.schema) else None
    names = listed if is_object(listed) else {}
    return {name: place.below("properties", name) for name in names}


def _required_names(document: Document) -> frozenset[str]:
    try:
        schema = _top(document).schema
    except UndecidedError:
        return frozenset()
    listed = schema.get("required") if is_object(schema) else None
    return frozenset(each for each in listed or () if isinstance(each, str))
