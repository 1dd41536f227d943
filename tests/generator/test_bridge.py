"""`mcpgen diff A B --bridge`: the rows of tiny protocols, their reports, and the real revisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from generator.diff_schemas import facts_with, protocol
from generator.schemas import TEXT, any_of, const, obj, ref
from mcpgen import schema
from mcpgen.diff import bridge, bridge_report, load
from mcpgen.diff.bridge import Bridge

REVISIONS = [row.name for row in schema.revisions()]
PAIRS = list(permutations(REVISIONS, 2))
FORMS = {
    "text": bridge_report.text,
    "markdown": bridge_report.markdown,
    "json": bridge_report.json_text,
}
EVIL = "\x1b[31m<b>|`*"
NESTED = obj("kind", kind=const("brush"), width={"type": "integer"})
RICH: Mapping[str, Any] = {
    "PaintRequestParams": obj("color brush", color=TEXT, size=TEXT, brush=ref("Brush")),
    "Brush": NESTED,
    "PaintResult": obj("", area={"type": "integer"}, walls={"type": "array", "items": ref("Wall")}),
    "Wall": obj("", height={"type": "integer"}, state={"enum": ["wet", "dry"]}),
}


def rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """The outcomes of a request and its response, by the ids of their rows."""
    derived = bridge.derive(protocol("A", **old), protocol("B", **new))
    return {row.id: row.outcome for row in derived.rows if row.id.startswith("wall/paint")}


@cache
def real(old: str, new: str) -> Bridge:
    """The bridge between two revisions."""
    return bridge.derive(*load(old, new, errata=True))


@pytest.mark.parametrize(
    ("new", "outcomes"),
    [
        ({"Brush": obj("kind", kind=const("brush"))}, {"params.brush.width": "same"}),
        ({"PaintResult": obj("", area={"type": "integer"})}, {"result.walls": "lost"}),
        (
            {"Wall": obj("", height=TEXT, state={"enum": ["wet", "dry"]})},
            {"result.walls[].height=integer": "lost", "result.walls[].height": "same"},
        ),
        (
            {"Wall": obj("", height={"type": "integer"}, state={"enum": ["wet"]})},
            {'result.walls[].state="dry"': "lost", "result.walls[].state": "same"},
        ),
        ({"PaintRequest": None, "ClientRequest": None}, {"": "lost"}),
        ({}, {"params.size": "same", "result.walls[].height": "same", "": "same"}),
    ],
)
def test_a_member_that_a_revision_lacks_has_a_row(
    new: dict[str, Any], outcomes: dict[str, str]
) -> None:
    derived = rows(RICH, {**RICH, **new})
    wanted = {f"wall/paint.{place}".rstrip("."): value for place, value in outcomes.items()}
    assert {place: derived.get(place) for place in wanted} == wanted


def test_blocks_of_an_unknown_kind_become_a_line_of_text() -> None:
    picture = obj("type", type=const("picture"))
    old = {**RICH, "PaintResult": obj("", content=any_of("Note", "Picture"))}
    note = {"Note": obj("type", type=const("note"), text=TEXT)}
    new = {**RICH, **note, "PaintResult": obj("", content=ref("Note"))}
    derived = rows({**old, **note, "Picture": picture}, new)
    assert derived["wall/paint.result.content.type=picture"] == "degraded"
    assert derived["wall/paint.result.content.text"] == "same"


@pytest.mark.parametrize(
    ("old", "new", "code", "outcome", "how"),
    [
        ({}, {"resource_not_found": -32602}, -32002, "renamed", "code -32602"),
        ({}, {}, -32002, "same", ""),
        (
            {"url_elicitation_required": -32042},
            {"retired": (-32042,)},
            -32042,
            "degraded",
            "code -32603; message and data pass",
        ),
    ],
)
def test_a_code_of_an_error_has_a_row(
    old: dict[str, Any], new: dict[str, Any], code: int, outcome: str, how: str
) -> None:
    old_protocol = protocol("A", facts_with("errors", **old))
    derived = bridge.derive(old_protocol, protocol("B", facts_with("errors", **new)))
    (row,) = [row for row in derived.rows if row.id == f"error.code={code}"]
    assert (row.outcome, row.how) == (outcome, how)


@pytest.mark.parametrize("form", FORMS)
def test_every_row_that_is_not_the_same_is_in_a_report(form: str) -> None:
    derived = real(REVISIONS[-1], REVISIONS[0])
    text = FORMS[form](derived).replace("\\", "")
    rest = [row.id for row in derived.rows if row.outcome != "same"]
    assert [place for place in rest if place not in text] == []
    assert len(rest) > 50


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
