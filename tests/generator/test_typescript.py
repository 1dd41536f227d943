"""TypeScript that is read: each construct, and the JSON Schema that stands for it."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.schemas import array, obj
from generator.tables import table
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


TABLES: dict[str, Any] = table("typescript")
TYPES: dict[str, Any] = {
    **TABLES["types"],
    f"string{'[]' * 29}": reduce(lambda inner, _: array(inner), range(29), STRING),
}
"""Schemas of types, with those of `DECLARED` by their names."""


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_has_one_schema(type_: str) -> None:
    assert schema.canonical(member(type_)) == schema.canonical(TYPES[type_])


@pytest.mark.parametrize("text", TABLES["declarations"])
def test_a_declaration_is_a_definition(text: str) -> None:
    used = "interface Uses { cat: Cat; pet: Pet }\n"
    assert read(DECLARED + used + text)["A"] == TABLES["declarations"][text]


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
    assert [*read("interface B { b: 1; a: 1 }")["B"]["properties"]] == ["a", "b"]
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


DEFAULTS: dict[str, Any] = TABLES["defaults"]


@pytest.mark.parametrize("type_", DEFAULTS)
def test_a_default_is_a_value_of_the_type(type_: str) -> None:
    value, expected = DEFAULTS[type_]
    assert member(type_, f"/** @default {value} */") == expected


@pytest.mark.parametrize(
    ("type_", "value"),
    [("number", "many"), ("number", "9.99"), ("Level", "none"), ("Cat", "{}"), ("[string]", "[1]")],
)
def test_a_default_that_is_no_value_of_the_type_is_refused(type_: str, value: str) -> None:
    with pytest.raises(TypeScriptError, match="a default of it that is a value of its type"):
        member(type_, f"/** @default {value} */")


WHOLE: dict[str, Any] = TABLES["whole numbers"]
"""Members that no revision has, or that are whole elsewhere, with a value of each."""


@pytest.mark.parametrize("declared", WHOLE)
def test_a_number_of_another_schema_need_not_be_whole(declared: str, tmp_path: Path) -> None:
    text = f"{SMALL}export interface Item {{ {declared}; ttlMs: number }}\n"
    loaded = schema.load_file(save_text(tmp_path, text))
    item = Draft202012Validator({**loaded.definitions["Item"], "$defs": {**loaded.definitions}})
    name = declared.partition(":")[0]
    assert item.is_valid({name: WHOLE[declared], "ttlMs": 3})
    assert not item.is_valid({name: WHOLE[declared], "ttlMs": 3.5})


@pytest.mark.parametrize("type_", TABLES["tags"])
def test_tags_about_the_type_replace_or_widen_it(type_: str) -> None:
    comment, expected = TABLES["tags"][type_]
    assert member(type_, f"/** {comment}\n */") == expected


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


CONSTANTS: dict[str, Any] = TABLES["constants"]


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
