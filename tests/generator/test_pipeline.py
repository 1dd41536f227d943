"""From names of revisions to the text of every file."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpgen import manifest, pipeline, schema
from mcpgen.errors import UsageError

NAMES = [row.name for row in schema.revisions()]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["latest"], [NAMES[-1]]),
        (["all"], NAMES),
        ([NAMES[2], NAMES[0]], [NAMES[0], NAMES[2]]),
        ([NAMES[0], "all", "latest", NAMES[0]], NAMES),
    ],
)
def test_revisions_are_chosen_by_name_once_and_in_order(
    names: list[str], chosen: list[str]
) -> None:
    assert [source.revision for source in pipeline.named_sources(tuple(names))] == chosen


@pytest.mark.parametrize("name", ["newest", "2025", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="unknown revision"):
        pipeline.named_sources((name,))


@pytest.mark.parametrize("name", ["pkg", "my_protocol", "_x", "r2d2"])
def test_the_import_name_is_the_last_part_of_the_directory(tmp_path: Path, name: str) -> None:
    assert pipeline.package_name(tmp_path / name) == name


@pytest.mark.parametrize(
    ("name", "proposal"),
    [("my-pkg", "my_pkg"), ("class", "class_"), ("3d", "mcp_3d"), ("a.b c", "a_b_c")],
)
def test_a_name_that_python_cannot_import_is_refused_with_a_proposal(
    name: str, proposal: str
) -> None:
    with pytest.raises(UsageError, match=f"got '{name}'; try -o out/{proposal}$"):
        pipeline.package_name(Path("out") / name)


def test_a_file_gets_the_facts_of_the_nearest_earlier_revision(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("{}")
    source = pipeline.file_source(path)
    assert (source.revision, source.facts_of, source.origin) == ("draft", NAMES[-1], "file")
    assert source.facts == schema.latest().folder / "facts.toml"


def test_a_file_may_bring_its_own_facts(tmp_path: Path) -> None:
    source = pipeline.file_source(tmp_path / "2031-02-03.json", tmp_path / "facts.toml")
    assert source.facts == tmp_path / "facts.toml"
    assert source.facts_of == source.revision == "2031-02-03"


def test_inputs_are_fingerprinted_with_corrections_only_where_they_apply() -> None:
    source = pipeline.known_source(NAMES[-1])
    assert pipeline.inputs(source, errata=True) != pipeline.inputs(source, errata=False)


def test_a_package_is_python_with_a_manifest_of_every_file(built: Mapping[str, str]) -> None:
    record = json.loads(built[manifest.NAME])
    assert record["files"].keys() == built.keys() - {manifest.NAME}
    assert record["revisions"][NAMES[0]]["structure"] == schema.entry(NAMES[0]).digest
    for path, text in built.items():
        if path.endswith(".py"):
            ast.parse(text, path)


def test_the_same_request_gives_the_same_bytes(built: Mapping[str, str]) -> None:
    request = pipeline.BuildRequest("pkg", pipeline.named_sources((NAMES[0],)))
    assert pipeline.build(request) == built


def test_prose_of_a_file_comes_into_the_package(tmp_path: Path) -> None:
    document = json.loads((schema.entry(NAMES[0]).folder / "schema.json").read_text())
    document["definitions"]["Tool"]["description"] = "An unusual description of a tool."
    path = tmp_path / NAMES[0] / "schema.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    files = pipeline.build(pipeline.BuildRequest("pkg", (pipeline.file_source(path),)))
    assert any("An unusual description of a tool." in text for text in files.values())
