"""Every rule of `mcpgen diff`, by a pair of tiny protocols that differ in that alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.diff_schemas import changes, facts_with, message, protocol, rule_places
from generator.schemas import COUNT, TEXT, any_of, const, facts_of, obj, ref
from generator.tables import table
from mcpgen import diff
from mcpgen.diff.rules import severities
from mcpgen.errors import UsageError
from mcpgen.schema.facts import Deprecation, PageRule
from mcpgen.schema.method_facts import MethodFacts

Definitions = dict[str, Any]


def request(name: str) -> Definitions:
    """A further request of clients."""
    return {
        "ClientRequest": any_of("PaintRequest", f"{name}Request"),
        f"{name}Request": message(f"wall/{name.lower()}", ref(f"{name}RequestParams")),
        f"{name}RequestParams": obj("", speed=TEXT),
        f"{name}Result": obj("", clean={"type": "boolean"}),
    }


WET = {
    "ClientNotification": any_of("DryNotification", "WetNotification"),
    "WetNotification": message("notifications/wet"),
}
ASKED = {
    "AskRequest": message("user/ask", ref("AskRequestParams")),
    "AskRequestParams": obj("", text=TEXT),
    "AskResult": obj("", text=TEXT),
}
BRUSH = obj("kind width", kind=const("brush"), width=COUNT)
ROLLER = obj("kind length", kind=const("roller"), length=COUNT)


class Pair(NamedTuple):
    """A rule, where it applies, and what the protocols have; facts under the name `facts`."""

    rule: str
    place: str
    old: Definitions
    new: Definitions


def params(required: str = "color", **fields: Any) -> Definitions:
    """Params of the request with some fields beside the color."""
    return {"PaintRequestParams": obj(required, **{"color": TEXT, **fields})}


def field(node: Any) -> Definitions:
    """Params of the request with another field."""
    return params(size=node)


TINY = "PaintRequestParams"
SIZE = f"{TINY}.size"
ORDER = PageRule("SHOULD be sorted", "server/tools", "server")
ROOTS = Deprecation("2026-07-28", "deprecated", "arguments")

FIELDS: list[list[Any]] = table("field_changes")
"""Rules of the types of a field, with the type before and after."""

FACTS: tuple[tuple[str, str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("ERROR_CODE_ADDED", "errors.header_mismatch", "errors", {}, {"header_mismatch": -32020}),
    (
        *("ERROR_CODE_CHANGED", "errors.resource_not_found", "errors"),
        *({}, {"resource_not_found": -32602}),
    ),
    (
        *("TRANSPORT_ADDED", "transports.streamable_http", "transports"),
        *({}, {"streamable_http": "session"}),
    ),
    (
        *("TRANSPORT_CHANGED", "transports.streamable_http", "transports"),
        *({"streamable_http": "session"}, {"streamable_http": "stateless"}),
    ),
    ("HEADER_ADDED", "headers.session", "headers", {}, {"session": "Mcp-Session-Id"}),
    (
        *("HEADER_RENAMED", "headers.session", "headers"),
        *({"session": "Mcp-Session-Id"}, {"session": "MCP-Session-Id"}),
    ),
    ("STATUS_CHANGED", "http.unknown_method", "http", {}, {"unknown_method": 404}),
    ("META_KEY_ADDED", "meta.client_info", "meta", {}, {"client_info": "a/b"}),
    (
        "META_KEY_RENAMED",
        "meta.client_info",
        "meta",
        {"client_info": "a/b"},
        {"client_info": "a/c"},
    ),
    ("FACT_ADDED", "http.resumable", "http", {}, {"resumable": True}),
    ("FACT_ADDED", "meta.trace_keys", "meta", {}, {"trace_keys": ("baggage",)}),
    ("FACT_CHANGED", "behaviour.log_level", "behaviour", {}, {"log_level": "request"}),
    ("FACT_ADDED", "tools.order", "pages", {"rules": {}}, {"rules": {"tools.order": ORDER}}),
    (
        *("FACT_CHANGED", "tools.order", "pages", {"rules": {"tools.order": ORDER}}),
        {"rules": {"tools.order": replace(ORDER, text="MUST be sorted")}},
    ),
    (
        *("FACT_ADDED", "authorization.step_up", "pages", {"unstated": ("authorization",)}),
        {"unstated": ("authorization.discovery", "authorization.pkce_advertised")},
    ),
    (
        *("STATUS_CHANGED", "http.forbidden_origin", "pages"),
        {"unstated": ("authorization", "http.forbidden_origin")},
        {"unstated": ("authorization",)},
    ),
    ("DEPRECATION_ADDED", "roots", "pages", {}, {"deprecated": {"roots": ROOTS}}),
    (
        *("DEPRECATION_CHANGED", "roots", "pages", {"deprecated": {"roots": ROOTS}}),
        {"deprecated": {"roots": replace(ROOTS, removal="in a year")}},
    ),
)
"""Rules of facts, with the table and what differs in it."""

PAIRS = (
    Pair("METHOD_ADDED", "wall/scrub", {}, request("Scrub")),
    Pair("METHOD_RENAMED", "wall/scrape", request("Scrub"), request("Scrape")),
    Pair(
        *("METHOD_MOVED_INTO_RESULT", "user/ask"),
        {**ASKED, "ServerRequest": any_of("AskRequest")},
        {**ASKED, "InputRequest": any_of("AskRequest")},
    ),
    Pair("NOTIFICATION_ADDED", "notifications/wet", {}, WET),
    Pair(
        *("NOTIFICATION_RENAMED", "notifications/dried", {}),
        {
            "ClientNotification": any_of("DriedNotification"),
            "DryNotification": None,
            "DriedNotification": message("notifications/dried", ref("DryNotificationParams")),
        },
    ),
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
    Pair("FIELD_RENAMED", f"{TINY}.sizes", field(COUNT), params(sizes=COUNT)),
    Pair("FIELD_RENAMED", f"{TINY}.fileSize", field(COUNT), params(fileSize=COUNT)),
    Pair("FIELD_RENAMED", f"{TINY}.caption", field(COUNT), params(caption=COUNT)),
    Pair(
        "FIELD_RENAMED", f"{TINY}.hue", params(size=COUNT), {TINY: obj("hue", hue=TEXT, size=COUNT)}
    ),
    Pair("FIELD_MADE_REQUIRED", SIZE, field(COUNT), params("color size", size=COUNT)),
    *(Pair(rule, SIZE, field(old), field(new)) for rule, old, new in FIELDS),
    Pair(
        *("VARIANT_ADDED", SIZE, {**field(any_of("Brush", "Cup")), "Brush": BRUSH, "Cup": ROLLER}),
        {
            **field(any_of("Brush", "Cup", "Pad")),
            "Brush": BRUSH,
            "Cup": ROLLER,
            "Pad": obj("kind", kind=const("pad")),
        },
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
        *("FACT_ADDED", "wall/paint (idempotent)", {}),
        {"facts": replace(facts_of(), methods={"wall/paint": MethodFacts(idempotent=True)})},
    ),
    *(
        Pair(rule, place, {"facts": facts_with(table, **old)}, {"facts": facts_with(table, **new)})
        for rule, place, table, old, new in FACTS
    ),
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.place}")
def test_a_rule_names_its_change_and_its_mirror_the_way_back(pair: Pair) -> None:
    old, new = protocol("A", **pair.old), protocol("B", **pair.new)
    assert (pair.rule, pair.place) in rule_places(old, new)
    mirror = diff.RULES[pair.rule].mirror
    there = next(change for change in changes(old, new) if change.rule.id == pair.rule)
    back = [change for change in changes(new, old) if change.rule.id == mirror]
    assert (there.new_place, there.old_place) in [(c.old_place, c.new_place) for c in back]


def test_every_rule_has_a_pair_or_is_the_mirror_of_one_that_has() -> None:
    tested = {pair.rule for pair in PAIRS} | {diff.RULES[pair.rule].mirror for pair in PAIRS}
    assert diff.RULES.keys() - tested == set()


def test_a_mirror_has_the_opposite_kind_and_the_rule_as_its_mirror() -> None:
    kinds = {("added", "removed"), ("tightened", "loosened")}
    for rule in diff.RULES.values():
        mirror = diff.RULES[rule.mirror]
        assert mirror.mirror == rule.id
        both = (rule.kind, mirror.kind)
        assert both in kinds or both[::-1] in kinds or len({*both}) == 1, rule.id


KINDS: list[Any] = [
    *(TEXT, {**TEXT, "minLength": 1}, {"type": "array"}, {"type": "array", "minItems": 1}),
    *({"type": "array", "items": TEXT}, {"const": 1}, {"const": "1"}, obj(), obj("", a=TEXT)),
]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"anyOf": [TEXT, COUNT]}, {"type": ["integer", "string"]}, id="types"),
        pytest.param({"anyOf": [TEXT]}, TEXT, id="single"),
        pytest.param({"oneOf": [TEXT, COUNT]}, {"anyOf": [COUNT, TEXT]}, id="order"),
        pytest.param({"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}, id="keys"),
        pytest.param(
            {"anyOf": [TEXT, {"anyOf": [COUNT, {"type": "null"}]}]},
            {"anyOf": [COUNT, TEXT, {"type": "null"}]},
            id="nested",
        ),
        pytest.param({"anyOf": [*KINDS, *KINDS]}, {"anyOf": KINDS}, id="alternatives twice"),
        pytest.param({"enum": ["s"]}, ref("Size"), id="const"),
        pytest.param({"properties": {"a": TEXT}}, obj("", a=TEXT), id="members without a type"),
        pytest.param({"type": "array", "items": True}, {"type": "array"}, id="any items"),
        pytest.param({"type": "object"}, {"type": "object", "additionalProperties": {}}, id="map"),
    ],
)
def test_the_same_said_in_another_way_is_no_change(old: Any, new: Any) -> None:
    named: Definitions = {"Size": {"const": "s"}}
    assert rule_places(protocol(**field(old)), protocol(**field(new), **named)) == []
    assert rule_places(protocol(**field(new), **named), protocol(**field(old))) == []


def test_inline_params_are_those_of_the_named_type() -> None:
    inline = protocol(PaintRequest=message("wall/paint", obj("color", color=TEXT)))
    assert rule_places(inline, protocol()) == rule_places(protocol(), inline) == []


@pytest.mark.parametrize(
    "node",
    [
        {"type": "array", "items": ref("Own")},
        {"type": "object", "additionalProperties": ref("Own")},
        obj("own", own=ref("Own")),
        obj("", own={"type": "array", "items": obj("", inner=ref("Own"))}),
    ],
)
def test_a_type_that_holds_itself_is_compared_once(node: Any) -> None:
    old = protocol(**field(ref("Own")), Own=node)
    assert rule_places(old, protocol(**field(ref("Own")), Own=node)) == []
    new = protocol(**field({"anyOf": [ref("Own"), COUNT]}), Own=node)
    assert ("FIELD_TYPE_WIDENED", SIZE) in rule_places(old, new)


@pytest.mark.parametrize(("before", "after", "renamed"), [(100, 100, 100), (73, 137, 0)])
def test_at_most_10000_pairs_of_names_are_compared(before: int, after: int, renamed: int) -> None:
    old: Definitions = {f"name_{number}": TEXT for number in range(before)}
    new: Definitions = {f"name{number}": TEXT for number in range(after)}
    rules = [rule for rule, _ in rule_places(protocol(**params(**old)), protocol(**params(**new)))]
    assert rules.count("FIELD_RENAMED") == renamed


def with_type(name: str, members: str) -> Definitions:
    """A result that holds a type with some members, beside the type alone."""
    fields = {"PaintResult": obj("", **{name.lower(): ref(name)})}
    return {**fields, name: obj("", **dict.fromkeys(members, TEXT))}


def with_notification(method: str, members: str) -> Definitions:
    """A notification of a method with some members."""
    sent = message(method, obj("", **dict.fromkeys(members, TEXT)))
    return {"ClientNotification": any_of("DryNotification"), "DryNotification": sent}


NOTIFICATION = with_notification("notifications/dry", "a")


@pytest.mark.parametrize(
    ("rule", "old", "new", "renamed"),
    [
        ("TYPE_RENAMED", with_type("PaintBrush", "abcd"), with_type("PaintBrushes", "abcde"), True),
        ("TYPE_RENAMED", with_type("PaintBrush", "abc"), with_type("PaintBrushes", "abcd"), False),
        ("NOTIFICATION_RENAMED", NOTIFICATION, with_notification("notifications_dry", "ab"), True),
        (
            "NOTIFICATION_RENAMED",
            NOTIFICATION,
            with_notification("notifications_dry", "abc"),
            False,
        ),
    ],
)
def test_what_is_renamed_keeps_most_of_its_members(
    rule: str, old: Definitions, new: Definitions, renamed: bool
) -> None:
    other: Definitions = {"Paint": TEXT}
    if rule == "TYPE_RENAMED":
        other["PaintResult"] = obj("", **{"else": any_of("PaintBrushes", "Paint")})
    rules = [each for each, _ in rule_places(protocol(**old), protocol(**{**new, **other}))]
    assert (rule in rules) is renamed


def test_severities_are_set_by_rule_category_and_for_all() -> None:
    chosen = severities(["ALL=compatible", "field=warning", "FIELD_RENAMED=ignore"])
    assert chosen["METHOD_REMOVED"] == "compatible"
    assert chosen["FIELD_ADDED_REQUIRED"] == "warning"
    assert chosen["FIELD_RENAMED"] == "ignore"
    old, new = protocol(), protocol(**params("color size", size=COUNT))
    assert diff.compare(old, new, severities(["FIELD=ignore"])).changes == ()


@pytest.mark.parametrize("setting", ["", "FIELD", "FIELD=bad", "NOTHING=ignore", "=ignore"])
def test_a_setting_without_rule_or_severity_is_an_error(setting: str) -> None:
    with pytest.raises(UsageError, match="expected --severity RULE=SEVERITY"):
        severities([setting])


def test_a_member_that_no_type_has_is_a_change_too() -> None:
    rules = [rule for rule, _ in rule_places(protocol(), protocol(**params("", **{'a"b': TEXT})))]
    assert "FIELD_ADDED_OPTIONAL" in rules


OPEN_LIST = {"type": "array", "items": TEXT}
OTHER_MEMBERS: dict[str, tuple[Definitions, Definitions]] = {
    "one that must be there": (params(size=COUNT), params("color caption", caption=COUNT)),
    "two of the type": (params(size=COUNT), params(caption=COUNT, depth=COUNT)),
    "any value": (params(size={}), params(caption={})),
    "an object made anew": ({TINY: obj("", a=TEXT)}, {TINY: obj("", b=TEXT)}),
    "more than three at once": (
        params(size=COUNT, wet={"type": "boolean"}, price={"type": "number"}, tags=OPEN_LIST),
        params(caption=COUNT, glossy={"type": "boolean"}, sum={"type": "number"}, notes=OPEN_LIST),
    ),
}


@pytest.mark.parametrize(("old", "new"), OTHER_MEMBERS.values(), ids=OTHER_MEMBERS)
def test_a_member_of_other_content_is_no_renaming(old: Definitions, new: Definitions) -> None:
    rules = {rule for rule, _ in rule_places(protocol(**old), protocol(**new))}
    assert "FIELD_RENAMED" not in rules
    assert {rule for rule in rules if rule.startswith("FIELD_REMOVED")}


BOX = obj("height width depth", height=COUNT, width=COUNT, depth=COUNT)


def with_boxes(names: set[str], kind: str = "object") -> Definitions:
    """Definitions with equal types of these names, in a map or a list of each."""
    key = "items" if kind == "array" else "additionalProperties"
    members = {name.lower(): {"type": kind, key: ref(name)} for name in names}
    return {**dict.fromkeys(names, BOX), "PaintResult": obj("", **members)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            *({"RedBrush", "BedBrush"}, {"ARedBrush", "ZBedBrush"}),
            {("RedBrush", "ARedBrush"), ("BedBrush", "ZBedBrush")},
            id="each has a name like another one",
        ),
        pytest.param(
            *({"TaskItem"}, {"AaskItem", "TaskItem2"}, {("TaskItem", "TaskItem2")}),
            id="one has a name like the old one",
        ),
        pytest.param(
            *({"Parcel"}, {"ShippingUnit"}, {("Parcel", "ShippingUnit")}), id="one has another name"
        ),
    ],
)
def test_equal_types_are_paired_by_their_names(
    old: set[str], new: set[str], expected: set[tuple[str, str]]
) -> None:
    there, back = (
        changes(protocol(**before), protocol(**after))
        for before, after in permutations((with_boxes(old), with_boxes(new, "array")))
    )
    renamed = {(each.old, each.new) for each in there if each.rule.id == "TYPE_RENAMED"}
    assert renamed == expected
    assert {(each.new, each.old) for each in back if each.rule.id == "TYPE_RENAMED"} == expected
    left = {each.rule.id for each in there if each.rule.id.startswith("TYPE_")} - {"TYPE_RENAMED"}
    assert left == ({"TYPE_ADDED"} if len(new) > len(old) else set())


NODES = [node for _, *pair in FIELDS for node in pair]
REFERRING = [ref("Brush"), any_of("Brush", "Roller"), {"type": "array", "items": ref("Roller")}]
NAMED = st.dictionaries(
    st.sampled_from(("color", "colour", "size", "sizes", "title")),
    st.sampled_from([*NODES, *REFERRING, obj("", inner=ref("Brush"))]),
    max_size=4,
)


@st.composite
def definitions(draw: st.DrawFn) -> Definitions:
    """Definitions that vary: types, params, a result, and the set of methods."""
    made: Definitions = {"ClientRequest": any_of("PaintRequest")}
    for name in draw(st.lists(st.sampled_from(("Scrub", "Scrape", "Sand")), unique=True)):
        made["ClientRequest"]["anyOf"].append(ref(f"{name}Request"))
        made |= {each: node for each, node in request(name).items() if each != "ClientRequest"}
    for name in ("Brush", "Roller", TINY, "PaintResult"):
        members = draw(NAMED)
        made[name] = obj(" ".join(wire for wire in members if draw(st.booleans())), **members)
    return made


def respelled(node: Any) -> Any:
    """The same schema with its members in another order, and a single type as a union of one."""
    if isinstance(node, dict):
        turned = {key: respelled(value) for key, value in reversed(node.items())}
        return {"anyOf": [turned]} if node.get("type") == "string" else turned
    return [respelled(item) for item in reversed(node)] if isinstance(node, list) else node


@given(definitions(), definitions())
@settings(max_examples=40)
def test_changes_are_mirrored_on_the_way_back_and_the_same_has_none(
    one: Definitions, other: Definitions
) -> None:
    old, new = protocol("A", other=(other,), **one), protocol("B", other=(one,), **other)
    assert {
        (c.rule.mirror, c.new_place, c.old_place, c.new, c.old, c.senders, c.messages)
        for c in changes(old, new)
    } == {
        (c.rule.id, c.old_place, c.new_place, c.old, c.new, c.senders, c.messages)
        for c in changes(new, old)
    }
    same = {name: node if "Request" in name else respelled(node) for name, node in one.items()}
    assert changes(protocol(other=(same,), **one), protocol(other=(one,), **same)) == ()
