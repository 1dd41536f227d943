"""All that templates may see: frozen, finished values of one revision, and of a whole package."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mcpgen import faces, imports, methods, names, parts, schema, unions
from mcpgen.docs import Docs
from mcpgen.faces import Faces
from mcpgen.facts import Facts
from mcpgen.imports import Imports
from mcpgen.jsonvalues import Json, Node
from mcpgen.methods import Method, Methods, Role
from mcpgen.normalize import normalize
from mcpgen.plain import Definition, Normal
from mcpgen.schema import Schema
from mcpgen.texts import Doc, Texts, docstring
from mcpgen.unions import Variant

_RESULT_TYPE = "resultType"


@dataclass(frozen=True)
class Row:
    """One method of the tables.

    Attributes:
        constant: Name of the constant that holds it.
        params: Definition of the params, or `None`.
        result: Definition of the result, or `None`.
        items: Python name of the list in a paginated result, or `None`.
    """

    constant: str
    name: str
    kind: str
    sender: Role
    params: str | None
    params_required: bool
    result: str | None
    capability: tuple[str, ...]
    cancellable: bool
    items: str | None
    python_name: str


@dataclass(frozen=True)
class Tables:
    """The methods of a revision, by who sends what."""

    client_requests: tuple[Row, ...]
    server_requests: tuple[Row, ...]
    client_notifications: tuple[Row, ...]
    server_notifications: tuple[Row, ...]
    input_requests: tuple[Row, ...]

    @property
    def all(self) -> tuple[Row, ...]:
        """Every row, each once."""
        return (
            *self.client_requests,
            *self.server_requests,
            *self.client_notifications,
            *self.server_notifications,
            *self.input_requests,
        )


@dataclass(frozen=True)
class ModelsSpec:
    """What the models are made from.

    Attributes:
        normal: The definitions in plain form.
        unions: Tests for the unions that need some.
        docs: Documentation of every definition.
    """

    normal: Normal
    unions: Mapping[str, tuple[Variant, ...]]
    docs: Mapping[str, Doc]


@dataclass(frozen=True)
class RevisionSpec:
    """One revision.

    Attributes:
        name: Its name.
        folder: The subpackage it is written to.
        lifecycle: Member of `Lifecycle`.
        batching: Whether several messages may come as one.
        types: Names of all definitions.
        parts: Definitions with a role of their own: `implementation`, `client_capabilities`,
            `server_capabilities`, `meta`.
        tables: Its methods.
        faces: Its typed faces.
        facts: What only the prose states.
        result_types: Values of `resultType` that are understood.
        models: What the models are made from.
    """

    name: str
    folder: str
    lifecycle: Literal["HANDSHAKE", "PER_REQUEST"]
    batching: bool
    types: tuple[str, ...]
    parts: Mapping[str, str]
    tables: Tables
    faces: Faces
    facts: Facts
    result_types: tuple[str, ...]
    models: ModelsSpec

    @property
    def client_imports(self) -> Imports:
        """What the module of the client face imports."""
        return imports.of_client(self.faces.client, self.faces.asked)

    @property
    def server_imports(self) -> Imports:
        """What the module of the server face imports."""
        return imports.of_handlers_and_session(self.faces.client, self.faces.server)

    @property
    def sends_requests(self) -> bool:
        """Whether a server may send requests, and so a client responses."""
        return bool(self.tables.server_requests)


@dataclass(frozen=True)
class Type:
    """A type of a package, in the revisions that have it."""

    name: str
    folders: tuple[str, ...]


@dataclass(frozen=True)
class PackageSpec:
    """A whole package.

    Attributes:
        name: Its import name.
        revisions: Its revisions, oldest first.
        faces: Faces over all of them.
        types: All types, sorted by name.
    """

    name: str
    revisions: tuple[RevisionSpec, ...]
    faces: Faces
    types: tuple[Type, ...]

    @property
    def connect_imports(self) -> Imports:
        """What the module of the client face imports."""
        return imports.of_connect(self.faces.client, self.faces.asked)

    @property
    def sync_imports(self) -> Imports:
        """What the module of the client face without event loop imports."""
        return imports.of_connect_sync(self.faces.client, self.faces.asked)

    @property
    def session_imports(self) -> Imports:
        """What the module of a server's session imports."""
        return imports.of_session(self.faces.server)


