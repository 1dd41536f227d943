"""From specs to the text of every file of a package.

Files of `templates/package` are copied as they are, and so are the classes of facts; what ends in
`.jinja` is rendered, what lies in `revision/` once per revision, and formatted by Black. Parts that
several templates include lie in `templates/faces`.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from mcpgen import models, paths
from mcpgen.literals import checked, docstring, literal
from mcpgen.spec import RevisionSpec, package
from mcpgen.texts import WIDTH

_SUFFIX = ".jinja"
_PER_REVISION = "revision"
_SKIPPED = "__pycache__"
_SHARED = "revision_facts.py"
"""A module of mcpgen that packages have a copy of."""


def render_package(revisions: Sequence[RevisionSpec], package_name: str) -> dict[str, str]:
    """The text of every file of a package by its path, sorted.

    Args:
        revisions: What it speaks.
        package_name: Its import name.
    """
    spec = package(revisions, package_name)
    files = dict(_verbatim())
    with _collector_paused():
        for path, template in _templates(""):
            files[path] = _formatted(template.render(package=spec))
        for revision in spec.revisions:
            for path, template in _templates(_PER_REVISION):
                text = template.render(package=spec, revision=revision)
                files[f"{revision.folder}/{path}"] = _formatted(text)
            files[f"{revision.folder}/models.py"] = _formatted(
                _models(revision, spec.merged.lacking.get(revision.name, {}))
            )
    return dict(sorted(files.items()))


@contextmanager
def _collector_paused() -> Generator[None]:
    """No garbage collection: of the many objects made here, next to none is garbage yet."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _models(revision: RevisionSpec, lacking: Mapping[str, Sequence[str]]) -> str:
    parts = revision.models
    title = f"The messages of {revision.name}: a Struct for every object, under its name."
    return models.render(parts.normal, parts.unions, parts.docs, title, lacking)


def _root() -> Path:
    return paths.templates_dir() / "package"


def _verbatim() -> Iterator[tuple[str, str]]:
    for path in sorted(_root().rglob("*")):
        if path.is_file() and path.suffix != _SUFFIX and _SKIPPED not in path.parts:
            yield path.relative_to(_root()).as_posix(), path.read_text(encoding="utf-8")
    yield _SHARED, (paths.PACKAGE / _SHARED).read_text(encoding="utf-8")


def _templates(folder: str) -> Iterator[tuple[str, Template]]:
    """Templates right in a folder, each with the path of what it renders, below that folder."""
    environment = _environment(paths.templates_dir())
    for path in sorted((_root() / folder).rglob(f"*{_SUFFIX}")):
        inner = path.relative_to(_root() / folder)
        if folder or inner.parts[0] != _PER_REVISION:
            source = path.relative_to(paths.templates_dir()).as_posix()
            yield inner.as_posix().removesuffix(_SUFFIX), environment.get_template(source)


@cache
def _environment(root: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(root),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=checked,
    )
    filters: Mapping[str, Any] = {"literal": literal, "docstring": docstring}
    environment.filters.update(filters)
    return environment


def _formatted(source: str) -> str:
    # Black takes long to import; only this function needs it
    import black
    from black.mode import TargetVersion

    mode = black.Mode(line_length=WIDTH, target_versions={TargetVersion.PY311})
    return black.format_str(source, mode=mode)
