"""Schema files of extensions, with messages and types that a revision does not have.

A file has definitions, and refers to those of the revision by name, or repeats them. The unions
ClientRequest, ServerRequest, ClientNotification and ServerNotification tell the sender of each
message; of all other messages, the client sends requests and the server sends notifications.

Tools that write JSON Schema from types put each type inline wherever it is used. So an inline copy
of a definition of the file is read as a reference, and an `allOf` that contains a union as the
union of the merged objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from mcpgen import names, paths
from mcpgen.errors import SchemaError, UsageError, format_value, safe_text
from mcpgen.input_files import is_typescript, read_text
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.normalize import DIRECTIONS
from mcpgen.model.normalized import reference, target
from mcpgen.model.schema_queries import properties, union_keyword, variants
from mcpgen.schema import Note, SchemaFile, read_extension, read_file
from mcpgen.schema.structure import ANNOTATIONS, canonical, escape, structure

Definitions: TypeAlias = Mapping[str, Node]

_LABEL = r"[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_NAME = r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?"
_IDENTIFIER = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/{_NAME}", re.ASCII)
_STATED = re.compile(r"Extension Identifier:\s*(\S+)")
_TYPES_ALONE = re.compile(r"Messages:\s*(none)\b")
_RULE = "a dotted prefix, '/' and a name, such as com.example/paint"
_TAKEN = frozenset({"models", "methods", "client", "client_sync", "server"})
"""Names of modules that every revision has."""
_CONTAINERS = ("$defs", "definitions")
_SCALARS = ("string", "integer", "number", "boolean", "null")
_SAFE = 2**53 - 1
_ROOTS = ("Request", "Notification", "Result")
"""Ends of names of definitions whose inline copies are equal by chance only.
"""
_PARAMS = "Params"


@dataclass(frozen=True)
class ExtensionFile:
    """The schema file of one extension.

    Attributes:
        path: The file.
        identifier: The identifier by which both sides declare the extension.
        content: Its content; `None` for TypeScript, which is read with the types of a revision.
    """

    path: Path
    identifier: str
    content: SchemaFile | None = field(default=None, repr=False, compare=False)

    @property
    def module(self) -> str:
        """The name of its module: `com.example/paint` gives `paint`."""
        name = names.snake(self.identifier)
        return f"{name}_" if name in _TAKEN else name

    @property
    def file(self) -> SchemaFile:
        """The content of the file, after `beside` has read it."""
        assert self.content is not None  # set by `beside`
        return self.content

    def beside(self, core: Definitions) -> ExtensionFile:
        """The extension with its content, which may refer to the definitions of a revision.

        Raises:
            SchemaError: The file cannot be read as TypeScript.
        """
        return replace(self, content=self.content or read_extension(self.path, core))

    @property
    def source(self) -> str:
        """The file, for messages."""
        return paths.shown_path(self.path)

    @property
    def container(self) -> str:
        """The key that holds the definitions."""
        present = (key for key in _CONTAINERS if is_object(self.file.document.get(key)))
        return next(present, _CONTAINERS[0])

    def error(self, name: str, expected: str, actual: str) -> SchemaError:
        """The error for a definition."""
        pointer = f"/{self.container}/{escape(name)}"
        return SchemaError(self.source, pointer, expected, actual)


def read(path: Path, identifier: str = "") -> ExtensionFile:
    """The extension in a file.

    Args:
        path: The file, JSON or TypeScript.
        identifier: Its identifier; by default the word after `Extension Identifier:` in the title
            or description of the file, or in its comments.

    Raises:
        SchemaError: The file cannot be read as JSON Schema or TypeScript.
        UsageError: There is no identifier, or it is malformed.
    """
    file = None if is_typescript(path) else read_file(path)
    source = paths.shown_path(path)
    stated = identifier or _stated_word(_STATED, path, file)
    if not stated:
        raise UsageError(
            f"{source}: expected the identifier of the extension, as --extension ID={source} or as"
            " 'Extension Identifier: ID' in the description of the file, got none"
        )
    if not _IDENTIFIER.fullmatch(stated):
        raise UsageError(f"{source}: expected as identifier {_RULE}, got {format_value(stated)}")
    return ExtensionFile(path, stated, file)


def _stated_word(pattern: re.Pattern[str], path: Path, file: SchemaFile | None) -> str:
    """The word that a pattern finds in the title or description of a file, or in its comments."""
    if file is None:
        texts: list[Json] = [read_text(path, SchemaError, "TypeScript text")]
    else:
        texts = [file.document.get(key) for key in ("title", "description", "$comment")]
    for text in texts:
        match = pattern.search(text) if isinstance(text, str) else None
        if match:
            return match[1]
    return ""


def check_distinct(files: Sequence[ExtensionFile]) -> None:
    """Refuse two extensions with one identifier or in one module.

    Raises:
        UsageError: There are two such extensions.
    """
    seen: dict[str, ExtensionFile] = {}
    for file in files:
        other = seen.setdefault(file.module, file)
        if other is not file:
            raise UsageError(
                f"expected a name of its own for each extension, got {other.identifier}"
                f" ({other.source}) and {file.identifier} ({file.source})"
            )


@dataclass(frozen=True)
class Messages:
    """The names of the messages that an extension adds, by the union of their sender."""

    by_union: Mapping[str, tuple[str, ...]]

    def of(self, union: str) -> tuple[str, ...]:
        """The messages of one union."""
        return self.by_union.get(union, ())


def own_definitions(extension: ExtensionFile, core: Sequence[Definitions]) -> Definitions:
    """The definitions of an extension, without repeated ones of the revision.

    Args:
        extension: The extension.
        core: The definitions of the revision, published and corrected.

    Raises:
        SchemaError: The file has no definitions, or a different one under a name of the revision.
    """
    document = extension.file.document.get(extension.container)
    if not is_object(document) or not document:
        actual = format_value(list(extension.file.document))
        raise SchemaError(extension.source, "", "definitions under $defs or definitions", actual)
    own: dict[str, Node] = {}
    for name, published in document.items():
        if not is_object(published):
            raise extension.error(name, "a definition that is an object", format_value(published))
    for name, published in _with_inner_definitions(document).items():
        node: Node = _rewrite_schema(
            {key: part for key, part in published.items() if key != "$schema"}
        )
        same = [definitions[name] for definitions in core if name in definitions]
        if not same:
            own[name] = node
            continue
        text = canonical(structure(node))
        if all(text != canonical(_rewrite_schema(structure(each))) for each in same):
            if name not in DIRECTIONS:
                expected = f"a definition that the revision does not have, or {name} as it has it"
                raise extension.error(name, expected, f"another {name}")
            own[name] = node
    return own


def _with_inner_definitions(document: Mapping[str, Node]) -> dict[str, Node]:
    """Move nested definitions to the top, under names that begin with their owner's name.

    Tools that export types one by one write `$defs` into each definition, to which its references
    into `#/$defs` lead.
    """
    definitions: dict[str, Node] = {}
    for owner, node in document.items():
        inner = {name: part for key in _CONTAINERS for name, part in _inner_of(node, key).items()}
        if not inner:
            definitions[owner] = node
            continue
        moved = {
            name: names.free_name(f"{owner}{names.pascal(name)}", {*document, *definitions})
            for name in inner
            if name not in document
        }
        rest = {key: part for key, part in node.items() if key not in _CONTAINERS}
        definitions[owner] = _move_references(rest, moved)
        definitions |= {moved[name]: _move_references(inner[name], moved) for name in moved}
    return definitions


def _inner_of(node: Node, key: str) -> Mapping[str, Json]:
    inner: Json = node.get(key)
    return inner if is_object(inner) else {}


def _move_references(node: Json, moved: Mapping[str, str]) -> Json:
    """Point the references of a schema to the moved definitions."""
    if is_array(node):
        return [_move_references(part, moved) for part in node]
    if not is_object(node):
        return node
    whole = {key: _move_references(part, moved) for key, part in node.items()}
    if isinstance(node.get("$ref"), str) and target(node) in moved:
        whole["$ref"] = reference(moved[target(node)])["$ref"]
    return whole


def absent_members(extension: ExtensionFile) -> list[Note]:
    """Notes about members that no value may have (`never` in TypeScript), which are left out."""
    notes: list[Note] = []
    left: list[tuple[str, Json]] = [
        (f"/$defs/{escape(name)}", node)
        for name, node in extension.file.document.get(extension.container, {}).items()
    ]
    while left:
        pointer, node = left.pop()
        parts = node.items() if is_object(node) else enumerate(node) if is_array(node) else ()
        for key, part in parts:
            at = f"{pointer}/{escape(str(key))}"
            if pointer.endswith("/properties") and part in ({"not": {}}, False):
                notes.append(Note(at, "a member that must be absent, left out"))
            left.append((at, part))
    return notes


def _rewrite_schema(node: Json) -> Json:
    """Rewrite equivalent forms that tools use into the form of the revisions' schemas."""
    if is_array(node):
        return [_rewrite_schema(part) for part in node]
    if not is_object(node):
        return node
    if node == {"not": {}}:
        return False
    plain: Node = {}
    for key, part in node.items():
        if key == "$ref" and isinstance(part, str):
            plain[key] = part.replace("#/definitions/", "#/$defs/")
        elif key == "properties" and is_object(part):
            members = {name: _rewrite_schema(child) for name, child in part.items()}
            # a member that no value may have is absent
            plain[key] = {name: child for name, child in members.items() if child is not False}
        elif (key, part) != ("propertyNames", {"type": "string"}):
            plain[key] = _rewrite_schema(part)
    if plain.get("minimum") == -_SAFE and plain.get("maximum") == _SAFE:
        del plain["minimum"], plain["maximum"]  # the range of JavaScript's exact integers
    alternatives: Json = plain.get("anyOf")
    prose = {key: part for key, part in plain.items() if key in ANNOTATIONS}
    is_union = plain.keys() - prose.keys() == {"anyOf"} and is_array(alternatives)
    if is_union and all(map(_is_scalar, alternatives)):
        return {**prose, "type": [each["type"] for each in alternatives]}
    return plain


