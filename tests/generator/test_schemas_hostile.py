"""Hostile input: one line that names the file and the place, nothing written, and soon."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Done, run
from generator.schemas import TEXT, any_of, obj, ref
from generator.tables import table
from generator.tiny_package import TINY
from mcpgen import input_files
from mcpgen.errors import SchemaError
from mcpgen.model import docstrings
from mcpgen.schema import checks

Definitions = dict[str, Any]
DEFS = "/$defs"


def nested_schema(levels: int) -> dict[str, Any]:
    node = TEXT
    for _ in range(levels):
        node = {"type": "array", "items": node}
    return node


def chain(length: int) -> Definitions:
    links = {f"C{i}": {"allOf": [ref(f"C{i + 1}")]} for i in range(length)}
    return {**links, f"C{length}": obj(a=TEXT)}


def diamond(levels: int) -> Definitions:
    """Unions that lead to two objects in two to the power of `levels` ways."""
    unions = {
        f"{side}{i}": any_of(f"L{i + 1}", f"R{i + 1}") for i in range(levels) for side in "LR"
    }
    return {**unions, f"L{levels}": obj("a", a=TEXT), f"R{levels}": obj("b", b=TEXT)}


def message(method: str, **properties: Any) -> Definitions:
    """A request under another name, its method, and the union that has it."""
    return {
        "EvilRequest": obj("method", method={"type": "string", "const": method}, **properties),
        "EvilResult": obj(),
        "ClientRequest": any_of("ListNotesRequest", "EvilRequest"),
    }


def test_schemas_within_the_bounds_are_accepted() -> None:
    texts = {"A": {"const": "x" * 2000}, "B": {"pattern": "a" * 2000}, "C": {"enum": [10**1999]}}
    texts["D"] = {"pattern": "[[a]"}  # Python warns of it
    document: dict[str, Any] = {"$defs": {**chain(63), **texts}}
    checks.check(document, "$defs", "a.json")
    document["$defs"] |= {f"D{i}": {} for i in range(10_000 - 1 - 128 - len(texts))}
    checks.check_bounds(document, "a.json")
    document["$defs"]["E"] = {}
    with pytest.raises(SchemaError, match=r"^a\.json#/\$defs/E: expected at most 10000 schemas"):
        checks.check_bounds(document, "a.json")
    longer = {"$defs": chain(64)}
    with pytest.raises(SchemaError, match=r"^a\.json#/\$defs/C0: expected a chain of at most 64"):
        checks.check(longer, "$defs", "a.json")
    circle = {"$defs": {one: ref(other) for one, other in pairwise("ABCA")}}
    with pytest.raises(SchemaError, match=r"itself by .ref or allOf, got [A-C]( to [A-C]){3}$"):
        checks.check(circle, "$defs", "a.json")


CIRCLE = "expected a definition that does not lead back to itself by $ref or allOf, got"
DEFINITIONS: dict[str, tuple[Definitions, str]] = {
    "a method with a line end": (message("a/b\n"), f"{DEFS}/EvilRequest/properties/method/const:"),
    "a method that another has": (message("notes/list"), f"{DEFS}/EvilRequest: expected a method"),
    "a member that is long": (
        {"A": obj("", **{"a" * 1001: TEXT})},
        f"{DEFS}/A/properties: expected",
    ),
    "a reference to itself": ({"A": ref("A")}, f"{DEFS}/A: expected a definition that does not"),
    "references in a circle": (
        {one: ref(other) for one, other in pairwise("ABCDA")},
        f"{DEFS}/A: {CIRCLE} A to B to C to D ...",
    ),
    "an allOf of itself": (
        {"A": {"allOf": [{"allOf": [ref("A")]}]}},
        f"{DEFS}/A: expected a definition that does not lead back to itself",
    ),
    "a long chain": (chain(500), "expected a chain of at most 64 definitions"),
    "arrays of arrays": ({"A": nested_schema(70)}, f"{DEFS}/A/items/items/items"),
    "an enum of nothing": ({"A": {"enum": []}}, f"{DEFS}/A/enum: expected at least one value"),
    "a choice that is long": ({"A": {"enum": ["x" * 2001]}}, f"{DEFS}/A/enum/0: expected a text o"),
    "a const that is long": ({"A": {"const": "x" * 2001}}, f"{DEFS}/A/const: expected a text of a"),
    "a number as a definition": ({"A": 1}, f"{DEFS}/A: expected a schema of"),
    "a pattern that is long": ({"A": {"pattern": "a" * 2001}}, f"{DEFS}/A/pattern: expected a reg"),
    "a pattern that is none": ({"A": {"pattern": "("}}, f"{DEFS}/A/pattern: expected a regular"),
    "a deep pattern": ({"A": {"pattern": "(" * 990 + ")" * 990}}, f"{DEFS}/A/pattern: expected a"),
    "a key that is no pattern": (
        {"A": {"patternProperties": {"[": {}}}},
        f"{DEFS}/A/patternProperties/[: expected a regular expression",
    ),
    "very many members": (
        {"A": obj("", **{f"m{i}": TEXT for i in range(100_000)})},
        f"{DEFS}/A/properties: expected at most 5000 entries",
    ),
    "very many schemas": (
        {f"A{i}": obj("", **{f"m{j}": TEXT for j in range(100)}) for i in range(150)},
        "expected at most 10000 schemas in a",
    ),
    "half a surrogate pair": ({"A": {"const": "\ud800"}}, f"{DEFS}/A/const: expected text in Unic"),
    "a huge integer": (
        {"A": {"type": "integer", "maximum": 10**30}},
        f"{DEFS}/A/maximum: expected a number that fits 64 bits",
    ),
    "no requests": ({"ClientRequest": ref("ListNotesResult")}, f"{DEFS}/ListNotesResult/propertie"),
    "a diamond of unions, many times over": (diamond(40), "expected unions in at most 64 levels,"),
    "a request whose result no rule finds": (
        {name: node for name, node in message("evil").items() if name != "EvilResult"},
        f"{DEFS}/EvilRequest: expected a result type for evil,",
    ),
    "a result that nothing tells apart": (
        {**message("evil"), "EvilResult": {"anyOf": [obj(a=TEXT), obj(b=TEXT)]}},
        f"{DEFS}/EvilResult: expected members that a const or a required p",
    ),
    "params that nothing tells apart": (
        message("evil", params={"anyOf": [obj(a=TEXT), obj(b=TEXT)]}),
        f"{DEFS}/EvilRequest/properties/params: expected members that a const or a re",
    ),
    "params that are a text": (message("evil", params=TEXT), f"{DEFS}/EvilRequest/properties/para"),
    "params that are an array by name": (
        {**message("evil", params=ref("A")), "A": {"type": "array", "items": TEXT}},
        f"{DEFS}/EvilRequest/properties/params: expected para",
    ),
    **{
        f"a reference out of the file, {kind}": (
            {"A": obj(a={"$ref": place})},
            f"{DEFS}/A/properties/a/$ref: expected a reference to a definition, #/$defs/<name>",
        )
        for kind, place in {
            "to a file beside it": "draft.json#/$defs/TextNote",
            "to the whole": "#",
        }.items()
    },
    "unions in a row": (
        {
            **{f"U{i}": {"anyOf": [ref(f"U{i + 1}"), TEXT]} for i in range(300)},
            "U300": {"type": "integer"},
        },
        "expected unions in at most 64 levels, with at most 2000 ways down, got more",
    ),
}

TEXTS: dict[str, tuple[bytes, str]] = {
    "brackets": (b"[" * 200_000, f"#{'/0' * 64}: expected at most 64 levels of nesting"),
    "a member twice": (
        b'{"$defs": {"A": {"properties": {"a": {}, "a": {}}}}}',
        "#/$defs/A/properties/a: expected one member of this name, got several",
    ),
    "a million commas": (
        b'{"$defs": [' + b"{}," * 1_000_000 + b"0]}",
        "#: expected at most 1000000 brackets, braces and commas, got 2",
    ),
    "no message": (b'{"$defs": {"A": {"type": "string"}}}', "#/$defs: expected ClientRequest, a u"),
    "a name of megabytes": (
        b'{"$defs": {"A": {"properties": {"' + b"a" * 3_000_000 + b'": {}}}}}',
        "#/$defs/A/properties: expected names of 1000 characters at m",
    ),
}


def refusal_of(folder: Path, content: bytes) -> str:
    """The error for a schema, without the file's name: one line, and nothing was written."""
    path = folder / "draft.json"
    path.write_bytes(content)
    done = run("-q", "--schema", path, "--facts", TINY / "facts.toml", "-o", folder / "pkg")
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith(f"mcpgen: error: {path}#")
    assert done.err.count("\n") == 1
    assert done.err.isascii()
    assert len(done.err) < 900
    assert sorted(folder.iterdir()) == [path]
    return done.err.removeprefix(f"mcpgen: error: {path}")


