"""The closure of modules: which are needed, and in which order their texts are made."""

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
def test_imported_modules_are_needed_files(late: tuple[str, ...]) -> None:
    files = closure.needed_files(["start.py"], MODULES, MODULES.__getitem__, late)
    assert files == {path: text for path, text in MODULES.items() if path != "other.py"}


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from .. import start", ["start.py"]),
        ("def f():\n    from ..room import one, two", ["room/one.py", "room/__init__.py"]),
        ("import slow\nx = 'from . import slow'", []),
    ],
)
def test_relative_imports_count_wherever_they_stand(text: str, expected: list[str]) -> None:
    assert list(closure.imported_files("room/x.py", text, [*MODULES, "room/near.py"])) == expected


def test_a_module_that_is_missing_is_named_with_its_line() -> None:
    text = "\nimport re\n\nfrom .gone import x\n"
    with pytest.raises(LookupError, match=r"^'?start\.py:4: there is no module gone"):
        list(closure.imported_files("start.py", text, MODULES))


@pytest.mark.parametrize(
    ("files", "needed", "over_http", "optional"),
    [
        ({"a.py": "import msgspec\nfrom anyio.abc import X\nimport os\n"}, "msgspec anyio", "", ""),
        ({"a.txt": "import msgspec\n", "b.pyi": "import msgspec\n"}, "", "", ""),
        ({"a.py": "    import uvicorn\n    import rich\n    import os\n"}, "", "uvicorn", "rich"),
        ({"a.py": 'try:\n    return importlib.import_module("re2")\n'}, "", "", "google-re2"),
        (
            {"a.py": "    from acme import Server\n    from jsonschema import x\n"},
            *("jsonschema", "", ""),
        ),
        (
            {"a.py": "import pydantic\nimport pydantic_core\n", "b.py": "import typing_extensions"},
            *("pydantic", "", ""),
        ),
        ({"a.py": "import msgspec\n    from typing_extensions import X"}, "msgspec", "", ""),
    ],
)
def test_dependencies_are_those_of_use_of_http_and_of_comfort(
    files: dict[str, str], needed: str, over_http: str, optional: str
) -> None:
    actual = closure.dependencies(files, "acme.protocol")
    kinds = (actual.needed, actual.over_http, actual.optional)
    assert tuple(map(" ".join, kinds)) == (needed, over_http, optional)
