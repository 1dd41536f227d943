"""Every rule of `mcpgen diff`, by a pair of tiny protocols that differ in that alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from generator.diff_schemas import changes, facts_with, message, protocol, rule_places
from generator.schemas import TEXT, any_of, const, facts_of, obj, ref
from mcpgen import diff
from mcpgen.diff import Protocol, similarity
from mcpgen.diff.rules import severities
from mcpgen.errors import UsageError
from mcpgen.schema.facts import Deprecation, PageRule
from mcpgen.schema.method_facts import MethodFacts

COUNT = {"type": "integer"}
SCRUB: dict[str, Any] = {
    "ClientRequest": any_of("PaintRequest", "ScrubRequest"),
    "ScrubRequest": message("wall/scrub", ref("ScrubRequestParams")),
    "ScrubRequestParams": obj("", speed=TEXT),
    "ScrubResult": obj("", clean={"type": "boolean"}),
}
SCRAPE: dict[str, Any] = {
    "ClientRequest": any_of("PaintRequest", "ScrapeRequest"),
    "ScrapeRequest": message("wall/scrape", ref("ScrapeRequestParams")),
    "ScrapeRequestParams": obj("", speed=TEXT),
    "ScrapeResult": obj("", clean={"type": "boolean"}),
}
WET = {
    "ClientNotification": any_of("DryNotification", "WetNotification"),
    "WetNotification": message("notifications/wet"),
}
SWAPPED = {
    "ClientNotification": any_of("DriedNotification"),
    "DryNotification": None,
    "DriedNotification": message("notifications/dried", ref("DryNotificationParams")),
}
ASKED = {
    "AskRequest": message("user/ask", ref("AskRequestParams")),
    "AskRequestParams": obj("", text=TEXT),
    "AskResult": obj("", text=TEXT),
}
OUTSIDE = {**ASKED, "ServerRequest": any_of("AskRequest")}
INSIDE = {**ASKED, "InputRequest": any_of("AskRequest")}
BRUSH = obj("kind width", kind=const("brush"), width=COUNT)
ROLLER = obj("kind length", kind=const("roller"), length=COUNT)


class Pair(NamedTuple):
    """A rule, where it applies, and what the protocols have; facts under the name `facts`."""

    rule: str
    place: str
    old: dict[str, Any]
    new: dict[str, Any]


def params(required: str = "color", **fields: Any) -> dict[str, Any]:
    """Params of the request with some fields beside the color."""
    return {"PaintRequestParams": obj(required, **{"color": TEXT, **fields})}


def field(node: Any) -> dict[str, Any]:
    """Params of the request with another field."""
    return params(size=node)


def facts(table: str, **values: Any) -> dict[str, Any]:
    return {"facts": facts_with(table, **values)}


SIZE = "PaintRequestParams.size"
TINY = "PaintRequestParams"

ORDER = PageRule("SHOULD be sorted", "server/tools", "server")
ROOTS = Deprecation("2026-07-28", "deprecated", "arguments")

PAIRS = (
    Pair("METHOD_ADDED", "wall/scrub", {}, SCRUB),
    Pair("METHOD_RENAMED", "wall/scrape", SCRUB, SCRAPE),
    Pair("METHOD_MOVED_INTO_RESULT", "user/ask", OUTSIDE, INSIDE),
    Pair("NOTIFICATION_ADDED", "notifications/wet", {}, WET),
    Pair("NOTIFICATION_RENAMED", "notifications/dried", {}, SWAPPED),
    Pair(
        *("PARAMS_ADDED", "notifications/wet", WET),
        {**WET, "WetNotification": message("notifications/wet", obj("", a=TEXT), required=False)},
    ),
    Pair(
        *("PARAMS_MADE_REQUIRED", "wall/paint"),
        {"PaintRequest": message("wall/paint", ref(TINY), required=False)},
        {},
    ),
    Pair(
        *("CAPABILITY_CHANGED", "wall/paint", {}),
        {"facts": replace(facts_of(), capabilities={"wall/paint": "walls"})},
    ),
    Pair("FIELD_ADDED_REQUIRED", SIZE, {}, params("color size", size=COUNT)),
    Pair("FIELD_ADDED_OPTIONAL", SIZE, {}, params(size=COUNT)),
    Pair("FIELD_RENAMED", "PaintRequestParams.sizes", field(COUNT), params(sizes=COUNT)),
    Pair("FIELD_RENAMED", "PaintRequestParams.fileSize", field(COUNT), params(fileSize=COUNT)),
    Pair("FIELD_RENAMED", "PaintRequestParams.caption", field(COUNT), params(caption=COUNT)),
    Pair(
        *("FIELD_RENAMED", "PaintRequestParams.hue"),
        params(size=COUNT),
        {"PaintRequestParams": obj("hue", hue=TEXT, size=COUNT)},
    ),
    Pair("FIELD_MADE_REQUIRED", SIZE, field(COUNT), params("color size", size=COUNT)),
    Pair("FIELD_TYPE_NARROWED", SIZE, field({"type": ["integer", "string"]}), field(COUNT)),
    Pair("FIELD_TYPE_NARROWED", SIZE, field({}), field(TEXT)),
    Pair("FIELD_TYPE_NARROWED", SIZE, field(TEXT), field({"enum": ["s", "m"]})),
    Pair("FIELD_TYPE_WIDENED", SIZE, field(COUNT), field({"type": "number"})),
    Pair("FIELD_TYPE_CHANGED", SIZE, field(COUNT), field(TEXT)),
    Pair("FIELD_BOUND_TIGHTENED", SIZE, field(COUNT), field({**COUNT, "minimum": 1})),
    Pair(
        *("FIELD_BOUND_TIGHTENED", SIZE, field({**COUNT, "maximum": 9})),
        field({**COUNT, "maximum": 5}),
    ),
    Pair(
        *("FIELD_BOUND_LOOSENED", SIZE, field({**TEXT, "minLength": 5})),
        field({**TEXT, "minLength": 2}),
    ),
    Pair(
        *("FIELD_PATTERN_CHANGED", SIZE, field({**TEXT, "pattern": "a"})),
        field({**TEXT, "pattern": "b"}),
    ),
    Pair(
        *("VARIANT_ADDED", SIZE, {**field(any_of("Brush", "Cup")), "Brush": BRUSH, "Cup": ROLLER}),
        {
            **field(any_of("Brush", "Cup", "Pad")),
            "Brush": BRUSH,
            "Cup": ROLLER,
            "Pad": obj("kind", kind=const("pad")),
        },
    ),
    Pair(
        *("OBJECT_OPENED", SIZE, field({**obj("", a=TEXT), "additionalProperties": False})),
        field(obj("", a=TEXT)),
    ),
    Pair("VALUE_ADDED", SIZE, field({"enum": ["s", "m"]}), field({"enum": ["s", "m", "l"]})),
    Pair(
        *("VALUE_RENAMED", SIZE, field({"enum": ["small", "m"]})),
        field({"enum": ["smaller", "m"]}),
    ),
    Pair("TYPE_ADDED", "Brush", {}, {**field(ref("Brush")), "Brush": BRUSH}),
    Pair(
        *("TYPE_RENAMED", "Painter", {**field(ref("Brush")), "Brush": BRUSH}),
        {**field(ref("Painter")), "Painter": BRUSH},
    ),
    Pair(
        *("TYPE_NAMED", "Own", field(obj("", a=TEXT))),
        {**field(ref("Own")), "Own": obj("", a=TEXT)},
    ),
    Pair("ERROR_CODE_ADDED", "errors.header_mismatch", {}, facts("errors", header_mismatch=-32020)),
    Pair(
        *("ERROR_CODE_CHANGED", "errors.resource_not_found", {}),
        facts("errors", resource_not_found=-32602),
    ),
    Pair(
        *("LIFECYCLE_CHANGED", "lifecycle"),
        {
            "ClientRequest": any_of("PaintRequest", "InitializeRequest"),
            "InitializeRequest": message("initialize"),
            "InitializeResult": obj(""),
        },
        {},
    ),
    Pair("BATCHING_ADDED", "batching", {}, {"JSONRPCBatchRequest": {"type": "array", "items": {}}}),
    Pair(
        *("TRANSPORT_ADDED", "transports.streamable_http", {}),
        facts("transports", streamable_http="session"),
    ),
    Pair(
        *("TRANSPORT_CHANGED", "transports.streamable_http"),
        facts("transports", streamable_http="session"),
        facts("transports", streamable_http="stateless"),
    ),
    Pair("HEADER_ADDED", "headers.session", {}, facts("headers", session="Mcp-Session-Id")),
    Pair(
        *("HEADER_RENAMED", "headers.session", facts("headers", session="Mcp-Session-Id")),
        facts("headers", session="MCP-Session-Id"),
    ),
    Pair("STATUS_CHANGED", "http.unknown_method", {}, facts("http", unknown_method=404)),
    Pair("META_KEY_ADDED", "meta.client_info", {}, facts("meta", client_info="a/b")),
    Pair(
        *("META_KEY_RENAMED", "meta.client_info", facts("meta", client_info="a/b")),
        facts("meta", client_info="a/c"),
    ),
    Pair("FACT_ADDED", "http.resumable", {}, facts("http", resumable=True)),
    Pair("FACT_ADDED", "meta.trace_keys", {}, facts("meta", trace_keys=("baggage",))),
    Pair(
        *("FACT_ADDED", "wall/paint (idempotent)", {}),
        {"facts": replace(facts_of(), methods={"wall/paint": MethodFacts(idempotent=True)})},
    ),
    Pair("FACT_CHANGED", "behaviour.log_level", {}, facts("behaviour", log_level="request")),
    Pair(
        *("FACT_ADDED", "tools.order", facts("pages", rules={})),
        facts("pages", rules={"tools.order": ORDER}),
    ),
    Pair(
        *("FACT_CHANGED", "tools.order", facts("pages", rules={"tools.order": ORDER})),
        facts("pages", rules={"tools.order": replace(ORDER, text="MUST be sorted")}),
    ),
    Pair(
        *("FACT_ADDED", "authorization.step_up", facts("pages", unstated=("authorization",))),
        facts("pages", unstated=("authorization.discovery", "authorization.pkce_advertised")),
    ),
    Pair(
        *("STATUS_CHANGED", "http.forbidden_origin"),
        facts("pages", unstated=("authorization", "http.forbidden_origin")),
        facts("pages", unstated=("authorization",)),
    ),
    Pair("DEPRECATION_ADDED", "roots", {}, facts("pages", deprecated={"roots": ROOTS})),
    Pair(
        *("DEPRECATION_CHANGED", "roots", facts("pages", deprecated={"roots": ROOTS})),
        facts("pages", deprecated={"roots": replace(ROOTS, removal="in a year")}),
    ),
)


def sides(pair: Pair) -> tuple[Protocol, Protocol]:
    return protocol("A", **pair.old), protocol("B", **pair.new)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.place}")
def test_a_rule_names_its_change_and_its_mirror_the_way_back(pair: Pair) -> None:
    old, new = sides(pair)
    assert (pair.rule, pair.place) in rule_places(old, new)
    mirror = diff.RULES[pair.rule].mirror
    there = next(change for change in changes(old, new) if change.rule.id == pair.rule)
    back = [change for change in changes(new, old) if change.rule.id == mirror]
    assert (there.new_place, there.old_place) in [(c.old_place, c.new_place) for c in back]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.place}")
def test_a_small_change_has_its_rule_and_those_of_nearby_types(pair: Pair) -> None:
    types = {"TYPE_ADDED", "TYPE_REMOVED", "TYPE_RENAMED", "METHOD_REMOVED"}
    rules = {
        rule for rule, place in rule_places(*sides(pair)) if place != SIZE or pair.place == SIZE
    }
    assert rules - types - {pair.rule} == set()


def test_every_rule_has_a_pair_or_is_the_mirror_of_one_that_has() -> None:
    tested = {pair.rule for pair in PAIRS} | {diff.RULES[pair.rule].mirror for pair in PAIRS}
    assert diff.RULES.keys() - tested == set()


def test_the_mirror_of_a_mirror_is_the_rule_itself() -> None:
    rules = diff.RULES
    assert [rule.id for rule in rules.values() if rules[rule.mirror].mirror != rule.id] == []


OPPOSITE = {
    "added": "removed",
    "tightened": "loosened",
    "removed": "added",
    "loosened": "tightened",
}


def test_a_mirror_has_the_opposite_kind() -> None:
    wrong = [
        rule.id
        for rule in diff.RULES.values()
        if diff.RULES[rule.mirror].kind != OPPOSITE.get(rule.kind, rule.kind)
    ]
    assert wrong == []


def test_a_tightened_request_field_affects_the_sending_client() -> None:
    (change,) = changes(protocol(), protocol(**params("color size", size=COUNT)))
    assert change.affected_parties == ("client that sends",)
    assert change.directions == ("client to server",)
    assert [message.text for message in change.messages] == ["wall/paint"]
    assert change.severity == "breaking"


def test_a_loosened_result_field_affects_the_receiving_client() -> None:
    (change,) = changes(protocol(), protocol(PaintResult=obj("", area=COUNT)))
    assert change.rule.id == "FIELD_MADE_OPTIONAL"
    assert change.affected_parties == ("client that receives",)
    assert [message.text for message in change.messages] == ["wall/paint result"]


def test_a_type_that_both_sides_send_affects_both() -> None:
    both: dict[str, Any] = {"PaintResult": obj("area", area=COUNT, tool=ref("Tool"))}
    old = protocol(**both, **field(ref("Tool")), Tool=obj("", name=TEXT))
    new = protocol(**both, **field(ref("Tool")), Tool=obj("name", name=TEXT))
    (change,) = changes(old, new)
    assert change.place == "Tool.name"
    assert change.affected_parties == ("client that sends", "server that sends")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            field({"anyOf": [TEXT, COUNT]}), field({"type": ["integer", "string"]}), id="types"
        ),
        pytest.param(field({"anyOf": [TEXT]}), field(TEXT), id="single"),
        pytest.param(field({"oneOf": [TEXT, COUNT]}), field({"anyOf": [COUNT, TEXT]}), id="order"),
        pytest.param(
            field({"const": {"a": 1, "b": 2}}), field({"const": {"b": 2, "a": 1}}), id="keys"
        ),
        pytest.param(
            field({"anyOf": [TEXT, {"anyOf": [COUNT, {"type": "null"}]}]}),
            field({"anyOf": [COUNT, TEXT, {"type": "null"}]}),
            id="nested",
        ),
        pytest.param(
            field({"enum": ["s"]}), {**field(ref("Size")), "Size": {"const": "s"}}, id="const"
        ),
        pytest.param(
            field({"type": "object"}),
            field({"type": "object", "additionalProperties": {}}),
            id="map",
        ),
        pytest.param(
            {"PaintRequest": message("wall/paint", obj("color", color=TEXT))}, {}, id="params"
        ),
    ],
)
def test_the_same_said_in_another_way_is_no_change(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert rule_places(protocol(**old), protocol(**new)) == []
    assert rule_places(protocol(**new), protocol(**old)) == []


@pytest.mark.parametrize(
    "node",
    [
        {"type": "array", "items": ref("Own")},
        {"type": "object", "additionalProperties": ref("Own")},
        obj("own", own=ref("Own")),
        obj("", own={"type": "array", "items": obj("", inner=ref("Own"))}),
    ],
)
def test_a_type_that_holds_itself_is_compared_once(node: dict[str, Any]) -> None:
    old = protocol(**field(ref("Own")), Own=node)
    assert rule_places(old, protocol(**field(ref("Own")), Own=node)) == []
    new = protocol(**field({"anyOf": [ref("Own"), COUNT]}), Own=node)
    assert ("FIELD_TYPE_WIDENED", SIZE) in rule_places(old, new)


def test_very_many_names_are_not_compared_each_with_each() -> None:
    old: dict[str, Any] = {f"before{number}": TEXT for number in range(1000)}
    new: dict[str, Any] = {f"after{number}": TEXT for number in range(1000)}
    rules = {rule for rule, _ in rule_places(protocol(**params(**old)), protocol(**params(**new)))}
    assert rules == {"FIELD_REMOVED_OPTIONAL", "FIELD_ADDED_OPTIONAL"}


def pair_equals(old: int, new: int, likeness: float = 1.0) -> int:
    """How many of so many names find an equal one on the other side."""
    one, other = ([str(number) for number in range(count)] for count in (old, new))
    return len(similarity.pairs(one, other, lambda a, b: likeness * (a == b), str))


@pytest.mark.parametrize(("old", "new", "count"), [(100, 100, 100), (73, 137, 0), (101, 99, 99)])
def test_at_most_ten_thousand_pairs_are_compared(old: int, new: int, count: int) -> None:
    assert pair_equals(old, new) == count


@pytest.mark.parametrize(("likeness", "count"), [(0.6, 1), (0.59, 0)])
def test_names_count_as_the_same_from_six_tenths_on(likeness: float, count: int) -> None:
    assert pair_equals(1, 1, likeness) == count


def with_type(name: str, *members: str) -> dict[str, Any]:
    """A result that holds a type with some members, beside the type alone."""
    return {
        "PaintResult": obj("", **{name.lower(): ref(name)}),
        name: obj("", **dict.fromkeys(members, TEXT)),
    }


@pytest.mark.parametrize(
    ("old", "new", "renamed"),
    [("abcd", "abcde", True), ("abc", "abcd", False), ("ab", "ab", True), ("a", "a", False)],
)
def test_a_type_keeps_four_fifths_of_its_members_when_renamed(
    old: str, new: str, renamed: bool
) -> None:
    before, after = with_type("PaintBrush", *old), with_type("PaintBrushes", *new)
    other: dict[str, Any] = {
        "PaintResult": obj("", **{"else": any_of("PaintBrushes", "Paint")}),
        "Paint": TEXT,
    }
    rules = [rule for rule, _ in rule_places(protocol(**before), protocol(**{**after, **other}))]
    assert ("TYPE_RENAMED" in rules) is renamed


@pytest.mark.parametrize(("members", "renamed"), [("ab", True), ("abc", False)])
def test_a_message_of_the_same_words_keeps_half_its_members(members: str, renamed: bool) -> None:
    before, after = (
        dict[str, Any](
            ClientNotification=any_of("DryNotification"),
            DryNotification=message(method, obj("", **dict.fromkeys(names, TEXT))),
        )
        for method, names in (("notifications/dry", "a"), ("notifications_dry", members))
    )
    rules = [rule for rule, _ in rule_places(protocol(**before), protocol(**after))]
    assert ("NOTIFICATION_RENAMED" in rules) is renamed


def test_a_message_that_is_renamed_says_how_sure_that_is() -> None:
    change = next(c for c in changes(protocol(**SCRUB), protocol(**SCRAPE)) if c.confidence)
    assert change.sentence.startswith("renamed from wall/scrub (")
    assert 0.75 <= (change.confidence or 0) <= 1


def test_severities_are_set_by_rule_category_and_for_all() -> None:
    chosen = severities(["ALL=compatible", "field=warning", "FIELD_RENAMED=ignore"])
    assert chosen["METHOD_REMOVED"] == "compatible"
    assert chosen["FIELD_ADDED_REQUIRED"] == "warning"
    assert chosen["FIELD_RENAMED"] == "ignore"


def test_an_ignored_rule_finds_nothing() -> None:
    old, new = protocol(), protocol(**params("color size", size=COUNT))
    assert diff.compare(old, new, severities(["FIELD=ignore"])).changes == ()


@pytest.mark.parametrize("setting", ["", "FIELD", "FIELD=bad", "NOTHING=ignore", "=ignore"])
def test_a_setting_without_rule_or_severity_is_an_error(setting: str) -> None:
    with pytest.raises(UsageError, match="expected --severity RULE=SEVERITY"):
        severities([setting])


def test_a_member_that_no_type_has_is_a_change_too() -> None:
    rules = [rule for rule, _ in rule_places(protocol(), protocol(**params("", **{'a"b': TEXT})))]
    assert "FIELD_ADDED_OPTIONAL" in rules


OTHER_MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another type": (params(size=COUNT), params(caption=TEXT)),
    "one that must be there": (params(size=COUNT), params("color caption", caption=COUNT)),
    "other bounds": (params(size={**COUNT, "minimum": 1}), params(caption=COUNT)),
    "two of the type": (params(size=COUNT), params(caption=COUNT, depth=COUNT)),
    "any value": (params(size={}), params(caption={})),
    "another object": (params(size=obj("", a=TEXT)), params(caption=obj("", b=TEXT))),
    "an object made anew": (
        {"PaintRequestParams": obj("", a=TEXT)},
        {"PaintRequestParams": obj("", b=TEXT)},
    ),
}


@pytest.mark.parametrize("case", OTHER_MEMBERS)
def test_a_member_of_other_content_is_no_renaming(case: str) -> None:
    before, after = OTHER_MEMBERS[case]
    rules = {rule for rule, _ in rule_places(protocol(**before), protocol(**after))}
    assert "FIELD_RENAMED" not in rules
    assert {rule for rule in rules if rule.startswith("FIELD_REMOVED")}


def test_a_renaming_that_only_the_content_shows_is_half_sure() -> None:
    [change] = changes(protocol(**field(COUNT)), protocol(**params(caption=COUNT)))
    assert change.sentence == "field renamed from size (50% sure)"


SWAPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("size", "caption", COUNT),
    ("wet", "glossy", {"type": "boolean"}),
    ("hours", "price", {"type": "number"}),
    ("layers", "notes", {"type": "array", "items": TEXT}),
)
"""Members that go, those that come in their place, and the content of both."""


@pytest.mark.parametrize(("gone", "come", "renamed"), [(3, 3, 3), (4, 4, 0), (3, 4, 0), (4, 3, 0)])
def test_at_most_three_members_are_renamed_by_their_content(
    gone: int, come: int, renamed: int
) -> None:
    before = params("color", **{old: content for old, _, content in SWAPS[:gone]})
    after = params("color", **{new: content for _, new, content in SWAPS[:come]})
    rules = [rule for rule, _ in rule_places(protocol(**before), protocol(**after))]
    assert rules.count("FIELD_RENAMED") == renamed


BOX = obj("height width depth", height=COUNT, width=COUNT, depth=COUNT)
NEWER: dict[str, tuple[set[str], set[str], set[tuple[str, str]]]] = {
    "each has a name like another one": (
        {"RedBrush", "BedBrush"},
        {"ARedBrush", "ZBedBrush"},
        {("RedBrush", "ARedBrush"), ("BedBrush", "ZBedBrush")},
    ),
    "one has a name like the old one": (
        {"TaskItem"},
        {"AaskItem", "TaskItem2"},
        {("TaskItem", "TaskItem2")},
    ),
    "one has another name": ({"Parcel"}, {"ShippingUnit"}, {("Parcel", "ShippingUnit")}),
}
"""Names of equal types on both sides, and those that are one type."""


def with_boxes(names: set[str], kind: str = "object") -> dict[str, Any]:
    """Definitions with equal types of these names, in a map or a list of each."""
    key = "items" if kind == "array" else "additionalProperties"
    members = {name.lower(): {"type": kind, key: ref(name)} for name in names}
    return {**dict.fromkeys(names, BOX), "PaintResult": obj("", **members)}


@pytest.mark.parametrize("case", NEWER)
def test_equal_types_are_paired_by_their_names(case: str) -> None:
    old, new, expected = NEWER[case]
    there, back = (
        changes(protocol(**before), protocol(**after))
        for before, after in permutations((with_boxes(old), with_boxes(new, "array")))
    )
    renamed = {(each.old, each.new) for each in there if each.rule.id == "TYPE_RENAMED"}
    assert renamed == expected
    assert {(each.new, each.old) for each in back if each.rule.id == "TYPE_RENAMED"} == expected
    left = {each.rule.id for each in there if each.rule.id.startswith("TYPE_")} - {"TYPE_RENAMED"}
    assert left == ({"TYPE_ADDED"} if len(new) > len(old) else set())
