"""Facts files: `schema/<revision>/facts.toml`, on top of `schema/facts.toml`.

`revision_facts` defines the facts that packages have; this module has the facts that control
generation. A file states the facts that differ from the defaults; `false` declares a fact absent.
`schema/facts.toml` has facts about methods that are the same in every revision. Facts that the
schema shows are not repeated: methods, directions, params, most results, batching, the kind of
lifecycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcpgen import paths, schema
from mcpgen.errors import FactsError, format_value
from mcpgen.json_types import is_object
from mcpgen.schema import revision_facts
from mcpgen.schema.method_facts import MethodFacts
from mcpgen.toml_records import convert, read_toml


@dataclass(frozen=True)
class Results:
    """Result types that no rule finds, by method and by who sends the request."""

    client: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    server: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


By: TypeAlias = Literal["client", "server", "both"]
"""The side that has to follow a rule."""


@dataclass(frozen=True)
class PageRule:
    """A rule of the pages, in our words.

    Attributes:
        text: The rule.
        page: The page that states it.
        by: Who has to follow it.
    """

    text: str
    page: str
    by: By = "both"


@dataclass(frozen=True)
class Deprecation:
    """A feature that a revision deprecates.

    Attributes:
        since: The revision that called it deprecated first.
        page: The page that says so.
        instead: What takes its place.
        removal: When it may be removed; empty if that is not said.
        types: Types, and members as `Type.member`, that the schema marks as deprecated with it.
    """

    since: str
    page: str
    instead: str
    removal: str = ""
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pages:
    """Statements of the pages for readers: `mcpgen diff` compares them, and no package has them.

    Attributes:
        unstated: Facts, as `table.fact`, or tables of which the revision says nothing: their values
            are what a package does all the same.
        rules: Rules by name.
        deprecated: Deprecated features by name.
    """

    unstated: tuple[str, ...] = ()
    rules: Mapping[str, PageRule] = field(default_factory=dict[str, PageRule])
    deprecated: Mapping[str, Deprecation] = field(default_factory=dict[str, Deprecation])


@dataclass(frozen=True, kw_only=True)
class Facts(revision_facts.Facts):
    """All facts of one revision.

    Attributes:
        capabilities: Capability by method, as a dotted path: of the receiver for requests, of the
            sender itself for notifications. Methods without one are not listed.
        results: Result types that no rule finds.
        defaults: Values of fields that a peer may leave out, by definition name and wire name. A
            package sends them. The definition `*` stands for all others, where the schema requires
            the field.
        renamed: Definitions that a later revision calls otherwise: name here to later name.
        pages: What the pages state for readers.
        revision: The revision they were written for.
        source: The file, for messages.
    """

    capabilities: Mapping[str, str] = field(default_factory=dict[str, str])
    results: Results = Results()
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    pages: Pages = Pages()
    revision: str
    source: str

    def capability(self, method: str) -> tuple[str, ...]:
        """The path of the capability that a method depends on; empty for none."""
        path = self.capabilities.get(method)
        return tuple(path.split(".")) if path else ()

    def default(self, definition: str, wire_name: str) -> Any:
        """The default of a required field, or `None` if it has none."""
        own = self.defaults.get(definition, {})
        return own.get(wire_name, self.defaults.get("*", {}).get(wire_name))


def load(revision: str) -> Facts:
    """The facts of a revision that mcpgen has.

    Raises:
        UsageError: There is no such revision.
        FactsError: The file is malformed.
    """
    return load_file(schema.entry(revision).folder / "facts.toml", revision)


@dataclass(frozen=True)
class _Shared:
    """`schema/facts.toml`."""

    methods: Mapping[str, MethodFacts]


def shared_methods() -> Mapping[str, MethodFacts]:
    """The facts about methods that hold in every revision, before those of a revision.

    Raises:
        FactsError: The file is malformed.
    """
    table, place = read_toml(paths.schema_dir() / "facts.toml", FactsError)
    return convert(table, _Shared, place).methods


_CODES = {
    "HEADER_MISMATCH": "header_mismatch",
    "MISSING_REQUIRED_CLIENT_CAPABILITY": "missing_capability",
    "RESOURCE_NOT_FOUND": "resource_not_found",
    "UNSUPPORTED_PROTOCOL_VERSION": "unsupported_revision",
    "URL_ELICITATION_REQUIRED": "url_elicitation_required",
}
"""Conditions by the name of the constant with their code in TypeScript."""


def conditions(names: Iterable[str]) -> tuple[str, ...]:
    """The conditions whose codes have constants or errors with some names."""
    return tuple(_CODES[name] for name in names if name in _CODES)


_RESERVED = range(-32099, -32019)


def with_constants(facts: Facts, loaded: schema.Schema) -> Facts:
    """Add the error codes that a schema in TypeScript states as constants to facts.

    Raises:
        SchemaError: The constant of an error code is no integer.
    """
    stated: dict[str, int] = {}
    for name in _CODES.keys() & loaded.constants.keys():
        code = loaded.constants[name]
        if type(code) is not int:
            raise loaded.error("", f"an integer as the error code {name}", format_value(code))
        stated[name] = code
    return with_codes(facts, stated)


def with_codes(facts: Facts, stated: Mapping[str, int]) -> Facts:
    """Add error codes, by the name of the error such as `HEADER_MISMATCH`, to facts."""
    codes = {_CODES[name]: code for name, code in stated.items() if name in _CODES and code}
    errors = facts.errors
    defined = errors.defined
    if defined is not None:
        replaced = {getattr(errors, condition) for condition in codes}
        kept = [code for code in defined if code not in replaced]
        added = [code for code in codes.values() if code in _RESERVED]
        defined = tuple(sorted({*kept, *added}))
    retired = tuple(code for code in errors.retired if code not in codes.values())
    changed = replace(errors, **codes, defined=defined, retired=retired)
    return replace(facts, errors=changed)


def load_file(path: Path, revision: str | None = None) -> Facts:
    """The facts in a file; `revision` is the name of its folder unless given.

    Raises:
        FactsError: The file is malformed.
    """
    table, place = read_toml(path, FactsError)
    own = {"revision": revision or path.resolve().parent.name, "source": place.source}
    for name in own.keys() & table.keys():
        raise place.at(name).error("a table of facts", table[name])
    shared, _ = read_toml(paths.schema_dir() / "facts.toml", FactsError)
    return convert({**_overlay(shared, table), **own}, Facts, place)


def _overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Overlay a table with another one, nested tables likewise."""
    merged = {**below, **above}
    for name in below.keys() & above.keys():
        if is_object(below[name]) and is_object(above[name]):
            merged[name] = _overlay(below[name], above[name])
    return merged