def _is_scalar(node: Json) -> bool:
    return is_object(node) and node.keys() == {"type"} and node["type"] in _SCALARS


def simplify(own: Definitions, core: Definitions) -> dict[str, Node]:
    """Replace copies of definitions by references, and move unions out of `allOf`."""
    named = {
        canonical(structure(node)): name
        for name, node in reversed([*own.items()])
        if (properties(node) or variants(node) or "allOf" in node) and not name.endswith(_ROOTS)
    }
    short = {
        name: _shorten_definition(node, named)
        for name, node in own.items()
        if name not in DIRECTIONS
    }
    simple: dict[str, Node] = {}
    for name, node in short.items():
        simple.update(_distribute(name, node, {**core, **short}))
    return simple


def _shorten_definition(node: Node, named: Mapping[str, str]) -> Node:
    """Replace copies of definitions in a definition by references."""

    def short(part: Json) -> Json:
        if is_array(part):
            return [short(each) for each in part]
        if not is_object(part):
            return part
        same = named.get(canonical(structure(part)))
        return reference(same) if same is not None else inner(part)

    def member(name: str, child: Json) -> Json:
        same = named.get(canonical(structure(child)), "") if is_object(child) else ""
        unnamed = name == "params" and is_object(child) and not same.endswith(_PARAMS)
        return inner(child) if unnamed else short(child)

    def inner(part: Node) -> Node:
        return {
            key: (
                {name: member(name, child) for name, child in value.items()}
                if key == "properties" and is_object(value)
                else short(value)
            )
            for key, value in part.items()
        }

    return inner(node)


