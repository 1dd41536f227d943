"""All that templates may see: frozen, finished values of one revision, and of a whole package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from mcpgen import __version__, names
from mcpgen.errors import SchemaError
from mcpgen.json_types import Json
from mcpgen.literals import Code
from mcpgen.model import blocking, exports, imports, merging, rpc_api, runtime
from mcpgen.model.blocking import BlockingMethod
from mcpgen.model.docstrings import Doc, Texts, docstring
from mcpgen.model.exports import Export, RenamedExport
from mcpgen.model.extensions import Extension
from mcpgen.model.imports import Imports
from mcpgen.model.merging import Merged
from mcpgen.model.methods import Method, Methods, Role
from mcpgen.model.normalized import Definition, NormalizedSchema
from mcpgen.model.parts import EVERYTHING, Features, Selection, features
from mcpgen.model.rpc_api import RpcApi
from mcpgen.model.type_hints import HELD
from mcpgen.model.unions import Variant
from mcpgen.schema import revision_facts
from mcpgen.schema.facts import Facts

_OF_CORE = "core."
_RESULT_TYPE = "resultType"
_DATA = "data"
_TABLES = {
    "REVISION",
    "CLIENT_REQUESTS",
    "SERVER_REQUESTS",
    "CLIENT_NOTIFICATIONS",
    "SERVER_NOTIFICATIONS",
    "INPUT_REQUESTS",
}
"""The names of the tables in the module of the methods; no method's constant has one of them."""


_TIME_TO_LIVE = "ttlMs"  # of a result, as `facts` of a package reads it


@dataclass(frozen=True)
class Row:
    """One method of the tables.

    Attributes:
        constant: Name of the constant that holds it.
        params: Definition of the params, or `None`.
        result: Definition of the result, or `None`.
        items: Python name of the list in the result of a list request, or `None`.
        facts: Facts that differ from the defaults, by name.
    """

    constant: str
    name: str
    kind: str
    sender: Role
    params: str | None
    params_required: bool
    result: str | None
    capability: tuple[str, ...]
    items: str | None
    facts: Mapping[str, Any]
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

    @property
    def with_facts(self) -> tuple[Row, ...]:
        """The rows with facts, one for each name."""
        rows = {row.name: row for row in self.all if row.facts}
        return tuple(rows[name] for name in sorted(rows))


@dataclass(frozen=True)
class FactRow:
    """Facts of one kind, or of one method.

    Attributes:
        name: The member of `Facts`, or the method.
        type: Their class.
        values: Those that differ from the defaults, by name.
    """

    name: str
    type: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class ModelsSpec:
    """The input of the models of a revision.

    Attributes:
        normal: The definitions in plain form.
        unions: Tests for the unions that need some.
        docs: Documentation of every definition.
        texts: What it is made from.
        values: Definitions of what tools return, which have a value.
    """

    normal: NormalizedSchema
    unions: Mapping[str, tuple[Variant, ...]]
    docs: Mapping[str, Doc]
    texts: Texts
    values: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ExtensionSpec:
    """One extension beside a revision.

    Attributes:
        identifier: Under which both sides declare it.
        module: Its module in the subpackage of the revision.
        types: Names of its own definitions.
        core: Names of the definitions of the revision.
        tables: Its methods, with types as its module of methods has them: `models.X` for its own,
            `core.X` for those of the revision.
        api: Its typed API.
        models: What its models are made from, with the definitions of the revision.
        added_results: By method of the revision: the tests for results that the extension adds.
    """

    identifier: str
    module: str
    types: tuple[str, ...]
    core: frozenset[str]
    tables: Tables
    api: RpcApi
    models: ModelsSpec
    added_results: Mapping[str, tuple[Variant, ...]]

    @property
    def label(self) -> Code:
        """The identifier in prose: it has letters, digits and `.-_/` alone."""
        return Code(self.identifier)

    @property
    def uses_core(self) -> bool:
        """Whether params or results are types of the revision."""
        return any(name.startswith(_OF_CORE) for name in self._used)

    @property
    def uses_own(self) -> bool:
        """Whether params or results are types of its own."""
        return not all(name.startswith(_OF_CORE) for name in self._used)

    @property
    def _used(self) -> list[str]:
        names = [name for row in self.tables.all for name in (row.params, row.result)]
        return [name for name in names if name is not None]

    @property
    def exports(self) -> tuple[str, ...]:
        """The types in the order in which `__all__` is kept."""
        return tuple(sorted(self.types))

    @property
    def client_imports(self) -> Imports:
        """Imports of the module of the client class."""
        return imports.of_client(self.api.calls, self.api.handled)

    @property
    def sync_imports(self) -> Imports:
        """Imports of the module of the blocking client class."""
        return imports.of_client_sync(self.api.calls)

    @property
    def server_imports(self) -> Imports:
        """Imports of the module of the server stubs."""
        return imports.of_handlers_and_session(self.api.client, self.api.server)


