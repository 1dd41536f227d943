"""`mcpgen.json`: the inputs of a package, and the fingerprints that show later changes.

Fingerprints are taken over text with `\\n` line ends, so a checkout on any system has the same.
"""

from __future__ import annotations

import hashlib
import json
import keyword
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from mcpgen import __version__, paths
from mcpgen.errors import ManifestError, UsageError
from mcpgen.input_files import read_json
from mcpgen.json_types import is_object
from mcpgen.model import runtime
from mcpgen.model.choice import recorded_features, selection
from mcpgen.model.parts import ALL, EVERYTHING, NONE, Selection
from mcpgen.model.runtime import Runtime
from mcpgen.names import Decoding, Library, Mutability
from mcpgen.toml_records import Place, convert

NAME = "mcpgen.json"

MAX_BYTES = 4 << 20
"""Size of the largest manifest that is read, in bytes; one with all parts has 0.1 MB."""

MAX_FILE_BYTES = 16 << 20
"""Size of the largest file of a package that is compared, in bytes; larger ones were edited."""

GITATTRIBUTES = ".gitattributes"
"""The file that makes reviews on GitHub and GitLab fold the package."""

_is_version = re.compile(r"[\w.+!-]{1,60}", re.ASCII).fullmatch


@dataclass(frozen=True)
class Origin:
    """The origin of one revision of a package.

    Attributes:
        origin: Data of mcpgen, or a file that the user named.
        structure: Digest of the schema's structure.
        inputs: Fingerprint of all input files: schema, corrections, facts.
        schema: Path of the user's schema file, from the package's directory; else empty.
        facts: Path of the user's facts file, likewise.
    """

    origin: Literal["mcpgen", "file"]
    structure: str
    inputs: str
    schema: str = ""
    facts: str = ""


@dataclass(frozen=True)
class Options:
    """Options that shaped the package.

    Attributes:
        errata: Whether schemas were corrected.
        parts: The parts that were chosen.
        transports: The transports that were chosen.
        models: The library of the models; no member of the file for msgspec.
        features: The features that were chosen, as in `Selection`; no member of the file for all of
            them.
        gitattributes: Whether a file tells Git that the package is generated; no member if so.
        runtime: The form of the package; no member if it is vendored.
        sources: Files and folders of the program whose used features the package has, from the
            package's directory; no member if features were named.
        words: The words of `--features` with `used`; no member likewise.
        decoding: The kind of decoding; no member if it is lenient.
        extra: What becomes of members that types do not have, as in `Selection`; no member if they
            are ignored.
        mutability: Whether members of models can be assigned; no member if not.
    """

    errata: bool
    parts: tuple[str, ...] = EVERYTHING.parts
    transports: tuple[str, ...] = EVERYTHING.transports
    models: Library = EVERYTHING.models
    features: tuple[str, ...] = EVERYTHING.features
    gitattributes: bool = True
    runtime: Runtime = EVERYTHING.runtime
    sources: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    decoding: Decoding = EVERYTHING.decoding
    extra: tuple[str, ...] = EVERYTHING.extra
    mutability: Mutability = EVERYTHING.mutability

    def selection(self) -> Selection:
        """The recorded choice.

        Raises:
            UsageError: The recorded words are not a valid choice.
        """
        return selection(
            self.parts,
            self.transports,
            self.models,
            self.features,
            self.runtime,
            self.decoding,
            self.extra,
            self.mutability,
        )


@dataclass(frozen=True)
class Templates:
    """The user's templates that replaced mcpgen's.

    Attributes:
        directory: Their directory, from the package's directory; empty if there are none.
        files: SHA-256 of each, by its name.
    """

    directory: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class PatchOrigin:
    """The patch that was applied.

    Attributes:
        file: Its path, from the package's directory; empty if there is none.
        digest: SHA-256 of its text.
    """

    file: str = ""
    digest: str = ""


@dataclass(frozen=True)
class ExtensionOrigin:
    """The origin of one extension of a package.

    Attributes:
        schema: Path of its schema file, from the package's directory; empty, and no member of the
            manifest, for one that mcpgen has by name.
        inputs: Fingerprint of the file.
    """

    schema: str
    inputs: str


