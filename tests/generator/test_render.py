"""Whole packages: what is rendered, what is copied, and that nothing changes by itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import black
import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from generator.tiny_package import REVISION, tiny_package, tiny_spec
from mcpgen import paths, render
from mcpgen.names import folder

PACKAGE = paths.templates_dir() / "package"
SHARED = "revision_facts.py"
RENDERED = sorted(
    path for path in tiny_package() if path != SHARED and not (PACKAGE / path).is_file()
)


class ExpectedFile(SingleFileSnapshotExtension):
    """Each rendered file as a file of its own, beside the schema it was made from."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"  # not py: linters would take it for code of this repository

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(test_location.filepath).parent / "tiny" / "expected" / "test_render")


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.replace("/", "."))
def test_the_tiny_package_is_as_expected(path: str, snapshot: SnapshotAssertion) -> None:
    assert tiny_package()[path] == snapshot(extension_class=ExpectedFile)


def test_what_does_not_depend_on_a_schema_is_copied() -> None:
    copied = {path: text for path, text in tiny_package().items() if path not in RENDERED}
    assert {"errors.py", "py.typed", "transports/stdio.py"} <= copied.keys()
    assert copied.pop(SHARED) == (paths.PACKAGE / SHARED).read_text(encoding="utf-8")
    for path, text in copied.items():
        assert text == (PACKAGE / path).read_text(encoding="utf-8")


def test_a_revision_has_a_folder_of_its_own() -> None:
    own = {path for path in RENDERED if "/" in path}
    modules = ("__init__", "client", "methods", "models", "server")
    assert own == {f"{folder(REVISION)}/{name}.py" for name in modules}


@pytest.mark.parametrize("path", RENDERED)
def test_what_is_rendered_is_formatted_and_has_short_lines(path: str) -> None:
    text = tiny_package()[path]
    assert black.format_str(text, mode=black.Mode(line_length=100)) == text
    assert max((len(line) for line in text.splitlines()), default=0) <= 100


def test_files_come_sorted_and_twice_the_same() -> None:
    again = render.render_package([tiny_spec()], "tiny")
    assert list(again) == sorted(again)
    assert again == tiny_package()


def test_the_garbage_collector_is_left_as_it_was() -> None:
    import gc

    for switch in (gc.disable, gc.enable):
        switch()
        before = gc.isenabled()
        render.render_package([tiny_spec()], "tiny")
        assert gc.isenabled() is before


def test_types_of_several_revisions_are_merged_and_load_none_of_them(tmp_path: Path) -> None:
    later = replace(tiny_spec(), name="2031-01-01", folder=folder("2031-01-01"))
    files = render.render_package([tiny_spec(), later], "tiny")
    for path, text in files.items():
        target = tmp_path / "tiny" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
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
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_package_imports_and_loads_no_revision_by_that(tmp_path: Path) -> None:
    for path, text in tiny_package().items():
        target = tmp_path / "tiny" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    code = (
        "import sys, tiny, tiny.client\n"
        f"assert not [name for name in sys.modules if {folder(REVISION)!r} in name]\n"
        "[getattr(tiny, name) for name in tiny.__all__]\n"
        f"revision = tiny.REVISIONS[{REVISION!r}]\n"
        "method = revision.client_requests['notes/list']\n"
        "assert method.capability == ('notes',) and method.items == 'notes'\n"
        "import tiny.models\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_every_name_that_the_package_exports_is_listed_once() -> None:
    tree = ast.parse(tiny_package()["__init__.py"])
    listed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert len(listed) == len(set(listed))
    assert {"Server", "connect", "Context", "ToolError"} <= set(listed)
