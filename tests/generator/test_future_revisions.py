"""Revisions that do not exist yet: changes of the known ones, as drafts make them.

Whatever a draft adds, the package has; nothing of it is refused.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generator.awkward_names import NAMES as NAMES_IN_USE
from generator.schemas import COUNT, TEXT, const, obj, ref
from mcpgen import build_request, docs, names, pipeline, schema, schema_facts
from mcpgen.spec import RevisionSpec

pytestmark = pytest.mark.slow

NAMES = [row.name for row in schema.revisions()]
AWKWARD = (
    "class",
    "self",
    "x-note",
    "URL",
    "None",
    "_private",
    "a b",
    "2nd",
    "list",
    "meta",
    "extra",
)


@dataclass
class Draft:
    """A schema that is changed, and what its package must have.

    Attributes:
        definitions: The definitions.
        methods: Wire names of messages that must be there, with the type of the result or `None`
            for any.
        gone: Wire names that must not be there.
        members: Members that must be there, by definition.
    """

    definitions: dict[str, Any]
    methods: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    gone: set[str] = field(default_factory=set[str])
    members: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def add_to(self, union: str, name: str) -> None:
        """Make a definition a member of a union, which may be a lone reference or lacking."""
        node = self.definitions.get(union, {"anyOf": []})
        self.definitions[union] = {"anyOf": [*node.get("anyOf", [node]), ref(name)]}


Change: TypeAlias = Callable[[Draft, int, str], None]
"""Changes a draft; gets a number of its own and an awkward name."""


def add_request(draft: Draft, at: int, awkward: str) -> None:
    params = obj(awkward, **{awkward: TEXT, "count": COUNT})
    request = obj("method params", method=const(f"tools/new{at}"), params=params)
    draft.definitions[f"New{at}Request"] = request
    draft.definitions[f"New{at}Result"] = obj("", **{awkward: TEXT})
    draft.add_to("ClientRequest", f"New{at}Request")
    draft.methods[f"tools/new{at}"] = f"New{at}Result"
    draft.members[f"New{at}Result"] = {awkward}


def add_request_without_result(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions[f"Bare{at}Request"] = obj("method", method=const(f"bare{at}"))
    draft.add_to("ClientRequest", f"Bare{at}Request")
    draft.methods[f"bare{at}"] = "EmptyResult"


def add_notification(draft: Draft, at: int, awkward: str) -> None:
    node = obj("method", method=const(f"notifications/new{at}"), params=obj("", **{awkward: TEXT}))
    draft.definitions[f"New{at}Notification"] = node
    draft.add_to("ServerNotification", f"New{at}Notification")
    draft.methods[f"notifications/new{at}"] = None


def remove_request(draft: Draft, at: int, awkward: str) -> None:
    node = draft.definitions["ClientRequest"]
    kept = [one for one in node["anyOf"] if one != ref("CompleteRequest")]
    draft.definitions["ClientRequest"] = {"anyOf": kept}
    draft.gone.add("completion/complete")


def add_content(draft: Draft, at: int, awkward: str) -> None:
    name = f"Hologram{at}"
    node = obj("type data", type=const(f"hologram{at}"), data=TEXT, **{awkward: TEXT})
    draft.definitions[name] = node
    result = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in result:
        result = draft.definitions[result["$ref"].rpartition("/")[2]]
    result["anyOf"].append(ref(name))
    draft.members[name] = {"type", "data", awkward}


def add_member(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["Tool"]["properties"][awkward] = {"type": ["string", "null"]}
    draft.members.setdefault("Tool", set()).add(awkward)


def add_value(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["LoggingLevel"]["enum"].append(f"{awkward}{at}")


def retype_member(draft: Draft, at: int, awkward: str) -> None:
    shape = [TEXT, COUNT, {"type": "array", "items": obj("", **{awkward: COUNT})}, {}][at % 4]
    draft.definitions["Implementation"]["properties"]["version"] = shape
    draft.members.setdefault("Implementation", set()).add("version")


def rename_definition(draft: Draft, at: int, awkward: str) -> None:
    text = json.dumps(draft.definitions)
    for old, new in ((f'"{end}Annotations"', f'"{end}Hints{at}"') for end in ("", "#/$defs/")):
        text = text.replace(old, new)
    draft.definitions = json.loads(text)


def add_untagged_union(draft: Draft, at: int, awkward: str) -> None:
    near = obj("near", near=TEXT, **{awkward: TEXT})
    either = {"anyOf": [near, obj("far", far=COUNT)]}
    draft.definitions[f"Place{at}"] = obj(where=either)
    draft.members[f"Place{at}"] = {"where"}


def add_composition(draft: Draft, at: int, awkward: str) -> None:
    whole = {"allOf": [ref("Implementation"), obj("", **{awkward: TEXT}), {"required": ["name"]}]}
    draft.definitions[f"Whole{at}"] = whole
    draft.members[f"Whole{at}"] = {"name", awkward}


def add_unspellable(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions[f"{awkward}<x-{at}>"] = obj("", **{awkward: TEXT})
    draft.definitions[f"{awkward} x {at}"] = obj(other=ref(f"{awkward}<x-{at}>"))


def remove_notification(draft: Draft, at: int, awkward: str) -> None:
    node = draft.definitions["ServerNotification"]
    kept = [one for one in node["anyOf"] if one != ref("LoggingMessageNotification")]
    draft.definitions["ServerNotification"] = {"anyOf": kept}
    draft.gone.add("notifications/message")


def rename_method(draft: Draft, at: int, awkward: str) -> None:
    request = draft.definitions["GetPromptRequest"]
    request["properties"]["method"]["const"] = f"prompts/{at}/read"
    draft.methods[f"prompts/{at}/read"] = None
    draft.gone.add("prompts/get")


def retype_params(draft: Draft, at: int, awkward: str) -> None:
    params = draft.definitions["CompleteRequest"]["properties"]["params"]
    while "$ref" in params:
        params = draft.definitions[params["$ref"].rpartition("/")[2]]
    params["properties"][awkward] = {"anyOf": [TEXT, {"type": "array", "items": COUNT}]}
    params["required"] = [awkward]


def remove_content(draft: Draft, at: int, awkward: str) -> None:
    blocks = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in blocks:
        blocks = draft.definitions[blocks["$ref"].rpartition("/")[2]]
    blocks["anyOf"].remove(ref("ImageContent"))


def remove_value(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["LoggingLevel"]["enum"].remove("emergency")


def require_member(draft: Draft, at: int, awkward: str) -> None:
    draft.definitions["Resource"]["required"].append("mimeType")


def add_undecided_union(draft: Draft, at: int, awkward: str) -> None:
    lists = [{"type": "array", "items": each} for each in (TEXT, COUNT)]
    maps = [{"type": "object", "additionalProperties": each} for each in (TEXT, COUNT)]
    loose = [obj("", **{awkward: TEXT}), obj(other=COUNT), TEXT]
    either = {"anyOf": (lists, maps, loose)[at % 3]}
    draft.definitions["Tool"]["properties"][f"odd{at}"] = either
    draft.members.setdefault("Tool", set()).add(f"odd{at}")


def add_loose_content(draft: Draft, at: int, awkward: str) -> None:
    result = draft.definitions["CallToolResult"]["properties"]["content"]["items"]
    if "$ref" in result:
        result = draft.definitions[result["$ref"].rpartition("/")[2]]
    result["anyOf"] += [obj("", **{awkward: TEXT}), obj("", **{f"{awkward}2": COUNT})]


CHANGES: tuple[Change, ...] = (
    remove_notification,
    rename_method,
    retype_params,
    remove_content,
    remove_value,
    require_member,
    add_undecided_union,
    add_loose_content,
    add_request,
    add_request_without_result,
    add_notification,
    remove_request,
    add_content,
    add_member,
    add_value,
    retype_member,
    rename_definition,
    add_untagged_union,
    add_composition,
    add_unspellable,
)

_changes = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.sampled_from((*AWKWARD, *NAMES_IN_USE))),
    min_size=1,
    max_size=6,
    unique_by=lambda pair: pair[0],
)


def drafted(name: str, changes: list[tuple[Change, str]]) -> Draft:
    """A known revision with some changes."""
    document = json.loads((schema.entry(name).folder / "schema.json").read_text())
    definitions = document.get("$defs") or document["definitions"]
    draft = Draft(json.loads(json.dumps(definitions).replace("#/definitions/", "#/$defs/")))
    for at, (change, awkward) in enumerate(changes):
        change(draft, at, awkward)
    return draft


def saved(draft: Draft, folder: str | Path) -> Path:
    """A draft as a file."""
    path = Path(folder, "schema.json")
    path.write_text(json.dumps({"$defs": draft.definitions}))
    return path


def spec_of(path: Path) -> RevisionSpec:
    """What the package of a file is made from."""
    source = build_request.file_source(path)
    loaded = pipeline.load(source, errata=True)
    found = schema_facts.facts_for(loaded, source.base, None)
    later = pipeline.newer_than(source.base, loaded)
    return pipeline.revision_spec(loaded, found.facts, docs.load(), later)


def results_in(found: RevisionSpec) -> Mapping[str, str | None]:
    return {row.name: row.result for row in found.tables.all}


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # shrinking would build some hundred more
    suppress_health_check=list(HealthCheck),
)
@given(changes=_changes)
def test_what_a_draft_changes_is_in_its_package(
    name: str, changes: list[tuple[Change, str]]
) -> None:
    draft = drafted(name, changes)
    with tempfile.TemporaryDirectory() as folder:
        found = spec_of(saved(draft, folder))
    rows = results_in(found)
    definitions = found.models.normal.definitions
    assert draft.methods.keys() <= rows.keys()
    stated = {method: result for method, result in draft.methods.items() if result is not None}
    assert {method: rows[method] for method in stated} == stated
    assert draft.gone.isdisjoint(rows)
    for definition, members in draft.members.items():
        assert members <= definitions[definition].properties.keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_draft_with_every_change_is_an_importable_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = [(change, AWKWARD[at % len(AWKWARD)]) for at, change in enumerate(CHANGES)]
    draft = drafted(name, each)
    request = build_request.BuildRequest(
        "drafted", (build_request.file_source(saved(draft, tmp_path)),)
    )
    for path, text in pipeline.build(request).items():
        place = tmp_path / "drafted" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        for module in ("models", "methods", "client", "server"):
            importlib.import_module(f"drafted.rdraft.{module}")
        models: Any = sys.modules["drafted.rdraft.models"]
        methods: Any = sys.modules["drafted.rdraft.methods"]
        revision = methods.REVISION
        known = {**revision.client_requests, **revision.server_notifications}
        for method in draft.methods:
            assert known[method].name == method
        for definition, members in draft.members.items():
            python = {names.members([wire])[wire] for wire in members}
            assert python <= set(models.__dict__[definition].__annotations__)
    finally:
        for module in [one for one in sys.modules if one.partition(".")[0] == "drafted"]:
            del sys.modules[module]
