"""The values for templates of packages: the public ones of `values`, with what packages add.

A package adds its choice of parts and features, its public names, and signatures and docstrings as
source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from mcpgen import __version__
from mcpgen.errors import SchemaError
from mcpgen.json_types import Node
from mcpgen.literals import Code
from mcpgen.model import blocking, exports, imports, runtime
from mcpgen.model.blocking import BlockingMethod
from mcpgen.model.docstrings import Doc, Texts
from mcpgen.model.exports import Export, RenamedExport
from mcpgen.model.imports import Imports
from mcpgen.model.merging import Merged
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.model.parts import Features
from mcpgen.model.rpc_api import RpcApi
from mcpgen.model.unions import Variant
from mcpgen.schema.facts import Facts
from mcpgen.schema.structure import structure
from mcpgen.spec import values as spec

_OF_CORE = "core."
_PUBLISHED = 2  # slashes of the pointer of a published definition, as in `/$defs/Tool`
_TIME_TO_LIVE = "ttlMs"  # of a result, in the form of the module `facts` of a package


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
        unions: Tests for unions without tags.
        docs: Docstrings of every definition.
        texts: The texts of the docstrings.
        values: Definitions of tool results, which have a value.
    """

    normal: NormalizedSchema
    unions: Mapping[str, tuple[Variant, ...]]
    docs: Mapping[str, Doc]
    texts: Texts
    values: frozenset[str] = frozenset()

    @property
    def structure(self) -> Mapping[str, Node]:
        """The published definitions without prose, and the places of inline ones, by name."""
        published = self.normal.schema.definitions
        inline = {
            name: {"$ref": f"#{each.pointer}"}
            for name, each in self.normal.definitions.items()
            if each.pointer.count("/") > _PUBLISHED
        }
        return {name: structure(node) for name, node in published.items()} | inline


@dataclass(frozen=True)
class ExtensionSpec:
    """One extension beside a revision.

    Attributes:
        identifier: The identifier by which both sides declare it.
        module: Its module in the subpackage of the revision.
        types: Names of its own definitions.
        core: Names of the definitions of the revision.
        methods: Its methods.
        tables: Its methods, with types as written in its module of methods: `models.X` for its own,
            `core.X` for those of the revision.
        api: Its typed API.
        models: The input of its models, with the definitions of the revision.
        added_results: By method of the revision: the tests for results that the extension adds.
    """

    identifier: str
    module: str
    types: tuple[str, ...]
    core: frozenset[str]
    methods: spec.Methods
    tables: spec.Methods
    api: RpcApi
    models: ModelsSpec
    added_results: Mapping[str, tuple[Variant, ...]]

    @property
    def structure(self) -> Mapping[str, Node]:
        """The definitions without prose, as strict decoding checks values by them."""
        return self.models.structure

    @property
    def label(self) -> Code:
        """The identifier for prose; it consists of letters, digits and `.-_/`."""
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
    """A required member of an object that a package makes without setting the member.

    Attributes:
        definition: The object.
        wire: The member.
        by: The maker: `server`, `tools`, `prompts`, `resources`, `completions` or `client`.
        why: The reason: the member is new, optional for users, has changed its type, or is gone, as
            facts state.
    """

    definition: str
    wire: str
    by: str
    why: Literal["new", "optional", "retyped", "absent"]


