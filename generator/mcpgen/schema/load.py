"""Reading a schema: JSON or TypeScript in, a checked and corrected `Schema` out.

A file is checked against its dialect's meta-schema first, then against the shape of all schemas of
the protocol: named definitions, local references, and unions that tell the senders of messages.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mcpgen import names, paths
from mcpgen.errors import SchemaError, format_value, safe_text
from mcpgen.input_files import is_typescript, json_pointer, read_json
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.schema import checks, keywords
from mcpgen.schema import errata as corrections
from mcpgen.schema.nearest import Nearest, known_document, nearest
from mcpgen.schema.references import plain_references
from mcpgen.schema.revisions import RevisionEntry, entry, revisions
from mcpgen.schema.structure import digest, escape, prose, structure, subschemas, unescape

if TYPE_CHECKING:
    from mcpgen.schema.typescript.syntax import Module

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

_CONTAINERS = {"$defs": DRAFT_2020_12, "definitions": DRAFT_07}
_LISTS = frozenset({"allOf", "anyOf", "oneOf"})

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

Scalar: TypeAlias = str | int | float | bool
"""The value of a constant."""


@dataclass(frozen=True)
class Note:
    """A place in a schema where the package deviates from the schema.

    Attributes:
        pointer: The normalised pointer of the place.
        text: The deviation.
        is_lossy: Whether the package loses information of the file there, or below.
    """

    pointer: str
    text: str
    is_lossy: bool = True


@dataclass(frozen=True)
class Schema:
    """The structure of one revision, with references of one form.

    Attributes:
        revision: The revision it describes.
        dialect: URI of its JSON Schema dialect.
        definitions: All definitions in the file's order, without prose; every `$ref` reads
            `#/$defs/<name>` whatever the dialect. Not to be changed in place.
        digest: Digest of the structure as it was published, before corrections.
        errata: The corrections that were applied.
        prose: Descriptions from the file by normalised pointer (`/$defs/Tool/properties/name`);
            empty for the files of mcpgen, which have none.
        source: The file, for messages.
        container: The key that holds the definitions in the file.
        constants: Constants by name, such as error codes; only TypeScript has them.
        places: Pointers into the file of definitions that have another name or key there.
        notes: Notes about renamed definitions, and other deviations from the file.
    """

    revision: str
    dialect: str
    definitions: Mapping[str, Node]
    digest: str
    errata: tuple[corrections.Erratum, ...] = ()
    prose: Mapping[str, str] = field(default_factory=dict[str, str])
    source: str = ""
    container: str = "$defs"
    constants: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[Note, ...] = ()

    def pointer(self, normalised: str) -> str:
        """The pointer into the file for a pointer that begins with `/$defs/`."""
        name, slash, rest = normalised.removeprefix("/$defs/").partition("/")
        if name in self.places:
            return f"{self.places[name]}{slash}{rest}"
        return f"/{self.container}{normalised.removeprefix('/$defs')}"

    def error(self, normalised: str, expected: str, actual: str) -> SchemaError:
        """The error for a place in this schema, given by its normalised pointer."""
        return SchemaError(self.source, self.pointer(normalised), expected, actual)


def load(revision: str, *, errata: bool = True) -> Schema:
    """The schema of a revision that mcpgen has.

    Args:
        revision: Its name.
        errata: Whether the known defects of the published schema are corrected.

    Raises:
        UsageError: There is no such revision.
        SchemaError: The file is damaged, or does not have the digest on record.
        ErrataError: A correction does not fit.
    """
    row = entry(revision)
    file = row.folder / "errata.toml"
    stated = file.read_bytes() if errata and file.is_file() else b""
    return _load_known(row, row.folder, stated, errata=errata)


@lru_cache(maxsize=16)
def _load_known(row: RevisionEntry, folder: Path, stated: bytes, *, errata: bool) -> Schema:
    """The schema of a row, cached by folder and by the text of its corrections."""
    path = folder / "schema.json"
    document = known_document(row)
    actual = digest(document)
    if actual != row.digest:
        raise SchemaError(
            paths.shown_path(path), "", f"the digest {row.digest} of revisions.toml", actual
        )
    entries = corrections.read_errata(folder / "errata.toml") if errata else ()
    return _schema(SchemaFile(path, document, actual), row.name, entries)


def load_file(path: Path, *, revision: str | None = None, errata: bool = True) -> Schema:
    """The schema in any file of the protocol's shape: `read_file`, then `SchemaFile.schema`.

    Args:
        path: The file: draft-07 with `definitions`, 2020-12 with `$defs`, or TypeScript by its
            suffix.
        revision: Its name; `SchemaFile.revision` by default.
        errata: Whether to apply the corrections of `SchemaFile.errata`.

    Raises:
        SchemaError: The file cannot be read, or is not a schema of the protocol.
    """
    return read_file(path).schema(revision=revision, errata=errata)


def read_extension(path: Path, core: Mapping[str, Node]) -> SchemaFile:
    """The content of the schema file of an extension, JSON or TypeScript by its suffix.

    Args:
        path: The file.
        core: The definitions of the revision, which TypeScript may import.

    Raises:
        SchemaError: The file cannot be read as a JSON object or as TypeScript.
    """
    if not is_typescript(path):
        return read_file(path)
    from mcpgen.schema import typescript  # most schemas are JSON

    module = typescript.read(path)
    whole = typescript.with_core(module, core)
    document = typescript.document(whole, "$defs", typescript.Fidelity.TYPESCRIPT, ())
    own = typescript.without_core(document, module, core)
    return SchemaFile(path, own, digest(own))


def add_definitions(core: Schema, file: SchemaFile, own: Mapping[str, Json]) -> Schema:
    """Add definitions to the schema of a revision.

    Args:
        core: The schema of the revision.
        file: The file of the definitions, for messages and prose.
        own: The definitions, with references into `$defs`.

    Raises:
        SchemaError: A definition is malformed, or refers to a missing one.
    """
    source = paths.shown_path(file.path)
    _check_document({"$defs": {**own}}, source)
    merged = _schema(
        SchemaFile(file.path, {"$defs": {**core.definitions, **own}}, file.digest),
        core.revision,
        (),
        core.definitions,
    )
    container = _container(file.document, source)
    return replace(merged, container=container, constants=core.constants)


def correct(loaded: Schema, entries: tuple[corrections.Erratum, ...]) -> Schema:
    """A schema with further corrections, checked.

    Args:
        loaded: The schema.
        entries: The corrections, with pointers into `$defs` whatever the dialect.

    Raises:
        SchemaError: The corrected schema is none of the protocol.
        ErrataError: A correction does not fit.
    """
    file = SchemaFile(Path(loaded.source), {"$defs": loaded.definitions}, loaded.digest)
    corrected = _schema(file, loaded.revision, entries, loaded.definitions)
    errata = (*loaded.errata, *entries)
    return replace(loaded, definitions=corrected.definitions, errata=errata)


def read_document(path: Path) -> Node:
    """The JSON object in a file, unchecked and unchanged.

    Raises:
        SchemaError: The file cannot be read as a JSON object.
    """
    return _read(path)


@dataclass(frozen=True)
class SchemaFile:
    """The content of a schema file, not yet checked for the protocol's shape.

    Attributes:
        path: The file.
        document: Its JSON Schema.
        digest: Digest of its structure; for TypeScript, of the JSON that is published for it.
        constants: Constants by name; only TypeScript has them.
    """

    path: Path
    document: Node
    digest: str
    constants: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])

    @cached_property
    def nearest(self) -> Nearest:
        """The known revision whose structure is nearest to that of the file."""
        return nearest(self.document)

    @cached_property
    def revision(self) -> str:
        """The revision of the file.

        This is the date in the name of the file or of its folder, else the known revision with the
        same structure, else `draft`.
        """
        for part in (self.path.stem, self.path.resolve().parent.name):
            if dated := _DATE.search(part):
                return dated.group()
        return next((row.name for row in revisions() if row.digest == self.digest), "draft")

    @cached_property
    def errata(self) -> tuple[corrections.Erratum, ...]:
        """The corrections of the nearest revision that fit the file."""
        entries = corrections.read_errata(self.nearest.entry.folder / "errata.toml")
        return corrections.select_fitting(self.document, entries)

    def schema(self, *, revision: str | None = None, errata: bool = True) -> Schema:
        """The schema in the file, checked.

        Args:
            revision: Its name; by default that of the file.
            errata: Whether to apply the corrections.

        Raises:
            SchemaError: The file is not a schema of the protocol.
        """
        return self.corrected_schema(self.errata if errata else (), revision or self.revision)

    def corrected_schema(self, entries: tuple[corrections.Erratum, ...], revision: str) -> Schema:
        """The schema in the file with some corrections, checked.

        Raises:
            SchemaError: The file is not a schema of the protocol.
            ErrataError: A correction does not fit.
        """
        _check_document(self.document, paths.shown_path(self.path))
        return _schema(self, revision, entries)


def read_file(path: Path) -> SchemaFile:
    """The content of a schema file, JSON or TypeScript by its suffix.

    Raises:
        SchemaError: The file cannot be read as a JSON object or as TypeScript.
    """
    if not is_typescript(path):
        document = _read(path)
        return SchemaFile(path, document, digest(document))
    from mcpgen.schema import typescript  # most schemas are JSON

    return _typescript_file(path, typescript.read(path))


def _typescript_file(path: Path, module: Module) -> SchemaFile:
    """The schema of a module, in the dialect of a known revision with the same structure."""
    from mcpgen.schema import typescript
    from mcpgen.schema.typescript import Fidelity

    known = {row.digest for row in revisions()}
    published = {
        container: digest(typescript.document(module, container, Fidelity.PUBLISHED))
        for container in _CONTAINERS
    }
    container = next((name for name, value in published.items() if value in known), None)
    whole = _whole_names() if container is None else None
    container = container or "$defs"
    constants = {
        name: constant.value
        for name, constant in module.constants.items()
        if constant.value is not None
    }
    document = typescript.document(module, container, Fidelity.TYPESCRIPT, whole)
    return SchemaFile(path, document, published[container], constants)


@cache
def _whole_names() -> frozenset[str]:
    """The names of which the known revisions have integers, and no other numbers.

    A name is that of a definition, of a member, or of a member within a definition, after a dot.
    """
    kinds: dict[str, set[str]] = {}
    for row in revisions():
        document = known_document(row)
        definitions: Node = next(document[key] for key in _CONTAINERS if key in document)
        for owner, definition in definitions.items():
            kinds.setdefault(owner, set()).update(keywords.types(definition))
            for _, inner in subschemas(definition):
                for wire, node in inner.get("properties", {}).items():
                    name = str(node.get("$ref", "")).rpartition("/")[2]
                    types = keywords.types(definitions.get(name, node))
                    kinds.setdefault(wire, set()).update(types)
                    kinds.setdefault(f"{owner}.{wire}", set()).update(types)
    return frozenset(
        name for name, each in kinds.items() if "integer" in each and "number" not in each
    )


def _check_document(document: Node, source: str) -> None:
    """Check a document without a recorded digest."""
    container = _container(document, source)
    dialect = _dialect(document, container, source)
    checks.check_bounds(document, source)
    _check_against_meta_schema(document, container, dialect, source)


def _schema(
    file: SchemaFile,
    revision: str,
    entries: tuple[corrections.Erratum, ...],
    settled: Collection[str] = (),
) -> Schema:
    """The schema in a file; definitions with names in `settled` keep these."""
    document = file.document
    source = paths.shown_path(file.path)
    container = _container(document, source)
    dialect = _dialect(document, container, source)
    corrected, places = plain_references(corrections.apply(document, entries, source), container)
    checks.check(corrected, container, source)
    naming = _Naming.of(corrected, container, places, settled)
    _check_shape(naming, source)
    normal = _normalise(corrected, naming)
    return Schema(
        revision=revision,
        dialect=dialect,
        definitions=structure(normal)["$defs"],
        digest=file.digest,
        errata=entries,
        prose=prose(normal),
        source=source,
        container=container,
        constants=file.constants,
        places=naming.places,
        notes=(*naming.notes(), *_foreign_references(corrected, naming)),
    )


def _read(path: Path) -> Node:
    source = paths.shown_path(path)
    document = read_json(path, SchemaError)
    if not is_object(document):
        raise SchemaError(source, "", "a schema that is an object", format_value(document))
    return document


def _container(document: Node, source: str) -> str:
    for name in _CONTAINERS:
        if is_object(document.get(name)) and document[name]:
            return name
    raise SchemaError(
        source, "", "definitions under $defs or definitions", format_value(list(document))
    )


def _dialect(document: Node, container: str, source: str) -> str:
    named: Json = document.get("$schema", _CONTAINERS[container])
    for dialect in (DRAFT_07, DRAFT_2020_12):
        if isinstance(named, str) and named.rstrip("#") == dialect.rstrip("#"):
            return dialect
    raise SchemaError(source, "/$schema", f"{DRAFT_07} or {DRAFT_2020_12}", format_value(named))


_CHECKED: set[str] = set()
"""Digests of definitions that passed the meta-schema; versions of a schema share most."""


def _check_against_meta_schema(document: Node, container: str, dialect: str, source: str) -> None:
    """Check a document, and its definitions that this process has not checked yet."""
    from jsonschema import Draft7Validator, Draft202012Validator
    from jsonschema.exceptions import SchemaError as NotASchema

    validator = Draft7Validator if dialect == DRAFT_07 else Draft202012Validator
    digests = {
        name: hashlib.sha256(json.dumps([dialect, definition]).encode()).hexdigest()
        for name, definition in document[container].items()
    }
    places: list[tuple[list[str], Json]] = [([], {**document, container: {}})]
    places += [
        ([container, name], document[container][name])
        for name, digest in digests.items()
        if digest not in _CHECKED
    ]
    for place, schema in places:
        try:
            validator.check_schema(schema)
        except NotASchema as error:
            wrong: Any = error
            pointer = json_pointer([*place, *wrong.absolute_path])
            expected = (
                f"a schema of {dialect} ({wrong.validator}: {format_value(wrong.validator_value)})"
            )
            raise SchemaError(source, pointer, expected, format_value(wrong.instance)) from error
    _CHECKED.update(digests.values())


def _check_shape(naming: _Naming, source: str) -> None:
    for name in ("ClientRequest", "ServerResult"):
        if name not in naming.definitions:
            expected = f"{name}, a union that every schema of the protocol defines"
            actual = f"{len(naming.definitions)} definitions without it"
            raise SchemaError(source, f"/{naming.container}", expected, actual)


@dataclass(frozen=True)
class _Naming:
    """The definitions of a document, and their new names.

    Attributes:
        container: The key that holds the definitions, or most of them.
        definitions: All definitions, by the name in the document.
        names: The name of each as a class, by the name in the document.
        places: Pointers of definitions that container and name do not locate, by class name.
    """

    container: str
    definitions: Mapping[str, Json]
    names: Mapping[str, str]
    places: Mapping[str, str]

    @classmethod
    def of(
        cls, document: Node, container: str, moved: Mapping[str, str], settled: Collection[str]
    ) -> _Naming:
        """Choose the names for the definitions of a document, those under the other key included.

        Args:
            document: The document.
            container: The key that holds the definitions, or most of them.
            moved: Pointers into the file of definitions that are elsewhere there.
            settled: Definitions that keep their names.
        """
        keys: Mapping[str, str] = {
            name: key
            for key in (*(_CONTAINERS.keys() - {container}), container)
            if is_object(document.get(key))
            for name in document[key]
        }
        definitions = {name: document[key][name] for name, key in keys.items()}
        ordered = {name: definitions[name] for name in (*document[container], *definitions)}
        imported = {"Annotated"} - {*settled} if _has_bounds(document) else ()
        classes = names.class_names(ordered, imported)
        places = {
            classes[name]: moved.get(f"/{key}/{escape(name)}", f"/{key}/{escape(name)}")
            for name, key in keys.items()
            if classes[name] != name or key != container
        }
        return cls(container, ordered, classes, places)

    def notes(self) -> Iterator[Note]:
        """A note about each definition that got another name."""
        for published, name in self.names.items():
            if published != name:
                yield Note(f"/$defs/{name}", f"{safe_text(published)} is called {name}", False)


def _has_bounds(document: Node) -> bool:
    """Whether any type is written with bounds, for which a module imports `Annotated`."""
    return any(keywords.has_bounds(node) for _, node in subschemas(document))


def _foreign_references(document: Node, naming: _Naming) -> Iterator[Note]:
    """A note about references to a key that does not have the definition, if there are any."""
    wrong = [
        (pointer, node["$ref"])
        for pointer, node in subschemas(document)
        if "$ref" in node and not _is_held(document, node["$ref"])
    ]
    if wrong:
        pointer, target = wrong[0]
        count = "1 reference" if len(wrong) == 1 else f"{len(wrong)} references"
        text = f"{count} such as {safe_text(target)}, taken as into {naming.container}"
        yield Note(pointer.replace(f"/{naming.container}/", "/$defs/", 1), text, False)


def _is_held(document: Node, target: str) -> bool:
    key, _, token = target.removeprefix("#/").partition("/")
    definitions: Json = document.get(key)
    return is_object(definitions) and unescape(token) in definitions


def _normalise(document: Node, naming: _Naming) -> Node:
    """The document with `$defs` as container and in references, and without boolean schemas."""

    def normal(value: Json) -> Json:
        if is_array(value):
            return [normal(item) for item in value]
        if not is_object(value):
            return value
        return {key: normal_member(key, child) for key, child in value.items()}

    def normal_member(key: str, value: Json) -> Json:
        if key == "$ref" and isinstance(value, str):
            name = checks.target_name(value, naming.definitions)
            return (
                value if name is None else f"#/$defs/{naming.names[name]}"
            )  # a default has no reference
        if key == "properties" and is_object(value):
            return {name: normal_schema(child) for name, child in value.items()}
        if key in _LISTS and is_array(value):
            return [normal_schema(child) for child in value]
        return normal(value)

    def normal_schema(value: Json) -> Json:
        if value is False:
            return {"not": {}}
        return {} if value is True else normal(value)

    definitions = naming.definitions.items()
    return {"$defs": {naming.names[name]: normal_schema(node) for name, node in definitions}}
