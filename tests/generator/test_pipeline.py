"""From names of revisions to the text of every file."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import mcpgen.spec
from mcpgen import schema
from mcpgen.errors import UsageError
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import build_request, manifest, pipeline

pytestmark = pytest.mark.costly

NAMES = [row.name for row in schema.revisions()]
TYPES = selection(("types",))


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["latest"], [NAMES[-1]]),
        (["all"], NAMES),
        ([NAMES[2], NAMES[0]], [NAMES[0], NAMES[2]]),
        ([NAMES[0], "all", "latest", NAMES[0]], NAMES),
    ],
)
def test_revisions_are_chosen_by_name_once_and_in_order(
    words: list[str], chosen: list[str]
) -> None:
    assert [source.revision for source in schema_sources.by_name(tuple(words))] == chosen
    with pytest.raises(UsageError, match="unknown revision"):
        schema_sources.by_name((*words, "2025"))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        *((name, name) for name in ("my_protocol", "_x")),
        ("src/acme/protocol", "acme.protocol"),
        ("app/acme/json", "acme.json"),
        ("app/acme/inner/mcp", "acme.inner.mcp"),
        ("other/mine", "mine"),
    ],
)
def test_the_import_name_begins_with_the_packages_around_it(
    tmp_path: Path, place: str, name: str
) -> None:
    for folder in ("app/acme", "app/acme/inner"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
    assert build_request.package_name(tmp_path / place) == name


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        *(("my-pkg", "my_pkg"), ("class", "class_"), ("3d", "mcp_3d"), ("a.b c", "a_b_c")),
        *((name, f"{name}_protocol") for name in ("json", *sorted(build_request.RUNTIME))),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_with_another(name: str, proposal: str) -> None:
    with pytest.raises(UsageError, match=f"got '{name}'; try -o out/{proposal}$"):
        build_request.package_name(Path("out") / name)


def test_inputs_are_fingerprinted_with_corrections_that_apply() -> None:
    known = schema_sources.of_revision(NAMES[-1])
    for source in (known, schema_sources.of_file(known.schema)):
        assert build_request.inputs(source, errata=True) != build_request.inputs(
            source, errata=False
        )


def test_a_package_is_python_with_a_manifest_of_every_file(
    built_package: Mapping[str, str],
) -> None:
    record = json.loads(built_package[manifest.NAME])
    assert record["files"].keys() == built_package.keys() - {manifest.NAME}
    assert record["revisions"][NAMES[0]]["structure"] == schema.entry(NAMES[0]).digest
    for path, text in built_package.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    request = build_request.BuildRequest("pkg", schema_sources.by_name((NAMES[0],)))
    assert pipeline.build(request) == built_package


@pytest.mark.parametrize("name", NAMES)
def test_every_member_has_a_docstring_unless_its_name_says_all(name: str) -> None:
    members = [each for type in mcpgen.spec.load(name).latest.types for each in type.members]
    bare = {each.name for each in members if not each.doc and each.type.kind != "literal"}
    assert bare <= {"id", "method"}
    assert len(members) > 200
