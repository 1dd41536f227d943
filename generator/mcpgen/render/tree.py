"""From specs to the text of every file of a package.

Files of `templates/package` are copied unchanged, and so are the classes of facts. Files with the
suffix `.jinja` are rendered and formatted by Black: those in `revision/` once per revision, those
in `extension/` once per extension of a revision. Parts that several templates include lie in
`templates/stubs`. Only files that the selected parts need are made, and each gets a header.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from mcpgen import names, paths
from mcpgen.errors import TemplateError, UsageError
from mcpgen.model import runtime
from mcpgen.model.parts import EVERYTHING, Features, Selection
from mcpgen.render import closure, models, templates
from mcpgen.render.datamodel import Job, Worker
from mcpgen.render.formatting import Header, format_modules
from mcpgen.render.own_templates import NO_TEMPLATES, OwnTemplates, read_models
from mcpgen.render.template_names import ADDED, is_partial
from mcpgen.spec.building import package
from mcpgen.spec.loading import specification
from mcpgen.spec.packages import ExtensionSpec, PackageSpec, RevisionSpec

_SUFFIX = ".jinja"
_PYTHON = (".py", ".pyi")
_PER_REVISION = "revision"
_PER_EXTENSION = "extension"
_OLD_MODULE = "stubs/old_module.jinja"
_SKIPPED = "__pycache__"
_SHARED = frozenset({"method_facts.py", "revision_facts.py"})
"""Modules of mcpgen that packages have a copy of."""
Form = Callable[[Mapping[str, str]], dict[str, str]]
"""Converts rendered modules to their written form; both by their paths."""


def render_package(
    revisions: Sequence[RevisionSpec],
    package_name: str,
    selection: Selection = EVERYTHING,
    worker: Worker | None = None,
    overrides: Path | None = None,
    old_names: Sequence[str] = (),
    renamed_types: Mapping[str, str] | None = None,
    old_revisions: Mapping[str, str] | None = None,
    form: Form = format_modules,
) -> dict[str, str]:
    """The text of every file of a package by its path, sorted.

    Args:
        revisions: The revisions of the package.
        package_name: Its import name.
        selection: The parts, the transports and the features to write.
        worker: The process that makes the models; this process if `None`.
        overrides: A directory with templates that replace mcpgen's.
        old_names: Public names of earlier packages that the package still offers.
        renamed_types: Old names of types, with their new names.
        old_revisions: Removed revisions, whose modules re-export those of others with a warning.
        form: Converts rendered modules to their written form.

    Raises:
        UsageError: No revision has a transport that was selected, or a type with a policy.
        TemplateError: An override cannot be rendered.
    """
    spec = package(revisions, package_name, selection, old_names, renamed_types)
    own = NO_TEMPLATES if overrides is None else read_models(overrides)
    public = None if overrides is None else specification(spec.revisions)

    def own_for(revision: RevisionSpec) -> OwnTemplates:
        return own.for_revision(public.revision(revision.name) if public and own.texts else None)

    _check_extra(spec)
    jobs = {
        f"{revision.folder}/models.py": _models_job(spec, revision, own_for(revision))
        for revision in spec.revisions
    }
    for revision, extension, folder in _extensions(spec):
        jobs[f"{folder}/models.py"] = _extension_job(spec, revision, extension, own_for(revision))
    if worker is not None:
        worker.start(jobs)
    values = {"package": spec} if public is None else {"package": spec, "spec": public}
    makers = _makers(spec, jobs, worker, overrides, values)
    added = {} if overrides is None else _added_makers(spec, overrides, values)
    _check_added(added, makers, overrides)
    makers |= added

    def text_of(path: str) -> str:
        return makers[path]()

    try:
        files = closure.needed_files((*spec.entries, *added), makers, text_of, jobs)
    except LookupError as error:
        if overrides is None or not spec.has.installed:
            raise
        text = f"--templates: {error}; import modules of the runtime by {{{{ runtime }}}}"
        raise UsageError(text) from error
    files |= {path: text_of(path) for path in ("__init__.py", "__init__.pyi")}
    for old, new in (old_revisions or {}).items():
        files |= _old_modules(spec, old, new, files)
    rendered = {path for path, _ in _in_place(spec.has)}
    copied = {path for path in files if is_copied(path) and path not in rendered}
    modules = {path for path in files if path not in copied and path.endswith(_PYTHON)}
    files |= form({path: text for path, text in files.items() if path in modules})
    header = Header.of(spec)
    return {path: header.above(path, files[path]) for path in sorted(files)}


def _check_extra(spec: PackageSpec) -> None:
    """Check that each type with a policy for further members is an object of the package.

    Raises:
        UsageError: One is not.
    """
    models = [each.models for each in spec.revisions]
    models += [extension.models for _, extension, _ in _extensions(spec)]
    objects = {
        name for each in models for name, row in each.normal.definitions.items() if row.is_object
    }
    for name in (word.rpartition("=")[0] for word in spec.has.extra):
        if name and name not in objects:
            raise UsageError(f"--extra: expected an object of the package, got {name}")


def is_copied(path: str) -> bool:
    """Whether a file of a package is the same in every package."""
    return path in _SHARED or (_root() / path).is_file()


def _makers(
    spec: PackageSpec,
    jobs: Mapping[str, Job],
    worker: Worker | None,
    overrides: Path | None,
    every: Mapping[str, object],
) -> dict[str, Callable[[], str]]:
    """The function that makes the text of each possible file of a package, by the file's path.

    Args:
        spec: The package.
        jobs: The jobs of the models.
        worker: The process that makes the models.
        overrides: A directory with templates that replace mcpgen's.
        every: The values for every template.
    """
    makers: dict[str, Callable[[], str]] = {}

    def add(path: str, source: str, **values: object) -> None:
        values |= {**every, **_runtime_names(spec, path)}
        makers[path] = partial(templates.render, source, overrides, **values)

    for file in _verbatim():
        makers[file.relative_to(_root()).as_posix()] = partial(file.read_text, encoding="utf-8")
    for name in _SHARED:
        makers[name] = partial((paths.PACKAGE / "schema" / name).read_text, encoding="utf-8")
    for path, source in (*_templates(), *_in_place(spec.has)):
        add(path, source)
    for revision in spec.revisions:
        for path, source in _templates_per(_PER_REVISION, spec.has):
            add(f"{revision.folder}/{path}", source, revision=revision)
        path = f"{revision.folder}/models.py"
        normal = revision.models.normal
        makers[path] = partial(models.render, normal, jobs[path], worker, path)
    for revision, extension, folder in _extensions(spec):
        for path, source in _templates_per(_PER_EXTENSION, spec.has):
            add(f"{folder}/{path}", source, revision=revision, extension=extension)
        path = f"{folder}/models.py"
        normal = extension.models.normal
        makers[path] = partial(models.render, normal, jobs[path], worker, path)
    if not spec.has.installed:
        return makers
    folders = [revision.folder for revision in spec.revisions]
    return {path: make for path, make in makers.items() if runtime.has_file(path, folders)}


def _added_makers(
    spec: PackageSpec, overrides: Path, every: Mapping[str, object]
) -> dict[str, Callable[[], str]]:
    """The function that makes the text of each file that the user adds, by the file's path."""
    root = overrides / ADDED
    makers: dict[str, Callable[[], str]] = {}
    for file in sorted(root.rglob("*")):
        inner = file.relative_to(root)
        if not file.is_file() or any(part.startswith(".") for part in inner.parts):
            continue
        if is_partial(inner.as_posix()):
            continue
        for path, values in _places_of(spec, inner.as_posix()):
            if file.suffix == _SUFFIX:
                path = path.removesuffix(_SUFFIX)
                values |= {**every, **_runtime_names(spec, path)}
                name = f"{ADDED}/{inner.as_posix()}"
                makers[path] = partial(templates.render, name, overrides, **values)
            else:
                makers[path] = partial(file.read_text, encoding="utf-8")
    return makers


