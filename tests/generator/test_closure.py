"""Which modules are needed, and in which order their texts are made."""

from __future__ import annotations

import pytest

from mcpgen.render import closure

MODULES = {
    "start.py": "from . import slow\nfrom .room import one\n",
    "slow.py": "from ._deep import x\n",
    "room/__init__.py": "",
    "room/one.py": "from .. import slow\n",
    "_deep.py": "",
    "other.py": "",
}


@pytest.mark.parametrize("late", [(), ("slow.py",)])
def test_what_is_imported_is_needed(late: tuple[str, ...]) -> None:
    found = closure.needed_files(["start.py"], MODULES, MODULES.__getitem__, late)
    assert found == {path: text for path, text in MODULES.items() if path != "other.py"}


def test_a_slow_file_comes_after_all_that_are_surely_needed() -> None:
    order: list[str] = []

    def text_of(path: str) -> str:
        order.append(path)
        return MODULES[path]

    closure.needed_files(["slow.py", "start.py", "other.py"], MODULES, text_of, ["slow.py"])
    assert sorted(order) == sorted(MODULES)
    assert order[-2:] == ["slow.py", "_deep.py"]


def test_each_module_has_what_imports_it_first() -> None:
    files = {
        "__init__.py": "",
        "__init__.pyi": "from .room.near import Near as Near",
        "room/__init__.py": "",
        "room/near.py": "def late() -> None:\n    from .far import Far",
        "room/far.py": "",
        "named.py": "from .room.far import Far\nfrom .more import More",
        "more.py": "",
    }
    assert closure.importers(files) == {
        "__init__.pyi": "",
        "room/near.py": "__init__.pyi",
        "room/far.py": "room/near.py",
        "__init__.py": "",
        "more.py": "named.py",
        "named.py": "",
        "room/__init__.py": "",
    }
