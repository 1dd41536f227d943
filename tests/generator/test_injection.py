"""Foreign text in every place of a schema, of facts and of documentation: it stays text."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from generator.spoiled import HARMLESS, Texts, build_files, canary, hostile, import_package, shape
from generator.typescript_text import SMALL
from mcpgen.errors import SchemaError, safe_text
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline

pytestmark = pytest.mark.processes

Build = Callable[[Texts, Path, str], dict[str, str]]

_numbers = count()
of_foreign_texts = settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],  # to shrink an example takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def shape_of(build: Build, text: str) -> object:
    """The nodes of a module in their order, or those of TypeScript by kind.

    Members of TypeScript stand in the order of their names, so the order of the nodes differs.
    """
    return Counter(shape(text)) if build is build_typescript else shape(text)


@cache
def harmless_shapes(build: Build) -> dict[str, object]:
    """The shape of each generated module when its texts mean nothing."""
    with TemporaryDirectory() as folder:
        files = build(HARMLESS, Path(folder), "harmless")
    return {path: shape_of(build, text) for path, text in files.items() if path.endswith(".py")}


def check_spoiled_package(
    build: Build, texts: Texts, check: Callable[[ModuleType, Texts], None]
) -> None:
    """Build a package with these texts, and look for each of them where it belongs."""
    package = f"spoiled_{next(_numbers)}"
    with TemporaryDirectory() as folder:
        files = build(texts, Path(folder), package)
        for path, expected in harmless_shapes(build).items():
            assert shape_of(build, files[path]) == expected, path
            if path.startswith("r2030") or path in ("client/async_client.py", "models.py"):
                assert files[path].isascii(), path
        with import_package(files, Path(folder), package) as module:
            check(module, texts)
            assert canary() == []


def words(text: str) -> str:
    """A text without white space, and with one kind of quotes."""
    return "".join(text.replace('"', "'").split())


def submodule(package: ModuleType, name: str) -> Any:
    return sys.modules[f"{package.__name__}.{name}"]


def message(texts: Texts) -> dict[str, Any]:
    """A message with every member, as the schema demands it."""
    member, value = texts.members, texts.values
    return {
        member[0]: "x",
        member[1]: 0.5,
        member[2]: {"type": value[5]},
        member[3]: value[6],
        member[4]: value[7],
        member[5]: value[9],
        member[6]: ["x"],
        member[7]: {member[0]: value[13], "y": "x"},
        member[8]: {member[11]: "x"},
        member[9]: value[29],
    }


def check_json(package: ModuleType, texts: Texts) -> None:
    """Messages come back as they were, others are refused; tables and docstrings hold the texts."""
    models, wire = submodule(package, "r2030_01_01.models"), submodule(package, "_wire")
    member, value, whole = texts.members, texts.values, message(texts)
    decode = wire.decoder(models.Spoiled)
    assert json.loads(wire.encode(decode(json.dumps(whole).encode()))) == whole
    plain = json.loads(wire.encode(decode(json.dumps({member[0]: "x"}).encode())))
    assert plain == {member[0]: "x", member[9]: value[29]}
    shown = {1: safe_text(member[1]), 2: safe_text(member[2])}
    for at, wrong in ((1, 5), (2, {"type": "y"}), (3, "y"), (4, "y"), (5, "y"), (7, {}), (8, {})):
        with pytest.raises(wire.ValidationError) as raised:
            decode(json.dumps({**whole, member[at]: wrong}).encode())
        assert shown.get(at, "") in str(raised.value)
    assert get_args(models.Choice) == (value[10], value[11])
    first = {member[0]: value[12], "x": "x"}
    assert json.loads(wire.encode(wire.decoder(models.OneTag)(json.dumps(first).encode()))) == first
    revision = submodule(package, "r2030_01_01.methods").REVISION
    known = revision.facts
    assert set(revision.client_requests) == {"notes/list", texts.method}
    row = revision.client_requests[texts.method]
    assert (row.name, row.capability) == (texts.method, (value[28].replace(".", ""),))
    assert set(row.wire_names.values()) == set(texts.members[:2])
    assert (known.headers.session, known.headers.name) == (value[18], value[19])
    assert known.headers.param_prefix == value[20]
    assert known.http.fallback == (value[21], value[22])
    stated = known.method(texts.method)
    assert (stated.named_by, stated.invalidates) == (value[23], (value[23],))
    assert known.behaviour.listen == value[24]
    assert (known.meta.trace_keys, known.meta.log_level) == ((value[25], value[26]), value[27])
    assert words(models.Spoiled.__doc__) == words(value[0])
    assert words(models.OneShape.__doc__) == words(f"{value[30]} Source: {value[32]}.")
    client_class = submodule(package, "r2030_01_01.client").Client
    assert words(value[0]) in words(client_class.spoil.__doc__)


def quote_text(text: str) -> str:
    """A text as a literal, each character as an escape."""
    return '"' + "".join(f"\\u{{{ord(character):x}}}" for character in text) + '"'


def comment_text(text: str) -> str:
    """A text in a comment, where it is as it is but for NUL and what would end it."""
    return f"/** {text.replace('*/', '').replace(chr(0), '')} */"


def typescript(texts: Texts) -> str:
    """A schema with one of the texts in each comment, name of a member, literal and constant."""
    member, value = [quote_text(text) for text in texts.members], texts.values
    literal = [quote_text(text) for text in value]
    known = SMALL.replace("ClientRequest = PingRequest", "ClientRequest = PingRequest | Spoil")
    return f"""
{known.replace("| Spoil", "| SpoilRequest").replace("ServerResult = ", "ServerResult = Spoils | ")}
{comment_text(value[0])}
export const NOTE = {literal[1]};
{comment_text(value[2])}
export enum Choice {{ {comment_text(value[3])} A = {literal[4]}, {literal[5]} = {literal[6]} }}
{comment_text(value[7])}
export interface Spoiled {{
  {comment_text(value[8])}
  {member[0]}: string;
  {comment_text(value[9])}
  {member[1]}?: {literal[10]};
  {member[2]}?: {literal[11]} | {literal[14]} | 3;
  {member[3]}?: typeof NOTE;
  {member[4]}?: Choice;
  {member[5]}?: Record<string, {literal[15]}>;
  {member[6]}?: One | Two;
  {member[7]}?: {{ {member[8]}: string; {comment_text(value[16])} {member[9]}?: {literal[17]}[] }};
}}
interface One {{ {member[0]}: {literal[12]} }}
interface Two {{ {member[0]}: {literal[13]} }}
{comment_text(value[18])}
export interface SpoilRequest {{
  method: {quote_text(texts.method)};
  {comment_text(value[19])}
  params?: {{ {comment_text(value[20])} {member[0]}?: string; {member[10]}: Spoiled }};
}}
{comment_text(value[21])}
export interface SpoilResult {{ {member[0]}?: string }}
export type Spoils = SpoilResult;
"""


def build_typescript(texts: Texts, folder: Path, package: str) -> dict[str, str]:
    """The files of a package of a TypeScript schema with these texts."""
    path = folder / "2030-01-01.ts"
    path.write_text(typescript(texts), encoding="utf-8", newline="")
    request = build_request.BuildRequest(package, (schema_sources.of_file(path),))
    return pipeline.build(request, form=dict)


def check_typescript(package: ModuleType, texts: Texts) -> None:
    """Messages and tables have the texts; other values are refused."""
    models, wire = submodule(package, "r2030_01_01.models"), submodule(package, "_wire")
    methods = submodule(package, "r2030_01_01.methods")
    member, value = texts.members, texts.values
    decode = wire.decoder(models.Spoiled)
    whole = {
        member[0]: "x",
        member[1]: value[10],
        member[2]: value[14],
        member[3]: value[1],
        member[4]: value[6],
        member[5]: {"x": value[15]},
        member[6]: {member[0]: value[13]},
        member[7]: {member[8]: "x", member[9]: [value[17]]},
    }
    assert json.loads(wire.encode(decode(json.dumps(whole).encode()))) == whole
    for at in (1, 2, 3, 4, 6):
        with pytest.raises(wire.ValidationError):
            decode(json.dumps({**whole, member[at]: "y"}).encode())
    assert set(get_args(models.Choice)) == {value[4], value[6]}
    assert methods.REVISION.client_requests[texts.method].name == texts.method


@pytest.fixture(scope="module", autouse=True)
def shapes() -> None:
    """The harmless packages, built once and not within an example."""
    harmless_shapes(build_files)
    harmless_shapes(build_typescript)


@of_foreign_texts
@example(HARMLESS)
@given(hostile)
def test_foreign_text_is_text_wherever_it_stands(texts: Texts) -> None:
    check_spoiled_package(build_files, texts, check_json)


@of_foreign_texts
@example(HARMLESS)
@given(hostile)
def test_foreign_text_in_typescript_is_text_wherever_it_stands(texts: Texts) -> None:
    check_spoiled_package(build_typescript, texts, check_typescript)


@pytest.mark.parametrize("method", ["a\nb", "", "a" * 201, " a", "a\u2028b", "\x7f"])
def test_a_method_that_cannot_be_printed_is_refused(method: str, tmp_path: Path) -> None:
    path = tmp_path / "draft.ts"
    path.write_text(SMALL.replace('"ping"', quote_text(method)))
    with pytest.raises(SchemaError, match="expected a method of 1 to 200 char") as raised:
        pipeline.build(build_request.BuildRequest("pkg", (schema_sources.of_file(path),)))
    assert "\n" not in str(raised.value)
    assert str(raised.value).isascii()
