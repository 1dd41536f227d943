"""Mutations of what a server shows: each is reported, or is no difference with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpgen_runtime import LockMismatchError
from package.client.lock.listing_server import SHOP, ListingServer, at
from package.client.lock.locking import EVIL, IN, PLAIN, list_all, locked, record, seen

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

CAUGHT: Mapping[str, tuple[str, object, tuple[str, str, str]]] = {
    "a description": ("tools/0/description", EVIL, (ORDER, "changed", "/description")),
    "no description": ("tools/0/description", ..., (ORDER, "changed", "/description")),
    "a space": ("tools/0/description", "Orders an item. ", (ORDER, "changed", "/description")),
    "invisible characters": (
        "tools/0/description",
        "Orders an item.\U000e0072\U000e006d",
        (ORDER, "changed", "/description"),
    ),
    "a letter of another alphabet": (
        "tools/0/description",
        "Orders \u0430n item.",
        (ORDER, "changed", "/description"),
    ),
    "a long description": (
        "tools/0/description",
        f"Orders an item.{' ' * 20_000}{EVIL}",
        (ORDER, "changed", "/description"),
    ),
    "a title": ("tools/0/title", "Order now", (ORDER, "changed", "/title")),
    "the text of an argument": (
        f"{IN}/properties/item/description",
        EVIL,
        (ORDER, "changed", "/inputSchema/properties/item/description"),
    ),
    "the title of an argument": (
        f"{IN}/properties/item/title",
        EVIL,
        (ORDER, "changed", "/inputSchema/properties/item/title"),
    ),
    "one argument more": (
        f"{IN}/properties/note",
        {"description": EVIL},
        (ORDER, "changed", "/inputSchema/properties/note"),
    ),
    "one argument less": (
        f"{IN}/properties/size",
        ...,
        (ORDER, "changed", "/inputSchema/properties/size"),
    ),
    "a required argument": (
        f"{IN}/required/+",
        "size",
        (ORDER, "changed", "/inputSchema/required"),
    ),
    "an optional argument": (
        f"{IN}/required",
        ["item"],
        (ORDER, "changed", "/inputSchema/required"),
    ),
    "the type of an argument": (
        f"{IN}/properties/count/type",
        "string",
        (ORDER, "changed", "/inputSchema/properties/count/type"),
    ),
    "a bound": (
        f"{IN}/properties/count/minimum",
        0,
        (ORDER, "changed", "/inputSchema/properties/count/minimum"),
    ),
    "an allowed value": (
        f"{IN}/properties/size/enum/+",
        EVIL,
        (ORDER, "changed", "/inputSchema/properties/size/enum"),
    ),
    "a default": (
        f"{IN}/properties/count/default",
        100,
        (ORDER, "changed", "/inputSchema/properties/count/default"),
    ),
    "a number for a boolean": (
        f"{IN}/properties/gift/default",
        1,
        (ORDER, "changed", "/inputSchema/properties/gift/default"),
    ),
    "an example": (
        f"{IN}/properties/item/examples",
        [EVIL],
        (ORDER, "changed", "/inputSchema/properties/item/examples"),
    ),
    "a definition": (
        f"{IN}/$defs/address/description",
        EVIL,
        (ORDER, "changed", "/inputSchema/$defs/address/description"),
    ),
    "further arguments": (
        f"{IN}/additionalProperties",
        {"description": EVIL},
        (ORDER, "changed", "/inputSchema/additionalProperties"),
    ),
    "a keyword of nobody": (f"{IN}/x-note", EVIL, (ORDER, "changed", "/inputSchema/x-note")),
    "a comment": (f"{IN}/$comment", EVIL, (ORDER, "changed", "/inputSchema/$comment")),
    "the text of a result": (
        "tools/0/outputSchema/properties/price/description",
        EVIL,
        (ORDER, "changed", "/outputSchema/properties/price/description"),
    ),
    "no schema of results": ("tools/0/outputSchema", ..., (ORDER, "changed", "/outputSchema")),
    "a schema of results": (
        "tools/1/outputSchema",
        {"type": "object"},
        ("tool count", "changed", "/outputSchema"),
    ),
    "a tool that writes": (
        "tools/0/annotations/readOnlyHint",
        False,
        (ORDER, "changed", "/annotations/readOnlyHint"),
    ),
    "a hint more": (
        "tools/0/annotations/destructiveHint",
        False,
        (ORDER, "changed", "/annotations/destructiveHint"),
    ),
    "a title in annotations": (
        "tools/0/annotations/title",
        "Read",
        (ORDER, "changed", "/annotations/title"),
    ),
    "no annotations": ("tools/0/annotations", ..., (ORDER, "changed", "/annotations")),
    "an icon": (
        "tools/0/icons/0/src",
        "https://evil.example/x.png",
        (ORDER, "changed", "/icons/0/src"),
    ),
    "a task": (
        "tools/0/execution/taskSupport",
        "required",
        (ORDER, "changed", "/execution/taskSupport"),
    ),
    "extra data": (
        "tools/0/_meta",
        {"example.com/level": 2},
        (ORDER, "changed", "/_meta/example.com~1level"),
    ),
    "a user interface": (
        "tools/0/_meta/ui",
        {"resourceUri": "ui://evil"},
        (ORDER, "changed", "/_meta/ui"),
    ),
    "a schema that is nested deeply": (
        f"{IN}/properties/item",
        nested_schema(100),
        (ORDER, "changed", "/inputSchema/properties/item/description"),
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
        (ORDER, "inconsistent", ""),
    ),
    "a prompt's description": ("prompts/0/description", EVIL, (ADVISE, "changed", "/description")),
    "a prompt's title": ("prompts/0/title", EVIL, (ADVISE, "changed", "/title")),
    "a prompt's argument": (
        "prompts/0/arguments/0/description",
        EVIL,
        (ADVISE, "changed", "/arguments/0/description"),
    ),
    "a prompt's optional argument": (
        "prompts/0/arguments/0/required",
        ...,
        (ADVISE, "changed", "/arguments/0/required"),
    ),
    "a prompt's further argument": (
        "prompts/0/arguments/+",
        {"name": "key"},
        (ADVISE, "changed", "/arguments"),
    ),
    "a prompt more": ("prompts/+", {"name": "leak"}, ("prompt leak", "new", "")),
    "a prompt less": ("prompts/1", ..., ("prompt thank", "removed", "")),
    "a resource's description": (
        "resources/0/description",
        EVIL,
        (TERMS, "changed", "/description"),
    ),
    "a resource's name": ("resources/0/name", EVIL, (TERMS, "changed", "/name")),
    "a resource's title": ("resources/0/title", EVIL, (TERMS, "changed", "/title")),
    "a resource's type": ("resources/0/mimeType", "text/html", (TERMS, "changed", "/mimeType")),
    "a resource's audience": (
        "resources/0/annotations/audience",
        ["assistant"],
        (TERMS, "changed", "/annotations/audience/0"),
    ),
    "a resource's priority": (
        "resources/0/annotations/priority",
        1,
        (TERMS, "changed", "/annotations/priority"),
    ),
    "a resource more": (
        "resources/+",
        {"uri": "shop://key", "name": "key"},
        ("resource shop://key", "new", ""),
    ),
    "a template's description": (
        "resourceTemplates/0/description",
        EVIL,
        (TEMPLATE, "changed", "/description"),
    ),
    "a template of another URI": (
        "resourceTemplates/0/uriTemplate",
        "file:///{item}",
        ("resource template file:///{item}", "new", ""),
    ),
    "instructions": ("instructions", EVIL, ("instructions", "changed", "")),
    "no instructions": ("instructions", "", ("instructions", "changed", "")),
}
"""Mutations of the shop by path and value, each with the difference that a client reports."""

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
    place: str, value: object, expected: tuple[str, str, str], path: Path
) -> None:
    await record(path)
    server = ListingServer(at(SHOP, place, value))
    async with locked(path, server) as client:
        shown = await list_all(client)
        assert expected in [seen(each) for each in client.lock_differences]
        kind, _, name = expected[0].rpartition(" ")
        assert name not in shown.get(kind, set())
        assert client.instructions in ("Order sparingly.", None)
        if expected[1] != "removed" and kind in ("tool", "prompt"):
            call = client.call_tool if kind == "tool" else client.get_prompt
            with pytest.raises(LockMismatchError) as refused:
                await call(name)
            assert seen(refused.value.difference)[:2] == expected[:2]
    assert not {"tools/call", "prompts/get"} & {*server.methods}


@pytest.mark.parametrize(("place", "value"), [row[:2] for row in OUT_OF_REACH.values()])
async def test_a_mutation_out_of_reach_is_no_difference(
    place: str, value: object, path: Path
) -> None:
    await record(path)
    async with locked(path, ListingServer(at(SHOP, place, value))) as client:
        assert len((await list_all(client))["tool"]) == 2
        assert client.lock_differences == ()