@dataclass(frozen=True)
class UnsetMember:
    """A member that a schema asks for in an object, and that a package does not set so itself.

    Attributes:
        definition: The object.
        wire: The member.
        by: What makes it: `server`, `tools`, `prompts`, `resources`, `completions` or `client`.
        why: It is new; users can give it but need not; or it has another type than before.
    """

    definition: str
    wire: str
    by: str
    why: Literal["new", "optional", "retyped"]


@dataclass(frozen=True)
class RevisionSpec:
    """One revision.

    Attributes:
        name: Its name.
        folder: The subpackage it is written to.
        lifecycle: Member of `Lifecycle`.
        batching: Whether several messages may come as one.
        types: Names of all definitions.
        roles: Definitions with a role of their own: `implementation`, `client_capabilities`,
            `server_capabilities`, `meta`.
        tables: Its methods.
        api: Its typed API.
        facts: What only the prose states.
        fact_rows: What of it differs from the defaults, by kind.
        extension_fact_rows: The same for methods that an extension adds, by method.
        result_types: Values of `resultType` that are understood.
        models: What the models are made from.
        extensions: The extensions beside it, in order.
        unset: Members that a package does not set itself.
        unfit: Why extensions are not beside it, by identifier.
    """

    name: str
    folder: str
    lifecycle: Literal["HANDSHAKE", "PER_REQUEST"]
    batching: bool
    types: tuple[str, ...]
    roles: Mapping[str, str]
    tables: Tables
    api: RpcApi
    facts: Facts
    fact_rows: tuple[FactRow, ...]
    extension_fact_rows: tuple[FactRow, ...]
    result_types: tuple[str, ...]
    models: ModelsSpec
    extensions: tuple[ExtensionSpec, ...] = ()
    unset: tuple[UnsetMember, ...] = ()
    unfit: Mapping[str, SchemaError] = field(default_factory=dict[str, SchemaError])

    @property
    def exports(self) -> tuple[str, ...]:
        """The types in the order in which `__all__` is kept."""
        return tuple(sorted(self.types))

    @property
    def client_imports(self) -> Imports:
        """Imports of the module of the client class."""
        return imports.of_client(self.api.calls, self.api.handled)

    @property
    def sync_imports(self) -> Imports:
        """Imports of the module of the blocking client class."""
        return imports.of_client_sync(self.api.calls)

    @property
    def server_imports(self) -> Imports:
        """Imports of the module of the server stubs."""
        return imports.of_handlers_and_session(self.api.client, self.api.server)

    def extending(self, method: str) -> tuple[ExtensionSpec, ...]:
        """The extensions that add results to a method of the revision."""
        return tuple(each for each in self.extensions if method in each.added_results)

    @property
    def is_extended(self) -> bool:
        """Whether an extension adds results to a method of the revision."""
        return any(each.added_results for each in self.extensions)

    @property
    def has_unset(self) -> bool:
        """Whether params or results have optional members for which null is a value."""
        normal = self.models.normal
        roots = {name for row in self.tables.all for name in (row.params, row.result) if name}
        return any(
            wire not in definition.required and "default" not in node and normal.allows_null(node)
            for definition in normal.reachable(sorted(roots))
            for wire, node in definition.properties.items()
        )


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
        api: The typed API over all of them.
        types: All types, sorted by name.
        merged: The types over all revisions; empty in a package of one.
        has: What it has of the parts and the transports.
        old_names: Public names of earlier packages that it offers as far as they have new names.
        renamed_types: The same of types, with the names that took their place.
    """

    name: str
    revisions: tuple[RevisionSpec, ...]
    api: RpcApi
    types: tuple[Type, ...]
    merged: Merged
    has: Features
    old_names: tuple[str, ...] = ()
    renamed_types: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def has_unset(self) -> bool:
        """Whether a revision tells an absent member from one that is null."""
        return any(revision.has_unset for revision in self.revisions)

    @property
    def has_unset_members(self) -> bool:
        """Whether a revision asks for members that a server does not set itself."""
        return any(revision.unset for revision in self.revisions)

    @property
    def has_cached_results(self) -> bool:
        """Whether a revision has results that say for how long they may be used."""
        return any(
            _TIME_TO_LIVE in (definition.node.get("properties") or {})
            for revision in self.revisions
            for definition in revision.models.normal.definitions.values()
        )

    @property
    def new_members(self) -> Mapping[str, tuple[str, ...]]:
        """Members that nothing sets, such as `Tool.owner`, by what makes the objects."""
        members: dict[str, tuple[str, ...]] = {}
        for each in (each for revision in self.revisions for each in revision.unset):
            if each.why == "new":
                members[each.by] = (*members.get(each.by, ()), f"{each.definition}.{each.wire}")
        return members

    @property
    def exports(self) -> tuple[Export, ...]:
        """Its public names, by module."""
        rows = exports.exports_of(self.has, unset=self.has_unset)
        types = exports.exported_types(
            self.has, self.types_module, (each.name for each in self.types), rows
        )
        return (*rows, types) if types.names else rows

    @property
    def missing(self) -> Mapping[str, str]:
        """Public names that it was made without, each with the feature that has it, sorted."""
        return exports.missing(self.has)

    @property
    def sole(self) -> RevisionSpec | None:
        """The revision of a package of one; its client and session classes are those of all."""
        return None if self.has.several else self.revisions[0]

    @property
    def types_module(self) -> str:
        """The module of all its types, relative to the package."""
        return ".models" if self.has.several else f".{self.revisions[0].folder}.models"

    def import_from(self, module: str) -> str:
        """The module that one of a vendored package is in this one."""
        folders = [revision.folder for revision in self.revisions]
        if self.has.installed:
            return runtime.module_of(module, folders)
        return exports.home_of(module, folders)

    @property
    def homes(self) -> Mapping[str, tuple[str, ...]]:
        """The public names by their modules, in the order in which `__all__` is kept."""
        homes: dict[str, tuple[str, ...]] = {}
        for row in self.exports:
            module = self.import_from(row.module)
            homes[module] = (*homes.get(module, ()), *row.names)
        return homes

    @property
    def deprecated(self) -> tuple[RenamedExport, ...]:
        """Public names of earlier packages, with those that took their place."""
        return exports.renamed_exports(self.old_names, self.exports)

    @property
    def deprecated_types(self) -> tuple[RenamedExport, ...]:
        """Names of types in `models` of earlier packages, with those that took their place."""
        current = {each.name for each in self.types}
        if self.merged.classes:
            current = {each.name for each in self.merged.classes}
            current |= {each.name for each in self.merged.aliases}
        return exports.renamed_types(self.renamed_types, current)

    @property
    def entries(self) -> tuple[str, ...]:
        """Paths of the files that it begins with."""
        folders = tuple(revision.folder for revision in self.revisions)
        extensions = {
            f"{revision.folder}/{extension.module}": extension.tables.all
            for revision in self.revisions
            for extension in revision.extensions
        }
        with_messages = tuple(folder for folder, messages in extensions.items() if messages)
        types_alone = (f"{folder}/__init__.py" for folder in extensions.keys() - {*with_messages})
        return (*exports.entries(self.has, folders, with_messages), *sorted(types_alone))

    @property
    def blocking_methods(self) -> tuple[BlockingMethod, ...]:
        """Methods of the blocking client that do not depend on a schema."""
        return blocking.blocking_methods(self.has.chosen)

    @property
    def blocking_group_methods(self) -> tuple[BlockingMethod, ...]:
        """The same of the blocking client of several servers."""
        return blocking.blocking_group_methods(self.has.chosen)

    @property
    def group_imports(self) -> Imports:
        """Imports of the module of the client of several servers, and of the blocking one."""
        return imports.of_group(self.api.group)

    @property
    def connect_imports(self) -> Imports:
        """Imports of the module of the client class."""
        if self.sole is not None:
            return imports.of_connect_alone("groups" in self.has.chosen)
        return imports.of_connect(self.api.calls, self.api.handled)

    @property
    def sync_imports(self) -> Imports:
        """Imports of the module of the blocking client class."""
        if self.sole is not None:
            return imports.of_connect_sync(imports.NO_MESSAGES, self.api.handled)
        return imports.of_connect_sync(self.api.calls, self.api.handled)

    @property
    def session_imports(self) -> Imports:
        """The imports of the module of a server's session."""
        return imports.of_session(self.api.server)

    @property
    def server_imports(self) -> Imports:
        """Imports of the server's module, where it is on an installed runtime."""
        return imports.of_installed_server(imports.NO_MESSAGES if self.sole else self.api.server)

    @property
    def merged_imports(self) -> Imports:
        """The imports of the module of the merged types."""
        return imports.of_merged(self.merged, self.deprecated_types)

    @property
    def requires(self) -> Mapping[str, str]:
        """The runtime that it imports, if it has none: the distribution and its minor version."""
        return {
            "distribution": runtime.DISTRIBUTION,
            "package": runtime.PACKAGE,
            "minor": runtime.minor(),
            "range": runtime.version_range(),
        }

    @property
    def version(self) -> str:
        """The version of a package that others import as their runtime."""
        return __version__


