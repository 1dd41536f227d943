"""The cache: what comes out of it, what counts as another input, how it stays small and sound."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from generator.command_line import run
from generator.draft_packages import definitions_of, save_schema
from mcpgen import cache, paths, schema
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import package_cache
from mcpgen.package.build_request import BuildRequest

pytestmark = [pytest.mark.costly, pytest.mark.usefixtures("place")]

OLDEST = schema.revisions()[0].name
TYPES = selection(("types",))
REQUEST = BuildRequest("pkg", schema_sources.by_name((OLDEST,)), selection=TYPES)
KEY = "0" * 64


def build_package(request: BuildRequest) -> tuple[Mapping[str, str], list[str]]:
    """A package and the notes about its schemas."""
    notes: list[str] = []
    return package_cache.build_package(request, notes.append), notes


def entries(place: Path, kind: str) -> dict[str, int]:
    """The entries of a kind: an entry that is written again is another file."""
    return {path.name: path.stat().st_ino for path in place.glob(f"{kind}-*")}


def test_a_package_and_its_models_come_out_of_the_cache(place: Path) -> None:
    other = replace(REQUEST, selection=selection(("protocol",)))
    with cache.disable():
        expected = build_package(REQUEST), build_package(other)
    assert not place.exists()
    assert build_package(REQUEST) == expected[0]
    kept = {kind: entries(place, kind) for kind in ("package", "models", "inputs")}
    assert [len(each) for each in kept.values()] == [1, 1, 1]
    assert build_package(REQUEST) == expected[0]
    assert {kind: entries(place, kind) for kind in kept} == kept
    assert build_package(other) == expected[1]
    assert entries(place, "models") == kept["models"]


def test_notes_about_a_schema_file_come_out_of_the_cache_too(tmp_path: Path, place: Path) -> None:
    definitions = definitions_of(OLDEST)
    definitions["Tool"]["properties"]["colour"] = {"type": "string"}
    source = schema_sources.of_file(save_schema(tmp_path, definitions))
    request = BuildRequest("pkg", (source,), selection=TYPES)
    first = build_package(request)
    assert first[1]
    assert build_package(request) == first
    assert len(entries(place, "package")) == 1


def test_packages_with_other_inputs_or_options_are_built_anew(tmp_path: Path, place: Path) -> None:
    path = save_schema(tmp_path, definitions_of(OLDEST))
    requests = [
        REQUEST,
        replace(REQUEST, package="other"),
        replace(REQUEST, errata=False),
        replace(REQUEST, selection=selection(("protocol",))),
        replace(REQUEST, sources=(schema_sources.of_file(path),)),
    ]
    texts = [json.dumps(build_package(request)[0]) for request in requests]
    assert len({*texts}) == len(requests) == len(entries(place, "package"))
    own = tmp_path / "own"
    shutil.copytree(paths.schema_dir(), own)
    with paths.own_schemas(own):
        build_package(REQUEST)
    assert len(entries(place, "package")) == len(requests) + 1


@pytest.mark.parametrize(("words", "value"), [(("--no-cache",), ""), ((), "1")])
def test_the_cache_can_be_turned_off(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], value: str
) -> None:
    cache.write("some", KEY, b"content")
    monkeypatch.setenv(cache.VARIABLE, value)
    done = run("-q", "-r", OLDEST, "--parts", "types", "-o", tmp_path / "pkg", *words)
    assert (done.code, done.err) == (0, "")
    assert [path.name for path in place.iterdir()] == [f"some-{KEY}.entry"]
    assert cache.read("some", KEY) == (None if value else b"content")


@pytest.mark.parametrize("spoil", [b"", b"x", b"\x00" * 100, None], ids=repr)
def test_an_entry_that_is_damaged_is_made_anew(place: Path, spoil: bytes | None) -> None:
    cache.write("some", KEY, b"content")
    [path] = place.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"\xff" if spoil is None else spoil)
    assert cache.read("some", KEY) is None
    cache.write("some", KEY, b"content")
    assert cache.read("some", KEY) == b"content"


def test_a_cache_that_cannot_be_written_is_no_error(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("a file")
    cache.write("some", KEY, b"content")
    assert cache.read("some", KEY) is None
    place.unlink()
    (place / f"some-{KEY}.entry").mkdir(parents=True)
    cache.write("some", KEY, b"content")
    assert [path.name for path in place.iterdir()] == [f"some-{KEY}.entry"]


@pytest.mark.parametrize("more", [0, 1])
def test_the_entry_that_was_not_used_for_longest_is_removed(place: Path, more: int) -> None:
    for age, key in enumerate("ab"):
        cache.write("some", key, b"content")
        os.utime(place / f"some-{key}.entry", (1000 + age, 1000 + age))
    assert cache.read("some", "a") == b"content"  # so it is newer than b
    large = place / "some-c.entry"
    large.touch()
    os.truncate(large, 2**25 - 3 * (place / "some-a.entry").stat().st_size + more)
    cache.write("some", "d", b"content")
    kept = [key for key in "abd" if cache.read("some", key) is not None]
    assert kept == (["a", "d"] if more else ["a", "b", "d"])
    assert large.exists()
    assert place.stat().st_mode & 0o777 == 0o700
