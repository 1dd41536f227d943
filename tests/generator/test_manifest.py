"""The manifest: what a package was made from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mcpgen import __version__, manifest, paths

FILES = {"b.py": "b\n", "a.py": "a\n"}


def test_a_manifest_reads_as_it_was_written(tmp_path: Path) -> None:
    origins = {"2031-02-03": manifest.Origin("file", "structure", "inputs")}
    record = manifest.new("pkg", manifest.Options(errata=False), origins, FILES)
    (tmp_path / manifest.NAME).write_text(record.text())
    assert manifest.read(tmp_path) == record
    assert record.mcpgen == __version__


def test_a_manifest_is_ordered_and_has_no_time_and_no_place() -> None:
    text = manifest.new("pkg", manifest.Options(errata=True), {}, FILES).text()
    assert list(json.loads(text)["files"]) == ["a.py", "b.py"]
    assert str(paths.data_root()) not in text
    assert text == manifest.new("pkg", manifest.Options(errata=True), {}, FILES).text()


def test_a_directory_without_a_manifest_has_none(tmp_path: Path) -> None:
    assert manifest.read(tmp_path) is None


def test_a_fingerprint_is_a_sha256_that_does_not_see_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a\r\nb\r\n")
    expected = hashlib.sha256(b"a\nb\n").hexdigest()
    assert manifest.fingerprint("a\nb\n") == manifest.fingerprint("a\r\nb\r\n") == expected
    assert manifest.file_fingerprint(path) == expected


def test_the_fingerprint_of_several_files_sees_names_and_not_order(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_text("1")
    two.write_text("2")
    assert manifest.combined([("a", one), ("b", two)]) == manifest.combined(
        [("b", two), ("a", one)]
    )
    assert manifest.combined([("a", one)]) != manifest.combined([("b", one)])


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("templates/package/new.py", True),
        ("templates/package/__pycache__/new.pyc", False),
        ("schema/docs.toml", True),
        ("schema/revisions.toml", False),
    ],
)
def test_the_generators_fingerprint_sees_templates_and_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, counts: bool
) -> None:
    monkeypatch.setattr("mcpgen.paths.data_root", lambda: tmp_path)
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "docs.toml").write_text("")
    before = manifest.generator_fingerprint()
    place = tmp_path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("x = 1\n")
    assert (manifest.generator_fingerprint() != before) is counts
