"""TypeScript that is refused: one error with line and column, and no text of it that acts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from generator.command_line import run
from generator.typescript_text import DECLARED, SMALL, member, read, save_text
from mcpgen import schema
from mcpgen.cli import cli
from mcpgen.errors import SchemaError, TypeScriptError
from mcpgen.schema.typescript import Fidelity, document, scope
from mcpgen.schema.typescript.parse import MAX_BYTES, MAX_DEPTH, parse

KINDS = "a name, a literal, an object, an array, a tuple, a union or an intersection"

TEXTS = {
    "no TypeScript": ("{", "1:1: expected TypeScript, got "),
    "a typing error": ("interface A {\n  a strin;\n}", "2:3: expected TypeScript, got"),
    "a missing bracket": ("type A = [string;", "1:17: expected ']', got "),
    "nothing": ("", "1:1: expected types that are declared in this file, got"),
    "constants only": ("const A = 1;", "1:1: expected types that are declared in this file, got"),
    "a function": ("declare function f(): void;", "1:1: expected types that are declared in this"),
    "a class": ("export class A {}", "1:8: expected an interface, a type, an enum or a constant"),
    "a namespace": ("namespace N {}", "1:1: expected an interface, a type, an enum or a const"),
    "a module": ('declare module "m" {}', "1:9: expected an interface, a type, an enum or a const"),
    "a statement": ("f();", "1:1: expected an interface, a type, an enum or a constant, got"),
    "an export from elsewhere": (
        'type A = string;\nexport * from "./other";',
        '2:1: expected declarations in this file, none exported from elsewhere, got "export *',
    ),
    "names from elsewhere": (
        'export { A } from "./other";',
        "1:1: expected declarations in this file, none exported from elsewhere, got",
    ),
    "an exported value": ("export default 5;", "1:1: expected declarations in this file, none"),
    "a type twice": ("type A = string;\ntype A = number;", "2:1: expected one declaration of each"),
    "a constant twice": (
        "const A = 1;\nconst A = 2;",
        "2:7: expected one declaration of each name",
    ),
    "a type with parameters twice": (
        "type A<T> = T;\ntype A<T> = T;",
        '2:1: expected one declaration of each name, got "A"',
    ),
    "too many type arguments": (
        "type A<T> = T;\ntype B = A<string, string>;",
        "2:10: expected A with 1 type arguments, got 2",
    ),
    "an enum of flags": (
        "enum A { X = true }",
        "1:10: expected an enum member with a string or a whole number, got",
    ),
    "an enum of fractions": (
        "enum A { X = 1.5 }",
        "1:10: expected an enum member with a string or a whole number, got",
    ),
    "a type and an interface": (
        "type A = string; interface A {}",
        "1:18: expected one declaration",
    ),
    "other members": (
        "interface A { a: string }\ninterface A { a: number }",
        '2:1: expected the same member in each declaration, got "a"',
    ),
    "other indices": (
        "interface A { [k: string]: string }\ninterface A { [k: string]: number }",
        '2:1: expected the same index signature in each declaration, got "A"',
    ),
    "a member twice": (
        "interface A { a: string;\n a: string }",
        '2:2: expected each member once, got "a"',
    ),
    "a member without a value": (
        "interface A { a: never }",
        '1:15: expected a type with values for the required a, or a?: never, got "never"',
    ),
    "a method": ("interface A { f(): void }", "1:15: expected a member with a type, or an index"),
    "a call": ("interface A { (): void }", "1:15: expected a member with a type, or an index"),
    "a constructor": ("interface A { new (): A }", "1:15: expected a member with a type, or an"),
    "no type": ("interface A { a }", '1:15: expected a member with a type, got "a"'),
    "a computed name": (
        "interface A { [Symbol.x]: 1 }",
        "1:15: expected a member with a name, got",
    ),
    "two indices": (
        "interface A { [a: string]: 1; [b: string]: 1 }",
        "1:31: expected one index signature, got",
    ),
    "a mapped type": (
        "type A = { [K in B]: string }",
        "1:12: expected an index signature such as [key: string]: unknown, got",
    ),
    "an index by number": (
        "interface A { [n: number]: string }",
        '1:19: expected string as the type of the keys, got "number"',
    ),
    "type arguments of a plain type": (
        "interface A {}\ntype B = A<string>;",
        "2:10: expected A with 0",
    ),
    "too few type arguments": ("type A<T> = T;\ntype B = A;", "2:10: expected A with 1 type arg"),
    "a type parameter that grows": (
        "type A<T> = { a: A<T[]> };\ntype B = A<string>;",
        "1:18: expected at most 500 types with arguments, 40 in a row, got",
    ),
    "a template of objects": (
        "interface A { a: string }\ntype B = `${A}`;",
        '2:13: expected a text or a number, got "A"',
    ),
    "an unknown member": (
        "interface A { a: string }\ntype B = A['b'];",
        "2:10: expected names of members",
    ),
    "an enum of expressions": (
        "enum A { X = f() }",
        "1:10: expected an enum member with a string or a whole number, got",
    ),
    "an enum after a string": ('enum A { X = "x", Y }', "1:19: expected an enum member with a str"),
    "an enum without members": ("enum A {}", "1:1: expected an enum with members, got"),
    "itself": ("type A = A;", "1:1: expected a declaration that does not depend on itself, got "),
    "a circle": ("type A = B;\ntype B = C;\ntype C = B;", "2:1: expected a declaration that does"),
    "a union of itself": ("type A = string | A;", "1:1: expected a declaration that does not dep"),
    "a circle of interfaces": (
        "interface A extends B {}\ninterface B extends A {}",
        '1:1: expected a declaration that does not depend on itself, got "A"',
    ),
    "a circle of keys": (
        "type A = keyof Pick<B, A>;\ninterface B { b: string }",
        "1:1: expected a declaration that does not depend on itself",
    ),
    "a position after others": (
        "/* \u00e9 \U0001f600 */ type A = Missing;",
        "1:20: expected a type that this file declares, or one of Array, Date, NonNullable,",
    ),
    "a position counted in characters": (
        f"/* \u00e9{' ' * 1974} */ type A = Missing;",
        "1:1992: expected a type that this file declares, or one of Array,",
    ),
    "a position counted in bytes": (
        f"/* \u00e9{' ' * 1975} */ type A = Missing;",
        "1:1994: expected a type that this file declares, or one of Array,",
    ),
    "a position in a later line": (
        "interface A {\r\n  b: {\r\n    c: Missing;\r\n  };\r\n}",
        "3:8: expected a type that this file declares, or one of Array, Date, NonNullable, Omit,",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_unreadable_texts_are_refused_with_their_place(case: str) -> None:
    text, expected = TEXTS[case]
    with pytest.raises(TypeScriptError) as raised:
        read(text)
    error = raised.value
    assert str(error).startswith(f"s.ts:{expected}")
    assert str(error).startswith(f"s.ts:{error.line}:{error.column}: expected {error.expected}, ")
    assert "\n" not in str(error)


def test_many_types_with_arguments_are_refused() -> None:
    members = " ".join(f"m{at}: A<{at}>;" for at in range(500))
    assert len(read(f"type A<T> = {{ a: T }};\ninterface B {{ {members} }}")) == 501
    members += "m500: A<500>;"
    with pytest.raises(TypeScriptError, match="expected at most 500 types with arguments"):
        read(f"type A<T> = {{ a: T }};\ninterface B {{ {members} }}")


TYPES = {
    "string extends Name ? Cat : Dog": KINDS,
    "(a: string) => void": KINDS,
    "new () => Cat": KINDS,
    "symbol": KINDS,
    "void": KINDS,
    "bigint": "a type that this file declares, or",
    "unique symbol": KINDS,
    "this": KINDS,
    "import('./x').A": KINDS,
    "typeof Cat": "the name of a constant that is a string, a number or a boolean",
    "typeof MISSING": "the name of a constant that is a string, a number or a boolean",
    "typeof KIND.length": "typeof with the name of a constant",
    "Missing": "a type that this file declares, or one of Array, ",
    "Map<string, Cat>": "a type that this file declares, or one of Array, ",
    "N.Cat": "a type that this file declares, or one of Array, ",
    "Cat<string>": "Cat with 0 type arguments",
    "Omit<Cat>": "Omit with 2 type arguments",
    "Array": "Array with 1 type argument",
    'Omit<Name, "a">': "an object with members",
    'Pick<Pet, "name">': "an object with members",
    'Pick<Cat, "age">': "names of members of Cat",
    "Omit<Cat, string>": "names of members as strings",
    "Omit<Cat, 5>": "names of members as strings",
    "Record<number, Cat>": "names of members as strings",
    "keyof Name": "an object with members",
    'Names["length"]': "an object with members",
    "{ number: string }[number]": "names of members as strings",
    "`${'x' | null}`": "a text or a number",
    "never[]": "a type that JSON has",
    "never | undefined": "a union of types that JSON has",
    "[...string]": "an array as the rest of a tuple",
    "[...string[], Cat]": "nothing after the rest of a tuple",
    "'\\ud800'": "a string of whole characters",
    "1e999": "a string, a number that is not too large, true, false or null",
    "99999999999999999999": "a string, a number that is not too large, true, false or null",
    "0x10": "a string, a number that is not too large, true, false or null",
    "1e15": "a string, a number that is not too large, true, false or null",
    "1000000000000000": "a string, a number that is not too large, true, false or null",
    f"0.{'1' * 39}": "a string, a number that is not too large, true, false or null",
    "10n": "a string, a number that is not too large, true, false or null",
    "[" * 61 + "]" * 61: "types nested at most 60 deep",
    "string" + "[]" * 30: "at most 30 levels of objects, arrays and unions",
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_without_a_schema_is_refused(type_: str) -> None:
    with pytest.raises(TypeScriptError, match=r"^s\.ts:\d+:\d+: expected ") as raised:
        member(type_)
    assert raised.value.expected.startswith(TYPES[type_])


TAGS = {
    "@minimum": "a number after @minimum, got ",
    "@maximum many": "a number after @maximum, got ",
    "@minimum 1e999": "a number after @minimum, got ",
    "@multipleOf \u0663": "a number after @multipleOf, got ",
    "@minLength -1": "a count after @minLength, got ",
    "@maxItems \u0663": "a count after @maxItems, got ",
    "@uniqueItems perhaps": "true or false after @uniqueItems, got ",
    "@format": "a text of at most 2000 characters after @format, got ",
    "@pattern " + "x" * 2001: "a text of at most 2000 characters after @pattern, got ",
    "@TJS-type date": "one of array, boolean, integer, null, number, object, string after @type",
    "@x\n" * 1001: "at most 1000 tags in a comment, got ",
}


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag[:20])
def test_a_tag_with_a_wrong_value_is_refused(tag: str) -> None:
    with pytest.raises(TypeScriptError) as raised:
        read(f"interface It {{\n  /** {tag}\n */ it: string }}")
    assert str(raised.value).startswith(f"s.ts:2:3: expected {TAGS[tag]}")
    assert len(str(raised.value)) < 300


def chain(count: int, link: str) -> str:
    """Declarations that each depend on the next."""
    return "".join(link.format(at, at + 1) for at in range(count)) + f"interface I{count} {{}}"


LARGE = {
    "inheritance in a long row": (
        chain(200, "interface I{} extends I{} {{}}\n"),
        "types and declarations that depend on at most 100 in a row",
    ),
    "aliases in a long row": (
        chain(200, "type I{} = I{};\n"),
        "types and declarations that depend on at most 100 in a row",
    ),
    "arrays of arrays by alias": (
        chain(200, "type I{} = I{}[];\n"),
        "at most 30 levels of objects, arrays and unions",
    ),
    "tuples that double": (
        chain(14, "type I{0} = [I{1}, I{1}];\n"),
        "a schema of at most 50000 members and types, after inheritance",
    ),
    "unions that double": (
        chain(16, "type I{0} = I{1} | I{1};\n"),
        "a schema of at most 50000 members and types, after inheritance",
    ),
    "members that many inherit": (
        f"interface A {{ {''.join(f'a{at}: string; ' for at in range(300))} }}"
        + "".join(f"interface B{at} extends A {{}}\n" for at in range(300)),
        "a schema of at most 50000 members and types, after inheritance",
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_small_text_cannot_become_a_large_schema(case: str) -> None:
    text, expected = LARGE[case]
    with pytest.raises(TypeScriptError) as raised:
        read(text)
    assert raised.value.expected == expected


ROWS = {
    "inheritance": ("interface I{} extends I{} {{}}\n", "", 49),
    "aliases": ("type I{} = I{};\n", "", 50),
    "arguments": ("type I{}<T> = {{ a: I{}<T> }};\n", "type I{}<T> = T; type A = I0<string>;", 39),
}
"""By kind of dependency: a link, the end of the chain, and how many links it may have."""


@pytest.mark.parametrize("kind", ROWS)
def test_declarations_depend_on_one_another_to_the_limit(kind: str) -> None:
    link, end, most = ROWS[kind]
    end = end or "interface I{} {{}}"
    for count in (most, most + 1):
        beside = "type S<T> = { b: T }; " + "".join(f"type S{at} = S<{at}>; " for at in range(9))
        text = "".join(link.format(at, at + 1) for at in range(count)) + end.format(count)
        text = beside + text
        if count == most:
            assert "I0" in "".join(read(text))
        else:
            with pytest.raises(TypeScriptError, match="in a row, got"):
                read(text)


def test_an_inherited_declaration_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "interface A { a: string; b: string } interface B extends A {} interface C extends A {}"
    monkeypatch.setattr(scope, "MAX_PARTS", 12)
    read(text)
    monkeypatch.setattr(scope, "MAX_PARTS", 11)
    with pytest.raises(TypeScriptError):
        read(text)


def test_each_member_and_each_type_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "MAX_PARTS", 20)
    members = [f"m{at}: string;" for at in range(11)]
    read(f"interface A {{ {' '.join(members[:10])} }}")
    tagged = "/** @asType integer */ tagged: string;"
    monkeypatch.setattr(scope, "MAX_PARTS", 22)
    read(f"interface A {{ {' '.join(members[:10])} {tagged} }}")
    monkeypatch.setattr(scope, "MAX_PARTS", 21)
    with pytest.raises(TypeScriptError):
        read(f"interface A {{ {' '.join(members[:10])} {tagged} }}")
    with pytest.raises(TypeScriptError):
        read(f"interface A {{ {' '.join(members)} }}")


NESTED = {
    "array": ("", "[]", 1),
    "tuple": ("[", "]", 1),
    "optional item": ("[", "?]", 1),
    "rest of a tuple": ("[...", "[]]", 2),
    "member": ("{ a: ", " }", 1),
    "index": ("{ [k: string]: ", " }", 1),
    "argument": ("Array<", ">", 1),
    "lookup": ("", "['a']", 1),
    "keyof": ("keyof ", "", 1),
    "template": ("`${", "}`", 1),
    "union": ("(null | ", ")", 2),
    "intersection": ("({} & ", ")", 2),
}
"""By kind of type: the text before and after another one, and the levels that this adds."""


PLACES = {
    "an alias": ("type A = {};", 60),
    "a default": ("type A<T = {}> = T; type B = string;", 60),
    "a parent": ("interface A extends {} {{}}", 60),
    "a member": ("interface A {{ a: {} }}", 59),
    "a type of Zod": ('import z from "zod"; const A: z.ZodType<{}>;', 59),
}
"""By place of a type: a text around it, and how deep it may nest there."""


@pytest.mark.parametrize("place", PLACES)
def test_the_nesting_of_types_counts_from_their_place(place: str) -> None:
    around, most = PLACES[place]
    parse(around.format("Array<" * most + "string" + ">" * most).encode(), "s.ts")
    with pytest.raises(TypeScriptError, match="types nested at most"):
        parse(around.format("Array<" * (most + 1) + "string" + ">" * (most + 1)).encode(), "s.ts")


@pytest.mark.parametrize("kind", NESTED)
def test_types_nest_to_the_limit_and_no_deeper(kind: str) -> None:
    before, after, levels = NESTED[kind]
    times = MAX_DEPTH // levels
    parse(f"type A = {before * times}string{after * times};".encode(), "s.ts")
    times += 1
    with pytest.raises(TypeScriptError) as raised:
        parse(f"type A = {before * times}string{after * times};".encode(), "s.ts")
    assert raised.value.expected == f"types nested at most {MAX_DEPTH} deep"


def test_a_long_union_is_not_deep() -> None:
    names = [f'"n{at}"' for at in range(5000)]
    assert len(member(" | ".join(names))["enum"]) == 5000


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "schema.ts"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    with pytest.raises(TypeScriptError) as raised:
        schema.load_file(path)
    assert str(raised.value) == (
        f"{path}:1:1: expected TypeScript text of at most {MAX_BYTES} bytes, got more"
    )


def test_text_that_is_not_utf_8_is_refused_with_its_place() -> None:
    with pytest.raises(TypeScriptError, match=r"^s\.ts:2:11: expected UTF-8 text, got invalid "):
        parse(b"type A = string;\ntype B = '\xff';", "s.ts")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"nothing\.ts#: expected a readable file, got No such"):
        schema.load_file(tmp_path / "nothing.ts")


def test_typescript_that_is_not_of_the_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"ts#/\$defs: expected ClientRequest, a union that "):
        schema.load_file(save_text(tmp_path, "interface Cat { name: string }"))


def test_the_command_line_shows_the_place_and_writes_nothing(tmp_path: Path) -> None:
    path = save_text(tmp_path, f"{SMALL}interface Tool {{ run(): void }}")
    words = ["--schema", str(path), "-o", str(tmp_path / "package")]
    result = CliRunner().invoke(cli, words)
    assert isinstance(result.exception, TypeScriptError)
    line = SMALL.count("\n") + 1
    assert str(result.exception).startswith(f"{path}:{line}:18: expected a member with a type")
    assert not (tmp_path / "package").exists()


NUL = "\0"
FOREIGN = "\"\"\"\\'); __import__('os').abort() #{{ x }} */ ${require('./x')} \x1b[2J\u202e\x00"


@pytest.mark.parametrize("length", [1, 5_000])
def test_an_error_shows_foreign_text_escaped_and_cut(length: int) -> None:
    texts = (
        f"type A = string; {FOREIGN * length}",
        f"/** @minimum {FOREIGN * length}",
        f"/** @minimum {(FOREIGN * length).replace('*/', '')} */ type A = string;",
        f"type {'A' * length} = {'B' * length};",
        f"type A = typeof {'B' * length};",
        f"type A = Pick<B, '{'C' * length}'>; interface B {{}}",
    )
    for text in texts:
        with pytest.raises(TypeScriptError) as raised:
            parse_and_write(text[:MAX_BYTES])
        shown = str(raised.value)
        assert shown.isascii()
        assert shown.isprintable()
        assert len(shown) < 400


def parse_and_write(text: str) -> None:
    document(parse(text.encode("utf-8", "replace"), "s.ts"), "$defs", Fidelity.TYPESCRIPT)


def test_foreign_text_stays_text() -> None:
    literal = FOREIGN.replace("\\", "\\\\").replace("'", "\\'").replace(NUL, "\\0")
    text = (
        f"/** {FOREIGN.replace('*/', '').rstrip(NUL)} */ interface A {{ '{literal}': '{literal}' }}"
        f"const B = '{literal}';"
    )
    module = parse(text.encode(), "s.ts")
    definition = document(module, "$defs", Fidelity.TYPESCRIPT)["$defs"]["A"]
    assert definition["properties"] == {FOREIGN: {"const": FOREIGN, "type": "string"}}
    assert "abort" in definition["description"]
    assert module.constants["B"].value == FOREIGN


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_string_comes_out_as_it_is_written(text: str) -> None:
    escaped = "".join(f"\\u{{{ord(character):x}}}" for character in text)
    assert member(f'"{escaped}"') == {"const": text, "type": "string"}


PIECES = ["interface ", "A", " extends ", "{", "}", "[", "]", "(", ")", "<", ">", ": ", "; ", "| "]
PIECES += [
    "& ",
    "type ",
    "B = ",
    '"a"',
    "1",
    "?",
    "...",
    "typeof ",
    "keyof ",
    "enum ",
    "const ",
    "\n",
]
PIECES += [
    "/** @minimum 1 */",
    "export ",
    "Omit<A, B>",
    "Record",
    "=>",
    "`",
    "'",
    "string",
    "\u00e9",
]


def place_of_error(text: str) -> tuple[int, int] | None:
    """Line and column of the error that a text gives; `None` if it is read."""
    try:
        parse_and_write(text)
    except TypeScriptError as error:
        return error.line, error.column
    return None


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    whole = f"{DECLARED}{text}"
    place = place_of_error(whole)
    assert place is None or (0, 0) < place <= (whole.count("\n") + 1, len(whole) + 1)


@given(st.integers(0, len(SMALL)), st.integers(0, 30), st.sampled_from(PIECES))
def test_any_damage_is_read_or_refused(at: int, removed: int, piece: str) -> None:
    whole = SMALL[:at] + piece + SMALL[at + removed :]
    place = place_of_error(whole)
    assert place is None or (0, 0) < place <= (whole.count("\n") + 1, len(whole) + 1)


def test_only_typescript_needs_tree_sitter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    path = tmp_path / "own.ts"
    path.write_text("export interface A {}")
    done = run("-q", "--schema", path, "-o", tmp_path / "own")
    expected = "expected a schema in JSON, got TypeScript, which needs tree_sitter: the extra"
    assert (done.code, f"{expected} typescript of mcpgen brings it" in done.err) == (2, True)
    for name in ("tasks", "ui", "skills"):
        words = ("-q", "-r", "latest", "--parts", "types", "--extension", name)
        assert run(*words, "-o", tmp_path / name).code == 0
