"""Models by datamodel-code-generator: their text, and a process of its own that loses no error."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, any_of, const, normal_of, obj
from mcpgen import cache
from mcpgen.errors import SchemaError
from mcpgen.literals import docstring
from mcpgen.model.docstrings import Doc
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.model.unions import decide_all
from mcpgen.render import models
from mcpgen.render.datamodel import Job, Worker, source_of

pytestmark = pytest.mark.lengthy

DEFINITIONS: Mapping[str, Any] = {
    "Near": obj("uri text", uri=TEXT, text=TEXT),
    "Far": obj("uri blob", uri=TEXT, blob=TEXT),
    "Either": any_of("Near", "Far"),
    "Tool": obj("type", type=const("tool"), **{"class": TEXT}),
}


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own: sources of other tests would need no process."""
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def job_of(title: str = "Models.", **definitions: Any) -> tuple[NormalizedSchema, Job]:
    """Definitions, and the job to make their models."""
    normal = normal_of(**definitions)
    docs = {name: Doc(docstring(f"About {name}."), {}) for name in normal.definitions}
    return normal, models.job(normal, decide_all(normal).tests, docs, title, {"Near": ("far",)})


def test_a_process_makes_the_same_source() -> None:
    normal, job = job_of(**DEFINITIONS)
    with Worker() as worker:
        worker.start({"a.py": job, "b.py": job})
        assert worker.source("a.py") == worker.source("b.py") == source_of(job)
        assert models.render(normal, job, worker, "a.py") == source_of(job)


def test_failures_of_a_worker_process_are_explained_here() -> None:
    normal, job = job_of(**DEFINITIONS)
    definitions = {**job["definitions"], "Near": {"type": 5}}
    broken: Job = {**job, "definitions": definitions}
    with Worker() as worker:
        worker.start({"a.py": broken, "b.py": job})
        assert worker.source("a.py") is None
        assert worker.source("b.py") == source_of(job)
        with pytest.raises(SchemaError, match="/Near: expected what can become Python"):
            models.render(normal, broken, worker, "a.py")


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_without_a_process_the_source_is_made_here(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal, job = job_of(**DEFINITIONS)
    monkeypatch.setattr(sys, "executable", program)
    with Worker() as worker:
        worker.start({"a.py": job})
        assert worker.source("a.py") is None
        assert models.render(normal, job, worker, "a.py") == source_of(job)


def render_models(title: str = "Models.", **definitions: Any) -> str:
    """The models of these definitions; those of the same title are made once."""
    return models.render(*job_of(title, **definitions))


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
