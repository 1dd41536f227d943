"""Mutations of what a server shows: each is reported, or is no difference with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpgen_runtime import LockMismatchError
from package.client.lock.locking import (
    EVIL,
    IN,
    PLAIN,
    SHOP,
    ListingServer,
    at,
    list_all,
    locked,
    seen,
)

pytestmark = pytest.mark.anyio


def nested_schema(levels: int) -> dict[str, Any]:
    """A schema of objects in objects."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


ORDER, ADVISE, TERMS, TEMPLATE = (
    "tool order",
    "prompt advise",
    "resource shop://terms",
    "resource template shop://items/{item}",
)

CHANGED: Mapping[str, Mapping[str, tuple[str, object]]] = {
    ORDER: {
        "a description": ("tools/0/description", EVIL),
        "no description": ("tools/0/description", ...),
        "a space": ("tools/0/description", "Orders an item. "),
        "invisible characters": ("tools/0/description", "Orders an item.\U000e0072\U000e006d"),
        "a letter of another alphabet": ("tools/0/description", "Orders \u0430n item."),
        "a long description": ("tools/0/description", f"Orders an item.{' ' * 20_000}{EVIL}"),
        "a title": ("tools/0/title", "Order now"),
        "the text of an argument": (f"{IN}/properties/item/description", EVIL),
        "the title of an argument": (f"{IN}/properties/item/title", EVIL),
        "one argument more": (f"{IN}/properties/note", {"description": EVIL}),
        "one argument less": (f"{IN}/properties/size", ...),
        "a required argument": (f"{IN}/required/+", "size"),
        "an optional argument": (f"{IN}/required", ["item"]),
        "the type of an argument": (f"{IN}/properties/count/type", "string"),
        "a bound": (f"{IN}/properties/count/minimum", 0),
        "an allowed value": (f"{IN}/properties/size/enum/+", EVIL),
        "a default": (f"{IN}/properties/count/default", 100),
        "a number for a boolean": (f"{IN}/properties/gift/default", 1),
        "an example": (f"{IN}/properties/item/examples", [EVIL]),
        "a definition": (f"{IN}/$defs/address/description", EVIL),
        "further arguments": (f"{IN}/additionalProperties", {"description": EVIL}),
        "a keyword of nobody": (f"{IN}/x-note", EVIL),
        "a comment": (f"{IN}/$comment", EVIL),
        "the text of a result": ("tools/0/outputSchema/properties/price/description", EVIL),
        "no schema of results": ("tools/0/outputSchema", ...),
        "a tool that writes": ("tools/0/annotations/readOnlyHint", False),
        "a hint more": ("tools/0/annotations/destructiveHint", False),
        "a title in annotations": ("tools/0/annotations/title", "Read"),
        "no annotations": ("tools/0/annotations", ...),
        "an icon": ("tools/0/icons/0/src", "https://evil.example/x.png"),
        "a task": ("tools/0/execution/taskSupport", "required"),
        "a user interface": ("tools/0/_meta/ui", {"resourceUri": "ui://evil"}),
    },
    "tool count": {"a schema of results": ("tools/1/outputSchema", {"type": "object"})},
    ADVISE: {
        "a prompt's description": ("prompts/0/description", EVIL),
        "a prompt's title": ("prompts/0/title", EVIL),
        "a prompt's argument": ("prompts/0/arguments/0/description", EVIL),
        "a prompt's optional argument": ("prompts/0/arguments/0/required", ...),
        "a prompt's further argument": ("prompts/0/arguments/+", {"name": "key"}),
    },
    TERMS: {
        "a resource's description": ("resources/0/description", EVIL),
        "a resource's name": ("resources/0/name", EVIL),
        "a resource's title": ("resources/0/title", EVIL),
        "a resource's type": ("resources/0/mimeType", "text/html"),
        "a resource's priority": ("resources/0/annotations/priority", 1),
    },
    TEMPLATE: {"a template's description": ("resourceTemplates/0/description", EVIL)},
}
"""Mutations of the shop by item: path and value, and the path is what a client reports."""

