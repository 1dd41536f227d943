"""datamodel-code-generator: the source of models from plain definitions, here or in a process.

Importing and running it takes longer than everything else that a package of types needs. A separate
process, started first, does that while schemas are read and other modules are rendered. Sources of
earlier runs come from the cache, so that other parts of a package need no such process.

Its input has no references to other files, so the result does not depend on the process.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache as computed_once
from functools import cached_property, lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, TypedDict

from mcpgen import cache, paths
from mcpgen.errors import TemplateError, safe_text
from mcpgen.json_types import Node
from mcpgen.literals import WIDTH, ascii_source, docstring, double_quoted, literal
from mcpgen.names import Library
from mcpgen.render.template_names import MODELS
from mcpgen.render.templates import REASON, place_within

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WHOLE = "AllDefinitions_"
"""The name of the module's own type, which is not written; no definition has this name."""
_LIBRARY = "datamodel_code_generator"
_KIND = "models"
_MADE_BY = ("render/datamodel.py", "literals.py", "names.py")
"""The modules that decide the result of a job, beside the templates of models."""
_SERVE = (
    "import sys; sys.path[:] = sys.argv[1:]; from mcpgen.render.datamodel import serve; serve()"
)
"""The process has the search path of this one."""


class Job(TypedDict):
    """One module of models.

    Attributes:
        definitions: The definitions, each under its name.
        extra: Values for the templates about each definition, beyond its schema.
        aliases: Python names of members, by definition and wire name: `Tool.inputSchema`.
        imports: Imports for names that only our templates write.
        title: The module's docstring.
        modules: The module of each name that `imports` and definitions have from elsewhere, as
            `package.NAME`.
        library: The library of the models.
        templates: Texts of templates of the user's own, by file.
    """

    definitions: Mapping[str, Node]
    extra: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, str]
    imports: Sequence[str]
    title: str
    modules: Mapping[str, str]
    library: Library
    templates: Mapping[str, str]


def source_of(job: Job) -> str:
    """The source of a module, not yet formatted; it is stored in the cache.

    Raises:
        Exception: Of any class: datamodel-code-generator cannot translate a definition.
    """
    pickled = pickle.dumps(job)
    source = _read_kept(pickled)
    if source is None:
        source = _make_source(pickled, paths.templates_dir() / "models")
        _keep(pickled, source)
    return source


def _read_kept(job: bytes) -> str | None:
    """The cached source for a pickled job, or `None`."""
    kept = cache.read(_KIND, _key(job))
    return None if kept is None else kept.decode()


def _keep(job: bytes, source: str) -> None:
    cache.write(_KIND, _key(job), source.encode())


def _key(job: bytes) -> str:
    return hashlib.sha256(job + _tools()).hexdigest()


@computed_once
def _tools() -> bytes:
    """Digests and versions of the modules and libraries that make a source from a job."""
    files = [paths.PACKAGE / name for name in _MADE_BY]
    files += (path for path in sorted((paths.templates_dir() / "models").rglob("*")))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
    libraries = (version(name) for name in ("datamodel-code-generator", "jinja2", "pydantic"))
    return "\n".join((sys.version, *libraries, *digests)).encode()


@lru_cache(maxsize=32)
def _make_source(pickled: bytes, templates: Path) -> str:
    job: Job = pickle.loads(pickled)
    if not job["templates"]:
        return _generate(job, templates)
    with TemporaryDirectory(prefix="mcpgen_") as folder:
        own = Path(folder) / templates.name
        shutil.copytree(templates, own)
        files = {own / path.rpartition(f"{MODELS}/")[2]: path for path in job["templates"]}
        for file, path in files.items():
            file.write_text(job["templates"][path], encoding="utf-8")
        try:
            return _generate(job, own)
        except Exception as error:  # of whatever class: an expression of the user's raises it
            place = place_within(own, error)
            if place is None or Path(place[0]) not in files:
                raise
            reason = safe_text(str(error), REASON)
            raise TemplateError(files[Path(place[0])], place[1], reason) from error