def _check_added(added: Collection[str], others: Collection[str], overrides: Path | None) -> None:
    """Refuse files of the user that a package has already, and modules outside of packages.

    Raises:
        TemplateError: There is such a file.
    """
    for path in added:
        folder = path.rpartition("/")[0]
        if path in others:
            raise TemplateError(str(overrides), None, f"expected a new file in {ADDED}, got {path}")
        beside = f"{folder}/__init__.py"
        if path.endswith(_PYTHON) and folder and beside not in (*added, *others):
            raise TemplateError(str(overrides), None, f"expected {beside} in {ADDED} for {path}")


def _places_of(spec: PackageSpec, inner: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The files that a template makes by its path, each with the values of its folder."""
    room, _, rest = inner.partition("/")
    if room == _PER_REVISION:
        for revision in spec.revisions:
            yield f"{revision.folder}/{rest}", {"revision": revision}
    elif room == _PER_EXTENSION:
        for revision, extension, folder in _extensions(spec):
            yield f"{folder}/{rest}", {"revision": revision, "extension": extension}
    else:
        yield inner, {}


def _old_modules(spec: PackageSpec, old: str, new: str, files: Mapping[str, str]) -> dict[str, str]:
    """Modules that replace those of a removed revision, one for each module of a newer revision."""
    modules: dict[str, str] = {}
    for path in files:
        room, _, rest = path.partition("/")
        if room == names.folder(new) and path.endswith(".py"):
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            top = "." * (path.count("/") + 1)
            text = templates.render(_OLD_MODULE, package=spec, module=module, runtime=top)
            modules[f"{names.folder(old)}/{rest}"] = text
    return modules


def _extensions(spec: PackageSpec) -> Iterator[tuple[RevisionSpec, ExtensionSpec, str]]:
    """The extensions of all revisions, each with its folder."""
    for revision in spec.revisions:
        for extension in revision.extensions:
            yield revision, extension, f"{revision.folder}/{extension.module}"


def _extension_job(
    spec: PackageSpec, revision: RevisionSpec, extension: ExtensionSpec, own: OwnTemplates
) -> Job:
    parts = extension.models
    title = f"The types of {extension.identifier} in {revision.name}."
    return models.job(
        parts.normal,
        parts.unions,
        parts.docs,
        title,
        core=extension.core,
        library=spec.has.models,
        runtime=_runtime(spec, f"{revision.folder}/{extension.module}/models.py"),
        templates=own,
        decoding=spec.has.decoding,
        extra_policy=spec.has.extra_policy,
        mutability=spec.has.mutability,
    )


def _models_job(spec: PackageSpec, revision: RevisionSpec, own: OwnTemplates) -> Job:
    parts = revision.models
    kind = {"msgspec": "Struct", "pydantic": "model"}[spec.has.models]
    title = f"The messages of {revision.name}: a {kind} for every object, under its name."
    lacking = spec.merged.lacking.get(revision.name, {})
    values = parts.values if spec.has.client else ()  # types alone stay a few modules
    return models.job(
        parts.normal,
        parts.unions,
        parts.docs,
        title,
        lacking,
        values=values,
        library=spec.has.models,
        runtime=_runtime(spec, f"{revision.folder}/models.py"),
        templates=own,
        decoding=spec.has.decoding,
        extra_policy=spec.has.extra_policy,
        mutability=spec.has.mutability,
    )


def _runtime(spec: PackageSpec, path: str) -> str:
    """The prefix by which a file imports modules that every package has."""
    return f"{runtime.PACKAGE}." if spec.has.installed else "." * (path.count("/") + 1)


def _runtime_names(spec: PackageSpec, path: str) -> Mapping[str, str]:
    """The names for imports of such modules in a template: that of the package, and the prefix."""
    beginning = _runtime(spec, path)
    package = runtime.PACKAGE if spec.has.installed else beginning
    return {"runtime": beginning, "runtime_package": package}


def _root() -> Path:
    return paths.templates_dir() / "package"


def _verbatim() -> Iterator[Path]:
    for path in _root().rglob("*"):
        if path.suffix != _SUFFIX and _SKIPPED not in path.parts and path.is_file():
            yield path


def _in_place(has: Features) -> Iterator[tuple[str, str]]:
    """Files that replace modules of `templates/package`, in the form of `_templates`.

    The replaced modules are for msgspec, lenient decoding, and for a vendored package.
    """
    installed = (runtime.FOLDER,) if has.installed else ()
    for name in (f"for_{has.models}", f"for_{has.decoding}", *installed):
        folder = paths.templates_dir() / name
        for path in sorted((*folder.rglob("*.py"), *folder.rglob(f"*{_SUFFIX}"))):
            inner = path.relative_to(folder).as_posix()
            if path.parent.name not in (_PER_REVISION, _PER_EXTENSION):
                yield inner.removesuffix(_SUFFIX), f"{name}/{inner}"


def _templates() -> Iterator[tuple[str, str]]:
    """Templates of a package: the path of the rendered file, and the name of the template."""
    for path in _root().rglob(f"*{_SUFFIX}"):
        inner = path.relative_to(_root())
        if inner.parts[0] not in (_PER_REVISION, _PER_EXTENSION):
            yield inner.as_posix().removesuffix(_SUFFIX), f"package/{inner.as_posix()}"


def _templates_per(folder: str, has: Features) -> Iterator[tuple[str, str]]:
    """Templates of each revision or extension, in the same form; paths are below its folder."""
    for room in ("package", f"for_{has.decoding}"):
        for path in (paths.templates_dir() / room / folder).rglob(f"*{_SUFFIX}"):
            inner = path.relative_to(paths.templates_dir() / room / folder).as_posix()
            yield inner.removesuffix(_SUFFIX), f"{room}/{folder}/{inner}"
