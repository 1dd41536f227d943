"""`mcpgen diff A B --bridge`: the rows of tiny protocols, their reports, and the real revisions."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import run
from generator.diff_schemas import facts_with, message, protocol
from generator.schemas import COUNT, TEXT, any_of, const, obj, ref
from generator.tables import table
from mcpgen import schema
from mcpgen.diff import bridge, bridge_report, load
from mcpgen.diff.bridge import Bridge
from mcpgen.schema.facts import Facts

REVISIONS = [row.name for row in schema.revisions()]
PAIRS = list(permutations(REVISIONS, 2))
FORMS = {
    "text": bridge_report.text,
    "markdown": bridge_report.markdown,
    "json": bridge_report.json_text,
}
EVIL = "\x1b[31m<b>|`*"
NOTE, PICTURE = (obj("type", type=const(name), **{name: TEXT}) for name in ("note", "picture"))
AC = obj("a", a=TEXT, b=obj("", c=TEXT))
LOOP = obj("", next=ref("Loop"), size=TEXT)
ONE_OF: dict[str, list[Any]] = table("bridge_members")
"""Members before and after."""
FEW = ("absent", "_meta", "ttlMs", "content")


def with_members(side: int) -> dict[str, Any]:
    """Definitions whose messages have the members of one side, also within an object."""
    members = {wire: pair[side] for wire, pair in ONE_OF.items() if pair[side] is not None}
    few = {wire: members[wire] for wire in FEW if wire in members}
    scrap = {"Scrap": obj("type", type=const("note"), text=COUNT), "Other": AC}
    return {
        "Note": NOTE,
        "Picture": PICTURE,
        "Loop": LOOP,
        **(scrap if side else {}),
        "PaintRequestParams": obj("", **members, inner=obj("", **few)),
        "PaintResult": obj("", **members, inner=obj("", **few)),
        "ServerRequest": any_of("AskRequest"),
        "AskRequest": message("user/ask", ref("AskRequestParams")),
        "AskRequestParams": {"anyOf": [obj("", one=TEXT, two=COUNT), obj("", **few)]},
        "AskResult": obj("", **few),
    }


def sampling(content: Any) -> dict[str, Any]:
    """Definitions of a request whose result has some content."""
    return {
        "Note": NOTE,
        "Picture": PICTURE,
        "ServerRequest": any_of("CreateMessageRequest"),
        "CreateMessageRequest": message("sampling/createMessage"),
        "CreateMessageResult": obj("", content=content),
    }


OLD, NEW = with_members(0), with_members(1)
DEFINED = (-32042, -32100, -32099, -32020, -32019)
GONE = dict.fromkeys(("PaintRequest", "ClientRequest", "DryNotification", "ClientNotification"))
SIDES: dict[str, tuple[tuple[Facts | None, Any], tuple[Facts | None, Any]]] = {
    "members of each kind": ((None, OLD), (None, NEW)),
    "messages that the other one lacks": ((None, {}), (None, {**NEW, **GONE})),
    "blocks in an array": (
        (
            None,
            sampling({"type": "array", "items": {"anyOf": [ref("Note"), ref("Picture"), TEXT]}}),
        ),
        (None, sampling(ref("Note"))),
    ),
    "errors": (
        (facts_with("errors", url_elicitation_required=-32042, defined=DEFINED), {}),
        (
            facts_with(
                "errors", resource_not_found=-32602, retired=(-32042,), defined=(-9, -32020)
            ),
            {},
        ),
    ),
    "metadata": (
        (facts_with("meta", client_info="a/b", server_info="c/d", log_level="e/f"), {}),
        (facts_with("behaviour", log_level="request"), {}),
    ),
}


def lines_of(derived: Bridge) -> list[str]:
    """The rows of a bridge, one a line."""
    return [
        f"{row.sender} {row.outcome} {row.id}: {row.how}{'' if row.log == 'yes' else ' (no log)'}"
        for row in derived.rows
    ]


@cache
def real(old: str, new: str) -> Bridge:
    """The bridge between two revisions."""
    return bridge.derive(*load(old, new, errata=True))


@pytest.mark.parametrize("case", SIDES)
def test_a_member_that_a_revision_lacks_has_a_row(case: str, snapshot: SnapshotAssertion) -> None:
    (facts, one), (other_facts, other) = SIDES[case]
    sides = protocol("A", facts, **one), protocol("B", other_facts, **other)
    assert lines_of(bridge.derive(*sides)) == snapshot(name="there")
    assert lines_of(bridge.derive(*sides[::-1])) == snapshot(name="back")


@pytest.mark.parametrize("pair", [("2025-11-25", "2026-07-28"), ("2025-11-25", "2025-06-18")])
def test_rows_of_published_revisions(pair: tuple[str, str], snapshot: SnapshotAssertion) -> None:
    assert lines_of(real(*pair)) == snapshot(name="there")
    assert lines_of(real(*pair[::-1])) == snapshot(name="back")


@pytest.mark.parametrize("form", FORMS)
def test_every_row_that_is_not_the_same_is_in_a_report(
    form: str, snapshot: SnapshotAssertion
) -> None:
    old, new = protocol("A_1", AskResult=obj()), protocol("wide-week " * 12, **GONE)
    assert FORMS[form](bridge.derive(old, new)) == snapshot(name="tiny")
    if form != "json":
        assert FORMS[form](real("2026-07-28", "2024-11-05")) == snapshot(name="published")


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_of_a_schema_are_escaped(form: str) -> None:
    old = protocol("A", PaintResult=obj("", **{EVIL: TEXT, "area": {"type": "integer"}}))
    text = FORMS[form](bridge.derive(old, protocol("B")))
    assert "\x1b" not in text
    assert "x1b" in text or "u001b" in text
    assert form != "markdown" or "<b>" not in text


def test_every_decision_belongs_to_some_pair_of_revisions() -> None:
    decided = bridge.decisions()
    ids = {row.id for pair in PAIRS for row in real(*pair).rows}
    tables = [*decided.separate.values(), *decided.replaced.values(), *decided.announced.values()]
    names = {name for each in tables for name in each}
    names |= {conversion.place for conversion in decided.conversions}
    assert names | {f"{place}[]" for place in decided.arrays} <= ids
    endings = {f":{name}" for each in decided.variants.values() for name in each}
    endings |= {f".{part}.{name}" for part, each in decided.members.items() for name in each}
    assert [end for end in endings if not any(place.endswith(end) for place in ids)] == []


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_message_has_one_row_in_each_direction(old: str, new: str) -> None:
    derived = real(old, new)
    keys = [(row.sender, row.id) for row in derived.rows]
    assert len(keys) == len(set(keys)) > 100
    assert sum(derived.counts.values()) == len(keys)


def test_the_command_prints_and_writes_a_bridge(tmp_path: Path) -> None:
    done = run("diff", REVISIONS[-2], REVISIONS[-3], "--bridge")
    assert (done.code, done.err) == (0, "")
    assert "    tools/list.result.tools[].icons" in done.out.splitlines()
    path = tmp_path / "bridge.md"
    written = run("diff", *REVISIONS[:2], "--bridge", "--format", "markdown", "-o", path)
    assert written.code == 0
    assert path.read_text("utf-8").startswith(
        f"# {REVISIONS[0]} to {REVISIONS[1]}, through a proxy"
    )
    assert json.loads(run("diff", *REVISIONS[:2], "--bridge", "--json").out)["old"] == REVISIONS[0]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (f"{REVISIONS[1]} --format html", "--format html: not for --bridge"),
        (f"{REVISIONS[1]} --severity ALL=ignore --fail-on any", "--severity, --fail-on: not for"),
        (REVISIONS[0], f"expected two revisions, got {REVISIONS[0]} twice"),
    ],
)
def test_options_that_judge_changes_are_refused(words: str, text: str) -> None:
    done = run("diff", REVISIONS[0], *words.split(), "--bridge")
    assert done.code == 2
    assert text in done.err