def with_definitions(definitions: Definitions) -> str:
    """The tiny schema with these definitions."""
    document: dict[str, Any] = json.loads((TINY / "schema.json").read_text())
    document["$defs"] |= definitions
    return json.dumps(document)


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/a.json", "https://127.0.0.1:9/a.json#/A"])
def test_a_reference_to_a_server_is_never_fetched(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: tried.append(address))
    said = refusal_of(tmp_path, with_definitions({"A": {"$ref": place}}).encode())
    assert said.startswith("#/$defs/A/$ref: ")
    assert tried == []


@pytest.mark.parametrize(("definitions", "expected"), DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_hostile_definition_is_refused_by_name_in_one_line(
    definitions: Definitions, expected: str, tmp_path: Path
) -> None:
    assert expected in refusal_of(tmp_path, with_definitions(definitions).encode())


@pytest.mark.parametrize(("content", "expected"), TEXTS.values(), ids=TEXTS)
def test_a_hostile_text_is_refused_by_place_in_one_line(
    content: bytes, expected: str, tmp_path: Path
) -> None:
    assert refusal_of(tmp_path, content).startswith(expected)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(input_files.MAX_BYTES + 1)
    expected = f"expected a file of {input_files.MAX_BYTES} bytes at most, got a larger one"
    done = run("--schema", path, "-o", tmp_path / "pkg")
    assert done == Done(2, "", f"mcpgen: error: {path}#: {expected}\n")


def generate_models(definitions: Definitions, folder: Path) -> str:
    """The models of the tiny schema with these definitions."""
    path = folder / "draft.json"
    path.write_text(with_definitions(definitions))
    words = ("-q", "--schema", path, "--facts", TINY / "facts.toml", "-o", folder / "pkg")
    assert run(*words) == Done(0, "", "")
    return (folder / "pkg" / "rdraft" / "models.py").read_text()


PEAK = """
import re, sys
from pathlib import Path
from mcpgen import cli
try:
    cli.main(sys.argv[1:])
finally:
    status = Path("/proc/self/status").read_text()
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)
"""
"""Prints the peak of a process in megabytes. `ru_maxrss` would count the process that forked it."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("item", ["{},", "[[[[]]]],", '"ab",', "\\u0101"])
def test_a_file_of_fifty_megabytes_takes_bounded_memory(item: str, tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    body = item * (50_000_000 // len(item))
    path.write_text(f'{{"$defs": ["{body}"]}}' if item[0] == "\\" else f'{{"$defs": [{body}0]}}')
    words = ["-q", "--schema", f"{path}", "-o", f"{tmp_path / 'pkg'}"]
    command = [sys.executable, "-c", PEAK, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(f"mcpgen: error: {path}#")
    assert done.stderr.count("\n") == 1
    assert int(done.stdout) < 600  # megabytes; the text alone is there twice while it is decoded
    assert not (tmp_path / "pkg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["word " * 2_000_000, "x" * 10_000_000, '\u202e"' * 5_000_000])
def test_a_description_of_ten_megabytes_is_cut_and_takes_seconds(text: str, tmp_path: Path) -> None:
    started = time.monotonic()
    models = generate_models({"A": {**obj(a=TEXT), "description": text}}, tmp_path)
    assert time.monotonic() - started < 60  # some four seconds, on a machine that does nothing else
    assert f"... (cut, of {len(text.strip())} characters)" in " ".join(models.split())
    assert len(models) < 20_000 + 8 * docstrings.MAX_TEXT


@pytest.mark.slow
def test_many_long_descriptions_are_cut_to_the_same_length(tmp_path: Path) -> None:
    prose = "word " * 2_000
    many = {f"A{i}": {**obj(a=TEXT), "description": prose} for i in range(200)}
    models = generate_models(many, tmp_path)
    told = " ".join(models.split())  # wherever a line was wrapped
    assert told.count(f"... (cut, of {len(prose) - 1} characters)") == len(many)
    assert len(models) < 1.5 * docstrings.MAX_PROSE


FACTS: dict[str, tuple[str, str]] = {
    "deep": ("x = " + "[" * 5000, "#: expected values that are not nested as deep, got deeper"),
    "large": ("# " + "x" * 1024 * 1024, "#: expected a file of 1048576 bytes at most, got a large"),
    "infinite": ("[defaults.A]\na = inf", "#/defaults/A/a: expected a number that fits 64 bits"),
    "unknown": ('"a\\nb" = 1', "#/a\\nb: expected one of the keys"),
    "a method with a line end": ('[capabilities]\n"a\\nb" = "x"', "#/capabilities/a\\nb: expected"),
    "based on no revision": ('based_on = ["x"]', "#/based_on: expected one of the revisions"),
}


@pytest.mark.parametrize(("content", "expected"), FACTS.values(), ids=FACTS)
def test_hostile_facts_are_refused_by_place_in_one_line(
    content: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(content)
    done = run(*("-q", "--schema", TINY / "schema.json", "--facts", path, "-o", tmp_path / "pkg"))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"mcpgen: error: {path}{expected}")
    assert not (tmp_path / "pkg").exists()


NAMES: dict[str, list[str]] = table("hostile_names")


@pytest.fixture(scope="module")
def named_models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Models of definitions with all of these names, each with one that refers to it."""
    definitions: Definitions = {}
    for number, (published, _) in enumerate(NAMES.values()):
        holder = obj("", **{f"held{number}": ref(published.replace("/", "~1"))})
        definitions |= {published: obj(a=TEXT), f"Holder{number}": holder}
    return generate_models(definitions, tmp_path_factory.mktemp("named"))


@pytest.mark.parametrize("case", NAMES)
def test_a_definition_that_is_no_identifier_gets_a_readable_name(
    case: str, named_models: str
) -> None:
    name, number = NAMES[case][1], [*NAMES].index(case)
    assert re.search(rf"^class {name}\(\s*Struct,", named_models, re.MULTILINE)
    assert re.search(rf"^    held_?{number}: \(?\s*{name}\s+\|", named_models, re.MULTILINE)


SOUND: dict[str, Definitions] = {
    "arrays of arrays": {"A": nested_schema(60)},
    "a diamond of allOf, many times over": {
        **{f"D{i}": {"allOf": [ref(f"D{i + 1}"), ref(f"D{i + 1}")]} for i in range(60)},
        "D60": obj(a=TEXT),
    },
    "lists of lists by reference": {
        **{f"L{i}": {"type": "array", "items": ref(f"L{i + 1}")} for i in range(300)},
        "L300": TEXT,
    },
    "true as a member": {"A": {"allOf": [True, obj(a=True)]}, "B": {"anyOf": [True]}},
    "members that all lose their names": {
        "A": obj("", **{"\u00e9" * count: TEXT for count in range(1, 200)})
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("definitions", SOUND.values(), ids=SOUND)
def test_an_odd_schema_within_the_bounds_is_generated_in_seconds(
    definitions: Definitions, tmp_path: Path
) -> None:
    assert "class ListNotesRequest(" in generate_models(definitions, tmp_path)
