"""Unions of objects that a tag tells apart: their schemas, and arguments as JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

import jsonschema
import msgspec
import pytest
from pydantic import BaseModel, Field

from kit.wire import ALL
from mcpgen_runtime import Server
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.on_asyncio


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str


class Bird(BaseModel):
    kind: Literal["bird"] = "bird"
    friends: list[Pet] = []


class TaggedCat(msgspec.Struct, tag="cat", tag_field="kind"):
    lives: int


class TaggedDog(msgspec.Struct, tag="dog", tag_field="kind"):
    bark: str


Pet: TypeAlias = Annotated[Cat | Dog, Field(discriminator="kind")]
Bird.model_rebuild()
Animal: TypeAlias = Annotated[Cat | Dog | Bird, Field(discriminator="kind")]
CAT = {"kind": "cat", "lives": 9}


def pointers(node: Any) -> Iterator[str]:
    """The definitions that texts in JSON data point to."""
    if isinstance(node, str) and node.startswith("#/$defs/"):
        yield node.removeprefix("#/$defs/")
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from pointers(each)


@pytest.mark.parametrize("form", ["inline", "refs"])
@pytest.mark.parametrize("kind", [Pet, Pet | None, list[Pet], Animal, TaggedCat | TaggedDog])
async def test_the_schema_of_a_union_by_a_tag_says_what_is_taken(kind: Any, form: Any) -> None:
    server = Server("s", schemas=form)

    def keep(pet: Any) -> Any:
        return pet

    keep.__annotations__.update({"pet": kind, "return": kind})
    server.tool(keep)
    as_argument: Any = (
        (lambda pet: {"pet": [pet]}) if kind == list[Pet] else lambda pet: {"pet": pet}
    )
    async with connected(server, revision=ALL[-1]) as pair:
        (tool,) = await pair.client.list_tools()
        taken = await pair.client.call_tool("keep", as_argument(CAT))
        refused = await pair.client.call_tool("keep", as_argument({"lives": 9}))
    assert (taken.is_error, refused.is_error) == (None, True)
    for schema in (tool.input_schema, tool.output_schema):
        assert set(pointers(schema)) <= schema.get("$defs", {}).keys()
    allows = jsonschema.Draft202012Validator(tool.input_schema).is_valid
    assert allows(as_argument(CAT))
    assert not allows(as_argument({"lives": 9}))
    assert jsonschema.Draft202012Validator(tool.output_schema).is_valid(taken.structured_content)


@pytest.mark.parametrize("kind", [Pet, Pet | None, Animal, Cat | Dog, TaggedCat | TaggedDog])
async def test_json_text_for_a_union_of_objects_is_converted(kind: Any) -> None:
    def keep(pet: Any) -> int:
        return int(pet.lives)

    keep.__annotations__["pet"] = kind
    server = Server("pets")
    server.add_tool(keep)
    result: Any = await server.call_tool("keep", {"pet": json.dumps(CAT)})
    assert result.structured_content == {"result": 9}