def of_revision(
    name: str,
    facts: Facts,
    methods: Methods,
    held_by_role: Mapping[str, str],
    tests: Mapping[str, tuple[Variant, ...]],
    texts: Texts,
    derived: RpcApi,
) -> RevisionSpec:
    """Everything about one revision.

    Args:
        name: Its name.
        facts: Its facts.
        methods: Its methods, with the definitions.
        held_by_role: Definitions by their role.
        tests: Tests for the unions that need some.
        texts: The docstrings.
        derived: The typed API.
    """
    normal = methods.normal
    return RevisionSpec(
        name=name,
        folder=names.folder(name),
        lifecycle="HANDSHAKE" if methods.handshake else "PER_REQUEST",
        batching=methods.batching,
        types=tuple(normal.definitions),
        roles=held_by_role,
        tables=_tables(methods, facts),
        api=derived,
        facts=facts,
        fact_rows=_fact_rows(facts),
        extension_fact_rows=_extension_fact_rows(facts, methods),
        result_types=_result_types(facts),
        models=ModelsSpec(
            normal,
            tests,
            {name: _doc(d, texts, tests) for name, d in normal.definitions.items()},
            texts,
            _with_value(normal, derived),
        ),
    )


def _with_value(normal: NormalizedSchema, derived: RpcApi) -> frozenset[str]:
    """The objects that are what tools return, unless a member has the name of the property."""
    results = (normal.definitions[name] for call in derived.client.requests for name in call.values)
    return frozenset(
        each.name
        for each in results
        if each.is_object and _DATA not in names.members(each.properties).values()
    )


