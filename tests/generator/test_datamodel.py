"""Models by datamodel-code-generator: their text, and a process of its own that loses no error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.schemas import COUNT, TEXT, any_of, const, facts_of, normal_of, obj
from generator.tables import table
from mcpgen.errors import SchemaError
from mcpgen.literals import docstring
from mcpgen.model.docstrings import Doc
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.model.unions import decide_all
from mcpgen.names import DECODINGS, LIBRARIES
from mcpgen.render import models
from mcpgen.render.datamodel import Job, Worker, source_of

pytestmark = [pytest.mark.lengthy, pytest.mark.usefixtures("place")]
"""Sources of other tests would need no process."""

DEFINITIONS: Mapping[str, Any] = {
    "Near": obj("uri text", uri=TEXT, text=TEXT),
    "Far": obj("uri blob", uri=TEXT, blob=TEXT),
    "Either": any_of("Near", "Far"),
    "Tool": obj("type", type=const("tool"), **{"class": TEXT}),
}


def job_of(
    definitions: Mapping[str, Any], title: str = "Models.", defaults: Any = None, **words: Any
) -> tuple[NormalizedSchema, Job]:
    """Definitions, and the job to make their models."""
    decided = decide_all(normal_of(facts=facts_of(defaults=defaults), **definitions))
    docs = {name: Doc(docstring(f"About {name}."), {}) for name in decided.types.definitions}
    return decided.types, models.job(decided.types, decided.tests, docs, title, **words)


JOBS: dict[str, Any] = table("model_jobs")
"""Definitions, defaults of members, arguments of a job, and policies for other members."""


@pytest.mark.parametrize("case", JOBS)
def test_a_job_has_what_templates_write(case: str, snapshot: SnapshotAssertion) -> None:
    row = JOBS[case]
    policies = row.get("policies", {})
    words: dict[str, Any] = {"extra_policy": lambda name: policies.get(name, "ignore")}
    first: list[str] = []
    for library, decoding in product(LIBRARIES, DECODINGS):
        words |= {"library": library, "decoding": decoding, **row.get("words", {})}
        _, job = job_of(row["definitions"], "", row.get("defaults"), **words)
        lines = [f"{key}: {json.dumps(value, default=repr)}" for key, value in job.items()]
        assert [line for line in lines if line not in first] == snapshot
        first = first or lines


def test_a_process_makes_the_same_source_which_is_kept(place: Path) -> None:
    normal, job = job_of(DEFINITIONS)
    with Worker() as worker, Worker() as idle:
        idle.begin()
        worker.start({"a.py": job, "b.py": job})
        source = worker.source("a.py")
        assert len([*place.glob("models-*")]) == 1
        assert source == worker.source("b.py") == source_of(job)
        assert models.render(normal, job, worker, "a.py") == source


def test_no_process_makes_what_is_kept_or_is_made_here(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, new = (job_of(DEFINITIONS, title)[1] for title in ("Kept.", "New."))
    expected = source_of(kept)
    monkeypatch.setattr(subprocess, "Popen", None)
    with Worker() as worker:
        worker.start({"a.py": kept})
        assert worker.source("a.py") == expected
    with Worker(here=True) as worker:
        worker.begin()
        worker.start({"a.py": new})
        assert worker.source("a.py") == expected.replace("Kept.", "New.", 1)
    assert len([*place.glob("models-*")]) == 2


def test_failures_of_a_worker_process_are_explained_here() -> None:
    normal, job = job_of(DEFINITIONS)
    definitions = {**job["definitions"], "Near": {"type": 5}, "Far": {"type": 5}}
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
    normal, job = job_of(DEFINITIONS)
    monkeypatch.setattr(sys, "executable", program)
    with Worker() as worker:
        worker.start({"a.py": job})
        assert worker.source("a.py") is None
        assert models.render(normal, job, worker, "a.py") == source_of(job)


@pytest.mark.parametrize("name", ["Literal", "a b"])
def test_a_name_that_python_cannot_use_is_refused(name: str) -> None:
    normal, job = job_of({"Tool": DEFINITIONS["Tool"], "Old": TEXT})
    definitions = {**normal.definitions, name: normal.definitions["Old"]}
    nodes = {**job["definitions"], name: TEXT}
    with pytest.raises(SchemaError, match="Old: expected a definition whose names Python can use"):
        models.render(replace(normal, definitions=definitions), {**job, "definitions": nodes})


def test_models_do_not_depend_on_where_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions: dict[str, Any] = {
        "Text": obj("type text", type=const("text"), text={"type": ["string", "null"]}),
        "Image": obj("type data", type=const("image"), data=COUNT),
        "Block": any_of("Text", "Image"),
    }
    first = models.render(*job_of(definitions))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.black]\nline-length = 40\nskip-string-normalization = true\n"
        "[tool.datamodel-codegen]\nuse-union-operator = false\n"
    )
    elsewhere = models.render(*job_of(definitions, "Elsewhere."))
    assert elsewhere == first.replace("Models.", "Elsewhere.", 1)
