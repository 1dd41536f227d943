"""Text banned from files: revisions in code, bare suppressions, places of one machine."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from conventions.sources import (
    GENERATOR,
    TEMPLATES,
    TESTS,
    docstring_lines,
    hand_written,
    python_files,
    relative_name,
    repository_files,
    templates,
    text_of,
    tokens_of,
    tree_of,
)

pytestmark = pytest.mark.lengthy

REVISION = re.compile(r"20\d\d-\d\d-\d\d|\br20\d\d_\d\d_\d\d")
SUPPRESSION = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore|pragma:\s*no\s*(?:cover|branch)|fmt:\s*\w+)"
    r"(?:\s*:\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*|\[[\w\s,-]*\])?"
)
BLANKET = re.compile(r"#\s*(?:mypy|pyright|ruff|flake8):(?!\s*ignore\[)")
OPTIONAL_LIBRARY = re.compile(
    r"# mypy: (?:disable-error-code=\"import-not-found[a-z,-]*\"|allow-subclassing-any)$"
    r"|# pyright: (?:report(?:Missing|Unknown|Untyped)\w+=false(?:, |$))+"
)
"""Comments for a whole module that imports a library that may be absent where it is checked."""

UNKNOWN_TYPES = "# The types of an optional library are unknown where the library is not installed."
"""The reason of such comments, on the line above the first one."""

# In pieces, so that this file does not break its own rule.
PLACES = re.compile(
    "|".join(
        (
            r"registry\.npmjs" + r"\.org",
            r"registry\.yarnpkg" + r"\.com",
            r"pypi\.(?:org|python" + r"\.org)",
            r"pythonhosted" + r"\.org",
            r"(?<![\w.])/" + r"root/",
            r"(?<![\w./])/" + r"work/",
            r"(?<![\w.])/" + r"Users/",
        )
    )
)


def revisions_in(path: Path) -> Iterator[str]:
    if not REVISION.search(text_of(path)):
        return
    documentation = docstring_lines(path)
    for token in tokens_of(path):
        code = (
            token.type in (tokenize.STRING, tokenize.NAME) and token.start[0] not in documentation
        )
        if code and REVISION.search(token.string):
            yield f"{relative_name(path)}:{token.start[0]}: {token.string[:60]}"


def test_code_asks_what_a_revision_has_and_never_which_one_it_is() -> None:
    code = python_files(GENERATOR, TEMPLATES)
    assert [line for path in code for line in revisions_in(path)] == []


def test_a_template_names_no_revision() -> None:
    assert [relative_name(path) for path in templates() if REVISION.search(text_of(path))] == []


def bare_suppressions(path: Path) -> Iterator[str]:
    if not (SUPPRESSION.search(text_of(path)) or BLANKET.search(text_of(path))):
        return
    for token in tokens_of(path):
        if token.type != tokenize.COMMENT:
            continue
        if OPTIONAL_LIBRARY.match(token.string) and UNKNOWN_TYPES in text_of(path):
            continue
        reason = SUPPRESSION.sub("", token.string).strip(" #-:,")
        reasonless = SUPPRESSION.search(token.string) and len(reason.split()) < 2
        if BLANKET.search(token.string) or reasonless:
            yield f"{relative_name(path)}:{token.start[0]}: {token.string}"


def bare_casts(path: Path) -> Iterator[str]:
    if "cast" not in text_of(path):
        return
    lines = text_of(path).splitlines()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Call(func=ast.Name(id="cast") | ast.Attribute(attr="cast")):
                first, last = node.lineno, node.end_lineno or node.lineno
                if not any("#" in line for line in lines[first - 1 : last]):
                    yield f"{relative_name(path)}:{first}: {lines[first - 1].strip()}"


def test_nothing_is_suppressed_without_a_reason_on_the_line() -> None:
    suppressions = ((*bare_suppressions(path), *bare_casts(path)) for path in hand_written())
    assert [line for lines in suppressions for line in lines] == []


NARROWED = "for_installed/server.py.jinja"
"""A server on an installed runtime has methods of the runtime whose results are of its own types;
type checkers would have them of any type."""


def test_rendered_code_suppresses_nothing() -> None:
    suppressing = [path for path in templates() if SUPPRESSION.search(text_of(path))]
    assert [relative_name(path) for path in suppressing] == [f"templates/{NARROWED}"]
    lines = text_of(suppressing[0]).splitlines()
    rules = [line.partition("#")[2] for line in lines if SUPPRESSION.search(line)]
    assert [rule for rule in rules if not rule.startswith(" type: ignore[override]  # ")] == []


def test_no_file_names_a_place_of_one_machine_or_a_registry_host() -> None:
    lines = [
        f"{relative_name(path)}:{number}: {line.strip()[:80]}"
        for path in repository_files()
        if PLACES.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if PLACES.search(line)
    ]
    assert lines == []


def test_code_is_ascii() -> None:
    written = [*hand_written(), *templates()]
    assert [relative_name(path) for path in written if not text_of(path).isascii()] == []


def waits(path: Path) -> Iterator[str]:
    if not any(word in text_of(path) for word in ("sleep", "unittest")):
        return
    has_virtual_clock = "from kit.simulation import" in text_of(path)
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Import(names=[ast.alias(name="unittest.mock")]):
                yield f"{relative_name(path)}:{node.lineno}: mock"
            case ast.ImportFrom(module="unittest" | "unittest.mock"):
                yield f"{relative_name(path)}:{node.lineno}: mock"
            case ast.Call(
                func=ast.Name(id="sleep") | ast.Attribute(attr="sleep"),
                args=[ast.Constant(value=float() | int() as seconds)],
            ) if seconds and not has_virtual_clock:
                yield f"{relative_name(path)}:{node.lineno}: {ast.unparse(node)}"


def test_no_test_sleeps_or_mocks() -> None:
    assert [line for path in sorted(TESTS.rglob("test_*.py")) for line in waits(path)] == []
