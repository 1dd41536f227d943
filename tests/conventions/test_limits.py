"""The tables of limits in the documents: each default is the code's, each limit has tests."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import tomllib
from functools import reduce
from typing import Any, NamedTuple

import pytest

import mcpgen_runtime
from conventions.sources import ROOT, tree_of
from package.limits import table

pytestmark = pytest.mark.lengthy

UNITS = {"": 1, "s": 1, "ms": 0.001, "h": 3600, "KiB": 2**10, "MiB": 2**20, "MB": 10**6}
ROW = re.compile(r"\| (?P<limit>[^|]+) \| (?P<default>[^|]+) \| `(?P<setting>[\w.]+)` \|")
AMOUNT = re.compile(r"(?P<number>[\d,]+(?:\.\d+)?)(?: (?P<unit>s|ms|h|KiB|MiB|MB))?\b")


class Row(NamedTuple):
    """One line of a table."""

    default: str
    setting: str


def rows() -> list[Row]:
    """The tables of limits, top to bottom."""
    text = (ROOT / "docs" / "limits.md").read_text("utf-8").partition("\n## ")[2]
    table = [line for line in text.splitlines() if line.startswith("| ")]
    body = [line for line in table if not line.startswith(("| Limit |", "| ---"))]
    matches = [ROW.fullmatch(line) for line in body]
    broken = [line for line, match in zip(body, matches, strict=True) if match is None]
    assert broken == []
    return [Row(match["default"], match["setting"]) for match in matches if match is not None]


def limit_tests() -> dict[str, list[str]]:
    """The tests of each setting, as `file::function`."""
    text = (ROOT / "tests" / "conventions" / "limit_tests.toml").read_text("utf-8")
    return tomllib.loads(text)


def value_of(setting: str) -> Any:
    """The default behind a name: a constant of a module, or a field of a public class."""
    names = setting.split(".")
    if hasattr(mcpgen_runtime, names[0]):
        names = [*getattr(mcpgen_runtime, names[0]).__module__.split("."), *names]
    elif names[0] == "pkg":
        names[0] = "mcpgen_runtime"
    for split in range(len(names), 0, -1):
        try:
            module = importlib.import_module(".".join(names[:split]))
        except ModuleNotFoundError:
            continue
        if not hasattr(module, names[split]):
            return template_constant(names)
        owner: Any = reduce(getattr, names[split:-1], module)
        if dataclasses.is_dataclass(owner) and isinstance(owner, type):
            fields = {field.name: field.default for field in dataclasses.fields(owner)}
            return fields[names[-1]]
        return getattr(owner, names[-1])
    raise AssertionError(f"no module for {setting}")


def template_constant(names: list[str]) -> Any:
    """The value of a constant of a module that only packages with an extension have."""
    _, *modules, constant = names
    tree = tree_of(ROOT.joinpath("templates", "package", *modules).with_suffix(".py"))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == constant:
                return eval(compile(ast.Expression(value), constant, "eval"))  # a number
    raise AssertionError(f"no module for {constant}")


def amount(text: str) -> float | None:
    """The number that a default begins with, in bytes, seconds or pieces; `None` for `none`."""
    if text == "none":
        return None
    match = AMOUNT.match(text)
    assert match is not None, text
    return float(match["number"].replace(",", "")) * UNITS[match["unit"] or ""]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.setting)
def test_the_documented_default_is_that_of_the_code(row: Row) -> None:
    assert amount(row.default) == value_of(row.setting)


def test_every_documented_limit_has_a_row_or_tests() -> None:
    in_table = {row.setting for row in table.rows()}
    assert in_table.isdisjoint(limit_tests())
    assert in_table | limit_tests().keys() == {row.setting for row in rows()}


@pytest.mark.parametrize("tests", limit_tests().values(), ids=limit_tests())
def test_the_tests_of_a_limit_exist(tests: list[str]) -> None:
    assert tests
    for test in tests:
        path, _, name = test.partition("::")
        tree = tree_of(ROOT / "tests" / path)
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_limit_of_an_application_over_http_is_documented() -> None:
    from mcpgen_runtime import Limits

    named = {row.setting for row in rows()}
    assert {f"Limits.{field.name}" for field in dataclasses.fields(Limits)} <= named
