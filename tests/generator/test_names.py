"""Names of the schema as names of Python."""

from __future__ import annotations

import pytest

from mcpgen import names


@pytest.mark.parametrize(
    ("wire", "python"),
    [
        ("io.modelcontextprotocol/logLevel", "log_level"),
        ("websiteURL", "website_url"),
        ("URLParams", "url_params"),
        ("class", "class_"),
        ("2fa", "n2fa"),
        ("$", "empty"),
        ("na\u200dme", "name"),
        ("Gr\xf6\xdfe", "grosse"),
        ("a\u2605b", "a_black_star_b"),
        ("\u540d", "ming"),
        ("my \U0001f3a8", "my_artist_palette"),
        ("\u043f\u043e\u0433\u043e\u0434\u0430", "pogoda"),
        ("\u044c", "cyrillic_small_letter_soft_sign"),
        ("\ue000", "ue000"),
    ],
)
def test_members_are_snake_case_and_no_keyword(wire: str, python: str) -> None:
    assert names.snake(wire) == python


def test_many_equal_member_names_are_numbered_and_long_ones_cut() -> None:
    attributes = list(names.members("$" * count for count in range(1, 6)).values())
    assert attributes == ["empty", "empty_", "empty__", "empty_3", "empty_4"]
    assert names.snake("a" * 1000) == "a" * 100
    assert names.pascal("a" * 1000) == "A" + "a" * 99


@pytest.mark.parametrize(
    ("type_name", "python"),
    [
        ("Request", "request_"),
        ("CloseRequest", "close_"),
        ("Ask", "ask"),
    ],
)
def test_a_message_is_named_after_its_type(type_name: str, python: str) -> None:
    assert names.message_name(type_name) == python


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
