"""Declaration files of SDKs that describe messages with the types of Zod."""

from __future__ import annotations

from typing import Any

import pytest

from generator.tables import table
from generator.typescript_text import read
from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript.parse import parse

IMPORT = 'import * as z from "zod/v4"; import { x } from "./x.js";\n'
DECLARE_IT = f"{IMPORT}export declare const ItSchema: "
STRING, INTEGER = {"type": "string"}, {"type": "integer"}
MEMBER = {"properties": {"a": STRING}, "type": "object"}


TYPES: dict[str, Any] = table("typescript")["types of Zod"]


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_of_zod_describes_messages(type_: str) -> None:
    assert read(f"{DECLARE_IT}{type_};")["It"] == TYPES[type_]


SAME = """
/** A cat. */
declare const CatSchema: z.ZodObject<{ name: z.ZodString }, z.core.$strip>;
declare const KittenSchema: z.ZodObject<{ name: z.ZodString }, z.core.$strip>;
declare const DogSchema: z.ZodObject<{
  friends: z.ZodArray<z.ZodObject<{ name: z.ZodString }, z.core.$strip>>;
}, z.core.$strip>;
declare const PetSchema: z.ZodDiscriminatedUnion<[
  z.ZodObject<{ name: z.ZodString }, z.core.$strip>,
  z.ZodObject<{
    friends: z.ZodArray<z.ZodObject<{ name: z.ZodString }, z.core.$strip>>;
  }, z.core.$strip>,
], "kind">;
declare const HouseSchema: z.ZodRecord<
  z.ZodString, z.ZodIntersection<z.ZodObject<{ name: z.ZodString }, z.core.$strip>, z.ZodNull>
>;
"""


def test_a_repeated_inline_type_refers_to_the_first_of_its_shape() -> None:
    definitions = read(IMPORT + SAME)
    cat, dog = {"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}
    assert definitions["Dog"]["properties"]["friends"]["items"] == cat
    assert definitions["Pet"] == {"anyOf": [cat, dog]}
    assert definitions["House"]["additionalProperties"] == {"allOf": [cat, {"type": "null"}]}
    assert definitions["Kitten"] == definitions["Cat"]


def test_a_repeated_enum_refers_to_the_first_and_a_text_does_not() -> None:
    definitions = read(f"""{IMPORT}
        declare const LevelSchema: z.ZodEnum<{{ high: "high"; low: "low" }}>;
        declare const NameSchema: z.ZodString;
        declare const UseSchema: z.ZodObject<{{
          level: z.ZodEnum<{{ high: "high"; low: "low" }}>;
          name: z.ZodString;
        }}, z.core.$strip>;
    """)
    properties = {"level": {"$ref": "#/$defs/Level"}, "name": STRING}
    assert definitions["Use"]["properties"] == properties


@pytest.mark.parametrize(
    "line", ['import * as z from "zod";', 'import { z } from "zod";', 'import z from "zod/v3";']
)
def test_zod_may_be_imported_in_each_way(line: str) -> None:
    assert read(f"{line} const ASchema: z.ZodString;") == {"A": STRING}


def test_a_type_that_is_inferred_from_a_schema_is_that_schema() -> None:
    text = f"""{IMPORT}
        declare const CatSchema: z.ZodObject<{{ name: z.ZodString }}, z.core.$strip>;
        type Cat = z.infer<typeof CatSchema>;
        type Kitten = z.infer<typeof CatSchema>;
        type Json = string | Json[];
        declare const JsonSchema: z.ZodType<Json, Json>;
        interface Uses {{ cat: Cat }}
    """
    definitions = read(text)
    assert definitions.keys() == {"Cat", "Json", "Kitten", "Uses"}
    assert definitions["Uses"]["properties"]["cat"] == {"$ref": "#/$defs/Cat"}


WRONG: dict[str, str] = table("typescript_errors")["types of Zod"]


@pytest.mark.parametrize("type_", WRONG)
def test_a_type_of_zod_without_a_schema_is_refused_by_place(type_: str) -> None:
    with pytest.raises(TypeScriptError, match=r"^s\.ts:2:\d+: expected ") as raised:
        read(f"{DECLARE_IT}{type_};")
    assert raised.value.expected.startswith(WRONG[type_])


def test_types_of_zod_are_no_constants_and_without_zod_unknown_names() -> None:
    text = "const LIMIT = 5; declare const ASchema: z.ZodString; const B: string = 'b';"
    module = parse(f"{IMPORT}{text}".encode(), "s.ts")
    assert {name: each.value for name, each in module.constants.items()} == {"LIMIT": 5, "B": "b"}
    with pytest.raises(TypeScriptError, match="expected types that are declared in this file"):
        read("declare const ASchema: z.ZodString;")
