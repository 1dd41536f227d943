"""The lists of a server as they are read: what is kept, left out with a note, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from generator.test_mirror import FORECAST, WEATHER
from mcpgen.errors import MirrorError
from mcpgen.project import server_lists
from mcpgen.project.server_lists import KINDS, MAX_NAME, MAX_TEXT, parse


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("text", "#: expected an object with tools, resources, resourceTemplates, prompts, or an"),
        ({"tool": []}, "got an object"),
        ({"tools": {}}, "#/tools: expected an array, got an object"),
        ({"tools": [1]}, "#/tools/0: expected an object, got a number or boolean"),
        ({"tools": [{}]}, "#/tools/0/name: expected a name of 1 to 200 characters, got null"),
        ({"tools": [{"name": "x" * 201}]}, "got a string of 201 characters"),
        ([[2**70]], "expected a number that fits 64 bits"),
    ],
)
def test_lists_that_are_nonsense_are_refused_with_their_place(document: Any, error: str) -> None:
    with pytest.raises(MirrorError) as raised:
        parse(document, "tools.json")
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "document", [{"jsonrpc": "2.0", "id": 1, "result": {"tools": [FORECAST]}}, [FORECAST]]
)
def test_a_response_and_an_array_of_tools_are_lists_too(document: Any) -> None:
    assert parse(document, "x").entries == parse({"tools": [FORECAST]}, "x").entries


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_has_a_greatest_length(kind: str) -> None:
    key = KINDS[kind]
    longest = MAX_NAME if key == "name" else 10 * MAX_NAME
    assert parse({kind: [{key: "x" * longest}]}, "x").entries[kind] == ({key: "x" * longest},)
    for size in (0, longest + 1):
        with pytest.raises(MirrorError, match=f"expected a {key} of 1 to {longest} characters"):
            parse({kind: [{key: "x" * size}]}, "x")


TEXTS: tuple[list[Any], list[Any]] = (["x", "", "x" * MAX_TEXT], [1, None, ["x"]])
MEMBERS: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "tools": {
        **dict.fromkeys(("title", "description"), TEXTS),
        **dict.fromkeys(("inputSchema", "outputSchema", "_meta"), ([{}], [[], "x", None])),
        "annotations": ([{"readOnlyHint": True, "title": "t"}], [[], None]),
        "execution": ([{"taskSupport": "optional"}], ["x"]),
        "icons": ([[{"src": "x", "sizes": ["1x1"], "theme": "dark"}]], [{}, None]),
    },
    "resources": {
        **dict.fromkeys(("name", "title", "description", "mimeType"), TEXTS),
        "size": ([0, 1, 2**40], [-1, True, 1.0, "1"]),
        "annotations": (
            [{"priority": 0, "audience": ["user"]}, {"priority": 1, "lastModified": "2025-01-01"}],
            [],
        ),
    },
    "resourceTemplates": {"mimeType": TEXTS},
    "prompts": {
        "arguments": (
            [[{"name": "a" * MAX_NAME, "required": True, "title": "t"}, {"name": "b"}], []],
            ["x", {}],
        ),
        "title": TEXTS,
    },
}
"""Values of members that are as specified, and others."""


@pytest.mark.parametrize(
    ("kind", "member", "kept", "value"),
    [
        (kind, member, kept, value)
        for kind, members in MEMBERS.items()
        for member, both in members.items()
        for kept, values in zip((True, False), both, strict=True)
        for value in values
    ],
)
def test_a_member_is_kept_if_it_is_as_specified(
    kind: str, member: str, kept: bool, value: Any
) -> None:
    lists = parse({kind: [{KINDS[kind]: "x", member: value}]}, "x")
    [only] = lists.entries[kind]
    assert only.get(member, "absent") == (value if kept else "absent")
    assert lists.notes == (() if kept else (f"/{kind}/0/{member}: left out: not as specified",))


UNFIT = "left out: a number that does not fit 64 bits"
OTHER = "left out: not as specified"
NO_NAME = "left out: no name, or one that comes twice"
UNKNOWN = "left out: the specification has no such member"


@pytest.mark.parametrize(
    ("kind", "members", "rest", "notes"),
    [
        ("tools", {"x-own": 1}, {}, {"x-own": UNKNOWN}),
        ("resources", {"inputSchema": {}}, {}, {"inputSchema": UNKNOWN}),
        (
            "tools",
            {"annotations": {"readOnlyHint": 1, "destructiveHint": False}},
            {"annotations": {"destructiveHint": False}},
            {"annotations/readOnlyHint": OTHER},
        ),
        *(
            (
                "resources",
                {"annotations": {name: value}},
                {"annotations": {}},
                {f"annotations/{name}": OTHER},
            )
            for name, value in (
                *(("priority", -0.1), ("priority", 1.1), ("priority", True)),
                *(("audience", ["root"]), ("lastModified", 5)),
            )
        ),
        (
            "tools",
            {"icons": [{"src": "x", "theme": "blue", "sizes": [1]}, {"theme": "dark"}, 5]},
            {"icons": [{"src": "x"}]},
            {
                "icons/0/theme": OTHER,
                "icons/0/sizes": OTHER,
                "icons/1": NO_NAME,
                "icons/2": NO_NAME,
            },
        ),
        (
            "prompts",
            {"arguments": [1, {"name": "x" * 201}, {"name": "q"}, {"name": "q"}]},
            {"arguments": [{"name": "q"}]},
            {
                **{f"arguments/{number}": NO_NAME for number in (0, 1, 3)},
                "arguments/1/name": OTHER,
            },
        ),
        (
            "tools",
            {"inputSchema": {"properties": {"n": {"maximum": 2**64 - 1, "minimum": 0}}}},
            {"inputSchema": {"properties": {"n": {"minimum": 0}}}},
            {"inputSchema/properties/n/maximum": UNFIT},
        ),
        (
            "tools",
            {"inputSchema": {"enum": [1, 2**70]}},
            {"inputSchema": {}},
            {"inputSchema/enum": UNFIT},
        ),
        (
            "tools",
            {"description": "x" * (MAX_TEXT + 1)},
            {"description": "x" * MAX_TEXT + "..."},
            {"description": "cut after 10000 characters"},
        ),
    ],
)
def test_a_member_that_is_left_out_is_named(
    kind: str, members: dict[str, Any], rest: dict[str, Any], notes: dict[str, str]
) -> None:
    lists = parse({kind: [{KINDS[kind]: "x", **members}]}, "x")
    assert lists.entries[kind] == ({KINDS[kind]: "x", **rest},)
    expected = [f"/{kind}/0/{place}: {note}" for place, note in notes.items()]
    assert sorted(lists.notes) == sorted(expected)


def test_the_first_of_two_entries_with_one_name_counts() -> None:
    lists = parse({"tools": [{"name": "a", "title": "A"}, {"name": "a"}]}, "x")
    assert lists.entries["tools"] == ({"name": "a", "title": "A"},)
    assert lists.notes == ("/tools/1: 'a' comes twice: the first counts",)


def test_instructions_are_a_text() -> None:
    lists = parse({"tools": [], "instructions": 5}, "x")
    assert "instructions" not in lists.document()
    assert len(lists.notes) == 1


def test_changes_name_what_is_new_gone_or_other() -> None:
    old = parse(WEATHER, "x")
    other = {**FORECAST, "outputSchema": {"type": "object"}, "title": "Forecast"}
    new = parse({"tools": [other, {"name": "rain"}], "prompts": WEATHER["prompts"]}, "x")
    assert server_lists.changes(old, new) == [
        "changed: tool forecast: result, title",
        "new: tool rain",
        "gone: resource weather://now",
        "gone: resource template weather://{city}/{+day}",
    ]
    assert server_lists.changes(old, old) == []


def test_changes_name_another_order_and_other_instructions() -> None:
    tools = [{**FORECAST, "name": name} for name in ("a", "b")]
    old = parse({"tools": tools}, "x")
    new = parse({"tools": tools[::-1], "instructions": "Ask b."}, "x")
    assert server_lists.changes(old, new) == ["changed: order of tools", "changed: instructions"]
