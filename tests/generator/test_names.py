"""Names of the schema as names of Python."""

from __future__ import annotations

import pytest

from mcpgen import names


@pytest.mark.parametrize(
    ("wire", "python"),
    [
        ("name", "name"),
        ("mimeType", "mime_type"),
        ("_meta", "meta"),
        ("$schema", "schema"),
        ("io.modelcontextprotocol/logLevel", "log_level"),
        ("websiteURL", "website_url"),
        ("URLParams", "url_params"),
        ("class", "class_"),
        ("list", "list_"),
        ("extra", "extra_"),
        ("2fa", "n2fa"),
        ("a-b c", "a_b_c"),
        ("$", "empty"),
        ("na\u200dme", "name"),
        ("Gr\xf6\xdfe", "grosse"),
        ("a\u2605b", "a_black_star_b"),
        ("\u540d", "ming"),
        ("\u2605", "black_star"),
    ],
)
def test_members_are_snake_case_and_no_keyword(wire: str, python: str) -> None:
    assert names.snake(wire) == python


def test_members_that_would_have_one_name_are_kept_apart() -> None:
    assert names.members(["meta", "_meta", "$meta"]) == {
        "meta": "meta",
        "_meta": "meta_",
        "$meta": "meta__",
    }


def test_many_equal_member_names_are_numbered_and_long_ones_cut() -> None:
    attributes = list(names.members("$" * count for count in range(1, 6)).values())
    assert attributes == ["empty", "empty_", "empty__", "empty_3", "empty_4"]
    assert names.snake("a" * 1000) == "a" * 100
    assert names.pascal("a" * 1000) == "A" + "a" * 99


@pytest.mark.parametrize(
    ("type_name", "python"),
    [
        ("CallToolRequest", "call_tool"),
        ("ToolListChangedNotification", "tool_list_changed"),
        ("PingRequest", "ping"),
        ("Request", "request_"),
        ("CloseRequest", "close_"),
        ("Ask", "ask"),
    ],
)
def test_a_message_is_named_after_its_type(type_name: str, python: str) -> None:
    assert names.message_name(type_name) == python


def test_other_names_are_derived_alike() -> None:
    wires = ("params", "requestedSchema", "_meta", "a-b")
    assert [names.pascal(wire) for wire in wires] == ["Params", "RequestedSchema", "Meta", "AB"]
    assert names.constant("call_tool") == "CALL_TOOL"
    assert [names.folder(name) for name in ("2025-06-18", "draft")] == ["r2025_06_18", "rdraft"]
    taken: tuple[tuple[str, ...], ...] = ((), ("A",), ("A", "A2"), ("A2",))
    assert [names.free_name("A", each) for each in taken] == ["A", "A2", "A3", "A"]


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("Tool", True),
        pytest.param("A" * 200, True, id="200 characters"),
        pytest.param("A" * 201, False, id="201 characters"),
        *((name, False) for name in ("ValueError", "None", "a b", "A-B", "Foo_bar", "tool")),
        *((name, False) for name in ("__path__", "Gr\xf6sse", "")),
    ],
)
def test_a_class_name_is_an_identifier_that_hides_no_builtin(name: str, usable: bool) -> None:
    assert names.is_class_name(name) is usable


def test_definitions_have_unique_names_of_classes() -> None:
    published = ["Record<string,string>", "2FA", "", "$", "list", "Tool", "tool", "None", "_a_b"]
    assert names.class_names([*published, "a" * 201], taken=["RecordStringString"]) == {
        "Record<string,string>": "RecordStringString2",
        "2FA": "N2FA",
        "": "Unnamed",
        "$": "Unnamed2",
        "list": "List",
        "Tool": "Tool",
        "tool": "Tool2",
        "None": "NoneModel",
        "_a_b": "AB",
        "a" * 201: "A" + "a" * 99,
    }
