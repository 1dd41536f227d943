"""Every rule of contracts, by a change of a small server."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from conventions.sources import ROOT
from generator.command_line import run
from generator.contract_surfaces import CAPABILITIES, SHOP, changed, contract
from generator.tables import table
from mcpgen.contract import command, report
from mcpgen.contract.command import Comparison
from mcpgen.contract.compare import compare
from mcpgen.contract.document import Contract
from mcpgen.contract.rule_examples import examples
from mcpgen.contract.rules import CATEGORIES, RULES, Category, Exemption, read_exemptions
from mcpgen.errors import SettingsError, UsageError

CHANGES: dict[str, Any] = table("contract_changes")
"""The lists of a server before and after a change, by what changes."""
RETITLED = changed("tools/0/title", "Buy")
REMOVED = changed("tools/1", ...)


@pytest.mark.parametrize("lists", CHANGES.values(), ids=CHANGES)
def test_changes_of_lists_are_named_with_their_places_and_values(
    lists: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    assert compare(contract(lists["old"]), contract(lists["old"])) == []
    assert report.text(compare(contract(lists["old"]), contract(lists["new"]))) == snapshot


def test_changes_of_capabilities_are_named_without_those_that_are_off(
    snapshot: SnapshotAssertion,
) -> None:
    old = {**CAPABILITIES, "prompts": {"listChanged": False}, "tasks": {"list": {}}, "x": None}
    new = {"tools": {}, "prompts": {}, "logging": False, "tasks": {"list": {}, "cancel": {}}}
    others = [{"io.example/a": {"level": each}, f"io.example/{each}": {}} for each in (1.0, 2)]
    texts = [
        report.text(compare(contract(SHOP, one), contract(SHOP, other)))
        for one, other in (
            (old, new),
            ({"extensions": others[0]}, {"extensions": others[1]}),
            (CAPABILITIES, {**CAPABILITIES, "extensions": {"io.example/a": {"level": 1.0}}}),
            (CAPABILITIES, {**CAPABILITIES, "extensions": 1}),
        )
    ]
    assert texts == snapshot


def test_the_order_of_lists_and_of_members_does_not_count() -> None:
    other = changed("tools/0/inputSchema/required", ["item"])
    other["tools"].reverse()
    properties = other["tools"][-1]["inputSchema"]["properties"]
    other["tools"][-1]["inputSchema"]["properties"] = dict(reversed(properties.items()))
    assert compare(contract(), contract(other)) == []


def test_a_change_of_some_revisions_names_them() -> None:
    old = contract(SHOP, CAPABILITIES, "2025-11-25", "2025-06-18")
    newest, _ = contract(RETITLED, CAPABILITIES, "2025-11-25", "2025-06-18").surfaces
    new = Contract("shop", (newest, old.surfaces[1]))
    (change,) = compare(old, new)
    assert change.revisions == ("2025-11-25",)


TODAY = datetime.datetime.now(datetime.UTC).date()
DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("exemption", "counts"),
    [
        (Exemption(frozenset({"TOOL_REMOVED"}), "tool plain", "moved"), False),
        (Exemption(frozenset({"TOOL_REMOVED"}), "*", "moved"), False),
        (Exemption(frozenset({"TOOL_REMOVED"}), "tool plain", "moved", TODAY + DAY), False),
        (Exemption(frozenset({"TOOL_REMOVED"}), "tool plain", "moved", TODAY), False),
        (Exemption(frozenset({"TOOL_REMOVED"}), "tool plain", "moved", TODAY - DAY), True),
        (Exemption(frozenset({"TOOL_REMOVED"}), "tool order", "moved"), True),
        (Exemption(frozenset({"TOOL_ADDED"}), "tool plain", "moved"), True),
    ],
)
def test_an_exemption_counts_for_its_rule_and_item_until_its_day(
    exemption: Exemption, counts: bool
) -> None:
    (change,) = command.changes(contract(), contract(REMOVED), [exemption])
    assert (change.allowed == "") is counts


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[[allow]]\nrule = 'NO_RULE'\nitem = 'a'\nreason = 'b'", "/allow/0/rule"),
        ("[[allow]]\nrule = 'TOOL_REMOVED'\nitem = 'a'", "/allow/0/reason"),
        ("[[allow]]\nrule = 'TOOL_REMOVED'\nitem = 'a'\nreason = ' '", "/allow/0/reason"),
        ("[[allow]]\nrule = 'TOOL_REMOVED'\nitem = 'a'\nreason = 'b'\nuntil = 'x'", "/0/until"),
        ("[[allow]]\nrule = 'TOOL_REMOVED'\nitem = 'a'\nreason = 'b'\nwho = 'x'", "/allow/0"),
        ("[[allow]]\ncategory = 'people'\nitem = 'a'\nreason = 'b'", "/allow/0/category"),
        (
            "[[allow]]\nrule = 'TOOL_REMOVED'\ncategory = 'models'\nitem = 'a'\nreason = 'b'",
            "either rule or category, got",
        ),
        ("[[deny]]\nrule = 'TOOL_REMOVED'", "#:"),
        ("not TOML", "expected TOML"),
    ],
)
def test_a_malformed_exemption_is_refused_with_its_place(
    text: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "contract.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=place):
        read_exemptions(file)


def test_a_file_of_exemptions_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_exemptions(tmp_path / "none.toml")


EVERY: dict[str, Any] = {
    **REMOVED,
    "instructions": "Order freely.",
}
"""Lists with a change for callers and one for models; another capability is for clients."""


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        ("callers", [("TOOL_REMOVED", "tool plain")]),
        ("models", [("INSTRUCTIONS_CHANGED", "server")]),
        ("clients", [("CAPABILITY_REMOVED", "server")]),
    ],
)
def test_a_category_chooses_its_rules(category: Category, expected: list[tuple[str, str]]) -> None:
    new = contract(EVERY, {**CAPABILITIES, "tools": {}})
    changes = Comparison(categories=(category,)).changes(contract(), new)
    assert [(change.rule.id, change.item) for change in changes] == expected
    assert len(Comparison().changes(contract(), new)) == len(CATEGORIES)


def test_a_category_is_allowed_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "contract.toml"
    file.write_text("[[allow]]\ncategory = 'models'\nitem = '*'\nreason = 'Reworded.'\n")
    changes = Comparison(allow=file).changes(contract(), contract(EVERY))
    assert [(each.rule.category, each.allowed) for each in changes] == [
        ("callers", ""),
        ("models", "Reworded."),
    ]


@pytest.mark.parametrize("rule", RULES)
def test_the_example_of_a_rule_is_named_by_it_alone(rule: str) -> None:
    assert [change.rule.id for change in examples()[rule].changes()] == [rule]


@pytest.mark.parametrize(
    "rule", [*(row for row in RULES if row.endswith(("NARROWED", "WIDENED"))), "INPUT_NARROWED"]
)
def test_the_example_of_a_decided_rule_shows_a_value(rule: str) -> None:
    (change,) = examples()[rule].changes()
    assert change.witness


def test_the_page_of_the_rules_is_that_of_the_table() -> None:
    page = (ROOT / "docs" / "contract-rules.md").read_text("utf-8")
    shown = run("contract", "rules", "--format", "markdown").out
    assert page == shown, "mcpgen contract rules --format markdown writes it"
