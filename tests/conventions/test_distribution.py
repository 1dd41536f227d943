"""`generated/` is a distribution of its own: what it says of itself is what the project says."""

from __future__ import annotations

import tomllib

import pytest

from conventions.sources import ROOT, text_of
from mcpgen import __version__

pytestmark = pytest.mark.lengthy

PROJECT = tomllib.loads(text_of(ROOT / "pyproject.toml"))
GENERATED = tomllib.loads(text_of(ROOT / "generated" / "pyproject.toml"))["project"]


def test_it_has_the_version_license_and_pythons_of_the_tool() -> None:
    assert GENERATED["version"] == __version__
    for key in ("license", "requires-python", "authors"):
        assert GENERATED[key] == PROJECT["project"][key]


def test_it_needs_what_the_package_is_tested_with() -> None:
    extras = GENERATED["optional-dependencies"]
    every = [*GENERATED["dependencies"], *extras["templates"], *extras["schemas"]]
    assert sorted(every) == sorted(PROJECT["dependency-groups"]["package"])
    assert extras["http"] == PROJECT["project"]["optional-dependencies"]["http"]