@dataclass(frozen=True)
class Manifest:
    """The record of the inputs, the options and the files of a package.

    Attributes:
        mcpgen: Version of mcpgen.
        generator: Fingerprint of its code, templates and documentation.
        package: Import name.
        options: Options that shaped it.
        revisions: Origin by revision, oldest first.
        extensions: Origin of each extension by its identifier, in the order of the options; no
            member of the file without extensions.
        files: SHA-256 of every other file, by path within the package.
        templates: The templates of the user's.
        patch: The hand edits that were applied.
        names: Its public names, sorted.
        old_names: Public names of earlier versions of the package, sorted, which the package still
            offers while they have new names.
        renamed_types: Old names of types of earlier versions of the package, with their new names.
            `models` offers an old name while no type has it and the new one exists.
        old_revisions: Removed revisions, each with the revision whose modules the old modules
            re-export with a warning.
        requires: The requirement of the runtime's distribution, in the form of pip; empty, and no
            member of the file, if the package is vendored.

    The file leaves out the last six if they are empty.
    """

    mcpgen: str
    generator: str
    package: str
    options: Options
    revisions: Mapping[str, Origin]
    extensions: Mapping[str, ExtensionOrigin]
    files: Mapping[str, str]
    templates: Templates = Templates()
    patch: PatchOrigin = PatchOrigin()
    names: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()
    renamed_types: Mapping[str, str] = field(default_factory=dict[str, str])
    old_revisions: Mapping[str, str] = field(default_factory=dict[str, str])
    requires: str = ""

    def text(self) -> str:
        """The manifest as the file's text."""
        document = asdict(self)
        if not self.templates.directory:
            del document["templates"]
        if not self.patch.file:
            del document["patch"]
        if self.options.models == EVERYTHING.models:
            del document["options"]["models"]
        if self.options.features == EVERYTHING.features:
            del document["options"]["features"]
        if self.options.gitattributes:
            del document["options"]["gitattributes"]
        if self.options.runtime == EVERYTHING.runtime:
            del document["options"]["runtime"]
        if self.options.decoding == EVERYTHING.decoding:
            del document["options"]["decoding"]
        if self.options.extra == EVERYTHING.extra:
            del document["options"]["extra"]
        if self.options.mutability == EVERYTHING.mutability:
            del document["options"]["mutability"]
        if not self.options.sources:
            del document["options"]["sources"], document["options"]["words"]
        for extension in document["extensions"].values():
            if not extension["schema"]:
                del extension["schema"]
        empty = ("requires", "names", "old_names", "renamed_types", "old_revisions", "extensions")
        for optional in empty:
            if not document[optional]:
                del document[optional]
        return json.dumps(document, indent=2) + "\n"


