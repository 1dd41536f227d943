"""Sets of revisions: those that a ledger entry holds in, and those of next year; their modules."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from mcpgen_runtime import REVISIONS
from mcpgen_runtime.facts import Lifecycle, Revisions
from mcpgen_runtime.revisions import FOLDERS
from requirements.entries import ledger


def revisions_holding(*ids: str) -> tuple[str, ...]:
    """The revisions in which all of these entries hold; none at all is a mistake of the test."""
    entries = [ledger()[id] for id in ids]
    revisions = tuple(
        name for name in REVISIONS if all(name in entry.revisions for entry in entries)
    )
    assert revisions, ids
    return revisions


def revision_fixture(revisions: Iterable[str]) -> Any:
    """The fixture `revision` of a file: its tests run on each of these, unless marked otherwise."""

    @pytest.fixture(params=tuple(revisions), name="revision")
    def of_file(request: pytest.FixtureRequest) -> str:
        name: str = request.param
        return name

    return of_file


def with_another(name: str) -> Revisions:
    """The revisions without handshake, and one more that differs from the last in its name only."""
    known = REVISIONS.of(Lifecycle.PER_REQUEST)
    another = replace(known.newest(), name=name)
    rows = {each: (Lifecycle.PER_REQUEST, partial(known.__getitem__, each)) for each in known}
    return Revisions({**rows, name: (Lifecycle.PER_REQUEST, lambda: another)})


def module_of(revision: str, name: str = "models") -> Any:
    """A module of one revision, such as that of its types."""
    return importlib.import_module(f"mcpgen_runtime.{FOLDERS[revision]}.{name}")
