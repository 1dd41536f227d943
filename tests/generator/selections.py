"""Packages of a few parts, transports and revisions, for the tests of what is written."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from functools import cache, partial
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

import pytest

from mcpgen import schema
from mcpgen.model.choice import selection
from mcpgen.render import tree
from mcpgen.render.formatting import format_modules
from mcpgen.schema import docs, facts
from mcpgen.spec import stages
from mcpgen.spec.packages import RevisionSpec

NAMES = tuple(row.name for row in schema.revisions())
OLDEST, NEWEST = NAMES[0], NAMES[-1]
MIDDLE, LAST_WITH_SESSIONS = NAMES[2], NAMES[3]

PAIRWISE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("types", "all", (OLDEST,)),
    ("types", "all", (MIDDLE, NEWEST)),
    ("protocol", "all", (MIDDLE,)),
    ("client", "stdio", (NEWEST,)),
    ("client", "http", (MIDDLE,)),
    ("client", "http+sse", (OLDEST, NEWEST)),
    ("server", "stdio", (MIDDLE,)),
    ("server", "http", (NEWEST,)),
    ("server", "http+sse", (OLDEST,)),
    ("client,server", "stdio,http", (OLDEST, MIDDLE)),
    ("client,server", "http", (LAST_WITH_SESSIONS,)),
    ("all", "all", (NEWEST,)),
)
"""Each part with each transport, and each of both with old, new and several revisions."""


@cache
def spec_of(name: str) -> RevisionSpec:
    """Everything about one of mcpgen's revisions."""
    loaded = schema.load(name)
    return stages.revision_spec(loaded, facts.with_constants(facts.load(name), loaded), docs.load())


@cache
def render_selection(
    chosen: str,
    transports: str,
    revisions: tuple[str, ...],
    models: str = "",
    features: tuple[str, ...] = ("all",),
    form: tree.Form = format_modules,
    runtime: str = "",
    decoding: str = "",
) -> Mapping[str, str]:
    """A package of a selection."""
    words = () if transports == "all" else (transports,)
    specs = [spec_of(name) for name in revisions]
    parts = selection((chosen,), words, models, features, runtime, decoding)
    return tree.render_package(specs, "pkg", parts, form=form)


rendered = partial(render_selection, form=dict)
"""The same as it is rendered, which is faster: for tests that look at no layout."""


@cache
def byte_code(text: str) -> bytes:
    """The byte code of a module as a file, which Python takes if the module still has the text."""
    code = marshal.dumps(compile(text, "", "exec", dont_inherit=True))
    return MAGIC_NUMBER + b"\3\0\0\0" + source_hash(text.encode()) + code


def write_package(files: Mapping[str, str], folder: Path, name: str = "pkg") -> Path:
    """The folder in which a package now lies, with byte code: packages share most modules."""
    for path, text in files.items():
        place = folder / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        if path.endswith(".py"):
            compiled = Path(cache_from_source(place))
            compiled.parent.mkdir(exist_ok=True)
            compiled.write_bytes(byte_code(text))
    return folder


pairwise = pytest.mark.parametrize(
    ("chosen", "transports", "revisions"), PAIRWISE, ids=lambda value: str(value).replace(", ", "+")
)


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, by its path; none for a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }
