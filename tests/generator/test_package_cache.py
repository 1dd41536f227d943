"""The cache: what comes out of it, what counts as another input, how it stays small and sound."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
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
from mcpgen.render import models

pytestmark = pytest.mark.costly

OLDEST = schema.revisions()[0].name
TYPES = selection(("types",))
REQUEST = BuildRequest("pkg", schema_sources.by_name((OLDEST,)), selection=TYPES)
KEY = "0" * 64


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test\'s own."""
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache.folder()


def packages(place: Path) -> list[Path]:
    """The packages in a cache."""
    return sorted(place.glob("package-*")) if place.exists() else []


def build_package(request: BuildRequest) -> tuple[Mapping[str, str], list[str]]:
    """A package and the notes about its schemas."""
    notes: list[str] = []
    return package_cache.build_package(request, notes.append), notes


def test_a_package_that_was_built_before_comes_out_of_the_cache(place: Path) -> None:
    first = build_package(REQUEST)
    [path] = packages(place)
    before = path.stat().st_ino
    assert build_package(REQUEST) == first
    assert path.stat().st_ino == before


def test_models_that_another_package_has_come_out_of_the_cache(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(REQUEST, selection=selection(("protocol",)))
    with cache.disable():
        expected = build_package(wanted)
    build_package(REQUEST)
    kept = sorted(place.glob("models-*"))
    assert len(kept) == 1
    monkeypatch.setattr(sys, "executable", "/bin/false")  # no process could make them again
    monkeypatch.setattr(models, "source_of", None)
    assert build_package(wanted) == expected
    assert sorted(place.glob("models-*")) == kept


def test_templates_that_were_compiled_come_out_of_the_cache(place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text("{{ value | literal }}")
    code = (
        "import sys, pathlib, jinja2; from mcpgen import paths\n"
        "from mcpgen.render import templates;"
        f" paths.templates_dir = lambda: pathlib.Path({str(tmp_path)!r});"
        " jinja2.Environment.compile = jinja2.Environment.compile if sys.argv[1:] else None;"
        " print(templates.render('a.jinja', value='x'))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1
    for words in (["compile"], [], ["compile"]):
        done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
        assert done.stdout == "'x'\n"
        [entry] = place.glob("template-*")
        if not words:
            entry.write_bytes(b"damaged")


def test_notes_about_a_schema_file_come_out_of_the_cache_too(tmp_path: Path, place: Path) -> None:
    definitions = definitions_of(OLDEST)
    definitions["Tool"]["properties"]["colour"] = {"type": "string"}
    source = schema_sources.of_file(save_schema(tmp_path, definitions))
    request = BuildRequest("pkg", (source,), selection=TYPES)
    first = build_package(request)
    assert first[1]
    assert build_package(request) == first
    assert len(packages(place)) == 1


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
    assert len(packages(place)) == len(requests)
    assert len(set(texts)) == len(requests)


def test_a_revision_that_is_added_is_another_input(tmp_path: Path, place: Path) -> None:
    build_package(REQUEST)
    own = tmp_path / "own"
    shutil.copytree(paths.schema_dir(), own)
    with paths.own_schemas(own):
        build_package(REQUEST)
    assert len(packages(place)) == 2


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_cache_can_be_turned_off(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "variable":
        monkeypatch.setenv(cache.VARIABLE, "1")
    words = ("--no-cache",) if way == "option" else ()
    done = run("-q", "-r", OLDEST, "--parts", "types", "-o", str(tmp_path / "pkg"), *words)
    assert (done.code, done.err) == (0, "")
    assert not place.exists()


@pytest.mark.parametrize("spoil", [b"", b"x", b"\x00" * 100, None], ids=repr)
def test_an_entry_that_is_damaged_is_made_anew(place: Path, spoil: bytes | None) -> None:
    cache.write("some", KEY, b"content")
    [path] = place.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"\xff" if spoil is None else spoil)
    assert cache.read("some", KEY) is None
    cache.write("some", KEY, b"content")
    assert cache.read("some", KEY) == b"content"


def test_a_cache_that_is_off_gives_no_entry_that_is_there(place: Path) -> None:
    cache.write("some", KEY, b"content")
    with cache.disable():
        assert cache.read("some", KEY) is None
        cache.write("some", KEY, b"other")
    assert cache.read("some", KEY) == b"content"


def test_a_cache_that_cannot_be_written_is_no_error(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("a file")
    cache.write("some", KEY, b"content")
    assert cache.read("some", KEY) is None


def test_the_entries_that_were_not_used_for_longest_are_removed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 3 * 45)  # of entries of 32 + 11 bytes
    keys = [f"{number}" * 64 for number in range(4)]
    for age, key in enumerate(keys):
        cache.write("some", key, key[:3].encode())
        path = place / f"some-{key}.entry"
        if path.exists():
            os.utime(path, (1000 + age, 1000 + age))
    assert [cache.read("some", key) is not None for key in keys] == [False, True, True, True]


def test_an_entry_that_was_read_is_kept_longer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 100)
    for age, key in enumerate("ab"):
        cache.write("some", key, b"abc")
        os.utime(place / f"some-{key}.entry", (1000 + age, 1000 + age))
    assert cache.read("some", "a") == b"abc"
    cache.write("some", "c", b"abc")
    assert [cache.read("some", key) is not None for key in "abc"] == [True, False, True]


@pytest.mark.parametrize("more", [0, 1])
def test_all_entries_have_32_mebibytes_at_most(place: Path, more: int) -> None:
    cache.write("some", "a", b"content")
    [first] = place.iterdir()
    other = place / "some-b.entry"
    other.touch()
    os.truncate(other, 32 * 1024 * 1024 - first.stat().st_size + more)
    os.utime(other, (1000, 1000))
    cache.write("some", "a", b"content")
    assert other.exists() == (more == 0)
    assert place.stat().st_mode & 0o777 == 0o700


def test_an_entry_that_cannot_be_placed_leaves_no_file(place: Path) -> None:
    (place / "some-a.entry" / "folder").mkdir(parents=True)
    cache.write("some", "a", b"content")
    assert [path.name for path in place.iterdir()] == ["some-a.entry"]


def test_writers_of_one_entry_do_not_disturb_each_other(place: Path) -> None:
    content = b"content" * 10_000

    def write_and_read(_: int) -> bytes | None:
        cache.write("some", KEY, content)
        return cache.read("some", KEY)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write_and_read, range(40))) == {content}
    assert [path.name for path in place.iterdir()] == [f"some-{KEY}.entry"]
