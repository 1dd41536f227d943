"""Type parameters, members of types and template literal types as JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import TEXT
from generator.typescript_text import read

BOX = "export interface Box<T> { value: T }\n"

WRITTEN: dict[str, tuple[str, Any]] = {
    "a type argument": (f"{BOX}type A = {{ a: Box<string> }};", {"$ref": "#/$defs/Box<string>"}),
    "a default": (
        "type Pair<A, B = A[]> = { a: A; b: B };\ntype A = { a: Pair<string> };",
        {"$ref": "#/$defs/Pair<string,string[]>"},
    ),
    "an alias with an argument": (
        "type Maybe<T> = T | null;\ntype A = { a: Maybe<string> };",
        {"$ref": "#/$defs/Maybe<string>"},
    ),
    "a member": ('type B = { b: string };\ntype A = { a: B["b"] };', TEXT),
    "a member of a member": ('type B = { b: { c: string } };\ntype A = { a: B["b"]["c"] };', TEXT),
    "members": (
        'type B = { b: string; c: boolean };\ntype A = { a: B["b" | "c"] };',
        {"type": ["string", "boolean"]},
    ),
    "items": ("type B = string[];\ntype A = { a: B[number] };", TEXT),
    "a template": ("type A = { a: `x.${string}` };", {**TEXT, "pattern": r"^x\.[\s\S]*$"}),
    "a template of choices": (
        'type B = "b" | "c";\ntype A = { a: `a-${B}` };',
        {**TEXT, "pattern": "^a-(b|c)$"},
    ),
    "a template of one value": (
        "type A = { a: `a-${true}-${5}` };",
        {**TEXT, "pattern": "^a-true-5$"},
    ),
    "a template of a flag": (
        "type A = { a: `a-${boolean}` };",
        {**TEXT, "pattern": "^a-(true|false)$"},
    ),
    "a template in a template": (
        "type A = { a: `a-${`b${string}`}` };",
        {**TEXT, "pattern": r"^a-b[\s\S]*$"},
    ),
    "a text with a bar": ("type A = { a: `${'a|b'}.` };", {**TEXT, "pattern": r"^(a\|b)\.$"}),
    "a member among alternatives": (
        'type B = { b: string };\ntype A = { a: B["b"] | null };',
        {"type": ["string", "null"]},
    ),
    "a template of numbers": (
        "type A = { a: `${number}px` };",
        {**TEXT, "pattern": r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?px$"},
    ),
    "functions beside": (
        (
            "export function isA(value: unknown): value is A { return true; }\n"
            "export declare function isB(value: unknown): value is A;\n"
            "export type Guard = (value: unknown) => value is A;\n"
            "type A = { a: string };"
        ),
        TEXT,
    ),
}


USED: dict[str, tuple[str, str, Any]] = {
    "in a template": ("`x-${T}`", '"b"', {**TEXT, "pattern": "^x-b$"}),
    "in a tuple": (
        "[T, T?]",
        "string",
        {"prefixItems": [TEXT, TEXT], "minItems": 1, "maxItems": 2, "type": "array"},
    ),
    "in the rest of a tuple": (
        "[boolean, ...T[]]",
        "string",
        {"prefixItems": [{"type": "boolean"}], "items": TEXT, "minItems": 1, "type": "array"},
    ),
    "in the values of a map": (
        "{ [key: string]: T }",
        "string",
        {"additionalProperties": TEXT, "type": "object"},
    ),
    "by its keys": ("keyof T", "{ b: string }", {"const": "b", **TEXT}),
    "by a member": ('T["b"]', "{ b: string }", TEXT),
    "as a key": ("B[T]", '"b"', TEXT),
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_a_type_is_what_the_language_says(text: str, expected: Any) -> None:
    assert read(text)["A"]["properties"]["a"] == expected


def test_a_declaration_is_written_for_each_argument() -> None:
    text = (
        f"{BOX}interface More<T> extends Box<T[]> {{ more: T }}\ntype A = {{ a: More<boolean> }};"
    )
    definitions = read(text)
    assert {*definitions} == {"A", "Box<boolean[]>", "More<boolean>"}
    more = definitions["More<boolean>"]["properties"]
    assert more == {
        "value": {"type": "array", "items": {"type": "boolean"}},
        "more": {"type": "boolean"},
    }


@pytest.mark.parametrize(("body", "argument", "expected"), USED.values(), ids=USED)
def test_a_parameter_stands_for_its_argument(body: str, argument: str, expected: Any) -> None:
    text = f"type Use<T> = {body};\ntype B = {{ b: string }};\ntype A = Use<{argument}>;"
    assert read(text)["A"] == expected


SPELLED = {
    "Box<string>": "Box<Box<string>>",
    '"a" | 5': "Box<a|5>",
    "Array<B>": "Box<Array<B>>",
    "{ c: string }": "Box<Object3_14>",
}


@pytest.mark.parametrize("argument", SPELLED)
def test_an_argument_is_a_part_of_the_name(argument: str) -> None:
    text = f"{BOX}type B = {{ b: string }};\ntype A = Box<{argument}>;"
    assert SPELLED[argument] in read(text)


def test_a_declaration_may_hold_itself_with_its_arguments() -> None:
    text = "interface Tree<T> { leaf: T; below: Tree<T>[] }\ntype A = { a: Tree<string> };"
    below = read(text)["Tree<string>"]["properties"]["below"]
    assert below == {"type": "array", "items": {"$ref": "#/$defs/Tree<string>"}}