NEW_RESOURCE = {"uri": "shop://key", "name": "key"}
CAUGHT: Mapping[str, tuple[str, object, tuple[str, str, str]]] = {
    **{
        name: (path, value, (item, "changed", "/" + path.split("/", 2)[2].removesuffix("/+")))
        for item, mutations in CHANGED.items()
        for name, (path, value) in mutations.items()
    },
    "extra data": (
        "tools/0/_meta",
        {"example.com/level": 2},
        (ORDER, "changed", "/_meta/example.com~1level"),
    ),
    "a schema that is nested deeply": (
        f"{IN}/properties/item",
        nested_schema(100),
        (ORDER, "changed", "/inputSchema/properties/item/description"),
    ),
    "a resource's audience": (
        "resources/0/annotations/audience",
        ["assistant"],
        (TERMS, "changed", "/annotations/audience/0"),
    ),
    "a tool more": ("tools/+", {"name": "pay", **PLAIN}, ("tool pay", "new", "")),
    "a tool with a name of JavaScript": (
        "tools/+",
        {"name": "__proto__", **PLAIN},
        ("tool __proto__", "new", ""),
    ),
    "a tool with a similar name": (
        "tools/+",
        {"name": "\u043erder", **PLAIN},
        ("tool \u043erder", "new", ""),
    ),
    "a tool of another name": ("tools/1/name", "Count", ("tool Count", "new", "")),
    "a tool less": ("tools/1", ..., ("tool count", "removed", "")),
    "a tool twice": (
        "tools/+",
        {**SHOP["tools"][0], "description": EVIL},
        (ORDER, "inconsistent", "/description"),
    ),
    "a prompt more": ("prompts/+", {"name": "leak"}, ("prompt leak", "new", "")),
    "a prompt less": ("prompts/1", ..., ("prompt thank", "removed", "")),
    "a resource more": ("resources/+", NEW_RESOURCE, ("resource shop://key", "new", "")),
    "a template of another URI": (
        "resourceTemplates/0/uriTemplate",
        "file:///{item}",
        ("resource template file:///{item}", "new", ""),
    ),
    "instructions": ("instructions", EVIL, ("instructions", "changed", "")),
    "no instructions": ("instructions", "", ("instructions", "changed", "")),
}
"""All mutations by path and value, each with the difference that a client reports."""

OUT_OF_REACH: Mapping[str, tuple[str, object, str]] = {
    "the size of a resource": ("resources/0/size", 4, "describes the content"),
    "the time of a change": (
        "resources/0/annotations/lastModified",
        "2026-01-01T00:00:00Z",
        "describes the content",
    ),
    "a member of no revision": ("tools/0/note", EVIL, "typed items do not have it"),
    "a float for an integer": (f"{IN}/properties/count/minimum", 1.0, "the same value"),
    "an item that is listed twice alike": ("tools/+", SHOP["tools"][1], "the same item"),
    "an order": ("tools", [*reversed(SHOP["tools"])], "order does not count"),
}
"""Mutations of the lists that are no difference, each with the reason."""


def test_the_tables_have_as_many_mutations_as_the_page_says() -> None:
    assert (len(CAUGHT), len(OUT_OF_REACH)) == (59, 6)


@pytest.mark.parametrize(("place", "value", "expected"), CAUGHT.values(), ids=CAUGHT)
async def test_a_mutation_is_reported_and_not_shown(
    place: str, value: object, expected: tuple[str, str, str], recorded: Path
) -> None:
    server = ListingServer(at(SHOP, place, value), page=1)
    async with locked(recorded, server) as client:
        shown = await list_all(client)
        assert expected in [seen(each) for each in client.lock_differences]
        kind, _, name = expected[0].rpartition(" ")
        assert name not in shown.get(kind, set())
        assert client.instructions in ("Order sparingly.", None)
        call: Any = {
            "tool": client.call_tool,
            "prompt": client.get_prompt,
            "resource": client.read_resource,
        }.get(kind)
        if call is not None:
            with pytest.raises(LockMismatchError) as refused:
                await call(name)
            change = "unlisted" if expected[1] == "removed" else expected[1]
            assert seen(refused.value.difference)[:2] == (expected[0], change)
    assert not {"tools/call", "prompts/get", "resources/read"} & {*server.methods}


@pytest.mark.parametrize(("place", "value"), [row[:2] for row in OUT_OF_REACH.values()])
async def test_a_mutation_out_of_reach_is_no_difference(
    place: str, value: object, recorded: Path
) -> None:
    async with locked(recorded, ListingServer(at(SHOP, place, value))) as client:
        assert len((await list_all(client))["tool"]) == 2
        assert client.lock_differences == ()
