"""Where tests lie, and how long their names are."""

from __future__ import annotations

import ast

import pytest

from conventions.sources import TEMPLATES, TESTS, relative_name, tree_of

pytestmark = pytest.mark.lengthy

NAME_CHARACTERS = 60
MODULES_PER_FOLDER = 45

TEST_MODULES = sorted(TESTS.rglob("test_*.py"))
ROOMS = TEMPLATES / "package"
OF_PACKAGE = TESTS / "package"


def test_the_tests_of_a_package_have_the_rooms_of_the_package() -> None:
    rooms = {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.py*")}
    rooms |= {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.jinja")}
    tests = {
        path.parent.relative_to(OF_PACKAGE)
        for path in TEST_MODULES
        if path.is_relative_to(OF_PACKAGE)
    }
    assert tests == rooms


def test_a_folder_has_so_many_modules_that_one_sees_them_all() -> None:
    folders = [path for path in OF_PACKAGE.rglob("*") if path.is_dir()]
    sizes = {
        relative_name(folder): len([*folder.glob("*.py")]) for folder in [OF_PACKAGE, *folders]
    }
    assert {folder: size for folder, size in sizes.items() if size > MODULES_PER_FOLDER} == {}


def test_the_name_of_a_test_is_short_enough_to_read() -> None:
    names = [
        f"{relative_name(path)}:{node.lineno}: {node.name}"
        for path in TEST_MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > NAME_CHARACTERS
    ]
    assert names == []
