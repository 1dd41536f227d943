"""Whole packages: what is rendered, what is copied, and that nothing changes by itself."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from generator.command_line import output_of
from generator.selections import write_package
from generator.tiny_package import REVISION, tiny_package, tiny_spec
from mcpgen import paths
from mcpgen.names import folder
from mcpgen.render import closure, tree

pytestmark = pytest.mark.lengthy

PACKAGE = paths.templates_dir() / "package"
IN_FOLDER = ("revision/", f"{folder(REVISION)}/")
SHARED = ("method_facts.py", "revision_facts.py")
RENDERED = sorted(
    {
        path.relative_to(PACKAGE).as_posix().removesuffix(".jinja").replace(*IN_FOLDER)
        for path in PACKAGE.rglob("*.jinja")
        if "extension" not in path.parts
    }
    - {"server/server_session.py"}  # of several revisions
    - {f"{folder(REVISION)}/client_sync.{suffix}" for suffix in ("py", "pyi")}
    | {f"{folder(REVISION)}/models.py"}
)
CHOSEN = {
    *("__main__.py", "server/asgi/chosen_http.py", "server/toolkit/server.py"),
    *("protocol/negotiation.py", "transports/http/transports.py"),
}
"""Modules that depend on the parts of the package, and on no schema."""


class ExpectedFile(SingleFileSnapshotExtension):
    """Each rendered file as a file of its own, beside the schema it was made from."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"  # not py: linters would take it for code of this repository

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(test_location.filepath).parent / "tiny" / "expected" / "test_render")


@pytest.mark.parametrize(
    "path",
    [path for path in RENDERED if path not in CHOSEN],
    ids=lambda path: path.replace("/", "."),
)
def test_the_tiny_package_is_as_expected(path: str, snapshot: SnapshotAssertion) -> None:
    assert tiny_package()[path] == snapshot(extension_class=ExpectedFile)


def test_modules_independent_of_the_schema_are_copied() -> None:
    copied = {path: text for path, text in tiny_package().items() if path not in RENDERED}
    assert len(copied) + len(RENDERED) == len(tiny_package())
    assert {"errors.py", "py.typed", "server/stdio_server.py"} <= copied.keys()
    for path, text in copied.items():
        source = (paths.PACKAGE / "schema" if path in SHARED else PACKAGE) / path
        own = text.split("\n", 2)[2] if path.endswith(".py") else text  # below two lines of comment
        assert own == source.read_text(encoding="utf-8")


def test_types_of_several_revisions_are_merged_and_load_none(tmp_path: Path) -> None:
    later = replace(tiny_spec(), name="2031-01-01", folder=folder("2031-01-01"))
    write_package(tree.render_package([tiny_spec(), later], "tiny", form=dict), tmp_path, "tiny")
    code = (
        "import sys, tiny.models\n"
        "assert not [name for name in sys.modules if '.r203' in name]\n"
        "note = tiny.models.TextNote(text='a')\n"
        "assert type(note).__module__ == 'tiny.r2031_01_01.models'\n"
        "assert isinstance(note, tiny.models.TextNote)\n"
        "assert 'tiny.r2030_01_01.models' not in sys.modules\n"
        "from tiny.r2030_01_01.models import TextNote\n"
        "assert isinstance(TextNote(text='a'), tiny.models.TextNote)\n"
    )
    assert output_of(code, cwd=tmp_path) == ""


def test_every_public_name_is_in_the_table_and_in_the_stub() -> None:
    tree = ast.parse(tiny_package()["__init__.py"])
    [table] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES"
    ]
    listed = [(module, name) for module, names in table.items() for name in names.split()]
    assert len(listed) == len({name for _, name in listed})
    assert {"Server", "connect", "Context", "ToolError"} <= {name for _, name in listed}
    stub = ast.parse(tiny_package()["__init__.pyi"])
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert listed == [(f".{node.module}", each.asname) for node in imports for each in node.names]


MODULES = {
    "start.py": "from . import slow\nfrom .room import one\n",
    "slow.py": "from ._deep import x\n",
    "room/__init__.py": "",
    "room/one.py": "from .. import slow\n",
    "_deep.py": "",
    "other.py": "",
}


@pytest.mark.parametrize(
    ("late", "order"),
    [
        ((), "start.py room/one.py slow.py _deep.py room/__init__.py"),
        (("slow.py",), "start.py room/one.py room/__init__.py slow.py _deep.py"),
    ],
)
def test_imported_modules_are_needed_files(late: tuple[str, ...], order: str) -> None:
    files = closure.needed_files(["start.py"], MODULES, MODULES.__getitem__, late)
    assert [*files.items()] == [(path, MODULES[path]) for path in order.split()]


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
