"""The table of limits in the documents: each default is the code's, each test exists."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from functools import reduce
from typing import Any, NamedTuple

import pytest

from conventions.sources import ROOT, tree_of

pytestmark = pytest.mark.lengthy

UNITS = {"": 1, "s": 1, "ms": 0.001, "h": 3600, "KiB": 2**10, "MiB": 2**20, "MB": 10**6}
ROW = re.compile(
    r"\| (?P<what>[^|]+) \| (?P<default>[^|]+) \| `(?P<setting>[\w.]+)` \| (?P<tests>[^|]+) \|"
)
AMOUNT = re.compile(r"(?P<number>[\d,]+(?:\.\d+)?)(?: (?P<unit>s|ms|h|KiB|MiB|MB))?\b")


class Row(NamedTuple):
    """One line of the table."""

    default: str
    setting: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    """The table, top to bottom."""
    lines = (ROOT / "docs" / "limits.md").read_text("utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")]
    body = [line for line in table if not line.startswith(("| What", "| ---"))]
    matches = [ROW.fullmatch(line) for line in body]
    broken = [line for line, match in zip(body, matches, strict=True) if match is None]
    assert broken == []
    return [
        Row(match["default"], match["setting"], tuple(re.findall(r"`([^`]+)`", match["tests"])))
        for match in matches
        if match is not None
    ]


def value_of(setting: str) -> Any:
    """The default behind a dotted name: a constant, a field of a class, or a parameter."""
    names = setting.split(".")
    for split in range(len(names), 0, -1):
        try:
            module = importlib.import_module(".".join(names[:split]))
        except ModuleNotFoundError:
            continue
        if not hasattr(module, names[split]):
            return template_constant(setting)
        owner: Any = reduce(getattr, names[split:-1], module)
        if dataclasses.is_dataclass(owner) and isinstance(owner, type):
            fields = {field.name: field.default for field in dataclasses.fields(owner)}
            return fields[names[-1]]
        return getattr(owner, names[-1])
    raise AssertionError(f"no module for {setting}")


def template_constant(setting: str) -> Any:
    """The value of a constant of a module that only packages with an extension have."""
    _, *names, constant = setting.split(".")
    tree = tree_of(ROOT.joinpath("templates", "package", *names).with_suffix(".py"))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == constant:
                return eval(compile(ast.Expression(value), setting, "eval"))  # a number
            case _:
                pass
    raise AssertionError(f"no module for {setting}")


def amount(text: str) -> float | None:
    """The number that a default begins with, in bytes, seconds or pieces; `None` for `none`."""
    if text == "none":
        return None
    match = AMOUNT.match(text)
    assert match is not None, text
    return float(match["number"].replace(",", "")) * UNITS[match["unit"] or ""]


def ids(row: Row) -> str:
    return row.setting


@pytest.mark.parametrize("row", rows(), ids=ids)
def test_the_documented_default_is_that_of_the_code(row: Row) -> None:
    assert amount(row.default) == value_of(row.setting)


@pytest.mark.parametrize("row", rows(), ids=ids)
def test_a_limit_names_tests_that_exist(row: Row) -> None:
    assert row.tests
    for test in row.tests:
        path, _, name = test.partition("::")
        tree = tree_of(ROOT / "tests" / path)
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_limit_of_an_application_over_http_is_documented() -> None:
    from mcpgen_runtime.server.asgi.settings import Limits

    named = {row.setting for row in rows()}
    prefix = "mcpgen_runtime.server.asgi.settings.Limits"
    assert {f"{prefix}.{field.name}" for field in dataclasses.fields(Limits)} <= named