def build(
    source: Schema, facts: Facts, docs: Docs, later: Sequence[Mapping[str, Node]] | None = None
) -> RevisionSpec:
    """Everything about one revision.

    Args:
        source: Its schema.
        facts: Its facts.
        docs: The documentation of types.
        later: The definitions of the revisions after it, for their names; those that mcpgen has
            unless given.

    Raises:
        SchemaError: The schema has no plain form, a method no result, or a union no test.
    """
    plain = normalize(source, facts, _later(source.revision) if later is None else later)
    normal, found_parts = parts.find(plain)
    found = methods.derive(normal, facts)
    normal = found.normal
    tests = unions.untagged(normal)
    texts = Texts(source, docs)
    return RevisionSpec(
        name=source.revision,
        folder=names.folder(source.revision),
        lifecycle="HANDSHAKE" if found.handshake else "PER_REQUEST",
        batching=found.batching,
        types=tuple(normal.definitions),
        parts=found_parts,
        tables=_tables(found),
        faces=faces.derive(found, texts),
        facts=facts,
        result_types=_result_types(facts),
        models=ModelsSpec(
            normal, tests, {name: _doc(d, texts, tests) for name, d in normal.definitions.items()}
        ),
    )


def package(revisions: Sequence[RevisionSpec], name: str) -> PackageSpec:
    """A package of some revisions, oldest first."""
    ordered = sorted(revisions, key=lambda revision: revision.name)
    types = sorted({name for revision in ordered for name in revision.types})
    return PackageSpec(
        name=name,
        revisions=tuple(ordered),
        faces=faces.merge({revision.name: revision.faces for revision in ordered}),
        types=tuple(
            Type(name, tuple(r.folder for r in ordered if name in r.types)) for name in types
        ),
    )


def later_than(base: str, source: Schema) -> list[Mapping[str, Node]]:
    """The definitions of the revisions after a schema in a file, for their names.

    Args:
        base: The revision that it starts from: another schema than this counts as older.
        source: The schema.
    """
    same = source.digest == schema.entry(base).digest
    rows = (row for row in schema.revisions() if row.name > base or (row.name == base and not same))
    return [_definitions(row.folder) for row in rows]


def _later(revision: str) -> list[Mapping[str, Node]]:
    return [_definitions(row.folder) for row in schema.revisions() if row.name > revision]


@cache
def _definitions(folder: Path) -> Mapping[str, Node]:
    """The definitions of one of mcpgen's schemas, unchecked: only names are read from them."""
    document: Node = json.loads((folder / "schema.json").read_text(encoding="utf-8"))
    found: Mapping[str, Node] = document.get("$defs") or document["definitions"]
    return found


def _tables(found: Methods) -> Tables:
    def rows(group: Sequence[Method]) -> tuple[Row, ...]:
        return tuple(_row(method, twice, found.normal) for method in group)

    every = [*found.all, *found.inputs]
    twice = Counter(method.python_name for method in every)
    return Tables(
        client_requests=rows(found.of("client", "request")),
        server_requests=rows(found.of("server", "request")),
        client_notifications=rows(found.of("client", "notification")),
        server_notifications=rows(found.of("server", "notification")),
        input_requests=rows(found.inputs),
    )


def _row(method: Method, twice: Counter[str], normal: Normal) -> Row:
    name = names.constant(method.python_name)
    result = normal.named(method.result)
    members = names.members(result.properties if result else ())
    return Row(
        constant=f"{method.sender.upper()}_{name}" if twice[method.python_name] > 1 else name,
        name=method.name,
        kind=method.kind,
        sender=method.sender,
        params=method.params,
        params_required=method.params_required,
        result=method.result,
        capability=method.capability,
        cancellable=method.cancellable,
        items=members[method.items] if method.items else None,
        python_name=method.python_name,
    )


def _result_types(facts: Facts) -> tuple[str, ...]:
    values: list[Json] = [table.get(_RESULT_TYPE) for table in facts.defaults.values()]
    return tuple(sorted({value for value in values if isinstance(value, str)}))


def _doc(definition: Definition, texts: Texts, tests: Mapping[str, tuple[Variant, ...]]) -> Doc:
    indented = definition.is_object or definition.name in tests
    said = [texts.summary(definition), texts.source(definition)]
    members = {wire: texts.member(definition, wire) for wire in definition.properties}
    return Doc(
        docstring(said, 4 if indented else 0),
        {wire: docstring([text], 4) for wire, text in members.items() if text},
    )