def _distribute(name: str, node: Node, every: Definitions) -> Iterator[tuple[str, Node]]:
    """A definition; if its `allOf` contains a union, as a union of merged objects, with these."""
    parts: Sequence[Node] = node.get("allOf", ())
    unions = [part for part in parts if _alternatives(part, every)]
    if len(unions) != 1:
        yield name, node
        return
    alternatives = _alternatives(unions[0], every)
    members: list[Node] = []
    for ending, alternative in zip(_endings(alternatives, every), alternatives, strict=True):
        inner = names.free_name(f"{name}{ending}", every)
        whole = [
            alternative if part is unions[0] else part for part in parts if not _is_only_open(part)
        ]
        yield inner, {**node, "allOf": whole}
        members.append(reference(inner))
    prose = {key: value for key, value in node.items() if key in ("title", "description")}
    yield name, {**prose, "anyOf": members}


def _is_only_open(part: Node) -> bool:
    """Whether a schema only declares an object as open."""
    return part.keys() <= {"type", "propertyNames", "additionalProperties"}


def _alternatives(part: Node, every: Definitions) -> Sequence[Node]:
    """The alternatives of a union, through references; empty for anything else."""
    seen: set[str] = set()
    while "$ref" in part and (name := target(part)) in every and name not in seen:
        seen.add(name)
        part = every[name]
    return variants(part)