def _generate(job: Job, templates: Path) -> str:
    # It takes long to import, and a package with a process for it needs it there only.
    from datamodel_code_generator import generate
    from datamodel_code_generator.enums import DataModelType, InputFileType
    from datamodel_code_generator.format import Formatter, PythonVersion
    from datamodel_code_generator.parser import LiteralType

    kinds: Mapping[Library, Mapping[str, Any]] = {
        "msgspec": {"output_model_type": DataModelType.MsgspecStruct, "use_annotated": True},
        "pydantic": {
            "output_model_type": DataModelType.PydanticV2BaseModel,
            "base_class": "package.Struct",
            # Revisions have a type of the name `Annotated`: the templates write `typing.Annotated`.
            "use_annotated": False,
            "field_constraints": True,
        },
    }
    extra: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, values in job["extra"].items():
        # A piece that Black changes is formatted by it twice: these quotes are the ones it writes.
        extra[name] = {**values, "literal": partial(literal, write_text=double_quoted)}
    with warnings.catch_warnings():
        # It warns of unions without tags; those are ours to decide.
        warnings.simplefilter("ignore")
        source = generate(
            json.dumps({"$schema": _DIALECT, "$defs": job["definitions"]}),
            input_file_type=InputFileType.JsonSchema,
            **kinds[job["library"]],
            target_python_version=PythonVersion.PY_311,
            class_name=_WHOLE,
            custom_template_dir=templates,
            extra_template_data=extra,
            additional_imports=[*job["imports"]],
            import_overrides={**job["modules"]},
            custom_file_header=docstring(job["title"]),
            formatters=[Formatter.BUILTIN],
            builtin_format_line_length=WIDTH,
            settings_path=templates,
            aliases=job["aliases"],
            apply_default_values_for_required_fields=True,
            disable_timestamp=True,
            enum_field_as_literal=LiteralType.All,
            keep_model_order=True,
            keyword_only=True,
            skip_root_model=True,
            use_double_quotes=True,
            use_standard_collections=True,
            use_type_alias=True,
            use_union_operator=True,
        )
    return ascii_source(str(source))


class Worker:
    """A process that makes sources; a context manager that ends the process.

    A source that the process fails to return is `None`: the caller then makes the source in this
    process, where an error can be explained.

    Args:
        here: Whether this process makes the sources, since it has imported the library.
    """

    def __init__(self, *, here: bool = False) -> None:
        self._here = here
        self._process: subprocess.Popen[bytes] | None = None
        self._exchange: Thread | None = None
        self._answer = b""
        self._known: dict[str, str] = {}
        self._missing: dict[str, bytes] = {}

    def begin(self) -> None:
        """Start the process, which begins with its imports."""
        if self._here:
            return
        with suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, *sys.path],
                env={**os.environ, "PYDANTIC_DISABLE_PLUGINS": "__all__"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def __enter__(self) -> Worker:
        """The worker itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            if self._exchange is not None:
                self._exchange.join()
            self._process.communicate()

    def start(self, jobs: Mapping[str, Job]) -> None:
        """Start all jobs, by path, except those whose sources are in the cache."""
        for path, job in jobs.items():
            text = pickle.dumps(job)
            source = _read_kept(text)
            if source is None:
                self._missing[path] = text
            else:
                self._known[path] = source
        if self._missing and self._process is None:
            self.begin()
        if self._missing and self._process is not None:
            arguments = (self._process, pickle.dumps(self._missing))
            self._exchange = Thread(target=self._communicate, args=arguments)
            self._exchange.start()

    def _communicate(self, process: subprocess.Popen[bytes], jobs: bytes) -> None:
        """Write the jobs and read the answer at once, so that no side blocks on a full pipe."""
        self._answer, _ = process.communicate(jobs)

    def source(self, path: str) -> str | None:
        """The source for a job; waits until all sources are made."""
        if path in self._known:
            return self._known[path]
        if self._exchange is not None:
            self._exchange.join()
        return self._sources.get(path)

    @cached_property
    def _sources(self) -> dict[str, str]:
        if self._here:
            return _sources_of(self._missing)
        try:
            sources: dict[str, str] = json.loads(self._answer)
        except ValueError:  # it ended before it had an answer
            return {}
        for path, source in sources.items():
            _keep(self._missing[path], source)
        return sources


def serve() -> None:
    """Write the sources for the jobs on standard input; jobs that fail are left out."""
    gc.disable()  # almost none of the many objects made here is garbage
    import_library()
    with cache.disable():  # the process that asks keeps them
        sources = _sources_of(pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(json.dumps(sources).encode())


def _sources_of(jobs: Mapping[str, bytes]) -> dict[str, str]:
    """The sources for jobs; jobs that fail are left out."""
    sources: dict[str, str] = {}
    for path, job in jobs.items():
        with suppress(Exception):  # of whatever kind: see Worker
            sources[path] = source_of(pickle.loads(job))
    return sources


def has_library() -> bool:
    """Whether this process has imported the library that makes sources, which takes long."""
    return f"{_LIBRARY}.parser.jsonschema" in sys.modules


def import_library() -> None:
    """Import the modules that `generate` imports when it is called."""
    for name in ("config", "parser.jsonschema", "model.msgspec"):
        importlib.import_module(f"{_LIBRARY}.{name}")