@dataclass(frozen=True)
class RevisionSpec:
    """One revision.

    Attributes:
        name: Its name.
        folder: The subpackage it is written to.
        lifecycle: Member of `Lifecycle`.
        batching: Whether messages may come in batches.
        types: Names of all definitions.
        roles: Definitions by role: `implementation`, `client_capabilities`,
            `server_capabilities`, `meta`.
        tables: Its methods.
        api: Its typed API.
        facts: The facts that only the prose states.
        fact_rows: The facts that differ from the defaults, by kind.
        extension_fact_rows: Such facts about methods that an extension adds, by method.
        result_types: Values of `resultType` that are understood.
        models: The input of the models.
        extensions: The extensions beside it, in order.
        unset: Required members that a package does not set itself.
        item_options: New members of items, by decorator: wire names by keyword.
        unfit: The errors of extensions that do not fit, by identifier.
    """

    name: str
    folder: str
    lifecycle: Literal["HANDSHAKE", "PER_REQUEST"]
    batching: bool
    types: tuple[str, ...]
    roles: Mapping[str, str]
    tables: spec.Methods
    api: RpcApi
    facts: Facts
    fact_rows: tuple[FactRow, ...]
    extension_fact_rows: tuple[FactRow, ...]
    result_types: tuple[str, ...]
    models: ModelsSpec
    extensions: tuple[ExtensionSpec, ...] = ()
    unset: tuple[UnsetMember, ...] = ()
    item_options: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]]
    )
    unfit: Mapping[str, SchemaError] = field(default_factory=dict[str, SchemaError])

    @property
    def structure(self) -> Mapping[str, Node]:
        """The definitions without prose, as strict decoding checks values by them."""
        return self.models.structure

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

    def result_extensions(self, method: str) -> tuple[ExtensionSpec, ...]:
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
        has: Its parts, transports and features.
        old_names: Public names of earlier packages, which it offers if they have new names.
        renamed_types: Old names of types, with their new names.
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
        """Whether a revision distinguishes absent members from null."""
        return any(revision.has_unset for revision in self.revisions)

    @property
    def has_unset_members(self) -> bool:
        """Whether a revision requires members that a server does not set itself."""
        return any(revision.unset for revision in self.revisions)

    @property
    def has_batches(self) -> bool:
        """Whether a revision has batches of messages."""
        return any(revision.batching for revision in self.revisions)

    @property
    def item_options(self) -> Mapping[str, Mapping[str, str]]:
        """New members of items, by decorator: wire names by keyword."""
        options: dict[str, dict[str, str]] = {}
        for revision in self.revisions:
            for decorator, members in revision.item_options.items():
                options.setdefault(decorator, {}).update(members)
        return options

    @property
    def checks_items(self) -> bool:
        """Whether items are checked as they are registered: a revision adds members to them."""
        return self.has_unset_members or bool(self.item_options)

    @property
    def tool_options(self) -> tuple[str, ...]:
        """The keywords of the decorator of tools for such members."""
        return tuple(self.item_options.get("tool", ()))

    @property
    def has_cached_results(self) -> bool:
        """Whether a revision has results with a time to live."""
        return any(
            _TIME_TO_LIVE in (definition.node.get("properties") or {})
            for revision in self.revisions
            for definition in revision.models.normal.definitions.values()
        )

    @property
    def has_input_rounds(self) -> bool:
        """Whether a revision has results that ask for input."""
        rows = (row for revision in self.revisions for row in revision.facts.methods.values())
        return any(row.input_required for row in rows)

    @property
    def new_members(self) -> Mapping[str, tuple[str, ...]]:
        """Required members that a package does not set, such as `Tool.owner`, by maker."""
        return self._unset_for("new")

    @property
    def absent_members(self) -> Mapping[str, tuple[str, ...]]:
        """Members that a server needs and a revision lacks, by maker."""
        return self._unset_for("absent")

    def _unset_for(self, why: str) -> Mapping[str, tuple[str, ...]]:
        members: dict[str, tuple[str, ...]] = {}
        for each in (each for revision in self.revisions for each in revision.unset):
            if each.why == why:
                members[each.by] = (*members.get(each.by, ()), f"{each.definition}.{each.wire}")
        return members

    @cached_property
    def exports(self) -> tuple[Export, ...]:
        """Its public names, by module."""
        rows = exports.exports_of(self.has, unset=self.has_unset)
        types = exports.exported_types(
            self.has, self.types_module, (each.name for each in self.types), rows
        )
        return (*rows, types) if types.names else rows

    @property
    def absent_table(self) -> Mapping[str, tuple[str, ...]]:
        """Public names of features that it lacks by feature, as lines of names."""
        names: dict[str, list[str]] = {}
        for name, feature in exports.missing_names(self.has).items():
            names.setdefault(feature, []).append(name)
        return {feature: exports.lines_of(feature, names[feature]) for feature in sorted(names)}

    @property
    def sole(self) -> RevisionSpec | None:
        """The only revision of a package; `None` if there are several."""
        return None if self.has.several else self.revisions[0]

    @property
    def types_module(self) -> str:
        """The module of all its types, relative to the package."""
        return ".models" if self.has.several else f".{self.revisions[0].folder}.models"

    def import_from(self, module: str) -> str:
        """The name in this package of a module of vendored packages."""
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
    def name_table(self) -> Mapping[str, tuple[str, ...]]:
        """The public names by their modules, as lines of names."""
        return {module: exports.lines_of(module, names) for module, names in self.homes.items()}

    @property
    def name_imports(self) -> tuple[tuple[str, list[str]], ...]:
        """The imports of the stub: modules, each with names that fit one line."""
        return tuple(
            (module, line)
            for module, names in self.homes.items()
            for line in exports.imports_of(module, names)
        )

    @property
    def deprecated(self) -> tuple[RenamedExport, ...]:
        """Public names of earlier packages, with their new names."""
        return exports.renamed_exports(self.old_names, self.exports)

    @property
    def deprecated_types(self) -> tuple[RenamedExport, ...]:
        """Names of types in `models` of earlier packages, with their new names."""
        current = {each.name for each in self.types}
        if self.merged.classes:
            current = {each.name for each in self.merged.classes}
            current |= {each.name for each in self.merged.aliases}
        return exports.renamed_types(self.renamed_types, current)

    @property
    def entries(self) -> tuple[str, ...]:
        """Paths of its entry files."""
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
        return blocking.blocking_methods(self.has.parts)

    @property
    def blocking_group_methods(self) -> tuple[BlockingMethod, ...]:
        """Methods of the blocking client of several servers, likewise."""
        return blocking.blocking_group_methods(self.has.parts)

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
        of_group = (self.api.group,) if "groups" in self.has.chosen else ()
        return imports.of_connect_sync((self.api.calls, *of_group), self.api.handled)

    @property
    def session_imports(self) -> Imports:
        """The imports of the module of a server's session."""
        return imports.of_session(self.api.server)

    @property
    def server_imports(self) -> Imports:
        """Imports of the server's module in a package on an installed runtime."""
        sent = imports.NO_MESSAGES if self.sole else self.api.server
        return imports.of_installed_server(sent, {"Self"} if self.has.client else set())

    @property
    def merged_imports(self) -> Imports:
        """The imports of the module of the merged types."""
        return imports.of_merged(self.merged, self.deprecated_types)

    @property
    def requires(self) -> Mapping[str, str]:
        """The distribution of an installed runtime, with its minor version; empty if vendored."""
        return {
            "distribution": runtime.DISTRIBUTION,
            "package": runtime.PACKAGE,
            "minor": runtime.minor(),
            "range": runtime.version_range(),
            "interface": runtime.interfaces()[-1],
            "sources": runtime.SOURCES,
        }

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces of a package that others import as their runtime."""
        return runtime.interfaces()

    @property
    def version(self) -> str:
        """The version of a package that others import as their runtime."""
        return __version__