def _endings(alternatives: Sequence[Node], every: Definitions) -> Sequence[str]:
    """The endings of the names of alternatives, from their distinguishing constant."""
    whole = [every.get(target(each), {}) if "$ref" in each else each for each in alternatives]
    for wire in properties(whole[0]):
        values = [properties(each).get(wire, {}).get("const") for each in whole]
        if all(isinstance(value, str) for value in values) and len({*values}) == len(values):
            return [names.pascal(str(value)) for value in values]
    return [
        target(each) if "$ref" in each else str(number)
        for number, each in enumerate(alternatives, start=1)
    ]


def messages(extension: ExtensionFile, own: Definitions) -> Messages:
    """The messages of an extension: by its unions, and all others by their kind.

    Raises:
        SchemaError: A union has members that are no messages, or the kind of a message is unknown.
    """
    by_union: dict[str, list[str]] = {union: [] for union in DIRECTIONS}
    for union in DIRECTIONS:
        for part in _members(own[union]) if union in own else ():
            if "$ref" not in part or target(part) not in own:
                raise extension.error(union, "messages of this extension", format_value(part))
            by_union[union].append(target(part))
    placed = {name for each in by_union.values() for name in each}
    for name, node in own.items():
        if name not in placed and name not in DIRECTIONS and _method(node) is not None:
            kind = next((end for end in ("Request", "Notification") if name.endswith(end)), None)
            if kind is None:
                expected = "a message whose name ends with Request or Notification"
                raise extension.error(name, expected, format_value(name))
            by_union["ClientRequest" if kind == "Request" else "ServerNotification"].append(name)
    of_file = None if is_typescript(extension.path) else extension.content
    types_alone = _stated_word(_TYPES_ALONE, extension.path, of_file)
    if not any(by_union.values()) and not types_alone:
        expected = "a request or notification: an object with a method that has a const"
        raise SchemaError(
            extension.source,
            f"/{extension.container}",
            expected,
            safe_text(", ".join(own) or "none"),
        )
    return Messages({union: tuple(each) for union, each in by_union.items()})


def _members(union: Node) -> Sequence[Node]:
    return variants(union) if variants(union) and union_keyword(union) else [union]


def _method(node: Node) -> str | None:
    """The method of a message, if a definition is one."""
    for part in (node, *node.get("allOf", ())):
        if is_object(part):
            method: Json = properties(part).get("method")
            value: Json = method.get("const") if is_object(method) else None
            if isinstance(value, str):
                return value
    return None
