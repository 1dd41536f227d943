"""From specs to the text of every file of a package.

Files of `templates/package` are copied as they are, and so are the classes of facts; what ends in
`.jinja` is rendered, what lies in `revision/` once per revision, and formatted by Ruff. Parts that
several templates include lie in `templates/stubs`. Only files that the selected parts need are
made, and each gets a header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcpgen import closure, models, paths
from mcpgen.datamodel import Job, Worker
from mcpgen.formatting import Header, formatted
from mcpgen.literals import checked, docstring, literal
from mcpgen.parts import EVERYTHING, Selection
from mcpgen.spec import PackageSpec, RevisionSpec, package

_SUFFIX = ".jinja"
_PER_REVISION = "revision"
_SKIPPED = "__pycache__"
_SHARED = frozenset({"method_facts.py", "revision_facts.py"})
"""Modules of mcpgen that packages have a copy of."""


def render_package(
    revisions: Sequence[RevisionSpec],
    package_name: str,
    selection: Selection = EVERYTHING,
    worker: Worker | None = None,
) -> dict[str, str]:
    """The text of every file of a package by its path, sorted.

    Args:
        revisions: What it speaks.
        package_name: Its import name.
        selection: The parts and the transports to write.
        worker: The process that makes the models; this one without it.

    Raises:
        UsageError: No revision has a transport that was selected.
    """
    spec = package(revisions, package_name, selection)
    jobs = {
        f"{revision.folder}/models.py": _models_job(spec, revision) for revision in spec.revisions
    }
    if worker is not None:
        worker.start(jobs)
    makers = _makers(spec, jobs, worker)

    def text_of(path: str) -> str:
        return makers[path]()

    files = closure.needed(spec.entries, makers, text_of, jobs)
    files["__init__.py"] = text_of("__init__.py")
    root = _root()
    copied = {path for path in files if path in _SHARED or (root / path).is_file()}
    files |= formatted({path: text for path, text in files.items() if path not in copied})
    header = Header.of(spec)
    return {path: header.above(path, files[path]) for path in sorted(files)}


def _makers(
    spec: PackageSpec, jobs: Mapping[str, Job], worker: Worker | None
) -> dict[str, Callable[[], str]]:
    """What makes the text of each file that a package may have, by its path."""
    makers: dict[str, Callable[[], str]] = {}
    for file in _verbatim():
        makers[file.relative_to(_root()).as_posix()] = partial(file.read_text, encoding="utf-8")
    for name in _SHARED:
        makers[name] = partial((paths.PACKAGE / name).read_text, encoding="utf-8")
    for path, source in _templates(""):
        makers[path] = partial(_rendered, source, package=spec)
    for revision in spec.revisions:
        for path, source in _templates(_PER_REVISION):
            made = partial(_rendered, source, package=spec, revision=revision)
            makers[f"{revision.folder}/{path}"] = made
        path = f"{revision.folder}/models.py"
        normal = revision.models.normal
        makers[path] = partial(models.render, normal, jobs[path], worker, path)
    return makers


def _models_job(spec: PackageSpec, revision: RevisionSpec) -> Job:
    parts = revision.models
    title = f"The messages of {revision.name}: a Struct for every object, under its name."
    lacking = spec.merged.lacking.get(revision.name, {})
    return models.job(parts.normal, parts.unions, parts.docs, title, lacking)


def _rendered(source: str, **values: PackageSpec | RevisionSpec) -> str:
    return _environment(paths.templates_dir()).get_template(source).render(values)


def _root() -> Path:
    return paths.templates_dir() / "package"


def _verbatim() -> Iterator[Path]:
    for path in _root().rglob("*"):
        if path.suffix != _SUFFIX and _SKIPPED not in path.parts and path.is_file():
            yield path


def _templates(folder: str) -> Iterator[tuple[str, str]]:
    """Templates of a folder: the path of what each renders, below that folder, and its name."""
    for path in (_root() / folder).rglob(f"*{_SUFFIX}"):
        inner = path.relative_to(_root() / folder)
        if folder or inner.parts[0] != _PER_REVISION:
            source = path.relative_to(paths.templates_dir()).as_posix()
            yield inner.as_posix().removesuffix(_SUFFIX), source


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