def new(
    package: str,
    options: Options,
    revisions: Mapping[str, Origin],
    files: Mapping[str, str],
    templates: Templates | None = None,
    extensions: Mapping[str, ExtensionOrigin] | None = None,
    names: tuple[str, ...] = (),
    old_names: tuple[str, ...] = (),
    patch: PatchOrigin | None = None,
    renamed_types: Mapping[str, str] | None = None,
    old_revisions: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest for new files, given by path and text."""
    return Manifest(
        mcpgen=__version__,
        generator=generator_fingerprint(),
        package=package,
        options=options,
        revisions=revisions,
        extensions=extensions or {},
        files={path: fingerprint(files[path]) for path in sorted(files)},
        templates=templates or Templates(),
        patch=patch or PatchOrigin(),
        names=names,
        old_names=old_names,
        renamed_types=renamed_types or {},
        old_revisions=old_revisions or {},
        requires=runtime.requirement_specifier() if options.runtime == "installed" else "",
    )


def read(directory: Path) -> Manifest | None:
    """The manifest in a directory, or `None` if it has none.

    Raises:
        ManifestError: It cannot be read as a manifest.
    """
    path = directory / NAME
    if not path.is_file():
        return None
    document: Any = read_json(path, ManifestError, MAX_BYTES)
    place = Place(str(path), ManifestError)
    if is_object(document) and "adopted" in document:
        expected = "a patch in its place: remove it, mcpgen update --force, edit, mcpgen patch"
        raise place.at("adopted").error(expected, "rules of an earlier version")
    record = convert(_complete_members(document), Manifest, place)
    options = record.options
    words, choice = options.features, (options.parts, options.transports)
    if words[:1] not in ((ALL,), (NONE,)):
        chosen = recorded_features(words, *choice, has_sessions=_has_sessions(record))
        record = replace(record, options=replace(options, features=chosen))
    _check_texts(record, place)
    return record


def _has_sessions(record: Manifest) -> bool:
    """Whether a package has a revision with sessions over HTTP."""
    from mcpgen import schema  # few packages are of an earlier mcpgen
    from mcpgen.schema import facts

    own = {name for name, origin in record.revisions.items() if origin.origin == "mcpgen"}
    known = (facts.load(row.name) for row in schema.revisions() if row.name in own)
    return any(each.transports.streamable_http == "session" for each in known) or any(
        path.endswith("server/asgi/session_endpoint.py") for path in record.files
    )


def _complete_members(document: Any) -> Any:
    """Add the members that manifests of earlier releases lack."""
    if is_object(document):
        document.setdefault("extensions", {})
        extensions = document["extensions"]
        for extension in extensions.values() if is_object(extensions) else ():
            if is_object(extension):
                extension.setdefault("schema", "")
    return document


def _check_texts(record: Manifest, place: Place) -> None:
    """Refuse texts that mcpgen never writes, for they become paths, code and terminal output."""
    if not _is_version(record.mcpgen):
        raise place.at("mcpgen").error("a version", record.mcpgen)
    if not all(part.isidentifier() for part in record.package.split(".")):
        raise place.at("package").error("a name that Python can import", record.package)
    for path in record.options.sources:
        if not _is_relative(path):
            raise place.at("options").at("sources").error("relative paths", path)
    try:
        record.options.selection()
    except UsageError as error:
        raise place.at("options").error("parts, transports and features", str(error)) from None
    for name, origin in record.revisions.items():
        at = place.at("revisions").at(name)
        if not _is_version(name):
            raise at.error("the name of a revision", name)
        for key, path in (("schema", origin.schema), ("facts", origin.facts)):
            if path and not _is_relative(path):
                raise at.at(key).error("a relative path", path)
    if record.templates.directory and not _is_relative(record.templates.directory):
        expected = place.at("templates").at("directory")
        raise expected.error("a relative path", record.templates.directory)
    if record.patch.file and not _is_relative(record.patch.file):
        raise place.at("patch").at("file").error("a relative path", record.patch.file)
    for identifier, extension in record.extensions.items():
        if not identifier.isprintable() or not _is_relative(extension.schema):
            at = place.at("extensions").at(identifier).at("schema")
            raise at.error("a relative path", extension.schema)
    for old, new in record.renamed_types.items():
        for name in (old, new):
            if not name.isidentifier() or keyword.iskeyword(name):
                raise place.at("renamed_types").at(old).error("names of types", name)
    for old, new in record.old_revisions.items():
        if not _is_version(old) or old in record.revisions or new not in record.revisions:
            raise place.at("old_revisions").at(old).error("a revision of the package", new)
    for path in record.files:
        if not is_file_path(path):
            raise place.at("files").at(path).error(paths.FILE_PATH, path)


def _is_relative(path: str) -> bool:
    """Whether a text is the relative path of a file on any system."""
    parts = PurePosixPath(path), PureWindowsPath(path)
    return path.isprintable() and not any(each.is_absolute() or each.drive for each in parts)


def is_file_path(path: str) -> bool:
    """Whether a text is a path within a package: relative, normalized, the same on each system."""
    return path == GITATTRIBUTES or paths.is_file_path(path)


def fingerprint(text: str) -> str:
    """SHA-256, in hex, of a text with line ends as `\\n`."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def file_fingerprint(path: Path) -> str:
    """The fingerprint of a file's text; of its bytes, if they are not UTF-8.

    Empty for a file of more than `MAX_FILE_BYTES`, which is none that mcpgen wrote.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        return ""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def combine_fingerprints(files: Iterable[tuple[str, Path]]) -> str:
    """The fingerprint of several files by their names."""
    rows = sorted((name, file_fingerprint(path)) for name, path in files)
    return fingerprint("".join(f"{name} {digest}\n" for name, digest in rows))


def generator_fingerprint() -> str:
    """The fingerprint of the generator: its code, its templates and its documentation."""
    roots = {"mcpgen": paths.PACKAGE, "templates": paths.templates_dir()}
    files = [row for name, root in roots.items() for row in _files(name, root)]
    files += [(name, paths.schema_dir() / name) for name in ("docs.toml", "facts.toml")]
    files.append(("interface.txt", paths.interface_file()))
    return _fingerprint_as_of(tuple((name, path, _state(path)) for name, path in files))


def _state(path: Path) -> tuple[int, int]:
    """The modification time of a file, and its size in bytes."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _fingerprint_as_of(files: tuple[tuple[str, Path, tuple[int, int]], ...]) -> str:
    """The fingerprint of files by name, path and state, cached for the process."""
    return combine_fingerprints((name, path) for name, path, _ in files)


def _files(name: str, root: Path) -> Iterator[tuple[str, Path]]:
    """The files of the generator below a folder, by name, without byte code and copied data."""
    top = str(root)
    for folder, folders, names in os.walk(top):
        skipped = {"__pycache__", "_data"} if folder == top else {"__pycache__"}
        folders[:] = [each for each in folders if each not in skipped]
        below = name + folder[len(top) :].replace(os.sep, "/")
        for file in names:
            if not file.endswith(".pyc"):
                yield f"{below}/{file}", Path(folder, file)
