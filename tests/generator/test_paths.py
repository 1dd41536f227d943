"""Data is found in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from mcpgen import paths


def test_a_checkout_has_its_data_at_the_top(root: Path) -> None:
    assert paths.data_root() == root
    assert paths.schema_dir() == root / "schema"
    assert paths.templates_dir() == root / "templates"


def test_a_wheel_has_its_data_inside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "mcpgen"
    (package / "_data").mkdir(parents=True)
    assert paths.data_root(package) == package / "_data"


def test_paths_of_data_are_shown_from_the_top(root: Path, tmp_path: Path) -> None:
    assert paths.shown_path(root / "schema" / "docs.toml") == "schema/docs.toml"
    assert paths.shown_path(tmp_path / "x") == str(tmp_path / "x")
