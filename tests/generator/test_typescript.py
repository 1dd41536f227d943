"""TypeScript that is read: each construct, and the JSON Schema that stands for it."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.typescript_text import DECLARED, SMALL, member, read, save_text, typescript_of
from mcpgen import schema
from mcpgen.cli import cli
from mcpgen.errors import SchemaError, TypeScriptError
from mcpgen.schema import facts
from mcpgen.schema.typescript import Fidelity

pytestmark = pytest.mark.costly

CAT, DOG, PET, LEVEL = ({"$ref": f"#/$defs/{name}"} for name in ("Cat", "Dog", "Pet", "Level"))
STRING, INTEGER, BOOLEAN = ({"type": name} for name in ("string", "integer", "boolean"))
ANY_OBJECT = {"additionalProperties": True, "properties": {}, "type": "object"}


def obj(required: str = "", **properties: Any) -> dict[str, Any]:
    """The schema of an object; the members named in `required`, by spaces, must be there."""
    schema: dict[str, Any] = {"properties": properties, "type": "object"}
    return {**schema, "required": required.split()} if required else schema


def array(items: Any) -> dict[str, Any]:
    return {"items": items, "type": "array"}


def pattern(text: str) -> dict[str, Any]:
    return {**STRING, "pattern": text}


ONE = {"const": 1, "type": "integer"}
PAIR = {"prefixItems": [STRING, INTEGER], "type": "array"}

TYPES = {
    "string": STRING,
    "number": INTEGER,
    "boolean": BOOLEAN,
    "null": {"type": "null"},
    "unknown": {},
    "any": {},
    "object": ANY_OBJECT,
    '"a"': {"const": "a", "type": "string"},
    "'it\\'s \\u00e9\\x21\\u{1F600}\\n'": {"const": "it's \u00e9!\U0001f600\n", "type": "string"},
    "'\\t\\0\\\nq\\q'": {"const": "\t\0qq", "type": "string"},
    "'\\u{FFFFFF}'": {"const": "\U0010ffff", "type": "string"},
    "'\ufffd'": {"const": "\ufffd", "type": "string"},
    "-7": {"const": -7, "type": "integer"},
    "999999999999999": {"const": 999999999999999, "type": "integer"},
    "1e14": {"const": 10**14, "type": "integer"},
    f"0.{'1' * 38}": {"const": 0.1111111111111111, "type": "number"},
    "1_000": {"const": 1000, "type": "integer"},
    "0.5": {"const": 0.5, "type": "number"},
    "true": {"const": True, "type": "boolean"},
    "typeof KIND": {"const": "kind", "type": "string"},
    "Cat": CAT,
    "Level": LEVEL,
    "Name": STRING,
    "string[]": array(STRING),
    "readonly string[]": array(STRING),
    f"string{'[]' * 29}": reduce(lambda inner, _: array(inner), range(29), STRING),
    "Array<Pet>": array(PET),
    "ReadonlyArray<Cat>": array(CAT),
    "Readonly<Cat>": CAT,
    "Date": {"format": "date-time", "type": "string"},
    "{}": obj(),
    "{ a: string; b?: number }": obj("a", a=STRING, b=INTEGER),
    "{ readonly a: string; 5: number }": obj("5 a", **{"5": INTEGER, "a": STRING}),
    "{ a?: never; b: undefined; c?: string }": obj(c=STRING),
    "{ [key: string]: unknown }": {"additionalProperties": {}, "type": "object"},
    "{ [key: string]: never }": {"additionalProperties": False, "type": "object"},
    "{ a: 1; [key: string]: Cat }": {**obj("a", a=ONE), "additionalProperties": CAT},
    "[string, number]": {**PAIR, "minItems": 2, "maxItems": 2},
    "[a: string, b?: number]": {**PAIR, "minItems": 1, "maxItems": 2},
    "[string, ...Cat[]]": {**array(CAT), "prefixItems": [STRING], "minItems": 1},
    "[...rest: string[]]": {**array(STRING), "minItems": 0},
    "[]": {"maxItems": 0, "minItems": 0, "type": "array"},
    "Cat | Dog": {"anyOf": [CAT, DOG]},
    "| Cat": CAT,
    "Pet | string": {"anyOf": [CAT, DOG, STRING]},
    "number | string | undefined": {"type": ["string", "integer"]},
    "string | number | boolean": {"type": ["string", "number", "boolean"]},
    "string | null": {"type": ["string", "null"]},
    "true | false": BOOLEAN,
    "never | string": STRING,
    "Cat | string[]": {"anyOf": [CAT, array(STRING)]},
    "Rest | string": {"anyOf": [{"$ref": "#/$defs/Rest"}, STRING]},
    '"b" | "a"': {"enum": ["a", "b"], "type": "string"},
    '"b" | typeof KIND': {"enum": ["b", "kind"], "type": "string"},
    "1 | 2": {"enum": [1, 2], "type": "number"},
    '"a" | 1 | true': {"enum": [1, "a", True]},
    '"a" | Level': {"enum": ["a", "high", "low"], "type": "string"},
    '"a" | boolean': {"enum": ["a", False, True]},
    '"a" | string': STRING,
    "1 | number | Name": {"type": ["string", "integer"]},
    "string | unknown": {},
    '(Cat | "a") | (Dog | "b")': {"anyOf": [CAT, DOG, {"enum": ["a", "b"], "type": "string"}]},
    "Cat & { age: number }": {"allOf": [CAT, obj("age", age=INTEGER)]},
    "string & Cat": {"allOf": [CAT, STRING]},
    "keyof Cat": {"enum": ["lives", "name"], "type": "string"},
    'Omit<Cat, "name" | "lives">': {"type": "object"},
    "Omit<Cat & Dog, keyof Cat>": obj("good", good=BOOLEAN),
    'Pick<Dog, "good">': obj("good", good=BOOLEAN),
    "Partial<Dog>": obj(name=STRING, good=BOOLEAN),
    "NonNullable<string | number | null>": {"type": ["string", "integer"]},
    "Required<Cat>": obj("lives name", name=STRING, lives=INTEGER),
    "Record<string, unknown>": {"type": "object"},
    "Record<string, Cat>": {"additionalProperties": CAT, "type": "object"},
    'Record<"x" | Name, number>': {"additionalProperties": INTEGER, "type": "object"},
    "Record<Level, Cat>": obj("high low", high=CAT, low=CAT),
    "/* why */ string /* how */": STRING,
    "Box<string>": {"$ref": "#/$defs/Box<string>"},
    "Two<string>": {"$ref": "#/$defs/Two<string,string[]>"},
    "Maybe<string>": {"$ref": "#/$defs/Maybe<string>"},
    'Cat["name"]': STRING,
    'Box<Cat>["value"]["name"]': STRING,
    'Cat["name" | "lives"]': {"type": ["string", "integer"]},
    'Cat["name"] | null': {"type": ["string", "null"]},
    "Names[number]": STRING,
    "`x.${string}`": pattern(r"^x\.[\s\S]*$"),
    "`a-${Level}`": pattern("^a-(low|high)$"),
    "`a-${true}-${5}`": pattern("^a-true-5$"),
    "`a-${boolean}`": pattern("^a-(true|false)$"),
    "`a-${`b${string}`}`": pattern(r"^a-b[\s\S]*$"),
    "`${'a|b'}.`": pattern(r"^(a\|b)\.$"),
    "`${number}px`": pattern(r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?px$"),
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_has_one_schema(type_: str) -> None:
    assert schema.canonical(member(type_)) == schema.canonical(TYPES[type_])


DECLARATIONS = {
    "interface A { a: string }": obj("a", a=STRING),
    "export declare interface A { a?: Name }": obj(a=STRING),
    "export default interface A { a?: Name }": obj(a=STRING),
    "interface A extends Cat {}": obj("name", name=STRING, lives=INTEGER),
    "interface A extends Cat, Dog { lives: string }": obj(
        "good lives name", name=STRING, lives=STRING, good=BOOLEAN
    ),
    'interface A extends Omit<Cat, "name">, Pick<Dog, "good"> {}': obj(
        "good", lives=INTEGER, good=BOOLEAN
    ),
    "interface A extends B { a: 1 } interface B extends Open {}"
    " interface Open { [key: string]: unknown }": obj("a", a=ONE),
    "interface A { a: string } interface A extends Dog { a: string; b: number }": obj(
        "a b good name", a=STRING, b=INTEGER, name=STRING, good=BOOLEAN
    ),
    "interface A { [k: string]: Cat } interface A { a: string }": {
        **obj("a", a=STRING),
        "additionalProperties": CAT,
    },
    "interface A { [k: string]: Cat } interface A { [k: string]: Cat }": {
        "additionalProperties": CAT,
        "type": "object",
    },
    "interface A { p: { b: string }; q: { a: string } | { b: string } }": obj(
        "p q",
        p=obj("b", b=STRING),
        q={"anyOf": [obj("b", b=STRING), obj("a", a=STRING)]},
    ),
    "interface A { next?: A }": obj(next={"$ref": "#/$defs/A"}),
    "type A = (A | string)[]": array({"anyOf": [{"$ref": "#/$defs/A"}, STRING]}),
    "export type A = Cat": {"$ref": "#/$defs/Cat"},
    'enum A { X = "x", Y = "y" }': {"enum": ["x", "y"], "type": "string"},
    "export const enum A { X, Y = 5, Z }": {"enum": [0, 5, 6], "type": "number"},
    'declare enum A { X = "x" }': {"const": "x", "type": "string"},
    "export declare function isA(value: unknown): value is A;\n"
    "export function isB(value: unknown): value is A { return true; }\n"
    "export type Guard = (value: unknown) => value is A; type A = { a: string };": obj(
        "a", a=STRING
    ),
    "type Use<T> = `x-${T}`; type A = Use<'b'>;": pattern("^x-b$"),
    "type Use<T> = [T, T?]; type A = Use<string>;": {
        "prefixItems": [STRING, STRING],
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
    },
    "type Use<T> = [boolean, ...T[]]; type A = Use<string>;": {
        **array(STRING),
        "prefixItems": [BOOLEAN],
        "minItems": 1,
    },
    "type Use<T> = { [key: string]: T }; type A = Use<string>;": {
        "additionalProperties": STRING,
        "type": "object",
    },
    "type Use<T> = keyof T; type A = Use<{ b: string }>;": {"const": "b", **STRING},
    "type Use<T> = T['b']; type A = Use<{ b: string }>;": STRING,
    "type Use<T> = Cat[T]; type A = Use<'name'>;": STRING,
}


@pytest.mark.parametrize("text", DECLARATIONS)
def test_a_declaration_is_a_definition(text: str) -> None:
    used = "interface Uses { cat: Cat; pet: Pet }\n"
    assert read(DECLARED + used + text)["A"] == DECLARATIONS[text]


def test_a_declaration_is_written_for_each_argument() -> None:
    text = """
        interface More<T> extends Box<T[]> { more: T; below: More<T>[] }
        type A = { a: More<boolean> };
    """
    definitions = read(DECLARED + text)
    assert "Box<boolean[]>" in definitions
    assert definitions["More<boolean>"]["properties"] == {
        "below": array({"$ref": "#/$defs/More<boolean>"}),
        "more": BOOLEAN,
        "value": array(BOOLEAN),
    }


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("Box<string>", "Box<Box<string>>"),
        ('"a" | 5', "Box<a|5>"),
        ("Array<Cat>", "Box<Array<Cat>>"),
        ("{ c: string }", "Box<Object12_14>"),
    ],
)
def test_an_argument_is_a_part_of_the_name(argument: str, name: str) -> None:
    assert name in read(f"{DECLARED}type A = Box<{argument}>;")


def test_an_alias_is_a_reference_if_the_type_is_referred_to_before_and_else_a_copy() -> None:
    text = "interface Cat { name: string } type A = Cat; interface Uses { a: A } type B = A;"
    definitions = read(text)
    assert definitions["A"] == definitions["Cat"]
    assert definitions["B"] == CAT
    text = "interface First { later: Later } type A = Cat; interface Later { cat: Cat }"
    assert read(f"{text} interface Cat {{ name: string }}")["A"] == CAT


def test_both_dialects_say_the_same() -> None:
    text = f"{SMALL} interface More {{ pair: [string, Result]; list: [string, ...Result[]] }}"
    definitions = read(text, "definitions")
    result = {"$ref": "#/definitions/Result"}
    assert definitions["ClientRequest"] == definitions["PingRequest"]
    assert definitions["More"]["properties"] == {
        "list": {"additionalItems": result, "items": [STRING], "minItems": 1, "type": "array"},
        "pair": {"items": [STRING, result], "maxItems": 2, "minItems": 2, "type": "array"},
    }


def test_losses_of_the_published_json_are_for_recognition_only() -> None:
    assert member("0.5", fidelity=Fidelity.PUBLISHED) == {"const": 0.5, "type": "integer"}


DEFAULTS = {
    "unknown": ('{"a": [1, null]}', {"default": {"a": [1, None]}}),
    "boolean": ("true", {"default": True, "type": "boolean"}),
    "Level": ("low", {"default": "low", "$ref": "#/$defs/Level"}),
    "number": ("3", {"default": 3, "type": "integer"}),
    "string | null": ("null", {"default": None, "type": ["string", "null"]}),
}


def read_default(type_: str, value: str) -> Any:
    text = f"{DECLARED}interface It {{\n /** @default {value} */\n it?: {type_} }}"
    return read(text)["It"]["properties"]["it"]


@pytest.mark.parametrize("type_", DEFAULTS)
def test_a_default_is_a_value_of_the_type(type_: str) -> None:
    value, expected = DEFAULTS[type_]
    assert read_default(type_, value) == expected


@pytest.mark.parametrize(
    ("type_", "value"),
    [("number", "many"), ("number", "9.99"), ("Level", "none"), ("Cat", "{}"), ("[string]", "[1]")],
)
def test_a_default_that_is_no_value_of_the_type_is_refused(type_: str, value: str) -> None:
    with pytest.raises(TypeScriptError, match="a default of it that is a value of its type"):
        read_default(type_, value)


WHOLE = {
    "price: number": 9.99,
    "prices: number[]": [9.99],
    "total: number | null": 9.5,
    "pair: [{ ttlMs: number }, number]": [{"ttlMs": 3}, 9.5],
}
"""Members that no revision has, or that are whole elsewhere, with a value of each."""


@pytest.mark.parametrize("declared", WHOLE)
def test_a_number_of_another_schema_need_not_be_whole(declared: str, tmp_path: Path) -> None:
    text = f"{SMALL}export interface Item {{ {declared}; ttlMs: number }}\n"
    loaded = schema.load_file(save_text(tmp_path, text))
    item = Draft202012Validator({**loaded.definitions["Item"], "$defs": {**loaded.definitions}})
    name = declared.partition(":")[0]
    assert item.is_valid({name: WHOLE[declared], "ttlMs": 3})
    assert not item.is_valid({name: WHOLE[declared], "ttlMs": 3.5})


TYPE_TAGS = {
    "number": ("@TJS-type number\n * @minimum 0", {"minimum": 0, "type": "number"}),
    "string": ("@asType integer", {"type": "integer"}),
    "1 | 2": ("@TJS-type integer\n * @minimum 1", {"minimum": 1, "type": "integer"}),
    "string | number": ("@nullable", {"type": ["string", "integer", "null"]}),
    "Cat": ("@nullable", {"anyOf": [CAT, {"type": "null"}]}),
    "Cat | Dog": ("@nullable", {"anyOf": [CAT, DOG, {"type": "null"}]}),
    "Cat | null": ("@nullable", {"anyOf": [CAT, {"type": "null"}]}),
    "string | null": ("@nullable", {"type": ["string", "null"]}),
    "unknown": ("@nullable", {}),
    "boolean": ("Text.\n * @nullable", {"type": ["boolean", "null"]}),
    '"a" | "b"': (
        "@nullable",
        {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]},
    ),
}


@pytest.mark.parametrize("type_", TYPE_TAGS)
def test_tags_about_the_type_replace_or_widen_it(type_: str) -> None:
    comment, expected = TYPE_TAGS[type_]
    text = f"{DECLARED}interface It {{\n /** {comment}\n */ it: {type_} }}"
    assert read(text)["It"]["properties"]["it"] == expected


def test_a_tag_leaves_a_member_out() -> None:
    assert read("interface It { /** @ignore */ a: string; b: string }")["It"] == obj("b", b=STRING)


def test_a_tag_on_a_declaration_sets_a_keyword_of_its_definition() -> None:
    text = "/** Text.\n * @minLength 1 */\nexport type Id = string; /** @format uri */ type U = Id"
    assert read(text) == {"Id": {"minLength": 1, **STRING}, "U": {"format": "uri", **STRING}}


def test_the_last_comment_before_a_declaration_describes_it(tmp_path: Path) -> None:
    text = """
        /** Another. */
        /** A tool. */
        // no documentation
        /**/
        export interface Tool {
          /** The name. */
          /* no documentation */
          name: string; /** The title. */
          title: string;
          other: string; /** Nothing follows. */
        }
    """
    loaded = schema.load_file(save_text(tmp_path, SMALL + text))
    below = {key: text for key, text in loaded.prose.items() if key.startswith("/$defs/Tool")}
    assert below == {
        "/$defs/Tool": "A tool.",
        "/$defs/Tool/properties/name": "The name.",
        "/$defs/Tool/properties/title": "The title.",
    }


CONSTANTS = {
    'export const A = "x";': "x",
    'declare const A: "x";': "x",
    "const A = true, B = 2;": True,
    "const A = `x`;": "x",
    'const A = "x" as const;': "x",
    "const A: number = 5;": 5,
    "const A: string[];": None,
    "const A = `${1}`;": None,
    "const A = { b: 1 };": None,
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants_with_a_plain_value_are_kept(tmp_path: Path, text: str) -> None:
    constants = schema.load_file(save_text(tmp_path, SMALL + text)).constants
    assert constants["JSONRPC_VERSION"] == "2.0"
    expected = CONSTANTS[text]
    assert (constants.get("A"), type(constants.get("A"))) == (expected, type(expected))


def test_a_package_is_generated_and_checked_from_typescript(tmp_path: Path) -> None:
    name = schema.revisions()[0].name
    text = typescript_of(schema.load(name).definitions)
    path = save_text(tmp_path, text, f"{name}/schema.ts")
    words = ["--schema", str(path), "-o", str(tmp_path / "package")]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert f"taken as revision {name}" in result.output
    record = json.loads((tmp_path / "package" / "mcpgen.json").read_text())
    assert record["revisions"][name]["structure"] == schema.read_file(path).digest
    words = ["check", str(tmp_path / "package"), "--schema", str(path)]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    path.write_text(f"{text}\nexport interface More {{}}", encoding="utf-8")
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 1
    assert f"the schema changed: {name}: the structure of its messages" in result.output


@pytest.mark.parametrize("name", ["spec.types.d.ts", "index.d.mts", "index.d.cts"])
def test_the_name_of_a_file_says_that_it_is_typescript(tmp_path: Path, name: str) -> None:
    assert "PingRequest" in schema.load_file(save_text(tmp_path, SMALL, name)).definitions


def test_imports_are_allowed_and_what_they_name_is_not() -> None:
    read('import type { Tool } from "./tool.js"; export type A = string; export { A as B };')
    read('import fs = require("fs"); import {} from "zod"; import "zod"; type A = string;')
    with pytest.raises(SchemaError, match=r'^s\.ts:1:49: expected a type that this .*got "Tool"$'):
        read('import type { Tool } from "./tool.js"; type A = Tool;')


def test_error_codes_are_those_of_the_constants(tmp_path: Path) -> None:
    rows = [row.name for row in schema.revisions()]
    text = "const HEADER_MISMATCH = -32050; const URL_ELICITATION_REQUIRED = -32051;"
    loaded = schema.load_file(save_text(tmp_path, SMALL + text))
    before = facts.load(rows[-1])
    after = facts.with_constants(before, loaded).errors
    assert after.header_mismatch == -32050
    assert after.url_elicitation_required == -32051
    assert after.unsupported_revision == before.errors.unsupported_revision
    assert before.errors.defined is not None
    assert before.errors.header_mismatch is not None
    kept = {*before.errors.defined} - {before.errors.header_mismatch}
    assert after.defined == tuple(sorted({*kept, -32050, -32051}))
    assert facts.with_constants(before, schema.load(rows[-1])) == before


def test_a_constant_that_is_no_error_code_is_refused(tmp_path: Path) -> None:
    loaded = schema.load_file(save_text(tmp_path, f'{SMALL}const HEADER_MISMATCH = "x";'))
    with pytest.raises(SchemaError, match='an integer as the error code HEADER_MISMATCH, got "x"'):
        facts.with_constants(facts.load(schema.revisions()[-1].name), loaded)
