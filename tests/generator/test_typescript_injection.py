"""Foreign text in every place of TypeScript that takes one: it stays text in the package."""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from generator.spoiled import HARMLESS, Texts, canary, hostile, import_package, shape
from generator.typescript_text import SMALL
from mcpgen.errors import SchemaError
from mcpgen.model import schema_sources
from mcpgen.package import build_request, pipeline

pytestmark = pytest.mark.processes

_numbers = count()


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


def build_package(texts: Texts, folder: Path, package: str) -> dict[str, str]:
    """The files of a package with these texts."""
    path = folder / "2030-01-01.ts"
    path.write_text(typescript(texts), encoding="utf-8", newline="")
    request = build_request.BuildRequest(package, (schema_sources.of_file(path),))
    return pipeline.build(request, form=dict)


@cache
def harmless_shapes() -> dict[str, Counter[str]]:
    """How many nodes of each kind a module is made of when its texts mean nothing.

    Members stand in the order of their names, so the order of the nodes differs.
    """
    with TemporaryDirectory() as folder:
        files = build_package(HARMLESS, Path(folder), "harmless")
    return {path: Counter(shape(text)) for path, text in files.items() if path.endswith(".py")}


@pytest.fixture(scope="module", autouse=True)
def shapes() -> None:
    """The harmless package, built once and not within an example."""
    harmless_shapes()


@settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],  # to shrink an example takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@example(HARMLESS)
@given(hostile)
def test_foreign_text_in_typescript_is_text_wherever_it_stands(texts: Texts) -> None:
    package = f"typescript_{next(_numbers)}"
    with TemporaryDirectory() as folder:
        files = build_package(texts, Path(folder), package)
        for path, expected in harmless_shapes().items():
            assert Counter(shape(files[path])) == expected, path
            assert not path.startswith("r2030") or files[path].isascii(), path
        with import_package(files, Path(folder), package):
            check(package, texts)
            assert canary() == []


def check(package: str, texts: Texts) -> None:
    """Messages and tables have the texts; other values are refused."""
    models: Any = sys.modules[f"{package}.r2030_01_01.models"]
    methods: Any = sys.modules[f"{package}.r2030_01_01.methods"]
    wire: Any = sys.modules[f"{package}._wire"]
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


METHODS = ["a\nb", "", "a" * 201, " a", "a\u2028b", "\x7f"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_cannot_be_printed_is_refused(method: str, tmp_path: Path) -> None:
    path = tmp_path / "draft.ts"
    path.write_text(SMALL.replace('"ping"', quote_text(method)))
    with pytest.raises(SchemaError, match="expected a method of 1 to 200 char") as raised:
        pipeline.build(build_request.BuildRequest("pkg", (schema_sources.of_file(path),)))
    assert "\n" not in str(raised.value)
    assert str(raised.value).isascii()