def of_extension(
    extension: Extension, facts: Facts, texts: Texts, derived: RpcApi
) -> ExtensionSpec:
    """An extension beside a revision.

    Args:
        extension: The extension.
        facts: The facts of the revision.
        texts: The docstrings.
        derived: Its typed API.
    """
    normal, types = extension.methods.normal, extension.types
    return ExtensionSpec(
        identifier=extension.file.identifier,
        module=extension.file.module,
        types=types,
        core=extension.core,
        tables=_qualified(_tables(extension.methods, facts), extension.core),
        api=derived,
        models=ModelsSpec(
            normal,
            extension.tests,
            {name: _doc(normal.definitions[name], texts, extension.tests) for name in types},
            texts,
        ),
        added_results=_added_results(extension, facts),
    )


def _added_results(extension: Extension, facts: Facts) -> Mapping[str, tuple[Variant, ...]]:
    """The results that an extension adds to methods, each told apart by its constants."""
    definitions = extension.methods.normal.definitions
    added: dict[str, tuple[Variant, ...]] = {}
    for method, stated in sorted(facts.methods.items()):
        results = tuple(
            _told_by_constants(definitions[name])
            for name in stated.extension_results
            if name in extension.types
        )
        if results:
            added[method] = results
    return added


def _told_by_constants(definition: Definition) -> Variant:
    properties = definition.properties.items()
    consts = tuple((wire, (node["const"],)) for wire, node in properties if "const" in node)
    return Variant(definition.name, consts=consts)


def _qualified(tables: Tables, core: frozenset[str]) -> Tables:
    """The methods of an extension, each type with the module that it is in."""
    types = replace(HELD, core=core)

    def typed(name: str | None) -> str | None:
        return None if name is None else types.type_named(name)

    def rows(group: Sequence[Row]) -> tuple[Row, ...]:
        return tuple(
            replace(row, params=typed(row.params), result=typed(row.result)) for row in group
        )

    return Tables(
        rows(tables.client_requests),
        rows(tables.server_requests),
        rows(tables.client_notifications),
        rows(tables.server_notifications),
        (),
    )


