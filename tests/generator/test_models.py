"""The module of models: its text, where awkward names and values do not show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, any_of, const, normal_of, obj
from mcpgen.literals import docstring
from mcpgen.model.docstrings import Doc
from mcpgen.model.unions import decide_all
from mcpgen.render import models


def render_models(title: str = "Models.", **definitions: Any) -> str:
    """The models of these definitions; those of the same title are made once."""
    normal = normal_of(**definitions)
    docs = {name: Doc(docstring(f"About {name}."), {}) for name in normal.definitions}
    return models.render(normal, models.job(normal, decide_all(normal).tests, docs, title))


def test_a_constant_member_may_have_the_name_of_another_tag() -> None:
    source = render_models(
        Ask=obj("rpc method", rpc=const("2.0"), method=const("ask")),
        Answer=obj("rpc", rpc=const("2.0"), answer=TEXT),
        Other=obj("method rpc", rpc=const("2.0"), method=const("other")),
    )
    assert "always_sent(" in source
    assert "import always_sent" in source or ", always_sent" in source


def test_models_do_not_depend_on_where_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions: dict[str, Any] = {
        "Text": obj("type text", type=const("text"), text={"type": ["string", "null"]}),
        "Image": obj("type data", type=const("image"), data=COUNT),
        "Block": any_of("Text", "Image"),
    }
    first = render_models(**definitions)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.black]\nline-length = 40\nskip-string-normalization = true\n"
        "[tool.datamodel-codegen]\nuse-union-operator = false\n"
    )
    assert render_models("Elsewhere.", **definitions) == first.replace("Models.", "Elsewhere.", 1)
