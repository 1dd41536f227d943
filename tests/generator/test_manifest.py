"""The manifest: what a package was made from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Installation, output_of
from generator.tables import table
from mcpgen import __version__, paths
from mcpgen.errors import ManifestError
from mcpgen.package import manifest

FILES = {"b.py": "b\n", "a.py": "a\n"}


def test_a_manifest_names_no_option_that_is_the_default(tmp_path: Path) -> None:
    written = manifest.new("pkg", manifest.Options(errata=True), {}, {})
    document = json.loads(written.text())
    assert document["options"] == {"errata": True, "parts": ["all"], "transports": ["all"]}
    members = {"mcpgen", "generator", "package", "options", "revisions", "files"}
    assert set(document) == members
    (tmp_path / manifest.NAME).write_text(written.text())
    assert manifest.read(tmp_path) == written


ORIGINS = {"2031-02-03": manifest.Origin("file", "structure", "inputs")}
FULL = manifest.new(
    "pkg.inner",
    manifest.Options(
        *(False, ("client",), ("stdio",), "pydantic", ("none", "returns"), False, "installed"),
        *(("../src",), ("used",), "strict", ("keep",), "mutable"),
    ),
    {"2031-02-03": manifest.Origin("file", "structure", "inputs", "../a.json", "../b.toml")},
    FILES,
    manifest.Templates("../templates", {"x.jinja": "0"}),
    {
        "com.example/named": manifest.ExtensionOrigin("", "inputs"),
        "com.example/filed": manifest.ExtensionOrigin("../c.json", "inputs"),
    },
    ("New", "Other"),
    ("Old",),
    manifest.PatchOrigin("../pkg.patch", "digest"),
    {"Before": "After"},
    {"2030-01-01": "2031-02-03"},
)
"""A manifest with all that one can have."""


def test_a_manifest_with_all_members_reads_as_it_was_written(tmp_path: Path) -> None:
    assert manifest.read(tmp_path) is None
    (tmp_path / manifest.NAME).write_text(FULL.text())
    assert manifest.read(tmp_path) == FULL
    assert FULL.mcpgen == __version__
    assert [*json.loads(FULL.text())["files"]] == ["a.py", "b.py"]
    document = json.loads(FULL.text())
    assert FULL.text() == f"{json.dumps(document, indent=2)}\n"
    assert set(document) == {each.name for each in fields(manifest.Manifest)}
    assert set(document["options"]) == {each.name for each in fields(manifest.Options)}
    named, filed = document["extensions"].values()
    assert (named, filed) == ({"inputs": "inputs"}, {"schema": "../c.json", "inputs": "inputs"})


def test_a_fingerprint_is_a_sha256_that_does_not_see_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a\r\nb\r\n")
    expected = hashlib.sha256(b"a\nb\n").hexdigest()
    assert manifest.fingerprint("a\nb\n") == manifest.fingerprint("a\r\nb\r\n") == expected
    assert manifest.file_fingerprint(path) == expected


FINGERPRINTS = """
import sys
from pathlib import Path
from mcpgen.package import manifest

before = manifest.generator_fingerprint()
for path in map(Path, sys.argv[1:]):
    path.parent.mkdir(exist_ok=True)
    path.write_text("x = 1\\n")
    after = manifest.generator_fingerprint()
    print(after != before)
    before = after
"""


@pytest.mark.processes
def test_the_generator_fingerprint_covers_templates_and_docs(installation: Installation) -> None:
    rows = {
        "templates/package/new.py": True,
        "templates/package/_data/new.py": True,
        "templates/package/__pycache__/new.pyc": False,
        "templates/_data/new.py": False,
        "schema/docs.toml": True,
        "schema/facts.toml": True,
        "schema/revisions.toml": False,
        "generated/interface.txt": True,
    }
    files = [installation.data / path for path in rows]
    counted = output_of(FINGERPRINTS, *files, cwd=installation.site).split()
    assert dict(zip(rows, (each == "True" for each in counted), strict=True)) == rows


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "a/../../secret.txt", "..", "/etc/passwd", "//host/share", "a//b", "a/"),
        *("./a", "a/./b", ".", "", "a\\b", "..\\a", "C:a", "C:/a", "a\0b", "a\nb", "a\x1b[2Jb"),
        *("caf\u00e9.py", "a b.py", "a.", "a./b", ".hidden", "-rf", "~/a", "$HOME", "\u2024/a"),
    ],
)
def test_a_file_that_no_package_has_is_refused_at_its_place(tmp_path: Path, path: str) -> None:
    record = manifest.new("pkg", manifest.Options(errata=True), {}, {path: "x"})
    (tmp_path / manifest.NAME).write_text(record.text())
    pointer = "/files/" + path.replace("~", "~0").replace("/", "~1")
    with pytest.raises(ManifestError) as raised:
        manifest.read(tmp_path)
    assert raised.value.pointer == pointer
    assert raised.value.expected == paths.FILE_PATH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, "at most 64 levels of nesting, got more"),
        (" " * manifest.MAX_BYTES + "{}", f"a file of {manifest.MAX_BYTES} bytes at most"),
        (f'{{"files": {{{",".join(f""""f{n}": "" """ for n in range(6000))}}}}}', "at most 5000"),
    ],
    ids=["deep", "long", "files"],
)
def test_unreadable_json_is_one_error(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / manifest.NAME).write_text(text)
    with pytest.raises(ManifestError, match=f"expected {expected}"):
        manifest.read(tmp_path)


@pytest.mark.parametrize(("pointer", "change"), table("manifests"))
def test_values_that_mcpgen_never_writes_are_refused(
    tmp_path: Path, pointer: str, change: dict[str, Any]
) -> None:
    record = json.loads(manifest.new("pkg", manifest.Options(errata=True), ORIGINS, FILES).text())
    of_revision = pointer.startswith("/revisions/2031")
    place = record["revisions"]["2031-02-03"] if of_revision else record
    place.update(change)
    (tmp_path / manifest.NAME).write_text(json.dumps(record))
    with pytest.raises(ManifestError) as raised:
        manifest.read(tmp_path)
    assert raised.value.pointer == pointer
    assert str(raised.value).isprintable()