def package(
    revisions: Sequence[RevisionSpec],
    name: str,
    selection: Selection = EVERYTHING,
    old_names: Sequence[str] = (),
    renamed_types: Mapping[str, str] | None = None,
) -> PackageSpec:
    """A package of some revisions, oldest first.

    Raises:
        UsageError: No revision has a transport that was selected.
    """
    ordered = sorted(revisions, key=lambda revision: revision.name)
    types = sorted({name for revision in ordered for name in revision.types})
    has = features(
        selection,
        [revision.facts for revision in ordered],
        {each.identifier for revision in ordered for each in revision.extensions},
    )
    return PackageSpec(
        name=name,
        revisions=tuple(ordered),
        api=rpc_api.merge({revision.name: revision.api for revision in ordered}),
        types=tuple(
            Type(name, tuple(r.folder for r in ordered if name in r.types)) for name in types
        ),
        merged=merging.merge(
            [
                merging.Source(
                    r.name,
                    r.models.normal,
                    r.models.texts,
                    r.models.values if has.client else frozenset(),
                )
                for r in ordered
            ],
            names.RESERVED[selection.models],
        ),
        has=has,
        old_names=tuple(old_names),
        renamed_types=renamed_types or {},
    )


def _tables(methods: Methods, facts: Facts) -> Tables:
    def rows(group: Sequence[Method]) -> tuple[Row, ...]:
        return tuple(_row(method, twice, methods.normal, facts) for method in group)

    every = [*methods.all, *methods.inputs]
    twice = Counter(method.python_name for method in every)
    return Tables(
        client_requests=rows(methods.of("client", "request")),
        server_requests=rows(methods.of("server", "request")),
        client_notifications=rows(methods.of("client", "notification")),
        server_notifications=rows(methods.of("server", "notification")),
        input_requests=rows(methods.inputs),
    )


def _row(method: Method, twice: Counter[str], normal: NormalizedSchema, facts: Facts) -> Row:
    name = names.constant(method.python_name)
    constant = f"{method.sender.upper()}_{name}" if twice[method.python_name] > 1 else name
    return Row(
        constant=f"{constant}_" if constant in _TABLES else constant,
        name=method.name,
        kind=method.kind,
        sender=method.sender,
        params=method.params,
        params_required=method.params_required,
        result=method.result,
        capability=method.capability,
        items=_items(method, normal),
        facts=_differing(facts.method(method.name)),
        python_name=method.python_name,
    )


def _items(method: Method, normal: NormalizedSchema) -> str | None:
    """Python name of the list, in the result that holds it."""
    if method.items is None:
        return None
    members_of_results = (
        names.members(normal.definitions[name].properties) for name in method.results
    )
    return next(members[method.items] for members in members_of_results if method.items in members)


def _fact_rows(facts: Facts) -> tuple[FactRow, ...]:
    kinds = {kind.name: getattr(facts, kind.name) for kind in fields(revision_facts.Facts)}
    del kinds["methods"]
    rows = (_fact_row(name, stated) for name, stated in kinds.items())
    return tuple(row for row in rows if row.values)


def _extension_fact_rows(facts: Facts, methods: Methods) -> tuple[FactRow, ...]:
    """The facts about methods that an extension adds to those of the schema."""
    known = {method.name for method in (*methods.all, *methods.inputs)}
    return tuple(
        _fact_row(name, stated)
        for name, stated in sorted(facts.methods.items())
        if name not in known and facts.method(name).extension
    )


def _fact_row(name: str, stated: Any) -> FactRow:
    """The facts in an instance of one of the classes of `revision_facts`."""
    return FactRow(name, stated.__class__.__name__, _differing(stated))


def _differing(stated: Any) -> Mapping[str, Any]:
    """The facts in an instance that differ from the defaults, by name."""
    return {
        item.name: value
        for item in fields(stated)
        if (value := getattr(stated, item.name)) != item.default
    }


def _result_types(facts: Facts) -> tuple[str, ...]:
    values: list[Json] = [table.get(_RESULT_TYPE) for table in facts.defaults.values()]
    return tuple(sorted({value for value in values if isinstance(value, str)}))


def _doc(definition: Definition, texts: Texts, tests: Mapping[str, tuple[Variant, ...]]) -> Doc:
    indented = definition.is_object or definition.name in tests
    members = {wire: texts.member(definition, wire) for wire in definition.properties}
    return Doc(
        docstring([texts.summary(definition)], 4 if indented else 0, texts.source(definition)),
        {wire: docstring([text], 4) for wire, text in members.items() if text},
    )
