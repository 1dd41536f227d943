"""Type parameters, members of types and template literal types as JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpgen.schema import typescript
from mcpgen.schema.typescript import Fidelity

BOX = "export interface Box<T> { value: T }\n"
TEXT = {"type": "string"}

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


def document_of(text: str, folder: Path) -> Any:
    path = folder / "draft.ts"
    path.write_text(text)
    return typescript.document(typescript.read(path), "$defs", Fidelity.TYPESCRIPT)["$defs"]


@pytest.mark.parametrize("case", WRITTEN)
def test_a_type_is_what_the_language_says(case: str, tmp_path: Path) -> None:
    text, expected = WRITTEN[case]
    assert document_of(text, tmp_path)["A"]["properties"]["a"] == expected


def test_a_declaration_is_written_for_each_argument(tmp_path: Path) -> None:
    text = (
        f"{BOX}interface More<T> extends Box<T[]> {{ more: T }}\ntype A = {{ a: More<boolean> }};"
    )
    definitions = document_of(text, tmp_path)
    assert {*definitions} == {"A", "Box<boolean[]>", "More<boolean>"}
    more = definitions["More<boolean>"]["properties"]
    assert more == {
        "value": {"type": "array", "items": {"type": "boolean"}},
        "more": {"type": "boolean"},
    }


@pytest.mark.parametrize("use", USED)
def test_a_parameter_stands_for_its_argument(use: str, tmp_path: Path) -> None:
    body, argument, expected = USED[use]
    text = f"type Use<T> = {body};\ntype B = {{ b: string }};\ntype A = Use<{argument}>;"
    assert document_of(text, tmp_path)["A"] == expected


SPELLED = {
    "Box<string>": "Box<Box<string>>",
    '"a" | 5': "Box<a|5>",
    "Array<B>": "Box<Array<B>>",
    "{ c: string }": "Box<Object3_14>",
}


@pytest.mark.parametrize("argument", SPELLED)
def test_an_argument_is_a_part_of_the_name(argument: str, tmp_path: Path) -> None:
    text = f"{BOX}type B = {{ b: string }};\ntype A = Box<{argument}>;"
    assert SPELLED[argument] in document_of(text, tmp_path)


def test_a_declaration_may_hold_itself_with_its_arguments(tmp_path: Path) -> None:
    text = "interface Tree<T> { leaf: T; below: Tree<T>[] }\ntype A = { a: Tree<string> };"
    below = document_of(text, tmp_path)["Tree<string>"]["properties"]["below"]
    assert below == {"type": "array", "items": {"$ref": "#/$defs/Tree<string>"}}
