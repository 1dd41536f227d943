"""The protocol in reports of `mcpgen update`: methods and types that are new, gone or changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run
from generator.draft_packages import definitions_of, save_schema, with_request
from generator.schemas import TEXT, ref
from mcpgen import cache, schema

pytestmark = [pytest.mark.costly, pytest.mark.usefixtures("here")]

OLD, NEW = "2025-11-25", "2026-07-28"
FEW = ("--parts", "types")


def report(done: Done) -> str:
    """The lines about the protocol in what an update says."""
    assert (done.code, done.err.count("error")) == (0, 0), done.err
    lines = done.out.splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("  ") or " -> " in line)


def test_a_newer_revision_is_compared_with_the_newest_one_before(
    snapshot: SnapshotAssertion,
) -> None:
    run("-q", "-r", OLD, *FEW, "-o", "pkg")
    assert report(run("update", "pkg", "--revision", "latest")) == snapshot


def test_an_edited_draft_is_compared_with_its_state_before(
    here: Path, snapshot: SnapshotAssertion
) -> None:
    save_schema(here, with_request(OLD, "Paint", "tools/paint"))
    run("-q", "--schema", "schema.json", *FEW, "-o", "pkg")
    edited = with_request(OLD, "Paint", "tools/paints")
    edited["Tool"]["properties"]["colour"] = TEXT
    edited["ServerNotification"]["anyOf"].pop()
    capabilities = edited["ClientCapabilities"]["properties"]
    edited["Modes"] = capabilities["elicitation"]
    capabilities["elicitation"] = ref("Modes")  # the same values as before
    save_schema(here, edited)
    assert report(run("update", "pkg")) == snapshot


def test_a_state_that_is_not_known_is_not_compared(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.VARIABLE, "1")
    save_schema(here, with_request(OLD, "Paint", "tools/paint"))
    run("-q", "--schema", "schema.json", *FEW, "-o", "pkg")
    save_schema(here, with_request(OLD, "Draw", "canvas/draw"))
    assert report(run("update", "pkg")) == ""


def test_a_program_gets_the_names(here: Path, snapshot: SnapshotAssertion) -> None:
    definitions = definitions_of(OLD)
    run("-q", "-r", OLD, *FEW, "-o", "pkg")
    save_schema(here, {**definitions, **with_request(OLD, "Paint", "tools/paint")})
    (here / "schema.json").rename(here / f"{OLD}.json")
    run("-q", "--schema", f"{OLD}.json", *FEW, "-o", "pkg")
    save_schema(here, definitions)
    (here / "schema.json").rename(here / f"{OLD}.json")
    [changes] = json.loads(run("update", "pkg", "--json").out)["changes"]
    assert changes == snapshot
    assert schema.latest().name == NEW
