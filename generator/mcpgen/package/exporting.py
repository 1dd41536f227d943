"""Export of a revision for other tools: as JSON Schema 2020-12, as an OpenRPC document, as values.

The values are those of `mcpgen.spec`. In the other forms, the definitions are those of the schema,
with its errata corrected. Where a package deviates from the schema, a `$comment` of the definition
says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mcpgen import schema
from mcpgen.console import Console
from mcpgen.errors import UsageError
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model import extensions, methods, schema_sources
from mcpgen.model.extension_files import ExtensionFile
from mcpgen.model.load import load_revision
from mcpgen.model.methods import Method
from mcpgen.model.name import name_types
from mcpgen.model.normalize import normalize
from mcpgen.model.normalized import target
from mcpgen.model.schema_queries import properties
from mcpgen.model.schema_sources import Source
from mcpgen.package import build_request, directory
from mcpgen.schema import Note

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OPENRPC = "1.3.2"

_DEFINITIONS, _SCHEMAS = "#/$defs/", "#/components/schemas/"
_Params: TypeAlias = tuple[dict[str, Node], list[str]]


@dataclass(frozen=True)
class Exported:
    """A revision, with the extensions of a package.

    Attributes:
        loaded: The schema of the revision.
        definitions: All definitions.
        notes: The places where a package deviates from the schema.
        methods: All methods.
    """

    loaded: schema.Schema
    definitions: Mapping[str, Node]
    notes: Sequence[Note]
    methods: Sequence[Method]


def export(console: Console, name: str, revision: str | None, *, errata: bool, rpc: bool) -> None:
    """Print the document of a revision, of a schema file, or of a revision of a package.

    Args:
        console: The output.
        name: The revision, the schema file, or the folder of the package.
        revision: The revision of a package.
        errata: Whether defects of published schemas are corrected.
        rpc: Whether to print OpenRPC in place of JSON Schema.

    Raises:
        McpgenError: There is no source of that name, or it is malformed.
    """
    source, beside = _source(name, revision)
    whole = _collect_export(source, beside, errata=errata)
    document = openrpc(whole) if rpc else json_schema(whole)
    console.text(json.dumps(document, indent=2, ensure_ascii=False))


def export_values(console: Console, name: str, revision: str | None, *, errata: bool) -> None:
    """Print the values of `mcpgen.spec` as JSON.

    Args:
        console: The output.
        name: A revision, `all` for all of them, a schema file, or the folder of a package.
        revision: The one revision of a package; all of its revisions by default.
        errata: Whether defects of published schemas are corrected.

    Raises:
        McpgenError: There is no source of that name, or it is malformed.
    """
    from mcpgen.spec import form, loading  # other exports need less

    sources, beside = _sources(name, revision)
    console.text(form.text_of(loading.load_sources(sources, beside, errata=errata)))


def export_values_schema(console: Console) -> None:
    """Print the JSON Schema of the JSON form of `mcpgen.spec`."""
    from mcpgen.spec import form

    console.text(json.dumps(form.json_schema(), indent=2))


def _sources(name: str, revision: str | None) -> tuple[Sequence[Source], Sequence[ExtensionFile]]:
    """The sources of all revisions that a name stands for, and their extensions."""
    if name == "all" and not Path(name).exists():
        return schema_sources.by_name((name,)), ()
    record = directory.read_manifest(Path(name)) if Path(name).is_dir() else None
    if record is None or revision is not None:
        source, beside = _source(name, revision)
        return (source,), beside
    sources = build_request.recorded_sources(Path(name), record)
    return sources, build_request.recorded_extensions(Path(name), record)


def _source(name: str, revision: str | None) -> tuple[Source, Sequence[ExtensionFile]]:
    """The source of a revision, and its extensions."""
    path = Path(name)
    if path.is_file():
        return schema_sources.of_file(path), ()
    if not path.is_dir():
        known = schema.latest().name if name == "latest" else name
        return schema_sources.of_revision(known), ()
    record = directory.read_manifest(path)
    if record is None:
        raise UsageError(f"{name}: expected a revision, a schema file or the folder of a package")
    sources = {each.revision: each for each in build_request.recorded_sources(path, record)}
    wanted = revision or next(iter(sources), "")
    if wanted not in sources or (revision is None and len(sources) > 1):
        raise UsageError(f"{name}: expected --revision with one of {', '.join(sources)}")
    return sources[wanted], build_request.recorded_extensions(path, record)


def _collect_export(source: Source, beside: Sequence[ExtensionFile], *, errata: bool) -> Exported:
    from_source = load_revision(source, errata=errata)
    loaded, stated, newer = from_source.schema, from_source.facts, from_source.newer
    named = name_types(normalize(loaded, stated, newer), stated)
    derived = methods.derive(named.types, named.messages, stated)
    definitions, notes, rows = dict(loaded.definitions), [*named.types.notes], [*derived.all]
    before = schema_sources.published_definitions(loaded)
    core = extensions.Core(loaded, before, stated, newer, named.types, derived, named.roles)
    for each in extensions.merge_all(beside, core).fitting:
        definitions |= each.schema.definitions
        notes += each.decided.types.notes
        rows += each.methods.all
    return Exported(loaded, definitions, notes, rows)


def json_schema(whole: Exported) -> Node:
    """The definitions of a revision as JSON Schema 2020-12."""
    return {
        "$schema": DIALECT,
        "title": _title(whole.loaded),
        **_corrections(whole.loaded),
        "$defs": _definitions(whole),
    }


def openrpc(whole: Exported) -> Node:
    """The methods of a revision as an OpenRPC document.

    A method that both sides send is listed once. `x-mcp-senders` has the sides, `x-mcp-capability`
    the path of the capability that the method depends on.
    """
    rows: dict[str, list[Method]] = {}
    for method in whole.methods:
        rows.setdefault(method.name, []).append(method)
    document = {
        "openrpc": OPENRPC,
        "info": {"title": _title(whole.loaded), "version": whole.loaded.revision},
        "methods": [_method(same, whole.definitions) for same in rows.values()],
        "components": {"schemas": _definitions(whole)},
    }
    rebased: Node = _rebase_references(document)
    return rebased


def _title(loaded: schema.Schema) -> str:
    return f"Model Context Protocol {loaded.revision}"


def _corrections(loaded: schema.Schema) -> Node:
    pointers = ", ".join(erratum.pointer for erratum in loaded.errata)
    return {"$comment": f"Corrected: {pointers}"} if pointers else {}


def _definitions(whole: Exported) -> dict[str, Node]:
    notes: dict[str, list[str]] = {}
    for note in whole.notes:
        _, _, name, *rest = note.pointer.split("/")
        notes.setdefault(name, []).append("/".join(["", *rest]) + f": {note.text}")
    return {
        name: {**node, **({"$comment": "; ".join(notes[name])} if name in notes else {})}
        for name, node in whole.definitions.items()
    }


def _method(rows: Sequence[Method], definitions: Mapping[str, Node]) -> Node:
    method = rows[0]
    members, required = _params(_message(method, definitions), definitions)
    senders: Node = {"x-mcp-senders": [row.sender for row in rows]}
    capability: Node = {"x-mcp-capability": [*method.capability]} if method.capability else {}
    document: Node = {
        "name": method.name,
        "paramStructure": "by-name",
        "params": [
            {"name": wire, "required": wire in required, "schema": node}
            for wire, node in members.items()
        ],
    }
    if method.kind == "request":
        known = [name for name in method.results if name in definitions]
        references = [{"$ref": _DEFINITIONS + name} for name in known]
        result = references[0] if len(references) == 1 else {"anyOf": references or [{}]}
        document["result"] = {"name": method.result or "result", "schema": result}
    return {**document, **senders, **capability}


def _message(method: Method, definitions: Mapping[str, Node]) -> Node:
    message, _ = _params(definitions[method.type], definitions)
    return message.get("params", {})


def _params(node: Node, definitions: Mapping[str, Node]) -> _Params:
    """The members and the required members of an object, through references and `allOf`."""
    members: dict[str, Node] = {}
    required: list[str] = []
    for part in _parts(node, definitions):
        members |= properties(part)
        required += part.get("required", ())
    return members, required


def _parts(node: Node, definitions: Mapping[str, Node]) -> Iterable[Node]:
    if "$ref" in node:
        yield from _parts(definitions[target(node)], definitions)
    for part in node.get("allOf", ()):
        yield from _parts(part, definitions)
    yield node


def _rebase_references(node: Json) -> Json:
    """Point the references in JSON to the components of an OpenRPC document."""
    if is_array(node):
        return [_rebase_references(part) for part in node]
    if not is_object(node):
        return node
    whole = {key: _rebase_references(part) for key, part in node.items()}
    if isinstance(node.get("$ref"), str):
        whole["$ref"] = node["$ref"].replace(_DEFINITIONS, _SCHEMAS)
    return whole
