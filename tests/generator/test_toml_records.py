"""TOML and JSON as typed values: what a data class asks for, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from mcpgen.errors import FactsError, InputError
from mcpgen.toml_records import Place, convert, parse_toml, read_toml, toml_value


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Outer:
    flag: bool
    count: int
    choice: Literal["a", "b"]
    maybe: str | None
    perhaps: Literal["x"] | None
    many: tuple[Inner, ...]
    table: Mapping[str, int]
    anything: Any
    optional: int = 7
    words: tuple[str, ...] = field(default_factory=tuple[str, ...])


GOOD: dict[str, Any] = {
    "flag": True,
    "count": 1,
    "choice": "a",
    "maybe": False,
    "perhaps": "x",
    "many": [{"name": "one"}],
    "table": {"a": 1},
    "anything": [None],
}
KEYS = f"expected one of the keys {', '.join([*GOOD, 'optional', 'words'])}"
HERE = Place("file.toml", FactsError)


def test_a_value_of_the_right_shape_becomes_the_class() -> None:
    assert convert(GOOD, Outer, HERE) == Outer(
        flag=True,
        count=1,
        choice="a",
        maybe=None,
        perhaps="x",
        many=(Inner("one"),),
        table={"a": 1},
        anything=[None],
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"flag": 1}, "/flag: expected true or false, got 1"),
        ({"count": True}, "/count: expected an integer, got true"),
        ({"choice": "c"}, '/choice: expected one of ["a", "b"], got "c"'),
        ({"maybe": True}, "/maybe: expected a string, got true"),
        ({"many": {}}, "/many: expected an array, got {}"),
        ({"many": [{"name": 1}]}, "/many/0/name: expected a string, got 1"),
        ({"table": {"a/b": "x"}}, '/table/a~1b: expected an integer, got "x"'),
        ({"cuont": 1}, f'/cuont: {KEYS}, the nearest being count, got "cuont"'),
    ],
)
def test_a_wrong_value_is_refused_with_its_pointer(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(FactsError) as raised:
        convert({**GOOD, **change}, Outer, HERE)
    assert str(raised.value).startswith(f"file.toml#{expected}")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a = ", "expected TOML text"),
        (b"\xff", "expected TOML text"),
        (None, "a readable file"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    path = tmp_path / "facts.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=expected):
        read_toml(path, FactsError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ({"a-b": 1, "a b": [True, 1.5]}, '{ a-b = 1, "a b" = [true, 1.5] }'),
        ('a\n"\\~\x7f\u2028', r'"a\U0000000A\"\\~\U0000007F\U00002028"'),
        ([{"": "x"}], '[{ "" = "x" }]'),
    ],
)
def test_json_is_written_as_toml_that_reads_back(value: Any, text: str) -> None:
    assert toml_value(value) == text
    assert parse_toml(f"x = {text}", "x.toml", FactsError) == {"x": value}


@pytest.mark.parametrize("part", ["a", '"a"', "'a b'", "a ", '" . "'])
def test_a_key_of_many_parts_is_refused_soon(part: str) -> None:
    text = f"x = 1\n{'.'.join([part] * 100_000)} = 1\n"
    with pytest.raises(FactsError, match="expected keys of at most 64 parts, got a longer one"):
        parse_toml(text, "x.toml", FactsError)
    assert [*parse_toml(f"{'.'.join(['a'] * 64)} = 1", "x.toml", FactsError)] == ["a"]


@pytest.mark.parametrize("sign", ["a", '"', "'", "a.", " ", ". "])
def test_long_texts_without_long_keys_are_read_soon(sign: str) -> None:
    started = time.process_time()
    text = sign * 60
    lines = "".join(f"x{at} = {json.dumps(text)}\n" for at in range(2000))
    assert len(parse_toml(lines, "x.toml", FactsError)) == 2000
    with pytest.raises(FactsError):
        parse_toml(f"{sign * 200_000}!", "x.toml", FactsError)
    assert time.process_time() - started < 10
