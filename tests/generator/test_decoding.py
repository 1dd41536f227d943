"""`--decoding strict`: recorded, kept, and without a trace in packages that decode leniently."""

from __future__ import annotations

import pytest

from generator.selections import NEWEST, rendered
from mcpgen.errors import UsageError
from mcpgen.model import choice


def test_only_a_strict_package_has_definitions() -> None:
    lenient = rendered("types", "all", (NEWEST,))
    strict = rendered("types", "all", (NEWEST,), decoding="strict")
    folder = f"r{NEWEST.replace('-', '_')}"
    assert strict.keys() - lenient.keys() == {f"{folder}/definitions.py"}
    differing = {path for path in lenient if lenient[path] != strict[path]}
    assert differing == {"_decoding.py", f"{folder}/models.py"}
    assert not any("DEFINITIONS" in text for text in lenient.values())


def test_an_unknown_kind_of_decoding_is_refused() -> None:
    with pytest.raises(UsageError, match="--decoding: expected lenient or strict, got 'loose'"):
        choice.selection(decoding="loose")


def test_an_installed_runtime_decodes_leniently_alone() -> None:
    with pytest.raises(UsageError, match="--decoding strict: expected --runtime vendored"):
        rendered("types", "all", (NEWEST,), runtime="installed", decoding="strict")
